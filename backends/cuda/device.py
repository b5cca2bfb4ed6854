"""The CUDA device: the port on `torch.cuda`, for NVIDIA's GPUs and, with a ROCm build of torch, for AMD's: same API.

**Streams.** Rows are frozen on the calling thread's *current* stream, so that they are read behind the forward pass
and ahead of the next one; a CUDA graph's static output buffers are read as they are when their replay is through.
The lane COPY has a stream of its own, and so have the reads of GATHER. A stream waits for another one's mark; a thread
waits where host memory is next. See `tenure.backends.cuda.lanes`.

**Memory.** Device memory comes from what torch sets aside for the copy stream, where no kernel of the engine has any:
so nothing that the engine asked for may still be at it. `free` comes when every operation on a buffer has ended, as
far as the host knows (duty 5), so it may be used again at once; only a device that was closed too early has some
under way, hence `record_stream` for the streams that are not the memory's own. Page-locked memory that is given back
torch keeps until the copies that it was in have ended.

Memory is allocated outside inference mode even if the engine is in it: other threads must be able to write it.

**Pageable targets.** A copy from the GPU to pageable memory (a deferred write when page-locked memory ran out, a read
of rows that are still on the GPU) holds the thread of its lane while it lasts, and nobody else.
"""

import os
from typing import Any, Final

import numpy as np
import torch

from tenure.backends.cpu.arrays import Array, check_index, gather_array, kept_alive, scatter_array
from tenure.backends.cpu.on_lanes import OnLanes
from tenure.backends.cpu.tensors import TorchTensors, copy_array
from tenure.backends.cuda.api import Api, Stream, TorchCuda
from tenure.backends.cuda.lanes import CudaLanes
from tenure.backends.device import Lane, Memory, Rows, Tensor
from tenure.core.arrays import Integers
from tenure.core.errors import ForeignTensorError, OperationFailedError

_REFUSALS: Final = (RuntimeError, MemoryError, TypeError, ValueError, NotImplementedError)
"""What torch says when something cannot be done, memory that has run out included."""


class CudaBuffer:
    """Rows of one shape and dtype.

    Attributes:
        tensor: where they lie. Shapes: `[rows, *row_shape]`.
        array: the same memory for numpy, where it is the host's; else None.
    """

    __slots__ = ("array", "dtype", "tensor")

    def __init__(self, tensor: torch.Tensor, array: Array | None, dtype: str) -> None:
        self.tensor = tensor
        self.array = array
        self.dtype = dtype


class CudaDevice(OnLanes):
    """One GPU; several are several devices. It takes torch tensors on that GPU, and gives torch tensors on the CPU."""

    def __init__(
        self, index: int | None = None, *, page_locked_bytes_max: int | None = None, api: Api | None = None
    ) -> None:
        """Ready for use, with three threads.

        Args:
            index: which GPU; the calling thread's current one, if not given.
            page_locked_bytes_max: page-locked memory that pages may take; half of the host's memory, if not given.
            api: what stands in for `torch.cuda`.

        Raises:
            OperationFailedError: there is no GPU.
        """
        self._api = TorchCuda(index) if api is None else api
        self._tensors = TorchTensors()
        self._page_locked_bytes_max = (
            os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2
            if page_locked_bytes_max is None
            else page_locked_bytes_max
        )
        self._copying = self._api.make_stream()
        self._reading = self._api.make_stream()
        # The stream that rows were frozen on last.
        self._computing: Stream | None = None
        self._lanes = CudaLanes(self._api, self._copying)

    @property
    def index(self) -> int:
        """Which GPU."""
        return self._api.index

    # --- Memory -------------------------------------------------------------------------------------------------

    def page_locked_bytes_max(self) -> int | None:
        """Page-locked bytes that this device can give."""
        return self._page_locked_bytes_max

    def is_unified(self) -> bool:
        """Rows are frozen on the GPU, and copied to their page from there."""
        return False

    def allocate(self, memory: Memory, rows: int, row_shape: tuple[int, ...], dtype: str) -> CudaBuffer:
        """A buffer of `rows` rows, their content arbitrary.

        Raises:
            OperationFailedError: there is no such memory left.
        """
        shape, kept_as = (rows, *row_shape), getattr(torch, dtype)
        try:
            with torch.inference_mode(mode=False):
                if memory is Memory.DEVICE:
                    return CudaBuffer(self._api.device_memory(self._copying, shape, kept_as), None, dtype)
                is_page_locked = memory is Memory.PAGE_LOCKED
                tensor = self._api.page_locked(shape, kept_as) if is_page_locked else torch.empty(shape, dtype=kept_as)
        except _REFUSALS as error:
            raise OperationFailedError(f"allocate {rows} rows {memory.value}", str(error)) from error
        return CudaBuffer(tensor, self._tensors.to_array(tensor), dtype)

    def free(self, buffer: CudaBuffer) -> None:
        """Give a buffer back; the memory goes with its last view."""
        if buffer.array is None:
            for stream in (self._reading, self._computing):
                if stream is not None:
                    self._api.keep_for(stream, buffer.tensor)

    def describe(self, value: object) -> tuple[tuple[int, ...], str] | None:
        """Shape and dtype of a tensor; None for what is no tensor."""
        return self._tensors.describe(value)

    def live(self, name: str, tensor: Tensor) -> CudaBuffer:
        """A tensor of the engine as a buffer over the same memory.

        Raises:
            ForeignTensorError: it is not on this GPU.
        """
        found, expected = self._tensors.describe(tensor), f"torch tensors on cuda:{self._api.index}"
        if not isinstance(tensor, torch.Tensor) or found is None:
            raise ForeignTensorError(name, type(tensor).__name__, expected)
        if not self._api.is_here(tensor):
            raise ForeignTensorError(name, f"a tensor on {tensor.device}", expected)
        return CudaBuffer(tensor.detach(), None, found[1])

    def to_host(self, lane: Lane, tensor: Tensor) -> Tensor:
        """A copy of a tensor on its way to page-locked memory; what lies on the host is copied at the call.

        Raises:
            OperationFailedError: it cannot be copied; it may lie on another GPU.
        """
        assert lane is Lane.COMPUTE
        try:
            with torch.inference_mode(mode=False):
                if not isinstance(tensor, torch.Tensor) or not self._api.is_here(tensor):
                    return self._own(tensor)
                target = self._api.page_locked(tensor.shape, tensor.dtype)
                self._api.copy(self._stream(), target, tensor.detach())
        except _REFUSALS as error:
            raise OperationFailedError("copy a leftover", f"{type(error).__name__}: {error}") from error
        return target

    # --- Operations ---------------------------------------------------------------------------------------------

    def copy(self, lane: Lane, target: Rows, source: Rows) -> None:
        """Copy as many rows as both have."""
        if lane is Lane.COMPUTE:
            self._lanes.do(lane, "copy rows", self._api.copy, self._stream(), _tensor(target), _tensor(source))
        elif source.buffer.array is None:
            self._lanes.do(lane, "copy rows", self._fetch, lane, _tensor(target), _tensor(source))
        else:
            self._lanes.do(lane, "copy rows", copy_array, _array(target), _array(source))

    def gather_rows(self, lane: Lane, target: Rows, source: CudaBuffer, index: Integers) -> None:
        """Row i of the target becomes row `index[i]` of the source."""
        if source.array is None:
            self._lanes.do(lane, "gather rows", self._fetch, lane, _tensor(target), source.tensor, index)
        else:
            self._lanes.do(lane, "gather rows", gather_array, _array(target), source.array, index)

    def scatter_rows(self, lane: Lane, target: CudaBuffer, index: Integers, source: Rows) -> None:
        """Row `index[i]` of the target becomes row i of the source."""
        if source.buffer.array is None:
            self._lanes.do(lane, "scatter rows", self._fetch_apart, lane, target, index, _tensor(source))
        else:
            self._lanes.do(lane, "scatter rows", scatter_array, target.array, index, _array(source))

    def zero_rows(self, lane: Lane, target: Rows) -> None:
        """Every element of the target becomes 0."""
        self._lanes.do(lane, "zero rows", _array(target).fill, 0)

    def _own(self, tensor: Tensor) -> Tensor:
        """A copy of what lies on the host."""
        if isinstance(tensor, torch.Tensor) and tensor.device.type != "cpu":
            msg = f"it lies on {tensor.device}, and this device is cuda:{self._api.index}"
            raise ValueError(msg)
        return self._tensors.own(tensor)

    def _stream(self) -> Stream:
        """The engine's stream."""
        self._computing = self._api.current_stream()
        return self._computing

    def _fetch(self, lane: Lane, target: torch.Tensor, source: torch.Tensor, index: Integers | None = None) -> None:
        """Read from the GPU, on the thread of a lane."""
        stream = self._copying if lane is Lane.COPY else self._reading
        if index is None:
            self._api.copy(stream, target, source)
        else:
            # A GPU that is asked for a row that is not there is lost to the whole process.
            check_index(index, len(source))
            staged = self._api.page_locked((len(index),), torch.int64)
            np.copyto(staged.numpy(), index)
            self._api.take(stream, target, source, staged)
        if lane is not Lane.COPY:
            # What comes next on the lane is done by this thread, and reads what was copied.
            self._api.record(stream).synchronize()

    def _fetch_apart(self, lane: Lane, target: CudaBuffer, index: Integers, source: torch.Tensor) -> None:
        """Read rows from the GPU and put each in its place, on the thread of a lane."""
        staged = self._api.page_locked(source.shape, source.dtype)
        self._fetch(lane, staged, source)
        rows = self._tensors.to_array(staged)
        assert rows is not None, "it lies on the host"
        assert target.array is not None, "scatters are into host memory"
        scatter_array(target.array, index, rows)

    # --- On the calling thread ----------------------------------------------------------------------------------

    def copy_now(self, target: Rows, source: Rows) -> None:
        """Copy as many rows as both have, from host to host."""
        copy_array(_array(target), _array(source))

    def tensor(self, rows: Rows, keep: object) -> Tensor:
        """Host rows as a tensor on the CPU over the same memory, which keeps `keep` alive."""
        return self._tensors.from_array(kept_alive(_array(rows), keep), rows.buffer.dtype)

    def own(self, tensor: Tensor) -> Tensor:
        """A copy of a host tensor with memory of its own."""
        return self._tensors.own(tensor)

    def cut(self, rows: Rows) -> Tensor:
        """Host rows as a tensor with memory of its own."""
        return self._tensors.from_array(_array(rows).copy(), rows.buffer.dtype)


def _tensor(rows: Rows) -> torch.Tensor:
    tensor: torch.Tensor = rows.buffer.tensor[rows.start : rows.stop]
    return tensor


def _array(rows: Rows) -> Array:
    array: Any = rows.buffer.array
    assert array is not None, "host memory is expected here, and this is the GPU's"
    found: Array = array[rows.start : rows.stop]
    return found
