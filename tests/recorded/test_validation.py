"""`validate`: real runs are runs of the core, and every fault that is planted in a record is found at its line."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tenure.backends.device import Lane
from tenure.core.errors import ContractError
from tenure.core.rows.events import WriteFailed
from tenure.recording import RecordError
from tenure.validation import Report, Verdict, validate
from tenure.validation.due import COMPLETIONS
from tenure.validation.reading import RecordReader, Told
from tenure.validation.states import PossibleStates, Search
from tests.facade.devices import ScriptedDevice
from tests.facade.engine import FIRST, SECOND, Call, Engine, eventually, started
from tests.recorded.runs import Record, emulated, recorded

NO_FAILURES = tuple(each.__name__ for each in COMPLETIONS if not each.__name__.endswith("Failed"))


@pytest.mark.parametrize("worker", [False, True], ids=["inline", "threaded"])
def test_a_run_on_the_cpu_is_a_run_of_the_core(tmp_path: Path, *, worker: bool) -> None:
    """An engine and two builders, each on a thread."""
    path = tmp_path / "run.ndjson"
    recorded(path, worker=worker)
    report = validate(path)

    assert report.fault is None
    assert Verdict.VALID is report.verdict
    assert "closed" == report.end
    assert len(path.read_text().splitlines()) == report.matched_lines == 2 * report.events + 2


@pytest.mark.parametrize("seed", range(3))
def test_a_run_on_an_emulated_device_with_faults_is_a_run_of_the_core(tmp_path: Path, seed: int) -> None:
    """Copies that fail, calls that raise, memory that is not there, resets after them."""
    path = tmp_path / "run.ndjson"
    device = emulated(seed, ("copy", "call", "allocation", "late"))
    recorded(path, seed=seed, device=device)
    report = validate(path)

    assert sum(device.faults.injected.values())
    assert "Failed" in path.read_text()
    assert report.fault is None
    assert Verdict.VALID is report.verdict


def test_a_run_that_was_cut_off_is_valid_as_far_as_it_goes(tmp_path: Path) -> None:
    """Whoever wrote it was killed: in a line, behind an event, between two of them."""
    path = tmp_path / "run.ndjson"
    text = "".join(json.dumps(line) + "\n" for line in Record().lines)
    for place in (len(text) // 2, text.index("\n", len(text) // 2) + 1, text.index("\n", len(text) // 3) + 1):
        path.write_text(text[:place])
        report = validate(path)

        assert Verdict.VALID is report.verdict
        assert "cut off" == report.end


# --- Planted faults -------------------------------------------------------------------------------------------------


def drop_an_event(record: Record) -> int:
    """A copy that never began is completed."""
    place = record.find("CopyBegan", 3)
    write = record.lines[place]["value"]["write"]
    record.drop_pair(place)
    return next(
        number
        for number, line in enumerate(record.lines, 1)
        if line["value"].get("kind") == "CopyCompleted" and line["value"]["write"] == write
    )


def drop_what_nobody_misses(record: Record) -> int:
    """A refused call changes nothing: the closing line alone tells that it is not there."""
    refused = next(place for place, line in enumerate(record.lines) if line["kind"] == "refused")
    del record.lines[refused - 1 : refused + 1]
    return len(record.lines)


def swap_completions(record: Record) -> int:
    """A copy is completed before it began."""
    began = record.find("CopyBegan", 2)
    write = record.lines[began]["value"]["write"]
    ended = next(
        place
        for place in range(began, len(record.lines))
        if record.lines[place]["value"].get("kind") == "CopyCompleted"
        and record.lines[place]["value"]["write"] == write
    )
    record.lines[began], record.lines[ended] = record.lines[ended], record.lines[began]
    return began + 1


def double_a_completion(record: Record) -> int:
    """The same answer of one command, twice."""
    place = record.find("ScatterCompleted", 2)
    record.lines[place + 2 : place + 2] = record.pair(place)
    return place + 3


def change_an_answer(record: Record) -> int:
    """Another page."""
    place = record.find("SaveReserved", 1)
    record.lines[place]["value"]["page"] = 9
    return place + 1


def change_the_kind_of_an_answer(record: Record) -> int:
    """What took effect is said to be ignored."""
    place = record.find("SavePublished", 1) + 1
    record.lines[place]["value"] = {"kind": "Ignored", "reason": ""}
    return place + 1


def change_a_row_count(record: Record) -> int:
    """The hit buffer of a plan has a row more."""
    place = next(
        place
        for place, line in enumerate(record.lines)
        if line["value"].get("kind") == "ConsumePlan" and line["value"]["hits"]
    )
    record.lines[place]["value"]["hits"][0]["num_rows"] += 1
    return place + 1


def save_a_token_more(record: Record) -> int:
    """A layout with a row more than was scheduled."""
    place = record.find("SaveRequested", 2)
    layout = record.lines[place]["value"]["layout"]
    layout["counts"][0] += 1
    layout["slots"].append(47)
    return place + 1


def extend_an_unknown_request(record: Record) -> int:
    """Nobody started it."""
    for place, line in enumerate(record.lines):
        for change in line["value"].get("changes", ()):
            if change["kind"] == "Extended":
                change["requests"][0] = "nobody"
                return place + 1
    raise AssertionError


def consume_a_step_again(record: Record) -> int:
    """A step id that is used twice."""
    first, second = record.find("StepConsumed"), record.find("StepConsumed", 3)
    record.lines[second]["value"]["step"] = record.lines[first]["value"]["step"]
    return second + 1


def begin_with_an_old_step(record: Record) -> int:
    """Numbers of steps only grow."""
    place = record.find("StepBegan", 3)
    record.lines[place]["value"]["step"] = 1
    return place + 1


def refuse_what_is_legal(record: Record) -> int:
    """The core takes it."""
    place = record.find("SavePublished", 2) + 1
    record.lines[place] = {
        "version": 1,
        "kind": "refused",
        "value": {"error": "SaveNotReservedError", "scope": "CACHE"},
    }
    return place + 1


def refuse_for_another_reason(record: Record) -> int:
    """The code of an error is part of what the core says."""
    place = next(place for place, line in enumerate(record.lines) if line["kind"] == "refused")
    record.lines[place]["value"]["error"] = "UnknownStepError"
    return place + 1


def leave_an_answer_out(record: Record) -> int:
    """The header promises all of them."""
    place = record.find("SavePublished", 1) + 1
    del record.lines[place]
    return place + 1


def say_an_answer_twice(record: Record) -> int:
    """An answer without an event."""
    place = record.find("StepSaved", 1)
    record.lines.insert(place, record.lines[place])
    return place + 2


def change_a_version(record: Record) -> int:
    """Of a line in the middle."""
    record.lines[40]["version"] = 2
    return 41


def add_a_field(record: Record) -> int:
    """What a class does not have."""
    place = record.find("SavePublished", 1)
    record.lines[place]["value"]["colour"] = "red"
    return place + 1


def begin_again(record: Record) -> int:
    """A second header."""
    record.lines.insert(21, record.lines[0])
    return 22


def go_on_after_the_end(record: Record) -> int:
    """A line behind the closing one."""
    record.lines += record.pair(1)
    return len(record.lines) - 1


def leave_out_what_no_gap_names(record: Record) -> int:
    """Events are missing by the closing line, and no line says where."""
    record.lines[-1]["value"]["left_out"] = 7
    return len(record.lines)


PLANTED = (
    leave_out_what_no_gap_names,
    drop_an_event,
    drop_what_nobody_misses,
    swap_completions,
    double_a_completion,
    change_an_answer,
    change_the_kind_of_an_answer,
    change_a_row_count,
    save_a_token_more,
    extend_an_unknown_request,
    consume_a_step_again,
    begin_with_an_old_step,
    refuse_what_is_legal,
    refuse_for_another_reason,
    leave_an_answer_out,
    say_an_answer_twice,
    change_a_version,
    add_a_field,
    begin_again,
    go_on_after_the_end,
)


@pytest.mark.parametrize("spoil", PLANTED, ids=lambda spoil: spoil.__name__)
def test_a_planted_fault_is_found_at_its_line(tmp_path: Path, spoil: Callable[[Record], int]) -> None:
    """And everything before it matches."""
    record = Record()
    line = spoil(record)
    report = record.validated(tmp_path)

    assert Verdict.INVALID is report.verdict
    assert report.fault is not None
    assert line == report.fault.line
    assert line - 1 == report.matched_lines
    assert report.fault.problem


def test_a_line_that_is_cut_in_the_middle_of_a_file_is_invalid(tmp_path: Path) -> None:
    """Only at the end of a file it tells of a writer that was stopped."""
    path = tmp_path / "run.ndjson"
    lines = [json.dumps(line) for line in Record().lines]
    lines[30] = lines[30][:-5]
    path.write_text("\n".join(lines) + "\n")
    report = validate(path)

    assert Verdict.INVALID is report.verdict
    assert report.fault is not None
    assert 31 == report.fault.line


def test_a_fault_is_told_with_the_difference_and_what_was_possible(tmp_path: Path) -> None:
    """Whoever reads it must see what the core does there."""
    record = Record()
    change_an_answer(record)
    fault = record.validated(tmp_path).fault
    assert fault is not None

    assert any(text.startswith("page: the record has 9, the core ") for text in fault.differences)
    assert any("SaveReserved" in text for text in fault.expected)
    assert any(text.startswith("ShutdownRequested {} -> Done") for text in fault.possible)


def test_a_failure_that_no_command_carries_is_invalid(tmp_path: Path) -> None:
    """The core would take it; nobody was asked to copy the deferred rows of a request that runs."""
    path = tmp_path / "run.ndjson"
    with Engine(cache={"record": path}) as engine:
        engine.discard(engine.step(started("a", 4), batch={"a": FIRST}, h=[1] * 4, c=[2] * 4))
        engine.machine.tell(WriteFailed(next(iter(engine.machine.state.tables.open_write.values()))))
    report = validate(path)

    assert Verdict.INVALID is report.verdict
    assert report.fault is not None
    assert "no command" in report.fault.problem


def test_calls_that_wait_and_are_told_again_are_a_run_of_the_core(tmp_path: Path) -> None:
    """Each time is an event, and its answer names what is waited for."""
    path = tmp_path / "run.ndjson"
    device = ScriptedDevice()
    with Engine(device=device, cache={"record": path}) as engine:
        device.hold(Lane.COPY)
        step = engine.step(started("a", 4), batch={"a": FIRST}, h=[1] * 4)
        call = Call(engine.cache.materialize, step, ["a"])
        eventually(lambda: engine.cache.recording is not None and '"Waiting"' in path.read_text())
        device.release()
        call.result()
    report = validate(path)

    assert report.fault is None
    assert Verdict.VALID is report.verdict


def test_nothing_is_kept_of_commands_that_were_answered(tmp_path: Path) -> None:
    """A record may be as long as a day: what is known of it does not grow."""
    path = tmp_path / "run.ndjson"
    recorded(path, builders=0)
    reader = RecordReader(path)
    states = PossibleStates(reader.header.config, (), 1, Search.NEAREST)
    for entry in reader.entries():
        if isinstance(entry, Told):
            assert states.take(entry.event, entry.result)
    reader.close()

    assert [([], [], [])] == [each.due.listed() for each in states.states]


# --- What is no record ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "",
        "not json\n",
        '{"version":1,"kind":"answer","value":{"kind":"Done"}}\n',
        '{"version":2,"kind":"header","value":{}}\n',
        "[]\n",
        "\x00\x01",
    ],
)
def test_what_is_no_record_is_refused(tmp_path: Path, text: str) -> None:
    """With what is wrong and what to do; nothing is said of a run."""
    path = tmp_path / "file"
    path.write_text(text)
    with pytest.raises(RecordError, match=r"file: .*; give the file") as found:
        validate(path)

    assert isinstance(found.value, ContractError)


# --- Records that leave something out -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "kinds", [NO_FAILURES, ("GatherBegan", "GatherCompleted"), ("CopyBegan", "CopyCompleted")], ids=str
)
def test_a_run_without_the_lines_of_unlogged_kinds_is_valid(tmp_path: Path, kinds: tuple[str, ...]) -> None:
    """Another implementation need not log what its devices do; some run explains what it logs."""
    record = Record()
    record.without(*kinds)
    report = record.validated(tmp_path)

    assert report.fault is None
    assert Verdict.VALID is report.verdict
    assert kinds == report.unlogged


def test_a_run_without_answers_is_valid(tmp_path: Path) -> None:
    """As far as events alone can tell; what was refused is said."""
    record = Record()
    record.lines[0]["value"]["answers"] = False
    record.lines = [line for line in record.lines if line["kind"] != "answer"]
    report = record.validated(tmp_path)

    assert Verdict.VALID is report.verdict
    assert "closed" == report.end


def small_run(tmp_path: Path) -> Record:
    """A run of a few events, so that everything that may have happened can be looked at."""
    path = tmp_path / "small.ndjson"
    recorded(path, steps=3, seed=4, builders=0)
    record = Record(path.read_text().splitlines())
    record.without("CopyBegan", "CopyCompleted", "ScatterCompleted")
    return record


def late_run(tmp_path: Path) -> Record:
    """A step is discarded while its hit is being gathered, and that the gather began is in no line."""
    path = tmp_path / "late.ndjson"
    device = ScriptedDevice()
    with Engine(device=device, cache={"record": path}) as engine:
        engine.written("b", FIRST, h=[1, 2, 3, 4])
        device.hold(Lane.GATHER)
        engine.discard(engine.step(started("a", 4, 0), batch={"a": SECOND}, h=[5] * 4))
        device.release()
        eventually(lambda: not engine.cache.stats().reads)
    record = Record(path.read_text().splitlines())
    record.without("GatherBegan")
    return record


def test_everything_that_may_have_happened_is_looked_at_before_a_record_is_called_invalid(tmp_path: Path) -> None:
    """The discard does not need that the gather began, and what comes later does."""
    report = late_run(tmp_path).validated(tmp_path)

    assert report.fault is None
    assert Verdict.VALID is report.verdict
    assert report.states_most > 1


def test_what_could_not_be_looked_at_is_not_called_invalid(tmp_path: Path) -> None:
    """That the nearest states do not fit says nothing."""
    report = late_run(tmp_path).validated(tmp_path, states_max=1)

    assert Verdict.UNKNOWN is report.verdict
    assert report.fault is None


def test_a_wrong_event_is_found_where_others_are_unlogged(tmp_path: Path) -> None:
    """No state that there can be reserves this page."""
    record = small_run(tmp_path)
    assert Verdict.VALID is record.validated(tmp_path).verdict
    place = record.find("SaveReserved", 1)
    record.lines[place]["value"]["page"] = 9
    report = record.validated(tmp_path)

    assert Verdict.INVALID is report.verdict
    assert report.fault is not None
    assert place + 1 == report.fault.line
    assert report.states_most > 1


def test_a_missing_event_of_a_kind_that_is_logged_is_found_where_others_are_unlogged(tmp_path: Path) -> None:
    """Only what the header names may be supposed."""
    record = Record()
    record.without("CopyBegan")
    record.drop_pair(record.find("CopyCompleted", 2))

    assert Verdict.VALID is not record.validated(tmp_path).verdict


def test_too_many_possible_states_are_unknown(tmp_path: Path) -> None:
    """It is no verdict on the run."""
    record = small_run(tmp_path)
    record.lines[record.find("SaveReserved", 1)]["value"]["page"] = 9
    report = record.validated(tmp_path, states_max=1)

    assert Verdict.UNKNOWN is report.verdict
    assert report.fault is None
    assert "too many states" in str(report.reason)


def test_from_a_gap_on_nothing_is_said(tmp_path: Path) -> None:
    """Up to there it is a run of the core."""
    record = Record()
    record.lines.insert(41, {"version": 1, "kind": "gap", "value": {"events": 3}})
    report: Report = record.validated(tmp_path)

    assert Verdict.UNKNOWN is report.verdict
    assert 41 == report.matched_lines
    assert "events are missing" in str(report.reason)
