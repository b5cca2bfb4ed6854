"""Every golden file of block operations, field by field: through the core, and through the oracle that judges it."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tenure.core.blocks.values import Answer, Command, Event, RequestId
from tenure.core.blocks.view import BlockView, PrefillCost
from tenure.core.config import BlockConfig
from tenure.spec.blocks.oracle import BlockOracle
from tenure.spec.blocks.rules import check_view
from tests.golden.replayer import GoldenReplay, Subject
from tests.paths import golden_folder
from tests.stateful.subject import CoreSubject

FILES = sorted(golden_folder().glob("block_ops_*.jsonl"))


class Core:
    """The core in both representations, and its newest state."""

    def __init__(self, config: BlockConfig) -> None:
        self.core = CoreSubject()
        self.state = self.core.initial(config)

    def apply(self, event: Event) -> tuple[Answer, tuple[Command, ...]]:
        """Take an event."""
        self.state, answer, commands = self.core.transition(self.state, event)
        return answer, commands

    def view(self) -> BlockView:
        """The newest state, which keeps all rules."""
        view = self.core.view(self.state)
        check_view(view)
        return view

    def prefill_cost(self, request: RequestId) -> PrefillCost:
        """What computing a request would take."""
        return self.core.prefill_cost(self.state, request)


def test_golden_folder_has_files() -> None:
    """An empty folder would make every test below pass by not existing."""
    assert FILES, f"no block_ops_*.jsonl in {golden_folder()}"


@pytest.mark.parametrize(
    ("path", "make"),
    [
        *(pytest.param(path, Core, id=f"{path.stem}-core") for path in FILES),
        # The oracle is slow: all but a third of the files are for nights.
        *(
            pytest.param(path, BlockOracle, id=f"{path.stem}-oracle", marks=[pytest.mark.slow] if number % 3 else [])
            for number, path in enumerate(FILES)
        ),
    ],
)
def test_golden_operations_are_answered_as_by_the_seed(path: Path, make: Callable[[BlockConfig], Subject]) -> None:
    """Answers, hashes, counts and events of the seed, over random operations."""
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    replay = GoldenReplay(lines[0], make)
    for number, line in enumerate(lines[1:], 2):
        found = replay.run(line)
        assert line == found, f"{path.name}:{number}"
