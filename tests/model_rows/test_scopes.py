"""The scopes of the row machine: the small ones hold, and too small ones are found out."""

from dataclasses import replace

import pytest

from tenure.model_checks.explorer import Verdict, check_scope
from tenure.model_checks.model import Scope
from tenure.model_checks.rows.histories_ends import PAGES_AND_ENDS
from tenure.model_checks.rows.histories_rows import HITS_AND_WRITES
from tenure.model_checks.rows.plans import NOTE
from tenure.model_checks.rows.scopes import CLAIMS, HISTORIES, SCOPES
from tenure.model_checks.rows.scripts import ends, last
from tenure.spec.rows.goals import GOALS
from tenure.spec.rows.rules import RULES
from tests.model_rows.runs import scope_named

SMOKE = [scope for scope in SCOPES if "smoke" in scope.sets]


@pytest.mark.parametrize("scope", SMOKE, ids=lambda scope: scope.name)
def test_smoke_scope_is_proved(scope: Scope) -> None:
    """Every interleaving of a small history."""
    result = check_scope(scope)

    assert Verdict.PROVED is result.verdict, result.reasons
    assert result.search is not None
    assert result.search.distinct > 40


def test_ci_claims_every_rule_that_the_machine_alone_can_break() -> None:
    """R19 is about locks, which only the facade has."""
    claimed = {mark.removeprefix("rule ") for mark in CLAIMS if mark.startswith("rule ")}

    assert {rule.id for rule in RULES} - {"R19"} == claimed


def test_ci_claims_every_goal_of_the_row_machine() -> None:
    """One per mechanism: a rule about what never happens holds for nothing."""
    claimed = {mark.removeprefix("goal ") for mark in CLAIMS if mark.startswith("goal ")}

    assert {goal.name for goal in GOALS} == claimed - {"fault"}


def test_scope_that_is_too_small_is_no_proof() -> None:
    """A history cut short never reaches what its scope is there for."""
    scope = scope_named("same-step-hit")
    history = HITS_AND_WRITES["same-step-hit"]
    short = history._replace(steps=(history.steps[0], last(*ends("old"))))
    result = check_scope(replace(scope, make=lambda: short.model(scope.expects)))

    assert Verdict.BAD_MODEL is result.verdict
    assert "goal same_step_replanned" in result.missing


def test_every_history_says_where_it_comes_from() -> None:
    """A case, a defect, a wrong reading or a rule."""
    assert [] == [name for name, history in HISTORIES.items() if not history.source]
    assert any(NOTE in step.emits for history in HISTORIES.values() for step in history.steps)


def test_every_wrong_reading_and_machine_defect_has_a_history() -> None:
    """The fifteen designs that look right, and the defects that live in the machine."""
    sources = {
        word for history in {**HITS_AND_WRITES, **PAGES_AND_ENDS}.values() for word in history.source.split(", ")
    }
    sources |= {"W13", "D06"}

    assert [] == [f"W{number}" for number in range(1, 16) if f"W{number}" not in sources]
    assert [] == [f"D{number:02}" for number in (1, 2, 4, 5, 6, 9, 11, 14) if f"D{number:02}" not in sources]
