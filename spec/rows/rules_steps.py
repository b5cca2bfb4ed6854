"""R01, R15, R18 and R22: a step is started, saved or given up, and consumed once; and what is left when all is done."""

from itertools import accumulate
from typing import Final

from tenure.core.rows.answers import ConsumePlan, HitRows, Ignored, SaveReserved, Waiting
from tenure.core.rows.events import (
    Aborted,
    ConsumeAbandoned,
    ConsumeRequested,
    Extended,
    Finished,
    Replaced,
    RequestId,
    ResetRequested,
    Resumed,
    RowEvent,
    RowsCopiedOut,
    SaveCancelled,
    SavePublished,
    SaveRequested,
    Started,
    StepConsumed,
    StepDiscarded,
    StepDropped,
    StepId,
    StepStarted,
    WriteFailed,
)
from tenure.core.rows.view import ReadPhase, RowView, StepPhase, StepView, WritePhase
from tenure.spec.rows.rule import BEFORE_SAVE, SAVED, RowObservation, changed_fields, is_running, published, step_reads
from tenure.spec.rule import Finding

MOVES: Final[dict[type[RowEvent], tuple[StepPhase, StepPhase | None]]] = {
    SavePublished: (StepPhase.RESERVED, StepPhase.SAVED),
    SaveCancelled: (StepPhase.RESERVED, StepPhase.STARTED),
    RowsCopiedOut: (StepPhase.CONSUMING, StepPhase.CONSUMING),
    StepConsumed: (StepPhase.CONSUMING, None),
    ConsumeAbandoned: (StepPhase.CONSUMING, StepPhase.SAVED),
    StepDiscarded: (StepPhase.SAVED, None),
}
"""What each event does to the step it names; None where the step is gone."""


# --- States -------------------------------------------------------------------------------------------------------


def steps_have_what_their_phase_says(view: RowView) -> Finding:
    """R01, of a state: what is known of a step before its save and after it."""
    for number, step in view.steps.items():
        saved = step.phase in SAVED
        if saved != (step.write is not None):
            return f"step {number} is {step.phase.value}, and its write is {step.write}"
        if not saved and (step.names or step.leftovers or step.unreadable):
            return f"step {number} is {step.phase.value}, and has {step.names}, {step.leftovers}, {step.unreadable}"
        # A saved step may have lost its page: a materialize copied its rows out and then raised.
        if step.page is None and step.phase is StepPhase.RESERVED:
            return f"step {number} is reserved without a page"
        if step.page is not None and step.phase is StepPhase.STARTED:
            return f"step {number} is only started, and has page {step.page}"
        if len({request for request, _ in step.batch}) != len(step.batch) or not sum(count for _, count in step.batch):
            return f"step {number} has the batch {step.batch}"
        if not {*step.names}.isdisjoint(step.leftovers):
            return f"step {number} has {step.names} as rows and {step.leftovers} as leftovers"
        write = None if step.write is None else view.writes.get(step.write)
        if write is not None and write.step != number:
            return f"step {number} has write {step.write}, which is one of step {write.step}"
    return None


def one_step_waits_to_be_saved(view: RowView) -> Finding:
    """R22, of a state."""
    waiting = sorted(number for number, step in view.steps.items() if step.phase in BEFORE_SAVE)
    expected = [] if view.pending is None else [view.pending]
    return f"steps {waiting} wait to be saved, and {view.pending} is pending" if waiting != expected else None


def nothing_is_left_at_rest(view: RowView) -> Finding:
    """R18: all steps consumed, all requests ended, all writes and reads run out; then nothing is held."""
    busy = view.steps or view.live or view.fenced or view.fenced_steps or any(map(is_running, view.reads.values()))
    ended = (WritePhase.WRITTEN, WritePhase.FAILED)
    if busy or any(write.phase not in ended for write in view.writes.values()):
        return None
    left = {
        "reads": sorted(view.reads),
        "writes": sorted(n for n, write in view.writes.items() if write.phase is not WritePhase.FAILED),
        "clones": sorted(view.clones),
        "bytes": view.charged,
        "pages": [page for page, held in enumerate(view.pages) if held],
        "pending step": view.pending or 0,
    }
    found = {what: each for what, each in left.items() if each}
    return f"{found} are left with nothing to do" if found else None


# --- Transitions --------------------------------------------------------------------------------------------------


def steps_are_consumed_once(seen: RowObservation) -> Finding:
    """R01: which event may take a step where, and that it does."""
    then, now, event = seen.before, seen.after, seen.event
    if isinstance(event, ResetRequested):
        return None
    moves = _expected_moves(seen)
    for number in then.steps.keys() | now.steps.keys() | moves.keys():
        old, new = then.steps.get(number), now.steps.get(number)
        found = (old and old.phase, new and new.phase)
        if found != moves.get(number, (old and old.phase, old and old.phase)):
            return f"step {number} went from {_phase(old)} to {_phase(new)} by {type(event).__name__}"
        if old is not None and new is not None and (old != new or isinstance(event, RowsCopiedOut)):
            changed = _changed(seen, number, old, new)
            if changed:
                return f"step {number} changed in {changed} by {type(event).__name__}"
    return None


def _phase(step: StepView | None) -> str:
    return "nothing" if step is None else step.phase.value


def _expected_moves(seen: RowObservation) -> dict[StepId, tuple[StepPhase | None, StepPhase | None]]:
    then, event = seen.before, seen.event
    match event:
        case StepStarted():
            fresh = seen.after.next_step != then.next_step
            return {then.next_step: (None, StepPhase.STARTED)} if fresh else {}
        case SaveRequested() if isinstance(seen.answer, SaveReserved):
            return {seen.answer.step: (StepPhase.STARTED, StepPhase.RESERVED)}
        case ConsumeRequested(step) if isinstance(seen.answer, ConsumePlan):
            return {step: (StepPhase.SAVED, StepPhase.CONSUMING)}
        case StepDropped():
            return {} if then.pending is None else {then.pending: (StepPhase.STARTED, None)}
        case RowsCopiedOut(step) | StepConsumed(step) | ConsumeAbandoned(step) if step in then.fenced_steps:
            return {}
        case (
            SavePublished(step)
            | SaveCancelled(step)
            | RowsCopiedOut(step)
            | StepConsumed(step)
            | ConsumeAbandoned(step)
            | StepDiscarded(step)
        ):
            return {step: MOVES[type(event)]}
        case _:
            return {}


def _changed(seen: RowObservation, number: StepId, old: StepView, new: StepView) -> str:
    """What an event changed in a step that it must not change."""
    event = seen.event
    may: set[str] = {"phase"}
    if isinstance(event, SaveRequested) and number == seen.before.pending:
        may |= {"page", "batch"}
    if published(event) == number:
        may |= {"names", "leftovers", "write", "unreadable", "reads", "batch"}
    if event in (SaveCancelled(number), RowsCopiedOut(number)):
        may |= {"page", "batch"}
    if isinstance(event, WriteFailed) and {*new.reads} <= {*old.reads}:
        gone = {number for _, _, number in {*old.reads}.difference(new.reads)}
        may |= {"reads"} if all(is_running(seen.after.reads[number]) for number in gone) else set()
    names = [name for name in StepView.__dataclass_fields__ if name not in may]
    changed = [name for name in names if getattr(old, name) != getattr(new, name)]
    if set(old.batch) != set(new.batch) and {each for each in old.batch if each[1]} - set(new.batch):
        changed.append("batch")
    if event == RowsCopiedOut(number) and new.page is not None:
        changed.append("page, which it keeps")
    return ", ".join(changed)


def starts_follow_saves(seen: RowObservation) -> Finding:
    """R22, of a transition: no step with tokens begins while another waits to be saved; and who is live after it."""
    then, now, event = seen.before, seen.after, seen.event
    if not isinstance(event, StepStarted):
        return None
    if then.pending is not None:
        return f"{event} was taken while step {then.pending} waits to be saved"
    scheduled = scheduled_tokens(event)
    tokens = sum(scheduled.values())
    if (now.next_step - then.next_step, now.pending) != ((1, then.next_step) if tokens else (0, None)):
        return f"step {now.pending} is pending after {event} of {tokens} tokens; {then.next_step} came next"
    step = None if now.pending is None else now.steps.get(now.pending)
    if step is not None:
        batch = {request: count for request, count in step.batch if count}
        if batch != {request: count for request, count in scheduled.items() if count}:
            return f"step {now.pending} has the batch {step.batch}, and {scheduled} is scheduled"
    return None


def scheduled_tokens(event: StepStarted) -> dict[RequestId, int]:
    """The tokens that a start schedules, by request."""
    scheduled: dict[RequestId, int] = {}
    for change in event.changes:
        match change:
            case Started(request, count) | Resumed(request, count) | Replaced(request, count):
                scheduled[request] = count
            case Extended(requests, counts):
                scheduled.update(zip(requests, counts.tolist(), strict=True))
            case Finished() | Aborted():
                pass
    return scheduled


def consume_plans_fit_the_snapshot(seen: RowObservation) -> Finding:
    """R01, of answers: a plan is made for requests of the batch whose hits are read, of what the save kept."""
    event, then = seen.event, seen.before
    if not isinstance(event, ConsumeRequested):
        return f"{seen.answer} answers {event}" if isinstance(seen.answer, ConsumePlan) else None
    step = then.steps.get(event.step)
    if step is None or step.phase is not StepPhase.SAVED:
        return f"{event} was taken, and step {event.step} is {_phase(step)}"
    batch = tuple(request for request, _ in step.batch)
    refused = {each.request for each in step.unreadable}
    if len(set(event.requests)) != len(event.requests) or not set(event.requests) <= set(batch) - refused:
        return f"{event} was taken; the batch is {batch}, and {step.unreadable} are unreadable"
    reads = {number: read for number, read in step_reads(then, step) if read.request in event.requests}
    late = sorted(number for number, read in reads.items() if read.phase is not ReadPhase.DONE)
    write = None if step.write is None else then.writes.get(step.write)
    early = write is not None and write.phase in (WritePhase.QUEUED, WritePhase.COPYING)
    if isinstance(seen.answer, Waiting):
        return None if late or early else f"{seen.answer} answers {event}, and everything is ready"
    if late or early or not isinstance(seen.answer, ConsumePlan):
        return f"{seen.answer} answers {event}; reads {late} are not done, and the write of the step is {write}"
    return _plan(then, event, step, seen.answer)


def _plan(then: RowView, event: ConsumeRequested, step: StepView, plan: ConsumePlan) -> Finding:
    counts = [count for _, count in step.batch]
    formats = {each.name: each for each in then.formats}
    wanted = {
        "step": event.step,
        "page": step.page,
        "requests": event.requests,
        "batch": tuple(request for request, _ in step.batch),
    }
    for what, expected in wanted.items():
        if getattr(plan, what) != expected:
            return f"the plan of step {event.step} has {what} {getattr(plan, what)}, and the save kept {expected}"
    if plan.starts.tolist() != list(accumulate(counts, initial=0)):
        return f"the plan of step {event.step} cuts at {plan.starts.tolist()} what has {counts} rows"
    if sorted(each.name for each in plan.formats) != sorted(step.names) or any(
        formats.get(each.name) != each for each in plan.formats
    ):
        return f"the plan of step {event.step} returns {plan.formats}, and the step emits {step.names}"
    if sorted(plan.leftovers) != sorted(step.leftovers):
        return f"the plan of step {event.step} returns leftovers {plan.leftovers} of {step.leftovers}"
    hits = {
        (read.request, read.name): HitRows(read.request, read.name, number, len(read.slots))
        for number, read in step_reads(then, step)
        if read.request in event.requests
    }
    if len(plan.hits) != len(hits) or any(hits.get((each.request, each.name)) != each for each in plan.hits):
        return f"the plan of step {event.step} returns the hits {plan.hits}, and was to return {tuple(hits.values())}"
    return None


def late_ends_change_nothing_but_holders(seen: RowObservation) -> Finding:
    """R01, of late events: what came too late is said to be ignored, and only gives back what it held."""
    late = {"fenced", "fenced_steps", "pages", "clones", "charged", "reads", "writes", "counters"}
    if not isinstance(seen.answer, Ignored):
        return None
    changed = [
        name
        for name in RowView.__dataclass_fields__
        if name not in late and getattr(seen.before, name) != getattr(seen.after, name)
    ]
    return f"{', '.join(changed)} changed by {seen.event}, which was ignored" if changed else None


def waiting_changes_nothing(seen: RowObservation) -> Finding:
    """R15, of answers: whoever is told to wait may ask again, and nothing moved but a flush."""
    if not isinstance(seen.answer, Waiting) or seen.before == seen.after:
        return None
    if isinstance(seen.event, SaveRequested) and seen.answer.waited_for.clone is not None:
        allowed = {"writes", "live", "counters"}
        names = [name for name in RowView.__dataclass_fields__ if name not in allowed]
        changed = [name for name in names if getattr(seen.before, name) != getattr(seen.after, name)]
        return f"{', '.join(changed)} changed by a flush" if changed else None
    return f"{changed_fields(seen.before, seen.after)} changed by {seen.event}, which waits"
