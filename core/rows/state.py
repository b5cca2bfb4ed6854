"""The one value that holds everything the row machine knows."""

from collections.abc import Callable
from typing import Self, TypeVar

from tenure.core.config import RowConfig
from tenure.core.journaled import JournaledState
from tenure.core.rows.commands import RowCommand
from tenure.core.rows.edit import Edit
from tenure.core.rows.tables import Tables
from tenure.core.rows.view import RowView
from tenure.core.rows.viewing import view_of

Told = TypeVar("Told")
Result = TypeVar("Result")


class RowState(JournaledState[Tables]):
    """One state of the row machine."""

    __slots__ = ()

    @classmethod
    def initial(cls, config: RowConfig, *, copying: bool = False) -> Self:
        """The state in which no name is known and every row is absent; `copying` as in `JournaledState.over`."""
        return cls.over(Tables(config), copying=copying)

    def edited(
        self, event: Told, handle: Callable[[Edit, Told], Result]
    ) -> tuple[Self, Result, tuple[RowCommand, ...]]:
        """The state after `handle` took `event`, its result and its commands; this state itself if nothing changed.

        Whatever `handle` raises, this state is as it was.
        """
        return self._edited(Edit, event, handle)

    @property
    def config(self) -> RowConfig:
        """What the machine was built with."""
        return self._own().config

    def __repr__(self) -> str:
        tables = self._own()
        return (
            f"<RowState: {len(tables.formats)} names, {len(tables.live)} live requests, {len(tables.steps)} steps, "
            f"{len(tables.writes)} open writes, {len(tables.reads)} reads, {tables.charged} bytes charged>"
        )

    def view(self) -> RowView:
        """Everything this state holds, as plain data that no later transition touches."""
        return view_of(self._own())
