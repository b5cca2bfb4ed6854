"""What the replay tests share: small traces, and the command line without a process."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tenure.cli import main
from tests.replay.traces import Invoke, WriteTrace


@pytest.fixture
def write_trace(tmp_path: Path) -> WriteTrace:
    def write(*requests: tuple[int, int, Sequence[int]] | str, name: str = "trace.jsonl") -> Path:
        lines = [each if isinstance(each, str) else mooncake_line(*each) for each in requests]
        path = tmp_path / name
        path.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
        return path

    return write


def mooncake_line(tokens: int, output: int, ids: Sequence[int]) -> str:
    return json.dumps({"timestamp": 0, "input_length": tokens, "output_length": output, "hash_ids": ids})


@pytest.fixture
def invoke() -> Invoke:
    def call(*arguments: object) -> Result:
        result = CliRunner().invoke(main, ["replay", *map(str, arguments)])
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result

    return call
