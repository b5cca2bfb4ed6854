"""The one value that holds everything the block machine knows."""

from collections.abc import Callable
from typing import Self, TypeVar

from tenure.core.blocks.tables import Edit, Tables
from tenure.core.blocks.values import Command
from tenure.core.blocks.view import BlockView
from tenure.core.blocks.viewing import view_of
from tenure.core.config import BlockConfig
from tenure.core.journaled import JournaledState

Told = TypeVar("Told")
Result = TypeVar("Result")


class BlockState(JournaledState[Tables]):
    """One state of the block machine."""

    __slots__ = ()

    @classmethod
    def initial(cls, config: BlockConfig, *, copying: bool = False) -> Self:
        """The state in which every block is free; `copying` as in `JournaledState.over`."""
        return cls.over(Tables(config), copying=copying)

    def edited(self, event: Told, handle: Callable[[Edit, Told], Result]) -> tuple[Self, Result, tuple[Command, ...]]:
        """The state after `handle` took `event`, its result and its commands; this state itself if nothing changed.

        Whatever `handle` raises, this state is as it was (I14).
        """
        return self._edited(Edit, event, handle)

    @property
    def config(self) -> BlockConfig:
        """What the machine was built with."""
        return self._own().config

    def __repr__(self) -> str:
        tables = self._own()
        return (
            f"<BlockState: {tables.num_active} active, {len(tables.lru)} inactive, {tables.num_free} free of "
            f"{tables.capacity} blocks, {len(tables.leases)} leases>"
        )

    def view(self) -> BlockView:
        """Everything this state holds, as plain data that no later transition touches."""
        return view_of(self._own())
