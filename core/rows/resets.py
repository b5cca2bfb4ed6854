"""The calls around the life of a cache: policy, time-out, reset, shutdown (R07, R12, R24)."""

import numpy as np

from tenure.core.columns import Columns
from tenure.core.errors import (
    BudgetExhaustedError,
    PageExhaustedError,
    PolicyAfterStepError,
    ShutDownError,
    WaitTimeoutError,
)
from tenure.core.errors.base import number_list
from tenure.core.rows.answers import Done, ResetAnswered
from tenure.core.rows.buffers import let_go_clones, step_lets_go
from tenure.core.rows.edit import Edit
from tenure.core.rows.events import (
    PolicyRegistered,
    ResetRequested,
    ShutdownRequested,
    WaitedFor,
    WaitTimedOut,
    WriteId,
)
from tenure.core.rows.reads import drop_read
from tenure.core.rows.records import FencedStep, Step, Write
from tenure.core.rows.saves import give_back
from tenure.core.rows.tables import CHUNK_CLONE
from tenure.core.rows.view import ReadPhase, StepPhase, WritePhase
from tenure.core.rows.writes import open_chunks


def on_policy_registered(edit: Edit, event: PolicyRegistered) -> Done:
    """The model's policy is known.

    Rules: R15.

    Raises:
        ShutDownError: the cache is shut down.
        PolicyAfterStepError: a step has started.
    """
    tables = edit.tables
    if tables.shut_down:
        raise ShutDownError
    if tables.started:
        raise PolicyAfterStepError
    tables.policy = event.policy
    return Done()


def on_wait_timed_out(edit: Edit, event: WaitTimedOut) -> Done:
    """R07: what a call raises that waited as long as it may; it may be tried again, and then waits again.

    Raises:
        PageExhaustedError, BudgetExhaustedError, WaitTimeoutError: always; by what was waited for.
    """
    tables, waited_for = edit.tables, event.waited_for
    error: type[WaitTimeoutError] = WaitTimeoutError
    if waited_for.page:
        error = PageExhaustedError
    elif waited_for.clone is not None:
        error = BudgetExhaustedError
    open_writes = [
        number
        for number, write in sorted(tables.writes.items())
        if write.phase not in (WritePhase.WRITTEN, WritePhase.FAILED)
    ]
    raise error(_wish(waited_for), tables.unconsumed, open_writes)


def _wish(waited_for: WaitedFor) -> str:
    wishes = (
        ("a free page", waited_for.page),
        (f"device clone {waited_for.clone} to be let go", waited_for.clone is not None),
        (f"writes {number_list(waited_for.written)} to reach the pool", waited_for.written),
        (f"writes {number_list(waited_for.host_ready)} to reach the host", waited_for.host_ready),
        (f"reads {number_list(waited_for.reads)} to be done", waited_for.reads),
    )
    return ", ".join(wish for wish, is_meant in wishes if is_meant) or "nothing"


def on_shutdown_requested(edit: Edit, event: ShutdownRequested) -> Done:
    """No call is served any more; told again it changes nothing."""
    edit.tables.shut_down = True
    return Done()


def on_reset_requested(edit: Edit, event: ResetRequested) -> ResetAnswered:
    """Forget every row. Refused while a request is live or a step is there, except after a failure (R24)."""
    tables = edit.tables
    if tables.failure is None and (tables.live or tables.steps):
        return ResetAnswered(False)
    # R03, R24: no claim below the floor is effective, so every row is ABSENT at once; numbers go on (R04).
    tables.floor = tables.next_claim
    tables.step_floor = tables.next_step
    for number in sorted(tables.steps):
        _forget_step(edit, number, tables.steps[number])
    kept = {read for step in tables.fenced_steps.values() for read in (*step.asked, *step.others)}
    for number in sorted(tables.reads):
        if number not in kept:
            drop_read(edit, number)
    for number in sorted(tables.writes):
        _forget_write(edit, number, tables.writes[number])
    for name in ("live", "open_write", "writes_of", "immediate", "unready", "identities"):
        edit.replace(name, {})
    edit.replace("named", np.zeros_like(tables.named))
    edit.replace("chunks", Columns.empty(7))
    edit.replace("chunk_slots", Columns.empty(1))
    tables.dead_chunks = 0
    tables.pending = 0
    tables.failure = None
    return ResetAnswered(True)


def _forget_step(edit: Edit, number: int, step: Step) -> None:
    tables = edit.tables
    if step.phase is StepPhase.RESERVED:
        give_back(edit, step)
    elif step.phase is StepPhase.CONSUMING:
        # Somebody copies from its page and its reads without a lock: they stay until that ends.
        done = [
            (request, read) for (request, _), read in step.reads.items() if tables.reads[read].phase is ReadPhase.DONE
        ]
        asked = tuple(read for request, read in done if request in step.asked)
        others = tuple(read for request, read in done if request not in step.asked)
        edit.put(tables.fenced_steps, number, FencedStep(step.page, asked, others))
    else:
        step_lets_go(edit, step.page)
    edit.remove(tables.steps, number)


def _forget_write(edit: Edit, number: WriteId, write: Write) -> None:
    """R24: a write that a device is at keeps page and clones until the device says that it is done."""
    tables = edit.tables
    if write.phase in (WritePhase.QUEUED, WritePhase.COPYING, WritePhase.HOST_READY):
        edit.put(tables.writes, number, write._replace(fenced=True))
        return
    if write.phase is WritePhase.PENDING:
        let_go_clones(edit, open_chunks(tables, number)[CHUNK_CLONE])
    if write.readers:
        # Reads that run still use its host rows.
        edit.put(tables.writes, number, write._replace(phase=WritePhase.WRITTEN, fenced=True))
    else:
        edit.remove(tables.writes, number)
