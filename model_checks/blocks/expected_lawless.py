"""What every search of a lawless engine must have shown."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from tenure.model_checks.marks import marks
from tenure.model_checks.model import Marks

LAWLESS_MARKS: Final[Mapping[str, Marks]] = MappingProxyType(
    {
        "lawless-one-block": marks(
            rules="1-2 6-7 9-10 12-15 18-19 24-27 29-35 L01 L02",
            events=(
                "LeaseOpened AllocationRequested ReservedAllocationRequested TokensComputed TokenGenerated "
                "GrowthScheduled StepComputed LeasePreempted LeaseFinished DecodeReservationRequested "
                "DecodeReservationReleased DestinationRequested ExternalPrefixRequested DestinationActivated "
                "DestinationCancelled"
            ),
            commands="PublishRemoved PublishStored",
            errors=(
                "AllocationBeyondTable ComputedBackwards EmptySuffix LeaseAlreadyOpen LeaseResident NegativeCount "
                "OutputExhausted PrefixExceedsGrowth PrefixNotResident ReservationKind ReservationOwner "
                "ReservationTooSmall SuffixBeyondTable SuffixMismatch TokenRange UnknownLease UnknownReservation "
                "UnresolvedPrefix"
            ),
            goals=(
                "decode_drawn decode_ran_empty destination_cancelled_with_pins destination_partial_tail exhausted "
                "exhausted_by_its_own_hits full_hit inactive_revived preempted recomputed_in_chunks "
                "reservation_given_back step_fills_a_block token_opens_a_block"
            ),
        ),
        "lawless-one-fence": marks(
            rules="1 6-7 10 12 14-27 29-35 L01 L02",
            events=(
                "LeaseOpened AllocationRequested WritesAuthorized TokensComputed LeasePreempted LeaseFinished "
                "StoreSourcesSnapshotted SnapshotDiscarded DependencyAttached DependencySatisfied"
            ),
            commands="PublishRemoved PublishStored",
            errors=(
                "AllocationBeyondTable ComputedBackwards DependencyMismatch DependencyPending DependencyRange "
                "EmptyDependencies EmptySnapshot LeaseAlreadyOpen NegativeCount NothingToAuthorize OutputExhausted "
                "PrefixExceedsGrowth PrefixNotResident SnapshotOwner SnapshotsExhausted SourcesChanged "
                "UnauthorizedWrite UnknownLease UnknownReservation UnknownSnapshot"
            ),
            goals=(
                "authorization_outlived authorized authorized_write fenced_through_eviction full_hit inactive_revived "
                "no_sources preempted pruned_to_nothing released_while_waiting stale_snapshot"
            ),
        ),
        "lawless-mixed-caching": marks(
            rules="1 3-8 10-12 14-15 18-19 24-27 29-35 L01 L02",
            events="LeaseOpened AllocationRequested TokensComputed LeasePreempted LeaseFinished",
            commands="PublishRemoved PublishStored",
            errors=(
                "AllocationBeyondTable CachingOff ComputedBackwards LeaseAlreadyOpen NegativeCount OutputExhausted "
                "PrefixExceedsGrowth PrefixNotResident UnknownLease UnknownReservation"
            ),
            goals=(
                "duplicate_cached duplicate_evicted duplicate_promoted evicted_silently full_hit inactive_revived "
                "preempted"
            ),
        ),
        "lawless-leases": marks(
            rules="1 3-8 10-15 18-19 24-27 29-35 L01 L02",
            events=(
                "LeaseOpened AllocationRequested TokensComputed TokenGenerated GrowthScheduled StepComputed "
                "LeasePreempted LeaseFinished"
            ),
            commands="PublishRemoved PublishStored",
            errors=(
                "AllocationBeyondTable BlockNotHeld ComputedBackwards LeaseAlreadyOpen NegativeCount OutputExhausted "
                "PrefixExceedsGrowth PrefixNotResident StepTokens TokenRange UnknownLease UnknownReservation "
                "UnresolvedPrefix UnresolvedTail"
            ),
            goals=(
                "duplicate_cached duplicate_evicted duplicate_promoted evicted_silently exhausted "
                "exhausted_by_its_own_hits full_hit growth_served_in_part inactive_revived leaf_before_parent "
                "preempted recomputed_in_chunks removed_several shared_by_two step_fills_a_block tail_resolved "
                "token_opens_a_block"
            ),
        ),
        "lawless-sequences": marks(
            rules="1 6-7 10 12-15 18-19 24-27 29-35 L01 L02",
            events=(
                "LeaseOpened AllocationRequested TokensComputed TokenGenerated GrowthScheduled StepComputed "
                "LeasePreempted LeaseFinished"
            ),
            commands="PublishRemoved PublishStored",
            errors=(
                "AllocationBeyondTable BlockNotHeld ComputedBackwards LeaseAlreadyOpen MissingTokens NegativeCount "
                "NothingComputed OutputExhausted PrefixExceedsGrowth PrefixNotResident SequenceBlockSize StepTokens "
                "TokenRange UnknownLease UnknownReservation UnresolvedParent UnresolvedPrefix UnresolvedTail"
            ),
            goals=(
                "exhausted exhausted_by_its_own_hits full_hit growth_served_in_part inactive_revived preempted "
                "recomputed_in_chunks step_fills_a_block tail_resolved token_opens_a_block"
            ),
        ),
        "lawless-destinations": marks(
            rules="1-15 18-19 24-27 29-35 L01 L02",
            events=(
                "LeaseOpened AllocationRequested TokensComputed TokenGenerated LeasePreempted LeaseFinished "
                "DestinationRequested ExternalPrefixRequested DestinationActivated DestinationCancelled"
            ),
            commands="PublishRemoved PublishStored",
            errors=(
                "AllocationBeyondTable BlockNotHeld ComputedBackwards EmptySuffix LeaseAlreadyOpen LeaseResident "
                "MissingTokens NegativeCount OutputExhausted PrefixExceedsGrowth PrefixNotResident ReservationKind "
                "ReservationOwner SuffixBeyondTable SuffixMismatch TokenRange UnknownLease UnknownReservation "
                "UnresolvedPrefix UnresolvedTail"
            ),
            goals=(
                "destination_cancelled_with_pins destination_partial_tail destination_with_prefix duplicate_cached "
                "duplicate_evicted duplicate_promoted evicted_silently exhausted exhausted_by_its_own_hits "
                "external_prefix full_hit inactive_revived leaf_before_parent preempted recomputed_in_chunks "
                "removed_several reservation_given_back tail_resolved"
            ),
        ),
        "lawless-output-as-prompt": marks(
            rules="1-15 18-19 24-27 29-35 L01 L02",
            events=(
                "LeaseOpened AllocationRequested TokensComputed TokenGenerated LeasePreempted LeaseFinished "
                "DestinationRequested ExternalPrefixRequested DestinationActivated DestinationCancelled"
            ),
            commands="PublishRemoved PublishStored",
            errors=(
                "AllocationBeyondTable BlockNotHeld ComputedBackwards EmptySuffix LeaseAlreadyOpen LeaseResident "
                "NegativeCount OutputExhausted PrefixExceedsGrowth PrefixNotResident ReservationExceedsPrompt "
                "ReservationKind ReservationOwner SuffixBeyondTable SuffixMismatch TokenRange UnknownLease "
                "UnknownReservation UnresolvedPrefix UnresolvedTail"
            ),
            goals=(
                "destination_cancelled_with_pins destination_partial_tail duplicate_cached duplicate_evicted "
                "duplicate_promoted evicted_silently exhausted exhausted_by_its_own_hits external_prefix full_hit "
                "inactive_revived leaf_before_parent preempted recomputed_in_chunks removed_several "
                "reservation_given_back tail_resolved token_opens_a_block"
            ),
        ),
        "lawless-reservations": marks(
            rules="1-15 18-19 24-27 29-35 L01 L02",
            events=(
                "LeaseOpened AllocationRequested ReservedAllocationRequested TokensComputed TokenGenerated "
                "LeasePreempted LeaseFinished DecodeReservationRequested DecodeReservationReleased "
                "DestinationRequested ExternalPrefixRequested DestinationActivated DestinationCancelled"
            ),
            commands="PublishRemoved PublishStored",
            errors=(
                "AllocationBeyondTable ComputedBackwards EmptySuffix LeaseAlreadyOpen LeaseResident NegativeCount "
                "OutputExhausted PrefixExceedsGrowth PrefixNotResident ReservationKind ReservationOwner "
                "ReservationTooSmall SuffixBeyondTable SuffixMismatch TokenRange UnknownLease UnknownReservation "
                "UnresolvedPrefix"
            ),
            goals=(
                "decode_drawn decode_ran_empty destination_cancelled_with_pins destination_partial_tail "
                "duplicate_cached duplicate_evicted duplicate_promoted evicted_silently exhausted "
                "exhausted_by_its_own_hits full_hit inactive_revived preempted recomputed_in_chunks "
                "reservation_given_back token_opens_a_block"
            ),
        ),
        "lawless-changed-prompt": marks(
            rules="1-15 18-19 24-27 29-35 L01 L02",
            events=(
                "LeaseOpened AllocationRequested TokensComputed LeasePreempted LeaseFinished DestinationRequested "
                "ExternalPrefixRequested DestinationActivated DestinationCancelled"
            ),
            commands="PublishRemoved PublishStored",
            errors=(
                "AllocationBeyondTable ComputedBackwards EmptySuffix LeaseAlreadyOpen LeaseResident NegativeCount "
                "OutputExhausted PrefixExceedsGrowth PrefixNotResident ReservationKind ReservationOwner "
                "SuffixBeyondTable SuffixMismatch UnknownLease UnknownReservation UnresolvedPrefix"
            ),
            goals=(
                "destination_cancelled_with_pins destination_partial_tail destination_with_prefix duplicate_cached "
                "duplicate_evicted duplicate_promoted evicted_silently exhausted exhausted_by_its_own_hits "
                "external_prefix full_hit inactive_revived leaf_before_parent preempted removed_several "
                "reservation_given_back"
            ),
        ),
        "lawless-fenced-destination": marks(
            rules="1-2 6-7 9-10 12-27 29-35 L01 L02",
            events=(
                "LeaseOpened AllocationRequested WritesAuthorized TokensComputed LeasePreempted LeaseFinished "
                "DestinationRequested ExternalPrefixRequested DestinationActivated DestinationCancelled "
                "StoreSourcesSnapshotted SnapshotDiscarded DependencyAttached DependencySatisfied"
            ),
            commands="PublishRemoved PublishStored",
            errors=(
                "AllocationBeyondTable ComputedBackwards DependencyMismatch DependencyRange EmptyDependencies "
                "EmptySnapshot EmptySuffix LeaseAlreadyOpen LeaseResident NegativeCount NothingToAuthorize "
                "OutputExhausted PendingDependencies PrefixExceedsGrowth PrefixNotResident ReservationKind "
                "ReservationOwner SnapshotOwner SnapshotsExhausted SuffixBeyondTable SuffixMismatch UnauthorizedWrite "
                "UnknownLease UnknownReservation UnknownSnapshot"
            ),
            goals=(
                "authorization_outlived authorized authorized_write destination_behind_a_fence "
                "destination_cancelled_with_pins exhausted fenced_through_eviction full_hit inactive_revived "
                "no_sources preempted pruned_to_nothing released_while_waiting reservation_given_back stale_snapshot"
            ),
        ),
        "lawless-growth-under-a-fence": marks(
            rules="1 3-8 10-27 29-35 L01 L02",
            events=(
                "LeaseOpened AllocationRequested WritesAuthorized TokensComputed LeasePreempted LeaseFinished "
                "StoreSourcesSnapshotted SnapshotDiscarded DependencyAttached DependencySatisfied"
            ),
            commands="PublishRemoved PublishStored",
            errors=(
                "AllocationBeyondTable ComputedBackwards DependencyMismatch DependencyPending DependencyRange "
                "EmptyDependencies EmptySnapshot FencedGrowth LeaseAlreadyOpen NegativeCount NothingToAuthorize "
                "OutputExhausted PrefixExceedsGrowth PrefixNotResident SnapshotOwner SnapshotsExhausted "
                "UnauthorizedWrite UnknownLease UnknownReservation UnknownSnapshot UnresolvedPrefix"
            ),
            goals=(
                "authorization_outlived authorized authorized_write clean_block_waits_too duplicate_cached "
                "duplicate_evicted duplicate_promoted evicted_silently exhausted exhausted_by_its_own_hits "
                "fenced_through_eviction full_hit inactive_revived no_sources preempted pruned_to_nothing "
                "released_while_waiting removed_several stale_snapshot"
            ),
        ),
        "lawless-fences": marks(
            rules="1 6-7 10 12-27 29-35 L01 L02",
            events=(
                "LeaseOpened AllocationRequested WritesAuthorized TokensComputed LeasePreempted LeaseFinished "
                "StoreSourcesSnapshotted SnapshotDiscarded DependencyAttached DependencySatisfied"
            ),
            commands="PublishRemoved PublishStored",
            errors=(
                "AllocationBeyondTable ComputedBackwards DependencyMismatch DependencyRange EmptyDependencies "
                "EmptySnapshot LeaseAlreadyOpen NegativeCount NothingToAuthorize OutputExhausted PrefixExceedsGrowth "
                "PrefixNotResident SnapshotOwner SnapshotsExhausted UnauthorizedWrite UnknownLease UnknownReservation "
                "UnknownSnapshot"
            ),
            goals=(
                "authorization_outlived authorized authorized_write exhausted fenced_through_eviction full_hit "
                "inactive_revived no_sources preempted pruned_to_nothing released_while_waiting stale_snapshot"
            ),
        ),
        "lawless-caching-off": marks(
            rules="1-2 10 12-14 16-21 23 32-34 36 L01 L02",
            events=(
                "LeaseOpened AllocationRequested WritesAuthorized TokensComputed TokenGenerated LeasePreempted "
                "LeaseFinished DestinationRequested ExternalPrefixRequested DestinationActivated DestinationCancelled "
                "StoreSourcesSnapshotted SnapshotDiscarded DependencyAttached DependencySatisfied"
            ),
            errors=(
                "AllocationBeyondTable CachingOff ComputedBackwards DependencyMismatch DependencyRange "
                "EmptyDependencies EmptySnapshot EmptySuffix FencedGrowth LeaseAlreadyOpen LeaseResident "
                "NegativeCount NothingToAuthorize OutputExhausted PendingDependencies PrefixExceedsGrowth "
                "ReservationKind ReservationOwner SnapshotOwner SnapshotsExhausted SuffixBeyondTable SuffixMismatch "
                "TokenRange UnauthorizedWrite UnknownLease UnknownReservation UnknownSnapshot"
            ),
            goals=(
                "authorization_outlived authorized destination_behind_a_fence destination_partial_tail exhausted "
                "no_sources preempted private_source pruned_to_nothing recomputed_in_chunks released_while_waiting "
                "reservation_given_back stale_snapshot token_opens_a_block"
            ),
        ),
        "lawless-stores-of-fenced-blocks": marks(
            rules="1 10 12-14 16-21 23 32-34 36 L01 L02",
            events=(
                "LeaseOpened AllocationRequested WritesAuthorized TokensComputed LeasePreempted LeaseFinished "
                "StoreSourcesSnapshotted SnapshotDiscarded DependencyAttached DependencySatisfied"
            ),
            errors=(
                "AllocationBeyondTable CachingOff ComputedBackwards DependencyMismatch DependencyPending "
                "DependencyRange EmptyDependencies EmptySnapshot FencedGrowth LeaseAlreadyOpen NegativeCount "
                "NothingToAuthorize OutputExhausted PrefixExceedsGrowth SnapshotOwner SnapshotsExhausted "
                "UnauthorizedWrite UnknownLease UnknownReservation UnknownSnapshot"
            ),
            goals=(
                "authorization_outlived authorized clean_block_waits_too exhausted no_sources preempted "
                "private_source pruned_to_nothing released_while_waiting stale_snapshot two_sources"
            ),
        ),
    }
)
"""By the name of the scope."""
