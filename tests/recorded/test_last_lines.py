"""`validate`: a last line without an end is that of a writer that was stopped, or no line at all."""

import json
from pathlib import Path

import pytest

from tenure.validation import Verdict, validate
from tenure.validation.reading import Broken, RecordReader
from tests.recorded.runs import Record, lines_of_a_run


def test_every_beginning_of_a_line_is_a_line_that_was_cut_off(tmp_path: Path) -> None:
    """Of every kind, with names of any characters, cut within one of them too."""
    path = tmp_path / "run.ndjson"
    header, *lines = lines_of_a_run()
    names = (r"\ud83d\u20ac", r"\ud800 \\ \" \udc00x", "\u20ac")
    odd = [f'{{"version":1,"kind":"event","value":{{"kind":"StepStarted","changes":["{each}' for each in names]
    kinds = {json.loads(line)["kind"]: line for line in lines}
    texts = [header + "\n" + line for line in (*kinds.values(), *odd)]
    wrong = set[bytes]()
    for text in [each.encode() for each in texts]:
        for stop in range(len(header) + 2, len(text)):
            path.write_bytes(text[:stop])
            reader = RecordReader(path)
            (found,) = reader.entries()
            reader.close()
            if not isinstance(found, Broken) or not found.is_cut_off:
                wrong.add(text[len(header) + 1 : stop])

    assert not wrong


@pytest.mark.parametrize(
    "text",
    [
        "the server caught fire",
        '{"version":99,"kind":"answer","value":{"kind":"NoSuch"}}',
        '{"version":99,"kind":"answer","val',
        '{"version":1,"kind":"noise","val',
        '{"version":1,"when":3',
        '{"version":1,"kind":"gap","value":[',
        '{"version":1,"kind":"answer","value":{"kind":"Done"}} and more',
        '{"version" 1',
        "[1, 2",
        "nul",
        "\x00",
    ],
)
def test_a_last_line_that_is_no_beginning_of_one_is_invalid(tmp_path: Path, text: str) -> None:
    """That it has no end excuses nothing: whoever wrote it wrote no record."""
    path = tmp_path / "run.ndjson"
    lines = [json.dumps(line) for line in Record().lines[:5]]
    path.write_text("\n".join((*lines, text)))
    report = validate(path)

    assert Verdict.INVALID is report.verdict
    assert report.fault is not None
    assert 6 == report.fault.line


def test_a_line_that_is_too_long_is_invalid(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It has no end where reading stopped, and it is not the last."""
    path = tmp_path / "run.ndjson"
    lines = list(lines_of_a_run())
    longest = max(map(len, lines)) + 1
    monkeypatch.setattr("tenure.validation.reading.LINE_BYTES_MAX", longest)
    path.write_text("\n".join(lines) + "\n")
    assert Verdict.VALID is validate(path).verdict
    path.write_text("\n".join((*lines[:5], lines[5][:-1] + " " * longest + "}", *lines[6:])) + "\n")
    report = validate(path)

    assert Verdict.INVALID is report.verdict
    assert report.fault is not None
    assert 6 == report.fault.line
    assert "longer than" in report.fault.problem
