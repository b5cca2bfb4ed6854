"""An engine in a few lines: requests, slots, and one small number per token and name.

A batch is written `{request: (slots, ...)}`. Outputs lie in buffers that the next forward pass overwrites, and they
are overwritten as soon as a save returns: whoever did not freeze its rows is caught.
"""

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from threading import Thread
from time import monotonic, sleep
from typing import Any, Self, TypeAlias

import numpy as np

from tenure import Extended, Finished, OutputCache, RowConfig, RowPolicy, Started, WriteLayout
from tenure.backends.cpu import CpuDevice
from tenure.backends.device import Device
from tenure.core.rows.events import LifeCycle
from tenure.outputs import StepOutputs

Batch: TypeAlias = Mapping[Any, Sequence[int]]
POLICY = RowPolicy(
    immediate=frozenset({"m", "k"}), deferred=frozenset({"c", "d"}), leftovers=frozenset({"ref"}), infer=False
)
ROW_NAMES = ("h", "m", "k", "c", "d")
POISON = -7.0
FIRST, SECOND, THIRD, FOURTH = (tuple(range(start, start + 4)) for start in (0, 4, 8, 12))
WORKERS = (False, True)
PATIENCE_S = 60.0
"""How long a test waits for what must come; nothing depends on how soon it does."""


def started(request: Any, tokens: int, *hit_blocks: int, block_size: int = 4, **more: Any) -> Started:
    """An arrival whose hit, if any, is exactly these blocks."""
    return Started(request, tokens, len(hit_blocks) * block_size, (hit_blocks,) if hit_blocks else (), **more)


def extended(**counts: int) -> Extended:
    """Live requests that go on."""
    return Extended(tuple(counts), np.array(list(counts.values())))


def layout_of(batch: Batch, padded: int | None = None) -> WriteLayout:
    """A batch as a cache is told of it."""
    counts = np.array([len(slots) for slots in batch.values()], dtype=np.int64)
    return WriteLayout(tuple(batch), counts, np.array([slot for slots in batch.values() for slot in slots]), padded)


class Call:
    """A call on a thread of its own.

    Attributes:
        found: what it returned.
        error: what it raised.
    """

    def __init__(self, call: Callable[..., Any], *arguments: Any, **named: Any) -> None:
        self.found: Any = None
        self.error: BaseException | None = None
        self._call: Callable[[], Any] = partial(call, *arguments, **named)
        self._thread = Thread(target=self._run, name="test-call", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self.found = self._call()
        except BaseException as error:
            self.error = error

    @property
    def is_over(self) -> bool:
        """Whether it returned or raised."""
        return not self._thread.is_alive()

    def forget(self) -> None:
        """Keep neither what it returned nor what it raised."""
        self.found = self.error = None

    def result(self) -> Any:
        """What it returned; or raise what it raised."""
        self._thread.join(PATIENCE_S)
        assert not self._thread.is_alive(), "the call never ended"
        if self.error is not None:
            raise self.error
        return self.found


class Engine:
    """One `OutputCache` and the live buffers of a model.

    Attributes:
        cache: the cache.
        saved: steps that were saved.
    """

    def __init__(
        self,
        *,
        worker: bool = False,
        device: Device | None = None,
        tensors: str = "numpy",
        policy: RowPolicy = POLICY,
        num_blocks: int = 8,
        cache: Mapping[str, Any] | None = None,
        **config: Any,
    ) -> None:
        settings: dict[str, Any] = {"page_rows_max": 64, "pages": 3, "wait_timeout_s": PATIENCE_S, **config}
        self.config = RowConfig(num_blocks=num_blocks, block_size=settings.pop("block_size", 4), **settings)
        self.device: Any = CpuDevice(worker=worker, tensors=tensors) if device is None else device  # type: ignore[arg-type]
        self.is_torch = tensors == "torch"
        self.cache = OutputCache(self.config, policy, device=self.device, **(cache or {}))
        self.saved: list[int] = []
        self._live: dict[str, Any] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        release = getattr(self.device, "release", None)
        if release is not None:
            release()
        self.cache.shutdown()

    @contextmanager
    def impatient(self) -> Generator[None]:
        """Calls wait for a moment only: for waits that end in vain, whatever the machine is busy with."""
        runtime: Any = self.cache._runtime  # pyright: ignore[reportPrivateUsage]
        patience, runtime._timeout_s = runtime._timeout_s, 0.05
        try:
            yield
        finally:
            runtime._timeout_s = patience

    # --- The engine's calls -------------------------------------------------------------------------------------

    def start(self, *changes: LifeCycle) -> int:
        """A scheduler output; the number of its step, 0 without tokens."""
        return self.cache.new_step_starts(changes).step or 0

    def outputs(self, **rows: Any) -> tuple[Any, dict[str, Any] | None]:
        """What a forward pass leaves in its buffers: one number a token and name, or a leftover as it is."""
        live = {name: self.live(name, values) if name in ROW_NAMES else values for name, values in rows.items()}
        hidden = live.pop("h", None)
        return hidden, live or None

    def live(self, name: str, values: Sequence[float]) -> Any:
        """Rows in the buffer of a name, which is the same in every step."""
        buffer = self._live.setdefault(name, np.full((self.config.page_rows_max * 2, 1), POISON, dtype=np.float32))
        buffer[: len(values), 0] = values
        if not self.is_torch:
            return buffer[: len(values)]
        import torch

        rows: Any = torch.from_numpy(buffer)  # pyright: ignore[reportUnknownMemberType]
        return rows[: len(values)]

    def save(self, batch: Batch, padded: int | None = None, **rows: Any) -> int:
        """Save the started step; its live buffers are overwritten at once."""
        hidden, mm = self.outputs(**rows)
        step = self.cache.save_outputs(hidden, mm, layout=layout_of(batch, padded))
        self.overwrite()
        self.saved.append(step)
        return step

    def overwrite(self) -> None:
        """The next forward pass begins."""
        for buffer in self._live.values():
            buffer.fill(POISON)

    def save_later(self, batch: Batch, **rows: Any) -> Call:
        """A save on a thread of its own; its live buffers stay as they are."""
        hidden, mm = self.outputs(**rows)
        return Call(self.cache.save_outputs, hidden, mm, layout=layout_of(batch))

    def step(self, *changes: LifeCycle, batch: Batch, padded: int | None = None, **rows: Any) -> int:
        """Start and save one step."""
        self.start(*changes)
        return self.save(batch, padded, **rows)

    def materialize(self, step: int, *requests: Any) -> dict[str, dict[Any, Any]]:
        """Consume a step: per name (`h` is hidden) and request its numbers, or its share of a leftover."""
        return rows_of(self.cache.materialize(step, requests))

    def discard(self, *steps: int) -> None:
        """Nobody wants these steps."""
        for step in steps:
            self.cache.discard_step(step)

    def written(self, request: str, slots: Sequence[int], **rows: Any) -> None:
        """A request that came, was computed in these slots and ended; all its rows are in the pool."""
        step = self.step(started(request, len(slots)), batch={request: slots}, **rows)
        self.materialize(step, request)
        self.start(Finished(request))
        self.settle()

    # --- What is seen -------------------------------------------------------------------------------------------

    def settle(self) -> None:
        """Wait until every write that is under way has ended."""
        eventually(lambda: not self.cache.stats().open_writes)

    def settle_writes_of_steps(self) -> None:
        """Wait until every write but the deferred ones of requests that run has ended."""

        def is_settled() -> bool:
            # Other threads may change the table meanwhile.
            writes = list(self.machine.state.tables.writes.values())
            deferred = sum(write.request is not None and not write.ended for write in writes)
            return self.cache.stats().open_writes == deferred

        eventually(is_settled)

    def settle_immediate(self) -> None:
        """Wait until no page is in use: the immediate writes have ended, and their steps are consumed."""
        eventually(lambda: not self.cache.stats().pages_held)

    @property
    def machine(self) -> Any:
        """The machine behind the cache and its newest state."""
        return self.cache._machine  # pyright: ignore[reportPrivateUsage]

    def is_quiet(self) -> bool:
        """R18: nothing is left but what the pool holds."""
        stats = self.cache.stats()
        counts = (
            stats.live_requests,
            stats.unconsumed_steps,
            stats.open_writes,
            stats.reads,
            stats.pages_held,
            stats.charged_bytes,
            stats.buffers_held_bytes,
        )
        return not any(counts)


def rows_of(found: StepOutputs) -> dict[str, dict[Any, Any]]:
    """Per name (`h` is hidden) and request its numbers."""
    hidden = {} if found.hidden_states is None else {"h": numbers(found.hidden_states)}
    return hidden | {
        name: numbers(rows) if name in ROW_NAMES else dict(rows) for name, rows in found.mm_outputs.items()
    }


def numbers(rows: Mapping[Any, Any]) -> dict[Any, Any]:
    """The numbers of each request; what is no tensor as it is."""
    return {
        request: np.asarray(value)[:, 0].tolist() if hasattr(value, "shape") else value
        for request, value in rows.items()
    }


def eventually(holds: Callable[[], object]) -> None:
    """Wait until something holds; it must."""
    until = monotonic() + PATIENCE_S
    while not holds():
        assert monotonic() < until, "it never came true"
        sleep(0.001)


def assert_blocked(*calls: Call) -> None:
    """Calls wait, and nothing lets them out."""
    sleep(0.05)
    for call in calls:
        assert not call.is_over, call.error
