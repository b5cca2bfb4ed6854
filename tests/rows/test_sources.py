"""Where the rows of a hit come from, what a read leaves behind, and what errors, counters and views say of it."""

from typing import Any

import numpy as np
import pytest

from tenure.core.arrays import integers
from tenure.core.config import RowPolicy
from tenure.core.errors import ReadFailedError, RequestNamedTwiceError, StepNotStartedError
from tenure.core.rows.answers import SaveReserved, Waiting
from tenure.core.rows.commands import (
    CopyDeferred,
    CopyPage,
    FreezeRows,
    GatherRows,
    PreserveRows,
    ScatterRows,
    SourceKind,
)
from tenure.core.rows.events import (
    ConsumeRequested,
    Extended,
    Finished,
    GatherFailed,
    SaveCancelled,
    Started,
    StepDiscarded,
    StepDropped,
    WaitedFor,
)
from tenure.core.rows.view import Occupancy, ReadPhase
from tests.rows.scene import COPIES, Scene, extended, started
from tests.rows.test_cases_a import FIRST, SECOND, THIRD, written

DEFERRED_ONLY = RowPolicy(hidden=False, deferred=frozenset({"c"}), infer=False)


# --- Sources --------------------------------------------------------------------------------------------------


def test_r20_hit_on_the_host_rows_of_two_writes_finds_each_row_in_its_own() -> None:
    """Chunks that came second in their batches: their rows stand elsewhere in the host rows than in the batch."""
    scene = Scene(num_blocks=16, pages=4, policy=DEFERRED_ONLY)
    scene.step(Started("x", 2), Started("a", 1), batch={"x": (40, 41), "a": (0,)}, c=[90, 91, 1])
    scene.step(extended(x=3, a=3), Started("b", 4), batch={"x": (42, 43, 44), "a": (1, 2, 3), "b": SECOND}, c=range(10))
    scene.drain()
    scene.start(Finished("a"), Finished("b"))
    scene.run(CopyDeferred)
    step = scene.step(started("d", 1, 0, 1), batch={"d": (8,)}, c=[7])
    (gather,) = _gathers(scene, step, "d", "c")
    (part,) = gather.parts

    assert SourceKind.HOST is part.kind
    assert 2 == len(set(part.sources.tolist()))
    assert [1, *range(3, 10), 7] == scene.materialize(step, "d")["c"]["d"]


def _gathers(scene: Scene, step: int, request: str, name: str) -> list[GatherRows]:
    """A backend takes up the read of a step; its command."""
    read = scene.read_of(step, request, name)
    scene.begin_gather(read)
    return [each for each in scene.commands.values() if isinstance(each, GatherRows) and each.read == read]


def test_r13_rows_that_were_set_aside_are_found_by_their_place_in_the_hit() -> None:
    """They are no longer where they were in the pool: here in the second block."""
    scene = Scene(pages=5)
    written(scene, "a", SECOND, h=[1, 2, 3, 4])
    step = scene.step(started("b", 1, 1), batch={"b": (8,)}, h=[9])
    scene.run(CopyPage, ScatterRows)
    scene.step(Started("x", 2), batch={"x": (5, 6)}, h=[50, 60])
    scene.run(CopyPage, ScatterRows, PreserveRows)
    (gather,) = _gathers(scene, step, "b", "h")
    aside = next(part for part in gather.parts if part.kind is SourceKind.PRESERVED)

    assert [1, 2] == aside.source_rows.tolist()
    assert [1, 2, 3, 4, 9] == scene.materialize(step, "b")["h"]["b"]


def test_r13_scatter_of_deferred_rows_waits_for_the_gather_that_reads_what_it_overwrites() -> None:
    """A running read of the pool rows of the tenant before."""
    scene = Scene(pages=5, policy=DEFERRED_ONLY)
    written(scene, "a", FIRST, c=[1, 2, 3, 4])
    step = scene.step(started("b", 1, 0), batch={"b": (8,)}, c=[9])
    scene.run(CopyPage)
    (gather,) = _gathers(scene, step, "b", "c")
    scene.step(Started("x", 1), batch={"x": (0,)}, c=[50])
    scene.start(Finished("x"))
    scene.run(*COPIES)
    (scatter,) = (each for each in scene.device.open if isinstance(each, ScatterRows))

    assert (gather.command,) == scatter.after
    assert [1, 2, 3, 4, 9] == scene.materialize(step, "b")["c"]["b"]


def test_r13_scatter_waits_for_the_gather_of_what_any_of_its_chunks_overwrites() -> None:
    """Not the first of its steps alone."""
    scene = Scene(pages=5, policy=DEFERRED_ONLY)
    written(scene, "a", FIRST, c=[1, 2, 3, 4])
    step = scene.step(started("b", 1, 0), batch={"b": (8,)}, c=[9])
    scene.run(CopyPage)
    (gather,) = _gathers(scene, step, "b", "c")
    scene.step(Started("x", 1), batch={"x": (12,)}, c=[50])
    scene.run(CopyPage)
    scene.step(extended(x=1), batch={"x": (0,)}, c=[51])
    scene.start(Finished("x"))
    scene.run(*COPIES)
    (scatter,) = (each for each in scene.device.open if isinstance(each, ScatterRows))

    assert (gather.command,) == scatter.after
    assert [1, 2, 3, 4, 9] == scene.materialize(step, "b")["c"]["b"]


def test_r16_write_moves_the_names_of_all_its_chunks() -> None:
    """Each step of it emitted another."""
    scene = Scene(pages=5, policy=RowPolicy(hidden=False, deferred=frozenset({"c", "d"}), infer=False))
    scene.step(Started("a", 2), batch={"a": (0, 1)}, c=[1, 2])
    scene.step(extended(a=2), batch={"a": (2, 3)}, d=[3, 4])
    scene.start(Finished("a"))
    (copy,) = (each for each in scene.commands.values() if isinstance(each, CopyDeferred))
    scene.drain()
    step = scene.step(started("b", 1, 0), batch={"b": (4,)}, c=[5], d=[6])
    found = scene.materialize(step, "b")

    assert ["c", "d"] == [each.name for each in copy.formats]
    assert [1, 2, (0,), (0,), 5] == found["c"]["b"]
    assert [(0,), (0,), 3, 4, 6] == found["d"]["b"]


def over_two_clones() -> tuple[Scene, int, GatherRows]:
    """A gather of rows of two steps of one deferred write, and the second step, whose freeze may still run."""
    scene = Scene(policy=DEFERRED_ONLY)
    scene.step(Started("a", 2), batch={"a": (0, 1)}, c=[1, 2])
    scene.run(CopyPage)
    second = scene.step(extended(a=2), batch={"a": (2, 3)}, c=[3, 4])
    step = scene.start(started("b", 1, 0))
    (gather,) = _gathers(scene, step, "b", "c")
    return scene, second, gather


def test_r20_gather_from_clones_of_two_steps_waits_for_the_freeze_of_the_later() -> None:
    """That of the earlier has ended, and nothing else orders the gather behind it."""
    scene, second, gather = over_two_clones()
    (freeze,) = (each for each in scene.commands.values() if isinstance(each, FreezeRows) and each.step == second)
    (part,) = gather.parts

    assert SourceKind.CLONE is part.kind
    assert [1, 1, 2, 2] == part.sources.tolist()
    assert (freeze.command,) == gather.after


def test_r08_running_gather_holds_every_clone_that_it_reads() -> None:
    """Their write is copied meanwhile, and none of them is given back before the gather has ended."""
    scene, _, gather = over_two_clones()
    scene.run(CopyPage)
    scene.save({"b": (8,)}, c=[9])
    assert [2, 2] == [scene.view.clones[clone].holders for clone in (1, 2)]
    scene.start(Finished("a"))
    scene.run(*COPIES)
    assert [1, 1] == [scene.view.clones[clone].holders for clone in (1, 2)]
    scene.run(GatherRows, only=gather.read)

    assert {3} == set(scene.view.clones)
    assert [1, 2, 3, 4, 9] == scene.materialize(3, "b")["c"]["b"]


def test_r16_request_without_rows_in_a_batch_takes_no_chunk() -> None:
    """It has no write, the clone has no holder for it, and its end has nothing to copy."""
    scene = Scene(policy=DEFERRED_ONLY)
    scene.step(Started("a", 1), Started("b", 0), Started("d", 1), batch={"a": (0,), "b": (), "d": (4,)}, c=[1, 2])
    (clone,) = scene.view.clones

    assert ["a", "d"] == [each.request for each in scene.view.writes.values() if each.request is not None]
    assert 3 == scene.view.clones[clone].holders
    scene.start(Finished("b"))
    assert not [each for each in scene.commands.values() if isinstance(each, CopyDeferred)]


# --- What is left behind --------------------------------------------------------------------------------------


def with_a_dropped_hit(block: int) -> Scene:
    """Two blocks have rows; a request with a hit on one of them came, and its step was given up."""
    scene = Scene()
    written(scene, "a", FIRST, h=[1] * 4)
    written(scene, "b", SECOND, h=[2] * 4)
    scene.start(started("c", 1, block))
    assert 1 == len(scene.view.reads)
    scene.tell(StepDropped(integers([8])))
    scene.drain()
    return scene


def test_r17_r23_dropped_read_leaves_no_trace_of_the_slots_it_wanted() -> None:
    """Whatever it would have read, the states behind it are the same."""
    first, second = with_a_dropped_hit(0), with_a_dropped_hit(1)

    assert first.view == second.view
    assert first.state == second.state


def test_r13_end_of_one_read_leaves_another_of_the_same_rows_protected() -> None:
    """Both planned; one is dropped; the next tenant still sets the rows aside for the other."""
    scene = Scene(pages=5)
    written(scene, "a", FIRST, h=[1, 2, 3, 4])
    arrivals = started("b", 1, 0), started("c", 1, 0)
    step = scene.step(*arrivals, batch={"b": (8,), "c": (12,)}, h=[9, 10])
    scene.run(CopyPage, ScatterRows)
    scene.tell(GatherFailed(scene.read_of(step, "b", "h")))
    scene.step(Started("x", 4), batch={"x": FIRST}, h=[50] * 4)
    scene.run(CopyPage, ScatterRows, PreserveRows)

    assert [50] * 4 == scene.pool("h", *FIRST)
    assert [1, 2, 3, 4, 10] == scene.materialize(step, "c")["h"]["c"]


def after_a_cancelled_save(name: str) -> Scene:
    """A save with rows of one more name was reserved, and its freeze failed."""
    scene = Scene()
    scene.start(Started("a", 1))
    rows: dict[str, Any] = {"h": [1], name: [2]}
    assert isinstance(scene.request_save({"a": (0,)}, **rows), SaveReserved)
    (freeze,) = (each for each in scene.device.open if isinstance(each, FreezeRows))
    scene.device.fail(freeze.command)
    event = scene.device.tell(freeze.command)
    assert isinstance(event, SaveCancelled)
    scene.tell(event)
    return scene


def test_r08_r17_cancelled_save_leaves_nothing_of_what_it_would_have_saved() -> None:
    """A step whose save was to have other names is the same started step."""
    assert after_a_cancelled_save("m").state == after_a_cancelled_save("k").state


@pytest.mark.parametrize("failing", [0, 1])
def test_r12_running_read_is_left_whichever_of_its_writes_fails(failing: int) -> None:
    """It may have read what is lost: its step has no read of these rows any more."""
    scene = Scene(block_size=1, policy=DEFERRED_ONLY)
    scene.step(Started("a", 1), Started("d", 1), batch={"a": (0,), "d": (1,)}, c=[1, 2])
    scene.run(CopyPage)
    writes = [number for number, each in scene.view.writes.items() if each.request is not None]
    step = scene.start(Finished("a"), Finished("d"), started("b", 1, 0, 1, block_size=1))
    (gather,) = _gathers(scene, step, "b", "c")
    for write in writes[:failing]:
        scene.run(CopyDeferred, only=write)
    scene.fail(CopyDeferred, only=writes[failing])

    assert ReadPhase.LEFT is scene.view.reads[gather.read].phase
    assert not scene.view.steps[step].reads


# --- What is said ---------------------------------------------------------------------------------------------


def test_r15_error_names_the_request_that_was_named_twice() -> None:
    """Not one that stands beside it."""
    scene = Scene()
    scene.start(Started("once", 0), Started("twice", 0))
    with pytest.raises(RequestNamedTwiceError, match="'twice' is named twice in one start"):
        scene.start(Extended(("once", "twice", "twice"), integers([1, 1, 1])))
    step = scene.step(extended(once=1, twice=1), batch={"once": (0,), "twice": (4,)}, h=[1, 2])

    with pytest.raises(RequestNamedTwiceError, match="'twice' is named twice in one materialize"):
        scene.tell(ConsumeRequested(step, ("once", "twice", "twice")))


def test_r14_materialize_says_why_its_read_failed() -> None:
    """In the words of the backend."""
    scene = Scene()
    written(scene, "a", FIRST, h=[1] * 4)
    step = scene.step(started("b", 1, 0), batch={"b": (4,)}, h=[2])
    scene.tell(GatherFailed(scene.read_of(step, "b", "h"), "the bus is gone"))

    with pytest.raises(ReadFailedError, match="the bus is gone"):
        scene.tell(ConsumeRequested(step, ("b",)))


def test_r22_drop_and_save_without_a_step_are_refused_by_their_names() -> None:
    """Whoever calls both knows which one it was."""
    scene = Scene()
    with pytest.raises(StepNotStartedError, match=r"^drop_step: "):
        scene.tell(StepDropped(integers([])))
    with pytest.raises(StepNotStartedError, match=r"^save: "):
        scene.request_save({"a": (0,)}, h=[1])


def test_r08_every_write_that_the_budget_queues_is_counted() -> None:
    """One flush of a clone with the rows of two requests is two."""
    scene = Scene(budget_bytes=16, policy=DEFERRED_ONLY)
    scene.step(Started("a", 1), Started("b", 2), batch={"a": (0,), "b": (4, 5)}, c=[1, 2, 3])
    scene.drain()
    scene.start(extended(a=2))
    assert Waiting(WaitedFor(clone=1)) == scene.request_save({"a": (1, 2)}, c=[4, 5])

    assert 2 == scene.view.counters.flushes


def test_r03_name_that_no_step_emitted_is_absent_everywhere() -> None:
    """Also before there is any claim at all."""
    scene = Scene()

    assert [Occupancy.ABSENT] * 2 == scene.occupancy("never", 0, 31)
    assert 0 == scene.view.effective("never", 0)


def test_arrays_of_commands_are_read_only_whole_numbers_of_64_bits() -> None:
    """Backends index by them, and hand them to devices; Scene looks at those of every other test, too."""
    scene = Scene(num_blocks=16, pages=4)
    values: Any = np.zeros(2)
    with pytest.raises(AssertionError):
        scene.check_arrays(values)
    scene.step(Started("a", 4), batch={"a": FIRST}, h=range(4), c=range(4))
    scene.start(Finished("a"))
    scene.drain()
    step = scene.step(started("b", 1, 0), batch={"b": THIRD[:1]}, h=[1], c=[2])
    scene.drain()
    scene.tell(StepDiscarded(step))
