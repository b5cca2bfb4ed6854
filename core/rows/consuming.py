"""Consuming a saved step: one materialize that returns, or one discard (R01, R06, R14, R23)."""

from tenure.core.errors import (
    ReadFailedError,
    RequestNamedTwiceError,
    RequestOutsideSnapshotError,
    StepAlreadyConsumedError,
    StepBeingConsumedError,
    StepNotBeingConsumedError,
    UnknownStepError,
    UnreadableHitError,
)
from tenure.core.rows.answers import ConsumePlan, Done, HitRows, Ignored, Waiting
from tenure.core.rows.buffers import step_lets_go
from tenure.core.rows.edit import Edit
from tenure.core.rows.events import (
    ConsumeAbandoned,
    ConsumeRequested,
    RequestId,
    RowsCopiedOut,
    StepConsumed,
    StepDiscarded,
    StepId,
    WaitedFor,
)
from tenure.core.rows.guards import check_serving
from tenure.core.rows.lifecycles import is_number
from tenure.core.rows.names import NameId
from tenure.core.rows.reads import drop_read, forget_read
from tenure.core.rows.records import Read, Step
from tenure.core.rows.tables import Tables
from tenure.core.rows.view import ReadPhase, StepPhase, WritePhase

LATE = Ignored("a reset forgot this step; what its materialize held is given back")


def on_consume_requested(edit: Edit, event: ConsumeRequested) -> Waiting | ConsumePlan:
    """Plan a materialize, or say what it must wait for; nobody else can consume the step until it ends.

    Rules: R01, R12, R14.

    Raises:
        ShutDownError, WriteFailedError: nothing is served any more.
        UnknownStepError, StepAlreadyConsumedError, StepBeingConsumedError: the step cannot be consumed.
        RequestNamedTwiceError, RequestOutsideSnapshotError: not the step's requests, each once.
        UnreadableHitError, ReadFailedError: a request's hit cannot be served; the step can be consumed for others.
    """
    tables = edit.tables
    check_serving(tables)
    step = _saved_step(tables, event.step)
    _check_requests(event, step)
    asked = frozenset(event.requests if step.hits else ())
    for each in step.unreadable:
        if each.request in asked:
            raise UnreadableHitError(event.step, *each)
    wanted = [(key, number, tables.reads[number]) for key, number in step.reads.items() if key[0] in asked]
    for (request, name), _, read in wanted:
        if read.phase is ReadPhase.FAILED:
            raise ReadFailedError(event.step, request, name, read.reason)
    waited_for = _waited_for(tables, step, wanted)
    if waited_for != WaitedFor():
        return Waiting(waited_for)
    saved = step.saved
    assert saved is not None
    edit.put(tables.steps, event.step, step._replace(phase=StepPhase.CONSUMING, asked=event.requests))
    return ConsumePlan(
        event.step,
        step.page if step.page >= 0 else None,
        event.requests,
        saved.batch,
        saved.starts,
        saved.formats,
        saved.leftovers,
        tuple(HitRows(*key, number, len(read.slots)) for key, number, read in wanted),
    )


def _saved_step(tables: Tables, number: StepId) -> Step:
    step = tables.steps.get(number) if is_number(number) else None
    if step is None or step.phase in (StepPhase.STARTED, StepPhase.RESERVED):
        was_there = step is None and is_number(number) and tables.step_floor <= number < tables.next_step
        raise (StepAlreadyConsumedError if was_there else UnknownStepError)(number, tables.unconsumed)
    if step.phase is StepPhase.CONSUMING:
        raise StepBeingConsumedError(number)
    return step


def _check_requests(event: ConsumeRequested, step: Step) -> None:
    assert step.saved is not None
    if event.requests == step.saved.batch:
        return
    asked = dict.fromkeys(event.requests)
    if len(asked) < len(event.requests):
        again = next(each for place, each in enumerate(event.requests) if each in event.requests[:place])
        raise RequestNamedTwiceError(again, "one materialize")
    batch = frozenset(step.saved.batch)
    if not asked.keys() <= batch:
        raise RequestOutsideSnapshotError(event.step, tuple(each for each in asked if each not in batch))


def _waited_for(tables: Tables, step: Step, wanted: list[tuple[tuple[RequestId, NameId], int, Read]]) -> WaitedFor:
    write = tables.writes.get(step.write)
    on_page = write is None or write.phase not in (WritePhase.QUEUED, WritePhase.COPYING)
    reads = tuple(number for _, number, read in wanted if read.phase is not ReadPhase.DONE)
    return WaitedFor(host_ready=() if on_page else (step.write,), reads=reads)


def _consuming(edit: Edit, number: StepId) -> Step:
    step = edit.tables.steps.get(number) if is_number(number) else None
    if step is None or step.phase is not StepPhase.CONSUMING:
        raise StepNotBeingConsumedError(number)
    return step


def on_rows_copied_out(edit: Edit, event: RowsCopiedOut) -> Done | Ignored:
    """The step's rows were copied from its page, which it holds no more (R06).

    Raises:
        StepNotBeingConsumedError: no materialize of the step is under way.
    """
    tables = edit.tables
    fenced = tables.fenced_steps.get(event.step) if is_number(event.step) else None
    if fenced is not None:
        step_lets_go(edit, fenced.page)
        edit.put(tables.fenced_steps, event.step, fenced._replace(page=-1))
        return LATE
    step = _consuming(edit, event.step)
    step_lets_go(edit, step.page)
    edit.put(tables.steps, event.step, step._replace(page=-1))
    return Done()


def on_step_consumed(edit: Edit, event: StepConsumed) -> Done | Ignored:
    """The materialize returns. Hit rows of the requests it was asked for are the caller's; other reads are dropped.

    Rules: R01, R23.

    Raises:
        StepNotBeingConsumedError: no materialize of the step is under way.
    """
    tables = edit.tables
    fenced = tables.fenced_steps.get(event.step) if is_number(event.step) else None
    if fenced is not None:
        step_lets_go(edit, fenced.page)
        for read in fenced.asked:
            edit.remove(tables.reads, read)
        for read in fenced.others:
            forget_read(edit, read)
        edit.remove(tables.fenced_steps, event.step)
        return LATE
    step = _consuming(edit, event.step)
    hit_rows = 0
    asked = frozenset(step.asked if step.reads else ())
    for (request, _), number in step.reads.items():
        if request in asked:
            hit_rows += len(tables.reads[number].slots)
            edit.remove(tables.reads, number)
        else:
            drop_read(edit, number)
    step_lets_go(edit, step.page)
    edit.remove(tables.steps, event.step)
    edit.count("hit_rows", hit_rows)
    return Done()


def on_consume_abandoned(edit: Edit, event: ConsumeAbandoned) -> Done | Ignored:
    """The materialize raises: the step waits to be consumed again; rows copied out stay with it (R01).

    Raises:
        StepNotBeingConsumedError: no materialize of the step is under way.
    """
    tables = edit.tables
    fenced = tables.fenced_steps.get(event.step) if is_number(event.step) else None
    if fenced is not None:
        step_lets_go(edit, fenced.page)
        for read in (*fenced.asked, *fenced.others):
            forget_read(edit, read)
        edit.remove(tables.fenced_steps, event.step)
        return LATE
    step = _consuming(edit, event.step)
    edit.put(tables.steps, event.step, step._replace(phase=StepPhase.SAVED, asked=()))
    return Done()


def on_step_discarded(edit: Edit, event: StepDiscarded) -> Done:
    """Nobody will materialize the step: its page and its reads are let go; what it wrote goes on (R01).

    Raises:
        UnknownStepError, StepAlreadyConsumedError, StepBeingConsumedError: the step cannot be consumed.
    """
    step = _saved_step(edit.tables, event.step)
    for number in step.reads.values():
        drop_read(edit, number)
    step_lets_go(edit, step.page)
    edit.remove(edit.tables.steps, event.step)
    return Done()
