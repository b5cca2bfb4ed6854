"""Good observations, and for every rule of a transition ways to break it by hand."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from tenure.core.blocks.values import (
    AllocationRequested,
    Command,
    DecodeReservationRequested,
    DependencySatisfied,
    GrowthReady,
    GrowthScheduled,
    LeaseFinished,
    LeaseOpened,
    LeasePreempted,
    PublishRemoved,
    PublishStored,
    RecordTrace,
    StoreSourcesSnapshotted,
)
from tenure.core.blocks.view import CachedCopy, IndexEntry, PendingWrites, SnapshotView
from tenure.spec.blocks.rule import Observation
from tests.spec.history import History, config, fenced_pair, named
from tests.spec.spoiled_states import Breaker, copy, drop, index, lease, writes

# --- Good observations ----------------------------------------------------------------------------------------------


def stored() -> Observation:
    """Two blocks of request 1 become visible."""
    history = History(config(4))
    history.compute(named(1, [7, 8], emit_token_ids=True))
    return history.last


def duplicated() -> Observation:
    """Request 2's copy of hash 7 is cached behind request 1's."""
    history = History(config(4))
    history.compute(named(1, [7]))
    history.compute(named(2, [7]))
    return history.last


def removed() -> Observation:
    """A reservation evicts the two blocks that have been inactive for longest."""
    history = History(config(4))
    history.compute(named(1, [6]))
    history.leave_behind(named(2, [7, 8, 9]))
    history.tell(DecodeReservationRequested(2))
    return history.last


def exhausted() -> Observation:
    history = History(config(1))
    history.compute(named(1, [7]))
    history.tell(DecodeReservationRequested(1))
    return history.last


def nobody_served() -> Observation:
    history = History(config(1))
    history.compute(named(1, [7]))
    history.tell(LeaseOpened(named(2, [8])))
    history.tell(GrowthScheduled((2,)))
    return history.last


def released() -> Observation:
    history = History(config(4))
    history.compute(named(1, [7, 8]))
    history.tell(LeaseFinished(1))
    return history.last


def preempted() -> Observation:
    history = History(config(4))
    history.compute(named(1, [7, 8]))
    history.tell(LeasePreempted(1))
    return history.last


def asked_again() -> Observation:
    history = fenced_pair()
    history.tell(AllocationRequested(9, 8))
    return history.last


def satisfied() -> Observation:
    history = fenced_pair()
    history.tell(DependencySatisfied(2))
    return history.last


def attached() -> Observation:
    history = History(config(4))
    history.compute(named(1, [7]))
    history.fence(1, [0], 5)
    return history.last


def traced() -> Observation:
    history = History(config(4, trace=True))
    history.compute(named(1, [7]))
    return history.last


def silent() -> Observation:
    history = History(config(4, prefix_caching=False))
    history.compute(named(1, [7]))
    return history.last


def chosen() -> Observation:
    """Two of three blocks of request 1 are the sources of a store."""
    history = History(config(4))
    history.compute(named(1, [7, 8, 9]))
    history.tell(StoreSourcesSnapshotted(1, (0, 2)))
    return history.last


GOOD_OBSERVATIONS = [
    stored,
    duplicated,
    removed,
    exhausted,
    nobody_served,
    released,
    preempted,
    asked_again,
    satisfied,
    attached,
    chosen,
    traced,
    silent,
]


# --- Ways to break them ---------------------------------------------------------------------------------------------


def with_a_snapshot(seen: Observation) -> Observation:
    """An observation through which a snapshot of request 1 lives on."""
    snapshots = {1: SnapshotView(1, (0,), (0,))}
    return after(
        replace(seen, before=replace(seen.before, snapshots=snapshots)), lambda v: replace(v, snapshots=snapshots)
    )


def with_sources(seen: Observation, positions: tuple[int, ...], *blocks: int) -> Observation:
    """An observation at whose end a snapshot of request 1 chose these blocks."""
    snapshots = {1: SnapshotView(1, positions, blocks or positions)}
    return after(seen, lambda v: replace(v, snapshots=snapshots))


def throughout(seen: Observation, spoil: Breaker) -> Observation:
    """An observation that begins and ends elsewhere."""
    return replace(seen, before=spoil(seen.before), after=spoil(seen.after))


def after(seen: Observation, spoil: Breaker) -> Observation:
    """An observation that ends elsewhere."""
    return replace(seen, after=spoil(seen.after))


def told(seen: Observation, *commands: Command) -> Observation:
    """An observation with other commands, and the event id that these would leave."""
    ids = sum(isinstance(each, PublishRemoved | PublishStored) for each in commands)
    return replace(seen, commands=commands, after=replace(seen.after, next_event_id=seen.before.next_event_id + ids))


def event(seen: Observation, **changes: Any) -> Observation:
    """An observation with something changed in its only command."""
    (command,) = seen.commands
    assert isinstance(command, PublishRemoved | PublishStored)
    return replace(seen, commands=(command._replace(**changes),))


def split(seen: Observation) -> Observation:
    """The two blocks of `stored`, told by two events."""
    (command,) = seen.commands
    assert isinstance(command, PublishStored)
    assert command.token_ids is not None
    first = command._replace(block_hashes=(7,), tokens_hashes=(107,), token_ids=command.token_ids[:1], parent_hash=None)
    second = command._replace(
        event_id=1,
        block_hashes=(8,),
        tokens_hashes=(108,),
        token_ids=command.token_ids[1:],
        parent_hash=7,
    )
    return told(seen, first, second)


RECORD = RecordTrace("allocation", 0, 4, 1, 0, 4)
REMOVED_7 = PublishRemoved(1, 0, (7,))
EVICT = DecodeReservationRequested(1)

BROKEN_OBSERVATIONS: list[tuple[str, Callable[[], Observation], Callable[[Observation], Observation]]] = [
    ("I08", duplicated, lambda s: after(s, lambda v: index(v, 7, IndexEntry(1, (0,))))),
    ("I08", duplicated, lambda s: after(s, lambda v: index(v, 7, IndexEntry(0, (3,))))),
    ("I13", exhausted, lambda s: after(s, lambda v: replace(v, free=(*v.free, 9)))),
    ("I13", exhausted, lambda s: replace(s, commands=(REMOVED_7,))),
    ("I13", nobody_served, lambda s: replace(s, answer=GrowthReady(0, (), ()), commands=(REMOVED_7,))),
    ("I17", asked_again, lambda s: after(s, lambda v: lease(v, 9, copies=(0, 1, 2)))),
    ("I17", satisfied, lambda s: after(s, lambda v: lease(v, 9, pending_writes=writes(v, dependencies=(1, 2))))),
    ("I19", asked_again, lambda s: after(s, lambda v: lease(v, 9, allocated_tokens=4))),
    ("I19", asked_again, lambda s: after(s, lambda v: replace(v, leases={}))),
    ("I19", preempted, lambda s: after(s, lambda v: lease(v, 1, allocated_tokens=4))),
    ("I20", asked_again, lambda s: after(s, lambda v: replace(v, tags={0: 2}))),
    ("I20", asked_again, lambda s: after(s, lambda v: replace(v, tags={0: 2, 1: 1, 2: 1}))),
    ("I20", satisfied, lambda s: after(s, lambda v: replace(v, tags={0: 2, 1: 1}))),
    ("I20", attached, lambda s: after(s, lambda v: replace(v, tags={0: 5, 1: 5}))),
    ("I22", asked_again, lambda s: after(s, lambda v: copy(v, 0, CachedCopy(20, 1, 0)))),
    ("I22", preempted, with_a_snapshot),
    ("I22", released, with_a_snapshot),
    ("I22", chosen, lambda s: with_sources(s, (2, 0))),
    ("I22", chosen, lambda s: with_sources(s, (2, 3))),
    ("I22", chosen, lambda s: with_sources(s, (0, 2), 0, 1)),
    ("I22", chosen, lambda s: throughout(s, lambda v: replace(v, tags={2: 5}))),
    ("I22", chosen, lambda s: throughout(s, lambda v: lease(v, 1, hashes=(7, 8, None)))),
    ("I22", chosen, lambda s: throughout(s, lambda v: lease(v, 1, pending_cache=(False, False, True)))),
    ("I22", chosen, lambda s: throughout(s, lambda v: lease(v, 1, pending_writes=PendingWrites(1, 3, (5,))))),
    ("I22", chosen, lambda s: replace(s, before=replace(s.before, leases={}))),
    ("I23", asked_again, lambda s: after(s, lambda v: replace(v, attached_ever=3))),
    ("I23", attached, lambda s: after(s, lambda v: replace(v, attached_ever=0))),
    ("I24", stored, lambda s: event(s, event_id=1)),
    ("I24", stored, lambda s: event(s, dp_rank=1)),
    ("I24", stored, lambda s: event(s, block_hashes=())),
    ("I24", stored, lambda s: after(s, lambda v: replace(v, next_event_id=2))),
    ("I24", stored, lambda s: after(s, lambda v: replace(v, config=config(4, kv_events=False)))),
    ("I25", stored, lambda s: replace(s, commands=())),
    ("I25", stored, lambda s: after(s, lambda v: replace(v, index=drop(v.index, 8)))),
    ("I25", stored, lambda s: replace(s, commands=(*s.commands, PublishRemoved(1, 0, (99,))))),
    ("I26", stored, lambda s: event(s, block_hashes=(7, 7))),
    ("I26", duplicated, lambda s: told(s, PublishStored(1, 0, None, (7,), (107,), None))),
    ("I27", stored, lambda s: event(s, parent_hash=5)),
    ("I27", stored, lambda s: event(s, block_hashes=(8, 7))),
    ("I27", stored, lambda s: event(s, tokens_hashes=(0, 108))),
    ("I27", stored, lambda s: event(s, token_ids=None)),
    ("I27", stored, lambda s: event(s, token_ids=((0, 1, 2, 3), (4, 5, 6, 9)))),
    ("I27", stored, lambda s: replace(s, event=EVICT)),
    ("I27", stored, split),
    ("I28", stored, lambda s: replace(s, commands=(*s.commands, REMOVED_7))),
    ("I28", stored, lambda s: replace(s, commands=(RECORD, *s.commands))),
    ("I28", traced, lambda s: replace(s, commands=s.commands[1:])),
    ("I28", traced, lambda s: replace(s, commands=s.commands[:1])),
    ("I28", traced, lambda s: replace(s, commands=(RECORD, *s.commands))),
    ("I28", traced, lambda s: replace(s, commands=(replace(RECORD, kind="eviction"), s.commands[1]))),
    ("I29", removed, lambda s: after(s, lambda v: replace(v, copies=drop(v.copies, 0)))),
    ("I29", removed, lambda s: replace(s, event=LeasePreempted(1))),
    ("I29", removed, lambda s: event(s, block_hashes=(6, 9))),
    ("I29", stored, lambda s: replace(s, commands=(REMOVED_7,))),
    ("I30", released, lambda s: after(s, lambda v: replace(v, lru=v.lru[::-1]))),
    ("I30", removed, lambda s: event(s, block_hashes=(8, 9))),
    ("I30", removed, lambda s: replace(s, before=replace(s.before, lru=(s.before.lru[2], *s.before.lru[:2])))),
    ("I30", exhausted, lambda s: after(s, lambda v: replace(v, lru=(0,)))),
    ("I32", stored, lambda s: after(s, lambda v: lease(v, 1, hashes=(7, 9)))),
    ("I32", stored, lambda s: after(s, lambda v: lease(v, 1, local_hashes=(107, None)))),
    ("I36", silent, lambda s: replace(s, commands=(REMOVED_7,))),
    ("L01", stored, lambda s: replace(s, event=LeaseFinished(1))),
    ("L01", released, lambda s: after(s, lambda v: replace(v, copies=drop(v.copies, 0)))),
    ("L02", preempted, lambda s: after(s, lambda v: replace(v, leases={}))),
    ("L02", removed, lambda s: after(s, lambda v: lease(v, 1, copies=()))),
]
