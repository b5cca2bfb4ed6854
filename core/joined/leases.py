"""Leases of a joined cache: what a request may share, and when it may give its blocks up (X01, X02, X04, X05)."""

from dataclasses import replace

from tenure.core.blocks import queries
from tenure.core.blocks import values as block_values
from tenure.core.blocks.hashing import IdentityKeys
from tenure.core.blocks.leases import find_lease
from tenure.core.config import as_int
from tenure.core.errors import IsolationError, NotForJoinError, RequestInStepError, RowsOwedError
from tenure.core.joined.state import CacheState, CacheTransition, tell_blocks
from tenure.core.joined.values import BlockId, RequestId, Track
from tenure.core.rows.events import ContentIdentity


def _group(keys: IdentityKeys | None) -> str:
    """X05: who may share; different for different isolation groups or adapters."""
    return "" if keys is None else repr((keys.isolation_group, keys.adapter))


def on_lease_opened(state: CacheState, event: block_values.LeaseOpened) -> CacheTransition:
    """A request arrived.

    Raises:
        LeaseAlreadyOpenError, SequenceBlockSizeError: by the block machine.
    """
    told = tell_blocks(state, event)
    sequence = event.sequence
    tracks = state.tracks.set(sequence.request, Track(_group(sequence.keys)))
    return told._replace(state=replace(told.state, tracks=tracks))


def on_allocation_requested(state: CacheState, event: block_values.AllocationRequested) -> CacheTransition:
    """Hold capacity. What a first allocation shares is the request's hit.

    Rules: X01, X05.

    Raises:
        NotForJoinError: blocks are to be reused by a lease that holds some.
        IsolationError: a shared block does not hold what this request may share.
        And those of the block machine.
    """
    held = find_lease(state.blocks.tables, event.request).copies
    if held and as_int(event.reusable_blocks) not in (0, None):
        raise NotForJoinError("AllocationRequested with reusable blocks for a held lease", "reuse them at the first")
    was_empty = not held
    told = tell_blocks(state, event)
    if not (was_empty and isinstance(told.answer, block_values.Ready) and event.reusable_blocks):
        return told
    lease = find_lease(told.state.blocks.tables, event.request)
    track = state.tracks[event.request]
    shared = lease.copies[: event.reusable_blocks]
    for block, block_hash in zip(shared, lease.hashes, strict=False):
        expected = ContentIdentity(block_hash or 0, track.group)
        if not _is_servable(state, block, expected):
            raise IsolationError(event.request, block, expected, state.rows.tables.identities.get(block))
    hit = len(shared) * state.config.blocks.block_size
    track = track._replace(hit=hit, computed=hit, published=hit)
    return told._replace(state=replace(told.state, tracks=state.tracks.set(event.request, track)))


def _is_servable(state: CacheState, block: BlockId, expected: ContentIdentity) -> bool:
    """X01, X05: whether a visible block holds this content, or will when the request that is scheduled computed it."""
    owed_by = state.unsaved.get(block)
    if owed_by is not None:
        return state.tracks[owed_by].group == expected.group
    return state.rows.tables.identities.get(block) == expected


def servable_prefix_blocks(state: CacheState, request: RequestId) -> int:
    """Leading blocks that a first allocation may share now: visible, of the same isolation group, with their rows.

    At least one known token is left to compute.

    Raises:
        UnknownLeaseError: no open lease.
    """
    tables = state.blocks.tables
    lease = find_lease(tables, request)
    most = (lease.length - 1) // tables.block_size
    count = min(queries.resident_prefix_blocks(state.blocks, request), max(most, 0))
    group = state.tracks[request].group
    for position, block_hash in enumerate(lease.hashes[:count]):
        if block_hash is None or not _is_servable(
            state, tables.primary[block_hash], ContentIdentity(block_hash, group)
        ):
            return position
    return count


def on_lease_released(
    state: CacheState, event: block_values.LeasePreempted | block_values.LeaseFinished
) -> CacheTransition:
    """A request gives its blocks up; what it was scheduled for and did not start is withdrawn.

    Rules: X02, X04.

    Raises:
        RequestInStepError: a started step computes its blocks.
        RowsOwedError: hashes are visible whose rows it has yet to compute.
        UnknownLeaseError: no open lease.
    """
    request = event.request
    lease = find_lease(state.blocks.tables, request)
    track = state.tracks[request]
    if track.ahead:
        raise RequestInStepError(request)
    for block in lease.copies if len(state.unsaved) else ():
        if state.unsaved.get(block) == request:
            raise RowsOwedError(request, block, request)
    told = tell_blocks(state, event)
    batch = state.batch
    if track.is_scheduled:
        batch = tuple(each for each in batch if each.request != request)
    if isinstance(event, block_values.LeasePreempted):
        tracks = state.tracks.set(request, Track(track.group, is_live=track.is_live))
        return told._replace(state=replace(told.state, tracks=tracks, batch=batch))
    ended = (*state.ended, request) if track.is_live else state.ended
    tracks = state.tracks.remove([request])
    return told._replace(state=replace(told.state, tracks=tracks, batch=batch, ended=ended))
