"""A save: reserve, then publish or cancel; and a step that is given up (R02, R04, R07, R08, R14, R16, R21, R22)."""

import numpy as np

from tenure.core.arrays import Integers, read_only
from tenure.core.errors import SaveNotReservedError, SaveReservedError, ShutDownError, StepNotStartedError
from tenure.core.rows.answers import Done, SaveReserved, StepSaved, Waiting
from tenure.core.rows.buffers import charge, free_page, let_go_step_clones, oldest_clone, step_lets_go
from tenure.core.rows.claims import claim_rows
from tenure.core.rows.commands import Clone, CopyPage, FreezeRows, Lane
from tenure.core.rows.edit import Edit
from tenure.core.rows.events import (
    BlockId,
    ContentIdentity,
    CopyBegan,
    CopyCompleted,
    SaveCancelled,
    SavePublished,
    SaveRequested,
    StepDropped,
    StepId,
    WaitedFor,
    WriteFailed,
    WriteLayout,
)
from tenure.core.rows.guards import check_serving
from tenure.core.rows.layouts import check_identities, check_layout, starts_of
from tenure.core.rows.lifecycles import is_number
from tenure.core.rows.names import RowFormat, Schedule
from tenure.core.rows.outputs import SortedOutputs, sort_outputs
from tenure.core.rows.reads import drop_read
from tenure.core.rows.records import Reservation, Step
from tenure.core.rows.settling import settle_reads
from tenure.core.rows.tables import CHUNK_CLONE, CHUNK_WRITE, Tables
from tenure.core.rows.view import StepPhase, WritePhase
from tenure.core.rows.writes import queue_writes


def on_save_requested(edit: Edit, event: SaveRequested) -> Waiting | SaveReserved:
    """Set aside what the save of the started step needs, or say what it must wait for.

    Waiting for the byte budget queues the open writes on the oldest clone (a flush), which stays done (R10).

    Rules: R07, R08, R15.

    Raises:
        ShutDownError, WriteFailedError: nothing is served any more (R12).
        StepNotStartedError, SaveReservedError: no step waits to be saved.
        ContractError, CapacityError: the layout (`check_layout`) or the outputs (`sort_outputs`) are refused.
    """
    tables = edit.tables
    check_serving(tables)
    number, step = _started(tables, "save")
    layout = event.layout
    check_layout(tables, number, step, layout)
    tokens = len(layout.slots)
    outputs = sort_outputs(tables, event.outputs, tokens, layout.padded or tokens)

    waiting = _unwritten(tables)
    if waiting is not None:
        return waiting
    needed = tokens * sum(each.row_bytes for each in outputs.formats)
    if needed and tables.charged and tables.charged + needed > tables.config.budget_bytes:
        return _flush(edit)
    page = free_page(tables)
    if page is None:
        return Waiting(WaitedFor(page=True))

    return _reserve(edit, number, page, layout, outputs)


def _reserve(edit: Edit, number: StepId, page: int, layout: WriteLayout, outputs: SortedOutputs) -> SaveReserved:
    """R08: charge the clones before they are made, and take the page; whoever freezes publishes or cancels."""
    tables, tokens = edit.tables, len(layout.slots)
    immediate = tuple(each for each in outputs.formats if each.schedule is Schedule.JOIN_NEXT_STEP)
    deferred = tuple(each for each in outputs.formats if each.schedule is Schedule.JOIN_ON_FINISH)
    freeze = edit.number()
    immediate_clone = _clone(edit, immediate, tokens) if immediate else None
    deferred_clone = _clone(edit, deferred, tokens) if deferred else None
    charge(edit, immediate_clone, deferred_clone, freeze)
    clones = tuple(each for each in (immediate_clone, deferred_clone) if each is not None)
    edit.hold_page(page, (number, 0))
    reservation = Reservation(
        layout.requests,
        read_only(starts_of(layout)),
        layout.slots,
        immediate,
        deferred,
        outputs.formats,
        outputs.leftovers,
        outputs.registers,
        outputs.classes,
        clones,
        freeze,
    )
    step = tables.steps[number]
    edit.put(tables.steps, number, step._replace(phase=StepPhase.RESERVED, saved=reservation, page=page))
    edit.commands.append(
        FreezeRows(
            freeze,
            Lane.COMPUTE,
            (),
            number,
            tokens,
            clones,
            outputs.leftovers,
            outputs.registers,
            SavePublished(number),
            SaveCancelled(number),
        )
    )
    return SaveReserved(number, page)


def _started(tables: Tables, call: str) -> tuple[StepId, Step]:
    if not tables.pending:
        raise StepNotStartedError(call)
    step = tables.steps[tables.pending]
    if step.phase is StepPhase.RESERVED:
        raise SaveReservedError(tables.pending)
    return tables.pending, step


def _unwritten(tables: Tables) -> Waiting | None:
    """What is waited for follows from the state, so a call that is told again waits again (D11)."""
    written = tuple(sorted(tables.immediate))
    host_ready = tuple(sorted(tables.unready))
    return Waiting(WaitedFor(written=written, host_ready=host_ready)) if written or host_ready else None


def _flush(edit: Edit) -> Waiting:
    """R08, R10: queue every open write with a chunk on the oldest clone, whose ticket is waited for."""
    tables = edit.tables
    oldest = oldest_clone(tables)
    chunks = tables.chunks
    holders = np.unique(chunks.column(CHUNK_WRITE)[chunks.column(CHUNK_CLONE) == oldest]).tolist()
    # The table may still have chunks of writes that are gone.
    writes = [each for each in holders if each in tables.writes and tables.writes[each].phase is WritePhase.PENDING]
    queue_writes(edit, writes)
    edit.count("flushes", len(writes))
    return Waiting(WaitedFor(clone=oldest))


def _clone(edit: Edit, formats: tuple[RowFormat, ...], tokens: int) -> Clone:
    tables = edit.tables
    number = tables.next_clone
    tables.next_clone = number + 1
    return Clone(number, formats, tokens * sum(each.row_bytes for each in formats))


def _reserved(tables: Tables, number: StepId) -> tuple[Step, Reservation]:
    step = tables.steps.get(number) if is_number(number) else None
    if step is None or step.phase is not StepPhase.RESERVED or step.saved is None:
        raise SaveNotReservedError(number)
    return step, step.saved


def on_save_published(edit: Edit, event: SavePublished) -> StepSaved:
    """In one publication: claims and tenancy, new names, this step's reads, the snapshot, and the page's copy.

    Rules: R02, R04, R13, R14, R16, R21.

    Raises:
        ShutDownError, WriteFailedError: nothing is served any more (R12); cancel the save.
        SaveNotReservedError: no such save is reserved.
        IdentityNotComputedError: an identity is given for a block that is not computed.
    """
    tables = edit.tables
    check_serving(tables)
    number = event.step
    step, saved = _reserved(tables, number)
    check_identities(tables, number, saved.slots, event.computes)

    for each in saved.registers:
        edit.put(tables.formats, each.name, each)
        edit.put(tables.newest, each.name, np.zeros(tables.num_slots, dtype=np.int64))
    for name, held in saved.classes:
        edit.put(tables.classes, name, held)
    write = claim_rows(edit, number, step.page, saved)
    _set_identities(edit, saved.slots, (*step.computes, *event.computes))
    reads, unreadable = settle_reads(edit, number, step, saved.formats)
    tables.pending = 0
    edit.count("steps_saved")
    edit.count("over_budget", int(sum(each.bytes for each in saved.clones) > tables.config.budget_bytes))
    edit.count("unreadable_hits", len(unreadable))
    edit.put(
        tables.steps,
        number,
        step._replace(phase=StepPhase.SAVED, reads=reads, unreadable=unreadable, write=write),
    )
    edit.commands.append(
        CopyPage(
            edit.number(),
            Lane.COPY,
            (saved.freeze,),
            write,
            number,
            step.page,
            len(saved.slots),
            saved.clones,
            CopyBegan(write),
            CopyCompleted(write),
            WriteFailed(write),
        )
    )
    return StepSaved(number, write)


def _set_identities(edit: Edit, slots: Integers, computes: tuple[tuple[BlockId, ContentIdentity], ...]) -> None:
    """A block that is computed is what the engine says, or something unknown (R14)."""
    tables = edit.tables
    if tables.identities:
        blocks = slots // tables.config.block_size
        lost = np.unique(blocks[tables.named[blocks]])
        for block in lost.tolist():
            edit.remove(tables.identities, block)
        edit.assign(tables.named, lost, False)
    if computes:
        for block, identity in computes:
            edit.put(tables.identities, block, identity)
        edit.assign(tables.named, np.unique([block for block, _ in computes]), True)


def on_save_cancelled(edit: Edit, event: SaveCancelled) -> Done:
    """Freezing failed: clones, page and new names are given back, and the step waits to be saved again.

    Raises:
        SaveNotReservedError: no such save is reserved.
    """
    step, _ = _reserved(edit.tables, event.step)
    give_back(edit, step)
    started = step._replace(phase=StepPhase.STARTED, saved=None, page=-1)
    edit.put(edit.tables.steps, event.step, started)
    return Done()


def give_back(edit: Edit, step: Step) -> None:
    """R08: what a reserved save set aside is let go, once."""
    assert step.saved is not None
    let_go_step_clones(edit, [each.clone for each in step.saved.clones], step.saved.freeze)
    step_lets_go(edit, step.page)


def on_step_dropped(edit: Edit, event: StepDropped) -> Done:
    """The started step is given up: what it computed has no row under any name (R21, R22), and its reads are dropped.

    Raises:
        ShutDownError: the cache is shut down.
        StepNotStartedError, SaveReservedError: no step waits to be saved.
    """
    tables = edit.tables
    if tables.shut_down:
        raise ShutDownError
    number, step = _started(tables, "drop_step")
    slots = np.unique(event.slots[(event.slots >= 0) & (event.slots < tables.num_slots)])
    edit.assign(tables.tenancy, slots, tables.next_claim)
    tables.next_claim += 1
    _set_identities(edit, slots, ())
    for read in step.reads.values():
        drop_read(edit, read)
    edit.remove(tables.steps, number)
    tables.pending = 0
    edit.count("steps_dropped")
    return Done()
