"""The oracle's lease operations: allocate, authorize, compute, preempt, finish.

Every function works on a state that is thrown away if it raises, so a check may come after an effect.

Order of checks, here and in the other operations: the lease; then counts below zero; then what the operation
forbids, in the order of the requirement. The id of a reservation or a snapshot is looked up where the requirement
first speaks of it.
"""

from tenure.core.blocks.values import BlockId, Command, DependencyId, Exhausted, Ready, RequestId, ReservationId
from tenure.core.errors import (
    AllocationBeyondTableError,
    BlockNotHeldError,
    CachingOffError,
    ComputedBackwardsError,
    DependencyMismatchError,
    EmptyDependenciesError,
    FencedGrowthError,
    MissingTokensError,
    NegativeCountError,
    NothingToAuthorizeError,
    PrefixExceedsGrowthError,
    PrefixNotResidentError,
    ReservationTooSmallError,
    UnauthorizedWriteError,
    UnresolvedParentError,
    UnresolvedPrefixError,
    UnresolvedTailError,
)
from tenure.spec.blocks.oracle_lease import OracleLease
from tenure.spec.blocks.oracle_pool import Capacity
from tenure.spec.blocks.oracle_state import OracleState, StoredBlock


def check_count(request: RequestId | None, what: str, value: int) -> None:
    """Refuse a count below zero."""
    if value < 0:
        raise NegativeCountError(request, what, value)


def prefix_hashes(state: OracleState, lease: OracleLease, start: int, stop: int) -> list[int]:
    """The hashes of a prefix range that must be resident as a whole.

    Raises:
        UnresolvedPrefixError: a block without a hash.
        PrefixNotResidentError: a hash that is not visible.
    """
    names: list[int] = []
    for position in range(start, stop):
        name = lease.entries[position].sequence_hash
        if name is None:
            raise UnresolvedPrefixError(lease.sequence.request, position)
        names.append(name)
    for name in names:
        if not state.shares(lease) or state.pool.primary(name) is None:
            raise PrefixNotResidentError(name)
    return names


# --- Allocation ---------------------------------------------------------------------------------------------------


def allocate(
    state: OracleState, lease: OracleLease, tokens: int, reusable: int
) -> tuple[Ready | Exhausted, list[Command]]:
    """Hold capacity for the first `tokens` tokens, sharing the first `reusable` blocks."""
    request = lease.sequence.request
    check_count(request, "tokens", tokens)
    check_count(request, "reusable_blocks", reusable)
    _check_table(lease, tokens)
    growth = _growth(lease, tokens)
    if growth is None:
        return _stay(state, lease, tokens), []
    start, stop = growth
    extra = max(0, reusable - start)
    if extra > stop - start:
        raise PrefixExceedsGrowthError(request, extra, stop - start)
    if reusable > 0 and not state.shares(lease):
        raise CachingOffError(request, reusable)
    names = prefix_hashes(state, lease, start, start + extra)
    outcome = state.pool.reserve(names, stop - start - extra)
    if isinstance(outcome, Exhausted):
        return outcome, []
    capacity, removed = outcome
    # I28: what was evicted is told before anything else of this operation.
    commands = state.removed(removed, capacity)
    return _grow(state, lease, tokens, (start, stop), capacity), commands


def allocate_reserved(state: OracleState, lease: OracleLease, tokens: int, number: ReservationId) -> Ready:
    """Hold capacity for the first `tokens` tokens, drawn from a decode reservation."""
    request = lease.sequence.request
    check_count(request, "tokens", tokens)
    _check_table(lease, tokens)
    # Also a call that draws nothing must name a live reservation.
    reservation = state.reservation(number, "decode")
    growth = _growth(lease, tokens)
    if growth is None:
        return _stay(state, lease, tokens)
    start, stop = growth
    left = len(reservation.capacity.fresh)
    if stop - start > left:
        raise ReservationTooSmallError(number, request, stop - start, left)
    return _grow(state, lease, tokens, growth, reservation.capacity)


def _check_table(lease: OracleLease, tokens: int) -> None:
    request = lease.sequence.request
    table_tokens = len(lease.entries) * lease.block_size
    # A watermark above the table would later hide a block that was never allocated.
    if tokens > table_tokens:
        raise AllocationBeyondTableError(request, tokens, table_tokens)


def _growth(lease: OracleLease, tokens: int) -> tuple[int, int] | None:
    """The positions to be filled, or None if what is held is enough."""
    start, stop = lease.blocks_for(lease.allocated), lease.blocks_for(tokens)
    if stop <= start:
        return None
    # I17: one set of pending writes at a time.
    if lease.pending is not None:
        raise FencedGrowthError(lease.sequence.request, lease.stored_dependencies())
    return start, stop


def _stay(state: OracleState, lease: OracleLease, tokens: int) -> Ready:
    lease.allocated = max(lease.allocated, tokens)
    if lease.pending is not None:
        # An id that was attached anew is not the transfer that was waited for.
        lease.pending = [each for each in lease.pending if state.pool.attachment(each[0]) == each[1]]
        if not lease.pending:
            lease.clear_pending()
    return Ready((), lease.stored_dependencies())


def _grow(state: OracleState, lease: OracleLease, tokens: int, growth: tuple[int, int], capacity: Capacity) -> Ready:
    start, stop = growth
    dependencies = state.pool.pending_fresh(capacity, stop - start - len(capacity.prefix))
    blocks = commit(state, lease, growth, capacity, dependencies)
    lease.allocated = tokens
    return Ready(tuple(blocks), dependencies)


def commit(
    state: OracleState,
    lease: OracleLease,
    growth: tuple[int, int],
    capacity: Capacity,
    dependencies: tuple[DependencyId, ...],
) -> list[BlockId]:
    """Hand shared and fresh private blocks to the positions of a range."""
    blocks: list[BlockId] = []
    shared = state.pool.activate_prefix(capacity)
    for offset, position in enumerate(range(*growth)):
        entry = lease.entries[position]
        assert entry.copy is None, f"block {position} is held already"
        if offset < len(shared):
            name, entry.copy = shared[offset]
            assert name == entry.sequence_hash, f"block {position} was pinned under another hash"
        else:
            entry.copy = state.pool.allocate_private(capacity)
            # I15: a block waits for its computation only if it will have a name to be visible under.
            entry.pending_cache = entry.sequence_hash is not None and state.shares(lease)
            # All fresh blocks of one allocation share a fate, also those that nobody reads.
            entry.write_pending = bool(dependencies)
        blocks.append(entry.copy)
    if dependencies:
        lease.pending = state.attachments(dependencies)
    return blocks


def authorize(state: OracleState, lease: OracleLease, dependencies: tuple[DependencyId, ...]) -> None:
    """Let the pending writes happen behind the transfers they wait for."""
    request = lease.sequence.request
    if not dependencies:
        raise EmptyDependenciesError(request)
    if lease.pending is None:
        raise NothingToAuthorizeError(request)
    blocks = [entry.copy for entry in lease.entries if entry.write_pending and entry.copy is not None]
    for expected in (lease.stored_dependencies(), state.pool.pending_of(blocks)):
        if dependencies != expected:
            raise DependencyMismatchError(request, expected, dependencies)
    state.pool.authorize(blocks)
    lease.clear_pending()


# --- Computation --------------------------------------------------------------------------------------------------


def compute(state: OracleState, lease: OracleLease, before: int, after: int) -> list[Command]:
    """Make the blocks visible that tokens `[before, after)` completed.

    Per block, in position order: is its write authorized; can it be named, that is, has the block in front a name
    and are its own tokens known; is it held; may the pool write it. Naming comes before holding, because only a
    named block waits to become visible at all. At the end, also when no block was completed: the last block of a
    request whose tokens are all computed must have a name.
    """
    request = lease.sequence.request
    check_count(request, "before", before)
    if before > after:
        raise ComputedBackwardsError(request, before, after)
    walked: list[StoredBlock | None] = []
    for position in range(before // lease.block_size, min(after // lease.block_size, len(lease.entries))):
        walked.append(_compute_block(state, lease, position))
        lease.discard_tokens(position)
    _check_tail(lease, after)
    return state.stored(walked)


def _compute_block(state: OracleState, lease: OracleLease, position: int) -> StoredBlock | None:
    request, entry = lease.sequence.request, lease.entries[position]
    if entry.write_pending and entry.copy is not None:
        raise UnauthorizedWriteError(request, entry.copy, lease.stored_dependencies())
    if entry.sequence_hash is None:
        # A block behind an unnamed one would otherwise be named as if it were the first.
        if position > 0 and lease.hash_before(position) is None:
            raise UnresolvedParentError(request, position)
        if not lease.resolve(position):
            raise MissingTokensError(request, position, lease.window_start, lease.length)
        entry.pending_cache = state.shares(lease)
    if not entry.pending_cache:
        return None
    if entry.copy is None:
        raise BlockNotHeldError(request, position, len(lease.held))
    entry.pending_cache = False
    return publishable(lease, position, state.pool.cache_private(entry.copy, _named(entry.sequence_hash), request))


def publishable(lease: OracleLease, position: int, became_visible: bool) -> StoredBlock | None:
    """What routers hear of a block, if it became visible."""
    if not became_visible:
        return None
    entry = lease.entries[position]
    tokens = lease.tokens_of(position) if lease.sequence.emit_token_ids else None
    return StoredBlock(
        parent=lease.hash_before(position),
        block_hash=_named(entry.sequence_hash),
        local_hash=entry.local_hash,
        token_ids=None if tokens is None else tuple(tokens),
    )


def _named(name: int | None) -> int:
    assert name is not None, "a block became visible without a hash"
    return name


def _check_tail(lease: OracleLease, after: int) -> None:
    if not lease.entries or lease.entries[-1].sequence_hash is not None or lease.length % lease.block_size:
        return
    is_output_uncomputed = lease.generated > 0 and after < lease.length
    if not is_output_uncomputed:
        raise UnresolvedTailError(lease.sequence.request, after, lease.length)


# --- Release ------------------------------------------------------------------------------------------------------


def release_all(state: OracleState, lease: OracleLease) -> None:
    """Let go of every block, leaf first, so that a parent outlives its children in the cache."""
    for entry in reversed(lease.entries):
        if entry.copy is not None:
            state.pool.release(entry.copy)
        entry.copy = None
        entry.pending_cache = False
    lease.clear_pending()
    lease.allocated = 0
