"""Computed tokens and generated ones: how blocks get their names and become visible.

Rules: I15 (visible only once computed), I27, I32 (a resolved hash never changes), I33, I34.
"""

from collections.abc import Sequence
from typing import NamedTuple, cast

from tenure.core.blocks import pool
from tenure.core.blocks.hashing import chain_hash, local_hash, substitute_hash, synthetic_token
from tenure.core.blocks.leases import check_count, drop_snapshots, find_lease
from tenure.core.blocks.publish import publish_group, publish_stored
from tenure.core.blocks.sequence import tail_may_be_unresolved
from tenure.core.blocks.tables import PRIVATE, Edit, Lease, Tables
from tenure.core.blocks.values import BlockHash, BlockId, Done, TokenAppended, TokenGenerated, TokensComputed
from tenure.core.config import U32_MAX, as_int
from tenure.core.errors import (
    BlockNotHeldError,
    ComputedBackwardsError,
    MissingTokensError,
    NegativeCountError,
    OutputExhaustedError,
    TokenRangeError,
    UnauthorizedWriteError,
    UnresolvedParentError,
    UnresolvedTailError,
)
from tenure.core.persistent import ATTRIBUTE, TAIL


class _Completed(NamedTuple):
    """What a computed range completes.

    Attributes:
        new_names: `(sequence hash, local hash)` of blocks resolved by it: the last ones of the range.
        positions: positions whose copies become visible.
        blocks: those copies.
        hashes: their sequence hashes.
    """

    new_names: list[tuple[BlockHash, int | None]]
    positions: Sequence[int]
    blocks: list[BlockId]
    hashes: list[BlockHash]


def on_tokens_computed(edit: Edit, event: TokensComputed) -> Done:
    """Name and publish the blocks that computing tokens `[before, after)` completed.

    A block of known hash that the lease never held is passed over, as in the seed.

    Raises:
        UnknownLeaseError, NegativeCountError, ComputedBackwardsError, and those of `finalize`.
    """
    lease = find_lease(edit.tables, event.request)
    check_count(event.request, "before", event.before)
    if type(event.after) is not int:
        raise NegativeCountError(event.request, "after", event.after)
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
        UnresolvedTailError: all tokens are computed, and the last full block was left out.
    """
    tables = edit.tables
    size = tables.block_size
    first, stop = before // size, min(after // size, len(lease.hashes))
    if first >= stop:
        # Edge 7: a range that completes nothing must not leave a computed block without a name behind it.
        if not _tail_is_right(lease, size, after):
            raise UnresolvedTailError(lease.request, after, lease.length)
        return
    completed = _complete(tables, lease, first, stop)

    if completed.new_names:
        _keep_names(edit, lease, stop - len(completed.new_names), completed.new_names)
    if completed.blocks:
        drop_snapshots(edit, lease.request)
        visible = pool.cache_private(edit, completed.blocks, completed.hashes)
        publish_stored(edit, lease, completed.positions, visible)
    _drop_tokens(edit, lease, stop * size)
    assert _tail_is_right(lease, size, after)


def _tail_is_right(lease: Lease, block_size: int, computed: int) -> bool:
    if not lease.hashes or lease.hashes[-1] is not None:
        return True
    length = lease.length
    return tail_may_be_unresolved(length, block_size, length - lease.prompt_tokens, computed)


def _complete(tables: Tables, lease: Lease, first: int, stop: int) -> _Completed:
    whole = _complete_whole(tables, lease, first, stop)
    if whole is not None:
        return whole
    positions: list[int] = []
    completed = _Completed([], positions, [], [])
    copies, held, caching = lease.copies, len(lease.copies), tables.shares(lease)
    parent = lease.hashes[first - 1] if first else None
    for position in range(first, stop):
        pending = lease.pending
        if pending is not None and pending.start <= position < pending.stop:
            raise UnauthorizedWriteError(lease.request, copies[position], pending.dependencies)
        block_hash = lease.hashes[position]
        if block_hash is None:
            block_hash, local = _identity(tables, lease, position, parent)
            if caching and position >= held:
                raise BlockNotHeldError(lease.request, position, held)
            completed.new_names.append((block_hash, local))
        parent = block_hash
        if caching and position < held and tables.copies[copies[position]] == PRIVATE:
            if tables.tags:
                pool.check_writable(tables, copies[position])
            positions.append(position)
            completed.blocks.append(copies[position])
            completed.hashes.append(block_hash)
    return completed


def _complete_whole(tables: Tables, lease: Lease, first: int, stop: int) -> _Completed | None:
    """What a computed prompt completes, where every block of the range is named, held, private and unfenced."""
    names = lease.hashes[first:stop]
    blocks = lease.copies[first:stop]
    if lease.pending is not None or tables.tags or None in names or len(blocks) < len(names):
        return None
    if not tables.shares(lease) or set(map(tables.copies.__getitem__, blocks)) != {PRIVATE}:
        return None
    return _Completed([], range(first, stop), blocks, cast("list[BlockHash]", names))


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


def _keep_names(edit: Edit, lease: Lease, start: int, names: list[tuple[BlockHash, int | None]]) -> None:
    """Resolve consecutive blocks from `start` on. I32: a resolved hash never changes."""
    drop_snapshots(edit, lease.request)
    stop = start + len(names)
    edit.journal.append((TAIL, lease.hashes, start, lease.hashes[start:]))
    edit.journal.append((TAIL, lease.local_hashes, start, lease.local_hashes[start:]))
    lease.hashes[start:stop] = [block_hash for block_hash, _ in names]
    lease.local_hashes[start:stop] = [local for _, local in names]


def finalize_last(edit: Edit, lease: Lease) -> None:
    """`finalize` of the last token where it fills its block: what a decode step asks for.

    The common case is taken here, in as few operations as it has; everything else, and everything illegal, is left
    to `finalize`.

    Raises: as `finalize`.
    """
    tables, hashes, window = edit.tables, lease.hashes, lease.window
    position = len(hashes) - 1
    parent = hashes[position - 1] if position else None
    if (
        len(window) != tables.block_size
        or hashes[position] is not None
        or len(lease.copies) != position + 1
        or (position and parent is None)
        or lease.pending is not None
        or lease.keys is not None
        or not tables.shares(lease)
        or tables.tags
        or lease.request in tables.snapshots_of
        or lease.emit_token_ids
    ):
        finalize(edit, lease, lease.length - 1, lease.length)
        return
    local = local_hash(tables.pack_block(*window))
    block_hash = chain_hash(parent, local)
    log = edit.journal.append

    log((TAIL, hashes, position, [None]))
    log((TAIL, lease.local_hashes, position, [None]))
    hashes[position] = block_hash
    if lease.retain_local_hashes:
        lease.local_hashes[position] = local
    log((ATTRIBUTE, lease, "window", window))
    log((ATTRIBUTE, lease, "start", lease.start))
    lease.window = []
    lease.start += len(window)
    if pool.cache_one(edit, lease.copies[position], block_hash):
        publish_group(edit, lease, position, position + 1)


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
    ordinal = lease.length - lease.prompt_tokens
    if given is None and ordinal < len(lease.planned):
        return lease.planned[ordinal]
    if ordinal >= lease.max_output:
        raise OutputExhaustedError(lease.request, lease.max_output)
    if given is None:
        return synthetic_token(lease.uuid, ordinal)
    token = as_int(given)
    if token is None or not 0 <= token <= U32_MAX:
        raise TokenRangeError(lease.request, given)
    return token


def open_block(edit: Edit, lease: Lease) -> None:
    """Append an unresolved block to a lease's table. I33: as soon as the sequence has a token for it."""
    edit.journal.append((TAIL, lease.hashes, len(lease.hashes), []))
    edit.journal.append((TAIL, lease.local_hashes, len(lease.local_hashes), []))
    lease.hashes.append(None)
    lease.local_hashes.append(None)
