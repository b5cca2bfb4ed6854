"""Progress: what is owed is paid sooner or later, if everybody who is bound to act does.

For everything that is owed somewhere the states are looked at that owe it, and their strongly connected components; a
single state is one too, since nothing forces anything to happen in it except those bound to act. A component is a way
to owe for ever if it is fair to stay in it: every actor bound to act is idle in some state of it, or acts on some
transition inside it. Idle means that the whole graph has no transition of that actor there, not only that none stays
inside. The largest components suffice: what is fair in a part of one is fair in all of it.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tenure.model_checks.explorer.errors import RefusedError
from tenure.model_checks.explorer.graph import Graph
from tenure.model_checks.explorer.results import Counterexample, ProgressFound, Search
from tenure.model_checks.explorer.trail import NO_PARENT
from tenure.model_checks.model import Event, Model, Owed

Ints = NDArray[np.int64]


def check_progress(model: Model[Any], search: Search) -> ProgressFound:
    """Whether everything owed is paid sooner or later.

    Args:
        model: what was searched.
        search: a search of it that kept the graph.

    Raises:
        RefusedError: the graph was not kept, or is not all there; or states that differ by a renaming were taken for
            one (the model's `symmetric` is true), so that one may starve while another is served.
    """
    if getattr(model, "symmetric", False):
        raise RefusedError("progress together with symmetry", "one may starve while another with its part is served")
    if search.graph is None:
        why = search.cut or ("the graph was not kept" if search.finished else "the search did not finish")
        raise RefusedError("progress on a part of the graph", why)
    table = _Table(search.graph)
    worst: dict[str, tuple[int, Owed, Ints]] = {}
    debts = sorted({owed for together in search.graph.debts for owed in together})
    for owed in debts:
        found = table.first_unpaid(owed)
        if found is not None and (owed.rule not in worst or found[0] < worst[owed.rule][0]):
            worst[owed.rule] = (found[0], owed, found[1])
    broken = [
        table.lasso(model, state, owed, component)
        for state, owed, component in sorted(worst.values(), key=lambda at: (at[0], at[1]))
    ]
    return ProgressFound(len(debts), tuple(sorted(search.graph.classes[1:])), tuple(broken))


class _Table:
    """The graph as numpy has it."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.count = len(graph.keys)
        self.width = len(graph.classes)
        self.sources: Ints = np.array(graph.sources, dtype=np.int64)
        self.targets: Ints = np.array(graph.targets, dtype=np.int64)
        self.labels: Ints = np.array(graph.labels, dtype=np.int64)
        self.owed: Ints = np.array(graph.owed, dtype=np.int64)
        bound = self.labels > 0
        # Of every state the actors that can act there, as state * width + actor.
        self.enabled: Ints = np.unique(self.sources[bound] * self.width + self.labels[bound])
        # Transitions are in the order of their sources: those of state s are from first[s] to first[s + 1].
        self.first: Ints = np.searchsorted(self.sources, np.arange(self.count + 1))

    def first_unpaid(self, owed: Owed) -> tuple[int, Ints] | None:
        """The first state from which this may be owed for ever, and the component it is in; None if there is none."""
        owing = np.array([owed in together for together in self.graph.debts], dtype=np.bool_)[self.owed]
        component = self.components(owing)
        sizes = np.bincount(component[owing], minlength=self.count)
        # Actors that can act in every state of a component, as component * width + actor.
        places = self.enabled // self.width
        there = owing[places]
        pairs, counts = np.unique(
            component[places[there]] * self.width + self.enabled[there] % self.width, return_counts=True
        )
        always = pairs[counts == sizes[pairs // self.width]]
        inner = owing[self.sources] & owing[self.targets] & (component[self.sources] == component[self.targets])
        inner &= self.labels > 0
        acting = np.unique(component[self.sources[inner]] * self.width + self.labels[inner])
        unfair = np.setdiff1d(always, acting) // self.width
        unpaid = owing.copy()
        unpaid[owing] = ~np.isin(component[owing], unfair)
        if not unpaid.any():
            return None
        state = int(np.argmax(unpaid))
        return state, np.flatnonzero(owing & (component == component[state]))

    def components(self, owing: NDArray[np.bool_]) -> Ints:
        """Of every state the strongly connected component it is in, with transitions between these states alone."""
        from scipy.sparse import coo_array
        from scipy.sparse.csgraph import connected_components

        inner = owing[self.sources] & owing[self.targets]
        ones = np.ones(int(inner.sum()), dtype=np.int8)
        matrix = coo_array((ones, (self.sources[inner], self.targets[inner])), shape=(self.count, self.count))
        _, labels = connected_components(matrix.tocsr(), directed=True, connection="strong")
        return np.asarray(labels, dtype=np.int64)

    def lasso(self, model: Model[Any], state: int, owed: Owed, component: Ints) -> Counterexample:
        """The way to a state, and a way around from there that is fair to everybody."""
        inside = set(component.tolist())
        steps = list(self._around(state, inside))
        initial, stem = self._stem(state)
        walker = _Walker(model, self.graph, initial)
        events = [walker.go(index, target) for index, target in stem]
        loop = [walker.go(index, target) for index, target in steps]
        found = f"{owed.what}: still owed all the way around a loop of {len(inside)} states that is fair to everybody"
        if not loop:
            found = f"{owed.what}: still owed where nobody who is bound to act can"
        return Counterexample(owed.rule, found, "progress", initial, tuple(events), tuple(loop))

    def _stem(self, state: int) -> tuple[int, list[tuple[int, int]]]:
        """The place of the initial state, then places of events with the states they lead to."""
        steps: list[tuple[int, int]] = []
        while (parent := self.graph.parents[state]) != NO_PARENT:
            steps.append((self.graph.indices[state], state))
            state = parent
        steps.reverse()
        return self.graph.indices[state], steps

    def _around(self, start: int, inside: set[int]) -> Iterator[tuple[int, int]]:
        """Transitions from a state back to it, on which every actor bound to act is idle once, or acts."""
        at = start
        seen = {start}
        acted: set[int] = set()
        for actor in range(1, self.width):
            if actor in acted or any(not self._is_enabled(state, actor) for state in seen):
                continue
            for edge in self._walk(at, inside, self._serves(actor)):
                at = int(self.targets[edge])
                seen.add(at)
                acted.add(int(self.labels[edge]))
                yield self.graph.events[edge], at
        if at != start:
            for edge in self._walk(at, inside, lambda edge: self.targets[edge] == start):
                yield self.graph.events[edge], int(self.targets[edge])

    def _serves(self, actor: int) -> Callable[[int], bool]:
        """Whether after a transition this actor has acted, or cannot."""
        return lambda edge: self.labels[edge] == actor or not self._is_enabled(int(self.targets[edge]), actor)

    def _is_enabled(self, state: int, actor: int) -> bool:
        pair = state * self.width + actor
        place = int(np.searchsorted(self.enabled, pair))
        return place < len(self.enabled) and int(self.enabled[place]) == pair

    def _walk(self, start: int, inside: set[int], is_goal: Callable[[int], bool]) -> list[int]:
        """The shortest way inside from a state whose last transition is a goal."""
        came: dict[int, int] = {}
        waiting = deque([start])
        while waiting:
            at = waiting.popleft()
            for edge in self._inner(at, inside):
                if is_goal(edge):
                    return [*self._back(came, start, at), edge]
                target = int(self.targets[edge])
                if target != start and target not in came:
                    came[target] = edge
                    waiting.append(target)
        raise AssertionError("a component is connected, and fair to stay in")

    def _inner(self, state: int, inside: set[int]) -> Iterable[int]:
        edges = range(int(self.first[state]), int(self.first[state + 1]))
        return (edge for edge in edges if int(self.targets[edge]) in inside)

    def _back(self, came: dict[int, int], start: int, at: int) -> list[int]:
        edges: list[int] = []
        while at != start:
            edges.append(came[at])
            at = int(self.sources[came[at]])
        edges.reverse()
        return edges


class _Walker:
    """Takes events again to learn their names."""

    def __init__(self, model: Model[Any], graph: Graph, initial: int) -> None:
        self._model = model
        self._keys = graph.keys
        self._state = list(model.initial())[initial]

    def go(self, index: int, target: int) -> Event:
        """The event at this place, which leads to this state."""
        menu = self._model.events(self._state)
        # Two states of one form may tell their events in another order: the place is tried first, then all.
        for event in (*menu[index : index + 1], *menu):
            after = self._model.take(self._state, event).state
            if after is not None and self._model.encode(after) == self._keys[target]:
                self._state = after
                return event
        raise AssertionError("the model does not say the same again")
