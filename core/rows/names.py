"""What a cached name is: its rows' shape and type, and how it is scheduled."""

from dataclasses import dataclass
from enum import Enum
from math import prod
from types import MappingProxyType
from typing import Final, TypeAlias

from tenure.core.config import as_int

HIDDEN: Final = "__hidden_states__"
"""The name of the hidden states. Every other name is a multimodal (mm) one."""

NameId: TypeAlias = str

ITEM_BYTES: Final = MappingProxyType(
    {"float32": 4, "float16": 2, "bfloat16": 2, "int32": 4, "int64": 8, "uint8": 1, "bool": 1}
)
"""Per dtype that a row may have: bytes of one element."""
ROW_ITEMS_MAX: Final = 2**30
"""Elements of one row at most."""


class Schedule(Enum):
    """When the rows of a write must be in the pool."""

    JOIN_NEXT_STEP = "JOIN_NEXT_STEP"
    JOIN_ON_FINISH = "JOIN_ON_FINISH"


class NameClass(Enum):
    """What a name's outputs are; held once it is known."""

    IMMEDIATE = "immediate rows"
    DEFERRED = "deferred rows"
    LEFTOVER = "leftover"


@dataclass(frozen=True, slots=True)
class RowFormat:
    """One registered name.

    Attributes:
        name: the name.
        row_shape: the shape of one row; the pool has the shape `[num_slots, *row_shape]`.
        dtype: a key of `ITEM_BYTES`.
        schedule: JOIN_NEXT_STEP for immediate rows, JOIN_ON_FINISH for deferred ones.
    """

    name: NameId
    row_shape: tuple[int, ...]
    dtype: str
    schedule: Schedule

    @property
    def row_bytes(self) -> int:
        """Bytes of one row."""
        count = ITEM_BYTES[self.dtype]
        for size in self.row_shape:
            count *= size
        return count


@dataclass(frozen=True, slots=True)
class Output:
    """One thing that a step emits, as far as the machine needs to know it.

    Attributes:
        name: `HIDDEN`, or a flat dotted mm name.
        shape: of a tensor; None for what is not a tensor (a list, a tuple, a map, a number), always a leftover.
        dtype: of a tensor; None for what is not one.
    """

    name: NameId
    shape: tuple[int, ...] | None = None
    dtype: str | None = None

    def __post_init__(self) -> None:
        """Take the shape as a tuple of plain ints.

        Raises:
            ValueError: a size is no whole number, is negative, or a row is larger than `ROW_ITEMS_MAX`.
        """
        if self.shape is None:
            return
        sizes = tuple(as_int(size) for size in self.shape)
        if any(size is None or size < 0 for size in sizes) or prod(map(int, self.shape[1:])) > ROW_ITEMS_MAX:
            msg = (
                f"{self.name} cannot have the shape {self.shape!r}: sizes are whole, not negative, and of rows that fit"
            )
            raise ValueError(msg)
        object.__setattr__(self, "shape", sizes)


@dataclass(frozen=True, slots=True)
class HeldClass:
    """The class of a name, and the shape of the output it was first seen with (None if it was declared)."""

    kind: NameClass
    first_shape: tuple[int, ...] | None
