"""Every (phase, event) cell of writes, reads, steps and rows, legal and illegal, from the tables of the core."""

import pytest

from tenure.core.arrays import integers
from tenure.core.errors import (
    ReadOrderError,
    SaveNotReservedError,
    SaveReservedError,
    StepAlreadyConsumedError,
    StepBeingConsumedError,
    StepNotBeingConsumedError,
    StepNotSavedError,
    StepNotStartedError,
    TenureError,
    UnknownStepError,
    WriteOrderError,
)
from tenure.core.rows.answers import Done, Ignored
from tenure.core.rows.commands import CopyPage, PreserveRows, ScatterRows
from tenure.core.rows.events import (
    ConsumeAbandoned,
    ConsumeRequested,
    CopyBegan,
    CopyCompleted,
    Finished,
    GatherBegan,
    GatherCompleted,
    GatherFailed,
    ResetRequested,
    RowEvent,
    RowsCopiedOut,
    SaveCancelled,
    SavePublished,
    SaveRequested,
    ScatterCompleted,
    StepConsumed,
    StepDiscarded,
    StepDropped,
    StepStarted,
    WriteFailed,
    WriteLayout,
)
from tenure.core.rows.lifecycles import (
    READ_DROPS,
    READ_LATE,
    READ_MOVES,
    ROW_MOVES,
    STEP_MOVES,
    WRITE_CHAIN,
    WRITE_MOVES,
    ReadCompletion,
    WriteCompletion,
    read_diagram,
    row_diagram,
    step_diagram,
    write_diagram,
)
from tenure.core.rows.names import HIDDEN, Output
from tenure.core.rows.view import Occupancy, ReadPhase, StepPhase, WritePhase
from tests.rows.scene import Scene, extended, started
from tests.rows.test_cases_a import FIRST, SECOND, written

# --- Writes -----------------------------------------------------------------------------------------------------


def scene_with_write(phase: WritePhase) -> tuple[Scene, int]:
    """A deferred write in a phase."""
    scene = Scene()
    scene.step(started("a", 2), batch={"a": (0, 1)}, c=[1, 2])
    scene.run(CopyPage, ScatterRows)
    write = max(scene.view.writes)
    if phase is WritePhase.PENDING:
        return scene, write
    scene.start(Finished("a"))
    for event, reached in (
        (CopyBegan(write), WritePhase.COPYING),
        (CopyCompleted(write), WritePhase.HOST_READY),
        (ScatterCompleted(write), WritePhase.WRITTEN),
    ):
        if phase in (WritePhase.QUEUED, WritePhase.FAILED):
            break
        scene.tell(event)
        if phase is reached:
            return scene, write
    if phase is WritePhase.FAILED:
        scene.tell(WriteFailed(write))
    return scene, write


@pytest.mark.parametrize("kind", list(WRITE_MOVES), ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("phase", list(WritePhase), ids=lambda phase: phase.name)
def test_r09_writes_move_only_along_the_chain(phase: WritePhase, kind: type[WriteCompletion]) -> None:
    """A step skipped, or a terminal state left, is a backend that answered out of turn."""
    scene, write = scene_with_write(phase)
    event = kind(write)
    to = WRITE_MOVES[kind].get(phase)
    if to is None:
        with pytest.raises(WriteOrderError, match=rf"write {write} is .*{kind.__name__}"):
            scene.tell(event)
        return
    assert Done() == scene.tell(event)

    after = scene.view.writes.get(write)
    assert to is (WritePhase.WRITTEN if after is None else after.phase)
    assert (phase, to) in WRITE_CHAIN


def test_r09_completion_of_a_write_that_never_was_is_refused() -> None:
    """A backend cannot invent an answer."""
    scene, write = scene_with_write(WritePhase.QUEUED)

    with pytest.raises(WriteOrderError, match=r"write 9 is unknown"):
        scene.tell(CopyBegan(9))
    with pytest.raises(WriteOrderError, match=rf"write {max(scene.view.writes) + 1} is unknown"):
        scene.tell(CopyBegan(max(scene.view.writes) + 1))
    with pytest.raises(WriteOrderError, match=r"write 0 is unknown"):
        scene.tell(CopyBegan(0))
    assert scene.view.writes[write].phase is WritePhase.QUEUED


@pytest.mark.parametrize("phase", [WritePhase.QUEUED, WritePhase.COPYING, WritePhase.HOST_READY])
@pytest.mark.parametrize("end", ["completes", "fails"])
def test_r24_fenced_write_gives_back_what_it_held(phase: WritePhase, end: str) -> None:
    """Late answers after a reset change no row, and leak nothing."""
    scene, write = scene_with_write(phase)
    scene.tell(StepDiscarded(1))
    scene.tell(ResetRequested())
    assert {write} == set(scene.view.fenced)
    answers: list[RowEvent] = [CopyBegan(write), CopyCompleted(write), ScatterCompleted(write)]
    left = answers[{WritePhase.QUEUED: 0, WritePhase.COPYING: 1, WritePhase.HOST_READY: 2}[phase] :]
    for event in [WriteFailed(write)] if end == "fails" else left:
        if write in scene.view.fenced:
            assert isinstance(scene.tell(event), Ignored)

    assert not scene.view.fenced
    assert not scene.view.clones
    assert scene.view.failure is None
    with pytest.raises(WriteOrderError):
        scene.tell(ScatterCompleted(write))


# --- Reads ------------------------------------------------------------------------------------------------------


def scene_with_read(phase: ReadPhase) -> tuple[Scene, int]:
    """A read of a saved step in a phase."""
    scene = Scene()
    written(scene, "a", FIRST, h=[1, 2, 3, 4])
    step = scene.step(started("b", 4, 0), batch={"b": SECOND}, h=[5] * 4)
    scene.run(CopyPage, ScatterRows)
    read = scene.read_of(step, "b", "h")
    if phase is ReadPhase.PLANNED:
        return scene, read
    scene.begin_gather(read)
    if phase is ReadPhase.DONE:
        scene.tell(GatherCompleted(read))
    elif phase is ReadPhase.FAILED:
        scene.tell(GatherFailed(read, "no memory"))
    elif phase is ReadPhase.LEFT:
        scene.tell(StepDiscarded(step))
    return scene, read


@pytest.mark.parametrize("kind", list(READ_MOVES), ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("phase", list(ReadPhase), ids=lambda phase: phase.name)
def test_r23_reads_move_as_the_table_says(phase: ReadPhase, kind: type[ReadCompletion]) -> None:
    """A read that was dropped while it runs keeps its buffer until it ends, and no longer."""
    scene, read = scene_with_read(phase)
    event = kind(read)
    moves = READ_MOVES[kind]
    is_late = phase in READ_LATE.get(kind, ())
    if phase not in moves and not is_late:
        with pytest.raises(ReadOrderError, match=f"read {read} is {phase.value}"):
            scene.tell(event)
        return
    answer = scene.tell(event)

    if is_late:
        assert isinstance(answer, Ignored)
        assert phase is scene.view.reads[read].phase
        return
    assert isinstance(answer, Ignored) is (phase is ReadPhase.LEFT)
    after = scene.view.reads.get(read)
    assert moves[phase] is (None if after is None else after.phase)


@pytest.mark.parametrize(
    "phase", [each for each in ReadPhase if each is not ReadPhase.LEFT], ids=lambda each: each.name
)
def test_r23_discarding_a_step_drops_its_reads(phase: ReadPhase) -> None:
    """What is not running is gone at once, buffer and all."""
    scene, read = scene_with_read(phase)
    scene.tell(StepDiscarded(2))

    after = scene.view.reads.get(read)
    assert READ_DROPS[phase] is (None if after is None else after.phase)
    assert READ_DROPS[ReadPhase.LEFT] is ReadPhase.LEFT


def test_r23_answers_about_a_read_that_is_gone() -> None:
    """A gather that a backend takes up late, or a preserve that fails late, is late; a completion is out of turn."""
    scene, read = scene_with_read(ReadPhase.PLANNED)
    scene.tell(StepDiscarded(2))
    assert isinstance(scene.tell(GatherBegan(read)), Ignored)
    assert isinstance(scene.tell(GatherFailed(read)), Ignored)
    with pytest.raises(ReadOrderError, match=f"read {read} is gone"):
        scene.tell(GatherCompleted(read))
    for number in (0, read + 1, 99):
        for event in (GatherBegan(number), GatherCompleted(number), GatherFailed(number)):
            with pytest.raises(ReadOrderError, match=f"read {number} is unknown"):
                scene.tell(event)


def test_r13_read_does_not_start_before_its_rows_are_in_the_pool() -> None:
    """Its row comes from an open immediate write: it waits for WRITTEN."""
    scene = Scene()
    step = scene.step(started("a", 4), started("b", 4, 0), batch={"a": FIRST, "b": SECOND}, h=list(range(8)))

    with pytest.raises(ReadOrderError, match=r"is waiting for writes \[1\], and cannot take GatherBegan"):
        scene.tell(GatherBegan(scene.read_of(step, "b", "h")))


# --- Steps ------------------------------------------------------------------------------------------------------

LAYOUT = WriteLayout(("a",), integers([1]), integers([0]))
SAVE = SaveRequested(LAYOUT, (Output(HIDDEN, (1, 1), "float32"),))
STEP_EVENTS: dict[str, RowEvent] = {
    "StepStarted": StepStarted((extended(a=1),)),
    "SaveRequested": SAVE,
    "SavePublished": SavePublished(1),
    "SaveCancelled": SaveCancelled(1),
    "StepDropped": StepDropped(integers([0])),
    "ConsumeRequested": ConsumeRequested(1, ("a",)),
    "RowsCopiedOut": RowsCopiedOut(1),
    "ConsumeAbandoned": ConsumeAbandoned(1),
    "StepConsumed": StepConsumed(1),
    "StepDiscarded": StepDiscarded(1),
    "ResetRequested": ResetRequested(),
}
_NOT_STARTED, _NOT_RESERVED = StepNotStartedError, SaveNotReservedError
_NOT_CONSUMING, _ENDED = StepNotBeingConsumedError, StepAlreadyConsumedError
STEP_REFUSALS: dict[StepPhase | None, dict[str, type[TenureError]]] = {
    StepPhase.STARTED: {
        "StepStarted": StepNotSavedError,
        "SavePublished": _NOT_RESERVED,
        "SaveCancelled": _NOT_RESERVED,
        "ConsumeRequested": UnknownStepError,
        "RowsCopiedOut": _NOT_CONSUMING,
        "ConsumeAbandoned": _NOT_CONSUMING,
        "StepConsumed": _NOT_CONSUMING,
        "StepDiscarded": UnknownStepError,
    },
    StepPhase.RESERVED: {
        "StepStarted": SaveReservedError,
        "SaveRequested": SaveReservedError,
        "StepDropped": SaveReservedError,
        "ConsumeRequested": UnknownStepError,
        "RowsCopiedOut": _NOT_CONSUMING,
        "ConsumeAbandoned": _NOT_CONSUMING,
        "StepConsumed": _NOT_CONSUMING,
        "StepDiscarded": UnknownStepError,
    },
    StepPhase.SAVED: {
        "SaveRequested": _NOT_STARTED,
        "SavePublished": _NOT_RESERVED,
        "SaveCancelled": _NOT_RESERVED,
        "StepDropped": _NOT_STARTED,
        "RowsCopiedOut": _NOT_CONSUMING,
        "ConsumeAbandoned": _NOT_CONSUMING,
        "StepConsumed": _NOT_CONSUMING,
    },
    StepPhase.CONSUMING: {
        "SaveRequested": _NOT_STARTED,
        "SavePublished": _NOT_RESERVED,
        "SaveCancelled": _NOT_RESERVED,
        "StepDropped": _NOT_STARTED,
        "ConsumeRequested": StepBeingConsumedError,
        "StepDiscarded": StepBeingConsumedError,
    },
    None: {
        "SaveRequested": _NOT_STARTED,
        "SavePublished": _NOT_RESERVED,
        "SaveCancelled": _NOT_RESERVED,
        "StepDropped": _NOT_STARTED,
        "ConsumeRequested": _ENDED,
        "RowsCopiedOut": _NOT_CONSUMING,
        "ConsumeAbandoned": _NOT_CONSUMING,
        "StepConsumed": _NOT_CONSUMING,
        "StepDiscarded": _ENDED,
    },
}
"""Per phase of step 1 (None: consumed) the events that are refused; all others are taken."""


def scene_with_step(phase: StepPhase | None) -> Scene:
    """Step 1, of one token, in a phase; its rows are on the host."""
    scene = Scene()
    scene.start(started("a", 1))
    if phase is StepPhase.STARTED:
        return scene
    if phase is StepPhase.RESERVED:
        scene.request_save({"a": (0,)}, h=[1])
        return scene
    scene.save({"a": (0,)}, h=[1])
    scene.drain()
    if phase is StepPhase.CONSUMING:
        scene.plan(1, "a")
    elif phase is None:
        scene.materialize(1, "a")
    return scene


@pytest.mark.parametrize("name", list(STEP_EVENTS))
@pytest.mark.parametrize("phase", list(STEP_REFUSALS), ids=lambda phase: phase.name if phase else "ENDED")
def test_r01_r22_steps_move_as_the_table_says(phase: StepPhase | None, name: str) -> None:
    """Saved or given up, and then consumed once: every other order is refused and changes nothing."""
    scene = scene_with_step(phase)
    refusal = STEP_REFUSALS[phase].get(name)
    if refusal is not None:
        with pytest.raises(refusal):
            scene.tell(STEP_EVENTS[name])
        return
    if isinstance(STEP_EVENTS[name], SaveRequested):
        scene.request_save({"a": (0,)}, h=[1])
    else:
        scene.tell(STEP_EVENTS[name])

    step = scene.view.steps.get(1)
    moved = (phase, step.phase if step else None)
    assert moved[0] is moved[1] or name in STEP_MOVES[moved]


def test_r01_r22_every_move_of_a_step_is_made_by_a_test() -> None:
    """The table has no move that nothing makes."""
    taken = {(phase, name) for phase, refusals in STEP_REFUSALS.items() for name in STEP_EVENTS if name not in refusals}
    made = {(before, name) for (before, _), names in STEP_MOVES.items() for name in names}

    # A reset ends steps only after a failure, which test_r24 shows.
    assert made - taken <= {(None, "StepStarted")}


@pytest.mark.parametrize("phase", list(StepPhase), ids=lambda phase: phase.name)
def test_r24_reset_after_a_failure_ends_steps_in_any_phase(phase: StepPhase) -> None:
    """Whatever runs is forgotten; a builder that is at the step ends later, and then its page is free."""
    scene = scene_with_step(phase)
    if phase is StepPhase.STARTED:
        scene.tell(StepDropped(integers([0])))
    if phase in (StepPhase.STARTED, StepPhase.RESERVED):
        if phase is StepPhase.STARTED:
            scene.start(extended(a=1))
            scene.save({"a": (1,)}, h=[2])
            scene.fail(CopyPage)
            assert 1 == len(scene.view.steps)
            scene.tell(ResetRequested())
            assert not scene.view.steps
            return
        scene.publish()
        scene.fail(CopyPage)
        scene.tell(ResetRequested())
        assert not any(scene.view.pages)
        return
    scene.start(extended(a=1))
    scene.save({"a": (1,)}, h=[2])
    scene.fail(CopyPage)
    scene.tell(ResetRequested())

    assert not scene.view.steps
    assert not scene.view.live
    if phase is StepPhase.CONSUMING:
        assert {1: 0} == scene.view.fenced_steps
        assert isinstance(scene.tell(RowsCopiedOut(1)), Ignored)
        assert {1: None} == scene.view.fenced_steps
        assert isinstance(scene.tell(StepConsumed(1)), Ignored)
    scene.run()
    assert scene.is_quiet()


# --- Rows -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("move", list(ROW_MOVES), ids=lambda move: f"{move[0].name}-{move[1].name}")
def test_r03_rows_move_as_the_table_says(move: tuple[Occupancy, Occupancy]) -> None:
    """What one (name, slot) holds follows from claims alone."""
    before, after = move
    scene = Scene()
    scene.step(started("a", 1), started("b", 0), batch={"a": (0,)}, h=[0], c=[1])
    scene.run(CopyPage, ScatterRows)
    deferred = max(scene.view.writes)
    if before is Occupancy.ABSENT:
        scene.step(extended(b=1), batch={"b": (0,)}, h=[0])
    elif before is Occupancy.COMMITTED:
        scene.start(Finished("a"))
        scene.drain()
    elif before is Occupancy.LOST:
        scene.start(Finished("a"), extended(b=1))
        scene.tell(WriteFailed(deferred))
    assert [before] == scene.occupancy("c", 0)
    scene.run(CopyPage, ScatterRows)

    if after is Occupancy.LOST:
        scene.tell(WriteFailed(deferred))
    elif after is Occupancy.COMMITTED:
        scene.start(Finished("a"))
        scene.drain()
    elif before is Occupancy.LOST:
        scene.tell(StepDropped(integers([0])))
    elif after is Occupancy.ABSENT:
        scene.step(extended(b=1), batch={"b": (0,)}, h=[0])
    else:
        scene.step(extended(b=1), batch={"b": (0,)}, h=[0], c=[2])
    assert [after] == scene.occupancy("c", 0)


def test_diagrams_show_every_move() -> None:
    """They are drawn from the same tables."""
    for diagram, moves in (
        (write_diagram(), [(before.name, after.name) for before, after in WRITE_CHAIN]),
        (row_diagram(), [(before.name, after.name) for before, after in ROW_MOVES]),
        (step_diagram(), [(a.name if a else "[*]", b.name if b else "[*]") for a, b in STEP_MOVES]),
        (
            read_diagram(),
            [
                (before.name, after.name if after else "[*]")
                for table in READ_MOVES.values()
                for before, after in table.items()
            ],
        ),
    ):
        for before, after in moves:
            assert f"{before} --> {after}" in diagram


def test_r13_preserve_of_a_read_that_was_dropped_is_awaited_by_its_release() -> None:
    """Memory is not given back under a copy that still writes it."""
    scene, read = scene_with_read(ReadPhase.PLANNED)
    scene.step(started("c", 4), batch={"c": FIRST}, h=[6] * 4)
    (preserve,) = (command for command in scene.device.open if isinstance(command, PreserveRows))
    scene.tell(StepDiscarded(2))
    (release,) = (each for each in scene.device.open if getattr(each, "reads", ()) == (read,))

    assert (preserve.command,) == release.after
