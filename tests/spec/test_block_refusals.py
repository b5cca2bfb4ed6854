"""What the oracle refuses, with which error, and that nothing changes by it."""

from collections.abc import Callable

import pytest

from tenure.core.blocks.sequence import new_sequence
from tenure.core.blocks.values import (
    AllocationRequested,
    DecodeReservationReleased,
    DecodeReservationRequested,
    DependencyAttached,
    DestinationActivated,
    DestinationCancelled,
    DestinationRequested,
    Event,
    ExternalPrefixRequested,
    GrowthScheduled,
    LeaseFinished,
    LeaseOpened,
    LeasePreempted,
    ReservedAllocationRequested,
    SnapshotDiscarded,
    StepComputed,
    StoreSourcesSnapshotted,
    TokenGenerated,
    TokensComputed,
    WritesAuthorized,
)
from tenure.core.errors import (
    AllocationBeyondTableError,
    BlockNotHeldError,
    CachingOffError,
    ComputedBackwardsError,
    DependencyMismatchError,
    DependencyPendingError,
    EmptyDependenciesError,
    EmptySnapshotError,
    EmptySuffixError,
    FencedGrowthError,
    LeaseAlreadyOpenError,
    LeaseResidentError,
    MissingTokensError,
    NegativeCountError,
    NothingComputedError,
    NothingToAuthorizeError,
    OutputExhaustedError,
    PendingDependenciesError,
    PrefixExceedsGrowthError,
    PrefixNotResidentError,
    ReservationExceedsPromptError,
    ReservationKindError,
    ReservationOwnerError,
    ReservationTooSmallError,
    SequenceBlockSizeError,
    SnapshotOwnerError,
    SnapshotsExhaustedError,
    SourcesChangedError,
    StepTokensError,
    SuffixBeyondTableError,
    SuffixMismatchError,
    TenureError,
    TokenRangeError,
    UnauthorizedWriteError,
    UnknownLeaseError,
    UnknownReservationError,
    UnknownSnapshotError,
    UnresolvedParentError,
    UnresolvedPrefixError,
    UnresolvedTailError,
)
from tests.spec.history import History, config, fenced_pair, named, refused, tokens


def stage() -> History:
    """One of everything, for events that cannot be.

    Request 1 holds its one computed block and may generate nothing; requests 2 and 3 hold nothing; transfer 6 reads
    a block that is free; reservation 1 and snapshot 1 are dead.
    """
    history = History(config(8, snapshots_max=1))
    history.compute(named(4, [40]))
    history.fence(4, [0], 6)
    history.tell(LeaseFinished(4))
    history.tell(DecodeReservationRequested(7))
    history.tell(DecodeReservationReleased(1))
    history.compute(new_sequence(1, range(4), 0, 4))
    history.tell(LeaseOpened(tokens(2, [9, 9, 9, 9, 9])))
    history.tell(LeaseOpened(named(3, [30, 31])))
    return history


@pytest.mark.parametrize(
    ("event", "error"),
    [
        (LeaseOpened(named(1, [7])), LeaseAlreadyOpenError),
        (LeaseOpened(new_sequence(9, [1, 2], 0, 2)), SequenceBlockSizeError),
        (AllocationRequested(9, 4), UnknownLeaseError),
        (AllocationRequested(2, -1), NegativeCountError),
        (AllocationRequested(2, 4, -1), NegativeCountError),
        (AllocationRequested(2, 9), AllocationBeyondTableError),
        (AllocationRequested(2, 4, 2), PrefixExceedsGrowthError),
        (AllocationRequested(2, 5, 2), UnresolvedPrefixError),
        (AllocationRequested(2, 5, 1), PrefixNotResidentError),
        (WritesAuthorized(1, ()), EmptyDependenciesError),
        (WritesAuthorized(1, (5,)), NothingToAuthorizeError),
        (TokensComputed(1, 4, 0), ComputedBackwardsError),
        (TokensComputed(1, -1, 0), NegativeCountError),
        (TokensComputed(2, 4, 8), MissingTokensError),
        (TokenGenerated(1), OutputExhaustedError),
        (TokenGenerated(2, 2**32), TokenRangeError),
        (TokenGenerated(2, -1), TokenRangeError),
        (GrowthScheduled((2, 9)), UnknownLeaseError),
        (StepComputed((2,), ()), StepTokensError),
        (StepComputed((2, 9)), UnknownLeaseError),
        (LeasePreempted(9), UnknownLeaseError),
        (LeaseFinished(9), UnknownLeaseError),
        (DecodeReservationRequested(-1), NegativeCountError),
        (DecodeReservationReleased(9), UnknownReservationError),
        (DecodeReservationReleased(1), UnknownReservationError),
        (DestinationRequested(1), LeaseResidentError),
        (DestinationRequested(9), UnknownLeaseError),
        (ExternalPrefixRequested(1, 0, (1,)), LeaseResidentError),
        (ExternalPrefixRequested(2, -1, (1,)), NegativeCountError),
        (ExternalPrefixRequested(2, 0, ()), EmptySuffixError),
        (ExternalPrefixRequested(2, 1, (1, 2)), SuffixBeyondTableError),
        (ExternalPrefixRequested(2, 0, (1,)), SuffixMismatchError),
        (ExternalPrefixRequested(3, 1, (31,)), PrefixNotResidentError),
        (DestinationActivated(2, 9), UnknownReservationError),
        (DestinationCancelled(9), UnknownReservationError),
        (StoreSourcesSnapshotted(1, ()), EmptySnapshotError),
        (SnapshotDiscarded(9), UnknownSnapshotError),
        (DependencyAttached(1, 9, 1), UnknownSnapshotError),
    ],
    ids=lambda value: value.__name__ if isinstance(value, type) else type(value).__name__,
)
def test_i14_event_that_cannot_be_is_refused_and_changes_nothing(event: Event, error: type[TenureError]) -> None:
    """An engine's mistake costs that engine a typed error and nobody anything else."""
    refused(stage(), event, error)


def with_kinds() -> History:
    history = stage()
    history.tell(DecodeReservationRequested(1))
    history.tell(DestinationRequested(2))
    return history


def with_snapshot() -> History:
    history = stage()
    history.tell(StoreSourcesSnapshotted(1, (0,)))
    return history


def with_two_snapshots() -> History:
    history = History(config(4))
    history.compute(named(1, [7]))
    history.tell(LeaseOpened(named(2, [7])))
    history.tell(AllocationRequested(2, 4, 1))
    history.tell(StoreSourcesSnapshotted(1, (0,)))
    history.tell(StoreSourcesSnapshotted(2, (0,)))
    history.tell(DependencyAttached(1, 1, 5))
    return history


def with_later_lease() -> History:
    history = History(config(4))
    history.tell(LeaseOpened(named(2, [7])))
    history.tell(DestinationRequested(2))
    history.tell(LeaseFinished(2))
    history.tell(LeaseOpened(named(2, [7])))
    return history


def with_fenced_destination() -> History:
    history = History(config(1))
    history.compute(named(1, [7]))
    history.fence(1, [0], 5)
    history.tell(LeaseFinished(1))
    history.tell(LeaseOpened(named(2, [8])))
    history.tell(DestinationRequested(2))
    return history


def with_output_suffix() -> History:
    history = History(config(4))
    history.tell(LeaseOpened(tokens(1, [], planned=[0] * 8)))
    history.tell(TokenGenerated(1))
    for _ in range(3):
        history.tell(TokenGenerated(1))
    history.tell(AllocationRequested(1, 4))
    history.tell(TokensComputed(1, 0, 4))
    history.tell(LeasePreempted(1))
    history.tell(ExternalPrefixRequested(1, 0, (history.lease(1).hashes[0] or 0,)))
    return history


def with_unresolved() -> History:
    history = History(config(4))
    history.tell(LeaseOpened(tokens(1, range(3))))
    for _ in range(5):
        history.tell(TokenGenerated(1))
    history.tell(AllocationRequested(1, 4))
    return history


def without_caching() -> History:
    history = History(config(4, prefix_caching=False))
    history.tell(LeaseOpened(named(1, [7])))
    return history


def without_tokens() -> History:
    history = History(config(4))
    history.tell(LeaseOpened(tokens(1, [])))
    return history


@pytest.mark.parametrize(
    ("prepare", "event", "error"),
    [
        (fenced_pair, AllocationRequested(9, 12), FencedGrowthError),
        (fenced_pair, WritesAuthorized(9, (1, 2)), DependencyMismatchError),
        (fenced_pair, TokensComputed(9, 0, 4), UnauthorizedWriteError),
        (without_caching, AllocationRequested(1, 4, 1), CachingOffError),
        (without_tokens, StepComputed((1,)), NothingComputedError),
        (with_kinds, ReservedAllocationRequested(2, 5, 2), ReservationTooSmallError),
        (with_kinds, ReservedAllocationRequested(2, 4, 3), ReservationKindError),
        (with_kinds, ReservedAllocationRequested(2, 0, 9), UnknownReservationError),
        (with_kinds, DestinationActivated(2, 2), ReservationKindError),
        (with_kinds, DestinationCancelled(2), ReservationKindError),
        (with_kinds, DecodeReservationReleased(3), ReservationKindError),
        (with_kinds, DestinationActivated(3, 3), ReservationOwnerError),
        (with_later_lease, DestinationActivated(2, 1), ReservationOwnerError),
        (with_fenced_destination, DestinationActivated(2, 1), PendingDependenciesError),
        (with_output_suffix, DestinationActivated(1, 1), ReservationExceedsPromptError),
        (with_snapshot, DependencyAttached(2, 2, 1), SnapshotOwnerError),
        (with_snapshot, DependencyAttached(1, 2, 6), DependencyPendingError),
        (with_snapshot, StoreSourcesSnapshotted(1, (0,)), SnapshotsExhaustedError),
        (with_two_snapshots, DependencyAttached(2, 2, 6), SourcesChangedError),
        (with_unresolved, TokensComputed(1, 4, 8), UnresolvedParentError),
        (with_unresolved, TokensComputed(1, 0, 8), BlockNotHeldError),
        (with_unresolved, TokensComputed(1, 8, 8), UnresolvedTailError),
    ],
    ids=lambda value: value.__name__ if isinstance(value, type) else getattr(value, "__name__", type(value).__name__),
)
def test_i14_event_in_a_state_that_forbids_it_is_refused_and_changes_nothing(
    prepare: Callable[[], History], event: Event, error: type[TenureError]
) -> None:
    """The same for what would be legal at another moment."""
    refused(prepare(), event, error)


def test_i14_batch_refused_half_way_takes_back_its_first_half() -> None:
    """A batch is one event."""
    history = stage()

    refused(history, GrowthScheduled((2, 3, 9)), UnknownLeaseError)
    refused(history, StepComputed((2, 1)), OutputExhaustedError)
