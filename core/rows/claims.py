"""Claims of a step: who holds its slots from now on (R03, R04, R16, R21).

One claim for all immediate rows of the step, one chunk with a claim of its own per request for its deferred rows; all
larger than any claim before. The smallest is the tenancy number of the step's slots.
"""

import numpy as np

from tenure.core.columns import spans
from tenure.core.rows import reads
from tenure.core.rows.buffers import hold_clones
from tenure.core.rows.edit import Edit
from tenure.core.rows.events import StepId, WriteId
from tenure.core.rows.names import RowFormat, Schedule
from tenure.core.rows.records import Reservation, Write
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


def claim_rows(edit: Edit, step: StepId, page: int, saved: Reservation) -> WriteId:
    """Claim the slots of a step for its writes, and give back the number of its immediate write."""
    tables = edit.tables
    slots = saved.slots
    first = tables.next_claim
    # R21: what the step does not emit becomes ABSENT, since its newest claim is older than this number.
    edit.assign(tables.tenancy, slots, first)
    reads.preserve(edit, step, slots, first, frozenset(each.name for each in saved.formats))
    edit.assign(tables.batch_row, slots, np.arange(len(slots), dtype=np.int64))
    # R04: a step without claims uses up one number.
    tables.next_claim = first + 1
    number = tables.next_write
    tables.next_write = number + 1
    for each in saved.immediate:
        edit.assign(tables.newest[each.name], slots, first)
    clones = tuple(each.clone for each in saved.clones)
    names = tuple(each.name for each in saved.immediate)
    claim = first if names else 0
    write = Write(
        Schedule.JOIN_NEXT_STEP, WritePhase.QUEUED, step, None, claim, page, slots, clones, saved.freeze, names
    )
    edit.put(tables.writes, number, write)
    edit.put(tables.immediate, number, None)
    edit.hold_page(page, (step, number))
    if saved.deferred:
        _claim_chunks(edit, step, saved, first + len(names[:1]))
    return number


def _claim_chunks(edit: Edit, step: StepId, saved: Reservation, first: int) -> None:
    """R16: one chunk per request with rows, in a range of claims; it goes to the request's open write, or a new one."""
    tables = edit.tables
    starts, stops = saved.starts[:-1], saved.starts[1:]
    having = np.flatnonzero(stops > starts)
    starts, stops = starts[having], stops[having]
    claims = np.arange(first, first + len(having), dtype=np.int64)
    tables.next_claim = first + len(having)
    for each in saved.deferred:
        edit.assign(tables.newest[each.name], saved.slots, np.repeat(claims, stops - starts))
    requests = [saved.batch[place] for place in having.tolist()]
    writes = np.array([tables.open_write.get(request, 0) for request in requests], dtype=np.int64)
    for place in np.flatnonzero(writes == 0).tolist():
        writes[place] = _open(edit, step, requests[place])
    _compact(edit)
    clone = saved.clones[-1].clone
    places = len(tables.chunk_slots) + starts
    chunks = np.empty((7, len(having)), dtype=np.int64)
    chunks[CHUNK_CLAIM], chunks[CHUNK_WRITE], chunks[CHUNK_CLONE] = claims, writes, clone
    chunks[CHUNK_START], chunks[CHUNK_STOP] = starts, stops
    chunks[CHUNK_NAMES], chunks[CHUNK_PLACE] = _signature(edit, saved.deferred), places
    edit.extend(tables.chunk_slots, saved.slots[None, :])
    edit.extend(tables.chunks, chunks)
    # R08: all holders of the clone are known before any can let go; the immediate write is one, since the page's
    # copy reads the clone.
    hold_clones(edit, np.array([clone], dtype=np.int64), len(having))


def _open(edit: Edit, step: StepId, request: int | str) -> WriteId:
    tables = edit.tables
    number = tables.next_write
    tables.next_write = number + 1
    edit.put(tables.writes, number, Write(Schedule.JOIN_ON_FINISH, WritePhase.PENDING, step, request))
    edit.put(tables.open_write, request, number)
    edit.put(tables.writes_of, request, (*tables.writes_of.get(request, ()), number))
    return number


def _signature(edit: Edit, formats: tuple[RowFormat, ...]) -> int:
    """The number of a combination of names."""
    signatures = edit.tables.signatures
    if formats not in signatures:
        edit.put(signatures, formats, len(signatures))
    return signatures[formats]


def _compact(edit: Edit) -> None:
    """Forget the chunks of writes that ended, when they are the larger part of the table."""
    tables = edit.tables
    if 2 * tables.dead_chunks <= len(tables.chunks):
        return
    kept = tables.chunks.chosen(np.isin(tables.chunks.column(CHUNK_WRITE), _open_writes(tables)))
    chunks = kept[0:]
    places = chunks[CHUNK_PLACE]
    lengths = chunks[CHUNK_STOP] - chunks[CHUNK_START]
    rows = spans(places, places + lengths)
    slots = tables.chunk_slots.rows(rows)
    kept[CHUNK_PLACE, np.arange(len(kept))] = np.cumsum(lengths) - lengths
    edit.replace("chunks", kept)
    edit.replace("chunk_slots", type(kept)(slots))
    tables.dead_chunks = 0


def _open_writes(tables: Tables) -> list[WriteId]:
    return [number for number, write in tables.writes.items() if write.phase is not WritePhase.WRITTEN]
