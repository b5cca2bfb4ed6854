"""The oracle's reservation and fence operations: capacity set aside, and the transfers that still read blocks."""

from itertools import pairwise

from tenure.core.blocks.values import (
    Answer,
    BlockHash,
    Command,
    DependencyId,
    Exhausted,
    NoSources,
    RequestId,
    ReservationId,
    Reserved,
    SnapshotId,
    Sources,
)
from tenure.core.errors import (
    DependencyPendingError,
    EmptySnapshotError,
    EmptySuffixError,
    LeaseResidentError,
    PendingDependenciesError,
    ReservationExceedsPromptError,
    ReservationOwnerError,
    SnapshotOwnerError,
    SnapshotsExhaustedError,
    SourcesChangedError,
    SuffixBeyondTableError,
    SuffixMismatchError,
    UnknownSnapshotError,
)
from tenure.spec.blocks.oracle_lease import OracleLease
from tenure.spec.blocks.oracle_leases import check_count, prefix_hashes, publishable
from tenure.spec.blocks.oracle_state import OracleReservation, OracleSnapshot, OracleState, StoredBlock

# --- Reserving ----------------------------------------------------------------------------------------------------


def reserve_decode(state: OracleState, blocks: int) -> tuple[Reserved | Exhausted, list[Command]]:
    """Set fresh capacity aside for later growth."""
    check_count(None, "blocks", blocks)
    return _reserve(state, None, [], blocks)


def reserve_destination(state: OracleState, lease: OracleLease) -> tuple[Reserved | Exhausted, list[Command]]:
    """Set room aside for a prompt: what is resident of it is pinned, the rest is fresh."""
    _check_empty(lease)
    total = lease.blocks_for(lease.sequence.prompt_tokens)
    names: list[BlockHash] = []
    for entry in lease.entries[:total]:
        # A request that takes no part in caching looks nothing up.
        if not state.shares(lease) or entry.sequence_hash is None:
            break
        if state.pool.primary(entry.sequence_hash) is None:
            break
        names.append(entry.sequence_hash)
    return _reserve(state, lease, names, total - len(names))


def reserve_external(
    state: OracleState, lease: OracleLease, prefix_blocks: int, suffix: tuple[BlockHash, ...]
) -> tuple[Reserved | Exhausted, list[Command]]:
    """Set room aside for exactly a resident prefix and the blocks of a transferred suffix."""
    request = lease.sequence.request
    _check_empty(lease)
    check_count(request, "prefix_blocks", prefix_blocks)
    if not suffix:
        raise EmptySuffixError(request)
    total = prefix_blocks + len(suffix)
    if total > len(lease.entries):
        raise SuffixBeyondTableError(request, total, len(lease.entries))
    for position, name in enumerate(suffix, start=prefix_blocks):
        if lease.entries[position].sequence_hash != name:
            raise SuffixMismatchError(request, position, lease.entries[position].sequence_hash, name)
    return _reserve(state, lease, prefix_hashes(state, lease, 0, prefix_blocks), len(suffix))


def _check_empty(lease: OracleLease) -> None:
    if lease.held:
        raise LeaseResidentError(lease.sequence.request, len(lease.held))


def _reserve(
    state: OracleState, lease: OracleLease | None, names: list[BlockHash], fresh: int
) -> tuple[Reserved | Exhausted, list[Command]]:
    outcome = state.pool.reserve(names, fresh)
    if isinstance(outcome, Exhausted):
        return outcome, []
    capacity, removed = outcome
    commands = state.removed(removed, capacity)
    if lease is None:
        reservation = OracleReservation("decode", None, 0, capacity)
    else:
        reservation = OracleReservation("destination", lease.sequence.request, lease.number, capacity)
    answer = Reserved(
        reservation=state.add_reservation(reservation),
        blocks=len(names) + fresh,
        fresh=fresh,
        transferable_tokens=fresh * state.config.block_size,
        dependencies=state.pool.pending_fresh(capacity, fresh),
    )
    return answer, commands


# --- Activating ---------------------------------------------------------------------------------------------------


def activate(state: OracleState, request: RequestId, number: ReservationId) -> list[Command]:
    """Hand a destination to its lease; full blocks are visible at once."""
    reservation = state.reservation(number, "destination")
    lease = _check_activation(state, request, number, reservation)
    capacity = reservation.capacity
    total = len(capacity.prefix) + len(capacity.fresh)
    shared = state.pool.activate_prefix(capacity)
    walked: list[StoredBlock | None] = []
    for position in range(total):
        entry = lease.entries[position]
        visible = False
        if position < len(shared):
            name, entry.copy = shared[position]
            # I32: it was reserved for this very lease, whose resolved hashes never change.
            assert name == entry.sequence_hash
        else:
            entry.copy = state.pool.allocate_private(capacity)
            if entry.sequence_hash is not None and state.shares(lease):
                # I15: of the prompt's last block only the prompt was transferred, whatever output named it before.
                if (position + 1) * lease.block_size <= lease.sequence.prompt_tokens:
                    visible = state.pool.cache_private(entry.copy, entry.sequence_hash, request)
                else:
                    entry.pending_cache = True
        walked.append(publishable(lease, position, visible))
    lease.allocated = min(total * lease.block_size, lease.sequence.prompt_tokens)
    del state.reservations[number]
    return state.stored(walked)


def _check_activation(
    state: OracleState, request: RequestId, number: ReservationId, reservation: OracleReservation
) -> OracleLease:
    owner = reservation.request
    assert owner is not None, f"destination {number} belongs to nobody"
    lease = state.lease(request)
    if owner != request or reservation.lease_number != lease.number:
        raise ReservationOwnerError(number, owner, request)
    _check_empty(lease)
    capacity = reservation.capacity
    total = len(capacity.prefix) + len(capacity.fresh)
    prompt_blocks = lease.blocks_for(lease.sequence.prompt_tokens)
    if total > prompt_blocks:
        raise ReservationExceedsPromptError(number, total, prompt_blocks)
    dependencies = state.pool.pending_fresh(capacity, len(capacity.fresh))
    if dependencies:
        raise PendingDependenciesError(number, dependencies)
    return lease


# --- Fences -------------------------------------------------------------------------------------------------------


def snapshot(state: OracleState, lease: OracleLease, positions: tuple[int, ...]) -> Answer:
    """Note which blocks a store would read, if it may read them."""
    request = lease.sequence.request
    if not positions:
        raise EmptySnapshotError(request)
    ascending = all(one < other for one, other in pairwise(positions))
    if not ascending or positions[0] < 0 or positions[-1] >= len(lease.entries):
        return NoSources()
    names: list[BlockHash] = []
    blocks: list[int] = []
    for entry in (lease.entries[position] for position in positions):
        if entry.sequence_hash is None or entry.copy is None or entry.pending_cache or entry.write_pending:
            return NoSources()
        names.append(entry.sequence_hash)
        blocks.append(entry.copy)
    if not state.pool.can_attach(blocks):
        return NoSources()
    if len(state.snapshots) >= state.config.snapshots_max:
        raise SnapshotsExhaustedError(state.config.snapshots_max)
    number = state.next_snapshot
    state.snapshots[number] = OracleSnapshot(request, positions, tuple(blocks))
    state.next_snapshot += 1
    return Sources(number, tuple(names))


def live_snapshot(state: OracleState, number: SnapshotId) -> OracleSnapshot:
    """A snapshot that was neither used nor overtaken by a change of its lease.

    Raises:
        UnknownSnapshotError: there is none of this id.
    """
    if number not in state.snapshots:
        raise UnknownSnapshotError(number)
    return state.snapshots[number]


def attach(state: OracleState, request: RequestId, number: SnapshotId, dependency: DependencyId) -> None:
    """Fence the blocks of a snapshot behind a transfer."""
    source = live_snapshot(state, number)
    if source.request != request:
        raise SnapshotOwnerError(number, source.request, request)
    if dependency in state.pool.attachments:
        raise DependencyPendingError(dependency)
    if not state.pool.can_attach(list(source.blocks)):
        raise SourcesChangedError(source.blocks)
    state.pool.attach(list(source.blocks), dependency)
    del state.snapshots[number]
