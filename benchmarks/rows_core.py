"""Microseconds per step of the row machine alone: start, reserve, publish, completions, consume.

No row is moved: commands are answered at once by whoever runs the benchmark. The peer of a decode step is what no cache
could do without: the same index arrays (slots to claims, tenancy, batch rows) set with plain numpy, unchecked and in
place, measured in the same run. Machines are shared and noisy: read the ratios.
"""

import argparse
import gc
import json
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from tenure.core.config import RowConfig, RowPolicy
from tenure.core.rows.answers import ConsumePlan, SaveReserved
from tenure.core.rows.commands import CopyDeferred, CopyPage, ScatterRows
from tenure.core.rows.events import (
    ConsumeRequested,
    Extended,
    Finished,
    PolicyRegistered,
    RequestId,
    RowEvent,
    SavePublished,
    SaveRequested,
    Started,
    StepConsumed,
    StepStarted,
    WriteLayout,
)
from tenure.core.rows.machine import Transition, transition
from tenure.core.rows.names import HIDDEN, Output
from tenure.core.rows.state import RowState

BLOCK_SIZE = 16
NUM_SLOTS = 240_000
ROUNDS = 8


class Engine:
    """Requests that decode, one token a step, each in blocks of its own."""

    def __init__(
        self, *, requests: int, names: int, num_slots: int = NUM_SLOTS, idle: int = 0, deferred: bool = False
    ) -> None:
        config = RowConfig(
            num_blocks=num_slots // BLOCK_SIZE,
            block_size=BLOCK_SIZE,
            page_rows_max=16_384,
            budget_bytes=2**40,
        )
        self.state = RowState.initial(config)
        last = frozenset({f"mm.{names - 1}"}) if deferred else frozenset[str]()
        self.tell(PolicyRegistered(RowPolicy(deferred=last)))
        self.requests: tuple[RequestId, ...] = tuple(f"request-{number}" for number in range(requests))
        self.names = names
        self.config = config
        self.slots = np.arange(requests, dtype=np.int64)
        self.commands: list[Any] = []
        started = tuple(Started(f"idle-{number}", 0) for number in range(idle))
        self.tell(StepStarted(started))
        self.tell(StepStarted(tuple(Started(request, 0) for request in self.requests)))
        self.ones = np.ones(requests, dtype=np.int64)

    def tell(self, event: RowEvent) -> Transition:
        """One transition."""
        result = transition(self.state, event)
        self.state = result.state
        return result

    def step(self, counts: np.ndarray[Any, Any] | None = None, slots: np.ndarray[Any, Any] | None = None) -> None:
        """One step of all requests: one token each, or `counts`."""
        if counts is None or slots is None:
            counts = self.ones
            slots = self.slots = (self.slots + len(self.requests)) % self.config.num_slots
        tokens = len(slots)
        step = self.tell(StepStarted((Extended(self.requests, counts),))).answer
        outputs = tuple(
            Output(HIDDEN if name == 0 else f"mm.{name}", (tokens, 64), "bfloat16") for name in range(self.names)
        )
        reserved = self.tell(SaveRequested(WriteLayout(self.requests, counts, slots), outputs)).answer
        assert isinstance(reserved, SaveReserved), (step, reserved)
        self.complete(self.tell(SavePublished(reserved.step)))
        plan = self.tell(ConsumeRequested(reserved.step, self.requests)).answer
        assert isinstance(plan, ConsumePlan)
        self.tell(StepConsumed(reserved.step))

    def complete(self, result: Transition) -> None:
        """Answer the copies and scatters of a transition at once."""
        for command in result.commands:
            if isinstance(command, CopyPage | CopyDeferred):
                self.tell(command.began)
                self.complete(self.tell(command.done))
            elif isinstance(command, ScatterRows):
                self.tell(command.done)


def median_us(act: Callable[[], object], repeats: int) -> float:
    """Microseconds per call: the median."""
    times: list[int] = []
    for _ in range(repeats):
        began = time.perf_counter_ns()
        act()
        times.append(time.perf_counter_ns() - began)
    return median(times) / 1000


def best_us(contestants: Mapping[str, Callable[[], object]], repeats: int) -> dict[str, float]:
    """The best median of the rounds; in each round everybody has a turn, so that a loud minute is loud for all."""
    best = dict.fromkeys(contestants, float("inf"))
    for act in contestants.values():
        act()
    for _ in range(ROUNDS):
        for key, act in contestants.items():
            best[key] = min(best[key], median_us(act, repeats))
    return best


def peer(requests: int, names: int) -> Callable[[], None]:
    """The same tables set with plain numpy."""
    newest = [np.zeros(NUM_SLOTS, dtype=np.int64) for _ in range(names)]
    tenancy = np.zeros(NUM_SLOTS, dtype=np.int64)
    batch_row = np.zeros(NUM_SLOTS, dtype=np.int64)
    slots = np.arange(requests, dtype=np.int64)
    claim = 0

    def act() -> None:
        nonlocal slots, claim
        claim += 1
        slots = (slots + requests) % NUM_SLOTS
        for table in (*newest, tenancy):
            table[slots] = claim
        batch_row[slots] = np.arange(requests)

    return act


def finish_us(chunks: int) -> float:
    """Microseconds of the start that finishes a request with so many chunks of one row."""
    times: list[int] = []
    for _ in range(ROUNDS):
        engine = Engine(requests=1, names=2, deferred=True)
        for _ in range(chunks):
            engine.step()
        began = time.perf_counter_ns()
        result = engine.tell(StepStarted((Finished(engine.requests[0]),)))
        engine.complete(result)
        times.append(time.perf_counter_ns() - began)
    return min(times) / 1000


def prefill_step(names: int) -> Callable[[], None]:
    """A step of 16,384 tokens of 8 requests."""
    engine = Engine(requests=8, names=names)
    counts = np.full(8, 2_048, dtype=np.int64)
    slots = np.arange(16_384, dtype=np.int64)
    return lambda: engine.step(counts, slots)


def measure(repeats: int) -> dict[str, Any]:
    """All figures."""
    steps: dict[str, Callable[[], object]] = {}
    peers: dict[str, Callable[[], object]] = {}
    for requests in (1, 16, 64, 256):
        for names in (1, 3):
            steps[f"decode_{requests}_names_{names}"] = Engine(requests=requests, names=names).step
            peers[f"decode_{requests}_names_{names}"] = peer(requests, names)
    steps |= {
        "decode_256_names_3_one_deferred": Engine(requests=256, names=3, deferred=True).step,
        "decode_256_names_3_slots_2400000": Engine(requests=256, names=3, num_slots=2_400_000).step,
        "decode_256_names_3_idle_10": Engine(requests=256, names=3, idle=10).step,
        "decode_256_names_3_idle_10000": Engine(requests=256, names=3, idle=10_000).step,
    }
    figures = best_us(steps, repeats)
    figures |= best_us({f"tokens_16384_names_{n}": prefill_step(n) for n in (1, 3)}, max(repeats // 10, 3))
    figures["finish_6000_chunks"] = finish_us(6_000)
    compared = best_us(peers, repeats)
    return {
        "us_per_step": {key: round(value, 1) for key, value in figures.items()},
        "ratio_to_plain_numpy": {key: round(figures[key] / compared[key], 1) for key in compared},
    }


def show(figures: dict[str, Any]) -> None:
    """Print the figures as a table."""
    title = "The row machine alone, microseconds per step (best median of the rounds)"
    table = Table(title=title, title_justify="left")
    table.add_column("step")
    table.add_column("us", justify="right")
    table.add_column("plain numpy = 1", justify="right")
    for key, value in figures["us_per_step"].items():
        ratio = figures["ratio_to_plain_numpy"].get(key)
        table.add_row(key, f"{value:,.1f}", "" if ratio is None else f"{ratio:.1f}")
    Console().print(table)


def main() -> None:
    """Parse the command line, measure, print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    parser.add_argument("--repeats", type=int, default=100, help="steps a round (default 100)")
    arguments = parser.parse_args()
    gc.collect()
    gc.freeze()
    figures = measure(arguments.repeats)
    show(figures)
    if arguments.json:
        arguments.json.write_text(json.dumps(figures, indent=2) + "\n")


if __name__ == "__main__":
    main()
