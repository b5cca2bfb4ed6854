"""Events that nobody who keeps to the contract tells: answers out of order, ends of calls that were never made."""

from typing import Final, TypeAlias

from tenure.core.errors import (
    ReadOrderError,
    SaveNotReservedError,
    StepNotBeingConsumedError,
    TenureError,
    WriteOrderError,
)
from tenure.core.rows.events import (
    ConsumeAbandoned,
    CopyBegan,
    CopyCompleted,
    GatherBegan,
    GatherCompleted,
    GatherFailed,
    RowEvent,
    RowsCopiedOut,
    SaveCancelled,
    ScatterCompleted,
    StepConsumed,
    WriteFailed,
)
from tenure.core.rows.view import ReadPhase, RowView, StepPhase, WritePhase
from tenure.spec.choices import Choices

Stray: TypeAlias = tuple[RowEvent, TenureError | None]
"""An event, and the error that it must raise; None if it must be ignored."""

WriteAnswer: TypeAlias = type[CopyBegan] | type[CopyCompleted] | type[ScatterCompleted] | type[WriteFailed]
BuilderEvent: TypeAlias = type[RowsCopiedOut] | type[StepConsumed] | type[ConsumeAbandoned]

BUILDER_EVENTS: Final[tuple[BuilderEvent, ...]] = (RowsCopiedOut, StepConsumed, ConsumeAbandoned)
FITTING: Final[dict[WriteAnswer, tuple[WritePhase, ...]]] = {
    CopyBegan: (WritePhase.QUEUED,),
    CopyCompleted: (WritePhase.COPYING,),
    ScatterCompleted: (WritePhase.HOST_READY,),
    WriteFailed: (WritePhase.PENDING, WritePhase.QUEUED, WritePhase.COPYING, WritePhase.HOST_READY),
}
"""Per answer the phases in which a write can have it (R09)."""


def some_stray(view: RowView, choices: Choices) -> Stray | None:
    """An event that does not fit; None if the one that was picked does."""
    return choices.pick([_of_writes, _of_reads, _of_builders, _of_saves])(view, choices)


def _of_writes(view: RowView, choices: Choices) -> Stray | None:
    number = choices.pick([*view.writes, *view.fenced, view.next_write, 1, 0])
    event = choices.pick(list(FITTING))
    phase: WritePhase | None = None
    if number in view.writes:
        phase = view.writes[number].phase
    elif number in view.fenced:
        phase = view.fenced[number].phase
    return None if phase in FITTING[event] else (event(number), WriteOrderError(number, "", ""))


def _of_reads(view: RowView, choices: Choices) -> Stray | None:
    number = choices.pick([*view.reads, view.next_read, 1, 0])
    read = view.reads.get(number)
    phase = None if read is None else read.phase
    is_gone = read is None and 0 < number < view.next_read
    error = ReadOrderError(number, "", "")
    kind = choices.pick([GatherBegan, GatherCompleted, GatherFailed])
    if kind is GatherBegan:
        if read is not None and phase is ReadPhase.PLANNED and not read.awaits:
            return None
        is_late = is_gone or phase in (ReadPhase.LEFT, ReadPhase.FAILED)
        return GatherBegan(number), None if is_late else error
    if kind is GatherCompleted:
        return None if phase in (ReadPhase.RUNNING, ReadPhase.LEFT) else (GatherCompleted(number), error)
    if phase in (ReadPhase.PLANNED, ReadPhase.RUNNING, ReadPhase.LEFT, ReadPhase.FAILED):
        return None
    return GatherFailed(number), None if is_gone else error


def _of_builders(view: RowView, choices: Choices) -> Stray | None:
    number = choices.pick([*view.steps, view.next_step, 0, 1])
    is_consumed_now = number in view.steps and view.steps[number].phase is StepPhase.CONSUMING
    if is_consumed_now or number in view.fenced_steps:
        return None
    event = choices.pick(BUILDER_EVENTS)
    return event(number), StepNotBeingConsumedError(number)


def _of_saves(view: RowView, choices: Choices) -> Stray | None:
    number = choices.pick([*view.steps, view.next_step, 0])
    if number in view.steps and view.steps[number].phase is StepPhase.RESERVED:
        return None
    return SaveCancelled(number), SaveNotReservedError(number)
