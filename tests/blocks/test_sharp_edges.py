"""The edges where the seed is loose and Tenure strict, and what no golden file covers."""

from collections.abc import Callable

import pytest

from tenure.core.blocks import queries
from tenure.core.blocks.hashing import IdentityKeys
from tenure.core.blocks.sequence import BlockIdentity
from tenure.core.blocks.values import (
    AllocationRequested,
    DecodeReservationReleased,
    DecodeReservationRequested,
    DependencyAttached,
    DependencySatisfied,
    DestinationActivated,
    DestinationCancelled,
    DestinationRequested,
    Exhausted,
    ExternalPrefixRequested,
    GrowthReady,
    GrowthScheduled,
    NoSources,
    PublishRemoved,
    PublishStored,
    Ready,
    RecordTrace,
    Reserved,
    ReservedAllocationRequested,
    SnapshotDiscarded,
    Sources,
    StepAppended,
    StepComputed,
    StoreSourcesSnapshotted,
    TokensComputed,
    WasPending,
    WritesAuthorized,
)
from tenure.core.errors import (
    AllocationBeyondTableError,
    BlockNotHeldError,
    CachingOffError,
    DependencyMismatchError,
    DependencyPendingError,
    EmptyDependenciesError,
    FencedGrowthError,
    MissingTokensError,
    NothingComputedError,
    NothingToAuthorizeError,
    OutputExhaustedError,
    PendingDependenciesError,
    PrefixNotResidentError,
    ReservationOwnerError,
    ReservationTooSmallError,
    SnapshotOwnerError,
    SnapshotsExhaustedError,
    SourcesChangedError,
    StepTokensError,
    TokenRangeError,
    UnauthorizedWriteError,
    UnknownLeaseError,
    UnknownSnapshotError,
    UnresolvedParentError,
    UnresolvedTailError,
)
from tests.blocks.harness import Machine


def test_edge_1_a_watermark_above_the_table_is_refused() -> None:
    """The seed accepts it, and a later block then gets no copy."""
    machine = Machine(4)
    machine.req(1, [7])

    machine.refuses(AllocationRequested(1, 5), AllocationBeyondTableError, "5 tokens are more than its table of 4")


def fenced(capacity: int = 2, hashes: tuple[int, ...] = (7, 8), dependencies: tuple[int, ...] = (1, 2)) -> Machine:
    """All blocks inactive, block i read by the i-th transfer."""
    machine = Machine(capacity)
    machine.cached("source", hashes)
    for position, dependency in enumerate(dependencies):
        machine.attach("source", [position], dependency)
    machine.finish("source")
    return machine


def test_edge_2_growth_after_satisfy_needs_the_same_target_once_more() -> None:
    """The lease learns that its fence is over when it asks again."""
    machine = fenced(3, (7,), (1,))
    machine.reserve(2)
    machine.req("x", [10, 11])
    assert machine.tell(AllocationRequested("x", 4)) == Ready((0,), (1,))
    machine.satisfy(1)
    machine.refuses(AllocationRequested("x", 8), FencedGrowthError, r"behind dependencies \[1\]")
    machine.refuses(TokensComputed("x", 0, 4), UnauthorizedWriteError)
    assert machine.tell(AllocationRequested("x", 4)) == Ready(())
    machine.finalize("x", 0, 4)

    assert machine.hit(10)


def test_edge_3_satisfy_voids_every_tag_of_its_id_for_good() -> None:
    """An id attached anew does not revive old fences."""
    machine = Machine(2)
    machine.cached("a", [7])
    machine.cached("b", [8])
    machine.attach("a", [0], 5)
    machine.satisfy(5)
    machine.attach("b", [0], 5)
    machine.finish("a")
    machine.req("c", [9])

    assert machine.tell(AllocationRequested("c", 4)) == Ready((0,))


def test_edge_3_a_lease_that_waited_for_the_old_use_of_an_id_does_not_wait_for_the_new() -> None:
    """What a lease waits for is the attachment, not the number."""
    machine = Machine(2)
    machine.cached("source", [7])
    machine.attach("source", [0], 5)
    machine.cached("other", [8])
    machine.finish("source")
    machine.req("x", [10])
    assert machine.tell(AllocationRequested("x", 4)) == Ready((0,), (5,))
    machine.satisfy(5)
    machine.attach("other", [0], 5)
    machine.refuses(WritesAuthorized("x", (5,)), DependencyMismatchError)

    assert machine.tell(AllocationRequested("x", 4)) == Ready(())
    machine.finalize("x", 0, 4)


def test_edge_4_a_named_block_that_was_never_allocated_is_passed_over() -> None:
    """As in the seed; an unresolved one is refused."""
    machine = Machine(4)
    machine.req(1, [7, 8])
    machine.allocate(1, 4)
    machine.finalize(1, 0, 8)
    assert (machine.hit(7), machine.hit(8)) == (True, False)
    machine.open(2, [0, 1, 2], 1)
    machine.generate(2)

    machine.refuses(TokensComputed(2, 0, 4), BlockNotHeldError, "block 0 was computed, but only 0 blocks are held")


def test_edge_5_finalize_that_skips_an_unresolved_block_is_refused() -> None:
    """The seed gives the next block a root's hash."""
    machine = Machine(4)
    machine.open(1, [0, 1, 2], 5)
    for _ in range(5):
        machine.generate(1)
    machine.allocate(1, 8)

    machine.refuses(TokensComputed(1, 4, 8), UnresolvedParentError, "block 1 cannot be named while block 0")


def test_edge_5_a_tail_beyond_its_tokens_is_refused() -> None:
    """A block is complete only with all its tokens."""
    machine = Machine(4)
    machine.open(1, range(6))
    machine.allocate(1, 6)

    machine.refuses(TokensComputed(1, 4, 8), MissingTokensError, r"only \[4, 6\) are known")


def test_edge_7_a_full_tail_left_out_is_refused_once_everything_is_computed() -> None:
    """A range that completes nothing cannot hide it."""
    machine = Machine(4)
    machine.open(1, [0, 1, 2], 5)
    machine.allocate(1, 3)
    machine.generate(1)
    machine.finalize(1, 0, 3)

    machine.refuses(TokensComputed(1, 4, 4), UnresolvedTailError, "4 of 4 tokens are computed")
    machine.open(2, [])
    machine.finalize(2, 0, 0)


def test_edge_6_without_caching_uncomputed_blocks_are_sources() -> None:
    """Kept as in the seed: there is no visibility to wait for."""
    machine = Machine(2, caching=False)
    machine.open(1, range(8))
    machine.allocate(1, 8)

    assert isinstance(machine.tell(StoreSourcesSnapshotted(1, (0, 1))), Sources)


def test_edge_8_a_cancelled_reservation_has_still_evicted() -> None:
    """And said so when it did."""
    machine = Machine(1, kv_events=True)
    machine.cached(1, [7])
    machine.finish(1)
    machine.take_events()
    machine.release(machine.reserve(1))

    assert machine.removed() == [7]
    assert not machine.hit(7)


def test_edge_9_recomputing_after_preemption_makes_a_duplicate_without_an_event() -> None:
    """The hash was visible all the time."""
    machine = Machine(2, kv_events=True)
    machine.cached(1, [7])
    machine.preempt(1)
    machine.allocate(1, 4)
    machine.finalize(1, 0, 4)

    assert machine.stored() == [((7,), None)]
    assert machine.view().index[7].duplicates == (1,)


def test_edge_10_reuse_pins_the_primary_even_if_only_a_duplicate_is_active() -> None:
    """The oldest copy stands for its hash."""
    machine = Machine(2)
    machine.cached(1, [7])
    machine.cached(2, [7])
    machine.finish(1)
    assert not machine.is_active(7)
    machine.req(3, [7])
    machine.allocate(3, 4, reuse=1)

    assert machine.blocks(3) == (0,)


# --- What the golden files do not cover -------------------------------------------------------------------------


def test_i27_two_stored_groups_in_one_operation() -> None:
    """A block in the middle that is visible already closes the group; the next parent is that block."""
    machine = Machine(6, kv_events=True)
    machine.cached("other", [8])
    machine.take_events()
    machine.req("x", [7, 8, 9])
    machine.allocate("x", 12)
    machine.finalize("x", 0, 12)

    assert machine.stored() == [((7,), None), ((9,), 8)]


def test_i27_a_change_in_local_hashes_closes_a_group() -> None:
    """A group either has local hashes or has none."""
    machine = Machine(4, kv_events=True)
    machine.open("x", range(3), 5, retain_local_hashes=False)
    for _ in range(5):
        machine.generate("x")
    machine.allocate("x", 8)
    machine.finalize("x", 0, 8)
    (event,) = machine.take_events()
    assert isinstance(event, PublishStored)
    assert event.tokens_hashes == (0, 0)
    mixed = [BlockIdentity(70, 1), BlockIdentity(71, None), BlockIdentity(72, None)]
    machine.preempt("x")
    machine.open("y", range(12), identities=mixed)
    machine.allocate("y", 12)
    machine.finalize("y", 0, 12)

    events = [each for each in machine.take_events() if isinstance(each, PublishStored)]
    assert [(each.block_hashes, each.tokens_hashes, each.parent_hash) for each in events] == [
        ((70,), (1,), None),
        ((71, 72), (0, 0), 70),
    ]


def test_i28_removed_comes_before_stored_in_one_operation() -> None:
    """A destination that evicts and then becomes visible."""
    machine = Machine(2, kv_events=True)
    machine.cached("old", [1, 2])
    machine.finish("old")
    machine.take_events()
    reservation = machine.pin("new", [1, 3])
    machine.tell(DestinationActivated("new", reservation))

    assert machine.take_events() == [
        PublishRemoved(1, 0, (2,)),
        PublishStored(2, 0, 1, (3,), (103,), None),
    ]


def test_i20_several_dependencies_partly_satisfied() -> None:
    """What is still pending must be named, in the stored order, after asking again."""
    machine = fenced()
    machine.req("x", [10, 11])
    answer = machine.tell(AllocationRequested("x", 8))
    assert isinstance(answer, Ready)
    pending = answer.dependencies
    assert set(pending) == {1, 2}
    machine.refuses(WritesAuthorized("x", pending[::-1]), DependencyMismatchError)
    machine.satisfy(pending[0])
    machine.refuses(WritesAuthorized("x", pending), DependencyMismatchError)
    machine.refuses(WritesAuthorized("x", pending[1:]), DependencyMismatchError)
    assert machine.tell(AllocationRequested("x", 8)) == Ready((), pending[1:])
    machine.tell(WritesAuthorized("x", pending[1:]))
    machine.finalize("x", 0, 8)

    assert machine.hit(10)
    assert machine.hit(11)


def test_i20_a_satisfied_fence_at_the_front_keeps_the_rest_pending_and_in_order() -> None:
    """Asking again through a batch or a reservation prunes alike."""
    machine = fenced(3, (7, 8, 9), (1, 2, 3))
    machine.req("x", [10, 11, 12])
    answer = machine.tell(AllocationRequested("x", 12))
    assert isinstance(answer, Ready)
    machine.satisfy(answer.dependencies[1])
    rest = (answer.dependencies[0], answer.dependencies[2])
    reservation = machine.reserve(0)

    assert machine.tell(ReservedAllocationRequested("x", 12, reservation)) == Ready((), rest)
    assert machine.tell(GrowthScheduled(("x",))) == GrowthReady(1, (), (("x", rest),))


def test_a_destination_after_generation_covers_the_prompt_only() -> None:
    """Generated tokens do not count."""
    machine = Machine(4)
    machine.open(1, range(4), 4)
    for _ in range(4):
        machine.generate(1)
    answer = machine.tell(DestinationRequested(1))
    assert isinstance(answer, Reserved)
    assert answer.blocks == 1
    machine.tell(DestinationActivated(1, answer.reservation))

    assert queries.allocated_tokens(machine.state, 1) == 4
    assert machine.allocate(1, 8) == 1


def test_a_snapshot_with_positions_out_of_range_or_order_is_none() -> None:
    """No copy is chosen by a wrapped or repeated index."""
    machine = Machine(4)
    machine.cached(1, [7, 8])
    for positions in [(2,), (0, 2), (1, 0), (0, 0), (-1,)]:
        assert isinstance(machine.tell(StoreSourcesSnapshotted(1, positions)), NoSources)


def test_preempting_a_lease_without_blocks_changes_nothing() -> None:
    """And raises nothing."""
    machine = Machine(2)
    machine.req(1, [7])
    before = machine.state
    machine.preempt(1)

    assert before is machine.state


@pytest.mark.parametrize("block_size", [1, 2, 3, 16, 512])
def test_other_block_sizes_complete_and_chain(block_size: int) -> None:
    """One event a block, whatever the size; a machine of one-token blocks takes no sequences."""
    machine = Machine(8, block_size, kv_events=True)
    if block_size == 1:
        assert isinstance(machine.tell(DecodeReservationRequested(8)), Reserved)
        return
    machine.open(1, range(2 * block_size), block_size)
    machine.allocate(1, 2 * block_size)
    machine.finalize(1, 0, 2 * block_size)
    for _ in range(block_size):
        machine.generate(1)
    machine.allocate(1, 3 * block_size)
    machine.finalize(1, 2 * block_size, 3 * block_size)
    names = machine.hashes(1)

    assert len(set(names)) == 3
    assert machine.stored() == [((names[0], names[1]), None), ((names[2],), names[1])]


def test_i17_no_growth_by_any_way_while_writes_are_pending() -> None:
    """Alone, in a batch, or out of a reservation."""
    machine = fenced(3, (7,), (1,))
    reservation = machine.reserve(2)
    machine.open("x", range(3), 6)
    assert machine.tell(AllocationRequested("x", 3)) == Ready((0,), (1,))
    for _ in range(2):
        machine.generate("x")
    machine.refuses(AllocationRequested("x", 5), FencedGrowthError)
    machine.refuses(ReservedAllocationRequested("x", 5, reservation), FencedGrowthError)

    machine.refuses(GrowthScheduled(("x",)), FencedGrowthError)


def test_external_prefix_without_caching_has_no_resident_block() -> None:
    """Nothing is ever resident; a suffix alone is fine."""
    machine = Machine(4, caching=False)
    machine.open(1, range(8))
    names = machine.hashes(1)
    suffix = tuple(each for each in names if each is not None)
    machine.refuses(ExternalPrefixRequested(1, 1, suffix[1:]), PrefixNotResidentError)
    answer = machine.tell(ExternalPrefixRequested(1, 0, suffix))
    assert isinstance(answer, Reserved)
    machine.tell(DestinationActivated(1, answer.reservation))

    assert len(machine.blocks(1)) == 2
    assert not machine.view().index


def test_reuse_without_caching_is_refused_where_the_lease_grows_only() -> None:
    """A call that does not grow never looks at it."""
    machine = Machine(4, caching=False)
    machine.open(1, range(8))
    machine.refuses(AllocationRequested(1, 4, 1), CachingOffError)
    machine.allocate(1, 8)

    assert machine.tell(AllocationRequested(1, 8, 2)) == Ready(())


def test_i30_cancel_unpins_in_reverse_and_returns_capacity_in_reservation_order() -> None:
    """The leaf becomes inactive first; the next reservation gets the same tokens in the same order."""
    machine = Machine(4)
    machine.cached(1, [7, 8])
    machine.finish(1)
    reservation = machine.pin(2, [7, 8, 9, 10])
    fresh = machine.view().reservations[reservation].fresh
    machine.cancel(reservation)
    assert machine.view().lru == (1, 0)

    assert machine.view().free == fresh
    machine.finish(2)
    again = machine.pin(2, [7, 8, 9, 10])
    assert machine.view().reservations[again].fresh == fresh


def test_a_snapshot_is_refused_while_a_capacity_write_is_pending() -> None:
    """Only because of that: without caching nothing else stands in its way."""
    machine = Machine(3, caching=False)
    machine.open("source", range(8))
    machine.allocate("source", 8)
    machine.attach("source", [1], 5)
    machine.finish("source")
    machine.open("x", range(12))
    answer = machine.tell(AllocationRequested("x", 12))
    assert isinstance(answer, Ready)
    assert answer.dependencies == (5,)
    clean = [position for position, block in enumerate(answer.blocks) if block not in machine.view().tags]
    assert [0, 2] == clean
    for position in clean:
        assert isinstance(machine.tell(StoreSourcesSnapshotted("x", (position,))), NoSources)
    machine.tell(WritesAuthorized("x", (5,)))

    for position in clean:
        assert isinstance(machine.tell(StoreSourcesSnapshotted("x", (position,))), Sources)


# --- Fences -----------------------------------------------------------------------------------------------------


def test_i22_a_private_copy_is_not_cached_over_a_pending_unauthorized_read() -> None:
    """A write-pending flag gone by preemption does not make the old reader go away."""
    machine = fenced(1, (7,), (1,))
    machine.req("x", [9])
    assert machine.tell(AllocationRequested("x", 4)) == Ready((0,), (1,))
    machine.refuses(TokensComputed("x", 0, 4), UnauthorizedWriteError, r"before dependencies \[1\]")
    machine.preempt("x")

    assert machine.tell(AllocationRequested("x", 4)) == Ready((0,), (1,))


def test_i21_an_authorization_dies_with_its_private_copy() -> None:
    """The next holder must order its own write."""
    machine = fenced(1, (7,), (1,))
    machine.req("x", [9])
    machine.tell(AllocationRequested("x", 4))
    machine.tell(WritesAuthorized("x", (1,)))
    machine.preempt("x")
    assert not machine.view().authorized
    machine.req("y", [10])

    assert machine.tell(AllocationRequested("y", 4)) == Ready((0,), (1,))


def test_i21_an_authorization_dies_with_its_dependency() -> None:
    """Nothing is left to be ordered behind."""
    machine = fenced(2, (7, 8), (1, 2))
    machine.req("x", [9, 10])
    answer = machine.tell(AllocationRequested("x", 8))
    assert isinstance(answer, Ready)
    machine.tell(WritesAuthorized("x", answer.dependencies))
    assert machine.view().authorized == {0, 1}
    machine.satisfy(2)

    assert machine.view().authorized == {0}


def test_authorizations_that_name_the_wrong_things_are_refused() -> None:
    """Nothing named, nothing pending."""
    machine = Machine(2)
    machine.req("x", [9])
    machine.allocate("x", 4)
    machine.refuses(WritesAuthorized("x", ()), EmptyDependenciesError)
    machine.refuses(WritesAuthorized("x", (1,)), NothingToAuthorizeError)
    machine.refuses(WritesAuthorized("y", (1,)), UnknownLeaseError)


def test_every_source_of_a_snapshot_is_free_of_other_transfers_and_not_the_first_alone() -> None:
    """When it is chosen, and again when a transfer is attached to it."""
    machine = Machine(3)
    machine.cached("a", [7, 8, 9])
    both = machine.tell(StoreSourcesSnapshotted("a", (0, 1)))
    assert isinstance(both, Sources)
    machine.attach("a", [1], 5)
    machine.refuses(DependencyAttached("a", both.snapshot, 6), SourcesChangedError)

    assert isinstance(machine.tell(StoreSourcesSnapshotted("a", (0, 1))), NoSources)
    assert isinstance(machine.tell(StoreSourcesSnapshotted("a", (0, 2))), Sources)


def test_an_id_in_use_cannot_be_attached_and_a_taken_source_cannot_be_taken_again() -> None:
    """Two transfers never share a tag."""
    machine = Machine(3)
    machine.cached("a", [7, 8])
    machine.cached("b", [9])
    first = machine.tell(StoreSourcesSnapshotted("a", (0,)))
    second = machine.tell(StoreSourcesSnapshotted("a", (0, 1)))
    third = machine.tell(StoreSourcesSnapshotted("b", (0,)))
    assert isinstance(first, Sources)
    assert isinstance(second, Sources)
    assert isinstance(third, Sources)
    machine.tell(DependencyAttached("a", first.snapshot, 1))
    machine.refuses(DependencyAttached("a", first.snapshot, 2), UnknownSnapshotError)
    machine.refuses(DependencyAttached("a", second.snapshot, 2), SourcesChangedError)
    machine.refuses(DependencyAttached("b", third.snapshot, 1), DependencyPendingError)
    machine.refuses(DependencyAttached("a", third.snapshot, 2), SnapshotOwnerError, "belongs to request 'b'")
    machine.tell(SnapshotDiscarded(third.snapshot))

    machine.refuses(SnapshotDiscarded(third.snapshot), UnknownSnapshotError)


@pytest.mark.parametrize(
    "change", ["allocate", "computed", "generated", "preempt", "finish", "authorize", "growth", "step", "prune"]
)
def test_a_snapshot_dies_when_its_lease_changes(change: str) -> None:
    """What the seed's borrow forbids, a dead id refuses."""
    machine = Machine(4)
    machine.cached("s", [1])
    machine.attach("s", [0], 9)
    machine.finish("s")
    machine.reserve(2)
    machine.open("a", range(4), 20, planned=range(20))
    machine.allocate("a", 4)
    machine.finalize("a", 0, 4)
    if change in ("allocate", "authorize", "prune", "step", "growth", "computed"):
        machine.generate("a")
    if change in ("authorize", "prune"):
        assert machine.tell(AllocationRequested("a", 5)) == Ready((0,), (9,))
    if change in ("step", "computed"):
        machine.satisfy(9)
        machine.allocate("a", 5)
        for _ in range(3):
            machine.generate("a")
    snapshot = machine.tell(StoreSourcesSnapshotted("a", (0,)))
    assert isinstance(snapshot, Sources)
    if change == "prune":
        machine.satisfy(9)
    changes: dict[str, Callable[[], object]] = {
        "allocate": lambda: machine.tell(AllocationRequested("a", 5)),
        "computed": lambda: machine.finalize("a", 4, 8),
        "generated": lambda: machine.generate("a"),
        "preempt": lambda: machine.preempt("a"),
        "finish": lambda: machine.finish("a"),
        "authorize": lambda: machine.tell(WritesAuthorized("a", (9,))),
        "growth": lambda: machine.tell(GrowthScheduled(("a",))),
        "step": lambda: machine.tell(StepComputed(("a",))),
        "prune": lambda: machine.tell(AllocationRequested("a", 5)),
    }
    changes[change]()

    machine.refuses(DependencyAttached("a", snapshot.snapshot, 1), UnknownSnapshotError)


def test_a_snapshot_survives_what_does_not_change_its_lease() -> None:
    """Other requests, and calls that change nothing."""
    machine = Machine(4)
    machine.cached("a", [1])
    machine.cached("b", [2])
    snapshot = machine.tell(StoreSourcesSnapshotted("a", (0,)))
    assert isinstance(snapshot, Sources)
    machine.tell(AllocationRequested("a", 4))
    machine.finalize("a", 0, 4)
    machine.tell(GrowthScheduled(("a", "b")))
    machine.preempt("b")
    machine.tell(DependencyAttached("a", snapshot.snapshot, 1))

    assert machine.view().dependencies == {1: (0,)}


def test_live_snapshots_are_limited() -> None:
    """Who never attaches or discards them is told so."""
    machine = Machine(2, snapshots_max=2)
    machine.cached("a", [1])
    for _ in range(2):
        machine.tell(StoreSourcesSnapshotted("a", (0,)))

    machine.refuses(StoreSourcesSnapshotted("a", (0,)), SnapshotsExhaustedError, "2 store-source snapshots are live")


def test_satisfying_an_unknown_dependency_is_no_error() -> None:
    """An adapter may report late."""
    machine = Machine(1)

    assert machine.tell(DependencySatisfied(77)) == WasPending(False)


# --- Reservations -----------------------------------------------------------------------------------------------


def test_a_decode_reservation_serves_several_requests_and_stays_valid_when_empty() -> None:
    """Its id dies at release only."""
    machine = Machine(4)
    machine.req("a", [1, 2])
    machine.req("b", [3])
    reservation = machine.reserve(3)
    machine.tell(ReservedAllocationRequested("a", 8, reservation))
    machine.tell(ReservedAllocationRequested("b", 4, reservation))
    machine.req("c", [4])
    machine.refuses(ReservedAllocationRequested("c", 4, reservation), ReservationTooSmallError, "0 blocks left")
    assert machine.view().reservations[reservation].fresh == ()

    machine.tell(DecodeReservationReleased(reservation))
    assert not machine.view().reservations


def test_a_destination_of_an_earlier_lease_is_not_activated_for_a_later_one() -> None:
    """The request's id came back; its capacity is another's."""
    machine = Machine(2)
    old = machine.pin("a", [7])
    machine.finish("a")
    machine.req("a", [7])
    machine.refuses(DestinationActivated("a", old), ReservationOwnerError, "made for an earlier lease")
    machine.tell(DestinationCancelled(old))

    assert machine.active == 0


def test_a_destination_activated_for_another_request_is_refused() -> None:
    """The message names both."""
    machine = Machine(2)
    old = machine.pin("a", [7])
    machine.req("b", [7])

    machine.refuses(DestinationActivated("b", old), ReservationOwnerError, "belongs to request 'a', not to request 'b'")


# --- Batches ----------------------------------------------------------------------------------------------------


def test_a_batch_that_raises_in_the_middle_undoes_all_of_it() -> None:
    """Every lease is as it was before the event."""
    machine = Machine(8)
    for name in "ab":
        machine.open(name, range(4), 1)
        machine.allocate(name, 4)
        machine.finalize(name, 0, 4)
    machine.refuses(GrowthScheduled(("a", "b", "missing")), UnknownLeaseError)
    machine.refuses(StepComputed(("a", "b", "missing")), UnknownLeaseError)
    machine.refuses(StepComputed(("a", "a")), OutputExhaustedError, "all 1 output tokens are generated")
    machine.refuses(StepComputed(("a",), (1, 2)), StepTokensError)
    machine.refuses(StepComputed(("a", "b"), (1, 2**32)), TokenRangeError)
    machine.open("empty", [], 1)
    machine.refuses(StepComputed(("a", "empty")), NothingComputedError)

    assert machine.tell(StepComputed(("a", "b"), (7, 8))) == StepAppended((7, 8))
    machine.refuses(GrowthScheduled(("a", "b", "missing")), UnknownLeaseError)


def test_a_batch_of_growth_that_raises_gives_back_the_one_returned_block_it_took() -> None:
    """And leaves those below it where they were: a block that is lost here is lost until the end."""
    machine = Machine(8)
    machine.open("a", range(4), 1)
    machine.allocate("a", 4)
    machine.finalize("a", 0, 4)
    machine.generate("a")
    machine.release(machine.reserve(3))
    free = tuple(machine.view().free)
    machine.refuses(GrowthScheduled(("a", "missing")), UnknownLeaseError)

    assert free == tuple(machine.view().free)
    assert machine.tell(GrowthScheduled(("a",))) == GrowthReady(1, (("a", free[-1]),), ())


def test_a_batch_of_growth_stops_at_the_first_request_without_capacity() -> None:
    """What was served before it is kept; the scheduler preempts somebody and asks for the rest."""
    machine = Machine(3)
    for name in "ab":
        machine.open(name, range(4), 1)
        machine.allocate(name, 4)
        machine.finalize(name, 0, 4)
        machine.generate(name)
    answer = machine.tell(GrowthScheduled(("a", "b")))

    assert answer == GrowthReady(1, (("a", 2),), ())
    machine.tell(AllocationRequested("a", 5))
    assert machine.tell(GrowthScheduled(("b",))) == GrowthReady(0, (), ())


def test_a_batch_of_growth_by_several_blocks_and_behind_fences() -> None:
    """A request that fell behind catches up; dependencies are answered by request."""
    machine = Machine(4)
    machine.cached("s", [1])
    machine.attach("s", [0], 9)
    machine.open("a", range(3), 20)
    for _ in range(8):
        machine.generate("a")
    machine.finish("s")
    answer = machine.tell(GrowthScheduled(("a",)))
    assert answer == GrowthReady(1, (("a", 1), ("a", 2), ("a", 3)), ())
    machine.generate("a")
    machine.generate("a")

    assert machine.tell(GrowthScheduled(("a",))) == GrowthReady(1, (("a", 0),), (("a", (9,)),))
    assert machine.tell(AllocationRequested("a", 1)) == Ready((), (9,))


def test_a_batch_of_growth_finds_no_capacity_for_several_blocks() -> None:
    """Nothing is taken for a request that cannot have all it needs."""
    machine = Machine(2)
    machine.open("a", range(3), 20)
    for _ in range(8):
        machine.generate("a")
    before = machine.state

    assert machine.tell(GrowthScheduled(("a",))) == GrowthReady(0, (), ())
    assert before is machine.state


def test_decode_growth_takes_returned_blocks_first_and_reports_no_duplicate_it_evicts() -> None:
    """The short way of a decode step takes capacity in the same order as the long one."""
    machine = Machine(3, kv_events=True)
    machine.cached("one", [7])
    machine.cached("two", [7])
    machine.finish("one")
    machine.open("a", range(4), 9, retain_local_hashes=False)
    machine.release(machine.reserve(1))
    machine.allocate("a", 4)
    machine.finalize("a", 0, 4)
    machine.generate("a")
    machine.take_events()
    assert machine.tell(GrowthScheduled(("a",))) == GrowthReady(1, (("a", 0),), ())
    for _ in range(4):
        machine.tell(StepComputed(("a",)))
    assert machine.stored() == [((machine.hashes("a")[1],), machine.hashes("a")[0])]
    machine.finish("two")

    assert machine.tell(GrowthScheduled(("a",))) == GrowthReady(1, (("a", 1),), ())
    assert machine.removed() == [7]
    assert machine.tell(StepComputed(())) == StepAppended(())
    machine.preempt("a")
    assert machine.tell(GrowthScheduled(())) == GrowthReady(0, (), ())
    machine.open("b", range(4), 9)
    machine.allocate("b", 4)
    machine.generate("b")
    machine.preempt("b")
    machine.open("c", [5], 9)

    assert machine.tell(GrowthScheduled(("c",))).served == 1


def test_steps_with_emitted_tokens_and_keys_take_the_general_way() -> None:
    """The short way of a decode step gives what the long one would."""
    machine = Machine(8, kv_events=True)
    machine.open("a", range(3), 9, emit_token_ids=True, planned=range(3, 12))
    machine.open("b", range(3), 9, keys=IdentityKeys("group"), planned=range(3, 12))
    machine.open("c", range(3), 9, planned=range(3, 12))
    for _ in range(5):
        machine.tell(GrowthScheduled(("a", "b", "c")))
        machine.tell(StepComputed(("a", "b", "c")))
    events = [each for each in machine.take_events() if isinstance(each, PublishStored)]

    assert events[0].token_ids == ((0, 1, 2, 3),)
    assert machine.hashes("a")[:1] == machine.hashes("c")[:1]
    assert machine.hashes("b")[:1] != machine.hashes("c")[:1]
    assert len(events) == 2


# --- Traces -----------------------------------------------------------------------------------------------------


def test_trace_records_accompany_events_whether_or_not_anybody_listens() -> None:
    """The occupancy at the moment the event was due."""
    silent = Machine(2, trace=True)
    loud = Machine(2, trace=True, kv_events=True)
    for machine in (silent, loud):
        machine.cached("a", [1, 2])
        machine.finish("a")
        machine.reserve(1)
        machine.req("b", [3])
        machine.open("c", range(3), 9)
    traces = [RecordTrace("allocation", 0, 4, 2, 0, 2), RecordTrace("eviction", 0, 4, 1, 1, 2)]

    assert silent.take_events() == traces
    assert [type(each) for each in loud.take_events()] == [RecordTrace, PublishStored, RecordTrace, PublishRemoved]


def test_trace_records_of_decode_growth_that_evicts() -> None:
    """The short way of a decode step reports alike."""
    machine = Machine(3, trace=True, kv_events=True)
    machine.cached("old", [1, 2])
    machine.finish("old")
    machine.open("a", range(3), 9)
    machine.allocate("a", 3)
    machine.take_events()
    for _ in range(2):
        machine.tell(StepComputed(("a",)))
    machine.tell(GrowthScheduled(("a",)))

    kinds = [each.kind if isinstance(each, RecordTrace) else type(each).__name__ for each in machine.take_events()]
    assert kinds == ["allocation", "PublishStored", "eviction", "PublishRemoved"]


def test_exhausted_says_what_was_needed_and_what_there_was() -> None:
    """Free capacity, and inactive copies that the request does not reuse itself."""
    machine = Machine(4)
    machine.cached("a", [7])
    machine.cached("b", [8])
    machine.finish("a", "b")
    machine.reserve(1)
    machine.req("x", [7, 10, 11, 12])

    assert machine.tell(AllocationRequested("x", 16, 1)) == Exhausted(needed=3, available=2)


# --- Requests that take no part in caching ------------------------------------------------------------------------


def test_a_request_without_caching_shares_nothing_in_a_caching_machine() -> None:
    """Its hashes stand for its id and positions, not for tokens: a later request of the same id must not find them."""
    machine = Machine(6, kv_events=True)
    machine.open(7, range(8), 4, caching=False, planned=range(4))
    machine.allocate(7, 8)
    machine.finalize(7, 0, 8)
    for _ in range(4):
        machine.generate(7)
    machine.allocate(7, 12)
    machine.finalize(7, 8, 12)
    assert not machine.take_events()
    assert machine.view().index == {}
    machine.finish(7)
    assert machine.view().copies == {}
    machine.open(7, range(90, 98), caching=False)
    answer = machine.tell(DestinationRequested(7))

    assert answer == Reserved(1, 2, 2, 8, ())
    machine.tell(DestinationActivated(7, 1))
    assert not machine.take_events()


def test_a_request_without_caching_looks_nothing_up() -> None:
    """Not even hashes that it was given and that are visible."""
    machine = Machine(6)
    machine.cached("a", [7, 8])
    machine.open("b", range(8), identities=[BlockIdentity(7, None), BlockIdentity(8, None)], caching=False)
    machine.refuses(AllocationRequested("b", 8, 1), CachingOffError)
    machine.refuses(ExternalPrefixRequested("b", 1, (8,)), PrefixNotResidentError)
    answer = machine.tell(DestinationRequested("b"))
    assert isinstance(answer, Reserved)

    assert answer.fresh == 2
    assert queries.resident_prefix_blocks(machine.state, "b") == 0


# --- What else a wrong machine might get away with ----------------------------------------------------------------


def test_edge_2_a_decode_step_over_a_fence_satisfied_since_is_refused_until_asked_again() -> None:
    """The short way of a decode step does not overlook the fence either."""
    machine = fenced(1, (7,), (1,))
    machine.open("x", range(3), 4)
    assert machine.tell(AllocationRequested("x", 3)) == Ready((0,), (1,))
    machine.generate("x")
    machine.satisfy(1)
    machine.refuses(StepComputed(("x",)), UnauthorizedWriteError)
    assert machine.tell(GrowthScheduled(("x",))) == GrowthReady(1, (), ())

    assert isinstance(machine.tell(StepComputed(("x",))), StepAppended)


def test_a_hash_twice_in_a_prefix_is_one_inactive_copy_less_and_not_two() -> None:
    """What is evictable beside the hits counts distinct copies."""
    machine = Machine(3)
    machine.cached("a", [7])
    machine.cached("b", [8])
    machine.cached("c", [9])
    machine.finish("a", "b", "c")
    machine.req("x", [7, 7, 20, 21])

    assert machine.allocate("x", 16, reuse=2) == 4
    machine.finish("x")
    machine.req("y", [7, 7, 30, 31, 32])
    assert machine.tell(AllocationRequested("y", 20, 2)) == Exhausted(needed=3, available=2)


def test_i08_of_a_hash_that_is_computed_twice_at_once_the_first_copy_is_primary() -> None:
    """A prompt that repeats a block under one hash is told once; the second copy is a duplicate."""
    machine = Machine(4, kv_events=True)
    first, _ = machine.cached("a", [5, 5])

    assert machine.stored() == [((5,), None)]
    machine.open("b", range(4), identities=[BlockIdentity(5, 105)])
    machine.allocate("b", 4, 1)
    assert machine.blocks("b") == (first,)


def test_dependencies_of_a_destination_are_named_in_the_order_of_use() -> None:
    """By the reservation, by the query, and by the error that refuses its activation."""
    machine = fenced(2, (7, 8), (1, 2))
    machine.req("x", [20, 21])
    answer = machine.tell(DestinationRequested("x"))
    assert isinstance(answer, Reserved)
    used_first = machine.view().reservations[answer.reservation].fresh[-1]
    expected = (1, 2) if machine.view().tags[used_first] == 1 else (2, 1)
    assert answer.dependencies == expected
    assert queries.destination_pending(machine.state, answer.reservation) == expected

    first, second = expected
    machine.refuses(DestinationActivated("x", answer.reservation), PendingDependenciesError, rf"\[{first}, {second}\]")


def test_i27_a_hash_at_several_positions_is_told_with_the_tokens_of_its_own() -> None:
    """Given hashes may repeat; the event is that of the block that was computed."""
    machine = Machine(5, kv_events=True)
    identities = [BlockIdentity(7, 70)] * 3
    machine.open("x", [*range(11), 99], 4, identities=identities, emit_token_ids=True)
    machine.allocate("x", 12)
    machine.tell(StepComputed(("x",)))

    assert machine.take_events() == [PublishStored(0, 0, 7, (7,), (70,), ((8, 9, 10, 99),))]


def test_a_decode_step_inside_a_block_voids_the_snapshots_of_its_requests_alone() -> None:
    """The sequence grew, so the lease changed; another request's snapshot lives on."""
    machine = Machine(4)
    for name in "ab":
        machine.open(name, range(5), 4)
        machine.allocate(name, 5)
        machine.finalize(name, 0, 5)
    snapshots = [machine.tell(StoreSourcesSnapshotted(name, (0,))) for name in "ab"]
    machine.tell(StepComputed(("a",)))

    machine.refuses(DependencyAttached("a", snapshots[0].snapshot, 1), UnknownSnapshotError)
    machine.tell(DependencyAttached("b", snapshots[1].snapshot, 1))


def test_i30_decode_growth_evicts_the_longest_inactive_past_those_in_use_again() -> None:
    """Places in the LRU that were left are passed over."""
    machine = Machine(4, kv_events=True)
    for number in (1, 2, 3):
        machine.cached(number, [number])
    machine.finish(1, 2, 3)
    machine.req("hit", [1])
    machine.allocate("hit", 4, reuse=1)
    machine.open("a", range(4), 9)
    machine.allocate("a", 4)
    machine.generate("a")
    machine.take_events()

    assert machine.tell(GrowthScheduled(("a",))).served == 1
    assert machine.removed() == [2]
