"""What an engine does on a GPU beside Tenure: streams, kernels, graphs, marks with times. For tests and benchmarks.

Everything is of the calling thread's current GPU. Nothing of the device port is here, and nothing here waits for the
whole GPU.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, Final, Protocol, TypeVar

import torch

from tenure.backends.cuda.api import Mark, Stream

SLEEP: Final = "_sleep"
Made = TypeVar("Made")


class TimedMark(Mark, Protocol):
    """A place in a stream, and when the stream came there."""

    def query(self) -> bool:
        """Whether the stream is past it."""
        ...

    def elapsed_time(self, later: Any) -> float:
        """Milliseconds on the GPU's own timeline to another mark; both have been passed."""
        ...


def num_gpus() -> int:
    """How many there are; 0 where torch finds none."""
    return torch.cuda.device_count() if torch.cuda.is_available() else 0


def current_gpu() -> int:
    """The index of the current one."""
    return torch.cuda.current_device()


def gpu_name() -> str:
    """What the current one is called."""
    return torch.cuda.get_device_name()


def current_stream() -> Stream:
    """The stream that the calling thread works on."""
    return torch.cuda.current_stream()


def make_stream() -> Stream:
    """A stream apart from all others."""
    return torch.cuda.Stream()  # type: ignore[no-untyped-call]


def on_stream(stream: Stream) -> AbstractContextManager[Any]:
    """While it is entered, the calling thread works on a stream."""
    return torch.cuda.stream(stream)


def long_kernel(cycles: int) -> None:
    """Ask the current stream for a kernel that does nothing for so many cycles."""
    # Of torch's own tests: the one kernel whose length is known.
    sleep: Any = getattr(torch.cuda, SLEEP)
    sleep(cycles)


def timed_mark(stream: Stream | None = None) -> TimedMark:
    """Mark the place that a stream has come to; the current one, if none is given."""
    mark: Any = torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
    mark.record(current_stream() if stream is None else stream)
    found: TimedMark = mark
    return found


def captured(work: Callable[[], Made]) -> tuple[Any, Made]:
    """A CUDA graph of what `work` asks the GPU for, to be replayed, and what `work` returned while it was captured.

    `work` runs once before, on a stream of its own, as torch advises.
    """
    side = make_stream()
    side.wait_stream(current_stream())
    with on_stream(side):
        work()
    current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        made = work()
    return graph, made
