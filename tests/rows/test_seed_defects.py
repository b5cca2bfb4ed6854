"""What the seed gets wrong, each as the short script that showed it, and how it must end."""

import pytest

from tenure.core.arrays import integers
from tenure.core.config import RowPolicy
from tenure.core.errors import (
    HitNotAlignedError,
    NameClassError,
    PageExhaustedError,
    SlotOutOfRangeError,
    UnreadableHitError,
    WaitTimeoutError,
)
from tenure.core.rows.answers import SaveReserved, Waiting
from tenure.core.rows.commands import CopyPage, GatherRows, PreserveRows, ReleaseBuffers, ScatterRows
from tenure.core.rows.events import Finished, StepDiscarded, StepDropped, WaitedFor, WaitTimedOut
from tenure.core.rows.names import HIDDEN, Output
from tenure.core.rows.view import Occupancy, WritePhase
from tenure.spec.rows.reference import Emitted
from tests.rows.scene import COPIES, GATHERS, Scene, extended, started
from tests.rows.test_cases_a import FIRST, SECOND, THIRD, written

ZERO = (0,)


@pytest.mark.parametrize("when", ["early", "late"])
def test_r02_d01_same_step_hit_gets_the_rows_of_its_step(when: str) -> None:
    """A hit of step N reads the slots as they stand after step N's save, whenever its gather runs."""
    scene = Scene()
    written(scene, "old", FIRST, h=[10] * 4, m=[100] * 4)
    scene.start(started("a", 4), started("b", 4, 0))
    if when == "early":
        scene.run(*GATHERS)
    step = scene.save({"a": FIRST, "b": SECOND}, h=[20] * 4 + [30] * 4, m=[200] * 4 + [300] * 4)

    found = scene.materialize(step, "a", "b")
    assert [20] * 4 + [30] * 4 == found["h"]["b"]
    assert [200] * 4 + [300] * 4 == found["m"]["b"]
    assert not [command for command in scene.commands.values() if isinstance(command, PreserveRows)]


def test_r02_d01_same_step_hit_on_a_block_never_used_before() -> None:
    """The seed stopped with a fatal error here."""
    scene = Scene()
    step = scene.step(started("a", 4), started("b", 4, 0), batch={"a": FIRST, "b": SECOND}, h=list(range(8)))

    assert list(range(8)) == scene.materialize(step, "b")["h"]["b"]


def test_r21_d02_name_that_is_not_emitted_shows_zeros_and_not_the_last_tenant() -> None:
    """Data of a finished, unrelated request came with the hit."""
    scene = Scene()
    written(scene, "x", FIRST, h=[1] * 4, k=[111] * 4)
    written(scene, "a", FIRST, h=[2] * 4)
    step = scene.step(started("b", 4, 0), batch={"b": SECOND}, h=[3] * 4, k=[222] * 4)

    found = scene.materialize(step, "b")
    assert [2] * 4 + [3] * 4 == found["h"]["b"]
    assert [ZERO] * 4 + [222] * 4 == found["k"]["b"]


def test_r21_d02_hidden_that_is_not_emitted_is_a_hole() -> None:
    """A step saved without hidden on a recycled block let a hit read the last tenant's hidden states."""
    scene = Scene()
    written(scene, "x", FIRST, h=[1] * 4)
    written(scene, "a", FIRST, k=[5] * 4)
    step = scene.step(started("b", 4, 0), batch={"b": SECOND}, h=[3] * 4)

    with pytest.raises(UnreadableHitError, match="4 of its slots"):
        scene.plan(step, "b")


INFERRING = RowPolicy()


def tensor(name: str, rows: int, width: int = 2) -> Emitted:
    """A tensor of so many rows, each a pair of its name and number."""
    return Emitted(Output(name, (rows, width), "float32"), [(name, row) for row in range(rows)])


def test_r15_d03_leftover_stays_one_when_its_length_happens_to_fit() -> None:
    """A pass-through tensor of 15 rows was cut from the first step of 15 tokens on."""
    scene = Scene(policy=INFERRING)
    scene.start(started("a", 0))
    for tokens in (4, 15, 3):
        slots = tuple(range(tokens))
        step = scene.step(extended(a=tokens), batch={"a": slots}, h=[0] * tokens, ref=tensor("ref", 15))
        found = scene.materialize(step, "a")
        # As upstream's payload rule cuts it: a leftover with the batch's token total is that request's rows, all 15.
        assert [("ref", row) for row in range(15)] == found["ref"]["a"]
    assert [HIDDEN] == [each.name for each in scene.view.formats]


def test_r15_d03_rows_that_become_something_else_are_refused_with_both_shapes() -> None:
    """The class of a name is inferred once and held."""
    scene = Scene(policy=INFERRING)
    scene.step(started("a", 4), batch={"a": FIRST}, h=[0] * 4, x=tensor("x", 4))
    scene.start(extended(a=4))

    with pytest.raises(NameClassError, match=r"first seen as a tensor of shape \[4, 2\].*shape \[7, 2\]"):
        scene.request_save({"a": SECOND}, h=[0] * 4, x=tensor("x", 7))


def test_r15_d03_list_under_a_row_name_is_passed_through() -> None:
    """The seed dropped it from the output."""
    scene = Scene(policy=INFERRING)
    scene.step(started("a", 4), batch={"a": FIRST}, h=[0] * 4, x=tensor("x", 4))
    step = scene.step(extended(a=4), batch={"a": SECOND}, h=[0] * 4, x=["one"])

    assert {"a": "one"} == scene.materialize(step, "a")["x"]


def test_r15_d03_step_of_one_token_decides_nothing() -> None:
    """Every tensor with one row would look like rows."""
    scene = Scene(policy=INFERRING)
    scene.step(started("a", 1), batch={"a": (0,)}, h=[0], x=tensor("x", 1), ref=tensor("ref", 1))
    assert not scene.view.classes

    scene.step(extended(a=3), batch={"a": (1, 2, 3)}, h=[0] * 3, x=tensor("x", 3), ref=tensor("ref", 1))
    kinds = {name: held.kind.name for name, held in scene.view.classes.items()}
    assert {"x": "IMMEDIATE", "ref": "LEFTOVER"} == kinds


def test_r08_d04_failed_saves_leak_no_budget() -> None:
    """Charged bytes stayed above zero for ever, until every later save blocked."""
    scene = Scene(pages=2)
    for number in range(2):
        change = extended(a=1) if number else started("a", 1)
        scene.step(change, batch={"a": (number,)}, h=[number], c=[number])
    scene.run(*COPIES, ScatterRows)
    charged = scene.view.charged
    scene.start(extended(a=1))
    for _ in range(5):
        waiting = scene.request_save({"a": (2,)}, h=[2], c=[2])
        assert isinstance(waiting, Waiting)
        with pytest.raises(PageExhaustedError):
            scene.tell(WaitTimedOut(waiting.waited_for))
        assert charged == scene.view.charged

    scene.tell(StepDiscarded(1))
    scene.save({"a": (2,)}, h=[2], c=[2])
    for step in (2, 3):
        scene.tell(StepDiscarded(step))
    scene.start(Finished("a"))
    scene.drain()
    assert scene.view.charged == 0
    assert scene.is_quiet()


def test_r15_d05_save_that_is_refused_leaves_nothing_behind() -> None:
    """Half of the step stayed in transit for ever."""
    scene = Scene()
    written(scene, "old", FIRST, h=[9] * 4)
    scene.start(started("a", 4), started("b", 2))
    before = scene.view
    with pytest.raises(SlotOutOfRangeError, match=r"request 'b': slot 400 \(block 100\)"):
        scene.request_save({"a": FIRST, "b": (400, 401)}, h=[0] * 6)
    assert before == scene.view

    step = scene.save({"a": FIRST, "b": (4, 5)}, h=[1, 2, 3, 4, 5, 6])
    assert [5, 6] == scene.materialize(step, "a", "b")["h"]["b"]


def test_r22_d05_step_that_is_given_up_leaves_holes() -> None:
    """Never what was there before."""
    scene = Scene()
    written(scene, "old", FIRST, h=[9] * 4)
    scene.start(started("a", 4), started("b", 2))
    scene.tell(StepDropped(integers([*FIRST, 400, 401])))
    assert [Occupancy.ABSENT] * 4 == scene.occupancy("h", *FIRST)

    step = scene.step(started("c", 4, 0), batch={"c": SECOND}, h=[1] * 4)
    with pytest.raises(UnreadableHitError):
        scene.plan(step, "c")


def test_r15_d06_refused_arrival_costs_nobody_anything() -> None:
    """The finished request's write was never queued, and the mended arrival lost its hit."""
    scene = Scene()
    written(scene, "z", FIRST, h=[0, 1, 2, 3])
    first = scene.step(started("a", 4), batch={"a": THIRD}, h=[7] * 4, c=[8] * 4)
    scene.tell(StepDiscarded(first))
    (write,) = (number for number, each in scene.view.writes.items() if each.phase is WritePhase.PENDING)
    malformed = started("b", 2, 0)
    with pytest.raises(HitNotAlignedError):
        scene.start(Finished("a"), type(malformed)("b", 2, 3, ((0,),)))
    assert scene.view.writes[write].phase is WritePhase.PENDING

    scene.start(Finished("a"), malformed)
    assert scene.view.writes[write].phase is WritePhase.QUEUED
    step = scene.save({"b": SECOND[:2]}, h=[4, 5])
    assert [0, 1, 2, 3, 4, 5] == scene.materialize(step, "b")["h"]["b"]


@pytest.mark.parametrize("is_late", [False, True])
def test_r14_d09_verdict_on_a_hit_does_not_depend_on_timing(is_late: bool) -> None:
    """Late, the request was served the rows of whoever got the block next; early, it raised."""
    scene = Scene()
    step = scene.step(started("b", 2, 5), started("c", 2), batch={"b": FIRST[:2], "c": SECOND[:2]}, h=[1, 2, 3, 4])
    if is_late:
        written(scene, "d", (20, 21, 22, 23), h=[77] * 4)

    with pytest.raises(UnreadableHitError, match=r"request 'b' in step 1.*\[20, 21, 22, 23\]"):
        scene.plan(step, "b", "c")
    assert {"c": [3, 4]} == scene.materialize(step, "c")["h"]


def test_r07_d11_wait_that_timed_out_is_waited_for_again() -> None:
    """The first try emptied the list of what to wait for, and the retry did not wait."""
    scene = Scene()
    first = scene.step(started("a", 4), batch={"a": FIRST}, h=[1] * 4, c=[2] * 4)
    scene.run(CopyPage)
    scene.start(Finished("a"), started("c", 4))
    write = scene.view.steps[first].write
    assert write is not None
    (deferred,) = (number for number in scene.view.writes if number != write)
    for _ in range(2):
        waiting = scene.request_save({"c": FIRST}, h=[3] * 4)
        assert isinstance(waiting, Waiting)
        assert Waiting(WaitedFor(written=(write,), host_ready=(deferred,))) == waiting
        with pytest.raises(WaitTimeoutError, match=rf"writes \[{write}\] to reach the pool"):
            scene.tell(WaitTimedOut(waiting.waited_for))

    scene.run(ScatterRows, *COPIES)
    assert isinstance(scene.request_save({"c": FIRST}, h=[3] * 4), SaveReserved)


def test_r23_d13_dropped_read_frees_its_buffer_at_once() -> None:
    """Results of reads that nobody took lived until the next step."""
    scene = Scene()
    written(scene, "a", FIRST, h=[1] * 4)
    step = scene.step(started("b", 4, 0), batch={"b": SECOND}, h=[2] * 4)
    read = scene.read_of(step, "b", "h")
    scene.drain()
    scene.tell(StepDiscarded(step))

    released = [command for command in scene.commands.values() if isinstance(command, ReleaseBuffers)]
    assert (read,) == released[-1].reads
    scene.run()
    assert not [buffer for buffer in scene.device.buffers if buffer.kind == "buffer"]


def test_r08_d14_holders_of_a_clone_are_complete_before_any_lets_go() -> None:
    """The first of two writes on a clone gave the ticket back before the second had taken it."""
    scene = Scene()
    scene.step(started("a", 1), started("b", 1), batch={"a": (0,), "b": (4,)}, c=[1, 2])
    (clone,) = scene.view.clones

    # Both writes, and the page copy that reads it.
    assert 3 == scene.view.clones[clone].holders
    scene.start(Finished("a"))
    scene.run(*COPIES)
    assert 1 == scene.view.clones[clone].holders
    assert scene.view.charged == 8


def test_r13_gather_that_runs_orders_the_later_scatter_behind_it() -> None:
    """It cannot be preserved for any more: it reads the pool now."""
    scene = Scene()
    written(scene, "a", FIRST, h=[1, 2, 3, 4])
    step = scene.step(started("b", 4, 0), batch={"b": SECOND}, h=[5] * 4)
    scene.run(CopyPage, ScatterRows)
    read = scene.read_of(step, "b", "h")
    scene.begin_gather(read)
    scene.step(started("c", 4), batch={"c": FIRST}, h=[6] * 4)
    scene.run(CopyPage, ScatterRows)
    (gather,) = (command for command in scene.commands.values() if isinstance(command, GatherRows))
    scatter = max(
        (command for command in scene.commands.values() if isinstance(command, ScatterRows)),
        key=lambda command: command.command,
    )

    assert (gather.command,) == scatter.after
    assert [1, 2, 3, 4] == scene.pool("h", *FIRST)
    assert [1, 2, 3, 4] + [5] * 4 == scene.materialize(step, "b")["h"]["b"]
    assert [6] * 4 == scene.pool("h", *FIRST)
