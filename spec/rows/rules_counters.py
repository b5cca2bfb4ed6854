"""R01, R02, R08 and R23, of counters: what happened is counted, once, where it happened."""

from tenure.core.rows.answers import Ignored
from tenure.core.rows.commands import ReleaseBuffers
from tenure.core.rows.events import (
    ConsumeAbandoned,
    GatherCompleted,
    GatherFailed,
    ReadId,
    Resumed,
    RowsCopiedOut,
    SavePublished,
    StepConsumed,
    StepDropped,
    StepStarted,
    WriteFailed,
)
from tenure.core.rows.view import ReadPhase, ReadView
from tenure.spec.rows.rule import RowObservation, arrivals, commanded
from tenure.spec.rule import Finding

ENDINGS = (GatherCompleted, GatherFailed, WriteFailed, RowsCopiedOut, ConsumeAbandoned)
"""Events by which a read ends: it fails, was dropped before, or a reset left it to its consumer."""


def steps_are_counted(seen: RowObservation) -> Finding:
    """R01."""
    return _rises(
        seen,
        steps_saved=1 if isinstance(seen.event, SavePublished) else 0,
        steps_dropped=1 if isinstance(seen.event, StepDropped) else 0,
        hit_rows=sum(len(read.slots) for read in _handed_over(seen).values()),
    )


def hits_are_counted(seen: RowObservation) -> Finding:
    """R02."""
    event = seen.event
    fresh = [read for number, read in seen.after.reads.items() if number not in seen.before.reads]
    hits = resumed = confirmed = replanned = 0
    if isinstance(event, StepStarted):
        hits = sum(1 for change in arrivals(seen.before, event) if change.hit)
        resumed = sum(1 for change in event.changes if isinstance(change, Resumed) and change.hit)
    if isinstance(event, SavePublished) and event.step in seen.before.steps and event.step in seen.after.steps:
        then, now = {*seen.before.steps[event.step].reads}, {*seen.after.steps[event.step].reads}
        confirmed = len(then & now)
        places = {(request, name) for request, name, _ in then}
        replanned = sum(1 for request, name, _ in now - then if (request, name) in places)
    return _rises(
        seen,
        hits=hits,
        resumed_with_hit=resumed,
        reads_confirmed=confirmed,
        reads_replanned=replanned,
        waits_for_in_transit=sum(1 for read in fresh if read.awaits),
    )


def dropped_reads_are_counted(seen: RowObservation) -> Finding:
    """R23."""
    handed_over = _handed_over(seen)
    dropped = 0
    for number, read in seen.before.reads.items():
        now = seen.after.reads.get(number)
        is_gone = now is None and number not in handed_over and read.phase is not ReadPhase.LEFT
        was_left = now is not None and now.phase is ReadPhase.LEFT and read.phase is ReadPhase.RUNNING
        dropped += 1 if is_gone or was_left else 0
    if isinstance(seen.event, ENDINGS) or isinstance(seen.answer, Ignored):
        dropped = 0
    return _rises(seen, reads_dropped=dropped)


def the_peak_is_counted(seen: RowObservation) -> Finding:
    """R08."""
    then, now = seen.before.counters.charged_peak, seen.after.counters.charged_peak
    expected = max(then, seen.after.charged)
    return f"the peak of charged bytes went from {then} to {now}, and is {expected}" if now != expected else None


def _handed_over(seen: RowObservation) -> dict[ReadId, ReadView]:
    """The reads that a consumer took: whatever it had not asked for is given back."""
    event = seen.event
    if not isinstance(event, StepConsumed) or event.step not in seen.before.steps:
        return {}
    released = {read for each in commanded(seen.commands, ReleaseBuffers) for read in each.reads}
    return {
        number: read
        for number, read in seen.before.reads.items()
        if number not in seen.after.reads and read.phase is ReadPhase.DONE and number not in released
    }


def _rises(seen: RowObservation, **expected: int) -> Finding:
    for name, wanted in expected.items():
        found = getattr(seen.after.counters, name) - getattr(seen.before.counters, name)
        if found != wanted:
            return f"{name} rose by {found} on {type(seen.event).__name__}, and should have by {wanted}"
    return None
