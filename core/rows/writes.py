"""The life of writes: opened, queued, copied, scattered; and what happens when one fails (R05, R09, R10, R12, R16)."""

from collections.abc import Iterable
from typing import Final

import numpy as np

from tenure.core.arrays import Integers, read_only
from tenure.core.rows import reads
from tenure.core.rows.answers import Done, Ignored
from tenure.core.rows.buffers import freezes, let_go_clones, let_go_step_clones, write_lets_go
from tenure.core.rows.commands import CopyDeferred, Lane, ScatterPart, ScatterRows
from tenure.core.rows.edit import Edit
from tenure.core.rows.events import CopyBegan, CopyCompleted, ReadId, RequestId, ScatterCompleted, WriteFailed, WriteId
from tenure.core.rows.lifecycles import moved_write
from tenure.core.rows.names import RowFormat, Schedule
from tenure.core.rows.records import Failure, Write
from tenure.core.rows.tables import (
    CHUNK_CLAIM,
    CHUNK_CLONE,
    CHUNK_NAMES,
    CHUNK_PLACE,
    CHUNK_START,
    CHUNK_STOP,
    CHUNK_WRITE,
    Tables,
)
from tenure.core.rows.view import WritePhase

LATE: Final = Ignored("a reset forgot this write; what it held was given back as far as its device is done with it")


def open_chunks(tables: Tables, number: WriteId) -> Integers:
    """The rows of the chunk table that belong to a write, by column."""
    return read_only(tables.chunks.rows(np.flatnonzero(tables.chunks.column(CHUNK_WRITE) == number)))


def queue_writes(edit: Edit, numbers: Iterable[WriteId]) -> None:
    """R10: close open deferred writes to further chunks, and ask for their copies."""
    tables = edit.tables
    for number in numbers:
        write = tables.writes[number]
        chunks = open_chunks(tables, number)
        slots = read_only(tables.slots_of(chunks))
        edit.remove(tables.open_write, write.request)
        # Where the slots stand in the table changes, and is no part of what a state holds.
        closed = chunks.copy()
        closed[CHUNK_PLACE] = 0
        kept = write._replace(phase=WritePhase.QUEUED, chunks=read_only(closed), slots=slots)
        edit.put(tables.writes, number, kept)
        edit.commands.append(_copy_deferred(edit, number, chunks))


def _copy_deferred(edit: Edit, number: WriteId, chunks: Integers) -> CopyDeferred:
    starts, stops = chunks[CHUNK_START], chunks[CHUNK_STOP]
    return CopyDeferred(
        edit.number(),
        Lane.COPY,
        freezes(edit.tables, chunks[CHUNK_CLONE]),
        number,
        _formats_of(edit.tables, chunks),
        int((stops - starts).sum()),
        chunks[CHUNK_CLONE],
        starts,
        stops,
        CopyBegan(number),
        CopyCompleted(number),
        WriteFailed(number),
    )


def _formats_of(tables: Tables, chunks: Integers) -> tuple[RowFormat, ...]:
    numbers = set(chunks[CHUNK_NAMES].tolist())
    formats = [each for names, number in tables.signatures.items() if number in numbers for each in names]
    return tuple(dict.fromkeys(formats))


def end_request(edit: Edit, request: RequestId) -> None:
    """R10: a live request ended: its open write is queued, and the next save waits for what is not on the host."""
    tables = edit.tables
    edit.remove(tables.live, request)
    number = tables.open_write.get(request)
    if number is not None:
        queue_writes(edit, (number,))
    for each in tables.writes_of.get(request, ()):
        write = tables.writes[each]
        edit.put(tables.writes, each, write._replace(ended=True))
        if write.phase in (WritePhase.QUEUED, WritePhase.COPYING):
            edit.put(tables.unready, each, None)
    edit.remove(tables.writes_of, request)


def on_copy_began(edit: Edit, event: CopyBegan) -> Done | Ignored:
    """A device took the copy of a write.

    Raises:
        WriteOrderError: the write does not wait for it (R09).
    """
    write = moved_write(edit.tables, event)
    edit.put(edit.tables.writes, event.write, write._replace(phase=WritePhase.COPYING))
    return LATE if write.fenced else Done()


def on_copy_completed(edit: Edit, event: CopyCompleted) -> Done | Ignored:
    """The rows of a write are on the host: its clones are let go, and what it still owns goes to the pool.

    Raises:
        WriteOrderError: the write is not being copied (R09).
    """
    tables = edit.tables
    write = moved_write(tables, event)
    _let_go_clones_of(edit, event.write, write, freeze=0)
    edit.remove(tables.unready, event.write)
    if write.fenced:
        _end(edit, event.write, write)
        return LATE
    write = write._replace(phase=WritePhase.HOST_READY, clones=())
    edit.put(tables.writes, event.write, write)
    parts = _parts(tables, write)
    if parts:
        page = write.page if write.schedule is Schedule.JOIN_NEXT_STEP else None
        after = tuple(tables.reads[each].command for each in sorted(tables.running) if _overwrites(tables, write, each))
        answers = ScatterCompleted(event.write), WriteFailed(event.write)
        edit.commands.append(ScatterRows(edit.number(), Lane.POOL, after, event.write, page, parts, *answers))
    else:
        _written(edit, event.write, write)
    return Done()


def _parts(tables: Tables, write: Write) -> tuple[ScatterPart, ...]:
    """R05, R16: the rows whose newest claim is still this write's."""
    slots, chunks = write.slots, write.chunks
    assert slots is not None
    if chunks is None:
        # The next save waits until an immediate write is WRITTEN, so nothing can have claimed its slots since.
        rows = read_only(np.arange(len(slots), dtype=np.int64))
        return tuple(ScatterPart(name, rows, slots) for name in write.names)
    claims = np.repeat(chunks[CHUNK_CLAIM], chunks[CHUNK_STOP] - chunks[CHUNK_START])
    parts: list[ScatterPart] = []
    for each in _formats_of(tables, chunks):
        rows = np.flatnonzero(tables.newest[each.name][slots] == claims)
        if len(rows):
            parts.append(ScatterPart(each.name, read_only(rows), read_only(slots[rows])))
    return tuple(parts)


def _overwrites(tables: Tables, write: Write, number: ReadId) -> bool:
    """R13, R20, R23: whether a scatter writes a pool row that a running read reads, dropped or not."""
    read = tables.reads[number]
    assert read.pool is not None
    newest = tables.newest[read.format.name][read.slots[read.pool]]
    if write.chunks is not None:
        return bool(np.isin(newest, write.chunks[CHUNK_CLAIM]).any())
    return read.format.name in write.names and bool((newest == write.claim).any())


def on_scatter_completed(edit: Edit, event: ScatterCompleted) -> Done | Ignored:
    """The rows of a write are in the pool.

    Raises:
        WriteOrderError: the write is not on the host (R09).
    """
    write = moved_write(edit.tables, event)
    if write.fenced:
        _end(edit, event.write, write)
        return LATE
    _written(edit, event.write, write)
    return Done()


def _written(edit: Edit, number: WriteId, write: Write) -> None:
    _end(edit, number, write)
    if write.schedule is Schedule.JOIN_NEXT_STEP:
        reads.stop_awaiting(edit, number)


def _end(edit: Edit, number: WriteId, write: Write) -> None:
    """WRITTEN, or as far as a fenced write gets: the page is let go, and the host rows when no read holds them."""
    tables = edit.tables
    write_lets_go(edit, write.page)
    _unlist(edit, number, write)
    edit.put(tables.writes, number, write._replace(phase=WritePhase.WRITTEN))
    reads.release_host_rows(edit, number)


def _unlist(edit: Edit, number: WriteId, write: Write) -> None:
    """The write is open no more."""
    tables = edit.tables
    edit.remove(tables.immediate, number)
    if write.request is not None and not write.ended and not write.fenced:
        others = tuple(each for each in tables.writes_of[write.request] if each != number)
        edit.put(tables.writes_of, write.request, others)
    if write.chunks is not None and not write.fenced:
        tables.dead_chunks += write.chunks.shape[1]


def on_write_failed(edit: Edit, event: WriteFailed) -> Done | Ignored:
    """R12: the rows of a write are lost; every start, save and materialize is refused until a reset.

    Raises:
        WriteOrderError: the write ended already (R09).
    """
    tables = edit.tables
    write = moved_write(tables, event)
    if write.phase is not WritePhase.HOST_READY:
        _let_go_clones_of(edit, event.write, write, freeze=write.freeze)
    if write.fenced:
        _end(edit, event.write, write)
        return LATE
    write_lets_go(edit, write.page)
    _unlist(edit, event.write, write)
    edit.remove(tables.unready, event.write)
    if write.phase is WritePhase.PENDING:
        edit.remove(tables.open_write, write.request)
    edit.put(tables.writes, event.write, write._replace(phase=WritePhase.FAILED, page=-1, clones=()))
    # Its host rows go with the last read that holds them, or now.
    reads.release_host_rows(edit, event.write)
    reads.fail_with_write(edit, event.write)
    if tables.failure is None:
        tables.failure = Failure(event.write, write.step, event.reason)
    return Done()


def _let_go_clones_of(edit: Edit, number: WriteId, write: Write, *, freeze: int) -> None:
    if write.schedule is Schedule.JOIN_NEXT_STEP:
        let_go_step_clones(edit, write.clones, freeze)
    else:
        chunks = open_chunks(edit.tables, number) if write.chunks is None else write.chunks
        let_go_clones(edit, chunks[CHUNK_CLONE])
