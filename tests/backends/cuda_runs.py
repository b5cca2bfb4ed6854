"""The whole cache on a GPU, or on what stands in for one: seed defects, and real threads at full speed."""

import random
import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from queue import SimpleQueue
from typing import Any

import numpy as np
import pytest
import torch

from tenure import BlockConfig, CacheConfig, JoinedCache, RowConfig, RowPolicy
from tenure.backends.cuda import CudaDevice
from tenure.backends.cuda.device import CudaBuffer
from tenure.backends.device import Buffer, Lane, Rows, Tensor
from tests.facade import test_seed_defects as seed_defects
from tests.facade.engine import PATIENCE_S, POISON, Engine, eventually
from tests.stateful import test_stress as stress

THREADS = {"tenure-cuda-compute", "tenure-cuda-copy", "tenure-cuda-host"}


class ServedDevice(CudaDevice):
    """A CUDA device for engines whose outputs are numpy arrays too, with lanes that a test can hold."""

    def __init__(self, api: Any) -> None:
        self.api = api
        self.calls: Counter[tuple[str, Lane]] = Counter()
        self._gates: list[threading.Event] = []
        super().__init__(api=self.api)

    def live(self, name: str, tensor: Tensor) -> CudaBuffer:
        """Arrays are taken for tensors of the GPU."""
        if isinstance(tensor, np.ndarray):
            tensor = self.api.put(torch.from_numpy(tensor))  # pyright: ignore
        return super().live(name, tensor)

    def copy(self, lane: Lane, target: Rows, source: Rows) -> None:
        """Counted when it is done."""
        super().copy(lane, target, source)
        if lane is not Lane.COMPUTE:
            self._lanes.do(lane, "count", self.calls.update, [("copy", lane)])

    def gather_rows(self, lane: Lane, target: Rows, source: Buffer, index: Any) -> None:
        """Counted."""
        super().gather_rows(lane, target, source, index)
        self.calls["gather", lane] += 1

    def hold(self, lane: Lane) -> None:
        """Let the thread of a lane stand still."""
        gate = threading.Event()
        self._gates.append(gate)
        held: Any = gate.wait
        self._lanes.do(lane, "stand still", held, PATIENCE_S)

    def release(self) -> None:
        """All lanes go on."""
        for each in self._gates:
            each.set()

    def close(self, timeout_s: float) -> None:
        """The streams end as well."""
        super().close(timeout_s)
        self.api.end()


class CudaEngine(Engine):
    """The engine of the facade's tests, whose forward pass is a stream."""

    def __init__(self, *, device: ServedDevice, worker: bool = True, **more: Any) -> None:
        assert worker
        self.served = device
        self._buffers: dict[str, Any] = {}
        super().__init__(device=self.served, **more)

    def live(self, name: str, values: Sequence[float]) -> Any:
        """Rows in the buffer of a name."""
        if name not in self._buffers:
            array = np.full((self.config.page_rows_max * 2, 1), POISON, dtype=np.float32)
            self._buffers[name] = self.served.api.buffer(array)
        self._buffers[name][: len(values), 0] = values
        return self._buffers[name][: len(values)]

    def overwrite(self) -> None:
        """The next forward pass begins, behind all that the stream was asked for."""
        for each in self._buffers.values():
            each.fill(POISON)


def settings_of(function: Callable[..., Any]) -> list[Mapping[str, Any]]:
    """The arguments that pytest would call a test with, those of one mark at most."""
    marks = [mark for mark in getattr(function, "pytestmark", []) if mark.name == "parametrize"]
    if not marks:
        return [{}]
    (mark,) = marks
    name, values = mark.args
    return [{name: value} for value in values]


# It looks at how numpy keeps the memory of an array; here rows are tensors.
LEFT_OUT = "test_d13_small_results_keep_no_big_buffers"
DEFECTS = [
    pytest.param(function, settings, id="-".join([name.removeprefix("test_"), *settings.values()]))
    for name, function in vars(seed_defects).items()
    if name.startswith("test_") and name != LEFT_OUT
    for settings in settings_of(function)
]


def run_defect(
    function: Callable[..., None],
    settings: Mapping[str, Any],
    monkeypatch: pytest.MonkeyPatch,
    make_api: Callable[[], Any],
) -> None:
    """One test of the seed's defects, with copies that run beside the engine and end when they like."""

    def engine(*, device: ServedDevice | None = None, **more: Any) -> CudaEngine:
        return CudaEngine(device=ServedDevice(make_api()) if device is None else device, **more)

    def device(*, worker: bool) -> ServedDevice:
        assert worker
        return ServedDevice(make_api())

    monkeypatch.setattr(seed_defects, "Engine", engine)
    monkeypatch.setattr(seed_defects, "ScriptedDevice", device)
    function(worker=True, **settings)

    assert not THREADS & {thread.name for thread in threading.enumerate()}


class StreamEngine(stress.Engine):
    """Its forward pass is a stream."""

    def save(self, batch: Any, hits: Any, buffers: Any) -> None:
        """The same, into the buffers of a model."""
        device: Any = self.cache._device  # pyright: ignore[reportPrivateUsage]
        if not hasattr(self, "outputs"):
            self.outputs = {name: device.api.buffer(array) for name, array in buffers.items()}
        super().save(batch, hits, self.outputs)


def run_stress(device: ServedDevice, count: int) -> None:
    """So many steps of an engine and two builders that dawdle; every row is held against the tokens."""
    rows = RowConfig(
        num_blocks=20, block_size=4, page_rows_max=64, pages=4, builder_lag_max=3, budget_bytes=400, gathers_max=2
    )
    config = CacheConfig(blocks=BlockConfig(capacity=20, block_size=4), rows=rows, visibility="computed")
    threads = set(threading.enumerate())
    policy = RowPolicy(immediate=frozenset({"m"}), deferred=frozenset({"c"}), infer=False)
    cache = JoinedCache(config, policy, device=device)
    steps: SimpleQueue[Any] = SimpleQueue()
    builders = [stress.Builder(cache, steps, seed) for seed in (1, 2)]
    engine = StreamEngine(cache, steps, random.Random(0))  # noqa: S311 - it decides what is scheduled
    for each in builders:
        each.start()
    try:
        engine.run(count)
    finally:
        for _ in builders:
            steps.put(None)
        for each in builders:
            each.join()
    errors = [each.error for each in builders if each.error is not None]
    eventually(lambda: not (cache.stats().open_writes or cache.stats().reads or cache.stats().buffers_held_bytes))
    stats = cache.stats()
    cache.shutdown()
    seen = engine.seen + builders[0].seen + builders[1].seen

    assert not errors
    assert (0, 0, 0, 0) == (stats.live_requests, stats.unconsumed_steps, stats.pages_held, stats.charged_bytes)
    assert not {thread.name for thread in set(threading.enumerate()) - threads if "stream" not in thread.name}
    assert count == stats.counters.steps_saved
    assert all(seen[what] for what in ("hits", "preempted", "rows")), seen
