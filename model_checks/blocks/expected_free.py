"""What every search of a free engine must have shown."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from tenure.model_checks.marks import marks
from tenure.model_checks.model import Marks

FREE_MARKS: Final[Mapping[str, Marks]] = MappingProxyType(
    {
        "two-requests": marks(
            rules="1 3 6-7 10 12-13 15 18-19 24-27 29-35 L01 L02",
            events="LeaseOpened AllocationRequested TokensComputed TokenGenerated LeasePreempted LeaseFinished",
            commands="PublishRemoved PublishStored",
            goals="exhausted full_hit inactive_revived leaf_before_parent preempted removed_several tail_resolved",
        ),
        "one-hash": marks(
            rules="1 3-8 10-12 15 18-19 24-27 29-35 L01 L02",
            events="LeaseOpened AllocationRequested TokensComputed LeaseFinished",
            commands="PublishRemoved PublishStored",
            goals=(
                "duplicate_cached duplicate_evicted duplicate_promoted evicted_silently full_hit inactive_revived "
                "shared_by_two"
            ),
        ),
        "three-copies": marks(
            rules="1-8 10-13 15 18-19 24-27 29-35 L01 L02",
            events=(
                "LeaseOpened AllocationRequested ReservedAllocationRequested TokensComputed LeaseFinished "
                "DecodeReservationRequested DecodeReservationReleased"
            ),
            commands="PublishRemoved PublishStored",
            goals=(
                "decode_drawn decode_ran_empty duplicate_cached duplicate_evicted duplicate_promoted evicted_silently "
                "exhausted full_hit inactive_revived reservation_given_back shared_by_two"
            ),
        ),
        "one-chunk": marks(
            rules="1 3 6-7 10 12 15 18-19 24-27 30-35 L01 L02",
            events="LeaseOpened AllocationRequested TokensComputed LeaseFinished",
            commands="PublishStored",
        ),
        "one-fence": marks(
            rules="1 6-7 10 12-13 15-27 29-35 L01 L02",
            events=(
                "LeaseOpened AllocationRequested WritesAuthorized TokensComputed LeaseFinished "
                "StoreSourcesSnapshotted SnapshotDiscarded DependencyAttached DependencySatisfied"
            ),
            commands="PublishRemoved PublishStored",
            goals=(
                "authorization_outlived authorized authorized_write exhausted fenced_through_eviction no_sources "
                "pruned_to_nothing released_while_waiting"
            ),
        ),
        "one-destination": marks(
            rules="1-13 15 18-19 24-27 29-35 L01 L02",
            events=(
                "LeaseOpened AllocationRequested TokensComputed TokenGenerated LeaseFinished DestinationRequested "
                "ExternalPrefixRequested DestinationActivated DestinationCancelled"
            ),
            commands="PublishRemoved PublishStored",
            goals=(
                "destination_cancelled_with_pins destination_partial_tail destination_with_prefix duplicate_cached "
                "duplicate_evicted duplicate_promoted evicted_silently exhausted full_hit inactive_revived "
                "reservation_given_back shared_by_two tail_resolved"
            ),
        ),
        "output-transferred-again": marks(
            rules="1-12 15 18-19 24-27 29-35 L01 L02",
            events=(
                "LeaseOpened AllocationRequested TokensComputed TokenGenerated GrowthScheduled StepComputed "
                "LeasePreempted LeaseFinished DestinationRequested ExternalPrefixRequested DestinationActivated "
                "DestinationCancelled"
            ),
            commands="PublishRemoved PublishStored",
            goals=(
                "destination_cancelled_with_pins destination_partial_tail destination_with_prefix duplicate_cached "
                "duplicate_evicted duplicate_promoted evicted_silently full_hit leaf_before_parent preempted "
                "reservation_given_back tail_resolved"
            ),
        ),
        "one-batch": marks(
            rules="1 3-7 10-13 15 18-19 24-27 29-35 L01 L02",
            events=(
                "LeaseOpened AllocationRequested TokensComputed TokenGenerated GrowthScheduled StepComputed "
                "LeaseFinished"
            ),
            commands="PublishRemoved PublishStored",
            goals=(
                "exhausted growth_served_in_part inactive_revived shared_by_two step_fills_a_block tail_resolved "
                "token_opens_a_block"
            ),
        ),
        "one-reservation": marks(
            rules="1-8 10-13 15 18-19 24-27 29-35 L01 L02",
            events=(
                "LeaseOpened AllocationRequested ReservedAllocationRequested TokensComputed TokenGenerated "
                "LeaseFinished DecodeReservationRequested DecodeReservationReleased"
            ),
            commands="PublishRemoved PublishStored",
            goals=(
                "decode_drawn decode_ran_empty duplicate_cached duplicate_promoted evicted_silently exhausted "
                "full_hit inactive_revived reservation_given_back token_opens_a_block"
            ),
        ),
        "prefixes": marks(
            rules="1 3-8 10-13 15 18-19 24-27 29-35 L01 L02",
            events="LeaseOpened AllocationRequested TokensComputed TokenGenerated LeasePreempted LeaseFinished",
            commands="PublishRemoved PublishStored",
            goals=(
                "duplicate_cached duplicate_evicted duplicate_promoted evicted_silently exhausted "
                "exhausted_by_its_own_hits full_hit hit_from_the_middle inactive_revived leaf_before_parent preempted "
                "removed_several shared_by_two tail_resolved"
            ),
        ),
        "chunks": marks(
            rules="1 3-8 10-13 15 18-19 24-27 29-35 L01 L02",
            events="LeaseOpened AllocationRequested TokensComputed TokenGenerated LeasePreempted LeaseFinished",
            commands="PublishRemoved PublishStored",
            goals=(
                "duplicate_cached duplicate_evicted duplicate_promoted evicted_silently exhausted "
                "exhausted_by_its_own_hits full_hit hit_from_the_middle inactive_revived leaf_before_parent preempted "
                "recomputed_in_chunks removed_several shared_by_two tail_resolved token_opens_a_block"
            ),
        ),
        "duplicates": marks(
            rules="1 3-8 10-12 15 18-19 24-27 29-35 L01 L02",
            events="LeaseOpened AllocationRequested TokensComputed LeasePreempted LeaseFinished",
            commands="PublishRemoved PublishStored",
            goals=(
                "duplicate_cached duplicate_evicted duplicate_promoted evicted_silently full_hit hit_from_the_middle "
                "inactive_revived leaf_before_parent preempted removed_several shared_by_two"
            ),
        ),
        "batches": marks(
            rules="1 3-8 10-13 15 18-19 24-27 29-35 L01 L02",
            events=(
                "LeaseOpened AllocationRequested TokensComputed TokenGenerated GrowthScheduled StepComputed "
                "LeasePreempted LeaseFinished"
            ),
            commands="PublishRemoved PublishStored",
            goals=(
                "duplicate_cached duplicate_evicted duplicate_promoted evicted_silently exhausted "
                "exhausted_by_its_own_hits full_hit growth_served_in_part hit_from_the_middle inactive_revived "
                "leaf_before_parent preempted removed_several shared_by_two step_fills_a_block tail_resolved "
                "token_opens_a_block"
            ),
        ),
        "decode-reservations": marks(
            rules="1-8 10-13 15 18-19 24-27 29-35 L01 L02",
            events=(
                "LeaseOpened AllocationRequested ReservedAllocationRequested TokensComputed TokenGenerated "
                "LeaseFinished DecodeReservationRequested DecodeReservationReleased"
            ),
            commands="PublishRemoved PublishStored",
            goals=(
                "decode_drawn decode_ran_empty duplicate_cached duplicate_promoted evicted_silently exhausted "
                "full_hit hit_from_the_middle inactive_revived removed_several reservation_given_back tail_resolved "
                "token_opens_a_block"
            ),
        ),
        "destinations": marks(
            rules="1-12 15 18-19 24-27 29-35 L01 L02",
            events=(
                "LeaseOpened AllocationRequested TokensComputed LeaseFinished DestinationRequested "
                "ExternalPrefixRequested DestinationActivated DestinationCancelled"
            ),
            commands="PublishRemoved PublishStored",
            goals=(
                "destination_cancelled_with_pins destination_partial_tail destination_with_prefix duplicate_cached "
                "duplicate_evicted duplicate_promoted evicted_silently external_prefix full_hit hit_from_the_middle "
                "inactive_revived leaf_before_parent reservation_given_back shared_by_two"
            ),
        ),
        "fences": marks(
            rules="1 3-7 10-12 15 18-20 22-27 30-35 L01 L02",
            events=(
                "LeaseOpened AllocationRequested TokensComputed LeaseFinished StoreSourcesSnapshotted "
                "SnapshotDiscarded DependencyAttached DependencySatisfied"
            ),
            commands="PublishStored",
            goals="full_hit inactive_revived no_sources two_sources",
        ),
        "fenced-reservations": marks(
            rules="1-13 15-27 29-35 L01 L02",
            events=(
                "LeaseOpened AllocationRequested ReservedAllocationRequested WritesAuthorized TokensComputed "
                "LeaseFinished DecodeReservationRequested DecodeReservationReleased DestinationRequested "
                "DestinationActivated DestinationCancelled StoreSourcesSnapshotted SnapshotDiscarded "
                "DependencyAttached DependencySatisfied"
            ),
            commands="PublishRemoved PublishStored",
            goals=(
                "authorization_outlived authorized authorized_write clean_block_waits_too decode_drawn "
                "decode_ran_empty destination_behind_a_fence destination_cancelled_with_pins destination_partial_tail "
                "destination_with_prefix duplicate_cached duplicate_evicted duplicate_promoted evicted_silently "
                "exhausted exhausted_by_its_own_hits fenced_through_eviction fenced_through_reservation full_hit "
                "hit_from_the_middle inactive_revived no_sources pruned_to_nothing released_while_waiting "
                "reservation_given_back stale_snapshot"
            ),
        ),
        "caching-off": marks(
            rules="1 10 12-13 16-21 23 32-34 36 L01 L02",
            events=(
                "LeaseOpened AllocationRequested WritesAuthorized TokensComputed TokenGenerated LeaseFinished "
                "StoreSourcesSnapshotted SnapshotDiscarded DependencyAttached DependencySatisfied"
            ),
            goals=(
                "authorization_outlived authorized clean_block_waits_too exhausted no_sources private_source "
                "pruned_to_nothing released_while_waiting stale_snapshot tail_resolved token_opens_a_block "
                "two_sources"
            ),
        ),
        "without-a-listener": marks(
            rules="1 4-7 10-13 15-23 30-35 L01 L02",
            events=(
                "LeaseOpened AllocationRequested WritesAuthorized TokensComputed TokenGenerated GrowthScheduled "
                "LeaseFinished StoreSourcesSnapshotted SnapshotDiscarded DependencyAttached DependencySatisfied"
            ),
            commands="RecordTrace",
            goals=(
                "authorization_outlived authorized authorized_write clean_block_waits_too exhausted full_hit "
                "growth_served_in_part inactive_revived no_sources private_source pruned_to_nothing "
                "released_while_waiting stale_snapshot tail_resolved token_opens_a_block traced_without_listener "
                "two_sources"
            ),
        ),
    }
)
"""By the name of the scope."""
