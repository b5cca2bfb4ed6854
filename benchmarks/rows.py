"""Microseconds per whole step of a row cache on the CPU device: start, save, copies, pool, materialize.

The peer is one plain copy of the same bytes into memory that is warm, measured in the same run: a cache that copies
must copy, and what it costs beyond is ours. Machines are shared and noisy: read the ratios. A step here ends with the
materialize; `cut` adds looking up every element, one request under one name each.
"""

import argparse
import gc
import json
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any, Literal, NamedTuple

import numpy as np
from rich.console import Console
from rich.table import Table

from tenure import Extended, Finished, NumpyBlockTable, OutputCache, RowConfig, RowPolicy, Started
from tenure.backends.cpu import CpuDevice

BLOCK_SIZE = 16
NUM_SLOTS = 240_000
PAGE_ROWS = 16_384
ROUNDS = 15
BATCHES = 7
WARM = 3
ENOUGH_S = 1.5
CHUNKS = 6_000
NAMES = {"h": ("h",), "h1i": ("h", "i0"), "h2i": ("h", "i0", "i1"), "h1i1d": ("h", "i0", "d0")}


class Measured(NamedTuple):
    """Microseconds of one thing, and how many plain copies of its bytes that is; None if there is nothing to copy."""

    us: float
    copies: float | None


class Outputs:
    """What a model emits: bfloat16 tensors where there is torch, else numpy arrays of their bits."""

    def __init__(self, kind: Literal["torch", "numpy"], rows: int, width: int, names: Sequence[str]) -> None:
        bits = np.random.default_rng(0).integers(0, 2**15, (rows, width)).astype(np.uint16)
        self.live: dict[str, Any] = {}
        for name in names:
            if kind == "torch":
                import torch

                self.live[name] = torch.from_numpy(bits.copy()).view(torch.bfloat16)  # pyright: ignore
            else:
                self.live[name] = bits.copy()
        self.bytes = bits.nbytes * len(names)
        if kind == "torch":
            import torch

            source = torch.zeros(self.bytes // 2, dtype=torch.int16)
            target = torch.ones_like(source)
            self.copy: Callable[[], Any] = lambda: target.copy_(source)
        else:
            from_array = np.zeros(self.bytes // 2, dtype=np.uint16)
            to_array = np.ones_like(from_array)
            self.copy = lambda: np.copyto(to_array, from_array)

    @property
    def mm(self) -> dict[str, Any]:
        """All but the hidden states."""
        return {name: rows for name, rows in self.live.items() if name != "h"}


class Engine:
    """Requests on a cache, each with blocks of its own."""

    def __init__(self, kind: Literal["torch", "numpy"], requests: int, *, blocks: int = 8) -> None:
        self.config = RowConfig(
            num_blocks=NUM_SLOTS // BLOCK_SIZE, block_size=BLOCK_SIZE, page_rows_max=PAGE_ROWS, budget_bytes=2**33
        )
        self.table = NumpyBlockTable(self.config, requests, blocks)
        policy = RowPolicy(deferred=frozenset({"d0"}), immediate=frozenset({"i0", "i1"}))
        self.cache = OutputCache(self.config, policy, device=CpuDevice(tensors=kind), block_table=self.table)
        self.requests = tuple(f"request-{number}" for number in range(requests))
        self.cache.new_step_starts([Started(request, 0) for request in self.requests])
        for number, request in enumerate(self.requests):
            self.table.add(request, range(number * blocks, (number + 1) * blocks))

    def step(self, counts: np.ndarray[Any, Any], outputs: Outputs, *, cut: bool = False) -> None:
        """One whole step."""
        self.cache.new_step_starts([Extended(self.requests, counts)])
        step = self.cache.save_outputs(outputs.live["h"], outputs.mm, num_tokens_unpadded=int(counts.sum()))
        found = self.cache.materialize(step, self.requests)
        if cut:
            assert found.hidden_states is not None
            for rows in (found.hidden_states, *found.mm_outputs.values()):
                for request in self.requests:
                    rows[request]


def timed(once: Callable[[], Any], before: Callable[[], Any] | None = None) -> float:
    """Microseconds: the best of the medians of some batches."""
    medians: list[float] = []
    began = time.perf_counter()
    while len(medians) < BATCHES and (not medians or time.perf_counter() - began < ENOUGH_S):
        medians.append(median(_times(once, before)[WARM:]))
    return min(medians) * 1e6


def _times(once: Callable[[], Any], before: Callable[[], Any] | None) -> list[float]:
    times: list[float] = []
    while len(times) < WARM + ROUNDS and (len(times) <= 2 * WARM or sum(times) < ENOUGH_S):
        if before is not None:
            before()
        began = time.perf_counter()
        once()
        times.append(time.perf_counter() - began)
    return times


def against_copy(once: Callable[[], Any], outputs: Outputs, before: Callable[[], Any] | None = None) -> Measured:
    """One thing beside a plain copy of its bytes."""
    us = timed(once, before)
    return Measured(us, us / timed(outputs.copy))


def decode(kind: Literal["torch", "numpy"], requests: int, names: str, width: int, *, cut: bool = False) -> Measured:
    """A decode step: one token of every request. The slots are the same in every round, as long as nobody looks."""
    engine = Engine(kind, requests)
    outputs = Outputs(kind, requests, width, NAMES[names])
    ones = np.ones(requests, dtype=np.int64)
    with engine.cache:
        return against_copy(lambda: engine.step(ones, outputs, cut=cut), outputs)


def prefill(kind: Literal["torch", "numpy"], tokens: int, names: str) -> Measured:
    """A step of so many tokens of 8 requests, 2048 wide."""
    engine = Engine(kind, 8, blocks=-(-tokens // 8 // BLOCK_SIZE))
    outputs = Outputs(kind, tokens, 2048, NAMES[names])
    with engine.cache:
        return against_copy(lambda: engine.step(np.full(8, tokens // 8), outputs), outputs)


def hit(kind: Literal["torch", "numpy"], tokens: int) -> Measured:
    """An arrival with a hit of so many tokens and 16 of its own, hidden and one immediate name, its rows looked up."""
    blocks = tokens // BLOCK_SIZE
    engine = Engine(kind, 1, blocks=blocks)
    names = NAMES["h1i"]
    whole, own = Outputs(kind, tokens, 2048, names), Outputs(kind, 16, 2048, names)
    both = Outputs(kind, tokens + 16, 2048, names)
    table, cache, numbers = engine.table, engine.cache, iter(range(10**6))
    engine.step(np.array([tokens]), whole)
    table.remove(engine.requests[0])

    def prepare() -> None:
        if table.batch():
            last = table.batch()[0]
            table.remove(last)
            cache.new_step_starts([Finished(last)])

    def arrive() -> None:
        request = f"arrival-{next(numbers)}"
        cache.new_step_starts([Started(request, 16, tokens, (tuple(range(blocks)),))])
        table.add(request, (blocks,))
        step = cache.save_outputs(own.live["h"], own.mm, num_tokens_unpadded=16)
        found = cache.materialize(step, (request,))
        assert found.hidden_states is not None
        assert len(found.hidden_states[request]) == len(found.mm_outputs["i0"][request]) == tokens + 16

    with cache:
        return against_copy(arrive, both, prepare)


def slots(requests: int) -> Measured:
    """The slots of a decode step from the block table."""
    engine = Engine("numpy", requests)
    ones = np.ones(requests, dtype=np.int64)
    with engine.cache:
        return Measured(timed(lambda: engine.table.step_slots(ones)), None)


def finish(kind: Literal["torch", "numpy"]) -> Measured:
    """The start that ends a request with many deferred chunks: they are copied and reach the pool within it."""
    engine = Engine(kind, 1, blocks=-(-CHUNKS // BLOCK_SIZE))
    outputs = Outputs(kind, 1, 8, NAMES["h1i1d"])
    one = np.ones(1, dtype=np.int64)
    (request,) = engine.requests

    def run() -> None:
        engine.cache.new_step_starts([Started(request, 0)])
        engine.table.computed[0] = 0
        for _ in range(CHUNKS):
            engine.step(one, outputs)
            engine.table.advance(one)

    times: list[float] = []
    with engine.cache:
        for _ in range(4):
            run()
            began = time.perf_counter()
            engine.cache.new_step_starts([Finished(request)])
            times.append(time.perf_counter() - began)
        assert engine.cache.stats().open_writes == 0
    return Measured(median(times) * 1e6, None)


def scenarios(kind: Literal["torch", "numpy"]) -> dict[str, Callable[[], Measured]]:
    """Everything that is measured, by name."""
    found: dict[str, Callable[[], Measured]] = {}
    for width in (8, 2048):
        for names in ("h", "h2i", "h1i1d"):
            for requests in (1, 16, 64, 256):
                found[f"decode_{requests}_{names}_w{width}"] = partial(decode, kind, requests, names, width)
    for width in (8, 2048):
        found[f"decode_256_h2i_w{width}_cut"] = partial(decode, kind, 256, "h2i", width, cut=True)
    for names in ("h", "h1i", "h2i"):
        for tokens in (1024, 4096, 16_384):
            found[f"prefill_{tokens}_{names}"] = partial(prefill, kind, tokens, names)
    for tokens in (1024, 8192):
        found[f"hit_{tokens}"] = partial(hit, kind, tokens)
    found["slots_256"] = partial(slots, 256)
    found[f"finish_{CHUNKS}_chunks"] = partial(finish, kind)
    return found


def main() -> None:
    """Measure, show a table, write JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures as JSON")
    parser.add_argument("--only", default="", metavar="TEXT", help="only scenarios whose name contains it")
    parser.add_argument("--numpy", action="store_true", help="numpy arrays, also where torch is installed")
    arguments = parser.parse_args()
    kind: Literal["torch", "numpy"] = "numpy" if arguments.numpy else _kind()

    table = Table(title=f"Row cache on the CPU device, {kind}", title_justify="left")
    table.add_column("step")
    table.add_column("µs", justify="right")
    table.add_column("plain copies", justify="right")
    figures: dict[str, Measured] = {}
    gc.disable()
    for name, measure in scenarios(kind).items():
        if arguments.only in name:
            figures[name] = found = measure()
            table.add_row(name, f"{found.us:,.0f}", "" if found.copies is None else f"{found.copies:,.1f}")
            gc.collect()
    Console().print(table)
    if arguments.json is not None:
        content = {
            "tensors": kind,
            "us_per_step": {name: round(each.us, 1) for name, each in figures.items()},
            "copies": {name: round(each.copies, 2) for name, each in figures.items() if each.copies is not None},
        }
        arguments.json.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")


def _kind() -> Literal["torch", "numpy"]:
    try:
        import torch
    except ImportError:
        return "numpy"
    del torch
    return "torch"


if __name__ == "__main__":
    main()
