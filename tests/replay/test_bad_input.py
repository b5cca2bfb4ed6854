"""Whatever is wrong with an input: one line that says where and what to do, exit status 2, no traceback."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.replay.traces import GOOD, Invoke, WriteTrace

BAD_LINES = {
    "truncated": (GOOD[:50], "not valid JSON: EOF while parsing"),
    "no_json": ("length, ids", "not valid JSON"),
    "no_object": ("[1, 2]", "should be an object, found a list"),
    "missing": ('{"input_length": 600, "hash_ids": [0, 1]}', "output_length is missing"),
    "text": (GOOD.replace("600", '"600"'), "input_length should be a valid integer, found '600'"),
    "fraction": (GOOD.replace("600", "600.0"), "input_length should be a valid integer, found 600.0"),
    "truth": (GOOD.replace("600", "true"), "input_length should be a valid integer, found True"),
    "null": (GOOD.replace("[0, 1]", "null"), "hash_ids should be a list, found None"),
    "negative": (GOOD.replace("600", "-600"), "input_length should be greater than or equal to 1, found -600"),
    "no_prompt": (GOOD.replace("600", "0"), "input_length should be greater than or equal to 1, found 0"),
    "huge_prompt": (GOOD.replace("600", str(2**24 + 1)), "should be less than or equal to 16777216, found 16777217"),
    "huge_output": (GOOD.replace(" 3,", f" {2**70},"), "output_length should be less than or equal to 16777216"),
    "endless_number": (GOOD.replace("600", "9" * 6000), "not valid JSON: number out of range"),
    "long_number": (GOOD.replace("600", "9" * 200), "found a number of 665 bits"),
    "time_backwards": (GOOD.replace('p": 0', 'p": -1'), "timestamp should be greater than or equal to 0"),
    "no_time": (GOOD.replace('p": 0', 'p": NaN'), "timestamp should be a finite number"),
    "text_id": (GOOD.replace("1]", '"one"]'), "hash_ids[1] should be a valid integer, found 'one'"),
    "fraction_id": (GOOD.replace("1]", "1.5]"), "hash_ids[1] should be a valid integer"),
    "negative_id": (GOOD.replace("1]", "-1]"), "hash_ids[1] should be greater than or equal to 0, found -1"),
    "huge_id": (GOOD.replace("1]", f"{2**64}]"), "hash_ids[1] should be less than or equal to 18446744073709551615"),
    "too_few_ids": (GOOD.replace(", 1]", "]"), "hash_ids has 1 ids, but 600 tokens are 2 blocks of 512"),
    "too_many_ids": (GOOD.replace("1]", "1, 2]"), "hash_ids has 3 ids, but 600 tokens are 2 blocks of 512"),
    "long_text": (GOOD.replace("600", '"' + r"x\n" * 400 + '"'), r"found 'x\nx\n"),
}


def assert_one_line(stderr: str, *parts: str) -> None:
    assert stderr.startswith("tenure: ")
    assert stderr.count("\n") == 1
    assert len(stderr) < 600
    for part in parts:
        assert part in stderr


@pytest.mark.parametrize("kind", BAD_LINES)
def test_a_bad_line_is_named_with_its_number(write_trace: WriteTrace, invoke: Invoke, kind: str) -> None:
    line, message = BAD_LINES[kind]
    path = write_trace(GOOD, line, GOOD)

    result = invoke(path)

    assert (result.exit_code, result.stdout) == (2, "")
    assert_one_line(result.stderr, f"{path}:2: ", message, "--skip-bad")


@pytest.mark.parametrize("kind", BAD_LINES)
def test_skip_bad_counts_a_bad_line_and_goes_on(write_trace: WriteTrace, invoke: Invoke, kind: str) -> None:
    path = write_trace(GOOD, BAD_LINES[kind][0], GOOD)

    result = invoke(path, "--skip-bad", "--json", "-")

    figures = json.loads(result.stdout)["requests"]
    assert (result.exit_code, figures["finished"], figures["bad"]) == (0, 2, 1)


def test_invalid_utf8_is_named_with_its_byte(tmp_path: Path, invoke: Invoke) -> None:
    path = tmp_path / "trace"
    path.write_bytes(GOOD.encode() + b"\n" + GOOD.encode()[:-1] + b', "x": "\xff"}\n')

    result = invoke(path)

    assert result.exit_code == 2
    assert_one_line(result.stderr, f"{path}:2: not valid UTF-8 at byte {len(GOOD) + 8}")


def test_an_overlong_line_is_passed_over_without_being_held(
    write_trace: WriteTrace, invoke: Invoke, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tenure.replay.mooncake.LINE_BYTES_MAX", 200)
    path = write_trace(GOOD, "x" * 999, GOOD)

    strict, lenient = invoke(path), invoke(path, "--skip-bad", "--json", "-")

    assert_one_line(strict.stderr, f"{path}:2: the line is longer than 200 bytes")
    assert (strict.exit_code, json.loads(lenient.stdout)["requests"]["finished"]) == (2, 2)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "the file is empty"),
        (b"\n \n", "the file is empty"),
        (b"hello\n", "neither a Mooncake trace"),
        (b"\x00\x01\x80" * 99, "neither a Mooncake trace"),
        (b'{"block_size": 8, "requests": [', "not valid JSON: EOF while parsing"),
        (b'{"block_size": 8, "requests": []}', "the file holds no request"),
        (b'{"block_size": 8, "requests": [{"t": "\xff"}]}', "not valid JSON: invalid unicode"),
        (b'{"block_size": 0, "requests": []}', "block_size should be greater than or equal to 1, found 0"),
        (b'{"requests": []}', "block_size is missing"),
        (b'{"block_size": 8, "requests": {}}', "requests should be a list, found an object"),
        (b'[{"requests": 1}]', "should be an object, found a list"),
    ],
)
def test_a_file_that_is_no_trace_is_named(tmp_path: Path, invoke: Invoke, content: bytes, message: str) -> None:
    path = tmp_path / "file"
    path.write_bytes(content)

    strict, lenient = invoke(path), invoke(path, "--skip-bad", "--json", "-")

    assert strict.exit_code == 2
    assert_one_line(strict.stderr, str(path), message)
    assert (lenient.exit_code, json.loads(lenient.stdout)["requests"]["bad"]) == (0, 1)


ENTRY: dict[str, Any] = {"t": 0, "in": 20, "out": 1, "hash_ids": [1, 2]}


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        (7, "should be an object, found 7"),
        ({}, "t is missing"),
        (ENTRY | {"in": 0}, "in should be greater than or equal to 1, found 0"),
        (ENTRY | {"out": -1}, "out should be greater than or equal to 0, found -1"),
        (ENTRY | {"t": "now"}, "t should be a valid number, found 'now'"),
        (ENTRY | {"hash_ids": [1]}, "hash_ids has 1 ids, but 20 tokens are 2 blocks of 8 and 4 tokens"),
        (ENTRY | {"hash_ids": [1, 2, 3, 4]}, "hash_ids has 4 ids"),
        (ENTRY | {"in": 16, "hash_ids": [1]}, "hash_ids has 1 ids, but 16 tokens are 2 blocks of 8"),
        ({"t": 0, "requests": 3}, "requests should be a list, found 3"),
        ({"t": 0, "requests": [ENTRY, ENTRY | {"in": None}]}, ".requests[1]: in should be a valid integer, found None"),
    ],
)
def test_a_bad_entry_of_a_session_is_named_by_its_path(
    tmp_path: Path, invoke: Invoke, entry: object, message: str
) -> None:
    path = tmp_path / "session"
    path.write_text(json.dumps({"block_size": 8, "requests": [ENTRY, entry]}), encoding="utf-8")

    strict = invoke(path, "--block-size", 8)
    lenient = invoke(path, "--block-size", 8, "--skip-bad", "--json", "-")

    assert strict.exit_code == 2
    assert_one_line(strict.stderr, f"{path}: requests[1]", message, "--skip-bad")
    assert (lenient.exit_code, json.loads(lenient.stdout)["requests"]["bad"]) == (0, 1)


def test_a_missing_file_is_found_before_anything_is_replayed(write_trace: WriteTrace, invoke: Invoke) -> None:
    result = invoke(write_trace(GOOD), "missing\n.jsonl", "--skip-bad")

    assert result.exit_code == 2
    assert_one_line(result.stderr, "missing\\n.jsonl: No such file or directory")


def test_a_folder_is_no_trace(tmp_path: Path, invoke: Invoke) -> None:
    result = invoke(tmp_path)

    assert result.exit_code == 2
    assert_one_line(result.stderr, f"{tmp_path}: is a folder")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_an_unreadable_file_is_named(write_trace: WriteTrace, invoke: Invoke) -> None:
    path = write_trace(GOOD)
    path.chmod(0)

    assert_one_line(invoke(path).stderr, f"{path}: Permission denied")


def test_a_request_larger_than_the_cache_is_bad(write_trace: WriteTrace, invoke: Invoke) -> None:
    """It could never finish, whatever else were preempted."""
    path = write_trace((15, 1, [1]), (16, 1, [2]))

    strict = invoke(path, "--capacity", 1)
    lenient = invoke(path, "--capacity", 1, "--skip-bad", "--json", "-")

    assert strict.exit_code == 2
    assert_one_line(strict.stderr, f"{path}:2: the request needs 2 blocks to completion, the cache has 1", "--capacity")
    assert json.loads(lenient.stdout)["requests"] | {"finished": 1, "bad": 1} == json.loads(lenient.stdout)["requests"]


@pytest.mark.parametrize("size", [3, 24, 1024])
def test_a_block_size_must_divide_the_traces_blocks(write_trace: WriteTrace, invoke: Invoke, size: int) -> None:
    result = invoke(write_trace(GOOD), "--block-size", size, "--skip-bad")

    assert result.exit_code == 2
    assert_one_line(result.stderr, f"--block-size {size} does not divide the trace's blocks of 512 tokens")
