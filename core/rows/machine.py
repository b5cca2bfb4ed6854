"""The row machine: one transition for every event.

R17: nothing here depends on the order of a set, on a clock or on chance, so the same events give the same commands,
bit for bit. R19: nothing here waits, locks, copies a row or allocates one.

`transition` is the whole machine. It is pure: it takes a state and an event, and gives the next state, the answer,
and the commands that somebody else must carry out, in order. A raise changes nothing. A call that must wait is
answered with what it waits for, and told again as it was.
"""

from typing import NamedTuple, assert_never

from tenure.core.rows.answers import RowAnswer
from tenure.core.rows.commands import RowCommand
from tenure.core.rows.consuming import (
    on_consume_abandoned,
    on_consume_requested,
    on_rows_copied_out,
    on_step_consumed,
    on_step_discarded,
)
from tenure.core.rows.edit import Edit
from tenure.core.rows.events import (
    ConsumeAbandoned,
    ConsumeRequested,
    CopyBegan,
    CopyCompleted,
    GatherBegan,
    GatherCompleted,
    GatherFailed,
    PolicyRegistered,
    ResetRequested,
    RowEvent,
    RowsCopiedOut,
    SaveCancelled,
    SavePublished,
    SaveRequested,
    ScatterCompleted,
    ShutdownRequested,
    StepConsumed,
    StepDiscarded,
    StepDropped,
    StepStarted,
    WaitTimedOut,
    WriteFailed,
)
from tenure.core.rows.reads import on_gather_began, on_gather_completed, on_gather_failed
from tenure.core.rows.resets import (
    on_policy_registered,
    on_reset_requested,
    on_shutdown_requested,
    on_wait_timed_out,
)
from tenure.core.rows.saves import on_save_cancelled, on_save_published, on_save_requested, on_step_dropped
from tenure.core.rows.starts import on_step_started
from tenure.core.rows.state import RowState
from tenure.core.rows.writes import on_copy_began, on_copy_completed, on_scatter_completed, on_write_failed


class Transition(NamedTuple):
    """What an event led to: the next state, the answer to the caller, and commands for others, in order."""

    state: RowState
    answer: RowAnswer
    commands: tuple[RowCommand, ...]


def transition(state: RowState, event: RowEvent) -> Transition:
    """Take one event.

    Raises:
        ContractError: the engine told what is not legal in this state; each handler's docstring names the classes.
        CapacityError: a configured limit is reached.
        BackendError: a write failed before, or a backend told what is not legal.
    """
    return Transition(*state.edited(event, _handle))


def _handle(edit: Edit, event: RowEvent) -> RowAnswer:
    answer = _dispatch(edit, event)
    edit.close()
    return answer


def _dispatch(edit: Edit, event: RowEvent) -> RowAnswer:  # noqa: C901 - one line an event is the simplest form of it
    match event:
        case StepStarted():
            return on_step_started(edit, event)
        case SaveRequested():
            return on_save_requested(edit, event)
        case SavePublished():
            return on_save_published(edit, event)
        case CopyBegan():
            return on_copy_began(edit, event)
        case CopyCompleted():
            return on_copy_completed(edit, event)
        case ScatterCompleted():
            return on_scatter_completed(edit, event)
        case ConsumeRequested():
            return on_consume_requested(edit, event)
        case RowsCopiedOut():
            return on_rows_copied_out(edit, event)
        case StepConsumed():
            return on_step_consumed(edit, event)
        case GatherBegan():
            return on_gather_began(edit, event)
        case GatherCompleted():
            return on_gather_completed(edit, event)
        case GatherFailed():
            return on_gather_failed(edit, event)
        case StepDiscarded():
            return on_step_discarded(edit, event)
        case ConsumeAbandoned():
            return on_consume_abandoned(edit, event)
        case SaveCancelled():
            return on_save_cancelled(edit, event)
        case StepDropped():
            return on_step_dropped(edit, event)
        case WriteFailed():
            return on_write_failed(edit, event)
        case WaitTimedOut():
            return on_wait_timed_out(edit, event)
        case PolicyRegistered():
            return on_policy_registered(edit, event)
        case ResetRequested():
            return on_reset_requested(edit, event)
        case ShutdownRequested():
            return on_shutdown_requested(edit, event)
        case _:
            assert_never(event)
