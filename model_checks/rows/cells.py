"""Cells of the ghost memory and the symbolic rows in them, each as one small number.

A cell is one row of one buffer under one name. A row is known by what made it: the step, the name, and the node of
the token tree whose last token it belongs to; so a row that is handed out says whose it is.
"""

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

    def place(self, cell: int) -> Place:
        """What a number stands for."""
        row, rest = cell & (1 << _ROW_BITS) - 1, cell >> _ROW_BITS
        return Place(buffer_of(rest >> _NAME_BITS), self.names[rest & 7], row)
