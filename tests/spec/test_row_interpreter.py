"""The naive device against commands written by hand: what it does to rows, and what it must never be asked for."""

from collections.abc import Sequence

import pytest

from tenure.core.arrays import integers
from tenure.core.errors import InvariantViolation
from tenure.core.rows.commands import (
    Clone,
    CommandId,
    CopyDeferred,
    CopyPage,
    FreezeRows,
    GatherPart,
    GatherRows,
    Lane,
    PreserveRows,
    ReleaseBuffers,
    RowCommand,
    ScatterPart,
    ScatterRows,
    ScheduleGather,
    SourceKind,
)
from tenure.core.rows.events import (
    CopyBegan,
    CopyCompleted,
    GatherBegan,
    GatherCompleted,
    GatherFailed,
    RowEvent,
    SaveCancelled,
    SavePublished,
    ScatterCompleted,
    WriteFailed,
)
from tenure.core.rows.names import RowFormat, Schedule
from tenure.spec.rows.interpreter import Interpreter
from tenure.spec.rows.memory import POISON, Buffer, Place

X = RowFormat("x", (), "int32", Schedule.JOIN_NEXT_STEP)
LATE = RowFormat("late", (2,), "int32", Schedule.JOIN_ON_FINISH)
After = Sequence[CommandId]


def freeze(number: CommandId, clone: int = 1, *, step: int = 1, rows: int = 2, form: RowFormat = X) -> FreezeRows:
    """Freeze the first rows of one name, and the leftover `note`."""
    clones = (Clone(clone, (form,), rows * form.row_bytes),)
    done, failed = SavePublished(step), SaveCancelled(step)
    return FreezeRows(number, Lane.COMPUTE, (), step, rows, clones, ("note",), (form,), done, failed)


def copy_page(number: CommandId, after: After = (), *, clone: int = 1, step: int = 1, write: int = 1) -> CopyPage:
    """Copy a clone of two rows of X to page 0."""
    answers = CopyBegan(write), CopyCompleted(write), WriteFailed(write)
    return CopyPage(number, Lane.COPY, tuple(after), write, step, 0, 2, (Clone(clone, (X,), 8),), *answers)


def copy_deferred(number: CommandId, chunks: Sequence[tuple[int, int, int]], after: After = ()) -> CopyDeferred:
    """Copy chunks of LATE to the host rows of write 9."""
    clones, starts, stops = (integers([chunk[place] for chunk in chunks]) for place in range(3))
    rows = int((stops - starts).sum())
    answers = CopyBegan(9), CopyCompleted(9), WriteFailed(9)
    return CopyDeferred(number, Lane.COPY, tuple(after), 9, (LATE,), rows, clones, starts, stops, *answers)


def scatter(number: CommandId, slots: Sequence[int], after: After = (), *, write: int = 1) -> ScatterRows:
    """Copy the first rows of page 0 to slots of X."""
    parts = (ScatterPart("x", integers(range(len(slots))), integers(slots)),)
    return ScatterRows(number, Lane.POOL, tuple(after), write, 0, parts, ScatterCompleted(write), WriteFailed(write))


def preserve(number: CommandId, slots: Sequence[int], after: After = (), *, read: int = 5) -> PreserveRows:
    """Set slots of X aside, as the first rows of a read."""
    rows = integers(range(len(slots)))
    return PreserveRows(number, Lane.POOL, tuple(after), read, X, rows, integers(slots), GatherFailed(read))


def part(kind: SourceKind, rows: Sequence[int], sources: Sequence[int], source_rows: Sequence[int]) -> GatherPart:
    """Where some rows of a read come from."""
    return GatherPart(kind, integers(sources), integers(source_rows), integers(rows))


def gather(
    number: CommandId, parts: Sequence[GatherPart], after: After = (), *, rows: int = 2, form: RowFormat = X
) -> GatherRows:
    """Fill the buffer of read 5."""
    answers = GatherCompleted(5), GatherFailed(5)
    return GatherRows(number, Lane.GATHER, tuple(after), 5, form, rows, tuple(parts), *answers)


def release(
    number: CommandId, after: After = (), *, clones: Sequence[int] = (), writes: Sequence[int] = (), reads: After = ()
) -> ReleaseBuffers:
    """Free buffers."""
    return ReleaseBuffers(number, Lane.GATHER, tuple(after), integers([*clones]), tuple(writes), tuple(reads))


def device(*commands: RowCommand, live: Sequence[object] = (10, 11)) -> Interpreter:
    """A device of four slots, with commands that were issued at once."""
    interpreter = Interpreter(4)
    interpreter.issue(commands, {"x": live, "late": live, "note": "left over"})
    return interpreter


def run(interpreter: Interpreter, *numbers: CommandId) -> None:
    """Carry commands out, one after the other."""
    for number in numbers:
        interpreter.begin(number)
        if number in interpreter.can_end:
            interpreter.end(number)


def tell_all(interpreter: Interpreter) -> list[RowEvent]:
    """Tell every answer that is due."""
    told: list[RowEvent] = []
    while interpreter.due:
        told.append(interpreter.tell(interpreter.due[0]))
    return told


def saved() -> Interpreter:
    """Rows 10 and 11 are in the slots 0 and 1, and the machine knows."""
    interpreter = device(freeze(1), copy_page(2, [1]))
    run(interpreter, 1, 2)
    tell_all(interpreter)
    interpreter.issue([scatter(3, [0, 1])])
    run(interpreter, 3)
    tell_all(interpreter)
    return interpreter


def pool(interpreter: Interpreter, *slots: int) -> list[object]:
    """What slots of X hold."""
    return [interpreter.pool_row("x", slot) for slot in slots]


def buffer(interpreter: Interpreter, rows: int, name: str = "x") -> list[object]:
    """What the buffer of read 5 holds."""
    return [interpreter.memory.row(Place(Buffer("buffer", 5), name, row)) for row in range(rows)]


# --- What commands do ---------------------------------------------------------------------------------------------


def test_saved_rows_go_by_clone_and_page_to_their_slots() -> None:
    """The way of immediate rows, leftovers on the page."""
    interpreter = saved()

    assert [10, 11, POISON, POISON] == pool(interpreter, 0, 1, 2, 3)
    assert "left over" == interpreter.memory.row(Place(Buffer("page", 0), "leftover note", 0))
    assert {Buffer("clone", 1)} == interpreter.buffers
    assert interpreter.is_idle


def test_chunks_of_several_clones_follow_each_other_on_the_host() -> None:
    """The host rows of a deferred write are numbered through its chunks."""
    interpreter = device(freeze(1, 1, form=LATE))
    interpreter.issue([freeze(2, 2, step=2, form=LATE)], {"late": (20, 21), "note": 0})
    interpreter.issue([copy_deferred(3, [(2, 1, 2), (1, 0, 2)], [1, 2])])
    run(interpreter, 1, 2, 3)

    assert [21, 10, 11] == [interpreter.memory.row(Place(Buffer("host", 9), "late", row)) for row in range(3)]


def test_gather_takes_rows_from_every_kind_of_source_and_fills_with_zeros() -> None:
    """A hit may lie partly in the pool, on a clone, on the host, and nowhere."""
    interpreter = saved()
    interpreter.issue([freeze(4, 4, step=2, form=LATE)], {"late": (20, 21), "note": 0})
    interpreter.issue([copy_deferred(5, [(4, 0, 2)], [4])])
    clone = part(SourceKind.CLONE, [3], [4], [0])
    host = part(SourceKind.HOST, [0], [9], [1])
    interpreter.issue([gather(6, [clone, host], [4, 5], rows=4, form=LATE)])
    run(interpreter, 4, 5, 6)

    assert [21, (0, 0), (0, 0), 20] == buffer(interpreter, 4, "late")


def test_r13_preserved_rows_outlive_the_pool_row() -> None:
    """What was set aside is what the read gets."""
    interpreter = saved()
    interpreter.issue([preserve(4, [1, 0])])
    interpreter.issue([freeze(5, 2, step=2)], {"x": (20, 21), "note": 0})
    interpreter.issue([copy_page(6, [5], clone=2, step=2, write=2), scatter(7, [0, 1], [6], write=2)])
    interpreter.issue([gather(8, [part(SourceKind.PRESERVED, [0, 1], [0, 0], [0, 1])], [4])])
    run(interpreter, 4, 5, 6, 7, 8)

    assert [20, 21] == pool(interpreter, 0, 1)
    assert [11, 10] == buffer(interpreter, 2)


def test_released_buffers_are_gone_and_a_taken_read_too() -> None:
    """At rest nothing may be left."""
    interpreter = saved()
    interpreter.issue([gather(4, [part(SourceKind.POOL, [0, 1], [0, 0], [0, 1])]), release(5, clones=[1])])
    run(interpreter, 4, 5)
    tell_all(interpreter)
    interpreter.take(5)

    assert frozenset() == interpreter.buffers


# --- What may happen when -----------------------------------------------------------------------------------------


def test_lanes_run_in_order_and_after_is_waited_for() -> None:
    """Two freezes follow each other; the page copy waits for its own; gathers come when they like."""
    interpreter = device(freeze(1), copy_page(2, [1]), freeze(3, 3), gather(4, [], [1]), gather_of_another(5))
    assert [1, 5] == interpreter.can_begin
    interpreter.begin(1)
    assert [5] == interpreter.can_begin
    interpreter.end(1)

    assert [2, 3, 4, 5] == interpreter.can_begin


def gather_of_another(number: CommandId) -> GatherRows:
    """A read of nothing."""
    return GatherRows(number, Lane.GATHER, (), 6, X, 1, (), GatherCompleted(6), GatherFailed(6))


def test_copies_are_taken_at_once_and_freezes_answered_when_launched() -> None:
    """An answer may be early in this; everything else ends first."""
    interpreter = device(freeze(1), copy_page(2, [1]))
    assert [1, 2] == interpreter.due
    assert [SavePublished(1), CopyBegan(1)] == tell_all(interpreter)
    run(interpreter, 1, 2)

    assert [CopyCompleted(1)] == tell_all(interpreter)


def test_read_is_said_to_begin_when_its_commands_allow() -> None:
    """The machine answers with the gather itself."""
    interpreter = saved()
    interpreter.issue([preserve(4, [0]), ScheduleGather(5, Lane.GATHER, (4,), 5, GatherBegan(5))])
    assert [] == interpreter.due
    run(interpreter, 4)
    assert [5] == interpreter.due
    assert GatherBegan(5) == interpreter.tell(5)

    assert interpreter.is_idle


def test_failed_freeze_never_runs_and_is_answered_once() -> None:
    """Its clones hold nothing; they are released all the same."""
    interpreter = device(freeze(1))
    assert [1] == interpreter.can_fail
    interpreter.fail(1)
    assert [SaveCancelled(1)] == tell_all(interpreter)
    interpreter.issue([release(2, [1], clones=[1])])
    run(interpreter, 2)

    assert interpreter.is_idle
    assert frozenset() == interpreter.buffers


def test_launched_freeze_cannot_fail_any_more() -> None:
    """Whoever was told that it is launched counts on it."""
    interpreter = device(freeze(1))
    interpreter.tell(1)

    assert [] == interpreter.can_fail


def test_failed_copy_is_answered_after_its_beginning_or_alone() -> None:
    """It may fail before or after a device took it."""
    early, late = (device(freeze(1), copy_page(2, [1])) for _ in range(2))
    run(early, 1)
    early.fail(2)
    run(late, 1)
    late.begin(2)
    late.fail(2)

    assert [SavePublished(1), WriteFailed(1)] == tell_all(early)
    assert [SavePublished(1), CopyBegan(1), WriteFailed(1)] == tell_all(late)


def test_gather_behind_a_failed_preserve_is_given_up_with_it() -> None:
    """Each command is answered, the one that never ran too."""
    interpreter = saved()
    interpreter.issue([preserve(4, [0]), gather(5, [part(SourceKind.PRESERVED, [0], [0], [0])], [4], rows=1)])
    interpreter.fail(4)

    assert [GatherFailed(5)] * 2 == tell_all(interpreter)
    assert interpreter.is_idle


# --- What must not be asked for -----------------------------------------------------------------------------------


def test_r02_reading_what_was_never_written_is_noticed() -> None:
    """Never-written memory is not zeros."""
    interpreter = saved()
    interpreter.issue([gather(4, [part(SourceKind.POOL, [0], [0], [3])])])
    interpreter.begin(4)

    with pytest.raises(InvariantViolation, match=r"R02: command 4 .* holds no row"):
        interpreter.end(4)


def test_r02_reading_what_a_failed_copy_left_is_noticed() -> None:
    """A failure may leave anything behind."""
    interpreter = saved()
    interpreter.issue([freeze(4, 2, step=2)], {"x": (20, 21), "note": 0})
    interpreter.issue([copy_page(5, [4], clone=2, step=2)])
    run(interpreter, 4)
    interpreter.fail(5)
    tell_all(interpreter)
    interpreter.issue([scatter(6, [0, 1])])
    interpreter.begin(6)

    with pytest.raises(InvariantViolation, match="R02"):
        interpreter.end(6)


def test_r20_scatter_over_a_running_gather_is_a_race() -> None:
    """Also if the gather happens to be through: the next device may be slower (W8)."""
    interpreter = saved()
    interpreter.issue([gather(4, [part(SourceKind.POOL, [0, 1], [0, 0], [0, 1])]), scatter(5, [1, 2])])
    run(interpreter, 4)

    with pytest.raises(InvariantViolation, match=r"R20: command 5 .* is not ordered behind command 4"):
        interpreter.begin(5)


def test_r20_gather_of_rows_that_a_scatter_may_still_write_is_a_race() -> None:
    """A read waits for its sources."""
    interpreter = saved()
    interpreter.issue([scatter(4, [1, 2]), gather(5, [part(SourceKind.POOL, [0], [0], [1])])])
    run(interpreter, 4)

    with pytest.raises(InvariantViolation, match=r"R20: command 5 .* is not ordered behind command 4"):
        interpreter.begin(5)


@pytest.mark.parametrize("order", ["after", "told", "lane"])
def test_r20_ordered_commands_do_not_race(order: str) -> None:
    """By `after`, by an end that was told before the command came, or by a lane."""
    interpreter = saved()
    if order == "lane":
        interpreter.issue([preserve(4, [0, 1]), scatter(5, [0, 1])])
    else:
        interpreter.issue([gather(4, [part(SourceKind.POOL, [0, 1], [0, 0], [0, 1])])])
    run(interpreter, 4)
    if order == "told":
        tell_all(interpreter)
    if order != "lane":
        interpreter.issue([scatter(5, [0, 1], [4] if order == "after" else [])])
    run(interpreter, 5)

    assert [10, 11] == pool(interpreter, 0, 1)


def test_r20_answer_of_a_launched_freeze_orders_nothing() -> None:
    """It was given before the freeze ended."""
    interpreter = device(freeze(1))
    run(interpreter, 1)
    tell_all(interpreter)
    interpreter.issue([copy_page(2)])

    with pytest.raises(InvariantViolation, match=r"R20: command 2 .* is not ordered behind command 1"):
        interpreter.begin(2)


def test_r06_page_that_a_builder_reads_is_not_written() -> None:
    """Its bytes never change while they are held (W7); from the copy-out on they may."""
    interpreter, other = saved(), saved()
    for each in (interpreter, other):
        reading = each.begin_reading([Place(Buffer("page", 0), "x", 0)], "a builder")
        if each is other:
            assert [10] == each.end_reading(reading)
        each.issue([freeze(4, 2, step=2)], {"x": (20, 21), "note": 0})
        each.issue([copy_page(5, [4], clone=2, step=2)])
        run(each, 4)
    run(other, 5)

    with pytest.raises(InvariantViolation, match=r"R20: command 5 .* is not ordered behind a builder"):
        interpreter.begin(5)


def test_r20_release_of_what_is_in_use_is_noticed() -> None:
    """A clone that a copy reads."""
    interpreter = device(freeze(1), copy_page(2, [1]), release(3, [1], clones=[1]))
    run(interpreter, 1)
    interpreter.begin(2)

    with pytest.raises(InvariantViolation, match=r"R20: command 3 .* is not ordered behind command 2"):
        interpreter.begin(3)


def test_r20_use_after_release_is_noticed() -> None:
    """The same, seen from the other side."""
    interpreter = device(freeze(1), copy_page(2, [1]), release(3, [1], clones=[1]))
    run(interpreter, 1, 3)

    with pytest.raises(InvariantViolation, match=r"R20: command 2 .* is not allocated"):
        interpreter.begin(2)


@pytest.mark.parametrize("twice", [{"clones": [1, 1]}, {"reads": [5]}, {"writes": [9]}])
def test_r20_double_release_is_noticed(twice: dict[str, list[int]]) -> None:
    """Or the release of what never was."""
    interpreter = saved()
    interpreter.issue([release(4, **twice)])

    with pytest.raises(InvariantViolation, match="which is not there"):
        interpreter.begin(4)


def test_r20_scatter_to_a_name_without_a_pool_is_noticed() -> None:
    """A pool is allocated before the save that registers its name is published."""
    interpreter = saved()
    parts = (ScatterPart("unknown", integers([0]), integers([0])),)
    answers = ScatterCompleted(1), WriteFailed(1)
    interpreter.issue([ScatterRows(4, Lane.POOL, (), 1, 0, parts, *answers)])

    with pytest.raises(InvariantViolation, match="not allocated"):
        interpreter.begin(4)


@pytest.mark.parametrize(
    ("rule", "commands"),
    [
        ("R17", [freeze(1), freeze(1)]),
        ("R20", [copy_page(2, [1])]),
        ("R20", [scatter(1, [0, 0])]),
        ("R20", [copy_deferred(1, [(7, 0, 1)])]),
    ],
)
def test_commands_that_contradict_themselves_are_noticed(rule: str, commands: list[RowCommand]) -> None:
    """A number twice, an unknown predecessor, a slot twice, an unknown clone."""
    with pytest.raises(InvariantViolation) as caught:
        device(*commands)

    assert rule == caught.value.rule


def test_clone_goes_its_own_way() -> None:
    """Walks come back to old moments."""
    interpreter = device(freeze(1), copy_page(2, [1]))
    twin = interpreter.clone()
    run(twin, 1, 2)
    tell_all(twin)

    assert twin.is_idle
    assert [1] == interpreter.can_begin
    assert [1, 2] == interpreter.due
