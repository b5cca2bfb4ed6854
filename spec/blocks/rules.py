"""The rules of the block machine, I01 to I36, L01 and L02, and the functions that check them.

A rule of kind "predicate" is checked on a state alone. A rule of kind "transition" is checked on an observation;
some of these also say something of the state, and are then checked on both. Where a rule of the requirement speaks
of the past (I08, I25), an observation shows it: what held before an event and what the event did.
"""

from types import MappingProxyType
from typing import Final

from tenure.core.blocks.values import Event
from tenure.core.blocks.view import BlockView
from tenure.spec.blocks import rules_events as events
from tenure.spec.blocks import rules_fences as fences
from tenure.spec.blocks import rules_leases as leases
from tenure.spec.blocks import rules_lifecycles as lifecycles
from tenure.spec.blocks import rules_pool as pool
from tenure.spec.blocks.rule import Observation, StateCheck, TransitionCheck
from tenure.spec.blocks.rule_texts import RULES
from tenure.spec.judging import Findings, Judge, raise_first

__all__ = [
    "RULES",
    "RULES_BY_ID",
    "STATE_CHECKS",
    "TRANSITION_CHECKS",
    "broken_refusal",
    "broken_rules",
    "broken_transition_rules",
    "check_observation",
    "check_refusal",
    "check_view",
]

RULES_BY_ID: Final = MappingProxyType({rule.id: rule for rule in RULES})

STATE_CHECKS: Final[tuple[tuple[str, StateCheck], ...]] = (
    ("I01", pool.capacity_is_whole),
    ("I02", pool.reserved_blocks_are_set_aside),
    ("I03", pool.lru_is_one_line),
    ("I04", pool.lru_holds_the_inactive),
    ("I05", pool.only_the_inactive_have_a_place),
    ("I06", pool.copies_are_indexed_once),
    ("I07", pool.index_knows_the_visible),
    ("I09", pool.pins_are_counted),
    ("I10", pool.references_are_counted),
    ("I11", pool.counts_add_up),
    ("I12", pool.active_is_within_bounds),
    ("I15", leases.held_blocks_are_hidden_until_computed),
    ("I16", leases.pending_writes_are_listed),
    ("I17", leases.pending_lists_are_proper),
    ("I18", leases.held_blocks_match_the_watermark),
    ("I20", fences.tags_belong_to_attachments),
    ("I21", fences.authorizations_are_for_tagged_private_blocks),
    ("I23", fences.untracked_pools_have_no_fences),
    ("I31", pool.nothing_is_active_when_all_is_given_back),
    ("I32", leases.only_uncomputed_blocks_are_unresolved),
    ("I33", leases.tables_match_their_sequences),
    ("I34", leases.kept_tokens_are_enough),
    ("I35", leases.resident_prefixes_fit),
    ("I36", pool.caching_off_hides_everything),
)
"""What a state alone must satisfy. `rules_leases.broken_cost` adds to I35 what an answer must satisfy."""

TRANSITION_CHECKS: Final[tuple[tuple[str, TransitionCheck], ...]] = (
    ("I08", pool.index_keeps_caching_order),
    ("I13", events.exhaustion_changes_nothing),
    ("I17", leases.pending_leases_do_not_grow),
    ("I19", leases.watermark_only_rises),
    ("I20", fences.tags_only_come_and_go_with_their_transfer),
    ("I22", fences.nothing_becomes_visible_under_a_reader),
    ("I22", fences.snapshots_end_when_their_lease_changes),
    ("I22", fences.snapshots_choose_what_is_there_to_be_read),
    ("I23", fences.attachments_are_counted),
    ("I24", events.event_ids_are_consecutive),
    ("I25", events.events_tell_what_is_visible),
    ("I26", events.no_hash_is_told_twice),
    ("I27", events.stored_groups_are_runs_of_a_lease),
    ("I28", events.commands_come_in_order),
    ("I29", events.only_inactive_blocks_are_evicted),
    ("I30", events.eviction_follows_inactivity),
    ("I32", leases.resolved_hashes_stay),
    ("I36", pool.caching_off_is_silent),
    ("L01", lifecycles.blocks_move_as_the_table_says),
    ("L02", lifecycles.leases_move_as_the_table_says),
)
"""What an accepted event must satisfy. A refused one is judged by `broken_refusal` (I14)."""

JUDGE: Final = Judge[BlockView, Observation](STATE_CHECKS, TRANSITION_CHECKS, lambda seen: seen.after)
broken_rules = JUDGE.broken_rules
broken_transition_rules = JUDGE.broken_transition_rules
check_view = JUDGE.check_view
check_observation = JUDGE.check_observation


def broken_refusal(before: BlockView, event: Event, after: BlockView) -> Findings:
    """I14, if a refused event broke it."""
    found = events.refusal_changes_nothing(before, event, after)
    return [] if found is None else [("I14", found)]


def check_refusal(before: BlockView, event: Event, after: BlockView) -> None:
    """Judge a refused event.

    Raises:
        InvariantViolation: I14, something changed.
    """
    raise_first(broken_refusal(before, event, after))
