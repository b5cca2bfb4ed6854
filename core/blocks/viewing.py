"""Makes a `BlockView` of the tables: the only place that shows them to the outside as a whole."""

from tenure.core.blocks.tables import EMPTY, INACTIVE, PRIVATE, Lease, Reservation, Tables
from tenure.core.blocks.tags import pending_dependencies
from tenure.core.blocks.view import (
    BlockView,
    CachedCopy,
    Copy,
    FreeBlocks,
    IndexEntry,
    LeaseView,
    PendingWrites,
    PrivateCopy,
    ReservationView,
    SnapshotView,
)
from tenure.core.requests import sorted_requests


def view_of(tables: Tables) -> BlockView:
    """Everything the tables hold, as plain data that shares nothing mutable with them."""
    copies: dict[int, Copy] = {}
    for block, count in enumerate(tables.copies):
        if count == PRIVATE:
            copies[block] = PrivateCopy()
        elif count != EMPTY:
            references = 0 if count >= INACTIVE else count
            copies[block] = CachedCopy(tables.hash_of[block], references, tables.pins.get(block, 0))
    return BlockView(
        config=tables.config,
        copies=copies,
        index={
            block_hash: IndexEntry(tables.primary[block_hash], tables.duplicates.get(block_hash, ()))
            for block_hash in sorted(tables.primary)
        },
        lru=tables.lru_order(),
        lru_positions=tuple(
            sorted((count - INACTIVE, block) for block, count in enumerate(tables.copies) if count >= INACTIVE)
        ),
        free=FreeBlocks(tables.capacity, *tables.canonical_free()),
        reservations={key: _reservation_view(tables, tables.reservations[key]) for key in sorted(tables.reservations)},
        leases={request: _lease_view(tables, tables.leases[request]) for request in sorted_requests(tables.leases)},
        snapshots={
            key: SnapshotView(each.request, each.positions, each.blocks)
            for key, each in sorted(tables.snapshots.items())
        },
        tags=dict(sorted(tables.tags.items())),
        authorized=frozenset(tables.authorized),
        dependencies={key: each.blocks for key, each in sorted(tables.dependencies.items())},
        attached_ever=tables.attached_ever,
        next_event_id=tables.next_event_id,
    )


def _reservation_view(tables: Tables, reservation: Reservation) -> ReservationView:
    return ReservationView(
        kind=reservation.kind,
        request=reservation.request,
        prefix=reservation.prefix,
        fresh=reservation.fresh,
        dependencies=pending_dependencies(tables, reservation.fresh[::-1]),
    )


def _lease_view(tables: Tables, lease: Lease) -> LeaseView:
    pending = lease.pending
    return LeaseView(
        hashes=tuple(lease.hashes),
        local_hashes=tuple(lease.local_hashes),
        copies=tuple(lease.copies),
        pending_cache=tuple(
            tables.shares(lease) and tables.copies[block] == PRIVATE and lease.hashes[position] is not None
            for position, block in enumerate(lease.copies)
        ),
        allocated_tokens=lease.allocated,
        pending_writes=None if pending is None else PendingWrites(pending.start, pending.stop, pending.dependencies),
        prompt_tokens=lease.prompt_tokens,
        max_output=lease.max_output,
        generated=lease.length - lease.prompt_tokens,
        length=lease.length,
        window_start=lease.start,
        window=tuple(lease.window),
        planned=lease.planned,
        caching=lease.caching,
        emit_token_ids=lease.emit_token_ids,
    )
