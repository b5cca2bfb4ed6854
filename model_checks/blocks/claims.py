"""What the scopes of the block machine must have shown together, or nothing is proved."""

from typing import Final

from tenure.model_checks.marks import marks
from tenure.model_checks.model import Marks

CLAIMS: Final[Marks] = marks(
    rules="1-36 L02 L01",
    events=(
        "LeaseOpened AllocationRequested ReservedAllocationRequested WritesAuthorized TokensComputed "
        "TokenGenerated GrowthScheduled StepComputed LeasePreempted LeaseFinished DecodeReservationRequested "
        "DecodeReservationReleased DestinationRequested ExternalPrefixRequested DestinationActivated "
        "DestinationCancelled StoreSourcesSnapshotted SnapshotDiscarded DependencyAttached DependencySatisfied"
    ),
    commands="PublishStored RecordTrace PublishRemoved",
    errors=(
        "SnapshotsExhausted MissingTokens DependencyRange StepTokens SourcesChanged ReservationExceedsPrompt "
        "TokenRange EmptyDependencies OutputExhausted PrefixNotResident ReservationKind NothingComputed "
        "NegativeCount EmptySnapshot DependencyMismatch UnresolvedPrefix CachingOff LeaseAlreadyOpen BlockNotHeld "
        "EmptySuffix UnresolvedTail PrefixExceedsGrowth UnknownLease ReservationTooSmall LeaseResident "
        "UnauthorizedWrite SuffixBeyondTable UnknownReservation ReservationOwner DependencyPending "
        "ComputedBackwards PendingDependencies SequenceBlockSize UnknownSnapshot FencedGrowth SnapshotOwner "
        "NothingToAuthorize SuffixMismatch AllocationBeyondTable UnresolvedParent"
    ),
    goals=(
        "exhausted_by_its_own_hits groups_split_by_payload authorized recomputed_in_chunks "
        "destination_with_prefix two_sources two_groups traced_without_listener duplicate_promoted "
        "destination_behind_a_fence exhausted evicted_silently fenced_through_eviction cancelled_after_eviction "
        "decode_ran_empty full_hit tail_resolved pinned_twice authorized_write preempted clean_block_waits_too "
        "attached_anew duplicate_evicted pruned_in_part duplicate_cached hit_from_the_middle "
        "fenced_through_reservation removed_several shared_by_two stale_snapshot leaf_before_parent "
        "destination_cancelled_with_pins inactive_revived token_opens_a_block released_while_waiting "
        "pruned_to_nothing decode_drawn destination_partial_tail private_source growth_served_in_part "
        "reservation_given_back stored_again step_fills_a_block tokens_told authorization_outlived no_sources "
        "external_prefix fence_outlives_tenancies"
    ),
)
"""All of the set `ci`: every rule, event, command and goal, and every error that a call can get."""
