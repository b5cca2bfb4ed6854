"""The oracle against histories worked out by hand: pool, leases and KV events."""

from copy import deepcopy

import pytest

from tenure.core.blocks.sequence import BlockIdentity, new_sequence
from tenure.core.blocks.values import (
    AllocationRequested,
    DecodeReservationReleased,
    DecodeReservationRequested,
    DestinationActivated,
    DestinationCancelled,
    DestinationRequested,
    Exhausted,
    ExternalPrefixRequested,
    GrowthReady,
    GrowthScheduled,
    LeaseFinished,
    LeaseOpened,
    LeasePreempted,
    PublishRemoved,
    PublishStored,
    Ready,
    RecordTrace,
    Reserved,
    ReservedAllocationRequested,
    StepAppended,
    StepComputed,
    TokenAppended,
    TokenGenerated,
    TokensComputed,
)
from tenure.core.blocks.view import CachedCopy, IndexEntry, PrefillCost, PrefixHit, PrivateCopy
from tenure.core.errors import AllocationBeyondTableError
from tests.spec.history import CHAIN_OF_16, LOCALS_OF_16, History, config, named, tokens

# --- The oracle itself ----------------------------------------------------------------------------------------------


def test_what_was_seen_of_leases_stays_while_twins_go_different_ways() -> None:
    """Leases that an event does not name are one object in all states, so none of these may be changed in place."""
    history = History(config(4))
    for request in (1, 2):
        history.tell(LeaseOpened(tokens(request, range(3))))
    before, twin = history.view, history.oracle.clone()
    were = deepcopy(before)
    history.tell(AllocationRequested(1, 3))
    history.tell(TokensComputed(1, 0, 3))
    with pytest.raises(AllocationBeyondTableError):
        history.oracle.apply(AllocationRequested(2, 99))
    twin.apply(TokenGenerated(2, 5))

    assert were == before
    assert (0,) == history.lease(1).copies
    assert (0, 1) == (history.lease(2).generated, twin.view().leases[2].generated)
    assert () == twin.view().leases[1].copies


def test_asking_for_a_cost_changes_nothing_and_follows_every_event() -> None:
    """It is asked between all events."""
    history = History(config(4))
    history.leave_behind(named(1, [7, 8]))
    history.tell(LeaseOpened(named(2, [7, 8])))
    before = history.view
    cost = history.oracle.prefill_cost(2)
    history.tell(DecodeReservationRequested(3))

    assert before == history.observations[-1].before
    assert PrefillCost(0, 0, 8, 0) == cost
    assert PrefillCost(1, 4, 4, 0) == history.oracle.prefill_cost(2)


# --- The pool -------------------------------------------------------------------------------------------------------


def test_free_blocks_are_used_from_number_0_and_last_in_first_out() -> None:
    """Block numbers are visible to engines, so their order is part of the contract."""
    history = History(config(4))
    for request in (1, 2):
        history.tell(LeaseOpened(tokens(request, range(3))))
    assert history.tell(AllocationRequested(1, 3)) == Ready((0,))
    assert history.tell(AllocationRequested(2, 3)) == Ready((1,))

    history.tell(LeaseFinished(1))

    assert history.view.free == (3, 2, 0)


def test_evicted_blocks_are_used_before_free_ones_and_the_last_evicted_first() -> None:
    """A reservation is used from its tail, and evictions are appended to it."""
    history = History(config(3))
    history.leave_behind(named(1, [7, 8]))
    reserved = history.ask(DecodeReservationRequested(3), Reserved)

    assert history.view.reservations[reserved.reservation].fresh == (2, 1, 0)
    assert history.commands == (PublishRemoved(1, 0, (8, 7)),)


def test_removal_is_told_for_the_last_copy_of_a_hash_only() -> None:
    """A router must not forget a prefix of which a duplicate survives."""
    history = History(config(4))
    for request in (1, 2, 3, 4):
        history.compute(named(request, [3]))
    for request in (1, 2, 3, 4):
        history.tell(LeaseFinished(request))
    history.ask(DecodeReservationRequested(1), Reserved)
    assert not history.commands
    assert history.view.index == {3: IndexEntry(1, (2, 3))}

    history.ask(DecodeReservationRequested(3), Reserved)

    assert history.commands == (PublishRemoved(1, 0, (3,)),)


def test_evicting_a_middle_duplicate_leaves_the_others_in_order() -> None:
    """The primary decides what a lookup pins."""
    history = History(config(4))
    for request in (1, 2, 3, 4):
        history.compute(named(request, [3]))
    history.tell(LeaseFinished(3))
    history.ask(DecodeReservationRequested(1), Reserved)

    assert history.view.index == {3: IndexEntry(0, (1, 3))}


def test_hit_in_the_middle_of_the_lru_order_goes_to_its_tail_when_given_back() -> None:
    """A reservation that is cancelled counts as a use."""
    history = History(config(3))
    for request, name in ((1, 1), (2, 2), (3, 3)):
        history.compute(named(request, [name]))
    for request in (1, 2, 3):
        history.tell(LeaseFinished(request))
    history.tell(LeaseOpened(named(4, [2, 9])))
    reserved = history.ask(DestinationRequested(4), Reserved)
    assert history.commands == (PublishRemoved(3, 0, (1,)),)

    history.tell(DestinationCancelled(reserved.reservation))
    history.ask(DecodeReservationRequested(2), Reserved)

    assert history.commands == (PublishRemoved(4, 0, (3,)),)


def test_cancelled_prefix_evicts_the_leaf_before_its_parent() -> None:
    """A parent without its leaf can be hit; a leaf without its parent cannot."""
    history = History(config(3))
    history.compute(named(1, [7, 8]))
    history.tell(LeaseOpened(named(2, [7, 8])))
    reserved = history.ask(DestinationRequested(2), Reserved)
    history.tell(LeaseFinished(1))
    history.tell(DestinationCancelled(reserved.reservation))
    history.ask(DecodeReservationRequested(2), Reserved)

    assert history.commands == (PublishRemoved(1, 0, (8,)),)


def test_exhausted_call_does_not_count_the_block_it_shares_as_evictable() -> None:
    """Else the shared block would be evicted from under its own hit."""
    history = History(config(1))
    history.leave_behind(named(1, [9]))
    history.tell(LeaseOpened(named(2, [9, 10])))

    assert history.tell(AllocationRequested(2, 8, 1)) == Exhausted(needed=1, available=0)
    assert history.view.lru == (0,)


def test_hash_twice_in_a_prefix_is_pinned_twice_and_spared_once() -> None:
    """Two positions hold one copy: two references, one block less to evict."""
    history = History(config(2))
    history.leave_behind(named(1, [7]))
    history.tell(LeaseOpened(named(2, [7, 7, 8])))
    reserved = history.ask(DestinationRequested(2), Reserved)
    assert reserved.blocks - reserved.fresh == 2
    assert history.view.copies[0] == CachedCopy(7, 0, 2)

    history.tell(DestinationActivated(2, reserved.reservation))

    assert history.lease(2).copies == (0, 0, 1)
    assert history.view.copies[0] == CachedCopy(7, 2, 0)


def test_reuse_pins_the_primary_also_while_an_active_duplicate_exists() -> None:
    """One rule for every hit; also its activity is that of the primary alone."""
    history = History(config(3))
    history.compute(named(1, [7]))
    history.compute(named(2, [7]))
    history.tell(LeaseFinished(1))
    assert history.oracle.prefix_hit(7) == PrefixHit(is_active=False)

    history.tell(LeaseOpened(named(3, [7])))

    assert history.tell(AllocationRequested(3, 4, 1)) == Ready((0,))


# --- Reservations ---------------------------------------------------------------------------------------------------


def test_cancelled_reservation_has_still_evicted_what_it_evicted() -> None:
    """An eviction that was told cannot be taken back."""
    history = History(config(1))
    history.leave_behind(named(1, [7]))
    reserved = history.ask(DecodeReservationRequested(1), Reserved)
    history.tell(DecodeReservationReleased(reserved.reservation))

    assert history.view.free == (0,)
    assert history.view.index == {}


def test_decode_reservation_run_empty_stays_valid() -> None:
    """Its holder need not count what is left."""
    history = History(config(2))
    history.tell(LeaseOpened(tokens(1, range(4))))
    number = history.ask(DecodeReservationRequested(1), Reserved).reservation
    assert history.tell(ReservedAllocationRequested(1, 4, number)) == Ready((0,))
    assert history.tell(ReservedAllocationRequested(1, 4, number)) == Ready(())

    history.tell(DecodeReservationReleased(number))

    assert history.view.reservations == {}


def test_external_destination_pins_its_prefix_and_becomes_visible_when_activated() -> None:
    """What another tier brings in is a hit for the next request."""
    history = History(config(3))
    history.leave_behind(named(1, [7]))
    history.tell(LeaseOpened(named(2, [7, 8, 9])))
    reserved = history.ask(ExternalPrefixRequested(2, 1, (8,)), Reserved)
    assert reserved == Reserved(1, blocks=2, fresh=1, transferable_tokens=4, dependencies=())

    history.tell(DestinationActivated(2, reserved.reservation))

    assert history.lease(2).allocated_tokens == 8
    assert history.commands == (PublishStored(1, 0, 7, (8,), (108,), None),)
    assert history.oracle.prefill_cost(2) == PrefillCost(1, 4, 8, 8)


def test_destination_counts_its_partial_tail_as_a_whole_block_to_transfer() -> None:
    """The transfer moves blocks, whatever is in them."""
    history = History(config(4))
    history.tell(LeaseOpened(tokens(1, range(6))))
    reserved = history.ask(DestinationRequested(1), Reserved)
    assert reserved.transferable_tokens == 8

    history.tell(DestinationActivated(1, reserved.reservation))

    assert history.lease(1).allocated_tokens == 6
    assert dict(history.view.copies) == {0: CachedCopy(CHAIN_OF_16[0], 1, 0), 1: PrivateCopy()}


def test_destination_of_a_request_with_output_covers_its_prompt_only() -> None:
    """Only the prompt is transferred; output is computed where the request runs."""
    history = History(config(4))
    history.tell(LeaseOpened(tokens(1, range(4))))
    history.tell(TokenGenerated(1))

    assert history.ask(DestinationRequested(1), Reserved).blocks == 1


# --- Leases and events ----------------------------------------------------------------------------------------------


def test_lifecycle_of_three_requests_tells_and_evicts_in_order() -> None:
    """The worked example of prefix caching: growth, sharing, release and eviction of the leaf first."""
    history = History(config(10))
    history.tell(LeaseOpened(tokens(1, range(15), 2, planned=[15, 16])))
    history.tell(AllocationRequested(1, 15))
    history.tell(TokensComputed(1, 0, 15))
    assert history.tell(TokenGenerated(1)) == TokenAppended(15, opened_block=False)
    history.tell(AllocationRequested(1, 16))
    history.tell(TokensComputed(1, 15, 16))
    assert history.tell(TokenGenerated(1)) == TokenAppended(16, opened_block=True)
    history.tell(AllocationRequested(1, 17))
    history.tell(TokensComputed(1, 16, 17))
    history.tell(LeaseOpened(tokens(2, [*range(10), 100, 101, 102, 103])))
    assert history.oracle.prefill_cost(2) == PrefillCost(2, 6, 8, 8)
    history.tell(AllocationRequested(2, 14, 2))
    history.tell(TokensComputed(2, 0, 14))
    assert history.view.num_active == 7
    history.tell(LeaseFinished(1))
    assert (history.view.num_active, history.view.num_inactive) == (4, 2)
    history.tell(LeaseFinished(2))
    assert (history.view.num_active, history.view.num_inactive) == (0, 5)
    history.tell(LeaseOpened(named(3, range(30, 39))))

    history.tell(AllocationRequested(3, 36))

    divergent = 4105028800499116126
    assert history.commands == (PublishRemoved(3, 0, (CHAIN_OF_16[3], CHAIN_OF_16[2], divergent, CHAIN_OF_16[1])),)
    assert (history.view.num_active, history.view.num_inactive) == (9, 1)


def test_stored_event_names_the_entry_before_it_and_carries_tokens() -> None:
    """A router hangs the block under its parent, whether or not that parent is visible."""
    history = History(config(2, dp_rank=3))
    history.tell(LeaseOpened(named(1, [6, 7], emit_token_ids=True)))
    history.tell(AllocationRequested(1, 8))
    history.tell(TokensComputed(1, 4, 8))

    assert history.commands == (PublishStored(0, 3, 6, (7,), (107,), ((4, 5, 6, 7),)),)


def test_stored_groups_end_at_a_block_that_does_not_become_visible() -> None:
    """A duplicate in the middle has nothing to tell and must not be told as if it had."""
    history = History(config(6))
    history.compute(named(1, [1, 2]))
    history.tell(LeaseOpened(named(2, [4, 2, 5, 6])))
    history.tell(AllocationRequested(2, 16))
    history.tell(TokensComputed(2, 0, 16))

    first, second = history.commands
    assert isinstance(first, PublishStored)
    assert isinstance(second, PublishStored)
    assert (first.parent_hash, first.block_hashes) == (None, (4,))
    assert (second.parent_hash, second.block_hashes) == (2, (5, 6))


def test_stored_groups_end_where_local_hashes_end() -> None:
    """One event has a local hash for each of its blocks, or for none."""
    identities = [BlockIdentity(1, 101), BlockIdentity(2, None), BlockIdentity(3, None)]
    history = History(config(3))
    history.compute(new_sequence(1, range(12), 0, 4, identities=identities))

    assert history.commands == (
        PublishStored(0, 0, None, (1,), (101,), None),
        PublishStored(1, 0, 1, (2, 3), (0, 0), None),
    )


def test_trace_without_listener_is_recorded_and_uses_no_event_id() -> None:
    """Occupancy can be followed on machines that talk to nobody."""
    history = History(config(1, kv_events=False, trace=True))
    history.leave_behind(named(1, [7]))
    history.ask(DecodeReservationRequested(1), Reserved)

    assert history.commands == (RecordTrace("eviction", 0, 4, active=1, inactive=0, capacity=1),)
    assert history.view.next_event_id == 0


def test_preempted_and_recomputed_request_makes_duplicates_without_events() -> None:
    """Its first blocks are still visible, so there is nothing to tell."""
    history = History(config(2))
    history.compute(named(1, [7]))
    history.tell(LeasePreempted(1))
    history.tell(AllocationRequested(1, 4))
    history.tell(TokensComputed(1, 0, 4))

    assert history.commands == ()
    assert history.view.index == {7: IndexEntry(0, (1,))}


def test_finalizing_a_named_block_that_was_never_allocated_is_ignored() -> None:
    """A scheduler may report a whole prompt; what is not held cannot become visible."""
    history = History(config(2))
    history.tell(LeaseOpened(named(1, [7])))
    history.tell(TokensComputed(1, 0, 4))

    assert history.view.index == {}


def test_growth_batch_stops_at_the_first_request_without_capacity() -> None:
    """What was served stays served."""
    history = History(config(2))
    for request, blocks in ((1, 1), (2, 2), (3, 1)):
        history.tell(LeaseOpened(named(request, range(blocks))))

    assert history.tell(GrowthScheduled((1, 2, 3))) == GrowthReady(1, ((1, 0),), ())


def test_step_batch_computes_and_appends_each_request_in_order() -> None:
    """A whole decode step is one event, and the same as its parts."""
    history = History(config(4))
    for request in (1, 2):
        history.tell(LeaseOpened(tokens(request, range(4), planned=[50, 51])))
    history.tell(GrowthScheduled((1, 2)))

    assert history.tell(StepComputed((1, 2))) == StepAppended((50, 50))
    assert history.commands == (PublishStored(0, 0, None, CHAIN_OF_16[:1], LOCALS_OF_16[:1], None),)
    assert history.view.index == {CHAIN_OF_16[0]: IndexEntry(0, (1,))}
