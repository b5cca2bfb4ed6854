"""Whatever interrupts a transition of the row machine, wherever: the state is as it was."""

from collections.abc import Callable

import pytest

from tenure.core.arrays import integers
from tenure.core.config import RowPolicy
from tenure.core.rows.commands import CopyDeferred, CopyPage, ScatterRows
from tenure.core.rows.events import (
    ConsumeRequested,
    CopyBegan,
    CopyCompleted,
    Finished,
    GatherBegan,
    ResetRequested,
    RowEvent,
    SaveCancelled,
    SavePublished,
    SaveRequested,
    ScatterCompleted,
    Started,
    StepConsumed,
    StepDiscarded,
    StepDropped,
    StepStarted,
    WriteFailed,
    WriteLayout,
)
from tenure.core.rows.machine import transition
from tenure.core.rows.names import HIDDEN, Output
from tests.interrupts import interrupted_at
from tests.rows.scene import Scene, extended, started

POLICY = RowPolicy(immediate=frozenset({"m"}), deferred=frozenset({"c"}), infer=False)


def prepared() -> Scene:
    """Writes, reads and steps in many phases; step 4 of x and y waits to be saved."""
    scene = Scene(30, 4, POLICY, pages=4, budget_bytes=10_000)
    scene.step(started("a", 4), started("x", 0), batch={"a": (0, 1, 2, 3)}, h=[1] * 4, m=[2] * 4, c=[3] * 4)
    scene.drain()
    scene.step(Finished("a"), started("b", 4, 0), batch={"b": (4, 5, 6, 7)}, h=[1] * 4, m=[2] * 4, c=[3] * 4)
    scene.run(CopyPage, ScatterRows)
    scene.step(extended(x=4, b=1), batch={"x": (8, 9, 10, 11), "b": (12,)}, h=[1] * 5, c=[3] * 5)
    scene.run(CopyPage, ScatterRows, CopyDeferred)
    scene.start(extended(x=4), started("y", 4, 0, 1, 2))
    return scene


OUTPUTS = (Output(HIDDEN, (8, 1), "float32"), Output("m", (8, 1), "float32"), Output("c", (8, 1), "float32"))
SAVE = SaveRequested(WriteLayout(("x", "y"), integers([4, 4]), integers([*range(4), *range(16, 20)])), OUTPUTS)


def reserved(scene: Scene) -> None:
    """The save of step 4 is reserved."""
    scene.tell(SAVE, {each.name: [0] * 8 for each in OUTPUTS})


def published(scene: Scene) -> None:
    """Step 4 is saved."""
    reserved(scene)
    scene.publish()


def planned(scene: Scene) -> None:
    """A materialize of step 2 is under way."""
    scene.plan(2, "b")


def failed(scene: Scene) -> None:
    """Step 4 is saved, and its write failed."""
    published(scene)
    scene.fail(CopyPage)


def as_is(_: Scene) -> None:
    """Nothing more."""


Maker = Callable[[Scene], RowEvent]
CASES: list[tuple[Callable[[Scene], None], Maker]] = [
    (as_is, lambda scene: SAVE),
    (reserved, lambda scene: SavePublished(4)),
    (reserved, lambda scene: SaveCancelled(4)),
    (as_is, lambda scene: StepDropped(integers([0, 1, 16]))),
    (published, lambda scene: CopyBegan(max(scene.view.steps[4].write or 0, 0))),
    (published, lambda scene: WriteFailed(max(scene.view.steps[4].write or 0, 0))),
    (published, lambda scene: StepStarted((Finished("x"), Finished("b"), Started("z", 2, 4, ((0,),))))),
    (published, lambda scene: GatherBegan(max(scene.view.reads))),
    (as_is, lambda scene: ConsumeRequested(2, ("b",))),
    (planned, lambda scene: StepConsumed(2)),
    (as_is, lambda scene: StepDiscarded(2)),
    (failed, lambda scene: ResetRequested()),
]


@pytest.mark.parametrize(("prepare", "make"), CASES)
def test_r15_interrupted_transition_changes_nothing(prepare: Callable[[Scene], None], make: Maker) -> None:
    """An interrupt between any two lines leaves the state equal, and the event can be told again."""
    scene = prepared()
    prepare(scene)
    state = scene.state.journaled
    key = state.key()
    event = make(scene)
    line = 0
    while True:
        line += 1
        if not interrupted_at(line, lambda: transition(state, event)):
            break
        assert key == state.key()

    assert line > 10
    assert key == state.key()
    assert transition(state, event).state == transition(scene.state.copying, event).state


def test_r15_interrupted_completions_change_nothing() -> None:
    """The same of what a device answers, one after the other."""
    scene = prepared()
    published(scene)
    write = scene.view.steps[4].write or 0
    state = transition(scene.state.journaled, CopyBegan(write)).state
    for event in (CopyCompleted(write), ScatterCompleted(write)):
        key = state.key()
        line = 1
        while interrupted_at(line, lambda: transition(state, event)):  # noqa: B023 - called at once
            assert key == state.key()
            line += 1
        state = transition(state, event).state
        assert key != state.key()
