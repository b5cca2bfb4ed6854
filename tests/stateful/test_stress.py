"""Real threads at full speed: an engine, two builders that dawdle, and a device's worker, for thousands of steps.

Rows are a function of all tokens up to them, so every row that a builder gets can be checked by its request alone.
"""

import os
import random
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from queue import SimpleQueue
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pytest

from tenure import BlockConfig, CacheConfig, Exhausted, JoinedCache, RowConfig, RowPolicy
from tenure.backends.cpu import CpuDevice
from tenure.core.arrays import Integers
from tenure.core.rows.events import RequestId
from tenure.simulation.requests import BLOCK_SIZE, NAMES, Share, rows_of

STEPS: Final = int(os.environ.get("TENURE_STRESS_STEPS", "1200")) // 2
RUNNING_MAX: Final = 4
PROMPTS_MAX: Final = 6


class Saved(NamedTuple):
    """A step on its way to a builder."""

    step: int
    shares: dict[RequestId, Share]


@dataclass
class Request:
    """One running request."""

    name: str
    tokens: list[int]
    output: int
    computed: int = 0
    is_held: bool = False


@dataclass
class Engine:
    """Schedules requests over a small joined cache, and hands every step to the builders."""

    cache: JoinedCache
    steps: "SimpleQueue[Saved | None]"
    chance: random.Random
    running: list[Request] = field(default_factory=list[Request])
    seen: Counter[str] = field(default_factory=Counter[str])
    arrived: int = 0

    def run(self, steps: int) -> None:
        """So many steps, then everything ends."""
        buffers = {name: np.zeros((64, 2) if name == "h" else (64,), np.int64) for name in NAMES}
        saved = 0
        while saved < steps:
            batch = self.schedule()
            began = self.cache.new_step_starts()
            if began.step is None:
                continue
            self.save(batch, dict(began.hits), buffers)
            saved += 1
            self.end_step(batch)
        for each in self.running:
            self.cache.blocks.finish(each.name)
        self.running.clear()
        self.cache.new_step_starts()

    def schedule(self) -> list[tuple[Request, int]]:
        """Who computes how many tokens."""
        batch: list[tuple[Request, int]] = []
        while len(self.running) < RUNNING_MAX and self.chance.random() < 0.5:
            self.arrive()
        for each in list(self.running):
            if self.chance.random() < 0.1:
                continue
            if not self.hold(each):
                # Nobody that is scheduled gives its blocks up before its rows are saved.
                victims = [
                    other for other in self.running if other.is_held and other not in [held for held, _ in batch]
                ]
                if victims:
                    self.preempt(self.chance.choice(victims))
                continue
            left = len(each.tokens) - each.computed
            tokens = left if left < 3 or self.chance.random() < 0.7 else left // 2
            self.cache.schedule(each.name, tokens)
            batch.append((each, tokens))
        return batch

    def arrive(self) -> None:
        """A request with one of a few prompts, some of which share a beginning."""
        number = self.chance.randrange(PROMPTS_MAX)
        tokens = [number % 2, *range(1, 9), *range(10 * number, 10 * number + self.chance.randrange(1, 9))]
        self.arrived += 1
        request = Request(f"request-{self.arrived}", tokens, self.chance.randrange(0, 7))
        self.cache.blocks.open_lease(request.name, tokens, 16)
        self.running.append(request)

    def hold(self, request: Request) -> bool:
        """Capacity for all known tokens; whether there was any."""
        blocks, reusable = self.cache.blocks, 0
        if not request.is_held:
            reusable = self.cache.servable_prefix_blocks(request.name)
        if isinstance(blocks.allocate_lease(request.name, len(request.tokens), reusable), Exhausted):
            return False
        if not request.is_held:
            request.is_held, request.computed = True, reusable * BLOCK_SIZE
        return True

    def preempt(self, request: Request) -> None:
        """A request loses its blocks."""
        self.cache.blocks.preempt(request.name)
        request.is_held, request.computed = False, 0
        self.seen["preempted"] += 1

    def save(self, batch: list[tuple[Request, int]], hits: dict[RequestId, int], buffers: dict[str, Any]) -> None:
        """The forward pass, into buffers that every step overwrites; its rows are saved and given to a builder."""
        count = sum(tokens for _, tokens in batch)
        place = 0
        shares: dict[RequestId, Share] = {}
        for each, tokens in batch:
            stop = each.computed + tokens
            for name in NAMES:
                rows = rows_of(name, each.tokens)[each.computed : stop]
                buffers[name][place : place + tokens] = rows[:, None] if name == "h" else rows
            place += tokens
            shares[each.name] = Share(tuple(each.tokens), each.computed - hits.get(each.name, 0), stop)
            self.seen["hits"] += each.name in hits
            each.computed = stop
        live = {name: buffers[name][:count] for name in NAMES}
        step = self.cache.save_outputs(live.pop("h"), live, num_tokens_unpadded=count)
        for buffer in buffers.values():
            buffer.fill(-1)
        self.steps.put(Saved(step, shares))

    def end_step(self, batch: list[tuple[Request, int]]) -> None:
        """Tokens are sampled; requests end, are aborted, are preempted."""
        for each, _ in batch:
            ends = self.chance.random() < 0.02
            if each.computed == len(each.tokens) and not ends:
                ends = each.output == 0
                if not ends:
                    token = self.chance.randrange(3)
                    self.cache.blocks.generate_token(each.name, token)
                    each.tokens.append(token)
                    each.output -= 1
            if ends:
                self.cache.blocks.finish(each.name)
                self.running.remove(each)
            elif self.chance.random() < 0.03:
                self.preempt(each)
        if self.chance.random() < 0.01:
            time.sleep(0.002)


class Builder(threading.Thread):
    """Consumes steps, late, in odd orders, and holds every row against the tokens."""

    def __init__(self, cache: JoinedCache, steps: "SimpleQueue[Saved | None]", seed: int) -> None:
        super().__init__(name=f"builder-{seed}")
        self.cache = cache
        self.steps = steps
        self.chance = random.Random(seed)  # noqa: S311 - it decides how long nothing happens
        self.seen: Counter[str] = Counter()
        self.error: BaseException | None = None

    def run(self) -> None:
        """Until there are no more steps."""
        while (saved := self.steps.get()) is not None:
            try:
                if self.error is None:
                    self.consume(saved)
                else:
                    self.cache.discard_step(saved.step)
            except BaseException as error:
                self.error = error

    def consume(self, saved: Saved) -> None:
        """One step."""
        if self.chance.random() < 0.02:
            time.sleep(self.chance.random() * 0.004)
        if self.chance.random() < 0.03:
            self.cache.discard_step(saved.step)
            self.seen["discarded"] += 1
            return
        requests = list(saved.shares)
        self.chance.shuffle(requests)
        found = self.cache.materialize(saved.step, requests[: self.chance.randrange(1, len(requests) + 1)])
        assert found.hidden_states is not None
        for name, rows in (("h", found.hidden_states), *found.mm_outputs.items()):
            for request, mine in rows.items():
                self.check(name, saved.shares[request], mine)

    def check(self, name: str, share: Share, found: npt.NDArray[np.int64]) -> None:
        """Every row of one request under one name."""
        expected: Integers = rows_of(name, share.tokens)[share.first : share.stop]
        if name == "h":
            expected = np.stack([expected, expected], axis=1)
        assert np.array_equal(expected, found), (name, share, found)
        self.seen["rows"] += len(found)


@pytest.fixture(autouse=True)
def _threads_take_turns_often() -> Iterator[None]:
    """More interleavings in less time."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-4)
    yield
    sys.setswitchinterval(interval)


@pytest.mark.parametrize("visibility", ["computed", "scheduled"])
def test_r02_r18_threads_at_full_speed_get_their_rows_and_leave_nothing(visibility: Any) -> None:
    """What interleavings break shows here, or nowhere before production."""
    config = CacheConfig(
        blocks=BlockConfig(capacity=20, block_size=BLOCK_SIZE),
        rows=RowConfig(
            num_blocks=20,
            block_size=BLOCK_SIZE,
            page_rows_max=64,
            pages=4,
            builder_lag_max=3,
            budget_bytes=400,
            gathers_max=2,
            wait_timeout_s=60.0,
        ),
        visibility=visibility,
    )
    threads = set(threading.enumerate())
    policy = RowPolicy(immediate=frozenset({"m"}), deferred=frozenset({"c"}), infer=False)
    cache = JoinedCache(config, policy, device=CpuDevice(worker=True, tensors="numpy"))
    steps: SimpleQueue[Saved | None] = SimpleQueue()
    builders = [Builder(cache, steps, seed) for seed in (1, 2)]
    engine = Engine(cache, steps, random.Random(0))  # noqa: S311 - it decides what is scheduled
    for each in builders:
        each.start()
    try:
        engine.run(STEPS)
    finally:
        for _ in builders:
            steps.put(None)
        for each in builders:
            each.join()
    for each in builders:
        if each.error is not None:
            raise each.error

    seen = engine.seen + builders[0].seen + builders[1].seen
    _wait_until_written(cache)
    stats = cache.stats()
    cache.shutdown()
    left = (stats.live_requests, stats.unconsumed_steps, stats.reads, stats.pages_held, stats.charged_bytes)
    assert (0, 0, 0, 0, 0) == left
    assert 0 == stats.buffers_held_bytes
    assert not set(threading.enumerate()) - threads
    assert STEPS == stats.counters.steps_saved
    for what in ("hits", "preempted", "rows", "discarded"):
        assert seen[what], seen
    for count in (stats.counters.flushes, stats.counters.hit_rows, stats.counters.resumed_with_hit):
        assert count, stats
    assert bool(stats.counters.reads_replanned) is (visibility == "scheduled"), stats


def _wait_until_written(cache: JoinedCache) -> None:
    until = time.monotonic() + 60
    while (stats := cache.stats()).open_writes or stats.reads or stats.buffers_held_bytes:
        assert time.monotonic() < until, stats
        time.sleep(0.01)
