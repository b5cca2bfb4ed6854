"""`tenure validate`: exit status, what is printed, the report as JSON."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tenure.cli import main
from tests.recorded.runs import Record


def run(*arguments: object) -> Result:
    return CliRunner().invoke(main, ["validate", *map(str, arguments)])


def written(record: Record, folder: Path) -> Path:
    record.validated(folder)
    return folder / "record.ndjson"


def test_a_run_of_the_core_ends_with_0(tmp_path: Path) -> None:
    """And says how far it goes."""
    record = Record()
    result = run(written(record, tmp_path))

    assert 0 == result.exit_code
    assert "VALID" in result.output
    assert f"{len(record.lines)} lines" in result.output
    assert "end: closed" in result.output


def test_what_is_no_run_of_the_core_ends_with_1_and_tells_why(tmp_path: Path) -> None:
    """The line, what the core does there, what would have been possible."""
    record = Record()
    place = record.find("SaveReserved", 1)
    record.lines[place]["value"]["page"] = 9
    result = run(written(record, tmp_path))

    assert 1 == result.exit_code
    assert f"line {place + 1}" in result.output
    assert "INVALID" in result.output
    assert "page: the record has 9" in result.output
    assert "was possible" in result.output


def test_what_is_no_record_ends_with_2_and_one_sentence(tmp_path: Path) -> None:
    """No traceback."""
    path = tmp_path / "file"
    path.write_text("nothing\n")
    for target in (path, tmp_path / "missing", tmp_path):
        result = run(target)

        assert 2 == result.exit_code
        assert "Traceback" not in result.output
        assert "Error" in result.output


def test_the_verdict_is_shown_where_its_file_cannot_be_written(tmp_path: Path) -> None:
    """The work is done by then, and need not be done again."""
    record = Record()
    record.lines[record.find("SaveReserved", 1)]["value"]["page"] = 9
    result = run(written(record, tmp_path), "--json", tmp_path / "no" / "where.json")

    assert 2 == result.exit_code
    assert "page: the record has 9" in result.output
    assert "INVALID" in result.output
    assert "cannot be written" in result.output


def test_a_gap_ends_with_3(tmp_path: Path) -> None:
    """Nothing is wrong, and nothing can be said."""
    record = Record()
    record.lines.insert(41, {"version": 1, "kind": "gap", "value": {"events": 3}})
    result = run(written(record, tmp_path))

    assert 3 == result.exit_code
    assert "to know: events are missing here" in result.output


@pytest.mark.parametrize("page", [None, 9])
def test_the_report_as_json_has_the_same_fields_whatever_the_verdict(tmp_path: Path, page: int | None) -> None:
    """Programs read it."""
    record = Record()
    if page is not None:
        record.lines[record.find("SaveReserved", 1)]["value"]["page"] = page
    path = written(record, tmp_path)
    target = tmp_path / "report.json"
    result = run(path, "--json", target)
    printed = run(path, "--json", "-")
    found = json.loads(target.read_text())

    assert found == json.loads(printed.output)
    assert result.exit_code == printed.exit_code == (0 if page is None else 1)
    assert [
        "version",
        "file",
        "writer",
        "verdict",
        "matched_lines",
        "events",
        "end",
        "unlogged",
        "states_most",
        "reason",
        "fault",
    ] == list(found)
    assert ("valid" if page is None else "invalid") == found["verdict"]
    if page is not None:
        assert ["line", "text", "problem", "expected", "differences", "possible"] == list(found["fault"])


def test_max_states_bounds_what_is_looked_at(tmp_path: Path) -> None:
    """Over it the verdict is UNKNOWN, not INVALID."""
    record = Record()
    record.without("CopyBegan", "CopyCompleted", "ScatterCompleted")
    record.lines[record.find("SaveReserved", 2)]["value"]["page"] = 9
    result = run(written(record, tmp_path), "--max-states", 1)

    assert 3 == result.exit_code
    assert "--max-states" in result.output
