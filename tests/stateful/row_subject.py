"""The core's row machine, in both representations at once, as the lock-step runner wants to see it."""

from typing import NamedTuple

from tenure.core.config import RowConfig
from tenure.core.rows.answers import RowAnswer
from tenure.core.rows.commands import RowCommand
from tenure.core.rows.events import RowEvent
from tenure.core.rows.machine import transition
from tenure.core.rows.state import RowState
from tenure.core.rows.view import RowView
from tests.pairs import told_twice


class RowPair(NamedTuple):
    """One state that copies its tables, and the same one that keeps the difference to its successors."""

    copying: RowState
    journaled: RowState


class RowSubject:
    """Tells both representations the same events; looks at the second one now and then, since it takes long."""

    def __init__(self) -> None:
        self._views = 0

    def initial(self, config: RowConfig) -> RowPair:
        """An empty core, twice."""
        return RowPair(RowState.initial(config, copying=True), RowState.initial(config))

    def transition(self, state: RowPair, event: RowEvent) -> tuple[RowPair, RowAnswer, tuple[RowCommand, ...]]:
        """The core's transition; both must agree, also in what they refuse and how."""
        copying, journaled = told_twice(transition, state.copying, state.journaled, event)
        return RowPair(copying.state, journaled.state), copying.answer, copying.commands

    def view(self, state: RowPair) -> RowView:
        """The core's view, the same in both."""
        view = state.journaled.view()
        self._views += 1
        if self._views % 4 == 0:
            assert view == state.copying.view()
        if self._views % 16 == 0:
            assert state.copying == state.journaled
            assert hash(state.copying) == hash(state.journaled)
        return view
