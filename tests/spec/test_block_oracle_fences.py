"""The oracle against histories worked out by hand: source-reuse fences, snapshots."""

import pytest

from tenure.core.blocks.values import (
    AllocationRequested,
    DecodeReservationReleased,
    DecodeReservationRequested,
    DependencyAttached,
    DependencySatisfied,
    Done,
    Event,
    LeaseFinished,
    LeaseOpened,
    LeasePreempted,
    NoSources,
    Ready,
    Reserved,
    ReservedAllocationRequested,
    Sources,
    StoreSourcesSnapshotted,
    TokenGenerated,
    TokensComputed,
    WasPending,
    WritesAuthorized,
)
from tenure.core.blocks.view import PendingWrites
from tenure.core.errors import (
    DependencyMismatchError,
    FencedGrowthError,
    UnknownSnapshotError,
)
from tests.spec.history import History, config, fenced_pair, named, refused


def test_fence_follows_its_block_through_eviction_reservation_and_cancel() -> None:
    """The transfer reads memory; it does not matter whose memory it is by now."""
    history = History(config(1))
    history.compute(named(1, [7]))
    history.fence(1, [0], 41)
    history.tell(LeaseFinished(1))
    first = history.ask(DecodeReservationRequested(1), Reserved)
    assert first.dependencies == (41,)
    history.tell(DecodeReservationReleased(first.reservation))
    second = history.ask(DecodeReservationRequested(1), Reserved)
    assert second.dependencies == (41,)
    assert history.tell(DependencySatisfied(41)) == WasPending(pending=True)

    assert history.view.reservations[second.reservation].dependencies == ()


def test_fence_is_local_to_the_block_that_is_read() -> None:
    """Nobody waits for a transfer that reads another block."""
    history = History(config(2))
    history.compute(named(1, [7]))
    history.fence(1, [0], 9)
    history.tell(LeaseFinished(1))

    assert history.ask(DecodeReservationRequested(1), Reserved).dependencies == ()
    assert history.ask(DecodeReservationRequested(1), Reserved).dependencies == (9,)


def test_authorized_write_becomes_visible_while_its_reader_is_pending() -> None:
    """Ordering the write behind the read is enough; the read need not be over."""
    history = History(config(1))
    history.compute(named(1, [7]))
    history.fence(1, [0], 23)
    history.tell(LeaseFinished(1))
    history.tell(LeaseOpened(named(2, [8])))
    assert history.tell(AllocationRequested(2, 4)) == Ready((0,), (23,))
    history.tell(WritesAuthorized(2, (23,)))
    history.tell(TokensComputed(2, 0, 4))
    assert history.oracle.prefix_hit(8) is not None
    assert history.oracle.is_pending(23)
    assert history.tell(StoreSourcesSnapshotted(2, (0,))) == NoSources()

    history.tell(DependencySatisfied(23))

    assert history.tell(StoreSourcesSnapshotted(2, (0,))) == Sources(2, (8,))


def test_pending_writes_partly_satisfied_are_pruned_by_the_same_allocation() -> None:
    """The engine authorizes what is left, in the order it is told."""
    history = fenced_pair()
    history.tell(DependencySatisfied(2))
    assert history.lease(9).pending_writes == PendingWrites(0, 2, (2, 1))
    refused(history, WritesAuthorized(9, (2, 1)), DependencyMismatchError)
    refused(history, WritesAuthorized(9, (1,)), DependencyMismatchError)

    assert history.tell(AllocationRequested(9, 8)) == Ready((), (1,))
    assert history.tell(WritesAuthorized(9, (1,))) == Done()
    assert history.view.authorized == {1}


def test_pending_writes_all_satisfied_still_refuse_growth_until_asked_again() -> None:
    """Growth is refused while the old list stands, even if it names only the dead."""
    history = fenced_pair()
    history.tell(DependencySatisfied(1))
    history.tell(DependencySatisfied(2))
    refused(history, AllocationRequested(9, 12), FencedGrowthError)

    assert history.tell(AllocationRequested(9, 4)) == Ready(())
    assert history.lease(9).pending_writes is None
    assert history.lease(9).allocated_tokens == 8


def test_dependency_attached_anew_is_not_the_one_a_lease_waited_for() -> None:
    """Ids are reused, attachments are not."""
    history = History(config(3))
    history.compute(named(1, [7]))
    history.compute(named(2, [8]))
    history.fence(1, [0], 5)
    history.tell(LeaseFinished(1))
    history.tell(LeaseOpened(named(3, [9, 10])))
    number = history.ask(DecodeReservationRequested(2), Reserved).reservation
    history.tell(ReservedAllocationRequested(3, 4, number))
    assert history.lease(3).pending_writes == PendingWrites(0, 1, (5,))
    history.tell(DependencySatisfied(5))
    history.fence(2, [0], 5)
    refused(history, WritesAuthorized(3, (5,)), DependencyMismatchError)

    assert history.tell(AllocationRequested(3, 4)) == Ready(())
    assert history.view.tags == {1: 5}


def test_snapshot_survives_an_event_that_changes_nothing_in_its_lease() -> None:
    """Asking twice for the same capacity must not disturb a store that is being admitted."""
    history = History(config(2))
    history.compute(named(1, [7]))
    sources = history.ask(StoreSourcesSnapshotted(1, (0,)), Sources)
    history.tell(AllocationRequested(1, 4))
    history.tell(TokensComputed(1, 0, 4))

    assert history.tell(DependencyAttached(1, sources.snapshot, 1)) == Done()


@pytest.mark.parametrize("event", [AllocationRequested(1, 8), LeasePreempted(1), LeaseFinished(1), TokenGenerated(1)])
def test_snapshot_dies_when_its_lease_changes(event: Event) -> None:
    """What was validated must still be true when the transfer is attached."""
    history = History(config(2))
    history.tell(LeaseOpened(named(1, [7, 8])))
    history.tell(AllocationRequested(1, 4))
    history.tell(TokensComputed(1, 0, 4))
    sources = history.ask(StoreSourcesSnapshotted(1, (0,)), Sources)
    history.tell(event)

    refused(history, DependencyAttached(1, sources.snapshot, 1), UnknownSnapshotError)


@pytest.mark.parametrize("positions", [(1, 0), (0, 0), (2,), (-1,), (0, 5)])
def test_snapshot_of_positions_that_will_not_do_finds_no_sources(positions: tuple[int, ...]) -> None:
    """Not ascending, not computed or not there: an answer, not an error."""
    history = History(config(3))
    history.tell(LeaseOpened(named(1, [7, 8, 9])))
    history.tell(AllocationRequested(1, 12))
    history.tell(TokensComputed(1, 0, 8))

    assert history.tell(StoreSourcesSnapshotted(1, positions)) == NoSources()


def test_snapshot_with_caching_off_accepts_private_blocks() -> None:
    """Without caching no block ever waits to become visible."""
    history = History(config(1, prefix_caching=False))
    history.tell(LeaseOpened(named(1, [7])))
    history.tell(AllocationRequested(1, 4))

    assert history.tell(StoreSourcesSnapshotted(1, (0,))) == Sources(1, (7,))
