"""What the seed's own tests pin, as far as the pure machine shows it; `docs/row-cases.md` lists where the rest is."""

import itertools
from typing import Any

import pytest

from tenure.core.config import RowPolicy
from tenure.core.errors import (
    BlockOutOfRangeError,
    HiddenRowsError,
    HitBlocksError,
    KvGroupsError,
    PolicyAfterStepError,
    SlotCountError,
    StepTooLargeError,
    UnreadableHitError,
    WriteFailedError,
)
from tenure.core.rows.answers import SaveReserved, Waiting
from tenure.core.rows.commands import CopyDeferred, CopyPage, FreezeRows, GatherRows, ScatterRows, SourceKind
from tenure.core.rows.events import (
    Aborted,
    Finished,
    PolicyRegistered,
    Started,
    StepConsumed,
    StepDiscarded,
    WaitedFor,
)
from tenure.core.rows.names import HIDDEN, Output
from tenure.core.rows.view import Occupancy, WritePhase
from tenure.spec.rows.memory import POISON, Buffer, Place
from tenure.spec.rows.reference import Emitted
from tests.rows.scene import COPIES, Scene, extended, started
from tests.rows.test_cases_a import FIRST, SECOND, THIRD, written

ZERO = (0,)


# --- What a materialize returns -----------------------------------------------------------------------------------


def test_r02_request_without_a_hit_gets_its_step_s_rows() -> None:
    """The plain miss."""
    scene = Scene()
    step = scene.step(started("a", 2), started("b", 1), batch={"a": (0, 1), "b": (4,)}, h=[1, 2, 3], m=[4, 5, 6])

    assert {"h": {"a": [1, 2], "b": [3]}, "m": {"a": [4, 5], "b": [6]}} == scene.materialize(step, "a", "b")


@pytest.mark.parametrize("is_finished", [False, True])
def test_r02_shared_blocks_are_merged_and_the_tail_is_untouched(is_finished: bool) -> None:
    """Two requests share block 0 and part ways; finished or not, the first one's tail stays its own."""
    scene = Scene()
    written(scene, "a", (*FIRST, *SECOND), h=list(range(8)), finish=is_finished)
    step = scene.step(started("b", 4, 0), batch={"b": THIRD}, h=[90, 91, 92, 93])

    assert [0, 1, 2, 3, 90, 91, 92, 93] == scene.materialize(step, "b")["h"]["b"]
    again = scene.step(started("c", 1, 0, 1), batch={"c": (12,)}, h=[8])
    assert list(range(9)) == scene.materialize(again, "c")["h"]["c"]


def test_r02_id_that_is_live_opens_no_hit_and_after_its_end_does() -> None:
    """A continuation must not be served its own prefix again."""
    scene = Scene()
    written(scene, "a", FIRST, h=[1, 2, 3, 4], finish=False)
    step = scene.step(started("a", 2, 0), batch={"a": (4, 5)}, h=[5, 6])
    assert [5, 6] == scene.materialize(step, "a")["h"]["a"]

    step = scene.step(Finished("a"), started("a", 2, 0), batch={"a": (8, 9)}, h=[7, 8])
    assert [1, 2, 3, 4, 7, 8] == scene.materialize(step, "a")["h"]["a"]


def test_r14_unreadable_hit_leaves_the_step_to_be_consumed() -> None:
    """Its page is free once its rows were copied out or it is discarded."""
    scene = Scene()
    step = scene.step(started("a", 1, 3), started("b", 1), batch={"a": (0,), "b": (4,)}, h=[1, 2])
    scene.drain()
    for _ in range(2):
        with pytest.raises(UnreadableHitError):
            scene.plan(step, "a")
    assert any(scene.view.pages)

    scene.tell(StepDiscarded(step))
    assert not any(scene.view.pages)
    assert 1 == scene.view.counters.unreadable_hits


def test_r14_name_that_was_never_written_reads_zeros_of_its_shape() -> None:
    """Absent mm rows are zeros; hidden rows never are."""
    scene = Scene()
    written(scene, "a", FIRST, h=[1, 2, 3, 4])
    step = scene.step(started("b", 1, 0), batch={"b": (4,)}, h=[5], m=[6])

    assert [ZERO, ZERO, ZERO, ZERO, 6] == scene.materialize(step, "b")["m"]["b"]


@pytest.mark.parametrize("name", ["h", "m"])
def test_r21_hit_after_reuse_sees_the_second_tenant(name: str) -> None:
    """With rows that tell the tenants apart."""
    scene = Scene()
    written(scene, "a", FIRST, h=[1] * 4, m=[2] * 4)
    written(scene, "b", FIRST, h=[3] * 4, m=[4] * 4)
    step = scene.step(started("c", 1, 0), batch={"c": (4,)}, h=[5], m=[6])

    assert {"h": [3] * 4 + [5], "m": [4] * 4 + [6]}[name] == scene.materialize(step, "c")[name]["c"]


def test_r02_hidden_is_not_cached_where_the_policy_opts_out() -> None:
    """Hidden is None then, mm is served, and the page is freed all the same."""
    scene = Scene(policy=RowPolicy(hidden=False))
    step = scene.step(started("a", 2), batch={"a": (0, 1)}, h=[1, 2], x=tensor("x", 2))

    assert {"x": {"a": [("x", 0), ("x", 1)]}} == scene.materialize(step, "a")
    assert not any(holders for holders in scene.view.pages if ("step", step) in holders)


def tensor(name: str, rows: int, *row_shape: int) -> Emitted:
    """A tensor of so many rows."""
    return Emitted(Output(name, (rows, *(row_shape or (2,))), "float32"), [(name, row) for row in range(rows)])


def test_r01_steps_are_consumed_in_any_order() -> None:
    """By id, while the engine is steps ahead."""
    scene = Scene(pages=4, builder_lag_max=3)
    scene.start(started("a", 0))
    steps = [scene.step(extended(a=1), batch={"a": (slot,)}, h=[slot]) for slot in range(3)]
    for step in (steps[1], steps[2], steps[0]):
        assert [step - 1] == scene.materialize(step, "a")["h"]["a"]


def test_r23_request_that_is_not_asked_for_has_its_reads_dropped() -> None:
    """Consuming a step is the end of it for everybody in it."""
    scene = Scene()
    written(scene, "a", FIRST, h=[1] * 4)
    step = scene.step(started("b", 1, 0), started("c", 1, 0), batch={"b": (4,), "c": (8,)}, h=[2, 3])
    scene.drain()
    plan = scene.plan(step, "b")
    assert ["b"] == [hit.request for hit in plan.hits]  # type: ignore[union-attr]
    scene.tell(StepConsumed(step))

    assert not scene.view.reads
    assert (4, 1) == (scene.view.counters.hit_rows, scene.view.counters.reads_dropped)


# --- What is taken for rows ---------------------------------------------------------------------------------------


def test_r15_outputs_go_the_three_ways_by_class_and_length() -> None:
    """Hidden and plain mm immediately, deferred mm at the end, odd lengths as leftovers."""
    scene = Scene(policy=RowPolicy(deferred=frozenset({"c"})))
    outputs = {
        "x": tensor("x", 2),
        "c": tensor("c", 2),
        "odd": tensor("odd", 5),
        "flat": Emitted(Output("flat", (2,), "int64"), [8, 9]),
    }
    step = scene.step(started("a", 2), batch={"a": (0, 1)}, h=[1, 2], **outputs, words=["one"], pair=("p", "q"))

    assert (HIDDEN, "x", "c") == scene.view.steps[step].names
    assert ("odd", "flat", "words", "pair") == scene.view.steps[step].leftovers
    found = scene.materialize(step, "a")
    assert [("odd", row) for row in range(5)] == found["odd"]["a"]
    assert (["one"][0], ("p", "q")) == (found["words"]["a"], found["pair"]["a"])


@pytest.mark.parametrize("name", ["m", "c"])
@pytest.mark.parametrize("rows", [3, 8])
def test_r15_tensor_of_padded_or_unpadded_length_is_cached(name: str, rows: int) -> None:
    """Hidden is padded for the graph, an mm name may not be; both are rows of the 3 tokens."""
    scene = Scene()
    scene.start(started("a", 3))
    step = scene.save({"a": (0, 1, 2)}, padded=8, h=[0] * 8, **{name: list(range(rows))})
    scene.start(Finished("a"))
    scene.drain()

    assert [0, 1, 2] == scene.pool(name, 0, 1, 2)
    assert [0, 1, 2] == scene.materialize(step, "a")[name]["a"]


@pytest.mark.parametrize(
    ("shape", "is_rows"),
    [((4, 2), True), ((6, 2), True), ((4, 3, 2), True), ((4,), False), ((5, 2), False), ((), False)],
)
def test_r15_rows_have_two_dimensions_and_one_row_a_token(shape: tuple[int, ...], is_rows: bool) -> None:
    """What is inferred to be rows: first dimension n or padded n."""
    scene = Scene(policy=RowPolicy())
    scene.start(started("a", 4))
    x = Emitted(Output("x", shape, "float32"), list(range(shape[0] if shape else 1)))
    scene.save({"a": FIRST}, padded=6, h=[0] * 4, x=x)

    assert is_rows is ("x" in scene.view.newest)


def test_r15_codes_audio_without_a_policy_for_it_is_an_ordinary_name() -> None:
    """Nothing is special about a name."""
    scene = Scene(policy=RowPolicy())
    audio: dict[str, Any] = {"codes.audio": tensor("codes.audio", 4)}
    written(scene, "a", FIRST, h=[0] * 4, **audio)
    step = scene.step(started("b", 4, 0), batch={"b": SECOND}, h=[0] * 4, **audio)

    assert 2 * [("codes.audio", row) for row in range(4)] == scene.materialize(step, "b")["codes.audio"]["b"]


def test_r15_policy_is_registered_before_the_first_step() -> None:
    """Later it would change what names are."""
    scene = Scene()
    scene.start()

    with pytest.raises(PolicyAfterStepError):
        scene.tell(PolicyRegistered(RowPolicy()))


# --- Deferred rows ------------------------------------------------------------------------------------------------


def test_r10_deferred_rows_are_readable_at_once_and_in_the_pool_at_the_end() -> None:
    """While the request lives they are served from the step and from its open write."""
    scene = Scene()
    step = scene.step(started("a", 4), batch={"a": FIRST}, h=[0] * 4, c=[1, 2, 3, 4])
    assert [1, 2, 3, 4] == scene.materialize(step, "a")["c"]["a"]
    scene.drain()
    assert [POISON] * 4 == scene.pool("c", *FIRST)
    step = scene.step(started("b", 1, 0), batch={"b": (4,)}, h=[0], c=[5])
    read = scene.read_of(step, "b", "c")
    assert [1, 2, 3, 4, 5] == scene.materialize(step, "b")["c"]["b"]
    (gather,) = (each for each in scene.commands.values() if isinstance(each, GatherRows) and each.read == read)
    assert [SourceKind.CLONE] == [part.kind for part in gather.parts]

    scene.start(Finished("a"), Aborted("b"))
    scene.drain()
    assert [1, 2, 3, 4, 5] == scene.pool("c", *FIRST, 4)


@pytest.mark.parametrize("order", list(itertools.permutations("ab")))
def test_r05_later_of_two_deferred_rows_is_final_whatever_the_finish_order(order: tuple[str, str]) -> None:
    """Two live requests wrote the same slot."""
    scene = Scene()
    scene.step(started("a", 2), batch={"a": (0, 1)}, c=[1, 2])
    scene.step(started("b", 1), batch={"b": (0,)}, c=[3])
    for request in order:
        scene.start(Finished(request))
        scene.drain()

    assert [3, 2] == scene.pool("c", 0, 1)


def test_r16_request_that_loses_and_regains_a_slot_ends_with_its_newest_row() -> None:
    """One write with two chunks on one slot, and another's between them."""
    scene = Scene()
    scene.step(started("a", 1), batch={"a": (0,)}, c=[1])
    scene.step(started("b", 1), batch={"b": (0,)}, c=[2])
    step = scene.step(extended(a=1), batch={"a": (0,)}, c=[3])
    scene.tell(StepDiscarded(step))
    scene.tell(StepDiscarded(1))
    for request in ("a", "b"):
        scene.start(Finished(request))
        scene.drain()

    assert [3] == scene.pool("c", 0)


def test_r16_hit_reads_all_writes_of_a_request_in_position_order() -> None:
    """One flushed, one open; slots in any order."""
    policy = RowPolicy(hidden=False, deferred=frozenset({"c"}), infer=False)
    scene = Scene(budget_bytes=16, policy=policy, block_size=2)
    scene.step(started("a", 3), batch={"a": (5, 4, 1)}, c=[1, 2, 3])
    scene.run(*COPIES)
    scene.tell(StepDiscarded(1))
    scene.step(extended(a=3), batch={"a": (0, 3, 2)}, c=[4, 5, 6])
    scene.run(CopyPage)
    scene.tell(StepDiscarded(2))
    assert [WritePhase.PENDING] == [write.phase for write in scene.view.writes.values() if write.request == "a"][-1:]
    # Room for one more token; its own row waits for nothing.
    scene.start(Started("b", 1, 6, ((2, 0, 1),)))
    assert [2, 1, 4, 3, 6, 5] == gathered(scene, "b")


def gathered(scene: Scene, request: str) -> list[object]:
    """The hit rows of the pending step's read of c, as a backend gathers them."""
    read = scene.read_of(scene.view.pending or 0, request, "c")
    scene.drain()
    (gather,) = (each for each in scene.commands.values() if isinstance(each, GatherRows) and each.read == read)
    assert gather.num_rows == 6
    rows = scene.device.end_reading(scene.device.begin_reading(buffer_of(read, 6), "a test"))
    return list(rows)


def buffer_of(read: int, rows: int) -> list[Place]:
    """The places of a read's buffer."""
    return [Place(Buffer("buffer", read), "c", row) for row in range(rows)]


def test_r09_finish_does_not_queue_a_flushed_write_again() -> None:
    """Its copy was asked for already; the next save waits for it to be on the host."""
    scene = Scene(budget_bytes=16, policy=RowPolicy(hidden=False, deferred=frozenset({"c"}), infer=False))
    scene.step(started("a", 3), batch={"a": (0, 1, 2)}, c=[1, 2, 3])
    scene.run(CopyPage)
    scene.start(extended(a=3))
    assert isinstance(scene.request_save({"a": (4, 5, 6)}, c=[4, 5, 6]), Waiting)
    scene.run(CopyDeferred)
    scene.save({"a": (4, 5, 6)}, c=[4, 5, 6])
    scene.start(Aborted("a"))

    copies = [command.write for command in scene.commands.values() if isinstance(command, CopyDeferred)]
    assert [2, 4] == copies


# --- Waits, pages, failures ---------------------------------------------------------------------------------------


def test_r03_next_save_waits_for_the_previous_step_s_rows_in_the_pool() -> None:
    """Then they are COMMITTED, and no reused slot has a write pending behind it."""
    scene = Scene()
    scene.step(started("a", 1), batch={"a": (0,)}, h=[1])
    scene.start(extended(a=1))
    assert Waiting(WaitedFor(written=(1,))) == scene.request_save({"a": (1,)}, h=[2])
    scene.save({"a": (1,)}, h=[2])

    assert [Occupancy.COMMITTED, Occupancy.IN_TRANSIT] == scene.occupancy("h", 0, 1)


def test_r06_pages_recycle_over_more_steps_than_there_are() -> None:
    """And a save that waits for one goes on when a step is discarded, or when a write lands."""
    scene = Scene(pages=2)
    scene.start(started("a", 0))
    for slot in range(6):
        step = scene.step(extended(a=1), batch={"a": (slot,)}, h=[slot])
        scene.tell(StepDiscarded(step))
    scene.drain()

    assert not any(scene.view.pages)


def test_r06_save_with_leftovers_only_takes_a_page() -> None:
    """The bound on unconsumed steps holds for every save."""
    scene = Scene()
    step = scene.step(started("a", 1), batch={"a": (0,)}, words=["w"])
    (write,) = scene.view.writes
    assert frozenset({("step", step), ("write", write)}) == scene.view.pages[0]
    before = scene.view.next_claim
    scene.run(CopyPage)
    assert frozenset({("step", step)}) == scene.view.pages[0]
    assert {"words": {"a": "w"}} == scene.materialize(step, "a")

    assert 2 == before
    assert not scene.view.writes


def test_r06_after_the_scatter_only_the_step_holds_its_page() -> None:
    """A write frees its hold at the pool write."""
    scene = Scene()
    step = scene.step(started("a", 1), batch={"a": (0,)}, h=[1])
    scene.run(CopyPage)
    assert 2 == len(scene.view.pages[0])
    scene.run(ScatterRows)

    assert frozenset({("step", step)}) == scene.view.pages[0]


@pytest.mark.parametrize("kind", [CopyPage, ScatterRows])
def test_r12_failing_write_frees_what_it_held(kind: type[CopyPage] | type[ScatterRows]) -> None:
    """Page and budget come back, earlier rows stay, and every later call says the same."""
    scene = Scene()
    scene.step(started("a", 1), batch={"a": (0,)}, h=[1])
    scene.drain()
    scene.tell(StepDiscarded(1))
    step = scene.step(extended(a=1), batch={"a": (1,)}, h=[2])
    if kind is ScatterRows:
        scene.run(CopyPage)
    scene.fail(kind)
    assert scene.view.charged == 0
    assert [frozenset({("step", step)})] == [holders for holders in scene.view.pages if holders]
    scene.tell(StepDiscarded(step))
    assert not any(scene.view.pages)

    for _ in range(2):
        with pytest.raises(WriteFailedError, match="write 2 of step 2 failed"):
            scene.start(extended(a=1))
    assert [Occupancy.COMMITTED, Occupancy.LOST] == scene.occupancy("h", 0, 1)


def test_r12_failure_after_the_copy_does_not_uncharge_again() -> None:
    """The write let go of its clone when the copy ended."""
    scene = Scene()
    scene.step(started("a", 1), started("b", 1), batch={"a": (0,), "b": (4,)}, c=[1, 2])
    scene.run(CopyPage)
    scene.start(Finished("a"))
    scene.run(CopyDeferred)
    assert 8 == scene.view.charged
    scene.fail(ScatterRows)

    assert 8 == scene.view.charged


def test_r12_read_fails_with_the_write_it_waits_for() -> None:
    """A joiner that a failure wakes raises."""
    scene = Scene()
    step = scene.step(started("a", 4), started("b", 1, 0), batch={"a": FIRST, "b": (4,)}, h=[1, 2, 3, 4, 5])
    assert isinstance(scene.plan(step, "b", wait=False), Waiting)
    scene.fail(CopyPage)

    with pytest.raises(WriteFailedError):
        scene.plan(step, "b")
    scene.tell(StepDiscarded(step))


def test_r08_cancelled_save_gives_everything_back() -> None:
    """Names seen first are unknown again, and the retry is a fresh try."""
    scene = Scene()
    scene.start(started("a", 1))
    before = scene.view
    assert isinstance(scene.request_save({"a": (0,)}, h=[1], c=[2]), SaveReserved)
    assert 8 == scene.view.charged
    scene.fail(FreezeRows)

    assert (0, (), {}) == (scene.view.charged, scene.view.formats, scene.view.clones)
    assert before.pages == scene.view.pages
    step = scene.save({"a": (0,)}, h=[1], c=[2])
    assert [2] == scene.materialize(step, "a")["c"]["a"]


def test_r08_one_step_s_clones_alone_may_exceed_the_budget() -> None:
    """Or no such step could ever be saved; it is counted."""
    scene = Scene(budget_bytes=10)
    scene.step(started("a", 4), batch={"a": FIRST}, h=[1, 2, 3, 4])

    assert (16, 1) == (scene.view.charged, scene.view.counters.over_budget)
    scene.drain()
    assert 0 == scene.view.charged


def test_r07_wait_that_is_over_meanwhile_is_no_wait() -> None:
    """Joining a write that was written meanwhile is no error."""
    scene = Scene()
    scene.step(started("a", 1), batch={"a": (0,)}, h=[1])
    scene.start(extended(a=1))
    assert isinstance(scene.request_save({"a": (1,)}, h=[2]), Waiting)
    scene.drain()

    assert isinstance(scene.request_save({"a": (1,)}, h=[2]), SaveReserved)


# --- Bad input ----------------------------------------------------------------------------------------------------


def test_r15_hit_lies_in_one_kv_group() -> None:
    """None, or several, are refused."""
    scene = Scene()
    with pytest.raises(HitBlocksError, match="lies in 1 blocks, and its block table names 0"):
        scene.start(Started("a", 1, 4))
    with pytest.raises(KvGroupsError, match="not in 2"):
        scene.start(Started("a", 1, 4, ((0,), (1,))))
    with pytest.raises(HitBlocksError):
        scene.start(Started("a", 1, 8, ((0,),)))
    with pytest.raises(BlockOutOfRangeError, match=r"block 8 is outside \[0, 8\)"):
        scene.start(Started("a", 1, 4, ((8,),)))
    assert not scene.view.live


def test_r15_slots_are_as_many_as_tokens_and_fit_a_page() -> None:
    """Skipping the save instead would leave rows absent behind published hashes."""
    scene = Scene(page_rows_max=4)
    scene.start(started("a", 5))
    with pytest.raises(SlotCountError, match="4 slots for 5 tokens"):
        scene.request_save({"a": FIRST}, h=[0] * 5)
    with pytest.raises(StepTooLargeError, match="5 tokens do not fit a page of 4 rows"):
        scene.request_save({"a": (*FIRST, 4)}, h=[0] * 5)


def test_r15_hidden_has_a_row_for_every_token() -> None:
    """More rows than tokens are padding; fewer are a mistake."""
    scene = Scene()
    scene.start(started("a", 2))
    with pytest.raises(HiddenRowsError, match=r"of shape \[1, 1\]; expected at least 2 rows"):
        scene.request_save({"a": (0, 1)}, h=[0])

    step = scene.save({"a": (0, 1)}, h=[1, 2, 77])
    assert [1, 2] == scene.materialize(step, "a")["h"]["a"]
