"""What stands in for `torch.cuda` where there is no GPU: CPU tensors, and streams that really run beside the caller.

Each stream is a thread, and its operations take their time. As on a GPU, what a stream does may be asked for and
still not be done, and an operation that fails there takes the whole device with it.
"""

import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from queue import SimpleQueue
from typing import Any

import numpy as np
import torch

from tenure.backends.cuda import CudaDevice
from tenure.backends.cuda.device import CudaBuffer
from tenure.backends.device import Buffer, Lane, Rows, Tensor
from tests.facade.engine import POISON, Engine

PATIENCE_S = 20.0


class StandInMark:
    """A place in a stream."""

    def __init__(self, api: "StandIn") -> None:
        self._api = api
        self.is_past = threading.Event()

    def synchronize(self) -> None:
        """Wait until the stream is past it."""
        assert self.is_past.wait(PATIENCE_S), "a stream never came here"
        if self._api.lost is not None:
            raise RuntimeError(self._api.lost)


class StandInStream:
    """A thread that does one thing after the other, after a moment."""

    def __init__(self, api: "StandIn", name: str) -> None:
        self.name = name
        self._api = api
        self._chance = random.Random(name)  # noqa: S311 - it decides how long nothing happens
        self._asked: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self.thread = threading.Thread(target=self._run, name=f"stream-{name}", daemon=True)
        self.thread.start()

    def ask(self, work: Callable[..., Any], *arguments: Any) -> None:
        """Have something done."""
        self._asked.put(partial(work, *arguments))

    def hold(self) -> threading.Event:
        """Let the stream stand still until the event is set."""
        gate = threading.Event()
        self.ask(gate.wait, PATIENCE_S)
        return gate

    def end(self) -> None:
        """Nothing is asked any more."""
        self._asked.put(None)
        self.thread.join(PATIENCE_S)

    def _run(self) -> None:
        while (work := self._asked.get()) is not None:
            if self._chance.random() < self._api.dawdle:
                time.sleep(self._chance.random() * 0.002)
            try:
                work()
            except Exception as error:
                self._api.lost = f"CUDA error: {error}"


class StandIn:
    """A GPU of CPU tensors.

    Attributes:
        engine: the stream of the thread that runs the engine.
        dawdle: how often an operation of a stream begins late.
        fails: what raises at the call, and how often it still does.
        lost: why everything fails from now on.
        asked: operations by name and stream.
        kept: which streams freed memory was kept for.
        users: threads that made the GPU theirs.
    """

    index = 3

    def __init__(self, dawdle: float = 0.2) -> None:
        self.dawdle = dawdle
        self.fails: Counter[str] = Counter()
        self.lost: str | None = None
        self.asked: Counter[tuple[str, str]] = Counter()
        self.kept: list[str] = []
        self.users: set[str] = set()
        self.streams: list[StandInStream] = []
        self._here: dict[int, torch.Tensor] = {}
        self._fast: set[int] = set()
        self.engine = self.stream("engine")

    def stream(self, name: str) -> StandInStream:
        """A stream of the engine's own."""
        made = StandInStream(self, name)
        self.streams.append(made)
        return made

    def put(self, tensor: torch.Tensor) -> torch.Tensor:
        """Make a tensor one of this GPU."""
        self._here[tensor.untyped_storage().data_ptr()] = tensor
        return tensor

    def end(self) -> None:
        """No stream is left."""
        for each in self.streams:
            each.end()

    def _strike(self, what: str) -> None:
        if self.fails[what]:
            self.fails[what] -= 1
            msg = f"CUDA error: {what} at the call"
            raise RuntimeError(msg)

    # --- The api ------------------------------------------------------------------------------------------------

    def use_here(self) -> None:
        """A thread begins."""
        self.users.add(threading.current_thread().name)

    def make_stream(self) -> StandInStream:
        """The first is for copies, the second for reads."""
        return self.stream(("copy", "read")[(len(self.streams) - 1) % 2])

    def current_stream(self) -> StandInStream:
        """The engine's."""
        return self.engine

    def record(self, stream: StandInStream) -> StandInMark:
        """A place in a stream."""
        self._strike("record")
        mark = StandInMark(self)
        self.asked["record", stream.name] += 1
        stream.ask(mark.is_past.set)
        return mark

    def wait(self, stream: StandInStream, mark: Any) -> None:
        """A stream waits, and nobody else."""
        self.asked["wait", stream.name] += 1
        stream.ask(mark.is_past.wait, PATIENCE_S)

    def is_here(self, tensor: torch.Tensor) -> bool:
        """Whether it was put here."""
        return tensor.device.type == "cpu" and tensor.untyped_storage().data_ptr() in self._here

    def device_memory(self, stream: StandInStream, shape: Sequence[int], dtype: torch.dtype) -> torch.Tensor:
        """Memory that holds nonsense."""
        self._strike("device_memory")
        assert stream.name == "copy"
        return self._nonsense(shape, dtype)

    def page_locked(self, shape: Sequence[int], dtype: torch.dtype) -> torch.Tensor:
        """Memory that holds nonsense."""
        self._strike("page_locked")
        return self._nonsense(shape, dtype)

    def _nonsense(self, shape: Sequence[int], dtype: torch.dtype) -> torch.Tensor:
        made = torch.full(tuple(shape), 99, dtype=dtype)
        self._fast.add(made.untyped_storage().data_ptr())
        return made

    def keep_for(self, stream: StandInStream, tensor: torch.Tensor) -> None:
        """Memory is given back."""
        self.kept.append(stream.name)

    def copy(self, stream: StandInStream, target: torch.Tensor, source: torch.Tensor) -> None:
        """At once, unless it is to pageable memory."""
        self._strike("copy")
        self._ask("copy", stream, target, partial(target.copy_, source))

    def take(self, stream: StandInStream, target: torch.Tensor, source: torch.Tensor, index: torch.Tensor) -> None:
        """At once, unless it is to pageable memory."""
        self._strike("take")
        self._ask("take", stream, target, lambda: target.copy_(source.index_select(0, index)))

    def _ask(self, what: str, stream: StandInStream, target: torch.Tensor, work: Callable[[], Any]) -> None:
        self.asked[what, stream.name] += 1
        if self.fails[f"{what} later"]:
            self.fails[f"{what} later"] -= 1
            work = self._break
        stream.ask(lambda: None if self.lost else work())
        if target.untyped_storage().data_ptr() not in self._fast:
            self.record(stream).is_past.wait(PATIENCE_S)

    def _break(self) -> None:
        msg = "an illegal memory access was encountered"
        raise ValueError(msg)


class StreamBuffer:
    """A buffer of a model: written, and overwritten, by its stream."""

    def __init__(self, api: StandIn, array: Any) -> None:
        self._api = api
        self.array = array
        self.tensor = api.put(torch.from_numpy(array))  # pyright: ignore[reportUnknownMemberType]

    def __setitem__(self, where: Any, values: Any) -> None:
        values = np.array(values)
        self._api.engine.ask(self.array.__setitem__, where, values)

    def __getitem__(self, where: slice) -> torch.Tensor:
        return self.tensor[where]

    def fill(self, value: float) -> None:
        """The next forward pass."""
        self._api.engine.ask(self.array.fill, value)


class ServedDevice(CudaDevice):
    """A CUDA device for engines whose outputs are numpy arrays too, with lanes that a test can hold."""

    def __init__(self, api: StandIn | None = None) -> None:
        self.api = StandIn() if api is None else api
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

    def __init__(self, *, device: Any = None, worker: bool = True, **more: Any) -> None:
        assert worker
        self.served = ServedDevice() if device is None else device
        self._buffers: dict[str, StreamBuffer] = {}
        super().__init__(device=self.served, **more)

    def live(self, name: str, values: Sequence[float]) -> Any:
        """Rows in the buffer of a name."""
        if name not in self._buffers:
            array = np.full((self.config.page_rows_max * 2, 1), POISON, dtype=np.float32)
            self._buffers[name] = StreamBuffer(self.served.api, array)
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
