"""A toy inference engine around `OutputCache`: continuous batching, prefix hits, and a builder on its own thread.

The "model" emits, for each token, hidden states that depend on all tokens up to it, as a real one does; so the engine
can check that what the cache returns for a prefix hit is what computing the prefix anew would have given.

    python examples/engine.py
"""

import threading
from dataclasses import dataclass
from queue import SimpleQueue
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from tenure import Extended, Finished, NumpyBlockTable, OutputCache, RowConfig, RowPolicy, Started
from tenure.backends.cpu import CpuDevice

BLOCK_SIZE = 4
WIDTH = 8
CONFIG = RowConfig(num_blocks=64, block_size=BLOCK_SIZE, page_rows_max=64, pages=4, builder_lag_max=2)
POLICY = RowPolicy(immediate=frozenset({"logits.top"}), deferred=frozenset({"audio.codes"}), infer=False)

Rows: TypeAlias = npt.NDArray[np.float32]


@dataclass
class Request:
    """One request: its tokens, its blocks, and how many tokens are computed."""

    name: str
    tokens: list[int]
    blocks: list[int]
    computed: int = 0


Steps: TypeAlias = "SimpleQueue[tuple[int, list[Request]] | None]"
"""Saved steps on their way to the builder, with the requests as they were."""


def forward(tokens: list[int], first: int, stop: int) -> Rows:
    """Hidden states of the tokens `[first, stop)`. Shapes: `[stop - first, WIDTH]`."""
    sums = np.cumsum(np.array(tokens, dtype=np.float32))[first:stop]
    return np.outer(sums, np.arange(1, WIDTH + 1, dtype=np.float32))


class Engine:
    """Admits requests, runs them one token a step, and hands each saved step to the builder."""

    def __init__(self, cache: OutputCache, table: NumpyBlockTable, steps: Steps) -> None:
        self.cache = cache
        self.table = table
        self.steps = steps
        self.running: list[Request] = []
        self.ended: list[str] = []
        self.prefixes: dict[tuple[int, ...], int] = {}  # whole blocks by the tokens up to their end
        self.next_block = 0
        # What the model writes into, step after step, as CUDA graphs do.
        self.hidden = np.zeros((CONFIG.page_rows_max, WIDTH), np.float32)

    def step(self, arrivals: list[Request]) -> None:
        """One forward pass over the new prompts and one token of everybody else."""
        started = [self.admit(request) for request in arrivals]
        going_on = [request for request in self.running if request not in arrivals]
        counts = np.array([len(request.tokens) - request.computed for request in going_on], dtype=np.int64)
        ends = [Finished(name) for name in self.ended]
        self.cache.new_step_starts([*ends, *started, Extended(tuple(each.name for each in going_on), counts)])
        self.ended = []

        tokens = np.array([len(request.tokens) - request.computed for request in self.running], dtype=np.int64)
        n = int(tokens.sum())
        rows = [forward(request.tokens, request.computed, len(request.tokens)) for request in self.running]
        self.hidden[:n] = np.concatenate(rows)
        mm = {"logits.top": self.hidden[:n, :1], "audio.codes": self.hidden[:n, :2].astype(np.int32)}
        step = self.cache.save_outputs(self.hidden[:n], mm, num_tokens_unpadded=n)
        self.hidden[:] = np.nan  # the next forward pass overwrites everything

        self.steps.put((step, [Request(each.name, list(each.tokens), [], each.computed) for each in self.running]))
        self.table.advance(tokens)
        for request in self.running:
            self.publish(request)
            request.computed = len(request.tokens)
            request.tokens.append(len(request.tokens) % 5)  # "sampling"
            self.grow(request)

    def admit(self, request: Request) -> Started:
        """Look up the longest prefix of whole blocks; the last token is always computed."""
        while (stop := request.computed + BLOCK_SIZE) < len(request.tokens):
            block = self.prefixes.get(tuple(request.tokens[:stop]))
            if block is None:
                break
            request.blocks.append(block)
            request.computed = stop
        self.table.add(request.name, request.blocks, computed=request.computed)
        self.grow(request)
        self.running.append(request)
        return Started(
            request.name, len(request.tokens) - request.computed, hit=request.computed, blocks=(tuple(request.blocks),)
        )

    def grow(self, request: Request) -> None:
        """Hold a block for every token."""
        while len(request.blocks) * BLOCK_SIZE < len(request.tokens):
            request.blocks.append(self.next_block)
            self.table.append(request.name, [self.next_block])
            self.next_block += 1

    def publish(self, request: Request) -> None:
        """Whole blocks that this step computed can be hit from now on."""
        for stop in range(BLOCK_SIZE, len(request.tokens) + 1, BLOCK_SIZE):
            self.prefixes.setdefault(tuple(request.tokens[:stop]), request.blocks[stop // BLOCK_SIZE - 1])

    def finish(self, request: Request) -> None:
        """A request has all that it wanted; the cache hears of it with the next step."""
        self.running.remove(request)
        self.table.remove(request.name)
        self.ended.append(request.name)


def build(cache: OutputCache, steps: Steps, log: list[str]) -> None:
    """Take every step once; a request that began with a hit gets the rows of its whole prompt."""
    while (saved := steps.get()) is not None:
        step, requests = saved
        outputs = cache.materialize(step, [request.name for request in requests])
        assert outputs.hidden_states is not None
        for request in requests:
            rows = outputs.hidden_states[request.name]
            first = len(request.tokens) - len(rows)
            assert np.array_equal(forward(request.tokens, first, len(request.tokens)), rows)
            if first < request.computed:
                log.append(f"step {step}: {request.name} got {request.computed - first} rows from its hit")


def main() -> None:
    """Two conversations that share a prompt, and one that comes back."""
    prompt = [3, 1, 4, 1, 5, 9, 2, 6, 5]
    steps: Steps = SimpleQueue()
    log: list[str] = []
    table = NumpyBlockTable(CONFIG, requests_max=8, blocks_max=16)
    with OutputCache(CONFIG, POLICY, device=CpuDevice(worker=True), block_table=table) as cache:
        builder = threading.Thread(target=build, args=(cache, steps, log))
        builder.start()
        engine = Engine(cache, table, steps)
        first, second = Request("first", list(prompt), []), Request("second", [*prompt, 3, 5], [])
        engine.step([first])
        engine.step([second])
        for _ in range(4):
            engine.step([])
        engine.finish(first)
        engine.step([Request("back again", [*first.tokens[:-1], 8], [])])
        steps.put(None)
        builder.join()
        stats = cache.stats()
    print("\n".join(log))
    print(f"{stats.counters.steps_saved} steps saved, {stats.counters.hit_rows} rows served from hits")


if __name__ == "__main__":
    main()
