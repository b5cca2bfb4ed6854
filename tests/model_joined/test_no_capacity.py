"""A call that finds no capacity is judged as any other."""

from dataclasses import replace
from typing import Any

import pytest

from tenure.core.blocks.values import Exhausted
from tenure.core.cache import CacheState, CacheTransition, transition
from tenure.core.joined.values import CacheEvent, RequestId
from tenure.model_checks.joined import cores
from tenure.model_checks.joined.scopes import BOUNDS
from tenure.model_checks.model import Judged


def judged() -> Judged:
    """What the search says of a state in which the first request has all blocks, and a second one asks for some."""
    model = BOUNDS["three-blocks-under-pressure"].make()
    (state,) = model.initial()
    first: Any = model.take(state, ("engine", "arrive", "a")).state
    return model.judge(first)


def test_no_capacity_breaks_nothing() -> None:
    """And it is what the second request finds."""
    said = judged()

    assert "goal no_capacity" in said.marks
    assert not said.broken


def test_x01_what_may_be_shared_is_judged_where_there_is_no_capacity(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a request is told that it may share is as wrong there."""

    def too_many(cache: CacheState, request: RequestId) -> int:
        del cache, request
        return 9

    monkeypatch.setattr(cores, "servable_prefix_blocks", too_many)

    assert {"X01"} == {broken.rule for broken in judged().broken}


def test_i13_no_capacity_that_changes_something_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The scheduler asks again later, of a cache that should be as it was."""

    def leaky(cache: CacheState, event: CacheEvent) -> CacheTransition:
        after = transition(cache, event)
        if isinstance(after.answer, Exhausted):
            return after._replace(state=replace(after.state, ended=("nobody",)))
        return after

    monkeypatch.setattr(cores, "transition", leaky)

    assert "I13" in {broken.rule for broken in judged().broken}
