"""Going through events again, and looking for the shortest way to something."""

from collections.abc import Iterable, Sequence
from typing import Any, Literal

from tenure.model_checks.explorer.errors import ModelError, RefusedError
from tenure.model_checks.explorer.graph import Graph
from tenure.model_checks.explorer.limits import UNLIMITED, Limits
from tenure.model_checks.explorer.part import in_words
from tenure.model_checks.explorer.results import Counterexample
from tenure.model_checks.explorer.search import explore
from tenure.model_checks.explorer.trail import NO_PARENT
from tenure.model_checks.model import Broken, Event, Judged, Marks, Model, Owed, Taken


def replay(model: Model[Any], events: Iterable[Event], initial: int = 0) -> list[tuple[Event, Taken]]:
    """What every event leads to, one after the other; it ends early where there is no next state.

    Raises:
        RefusedError: an event that cannot happen where it stands.
        ModelError: the model raised.
    """
    states = list(model.initial())
    if not 0 <= initial < len(states):
        raise RefusedError(f"initial state {initial}", f"the model has {len(states)} of them")
    state: Any = states[initial]
    said: list[tuple[Event, Taken]] = []
    for event in map(tuple, events):
        path = (*(before for before, _ in said), event)
        if state is None:
            raise RefusedError(f"event {len(path)}, {event!r}", "there is no state after the one before")
        try:
            if event not in model.events(state):
                raise RefusedError(f"event {len(path)}, {event!r}", "it cannot happen there")
            taken = model.take(state, event)
        except RefusedError:
            raise
        except Exception as error:
            raise ModelError("take", in_words(error), initial, path) from error
        said.append((event, taken))
        state = taken.state
    return said


def find_shortest(
    model: Model[Any],
    goal: str,
    *,
    by: Literal["mark", "rule"] = "mark",
    limits: Limits = UNLIMITED,
    workers: int = 1,
) -> Counterexample | None:
    """The shortest way to where a mark is seen, or a rule is broken; None if there is none within the limits.

    Whatever else is broken on the way is passed over.
    """
    search = explore(_Seeking(model, goal, by), limits=limits, workers=workers, deadlock_rule=goal)
    return search.broken[0] if search.broken else None


def labelled(model: Model[Any], graph: Graph) -> list[tuple[int, int, Event]]:
    """All transitions of a small graph, with their events: from which state, to which, by what.

    Every state is made again and held, so that this is for graphs that are drawn or told.
    """
    initial = list(model.initial())
    states: list[Any] = []
    for parent, index in zip(graph.parents, graph.indices, strict=True):
        if parent == NO_PARENT:
            states.append(initial[index])
        else:
            states.append(model.take(states[parent], model.events(states[parent])[index]).state)
    menus = [model.events(state) for state in states]
    return [
        (source, target, menus[source][index])
        for source, target, index in zip(graph.sources, graph.targets, graph.events, strict=True)
    ]


class _Seeking:
    """A model whose one rule is that something is never seen."""

    def __init__(self, model: Model[Any], goal: str, by: Literal["mark", "rule"]) -> None:
        self._model = model
        self._goal = goal
        self._by = by
        self.initial = model.initial
        self.events = model.events
        self.encode = model.encode
        self.fairness = model.fairness
        self.describe = model.describe
        self.pack = model.pack
        self.unpack = model.unpack

    def _found(self, marks: Marks, broken: Sequence[Broken]) -> tuple[Broken, ...]:
        if self._by == "rule":
            return tuple(one for one in broken if one.rule == self._goal)
        return (Broken(self._goal, "seen"),) if self._goal in marks else ()

    def take(self, state: Any, event: Event) -> Taken:
        """What the event leads to; where that is nothing, it stays."""
        after, marks, broken = self._model.take(state, event)
        return Taken(state if after is None else after, marks, self._found(marks, broken))

    def judge(self, state: Any) -> Judged:
        """Whether it is seen here."""
        marks, broken = self._model.judge(state)
        return Judged(marks, self._found(marks, broken))

    def is_quiescent(self, state: Any) -> bool:
        """Rest anywhere."""
        return True

    def owed(self, state: Any) -> frozenset[Owed]:
        """Nothing."""
        return frozenset()
