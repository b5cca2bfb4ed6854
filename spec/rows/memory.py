"""Memory made of dicts, which knows what was never written and who is not ordered behind whom.

A buffer that was allocated and not written, or that is being written, holds `POISON`. Every use of a place carries
the user and everything that the user is ordered behind: two uses of one place, one of them a write, must be ordered.
"""

from collections.abc import Iterable
from typing import Any, Final, NamedTuple, TypeAlias

from tenure.core.errors import InvariantViolation

Row: TypeAlias = Any

POISON: Final = "poison"
"""What a place holds that has no row."""


class Buffer(NamedTuple):
    """One piece of memory with a life of its own: `page` 0, `clone` 3, `host` rows of write 4, and so on."""

    kind: str
    number: int


class Place(NamedTuple):
    """One row of a buffer under one name."""

    buffer: Buffer
    name: str
    row: int


class User(NamedTuple):
    """Who uses memory.

    Attributes:
        number: its place in the order of issue.
        behind: bit i is set if it is ordered behind user i.
        label: how messages name it.
    """

    number: int
    behind: int
    label: str

    def is_behind(self, other: "User") -> bool:
        """Whether the other one has ended before this one begins, on every legal device."""
        return self.number == other.number or bool(self.behind >> other.number & 1)


class Uses(NamedTuple):
    """Who wrote a place last, and who read it since."""

    writer: User | None
    readers: tuple[User, ...]


NEVER: Final = Uses(None, ())

Cell: TypeAlias = tuple[str, int]


class Memory:
    """All buffers."""

    def __init__(self) -> None:
        """No buffer yet."""
        self._rows: dict[Buffer, dict[Cell, Row]] = {}
        self._uses: dict[Buffer, dict[Cell, Uses]] = {}

    def clone(self) -> "Memory":
        """A twin that goes its own way from here."""
        twin = Memory()
        twin._rows = {buffer: cells.copy() for buffer, cells in self._rows.items()}
        twin._uses = {buffer: cells.copy() for buffer, cells in self._uses.items()}
        return twin

    @property
    def buffers(self) -> frozenset[Buffer]:
        """Every buffer that was allocated and not freed."""
        return frozenset(self._rows)

    def names(self, buffer: Buffer) -> frozenset[str]:
        """The names under which a buffer has rows."""
        return frozenset(name for name, _ in self._rows[buffer])

    def row(self, place: Place) -> Row:
        """What a place holds; looking is no use."""
        return self._rows.get(place.buffer, {}).get((place.name, place.row), POISON)

    def allocate(self, places: Iterable[Place]) -> None:
        """Make room; what was there stays."""
        for buffer, name, row in places:
            self._rows.setdefault(buffer, {}).setdefault((name, row), POISON)
            self._uses.setdefault(buffer, {}).setdefault((name, row), NEVER)

    def free(self, buffer: Buffer, user: User) -> None:
        """Give a buffer back.

        Raises:
            InvariantViolation: there is none, or somebody still uses it.
        """
        if buffer not in self._rows:
            raise InvariantViolation("R20", f"{user.label} frees {buffer}, which is not there")
        for name, row in self._rows[buffer]:
            self._order(Place(buffer, name, row), user, writes=True)
        del self._rows[buffer], self._uses[buffer]

    def begin_read(self, place: Place, user: User) -> None:
        """Somebody begins to read a place.

        Raises:
            InvariantViolation: it is not there, or its writer may still be at it.
        """
        uses = self._order(place, user, writes=False)
        self._uses[place.buffer][place.name, place.row] = Uses(uses.writer, (*uses.readers, user))

    def begin_write(self, place: Place, user: User) -> None:
        """Somebody begins to write a place; until the end it holds nothing.

        Raises:
            InvariantViolation: it is not there, or somebody may still be at it.
        """
        self._order(place, user, writes=True)
        self._uses[place.buffer][place.name, place.row] = Uses(user, ())
        self._rows[place.buffer][place.name, place.row] = POISON

    def read(self, place: Place, user: User) -> Row:
        """What somebody reads.

        Raises:
            InvariantViolation: there is no row.
        """
        row = self.row(place)
        if row is POISON:
            raise InvariantViolation("R02", f"{user.label} reads {place}, which holds no row")
        return row

    def write(self, place: Place, row: Row) -> None:
        """The end of a write."""
        self._rows[place.buffer][place.name, place.row] = row

    def _order(self, place: Place, user: User, *, writes: bool) -> Uses:
        cells = self._uses.get(place.buffer)
        uses = None if cells is None else cells.get((place.name, place.row))
        if uses is None:
            raise InvariantViolation("R20", f"{user.label} uses {place}, which is not allocated")
        others = uses.readers if writes else ()
        for other in (*others, *(() if uses.writer is None else (uses.writer,))):
            if not user.is_behind(other):
                verb = "writes" if writes else "reads"
                raise InvariantViolation(
                    "R20", f"{user.label} {verb} {place} and is not ordered behind {other.label}, which uses it"
                )
        return uses
