"""The oracle's whole state: leases, reservations and snapshots over one pool, and the events it owes to routers."""

from dataclasses import dataclass
from typing import Literal

from tenure.core.blocks.values import (
    BlockHash,
    BlockId,
    Command,
    DependencyId,
    PublishRemoved,
    PublishStored,
    RecordTrace,
    RequestId,
    ReservationId,
    SnapshotId,
)
from tenure.core.blocks.view import (
    BlockView,
    CachedCopy,
    IndexEntry,
    PrivateCopy,
    ReservationView,
    SnapshotView,
)
from tenure.core.config import BlockConfig
from tenure.core.errors import (
    ReservationKindError,
    UnknownLeaseError,
    UnknownReservationError,
)
from tenure.spec.blocks.oracle_lease import OracleLease
from tenure.spec.blocks.oracle_pool import Capacity, OracleCopy, OraclePool

Kind = Literal["decode", "destination"]


@dataclass(slots=True)
class OracleReservation:
    """Capacity with an id; a destination also knows which lease it was made for."""

    kind: Kind
    request: RequestId | None
    lease_number: int
    capacity: Capacity


@dataclass(frozen=True, slots=True)
class OracleSnapshot:
    """Positions of a lease and the blocks that were there."""

    request: RequestId
    positions: tuple[int, ...]
    blocks: tuple[BlockId, ...]


@dataclass(frozen=True, slots=True)
class StoredBlock:
    """One block that became visible, as a router will hear of it."""

    parent: BlockHash | None
    block_hash: BlockHash
    local_hash: int | None
    token_ids: tuple[int, ...] | None


class OracleState:
    """Everything the oracle knows; an event works on a clone, so that a raise leaves no trace."""

    def __init__(self, config: BlockConfig) -> None:
        """An empty machine."""
        self.config = config
        self.pool = OraclePool(config.capacity)
        self.leases: dict[RequestId, OracleLease] = {}
        # Leases that another state knows too: to be looked at and not to be changed.
        self._lent: set[RequestId] = set()
        self.reservations: dict[ReservationId, OracleReservation] = {}
        self.snapshots: dict[SnapshotId, OracleSnapshot] = {}
        self.leases_opened = 0
        self.next_reservation = 1
        self.next_snapshot = 1
        self.next_event_id = 0

    def clone(self) -> "OracleState":
        """An independent twin."""
        twin = OracleState.__new__(OracleState)
        twin.config = self.config
        twin.pool = self.pool.clone()
        twin.leases, twin._lent = dict(self.leases), set(self.leases)
        twin.reservations = {
            number: OracleReservation(each.kind, each.request, each.lease_number, each.capacity.clone())
            for number, each in self.reservations.items()
        }
        twin.snapshots = dict(self.snapshots)
        twin.leases_opened = self.leases_opened
        twin.next_reservation = self.next_reservation
        twin.next_snapshot = self.next_snapshot
        twin.next_event_id = self.next_event_id
        return twin

    # --- Ids ----------------------------------------------------------------------------------------------------

    def lease(self, request: RequestId) -> OracleLease:
        """An open lease, which may be changed.

        Raises:
            UnknownLeaseError: there is none of this id.
        """
        found = self.look_at(request)
        if request in self._lent:
            self._lent.remove(request)
            found = self.leases[request] = found.clone()
        return found

    def look_at(self, request: RequestId) -> OracleLease:
        """An open lease, which is only read.

        Raises:
            UnknownLeaseError: there is none of this id.
        """
        if request not in self.leases:
            raise UnknownLeaseError(request)
        return self.leases[request]

    def shares(self, lease: OracleLease) -> bool:
        """Whether a request takes part in prefix caching: the machine and the request both have it on."""
        return self.config.prefix_caching and lease.sequence.caching

    def reservation(self, number: ReservationId, kind: Kind) -> OracleReservation:
        """A live reservation of the kind.

        Raises:
            UnknownReservationError: the id never lived, or is dead.
            ReservationKindError: it is of the other kind.
        """
        if number not in self.reservations:
            raise UnknownReservationError(number)
        found = self.reservations[number]
        if found.kind != kind:
            raise ReservationKindError(number, found.kind, kind)
        return found

    def add_reservation(self, reservation: OracleReservation) -> ReservationId:
        """Give a reservation its id."""
        number = self.next_reservation
        self.reservations[number] = reservation
        self.next_reservation += 1
        return number

    def forget_stale_snapshots(self, before: "OracleState") -> None:
        """End every snapshot whose lease is gone or not what it was in `before`."""
        for number, snapshot in list(self.snapshots.items()):
            lease = self.leases.get(snapshot.request)
            if lease is None or lease != before.leases.get(snapshot.request):
                del self.snapshots[number]

    def attachments(self, dependencies: tuple[DependencyId, ...]) -> list[tuple[DependencyId, int]]:
        """Each pending dependency with the number of its attachment."""
        return [(dependency, self.pool.attachments[dependency][0]) for dependency in dependencies]

    # --- What routers and logs hear -----------------------------------------------------------------------------

    @property
    def reserved(self) -> int:
        """Fresh blocks in live reservations."""
        return sum(len(each.capacity.fresh) for each in self.reservations.values())

    def _trace(self, kind: Literal["allocation", "eviction"], reserved: int) -> list[Command]:
        if not self.config.trace:
            return []
        return [
            RecordTrace(
                kind=kind,
                dp_rank=self.config.dp_rank,
                block_size=self.config.block_size,
                active=self.pool.num_active(reserved),
                inactive=len(self.pool.lru),
                capacity=self.config.capacity,
            )
        ]

    def _take_event_id(self) -> int:
        self.next_event_id += 1
        return self.next_event_id - 1

    def removed(self, names: list[BlockHash], capacity: Capacity) -> list[Command]:
        """The commands for hashes evicted by the reserve that has just set `capacity` aside, without an id yet."""
        if not names or not self.config.prefix_caching:
            return []
        commands = self._trace("eviction", self.reserved + len(capacity.fresh))
        if self.config.kv_events:
            # I24: an id is used only by an event that is built.
            commands.append(PublishRemoved(self._take_event_id(), self.config.dp_rank, tuple(names)))
        return commands

    def stored(self, walked: list[StoredBlock | None]) -> list[Command]:
        """The commands for the blocks that an operation walked over; None where nothing became visible."""
        if not self.config.prefix_caching:
            return []
        commands: list[Command] = []
        for group in groups_of(walked):
            commands += self._trace("allocation", self.reserved)
            if self.config.kv_events:
                commands.append(
                    PublishStored(
                        event_id=self._take_event_id(),
                        dp_rank=self.config.dp_rank,
                        parent_hash=group[0].parent,
                        block_hashes=tuple(block.block_hash for block in group),
                        tokens_hashes=tuple(block.local_hash or 0 for block in group),
                        token_ids=token_ids_of(group),
                    )
                )
        return commands

    # --- The view -----------------------------------------------------------------------------------------------

    def view(self) -> BlockView:
        """The state as plain data."""
        pool = self.pool
        return BlockView(
            config=self.config,
            copies={block: _copy_view(copy) for block, copy in pool.copies.items()},
            index={name: IndexEntry(blocks[0], tuple(blocks[1:])) for name, blocks in pool.index.items()},
            lru=tuple(pool.lru),
            lru_positions=tuple(enumerate(pool.lru)),
            free=tuple(pool.free),
            reservations={
                number: ReservationView(
                    kind=each.kind,
                    request=each.request,
                    prefix=tuple(each.capacity.prefix),
                    fresh=tuple(each.capacity.fresh),
                    dependencies=pool.pending_fresh(each.capacity, len(each.capacity.fresh)),
                )
                for number, each in self.reservations.items()
            },
            leases={request: lease.view() for request, lease in self.leases.items()},
            snapshots={
                number: SnapshotView(each.request, each.positions, each.blocks)
                for number, each in self.snapshots.items()
            },
            tags=dict(pool.tags),
            authorized=frozenset(pool.authorized),
            dependencies={dependency: blocks for dependency, (_, blocks) in pool.attachments.items()},
            attached_ever=pool.attached_ever,
            next_event_id=self.next_event_id,
        )


def groups_of(walked: list[StoredBlock | None]) -> list[list[StoredBlock]]:
    """Runs of visible blocks that can share one event: same payload, nothing invisible between them."""
    groups: list[list[StoredBlock]] = []
    previous: StoredBlock | None = None
    for block in walked:
        if block is not None:
            if previous is not None and _same_payload(previous, block):
                groups[-1].append(block)
            else:
                groups.append([block])
        previous = block
    return groups


def _same_payload(one: StoredBlock, other: StoredBlock) -> bool:
    return (one.local_hash is None) == (other.local_hash is None) and (one.token_ids is None) == (
        other.token_ids is None
    )


def token_ids_of(group: list[StoredBlock]) -> tuple[tuple[int, ...], ...] | None:
    """The tokens of a group's blocks, or None where they are not emitted."""
    tokens = [block.token_ids for block in group if block.token_ids is not None]
    return tuple(tokens) if tokens else None


def _copy_view(copy: OracleCopy) -> PrivateCopy | CachedCopy:
    if copy.block_hash is None:
        return PrivateCopy()
    return CachedCopy(copy.block_hash, copy.references, copy.pins)
