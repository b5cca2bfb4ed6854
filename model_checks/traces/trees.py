"""The shortest way to every edge of a scope, and what a machine says on it: what a faulty machine is compared with.

A tree is written by a process with the machine as it is, and gone through by one with a fault planted.
"""

import json
import random
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from tenure.backends.conformance.traces import Told
from tenure.core.config import RowConfig
from tenure.core.errors import TenureError
from tenure.core.rows.events import PolicyRegistered, RowEvent
from tenure.core.rows.machine import transition
from tenure.core.rows.state import RowState
from tenure.core.schemas import from_json, to_json
from tenure.model_checks.rows.plans import POLICY
from tenure.model_checks.traces.graph import AnswersModel, Edge, Node

ROOT: Final = -1
LENGTH_MAX: Final = 100
"""Edges of a walk, on average."""


class Branch(NamedTuple):
    """One edge.

    Attributes:
        parent: the branch that led to its node; `ROOT` for none.
        told: what the machine is told.
        said: what it says to each, in a word that differs where that does.
    """

    parent: int
    told: tuple[RowEvent, ...]
    said: tuple[str, ...]


def first_state(config: RowConfig) -> RowState:
    """Only the policy was told."""
    return transition(RowState.initial(config, copying=True), PolicyRegistered(POLICY)).state


def tell(state: RowState, event: RowEvent) -> tuple[RowState, str]:
    """The next state, and what the machine says."""
    try:
        after = transition(state, event)
    except TenureError as error:
        return state, type(error).__name__
    except Exception as error:
        return state, f"crashed: {type(error).__name__}"
    return after.state, repr((after.answer, after.commands))


def tell_all(state: RowState, told: Sequence[RowEvent]) -> tuple[RowState, tuple[str, ...]]:
    """Several, one after the other."""
    said: list[str] = []
    for event in told:
        state, words = tell(state, event)
        said.append(words)
    return state, tuple(said)


def as_told(config: RowConfig, events: Iterable[tuple[int, RowEvent]]) -> tuple[Told, ...]:
    """Edges and the events that take them, each with what the machine refuses it with on this way."""
    state = first_state(config)
    told: list[Told] = []
    for edge, event in events:
        refused = ""
        try:
            state = transition(state, event).state
        except TenureError as error:
            refused = type(error).__name__
        told.append(Told(edge, event, refused))
    return tuple(told)


def branches_of(model: AnswersModel, config: RowConfig, nodes_max: int) -> Iterator[Branch]:
    """Every edge of the nodes that come first, breadth first."""
    first = model.first()
    waiting = deque([(first, ROOT, first_state(config))])
    seen = {first}
    number = 0
    while waiting:
        node, parent, state = waiting.popleft()
        for told, target in model.edges(node):
            after, said = tell_all(state, told)
            yield Branch(parent, told, said)
            if target not in seen and len(seen) < nodes_max:
                seen.add(target)
                waiting.append((target, number, after))
            number += 1


def walks_of(model: AnswersModel, config: RowConfig, count: int) -> list[Branch]:
    """Seeded walks to the end, none of which is led together with another; those edges first that come soonest.

    What a machine has forgotten that it was told twice, only the way there tells.
    """
    first, chosen = (model.first(), ROOT, first_state(config)), random.Random(0)  # noqa: S311 - a way is no secret
    known: dict[Node, list[Edge]] = {}
    branches: list[Branch] = []
    at = [first] * count
    while at:
        further: list[tuple[Node, int, RowState]] = []
        for node, parent, state in at:
            if node not in known:
                known[node] = list(model.edges(node))
            if known[node]:
                told, target = chosen.choice(known[node])
                after, said = tell_all(state, told)
                further.append((target, len(branches), after))
                branches.append(Branch(parent, told, said))
        at = further if len(branches) < count * LENGTH_MAX else []
    return branches


def way_to(branches: Sequence[Branch], number: int) -> list[RowEvent]:
    """All that is told on the way to the end of a branch."""
    events: list[RowEvent] = []
    while number != ROOT:
        branch = branches[number]
        events = [*branch.told, *events]
        number = branch.parent
    return events


def save(branches: Sequence[Branch], config: RowConfig, target: Path) -> None:
    """Write a tree."""
    events: dict[str, int] = {}
    texts: dict[int, str] = {}

    def number(event: RowEvent) -> int:
        text = texts.get(id(event)) or texts.setdefault(id(event), to_json(event))
        return events.setdefault(text, len(events))

    lines = [[each.parent, [number(event) for event in each.told], each.said] for each in branches]
    whole = {"config": config.model_dump(mode="json"), "events": [*events], "branches": lines}
    target.write_text(json.dumps(whole), encoding="utf-8")


def load(source: Path) -> tuple[list[Branch], RowConfig]:
    """Read one."""
    whole: dict[str, Any] = json.loads(source.read_text(encoding="utf-8"))
    events: list[Any] = [from_json(each) for each in whole["events"]]
    branches = [
        Branch(parent, tuple(events[each] for each in told), tuple(said)) for parent, told, said in whole["branches"]
    ]
    return branches, RowConfig.model_validate(whole["config"])
