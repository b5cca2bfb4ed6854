"""States over plain mutable tables with one journal a transition: what both machines are made of.

The newest state owns the tables; an older one holds the journal that leads back to it.
"""

from collections.abc import Callable
from typing import Any, Generic, Protocol, Self, TypeVar, cast

from tenure.core.persistent import ATTRIBUTE, Journal, Version, revert

Told = TypeVar("Told")
Result = TypeVar("Result")


class JournaledTables(Protocol):
    """What a state needs of its tables; `scalars` is every number that changes, noted in a journal at once."""

    @property
    def scalars(self) -> Any:
        """Every single value that changes."""
        ...

    @scalars.setter
    def scalars(self, values: Any) -> None: ...

    def clone(self) -> Any:
        """A copy that shares nothing mutable."""
        ...

    def key(self) -> tuple[Any, ...]:
        """The content, for equality and hashing."""
        ...


T = TypeVar("T", bound=JournaledTables)


class Edit(Generic[T]):
    """What one transition works on: the tables, the journal of its changes, the commands it emits."""

    __slots__ = ("commands", "journal", "tables")

    def __init__(self, tables: T) -> None:
        self.tables = tables
        self.journal: Journal = []
        self.commands: list[Any] = []


E = TypeVar("E", bound=Edit[Any])


class JournaledState(Version[T, Journal], Generic[T]):
    """One state of a machine.

    A state stays valid and equal to what it was after any number of transitions from it. Two states are equal if
    they hold the same, and then hash alike. Reading an older state shares structure with the newest: whoever reads
    states from several threads holds one lock.
    """

    __slots__ = ("_copying",)

    _copying: bool

    @classmethod
    def over(cls, tables: T, *, copying: bool) -> Self:
        """The first state, owner of `tables`.

        A transition keeps the difference to the state before, and costs what it changes. With `copying` it copies
        the tables instead: for explorers, which keep thousands of small states and jump between them.
        """
        state = object.__new__(cls)
        state._adopt(tables)
        state._copying = copying
        return state

    @staticmethod
    def _swap(store: T, undo: Journal) -> Journal:
        return revert(undo)

    def _edited(
        self, make_edit: Callable[[T], E], event: Told, handle: Callable[[E, Told], Result]
    ) -> tuple[Self, Result, tuple[Any, ...]]:
        """The state after `handle` took `event`, its result and its commands; this state itself if nothing changed.

        Whatever `handle` raises, this state is as it was.
        """
        tables = self._own()
        if self._copying:
            tables = cast("T", tables.clone())
        edit = make_edit(tables)
        journal, scalars = edit.journal, tables.scalars
        newer = object.__new__(type(self))
        newer._copying = self._copying
        try:
            result = handle(edit, event)
            if tables.scalars != scalars:
                journal.append((ATTRIBUTE, tables, "scalars", scalars))
            if not journal:
                return self, result, tuple(edit.commands)
            if self._copying:
                newer._adopt(tables)
            else:
                self._hand_over(newer, tables, journal)
            return newer, result, tuple(edit.commands)
        except BaseException:
            if not self._copying:
                revert(journal)
                tables.scalars = scalars
                self._adopt(tables)
            raise

    @property
    def tables(self) -> T:
        """The tables as of this state, for queries; never to be changed."""
        return self._own()

    def key(self) -> tuple[Any, ...]:
        """The content as one hashable value."""
        return self._own().key()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, type(self)):
            return NotImplemented
        return self is other or self.key() == other.key()

    def __hash__(self) -> int:
        return hash(self.key())
