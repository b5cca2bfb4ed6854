"""Verdicts: PROVED is what is left when nothing speaks against it."""

import json
import os
import signal
import time
from functools import partial
from io import StringIO
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from rich.console import Console

from tenure.model_checks.explorer import (
    Limits,
    Options,
    ProgressLine,
    ScopeResult,
    Snapshot,
    Verdict,
    WorkerDiedError,
    check_scope,
    check_set,
    closing_block,
    explore,
    junit_text,
    run_scopes,
    worst,
)
from tenure.model_checks.explorer.toys import Counting, Dining, Ring, Slots
from tests.explorer.machines import Forgetful, Fragile, Raising, scope_of

SEEN = frozenset({"goal even", "event Grown"})


def mixed() -> list[ScopeResult]:
    """A result of every verdict."""
    return run_scopes(
        [
            scope_of(lambda: Counting(30), "toys/good", SEEN),
            scope_of(lambda: Counting(30, 9), "toys/wrong"),
            scope_of(lambda: Slots(3, 2, 2), "toys/large"),
            scope_of(lambda: Counting(30), "toys/vacuous", frozenset({"goal odd"})),
        ],
        options=Options(limits=Limits(states=500)),
    )


def test_verdicts_have_exit_codes_of_their_own() -> None:
    """2 is left to a wrong command line."""
    assert {"PROVED": 0, "REFUTED": 1, "UNDETERMINED": 3, "BAD MODEL": 4} == {
        verdict.value: verdict.exit_code for verdict in Verdict
    }


def test_worst_of_several_verdicts_is_in_a_fixed_order() -> None:
    """And of none at all nothing is proved."""
    order = [Verdict.REFUTED, Verdict.BAD_MODEL, Verdict.UNDETERMINED, Verdict.PROVED]
    for place in range(len(order)):
        assert order[place] is worst(reversed(order[place:]))
    assert Verdict.BAD_MODEL is worst([])


def test_scope_in_which_all_was_seen_is_proved() -> None:
    """The one way to PROVED."""
    result = check_scope(scope_of(lambda: Counting(30), expects=SEEN))

    assert Verdict.PROVED is result.verdict
    assert () == result.reasons == result.missing


def test_scope_in_which_a_claim_was_never_seen_is_a_bad_model() -> None:
    """What never happened was never checked."""
    result = check_scope(scope_of(lambda: Counting(30), expects=SEEN | {"goal odd", "command Nothing"}))

    assert Verdict.BAD_MODEL is result.verdict
    assert ("command Nothing", "goal odd") == result.missing
    assert "command Nothing, goal odd" in result.reasons[0]


@pytest.mark.parametrize("limits", [Limits(states=10), Limits(seconds=0.0), Limits(mib=1), Limits(depth=3)])
def test_scope_whose_budget_ended_is_undetermined(limits: Limits) -> None:
    """Also if everything expected was seen by then."""
    result = check_scope(scope_of(lambda: Slots(3, 2, 2)), Options(limits=limits))

    assert Verdict.UNDETERMINED is result.verdict


def test_scope_that_is_cut_is_not_blamed_for_what_it_had_no_time_to_see() -> None:
    """It may be fine with more time; it is told all the same."""
    result = check_scope(scope_of(lambda: Slots(3, 2, 2), expects=SEEN), Options(limits=Limits(states=10)))

    assert Verdict.UNDETERMINED is result.verdict
    assert tuple(sorted(SEEN)) == result.missing


@pytest.mark.parametrize("about", ["state", "marks", "events", "judge"])
def test_scope_whose_model_is_not_deterministic_is_a_bad_model(about: str) -> None:
    """Its counts mean nothing."""
    result = check_scope(scope_of(lambda: Forgetful(2000, about)))

    assert Verdict.BAD_MODEL is result.verdict
    assert "always say the same" in result.reasons[0]


def test_scope_with_a_broken_rule_is_refuted_whatever_else_is_wrong() -> None:
    """A refutation needs nothing but itself."""
    result = check_scope(scope_of(lambda: Counting(30, 9), expects=frozenset({"goal odd"})))

    assert Verdict.REFUTED is result.verdict
    assert result.counterexample is not None
    assert "N01" == result.counterexample.rule


def test_scope_whose_model_raises_is_a_bad_model_that_tells_where() -> None:
    """One scope that fails must not hide the others."""
    result = check_scope(scope_of(lambda: Raising(10, at=5)))

    assert Verdict.BAD_MODEL is result.verdict
    assert "no such number" in result.reasons[0]
    assert "4. ('counter', 'add', 1)" in result.reasons[0]


def test_scope_that_cannot_be_made_is_a_bad_model() -> None:
    """With the reason in it."""
    result = check_scope(scope_of(lambda: 1 // 0))

    assert Verdict.BAD_MODEL is result.verdict
    assert "ZeroDivisionError" in result.reasons[0]


def test_scope_in_which_nothing_can_happen_is_a_bad_model() -> None:
    """Every rule holds of nothing."""
    result = check_scope(scope_of(lambda: Counting(0)))

    assert Verdict.BAD_MODEL is result.verdict


def test_scope_with_progress_is_proved_only_if_what_is_owed_is_paid() -> None:
    """Rule by rule as by state: the loop is the counterexample."""
    good = check_scope(scope_of(lambda: Ring(3), progress=True))
    starved = check_scope(scope_of(lambda: Dining(4, is_ordered=True), progress=True))
    nothing = check_scope(scope_of(lambda: Counting(9), progress=True))

    assert Verdict.PROVED is good.verdict
    assert good.progress is not None
    assert 3 == good.progress.owed
    assert Verdict.REFUTED is starved.verdict
    assert starved.counterexample is not None
    assert ("progress", True) == (starved.counterexample.by, bool(starved.counterexample.loop))
    assert Verdict.BAD_MODEL is nothing.verdict


def test_scope_with_progress_that_is_cut_says_nothing_of_progress() -> None:
    """An edge that was cut looks like an actor that cannot act."""
    result = check_scope(scope_of(lambda: Ring(6), progress=True), Options(limits=Limits(states=20)))

    assert Verdict.UNDETERMINED is result.verdict
    assert result.progress is None
    assert "progress was not looked at" in result.notes[0]


def test_set_of_scopes_must_see_every_claim_somewhere() -> None:
    """What no scope claims is claimed by nobody: the set has to."""
    proved = [check_scope(scope_of(lambda: Counting(30), expects=SEEN)), check_scope(scope_of(lambda: Ring(2)))]

    assert Verdict.PROVED is check_set(proved, SEEN).verdict
    assert Verdict.BAD_MODEL is check_set(proved, SEEN | {"rule R99"}).verdict
    assert ("rule R99",) == check_set(proved, SEEN | {"rule R99"}).missing
    assert Verdict.BAD_MODEL is check_set([]).verdict
    assert Verdict.REFUTED is check_set(mixed(), frozenset({"rule R99"})).verdict


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_results_come_in_the_order_asked_for(workers: int) -> None:
    """However the scopes are dealt out; and each says the same."""
    weights = (1, 900, 30, 500, 2)
    scopes = [scope_of(partial(Counting, n), f"toys/{n}", heavy=n) for n in weights]
    told: list[str] = []
    results = run_scopes(scopes, workers, done=lambda result: told.append(result.name))

    assert [f"toys/{n}" for n in weights] == [result.name for result in results]
    assert [n + 1 for n in weights] == [result.search.distinct for result in results if result.search is not None]
    assert sorted(told) == sorted(result.name for result in results)


def test_one_scope_gets_all_processes() -> None:
    """Otherwise all but one would be idle."""
    (result,) = run_scopes([scope_of(lambda: Slots(2, 2, 2))], 2)

    assert result.search is not None
    assert 2 == result.search.workers


class Deadly(Counting):
    """Ends its process at a number."""

    def encode(self, state: int) -> bytes:
        """Eight bytes, or none ever again."""
        if state == 20:
            os.kill(os.getpid(), signal.SIGKILL)
        return super().encode(state)


def test_process_that_dies_is_reported_and_the_others_go_on() -> None:
    """A result that is missing would look like a scope that was not asked for."""
    scopes = [
        scope_of(lambda: Counting(30), "toys/a"),
        scope_of(lambda: Deadly(30), "toys/b"),
        scope_of(lambda: Ring(2)),
    ]
    first, dead, last = run_scopes(scopes, 2)

    assert (Verdict.PROVED, Verdict.UNDETERMINED, Verdict.PROVED) == (first.verdict, dead.verdict, last.verdict)
    assert "signal 9" in dead.reasons[0]


def test_worker_that_dies_ends_the_search_with_an_error(tmp_path: Path) -> None:
    """And never with a verdict on the states that were left."""
    with pytest.raises(WorkerDiedError, match="signal 9"):
        explore(Fragile(3, 2, 2, after=500, victim="self", folder=tmp_path), workers=2)

    for file in tmp_path.iterdir():
        assert not Path(f"/proc/{file.name}").exists()
    result = check_scope(scope_of(lambda: Fragile(3, 2, 2, after=500, victim="self", folder=tmp_path)), workers=2)
    assert Verdict.UNDETERMINED is result.verdict


def test_results_are_plain_json() -> None:
    """The report is built of that alone."""
    for result in mixed():
        plain = json.loads(json.dumps(result.to_json()))

        assert result.name == plain["name"]
        assert result.verdict.exit_code == plain["exit_code"]
        assert result.search is not None
        assert result.search.distinct == plain["search"]["distinct"]
        assert len(result.counterexamples) == len(plain["counterexamples"])
    assert "UNDETERMINED" not in json.dumps(check_set(mixed()).to_json())


def test_junit_has_a_failure_or_an_error_and_skips_nothing() -> None:
    """A test that is skipped is green in every dashboard."""
    results = mixed()
    root = ET.fromstring(junit_text(results))  # noqa: S314 - our own text
    cases = {str(case.get("name")): [child.tag for child in case if child.tag != "system-out"] for case in root}

    assert {"good": [], "wrong": ["failure"], "large": ["error"], "vacuous": ["error"]} == cases
    assert ("4", "1", "2", "0") == tuple(str(root.get(what)) for what in ("tests", "failures", "errors", "skipped"))
    assert "skip" not in junit_text(results).replace('skipped="0"', "")


def test_closing_block_tells_what_was_covered() -> None:
    """Verdict first; then what a reader needs to believe it."""
    blocks = [closing_block(result) for result in mixed()]

    assert ["PROVED", "REFUTED", "UNDETERMINED", "BAD MODEL"] == [
        next(verdict.value for verdict in Verdict if block.startswith(verdict.value)) for block in blocks
    ]
    for part in ("31 distinct states, 59 transitions, depth 15", "every state was expanded", "collision", "goal even"):
        assert part in blocks[0]
    assert "not every state was expanded: the budget of 500 states" in blocks[2]


def test_progress_is_told_while_a_search_goes_on() -> None:
    """A search that says nothing for an hour is stopped by whoever waits."""
    one = Snapshot("toys/one", 2000, 9000, 70, 12, 2.0, 50 << 20)
    out = StringIO()
    line = ProgressLine(Console(file=out, force_terminal=True, width=200))
    line(one)
    line.done(check_scope(scope_of(lambda: Counting(3))))
    line.close()

    assert (
        "toys/one: 2,000 distinct, 9,000 transitions, frontier 70, depth 12, 1,000 states/s, 50 MiB" in out.getvalue()
    )
    assert "PROVED" in out.getvalue()


def test_progress_where_nothing_can_be_rewritten_is_told_seldom(monkeypatch: pytest.MonkeyPatch) -> None:
    """A log of a night must stay readable."""
    out = StringIO()
    now = 0.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    line = ProgressLine(Console(file=out, force_terminal=False, width=200))
    for _ in range(100):
        now += 0.5
        line(Snapshot("toys/one", 1, 1, 1, 1, 1.0, 1))

    assert 10 == out.getvalue().count("\n")


@pytest.mark.parametrize("count", [1, 2])
def test_snapshots_reach_whoever_wants_them(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also from the processes of other scopes."""
    monkeypatch.setattr("tenure.model_checks.explorer.search.TOLD_EVERY_S", 0.0)
    told: list[Snapshot] = []
    scopes = [scope_of(lambda: Slots(2, 2, 2), f"toys/{number}") for number in range(count)]
    run_scopes(scopes, 2, progress=told.append)

    assert {f"toys/{number}" for number in range(count)} == {snapshot.name for snapshot in told}
    assert all(snapshot.distinct > 0 and snapshot.memory_bytes > 0 for snapshot in told)
