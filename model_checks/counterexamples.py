"""Counterexamples gone through again: does what broke a rule once still break it?

As a script, `python -m tenure.model_checks.counterexamples FILE` goes through a file over whatever core is there and
prints what came of it as JSON.
"""

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from subprocess import run
from typing import Any, ClassVar, Final

from tenure.core.errors.base import ContractError
from tenure.core.errors.base import Scope as Damage
from tenure.model_checks.explorer import Limits, ModelError, check_progress, explore
from tenure.model_checks.model import Event, Model, Owed
from tenure.model_checks.mutants.mutant import Mutant, command_with
from tenure.model_checks.scopes import scope_named
from tenure.model_checks.stories import Story, Told, load, parse

__all__ = ["Outcome", "PlantedReplayError", "Replayed", "load", "parse", "replay", "replay_file"]

SEARCH_LIMITS: Final = Limits(states=200_000, seconds=60)
"""How far is looked from where a story cannot go on as told."""


class Outcome(Enum):
    """What came of going through a counterexample again."""

    BROKEN = "BROKEN"
    MENDED = "MENDED"
    UNKNOWN = "UNKNOWN"

    @property
    def exit_code(self) -> int:
        """0 where it is mended, 1 where a rule is broken, 3 where that is not known."""
        return {"MENDED": 0, "BROKEN": 1, "UNKNOWN": 3}[self.value]


@dataclass(frozen=True, slots=True)
class Replayed:
    """What came of it.

    Attributes:
        rule: the rule that is broken; empty if none is.
        how: what was found, in words.
        events: how many events of the story went as told.
    """

    outcome: Outcome
    rule: str
    how: str
    events: int

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return {"outcome": self.outcome.value, "rule": self.rule, "how": self.how, "events": self.events}


def replay(story: Story, model: Model[Any] | None = None, limits: Limits = SEARCH_LIMITS) -> Replayed:
    """Go through the events again, and say whether a rule breaks.

    A core that was mended may answer otherwise, and then the story cannot go on as told. From there everything that
    may follow is searched: it is mended if that breaks nothing, and unknown if the search has to end early.

    Raises:
        UnknownScopeError: there is no such scope any more.
    """
    model = scope_named(story.scope).make() if model is None else model
    if story.by == "progress":
        return _replay_progress(story, model, limits)
    states = list(model.initial())
    if story.initial >= len(states):
        return Replayed(Outcome.UNKNOWN, "", f"the model has no initial state {story.initial} any more", 0)
    state = states[story.initial]
    for number, told in enumerate(story.events):
        try:
            event = _event(model, state, told)
            if event is None:
                return _search_on(model, state, told, number, limits)
            taken = model.take(state, event)
            # What broke on the way may leave a state of which nothing more can be asked.
            judged = () if taken.broken or taken.state is None else model.judge(taken.state).broken
        except Exception as error:
            how = f"event {number + 1}, {told.text!r}: the model raised {type(error).__name__}: {error}"
            return Replayed(Outcome.UNKNOWN, "", how, number)
        broken = sorted((*taken.broken, *judged), key=lambda each: each.rule != story.rule)
        if broken:
            return Replayed(Outcome.BROKEN, broken[0].rule, broken[0].found, number + 1)
        state = taken.state
    if story.by == "deadlock" and not model.events(state) and not model.is_quiescent(state):
        return Replayed(Outcome.BROKEN, story.rule, story.found, len(story.events))
    return Replayed(Outcome.MENDED, "", "the story goes on to its end, and breaks no rule", len(story.events))


def _event(model: Model[Any], state: Any, told: Told) -> Event | None:
    """The event of the model that is told; None if it cannot happen."""
    return next((event for event in model.events(state) if list(event) == told.event), None)


def _search_on(model: Model[Any], state: Any, told: Told, number: int, limits: Limits) -> Replayed:
    """Look at everything that may follow."""
    before = f"event {number + 1}, {told.text!r}, cannot happen there any more"
    try:
        search = explore(_From(model, state), limits=limits)
    except ModelError as error:
        return Replayed(Outcome.UNKNOWN, "", f"{before}, and then: {error}", number)
    if search.broken:
        first = search.broken[0]
        how = f"{first.found} ({before}, and {first.depth} other events break the rule)"
        return Replayed(Outcome.BROKEN, first.rule, how, number)
    if not search.finished:
        why = search.cut or "the model does not always say the same"
        return Replayed(Outcome.UNKNOWN, "", f"{before}, and the search from there ended early: {why}", number)
    how = f"{before}, and none of the {search.distinct} states that follow breaks a rule"
    return Replayed(Outcome.MENDED, "", how, number)


def _replay_progress(story: Story, model: Model[Any], limits: Limits) -> Replayed:
    """Progress is a matter of the whole graph."""
    search = explore(model, limits=limits, keep_graph=True)
    broken = search.broken or (check_progress(model, search).broken if search.graph is not None else ())
    if broken:
        first = min(broken, key=lambda each: each.rule != story.rule)
        return Replayed(Outcome.BROKEN, first.rule, first.found, first.depth)
    if not search.finished:
        return Replayed(Outcome.UNKNOWN, "", f"the search ended early: {search.cut}", 0)
    return Replayed(Outcome.MENDED, "", f"progress holds in all {search.distinct} states", 0)


class _From:
    """A model that begins where another has got to."""

    def __init__(self, model: Model[Any], state: Any) -> None:
        self._state = state
        self.events = model.events
        self.take = model.take
        self.encode = model.encode
        self.judge = model.judge
        self.is_quiescent = model.is_quiescent
        self.fairness = model.fairness
        self.describe = model.describe
        self.pack = model.pack
        self.unpack = model.unpack

    def initial(self) -> list[Any]:
        """There."""
        return [self._state]

    def owed(self, state: Any) -> frozenset[Owed]:
        """Nothing: progress is looked at from the beginning only."""
        del state
        return frozenset()


def replay_file(file: Path, mutant: Mutant | None = None) -> Replayed:
    """Go through a file again; with a planted fault, in a fresh process.

    Raises:
        CounterexampleFileError: it is no counterexample.
        UnknownScopeError: there is no such scope any more.
        PlantedReplayError: the fault could not be planted.
    """
    story = load(file)
    if mutant is None:
        return replay(story)
    # The command is this very interpreter and a file of this package.
    ended = run(command_with(mutant, __spec__.name, str(file)), capture_output=True, text=True, check=False)  # noqa: S603
    try:
        said = json.loads(ended.stdout)
        return Replayed(Outcome(said["outcome"]), said["rule"], said["how"], said["events"])
    except (ValueError, KeyError):
        raise PlantedReplayError(mutant.id, _last_line(ended.stderr)) from None


@dataclass(eq=False)
class PlantedReplayError(ContractError):
    """A process with a planted fault came to nothing."""

    scope: ClassVar[Damage] = Damage.REQUEST
    mutant: str
    found: str

    def sentence(self) -> str:
        """The message."""
        return f"with {self.mutant} planted: {self.found}"


def _last_line(text: str) -> str:
    lines = text.strip().splitlines()
    return lines[-1] if lines else "the process said nothing"


def main(arguments: Sequence[str]) -> None:
    """Go through a file over the core that is there, and print what came of it."""
    (file,) = arguments
    json.dump(replay(load(Path(file))).to_json(), sys.stdout)


if __name__ == "__main__":
    main(sys.argv[1:])
