"""How the goals of the block machine are recognised in an observation, or in the observations of a run."""

from tenure.core.blocks.values import (
    AllocationRequested,
    BlockHash,
    BlockId,
    DecodeReservationReleased,
    DependencyAttached,
    DependencyId,
    DestinationActivated,
    DestinationCancelled,
    Exhausted,
    ExternalPrefixRequested,
    GrowthReady,
    GrowthScheduled,
    PublishRemoved,
    PublishStored,
    Ready,
    RequestId,
    Reserved,
    ReservedAllocationRequested,
    Sources,
    StepComputed,
    TokensComputed,
    WasPending,
)
from tenure.core.blocks.view import CachedCopy, LeaseView, PrivateCopy
from tenure.spec.blocks.rule import Observation, publishing_requests
from tenure.spec.blocks.rules_events import evicted_blocks, last_copies
from tenure.spec.blocks.rules_leases import resolved_blocks

# --- What an observation shows --------------------------------------------------------------------------------------


def leases(seen: Observation) -> list[tuple[LeaseView, LeaseView]]:
    """Every lease that changed, before and after."""
    pairs = [(then, seen.after.leases.get(request)) for request, then in seen.before.leases.items()]
    return [(then, now) for then, now in pairs if now is not None and now is not then and now != then]


def computed_lease(seen: Observation) -> LeaseView | None:
    """The lease whose blocks the event may have made visible."""
    requests = publishing_requests(seen.event)
    return seen.after.leases.get(requests[0]) if requests else None


def stored(seen: Observation) -> list[PublishStored]:
    """The Stored events of an observation."""
    return [command for command in seen.commands if isinstance(command, PublishStored)]


def added_duplicates(seen: Observation) -> bool:
    """Whether a hash got one more copy."""
    return any(
        name in seen.before.index and len(entry.duplicates) > len(seen.before.index[name].duplicates)
        for name, entry in seen.after.index.items()
    )


def promoted(seen: Observation) -> bool:
    """Whether a hash got another primary."""
    return any(
        name in seen.before.index and entry.primary != seen.before.index[name].primary
        for name, entry in seen.after.index.items()
    )


def evicted_duplicate(seen: Observation) -> bool:
    """Whether a hash lost a copy and kept its primary."""
    return any(
        name in seen.before.index
        and entry.primary == seen.before.index[name].primary
        and len(entry.duplicates) < len(seen.before.index[name].duplicates)
        for name, entry in seen.after.index.items()
    )


def evicted_silently(seen: Observation) -> bool:
    """Whether blocks were evicted and no hash vanished."""
    evicted = evicted_blocks(seen)
    return bool(evicted) and not last_copies(seen.before, evicted)


def removed_several(seen: Observation) -> bool:
    """Whether one Removed event tells several hashes."""
    return any(isinstance(command, PublishRemoved) and len(command.block_hashes) > 1 for command in seen.commands)


def exhausted_by_its_own_hits(seen: Observation) -> bool:
    """Whether a call found no capacity only for the blocks that it would share."""
    if not isinstance(seen.answer, Exhausted):
        return False
    return seen.answer.available < len(seen.before.free) + len(seen.before.lru) and seen.answer.needed > 0


def leaf_before_parent(seen: Observation) -> bool:
    """Whether a block went while the one in front of it stayed."""
    gone = seen.before.index.keys() - seen.after.index.keys()
    return bool(gone) and any(
        child in gone and parent in seen.after.index
        for lease in seen.before.leases.values()
        for parent, child in zip(lease.hashes, lease.hashes[1:], strict=False)
    )


def resolved_tail(seen: Observation) -> bool:
    """Whether a computation named a block."""
    return isinstance(seen.event, TokensComputed | StepComputed) and any(
        resolved_blocks(now) > resolved_blocks(then) for then, now in leases(seen)
    )


def split_by_payload(seen: Observation) -> bool:
    """Whether consecutive blocks were told by two Stored events."""
    lease = computed_lease(seen)
    if lease is None or len(stored(seen)) < 2:
        return False
    names = [name for event in stored(seen) for name in event.block_hashes]
    return any(
        tuple(names) == lease.hashes[place : place + len(names)] for place in range(len(lease.hashes) - len(names) + 1)
    )


def full_hit(seen: Observation) -> bool:
    """Whether an allocation shared a whole table."""
    event, answer = seen.event, seen.answer
    if not isinstance(event, AllocationRequested) or not isinstance(answer, Ready) or not answer.blocks:
        return False
    lease = seen.after.leases[event.request]
    return len(lease.copies) == len(lease.hashes) and event.reusable_blocks == len(lease.hashes) > 0


def revived(seen: Observation) -> bool:
    """Whether an inactive block is referenced again."""
    return any(
        isinstance(copy := seen.after.copies.get(block), CachedCopy) and copy.references > 0
        for block in seen.before.lru
    )


def pinned_twice(seen: Observation) -> bool:
    """Whether a reservation pins a copy at two positions."""
    return isinstance(seen.answer, Reserved) and any(
        len({block for _, block in each.prefix}) < len(each.prefix) for each in seen.after.reservations.values()
    )


def fenced_through_eviction(seen: Observation) -> bool:
    """Whether an answer names the reader of an evicted block."""
    if not isinstance(seen.answer, Ready | Reserved):
        return False
    tags = {seen.before.tags.get(block) for block in evicted_blocks(seen)}
    return not tags.isdisjoint(seen.answer.dependencies)


def fenced_through_reservation(seen: Observation) -> bool:
    """Whether reserved capacity came to a lease with its reader."""
    return (
        isinstance(seen.event, ReservedAllocationRequested)
        and isinstance(seen.answer, Ready)
        and bool(seen.answer.blocks)
        and bool(seen.answer.dependencies)
    )


def clean_block_waits_too(seen: Observation) -> bool:
    """Whether a block that nobody reads waits for an authorization."""
    if not isinstance(seen.answer, Ready) or not seen.answer.blocks:
        return False
    return any(
        block not in seen.after.tags
        for _, now in leases(seen)
        if (pending := now.pending_writes) is not None
        for block in now.copies[pending.start : pending.stop]
    )


def authorized_write(seen: Observation) -> bool:
    """Whether an authorized block became visible under its reader."""
    return any(
        block in seen.after.tags and isinstance(seen.after.copies.get(block), CachedCopy)
        for block in seen.before.authorized
    )


def pruned(seen: Observation, *, to_nothing: bool) -> bool:
    """Whether a lease stopped waiting for some transfers, or for all."""
    if not isinstance(seen.answer, Ready | GrowthReady):
        return False
    for request, then in seen.before.leases.items():
        now = seen.after.leases.get(request)
        if now is None or then.pending_writes is None:
            continue
        if now.pending_writes is None:
            return to_nothing
        if len(now.pending_writes.dependencies) < len(then.pending_writes.dependencies):
            return not to_nothing
    return False


def stale_snapshot(seen: Observation) -> bool:
    """Whether a snapshot died of a change in its lease."""
    return any(
        number not in seen.after.snapshots and each.request in seen.after.leases
        for number, each in seen.before.snapshots.items()
    ) and bool(leases(seen))


def activated_with_prefix(seen: Observation) -> bool:
    """Whether a destination with pinned and fresh blocks was activated."""
    return isinstance(seen.event, DestinationActivated) and any(
        each.prefix and each.fresh
        for number, each in seen.before.reservations.items()
        if number not in seen.after.reservations
    )


def activated_partial_tail(seen: Observation) -> bool:
    """Whether a destination with a partial tail was activated."""
    lease = computed_lease(seen)
    return isinstance(seen.event, DestinationActivated) and lease is not None and None in lease.hashes


def external_prefix(seen: Observation) -> bool:
    """Whether an external suffix was reserved behind a resident prefix."""
    return (
        isinstance(seen.event, ExternalPrefixRequested)
        and isinstance(seen.answer, Reserved)
        and seen.answer.blocks > seen.answer.fresh > 0
    )


def recomputed_in_chunks(seen: Observation) -> bool:
    """Whether a part of a prompt was computed that already has output."""
    event, lease = seen.event, computed_lease(seen)
    return (
        isinstance(event, TokensComputed)
        and lease is not None
        and lease.generated > 0
        and event.before < event.after < lease.length
        and event.before < lease.prompt_tokens
    )


def decode_ran_empty(seen: Observation) -> bool:
    """Whether the last block of a decode reservation was drawn."""
    return isinstance(seen.event, ReservedAllocationRequested) and any(
        not each.fresh and bool(seen.before.reservations[number].fresh)
        for number, each in seen.after.reservations.items()
    )


def hit_from_the_middle(seen: Observation) -> bool:
    """A hit takes a block out of the LRU order from between others."""
    survivors = [block for block in seen.before.lru if block in seen.after.lru]
    left = [block for block in seen.before.lru if block in seen.after.copies and block not in seen.after.lru]
    if not survivors or not left:
        return False
    order = seen.before.lru.index
    return any(order(survivors[0]) < order(block) < order(survivors[-1]) for block in left)


def private_source(seen: Observation) -> bool:
    """Whether a store may read a private block."""
    return isinstance(seen.answer, Sources) and any(
        isinstance(seen.after.copies[block], PrivateCopy) for block in seen.after.snapshots[seen.answer.snapshot].blocks
    )


# --- What a run shows -----------------------------------------------------------------------------------------------


class CancelledAfterEviction:
    """A reservation evicted something and was given back."""

    def __init__(self) -> None:
        self._evicting: set[int] = set()

    def __call__(self, seen: Observation) -> bool:
        """Whether it happened now."""
        if isinstance(seen.answer, Reserved) and evicted_blocks(seen):
            self._evicting.add(seen.answer.reservation)
        event = seen.event
        return (
            isinstance(event, DestinationCancelled | DecodeReservationReleased) and event.reservation in self._evicting
        )


class AttachedAnew:
    """A dependency was satisfied and its id attached again."""

    def __init__(self) -> None:
        self._satisfied: set[DependencyId] = set()

    def __call__(self, seen: Observation) -> bool:
        """Whether it happened now."""
        if seen.answer == WasPending(pending=True):
            self._satisfied |= set(seen.before.dependencies) - set(seen.after.dependencies)
        return isinstance(seen.event, DependencyAttached) and seen.event.dependency in self._satisfied


class StoredAgain:
    """A hash was evicted and became visible again."""

    def __init__(self) -> None:
        self._gone: set[BlockHash] = set()

    def __call__(self, seen: Observation) -> bool:
        """Whether it happened now."""
        self._gone |= set(seen.before.index) - set(seen.after.index)
        return not self._gone.isdisjoint(set(seen.after.index) - set(seen.before.index))


class TagOutlivesTwoTenancies:
    """A block changed hands twice while one transfer read it."""

    def __init__(self) -> None:
        self._reused: dict[BlockId, int] = {}

    def __call__(self, seen: Observation) -> bool:
        """Whether it happened now."""
        for block in [block for block in self._reused if block not in seen.after.tags]:
            del self._reused[block]
        for block in seen.after.tags:
            if block in seen.before.tags and block in seen.before.free and block in seen.after.copies:
                self._reused[block] = self._reused.get(block, 0) + 1
        return any(times > 1 for times in self._reused.values())


def left_out(seen: Observation) -> tuple[RequestId, ...]:
    """The requests of a batch that got nothing."""
    if not isinstance(seen.event, GrowthScheduled) or not isinstance(seen.answer, GrowthReady):
        return ()
    return seen.event.requests[seen.answer.served :]
