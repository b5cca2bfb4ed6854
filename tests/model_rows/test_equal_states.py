"""Two states that are equal go on alike, however their tables came to be.

The search keeps one of them, whichever it comes to first: were their ends not equal, what it finds would depend on the
order in which it looks, and on how many processes do.
"""

from collections.abc import Callable
from typing import Any

import pytest

from tenure.core.config import RowConfig
from tenure.core.errors import TenureError
from tenure.core.rows.events import RowEvent
from tenure.core.rows.machine import transition
from tenure.core.rows.state import RowState
from tenure.model_checks.explorer.limits import Limits
from tenure.model_checks.explorer.search import explore
from tenure.model_checks.rows.cores import Core, Cores, CoreStep, renumbered
from tenure.model_checks.rows.histories_overtaken import OVERTAKEN
from tenure.model_checks.rows.plans import POLICY
from tenure.model_checks.rows.scopes import HISTORIES
from tenure.model_checks.rows.scripts import History

TWINS_MAX = 3
"""So many further states of one content are told what it is told."""


class Twins(Cores):
    """Tells events also to states that are equal to one that is kept, and made otherwise."""

    def __init__(self, config: RowConfig) -> None:
        self.twins: dict[int, list[RowState]] = {}
        self.compared = 0
        super().__init__(config, POLICY)

    def _interned(self, key: Any, make: Callable[[bytes], Core]) -> int:
        number = super()._interned(key, make)
        kept, twin = self.all[number], make(b"")
        others = self.twins.setdefault(number, [])
        if twin.state is not kept.state and layout(twin.state) != layout(kept.state) and len(others) < TWINS_MAX:
            others.append(twin.state)
        return number

    def _made(self, core: int, event: RowEvent) -> CoreStep:
        for twin in self.twins[core]:
            assert said(twin, event) == said(self.all[core].state, event)
            self.compared += 1
        return super()._made(core, event)


def layout(state: RowState) -> object:
    """What of the tables is no content: rows that nobody asks for any more, and where the others stand."""
    tables = state.tables
    return tuple(tables.chunks[0:].tobytes()), tuple(tables.clones[0:].tobytes()), tables.chunk_slots[0:].tobytes()


def said(state: RowState, event: RowEvent) -> object:
    """The answer, the commands, and the state that follows, its commands numbered as the search does."""
    try:
        after = transition(state, event)
    except TenureError as error:
        return type(error), str(error)
    next_state, numbers = (None, {}) if after.state is state else renumbered(after.state)
    return after.answer, after.commands, next_state and next_state.key(), numbers


def compared(history: History, states: int) -> int:
    """How often an event was told to an equal state too."""
    cores = Twins(history.config)
    explore(history._replace(more={**history.more, "cores": cores}).model(), limits=Limits(states=states))
    return cores.compared


def test_r17_equal_states_of_other_tables_go_on_alike() -> None:
    """A write that is closed forgets where its slots stood; chunks that may be forgotten tell no states apart."""
    assert compared(OVERTAKEN["fails-twice-under-a-hit"], 6000) > 100
    assert compared(OVERTAKEN["chunks-put-together"], 6000) > 100


@pytest.mark.slow
@pytest.mark.parametrize("name", HISTORIES)
def test_r17_equal_states_of_every_history_go_on_alike(name: str) -> None:
    """Few histories have such states; none may differ."""
    compared(HISTORIES[name], 40_000)
