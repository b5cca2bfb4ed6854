"""What the seed's tests of its block pool pin, restated on the machine; the numbers are those of their list."""

from tenure.core.blocks import queries
from tenure.core.blocks.values import (
    AllocationRequested,
    DecodeReservationRequested,
    DestinationActivated,
    DestinationRequested,
    Exhausted,
    ExternalPrefixRequested,
    Ready,
    Reserved,
)
from tenure.core.errors import PrefixNotResidentError
from tests.blocks.harness import Machine


def test_pool_01_an_exact_prefix_reports_the_missing_hash() -> None:
    """A prefix that is not resident any more must be looked up again."""
    machine = Machine(2)
    machine.req(1, [9, 10])

    machine.refuses(ExternalPrefixRequested(1, 1, (10,)), PrefixNotResidentError, "prefix hash 9 is not resident")


def test_pool_02_a_reservation_without_prefix_is_all_fresh() -> None:
    """Fresh capacity needs no prefix."""
    machine = Machine(3, kv_events=True)
    answer = machine.tell(DecodeReservationRequested(3))

    assert answer == Reserved(1, 3, 3, 12, ())
    assert machine.view().reservations[1].prefix == ()
    machine.release(1)
    assert machine.view().free == (2, 1, 0)


def test_pool_03_fences_leave_no_trace_before_there_is_one() -> None:
    """Who never attaches a transfer pays nothing for fences."""
    machine = Machine(2)
    first = machine.reserve(2)
    machine.release(first)
    machine.cached("a", [1])
    machine.cached("b", [2])
    machine.finish("a", "b")
    machine.release(machine.reserve(2))
    view = machine.view()

    assert view.attached_ever == 0
    assert not view.tags
    assert not view.dependencies
    assert len(view.free) == 2


def test_pool_04_a_cold_resident_prefix_is_all_fresh() -> None:
    """Nothing cached: nothing pinned."""
    machine = Machine(3)
    machine.req(1, [7, 8, 9])

    assert machine.tell(DestinationRequested(1)) == Reserved(1, 3, 3, 12, ())


def test_pool_05_duplicate_hashes_take_a_block_each_and_share_visibility() -> None:
    """Two computations of one hash: one Stored event."""
    machine = Machine(2, kv_events=True)
    machine.cached("a", [7])
    machine.cached("b", [7])

    assert machine.stored() == [((7,), None)]
    assert (machine.active, machine.inactive) == (2, 0)
    machine.finish("a", "b")
    assert (machine.active, machine.inactive) == (0, 2)


def test_pool_06_a_pinned_prefix_is_no_capacity_for_its_own_request() -> None:
    """The hit itself cannot be evicted to make room for the rest."""
    machine = Machine(1)
    machine.cached("a", [9])
    machine.finish("a")
    machine.req("b", [9, 10])
    before = machine.view()

    assert machine.tell(DestinationRequested("b")) == Exhausted(needed=1, available=0)
    assert before == machine.view()
    assert (machine.active, machine.inactive) == (0, 1)


def test_pool_07_a_resident_prefix_stops_at_its_first_miss() -> None:
    """The rest of the request is fresh."""
    machine = Machine(2, kv_events=True)
    machine.cached("a", [7])
    machine.finish("a")
    machine.take_events()
    reservation = machine.pin("b", [7, 9])

    assert machine.view().reservations[reservation].prefix == ((7, 0),)
    assert machine.view().reservations[reservation].fresh == (1,)
    assert not machine.take_events()
    machine.cancel(reservation)
    assert machine.inactive == 1


def test_pool_08_a_hash_is_removed_with_its_last_copy_only() -> None:
    """Four copies: three go unreported, and the oldest survivor is always the primary."""
    machine = Machine(4, kv_events=True)
    owners = ["a", "b", "c", "d"]
    blocks = [machine.cached(owner, [3])[0] for owner in owners]
    assert machine.stored() == [((3,), None)]
    machine.finish(*owners)
    machine.release(machine.reserve(1))
    assert not machine.take_events()
    pinned = machine.pin("e", [3])
    assert machine.view().reservations[pinned].prefix == ((3, blocks[1]),)
    machine.cancel(pinned)
    for count in (2, 3):
        machine.release(machine.reserve(count))
        assert not machine.take_events()
    machine.release(machine.reserve(4))

    assert machine.removed() == [3]


def test_pool_09_evicting_a_middle_duplicate_keeps_the_primary() -> None:
    """A younger copy goes; lookups still find the oldest."""
    machine = Machine(4, kv_events=True)
    blocks = [machine.cached(owner, [3])[0] for owner in "abcd"]
    machine.take_events()
    machine.finish("b")
    machine.release(machine.reserve(1))
    assert not machine.take_events()
    entry = machine.view().index[3]
    assert entry.primary == blocks[0]
    assert entry.duplicates == (blocks[2], blocks[3])
    pinned = machine.pin("e", [3])
    assert machine.view().reservations[pinned].prefix == ((3, blocks[0]),)
    machine.cancel(pinned)
    machine.finish("a", "c", "d")

    assert machine.inactive == 3


def test_pool_10_a_cancelled_prefix_is_evicted_leaf_first() -> None:
    """Evicting the parent first would strand the leaf."""
    machine = Machine(2, kv_events=True)
    machine.cached("a", [7, 8])
    machine.finish("a")
    machine.take_events()
    machine.cancel(machine.pin("b", [7, 8]))
    machine.reserve(1)

    assert machine.removed() == [8]
    assert machine.hit(7)
    assert not machine.hit(8)


def test_pool_11_pinning_a_middle_copy_keeps_the_lru_order() -> None:
    """A pin takes a copy out of the LRU; its return puts it at the end."""
    machine = Machine(3, kv_events=True)
    for owner, block_hash in (("a", 1), ("b", 2), ("c", 3)):
        machine.cached(owner, [block_hash])
    machine.finish("a", "b", "c")
    machine.take_events()
    reservation = machine.pin("d", [2, 9])
    assert machine.removed() == [1]
    machine.cancel(reservation)
    machine.reserve(2)

    assert machine.removed() == [3]


def test_pool_12_an_activated_prefix_reenters_the_lru_on_release() -> None:
    """From pin to reference to inactive."""
    machine = Machine(1, kv_events=True)
    machine.cached("a", [7])
    machine.finish("a")
    machine.take_events()
    reservation = machine.pin("b", [7])
    machine.tell(DestinationActivated("b", reservation))
    assert machine.inactive == 0
    machine.finish("b")
    assert machine.inactive == 1
    machine.reserve(1)

    assert machine.removed() == [7]


def test_pool_13_a_fence_follows_eviction_reservation_and_cancel() -> None:
    """The transfer reads the block wherever its capacity goes, until it is satisfied."""
    machine = Machine(1)
    machine.cached("a", [7])
    machine.attach("a", [0], 41)
    machine.finish("a")
    assert machine.inactive == 1
    machine.req("b", [8])

    def pending(key: int) -> tuple[int, ...]:
        return queries.destination_pending(machine.state, key)

    reservation = machine.reserved(machine.tell(DestinationRequested("b")))
    assert pending(reservation) == (41,)
    machine.cancel(reservation)
    reservation = machine.reserved(machine.tell(DestinationRequested("b")))
    assert pending(reservation) == (41,)
    assert machine.satisfy(41)

    assert pending(reservation) == ()


def test_pool_14_a_fence_is_local_to_its_own_block() -> None:
    """Clean capacity is used first, and carries no dependency."""
    machine = Machine(2)
    machine.cached("a", [7])
    machine.attach("a", [0], 9)
    machine.finish("a")
    first, second = machine.reserve(1), machine.reserve(1)

    assert machine.view().reservations[first].dependencies == ()
    assert machine.view().reservations[second].dependencies == (9,)


def test_pool_15_eviction_takes_the_oldest_inactive_copy_after_any_unlinking() -> None:
    """The LRU's places may have gaps anywhere; the next to go is always the longest inactive."""
    machine = Machine(5, kv_events=True)
    for number in range(5):
        machine.cached(number, [number])
    machine.finish(*range(5))
    machine.take_events()
    machine.req("x", [0])
    machine.allocate("x", 4, reuse=1)
    machine.req("y", [2])
    machine.allocate("y", 4, reuse=1)
    machine.finish("x")
    answer = machine.tell(DecodeReservationRequested(4))

    assert isinstance(answer, Reserved)
    assert machine.removed() == [1, 3, 4, 0]


def test_i04_a_hash_twice_in_one_prefix_is_referenced_twice() -> None:
    """One copy, two lease entries: it is free again only after both are released."""
    machine = Machine(3)
    block = machine.cached("a", [7])[0]
    machine.req("b", [7, 7, 8])
    answer = machine.tell(AllocationRequested("b", 12, 2))

    assert answer == Ready((block, block, 1))
    machine.finish("a")
    assert machine.active == 2
    machine.finish("b")
    assert machine.view().lru == (block,)


def test_i09_a_hash_twice_in_one_destination_is_pinned_twice() -> None:
    """And unpinned twice, whether activated or cancelled."""
    machine = Machine(3)
    block = machine.cached("a", [7])[0]
    machine.finish("a")
    reservation = machine.pin("b", [7, 7])
    assert machine.view().reservations[reservation].prefix == ((7, block), (7, block))
    machine.cancel(reservation)
    assert machine.view().lru == (block,)
    reservation = machine.reserved(machine.tell(DestinationRequested("b")))
    machine.tell(DestinationActivated("b", reservation))
    assert machine.blocks("b") == (block, block)
    machine.finish("b")

    assert machine.view().lru == (block,)
