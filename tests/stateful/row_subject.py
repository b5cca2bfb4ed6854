"""The core's row machine, in both representations at once, as the lock-step runner wants to see it."""

from typing import NamedTuple

import pytest

from tenure.core.config import RowConfig
from tenure.core.errors import TenureError
from tenure.core.rows.answers import RowAnswer
from tenure.core.rows.commands import RowCommand
from tenure.core.rows.events import RowEvent
from tenure.core.rows.machine import transition
from tenure.core.rows.state import RowState
from tenure.core.rows.view import RowView


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
        try:
            copying = transition(state.copying, event)
        except TenureError as refusal:
            self._also_refused(state, event, refusal)
            raise
        journaled = transition(state.journaled, event)
        assert copying[1:] == journaled[1:]
        return RowPair(copying.state, journaled.state), copying.answer, copying.commands

    def _also_refused(self, state: RowPair, event: RowEvent, refusal: TenureError) -> None:
        with pytest.raises(type(refusal)) as other:
            transition(state.journaled, event)
        assert str(refusal) == str(other.value)

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
