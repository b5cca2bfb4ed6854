"""Computed tokens and generated ones: how blocks get their names and become visible.

Rules: I15 (visible only once computed), I27, I32 (a resolved hash never changes), I33, I34.
"""

from typing import NamedTuple

from tenure.core.blocks import pool
from tenure.core.blocks.hashing import chain_hash, local_hash, substitute_hash, synthetic_token
from tenure.core.blocks.leases import drop_snapshots, find_lease
from tenure.core.blocks.publish import Appearance, publish_stored
from tenure.core.blocks.sequence import tail_may_be_unresolved
from tenure.core.blocks.tables import PRIVATE, Edit, Lease, Tables
from tenure.core.blocks.values import BlockHash, BlockId, Done, TokenAppended, TokenGenerated, TokensComputed
from tenure.core.config import U32_MAX
from tenure.core.errors import (
    BlockNotHeldError,
    ComputedBackwardsError,
    MissingTokensError,
    NegativeCountError,
    OutputExhaustedError,
    TokenRangeError,
    UnauthorizedWriteError,
    UnresolvedParentError,
)
from tenure.core.persistent import ATTRIBUTE, TAIL


class _Completed(NamedTuple):
    """One block that a computed range completes: its name, whether that is new, and the copy to cache, if any."""

    position: int
    block_hash: BlockHash
    local_hash: int | None
    is_new: bool
    block: BlockId | None


def on_tokens_computed(edit: Edit, event: TokensComputed) -> Done:
    """Name and publish the blocks that computing tokens `[before, after)` completed.

    A block of known hash that the lease never held is passed over, as in the seed.

    Raises:
        UnknownLeaseError, NegativeCountError, ComputedBackwardsError, and those of `finalize`.
    """
    lease = find_lease(edit.tables, event.request)
    if event.before < 0:
        raise NegativeCountError(event.request, "before", event.before)
    if event.before > event.after:
        raise ComputedBackwardsError(event.request, event.before, event.after)
    finalize(edit, lease, event.before, event.after)
    return Done()


def finalize(edit: Edit, lease: Lease, before: int, after: int) -> None:
    """Complete the blocks of `[before, after)`.

    Raises:
        UnauthorizedWriteError: a block's write was not ordered behind the transfer that reads it.
        UnresolvedParentError: the block before an unresolved one is unresolved itself.
        MissingTokensError: a block's tokens are not all known.
        BlockNotHeldError: a block that would become visible is not held.
    """
    tables = edit.tables
    size = tables.block_size
    first, stop = before // size, min(after // size, len(lease.hashes))
    if first >= stop:
        return
    completed = _completed_blocks(tables, lease, first, stop)

    _keep_names(edit, lease, completed)
    caching = [each for each in completed if each.block is not None]
    blocks = [each.block for each in caching if each.block is not None]
    if blocks:
        drop_snapshots(edit, lease.request)
        visible = pool.cache_private(edit, blocks, [each.block_hash for each in caching])
        appeared = [
            Appearance(each.position, seen, each.block_hash, each.local_hash)
            for each, seen in zip(caching, visible, strict=True)
        ]
        publish_stored(edit, lease, appeared)
    _drop_tokens(edit, lease, stop * size)
    assert lease.hashes[-1] is not None or tail_may_be_unresolved(
        lease.length, size, lease.length - lease.prompt_tokens, after
    )


def _completed_blocks(tables: Tables, lease: Lease, first: int, stop: int) -> list[_Completed]:
    completed: list[_Completed] = []
    parent = lease.hashes[first - 1] if first else None
    for position in range(first, stop):
        _check_authorized(lease, position)
        block_hash = lease.hashes[position]
        local = lease.local_hashes[position]
        is_new = block_hash is None
        if block_hash is None:
            block_hash, local = _identity(tables, lease, position, parent)
        block: BlockId | None = None
        if tables.caching:
            if position < len(lease.copies):
                block = _block_to_cache(tables, lease, position)
            elif is_new:
                raise BlockNotHeldError(lease.request, position, len(lease.copies))
        parent = block_hash
        completed.append(_Completed(position, block_hash, local, is_new, block))
    return completed


def _check_authorized(lease: Lease, position: int) -> None:
    pending = lease.pending
    if pending is not None and pending.start <= position < pending.stop:
        raise UnauthorizedWriteError(lease.request, lease.copies[position], pending.dependencies)


def _identity(tables: Tables, lease: Lease, position: int, parent: BlockHash | None) -> tuple[BlockHash, int | None]:
    # I27: without its parent's name a block would look like a root.
    if position and parent is None:
        raise UnresolvedParentError(lease.request, position)
    size = tables.block_size
    start, stop = position * size, (position + 1) * size
    if start < lease.start or stop > lease.length:
        raise MissingTokensError(lease.request, position, lease.start, lease.length)
    if not lease.caching:
        return substitute_hash(lease.uuid, position), None
    local = local_hash(tables.pack_block(*lease.window[start - lease.start : stop - lease.start]))
    keys = b"" if lease.keys is None else lease.keys.encode(start, stop)
    return chain_hash(parent, local, keys), local if lease.retain_local_hashes else None


def _block_to_cache(tables: Tables, lease: Lease, position: int) -> BlockId | None:
    block = lease.copies[position]
    if tables.copies[block] != PRIVATE:
        return None
    pool.check_writable(tables, block)
    return block


def _keep_names(edit: Edit, lease: Lease, completed: list[_Completed]) -> None:
    new = [each for each in completed if each.is_new]
    if not new:
        return
    drop_snapshots(edit, lease.request)
    # Unresolved blocks are the last of a table, so the new names are consecutive.
    start, stop = new[0].position, new[-1].position + 1
    edit.journal.append((TAIL, lease.hashes, start, lease.hashes[start:]))
    edit.journal.append((TAIL, lease.local_hashes, start, lease.local_hashes[start:]))
    lease.hashes[start:stop] = [each.block_hash for each in new]
    lease.local_hashes[start:stop] = [each.local_hash for each in new]


def _drop_tokens(edit: Edit, lease: Lease, before: int) -> None:
    """Forget the tokens before position `before`. I34: what a block still to be named needs is kept."""
    if lease.emit_token_ids or before <= lease.start:
        return
    drop_snapshots(edit, lease.request)
    edit.journal.append((ATTRIBUTE, lease, "window", lease.window))
    edit.journal.append((ATTRIBUTE, lease, "start", lease.start))
    lease.window = lease.window[before - lease.start :]
    lease.start = before


# --- Generating -------------------------------------------------------------------------------------------------


def on_token_generated(edit: Edit, event: TokenGenerated) -> TokenAppended:
    """Append an output token, and open a block for it where the last one is full.

    Raises:
        UnknownLeaseError: no open lease.
        OutputExhaustedError: all output is generated.
        TokenRangeError: the token is no unsigned 32-bit number.
    """
    lease = find_lease(edit.tables, event.request)
    token = next_token(lease, event.token)

    drop_snapshots(edit, lease.request)
    opened = lease.length % edit.tables.block_size == 0
    edit.journal.append((TAIL, lease.window, len(lease.window), []))
    lease.window.append(token)
    if opened:
        open_block(edit, lease)
    return TokenAppended(token, opened)


def next_token(lease: Lease, given: int | None) -> int:
    """The next output token of a request: the given one, else the planned, else the synthetic one.

    Raises:
        OutputExhaustedError: all output is generated.
        TokenRangeError: the given token is no unsigned 32-bit number.
    """
    ordinal = lease.start + len(lease.window) - lease.prompt_tokens
    if ordinal >= lease.max_output:
        raise OutputExhaustedError(lease.request, lease.max_output)
    if given is None:
        if ordinal < len(lease.planned):
            return lease.planned[ordinal]
        return synthetic_token(lease.uuid, ordinal)
    if not 0 <= given <= U32_MAX:
        raise TokenRangeError(lease.request, given)
    return given


def open_block(edit: Edit, lease: Lease) -> None:
    """Append an unresolved block to a lease's table. I33: as soon as the sequence has a token for it."""
    edit.journal.append((TAIL, lease.hashes, len(lease.hashes), []))
    edit.journal.append((TAIL, lease.local_hashes, len(lease.local_hashes), []))
    lease.hashes.append(None)
    lease.local_hashes.append(None)
