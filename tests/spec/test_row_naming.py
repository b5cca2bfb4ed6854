"""Every rule of the row machine has words, a check or a named place, a line that upholds it, and tests of its name."""

import re
from functools import cache

import pytest

from tenure.spec.rows.rules import OTHER_CHECKS, PLACES, RULES, RULES_BY_ID, STATE_CHECKS, TRANSITION_CHECKS
from tenure.spec.rows.rules_ledger import LEDGER_RULES
from tenure.spec.rule import Rule
from tests.paths import ROOT
from tests.spec.spoiled_row_observations import BROKEN_OBSERVATIONS, BROKEN_RUNS
from tests.spec.spoiled_row_states import BROKEN_STATES

IDS = [f"R{number:02}" for number in range(1, 25)]
ELSEWHERE = {"R19"}
"""Rules of locks and threads: the pure machine has neither, and no line of it can uphold or break them."""


@cache
def texts(folder: str) -> tuple[str, ...]:
    """The text of every Python file below a folder."""
    return tuple(file.read_text(encoding="utf-8") for file in sorted((ROOT / folder).rglob("*.py")))


def test_row_rules_are_those_of_the_requirement() -> None:
    """R01 to R24, each once and in order; ids are never used again."""
    assert IDS == [rule.id for rule in RULES]
    assert IDS == sorted(RULES_BY_ID)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
def test_row_rule_is_worded_and_checked_where_it_says(rule: Rule) -> None:
    """A rule on paper alone protects nobody."""
    checks = {
        "predicate": {name for name, _ in STATE_CHECKS},
        "transition": {name for name, _ in (*TRANSITION_CHECKS, *OTHER_CHECKS)} | set(LEDGER_RULES),
    }
    has = {kind for kind, names in checks.items() if rule.id in names}

    assert rule.sentence.endswith(".")
    assert rule.reason.startswith("Otherwise ")
    assert rule.reason.endswith(".")
    assert rule.source
    assert len({*rule.kinds}) == len(rule.kinds)
    assert has == {kind for kind in rule.kinds if kind in checks}
    assert {*rule.kinds} <= PLACES.keys()


def test_row_rules_are_all_broken_by_hand_in_every_way_they_are_checked() -> None:
    """A check that cannot fail judges nothing."""
    assert {name for name, _ in STATE_CHECKS} == {name for name, _, _ in BROKEN_STATES}
    assert {name for name, _ in TRANSITION_CHECKS} == {name for name, _, _ in BROKEN_OBSERVATIONS}
    assert set(LEDGER_RULES) == {name for name, _, _ in BROKEN_RUNS}


@pytest.mark.parametrize("rule", [rule for rule in IDS if rule not in ELSEWHERE])
def test_row_rule_is_named_at_the_lines_that_uphold_it(rule: str) -> None:
    """A failing check can be looked up by its id in the core."""
    pattern = re.compile(rf"\b{rule}\b", re.ASCII)

    assert any(pattern.search(text) for text in texts("core")), f"no line of core/ names {rule}"


@pytest.mark.parametrize("rule", [rule for rule in IDS if rule not in ELSEWHERE])
def test_row_rule_has_tests_of_its_name(rule: str) -> None:
    """And in the tests: by a function's name, or in a table of what breaks it."""
    table = {name for name, _, _ in (*BROKEN_STATES, *BROKEN_OBSERVATIONS, *BROKEN_RUNS)}
    pattern = re.compile(rf"^def test_{rule.lower()}_", re.MULTILINE)
    is_named = any(pattern.search(text) for text in texts("tests"))

    assert is_named or rule in table, f"no test is named test_{rule.lower()}_..."
