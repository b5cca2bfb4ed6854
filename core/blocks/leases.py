"""Leases: from an empty table over growth and computed blocks to release.

Source: the lease operations of the seed's manager, in their strict versions.
"""

import struct
from typing import cast

from tenure.core.blocks import pool, prefix_index, tags
from tenure.core.blocks.hashing import TOKEN_BYTES, request_bytes
from tenure.core.blocks.publish import publish_removed
from tenure.core.blocks.sequence import RequestSequence
from tenure.core.blocks.tables import Edit, Lease, PendingCapacity, Tables
from tenure.core.blocks.values import (
    AllocationRequested,
    BlockHash,
    BlockId,
    Done,
    Exhausted,
    LeaseFinished,
    LeaseOpened,
    LeasePreempted,
    Ready,
    RequestId,
)
from tenure.core.errors import (
    AllocationBeyondTableError,
    CachingOffError,
    FencedGrowthError,
    LeaseAlreadyOpenError,
    NegativeCountError,
    PrefixExceedsGrowthError,
    SequenceBlockSizeError,
    UnknownLeaseError,
    UnresolvedPrefixError,
)
from tenure.core.persistent import ATTRIBUTE, ITEM, MISSING, TAIL


def find_lease(tables: Tables, request: RequestId) -> Lease:
    """The open lease of a request.

    Raises:
        UnknownLeaseError: there is none.
    """
    lease = tables.leases.get(request)
    if lease is None:
        raise UnknownLeaseError(request)
    return lease


def set_allocated(edit: Edit, lease: Lease, tokens: int) -> None:
    """Move the allocation watermark."""
    if tokens != lease.allocated:
        edit.journal.append((ATTRIBUTE, lease, "allocated", lease.allocated))
        lease.allocated = tokens


def set_pending(edit: Edit, lease: Lease, pending: PendingCapacity | None) -> None:
    """Set or clear the writes that wait for an authorization."""
    edit.journal.append((ATTRIBUTE, lease, "pending", lease.pending))
    lease.pending = pending


def drop_snapshots(edit: Edit, request: RequestId) -> None:
    """Void the live store-source snapshots of a lease that changes."""
    tables, log = edit.tables, edit.journal.append
    keys = tables.snapshots_of.get(request)
    if keys is None:
        return
    log((ITEM, tables.snapshots_of, request, keys))
    del tables.snapshots_of[request]
    for key in keys:
        log((ITEM, tables.snapshots, key, tables.snapshots[key]))
        del tables.snapshots[key]


# --- Opening ----------------------------------------------------------------------------------------------------


def on_lease_opened(edit: Edit, event: LeaseOpened) -> Done:
    """Open an empty lease.

    Raises:
        LeaseAlreadyOpenError: the request has one.
        SequenceBlockSizeError: the sequence was cut for another block size.
    """
    tables, sequence = edit.tables, event.sequence
    request = sequence.request
    if request in tables.leases:
        raise LeaseAlreadyOpenError(request)
    if sequence.block_size != tables.block_size:
        raise SequenceBlockSizeError(request, sequence.block_size, tables.block_size)

    tables.leases_ever += 1
    edit.journal.append((ITEM, tables.leases, request, MISSING))
    tables.leases[request] = _new_lease(sequence, tables.leases_ever)
    return Done()


def _new_lease(sequence: RequestSequence, number: int) -> Lease:
    lease = Lease()
    lease.request, lease.uuid, lease.number = sequence.request, request_bytes(sequence.request), number
    lease.hashes, lease.local_hashes = list(sequence.hashes), list(sequence.local_hashes)
    lease.copies, lease.allocated, lease.pending = [], 0, None
    lease.prompt_tokens, lease.max_output, lease.planned = (
        sequence.prompt_tokens,
        sequence.max_output,
        sequence.planned,
    )
    lease.caching, lease.keys = sequence.caching, sequence.keys
    lease.retain_local_hashes, lease.emit_token_ids = sequence.retain_local_hashes, sequence.emit_token_ids
    # I34: only what a block still to be named needs is kept, or everything where events carry tokens.
    count = sequence.prompt_tokens
    lease.start = 0 if sequence.emit_token_ids else count - count % sequence.block_size
    kept = sequence.prompt[lease.start * TOKEN_BYTES :]
    lease.window = list(struct.unpack(f"<{count - lease.start}I", kept))
    return lease


# --- Growing ----------------------------------------------------------------------------------------------------


def on_allocation_requested(edit: Edit, event: AllocationRequested) -> Ready | Exhausted:
    """Hold capacity for the first tokens of a request.

    Rules: I13 (exhausted changes nothing), I17 (no growth while writes are pending), I18.

    Raises:
        UnknownLeaseError, NegativeCountError, AllocationBeyondTableError, and those of `grow`.
    """
    lease = find_lease(edit.tables, event.request)
    check_count(event.request, "reusable_blocks", event.reusable_blocks)
    target = check_table(edit.tables, lease, event.tokens)
    if target <= len(lease.copies):
        return keep(edit, lease, event.tokens)
    return grow(edit, lease, event.tokens, target, event.reusable_blocks)


def check_count(request: RequestId | None, what: str, value: int) -> None:
    """Refuse a count that is none.

    Raises:
        NegativeCountError: the value is negative, or no int.
    """
    if type(value) is not int or value < 0:
        raise NegativeCountError(request, what, value)


def check_table(tables: Tables, lease: Lease, tokens: int) -> int:
    """The blocks that the first `tokens` tokens of a lease take.

    Raises:
        NegativeCountError: `tokens` is negative.
        AllocationBeyondTableError: its table has no room for them.
    """
    check_count(lease.request, "tokens", tokens)
    size = tables.block_size
    # I18: a watermark above the table would leave a later block without a copy.
    if tokens > len(lease.hashes) * size:
        raise AllocationBeyondTableError(lease.request, tokens, len(lease.hashes) * size)
    return -(-tokens // size)


def keep(edit: Edit, lease: Lease, tokens: int) -> Ready:
    """Answer an allocation that needs no more blocks: with the writes that are still pending, if any."""
    tables, pending = edit.tables, lease.pending
    changed = tokens > lease.allocated
    set_allocated(edit, lease, max(tokens, lease.allocated))
    attachments: tuple[tuple[int, int], ...] = ()
    if pending is not None:
        attachments = tuple(pair for pair in pending.attachments if is_current(tables, pair))
        if attachments != pending.attachments:
            changed = True
            set_pending(edit, lease, pending._replace(attachments=attachments) if attachments else None)
    if changed:
        drop_snapshots(edit, lease.request)
    return Ready((), tuple(dependency for dependency, _ in attachments))


def is_current(tables: Tables, attachment: tuple[int, int]) -> bool:
    """Whether a `(dependency, attachment number)` pair still pends; the id may have been attached anew since."""
    current = tables.dependencies.get(attachment[0])
    return current is not None and current.number == attachment[1]


def grow(edit: Edit, lease: Lease, tokens: int, target: int, reusable_blocks: int = 0) -> Ready | Exhausted:
    """Let a lease hold `target` blocks, sharing prefix hits as far as `reusable_blocks` reaches.

    Raises:
        FencedGrowthError: earlier capacity waits for an authorization.
        PrefixExceedsGrowthError: more reusable blocks than new ones.
        CachingOffError: reuse without caching.
        UnresolvedPrefixError, PrefixNotResidentError: a reusable block that cannot be shared.
    """
    tables, held = edit.tables, len(lease.copies)
    candidates = _reusable(tables, lease, held, target, reusable_blocks)
    hits = prefix_index.exact_prefix(tables, candidates, target - held)
    fresh = target - held - len(hits)
    exhausted = pool.shortfall(tables, hits, fresh)
    if exhausted is not None:
        return exhausted

    if hits:
        pool.reference(edit, hits)
        hold(edit, lease, hits)
    taken, removed = pool.take_fresh(edit, fresh)
    # I28: what an operation removes is told before what it stores.
    publish_removed(edit, removed)
    dependencies = hold_fresh(edit, lease, taken)
    set_allocated(edit, lease, tokens)
    return Ready(tuple(lease.copies[held:]), dependencies)


def _reusable(tables: Tables, lease: Lease, held: int, target: int, reusable_blocks: int) -> list[BlockHash]:
    if lease.pending is not None:
        raise FencedGrowthError(lease.request, lease.pending.dependencies)
    wanted = max(0, reusable_blocks - held)
    if wanted > target - held:
        raise PrefixExceedsGrowthError(lease.request, wanted, target - held)
    # I36: with caching off, here or for this request, nothing is ever looked up.
    if reusable_blocks and not tables.shares(lease):
        raise CachingOffError(lease.request, reusable_blocks)
    candidates = lease.hashes[held : held + wanted]
    if None in candidates:
        raise UnresolvedPrefixError(lease.request, held + candidates.index(None))
    return cast("list[BlockHash]", candidates)


def hold(edit: Edit, lease: Lease, blocks: list[BlockId]) -> None:
    """Append blocks to those a lease holds."""
    drop_snapshots(edit, lease.request)
    edit.journal.append((TAIL, lease.copies, len(lease.copies), []))
    lease.copies += blocks


def hold_fresh(edit: Edit, lease: Lease, taken: list[BlockId]) -> tuple[int, ...]:
    """Give a lease private copies of capacity in reservation order; the dependencies its writes must wait for."""
    tables, start = edit.tables, len(lease.copies)
    blocks = pool.allocate_private(edit, taken)
    hold(edit, lease, blocks)
    dependencies = tags.pending_dependencies(tables, blocks)
    if dependencies:
        # Every fresh position waits, also those whose own block is clean: one write covers them all.
        numbered = tuple((dependency, tables.dependencies[dependency].number) for dependency in dependencies)
        set_pending(edit, lease, PendingCapacity(start, start + len(blocks), numbered))
    return dependencies


# --- Letting go -------------------------------------------------------------------------------------------------


def on_lease_preempted(edit: Edit, event: LeasePreempted) -> Done:
    """Release all blocks of a request; its identities stay.

    Raises:
        UnknownLeaseError: no open lease.
    """
    lease = find_lease(edit.tables, event.request)
    _release_all(edit, lease)
    return Done()


def on_lease_finished(edit: Edit, event: LeaseFinished) -> Done:
    """Release all blocks of a request and close its lease.

    Raises:
        UnknownLeaseError: no open lease.
    """
    lease = find_lease(edit.tables, event.request)
    _release_all(edit, lease)
    drop_snapshots(edit, event.request)
    edit.journal.append((ITEM, edit.tables.leases, event.request, lease))
    del edit.tables.leases[event.request]
    return Done()


def _release_all(edit: Edit, lease: Lease) -> None:
    """Give everything back. I31: what no lease or reservation holds is free or inactive."""
    if not lease.copies:
        return
    drop_snapshots(edit, lease.request)
    # I30: the leaf goes first, so that it is evicted before its parent.
    pool.release(edit, lease.copies[::-1])
    edit.journal.append((ATTRIBUTE, lease, "copies", lease.copies))
    lease.copies = []
    # I19: the watermark falls to 0 here and nowhere else.
    set_allocated(edit, lease, 0)
    if lease.pending is not None:
        set_pending(edit, lease, None)
