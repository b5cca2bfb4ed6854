"""Speed of the block machine on a serving workload, beside a peer measured in the same run.

Workload: block size 16, 65,536 blocks filled beforehand so that allocation evicts; 2,000 requests of one of 64
prefixes (512 to 4,096 tokens) + 64 to 512 own tokens + 128 tokens decoded one at a time, 64 requests at once.

The peer is an unchecked block pool of dicts and an OrderedDict that mutates in place: what an engine's own cache
costs at least. Machines are shared and noisy: read the ratio. Hashing is timed apart.
"""

import argparse
import gc
import json
import random
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from tenure.core.blocks import queries
from tenure.core.blocks.machine import transition
from tenure.core.blocks.sequence import BlockIdentity, RequestSequence, new_sequence
from tenure.core.blocks.state import BlockState
from tenure.core.blocks.values import (
    AllocationRequested,
    Event,
    Exhausted,
    GrowthReady,
    GrowthScheduled,
    LeaseFinished,
    LeaseOpened,
    StepComputed,
    TokenGenerated,
    TokensComputed,
)
from tenure.core.config import BlockConfig

BLOCK_SIZE = 16
CAPACITY = 65_536
REQUESTS = 2_000
PREFIXES = 64
DECODE = 128
AT_ONCE = 64


class Clock:
    """CPU seconds and counts by kind of operation; `timing` off leaves the run undisturbed."""

    def __init__(self, *, timing: bool) -> None:
        self.timing = timing
        self.seconds: dict[str, float] = {}
        self.counts: dict[str, int] = {}

    @contextmanager
    def measure(self, kind: str, count: int = 1) -> Generator[None, None, None]:
        """Add the CPU time of the block to `kind`."""
        started = time.process_time()
        yield
        self.seconds[kind] = self.seconds.get(kind, 0.0) + time.process_time() - started
        self.counts[kind] = self.counts.get(kind, 0) + count

    def ns_per_op(self) -> dict[str, int]:
        """Nanoseconds by kind."""
        return {kind: round(1e9 * self.seconds[kind] / self.counts[kind]) for kind in self.seconds}


def make_requests(count: int, seed: int) -> list[list[int]]:
    """Prompts of the workload, as tokens."""
    rng = random.Random(seed)
    prefixes = [[rng.randrange(2**17) for _ in range(rng.randrange(512, 4097))] for _ in range(PREFIXES)]
    return [rng.choice(prefixes) + [rng.randrange(2**17) for _ in range(rng.randrange(64, 513))] for _ in range(count)]


class Arrivals:
    """Requests in order of arrival: each prompt is hashed when its turn comes, as in an engine, and timed apart."""

    def __init__(self, prompts: list[list[int]]) -> None:
        self.prompts = deque(enumerate(prompts))
        self.hashing_s = 0.0
        self.blocks = 0

    def __bool__(self) -> bool:
        return bool(self.prompts)

    def take(self) -> RequestSequence:
        """The next request."""
        started = time.process_time()
        number, prompt = self.prompts.popleft()
        sequence = new_sequence(number, prompt, DECODE, BLOCK_SIZE, planned=[7] * DECODE)
        self.blocks += sequence.known_blocks
        self.hashing_s += time.process_time() - started
        return sequence


class TenureRun:
    """The workload on Tenure's block machine."""

    def __init__(self, *, kv_events: bool, timing: bool) -> None:
        self.state = BlockState.initial(BlockConfig(capacity=CAPACITY, block_size=BLOCK_SIZE, kv_events=kv_events))
        self.clock = Clock(timing=timing)
        self.sunk = 0

    def tell(self, event: Event) -> Any:
        """Take one event; the KV events go to a sink that counts them."""
        self.state, answer, commands = transition(self.state, event)
        self.sunk += len(commands)
        return answer

    def timed(self, kind: str, event: Event, count: int = 1) -> Any:
        """Take one event and time it."""
        if not self.clock.timing:
            return self.tell(event)
        with self.clock.measure(kind, count):
            return self.tell(event)

    def fill(self) -> None:
        """Make every block inactive and visible under a hash of its own."""
        identities = [BlockIdentity(2**63 + number, number) for number in range(CAPACITY)]
        sequence = new_sequence("fill", [0] * (CAPACITY * BLOCK_SIZE), 0, BLOCK_SIZE, identities=identities)
        self.tell(LeaseOpened(sequence))
        self.tell(AllocationRequested("fill", CAPACITY * BLOCK_SIZE))
        self.tell(TokensComputed("fill", 0, CAPACITY * BLOCK_SIZE))
        self.tell(LeaseFinished("fill"))

    def admit(self, sequence: RequestSequence) -> None:
        """Look a prompt up, allocate and compute it, and generate its first token."""
        request, tokens = sequence.request, sequence.prompt_tokens
        self.timed("open", LeaseOpened(sequence))
        if self.clock.timing:
            with self.clock.measure("lookup"):
                hits = queries.resident_prefix_blocks(self.state, request)
        else:
            hits = queries.resident_prefix_blocks(self.state, request)
        hits = min(hits, (tokens - 1) // BLOCK_SIZE)
        answer = self.timed("allocate", AllocationRequested(request, tokens, hits))
        assert not isinstance(answer, Exhausted)
        self.timed("finalize", TokensComputed(request, hits * BLOCK_SIZE, tokens))
        self.timed("decode token", TokenGenerated(request))

    def run(self, waiting: Arrivals) -> None:
        """Serve all requests, `AT_ONCE` at a time."""
        running: OrderedDict[int | str, int] = OrderedDict()
        while waiting or running:
            while waiting and len(running) < AT_ONCE:
                sequence = waiting.take()
                self.admit(sequence)
                running[sequence.request] = DECODE - 1
            batch = tuple(running)
            answer = self.timed("decode token", GrowthScheduled(batch), 0)
            assert isinstance(answer, GrowthReady)
            assert answer.served == len(batch)
            self.timed("decode token", StepComputed(batch), len(batch))
            for request in batch:
                running[request] -= 1
                if not running[request]:
                    del running[request]
                    self.timed("release", LeaseFinished(request))


class UncheckedPool:
    """The peer: prefix caching with dicts and an OrderedDict, in place, unchecked, without KV events or fences."""

    def __init__(self) -> None:
        self.free = deque(range(CAPACITY))
        self.hash_of: dict[int, int] = {}
        self.block_of: dict[int, int] = {}
        self.references = [0] * CAPACITY
        self.inactive: OrderedDict[int, None] = OrderedDict()

    def fill(self) -> None:
        """Make every block inactive and visible under a hash of its own."""
        for block in range(CAPACITY):
            self.cache(self.take(), 2**63 + block)
        for block in range(CAPACITY):
            self.release([block])

    def take(self) -> int:
        """One block, free or evicted."""
        if self.free:
            block = self.free.popleft()
        else:
            block, _ = self.inactive.popitem(last=False)
            del self.block_of[self.hash_of.pop(block)]
        self.references[block] = 1
        return block

    def lookup(self, hashes: list[int]) -> list[int]:
        """Blocks of the longest visible prefix."""
        found: list[int] = []
        for block_hash in hashes:
            block = self.block_of.get(block_hash)
            if block is None:
                break
            found.append(block)
        return found

    def share(self, blocks: list[int]) -> None:
        """Reference visible blocks."""
        for block in blocks:
            if not self.references[block]:
                del self.inactive[block]
            self.references[block] += 1

    def cache(self, block: int, block_hash: int) -> None:
        """Make a block visible, unless its hash is."""
        if block_hash not in self.block_of:
            self.block_of[block_hash] = block
            self.hash_of[block] = block_hash

    def release(self, blocks: list[int]) -> None:
        """Let go, leaf first."""
        for block in reversed(blocks):
            self.references[block] -= 1
            if not self.references[block]:
                if block in self.hash_of:
                    self.inactive[block] = None
                else:
                    self.free.append(block)


def filled_peer() -> Callable[[Arrivals], None]:
    """The peer's run, its blocks all inactive and visible."""
    pool = UncheckedPool()
    pool.fill()
    return lambda waiting: run_peer(pool, waiting)


def run_peer(pool: UncheckedPool, waiting: Arrivals) -> None:
    """The workload on the unchecked pool, a decode token at a time."""
    running: OrderedDict[int | str, list[Any]] = OrderedDict()
    while waiting or running:
        while waiting and len(running) < AT_ONCE:
            sequence = waiting.take()
            hashes = [each for each in sequence.hashes if each is not None]
            table = pool.lookup(hashes)[: (sequence.prompt_tokens - 1) // BLOCK_SIZE]
            pool.share(table)
            fresh = [pool.take() for _ in range(sequence.known_blocks - len(table))]
            for block, block_hash in zip(fresh, hashes[len(table) :], strict=False):
                pool.cache(block, block_hash)
            running[sequence.request] = [table + fresh, sequence.prompt_tokens + 1, DECODE - 1]
        for request in list(running):
            entry = running[request]
            if entry[1] > len(entry[0]) * BLOCK_SIZE:
                entry[0].append(pool.take())
            if entry[1] % BLOCK_SIZE == 0:
                pool.cache(entry[0][-1], hash((request, entry[1])))
            entry[1] += 1
            entry[2] -= 1
            if not entry[2]:
                pool.release(entry[0])
                del running[request]


def requests_per_cpu_s(work: Callable[[Arrivals], None], prompts: list[list[int]]) -> float:
    """Requests per CPU second, hashing left out, the collector off so that no run pays for another's garbage."""
    arrivals = Arrivals(prompts)
    gc.collect()
    gc.disable()
    started = time.process_time()
    work(arrivals)
    spent = time.process_time() - started - arrivals.hashing_s
    gc.enable()
    return len(prompts) / spent


def filled(*, kv_events: bool, timing: bool = False) -> TenureRun:
    """A run whose blocks are all inactive and visible."""
    run = TenureRun(kv_events=kv_events, timing=timing)
    run.fill()
    return run


def measure(count: int, rounds: int, seed: int) -> dict[str, Any]:
    """Run everything and collect the figures."""
    prompts = make_requests(count, seed)
    contestants: dict[str, Callable[[], Callable[[Arrivals], None]]] = {
        "requests_per_cpu_s": lambda: filled(kv_events=True).run,
        "requests_per_cpu_s_without_kv_events": lambda: filled(kv_events=False).run,
        "peer_requests_per_cpu_s": filled_peer,
    }
    figures: dict[str, Any] = dict.fromkeys(contestants, 0.0)
    for _ in range(rounds):
        for key, make in contestants.items():
            figures[key] = max(figures[key], round(requests_per_cpu_s(make(), prompts), 1))
    figures["ratio_to_peer"] = round(figures["requests_per_cpu_s"] / figures["peer_requests_per_cpu_s"], 3)
    timed = filled(kv_events=True, timing=True)
    arrivals = Arrivals(prompts)
    timed.run(arrivals)
    figures["ns_per_op"] = timed.clock.ns_per_op()
    figures["hashing_ns_per_prompt_block"] = round(1e9 * arrivals.hashing_s / arrivals.blocks)
    return figures


def show(figures: dict[str, Any]) -> None:
    """Print the figures as two tables."""
    console = Console()
    table = Table(title="Requests per CPU second (best of the rounds)", title_justify="left")
    table.add_column("cache")
    table.add_column("requests / CPU s", justify="right")
    table.add_column("ratio to peer", justify="right")
    peer = figures["peer_requests_per_cpu_s"]
    for name, key in (
        ("tenure, KV events on", "requests_per_cpu_s"),
        ("tenure, KV events off", "requests_per_cpu_s_without_kv_events"),
        ("unchecked dicts (peer)", "peer_requests_per_cpu_s"),
    ):
        table.add_row(name, f"{figures[key]:,.0f}", f"{figures[key] / peer:.2f}")
    console.print(table)
    table = Table(title="Time per operation, KV events on", title_justify="left")
    table.add_column("operation")
    table.add_column("ns", justify="right")
    for kind, value in figures["ns_per_op"].items():
        table.add_row(kind, f"{value:,}")
    table.add_row("hashing, per prompt block", f"{figures['hashing_ns_per_prompt_block']:,}")
    console.print(table)


def main() -> None:
    """Parse the command line, measure, print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    parser.add_argument("--requests", type=int, default=REQUESTS, help="requests to serve (default 2000)")
    parser.add_argument("--rounds", type=int, default=3, help="rounds, of which the best counts (default 3)")
    parser.add_argument("--seed", type=int, default=0, help="seed of the workload (default 0)")
    arguments = parser.parse_args()
    figures = measure(arguments.requests, arguments.rounds, arguments.seed)
    show(figures)
    if arguments.json:
        arguments.json.write_text(json.dumps(figures, indent=2) + "\n")


if __name__ == "__main__":
    main()
