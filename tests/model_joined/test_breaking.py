"""A scheduler that keeps to no protocol makes its calls, and what they do is held against the rules."""

from collections import Counter
from typing import Any, cast

import pytest

from tenure.core.blocks.values import LeaseOpened
from tenure.core.cache import transition
from tenure.core.errors import NotForJoinError
from tenure.model_checks.joined.breaking import BreakingJoin, Try
from tenure.model_checks.joined.scopes import BOUNDS
from tenure.model_checks.model import Broken
from tenure.model_checks.rows.stage import State
from tests.model_rows.runs import wander


def breaking(name: str = "protocol-breaking") -> BreakingJoin:
    """The model of a scope whose scheduler keeps to no protocol."""
    model = BOUNDS[name].make()
    assert isinstance(model, BreakingJoin)
    return model


def test_every_kind_of_wrong_call_is_made_and_refused() -> None:
    """A call that is never made is a guard that nobody looked at."""
    refused, taken = Counter[str](), Counter[str]()
    for name in ("protocol-breaking", "protocol-breaking-scheduled"):
        model = breaking(name)
        for state, _, _ in wander(model, seed=2, steps=400):
            for each in model._tries(state):  # pyright: ignore[reportPrivateUsage]
                step = model.cores.tried(state.core, each.event, each.token)
                (taken if step.error is None else refused)[type(each.event).__name__] += 1

    assert {"TokensScheduled", "BatchStarted", "BatchSaveRequested", "BatchDropped", "StepStarted"} <= refused.keys()
    assert {"TokensComputed", "DestinationRequested", "SavePublished", "ScatterCompleted"} <= refused.keys()
    assert {"DecodeReservationRequested", "TokenGenerated", "ShutdownRequested", "ResetRequested"} <= taken.keys()


class TakesForWrong(BreakingJoin):
    """Takes a lawful call for a wrong one."""

    def _tries(self, state: State) -> Any:
        del state
        return [Try("X02", LeaseOpened(self._sequence("a")), "lawful")]


def test_wrong_call_that_is_taken_breaks_its_rule() -> None:
    """Else a dropped guard would pass as one more lawful call."""
    model = breaking()
    model.__class__ = TakesForWrong
    (state,) = model.initial()
    broken = model.judge(state).broken

    assert ["X02"] == [each.rule for each in broken]
    assert "was taken" in broken[0].found


def test_refusal_that_leaves_a_trace_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The core's word that it refused is not enough: its state is looked at again."""
    model = breaking()

    def leaves_a_trace(state: Any, event: Any) -> Any:
        try:
            return transition(state, event)
        except NotForJoinError:
            state.rows.tables.next_claim += 1
            raise

    monkeypatch.setattr("tenure.model_checks.joined.cores.transition", leaves_a_trace)
    traces = [Broken("R15", "a call was refused, and changed something")]
    (state,) = model.initial()
    found = [list(model.judge(state).broken)]
    found += [list(model.judge(cast("State", taken.state)).broken) for _, _, taken in wander(model, seed=1, steps=30)]

    assert traces in found
