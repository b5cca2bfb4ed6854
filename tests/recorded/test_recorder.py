"""`OutputCache(..., record=FILE)`: what a run leaves in its file, and that the run never depends on it."""

import io
import json
import logging
import threading
from enum import IntEnum
from pathlib import Path
from typing import Any, BinaryIO, cast

import numpy as np
import pytest

import tenure
from tenure import Finished, OutputCache, RowConfig, RowFormat, Schedule, Started, WriteLayout
from tenure.core.arrays import integers
from tenure.core.errors import (
    HitNotAlignedError,
    OperationFailedError,
    RequestIdError,
    SlotCountError,
    StepAlreadyConsumedError,
)
from tenure.core.rows.answers import Done
from tenure.core.rows.events import CopyBegan, StepDropped
from tenure.recording import Header, Recorder, RecordError, read_line
from tenure.recording.recorder import THREAD_NAME
from tenure.validation import Verdict, validate
from tests.facade.devices import ScriptedDevice
from tests.facade.engine import FIRST, PATIENCE_S, Engine, eventually, started
from tests.recorded.runs import lines_of_a_run, recorded

CONFIG = RowConfig(num_blocks=4, block_size=4, page_rows_max=16)


class Named(IntEnum):
    """Numbers with names."""

    ONE = 1


class SlowFile(io.BytesIO):
    """A disk that takes nothing before it is told to."""

    def __init__(self) -> None:
        super().__init__()
        self.may_write = threading.Event()

    def write(self, data: Any) -> int:
        assert self.may_write.wait(PATIENCE_S)
        return super().write(data)


class FullFile(io.BytesIO):
    """A disk that is full after some lines."""

    def __init__(self, lines: int) -> None:
        super().__init__()
        self._left = lines

    def write(self, data: Any) -> int:
        self._left -= 1
        if self._left < 0:
            raise OSError(28, "No space left on device")
        return super().write(data)


def kinds(lines: list[str]) -> list[str]:
    return [json.loads(line)["kind"] for line in lines]


def test_a_record_is_a_header_events_with_what_they_led_to_and_a_closing_line() -> None:
    """Whoever reads it must not guess."""
    lines = list(lines_of_a_run())
    found = kinds(lines)
    header = read_line(lines[0])

    assert isinstance(header, Header)
    assert f"tenure {tenure.__version__}" == header.writer
    assert () == header.unlogged
    assert header.answers
    assert "closed" == found[-1]
    assert {"event"} == set(found[1:-1:2])
    assert {"answer", "refused"} == set(found[2:-1:2])
    assert found[1:-1].count("event") == json.loads(lines[-1])["value"]["events"]


def test_a_refusal_is_recorded_with_its_code_and_scope(tmp_path: Path) -> None:
    """It is what the core said."""
    path = tmp_path / "run.ndjson"
    with Engine(cache={"record": str(path)}) as engine:
        step = engine.step(started("a", 4), batch={"a": FIRST}, h=[1] * 4)
        engine.discard(step)
        with pytest.raises(StepAlreadyConsumedError):
            engine.discard(step)
    refused = [json.loads(line) for line in path.read_text().splitlines() if '"refused"' in line]

    assert [{"error": "StepAlreadyConsumedError", "scope": "REQUEST"}] == [line["value"] for line in refused]


def test_a_full_queue_leaves_events_out_and_says_how_many(tmp_path: Path) -> None:
    """Nothing waits for a disk; what is missing is not passed over in silence."""
    file = SlowFile()
    recorder = Recorder(file, CONFIG, writer="test", queue_max=4)
    for number in range(1, 10):
        recorder.took(CopyBegan(number), Done())
    left_out = recorder.status.left_out
    file.may_write.set()
    eventually(lambda: recorder.status.written >= 9)
    recorder.took(CopyBegan(10), Done())
    recorder.close(PATIENCE_S)
    lines = [json.loads(line) for line in file.getvalue().decode().splitlines()]
    gaps = [place for place, line in enumerate(lines) if line["kind"] == "gap"]

    assert 5 == left_out
    assert [9] == gaps
    assert {"events": 5} == lines[9]["value"]
    assert 10 == lines[10]["value"]["write"]
    assert {"events": 5, "left_out": 5} == lines[-1]["value"]


def test_events_left_out_at_the_end_are_counted_before_the_record_closes() -> None:
    """A gap nobody wrote would make the record look whole."""
    file = SlowFile()
    recorder = Recorder(file, CONFIG, writer="test", queue_max=1)
    for number in range(1, 4):
        recorder.took(CopyBegan(number), Done())
    file.may_write.set()
    recorder.close(PATIENCE_S)

    assert ["gap", "closed"] == kinds(file.getvalue().decode().splitlines())[-2:]


def test_a_disk_that_fails_ends_the_record_and_not_the_cache(caplog: pytest.LogCaptureFixture) -> None:
    """The cache serves as before; the error is there to be seen, in the log and at the cache."""
    with (
        caplog.at_level(logging.WARNING, "tenure.recording"),
        Engine(cache={"record": cast("BinaryIO", FullFile(5))}) as engine,
    ):
        for number in range(4):
            engine.written(f"a{number}", FIRST, h=[1, 2, 3, 4])
        eventually(lambda: engine.cache.recording is not None and engine.cache.recording.error)
        step = engine.step(started("b", 4, 0), batch={"b": (4, 5, 6, 7)}, h=[5] * 4)
        found = engine.materialize(step, "b")
        status = engine.cache.recording

    assert {"h": {"b": [1, 2, 3, 4, 5, 5, 5, 5]}} == found
    assert status is not None
    assert "No space left" in str(status.error)
    assert 5 == status.written
    assert status.left_out
    assert "No space left" in caplog.text


def test_a_file_that_is_closed_under_it_ends_the_record_and_not_the_cache(caplog: pytest.LogCaptureFixture) -> None:
    """A file object is its owner's, who may close it."""
    file = io.BytesIO()
    with caplog.at_level(logging.WARNING, "tenure.recording"), Engine(cache={"record": file}) as engine:
        file.close()
        engine.written("a", FIRST, h=[1, 2, 3, 4])
        eventually(lambda: engine.cache.recording is not None and engine.cache.recording.error)
        eventually(lambda: "closed file" in caplog.text)

        assert engine.cache.recording is not None
        assert "closed file" in str(engine.cache.recording.error)


class OddFile(io.BytesIO):
    """A file object whose faults are its own."""

    def __init__(self, error: Exception) -> None:
        super().__init__()
        self._error = error

    def write(self, data: Any) -> int:
        raise self._error


@pytest.mark.parametrize("error", [RuntimeError("broken pipe of mine"), TypeError(), KeyError("x")], ids=repr)
def test_whatever_a_file_object_raises_ends_the_record_and_is_told(
    error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    """Its thread does not die unseen, and nothing waits for a thread that is gone."""
    with caplog.at_level(logging.WARNING, "tenure.recording"):
        recorder = Recorder(OddFile(error), CONFIG, writer="test")
        eventually(lambda: recorder.status.error is not None)
        recorder.took(CopyBegan(1), Done())
        recorder.close(PATIENCE_S)

    assert (str(error) or type(error).__name__) == recorder.status.error
    assert 1 == recorder.status.left_out
    assert "ends here" in caplog.text


@pytest.mark.parametrize("target", [3.5, io.StringIO(), object(), b"x", 1], ids=lambda each: type(each).__name__)
def test_what_is_neither_a_path_nor_a_binary_file_is_refused_at_once(target: Any) -> None:
    """Not when the first event is lost, and without a thread."""
    before = set(threading.enumerate())
    with pytest.raises(RecordError, match="give record= a path, or a binary file"):
        OutputCache(CONFIG, record=target)

    assert not set(threading.enumerate()) - before


@pytest.mark.parametrize("worker", [False, True])
def test_no_thread_is_left_after_shutdown(tmp_path: Path, *, worker: bool) -> None:
    """R18: nor a file that is open; the second shutdown finds nothing to do."""
    before = set(threading.enumerate())
    path = tmp_path / "run.ndjson"
    with Engine(worker=worker, cache={"record": path}) as engine:
        assert THREAD_NAME in {each.name for each in set(threading.enumerate()) - before}
        engine.written("a", FIRST, h=[1, 2, 3, 4])
    engine.cache.shutdown()

    assert not set(threading.enumerate()) - before
    assert "closed" == kinds(path.read_text().splitlines())[-1]


def test_no_thread_is_left_where_a_cache_cannot_be_made(tmp_path: Path) -> None:
    """Whoever raises has nothing to shut down."""
    before = set(threading.enumerate())
    device = ScriptedDevice()
    device.fail("allocate", times=9)
    formats = [RowFormat("m", (1,), "float32", Schedule.JOIN_NEXT_STEP)]
    with pytest.raises(OperationFailedError):
        OutputCache(CONFIG, device=device, formats=formats, record=tmp_path / "run.ndjson")

    assert not set(threading.enumerate()) - before


def test_a_path_that_cannot_be_opened_is_refused_at_once(tmp_path: Path) -> None:
    """Not when the first event is lost."""
    before = set(threading.enumerate())
    with pytest.raises(RecordError, match=r"no.where.* give record= another path"):
        OutputCache(CONFIG, record=tmp_path / "no" / "where")

    assert not set(threading.enumerate()) - before


def test_what_the_caller_writes_to_its_arrays_later_is_not_recorded() -> None:
    """Events hold copies: what waits to be written is what the machine was told."""
    file = SlowFile()
    recorder = Recorder(file, CONFIG, writer="test")
    slots = integers([1, 2, 3]).copy()
    event = StepDropped(slots)
    recorder.took(event, Done())
    slots[:] = 9
    file.may_write.set()
    recorder.close(PATIENCE_S)
    line = read_line(file.getvalue().decode().splitlines()[1])

    assert isinstance(line, StepDropped)
    assert [1, 2, 3] == line.slots.tolist()
    assert not event.slots.flags.writeable


def test_an_event_that_no_line_can_stand_for_is_passed_over_if_it_was_refused(tmp_path: Path) -> None:
    """What an engine may call with is anything; refused, it changed nothing, and the rest is a run."""
    path = tmp_path / "run.ndjson"
    with Engine(cache={"record": path}) as engine:
        with pytest.raises(tenure.ContractError):
            engine.start(started("a", cast("int", "four")))
        engine.written("b", FIRST, h=[1, 2, 3, 4])

    assert Verdict.VALID is validate(path).verdict
    assert "four" not in path.read_text()


@pytest.mark.parametrize("request_id", [np.int64(7), np.uint8(7)], ids=["int64", "uint8"])
def test_an_id_that_was_refused_for_its_type_is_passed_over(tmp_path: Path, request_id: Any) -> None:
    """Its line would say a number, and the core takes numbers."""
    path = tmp_path / "run.ndjson"
    with Engine(cache={"record": path}) as engine:
        with pytest.raises(RequestIdError):
            engine.start(started(request_id, 4))
        engine.written("b", FIRST, h=[1, 2, 3, 4])

    assert Verdict.VALID is validate(path).verdict


@pytest.mark.parametrize(
    "start",
    [Started("a", True, 0, ((0,),)), Started("a", 4, True, ((0,),))],
    ids=["scheduled", "hit"],
)
def test_a_bool_that_was_taken_for_a_count_is_written_as_that_count(tmp_path: Path, start: Started) -> None:
    """Any kind of integer is one, or is refused for what it counts; either way the record is a run of the core."""
    path = tmp_path / "run.ndjson"
    with Engine(cache={"record": path}) as engine:
        if start.hit:
            with pytest.raises(HitNotAlignedError):
                engine.start(start)
        else:
            engine.start(start)
            engine.save({"a": (0,)}, h=[1])

    assert Verdict.VALID is validate(path).verdict
    assert ('"scheduled":1,' in path.read_text()) is not bool(start.hit)


@pytest.mark.parametrize("request_id", [True, Named.ONE], ids=["bool", "enum"])
def test_an_id_that_only_equals_a_number_is_refused_in_the_record_as_well(tmp_path: Path, request_id: Any) -> None:
    """It would be that number for every table that holds it, and no layout could name it."""
    path = tmp_path / "run.ndjson"
    with Engine(cache={"record": path}) as engine:
        with pytest.raises(RequestIdError):
            engine.start(started(request_id, 4))
        engine.start(started(1, 4))
        step = engine.save({1: FIRST}, h=[1] * 4)
        engine.materialize(step, 1)
        with pytest.raises(RequestIdError):
            engine.start(Finished(request_id))
    report = validate(path)

    assert report.fault is None
    assert Verdict.VALID is report.verdict


@pytest.mark.parametrize("step", [1.0, np.float64(1)], ids=["float", "numpy"])
def test_a_number_that_is_not_whole_by_type_is_no_step(tmp_path: Path, step: Any) -> None:
    """Whatever the machine says of it, the record stays a run of the core."""
    path = tmp_path / "run.ndjson"
    with Engine(cache={"record": path}) as engine:
        engine.start(started("a", 4))
        engine.save({"a": FIRST}, h=[1] * 4)
        with pytest.raises(tenure.ContractError):
            engine.materialize(step, "a")

    assert Verdict.VALID is validate(path).verdict


def test_a_refused_call_is_recorded_whatever_whole_numbers_its_layout_had(tmp_path: Path) -> None:
    """Events hold arrays of one type: what was refused for its values is written."""
    path = tmp_path / "run.ndjson"
    with Engine(cache={"record": path}) as engine:
        engine.start(started("a", 4))
        counts: Any = np.array([3], np.int32)
        slots: Any = np.array([0, 1, 2], np.uint16)
        with pytest.raises(SlotCountError):
            engine.cache.save_outputs(
                np.ones((3, 1), np.float32),
                {},
                layout=WriteLayout(("a",), counts, slots),
            )
        engine.save({"a": FIRST}, h=[1] * 4)

    assert '"SlotCountError"' in path.read_text()
    assert Verdict.VALID is validate(path).verdict


def test_without_a_record_nothing_is_recorded() -> None:
    """Nobody pays for what he did not ask for."""
    before = set(threading.enumerate())
    with Engine() as engine:
        assert engine.cache.recording is None
        assert THREAD_NAME not in {each.name for each in set(threading.enumerate()) - before}


def test_a_run_with_refusals_and_hits_is_what_these_tests_look_at(tmp_path: Path) -> None:
    """Or they would say little."""
    traffic = recorded(tmp_path / "run.ndjson", builders=0)
    text = "".join(lines_of_a_run())

    assert "StepAlreadyConsumedError" in traffic.refused
    for word in ("GatherCompleted", "ConsumePlan", "StepDiscarded", "ScatterCompleted", '"refused"'):
        assert word in text
