"""What must be reachable: the mechanisms of the block machine, each as something that an exploration has to see.

A rule that is never put to the test holds for nothing. `GOALS` are seen in a single observation; `RUN_GOALS` need
the memory of a run and make a fresh watcher for each.
"""

from typing import Final

from tenure.core.blocks.values import (
    DestinationCancelled,
    DestinationRequested,
    Exhausted,
    GrowthReady,
    LeaseFinished,
    LeasePreempted,
    NoSources,
    RecordTrace,
    Reserved,
    ReservedAllocationRequested,
    Sources,
    StepComputed,
    StoreSourcesSnapshotted,
    TokenAppended,
    WasPending,
)
from tenure.core.blocks.view import CachedCopy
from tenure.spec.blocks import goal_watchers as watch
from tenure.spec.blocks.rule import Observation
from tenure.spec.goals import Goal, Goals, RunGoal


class GoalBook(Goals[Observation]):
    """Which goals of the block machine were reached so far."""

    def __init__(self) -> None:
        """None yet."""
        super().__init__(GOALS, RUN_GOALS)


GOALS: Final[tuple[Goal[Observation], ...]] = (
    Goal("duplicate_cached", "A computed block becomes a second copy of a visible hash.", watch.added_duplicates),
    Goal("duplicate_promoted", "The primary of a hash is evicted and a duplicate takes its place.", watch.promoted),
    Goal("duplicate_evicted", "A duplicate is evicted and its primary stays.", watch.evicted_duplicate),
    Goal("evicted_silently", "Blocks are evicted and no hash vanishes.", watch.evicted_silently),
    Goal("removed_several", "One Removed event tells several hashes.", watch.removed_several),
    Goal("exhausted", "A call finds no capacity.", lambda seen: isinstance(seen.answer, Exhausted)),
    Goal(
        "exhausted_by_its_own_hits",
        "A call would find capacity if it did not share the blocks it would have to evict.",
        watch.exhausted_by_its_own_hits,
    ),
    Goal("leaf_before_parent", "A block is evicted and the one in front of it stays.", watch.leaf_before_parent),
    Goal("tail_resolved", "A block filled by generation gets its hash.", watch.resolved_tail),
    Goal("two_groups", "One operation sends two Stored events.", lambda seen: len(watch.stored(seen)) > 1),
    Goal(
        "groups_split_by_payload",
        "Neighbours are told apart because only one has a local hash.",
        watch.split_by_payload,
    ),
    Goal(
        "tokens_told",
        "A Stored event carries tokens.",
        lambda seen: any(event.token_ids is not None for event in watch.stored(seen)),
    ),
    Goal("full_hit", "An allocation shares every block of its request.", watch.full_hit),
    Goal("inactive_revived", "An inactive block is referenced again.", watch.revived),
    Goal("hit_from_the_middle", "A hit takes a block out of the middle of the LRU order.", watch.hit_from_the_middle),
    Goal(
        "shared_by_two",
        "Two lease entries hold one copy.",
        lambda seen: any(isinstance(copy, CachedCopy) and copy.references > 1 for copy in seen.after.copies.values()),
    ),
    Goal("pinned_twice", "A reservation pins one copy at two positions.", watch.pinned_twice),
    Goal(
        "destination_with_prefix",
        "A destination with pinned and fresh blocks is activated.",
        watch.activated_with_prefix,
    ),
    Goal("destination_partial_tail", "A destination with a partial tail is activated.", watch.activated_partial_tail),
    Goal(
        "destination_cancelled_with_pins",
        "A destination gives pins back.",
        lambda seen: (
            isinstance(seen.event, DestinationCancelled)
            and bool(seen.before.reservations[seen.event.reservation].prefix)
        ),
    ),
    Goal(
        "destination_behind_a_fence",
        "A destination gets capacity that a transfer still reads.",
        lambda seen: (
            isinstance(seen.event, DestinationRequested)
            and isinstance(seen.answer, Reserved)
            and bool(seen.answer.dependencies)
        ),
    ),
    Goal("external_prefix", "An external suffix is reserved behind a resident prefix.", watch.external_prefix),
    Goal(
        "decode_drawn",
        "A lease grows from a decode reservation.",
        lambda seen: isinstance(seen.event, ReservedAllocationRequested) and seen.before.free == seen.after.free,
    ),
    Goal("decode_ran_empty", "A decode reservation is used up and stays alive.", watch.decode_ran_empty),
    Goal(
        "fenced_through_eviction", "An evicted block's fence is told to its next holder.", watch.fenced_through_eviction
    ),
    Goal(
        "fenced_through_reservation", "A fence travels through a decode reservation.", watch.fenced_through_reservation
    ),
    Goal("clean_block_waits_too", "A block nobody reads waits with one that is read.", watch.clean_block_waits_too),
    Goal(
        "authorized",
        "A pending write is authorized.",
        lambda seen: bool(seen.after.authorized - seen.before.authorized),
    ),
    Goal("authorized_write", "An authorized block becomes visible while it is still read.", watch.authorized_write),
    Goal(
        "authorization_outlived",
        "A transfer ends after the write behind it was authorized.",
        lambda seen: seen.answer == WasPending(pending=True) and seen.before.authorized > seen.after.authorized,
    ),
    Goal(
        "pruned_in_part",
        "Some of the awaited transfers end and are pruned.",
        lambda s: watch.pruned(s, to_nothing=False),
    ),
    Goal(
        "pruned_to_nothing",
        "All awaited transfers end and are pruned.",
        lambda s: watch.pruned(s, to_nothing=True),
    ),
    Goal(
        "released_while_waiting",
        "A lease whose writes wait gives its blocks up.",
        lambda seen: (
            isinstance(seen.event, LeasePreempted | LeaseFinished)
            and seen.before.leases[seen.event.request].pending_writes is not None
        ),
    ),
    Goal(
        "two_sources", "A store reads two blocks.", lambda s: isinstance(s.answer, Sources) and len(s.answer.hashes) > 1
    ),
    Goal("private_source", "With caching off, a store reads a private block.", watch.private_source),
    Goal(
        "no_sources",
        "A store may not read what it wants.",
        lambda seen: isinstance(seen.event, StoreSourcesSnapshotted) and isinstance(seen.answer, NoSources),
    ),
    Goal("stale_snapshot", "A snapshot dies because its lease changes.", watch.stale_snapshot),
    Goal(
        "preempted",
        "A request gives blocks up and keeps its lease.",
        lambda seen: isinstance(seen.event, LeasePreempted) and bool(seen.before.leases[seen.event.request].copies),
    ),
    Goal(
        "recomputed_in_chunks", "A preempted request with output computes its prompt again.", watch.recomputed_in_chunks
    ),
    Goal(
        "growth_served_in_part",
        "A batch of growths stops at the first request that finds no capacity.",
        lambda seen: isinstance(seen.answer, GrowthReady) and seen.answer.served > 0 and bool(watch.left_out(seen)),
    ),
    Goal(
        "step_fills_a_block",
        "A decode step makes a block visible.",
        lambda seen: isinstance(seen.event, StepComputed) and len(seen.after.index) > len(seen.before.index),
    ),
    Goal(
        "token_opens_a_block",
        "A generated token begins a block.",
        lambda seen: isinstance(seen.answer, TokenAppended) and seen.answer.opened_block,
    ),
    Goal(
        "traced_without_listener",
        "Occupancy is recorded although nobody listens to KV events.",
        lambda seen: not seen.after.config.kv_events and any(isinstance(each, RecordTrace) for each in seen.commands),
    ),
)


RUN_GOALS: Final[tuple[RunGoal[Observation], ...]] = (
    RunGoal("cancelled_after_eviction", "A reservation evicts and is given back.", watch.CancelledAfterEviction),
    RunGoal("attached_anew", "A satisfied dependency's id is attached again.", watch.AttachedAnew),
    RunGoal("stored_again", "A hash is evicted and becomes visible again.", watch.StoredAgain),
    RunGoal(
        "fence_outlives_tenancies", "A block changes hands twice under one transfer.", watch.TagOutlivesTwoTenancies
    ),
)
