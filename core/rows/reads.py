"""The life of reads: planned, settled by the save of their step, preserved, run, dropped (R13, R14, R20, R23).

A read is planned with the claim of every row. Until a backend begins it, what later steps claim is set aside for it;
from then on what overwrites its pool rows is ordered behind it.
"""

from typing import Final

import numpy as np
import numpy.typing as npt

from tenure.core.arrays import Integers, read_only
from tenure.core.errors import ReadOrderError
from tenure.core.errors.base import number_list
from tenure.core.rows.answers import Done, Ignored
from tenure.core.rows.buffers import freezes, hold_clones, let_go_clones
from tenure.core.rows.commands import (
    GatherPart,
    GatherRows,
    Lane,
    PreserveRows,
    ScheduleGather,
    SourceKind,
)
from tenure.core.rows.edit import Edit
from tenure.core.rows.events import Claim, GatherBegan, GatherCompleted, GatherFailed, ReadId, StepId, WriteId
from tenure.core.rows.lifecycles import READ_DROPS, moved_read
from tenure.core.rows.names import NameId, RowFormat, Schedule
from tenure.core.rows.records import Hit, Read
from tenure.core.rows.tables import CHUNK_CLAIM, CHUNK_CLONE, CHUNK_START, CHUNK_STOP, CHUNK_WRITE, Tables
from tenure.core.rows.view import ReadPhase, WritePhase

LATE: Final = Ignored("this read was dropped, or failed, before it began")
_BEFORE_HOST: Final = (WritePhase.PENDING, WritePhase.QUEUED, WritePhase.COPYING)


# --- Planning -------------------------------------------------------------------------------------------------


def hit_claims(tables: Tables, name: NameId, hit: Hit) -> Integers:
    """The effective claim of each row of a hit; 0 for none, and in blocks that hold something else (R14).

    Shapes: result `[len(hit.slots)]`.
    """
    claims = tables.effective(name, hit.slots)
    if hit.expects:
        pairs = zip(hit.blocks, hit.expects, strict=True)
        holds = [tables.identities.get(block) == identity for block, identity in pairs]
        claims = np.where(np.repeat(holds, tables.config.block_size), claims, 0)
    return claims


def plan_read(edit: Edit, step: StepId, hit: Hit, row_format: RowFormat, claims: Integers) -> ReadId:
    """Plan a read of a hit span for one name, of the rows with these claims."""
    tables = edit.tables
    number = tables.next_read
    tables.next_read = number + 1
    writes = _open_deferred(tables, claims) if row_format.schedule is Schedule.JOIN_ON_FINISH else np.zeros_like(claims)
    holds = tuple(int(each) for each in np.unique(writes[writes > 0]))
    awaits = tuple(each for each in sorted(tables.immediate) if (claims == _claim(tables, each, row_format)).any())
    read = Read(
        ReadPhase.PLANNED,
        step,
        hit.request,
        row_format,
        hit.slots,
        read_only(claims),
        read_only(writes),
        read_only(tables.batch_row[hit.slots]),
        holds,
        awaits,
    )
    for each in holds:
        write = tables.writes[each]
        edit.put(tables.writes, each, write._replace(readers=(*write.readers, number)))
    edit.put(tables.reads, number, read)
    edit.put(tables.planned, number, None)
    edit.assign(tables.wanted, hit.slots, tables.wanted[hit.slots] + 1)
    if awaits:
        edit.count("waits_for_in_transit")
    else:
        _schedule(edit, number)
    return number


def _claim(tables: Tables, write: WriteId, row_format: RowFormat) -> int:
    """The claim of an immediate write, if it moves this name; else one that no row has."""
    record = tables.writes[write]
    return record.claim if row_format.name in record.names else -1


def _open_deferred(tables: Tables, claims: Integers) -> Integers:
    """Per claim the deferred write that holds its chunk, 0 if it is WRITTEN (or none). Shapes: `[k]` both."""
    places = tables.chunks.find(claims)
    found = places >= 0
    writes = np.zeros_like(claims)
    writes[found] = tables.chunks.column(CHUNK_WRITE)[places[found]]
    for each in np.unique(writes[found]):
        write = tables.writes.get(int(each))
        if write is None or write.phase is WritePhase.WRITTEN:
            writes[writes == each] = 0
    return writes


def _schedule(edit: Edit, number: ReadId) -> None:
    # R11: as soon as its sources are ready, whoever wants it or not, so that nobody waits for a consumer.
    edit.commands.append(ScheduleGather(edit.number(), Lane.GATHER, (), number, GatherBegan(number)))


def stop_awaiting(edit: Edit, write: WriteId) -> None:
    """An immediate write is WRITTEN: reads that waited for it may start."""
    tables = edit.tables
    for number in sorted(tables.planned):
        read = tables.reads[number]
        if write in read.awaits:
            # It was the only one: a save waits until the immediate write before it is WRITTEN.
            edit.put(tables.reads, number, read._replace(awaits=()))
            _schedule(edit, number)


def preserve(edit: Edit, step: StepId, slots: Integers, tenancy: Claim, names: frozenset[NameId]) -> None:
    """R13, X03: before a step claims its slots, set aside the pool rows that planned reads of other steps will read.

    The slots have their new tenancy number already, and not yet their new claims. Only rows whose planned claim is
    still the newest raw one: what was claimed again before was set aside then. Shapes: `slots: [k]`.
    """
    tables = edit.tables
    if not tables.wanted[slots].any():
        return
    for number in sorted(tables.planned):
        read = tables.reads[number]
        if read.step == step or read.format.name not in names:
            continue
        newest = tables.newest[read.format.name][read.slots]
        in_pool = (read.claims > 0) & (read.writes == 0) & (newest == read.claims)
        rows = np.flatnonzero(in_pool & (tables.tenancy[read.slots] == tenancy))
        if not len(rows):
            continue
        command = edit.number()
        preserved = np.zeros(len(read.slots), dtype=np.bool_) if read.preserved is None else read.preserved.copy()
        preserved[rows] = True
        preserves = (*read.preserves, command)
        edit.put(tables.reads, number, read._replace(preserved=read_only(preserved), preserves=preserves))
        edit.count("rows_preserved", len(rows))
        edit.commands.append(
            PreserveRows(
                command,
                Lane.POOL,
                (),
                number,
                read.format,
                read_only(rows),
                read_only(read.slots[rows]),
                GatherFailed(number),
            )
        )


# --- Running --------------------------------------------------------------------------------------------------


def on_gather_began(edit: Edit, event: GatherBegan) -> Done | Ignored:
    """A backend begins a read: its sources are fixed, and `GatherRows` names them.

    Raises:
        ReadOrderError: the read waits for a write, runs already, has ended, or never was.
    """
    tables = edit.tables
    read = moved_read(tables, event)
    if read is None:
        return LATE
    if read.awaits:
        raise ReadOrderError(event.read, f"waiting for writes {number_list(read.awaits)}", "GatherBegan")
    command = edit.number()
    parts, pool = _parts(tables, read)
    clones = np.unique(np.concatenate([part.sources for part in parts if part.kind is SourceKind.CLONE] or [_NONE]))
    hold_clones(edit, clones)
    after = tuple(sorted({*read.preserves, *freezes(tables, clones)}))
    held = tuple(int(each) for each in clones)
    _leave_planned(edit, event.read, read)
    edit.put(tables.running, event.read, None)
    edit.put(
        tables.reads,
        event.read,
        read._replace(phase=ReadPhase.RUNNING, clones=held, pool=read_only(pool), command=command),
    )
    answers = GatherCompleted(event.read), GatherFailed(event.read)
    edit.commands.append(
        GatherRows(command, Lane.GATHER, after, event.read, read.format, len(read.slots), parts, *answers)
    )
    return Done()


_NONE: Final = np.empty(0, dtype=np.int64)


def _parts(tables: Tables, read: Read) -> tuple[tuple[GatherPart, ...], npt.NDArray[np.bool_]]:
    """Where each row of a read comes from, and which rows come from the pool; rows of claim 0 are in no part."""
    aside = np.zeros(len(read.slots), dtype=np.bool_) if read.preserved is None else read.preserved
    pool = (read.claims > 0) & (read.writes == 0) & ~aside
    parts: list[GatherPart] = []
    for kind, chosen in ((SourceKind.POOL, pool), (SourceKind.PRESERVED, aside)):
        rows = np.flatnonzero(chosen)
        if len(rows):
            source_rows = read.slots[rows] if kind is SourceKind.POOL else rows
            parts.append(GatherPart(kind, read_only(np.zeros_like(rows)), read_only(source_rows), read_only(rows)))
    parts += _buffer_parts(tables, read)
    return tuple(parts), pool


def _buffer_parts(tables: Tables, read: Read) -> list[GatherPart]:
    """The rows of open deferred writes: from clones before HOST_READY, from host rows afterwards."""
    before = [each for each in read.holds if tables.writes[each].phase in _BEFORE_HOST]
    from_clones = np.flatnonzero(np.isin(read.writes, before))
    parts: list[GatherPart] = []
    if len(from_clones):
        places = tables.chunks.find(read.claims[from_clones])
        clones = tables.chunks.column(CHUNK_CLONE)[places]
        batch_rows = read.batch_rows[from_clones]
        parts.append(GatherPart(SourceKind.CLONE, read_only(clones), read_only(batch_rows), read_only(from_clones)))
    from_host = np.flatnonzero((read.writes > 0) & ~np.isin(read.writes, before))
    if len(from_host):
        host_rows = np.zeros(len(from_host), dtype=np.int64)
        writes = read.writes[from_host]
        for each in np.unique(writes):
            mine = writes == each
            chosen = from_host[mine]
            host_rows[mine] = _host_rows(tables, int(each), read.claims[chosen], read.batch_rows[chosen])
        parts.append(GatherPart(SourceKind.HOST, read_only(writes), read_only(host_rows), read_only(from_host)))
    return parts


def _host_rows(tables: Tables, write: WriteId, claims: Integers, batch_rows: Integers) -> Integers:
    """Where in the host rows of a closed write the rows of these claims are. Shapes: `[k]` all."""
    chunks = tables.writes[write].chunks
    assert chunks is not None
    lengths = chunks[CHUNK_STOP] - chunks[CHUNK_START]
    places = np.searchsorted(chunks[CHUNK_CLAIM], claims)
    rows: Integers = (np.cumsum(lengths) - lengths)[places] + batch_rows - chunks[CHUNK_START][places]
    return rows


def on_gather_completed(edit: Edit, event: GatherCompleted) -> Done | Ignored:
    """The rows of a read are in its buffer.

    Raises:
        ReadOrderError: the read does not run.
    """
    read = moved_read(edit.tables, event)
    assert read is not None
    return _stop(edit, event.read, read, ReadPhase.DONE, "")


def on_gather_failed(edit: Edit, event: GatherFailed) -> Done | Ignored:
    """A read, or a preserve for it, failed: its request cannot be served by this step.

    Raises:
        ReadOrderError: the read is done, or never was.
    """
    read = moved_read(edit.tables, event)
    if read is None:
        return LATE
    return _stop(edit, event.read, read, ReadPhase.FAILED, event.reason)


def _stop(edit: Edit, number: ReadId, read: Read, phase: ReadPhase, reason: str) -> Done | Ignored:
    """A read runs no more, and holds nothing but its buffer; R23: one that was dropped is gone now."""
    tables = edit.tables
    _leave_planned(edit, number, read)
    edit.remove(tables.running, number)
    was_left = read.phase is ReadPhase.LEFT
    if was_left:
        edit.remove(tables.reads, number)
        edit.release_read(number, read.preserves)
    else:
        stopped = read._replace(phase=phase, reason=reason, holds=(), clones=(), awaits=())
        edit.put(tables.reads, number, stopped)
    _let_go(edit, number, read)
    return Ignored("this read was dropped while it was running") if was_left else Done()


def _leave_planned(edit: Edit, number: ReadId, read: Read) -> None:
    tables = edit.tables
    if number in tables.planned:
        edit.remove(tables.planned, number)
        edit.assign(tables.wanted, read.slots, tables.wanted[read.slots] - 1)


def _let_go(edit: Edit, number: ReadId, read: Read) -> None:
    tables = edit.tables
    if read.clones:
        let_go_clones(edit, np.array(read.clones, dtype=np.int64))
    for each in read.holds:
        write = tables.writes[each]
        readers = tuple(other for other in write.readers if other != number)
        edit.put(tables.writes, each, write._replace(readers=readers))
        release_host_rows(edit, each)


def release_host_rows(edit: Edit, number: WriteId) -> None:
    """Free the host rows of a deferred write that has ended, if no read holds them; a WRITTEN one is gone then."""
    write = edit.tables.writes[number]
    if write.readers or write.phase not in (WritePhase.WRITTEN, WritePhase.FAILED):
        return
    if write.phase is WritePhase.WRITTEN:
        edit.remove(edit.tables.writes, number)
    if write.chunks is not None:
        edit.release_host_rows(number)


def drop_read(edit: Edit, number: ReadId) -> None:
    """Nobody wants a read any more. R23: what runs keeps its edge and its buffer until it ends."""
    tables = edit.tables
    read = tables.reads[number]
    if read.phase is ReadPhase.LEFT:
        return
    edit.count("reads_dropped")
    if READ_DROPS[read.phase] is ReadPhase.LEFT:
        edit.put(tables.reads, number, read._replace(phase=ReadPhase.LEFT))
        return
    forget_read(edit, number)


def forget_read(edit: Edit, number: ReadId) -> None:
    """A read that does not run is gone, with everything that it holds."""
    tables = edit.tables
    read = tables.reads[number]
    edit.remove(tables.reads, number)
    _leave_planned(edit, number, read)
    # One that failed with its write before it began has no buffer.
    if read.command or read.preserves:
        edit.release_read(number, read.preserves)
    _let_go(edit, number, read)


def fail_with_write(edit: Edit, write: WriteId) -> None:
    """R12: reads that would read what a write lost fail with it; one that is at it is dropped, and left to end."""
    tables = edit.tables
    for number in sorted(tables.planned):
        read = tables.reads[number]
        if write in read.awaits or write in read.holds:
            _stop(edit, number, read, ReadPhase.FAILED, f"write {write} failed")
    for number in sorted(tables.running):
        read = tables.reads[number]
        if write in read.holds and read.phase is ReadPhase.RUNNING:
            edit.put(tables.reads, number, read._replace(phase=ReadPhase.LEFT))
            step = tables.steps[read.step]
            reads = {key: other for key, other in step.reads.items() if other != number}
            edit.put(tables.steps, read.step, step._replace(reads=reads))
