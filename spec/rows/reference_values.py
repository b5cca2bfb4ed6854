"""What goes into the naive oracle of the row machine and what comes out of it."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

from tenure.core.rows.events import BlockId, ContentIdentity, RequestId, Slot, WriteLayout
from tenure.core.rows.names import NameId, Output
from tenure.spec.rows.reference_names import SortedOutputs

Row: TypeAlias = Any
Computed: TypeAlias = Sequence[tuple[BlockId, ContentIdentity]]
"""Which blocks a step completes, and what they hold then."""


class Emitted(NamedTuple):
    """One thing that a step emits.

    Attributes:
        output: its name and, of a tensor, shape and dtype.
        content: of a tensor the sequence of its rows; anything else as it is.
    """

    output: Output
    content: Any


class Materialized(NamedTuple):
    """What a materialize returns.

    Attributes:
        hidden_states: per request asked for its rows, the hit's first; None if the step has none.
        mm_outputs: the same per mm name; under a leftover's name each request's share of it.
    """

    hidden_states: Mapping[RequestId, list[Row]] | None
    mm_outputs: Mapping[NameId, Mapping[RequestId, Any]]


class Hole(NamedTuple):
    """Why a hit is unreadable."""

    name: NameId
    slots: tuple[Slot, ...]


@dataclass(frozen=True, slots=True)
class SavedStep:
    """A step that waits to be consumed; all that it will ever return is settled.

    Attributes:
        batch: its requests.
        rows: per name and request the hit rows and the step's own.
        leftovers: per name and request its share.
        holes: the requests whose hit cannot be read.
    """

    batch: tuple[RequestId, ...]
    rows: dict[NameId, dict[RequestId, list[Row]]]
    leftovers: dict[NameId, dict[RequestId, Any]]
    holes: dict[RequestId, Hole]


class PendingSave(NamedTuple):
    """A save whose arguments were found good."""

    outputs: tuple[Emitted, ...]
    layout: WriteLayout
    sorted: SortedOutputs


def zero_row(row_shape: Sequence[int]) -> Row:
    """A row of zeros: nested tuples of that shape."""
    if not row_shape:
        return 0
    return (zero_row(row_shape[1:]),) * row_shape[0]


def blocks_of(slots: Iterable[Slot], block_size: int) -> set[BlockId]:
    """The blocks that these slots lie in."""
    return {slot // block_size for slot in slots}


def share_of(emitted: Emitted, place: int, start: int, stop: int, tokens: int) -> Any:
    """What one request gets of a leftover: its element of a list, its rows of a tensor with one a token, else all."""
    shape = emitted.output.shape
    if shape is not None:
        return emitted.content[start:stop] if shape and shape[0] == tokens else emitted.content
    is_list = isinstance(emitted.content, list)
    return emitted.content[place] if is_list and place < len(emitted.content) else emitted.content
