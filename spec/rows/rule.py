"""What the rules of the row machine look at, and what several of them ask of it."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Final, TypeAlias, TypeVar

from tenure.core.rows.answers import RowAnswer
from tenure.core.rows.commands import RowCommand
from tenure.core.rows.events import (
    Aborted,
    Claim,
    Finished,
    RequestId,
    RowEvent,
    SavePublished,
    Slot,
    Started,
    StepId,
    StepStarted,
    WriteId,
)
from tenure.core.rows.names import NameId, Schedule
from tenure.core.rows.view import ReadPhase, ReadView, RowView, StepPhase, StepView, WritePhase, WriteView
from tenure.spec.rule import Finding


@dataclass(frozen=True, slots=True)
class RowObservation:
    """One event that was accepted, with the whole state before and after it."""

    before: RowView
    event: RowEvent
    after: RowView
    answer: RowAnswer
    commands: tuple[RowCommand, ...]


StateCheck: TypeAlias = Callable[[RowView], Finding]
TransitionCheck: TypeAlias = Callable[[RowObservation], Finding]

OPEN: Final = (WritePhase.PENDING, WritePhase.QUEUED, WritePhase.COPYING, WritePhase.HOST_READY)
"""Phases of a write whose claims are open."""
ON_ITS_WAY: Final = (WritePhase.QUEUED, WritePhase.COPYING, WritePhase.HOST_READY)
"""Phases of a write that a device has work for."""
ON_CLONES: Final = (WritePhase.PENDING, WritePhase.QUEUED, WritePhase.COPYING)
"""Phases of a write whose rows are on device clones."""
BEFORE_SAVE: Final = (StepPhase.STARTED, StepPhase.RESERVED)
SAVED: Final = (StepPhase.SAVED, StepPhase.CONSUMING)

C = TypeVar("C", bound=RowCommand)


def commanded(commands: Iterable[RowCommand], kind: type[C]) -> list[C]:
    """The commands of one kind, in order."""
    return [command for command in commands if isinstance(command, kind)]


def writes_of_claims(view: RowView) -> dict[Claim, WriteId]:
    """Per claim the write that holds it, of the writes a view shows."""
    return {claim: number for number, write in view.writes.items() for claim, _ in write.claims}


def is_immediate(write: WriteView) -> bool:
    """Whether a write is a step's immediate one."""
    return write.schedule is Schedule.JOIN_NEXT_STEP


def ended_requests(view: RowView, event: RowEvent) -> list[RequestId]:
    """The live requests that an event ends, in order."""
    if not isinstance(event, StepStarted):
        return []
    named = [change.request for change in event.changes if isinstance(change, Finished | Aborted)]
    return [request for request in dict.fromkeys(named) if request in view.live]


def arrivals(view: RowView, event: StepStarted) -> list[Started]:
    """The requests that a start makes live, in order; ends come first, and a live one that starts only goes on."""
    live = set(view.live).difference(ended_requests(view, event))
    return [change for change in event.changes if isinstance(change, Started) and change.request not in live]


def step_reads(view: RowView, step: StepView) -> Iterator[tuple[int, ReadView]]:
    """The reads that a step lists, as far as the view has them."""
    for _, _, number in step.reads:
        if number in view.reads:
            yield number, view.reads[number]


def names_by_schedule(view: RowView, step: StepView) -> tuple[set[NameId], set[NameId]]:
    """The immediate and the deferred names that a saved step emits as rows."""
    schedules = {each.name: each.schedule for each in view.formats}
    immediate = {name for name in step.names if schedules.get(name) is Schedule.JOIN_NEXT_STEP}
    return immediate, set(step.names) - immediate


def computed_slots(seen: RowObservation) -> list[Slot]:
    """The slots that an event gave to a new tenancy: their number is the first one it used."""
    first = seen.before.next_claim
    return [slot for slot, number in enumerate(seen.after.tenancy) if number == first]


def host_rows(write: WriteView) -> Iterator[tuple[int, Claim, Slot]]:
    """Every row of a write in the order of its host copy: its place, its claim, its slot."""
    place = 0
    for claim, slots in write.claims:
        for slot in slots:
            yield place, claim, slot
            place += 1


def changed_fields(before: RowView, after: RowView) -> str:
    """The names of the fields in which two views differ."""
    names = [name for name in RowView.__dataclass_fields__ if getattr(before, name) != getattr(after, name)]
    return ", ".join(names) or "nothing"


def published(event: RowEvent) -> StepId | None:
    """The step whose save an event publishes."""
    return event.step if isinstance(event, SavePublished) else None


def is_running(read: ReadView) -> bool:
    """Whether a device may be filling a read's buffer."""
    return read.phase in (ReadPhase.RUNNING, ReadPhase.LEFT)
