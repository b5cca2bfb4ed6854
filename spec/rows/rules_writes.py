"""R05, R09, R10 and R16: how a write begins, moves along its chain, takes chunks and lands."""

from typing import Final

from tenure.core.rows.answers import StepSaved, Waiting
from tenure.core.rows.commands import CopyDeferred, ScatterRows
from tenure.core.rows.events import (
    CopyBegan,
    CopyCompleted,
    RequestId,
    ResetRequested,
    RowEvent,
    SavePublished,
    SaveRequested,
    ScatterCompleted,
    Started,
    StepStarted,
    WriteFailed,
    WriteId,
)
from tenure.core.rows.names import NameId, Schedule
from tenure.core.rows.view import RowView, StepView, WritePhase, WriteView
from tenure.spec.rows.rule import (
    ON_CLONES,
    OPEN,
    RowObservation,
    commanded,
    computed_slots,
    ended_requests,
    host_rows,
    is_immediate,
    names_by_schedule,
)
from tenure.spec.rule import Finding

MOVES: Final[dict[type[RowEvent], tuple[tuple[WritePhase, WritePhase], ...]]] = {
    CopyBegan: ((WritePhase.QUEUED, WritePhase.COPYING),),
    CopyCompleted: ((WritePhase.COPYING, WritePhase.HOST_READY), (WritePhase.COPYING, WritePhase.WRITTEN)),
    ScatterCompleted: ((WritePhase.HOST_READY, WritePhase.WRITTEN),),
    WriteFailed: tuple((phase, WritePhase.FAILED) for phase in OPEN),
}
"""What each completion does to the write it names; the only other move is PENDING -> QUEUED."""
FOR_GOOD: Final = ("schedule", "step", "request", "page")
"""What a write is born with; one that fails lets go of its page."""


# --- The chain ------------------------------------------------------------------------------------------------


def writes_move_along_the_chain(seen: RowObservation) -> Finding:
    """R09."""
    then, now, event = seen.before, seen.after, seen.event
    if isinstance(event, ResetRequested):
        return None
    named = event.write if isinstance(event, CopyBegan | CopyCompleted | ScatterCompleted | WriteFailed) else None
    if named is not None and named not in then.writes and named not in then.fenced:
        return f"{event} was taken, and there is no write {named}"
    for number in then.writes.keys() | now.writes.keys():
        old, new = then.writes.get(number), now.writes.get(number)
        if old == new and number != named:
            continue
        if old is None:
            assert new is not None
            found = _born(seen, number, new)
        else:
            found = _moved(seen, number, old, new, is_named=number == named) or _same_write(seen, number, old, new)
        if found:
            return found
    return None


def _born(seen: RowObservation, number: WriteId, write: WriteView) -> Finding:
    expected = WritePhase.QUEUED if is_immediate(write) else WritePhase.PENDING
    if not isinstance(seen.event, SavePublished) or number < seen.before.next_write or write.phase is not expected:
        return f"write {number} was born {write.phase.value} by {type(seen.event).__name__}"
    return None


def _moved(seen: RowObservation, number: WriteId, old: WriteView, new: WriteView | None, *, is_named: bool) -> Finding:
    event = seen.event
    # A write is shown until it is WRITTEN, or longer while a read holds its host rows.
    move = (old.phase, WritePhase.WRITTEN if new is None else new.phase)
    if is_named:
        allowed = move in MOVES[type(event)]
    elif move == (WritePhase.PENDING, WritePhase.QUEUED):
        allowed = isinstance(event, StepStarted | SaveRequested)
    else:
        allowed = move[0] is move[1]
    if not allowed:
        return f"write {number} went from {move[0].value} to {move[1].value} by {event}"
    return None


def _same_write(seen: RowObservation, number: WriteId, old: WriteView, new: WriteView | None) -> Finding:
    if new is None:
        return None
    for what in ("schedule", "step", "request") if new.phase is WritePhase.FAILED else FOR_GOOD:
        if getattr(old, what) != getattr(new, what):
            return f"write {number} went from {what} {getattr(old, what)} to {getattr(new, what)}"
    if old.ended != new.ended and not (new.ended and isinstance(seen.event, StepStarted)):
        return f"write {number} is {'' if new.ended else 'not '}ended after {seen.event}"
    grew = old.phase is WritePhase.PENDING and isinstance(seen.event, SavePublished)
    if not grew and (old.claims, old.names) != (new.claims, new.names):
        return f"write {number} went from {old.claims} to {new.claims} on {seen.event}"
    return None


# --- Closing --------------------------------------------------------------------------------------------------


def open_writes_are_those_of_live_requests(view: RowView) -> Finding:
    """R10, of a state."""
    for request, number in view.live.items():
        write = None if number is None else view.writes.get(number)
        if number is None:
            continue
        if write is None or write.phase is not WritePhase.PENDING or write.request != request:
            return f"request {request!r} appends to write {number}, which is {write}"
    for number, write in view.writes.items():
        if is_immediate(write):
            if write.phase is WritePhase.PENDING or write.request is not None or write.ended:
                return f"immediate write {number} is {write}"
        elif write.request is None:
            return f"deferred write {number} has no request"
        elif write.phase is WritePhase.PENDING and view.live.get(write.request) != number:
            return f"write {number} is pending, and request {write.request!r} does not append to it"
        elif not write.ended and write.phase in ON_CLONES and write.request not in view.live:
            return f"write {number} is not ended, and its request {write.request!r} is not live"
    return None


def ended_requests_close_their_write(seen: RowObservation) -> Finding:
    """R10, of a transition: which pending writes are queued, and that each is given to the device."""
    then, now, event = seen.before, seen.after, seen.event
    ended = ended_requests(then, event)
    for number, write in then.writes.items():
        ends = write.request in ended and not is_immediate(write)
        after = now.writes.get(number)
        if ends and write.phase in ON_CLONES and after is not None and not after.ended:
            return f"request {write.request!r} ended, and its write {number} is not marked"
        if ends and write.phase is WritePhase.PENDING and (after is None or after.phase is not WritePhase.QUEUED):
            return f"request {write.request!r} ended, and its write {number} is {after}"
    queued = {
        number
        for number, write in now.writes.items()
        if number in then.writes and (then.writes[number].phase, write.phase) == (WritePhase.PENDING, WritePhase.QUEUED)
    }
    commands = commanded(seen.commands, CopyDeferred)
    if sorted(command.write for command in commands) != sorted(queued):
        return f"{commands} were commanded, and the writes {sorted(queued)} were queued"
    if isinstance(event, StepStarted) and (extra := [n for n in queued if then.writes[n].request not in ended]):
        return f"writes {extra} were queued, and their requests did not end"
    if isinstance(event, SaveRequested) and queued and _flushed_clone(seen) is None:
        return f"writes {sorted(queued)} were queued by a save that waits for no clone"
    flushed = now.counters.flushes - then.counters.flushes
    if flushed != (len(queued) if isinstance(event, SaveRequested) else 0):
        return f"{flushed} flushes were counted, and {sorted(queued)} queued by {type(event).__name__}"
    return _copies_are_whole(then, commands)


def live_requests_come_and_go(seen: RowObservation) -> Finding:
    """R10, of requests: a request is live from the start that names it to the one that ends it."""
    event = seen.event
    expected = {*seen.before.live}
    if isinstance(event, ResetRequested):
        # What a reset forgets is a rule of its own.
        return None
    if isinstance(event, StepStarted):
        expected.difference_update(ended_requests(seen.before, event))
        expected.update(change.request for change in event.changes if isinstance(change, Started))
    found = {*seen.after.live}
    if found != expected:
        return f"{sorted(map(repr, found))} are live after {event}, and should be {sorted(map(repr, expected))}"
    return None


def _flushed_clone(seen: RowObservation) -> int | None:
    return seen.answer.waited_for.clone if isinstance(seen.answer, Waiting) else None


def _copies_are_whole(then: RowView, commands: list[CopyDeferred]) -> Finding:
    for command in commands:
        write = then.writes[command.write]
        sizes = (command.stops - command.starts).tolist()
        wanted = [len(slots) for _, slots in write.claims]
        if sizes != wanted or len(command.clones) != len(wanted) or command.num_rows != sum(wanted):
            return f"{command} does not copy the chunks of {wanted} rows of write {command.write}"
        if {each.name for each in command.formats} != set(write.names):
            return f"{command} does not copy the names {write.names} of write {command.write}"
    return None


# --- Chunks ---------------------------------------------------------------------------------------------------


def a_save_gives_each_request_one_chunk(seen: RowObservation) -> Finding:
    """R16: one immediate claim for all requests, then one claim for each request with deferred rows."""
    if not isinstance(seen.event, SavePublished):
        return None
    then, now = seen.before, seen.after
    step = now.steps.get(seen.event.step)
    if step is None or step.write is None or step.write not in now.writes:
        return f"step {seen.event.step} was saved without an immediate write: {step}"
    immediate, deferred = names_by_schedule(now, step)
    number = then.next_claim
    found = _immediate_claim(seen, step, immediate)
    number += 1 if immediate else 0
    batch = [(request, count) for request, count in step.batch if count] if deferred else []
    for request, count in batch:
        found = found or _chunk(seen, request, count, number, deferred)
        number += 1
    if found:
        return found
    if now.next_claim != max(number, then.next_claim + 1):
        used = f"claims {then.next_claim} to {now.next_claim - 1}"
        return f"{used} were used for {len(batch)} chunks of {step.names}"
    fresh = {claim: slots for write in now.writes.values() for claim, slots in write.claims if claim >= then.next_claim}
    if len(fresh) != number - then.next_claim:
        return f"claims {sorted(fresh)} were given to writes, and {number - then.next_claim} chunks were saved"
    return _slots_fit_the_step(seen, fresh, has_immediate=bool(immediate))


def _immediate_claim(seen: RowObservation, step: StepView, names: set[NameId]) -> Finding:
    assert step.write is not None
    write = seen.after.writes[step.write]
    claims = [claim for claim, _ in write.claims]
    expected = [seen.before.next_claim] if names else []
    if claims != expected or set(write.names) != names or not is_immediate(write):
        return f"immediate write {step.write} has claims {claims} for {write.names}, and should have {expected}"
    if write.step != getattr(seen.event, "step", None) or write.phase is not WritePhase.QUEUED:
        return f"immediate write {step.write} is {write} at the save of {seen.event}"
    if seen.answer != StepSaved(step=write.step, write=step.write):
        return f"{seen.answer} answers the save whose immediate write is {step.write}"
    mine = [number for number, each in seen.after.writes.items() if is_immediate(each) and each.step == write.step]
    return f"step {write.step} has the immediate writes {mine}" if mine != [step.write] else None


def _chunk(seen: RowObservation, request: RequestId, count: int, claim: int, names: set[NameId]) -> Finding:
    then, now = seen.before, seen.after
    number = now.live.get(request)
    write = None if number is None else now.writes.get(number)
    if write is None or not write.claims or write.claims[-1][0] != claim or len(write.claims[-1][1]) != count:
        return f"request {request!r} should have claim {claim} for {count} rows, and appends to {write}"
    earlier = then.live.get(request)
    if earlier is not None and earlier in then.writes:
        old = then.writes[earlier]
        if earlier != number or write.claims[:-1] != old.claims or set(write.names) != set(old.names) | names:
            return f"request {request!r} appended to {earlier}, {old}, and now to {number}, {write}"
    elif len(write.claims) != 1 or set(write.names) != names or write.step != getattr(seen.event, "step", None):
        return f"request {request!r} begins write {number} with {write}"
    return None


def _slots_fit_the_step(seen: RowObservation, fresh: dict[int, tuple[int, ...]], *, has_immediate: bool) -> Finding:
    if not fresh:
        return None
    slots = sorted(computed_slots(seen))
    first = fresh.get(seen.before.next_claim, ()) if has_immediate else ()
    chunks = tuple(slot for _, each in sorted(fresh.items()) for slot in each)[len(first) :]
    if has_immediate and sorted(first) != slots:
        return f"the immediate claim takes {first}, and the step computed {slots}"
    if chunks and (sorted(chunks) != slots or (has_immediate and chunks != first)):
        return f"the chunks take {chunks}, the immediate claim {first}, and the step computed {slots}"
    return None


# --- Landing --------------------------------------------------------------------------------------------------


def scatters_carry_what_is_newest(seen: RowObservation) -> Finding:
    """R05: a write lands where its claim is still the newest, and nowhere else."""
    scatters = commanded(seen.commands, ScatterRows)
    event = seen.event
    if not isinstance(event, CopyCompleted) or event.write not in seen.before.writes:
        return f"{scatters} were commanded by {event}" if scatters else None
    write = seen.before.writes[event.write]
    expected: dict[NameId, list[tuple[int, int]]] = {}
    for place, claim, slot in host_rows(write):
        for name in write.names:
            if seen.after.newest[name][slot] == claim:
                expected.setdefault(name, []).append((place, slot))
    after = seen.after.writes.get(event.write)
    if not expected:
        if scatters or (after is not None and after.phase is not WritePhase.WRITTEN):
            return f"write {event.write} has no row that is newest, and is {after}, with {scatters}"
        return None
    if len(scatters) != 1 or after is None or after.phase is not WritePhase.HOST_READY:
        return f"write {event.write} has rows to scatter, and is {after}, with {len(scatters)} scatters"
    scatter = scatters[0]
    if (scatter.write, scatter.page) != (event.write, write.page):
        return f"{scatter} is the scatter of write {event.write} on page {write.page}"
    found = {part.name: sorted(zip(part.rows.tolist(), part.slots.tolist(), strict=True)) for part in scatter.parts}
    if len(found) != len(scatter.parts) or found != {name: sorted(rows) for name, rows in expected.items()}:
        return f"write {event.write} scatters {found}, and {expected} are newest"
    return None


def writes_are_of_one_schedule(view: RowView) -> Finding:
    """R09, of a state: what a write of each schedule is."""
    for number, write in view.writes.items():
        if write.schedule is Schedule.JOIN_NEXT_STEP and len(write.claims) > 1:
            return f"immediate write {number} has the claims {[claim for claim, _ in write.claims]}"
        if write.schedule is Schedule.JOIN_ON_FINISH and not (write.claims and write.names):
            return f"deferred write {number} moves nothing: {write}"
        schedules = {each.name: each.schedule for each in view.formats}
        wrong = [name for name in write.names if schedules.get(name) is not write.schedule]
        if wrong:
            return f"write {number} of schedule {write.schedule.value} moves {wrong}"
    return None
