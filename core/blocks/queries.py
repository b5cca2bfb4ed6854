"""Questions to a block-machine state; none of them changes what it holds."""

from collections.abc import Callable
from typing import Final, cast

from tenure.core.blocks import reservations
from tenure.core.blocks.leases import find_lease
from tenure.core.blocks.state import BlockState
from tenure.core.blocks.tables import INACTIVE, Lease, Tables
from tenure.core.blocks.values import BlockHash, BlockId, DependencyId, RequestId, ReservationId
from tenure.core.blocks.view import PrefillCost, PrefixHit

_CHUNK: Final = 64


def prefix_hit(state: BlockState, block_hash: BlockHash) -> PrefixHit | None:
    """Whether a hash is visible, and whether its primary copy is in use; looking does not touch the LRU."""
    tables = state.tables
    block = tables.primary.get(block_hash)
    return None if block is None else PrefixHit(_is_active(tables, block))


def _is_active(tables: Tables, block: BlockId) -> bool:
    return tables.copies[block] < INACTIVE


def resident_prefix_blocks(state: BlockState, request: RequestId) -> int:
    """Leading blocks of a request whose hash is visible now: what an allocation may reuse at most.

    Raises:
        UnknownLeaseError: no open lease.
    """
    tables = state.tables
    return len(_overlap(tables, find_lease(tables, request)))


def _overlap(tables: Tables, lease: Lease) -> list[BlockId]:
    if not tables.shares(lease):
        return []
    look_up: Callable[[BlockHash | None], BlockId | None] = tables.primary.get  # type: ignore[assignment]
    hashes, overlap = lease.hashes, list[BlockId | None]()
    # Looked up by the chunk: in C for a long hit, and little wasted on an early miss.
    for start in range(0, len(hashes), _CHUNK):
        overlap += map(look_up, hashes[start : start + _CHUNK])
        if None in overlap[start:]:
            del overlap[overlap.index(None) :]
            break
    return cast("list[BlockId]", overlap)


def prefill_cost(state: BlockState, request: RequestId) -> PrefillCost:
    """What computing all known tokens of a request would take now; blocks of its own count as resident too.

    Rules: I35.

    Raises:
        UnknownLeaseError: no open lease.
    """
    tables = state.tables
    lease = find_lease(tables, request)
    overlap = _overlap(tables, lease)
    active = sum(1 for block in overlap if _is_active(tables, block))
    length = lease.length
    cached = min(len(overlap) * tables.block_size, length)
    return PrefillCost(
        new_blocks=len(lease.hashes) - len(overlap),
        new_tokens=length - cached,
        cached_tokens=cached,
        active_cached_tokens=min(active * tables.block_size, length),
    )


def num_active(state: BlockState) -> int:
    """Blocks in use or set aside."""
    return state.tables.num_active


def num_inactive(state: BlockState) -> int:
    """Visible blocks that nobody uses: the next to be evicted."""
    return len(state.tables.lru)


def num_free(state: BlockState) -> int:
    """Blocks without content that nobody set aside."""
    return state.tables.num_free


def block_table(state: BlockState, request: RequestId) -> tuple[BlockId, ...]:
    """The blocks a request holds, by position.

    Raises:
        UnknownLeaseError: no open lease.
    """
    return tuple(find_lease(state.tables, request).copies)


def block_hashes(state: BlockState, request: RequestId) -> tuple[BlockHash | None, ...]:
    """The sequence hashes of a request's blocks, by position; None where unresolved.

    Raises:
        UnknownLeaseError: no open lease.
    """
    return tuple(find_lease(state.tables, request).hashes)


def allocated_tokens(state: BlockState, request: RequestId) -> int:
    """The allocation watermark of a request.

    Raises:
        UnknownLeaseError: no open lease.
    """
    return find_lease(state.tables, request).allocated


def sequence_length(state: BlockState, request: RequestId) -> int:
    """Tokens known of a request, prompt and output.

    Raises:
        UnknownLeaseError: no open lease.
    """
    return find_lease(state.tables, request).length


def generated(state: BlockState, request: RequestId) -> int:
    """Output tokens of a request so far.

    Raises:
        UnknownLeaseError: no open lease.
    """
    lease = find_lease(state.tables, request)
    return lease.length - lease.prompt_tokens


def is_pending(state: BlockState, dependency: DependencyId) -> bool:
    """Whether a transfer is attached and not satisfied; an unknown one is not."""
    return dependency in state.tables.dependencies


def destination_pending(state: BlockState, reservation: ReservationId) -> tuple[DependencyId, ...]:
    """The transfers that still read a destination's capacity, in the order of use.

    Raises:
        UnknownReservationError, ReservationKindError.
    """
    return reservations.destination_pending(state.tables, reservation)
