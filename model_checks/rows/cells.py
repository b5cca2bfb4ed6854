"""Cells of the ghost memory and the symbolic rows in them, each as one small number.

A cell is one row of one buffer under one name. A row is known by what made it: the step, the name, and the node of
the token tree whose last token it belongs to; so a row that is handed out says whose it is.
"""

from collections.abc import Iterable, Mapping
from functools import cached_property
from marshal import dumps  # noqa: TID251 - in memory only; its version 2 writes equal values alike
from typing import Final, NamedTuple

from tenure.spec.rows.jobs import LEFTOVER
from tenure.spec.rows.memory import Buffer, Place

ZEROS: Final = 0
"""A row of zeros: what is handed out for a row that was never computed (R14)."""
POISON: Final = -1
"""What a cell holds that was never written."""

_KINDS: Final = ("pool", "page", "clone", "host", "buffer", "aside")
_KIND: Final = {kind: number for number, kind in enumerate(_KINDS)}
_ROW_BITS, _NAME_BITS, _NUMBER_BITS = 5, 3, 7


class Row(NamedTuple):
    """A symbolic row: which step computed which node, under which name."""

    step: int
    node: int
    name: int


def row_code(step: int, node: int, name: int) -> int:
    """The number that stands for a row; positive."""
    return (step << 10 | node << _NAME_BITS | name) + 1


def row_of(code: int) -> Row:
    """What a positive number stands for."""
    code -= 1
    return Row(code >> 10, code >> _NAME_BITS & 127, code & 7)


def buffer_code(buffer: Buffer) -> int:
    """The number of a buffer: the cells of buffer b are those with `cell >> BUFFER_SHIFT == b`."""
    if not 0 <= buffer.number < 1 << _NUMBER_BITS:
        msg = f"{buffer} has a number that the checker's cells have no room for"
        raise ValueError(msg)
    return _KIND[buffer.kind] << _NUMBER_BITS | buffer.number


BUFFER_SHIFT: Final = _ROW_BITS + _NAME_BITS


def buffer_of(code: int) -> Buffer:
    """The buffer that a number stands for."""
    return Buffer(_KINDS[code >> _NUMBER_BITS], code & (1 << _NUMBER_BITS) - 1)


class Cells(dict[int, int]):
    """Per cell what it holds; never changed once it is part of a ghost: what is asked of it is worked out once."""

    def refilled(self, rows: Mapping[int, int]) -> "Cells":
        """The same cells, some of them with other rows."""
        twin = Cells(self)
        twin.update(rows)
        twin.rooms, twin.buffers = self.rooms, self.buffers
        return twin

    @cached_property
    def code(self) -> bytes:
        """The same for equal cells, and for no others."""
        return dumps(tuple(sorted(self.items())), 2)

    @cached_property
    def rooms(self) -> frozenset[int]:
        """Buffers with the names under which they have rows, each as one number."""
        return frozenset(cell >> _ROW_BITS for cell in self)

    @cached_property
    def buffers(self) -> frozenset[int]:
        """The buffers that are there."""
        return frozenset(room >> _NAME_BITS for room in self.rooms)


class Names:
    """The names of a scope, numbered: registered names, then leftovers."""

    def __init__(self, names: tuple[str, ...]) -> None:
        """Number the names in this order; at most eight."""
        if len(names) > 1 << _NAME_BITS:
            msg = f"{len(names)} names are more than the checker's cells have room for"
            raise ValueError(msg)
        self.names = names
        self.number = {name: place for place, name in enumerate(names)}
        self._number = self.number | {LEFTOVER + name: place for name, place in self.number.items()}

    def cell(self, place: Place) -> int:
        """The number of a place."""
        if not 0 <= place.row < 1 << _ROW_BITS:
            msg = f"{place} has a row that the checker's cells have no room for"
            raise ValueError(msg)
        return (buffer_code(place.buffer) << _NAME_BITS | self._number[place.name]) << _ROW_BITS | place.row

    def under(self, buffer: int, rooms: Iterable[int]) -> frozenset[str]:
        """The names under which a buffer has rows, of those that `Cells.rooms` tells."""
        mask = (1 << _NAME_BITS) - 1
        return frozenset(self.names[room & mask] for room in rooms if room >> _NAME_BITS == buffer)

    def place(self, cell: int) -> Place:
        """What a number stands for."""
        row, rest = cell & (1 << _ROW_BITS) - 1, cell >> _ROW_BITS
        return Place(buffer_of(rest >> _NAME_BITS), self.names[rest & 7], row)
