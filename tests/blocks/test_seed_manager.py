"""What the seed's own manager tests pin, restated; the numbers are those of their list."""

import pytest

from tenure.core.blocks import queries
from tenure.core.blocks.hashing import synthetic_token
from tenure.core.blocks.sequence import new_sequence, tail_may_be_unresolved
from tenure.core.blocks.values import (
    AllocationRequested,
    DestinationActivated,
    ExternalPrefixRequested,
    NoSources,
    PublishRemoved,
    PublishStored,
    Ready,
    Reserved,
    Sources,
    StoreSourcesSnapshotted,
    TokensComputed,
    WritesAuthorized,
)
from tenure.core.blocks.view import PrefillCost
from tenure.core.errors import PrefixExceedsGrowthError
from tests.blocks.harness import Machine


def test_manager_01_duplicate_full_hashes_consume_capacity() -> None:
    """Two requests that compute the same block fill a pool of two."""
    machine = Machine(2)
    machine.cached(1, [7])
    machine.cached(2, [7])
    machine.req(3, [8])
    machine.exhausted(3, 4)

    assert machine.active == 2
    assert queries.allocated_tokens(machine.state, 3) == 0
    assert machine.blocks(3) == ()


def test_manager_02_a_reused_prefix_is_one_copy() -> None:
    """A hit costs no capacity."""
    machine = Machine(2)
    machine.cached(1, [7])
    machine.finish(1)
    machine.req(2, [7])
    machine.allocate(2, 4, reuse=1)

    assert (machine.active, machine.inactive) == (1, 0)


def test_manager_03_later_allocation_does_not_take_the_prefix_again() -> None:
    """`reusable_blocks` counts from position 0; what is held stays as it is."""
    machine = Machine(2)
    prefix = machine.cached("seed", [7])
    machine.finish("seed")
    machine.req(3, [7, 8])
    assert machine.allocate(3, 4, reuse=1) == 1
    assert machine.blocks(3) == prefix
    assert machine.allocate(3, 8, reuse=1) == 1

    assert machine.blocks(3)[:1] == prefix
    assert queries.allocated_tokens(machine.state, 3) == 8
    assert len(machine.blocks(3)) == 2
    assert machine.active == 2


def test_manager_04_more_reusable_blocks_than_new_ones_are_refused() -> None:
    """A caller that miscounts its hit is told so."""
    machine = Machine(2)
    machine.req(4, [7, 8])

    machine.refuses(AllocationRequested(4, 4, 2), PrefixExceedsGrowthError, "2 new reusable blocks exceed the 1 block")


def test_manager_05_a_full_block_is_hidden_until_computed() -> None:
    """Visible implies computed."""
    machine = Machine(2)
    machine.req(1, [7])
    machine.allocate(1, 4)
    assert not machine.hit(7)
    machine.finalize(1, 0, 4)

    assert machine.hit(7)


def test_manager_06_finalization_visits_only_newly_completed_blocks() -> None:
    """Each decision publishes what it completed."""
    machine = Machine(2)
    machine.req(1, [7, 8])
    machine.allocate(1, 8)
    machine.finalize(1, 0, 4)
    assert (machine.hit(7), machine.hit(8)) == (True, False)
    machine.finalize(1, 4, 8)

    assert machine.hit(8)


def test_manager_07_finalization_handles_unaligned_boundaries() -> None:
    """A block is complete once its last token is."""
    machine = Machine(3)
    machine.req(1, [7, 8, 9])
    machine.allocate(1, 12)
    machine.finalize(1, 3, 9)

    assert [machine.hit(each) for each in (7, 8, 9)] == [True, True, False]


def test_manager_08_a_hit_finalizes_only_its_fresh_suffix() -> None:
    """What was shared is visible already."""
    machine = Machine(2)
    machine.cached("seed", [7])
    machine.finish("seed")
    machine.req(2, [7, 8])
    machine.allocate(2, 8, reuse=1)
    machine.finalize(2, 4, 8)

    assert machine.hit(7)
    assert machine.hit(8)


def test_manager_09_release_lets_the_leaf_be_evicted_before_its_parent() -> None:
    """A parent without its leaf is still worth a hit; a leaf without its parent is not."""
    machine = Machine(2)
    machine.cached(1, [7, 8])
    machine.finish(1)
    machine.req(2, [9])
    machine.allocate(2, 4)

    assert machine.hit(7)
    assert not machine.hit(8)


def test_manager_10_the_whole_life_of_blocks() -> None:
    """VLLM's own prefix-caching example, from the first prefill to eviction under pressure."""
    machine = Machine(10, kv_events=True)
    machine.open(1, range(15), 2, planned=[15, 16])
    machine.allocate(1, 15)
    machine.finalize(1, 0, 15)
    assert (machine.active, machine.inactive) == (4, 0)
    assert not machine.generate(1)
    machine.allocate(1, 16)
    machine.finalize(1, 15, 16)
    assert machine.generate(1)
    machine.allocate(1, 17)
    machine.finalize(1, 16, 17)
    assert (machine.active, machine.inactive) == (5, 0)
    first = machine.hashes(1)[:4]
    assert first == (9143094415614847814, 9510318385840434533, 16998148715716822651, 16790386768269814709)

    machine.open(2, [*range(10), 100, 101, 102, 103])
    assert queries.prefill_cost(machine.state, 2) == PrefillCost(2, 6, 8, 8)
    machine.allocate(2, 14, reuse=2)
    machine.finalize(2, 0, 14)
    divergent = machine.hashes(2)[2]
    assert divergent == 4105028800499116126
    assert (machine.active, machine.inactive) == (7, 0)

    machine.finish(1)
    assert (machine.active, machine.inactive) == (4, 2)
    assert [machine.is_active(each or 0) for each in first] == [True, True, False, False]
    machine.finish(2)
    assert (machine.active, machine.inactive) == (0, 5)
    machine.take_events()

    machine.req(3, range(30, 39))
    machine.allocate(3, 36)
    (event,) = machine.take_events()
    assert isinstance(event, PublishRemoved)
    assert event.block_hashes == (first[3], first[2], divergent, first[1])
    assert (machine.active, machine.inactive) == (9, 1)
    machine.finalize(3, 0, 36)
    machine.finish(3)

    assert (machine.active, machine.inactive) == (0, 10)


def test_manager_11_an_external_destination_becomes_a_real_hit() -> None:
    """An exact prefix, a transferred suffix, and nothing beyond."""
    machine = Machine(3)
    prefix = machine.cached("seed", [7])
    machine.finish("seed")
    machine.req(2, [7, 8, 9])
    answer = machine.tell(ExternalPrefixRequested(2, 1, (8,)))
    assert isinstance(answer, Reserved)
    assert (answer.blocks, answer.fresh, machine.active) == (2, 1, 2)
    machine.tell(DestinationActivated(2, answer.reservation))

    assert len(machine.blocks(2)) == 2
    assert machine.blocks(2)[:1] == prefix
    assert queries.allocated_tokens(machine.state, 2) == 8
    assert (machine.hit(8), machine.hit(9)) == (True, False)
    assert queries.prefill_cost(machine.state, 2).cached_tokens == 8


def test_manager_12_authorizing_a_write_does_not_end_the_transfer() -> None:
    """The write is ordered behind the reader; a new store waits until the reader is done."""
    machine = Machine(1)
    machine.cached("source", [7])
    machine.attach("source", [0], 23)
    machine.finish("source")
    assert machine.inactive == 1
    machine.req(2, [8])
    assert machine.tell(AllocationRequested(2, 4)) == Ready((0,), (23,))
    machine.tell(WritesAuthorized(2, (23,)))
    machine.finalize(2, 0, 4)

    assert machine.hit(8)
    assert queries.is_pending(machine.state, 23)
    assert isinstance(machine.tell(StoreSourcesSnapshotted(2, (0,))), NoSources)
    assert machine.satisfy(23)
    assert isinstance(machine.tell(StoreSourcesSnapshotted(2, (0,))), Sources)


def test_manager_13_a_fenced_allocation_keeps_its_blocks_across_a_smaller_target() -> None:
    """Ownership is monotonic."""
    machine = Machine(2)
    machine.cached("source", [7, 8])
    machine.attach("source", [0, 1], 29)
    machine.finish("source")
    machine.req(2, [9, 10])
    answer = machine.tell(AllocationRequested(2, 8))
    assert isinstance(answer, Ready)
    assert (len(answer.blocks), answer.dependencies) == (2, (29,))
    machine.tell(WritesAuthorized(2, (29,)))
    assert machine.tell(AllocationRequested(2, 4)) == Ready(())
    assert queries.allocated_tokens(machine.state, 2) == 8
    machine.finalize(2, 0, 4)
    machine.finalize(2, 4, 8)
    assert machine.satisfy(29)

    assert machine.hit(9)
    assert machine.hit(10)


def test_manager_14_events_carry_the_stored_payload() -> None:
    """Rank, parent, local hash and tokens; the parent need not be visible."""
    machine = Machine(2, kv_events=True, dp_rank=3)
    machine.req("r", [6, 7], emit_token_ids=True)
    machine.allocate("r", 8)
    machine.finalize("r", 4, 8)

    assert machine.take_events() == [PublishStored(0, 3, 6, (7,), (107,), ((4, 5, 6, 7),))]


def test_neighbour_g1_the_parent_is_published_before_the_promoted_tail() -> None:
    """A mirror can always attach a child to a parent it knows."""
    machine = Machine(8, kv_events=True)
    machine.open(1, range(8), 4, planned=[8, 9, 10, 11])
    machine.allocate(1, 8)
    machine.finalize(1, 0, 8)
    for _ in range(4):
        machine.generate(1)
    machine.allocate(1, 12)
    machine.finalize(1, 8, 12)
    names = machine.hashes(1)

    assert machine.stored() == [((names[0], names[1]), None), ((names[2],), names[1])]


# --- Sequences --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("uuid", "ordinal", "token"),
    [
        (1, 0, 2515880452),
        (1, 1, 3600266899),
        (1, 2, 2716793611),
        (1, 3, 2249174135),
        (2, 0, 1927195132),
        (0, 0, 3838282282),
        (0, 1, 3615623958),
        (0, 2, 1794767847),
        (0x000102030405060708090A0B0C0D0E0F, 7, 3397398804),
    ],
)
def test_sequence_synthetic_tokens_are_the_golden_ones(uuid: int, ordinal: int, token: int) -> None:
    """Replays of one request generate the same output everywhere."""
    assert token == synthetic_token(uuid.to_bytes(16, "big"), ordinal)
    machine = Machine(8)
    machine.open(uuid, [1], ordinal + 1)
    for _ in range(ordinal + 1):
        machine.generate(uuid)

    assert token == machine.view().leases[uuid].window[-1]


def test_sequence_a_short_prompt_has_one_partial_identity() -> None:
    """Three tokens of a block of four have no name yet."""
    machine = Machine(1)
    machine.open(1, [0, 1, 2])

    assert machine.hashes(1) == (None,)


def test_sequence_crossing_a_boundary_resolves_one_block_and_opens_the_next() -> None:
    """The fourth token fills the block, the fifth opens another."""
    machine = Machine(2)
    machine.open(1, [0, 1, 2], 2, planned=[3, 4])
    machine.allocate(1, 3)
    assert not machine.generate(1)
    machine.allocate(1, 4)
    machine.finalize(1, 3, 4)
    assert machine.generate(1)

    assert machine.hashes(1) == (9143094415614847814, None)


@pytest.mark.parametrize(
    ("prompt", "generated", "computed", "allowed"), [(3, 1, 3, True), (3, 1, 4, False), (4, 0, 2, False)]
)
def test_sequence_an_aligned_tail_is_unresolved_only_while_its_output_is_uncomputed(
    prompt: int, generated: int, computed: int, allowed: bool
) -> None:
    """Edge 7: a preempted request that recomputes in chunks has an unresolved full tail, and that is right."""
    assert allowed == tail_may_be_unresolved(prompt + generated, 4, generated, computed)


def test_sequence_chunked_recompute_after_preemption_is_accepted() -> None:
    """The seed's release rejected this: the tail holds output that is not computed yet."""
    machine = Machine(4)
    machine.open(1, range(7), 4, planned=[7, 8])
    machine.allocate(1, 7)
    machine.finalize(1, 0, 7)
    machine.generate(1)
    machine.preempt(1)
    machine.allocate(1, 4)
    machine.finalize(1, 0, 4)
    assert machine.hashes(1)[1] is None
    machine.allocate(1, 8)
    machine.finalize(1, 4, 8)

    assert machine.hashes(1)[1] == 9510318385840434533


def test_sequence_equal_histories_have_equal_identities() -> None:
    """Prompt or output, a token is a token."""
    machine = Machine(4)
    machine.open(1, [0, 1, 2, 3])
    machine.open(2, [0, 1, 2], 1, planned=[3])
    machine.generate(2)
    machine.allocate(2, 4)
    machine.finalize(2, 0, 4)

    assert machine.hashes(1) == machine.hashes(2)


def test_sequence_a_chained_identity_uses_its_parent() -> None:
    """The second block is not named by its own tokens alone."""
    first, second = new_sequence(1, [*range(4), *range(4)], 0, 4).identities

    assert first.sequence_hash == first.local_hash == second.local_hash
    assert second.sequence_hash != second.local_hash


def test_sequence_planned_tokens_come_out_exactly() -> None:
    """Then the output is exhausted."""
    machine = Machine(4)
    machine.open(1, [0, 1], 3, planned=[7, 8, 9])
    for _ in range(3):
        machine.generate(1)

    assert machine.view().leases[1].window == (0, 1, 7, 8, 9)
    assert machine.view().leases[1].length == 5


def test_i34_the_window_stays_within_a_block_and_a_token_when_finalize_keeps_up() -> None:
    """Memory per request does not grow with its output."""
    machine = Machine(12)
    machine.open(1, [0], 32)
    for length in range(2, 34):
        machine.generate(1)
        assert len(machine.view().leases[1].window) <= 5
        machine.allocate(1, length)
        machine.finalize(1, length - 1, length)


def test_i34_emitting_tokens_keeps_the_whole_history() -> None:
    """Events may name any block's tokens."""
    machine = Machine(4)
    machine.open(1, range(8), 4, emit_token_ids=True)
    machine.allocate(1, 8)
    machine.finalize(1, 0, 8)
    lease = machine.view().leases[1]

    assert (lease.window_start, lease.window) == (0, tuple(range(8)))


def test_sequence_footprint_counts_known_and_final_blocks() -> None:
    """Five tokens are two blocks now, and 27 with 100 tokens of output."""
    sequence = new_sequence(1, range(5), 100, 4)

    assert sequence.known_blocks == 2
    assert sequence.blocks_to_completion == 27
    assert len(sequence.identities) == 2


def test_manager_tokens_computed_of_nothing_changes_nothing() -> None:
    """A decision that completes no block is no change at all."""
    machine = Machine(2)
    machine.open(1, range(5))
    machine.allocate(1, 5)
    before = machine.state
    machine.tell(TokensComputed(1, 0, 3))

    assert before is machine.state
