"""Whole real traces through the machine: counts, and a digest of every KV event, as the seed gives them."""

import json
from collections import OrderedDict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tenure.core.blocks import queries
from tenure.core.blocks.machine import transition
from tenure.core.blocks.sequence import BlockIdentity, new_sequence
from tenure.core.blocks.state import BlockState
from tenure.core.blocks.values import (
    AllocationRequested,
    Answer,
    Event,
    Exhausted,
    LeaseFinished,
    LeaseOpened,
    PublishStored,
    RecordTrace,
    TokensComputed,
)
from tenure.core.config import BlockConfig
from tests.paths import OWN_GOLDEN, SHARED, golden_folder

BLOCK_SIZE = 4
FNV_OFFSET, FNV_PRIME, U64 = 0xCBF29CE484222325, 0x100000001B3, 2**64 - 1


class TraceDriver:
    """The driver that the golden folder's README describes, with the counts it asks for."""

    def __init__(self, capacity: int, window: int) -> None:
        config = BlockConfig(capacity=capacity, block_size=BLOCK_SIZE, kv_events=True)
        self.state = BlockState.initial(config)
        self.window = window
        self.live: OrderedDict[int, None] = OrderedDict()
        self.words: list[int] = []
        self.counts = dict.fromkeys(("blocks", "reused", "skipped", "early_finish", "events", "stored", "removed"), 0)

    def tell(self, event: Event) -> Answer:
        """Take one event; count and note its KV events."""
        self.state, answer, commands = transition(self.state, event)
        for command in commands:
            assert not isinstance(command, RecordTrace)
            self.counts["events"] += 1
            hashes = command.block_hashes
            if isinstance(command, PublishStored):
                self.counts["stored"] += len(hashes)
                parent = 0 if command.parent_hash is None else command.parent_hash + 1
                self.words += [1, command.event_id, parent, len(hashes), *hashes]
            else:
                self.counts["removed"] += len(hashes)
                self.words += [2, command.event_id, len(hashes), *hashes]
        return answer

    def finish_oldest(self) -> None:
        """End the lease that was opened first."""
        self.tell(LeaseFinished(self.live.popitem(last=False)[0]))

    def admit(self, request: int, hashes: list[int]) -> None:
        """Run one request through: look up, allocate, compute."""
        count = len(hashes)
        self.counts["blocks"] += count
        identities = [BlockIdentity(each, each) for each in hashes]
        tokens = [0] * (count * BLOCK_SIZE)
        self.tell(LeaseOpened(new_sequence(request, tokens, 0, BLOCK_SIZE, identities=identities)))
        while True:
            reuse = min(queries.resident_prefix_blocks(self.state, request), count - 1)
            answer = self.tell(AllocationRequested(request, count * BLOCK_SIZE, reuse))
            if not isinstance(answer, Exhausted):
                break
            if not self.live:
                self.counts["skipped"] += 1
                self.tell(LeaseFinished(request))
                return
            self.counts["early_finish"] += 1
            self.finish_oldest()
        self.counts["reused"] += reuse
        self.tell(TokensComputed(request, reuse * BLOCK_SIZE, count * BLOCK_SIZE))
        self.live[request] = None
        if len(self.live) > self.window:
            self.finish_oldest()

    def digest(self) -> str:
        """FNV-1a over all event words, little-endian."""
        value = FNV_OFFSET
        for word in self.words:
            for byte in word.to_bytes(8, "little"):
                value = (value ^ byte) * FNV_PRIME & U64
        return f"{value:016x}"


def _cases() -> Iterator[tuple[Path, dict[str, Any]]]:
    folder = golden_folder()
    for file in [folder / "block_traces.jsonl", OWN_GOLDEN / "block_traces.jsonl"]:
        if file.is_file():
            for line in file.read_text().splitlines():
                expected = json.loads(line)
                beside = file.parent / expected["trace"]
                yield beside if beside.is_file() else SHARED / "traces" / expected["trace"], expected


@pytest.mark.parametrize(
    ("trace", "expected"), [pytest.param(*case, id=f"{case[0].stem}-{case[1]['capacity']}") for case in _cases()]
)
def test_golden_trace_gives_the_seeds_event_stream(trace: Path, expected: dict[str, Any]) -> None:
    """The event stream of a whole trace, to the last bit."""
    if not trace.is_file():
        pytest.skip(f"{trace} is not here")
    driver = TraceDriver(expected["capacity"], expected["window"])
    with trace.open() as lines:
        for number, line in enumerate(lines):
            driver.admit(number, json.loads(line)["hash_ids"])
    active_end = queries.num_active(driver.state)
    while driver.live:
        driver.finish_oldest()
    found = {
        "trace": expected["trace"],
        "capacity": expected["capacity"],
        "window": expected["window"],
        **driver.counts,
        "active_end": queries.num_active(driver.state),
        "inactive_end": queries.num_inactive(driver.state),
        "digest": driver.digest(),
    }

    assert active_end > 0
    assert expected == found
