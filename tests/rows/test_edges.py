"""Edges of the row machine that ordinary histories pass by."""

from typing import Any

import numpy as np
import pytest

from tenure.core.arrays import integers
from tenure.core.config import RowPolicy
from tenure.core.errors import (
    BlockOutOfRangeError,
    IdentityNotComputedError,
    ReadOrderError,
    RequestIdError,
    RowCountError,
    SaveNotReservedError,
    StepNotBeingConsumedError,
    TenureError,
    UnknownStepError,
    WriteOrderError,
)
from tenure.core.rows.answers import Ignored, SaveReserved, Waiting
from tenure.core.rows.commands import (
    CopyDeferred,
    CopyPage,
    FreezeRows,
    GatherRows,
    PreserveRows,
    ReleaseBuffers,
    ScatterRows,
)
from tenure.core.rows.events import (
    Aborted,
    ConsumeAbandoned,
    ConsumeRequested,
    ContentIdentity,
    CopyBegan,
    Extended,
    Finished,
    GatherBegan,
    GatherFailed,
    LifeCycle,
    PolicyRegistered,
    ResetRequested,
    Resumed,
    RowEvent,
    RowsCopiedOut,
    SaveCancelled,
    SavePublished,
    Started,
    StepConsumed,
    StepDiscarded,
    StepDropped,
    WaitedFor,
    WriteLayout,
)
from tenure.core.rows.names import HIDDEN, Output
from tenure.core.rows.view import ReadPhase
from tenure.spec.rows.reference import Emitted
from tests.rows.scene import COPIES, GATHERS, Scene, extended, started
from tests.rows.test_cases_a import FIRST, SECOND, written

DEFERRED_ONLY = RowPolicy(hidden=False, deferred=frozenset({"c"}), infer=False)


def test_r13_row_that_was_set_aside_is_not_set_aside_again() -> None:
    """The second claim finds another tenant's row in the pool; setting that aside would serve it."""
    scene = Scene(pages=5)
    written(scene, "a", FIRST, h=[1, 2, 3, 4])
    step = scene.step(started("b", 1, 0), batch={"b": (8,)}, h=[9])
    scene.run(CopyPage, ScatterRows)
    for request, row in (("x", 50), ("y", 60)):
        scene.step(Started(request, 1), batch={request: (0,)}, h=[row])
        scene.run(CopyPage, ScatterRows, PreserveRows)

    assert 1 == scene.view.counters.rows_preserved
    assert [60] == scene.pool("h", 0)
    assert [1, 2, 3, 4, 9] == scene.materialize(step, "b")["h"]["b"]


def test_r16_compaction_keeps_the_chunks_of_writes_on_their_way() -> None:
    """Six of seven chunks are dead when the next save comes; the seventh is on the host and not in the pool."""
    scene = Scene(pages=4)
    others = [f"x{number}" for number in range(6)]
    batch: dict[str, Any] = {"a": FIRST, **{request: (8 + place,) for place, request in enumerate(others)}}
    arrivals = [Started(request, 1) for request in others]
    step = scene.step(Started("a", 4), *arrivals, batch=batch, h=range(10), c=range(100, 110))
    scene.drain()
    scene.materialize(step, "a", *others)
    scene.start(*[Finished(request) for request in others])
    scene.drain()
    scene.start(Finished("a"), Started("b", 1))
    scene.run(*COPIES)
    scene.save({"b": (20,)}, h=[1], c=[2])
    assert 2 == len(scene.state.journaled.tables.chunks)
    scene.run(*COPIES)
    scene.start(started("d", 1, 0))
    scene.run(*GATHERS)
    step = scene.save({"d": (24,)}, h=[5], c=[6])

    assert [100, 101, 102, 103, 6] == scene.materialize(step, "d")["c"]["d"]


def test_r16_compaction_keeps_the_slots_of_chunks_that_are_late_in_their_batch() -> None:
    """Where a chunk's slots stand in the table has nothing to do with where its rows stood in the batch."""
    scene = Scene(num_blocks=16, pages=4)
    others = [f"x{number}" for number in range(6)]
    batch: dict[str, Any] = {request: (8 + place,) for place, request in enumerate(others)}
    batch |= {"a": FIRST, "e": SECOND}
    arrivals = [Started(request, 1) for request in others]
    step = scene.step(*arrivals, Started("a", 4), Started("e", 4), batch=batch, h=range(14), c=range(100, 114))
    scene.drain()
    scene.materialize(step, *others, "a", "e")
    scene.start(*[Finished(request) for request in others])
    scene.drain()
    scene.start(Started("b", 1))
    scene.save({"b": (20,)}, h=[1], c=[2])
    assert 3 == len(scene.state.journaled.tables.chunks)
    scene.start(Finished("a"), Finished("e"))
    scene.drain()
    step = scene.step(started("d", 1, 0, 1), batch={"d": (24,)}, h=[5], c=[6])

    assert [*range(106, 114), 6] == scene.materialize(step, "d")["c"]["d"]


@pytest.mark.parametrize("has_begun", [False, True])
def test_r10_next_save_waits_for_a_flushed_write_whose_request_ended(has_begun: bool) -> None:
    """It was queued by the byte budget while its request lived, and may be copying already."""
    scene = Scene(budget_bytes=16, policy=DEFERRED_ONLY)
    scene.step(Started("a", 3), batch={"a": (0, 1, 2)}, c=[1, 2, 3])
    scene.drain()
    scene.start(extended(a=2))
    assert Waiting(WaitedFor(clone=1)) == scene.request_save({"a": (4, 5)}, c=[4, 5])
    if has_begun:
        scene.tell(CopyBegan(2))
    scene.tell(StepDropped(integers([4, 5])))
    scene.start(Finished("a"), Started("b", 1))

    assert Waiting(WaitedFor(host_ready=(2,))) == scene.request_save({"b": (8,)}, c=[6])


def test_r08_clones_that_fit_the_budget_exactly_fit() -> None:
    """The budget may be used up."""
    scene = Scene(budget_bytes=8, policy=DEFERRED_ONLY)
    scene.step(Started("a", 1), batch={"a": (0,)}, c=[1])
    scene.drain()
    scene.start(extended(a=1))

    assert isinstance(scene.request_save({"a": (1,)}, c=[2]), SaveReserved)
    assert 8 == scene.view.charged


def test_r08_save_over_the_budget_waits_for_the_oldest_clone_that_is_still_held() -> None:
    """A clone that was let go is let go no second time: a wait for it would not end."""
    scene = Scene(budget_bytes=12, policy=DEFERRED_ONLY)
    scene.step(Started("a", 1), Started("b", 0), batch={"a": (0,)}, c=[1])
    scene.step(extended(b=1), batch={"b": (4,)}, c=[2])
    scene.step(extended(b=1), batch={"b": (5,)}, c=[3])
    scene.start(Finished("a"), extended(b=2))
    scene.drain()
    assert 8 == scene.view.charged

    assert Waiting(WaitedFor(clone=2)) == scene.request_save({"b": (6, 7)}, c=[4, 5])


def test_r18_clones_that_were_let_go_do_not_fill_a_table_beside_one_that_is_held() -> None:
    """A request that lives for ever holds its first clone; what others held and let go must not pile up behind it."""
    scene = Scene(policy=DEFERRED_ONLY)
    scene.step(Started("old", 1), batch={"old": (0,)}, c=[1])
    for number in range(20):
        request = f"x{number}"
        step = scene.step(Started(request, 1), batch={request: (1,)}, c=[2])
        scene.start(Finished(request))
        scene.drain()
        scene.tell(StepDiscarded(step))

    assert {1} == set(scene.view.clones)
    assert len(scene.state.journaled.tables.clones) <= 4


def test_r20_clone_that_is_let_go_waits_for_its_own_freeze_alone() -> None:
    """Behind the freeze of a later step, its memory would come back a forward pass late."""
    scene = Scene(policy=DEFERRED_ONLY)
    scene.step(Started("a", 1), batch={"a": (0,)}, c=[1])
    scene.step(Started("b", 1), batch={"b": (1,)}, c=[2])
    scene.start(Finished("a"))
    (copy,) = (each for each in scene.commands.values() if isinstance(each, CopyDeferred))
    scene.tell(copy.failed)
    freezes = {each.step: each.command for each in scene.commands.values() if isinstance(each, FreezeRows)}
    (release,) = (each for each in scene.commands.values() if isinstance(each, ReleaseBuffers) and len(each.clones))

    assert [1] == release.clones.tolist()
    assert freezes[2] not in release.after


def test_r14_guess_that_failed_is_made_again_at_the_save() -> None:
    """A gather that failed before the save says nothing of the hit."""
    scene = Scene()
    written(scene, "a", FIRST, h=[1] * 4)
    scene.start(started("b", 1, 0))
    early = scene.read_of(2, "b", "h")
    scene.begin_gather(early)
    scene.fail(GatherRows, early)
    step = scene.save({"b": (4,)}, h=[2])

    assert early != scene.read_of(step, "b", "h")
    assert [1] * 4 + [2] == scene.materialize(step, "b")["h"]["b"]


def test_r20_buffer_of_a_dropped_read_is_released_behind_what_still_writes_it() -> None:
    """A read was set aside for, begun, and dropped while it ran: both commands come first."""
    scene = Scene()
    written(scene, "a", FIRST, h=[1] * 4)
    step = scene.step(started("b", 1, 0), batch={"b": (4,)}, h=[2])
    scene.run(CopyPage, ScatterRows)
    scene.step(Started("c", 4), batch={"c": FIRST}, h=[3] * 4)
    read = scene.read_of(step, "b", "h")
    (preserve,) = (each for each in scene.device.open if isinstance(each, PreserveRows))
    scene.tell(GatherBegan(read))
    scene.tell(StepDiscarded(step))
    assert ReadPhase.LEFT is scene.view.reads[read].phase
    assert isinstance(scene.tell(GatherFailed(read)), Ignored)
    (release,) = (each for each in scene.commands.values() if isinstance(each, ReleaseBuffers) and each.reads)

    assert (preserve.command,) == release.after


def test_r15_block_table_may_be_longer_than_the_hit() -> None:
    """Engines pass the whole table."""
    scene = Scene()
    written(scene, "a", FIRST, h=[1] * 4)
    step = scene.step(Started("b", 1, 4, ((0, 1, 2),)), batch={"b": (4,)}, h=[2])

    assert (("b", FIRST),) == scene.view.steps[step].hits
    assert [1] * 4 + [2] == scene.materialize(step, "b")["h"]["b"]


def test_r13_only_rows_that_are_overwritten_order_a_scatter_behind_a_gather() -> None:
    """A gather whose row was set aside reads it no more from the pool."""
    scene = Scene(pages=5)
    written(scene, "a", FIRST, h=[1] * 4)
    step = scene.step(started("b", 1, 0), batch={"b": (4,)}, h=[2])
    scene.run(CopyPage, ScatterRows)
    scene.step(Started("c", 4), batch={"c": FIRST}, h=[3] * 4)
    scene.tell(GatherBegan(scene.read_of(step, "b", "h")))
    scene.run(CopyPage)
    (scatter,) = (each for each in scene.device.open if isinstance(each, ScatterRows))

    assert () == scatter.after


# --- Wrong types ------------------------------------------------------------------------------------------------

NOBODY: Any = ["a", "list"]
TEXT: Any = "one"
IDENTITY = ContentIdentity(7)


@pytest.mark.parametrize(
    ("event", "error"),
    [
        (CopyBegan(TEXT), WriteOrderError),
        (CopyBegan(NOBODY), WriteOrderError),
        (CopyBegan(True), WriteOrderError),
        (GatherBegan(TEXT), ReadOrderError),
        (GatherBegan(NOBODY), ReadOrderError),
        (SavePublished(True), SaveNotReservedError),
        (SaveCancelled(NOBODY), SaveNotReservedError),
        (StepDiscarded(TEXT), UnknownStepError),
        (ConsumeRequested(NOBODY, ("a",)), UnknownStepError),
        (RowsCopiedOut(NOBODY), StepNotBeingConsumedError),
        (StepConsumed(NOBODY), StepNotBeingConsumedError),
        (ConsumeAbandoned(TEXT), StepNotBeingConsumedError),
        (SavePublished(1, ((TEXT, IDENTITY),)), IdentityNotComputedError),
        (SavePublished(1, ((NOBODY, IDENTITY),)), IdentityNotComputedError),
        (SavePublished(1, ((True, IDENTITY),)), IdentityNotComputedError),
    ],
)
def test_r15_numbers_of_wrong_types_are_refused(event: RowEvent, error: type[TenureError]) -> None:
    """By the same errors as unknown ones; nothing changes."""
    scene = Scene()
    scene.start(Started("a", 1))
    scene.request_save({"a": (0,)}, h=[1])

    with pytest.raises(error):
        scene.tell(event)


@pytest.mark.parametrize("event", [RowsCopiedOut(True), StepConsumed(True), ConsumeAbandoned(True)])
def test_r15_truth_value_names_no_step_that_a_reset_overtook(event: RowEvent) -> None:
    """`True` equals 1 in a table; the builder of step 1 keeps its page."""
    scene = Scene()
    scene.step(Started("a", 1), batch={"a": (0,)}, h=[1])
    scene.plan(1, "a")
    scene.step(extended(a=1), batch={"a": (1,)}, h=[2])
    scene.fail(CopyPage)
    scene.tell(ResetRequested())
    assert {1} == set(scene.view.fenced_steps)

    with pytest.raises(StepNotBeingConsumedError):
        scene.tell(event)


@pytest.mark.parametrize(
    ("change", "error"),
    [
        (Finished(NOBODY), RequestIdError),
        (Aborted(NOBODY), RequestIdError),
        (Resumed(NOBODY, 1), RequestIdError),
        (Finished(1.0), RequestIdError),  # type: ignore[arg-type]
        (Finished(True), RequestIdError),
        (Started(True, 1), RequestIdError),
        (Resumed(np.int64(1), 1), RequestIdError),  # type: ignore[arg-type]
        (Started("b", 1, TEXT), RowCountError),
        (Started("b", 1, None), RowCountError),  # type: ignore[arg-type]
        (Extended((), integers([]), ((9, IDENTITY),)), BlockOutOfRangeError),
    ],
)
def test_r15_changes_of_wrong_types_are_refused(change: LifeCycle, error: type[TenureError]) -> None:
    """Typed, and all or nothing."""
    scene = Scene()
    scene.start(Started(1, 0))
    with pytest.raises(error):
        scene.start(change)

    assert {1: None} == scene.view.live


@pytest.mark.parametrize("shape", [(4, -1000), (4, "x"), (4, None), (4, 2**62), (1.5, 2)])
def test_r15_shapes_are_whole_and_not_negative(shape: Any) -> None:
    """A negative size would make a negative charge."""
    with pytest.raises(ValueError, match="cannot have the shape"):
        Output("m", shape)


def test_r15_values_are_copies() -> None:
    """What a caller does to its lists afterwards is nobody's business."""
    requests: Any = ["a"]
    layout, extension, consume = (
        WriteLayout(requests, integers([1]), integers([0])),
        Extended(requests, integers([1])),
        ConsumeRequested(1, requests),
    )
    requests.append("b")

    assert ("a",) == layout.requests == extension.requests == consume.requests
    assert (4, 2) == Output(HIDDEN, [4, 2]).shape  # type: ignore[arg-type]
    for wrong in ("a", [1.5], [None]):
        with pytest.raises(TypeError, match="expected request ids"):
            ConsumeRequested(1, wrong)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="expected a RowPolicy"):
        PolicyRegistered(None)  # type: ignore[arg-type]


def test_r14_many_identities_are_set_and_lost() -> None:
    """Of a long prompt at once."""
    scene = Scene()
    blocks = tuple((block, ContentIdentity(block)) for block in range(8))
    scene.step(Started("a", 32, computes=blocks), batch={"a": range(32)}, h=[0] * 32)
    assert set(range(8)) == set(scene.view.identities)
    scene.step(extended(a=8), batch={"a": (*SECOND, *FIRST)}, h=[0] * 8)

    assert set(range(2, 8)) == set(scene.view.identities)


def test_r09_write_that_was_flushed_and_whose_request_ended_is_copied_once() -> None:
    """One CopyDeferred a write."""
    scene = Scene(budget_bytes=16, policy=DEFERRED_ONLY)
    scene.step(Started("a", 3), batch={"a": (0, 1, 2)}, c=[1, 2, 3])
    scene.drain()
    scene.start(extended(a=2))
    scene.request_save({"a": (4, 5)}, c=[4, 5])
    scene.tell(StepDropped(integers([4, 5])))
    scene.start(Finished("a"))

    assert [2] == [each.write for each in scene.commands.values() if isinstance(each, CopyDeferred)]


def test_r15_names_that_are_new_in_every_step_are_not_held_for_ever() -> None:
    """A leftover with a fresh name each step must not fill a table."""
    scene = Scene(policy=RowPolicy(), names_max=2)
    scene.start(Started("a", 0))
    for number in range(8):
        extra: dict[str, Any] = {f"n{number}": Emitted(Output(f"n{number}", (7, 2), "float32"), [0] * 7)}
        step = scene.step(extended(a=2), batch={"a": (2 * number, 2 * number + 1)}, h=[0] * 2, **extra)
        scene.tell(StepDiscarded(step))

    assert 4 == len(scene.view.classes)
