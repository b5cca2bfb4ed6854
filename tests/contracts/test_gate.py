"""The gate of the contracts lets nothing through but what CrossHair confirmed over all paths."""

import pytest

from tenure.core.blocks import pool
from tenure.core.blocks.tables import Edit
from tenure.model_checks.contracts import gate
from tenure.model_checks.contracts.gate import CONDITIONS, EXPECTED, NO_CONDITION, ask, run_gate
from tenure.model_checks.contracts.pool import release_takes_one_hold, unpin_of_nothing_is_refused

pytest.importorskip("crosshair", reason="CrossHair is not installed (pip install crosshair-tool)")

SECONDS = 60.0
"""Long enough for the slowest machine; each is decided in a moment."""


def grows(number: int) -> int:
    """Says what is not so.

    pre: number >= 0
    post: _ > number + 1
    """
    return number + 1


def never_asked(number: int) -> int:
    """Asks what nothing meets.

    pre: number > 0 and number < 0
    post: _ == number
    """
    return number


def without_a_contract(number: int) -> int:
    """Says nothing that could be asked."""
    return number


def endless(numbers: list[int]) -> int:
    """Is true, and has more paths than anybody can follow.

    post: _ >= 0
    """
    return sum(number * number for number in numbers)


def test_wrong_contract_gives_a_counterexample() -> None:
    """A gate that lets a wrong contract pass is none."""
    (answer,) = ask(grows, SECONDS)

    assert "POST_FAIL" == answer.state
    assert "grows(" in answer.message
    assert not run_gate([grows], expected=1, seconds=SECONDS).passed


def test_contract_that_nothing_meets_fails_the_gate() -> None:
    """CrossHair itself ends with success there."""
    (answer,) = ask(never_asked, SECONDS)

    assert "PRE_UNSAT" == answer.state
    assert not run_gate([never_asked], expected=1, seconds=SECONDS).passed


def test_function_without_a_contract_fails_the_gate() -> None:
    """And there."""
    assert [NO_CONDITION] == [answer.state for answer in ask(without_a_contract, SECONDS)]
    assert not run_gate([without_a_contract], expected=0, seconds=SECONDS).passed


def test_contract_that_is_not_confirmed_fails_the_gate() -> None:
    """True as far as anybody looked is not true."""
    (answer,) = ask(endless, 1.0)

    assert "CANNOT_CONFIRM" == answer.state
    assert not run_gate([endless], expected=1, seconds=1.0).passed


def test_condition_that_is_missing_fails_the_gate() -> None:
    """A contract that somebody drops by mistake must be missed."""
    two = [release_takes_one_hold, unpin_of_nothing_is_refused]

    assert run_gate(two, expected=2, seconds=SECONDS).passed
    assert not run_gate(two[:1], expected=2, seconds=SECONDS).passed
    assert not run_gate(two, expected=1, seconds=SECONDS).passed


def test_fault_in_the_machine_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The contracts run production code: with a holder forgotten, the count of holds is wrong."""

    def forgetful(edit: Edit, blocks: list[int]) -> None:
        del edit, blocks

    monkeypatch.setattr(pool, "release", forgetful)

    assert "POST_FAIL" == ask(release_takes_one_hold, SECONDS)[0].state


def test_expected_number_is_that_of_the_functions() -> None:
    """And each is asked once."""
    assert EXPECTED == len(CONDITIONS) == len(set(CONDITIONS))
    assert gate.EXPECTED >= 25
