"""Every rule, broken by hand: the rule must say so, under its own id."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from tenure.core.blocks.values import (
    Done,
    TokensComputed,
)
from tenure.core.blocks.view import BlockView, PrefillCost
from tenure.core.errors import InvariantViolation
from tenure.spec.blocks.rule import Observation
from tenure.spec.blocks.rules import (
    RULES,
    RULES_BY_ID,
    STATE_CHECKS,
    TRANSITION_CHECKS,
    broken_refusal,
    broken_rules,
    broken_transition_rules,
    check_observation,
    check_refusal,
    check_view,
)
from tenure.spec.blocks.rules_leases import broken_cost
from tests.spec.spoiled_observations import BROKEN_OBSERVATIONS, EVICT, GOOD_OBSERVATIONS
from tests.spec.spoiled_states import BROKEN_STATES, Breaker, authorized, busy, busy_history, idle, waiting


@pytest.mark.parametrize("build", [busy, waiting, authorized, idle])
def test_good_state_breaks_no_rule(build: Callable[[], BlockView]) -> None:
    """What follows shows something only if the states it starts from are good."""
    assert not broken_rules(build())
    check_view(build())


@pytest.mark.parametrize(("name", "build", "spoil"), BROKEN_STATES, ids=[each[0] for each in BROKEN_STATES])
def test_rule_broken_by_a_state_is_reported(name: str, build: Callable[[], BlockView], spoil: Breaker) -> None:
    """A rule that cannot fail judges nothing."""
    found = broken_rules(spoil(build()))

    assert name in [each for each, _ in found]
    with pytest.raises(InvariantViolation):
        check_view(spoil(build()))


@pytest.mark.parametrize("build", GOOD_OBSERVATIONS)
def test_good_observation_breaks_no_rule(build: Callable[[], Observation]) -> None:
    """What follows shows something only if the observations it starts from are good."""
    assert not broken_transition_rules(build())
    check_observation(build())


@pytest.mark.parametrize(("name", "build", "spoil"), BROKEN_OBSERVATIONS, ids=[each[0] for each in BROKEN_OBSERVATIONS])
def test_rule_broken_by_a_transition_is_reported(
    name: str, build: Callable[[], Observation], spoil: Callable[[Observation], Observation]
) -> None:
    """A rule that cannot fail judges nothing."""
    found = broken_transition_rules(spoil(build()))

    assert name in [each for each, _ in found]
    with pytest.raises(InvariantViolation):
        check_observation(spoil(build()))


def test_i14_refusal_that_changed_something_is_reported() -> None:
    """A raise must leave no trace."""
    changed = replace(busy(), next_event_id=77)

    assert not broken_refusal(busy(), EVICT, busy())
    assert [name for name, _ in broken_refusal(busy(), EVICT, changed)] == ["I14"]
    with pytest.raises(InvariantViolation, match="I14: next_event_id changed"):
        check_refusal(busy(), EVICT, changed)


@pytest.mark.parametrize(
    "cost",
    [PrefillCost(0, 1, 8, 8), PrefillCost(0, 0, 8, 9), PrefillCost(1, 0, 8, 8), PrefillCost(0, 4, 4, 4)],
)
def test_i35_cost_that_does_not_add_up_is_reported(cost: PrefillCost) -> None:
    """A scheduler plans by it."""
    assert broken_cost(busy(), 1, PrefillCost(0, 0, 8, 8)) is None
    assert broken_cost(busy(), 1, cost) is not None


def test_every_rule_has_words_a_check_and_a_broken_example() -> None:
    """Those of the requirement and of the lifecycle tables, and none of them only on paper."""
    expected = {f"I{number:02}" for number in range(1, 37)} | {"L01", "L02"}
    broken = {name for name, _, _ in BROKEN_STATES} | {name for name, _, _ in BROKEN_OBSERVATIONS} | {"I14"}
    checked = {name for name, _ in STATE_CHECKS} | {name for name, _ in TRANSITION_CHECKS} | {"I14"}

    assert expected == set(RULES_BY_ID)
    assert len(RULES) == len(expected)
    assert expected == checked
    assert expected == broken
    assert {name for name, _ in TRANSITION_CHECKS} >= {r.id for r in RULES if r.kind == "transition"} - {"I14"}
    assert {name for name, _ in STATE_CHECKS} >= {r.id for r in RULES if r.kind == "predicate"}
    assert all(rule.sentence.endswith(".") and rule.reason.endswith(".") and rule.source for rule in RULES)


def test_rules_do_not_report_done_events_of_other_kinds() -> None:
    """An event that concerns nothing but an answer is judged like any other."""
    seen = busy_history().last

    assert not broken_transition_rules(replace(seen, event=TokensComputed(1, 8, 8), answer=Done(), before=seen.after))
