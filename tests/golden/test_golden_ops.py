"""Every golden file of block operations, field by field."""

import json
from pathlib import Path

import pytest

from tests.golden.replayer import GoldenReplay
from tests.paths import golden_folder

FILES = sorted(golden_folder().glob("block_ops_*.jsonl"))


def test_golden_folder_has_files() -> None:
    """An empty folder would make every test below pass by not existing."""
    assert FILES, f"no block_ops_*.jsonl in {golden_folder()}"


@pytest.mark.parametrize("copying", [True, False], ids=["copying", "journal"])
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_golden_operations_are_answered_as_by_the_seed(path: Path, copying: bool) -> None:
    """Answers, hashes, counts and events of the seed, over random operations."""
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    replay = GoldenReplay(lines[0], copying=copying)
    for number, line in enumerate(lines[1:], 2):
        found = replay.run(line)
        assert line == found, f"{path.name}:{number}"
