"""Whatever interrupts a transition, wherever: the state is as it was."""

import pytest

from tenure.core.blocks.machine import transition
from tenure.core.blocks.sequence import new_sequence
from tenure.core.blocks.state import BlockState
from tenure.core.blocks.values import (
    AllocationRequested,
    DecodeReservationRequested,
    DestinationActivated,
    DestinationCancelled,
    DestinationRequested,
    Event,
    GrowthScheduled,
    LeaseFinished,
    LeaseOpened,
    StepComputed,
    TokenGenerated,
    TokensComputed,
)
from tenure.core.config import BlockConfig
from tests.interrupts import interrupted_at


def prepared() -> BlockState:
    """A full pool of journaled states: two inactive blocks, leases at several stages, a destination."""
    state = BlockState.initial(BlockConfig(capacity=5, block_size=4, kv_events=True, trace=True))
    history: list[Event] = [
        LeaseOpened(new_sequence("old", range(8), 4, 4)),
        AllocationRequested("old", 8),
        TokensComputed("old", 0, 8),
        LeaseFinished("old"),
        LeaseOpened(new_sequence("a", [5, 6, 7, 8], 4, 4)),
        AllocationRequested("a", 4),
        LeaseOpened(new_sequence("b", [5, 6, 7], 9, 4)),
        AllocationRequested("b", 3),
        TokenGenerated("b"),
        LeaseOpened(new_sequence("c", [1] * 8, 9, 4)),
        LeaseOpened(new_sequence("d", range(9), 4, 4)),
        LeaseOpened(new_sequence("e", range(4), 4, 4)),
        DestinationRequested("e"),
    ]
    for event in history:
        state = transition(state, event).state
    return state


@pytest.mark.parametrize(
    "event",
    [
        AllocationRequested("c", 8),
        AllocationRequested("d", 9, 2),
        StepComputed(("b",)),
        GrowthScheduled(("b", "c")),
        LeaseFinished("a"),
        TokensComputed("a", 0, 4),
        TokenGenerated("b"),
        DecodeReservationRequested(2),
        DestinationActivated("e", 1),
        DestinationCancelled(1),
    ],
    ids=lambda event: type(event).__name__,
)
def test_i14_a_transition_interrupted_at_any_line_changes_nothing(event: Event) -> None:
    """Ctrl-C comes between two lines, and a production core must survive it."""
    line = 0
    while True:
        line += 1
        state = prepared()
        before, key = state.view(), state.key()
        if not interrupted_at(line, lambda state=state: transition(state, event)):  # type: ignore[misc]
            break
        assert before == state.view(), f"line {line}"
        assert key == state.key(), f"line {line}"
        assert transition(state, event) == transition(prepared(), event)

    assert line > 10
