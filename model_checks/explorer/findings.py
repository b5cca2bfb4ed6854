"""What is broken, in the order in which it counts."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from tenure.model_checks.explorer.part import Found
from tenure.model_checks.explorer.results import BrokenBy, Counterexample
from tenure.model_checks.explorer.trail import NO_PARENT, Trail
from tenure.model_checks.model import Event, Model

KINDS: tuple[BrokenBy, ...] = ("transition", "state", "deadlock")
TRANSITION, STATE, DEADLOCK = range(3)
STUCK = "nothing can happen here, and it is no place to rest"


class Candidate(NamedTuple):
    """Something broken. The least one is the counterexample.

    Attributes:
        depth: how many events lead there.
        parent: the state that the last event leaves; -1 for an initial state.
        place: the place of that event, or of the initial state.
        kind: a transition, a state or a deadlock, as in KINDS.
        nth: what the model told first is first.
        rule: the rule.
        found: what was found.
    """

    depth: int
    parent: int
    place: int
    kind: int
    nth: int
    rule: str
    found: str


class Findings:
    """All that was found broken; true if that is anything."""

    def __init__(self, deadlock_rule: str) -> None:
        self._deadlock_rule = deadlock_rule
        self._all: list[Candidate] = []

    def __bool__(self) -> bool:
        return bool(self._all)

    @property
    def depth(self) -> int:
        """The least depth of anything broken."""
        return min(candidate.depth for candidate in self._all)

    def add_transitions(self, broken: Sequence[Found], depth: int) -> None:
        """Transitions that lead to this depth."""
        for nth, (state, index, rule, found) in enumerate(broken):
            self._all.append(Candidate(depth, state, index, TRANSITION, nth, rule, found))

    def add_states(self, trail: Trail, broken: Sequence[Found], depth: int) -> None:
        """States at this depth."""
        for nth, (state, _, rule, found) in enumerate(broken):
            self._all.append(Candidate(depth, *_met(trail, state), STATE, nth, rule, found))

    def add_stuck(self, trail: Trail, states: Sequence[int], depth: int) -> None:
        """States at this depth in which nothing can happen."""
        self._all += [
            Candidate(depth, *_met(trail, state), DEADLOCK, 0, self._deadlock_rule, STUCK) for state in states
        ]

    def firsts(self) -> list[Candidate]:
        """Of every rule that is broken at the least depth the first candidate; the least of all first."""
        depth = min((candidate.depth for candidate in self._all), default=0)
        by_rule: dict[str, Candidate] = {}
        for candidate in sorted(self._all):
            if candidate.depth == depth:
                by_rule.setdefault(candidate.rule, candidate)
        return list(by_rule.values())

    def example(self, model: Model[Any], trail: Trail, candidate: Candidate) -> Counterexample | None:
        """The counterexample, gone through once more; None if it did not come out the same."""
        if candidate.parent < 0:
            initial, events, state = candidate.place, list[Event](), list(model.initial())[candidate.place]
        else:
            initial, events, state = trail.story(model, candidate.parent)
            event = model.events(state)[candidate.place]
            taken = model.take(state, event)
            events.append(event)
            state = taken.state
            if candidate.kind == TRANSITION and (candidate.rule, candidate.found) not in taken.broken:
                return None
        if candidate.kind == STATE and (candidate.rule, candidate.found) not in model.judge(state).broken:
            return None
        if candidate.kind == DEADLOCK and (model.events(state) or model.is_quiescent(state)):
            return None
        return Counterexample(candidate.rule, candidate.found, KINDS[candidate.kind], initial, tuple(events))

    def to_json(self) -> list[list[Any]]:
        """All of it, for a checkpoint."""
        return [list(candidate) for candidate in self._all]

    def restore(self, saved: Sequence[Sequence[Any]]) -> None:
        """Take what `to_json` told."""
        self._all = [Candidate(*values) for values in saved]


def _met(trail: Trail, state: int) -> tuple[int, int]:
    parent = trail.parents[state]
    return (-1 if parent == NO_PARENT else parent), trail.indices[state]
