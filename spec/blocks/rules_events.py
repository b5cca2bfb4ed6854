"""I13 and I24 to I30: what is told to routers, in which order, and in which order blocks are evicted."""

from collections.abc import Sequence

from tenure.core.blocks.values import (
    AllocationRequested,
    BlockHash,
    BlockId,
    DecodeReservationRequested,
    DestinationCancelled,
    DestinationRequested,
    Event,
    Exhausted,
    ExternalPrefixRequested,
    GrowthReady,
    GrowthScheduled,
    KvEvent,
    LeaseFinished,
    LeasePreempted,
    PublishRemoved,
    PublishStored,
    RecordTrace,
    StepComputed,
)
from tenure.core.blocks.view import BlockView, CachedCopy, LeaseView
from tenure.spec.blocks.rule import Observation, publishing_requests
from tenure.spec.rule import Finding

EVICTING = (
    AllocationRequested,
    GrowthScheduled,
    DecodeReservationRequested,
    DestinationRequested,
    ExternalPrefixRequested,
)
"""Events that reserve capacity. Nothing else evicts."""


def exhaustion_changes_nothing(seen: Observation) -> Finding:
    """I13."""
    got_nothing = isinstance(seen.answer, GrowthReady) and seen.answer.served == 0
    if not (isinstance(seen.answer, Exhausted) or (got_nothing and isinstance(seen.event, GrowthScheduled))):
        return None
    if seen.commands:
        return f"{seen.commands} were commanded although {seen.event} found no capacity"
    if seen.before != seen.after:
        return f"{changed_fields(seen.before, seen.after)} changed although {seen.event} found no capacity"
    return None


def refusal_changes_nothing(before: BlockView, event: Event, after: BlockView) -> Finding:
    """I14."""
    if before != after:
        return f"{changed_fields(before, after)} changed although {event} was refused"
    return None


def changed_fields(before: BlockView, after: BlockView) -> str:
    """The names of the fields in which two views differ."""
    names = [name for name in BlockView.__dataclass_fields__ if getattr(before, name) != getattr(after, name)]
    return ", ".join(names) or "nothing"


def event_ids_are_consecutive(seen: Observation) -> Finding:
    """I24."""
    events = kv_events(seen)
    if events and not seen.after.config.kv_events:
        return f"{events} were sent although nobody listens"
    expected = seen.before.next_event_id
    for event in events:
        if event.event_id != expected or event.dp_rank != seen.after.config.dp_rank:
            return f"{event} should have had id {expected} and rank {seen.after.config.dp_rank}"
        if not event.block_hashes:
            return f"{event} tells nothing"
        expected += 1
    if seen.after.next_event_id != expected:
        return f"{seen.after.next_event_id} is the next event id after {expected - 1}"
    return None


def events_tell_what_is_visible(seen: Observation) -> Finding:
    """I25: whoever saw the hashes of the state before and hears the events knows those of the state after."""
    if not seen.after.config.kv_events:
        return None
    if not seen.commands and seen.before.index.keys() == seen.after.index.keys():
        return None
    known = set(seen.before.index)
    for event in kv_events(seen):
        if isinstance(event, PublishStored):
            known.update(event.block_hashes)
            continue
        unknown = set(event.block_hashes) - known
        if unknown:
            return f"{sorted(unknown)} are removed by event {event.event_id} and were not visible"
        known.difference_update(event.block_hashes)
    if known != set(seen.after.index):
        return f"{sorted(known)} is what the events tell, {sorted(seen.after.index)} are visible"
    return None


def no_hash_is_told_twice(seen: Observation) -> Finding:
    """I26."""
    if not seen.commands:
        return None
    visible = set(seen.before.index)
    for event in kv_events(seen):
        names = event.block_hashes
        if len(set(names)) != len(names):
            return f"{names} names a hash twice in one event"
        if isinstance(event, PublishRemoved):
            visible.difference_update(names)
            continue
        if not visible.isdisjoint(names):
            return f"{sorted(visible.intersection(names))} are stored anew although they are visible"
        visible.update(names)
    return None


def stored_groups_are_runs_of_a_lease(seen: Observation) -> Finding:
    """I27."""
    if not seen.commands:
        return None
    leases = [seen.after.leases[request] for request in publishing_requests(seen.event) if request in seen.after.leases]
    ends: list[tuple[LeaseView, int, PublishStored]] = []
    for event in kv_events(seen):
        if not isinstance(event, PublishStored):
            continue
        places = [(lease, place) for lease in leases for place in places_of(lease, event)]
        if not places:
            return f"{event} is no run of blocks of a request that {seen.event} concerns"
        # Requests of one batch may have the same blocks, and a request given its hashes may have one several times;
        # it is enough that one place can have told this.
        size = seen.after.config.block_size
        findings = [payload_finding(lease, place, event, size) for lease, place in places]
        if None not in findings:
            return findings[0]
        lease, place = places[findings.index(None)]
        # The parts of a batch are operations of their own, and a group never spans two.
        for other, end, earlier in [] if isinstance(seen.event, StepComputed) else ends:
            same_payload = payload_kind(other, end - 1) == payload_kind(lease, place)
            if other is lease and end == place and same_payload:
                return f"{event} continues {earlier}, which could have told both"
        ends.append((lease, place + len(event.block_hashes), event))
    return None


def places_of(lease: LeaseView, event: PublishStored) -> list[int]:
    """Where in a lease a Stored group can stand, with the parent it names."""
    count = len(event.block_hashes)
    parents = (None, *lease.hashes)
    return [
        place
        for place in range(len(lease.hashes) - count + 1)
        if lease.hashes[place : place + count] == event.block_hashes and parents[place] == event.parent_hash
    ]


def payload_kind(lease: LeaseView, position: int) -> bool:
    """What decides whether two neighbours share an event; tokens are of one kind throughout a lease."""
    return lease.local_hashes[position] is None


def payload_finding(lease: LeaseView, place: int, event: PublishStored, block_size: int) -> Finding:
    """What is wrong with the local hashes or the tokens of a Stored group."""
    count = len(event.block_hashes)
    if len({payload_kind(lease, place + offset) for offset in range(count)}) != 1:
        return f"{event} mixes blocks with and without a local hash"
    if event.tokens_hashes != tuple(name or 0 for name in lease.local_hashes[place : place + count]):
        return f"{event} tells other local hashes than {lease.local_hashes} from position {place} on"
    expected = None
    if lease.emit_token_ids:
        expected = tuple(
            lease.window[position * block_size : (position + 1) * block_size]
            for position in range(place, place + count)
        )
    if event.token_ids != expected:
        return f"{event} should have told tokens {expected}"
    return None


def commands_come_in_order(seen: Observation) -> Finding:
    """I28: Removed before Stored, and a trace record directly before what it records."""
    if not seen.commands:
        return None
    kinds = ["eviction" if isinstance(event, PublishRemoved) else "allocation" for event in kv_events(seen)]
    if sorted(kinds, reverse=True) != kinds:
        return f"{kinds} is the order of the KV events of one operation"
    if not seen.after.config.trace:
        traced = [command for command in seen.commands if isinstance(command, RecordTrace)]
        return f"{traced} were recorded although tracing is off" if traced else None
    previous: RecordTrace | None = None
    for command in seen.commands:
        if isinstance(command, RecordTrace):
            if previous is not None and seen.after.config.kv_events:
                return f"{previous} records no event"
            previous = command
            continue
        wanted = "eviction" if isinstance(command, PublishRemoved) else "allocation"
        if previous is None or previous.kind != wanted:
            return f"{command} has {previous} for its record"
        previous = None
    if previous is not None and seen.after.config.kv_events:
        return f"{previous} records no event"
    return None


def only_inactive_blocks_are_evicted(seen: Observation) -> Finding:
    """I29."""
    evicted = evicted_blocks(seen)
    if not evicted and not seen.commands:
        return None
    if evicted and not isinstance(seen.event, EVICTING):
        return f"{evicted} were evicted by {seen.event}, which reserves nothing"
    inactive = set(seen.before.lru)
    for block in evicted:
        if block not in inactive:
            return f"block {block} was evicted as {seen.before.copies[block]}"
    told = [event for event in kv_events(seen) if isinstance(event, PublishRemoved)]
    if told and not isinstance(seen.event, EVICTING):
        return f"{told} were sent by {seen.event}, which reserves nothing"
    for name in (name for event in told for name in event.block_hashes):
        entry = seen.before.index.get(name)
        blocks = () if entry is None else (entry.primary, *entry.duplicates)
        busy = [block for block in blocks if block not in inactive]
        if busy:
            return f"hash {name} was removed while blocks {busy} of it were in use"
    return None


def eviction_follows_inactivity(seen: Observation) -> Finding:
    """I30."""
    then, now = seen.before.lru, seen.after.lru
    still, gone = set(now), set(evicted_blocks(seen))
    survivors = [block for block in then if block in still]
    evicted = [block for block in then if block in gone]
    if survivors and gone.intersection(then[then.index(survivors[0]) :]):
        return f"{evicted} were evicted although {survivors[0]} had been inactive for longer, of {then}"
    came = newly_inactive(seen)
    if list(now) != survivors + came:
        return f"{now} is the LRU order; {survivors} stayed and {came} followed"
    if not evicted and not seen.commands:
        return None
    told = [name for event in kv_events(seen) if isinstance(event, PublishRemoved) for name in event.block_hashes]
    expected = last_copies(seen.before, evicted)
    if seen.after.config.kv_events and told != expected:
        return f"{told} were removed, {expected} lost their last copy"
    return None


def newly_inactive(seen: Observation) -> list[BlockId]:
    """Blocks that the event should have made inactive, in order: a leaf before its parent."""
    match seen.event:
        case LeasePreempted(request) | LeaseFinished(request):
            lease = seen.before.leases.get(request)
            released = list(reversed(lease.copies)) if lease is not None else []
        case DestinationCancelled(number):
            reservation = seen.before.reservations.get(number)
            released = [block for _, block in reversed(reservation.prefix)] if reservation is not None else []
        case _:
            released = []
    came: list[BlockId] = []
    for place, block in enumerate(released):
        copy = seen.after.copies.get(block)
        unused = isinstance(copy, CachedCopy) and copy.references == 0 and copy.pins == 0
        # A block at several positions is in use until its last one is released.
        if unused and block not in released[place + 1 :]:
            came.append(block)
    return came


def last_copies(before: BlockView, evicted: Sequence[BlockId]) -> list[BlockHash]:
    """The hashes that vanish when blocks are evicted in this order."""
    left = {name: 1 + len(entry.duplicates) for name, entry in before.index.items()}
    vanished: list[BlockHash] = []
    for block in evicted:
        copy = before.copies[block]
        if isinstance(copy, CachedCopy) and copy.block_hash in left:
            left[copy.block_hash] -= 1
            if left[copy.block_hash] == 0:
                vanished.append(copy.block_hash)
    return vanished


def evicted_blocks(seen: Observation) -> list[BlockId]:
    """Blocks that were cached before and are not cached any more, or under another hash."""
    evicted: list[BlockId] = []
    for block, then in seen.before.copies.items():
        if not isinstance(then, CachedCopy):
            continue
        now = seen.after.copies.get(block)
        if not isinstance(now, CachedCopy) or now.block_hash != then.block_hash:
            evicted.append(block)
    return evicted


def kv_events(seen: Observation) -> list[KvEvent]:
    """The KV events among the commands, in order."""
    return [command for command in seen.commands if not isinstance(command, RecordTrace)]
