"""What stands in for torch's GPU calls where there is no GPU: CPU tensors, and streams that run beside the caller.

Each stream is a thread, and its operations take their time. As on a GPU, what a stream does may be asked for and
still not be done, and an operation that fails there takes the whole device with it.
"""

import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from queue import SimpleQueue
from typing import Any

import numpy as np
import torch

PATIENCE_S = 60.0


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

    def buffer(self, array: Any) -> "StreamBuffer":
        """A buffer of a model."""
        return StreamBuffer(self, array)

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
