"""Part A of the collection of public bug reports: each ends as it must. A rows pool of 8 blocks of 4 slots."""

from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from tenure.core.config import RowConfig, RowPolicy
from tenure.core.errors import (
    HitNotAlignedError,
    PageExhaustedError,
    PoolExhaustedError,
    ReplacementUnsupportedError,
    RequestOutsideSnapshotError,
    StepAlreadyConsumedError,
    UnknownStepError,
    UnreadableHitError,
    WriteFailedError,
)
from tenure.core.rows.answers import ResetAnswered, Waiting
from tenure.core.rows.commands import CopyDeferred, CopyPage, PreserveRows, ScatterRows
from tenure.core.rows.events import (
    Aborted,
    ConsumeRequested,
    Finished,
    Replaced,
    ResetRequested,
    Resumed,
    Started,
    StepDiscarded,
    WaitedFor,
    WaitTimedOut,
)
from tenure.core.rows.names import HIDDEN
from tenure.core.rows.view import Occupancy, ReadPhase, WritePhase
from tests.rows.scene import COPIES, Scene, extended, started

FIRST, SECOND, THIRD = (0, 1, 2, 3), (4, 5, 6, 7), (8, 9, 10, 11)
ABSENT, IN_TRANSIT, COMMITTED = Occupancy.ABSENT, Occupancy.IN_TRANSIT, Occupancy.COMMITTED


def written(scene: Scene, request: str, slots: tuple[int, ...], *, finish: bool = True, **rows: Any) -> int:
    """A request computed these slots, and everything of it landed; its step is discarded."""
    step = scene.step(started(request, len(slots)), batch={request: slots}, **rows)
    scene.drain()
    scene.tell(StepDiscarded(step))
    if finish:
        scene.start(Finished(request))
        scene.drain()
    return step


def test_r02_a01_same_step_hit_is_planned_anew_after_the_save() -> None:
    """The early gather took the previous tenant's rows; served, they are another tenant's hidden states."""
    scene = Scene()
    written(scene, "z", FIRST, h=[9, 9, 9, 9])

    scene.start(started("a", 4), started("b", 4, 0))
    early = scene.read_of(2, "b", HIDDEN)
    scene.drain()
    step = scene.save({"a": FIRST, "b": SECOND}, h=[1, 2, 3, 4, 5, 6, 7, 8], m=[11, 12, 13, 14, 15, 16, 17, 18])

    assert early not in scene.view.reads
    assert (1, 1) == (scene.view.counters.reads_replanned, scene.view.counters.reads_dropped)
    assert scene.view.counters.rows_preserved == 0
    found = scene.materialize(step, "a", "b")
    assert [1, 2, 3, 4, 5, 6, 7, 8] == found["h"]["b"]
    assert [11, 12, 13, 14, 15, 16, 17, 18] == found["m"]["b"]


def test_r03_a02_same_step_hit_waits_for_the_write_and_later_hits_do_not() -> None:
    """Rows land after the step; a merge before that returned zeros."""
    scene = Scene()
    first = scene.step(started("a", 4), started("b", 4, 0), batch={"a": FIRST, "b": SECOND}, h=[1, 2, 3, 4, 5, 6, 7, 8])
    (copy,) = (command for command in scene.commands.values() if isinstance(command, CopyPage))
    scene.tell(scene.device.tell(copy.command))
    waiting = scene.plan(first, "b", wait=False)

    assert isinstance(waiting, Waiting)
    assert [WritePhase.COPYING] == [write.phase for write in scene.view.writes.values()]
    assert (copy.write,) == scene.view.reads[scene.read_of(first, "b", "h")].awaits
    assert [1, 2, 3, 4, 5, 6, 7, 8] == scene.materialize(first, "b")["h"]["b"]

    scene.start(started("c", 4, 0))
    second = scene.save({"c": THIRD}, h=[7, 7, 7, 7])
    assert [1, 2, 3, 4, 7, 7, 7, 7] == scene.materialize(second, "c")["h"]["c"]
    assert scene.view.counters.waits_for_in_transit == 1


def delayed_read(scene: Scene) -> tuple[int, int]:
    """Request r has a hit of [0, 1, 2, 3] on block 0 whose read nobody has begun; its step and read."""
    written(scene, "a", FIRST, h=[0, 1, 2, 3])
    step = scene.step(started("r", 4, 0), batch={"r": SECOND}, h=[50, 51, 52, 53])
    scene.run(CopyPage, ScatterRows)
    return step, scene.read_of(step, "r", "h")


def test_r13_a03_delayed_read_survives_reuse_of_its_block() -> None:
    """The reader silently got the newer tenant's rows once these had landed."""
    scene = Scene()
    step, read = delayed_read(scene)
    scene.step(started("b", 4), batch={"b": FIRST}, h=[99, 99, 99, 99])
    scene.run(CopyPage, ScatterRows, PreserveRows)

    assert [99, 99, 99, 99] == scene.pool("h", *FIRST)
    assert (0, 1, 2, 3) == scene.view.reads[read].preserved
    assert [0, 1, 2, 3, 50, 51, 52, 53] == scene.materialize(step, "r")["h"]["r"]
    assert not scene.device.buffers & {buffer for buffer in scene.device.buffers if buffer.kind == "aside"}


@pytest.mark.parametrize("is_live", [True, False])
def test_r13_a03_read_whose_rows_could_not_be_set_aside_is_refused(is_live: bool) -> None:
    """Without the preserved copy the pool rows are a newer tenant's: refused for live and finished requests alike."""
    scene = Scene()
    step, read = delayed_read(scene)
    scene.step(*([] if is_live else [Finished("r")]), started("b", 4), batch={"b": FIRST}, h=[99, 99, 99, 99])
    scene.fail(PreserveRows, read)
    scene.drain()

    assert scene.view.reads[read].phase is ReadPhase.FAILED
    with pytest.raises(Exception, match="could not be gathered"):
        scene.plan(step, "r")
    scene.tell(StepDiscarded(step))


def test_r13_a04_only_overlapping_rows_are_set_aside_before_the_scatter() -> None:
    """Rows were copied one at a time, all of them, under the lock that is promised never to span a copy."""
    scene = Scene()
    step, read = delayed_read(scene)
    scene.step(started("b", 4), batch={"b": (2, 3, 12, 13)}, h=[99, 99, 99, 99])
    (preserve,) = (command for command in scene.commands.values() if isinstance(command, PreserveRows))
    scatters = [command.command for command in scene.commands.values() if isinstance(command, ScatterRows)]

    assert [2, 3] == preserve.slots.tolist()
    assert (2, 3) == scene.view.reads[read].preserved
    assert preserve.command > max(scatters)
    scene.run(CopyPage, ScatterRows, PreserveRows)
    later = max(command.command for command in scene.commands.values() if isinstance(command, ScatterRows))
    assert preserve.command < later
    assert scene.commands[later].lane is preserve.lane
    assert [0, 1, 2, 3, 50, 51, 52, 53] == scene.materialize(step, "r")["h"]["r"]


def test_r10_a05_rows_of_an_aborted_request_reach_the_pool() -> None:
    """A published hash whose rows were dropped with the abort can be hit and never served."""
    scene = Scene()
    first = scene.step(started("a", 4), batch={"a": FIRST}, h=[0] * 4, c=[1, 2, 3, 4])
    (pending,) = (number for number, write in scene.view.writes.items() if write.phase is WritePhase.PENDING)
    scene.run(CopyPage, ScatterRows)
    assert scene.view.charged == 16

    scene.start(Aborted("a"), started("b", 4, 0))
    assert scene.view.writes[pending].phase is WritePhase.QUEUED
    step = scene.save({"b": SECOND}, h=[5] * 4, c=[5, 6, 7, 8])
    assert [1, 2, 3, 4, 5, 6, 7, 8] == scene.materialize(step, "b")["c"]["b"]
    scene.start(Finished("b"))
    scene.drain()

    assert pending not in scene.view.writes
    assert [COMMITTED] * 4 == scene.occupancy("c", *FIRST)
    assert scene.view.charged == 0
    scene.tell(StepDiscarded(first))
    assert scene.is_quiet()


def test_r15_a06_hit_inside_a_block_is_refused_and_says_so() -> None:
    """Token-exact hits are to come; cutting one silently lost positions."""
    scene = Scene()
    written(scene, "a", (*FIRST, *SECOND), h=list(range(8)))

    with pytest.raises(HitNotAlignedError, match="not supported yet"):
        scene.start(Started("b", 2, 6, ((0, 1),)))


def test_r02_a07_rows_are_frozen_at_the_save() -> None:
    """The next forward pass overwrites the buffers that an asynchronous copy reads."""
    scene = Scene()
    buffer = [1, 2, 3, 4]
    scene.start(started("a", 4))
    scene.request_save({"a": FIRST}, h=buffer)
    scene.publish()
    buffer[:] = [5, 6, 7, 8]
    scene.drain()

    assert [1, 2, 3, 4] == scene.pool("h", *FIRST)


def test_r08_a09_budget_holds_for_a_request_that_keeps_appending() -> None:
    """A write that would take another chunk was never flushed, so one long request broke the cap."""
    scene = Scene(budget_bytes=100, policy=RowPolicy(hidden=False, deferred=frozenset({"c"}), infer=False))
    slots = np.arange(30)
    scene.step(started("a", 10), batch={"a": slots[:10].tolist()}, c=list(range(10)))
    scene.run(*COPIES, ScatterRows)
    assert scene.view.charged == 40
    scene.step(extended(a=10), batch={"a": slots[10:20].tolist()}, c=list(range(10, 20)))
    scene.run(*COPIES, ScatterRows)
    assert scene.view.charged == 80

    for step in (1, 2):
        scene.tell(StepDiscarded(step))
    scene.start(extended(a=10))
    answer = scene.request_save({"a": slots[20:].tolist()}, c=list(range(20, 30)))
    assert answer == Waiting(WaitedFor(clone=1))
    scene.run(CopyDeferred)
    assert scene.view.charged == 0
    scene.save({"a": slots[20:].tolist()}, c=list(range(20, 30)))
    assert (40, 80, 1) == (scene.view.charged, scene.view.counters.charged_peak, scene.view.counters.flushes)
    scene.run(*COPIES, ScatterRows)
    scene.tell(StepDiscarded(3))

    step = scene.step(started("d", 2, 0, 1, 2, 3, 4, 5, 6), batch={"d": (30, 31)}, c=[70, 71])
    read = scene.view.reads[scene.read_of(step, "d", "c")]
    assert 1 == len(read.writes)
    assert [*range(28), 70, 71] == scene.materialize(step, "d")["c"]["d"]


def test_r08_a09_clone_shared_by_two_writes_is_uncharged_once() -> None:
    """The first to end gave the whole ticket back while the other still used the clone."""
    scene = Scene()
    scene.step(started("x", 2), started("y", 2), batch={"x": (0, 1), "y": (4, 5)}, c=[1, 2, 3, 4])
    scene.run(CopyPage)
    assert scene.view.charged == 16

    scene.start(Finished("x"))
    scene.run(CopyDeferred)
    assert scene.view.charged == 16
    scene.start(Finished("y"))
    scene.run(CopyDeferred)
    assert scene.view.charged == 0


def test_r12_a10_nothing_hides_the_hole_behind_a_failed_write() -> None:
    """A failed store still advanced the saved boundary. Watermarks are to come: as the seed, the failure is sticky."""
    scene = Scene()
    scene.step(started("a", 4), batch={"a": FIRST}, h=[1, 2, 3, 4])
    scene.drain()
    step = scene.step(extended(a=4), batch={"a": SECOND}, h=[5, 6, 7, 8])
    scene.fail(CopyPage)

    for _ in range(2):
        with pytest.raises(WriteFailedError, match="write 2 of step 2"):
            scene.start(extended(a=4))
        with pytest.raises(WriteFailedError):
            scene.start(started("b", 4, 0, 1, 2))
        with pytest.raises(WriteFailedError):
            scene.plan(step, "a")
    assert [COMMITTED] * 4 + [Occupancy.LOST] * 4 == scene.occupancy("h", *FIRST, *SECOND)


@pytest.mark.parametrize(("hit", "slots"), [(2, range(8, 12)), (0, range(12))])
def test_a11_resumed_request_delivers_what_its_step_recomputes(hit: int, slots: range) -> None:
    """Delivery watermarks are to come: as the seed, a resumption marks no hit, and is counted if it had one."""
    scene = Scene()
    scene.step(started("a", 4), batch={"a": (16, 17, 18, 19)}, h=[0, 1, 2, 3])
    assert [0, 1, 2, 3] == scene.materialize(1, "a")["h"]["a"]
    written(scene, "b", (*FIRST, *SECOND), h=list(range(8)))

    resumed = Resumed("a", len(slots), 4 * hit, ((0, 1, 2),))
    step = scene.step(resumed, batch={"a": slots}, h=list(slots))

    assert list(slots) == scene.materialize(step, "a")["h"]["a"]
    assert int(hit > 0) == scene.view.counters.resumed_with_hit


def test_r15_a13_name_that_does_not_fit_is_refused_when_it_is_first_seen() -> None:
    """A size cap that silently stopped caching gave two rows for a span of six tokens."""
    scene = Scene(pool_bytes_max=32 * 4)
    scene.start(started("a", 4))

    with pytest.raises(PoolExhaustedError, match="m needs 128 bytes of pool, and 128 of 128 are used"):
        scene.request_save({"a": FIRST}, h=[0] * 4, m=[1, 2, 3, 4])
    scene.save({"a": FIRST}, h=[0] * 4)
    assert not [each for each in scene.view.formats if each.name == "m"]


def test_r05_a15_late_write_lands_only_the_rows_it_still_owns() -> None:
    """The owner was known by its request id, which came back: a late completion touched the new request's rows."""
    scene = Scene()
    scene.step(started("A", 4), batch={"A": FIRST}, h=[0] * 4, c=[1, 2, 3, 4])
    scene.drain()
    scene.step(started("C", 2), batch={"C": (0, 1)}, h=[0] * 2, c=[7, 8])
    scene.start(Finished("C"))
    scene.drain()
    assert [7, 8] == scene.pool("c", 0, 1)

    scene.start(Finished("A"))
    (late,) = (number for number, write in scene.view.writes.items() if write.request == "A")
    scene.drain()
    assert late not in scene.view.writes
    assert [7, 8, 3, 4] == scene.pool("c", *FIRST)
    assert [COMMITTED] * 4 == scene.occupancy("c", *FIRST)

    for step in (1, 2):
        scene.tell(StepDiscarded(step))
    scene.step(started("A", 1), batch={"A": (2,)}, h=[0], c=[6])
    scene.start(Finished("A"))
    scene.drain()
    assert [7, 8, 6, 4] == scene.pool("c", *FIRST)


def test_r24_a16_reset_fences_what_a_device_is_still_at() -> None:
    """Resets reported success and left rows and writes in flight alive."""
    scene = Scene()
    step = scene.step(started("a", 4), batch={"a": FIRST}, h=[1, 2, 3, 4])
    (write,) = scene.view.writes
    assert scene.tell(ResetRequested()) == ResetAnswered(done=False)
    scene.tell(StepDiscarded(step))
    scene.start(Finished("a"))

    assert scene.tell(ResetRequested()) == ResetAnswered(done=True)
    assert [ABSENT] * 4 == scene.occupancy("h", *FIRST)
    assert [write] == list(scene.view.fenced)
    assert any(scene.view.pages)
    scene.run(CopyPage)
    assert [ABSENT] * 4 == scene.occupancy("h", *FIRST)
    assert scene.is_quiet()

    scene.step(started("b", 4), batch={"b": FIRST}, h=[5, 6, 7, 8])
    scene.drain()
    assert [COMMITTED] * 4 == scene.occupancy("h", *FIRST)
    assert [5, 6, 7, 8] == scene.pool("h", *FIRST)


@pytest.mark.parametrize("role", ["consumer", "both"])
def test_r15_a17_engine_whose_tokens_come_from_elsewhere_is_refused(role: str) -> None:
    """Tokens of a remote producer were taken for a local hit; their rows are not here."""
    with pytest.raises(ValidationError, match="switch the row cache off"):
        RowConfig(num_blocks=4, block_size=4, page_rows_max=8, kv_role=role)  # type: ignore[arg-type]


def test_r14_a17_hit_that_was_never_computed_here_is_refused_and_not_zeros() -> None:
    """The same, where an engine tells it all the same."""
    scene = Scene()
    step = scene.step(started("a", 4, 0, 1), batch={"a": THIRD}, h=[1, 2, 3, 4])

    with pytest.raises(UnreadableHitError):
        scene.plan(step, "a")


def test_r15_a18_replaced_prompt_is_refused_and_says_so() -> None:
    """Delivery of accepted tokens only, and replacement of prompts, are to come."""
    scene = Scene()
    scene.start(started("a", 0))

    with pytest.raises(ReplacementUnsupportedError, match="not supported yet"):
        scene.start(Replaced("a", 4))


def test_r02_a18_rewritten_position_keeps_the_later_row() -> None:
    """A rejected token's row is written over by the step that computes the position again."""
    scene = Scene()
    scene.step(started("a", 3), batch={"a": (0, 1, 2)}, h=[80, 90, 100])
    before = scene.view.newest[HIDDEN][2]
    scene.step(extended(a=2), batch={"a": (2, 3)}, h=[101, 110])
    scene.drain()

    assert [80, 90, 101, 110] == scene.pool("h", *FIRST)
    assert before < scene.view.newest[HIDDEN][2]


def test_r01_a19_steps_are_consumed_once_and_leaks_are_named() -> None:
    """Leaked ids ended in an endless wait; a second consume took what was not there."""
    scene = Scene(pages=4, builder_lag_max=3)
    scene.start(started("a", 0))
    for number in range(4):
        scene.step(extended(a=1), batch={"a": (number,)}, h=[number])
    scene.start(extended(a=1))
    scene.drain()
    waiting = scene.request_save({"a": (4,)}, h=[4])
    assert isinstance(waiting, Waiting)
    assert WaitedFor(page=True) == waiting.waited_for
    with pytest.raises(PageExhaustedError, match=r"steps not consumed: \[1, 2, 3, 4\]"):
        scene.tell(WaitTimedOut(waiting.waited_for))

    assert [1] == scene.materialize(2, "a")["h"]["a"]
    assert 5 == scene.save({"a": (4,)}, h=[4])
    for event in (ConsumeRequested(2, ("a",)), StepDiscarded(2)):
        with pytest.raises(StepAlreadyConsumedError):
            scene.tell(event)
    with pytest.raises(RequestOutsideSnapshotError):
        scene.plan(3, "x")
    with pytest.raises(UnknownStepError):
        scene.plan(42, "a")
    assert [2] == scene.materialize(3, "a")["h"]["a"]


def test_r10_flush_passes_over_writes_on_the_clone_that_are_gone() -> None:
    """Two requests had chunks on the oldest clone; one of them ended and is in the pool."""
    scene = Scene(budget_bytes=16, policy=RowPolicy(hidden=False, deferred=frozenset({"c"}), infer=False))
    scene.step(started("x", 1), started("y", 1), batch={"x": (0,), "y": (4,)}, c=[1, 2])
    scene.start(Finished("x"))
    scene.drain()
    scene.tell(StepDiscarded(1))
    scene.start(extended(y=3))

    assert Waiting(WaitedFor(clone=1)) == scene.request_save({"y": (5, 6, 7)}, c=[3, 4, 5])
    assert 1 == scene.view.counters.flushes
