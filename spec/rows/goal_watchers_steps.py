"""How goals about steps, failures and resets are recognised in an observation, or in the observations of a run."""

from tenure.core.rows.answers import ConsumePlan, Ignored, ResetAnswered
from tenure.core.rows.commands import CopyDeferred
from tenure.core.rows.events import (
    Aborted,
    ConsumeRequested,
    CopyCompleted,
    Finished,
    GatherBegan,
    GatherCompleted,
    RequestId,
    ResetRequested,
    SavePublished,
    ScatterCompleted,
    StepConsumed,
    StepDropped,
    StepId,
    StepStarted,
    WriteFailed,
    WriteId,
)
from tenure.core.rows.names import HIDDEN, Schedule
from tenure.core.rows.view import ReadPhase, StepPhase, WritePhase
from tenure.spec.rows.goal_watchers import Watcher, became, saved_step
from tenure.spec.rows.rule import (
    ON_ITS_WAY,
    RowObservation,
    commanded,
    ended_requests,
    writes_of_claims,
)


def hidden_by_tenancy(seen: RowObservation) -> bool:
    """Whether a row is absent because a later step computed its slot without its name."""
    step = saved_step(seen)
    if step is None:
        return False
    silent = [each.name for each in seen.after.formats if each.name not in step.names]
    first = seen.before.next_claim
    slots = [slot for slot, number in enumerate(seen.after.tenancy) if number == first]
    return any(seen.before.effective(name, slot) for name in silent for slot in slots)


def claimed_while_in_transit(seen: RowObservation) -> bool:
    """Whether a publication supersedes a row that is still on its way."""
    step = saved_step(seen)
    if step is None:
        return False
    numbers = writes_of_claims(seen.before)
    for name in step.names:
        old = seen.before.newest.get(name, ())
        for was, claim in zip(old, seen.after.newest[name], strict=False):
            write = numbers.get(was)
            if claim != was and write is not None and seen.before.writes[write].phase is not WritePhase.WRITTEN:
                return True
    return False


def saved_without_rows(seen: RowObservation) -> bool:
    """Whether a step with nothing to cache was saved."""
    step = saved_step(seen)
    return step is not None and not step.names


def saved_only_deferred_rows(seen: RowObservation) -> bool:
    """Whether a step with deferred rows alone was saved."""
    step = saved_step(seen)
    schedules = {each.name: each.schedule for each in seen.after.formats}
    return step is not None and {schedules[name] for name in step.names} == {Schedule.JOIN_ON_FINISH}


def saved_without_hidden(seen: RowObservation) -> bool:
    """Whether a step with rows, and no hidden ones, was saved."""
    step = saved_step(seen)
    return step is not None and bool(step.names) and HIDDEN not in step.names


def registered_late(seen: RowObservation) -> bool:
    """Whether a name is new after others are known."""
    return 0 < len(seen.before.formats) < len(seen.after.formats)


def ended_while_pending(kind: type[Finished | Aborted]) -> Watcher:
    """Whether a request's end, of this kind, queues its open write."""

    def watcher(seen: RowObservation) -> bool:
        if not isinstance(seen.event, StepStarted) or not commanded(seen.commands, CopyDeferred):
            return False
        ended = [change.request for change in seen.event.changes if isinstance(change, kind)]
        return any(seen.before.live.get(request) is not None for request in ended)

    return watcher


def ended_while_on_its_way(seen: RowObservation) -> bool:
    """Whether a request ends whose flushed write is not on the host yet."""
    ended = ended_requests(seen.before, seen.event)
    return any(
        write.request in ended and write.phase in (WritePhase.QUEUED, WritePhase.COPYING)
        for write in seen.before.writes.values()
    )


def ended_and_began_anew(seen: RowObservation) -> bool:
    """Whether one event ends a request and starts another of its name."""
    return any(request in seen.after.live for request in ended_requests(seen.before, seen.event))


def only_ends(seen: RowObservation) -> bool:
    """Whether a start without tokens ended requests."""
    return bool(ended_requests(seen.before, seen.event)) and seen.after.next_step == seen.before.next_step


def dropped_with_reads(seen: RowObservation) -> bool:
    """Whether a step that is given up had reads."""
    pending = seen.before.pending
    return isinstance(seen.event, StepDropped) and any(read.step == pending for read in seen.before.reads.values())


def left(seen: RowObservation) -> bool:
    """Whether a running read was dropped."""
    return bool(became(seen, ReadPhase.RUNNING, ReadPhase.LEFT))


def left_read_ends(seen: RowObservation) -> bool:
    """Whether a read that was dropped ends."""
    if not isinstance(seen.event, GatherCompleted):
        return False
    read = seen.before.reads.get(seen.event.read)
    return read is not None and read.phase is ReadPhase.LEFT


def write_failure_fails_a_read(seen: RowObservation) -> bool:
    """Whether a read fails with the write whose rows it holds."""
    failed = (phase for phase in (ReadPhase.PLANNED, ReadPhase.RUNNING) if became(seen, phase, ReadPhase.FAILED))
    return isinstance(seen.event, WriteFailed) and any(failed)


def late_gather(seen: RowObservation) -> bool:
    """Whether a gather wants to begin that nobody wants any more."""
    return isinstance(seen.event, GatherBegan) and isinstance(seen.answer, Ignored)


def reset(seen: RowObservation, *, done: bool, after_failure: bool) -> bool:
    """Whether a reset was done or refused, after a failure or not."""
    failed = seen.before.failure is not None
    return seen.answer == ResetAnswered(done=done) and failed is after_failure


def reset_fences(seen: RowObservation) -> bool:
    """Whether a reset leaves a write at a device."""
    return isinstance(seen.event, ResetRequested) and len(seen.after.fenced) > len(seen.before.fenced)


def reset_fences_a_step(seen: RowObservation) -> bool:
    """Whether a reset leaves a step to the materialize that is at it."""
    return isinstance(seen.event, ResetRequested) and len(seen.after.fenced_steps) > len(seen.before.fenced_steps)


def reset_of_a_reserved_save(seen: RowObservation) -> bool:
    """Whether a reset takes back what a save has reserved."""
    phases = [step.phase for step in seen.before.steps.values()]
    return isinstance(seen.event, ResetRequested) and StepPhase.RESERVED in phases and not seen.after.steps


def fenced_write_ends(seen: RowObservation) -> bool:
    """Whether a fenced write gives back what it held."""
    ends = isinstance(seen.event, CopyCompleted | ScatterCompleted) and isinstance(seen.answer, Ignored)
    return ends and seen.before.pages != seen.after.pages


def fenced_step_ends(seen: RowObservation) -> bool:
    """Whether a materialize returns that a reset overtook."""
    return isinstance(seen.event, StepConsumed) and isinstance(seen.answer, Ignored)


def consumed_in_part(seen: RowObservation) -> bool:
    """Whether a plan leaves out a request with a hit."""
    if not isinstance(seen.event, ConsumeRequested) or not isinstance(seen.answer, ConsumePlan):
        return False
    step = seen.before.steps[seen.event.step]
    return any(request not in seen.event.requests for request, _ in step.hits)


def consumed_around_an_unreadable_hit(seen: RowObservation) -> bool:
    """Whether a step with an unreadable hit is consumed for others."""
    if not isinstance(seen.event, ConsumeRequested) or not isinstance(seen.answer, ConsumePlan):
        return False
    return bool(seen.before.steps[seen.event.step].unreadable and seen.event.requests)


def planned_without_page(seen: RowObservation) -> bool:
    """Whether rows that an earlier try copied out are used by another."""
    return isinstance(seen.answer, ConsumePlan) and seen.answer.page is None


def consumed_out_of_order(seen: RowObservation) -> bool:
    """Whether a later step is consumed before an earlier one."""
    if not isinstance(seen.event, StepConsumed):
        return False
    saved = (StepPhase.SAVED, StepPhase.CONSUMING)
    return any(number < seen.event.step and step.phase in saved for number, step in seen.after.steps.items())


def has_occupancy_lost(seen: RowObservation) -> bool:
    """Whether rows are lost."""
    return any(write.phase is WritePhase.FAILED and write.claims for write in seen.after.writes.values())


# --- What a run shows -----------------------------------------------------------------------------------------------


class PageReused:
    """A page is taken a second time."""

    def __init__(self) -> None:
        self._used: set[int] = set()

    def __call__(self, seen: RowObservation) -> bool:
        """Whether it happened now."""
        held = {page for page, holders in enumerate(seen.after.pages) if holders}
        fresh = held - {page for page, holders in enumerate(seen.before.pages) if holders}
        reused = bool(fresh & self._used)
        self._used |= held
        return reused


class LiveAgainWhileMoving:
    """A request id is used again while a write of its earlier bearer is on its way."""

    def __init__(self) -> None:
        self._ended: dict[WriteId, RequestId] = {}

    def __call__(self, seen: RowObservation) -> bool:
        """Whether it happened now."""
        for number, write in seen.after.writes.items():
            if write.ended and write.request is not None:
                self._ended[number] = write.request
        moving = {
            request
            for number, request in self._ended.items()
            if number in seen.after.writes and seen.after.writes[number].phase in ON_ITS_WAY
        }
        return not moving.isdisjoint(seen.after.live)


class PlannedLateBySeveral:
    """A read begins after several later steps were saved."""

    def __init__(self) -> None:
        self._saved: list[StepId] = []

    def __call__(self, seen: RowObservation) -> bool:
        """Whether it happened now."""
        if isinstance(seen.event, SavePublished):
            self._saved.append(seen.event.step)
        read = seen.before.reads.get(seen.event.read) if isinstance(seen.event, GatherBegan) else None
        return read is not None and sum(step > read.step for step in self._saved) > 1
