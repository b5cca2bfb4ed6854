"""R07 and R11: what a call may wait for, what a wait in vain says, and that every work is given to a device once."""

import re

from tenure.core.errors import BudgetExhaustedError, PageExhaustedError, TenureError, WaitTimeoutError
from tenure.core.rows.answers import Waiting
from tenure.core.rows.commands import ScheduleGather
from tenure.core.rows.events import (
    ConsumeRequested,
    ReadId,
    SaveRequested,
    WaitedFor,
    WaitTimedOut,
)
from tenure.core.rows.view import ReadPhase, RowView, WritePhase
from tenure.spec.rows.rule import ON_ITS_WAY, SAVED, RowObservation, commanded, is_immediate
from tenure.spec.rule import Finding

ON_THE_WAY_TO_THE_HOST = (WritePhase.QUEUED, WritePhase.COPYING)


# --- Waits --------------------------------------------------------------------------------------------------------


def waits_name_what_can_come_true(seen: RowObservation) -> Finding:
    """R11: a wait is for something that is open, and that a device or a consumer will bring without the waiter."""
    if not isinstance(seen.answer, Waiting):
        return None
    wanted, now = seen.answer.waited_for, seen.after
    if wanted == WaitedFor():
        return f"{seen.event} waits for nothing"
    if wanted.page and not all(now.pages):
        return f"a page is waited for, and {[page for page, held in enumerate(now.pages) if not held]} are free"
    if wanted.clone is not None and (not now.clones or wanted.clone != min(now.clones)):
        return f"clone {wanted.clone} is waited for, and {sorted(now.clones)} are charged"
    match seen.event:
        case SaveRequested():
            return _all_open(now, wanted) or _save_waits(now, wanted)
        case ConsumeRequested(step):
            return _all_open(now, wanted) or _consume_waits(now, wanted, step)
        case _:
            return f"{seen.event} waits for {wanted}"


def _all_open(now: RowView, wanted: WaitedFor) -> Finding:
    for number in wanted.written:
        write = now.writes.get(number)
        if write is None or write.phase not in ON_ITS_WAY:
            return f"write {number} is waited for to be in the pool, and is {write}"
    for number in wanted.host_ready:
        write = now.writes.get(number)
        if write is None or write.phase not in ON_THE_WAY_TO_THE_HOST:
            return f"write {number} is waited for to be on the host, and is {write}"
    for number in wanted.reads:
        read = now.reads.get(number)
        if read is None or read.phase not in (ReadPhase.PLANNED, ReadPhase.RUNNING):
            return f"read {number} is waited for, and is {read}"
    return None


def _save_waits(view: RowView, wanted: WaitedFor) -> Finding:
    """A save waits in stages: for the rows of the step before, then for clones, then for a page."""
    written = sorted(
        number for number, write in view.writes.items() if is_immediate(write) and write.phase in ON_ITS_WAY
    )
    host_ready = sorted(
        number
        for number, write in view.writes.items()
        if not is_immediate(write) and write.ended and write.phase in ON_THE_WAY_TO_THE_HOST
    )
    first = WaitedFor(written=tuple(written), host_ready=tuple(host_ready))
    found = wanted._replace(written=tuple(sorted(wanted.written)), host_ready=tuple(sorted(wanted.host_ready)))
    if first != WaitedFor():
        return None if found == first else f"a save waits for {wanted}, and should for {first}"
    if found not in (WaitedFor(page=True), WaitedFor(clone=wanted.clone)):
        return f"a save waits for {wanted} at once, with no write to wait for"
    return None


def _consume_waits(view: RowView, wanted: WaitedFor, step: int) -> Finding:
    saved = view.steps.get(step)
    if wanted.written or wanted.clone is not None or wanted.page or saved is None:
        return f"a consumer of step {step} waits for {wanted}"
    if not {*wanted.host_ready} <= {saved.write}:
        return f"a consumer of step {step} waits for write {wanted.host_ready}, and its write is {saved.write}"
    if not {*wanted.reads} <= {number for _, _, number in saved.reads}:
        return f"a consumer of step {step} waits for reads {wanted.reads}, and its reads are {saved.reads}"
    return None


def saves_wait_before_they_take(seen: RowObservation) -> Finding:
    """R11, of a save that was reserved: nothing was open that it has to wait for."""
    if not isinstance(seen.event, SaveRequested) or isinstance(seen.answer, Waiting):
        return None
    for number, write in seen.before.writes.items():
        if is_immediate(write) and write.phase in ON_ITS_WAY:
            return f"a save was reserved while immediate write {number} is {write.phase.value}"
        if not is_immediate(write) and write.ended and write.phase in ON_THE_WAY_TO_THE_HOST:
            return f"a save was reserved while write {number} of an ended request is {write.phase.value}"
    return None


# --- Work ---------------------------------------------------------------------------------------------------------


def ready_reads_are_scheduled_once(seen: RowObservation) -> Finding:
    """R11: a read is scheduled when nothing is left that it awaits, once, and needs nothing from its consumer."""
    wanted: list[ReadId] = []
    for number, read in seen.after.reads.items():
        old = seen.before.reads.get(number)
        fresh = old is None or (old.phase is ReadPhase.PLANNED and bool(old.awaits))
        if fresh and read.phase is ReadPhase.PLANNED and not read.awaits:
            wanted.append(number)
    found = sorted(command.read for command in commanded(seen.commands, ScheduleGather))
    if found != sorted(wanted):
        return f"reads {found} were scheduled by {type(seen.event).__name__}, and {sorted(wanted)} became ready"
    return None


# --- Waits in vain ------------------------------------------------------------------------------------------------


def broken_timeout(view: RowView, event: WaitTimedOut, error: TenureError) -> Finding:
    """R07: a wait in vain is refused with an error that says what is not consumed, what is open, what was wanted."""
    wanted = event.waited_for
    expected = WaitTimeoutError
    if wanted.page:
        expected = PageExhaustedError
    elif wanted.clone is not None:
        expected = BudgetExhaustedError
    if type(error) is not expected:
        return f"{type(error).__name__} is raised by {event}, and should be {expected.__name__}"
    unconsumed = {number for number, step in view.steps.items() if step.phase in SAVED}
    named = list(error.unconsumed)
    if not unconsumed <= set(named) <= view.steps.keys() | view.fenced_steps.keys() or sorted(set(named)) != named:
        return f"steps {named} are said to be unconsumed, and {sorted(unconsumed)} are"
    moving = {number for number, write in view.writes.items() if write.phase in ON_ITS_WAY}
    named = list(error.open_writes)
    if not moving <= set(named) <= view.writes.keys() | view.fenced.keys() or sorted(set(named)) != named:
        return f"writes {named} are said to be open, and {sorted(moving)} are on their way"
    return _names_what_was_wanted(wanted, error)


def _names_what_was_wanted(wanted: WaitedFor, error: WaitTimeoutError) -> Finding:
    numbers = {*wanted.written, *wanted.host_ready, *wanted.reads}
    if wanted.clone is not None:
        numbers.add(wanted.clone)
    told = {int(each) for each in re.findall(r"\d+", error.waited_for)}
    if not numbers <= told or not error.waited_for:
        return f"{error.waited_for!r} is said to be waited for, and was {wanted}"
    if wanted.page and "page" not in error.waited_for:
        return f"{error.waited_for!r} is said to be waited for, and was a page"
    return None
