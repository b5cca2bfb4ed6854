"""The one value that holds everything the block machine knows."""

from collections.abc import Callable
from typing import Any, Self, TypeVar

from tenure.core.blocks.tables import Edit, Tables
from tenure.core.blocks.values import Command
from tenure.core.blocks.view import BlockView
from tenure.core.blocks.viewing import view_of
from tenure.core.config import BlockConfig
from tenure.core.persistent import ATTRIBUTE, Journal, Version, revert

Told = TypeVar("Told")
Result = TypeVar("Result")


class BlockState(Version[Tables, Journal]):
    """One state of the block machine.

    A state stays valid and equal to what it was after any number of transitions from it. Two states are equal if
    they hold the same, and then hash alike. Reading an older state shares structure with the newest: whoever reads
    states from several threads holds one lock.
    """

    __slots__ = ("_copying",)

    _copying: bool

    @classmethod
    def initial(cls, config: BlockConfig, *, copying: bool = False) -> Self:
        """The state in which every block is free.

        A transition keeps the difference to the state before, and costs what it changes. With `copying` it copies
        the tables instead: for explorers, which keep thousands of small states and jump between them.
        """
        state = object.__new__(cls)
        state._adopt(Tables(config))
        state._copying = copying
        return state

    @staticmethod
    def _swap(store: Tables, undo: Journal) -> Journal:
        return revert(undo)

    def edited(self, event: Told, handle: Callable[[Edit, Told], Result]) -> tuple[Self, Result, tuple[Command, ...]]:
        """The state after `handle` took `event`, its result and its commands; this state itself if nothing changed.

        Whatever `handle` raises, this state is as it was (I14).
        """
        tables = self._own()
        if self._copying:
            tables = tables.clone()
        edit = Edit(tables)
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
    def config(self) -> BlockConfig:
        """What the machine was built with."""
        return self._own().config

    @property
    def tables(self) -> Tables:
        """The tables as of this state, for queries; never to be changed."""
        return self._own()

    def key(self) -> tuple[Any, ...]:
        """The content as one hashable value."""
        return self._own().key()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, BlockState):
            return NotImplemented
        return self is other or self.key() == other.key()

    def __hash__(self) -> int:
        return hash(self.key())

    def __repr__(self) -> str:
        tables = self._own()
        return (
            f"<BlockState: {tables.num_active} active, {len(tables.lru)} inactive, {tables.num_free} free of "
            f"{tables.capacity} blocks, {len(tables.leases)} leases>"
        )

    def view(self) -> BlockView:
        """Everything this state holds, as plain data that no later transition touches."""
        return view_of(self._own())
