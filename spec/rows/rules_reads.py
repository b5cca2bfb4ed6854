"""R13 and R23: a read finds the rows it was planned on, however late, and what becomes of one that nobody wants."""

from typing import Final

from tenure.core.rows.commands import PreserveRows, ReleaseBuffers
from tenure.core.rows.events import (
    Claim,
    ConsumeAbandoned,
    GatherBegan,
    GatherCompleted,
    GatherFailed,
    ReadId,
    ResetRequested,
    RowEvent,
    SavePublished,
    StepConsumed,
    StepDiscarded,
    StepDropped,
    StepId,
    StepStarted,
    WriteFailed,
    WriteId,
)
from tenure.core.rows.view import ReadPhase, ReadView, RowView, WritePhase
from tenure.spec.rows.rule import (
    BEFORE_SAVE,
    ON_ITS_WAY,
    RowObservation,
    commanded,
    is_immediate,
    is_running,
    published,
    writes_of_claims,
)
from tenure.spec.rule import Finding

# --- What a read counts on --------------------------------------------------------------------------------------


def planned_reads_keep_their_rows(view: RowView) -> Finding:
    """R13, of a state: each row of a read that has not begun is where the plan says, or held, or set aside."""
    numbers = writes_of_claims(view)
    for number, read in view.reads.items():
        if len(read.claims) != len(read.slots) or not set(read.pool).isdisjoint(read.preserved):
            return f"read {number} has {len(read.claims)} claims for {len(read.slots)} slots: {read}"
        if read.phase is ReadPhase.PLANNED:
            found = _finds_its_rows(view, number, read, numbers) or _holds_what_it_needs(view, number, read)
        else:
            found = _holds_no_more_than_it_uses(number, read)
        if found:
            return found
    for number, write in view.writes.items():
        held = any(number in read.writes for read in view.reads.values())
        if write.phase is WritePhase.WRITTEN and not held:
            return f"write {number} is WRITTEN, no read holds its rows, and it is kept"
    return None


def _finds_its_rows(view: RowView, number: ReadId, read: ReadView, numbers: dict[Claim, WriteId]) -> Finding:
    column = view.newest.get(read.name)
    if column is None:
        return f"read {number} is of {read.name}, which is not registered"
    for place, (slot, claim) in enumerate(zip(read.slots, read.claims, strict=True)):
        source = numbers.get(claim)
        where = f"row {place} of read {number} (claim {claim} of ({read.name}, {slot}))"
        if claim == 0:
            if place in read.pool or place in read.preserved:
                return f"{where} is no row, and is read from the pool or set aside"
        elif place in read.preserved:
            if column[slot] == claim:
                return f"{where} was set aside, and its claim is still the newest"
        elif source in read.writes:
            if place in read.pool:
                return f"{where} is of write {source}, which the read holds, and is read from the pool"
        elif source is not None and view.writes[source].phase is not WritePhase.WRITTEN:
            if not (is_immediate(view.writes[source]) and source in read.awaits and place in read.pool):
                return f"{where} is of write {source}, which the read neither holds nor awaits"
        elif place not in read.pool or column[slot] != claim:
            return f"{where} was not set aside, and claim {column[slot]} is the newest now"
    return None


def _holds_what_it_needs(view: RowView, number: ReadId, read: ReadView) -> Finding:
    needed = set(read.claims) - {0}
    for write in read.writes:
        held = view.writes.get(write)
        if held is None or is_immediate(held) or needed.isdisjoint(claim for claim, _ in held.claims):
            return f"read {number} holds write {write}, which is {held}"
        if held.phase is WritePhase.FAILED:
            return f"read {number} counts on write {write}, which failed"
    for write in read.awaits:
        awaited = view.writes.get(write)
        if awaited is None or not is_immediate(awaited) or awaited.phase not in ON_ITS_WAY:
            return f"read {number} awaits write {write}, which is {awaited}"
        if needed.isdisjoint(claim for claim, _ in awaited.claims):
            return f"read {number} awaits write {write} for nothing"
    return f"read {number} is planned, and holds clones {read.clones}" if read.clones else None


def _holds_no_more_than_it_uses(number: ReadId, read: ReadView) -> Finding:
    if read.awaits:
        return f"read {number} is {read.phase.value}, and awaits {read.awaits}"
    if not is_running(read) and (read.writes or read.clones):
        return f"read {number} is {read.phase.value}, and holds writes {read.writes} and clones {read.clones}"
    return None


# --- Rows set aside -----------------------------------------------------------------------------------------------


def only_overlapping_rows_are_preserved(seen: RowObservation) -> Finding:
    """R13, of a transition: a publication sets aside what it takes from planned reads of other steps, exactly."""
    preserves = commanded(seen.commands, PreserveRows)
    if not isinstance(seen.event, SavePublished):
        return f"{preserves} were commanded by {type(seen.event).__name__}" if preserves else None
    expected: dict[ReadId, list[tuple[int, int]]] = {}
    for number, read in seen.before.reads.items():
        if read.phase is ReadPhase.PLANNED and read.step != seen.event.step and (rows := _taken(seen, read)):
            expected[number] = rows
    found: dict[ReadId, list[tuple[int, int]]] = {}
    for command in preserves:
        served = seen.before.reads.get(command.read)
        if command.read in found or served is None or command.format.name != served.name:
            return f"{command} is for read {command.read}, {served}"
        found[command.read] = sorted(zip(command.rows.tolist(), command.slots.tolist(), strict=True))
    if found != expected:
        return f"rows {found} were set aside, and {expected} of planned reads were claimed"
    for number, rows in expected.items():
        then, now = seen.before.reads[number], seen.after.reads.get(number)
        wanted = sorted((*then.preserved, *(place for place, _ in rows)))
        if now is None or sorted(now.preserved) != wanted:
            return f"rows {wanted} of read {number} are set aside, and it is {now}"
    counted = seen.after.counters.rows_preserved - seen.before.counters.rows_preserved
    if counted != sum(map(len, expected.values())):
        return f"{counted} rows were counted as set aside, and {expected} were"
    return None


def _taken(seen: RowObservation, read: ReadView) -> list[tuple[int, int]]:
    """The rows that a read would take from the pool, and whose slot was claimed now; by place and slot."""
    then, now = seen.before.newest[read.name], seen.after.newest[read.name]
    return [
        (place, read.slots[place])
        for place in sorted(read.pool)
        if then[read.slots[place]] == read.claims[place] != now[read.slots[place]]
    ]


# --- The life of a read -------------------------------------------------------------------------------------------

MOVES: Final[dict[type[RowEvent], tuple[tuple[ReadPhase, ReadPhase | None], ...]]] = {
    GatherBegan: ((ReadPhase.PLANNED, ReadPhase.RUNNING),),
    GatherCompleted: ((ReadPhase.RUNNING, ReadPhase.DONE), (ReadPhase.LEFT, None)),
    GatherFailed: (
        (ReadPhase.PLANNED, ReadPhase.FAILED),
        (ReadPhase.RUNNING, ReadPhase.FAILED),
        (ReadPhase.LEFT, None),
    ),
}
"""What each completion does to the read it names."""
DROPS: Final = (
    (ReadPhase.PLANNED, None),
    (ReadPhase.DONE, None),
    (ReadPhase.FAILED, None),
    (ReadPhase.RUNNING, ReadPhase.LEFT),
)
"""What dropping a read does: only one that is running stays, until it ends."""
FAILS: Final = ((ReadPhase.PLANNED, ReadPhase.FAILED), (ReadPhase.RUNNING, ReadPhase.LEFT))
"""What becomes of a read when a write fails that it counts on."""


def dropped_reads_stay_while_they_run(seen: RowObservation) -> Finding:
    """R23."""
    then, now, event = seen.before, seen.after, seen.event
    named = event.read if isinstance(event, GatherBegan | GatherCompleted | GatherFailed) else None
    if isinstance(event, GatherCompleted) and named not in then.reads:
        return f"{event} was taken, and there is no read {named}"
    for number in then.reads.keys() | now.reads.keys():
        old, new = then.reads.get(number), now.reads.get(number)
        if old == new and number != named:
            continue
        if old is None:
            if not isinstance(event, StepStarted | SavePublished) or number < then.next_read:
                return f"read {number} was born by {event}"
            continue
        move = (old.phase, None if new is None else new.phase)
        if not _may_move(seen, number, old, move):
            return f"read {number}, {old.phase.value}, was left as {new and new.phase.value} by {event}"
        found = None if new is None else _same_read(seen, number, old, new)
        if found:
            return found
    return _wanted_reads(seen)


def _may_move(seen: RowObservation, number: ReadId, old: ReadView, move: tuple[ReadPhase, ReadPhase | None]) -> bool:
    event = seen.event
    stays = move[0] is move[1]
    match event:
        case GatherBegan(named) | GatherCompleted(named) | GatherFailed(named):
            if named != number:
                return stays
            late = isinstance(event, GatherBegan) and move[0] in (ReadPhase.LEFT, ReadPhase.FAILED)
            return move in MOVES[type(event)] or (stays and (late or move[0] is ReadPhase.FAILED))
        case WriteFailed(write):
            # A gather that runs is not over because its source is lost: until it ends, its buffer is in use.
            counted_on = write in old.writes or write in old.awaits
            return move in FAILS if counted_on and old.phase in (ReadPhase.PLANNED, ReadPhase.RUNNING) else stays
        case SavePublished(step) | StepConsumed(step) | StepDiscarded(step) | ConsumeAbandoned(step):
            return stays or (old.step == step and move in DROPS)
        case StepDropped():
            return stays or (old.step == seen.before.pending and move in DROPS)
        case ResetRequested():
            return stays or move in DROPS
        case _:
            return stays


def _same_read(seen: RowObservation, number: ReadId, old: ReadView, new: ReadView) -> Finding:
    for what in ("step", "request", "name", "slots", "claims"):
        if getattr(old, what) != getattr(new, what):
            return f"read {number} went from {what} {getattr(old, what)} to {getattr(new, what)}"
    if old.confirmed != new.confirmed and not (new.confirmed and published(seen.event) == old.step):
        return f"read {number} is {'' if new.confirmed else 'not '}settled after {seen.event}"
    if is_running(old) and is_running(new):
        for what in ("pool", "preserved", "writes", "clones"):
            if getattr(old, what) != getattr(new, what):
                return f"read {number} is running, and went from {what} {getattr(old, what)} to {getattr(new, what)}"
    return None


def _wanted_reads(seen: RowObservation) -> Finding:
    """What is gone with its step, and whose buffers are given back."""
    then, now, event = seen.before, seen.after, seen.event
    gone_step: StepId | None = None
    if isinstance(event, StepConsumed | StepDiscarded):
        gone_step = event.step
    elif isinstance(event, StepDropped):
        gone_step = then.pending
    for number, read in now.reads.items():
        if gone_step is not None and read.step == gone_step and read.phase is not ReadPhase.LEFT:
            return f"read {number} of step {gone_step} is {read.phase.value} after {event}"
    released = sorted(read for each in commanded(seen.commands, ReleaseBuffers) for read in each.reads)
    gone = {number: read for number, read in then.reads.items() if number not in now.reads}
    must = {
        number
        for number, read in gone.items()
        if (is_running(read) or read.preserved or read.phase is ReadPhase.DONE) and not isinstance(event, StepConsumed)
    }
    may = {number for number, read in gone.items() if read.phase is not ReadPhase.PLANNED or read.preserved}
    if len(set(released)) != len(released) or not must <= set(released) <= may:
        return f"buffers of the reads {released} were released, and {sorted(must)} are gone"
    return None


def reads_belong_to_somebody(view: RowView) -> Finding:
    """R23, of a state: every read is listed by its step, or a reset left it to a materialize, or it only runs out."""
    listed = {
        number: (step, request, name) for step, each in view.steps.items() for request, name, number in each.reads
    }
    for number, (step, request, name) in listed.items():
        read = view.reads.get(number)
        if read is None or (read.step, read.request, read.name) != (step, request, name):
            return f"step {step} lists read {number} of {request!r} under {name}, which is {read}"
        if read.phase is ReadPhase.LEFT:
            return f"step {step} lists read {number}, which was dropped"
        if read.slots != dict(view.steps[step].hits).get(request):
            return f"read {number} has the slots {read.slots}, and the hits of step {step} are {view.steps[step].hits}"
        if read.confirmed != (view.steps[step].phase not in BEFORE_SAVE):
            return f"read {number} of step {step} is {read} in a step that is {view.steps[step].phase.value}"
    for number, read in view.reads.items():
        if number in listed or read.phase is ReadPhase.LEFT:
            continue
        if not (read.step in view.fenced_steps and read.phase is ReadPhase.DONE):
            return f"read {number} of step {read.step} is {read.phase.value}, and no step lists it"
    return None
