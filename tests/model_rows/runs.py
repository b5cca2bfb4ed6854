"""Ways through a model of the row machine, for tests that look at what was on the way."""

import random
from collections.abc import Iterator
from typing import Any, cast

from tenure.model_checks.model import Event, Model, Scope, Taken
from tenure.model_checks.rows.model import RowsModel
from tenure.model_checks.rows.scopes import SCOPES


def scope_named(name: str) -> Scope:
    """A scope of the row machine."""
    return next(scope for scope in SCOPES if scope.name == f"rows/{name}")


def wander(model: Model[Any], seed: int, steps: int = 200) -> Iterator[tuple[Any, Event, Taken]]:
    """A way through a model that small numbers choose, from the beginning again where nothing more can happen."""
    choices = random.Random(seed)  # noqa: S311
    (state,) = model.initial()
    for _ in range(steps):
        events = model.events(state)
        if not events:
            (state,) = model.initial()
            continue
        event = choices.choice(events)
        taken = model.take(state, event)
        yield state, event, taken
        state = cast("Any", taken.state)


def rows_model(name: str) -> RowsModel:
    """The model of a scope of the row machine."""
    return cast("RowsModel", scope_named(name).make())
