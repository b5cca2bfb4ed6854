"""Every rule of the row machine, broken by hand: the rule must say so, under its own id."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from tenure.core.errors import (
    BudgetExhaustedError,
    InvariantViolation,
    PageExhaustedError,
    ShutDownError,
    TenureError,
    WaitTimeoutError,
)
from tenure.core.rows.answers import Done
from tenure.core.rows.events import CopyBegan, StepConsumed, WaitedFor, WaitTimedOut
from tenure.core.rows.view import RowView
from tenure.spec.rows.goals import GOALS, RUN_GOALS, RowGoalBook
from tenure.spec.rows.rules import (
    broken_refusal,
    broken_rules,
    broken_transition_rules,
    check_determinism,
    check_observation,
    check_refusal,
    check_timeout,
    check_view,
)
from tenure.spec.rows.rules_commands import broken_determinism
from tenure.spec.rows.rules_waits import broken_timeout
from tests.spec.spoiled_row_good import GOOD_HISTORIES, waits_clone_history
from tests.spec.spoiled_row_history import RowHistory
from tests.spec.spoiled_row_observations import BROKEN_OBSERVATIONS, BROKEN_RUNS, Spoiler
from tests.spec.spoiled_row_states import (
    BROKEN_STATES,
    GOOD_STATES,
    Breaker,
    busy,
    busy_history,
    fenced_history,
    preserved_history,
)


def _ids(table: Sequence[tuple[str, object, object]]) -> list[str]:
    return [f"{name}-{number}" for number, (name, _, _) in enumerate(table)]


@pytest.mark.parametrize("build", GOOD_STATES)
def test_good_row_state_breaks_no_rule(build: Callable[[], RowView]) -> None:
    """What follows shows something only if the states it starts from are good."""
    assert not broken_rules(build())
    check_view(build())


@pytest.mark.parametrize(("name", "build", "spoil"), BROKEN_STATES, ids=_ids(BROKEN_STATES))
def test_rule_broken_by_a_row_state_is_reported(name: str, build: Callable[[], RowView], spoil: Breaker) -> None:
    """A rule that cannot fail judges nothing."""
    spoiled = spoil(build())
    found = broken_rules(spoiled)

    assert name in [each for each, _ in found]
    with pytest.raises(InvariantViolation):
        check_view(spoiled)


@pytest.mark.parametrize("build", GOOD_HISTORIES)
def test_good_row_observation_breaks_no_rule(build: Callable[[], RowHistory]) -> None:
    """What follows shows something only if the observations it starts from are good."""
    history = build()

    assert not broken_transition_rules(history.last)
    assert not history.ledger.observe(history.last)
    check_observation(history.last)


@pytest.mark.parametrize(("name", "build", "spoil"), BROKEN_OBSERVATIONS, ids=_ids(BROKEN_OBSERVATIONS))
def test_rule_broken_by_a_row_transition_is_reported(
    name: str, build: Callable[[], RowHistory], spoil: Spoiler
) -> None:
    """A rule that cannot fail judges nothing."""
    spoiled = spoil(build().last)
    found = broken_transition_rules(spoiled)

    assert name in [each for each, _ in found]
    with pytest.raises(InvariantViolation):
        check_observation(spoiled)


@pytest.mark.parametrize(("name", "build", "spoil"), BROKEN_RUNS, ids=_ids(BROKEN_RUNS))
def test_rule_broken_by_a_row_run_is_reported_by_the_ledger(
    name: str, build: Callable[[], RowHistory], spoil: Spoiler
) -> None:
    """What an observation does not show, the memory of the run must."""
    history = build()
    spoiled = spoil(history.last)
    found = history.ledger.observe(spoiled)

    assert name in [each for each, _ in found]
    with pytest.raises(InvariantViolation):
        history.ledger.check(spoiled)


# --- What is not checked on states and observations -----------------------------------------------------------------


def test_r15_refusal_that_changed_something_is_reported() -> None:
    """A raise must leave no trace."""
    view = busy()
    event = StepConsumed(2)

    assert not broken_refusal(view, event, busy())
    assert [name for name, _ in broken_refusal(view, event, replace(view, next_claim=77))] == ["R15"]
    with pytest.raises(InvariantViolation, match="R15: next_claim changed"):
        check_refusal(view, event, replace(view, next_claim=77))


@pytest.mark.parametrize(
    ("wanted", "right"),
    [
        (WaitedFor(page=True), PageExhaustedError("a free page", (1, 2), (2, 3, 4))),
        (WaitedFor(clone=2), BudgetExhaustedError("clone 2", (1, 2), (3,))),
        (WaitedFor(written=(3,)), WaitTimeoutError("write 3 to be in the pool", (1, 2), (3,))),
        (WaitedFor(host_ready=(3,), reads=(1, 3)), WaitTimeoutError("write 3 on the host, reads 1, 3", (1, 2), (3,))),
    ],
)
def test_r07_timeout_that_says_too_little_is_reported(wanted: WaitedFor, right: WaitTimeoutError) -> None:
    """The message is all that an engineer has in the middle of the night."""
    event = WaitTimedOut(wanted)
    wrong: list[TenureError] = [
        WaitTimeoutError("", right.unconsumed, right.open_writes),
        type(right)("something", right.unconsumed, right.open_writes),
        type(right)(right.waited_for, (1,), right.open_writes),
        type(right)(right.waited_for, (2, 1), right.open_writes),
        type(right)(right.waited_for, (1, 2, 7), right.open_writes),
        type(right)(right.waited_for, right.unconsumed, ()),
        type(right)(right.waited_for, right.unconsumed, (3, 77)),
        ShutDownError(),
    ]
    with_other_type = [PageExhaustedError, BudgetExhaustedError, WaitTimeoutError]
    with_other_type.remove(type(right))
    wrong += [each(right.waited_for, right.unconsumed, right.open_writes) for each in with_other_type]

    check_timeout(busy(), event, right)
    for error in wrong:
        assert broken_timeout(busy(), event, error) is not None
        with pytest.raises(InvariantViolation, match="R07"):
            check_timeout(busy(), event, error)


def test_r07_timeout_of_the_machine_names_steps_writes_and_what_was_wanted() -> None:
    """The judge of the message and its author must mean the same."""
    history = busy_history()
    for wanted in (WaitedFor(page=True), WaitedFor(clone=2), WaitedFor(written=(3,)), WaitedFor(reads=(1, 2))):
        event = WaitTimedOut(wanted)

        check_timeout(history.view, event, history.refused(event, WaitTimeoutError))


def test_r17_two_runs_of_one_event_that_differ_are_reported() -> None:
    """What was explored must be what runs."""
    one, other = busy_history().last, busy_history().last
    later = busy_history()
    later.tell(CopyBegan(3))
    wrong = [
        later.last,
        replace(other, answer=Done()),
        replace(other, commands=()),
        replace(other, after=replace(other.after, next_claim=99)),
    ]

    check_determinism(one, other)
    for each in wrong:
        assert broken_determinism(one, each) is not None
        with pytest.raises(InvariantViolation, match="R17"):
            check_determinism(one, each)


def test_r17_accepted_event_told_again_to_the_same_state_does_the_same() -> None:
    """A transition reads nothing but its arguments."""
    for build in (busy_history, preserved_history, waits_clone_history, fenced_history):
        check_determinism(build().last, build().last)


def test_ledger_that_is_cloned_remembers_for_itself() -> None:
    """Exploring goes back and on in another way."""
    history = busy_history()
    one, other = history.ledgers[-1].clone(), history.ledgers[-1].clone()
    history.end("a")
    one.check(history.last)

    assert [name for name, _ in one.observe(history.last)] == ["R20"]
    assert not other.observe(history.last)


def test_goals_are_all_reached_by_the_good_observations() -> None:
    """A mechanism that no history ever comes to is checked by none of them."""
    book = RowGoalBook()
    for build in GOOD_HISTORIES:
        for seen in build().observations:
            book.observe(seen)

    assert [] == book.missing
    assert len(book.reached) == len(GOALS) + len(RUN_GOALS)
