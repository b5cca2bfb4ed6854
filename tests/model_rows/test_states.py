"""States of the model are told apart by what may still happen, whatever they were called on the way."""

import os
import random
import subprocess
import sys
from typing import Any, cast

import pytest

from tenure.core.rows.commands import ReleaseBuffers, RowCommand
from tenure.core.rows.machine import transition
from tenure.core.rows.state import RowState
from tenure.model_checks.explorer import explore
from tenure.model_checks.rows.cores import renamed, renumbered
from tenure.model_checks.rows.stage import State
from tests.model_rows.runs import rows_model, scope_named, wander

HISTORIES = ("delayed-read", "rows-of-several-sources", "one-write-a-request", "byte-budget", "failed-read")


def shape(commands: tuple[RowCommand, ...], numbers: dict[int, int], first: int) -> list[tuple[object, ...]]:
    """What commands say, under the machine's old numbers; new commands by their place."""
    back = {new: old for old, new in numbers.items()} | {
        first + place: f"new {place}" for place in range(len(commands))
    }
    return [
        (type(each).__name__, back[each.command], *sorted(str(back[number]) for number in each.after))
        for each in commands
    ]


@pytest.mark.parametrize("name", HISTORIES)
def test_r17_numbers_of_commands_say_nothing_but_who_is_behind_whom(name: str) -> None:
    """Or two states that the search takes for one could lead to different things."""
    model = rows_model(name)
    told: list[tuple[RowState, Any]] = []
    for state, event, _ in wander(model, seed=1, steps=400):
        core: RowState = model.cores.all[int(state.core)].state
        told += [(core, each) for each in model.core_events(state, event)]
    compared = 0
    for state, event in told:
        top = state.tables.next_command
        shuffled = random.Random(compared).sample(range(1, top), top - 1)  # noqa: S311
        numbers = {old: new + 3 for old, new in zip(range(1, top), shuffled, strict=True)}
        other = renamed(state, numbers)
        try:
            plain = transition(state, event)
        except Exception as refusal:
            with pytest.raises(type(refusal)):
                transition(other, event)
            continue
        twin = transition(other, event)
        compared += top > 2

        assert renumbered(plain.state)[0] == renumbered(twin.state)[0]
        assert plain.answer == twin.answer
        same = {number: number for number in range(1, top)}
        assert shape(plain.commands, same, top) == shape(twin.commands, numbers, other.tables.next_command)
    assert compared > 20


def test_what_is_remembered_of_a_transition_is_what_the_machine_says() -> None:
    """A search that remembered wrongly would prove something of no machine at all."""
    model = rows_model("rows-of-several-sources")
    seen = 0
    for state, event, taken in wander(model, seed=2, steps=600):
        told = model.core_events(state, event)
        after = taken.state
        assert isinstance(after, State)
        fresh: RowState = model.cores.all[int(state.core)].state
        for each in told:
            fresh = transition(fresh, cast("Any", each)).state
        seen += bool(told)

        assert renumbered(fresh)[0] == renumbered(model.cores.all[after.core].state)[0]
    assert seen > 100


COUNT = """
import hashlib
from tenure.model_checks.rows.scopes import SCOPES
model = next(scope for scope in SCOPES if scope.name == "rows/delayed-read").make()
front, seen = list(model.initial()), set()
while front:
    state = front.pop()
    key = model.encode(state)
    if key not in seen:
        seen.add(key)
        front += [model.take(state, event).state for event in model.events(state)]
print(len(seen), hashlib.sha256(b"".join(sorted(seen))).hexdigest())
"""


def test_encoded_states_are_the_same_in_every_process() -> None:
    """Workers compare them, and a checkpoint is read by another process."""
    said = {
        subprocess.run(
            [sys.executable, "-c", COUNT],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }

    assert 1 == len(said)
    assert int(said.pop().split()[0]) > 300


def test_two_workers_count_what_one_counts() -> None:
    """States travel between processes, and what each remembers is its own."""
    one, two = (explore(scope_named("same-step-hit").make(), workers=workers) for workers in (1, 2))

    assert one.counts() == two.counts()
    assert one.mark_names() == two.mark_names()
    assert one.distinct > 500


def test_releases_are_commands_that_leave_no_trace() -> None:
    """A buffer is freed as soon as it may be, so that when it happens doubles no state."""
    model = rows_model("delayed-read")
    released = 0
    for _, _, taken in wander(model, seed=3, steps=800):
        state = taken.state
        assert isinstance(state, State)
        waiting = [op for op in state.ghost.ops if op.work.kind == ReleaseBuffers.__name__]
        released += len(waiting)

        assert all(op.behind for op in waiting)
    assert released >= 0
