"""The scopes of the joined cache: small ones hold, and what they claim is all there is to claim."""

import re
from dataclasses import replace
from typing import Any, cast

import pytest

from tenure.core.cache import transition
from tenure.model_checks.explorer import Verdict, check_scope, explore
from tenure.model_checks.joined.claims import ALL, CLAIMS, NOT_CLAIMED
from tenure.model_checks.joined.model import JoinedModel, Left
from tenure.model_checks.joined.scopes import BOUNDS, SCOPES
from tenure.model_checks.model import NOTHING
from tenure.model_checks.rows.cores import renumbered
from tests.model_rows.runs import wander
from tests.paths import ROOT

SMALL = ("three-blocks-under-pressure",)


@pytest.mark.parametrize("name", SMALL)
def test_small_scope_is_proved(name: str) -> None:
    """Every interleaving of two requests in a few blocks."""
    (scope,) = (scope for scope in SCOPES if scope.name == f"joined/{name}")
    result = check_scope(scope)

    assert Verdict.PROVED is result.verdict, result.reasons
    assert result.search is not None
    assert result.search.distinct > 500


def test_ci_claims_everything_of_the_join_but_what_is_argued_away() -> None:
    """A kind of event that nobody thought of would otherwise be proved by never having happened."""
    seen = NOTHING.union(*(scope.expects for scope in SCOPES if "ci" in scope.sets))

    assert set() == CLAIMS - seen
    assert set() == NOT_CLAIMED.keys() & seen
    assert set() == NOT_CLAIMED.keys() - ALL
    assert {"event ShutdownRequested", "event GrowthScheduled", "command PreserveRows", "rule X05"} <= CLAIMS


def test_everything_that_was_seen_of_the_join_is_claimed() -> None:
    """What a scope happens to see beside the claims are refusals of the machines, and nothing else."""
    seen = NOTHING.union(*(scope.expects for scope in SCOPES if "ci" in scope.sets))

    assert set() == {mark for mark in seen - CLAIMS if not mark.startswith("error ")}


def test_every_error_that_the_join_raises_is_claimed() -> None:
    """A refusal that nobody ever got is a guard that may as well be gone."""
    sources = [*(ROOT / "core" / "joined").glob("*.py"), ROOT / "core" / "cache.py"]
    raised = {name for file in sources for name in re.findall(r"raise (\w+Error)", file.read_text())}

    assert {f"error {name}" for name in raised} == {mark for mark in CLAIMS if mark.startswith("error ")}


def test_both_visibilities_are_explored_in_ci() -> None:
    """Hits of the same step exist in one of them only."""
    assert {"computed", "scheduled"} == {bound.visibility for bound in BOUNDS.values() if "ci" in bound.sets}
    assert "goal shared_before_its_rows" in CLAIMS


def test_scope_whose_requests_never_meet_is_no_proof() -> None:
    """One request alone shares nothing."""
    (scope,) = (scope for scope in SCOPES if scope.name == "joined/three-blocks-under-pressure")
    bound = BOUNDS["three-blocks-under-pressure"]
    alone = bound._replace(left=Left(1, (1, 0)))
    result = check_scope(replace(scope, make=lambda: cast("Any", alone.make())))

    assert Verdict.BAD_MODEL is result.verdict
    assert "goal removed_under_pressure" in result.missing


def test_what_is_remembered_of_a_call_is_what_the_cache_says() -> None:
    """A call of the scheduler may be several events, told under one lock."""
    model = BOUNDS["two-requests-scheduled"].make()
    assert isinstance(model, JoinedModel)
    told_in_all = 0
    for state, event, taken in wander(model, seed=5, steps=500):
        told = model.core_events(state, event)
        fresh = model.cores.cache(state.core).cache
        for each in told:
            fresh = transition(fresh, each).state  # type: ignore[arg-type]
        told_in_all += len(told)
        after = model.cores.cache(cast("Any", taken.state).core).cache

        assert renumbered(fresh.rows)[0] == renumbered(after.rows)[0]
        assert fresh.blocks == after.blocks
        assert fresh.tracks == after.tracks
    assert told_in_all > 150


def test_two_workers_count_what_one_counts() -> None:
    """Joined states travel between processes too."""
    one, two = (explore(BOUNDS["three-blocks-under-pressure"].make(), workers=workers) for workers in (1, 2))

    assert one.counts() == two.counts()
