"""Reservations: capacity set aside for later growth, or for a prompt that is transferred in.

A reservation id dies at release, cancel or activation, once; a decode reservation that has run empty stays valid.

Source: decode and destination reservations of the seed's manager.
"""

from typing import Literal, cast

from tenure.core.blocks import pool, prefix_index, tags
from tenure.core.blocks.leases import (
    check_count,
    check_table,
    find_lease,
    hold,
    hold_fresh,
    keep,
    set_allocated,
)
from tenure.core.blocks.publish import publish_removed, publish_stored
from tenure.core.blocks.tables import Edit, Lease, Reservation, Tables
from tenure.core.blocks.values import (
    BlockHash,
    BlockId,
    DecodeReservationReleased,
    DecodeReservationRequested,
    DestinationActivated,
    DestinationCancelled,
    DestinationRequested,
    Done,
    Exhausted,
    ExternalPrefixRequested,
    Ready,
    RequestId,
    ReservationId,
    Reserved,
    ReservedAllocationRequested,
)
from tenure.core.errors import (
    EmptySuffixError,
    FencedGrowthError,
    LeaseResidentError,
    PendingDependenciesError,
    PrefixNotResidentError,
    ReservationExceedsPromptError,
    ReservationKindError,
    ReservationOwnerError,
    ReservationTooSmallError,
    SuffixBeyondTableError,
    SuffixMismatchError,
    UnknownReservationError,
)
from tenure.core.persistent import ITEM, MISSING


def find_reservation(tables: Tables, key: ReservationId, kind: Literal["decode", "destination"]) -> Reservation:
    """The live reservation under an id.

    Raises:
        UnknownReservationError: there is none.
        ReservationKindError: it is of the other kind.
    """
    reservation = tables.reservations.get(key)
    if reservation is None:
        raise UnknownReservationError(key)
    if reservation.kind != kind:
        raise ReservationKindError(key, reservation.kind, kind)
    return reservation


def _reserve(edit: Edit, lease: Lease | None, hits: list[BlockId], fresh: int) -> Reserved | Exhausted:
    """Pin `hits` and set `fresh` blocks aside, or change nothing (I13)."""
    tables = edit.tables
    exhausted = pool.shortfall(tables, hits, fresh)
    if exhausted is not None:
        return exhausted

    prefix = tuple((tables.hash_of[block], block) for block in hits)
    if hits:
        pool.pin(edit, hits)
    taken, removed = pool.take_fresh(edit, fresh)
    publish_removed(edit, removed)
    tables.reservations_ever += 1
    key = tables.reservations_ever
    edit.journal.append((ITEM, tables.reservations, key, MISSING))
    if lease is None:
        tables.reservations[key] = Reservation("decode", None, 0, (), tuple(taken))
    else:
        tables.reservations[key] = Reservation("destination", lease.request, lease.number, prefix, tuple(taken))
    return Reserved(
        reservation=key,
        blocks=len(hits) + fresh,
        fresh=fresh,
        transferable_tokens=fresh * tables.block_size,
        dependencies=tags.pending_dependencies(tables, reversed(taken)),
    )


def _end(edit: Edit, key: ReservationId, reservation: Reservation) -> None:
    edit.journal.append((ITEM, edit.tables.reservations, key, reservation))
    del edit.tables.reservations[key]


def _cancel(edit: Edit, key: ReservationId, reservation: Reservation) -> None:
    """Give pins and capacity back. What the reserve evicted stays evicted."""
    _end(edit, key, reservation)
    if reservation.prefix:
        # I30: the leaf becomes inactive before its parent.
        pool.unpin(edit, [block for _, block in reversed(reservation.prefix)])
    pool.give_back(edit, reservation.fresh)


# --- Decode -----------------------------------------------------------------------------------------------------


def on_decode_reservation_requested(edit: Edit, event: DecodeReservationRequested) -> Reserved | Exhausted:
    """Set fresh capacity aside.

    Raises:
        NegativeCountError: a negative number of blocks.
    """
    check_count(None, "blocks", event.blocks)
    return _reserve(edit, None, [], event.blocks)


def on_decode_reservation_released(edit: Edit, event: DecodeReservationReleased) -> Done:
    """Give back what is left.

    Raises:
        UnknownReservationError, ReservationKindError.
    """
    reservation = find_reservation(edit.tables, event.reservation, "decode")
    _cancel(edit, event.reservation, reservation)
    return Done()


def on_reserved_allocation_requested(edit: Edit, event: ReservedAllocationRequested) -> Ready:
    """Hold capacity for the first tokens of a request, out of a decode reservation.

    Raises:
        UnknownLeaseError, NegativeCountError, AllocationBeyondTableError, UnknownReservationError,
        ReservationKindError.
        FencedGrowthError: earlier capacity waits for an authorization.
        ReservationTooSmallError: the reservation does not cover the growth.
    """
    tables = edit.tables
    lease = find_lease(tables, event.request)
    target = check_table(tables, lease, event.tokens)
    reservation = find_reservation(tables, event.reservation, "decode")
    held = len(lease.copies)
    if target <= held:
        return keep(edit, lease, event.tokens)
    if lease.pending is not None:
        raise FencedGrowthError(event.request, lease.pending.dependencies)
    growth, left = target - held, len(reservation.fresh)
    if growth > left:
        raise ReservationTooSmallError(event.reservation, event.request, growth, left)

    rest = Reservation("decode", None, 0, (), reservation.fresh[: left - growth])
    edit.journal.append((ITEM, tables.reservations, event.reservation, reservation))
    tables.reservations[event.reservation] = rest
    dependencies = hold_fresh(edit, lease, list(reservation.fresh[left - growth :]))
    set_allocated(edit, lease, event.tokens)
    return Ready(tuple(lease.copies[held:]), dependencies)


# --- Destinations -----------------------------------------------------------------------------------------------


def on_destination_requested(edit: Edit, event: DestinationRequested) -> Reserved | Exhausted:
    """Set room aside for a prompt: its longest resident prefix pinned, the rest fresh.

    Raises:
        UnknownLeaseError: no open lease.
        LeaseResidentError: the lease already holds blocks.
    """
    tables = edit.tables
    lease = _empty_lease(tables, event.request)
    blocks = _prompt_blocks(tables, lease)
    candidates = [each for each in lease.hashes[:blocks] if each is not None] if tables.shares(lease) else []
    hits = prefix_index.resident_prefix(tables, candidates, blocks)
    return _reserve(edit, lease, hits, blocks - len(hits))


def on_external_prefix_requested(edit: Edit, event: ExternalPrefixRequested) -> Reserved | Exhausted:
    """Set room aside for a transfer of exactly `suffix`, behind `prefix_blocks` resident blocks.

    Raises:
        UnknownLeaseError, NegativeCountError.
        LeaseResidentError: the lease already holds blocks.
        EmptySuffixError, SuffixBeyondTableError, SuffixMismatchError: the suffix is not the request's.
        PrefixNotResidentError: a prefix block that cannot be pinned.
    """
    tables, prefix = edit.tables, event.prefix_blocks
    lease = _empty_lease(tables, event.request)
    check_count(event.request, "prefix_blocks", prefix)
    _check_suffix(lease, prefix, event.suffix)
    candidates = lease.hashes[:prefix]
    # I32: unresolved blocks are the last of a table, and the suffix behind these is resolved.
    assert None not in candidates
    if candidates and not tables.shares(lease):
        raise PrefixNotResidentError(cast("BlockHash", candidates[0]))
    hits = prefix_index.exact_prefix(tables, cast("list[BlockHash]", candidates), prefix + len(event.suffix))
    return _reserve(edit, lease, hits, len(event.suffix))


def _check_suffix(lease: Lease, prefix: int, suffix: tuple[BlockHash, ...]) -> None:
    if not suffix:
        raise EmptySuffixError(lease.request)
    if prefix + len(suffix) > len(lease.hashes):
        raise SuffixBeyondTableError(lease.request, prefix + len(suffix), len(lease.hashes))
    for position, block_hash in enumerate(suffix, prefix):
        if lease.hashes[position] != block_hash:
            raise SuffixMismatchError(lease.request, position, lease.hashes[position], block_hash)


def _empty_lease(tables: Tables, request: RequestId) -> Lease:
    lease = find_lease(tables, request)
    if lease.copies:
        raise LeaseResidentError(request, len(lease.copies))
    return lease


def _prompt_blocks(tables: Tables, lease: Lease) -> int:
    return min(-(-lease.prompt_tokens // tables.block_size), len(lease.hashes))


def on_destination_activated(edit: Edit, event: DestinationActivated) -> Done:
    """Let the lease take the blocks of its destination; full ones become visible at once.

    Raises:
        UnknownReservationError, ReservationKindError, UnknownLeaseError.
        ReservationOwnerError: it was made for another request, or for an earlier lease of this one.
        LeaseResidentError: the lease already holds blocks.
        ReservationExceedsPromptError: it covers more than the prompt.
        PendingDependenciesError: a transfer still reads its capacity.
    """
    tables = edit.tables
    reservation = find_reservation(tables, event.reservation, "destination")
    lease = find_lease(tables, event.request)
    blocks = len(reservation.prefix) + len(reservation.fresh)
    _check_activation(tables, lease, event.reservation, reservation)

    _end(edit, event.reservation, reservation)
    hits = [block for _, block in reservation.prefix]
    if hits:
        # References come first, so that no copy is inactive in between.
        pool.reference(edit, hits)
        pool.unpin(edit, hits)
        hold(edit, lease, hits)
    if reservation.fresh:
        hold_fresh(edit, lease, list(reservation.fresh))
    set_allocated(edit, lease, min(blocks * tables.block_size, lease.prompt_tokens))
    if tables.shares(lease):
        # I15: of the prompt's last block only the prompt was transferred, whatever output named it before.
        _publish_fresh(edit, lease, len(hits), min(blocks, lease.prompt_tokens // tables.block_size))
    return Done()


def _check_activation(tables: Tables, lease: Lease, key: ReservationId, reservation: Reservation) -> None:
    if reservation.lease_number != lease.number:
        raise ReservationOwnerError(key, reservation.request or 0, lease.request)
    if lease.copies:
        raise LeaseResidentError(lease.request, len(lease.copies))
    blocks, prompt_blocks = len(reservation.prefix) + len(reservation.fresh), _prompt_blocks(tables, lease)
    if blocks > prompt_blocks:
        raise ReservationExceedsPromptError(key, blocks, prompt_blocks)
    dependencies = tags.pending_dependencies(tables, reversed(reservation.fresh))
    if dependencies:
        raise PendingDependenciesError(key, dependencies)
    for position, (block_hash, _) in enumerate(reservation.prefix):
        # I32: a resolved hash never changes, and the reservation was made for this very lease.
        assert lease.hashes[position] == block_hash


def _publish_fresh(edit: Edit, lease: Lease, start: int, stop: int) -> None:
    """Cache the full blocks at positions `[start, stop)`: what was transferred in is computed."""
    full = [
        (position, block_hash)
        for position, block_hash in enumerate(lease.hashes[start:stop], start)
        if block_hash is not None
    ]
    if not full:
        return
    positions = [position for position, _ in full]
    blocks = [lease.copies[position] for position in positions]
    visible = pool.cache_private(edit, blocks, [block_hash for _, block_hash in full])
    publish_stored(edit, lease, positions, visible)


def on_destination_cancelled(edit: Edit, event: DestinationCancelled) -> Done:
    """Give a destination up.

    Raises:
        UnknownReservationError, ReservationKindError.
    """
    reservation = find_reservation(edit.tables, event.reservation, "destination")
    _cancel(edit, event.reservation, reservation)
    return Done()


def destination_pending(tables: Tables, key: ReservationId) -> tuple[int, ...]:
    """The transfers that still read a destination's capacity, in the order of use.

    Raises:
        UnknownReservationError, ReservationKindError.
    """
    reservation = find_reservation(tables, key, "destination")
    return tags.pending_dependencies(tables, reversed(reservation.fresh))
