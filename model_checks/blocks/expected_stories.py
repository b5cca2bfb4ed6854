"""What every story of the block machine must have shown."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from tenure.model_checks.marks import marks
from tenure.model_checks.model import Marks

STORY_MARKS: Final[Mapping[str, Marks]] = MappingProxyType(
    {
        "one-block-held-twice": marks(
            rules="1 3-7 10-13 15 18-19 24-27 29-35 L01 L02",
            events="LeaseOpened AllocationRequested TokensComputed LeaseFinished",
            commands="PublishRemoved PublishStored",
            goals="exhausted full_hit inactive_revived removed_several shared_by_two stored_again",
        ),
        "hits-before-the-capacity-check": marks(
            rules="1 3-7 10-13 15 18-19 24-27 29-35 L01 L02",
            events="LeaseOpened AllocationRequested TokensComputed LeaseFinished",
            commands="PublishRemoved PublishStored",
            goals="exhausted exhausted_by_its_own_hits full_hit hit_from_the_middle inactive_revived shared_by_two",
        ),
        "a-request-never-evicts-its-own-hits": marks(
            rules="1 3-7 10-13 15 18-19 24-27 29-35 L01 L02",
            events="LeaseOpened AllocationRequested TokensComputed LeaseFinished",
            commands="PublishRemoved PublishStored",
            goals="exhausted exhausted_by_its_own_hits inactive_revived",
        ),
        "removed-with-the-last-copy": marks(
            rules="1 3-8 10-13 15 18-19 24-27 29-35 L01 L02",
            events="LeaseOpened AllocationRequested TokensComputed LeaseFinished",
            commands="PublishRemoved PublishStored",
            goals="duplicate_cached duplicate_evicted duplicate_promoted evicted_silently exhausted stored_again",
        ),
        "parent-before-child": marks(
            rules="1-3 6-7 10-13 15 18-19 24-27 29-35 L01 L02",
            events=(
                "LeaseOpened AllocationRequested TokensComputed TokenGenerated LeaseFinished "
                "DecodeReservationRequested DecodeReservationReleased"
            ),
            commands="PublishRemoved PublishStored",
            goals="cancelled_after_eviction exhausted reservation_given_back tail_resolved token_opens_a_block",
        ),
        "leaf-before-parent": marks(
            rules="1-7 9-13 15 18-19 24-27 29-35 L01 L02",
            events=(
                "LeaseOpened AllocationRequested TokensComputed LeaseFinished DestinationRequested DestinationCancelled"
            ),
            commands="PublishRemoved PublishStored",
            goals=(
                "cancelled_after_eviction destination_cancelled_with_pins exhausted exhausted_by_its_own_hits "
                "leaf_before_parent reservation_given_back"
            ),
        ),
        "a-store-reads-what-is-reused": marks(
            rules="1 3-7 10-13 15-27 29-35 L01 L02",
            events=(
                "LeaseOpened AllocationRequested WritesAuthorized TokensComputed LeasePreempted LeaseFinished "
                "StoreSourcesSnapshotted DependencyAttached DependencySatisfied"
            ),
            commands="PublishRemoved PublishStored",
            goals=(
                "authorization_outlived authorized authorized_write exhausted fenced_through_eviction preempted "
                "pruned_to_nothing"
            ),
        ),
        "completed-in-the-last-step": marks(
            rules="1 3-7 10-13 15-27 29-35 L01 L02",
            events=(
                "LeaseOpened AllocationRequested WritesAuthorized TokensComputed TokenGenerated LeaseFinished "
                "StoreSourcesSnapshotted DependencyAttached DependencySatisfied"
            ),
            commands="PublishRemoved PublishStored",
            goals=(
                "authorization_outlived authorized authorized_write exhausted exhausted_by_its_own_hits "
                "fenced_through_eviction full_hit inactive_revived leaf_before_parent pruned_to_nothing shared_by_two "
                "stored_again tail_resolved two_sources"
            ),
        ),
        "aborted-before-it-was-computed": marks(
            rules="1 3-7 10-13 15 18-19 24-27 30-35 L01 L02",
            events="LeaseOpened AllocationRequested TokensComputed LeaseFinished",
            commands="PublishStored",
            goals="exhausted full_hit inactive_revived shared_by_two",
        ),
        "a-load-ends-inside-a-block": marks(
            rules="1-3 6-7 9-13 15 18-19 24-27 30-35 L01 L02",
            events=(
                "LeaseOpened AllocationRequested TokensComputed LeaseFinished DecodeReservationRequested "
                "DecodeReservationReleased ExternalPrefixRequested DestinationActivated"
            ),
            commands="PublishStored",
            goals="destination_partial_tail destination_with_prefix exhausted external_prefix reservation_given_back",
        ),
        "admission-takes-all-or-nothing": marks(
            rules="1-7 10-13 15 18-19 24-27 29-35 L01 L02",
            events=(
                "LeaseOpened AllocationRequested TokensComputed TokenGenerated LeaseFinished DestinationRequested "
                "DestinationActivated"
            ),
            commands="PublishRemoved PublishStored",
            goals="destination_partial_tail exhausted tail_resolved token_opens_a_block",
        ),
        "a-failed-load-is-computed-by-one": marks(
            rules="1-8 10-12 15 18-19 24-27 30-35 L01 L02",
            events=(
                "LeaseOpened AllocationRequested TokensComputed LeaseFinished ExternalPrefixRequested "
                "DestinationCancelled"
            ),
            commands="PublishStored",
            goals="duplicate_cached full_hit inactive_revived reservation_given_back shared_by_two",
        ),
        "groups-and-their-parents": marks(
            rules="1 3-7 10-13 15 18-19 24-35 L01 L02",
            events="LeaseOpened AllocationRequested TokensComputed LeaseFinished",
            commands="PublishRemoved PublishStored RecordTrace",
            goals="exhausted groups_split_by_payload removed_several tokens_told two_groups",
        ),
        "preempted-and-found-again": marks(
            rules="1 3-7 10-13 15 18-19 24-27 29-35 L01 L02",
            events="LeaseOpened AllocationRequested TokensComputed TokenGenerated LeasePreempted LeaseFinished",
            commands="PublishRemoved PublishStored",
            goals="exhausted exhausted_by_its_own_hits inactive_revived preempted token_opens_a_block",
        ),
        "pins-outlive-references": marks(
            rules="1 3-7 9-12 15 18-19 24-27 30-35 L01 L02",
            events=(
                "LeaseOpened AllocationRequested TokensComputed LeaseFinished DestinationRequested "
                "DestinationActivated DestinationCancelled"
            ),
            commands="PublishStored",
            goals="destination_cancelled_with_pins reservation_given_back shared_by_two",
        ),
        "a-hash-pinned-twice": marks(
            rules="1-12 15 18-19 24-27 30-35 L01 L02",
            events=(
                "LeaseOpened AllocationRequested TokensComputed LeaseFinished DestinationRequested "
                "DestinationActivated DestinationCancelled"
            ),
            commands="PublishStored",
            goals=(
                "destination_cancelled_with_pins destination_with_prefix duplicate_cached hit_from_the_middle "
                "pinned_twice reservation_given_back shared_by_two"
            ),
        ),
        "growth-out-of-a-reservation": marks(
            rules="1-7 10-12 15 18-20 22-27 30-35 L01 L02",
            events=(
                "LeaseOpened AllocationRequested ReservedAllocationRequested TokensComputed TokenGenerated "
                "LeaseFinished DecodeReservationRequested DecodeReservationReleased StoreSourcesSnapshotted "
                "DependencyAttached DependencySatisfied"
            ),
            commands="PublishStored",
            goals="decode_drawn reservation_given_back token_opens_a_block",
        ),
        "a-fence-through-eviction-and-reservation": marks(
            rules="1-3 6-7 10-13 15-27 29-35 L01 L02",
            events=(
                "LeaseOpened AllocationRequested WritesAuthorized TokensComputed LeaseFinished "
                "DecodeReservationRequested DecodeReservationReleased StoreSourcesSnapshotted DependencyAttached "
                "DependencySatisfied"
            ),
            commands="PublishRemoved PublishStored",
            goals=(
                "authorization_outlived authorized authorized_write cancelled_after_eviction exhausted "
                "fence_outlives_tenancies fenced_through_eviction pruned_to_nothing removed_several "
                "reservation_given_back two_sources"
            ),
        ),
        "two-readers-end-in-turn": marks(
            rules="1 3 6-7 10 12 15-27 29-35 L01 L02",
            events=(
                "LeaseOpened AllocationRequested WritesAuthorized TokensComputed LeaseFinished "
                "StoreSourcesSnapshotted DependencyAttached DependencySatisfied"
            ),
            commands="PublishRemoved PublishStored",
            goals=(
                "authorization_outlived authorized authorized_write clean_block_waits_too fenced_through_eviction "
                "pruned_in_part pruned_to_nothing removed_several"
            ),
        ),
        "a-transfer-id-used-again": marks(
            rules="1 3-7 10-12 15-27 29-35 L01 L02",
            events=(
                "LeaseOpened AllocationRequested WritesAuthorized TokensComputed LeaseFinished "
                "StoreSourcesSnapshotted DependencyAttached DependencySatisfied"
            ),
            commands="PublishRemoved PublishStored",
            goals=(
                "attached_anew authorization_outlived authorized authorized_write fenced_through_eviction "
                "pruned_to_nothing"
            ),
        ),
        "steps-in-batches": marks(
            rules="1 3-8 10-13 15 18-19 24-35 L01 L02",
            events=(
                "LeaseOpened AllocationRequested TokensComputed GrowthScheduled StepComputed LeasePreempted "
                "LeaseFinished"
            ),
            commands="PublishRemoved PublishStored",
            goals=(
                "duplicate_cached growth_served_in_part leaf_before_parent preempted shared_by_two step_fills_a_block "
                "tail_resolved two_groups"
            ),
        ),
    }
)
"""By the name of the story."""
