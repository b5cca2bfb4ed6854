"""All that Tenure asks of `torch.cuda`: memory, streams, events, and copies on a given stream.

Nothing here decides anything, so that what does can be run without a GPU: with another `Api` in place of `TorchCuda`.
"""

from collections.abc import Sequence
from typing import Any, Final, Protocol, TypeAlias

import torch

from tenure.core.errors import OperationFailedError

NO_GPU: Final = "torch.cuda finds no GPU here"
Stream: TypeAlias = Any
"""An api's own: what is asked of it takes effect in order."""


class Mark(Protocol):
    """A place in a stream."""

    def synchronize(self) -> None:
        """Return when everything before has ended; no interpreter lock is held meanwhile.

        Raises:
            RuntimeError: the device failed.
        """
        ...


class Api(Protocol):
    """One GPU. Whatever cannot be done raises a RuntimeError, and what was asked before is not touched by it."""

    @property
    def index(self) -> int:
        """Which GPU."""
        ...

    def use_here(self) -> None:
        """Make the GPU the current one of the calling thread, so that no other gets a context by accident."""
        ...

    def make_stream(self) -> Stream:
        """A stream apart from all others."""
        ...

    def current_stream(self) -> Stream:
        """The stream that the calling thread works on."""
        ...

    def record(self, stream: Stream) -> Mark:
        """Mark the place that a stream has come to."""
        ...

    def wait(self, stream: Stream, mark: Mark) -> None:
        """Let a stream go on behind a mark; returns at once."""
        ...

    def is_here(self, tensor: torch.Tensor) -> bool:
        """Whether a tensor lies on this GPU."""
        ...

    def device_memory(self, stream: Stream, shape: Sequence[int], dtype: torch.dtype) -> torch.Tensor:
        """Memory of the GPU, from what is set aside for a stream."""
        ...

    def page_locked(self, shape: Sequence[int], dtype: torch.dtype) -> torch.Tensor:
        """Memory of the host that the GPU copies to by itself."""
        ...

    def keep_for(self, stream: Stream, tensor: torch.Tensor) -> None:
        """Let memory that is given up be used again only behind what a stream was asked for so far."""
        ...

    def copy(self, stream: Stream, target: torch.Tensor, source: torch.Tensor) -> None:
        """Copy on a stream; returns at once unless host memory of one of them is pageable."""
        ...

    def take(self, stream: Stream, target: torch.Tensor, source: torch.Tensor, index: torch.Tensor) -> None:
        """Copy the rows `index`, which lies in page-locked memory, on a stream; returns as `copy` does."""
        ...


class TorchCuda:
    """A GPU of `torch.cuda`."""

    def __init__(self, index: int | None = None) -> None:
        """The GPU `index`, or the current one.

        Raises:
            OperationFailedError: there is none.
        """
        if not torch.cuda.is_available():
            raise OperationFailedError("be a CUDA device", NO_GPU)
        self.index: Final = torch.cuda.current_device() if index is None else index
        self._device = torch.device("cuda", self.index)

    def use_here(self) -> None:
        """Make the GPU the current one of the calling thread."""
        torch.cuda.set_device(self._device)

    def make_stream(self) -> torch.cuda.Stream:
        """A stream apart from all others."""
        return torch.cuda.Stream(self._device)  # type: ignore[no-untyped-call]

    def current_stream(self) -> torch.cuda.Stream:
        """The stream that the calling thread works on."""
        return torch.cuda.current_stream(self._device)

    def record(self, stream: Stream) -> torch.cuda.Event:
        """Mark the place that a stream has come to; whoever waits sleeps, and does not spin."""
        mark = torch.cuda.Event(blocking=True)  # type: ignore[no-untyped-call]
        mark.record(stream)
        return mark

    def wait(self, stream: Stream, mark: Any) -> None:
        """Let a stream go on behind a mark."""
        stream.wait_event(mark)

    def is_here(self, tensor: torch.Tensor) -> bool:
        """Whether a tensor lies on this GPU."""
        return tensor.device == self._device

    def device_memory(self, stream: Stream, shape: Sequence[int], dtype: torch.dtype) -> torch.Tensor:
        """Memory of the GPU."""
        with torch.cuda.stream(stream):
            return torch.empty(tuple(shape), dtype=dtype, device=self._device)

    def page_locked(self, shape: Sequence[int], dtype: torch.dtype) -> torch.Tensor:
        """Memory of the host; torch uses it again only when every copy that it was in has ended."""
        return torch.empty(tuple(shape), dtype=dtype, pin_memory=True)

    def keep_for(self, stream: Stream, tensor: torch.Tensor) -> None:
        """Let memory that is given up be used again only behind a stream."""
        tensor.record_stream(stream)

    def copy(self, stream: Stream, target: torch.Tensor, source: torch.Tensor) -> None:
        """Copy on a stream."""
        with torch.cuda.stream(stream):
            target.copy_(source, non_blocking=True)

    def take(self, stream: Stream, target: torch.Tensor, source: torch.Tensor, index: torch.Tensor) -> None:
        """Copy rows on a stream; what lies between is memory of that stream, so that it may be given up at once."""
        with torch.cuda.stream(stream):
            there = index.to(self._device, non_blocking=True)
            target.copy_(source.index_select(0, there), non_blocking=True)
