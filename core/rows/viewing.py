"""Makes a `RowView` of the tables: the only place that shows them to the outside as a whole."""

from itertools import accumulate, pairwise

import numpy as np

from tenure.core.requests import sorted_requests
from tenure.core.rows.names import NameId, Schedule
from tenure.core.rows.records import Read, Step, Write
from tenure.core.rows.tables import (
    CHUNK_CLAIM,
    CHUNK_CLONE,
    CHUNK_NAMES,
    CHUNK_START,
    CHUNK_STOP,
    CLONE_BYTES,
    CLONE_HOLDERS,
    CLONE_ID,
    Tables,
)
from tenure.core.rows.view import (
    CloneView,
    FencedWrite,
    ReadView,
    RowCounters,
    RowView,
    StepPhase,
    StepView,
    WritePhase,
    WriteView,
)
from tenure.core.rows.writes import open_chunks


def view_of(tables: Tables) -> RowView:
    """Everything the tables hold, as plain data that shares nothing mutable with them."""
    writes = sorted(tables.writes.items())
    return RowView(
        config=tables.config,
        policy=tables.policy,
        formats=tuple(tables.formats.values()),
        classes=dict(tables.classes),
        newest={name: tuple(claims.tolist()) for name, claims in tables.newest.items()},
        tenancy=tuple(tables.tenancy.tolist()),
        floor=tables.floor,
        next_claim=tables.next_claim,
        next_step=tables.next_step,
        next_write=tables.next_write,
        next_read=tables.next_read,
        next_clone=tables.next_clone,
        live={request: tables.open_write.get(request) for request in sorted_requests(tables.live)},
        writes={number: _write_view(tables, number, write) for number, write in writes if not write.fenced},
        fenced={number: _fenced(write) for number, write in writes if write.fenced},
        clones=_clones(tables),
        charged=tables.charged,
        pages=tuple(
            frozenset(holder for holder in (("step", step), ("write", write)) if holder[1])
            for step, write in tables.pages
        ),
        fenced_steps={
            number: step.page if step.page >= 0 else None for number, step in sorted(tables.fenced_steps.items())
        },
        steps={number: _step_view(step) for number, step in sorted(tables.steps.items())},
        pending=tables.pending or None,
        reads={number: _read_view(read) for number, read in sorted(tables.reads.items())},
        identities=dict(sorted(tables.identities.items())),
        failure=tables.failure.write if tables.failure else None,
        shut_down=tables.shut_down,
        counters=RowCounters(**tables.counters),
    )


def _write_view(tables: Tables, number: int, write: Write) -> WriteView:
    if write.schedule is Schedule.JOIN_NEXT_STEP:
        assert write.slots is not None
        slots = tuple(write.slots.tolist())
        claims: tuple[tuple[int, tuple[int, ...]], ...] = ((write.claim, slots),) if write.claim else ()
        names = write.names
    else:
        chunks = open_chunks(tables, number) if write.chunks is None else write.chunks
        rows = (tables.slots_of(chunks) if write.slots is None else write.slots).tolist()
        ends = list(accumulate((chunks[CHUNK_STOP] - chunks[CHUNK_START]).tolist(), initial=0))
        claims = tuple(
            (claim, tuple(rows[start:end]))
            for claim, (start, end) in zip(chunks[CHUNK_CLAIM].tolist(), pairwise(ends), strict=True)
        )
        names = _names_of(tables, chunks[CHUNK_NAMES].tolist())
    return WriteView(
        schedule=write.schedule,
        phase=write.phase,
        step=write.step,
        request=write.request,
        claims=claims,
        names=names,
        page=write.page if write.page >= 0 else None,
        ended=write.ended,
    )


def _names_of(tables: Tables, numbers: list[int]) -> tuple[NameId, ...]:
    """The names of some combinations, in order of registration."""
    names = {each.name for formats, number in tables.signatures.items() if number in numbers for each in formats}
    return tuple(name for name in tables.formats if name in names)


def _fenced(write: Write) -> FencedWrite:
    clones = write.clones
    if write.chunks is not None and write.phase in (WritePhase.QUEUED, WritePhase.COPYING):
        clones = tuple(write.chunks[CHUNK_CLONE].tolist())
    return FencedWrite(write.phase, write.page if write.page >= 0 else None, clones)


def _clones(tables: Tables) -> dict[int, CloneView]:
    clones = {number: CloneView(size, 1) for number, size in tables.immediate_clones.items()}
    if len(tables.clones):
        columns = (tables.clones.column(place).tolist() for place in (CLONE_ID, CLONE_BYTES, CLONE_HOLDERS))
        rows = zip(*columns, strict=True)
        clones |= {number: CloneView(size, holders) for number, size, holders in rows if holders}
    return dict(sorted(clones.items()))


def _step_view(step: Step) -> StepView:
    saved = step.saved
    is_saved = step.phase in (StepPhase.SAVED, StepPhase.CONSUMING)
    batch = tuple(step.scheduled.items())
    if saved is not None and is_saved:
        lengths = (stop - start for start, stop in pairwise(saved.starts.tolist()))
        batch = tuple(zip(saved.batch, lengths, strict=True))
    return StepView(
        phase=step.phase,
        batch=batch,
        hits=tuple((hit.request, tuple(hit.slots.tolist())) for hit in step.hits),
        names=tuple(each.name for each in saved.formats) if saved is not None and is_saved else (),
        leftovers=saved.leftovers if saved is not None and is_saved else (),
        write=step.write or None,
        page=step.page if step.page >= 0 else None,
        unreadable=step.unreadable,
        reads=tuple((*key, number) for key, number in step.reads.items()),
    )


def _read_view(read: Read) -> ReadView:
    preserved = () if read.preserved is None else tuple(np.flatnonzero(read.preserved).tolist())
    if read.pool is not None:
        pool = read.pool
    else:
        pool = (read.claims > 0) & (read.writes == 0)
        if read.preserved is not None:
            pool = pool & ~read.preserved
    return ReadView(
        phase=read.phase,
        step=read.step,
        request=read.request,
        name=read.format.name,
        slots=tuple(read.slots.tolist()),
        claims=tuple(read.claims.tolist()),
        pool=tuple(np.flatnonzero(pool).tolist()),
        preserved=preserved,
        writes=read.holds,
        clones=read.clones,
        awaits=read.awaits,
        confirmed=read.confirmed,
    )
