"""Steps of a joined cache: scheduled, started, saved or dropped, their layout made from the leases (X01 to X04)."""

from dataclasses import replace

import numpy as np

from tenure.core.arrays import Integers, read_only
from tenure.core.blocks import values as block_values
from tenure.core.blocks.leases import find_lease
from tenure.core.blocks.tables import PRIVATE, Lease
from tenure.core.config import as_int
from tenure.core.errors import (
    HiddenMissingError,
    InvariantViolation,
    RowsOwedError,
    ScheduledBeyondError,
    ScheduledTwiceError,
    StepNotSavedError,
    StepNotStartedError,
    UnauthorizedWriteError,
)
from tenure.core.joined.state import CacheState, CacheTransition, tell_blocks, tell_rows
from tenure.core.joined.values import (
    BatchSaveRequested,
    BlockId,
    CacheCommand,
    RequestId,
    Scheduled,
    StartedBatch,
    TokensScheduled,
    Track,
)
from tenure.core.rows import events
from tenure.core.rows import machine as row_machine
from tenure.core.rows.events import ContentIdentity
from tenure.core.rows.names import HIDDEN


def on_tokens_scheduled(state: CacheState, event: TokensScheduled) -> CacheTransition:
    """Put further tokens of a request into the next step.

    Rules: X02; with visibility "scheduled" X01: the blocks that they fill become visible.

    Raises:
        UnknownLeaseError, ScheduledTwiceError, ScheduledBeyondError: nobody, twice, or too many.
        UnauthorizedWriteError: the lease's writes wait for a transfer.
        InvariantViolation: a token lies in a block that others may read, which is our own fault (X02).
    """
    lease = find_lease(state.blocks.tables, event.request)
    track = state.tracks[event.request]
    if track.is_scheduled:
        raise ScheduledTwiceError(event.request)
    tokens = as_int(event.tokens) or 0
    # A started step may still compute tokens of this request; the next one goes on behind them.
    before = track.ahead or track.computed
    after = before + tokens
    if tokens < 1 or after > min(lease.allocated, lease.length):
        raise ScheduledBeyondError(event.request, before, event.tokens, lease.allocated, lease.length)
    if lease.pending is not None:
        raise UnauthorizedWriteError(event.request, lease.copies[lease.pending.start], lease.pending.dependencies)
    size = state.config.blocks.block_size
    counts = state.blocks.tables.copies
    for position in range(before // size, -(-after // size)):
        block = lease.copies[position]
        if counts[block] != PRIVATE and state.unsaved.get(block) != event.request:
            raise InvariantViolation(
                "X02", f"request {event.request!r} computes tokens of block {block}, which is shared"
            )
    scheduled = Scheduled(event.request, before, after)
    state = replace(state, tracks=state.tracks.set(event.request, track._replace(is_scheduled=True)))
    if state.config.visibility == "computed":
        return CacheTransition(replace(state, batch=(*state.batch, scheduled)), block_values.Done(), ())
    return _published(replace(state, batch=(*state.batch, scheduled)), scheduled)


def _published(state: CacheState, scheduled: Scheduled) -> CacheTransition:
    """Tell the block machine that tokens are computed; with visibility "scheduled" their rows are still to come."""
    request, after = scheduled.request, scheduled.after
    track, size = state.tracks[request], state.config.blocks.block_size
    if after // size <= track.published // size:
        return CacheTransition(state, block_values.Done(), ())
    told = tell_blocks(state, block_values.TokensComputed(request, track.published, after))
    tracks = state.tracks.set(request, track._replace(published=after))
    state = replace(told.state, tracks=tracks)
    if state.config.visibility == "scheduled":
        tables = state.blocks.tables
        lease = find_lease(tables, request)
        filled = lease.copies[track.published // size : after // size] if tables.shares(lease) else []
        state = replace(state, unsaved=state.unsaved.update(dict.fromkeys(filled, request)))
    return told._replace(state=state)


def on_batch_started(state: CacheState) -> CacheTransition:
    """Start the step of everything that is scheduled; requests that ended are told to the row machine first.

    Raises:
        RowsOwedError: a hit lies on blocks whose rows nobody in the batch computes (X01).
        StepNotSavedError, ShutDownError, WriteFailedError: the row machine takes no step now.
    """
    if state.started is not None:
        raise StepNotSavedError(state.rows.tables.pending)
    changes: list[events.LifeCycle] = [events.Finished(request) for request in state.ended]
    extended: list[Scheduled] = []
    tracks: dict[RequestId, Track] = {}
    hits: list[tuple[RequestId, Track]] = []
    for each in state.batch:
        track = state.tracks[each.request]
        lease = find_lease(state.blocks.tables, each.request)
        if track.hit:
            _check_owed(state, each.request, lease, track)
        tracks[each.request] = track._replace(hit=0, is_live=True, ahead=each.after, is_scheduled=False)
        if track.is_live and not track.hit:
            extended.append(each)
            continue
        changes.append(_arrival(state, each, lease, track))
        if track.hit:
            hits.append((each.request, track))
    if extended:
        counts = [each.after - each.before for each in extended]
        changes.append(events.Extended(tuple(each.request for each in extended), np.array(counts, dtype=np.int64)))
    told = tell_rows(state, events.StepStarted(tuple(changes)))
    started = StartedBatch(state.batch, _slots(state), tuple(hits)) if state.batch else None
    after = replace(told.state, tracks=state.tracks.update(tracks), batch=(), started=started, ended=())
    return told._replace(state=after)


def _check_owed(state: CacheState, request: RequestId, lease: Lease, track: Track) -> None:
    size = state.config.blocks.block_size
    for block in lease.copies[: track.hit // size] if len(state.unsaved) else ():
        owed_by = state.unsaved.get(block)
        if owed_by is None:
            continue
        position = find_lease(state.blocks.tables, owed_by).copies.index(block)
        if not any(each.request == owed_by and each.after >= (position + 1) * size for each in state.batch):
            raise RowsOwedError(request, block, owed_by)


def _arrival(state: CacheState, each: Scheduled, lease: Lease, track: Track) -> events.Started | events.Resumed:
    count = track.hit // state.config.blocks.block_size
    expects = tuple(ContentIdentity(block_hash or 0, track.group) for block_hash in lease.hashes[:count])
    kind = events.Resumed if track.is_live else events.Started
    return kind(each.request, each.after - each.before, track.hit, (tuple(lease.copies[:count]),), expects)


def _slots(state: CacheState) -> Integers:
    """The slot of every token of the batch, from the leases' block tables."""
    size = state.config.blocks.block_size
    parts: list[Integers] = []
    for request, before, after in state.batch:
        first = before // size
        blocks = find_lease(state.blocks.tables, request).copies[first : -(-after // size)]
        positions = np.arange(before, after, dtype=np.int64)
        parts.append(np.array(blocks, dtype=np.int64)[positions // size - first] * size + positions % size)
    return read_only(np.concatenate(parts))


def on_batch_save_requested(state: CacheState, event: BatchSaveRequested) -> CacheTransition:
    """Reserve the save of the started step, its layout made from the leases (X02).

    Raises:
        StepNotStartedError: no step waits to be saved.
        HiddenMissingError: hits on its blocks could not be served (X01).
        And those of `SaveRequested`.
    """
    started = state.started
    if started is None:
        raise StepNotStartedError("save")
    if state.rows.tables.policy.hidden and all(each.name != HIDDEN for each in event.outputs):
        raise HiddenMissingError(state.rows.tables.pending)
    counts = np.array([each.after - each.before for each in started.batch], dtype=np.int64)
    requests = tuple(each.request for each in started.batch)
    layout = events.WriteLayout(requests, counts, started.slots, event.padded)
    return tell_rows(state, events.SaveRequested(layout, event.outputs))


def on_save_published(state: CacheState, event: events.SavePublished) -> CacheTransition:
    """Publish rows and hashes in one: what becomes visible has its rows, committed or in transit (X01, X04).

    Raises:
        And those of `SavePublished`; of the block machine where a computed block cannot be named.
    """
    batch = state.started.batch if state.started else ()
    after = state
    kv_commands: list[CacheCommand] = []
    computes = list(event.computes)
    for each in batch:
        told = _published(after, each)
        after = told.state
        kv_commands += told.commands
        computes += _completed(after, each)
    rows, answer, row_commands = row_machine.transition(state.rows, events.SavePublished(event.step, tuple(computes)))
    tracks = {each.request: after.tracks[each.request]._replace(computed=each.after, ahead=0) for each in batch}
    saved = [block for block, _ in computes if block in after.unsaved]
    after = replace(
        after, rows=rows, tracks=after.tracks.update(tracks), unsaved=after.unsaved.remove(saved), started=None
    )
    return CacheTransition(after, answer, (*row_commands, *kv_commands))


def _completed(state: CacheState, each: Scheduled) -> list[tuple[BlockId, ContentIdentity]]:
    """The blocks that a step completed for a request, and what they hold; of what is never shared, none."""
    tables = state.blocks.tables
    lease, size = find_lease(tables, each.request), state.config.blocks.block_size
    if not tables.shares(lease):
        return []
    group = state.tracks[each.request].group
    return [
        (lease.copies[position], ContentIdentity(lease.hashes[position] or 0, group))
        for position in range(each.before // size, each.after // size)
    ]


def on_batch_dropped(state: CacheState) -> CacheTransition:
    """Give the started step up: its tokens, and the hits of its arrivals, are to be scheduled again.

    Raises:
        StepNotStartedError: no step waits to be saved.
        SaveReservedError, ShutDownError: its save is reserved, or the cache is shut down.
    """
    started = state.started
    if started is None:
        raise StepNotStartedError("drop_step")
    told = tell_rows(state, events.StepDropped(started.slots))
    # What was scheduled behind the dropped tokens cannot be computed without them.
    dropped = {each.request: state.tracks[each.request] for each in started.batch}
    batch = tuple(each for each in state.batch if each.request not in dropped)
    tracks = {request: track._replace(ahead=0, is_scheduled=False) for request, track in dropped.items()}
    # The row machine keeps no hit of a step that was given up: what arrived with one arrives anew.
    for request, was in started.hits:
        tracks[request] = tracks[request]._replace(hit=was.hit, is_live=was.is_live)
    again = tuple(request for request, was in started.hits if not was.is_live)
    ended = (*state.ended, *again)
    after = replace(told.state, started=None, batch=batch, tracks=state.tracks.update(tracks), ended=ended)
    return told._replace(state=after)
