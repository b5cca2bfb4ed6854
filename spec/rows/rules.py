"""The rules of the row machine, R01 to R24, and the functions that check them.

A predicate is checked on a state alone, a transition rule on an observation. What takes the memory of a run, the
numbers of commands above all, is checked by the ledger (`rules_ledger`), which is shown every observation in order;
what takes rows, threads, devices or time is checked elsewhere, as `PLACES` says.
"""

from collections.abc import Callable
from types import MappingProxyType
from typing import Final

from tenure.core.errors import TenureError
from tenure.core.rows.events import RowEvent, WaitTimedOut
from tenure.core.rows.view import RowView
from tenure.spec.judging import Findings, Judge, raise_first
from tenure.spec.rows import rules_claims as claims
from tenure.spec.rows import rules_commands as commands
from tenure.spec.rows import rules_counters as counters
from tenure.spec.rows import rules_failures as failures
from tenure.spec.rows import rules_hits as hits
from tenure.spec.rows import rules_inputs as inputs
from tenure.spec.rows import rules_pages as pages
from tenure.spec.rows import rules_reads as reads
from tenure.spec.rows import rules_steps as steps
from tenure.spec.rows import rules_waits as waits
from tenure.spec.rows import rules_writes as writes
from tenure.spec.rows.rule import RowObservation, StateCheck, TransitionCheck
from tenure.spec.rows.rule_texts import RULES
from tenure.spec.rule import Finding, RuleKind

__all__ = [
    "OTHER_CHECKS",
    "PLACES",
    "RULES",
    "RULES_BY_ID",
    "STATE_CHECKS",
    "TRANSITION_CHECKS",
    "broken_refusal",
    "broken_rules",
    "broken_transition_rules",
    "check_determinism",
    "check_observation",
    "check_refusal",
    "check_timeout",
    "check_view",
]

RULES_BY_ID: Final = MappingProxyType({rule.id: rule for rule in RULES})

STATE_CHECKS: Final[tuple[tuple[str, StateCheck], ...]] = (
    ("R01", steps.steps_have_what_their_phase_says),
    ("R02", hits.delivered_hits_are_whole),
    ("R03", claims.occupancy_follows_the_claims),
    ("R04", claims.numbers_are_in_order),
    ("R06", pages.pages_are_free_without_holders),
    ("R08", pages.clones_are_charged_once),
    ("R09", writes.writes_are_of_one_schedule),
    ("R10", writes.open_writes_are_those_of_live_requests),
    ("R12", failures.failure_names_a_failed_write),
    ("R13", reads.planned_reads_keep_their_rows),
    ("R14", hits.readable_hits_have_their_reads),
    ("R15", inputs.names_are_proper),
    ("R18", steps.nothing_is_left_at_rest),
    ("R22", steps.one_step_waits_to_be_saved),
    ("R23", reads.reads_belong_to_somebody),
    ("R24", failures.fenced_writes_are_at_a_device),
)
"""What a state alone must satisfy."""

TRANSITION_CHECKS: Final[tuple[tuple[str, TransitionCheck], ...]] = (
    ("R01", steps.steps_are_consumed_once),
    ("R01", steps.consume_plans_fit_the_snapshot),
    ("R01", steps.late_ends_change_nothing_but_holders),
    ("R01", counters.steps_are_counted),
    ("R02", counters.hits_are_counted),
    ("R02", hits.hits_are_marked_and_planned),
    ("R02", hits.hits_are_settled_at_the_save),
    ("R02", hits.gathers_take_the_right_rows),
    ("R02", hits.pool_rows_are_those_of_their_claim),
    ("R04", claims.numbers_only_grow),
    ("R05", writes.scatters_carry_what_is_newest),
    ("R06", pages.pages_change_hands_when_free),
    ("R06", pages.page_copies_go_to_held_pages),
    ("R08", pages.clones_come_with_saves_and_go_with_holders),
    ("R08", pages.budget_is_kept),
    ("R08", counters.the_peak_is_counted),
    ("R09", writes.writes_move_along_the_chain),
    ("R10", writes.ended_requests_close_their_write),
    ("R10", writes.live_requests_come_and_go),
    ("R11", waits.waits_name_what_can_come_true),
    ("R11", waits.saves_wait_before_they_take),
    ("R11", waits.ready_reads_are_scheduled_once),
    ("R12", failures.failure_stops_the_cache),
    ("R13", reads.only_overlapping_rows_are_preserved),
    ("R13", commands.scatters_wait_for_running_reads),
    ("R14", hits.verdicts_are_fixed_at_the_save),
    ("R15", inputs.accepted_events_are_good),
    ("R15", inputs.names_keep_what_they_are),
    ("R15", inputs.new_names_are_registered),
    ("R15", failures.shutdown_is_final),
    ("R15", steps.waiting_changes_nothing),
    ("R16", writes.a_save_gives_each_request_one_chunk),
    ("R20", commands.commands_are_numbered_in_order),
    ("R20", commands.edges_are_named),
    ("R21", claims.computed_slots_change_hands),
    ("R22", steps.starts_follow_saves),
    ("R23", reads.dropped_reads_stay_while_they_run),
    ("R23", counters.dropped_reads_are_counted),
    ("R24", failures.resets_fence_what_runs),
    ("R24", failures.late_completions_only_give_back),
)
"""What an accepted event must satisfy."""

OTHER_CHECKS: Final[tuple[tuple[str, Callable[..., Finding]], ...]] = (
    ("R07", waits.broken_timeout),
    ("R15", inputs.refusal_changes_nothing),
    ("R17", commands.broken_determinism),
)
"""What a refusal, a wait in vain and a second run must satisfy."""

PLACES: Final = MappingProxyType[RuleKind, str](
    {
        "predicate": "every state, by `broken_rules`",
        "transition": "every event, by `broken_transition_rules`; runs of events by `Ledger`; refusals, repetitions",
        "interpreter": "commands carried out on made-up rows, in every legal order: `spec/rows/interpreter.py`",
        "executor": "devices, emulated and real: the tests of the executor",
        "facade": "calls from threads: the tests of the facade",
    }
)
"""Where a rule of each kind is put to the test."""

JUDGE: Final = Judge[RowView, RowObservation](STATE_CHECKS, TRANSITION_CHECKS, lambda seen: seen.after)
broken_rules = JUDGE.broken_rules
broken_transition_rules = JUDGE.broken_transition_rules
check_view = JUDGE.check_view
check_observation = JUDGE.check_observation


def broken_refusal(before: RowView, event: RowEvent, after: RowView) -> Findings:
    """R15, if a refused event broke it."""
    found = inputs.refusal_changes_nothing(before, event, after)
    return [] if found is None else [("R15", found)]


def check_refusal(before: RowView, event: RowEvent, after: RowView) -> None:
    """Judge a refused event.

    Raises:
        InvariantViolation: R15, something changed.
    """
    raise_first(broken_refusal(before, event, after))


def check_timeout(view: RowView, event: WaitTimedOut, error: TenureError) -> None:
    """Judge the error of a wait in vain.

    Raises:
        InvariantViolation: R07, it does not say what a caller needs to know.
    """
    found = waits.broken_timeout(view, event, error)
    raise_first([("R07", found)])


def check_determinism(first: RowObservation, second: RowObservation) -> None:
    """Judge two times that one event was told to one state.

    Raises:
        InvariantViolation: R17, they differ.
    """
    found = commands.broken_determinism(first, second)
    raise_first([("R17", found)])
