"""Limits that earlier steps count against, numbers at their bounds, and what is counted of several at once."""

import pytest

from tenure.core.arrays import integers
from tenure.core.config import RowConfig, RowPolicy
from tenure.core.errors import NamesExhaustedError, PoolExhaustedError, RequestNamedTwiceError, UnreadableHitError
from tenure.core.rows.answers import ResetAnswered, SaveReserved, Waiting
from tenure.core.rows.commands import CopyDeferred, CopyPage, PreserveRows, ReleaseBuffers, ScatterRows
from tenure.core.rows.events import (
    ContentIdentity,
    Finished,
    PolicyRegistered,
    ResetRequested,
    Resumed,
    SaveRequested,
    Started,
    StepDiscarded,
    StepDropped,
    WaitedFor,
    WriteLayout,
)
from tenure.core.rows.machine import transition
from tenure.core.rows.names import ROW_ITEMS_MAX, Output
from tenure.core.rows.state import RowState
from tenure.spec.rows.memory import Row
from tests.rows.scene import Scene, extended, started
from tests.rows.test_cases_a import FIRST, SECOND, THIRD, written

ZERO = (0,)
DEFERRED_ONLY = RowPolicy(hidden=False, deferred=frozenset({"c"}), infer=False)

# --- Limits ---------------------------------------------------------------------------------------------------


def test_r15_names_of_earlier_steps_count_against_the_limit_of_names() -> None:
    """One there was, and of two more the second is one too many."""
    scene = Scene(names_max=2)
    scene.step(Started("a", 1), batch={"a": (0,)}, m=[1])
    scene.drain()
    scene.start(extended(a=1))

    with pytest.raises(NamesExhaustedError, match="c would be name 3 of at most 2"):
        scene.request_save({"a": (1,)}, k=[1], c=[1])


def test_r15_names_of_earlier_steps_and_of_this_one_count_against_the_pool() -> None:
    """Room for two of them; and what is used says how much all before took."""
    scene = Scene(pool_bytes_max=2 * 32 * 4)
    scene.step(Started("a", 1), batch={"a": (0,)}, m=[1])
    scene.drain()
    scene.start(extended(a=1))

    with pytest.raises(PoolExhaustedError, match="c needs 128 bytes of pool, and 256 of 256 are used"):
        scene.request_save({"a": (1,)}, k=[1], c=[1])


def test_r15_tensors_may_be_empty_and_rows_as_large_as_they_may_be() -> None:
    """Both are shapes; one element more is none."""
    assert (0, 0) == Output("m", (0, 0), "float32").shape
    assert (1, ROW_ITEMS_MAX) == Output("m", (1, ROW_ITEMS_MAX), "uint8").shape
    for wrong in ((1, ROW_ITEMS_MAX + 1), (-1, 1)):
        with pytest.raises(ValueError, match="m cannot have the shape"):
            Output("m", wrong, "uint8")


def test_r08_step_of_exactly_the_budget_is_not_over_it() -> None:
    """One of a byte more is let through where nothing else is charged, and counted."""
    scene = Scene(budget_bytes=4)
    scene.step(Started("a", 1), batch={"a": (0,)}, m=[1])
    assert 0 == scene.view.counters.over_budget
    scene.step(extended(a=2), batch={"a": (1, 2)}, m=[1, 2])

    assert 1 == scene.view.counters.over_budget


def test_r08_clone_that_a_reset_left_to_its_device_is_still_the_oldest() -> None:
    """That of immediate rows, older than that of deferred rows beside it."""
    scene = Scene(budget_bytes=8)
    step = scene.step(Started("a", 1), batch={"a": (0,)}, m=[1], c=[2])
    scene.tell(StepDiscarded(step))
    scene.start(Finished("a"))
    assert ResetAnswered(True) == scene.tell(ResetRequested())
    assert {1, 2} == set(scene.view.clones)
    scene.start(Started("b", 1))

    assert Waiting(WaitedFor(clone=1)) == scene.request_save({"b": (4,)}, c=[3])
    scene.run(CopyPage)
    assert Waiting(WaitedFor(clone=2)) == scene.request_save({"b": (4,)}, m=[3], c=[4])
    scene.run(CopyDeferred)
    assert isinstance(scene.request_save({"b": (4,)}, m=[3], c=[4]), SaveReserved)


# --- Several at once ------------------------------------------------------------------------------------------


def test_r15_every_resumption_whose_hit_marks_none_is_counted() -> None:
    """Two in one start are two."""
    scene = Scene()
    step = scene.step(Started("a", 1), Started("b", 1), batch={"a": (8,), "b": (12,)}, h=[1, 2])
    scene.tell(StepDiscarded(step))
    scene.start(Resumed("a", 1, 4, ((0,),)), Resumed("b", 1, 4, ((1,),)))

    assert 2 == scene.view.counters.resumed_with_hit


def test_r15_layout_that_names_a_request_twice_is_refused_where_its_counts_add_up() -> None:
    """Rows that are the first one's would be cut off by the second; the error names who came twice."""
    scene = Scene()
    scene.start(Started("once", 0), Started("twice", 1))
    layout = WriteLayout(("once", "twice", "twice"), integers([0, 0, 1]), integers([0]))

    with pytest.raises(RequestNamedTwiceError, match="'twice' is named twice in one layout"):
        scene.tell(SaveRequested(layout, ()))


def test_r10_request_whose_write_the_budget_queued_ends_as_any_other() -> None:
    """That write is gone by then; one that goes on has another."""
    scene = Scene(budget_bytes=16, policy=DEFERRED_ONLY)
    scene.step(Started("a", 1), Started("b", 2), batch={"a": (0,), "b": (4, 5)}, c=[1, 2, 3])
    scene.drain()
    scene.start(extended(a=2))
    step = scene.save({"a": (1, 2)}, c=[4, 5])
    scene.drain()
    (write,) = scene.view.writes.values()
    assert "a" == write.request
    for number in (1, step):
        scene.tell(StepDiscarded(number))
    scene.start(Finished("a"), Finished("b"))
    scene.drain()

    assert scene.is_quiet()
    assert [1, 4, 5] == scene.pool("c", 0, 1, 2)


# --- Reads beside claims --------------------------------------------------------------------------------------


def test_r13_every_planned_read_is_looked_at_and_keeps_what_was_set_aside_before() -> None:
    """Reads of other names and of other blocks come first; the slots are claimed one step after the other."""
    scene = Scene(pages=6)
    written(scene, "a", FIRST, h=[1, 2, 3, 4], m=[11, 12, 13, 14])
    written(scene, "z", SECOND, h=[5, 6, 7, 8], m=[15, 16, 17, 18])
    arrivals = started("b", 1, 0), started("c", 1, 1)
    step = scene.step(*arrivals, batch={"b": (8,), "c": (12,)}, h=[9, 10], m=[19, 20])
    scene.run(CopyPage, ScatterRows)
    scene.step(Started("x", 1), batch={"x": (4,)}, m=[50])
    scene.run(CopyPage, ScatterRows, PreserveRows)
    scene.step(extended(x=1), batch={"x": (5,)}, m=[60])
    scene.run(CopyPage, ScatterRows, PreserveRows)
    read = scene.read_of(step, "c", "m")
    aside = [each for each in scene.commands.values() if isinstance(each, PreserveRows)]

    assert [(read, [0]), (read, [1])] == [(each.read, each.rows.tolist()) for each in aside]
    assert [0, 1] == list(scene.view.reads[read].preserved)
    found = scene.materialize(step, "b", "c")
    assert {"b": [11, 12, 13, 14, 19], "c": [15, 16, 17, 18, 20]} == found["m"]
    assert {"b": [1, 2, 3, 4, 9], "c": [5, 6, 7, 8, 10]} == found["h"]


def test_r13_r14_rows_that_are_absent_are_not_set_aside() -> None:
    """They are read as zeros, whatever a pool that nobody wrote holds there."""
    scene = Scene(pages=6)
    scene.step(Started("a", 2), batch={"a": (0, 1)}, h=[1, 2], m=[11, 12])
    scene.step(extended(a=2), batch={"a": (2, 3)}, h=[3, 4])
    scene.drain()
    step = scene.step(started("b", 1, 0), batch={"b": (8,)}, h=[9], m=[19])
    scene.run(CopyPage, ScatterRows)
    scene.step(Started("x", 4), batch={"x": FIRST}, m=[50] * 4)
    scene.run(CopyPage, ScatterRows, PreserveRows)

    assert (0, 1) == scene.view.reads[scene.read_of(step, "b", "m")].preserved
    assert 2 == scene.view.counters.rows_preserved
    assert [11, 12, (0,), (0,), 19] == scene.materialize(step, "b")["m"]["b"]


def test_r16_view_shows_every_chunk_of_a_write_with_its_slots_as_long_as_the_write_is_there() -> None:
    """Open, closed, and WRITTEN while a read holds its host rows, when the table of chunks has forgotten it."""
    scene = Scene(num_blocks=16, pages=6, policy=DEFERRED_ONLY)
    scene.step(Started("x", 2), Started("a", 1), batch={"x": (40, 41), "a": (0,)}, c=[90, 91, 1])
    for slot in (1, 2):
        scene.step(extended(x=1, a=1), batch={"x": (41 + slot,), "a": (slot,)}, c=[91 + slot, 1 + slot])
    scene.step(extended(a=1), batch={"a": (3,)}, c=[4])
    scene.drain()
    (number,) = (number for number, write in scene.view.writes.items() if "a" == write.request)
    chunks = scene.view.writes[number].claims
    assert [(0,), (1,), (2,), (3,)] == [slots for _, slots in chunks]
    scene.start(Finished("a"))
    scene.run(CopyDeferred)
    assert chunks == scene.view.writes[number].claims
    step = scene.step(started("d", 1, 0), batch={"d": THIRD[:1]}, c=[7])
    scene.begin_gather(scene.read_of(step, "d", "c"))
    scene.start(Finished("x"))
    scene.run(CopyPage, CopyDeferred, ScatterRows)
    scene.step(Started("y", 1), batch={"y": (60,)}, c=[8])

    assert chunks == scene.view.writes[number].claims
    assert [1, 2, 3, 4, 7] == scene.materialize(step, "d")["c"]["d"]


# --- What is over ---------------------------------------------------------------------------------------------


def test_r20_nothing_is_ordered_behind_a_freeze_that_has_ended() -> None:
    """A page that is on the host says so: what is copied or given back afterwards waits for nothing."""
    scene = Scene()
    scene.step(Started("a", 1), batch={"a": (0,)}, m=[1], c=[2])
    scene.run(CopyPage)
    scene.start(Finished("a"))
    scene.drain()
    (copy,) = (each for each in scene.commands.values() if isinstance(each, CopyDeferred))
    released = [each for each in scene.commands.values() if isinstance(each, ReleaseBuffers)]

    assert () == copy.after
    assert [(1,), (2,)] == [tuple(each.clones.tolist()) for each in released if len(each.clones)]
    assert not [each for each in released if each.after]


def after_an_identity(*computes: tuple[int, ContentIdentity]) -> Scene:
    """A block was computed, perhaps by name, and then again by a step that was given up."""
    scene = Scene()
    step = scene.step(started("a", 4, computes=computes), batch={"a": FIRST}, h=[1] * 4)
    scene.drain()
    scene.tell(StepDiscarded(step))
    scene.start(started("b", 4))
    scene.tell(StepDropped(integers(FIRST)))
    return scene


def test_r14_r17_block_that_lost_its_identity_is_as_one_that_never_had_any() -> None:
    """No event can tell them apart."""
    named, nameless = after_an_identity((0, ContentIdentity(7, "g"))), after_an_identity()

    assert not named.view.identities
    assert nameless.state == named.state


def beside_another_identity(name: str, wrong: int) -> tuple[Scene, int]:
    """A step with a hit of `b` on three blocks, of which one holds something else than is expected."""
    scene = Scene(block_size=2)
    identities = [ContentIdentity(block) for block in range(3)]
    scene.step(started("a", 6, computes=tuple(enumerate(identities))), batch={"a": range(6)}, **{name: range(1, 7)})
    scene.drain()
    identities[wrong] = ContentIdentity(9)
    hit = started("b", 1, 0, 1, 2, block_size=2, expects=tuple(identities))
    return scene, scene.step(hit, batch={"b": (6,)}, **{name: [7]})


@pytest.mark.parametrize("wrong", [0, 1, 2])
def test_r14_hit_has_a_hole_whichever_of_its_blocks_holds_something_else(wrong: int) -> None:
    """Not its first alone."""
    scene, step = beside_another_identity("h", wrong)

    with pytest.raises(UnreadableHitError) as refusal:
        scene.plan(step, "b")
    assert (2 * wrong, 2 * wrong + 1) == refusal.value.slots


@pytest.mark.parametrize(
    ("wrong", "rows"), [(0, [ZERO, ZERO, 3, 4, 5, 6]), (1, [1, 2, ZERO, ZERO, 5, 6]), (2, [1, 2, 3, 4, ZERO, ZERO])]
)
def test_r14_rows_of_a_block_that_holds_something_else_are_zeros_and_no_others(wrong: int, rows: list[Row]) -> None:
    """Each block is judged by its own identity."""
    scene, step = beside_another_identity("m", wrong)

    assert [*rows, 7] == scene.materialize(step, "b")["m"]["b"]


def test_numbers_of_a_fresh_machine_begin_with_one_and_no_claim_was_forgotten() -> None:
    """0 stands for none of each kind."""
    view = Scene().view

    assert [1] * 5 == [view.next_claim, view.next_step, view.next_write, view.next_read, view.next_clone]
    assert 0 == view.floor


def test_r17_machine_keeps_differences_where_nothing_is_said() -> None:
    """An older version has no tables of its own."""
    state = RowState.initial(RowConfig(num_blocks=4, block_size=2, page_rows_max=8))
    transition(state, PolicyRegistered(RowPolicy(hidden=False)))

    assert getattr(state, "_store") is None  # noqa: B009 - looks inside
