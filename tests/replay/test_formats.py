"""Both trace formats are told apart by content, and read into the same requests."""

import json
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from tenure.replay.errors import TraceError
from tenure.replay.formats import read_traces
from tenure.replay.requests import TraceRequest
from tests.paths import SHARED


def entry(t: float, tokens: int, ids: Sequence[int], output: int = 2, **more: Any) -> dict[str, Any]:
    return {"t": t, "type": "n", "in": tokens, "out": output, "hash_ids": list(ids), **more}


def agentic(path: Path, requests: Sequence[object], **header: Any) -> Path:
    path.write_text(json.dumps({"id": "x", "block_size": 8, "requests": requests, **header}), encoding="utf-8")
    return path


def read(*paths: Path, block: int = 512) -> list[TraceRequest]:
    items = [item for _, item in read_traces(paths, block)]
    assert not [str(item) for item in items if isinstance(item, TraceError)]
    return [item for item in items if isinstance(item, TraceRequest)]


def test_mooncake_lines_come_in_their_order(tmp_path: Path) -> None:
    path = tmp_path / "anything"
    lines = ['{"timestamp": 9, "input_length": 513, "output_length": 4, "hash_ids": [3, 4], "new": 1}', ""]
    lines.append('{"timestamp": 2.5, "input_length": 1, "output_length": 0, "hash_ids": [7]}')
    path.write_text("\r\n".join(lines), encoding="utf-8")

    first, second = read(path)

    assert (first.input_tokens, first.output_tokens, first.hash_ids.tolist(), first.block_size) == (513, 4, [3, 4], 512)
    assert (second.input_tokens, second.output_tokens, second.hash_ids.tolist()) == (1, 0, [7])
    assert str(second.place) == f"{path}:3"
    assert second.progress == 1.0


@pytest.mark.parametrize("start", ["\ufeff", "\n" * 70_000, " " * 70_000 + "\n"])
def test_what_stands_before_the_first_request_does_not_hide_it(tmp_path: Path, start: str) -> None:
    """A byte order mark, and more blanks than are looked at first."""
    path = tmp_path / "trace"
    path.write_text(start + '{"input_length": 5, "output_length": 1, "hash_ids": [1]}', encoding="utf-8")
    session = agentic(tmp_path / "session", [entry(1.0, 8, [1])])
    session.write_text(start + session.read_text(), encoding="utf-8")

    assert read(path)[0].input_tokens == 5
    assert read(session)[0].input_tokens == 8


def test_a_key_that_comes_late_in_a_long_line_still_tells_the_format(tmp_path: Path) -> None:
    """Nothing says that the lengths come before the ids."""
    path = tmp_path / "trace"
    ids = [10**9 + number for number in range(10_000)]
    line = {"hash_ids": ids, "input_length": 512 * len(ids), "output_length": 1}
    path.write_text(json.dumps(line), encoding="utf-8")

    assert read(path)[0].hash_ids.tolist() == ids


def test_mooncake_lines_can_count_in_other_blocks(tmp_path: Path) -> None:
    path = tmp_path / "trace"
    path.write_text('{"input_length": 33, "output_length": 1, "hash_ids": [1, 2, 3]}', encoding="utf-8")

    assert read(path, block=16)[0].block_size == 16


@pytest.mark.parametrize("indent", [None, 1])
def test_sub_agents_at_any_depth_come_in_the_order_of_time(tmp_path: Path, indent: int | None) -> None:
    """A sub-agent's requests went to the same engine as everybody's; nesting is only how they were recorded."""
    deep = {"t": 2, "type": "subagent", "requests": [entry(6.5, 8, [4]), entry(2.0, 8, [2])]}
    shell = {"t": 1.5, "type": "subagent", "requests": [entry(3.0, 8, [3]), deep]}
    both = entry(1.0, 8, [1], requests=[entry(9.0, 8, [6])])
    path = agentic(tmp_path / "session", [both, shell, entry(7.0, 8, [5])])
    path.write_text(json.dumps(json.loads(path.read_text()), indent=indent), encoding="utf-8")

    requests = read(path)

    assert [request.hash_ids.tolist() for request in requests] == [[1], [2], [3], [4], [5], [6]]
    assert str(requests[1].place) == f"{path}: requests[1].requests[1].requests[1]"
    assert {request.block_size for request in requests} == {8}


def test_equal_times_keep_the_order_of_the_file(tmp_path: Path) -> None:
    path = agentic(tmp_path / "session", [entry(1, 8, [n]) for n in (3, 1, 2)])

    assert [request.hash_ids.tolist() for request in read(path)] == [[3], [1], [2]]


@pytest.mark.parametrize("ids", [[1, 2], [1, 2, 3]])
def test_the_partial_last_block_of_an_agentic_prompt_may_lack_its_id(tmp_path: Path, ids: list[int]) -> None:
    assert read(agentic(tmp_path / "session", [entry(0, 20, ids)]))[0].hash_ids.tolist() == ids


def test_hash_ids_are_local_to_their_file_unless_it_says_otherwise(tmp_path: Path) -> None:
    local = [agentic(tmp_path / name, [entry(0, 8, [1])]) for name in ("a", "b")]
    common = [agentic(tmp_path / name, [entry(0, 8, [1])], hash_id_scope="global") for name in ("c", "d")]

    assert len({request.namespace for request in read(*local)}) == 2
    assert len({request.namespace for request in read(*common)}) == 1
    assert len({request.namespace for request in read(local[0], local[1], local[0])}) == 2


def test_a_trace_is_read_no_further_than_it_is_asked(tmp_path: Path) -> None:
    """A trace may be longer than memory, and what is wrong behind the limit is nobody's business."""
    path = tmp_path / "trace"
    good = '{"input_length": 1, "output_length": 1, "hash_ids": [1]}\n'
    path.write_text(good * 3 + "broken\n", encoding="utf-8")

    items = list(islice(read_traces([path], 512), 3))

    assert all(isinstance(item, TraceRequest) for _, item in items)


def test_every_real_session_is_read() -> None:
    folder = SHARED / "traces" / "agentic"
    if not folder.is_dir():
        pytest.skip("the real traces are not here")
    paths = sorted(folder.glob("*.json"))

    requests = read(*paths)

    assert len(requests) == 114
    assert len({request.namespace for request in requests}) == len(paths)
