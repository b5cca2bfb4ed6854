"""Public bug reports about block caches, each as the few events it comes down to (part B of the case collection).

The number behind the id names the public thread. Cases whose mechanism is a scheduler's are in the replay's tests, or
in the tests' README with the reason why they are nowhere.
"""

import pytest

from tenure.core.blocks import queries
from tenure.core.blocks.hashing import IdentityKeys, MediaKey
from tenure.core.blocks.values import (
    AllocationRequested,
    DecodeReservationRequested,
    DestinationActivated,
    DestinationCancelled,
    DestinationRequested,
    Exhausted,
    ExternalPrefixRequested,
    LeaseFinished,
    NoSources,
    PublishStored,
    Ready,
    Reserved,
    StoreSourcesSnapshotted,
    TokensComputed,
    WritesAuthorized,
)
from tenure.core.errors import InvalidKeysError, UnauthorizedWriteError, UnknownLeaseError, UnknownReservationError
from tenure.spec.blocks.mirror import KvMirror
from tests.blocks.harness import Machine


def test_b01_a_block_held_twice_by_one_request_is_freed_once() -> None:
    """vllm#42571: references dropped per occurrence linked one block into the free list twice."""
    machine = Machine(3)
    block = machine.cached("seed", [7])[0]
    machine.finish("seed")
    machine.req("r", [7, 7])
    machine.allocate("r", 8, reuse=2)
    machine.finish("r")
    assert machine.view().lru == (block,)
    machine.req("all", [10, 11, 12])
    machine.allocate("all", 12)

    assert len(set(machine.blocks("all"))) == 3
    machine.refuses(LeaseFinished("r"), UnknownLeaseError)


def pool_of_b02() -> Machine:
    """Capacity 4: H0, H1 inactive with H1 next to go; A holds one; one is free."""
    machine = Machine(4, kv_events=True)
    machine.cached("old", [100, 101])
    machine.finish("old")
    machine.open("A", [1, 2])
    machine.allocate("A", 2)
    machine.take_events()
    return machine


def test_b02_hits_are_not_touched_before_the_capacity_check() -> None:
    """vllm#11565: and the hits themselves are no capacity for the rest."""
    machine = pool_of_b02()
    machine.req("B", [100, 101, 102, 103])
    before = machine.view()
    machine.exhausted("B", 16, reuse=2)
    assert before == machine.view()
    machine.finish("A")

    assert machine.allocate("B", 16, reuse=2) == 4
    assert not machine.take_events()
    assert queries.num_free(machine.state) == 0


@pytest.mark.parametrize(("fresh", "ready"), [(1, True), (2, False)])
def test_b03_fresh_allocation_never_evicts_the_requests_own_hit(fresh: int, ready: bool) -> None:
    """vllm#44409: the hit at the head of the LRU was popped, and stood in the table twice."""
    machine = Machine(3, kv_events=True)
    machine.cached("b", [1])
    machine.cached("a", [0])
    machine.cached("c", [9])
    machine.finish("a", "b", "c")
    machine.take_events()
    machine.req("r", [0, 1, *range(20, 20 + fresh)])
    lru = machine.view().lru
    answer = machine.tell(AllocationRequested("r", (2 + fresh) * 4, 2))

    assert ready == isinstance(answer, Ready)
    if ready:
        assert machine.removed() == [9]
        assert len(set(machine.blocks("r"))) == 3
    else:
        assert lru == machine.view().lru
        assert not machine.take_events()


def test_b04_no_removed_event_while_another_copy_is_resident() -> None:
    """vllm#55092: the router forgot a block that still hit."""
    machine = Machine(4, kv_events=True)
    machine.cached("a", [3])
    second = machine.cached("b", [3])[0]
    assert machine.stored() == [((3,), None)]
    machine.finish("a")
    keep = machine.reserve(3)
    assert not machine.take_events()
    assert machine.view().index[3].primary == second
    machine.finish("b")
    machine.reserve(1)

    assert machine.removed() == [3]
    machine.release(keep)


def test_b06_a_child_is_published_after_its_parent() -> None:
    """dynamo#12222: all three hashes appeared, in the wrong order."""
    machine = Machine(4, kv_events=True)
    machine.open("A", range(9), 3)
    machine.allocate("A", 9)
    machine.finalize("A", 0, 9)
    for _ in range(3):
        machine.generate("A")
    machine.allocate("A", 12)
    machine.finalize("A", 9, 12)
    names = machine.hashes("A")

    assert machine.stored() == [((names[0], names[1]), None), ((names[2],), names[1])]


def test_b07_release_order_lets_a_prefix_survive() -> None:
    """dynamo#12033: head first gives no hit at all with two blocks resident."""
    machine = Machine(3, kv_events=True)
    blocks = machine.cached("A", [100, 101, 102])
    machine.finish("A")
    machine.take_events()
    assert machine.view().lru == blocks[::-1]
    machine.req("C", [9])
    machine.allocate("C", 4)
    assert machine.removed() == [102]
    machine.req("again", [100, 101, 102])
    assert queries.prefill_cost(machine.state, "again").cached_tokens == 8
    machine.finish("again")
    machine.cancel(machine.pin("pinner", [100, 101]))

    assert machine.view().lru == (blocks[1], blocks[0])


def test_b09_a_lease_kept_until_its_last_scheduled_step_keeps_its_block() -> None:
    """vllm#45357: an engine with steps in flight finishes a lease only after its last one."""
    machine = Machine(1)
    machine.open("A", [1, 2], 4)
    machine.allocate("A", 2)
    machine.generate("A")
    machine.req("C", [9])
    machine.exhausted("C", 4)
    machine.finish("A")

    assert machine.allocate("C", 4) == 1


def test_b11_a_store_reads_the_old_bytes_and_the_next_writer_waits() -> None:
    """vllm#52360: the reader of a preempted request's block found the next request's bytes."""
    machine = Machine(1)
    machine.cached("A", [100])
    machine.attach("A", [0], 4)
    machine.preempt("A")
    machine.req("C", [9])
    assert machine.tell(AllocationRequested("C", 4)) == Ready((0,), (4,))
    machine.refuses(TokensComputed("C", 0, 4), UnauthorizedWriteError)
    machine.tell(WritesAuthorized("C", (4,)))
    machine.finalize("C", 0, 4)
    assert machine.satisfy(4)

    assert not queries.is_pending(machine.state, 4)
    assert not machine.view().tags


def test_b13_a_block_completed_in_the_last_step_is_offered_and_fenced() -> None:
    """vllm#48596: finalize comes before release, the fence with the intent to store."""
    machine = Machine(2, kv_events=True)
    machine.open("A", range(3), 2, planned=[3, 99])
    machine.allocate("A", 3)
    machine.finalize("A", 0, 3)
    machine.generate("A")
    machine.allocate("A", 4)
    machine.finalize("A", 3, 4)
    machine.attach("A", [0], 6)
    machine.finish("A")
    assert machine.stored() == [((9143094415614847814,), None)]
    machine.open("C", range(50, 58))
    assert machine.tell(AllocationRequested("C", 8)) == Ready((0, 1), (6,))
    machine.finish("C")

    again = Machine(2)
    again.cached("A", [9143094415614847814])
    again.finish("A")
    again.open("D", range(5))
    assert queries.prefill_cost(again.state, "D").cached_tokens == 4


def test_b14_a_block_that_was_never_computed_is_never_visible() -> None:
    """vllm#43569: aborted between scheduling and its step."""
    machine = Machine(2, kv_events=True)
    machine.open("A", range(4))
    machine.allocate("A", 4)
    machine.finish("A")
    machine.open("B", range(4))

    assert queries.prefill_cost(machine.state, "B").cached_tokens == 0
    assert not machine.take_events()
    assert machine.view().copies == {}


def test_b14_of_two_steps_in_flight_only_the_processed_ones_blocks_stay() -> None:
    """The abort comes while the second chunk is still being computed."""
    machine = Machine(2, kv_events=True)
    machine.req("A", [100, 101])
    machine.allocate("A", 4)
    machine.allocate("A", 8)
    machine.finalize("A", 0, 4)
    machine.finish("A")

    assert machine.stored() == [((100,), None)]
    assert machine.hit(100)
    assert not machine.hit(101)


def test_b16_a_load_that_ends_inside_a_block_counts_its_own_tokens() -> None:
    """vllm#34616: computed was rounded up to the block."""
    machine = Machine(3)
    machine.open("A", range(10))
    machine.allocate("A", 10)
    machine.finalize("A", 0, 6)
    names = [each for each in machine.hashes("A") if each is not None]
    assert [machine.hit(each) for each in names] == [True, False]
    machine.finalize("A", 6, 7)
    assert not machine.hit(names[1])
    machine.finalize("A", 7, 8)

    assert machine.hit(names[1])


def test_b17_admission_reserves_the_whole_requirement_or_nothing() -> None:
    """vllm#57104: parked loads held every block and none could take one more."""
    machine = Machine(7)
    machine.req("A", range(10, 14))
    machine.req("B", range(20, 23))
    destination = machine.reserved(machine.tell(DestinationRequested("A")))
    growth = machine.reserve(1)
    assert machine.active == 5
    before = machine.state
    assert isinstance(machine.tell(DestinationRequested("B")), Exhausted)
    assert before is machine.state
    machine.tell(DestinationActivated("A", destination))
    machine.release(growth)
    machine.finish("A")

    assert isinstance(machine.tell(DestinationRequested("B")), Reserved)
    assert isinstance(machine.tell(DecodeReservationRequested(1)), Reserved)


def test_b18_a_failed_load_is_cancelled_and_its_blocks_never_visible() -> None:
    """vllm#26813: one of the two recomputes block 1; the other finds it once it is final."""
    machine = Machine(5, kv_events=True)
    machine.cached("seed", [100])
    machine.finish("seed")
    machine.take_events()
    machine.req("A", [100, 101])
    machine.req("B", [100, 101])
    load = machine.reserved(machine.tell(ExternalPrefixRequested("A", 1, (101,))))
    machine.cancel(load)
    assert not machine.hit(101)
    machine.allocate("A", 8, reuse=1)
    assert queries.prefill_cost(machine.state, "B").cached_tokens == 4
    machine.finalize("A", 4, 8)
    assert queries.prefill_cost(machine.state, "B").cached_tokens == 8

    assert machine.stored() == [((101,), 100)]
    machine.finish("A", "B")
    assert machine.hit(100)


IMAGE = (1 << 200) + 5
KEYS = {
    "plain": None,
    "empty": IdentityKeys(),
    "adapter x": IdentityKeys(adapter="x"),
    "group x": IdentityKeys("x"),
    "adapter and group": IdentityKeys("x", "x"),
    "tags in names": IdentityKeys("xa\x01\x00\x00\x00x"),
    "image": IdentityKeys(media=(MediaKey(IMAGE.to_bytes(32, "little"), 0, 2),)),
    "image differing high": IdentityKeys(media=(MediaKey((IMAGE ^ 1 << 250).to_bytes(32, "little"), 0, 2),)),
    "image moved": IdentityKeys(media=(MediaKey(IMAGE.to_bytes(32, "little"), 1, 2),)),
    "image longer": IdentityKeys(media=(MediaKey(IMAGE.to_bytes(32, "little"), 0, 3),)),
}


def test_b19_different_identities_never_share_a_hash() -> None:
    """vllm#44701: the encoding is injective over tokens, parent, adapter, group, and media with their places."""
    names: dict[str, tuple[int | None, ...]] = {}
    machine = Machine(20)
    for name, keys in KEYS.items():
        machine.open(name, [*range(8)], 0, keys=keys)
        names[name] = machine.hashes(name)
    assert names.pop("empty") == names["plain"]

    firsts = [name[0] for name in names.values()]
    seconds = [name[1] for name in names.values()]
    assert len(set(firsts)) == len(firsts)
    assert len(set(seconds)) == len(seconds)


def test_b19_a_media_item_names_the_blocks_it_reaches_into_and_all_after_them() -> None:
    """A common text prefix in front of an image is still shared."""
    machine = Machine(20)
    for name, content in (("one", b"1"), ("two", b"2")):
        machine.open(name, range(12), 4, keys=IdentityKeys(media=(MediaKey(content, 5, 2),)))
    one, two = machine.hashes("one"), machine.hashes("two")

    assert one[0] == two[0]
    assert one[1] != two[1]
    assert one[2] != two[2]


@pytest.mark.parametrize(("offset", "length"), [(-1, 2), (0, 0), (2**63, 1), (0, 2**63)])
def test_b19_a_media_item_without_tokens_is_refused(offset: int, length: int) -> None:
    """It would name nothing."""
    with pytest.raises(InvalidKeysError):
        IdentityKeys(media=(MediaKey(b"x", offset, length),))


def test_b19_generated_blocks_carry_their_requests_keys() -> None:
    """A tenant's output is as much its own as its prompt."""
    machine = Machine(20)
    for name in ("one", "two"):
        machine.open(name, range(3), 1, planned=[3], keys=IdentityKeys(name))
        machine.allocate(name, 3)
        machine.generate(name)
        machine.allocate(name, 4)
        machine.finalize(name, 3, 4)

    assert machine.hashes("one") != machine.hashes("two")


def test_b20_equal_blocks_in_a_row_have_different_hashes() -> None:
    """sglang#13488: a block became its own parent."""
    machine = Machine(2, 2, kv_events=True)
    machine.open("A", [7, 7, 7, 7])
    machine.allocate("A", 4)
    machine.finalize("A", 0, 4)
    first, second = machine.hashes("A")

    assert first != second
    assert machine.stored() == [((first, second), None)]


def test_b21_sharing_a_prefix_removes_nothing() -> None:
    """sglang#14934: a tree split was reported as removal."""
    machine = Machine(6, kv_events=True)
    mirror = KvMirror()
    machine.cached("A", [1, 2, 3])
    machine.req("B", [1, 2, 4])
    machine.allocate("B", 12, reuse=2)
    machine.finalize("B", 8, 12)
    events = machine.take_events()
    mirror.hear(events)
    mirror.compare(machine.view())

    assert [event.block_hashes for event in events if isinstance(event, PublishStored)] == [(1, 2, 3), (4,)]
    assert mirror.visible == {1, 2, 3, 4}


def test_b23_the_parent_is_the_position_before() -> None:
    """vllm-ascend#12002: the previous *stored* block was taken for the parent."""
    machine = Machine(6, kv_events=True)
    machine.cached("other", [11])
    machine.take_events()
    machine.req("A", [10, 11, 12, 13])
    machine.allocate("A", 16)
    machine.finalize("A", 0, 16)

    assert machine.stored() == [((10,), None), ((12, 13), 11)]


def test_b25_a_hit_ends_at_the_first_gap() -> None:
    """llm-d-inference-sim#701: hits were counted behind a gap."""
    machine = Machine(3)
    machine.cached("c", [3])
    machine.cached("b", [2])
    machine.cached("a", [1])
    machine.finish("a", "b", "c")
    machine.reserve(1)
    machine.req("again", [1, 2, 3])

    assert not machine.hit(1)
    assert queries.resident_prefix_blocks(machine.state, "again") == 0


def test_b27_a_preempted_request_finds_its_blocks_until_they_are_reused() -> None:
    """inference-sim#1079: and exactly the leaf goes first."""
    machine = Machine(8, kv_events=True)
    machine.open("A", range(16), 2)
    machine.allocate("A", 16)
    machine.finalize("A", 0, 16)
    machine.generate("A")
    names = machine.hashes("A")
    machine.allocate("A", 17)
    machine.preempt("A")
    machine.take_events()
    cost = queries.prefill_cost(machine.state, "A")
    assert (cost.cached_tokens, cost.new_tokens) == (16, 1)
    machine.req("D", range(50, 55))
    machine.allocate("D", 20)
    assert machine.removed() == [names[3]]
    assert queries.prefill_cost(machine.state, "A").cached_tokens == 12
    machine.exhausted("A", 17, reuse=3)
    machine.finish("D")

    assert machine.allocate("A", 17, reuse=3) == 5
    assert not machine.take_events()


def test_b29_a_failing_reservation_changes_nothing() -> None:
    """vllm#24228: the counter moved before the check."""
    machine = Machine(2)

    assert machine.tell(DecodeReservationRequested(3)) == Exhausted(needed=3, available=2)
    assert queries.num_free(machine.state) == 2
    machine.req("A", [1, 2])
    assert machine.allocate("A", 8) == 2


def test_b31_pins_belong_to_copies() -> None:
    """sglang#38480: a split of the prefix lost the lock that protected a store."""
    machine = Machine(6)
    machine.cached("A", [10, 11, 12])
    machine.finish("A")
    store = machine.pin("store", [10, 11, 12])
    machine.req("B", [10, 11, 20])
    machine.allocate("B", 12)
    machine.finalize("B", 0, 12)
    machine.finish("B")
    machine.req("pressure", [30, 31, 32])
    machine.allocate("pressure", 12)
    assert [machine.hit(each) for each in (10, 11, 12)] == [True, True, True]
    assert isinstance(machine.tell(DecodeReservationRequested(1)), Exhausted)
    machine.cancel(store)

    assert machine.view().lru == (2, 1, 0)


def test_b32_an_acknowledged_store_frees_its_block_for_decode() -> None:
    """sglang#20049: acknowledgements were only processed on the admission path."""
    machine = Machine(2)
    machine.cached("A", [10])
    store = machine.pin("store", [10])
    machine.finish("A")
    machine.open("D", range(3), 9)
    machine.allocate("D", 3)
    for _ in range(2):
        machine.generate("D")
    machine.exhausted("D", 5)
    machine.cancel(store)

    assert machine.allocate("D", 5) == 1


def test_b34_a_lookup_that_comes_to_nothing_gives_its_pins_back_once() -> None:
    """LMCache#1034: a reservation is activated or cancelled, once."""
    machine = Machine(2)
    machine.cached("A", [10, 11])
    machine.finish("A")
    lookup = machine.pin("B", [10, 11])
    machine.cancel(lookup)
    machine.refuses(DestinationCancelled(lookup), UnknownReservationError)
    machine.reserve(2)

    assert not machine.view().index


@pytest.mark.parametrize("release_first", [True, False])
def test_b35_release_and_unpin_in_either_order_end_inactive(release_first: bool) -> None:
    """LMCache#1130: in between, the copy is not evictable."""
    machine = Machine(1)
    machine.cached("A", [10])
    pin = machine.pin("B", [10])
    if release_first:
        machine.finish("A")
        assert machine.inactive == 0
        machine.cancel(pin)
    else:
        machine.cancel(pin)
        assert machine.inactive == 0
        machine.finish("A")

    assert machine.inactive == 1


def test_b37_failed_growth_leaves_nothing_behind() -> None:
    """dynamo#11019: no phantom ownership, no event, no credit."""
    machine = Machine(3, kv_events=True)
    machine.open("A", [1, 2])
    machine.allocate("A", 2)
    machine.req("B", [7, 8, 9])
    machine.exhausted("B", 12)
    assert machine.active == 1
    assert machine.blocks("B") == ()
    assert not machine.take_events()
    machine.finish("A")
    machine.allocate("B", 12)

    assert len(set(machine.blocks("B"))) == 3


def test_b39_a_failed_transfer_makes_nothing_visible() -> None:
    """dynamo#15079: only success does."""
    machine = Machine(2, kv_events=True)
    load = machine.pin("A", [100])
    machine.cancel(load)
    machine.req("B", [100])

    assert queries.prefill_cost(machine.state, "B").cached_tokens == 0
    assert not machine.take_events()


def test_b40_a_preempted_request_has_no_blocks_to_hand_over() -> None:
    """vllm#48141: an empty block list was handed off as success; here there is no snapshot to hand off."""
    machine = Machine(2)
    machine.cached("A", [10])
    machine.preempt("A")

    assert machine.blocks("A") == ()
    assert isinstance(machine.tell(StoreSourcesSnapshotted("A", (0,))), NoSources)
