"""What `--rows` says: one name whose rows a replay carries, with shape, dtype and class."""

from dataclasses import dataclass
from math import prod
from typing import Final

from tenure.core.rows.names import HIDDEN, ITEM_BYTES, ROW_ITEMS_MAX
from tenure.replay.errors import OptionError
from tenure.replay.requests import shown

HIDDEN_WORD: Final = "hidden"
"""The name that stands for the hidden states."""
SHORT_DTYPES: Final = {"fp32": "float32", "fp16": "float16", "bf16": "bfloat16"}
CLASSES: Final = ("immediate", "deferred")
FORM: Final = "NAME:SHAPE[:DTYPE][:CLASS]"
_SIZE_DIGITS_MAX: Final = 10


@dataclass(frozen=True, slots=True)
class RowSpec:
    """The rows of one name.

    Attributes:
        name: as the user gave it; `hidden` for the hidden states.
        row_shape: the shape of one row.
        dtype: a key of `ITEM_BYTES`.
        is_deferred: whether its rows reach the pool only when their request ends.
    """

    name: str
    row_shape: tuple[int, ...]
    dtype: str = "float32"
    is_deferred: bool = False

    @property
    def is_hidden(self) -> bool:
        """Whether these are the hidden states."""
        return self.name == HIDDEN_WORD

    @property
    def row_bytes(self) -> int:
        """Bytes of one row."""
        return prod(self.row_shape) * ITEM_BYTES[self.dtype]

    def __str__(self) -> str:
        text = f"{self.name}:{'x'.join(map(str, self.row_shape))}:{self.dtype}"
        return f"{text}:deferred" if self.is_deferred else text


def parse_rows(text: str) -> RowSpec:
    """What one `--rows` says.

    Raises:
        OptionError: it is not of the form, or asks for what there is not.
    """
    name, *parts = text.split(":")
    if not parts or len(parts) > 3:
        raise _bad(text, f"is not of the form {FORM}", "for instance hidden:2048:bf16 or codes:8:int32:deferred")
    if not name or name == HIDDEN:
        raise _bad(text, "has no name that rows can have", f"the hidden states are named {HIDDEN_WORD!r}")
    row_shape = _row_shape(text, parts[0])
    dtype, is_deferred = "float32", False
    for place, part in enumerate(parts[1:]):
        if place == 0 and (known := SHORT_DTYPES.get(part, part)) in ITEM_BYTES:
            dtype = known
        elif part in CLASSES and place == len(parts) - 2:
            is_deferred = part == "deferred"
        else:
            dtypes = ", ".join((*ITEM_BYTES, *SHORT_DTYPES))
            raise _bad(
                text,
                f"has {shown(part)} where a dtype or a class is expected",
                f"dtypes are {dtypes}; classes, which come last, are {' and '.join(CLASSES)}",
            )
    if is_deferred and name == HIDDEN_WORD:
        raise _bad(text, "defers the hidden states, which a prefix hit needs at once", "only other names are deferred")
    return RowSpec(name, row_shape, dtype, is_deferred)


def _row_shape(text: str, part: str) -> tuple[int, ...]:
    sizes = part.split("x")
    if not all(size.isascii() and size.isdigit() and len(size) <= _SIZE_DIGITS_MAX for size in sizes):
        raise _bad(text, f"has {shown(part)} where a row shape is expected", "for instance 2048 or 3x2")
    row_shape = tuple(map(int, sizes))
    if not 1 <= prod(row_shape) <= ROW_ITEMS_MAX:
        raise _bad(text, f"has rows of {prod(row_shape)} elements", f"a row has 1 to {ROW_ITEMS_MAX}")
    return row_shape


def _bad(text: str, problem: str, advice: str) -> OptionError:
    return OptionError(f"--rows {shown(text)} {problem}", advice)
