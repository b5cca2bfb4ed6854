"""The CPU device: what a machine without an accelerator runs for real, and what `make demo` needs.

Memory of every kind is numpy's, so that torch is needed by nobody but an engine that works with torch tensors.
"""

import sys
from typing import Any, Literal, Protocol

import numpy as np

from tenure.backends.cpu.arrays import (
    STORAGE,
    Array,
    NumpyTensors,
    copy_array,
    gather_array,
    kept_alive,
    scatter_array,
)
from tenure.backends.cpu.on_lanes import OnLanes
from tenure.backends.cpu.worker import InlineLanes, WorkerLanes
from tenure.backends.device import Lane, Memory, Rows, Tensor
from tenure.core.arrays import Integers
from tenure.core.errors import ForeignTensorError, OperationFailedError


class CpuBuffer:
    """Rows of one shape and dtype. Shapes: `array: [rows, *row_shape]`."""

    __slots__ = ("array", "dtype")

    def __init__(self, array: Array, dtype: str) -> None:
        self.array = array
        self.dtype = dtype


class Tensors(Protocol):
    """A kind of tensor that an engine works with."""

    @property
    def expected(self) -> str:
        """What is taken, in words."""
        ...

    def describe(self, value: object, /) -> tuple[tuple[int, ...], str] | None:
        """Shape and dtype."""
        ...

    def to_array(self, value: object, /) -> Array | None:
        """An array over its memory."""
        ...

    def from_array(self, array: Array, dtype: str, /) -> Any:
        """A tensor over an array's memory."""
        ...

    def own(self, value: Any, /) -> Any:
        """A copy."""
        ...


class CpuDevice(OnLanes):
    """The CPU, inline or with one worker thread.

    Inline (`worker=False`) every operation is over when it was asked for, on the thread that asked. With a worker the
    rows are frozen at the call, and everything else is done in order on one thread, beside the forward pass.

    `tensors` says what the engine works with and is given back: "numpy", "torch", or "auto" for torch as soon as the
    process has imported it. With torch, numpy arrays are taken as well.
    """

    def __init__(self, *, worker: bool = False, tensors: Literal["auto", "numpy", "torch"] = "auto") -> None:
        """Ready for use.

        Raises:
            ImportError: torch tensors are asked for, and there is no torch.
        """
        self._tensors: Tensors = NumpyTensors()
        self._copy = copy_array
        self._is_auto = tensors == "auto"
        if tensors == "torch" or (self._is_auto and "torch" in sys.modules):
            self._take_torch()
        self._lanes = WorkerLanes() if worker else InlineLanes()

    def _take_torch(self) -> None:
        from tenure.backends.cpu import tensors as with_torch

        self._tensors = with_torch.TorchTensors()
        self._copy = with_torch.copy_array
        self._is_auto = False

    def page_locked_bytes_max(self) -> int | None:
        """None: all memory is the host's."""
        return None

    def is_unified(self) -> bool:
        """True."""
        return True

    def allocate(self, memory: Memory, rows: int, row_shape: tuple[int, ...], dtype: str) -> CpuBuffer:
        """A buffer of `rows` rows, their content arbitrary.

        Raises:
            OperationFailedError: there is no such memory left.
        """
        del memory
        try:
            return CpuBuffer(np.empty((rows, *row_shape), STORAGE[dtype]), dtype)
        except (MemoryError, ValueError) as error:
            raise OperationFailedError(f"allocate {rows} rows", str(error)) from error

    def free(self, buffer: CpuBuffer) -> None:
        """The memory goes with its last view."""

    def describe(self, value: object) -> tuple[tuple[int, ...], str] | None:
        """Shape and dtype of a tensor; None for what is no tensor."""
        if self._is_auto and "torch" in sys.modules:
            self._take_torch()
        return self._tensors.describe(value)

    def live(self, name: str, tensor: Tensor) -> CpuBuffer:
        """A tensor of the engine as a buffer over the same memory.

        Raises:
            ForeignTensorError: it is not on the CPU.
        """
        try:
            array, found = self._tensors.to_array(tensor), self._tensors.describe(tensor)
        except (RuntimeError, TypeError) as error:
            raise ForeignTensorError(name, f"no plain tensor ({error})", self._tensors.expected) from error
        if array is None or found is None:
            where = getattr(tensor, "device", None)
            raise ForeignTensorError(
                name, type(tensor).__name__ + (f" on {where}" if where else ""), self._tensors.expected
            )
        return CpuBuffer(array, found[1])

    def to_host(self, lane: Lane, tensor: Tensor) -> Tensor:
        """A copy of a tensor."""
        del lane
        try:
            return self._tensors.own(tensor)
        except (RuntimeError, TypeError, NotImplementedError) as error:
            raise OperationFailedError("copy a leftover", f"{type(error).__name__}: {error}") from error

    # --- Operations ---------------------------------------------------------------------------------------------

    def copy(self, lane: Lane, target: Rows, source: Rows) -> None:
        """Copy as many rows as both have."""
        self._lanes.do(lane, "copy rows", self._copy, _array(target), _array(source))

    def gather_rows(self, lane: Lane, target: Rows, source: CpuBuffer, index: Integers) -> None:
        """Row i of the target becomes row `index[i]` of the source."""
        self._lanes.do(lane, "gather rows", gather_array, _array(target), source.array, index)

    def scatter_rows(self, lane: Lane, target: CpuBuffer, index: Integers, source: Rows) -> None:
        """Row `index[i]` of the target becomes row i of the source."""
        self._lanes.do(lane, "scatter rows", scatter_array, target.array, index, _array(source))

    def zero_rows(self, lane: Lane, target: Rows) -> None:
        """Every element of the target becomes 0."""
        self._lanes.do(lane, "zero rows", _array(target).fill, 0)

    def fail(self, lane: Lane) -> None:
        """An operation that fails, for checks of what comes of it."""
        self._lanes.do(lane, "fail", _fail)

    # --- On the calling thread ----------------------------------------------------------------------------------

    def copy_now(self, target: Rows, source: Rows) -> None:
        """Copy as many rows as both have."""
        self._copy(_array(target), _array(source))

    def tensor(self, rows: Rows, keep: object) -> Tensor:
        """Rows as a tensor over the same memory, which keeps `keep` alive."""
        return self._tensors.from_array(kept_alive(_array(rows), keep), rows.buffer.dtype)

    def own(self, tensor: Tensor) -> Tensor:
        """A copy of a tensor with memory of its own."""
        return self._tensors.own(tensor)

    def cut(self, rows: Rows) -> Tensor:
        """Rows as a tensor with memory of its own."""
        buffer, start, stop = rows
        return self._tensors.from_array(buffer.array[start:stop].copy(), buffer.dtype)


def _array(rows: Rows) -> Array:
    array: Array = rows.buffer.array[rows.start : rows.stop]
    return array


def _fail() -> None:
    msg = "it was asked to"
    raise RuntimeError(msg)
