"""R12, R15 and R24: what a failed write stops, and what a reset forgets and still waits for."""

from typing import Final

from tenure.core.rows.answers import Ignored, ResetAnswered
from tenure.core.rows.events import (
    ConsumeAbandoned,
    ConsumeRequested,
    CopyBegan,
    CopyCompleted,
    PolicyRegistered,
    ResetRequested,
    RowEvent,
    RowsCopiedOut,
    SavePublished,
    SaveRequested,
    ScatterCompleted,
    ShutdownRequested,
    StepConsumed,
    StepDropped,
    StepStarted,
    WriteFailed,
)
from tenure.core.rows.view import FencedWrite, ReadPhase, RowView, StepPhase, WritePhase
from tenure.spec.rows.rule import ON_CLONES, ON_ITS_WAY, RowObservation, changed_fields
from tenure.spec.rule import Finding

STOPPED_BY_FAILURE: Final = (StepStarted, SaveRequested, SavePublished, ConsumeRequested)
STOPPED_BY_SHUTDOWN: Final = (
    StepStarted,
    SaveRequested,
    SavePublished,
    StepDropped,
    ConsumeRequested,
    PolicyRegistered,
)
KEPT_BY_A_RESET: Final = (
    "config",
    "policy",
    "formats",
    "classes",
    "newest",
    "tenancy",
    "next_claim",
    "next_step",
    "next_write",
    "next_read",
    "next_clone",
    "shut_down",
)
ENDS: Final[dict[type[RowEvent], WritePhase]] = {
    CopyBegan: WritePhase.QUEUED,
    CopyCompleted: WritePhase.COPYING,
    ScatterCompleted: WritePhase.HOST_READY,
}
"""Which phase of a write each completion ends."""


# --- Failures -----------------------------------------------------------------------------------------------------


def failure_names_a_failed_write(view: RowView) -> Finding:
    """R12, of a state."""
    failed = sorted(number for number, write in view.writes.items() if write.phase is WritePhase.FAILED)
    if (view.failure is None) != (not failed) or (view.failure is not None and view.failure not in failed):
        return f"{view.failure} is the failure, and the writes {failed} failed"
    return None


def failure_stops_the_cache(seen: RowObservation) -> Finding:
    """R12, of a transition: the first failed write stays the failure until a reset, and nothing is served meanwhile."""
    then, now, event = seen.before, seen.after, seen.event
    if then.failure is not None and isinstance(event, STOPPED_BY_FAILURE):
        return f"{event} was taken although write {then.failure} failed"
    if isinstance(event, ResetRequested) and seen.answer == ResetAnswered(done=True):
        return f"write {now.failure} is the failure after a reset" if now.failure is not None else None
    expected = then.failure
    if expected is None and isinstance(event, WriteFailed) and event.write in then.writes:
        expected = event.write
    if now.failure != expected:
        return f"{now.failure} is the failure after {event}, and should be {expected}"
    return None


def shutdown_is_final(seen: RowObservation) -> Finding:
    """R15, of a machine that is shut down: it takes completions, and nothing that would serve or compute rows."""
    if seen.before.shut_down and isinstance(seen.event, STOPPED_BY_SHUTDOWN):
        return f"{seen.event} was taken after shutdown"
    expected = seen.before.shut_down or isinstance(seen.event, ShutdownRequested)
    if seen.after.shut_down != expected:
        return f"shut down is {seen.after.shut_down} after {seen.event}, and should be {expected}"
    return None


# --- Resets -------------------------------------------------------------------------------------------------------


def fenced_writes_are_at_a_device(view: RowView) -> Finding:
    """R24, of a state: what a reset left is on its way, is forgotten elsewhere, and holds what its copy uses."""
    for number, write in view.fenced.items():
        if number in view.writes or number >= view.next_write:
            return f"write {number} is fenced, and is {view.writes.get(number)}"
        if write.phase not in ON_ITS_WAY:
            held = any(number in read.writes for read in view.reads.values())
            if not _has_ended(write) or not held:
                return f"write {number} is fenced as {write}, and held by a read: {held}"
        if write.phase is WritePhase.HOST_READY and write.clones:
            return f"write {number} is fenced and on the host, and holds clones {write.clones}"
    for step, page in view.fenced_steps.items():
        if step in view.steps or step >= view.next_step:
            return f"step {step} with page {page} is fenced, and is {view.steps.get(step)}"
    return None


def resets_fence_what_runs(seen: RowObservation) -> Finding:
    """R24, of a reset: refused while it would forget something, and otherwise nothing is given back too early."""
    then, now = seen.before, seen.after
    if not isinstance(seen.event, ResetRequested):
        return f"floor went from {then.floor} to {now.floor} by {seen.event}" if then.floor != now.floor else None
    busy = bool(then.live or then.steps) and then.failure is None
    if seen.answer != ResetAnswered(done=not busy):
        return f"{seen.answer} answers a reset with {sorted(map(repr, then.live))} live and steps {sorted(then.steps)}"
    if busy:
        return f"{changed_fields(then, now)} changed by a refused reset" if then != now else None
    changed = [name for name in KEPT_BY_A_RESET if getattr(then, name) != getattr(now, name)]
    if changed:
        return f"{', '.join(changed)} changed by a reset"
    forgotten = (now.live, now.steps, now.identities, now.pending, now.failure)
    if any(forgotten[:3]) or forgotten[3:] != (None, None) or now.floor != then.next_claim:
        return f"{forgotten} are left by a reset, and the floor is {now.floor} below claim {then.next_claim}"
    return _fences(then, now) or _what_is_forgotten(then, now)


def _fences(then: RowView, now: RowView) -> Finding:
    moving = {number: write for number, write in then.writes.items() if write.phase in ON_ITS_WAY}
    # What a read still takes rows of is kept for that alone.
    held = {each for read in now.reads.values() for each in read.writes if each in then.writes}
    wanted = {*then.fenced, *moving}
    if not wanted <= now.fenced.keys() <= wanted | held:
        return f"writes {sorted(now.fenced)} are fenced, and {sorted(wanted)} were on their way"
    for number, fence in now.fenced.items():
        if number in then.fenced:
            if fence != then.fenced[number]:
                return f"fenced write {number} went from {then.fenced[number]} to {fence}"
            continue
        if number not in moving:
            if not _has_ended(fence):
                return f"write {number} was {then.writes[number].phase.value}, and is fenced as {fence}"
            continue
        write = moving[number]
        if (fence.phase, fence.page) != (write.phase, write.page):
            return f"write {number} was {write}, and is fenced as {fence}"
        if write.claims and bool(fence.clones) != (write.phase in ON_CLONES):
            return f"write {number} was {write.phase.value}, and its fence holds clones {fence.clones}"
    consuming = {number: step.page for number, step in then.steps.items() if step.phase is StepPhase.CONSUMING}
    if dict(now.fenced_steps) != {**then.fenced_steps, **consuming}:
        return f"steps {dict(now.fenced_steps)} are fenced, and {consuming} were being consumed"
    return None


def _what_is_forgotten(then: RowView, now: RowView) -> Finding:
    for number, read in then.reads.items():
        new = now.reads.get(number)
        kept = {ReadPhase.RUNNING: ReadPhase.LEFT, ReadPhase.LEFT: ReadPhase.LEFT}.get(read.phase)
        if read.phase is ReadPhase.DONE and read.step in now.fenced_steps:
            kept = ReadPhase.DONE
        if (new and new.phase) != kept:
            return f"read {number} was {read.phase.value}, and is {new} after a reset"
    for number, write in now.writes.items():
        held = any(number in read.writes for read in now.reads.values())
        if write.phase is not WritePhase.WRITTEN or not held:
            return f"write {number} is {write.phase.value} after a reset, and should be forgotten"
    return None


def _has_ended(write: FencedWrite | None) -> bool:
    """Whether a fenced write is over: gone, or kept for its host rows alone, which a read still takes."""
    if write is None:
        return True
    return write.phase in (WritePhase.WRITTEN, WritePhase.FAILED) and write.page is None and not write.clones


def late_completions_only_give_back(seen: RowObservation) -> Finding:
    """R24, of what comes after a reset: fenced writes and steps end, and change nothing else."""
    then, now, event = seen.before, seen.after, seen.event
    if isinstance(event, ResetRequested):
        return None
    named = event.write if isinstance(event, CopyBegan | CopyCompleted | ScatterCompleted | WriteFailed) else None
    for number in then.fenced.keys() | now.fenced.keys():
        old, new = then.fenced.get(number), now.fenced.get(number)
        if old is None:
            return f"write {number} is fenced as {new} by {event}"
        if number == named:
            found = _late(seen, old, new)
        elif old != new and not (_has_ended(old) and new is None):
            found = f"fenced write {number} went from {old} to {new} on {event}"
        else:
            found = None
        if found:
            return found
    return _late_steps(seen)


def _late(seen: RowObservation, old: FencedWrite, new: FencedWrite | None) -> Finding:
    event = seen.event
    if not isinstance(event, WriteFailed) and old.phase is not ENDS.get(type(event)):
        return f"{event} was taken, and the fenced write is {old}"
    if isinstance(event, CopyBegan):
        fits = new == FencedWrite(phase=WritePhase.COPYING, page=old.page, clones=old.clones) and not seen.commands
    else:
        fits = _has_ended(new)
    if not fits:
        return f"a fenced write went from {old} to {new} on {event}"
    return None if isinstance(seen.answer, Ignored) else f"{seen.answer} answers {event}, which came too late"


def _late_steps(seen: RowObservation) -> Finding:
    then, now, event = seen.before.fenced_steps, seen.after.fenced_steps, seen.event
    steps = dict(then)
    match event:
        case RowsCopiedOut(number) if number in steps:
            steps[number] = None
            if number not in now:
                del steps[number]
        case StepConsumed(number) | ConsumeAbandoned(number) if number in steps:
            del steps[number]
        case _:
            pass
    if dict(now) != steps:
        return f"steps {dict(now)} are fenced after {event}, and should be {steps}"
    if steps != dict(then) and not isinstance(seen.answer, Ignored):
        return f"{seen.answer} answers {event}, which came too late"
    return None
