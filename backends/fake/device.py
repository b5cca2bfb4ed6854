"""The emulated accelerator: memory, and the port over its lanes."""

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from tenure.backends.cpu.arrays import STORAGE, NumpyTensors, kept_alive
from tenure.backends.device import Lane, Memory, Rows, Tensor
from tenure.backends.fake.choices import Chooser, Seeded
from tenure.backends.fake.clocks import HOST
from tenure.backends.fake.faults import Faults
from tenure.backends.fake.findings import Access, Finding
from tenure.backends.fake.lanes import FakeLanes
from tenure.backends.fake.memory import FakeBuffer, RowNumbers, poison, touch
from tenure.core.arrays import Integers
from tenure.core.errors import ForeignTensorError, OperationFailedError

LIVE_MAX: Final = 256
"""So many outputs of the engine are known as the memory they were; those not used for longest are forgotten."""


class FakeDevice(FakeLanes):
    """One emulated accelerator. Keeps to the numbered duties of `tenure.backends.device`.

    Attributes:
        held: buffers that were allocated and not given back.
    """

    def __init__(
        self,
        chooser: Chooser | None = None,
        *,
        faults: Faults | None = None,
        is_driven: bool = True,
        in_pieces: bool = False,
        page_locked_max: int | None = None,
    ) -> None:
        """Idle.

        Args:
            chooser: who decides which lane goes on, where the device decides it; by default a seed of 0.
            faults: what goes wrong; by default nothing.
            is_driven: somebody calls `advance`; else a thread of the device does.
            in_pieces: an operation moves one row at a time, and others come in between.
            page_locked_max: bytes of page-locked memory that there are.
        """
        self._page_locked_max = page_locked_max
        self._buffers = 0
        self._live: dict[int, FakeBuffer] = {}
        self._tensors = NumpyTensors()
        self.held: set[FakeBuffer] = set()
        super().__init__(
            Seeded(0) if chooser is None else chooser,
            Faults(Seeded(0), ()) if faults is None else faults,
            is_driven=is_driven,
            in_pieces=in_pieces,
        )

    # --- Memory -------------------------------------------------------------------------------------------------

    def page_locked_bytes_max(self) -> int | None:
        """As many as it was built with; without a limit as many as 64 bits count, since kinds of memory differ."""
        return 2**62 if self._page_locked_max is None else self._page_locked_max

    def is_unified(self) -> bool:
        """False: device memory is not the host's."""
        return False

    def allocate(self, memory: Memory, rows: int, row_shape: tuple[int, ...], dtype: str) -> FakeBuffer:
        """A buffer full of poison.

        Raises:
            OperationFailedError: a fault, or more than this machine has.
        """
        with self._lock:
            if self.is_lost or self.faults.strikes("allocation"):
                why = "the device is lost" if self.is_lost else "the emulated device was told to have none"
                raise OperationFailedError(f"allocate {rows} rows", why)
            try:
                array = np.empty((rows, *row_shape), STORAGE[dtype])
            except (MemoryError, ValueError) as error:
                raise OperationFailedError(f"allocate {rows} rows", str(error)) from error
            self._buffers += 1
            buffer = FakeBuffer(self._buffers, memory, array, dtype)
            self.held.add(buffer)
            return buffer

    def free(self, buffer: FakeBuffer) -> None:
        """Give a buffer back; its rows are poison from now on."""
        with self._lock:
            rows = np.arange(len(buffer.array), dtype=np.int64)
            access = self._host_access("free", writes=True)
            if buffer not in self.held:
                place = str(buffer)
                self._found([Finding("bad free", access, None, place, "it was given back before, or never allocated")])
                return
            self._found(touch(buffer, rows, HOST, self._clocks.tick(HOST), access, self._access))
            self.held.discard(buffer)
            buffer.is_freed = True
            buffer.is_written[:] = False
            poison(buffer.array)

    def describe(self, value: object) -> tuple[tuple[int, ...], str] | None:
        """Shape and dtype of an array."""
        return self._tensors.describe(value)

    def live(self, name: str, tensor: Tensor) -> FakeBuffer:
        """An array of the engine as device memory.

        Raises:
            ForeignTensorError: it is no array.
        """
        array = self._tensors.to_array(tensor)
        described = self._tensors.describe(tensor)
        if array is None or described is None:
            raise ForeignTensorError(name, type(tensor).__name__, self._tensors.expected)
        with self._lock:
            return self._live_buffer(array, described[1])

    def _live_buffer(self, array: npt.NDArray[Any], dtype: str) -> FakeBuffer:
        key = int(array.__array_interface__["data"][0])
        known = self._live.pop(key, None)
        if known is None or not _is_part(array, known.array):
            self._buffers += 1
            known = FakeBuffer(self._buffers, None, array, dtype)
        self._live[key] = known
        if len(self._live) > LIVE_MAX:
            del self._live[next(iter(self._live))]
        return known

    def forward(self, tensor: Tensor, values: npt.NDArray[Any]) -> None:
        """What a forward pass does: the lane COMPUTE writes an output of the engine, when it comes to it."""
        array = self._tensors.to_array(tensor)
        described = self._tensors.describe(tensor)
        assert array is not None
        assert described is not None
        with self._lock:
            kept = values.copy()
            target = self._live_buffer(array, described[1])
            rows = np.arange(len(array), dtype=np.int64)
            self._ask(Lane.COMPUTE, "forward", target, rows, None, rows, kept)

    def to_host(self, lane: Lane, tensor: Tensor) -> Tensor:
        """A copy of an array, which holds its content when the lane is past it.

        Raises:
            OperationFailedError: it is no array, or a fault.
        """
        array = self._tensors.to_array(tensor)
        if array is None:
            raise OperationFailedError("copy a leftover", f"it is a {type(tensor).__name__}")
        with self._lock:
            self._strike_call("copy a leftover")
            copy = np.empty_like(array, order="C")
            self._buffers += 1
            target = FakeBuffer(self._buffers, Memory.PAGEABLE, copy.reshape(1, *copy.shape), str(array.dtype))
            row = np.zeros(1, dtype=np.int64)
            source = self._live_buffer(array, str(array.dtype)) if array.ndim else None
            rows = np.arange(len(array) if array.ndim else 0, dtype=np.int64)
            self._ask(lane, "to_host", target, row, source, rows, array.reshape(1, *array.shape))
            return copy

    # --- Operations ---------------------------------------------------------------------------------------------

    def copy(self, lane: Lane, target: Rows, source: Rows) -> None:
        """Copy as many rows as both have."""
        self._move(lane, "copy", target.buffer, _rows(target), source.buffer, _rows(source))

    def gather_rows(self, lane: Lane, target: Rows, source: FakeBuffer, index: Integers) -> None:
        """Row i of the target becomes row `index[i]` of the source."""
        self._move(lane, "gather_rows", target.buffer, _rows(target), source, index)

    def scatter_rows(self, lane: Lane, target: FakeBuffer, index: Integers, source: Rows) -> None:
        """Row `index[i]` of the target becomes row i of the source."""
        self._move(lane, "scatter_rows", target, index, source.buffer, _rows(source))

    def zero_rows(self, lane: Lane, target: Rows) -> None:
        """Every element of the target becomes 0."""
        with self._lock:
            self._strike_call("zero rows")
            rows = _rows(target)
            zeros = np.zeros_like(target.buffer.array[:1])
            self._ask(lane, "zero_rows", target.buffer, rows, None, np.zeros_like(rows), zeros)

    def _move(
        self, lane: Lane, what: str, target: FakeBuffer, rows: RowNumbers, source: FakeBuffer, source_rows: RowNumbers
    ) -> None:
        with self._lock:
            self._strike_call(what)
            self._ask(lane, what, target, rows, source, source_rows.copy(), source.array)

    # --- On the calling thread ----------------------------------------------------------------------------------

    def _host_access(self, what: str, *, writes: bool) -> Access:
        self._count += 1
        access = Access(self._count, what, "host", writes)
        self.trail.move(HOST, f"{what} #{self._count}")
        self._accesses.append(access)
        return access

    def _host_at(self, what: str, rows: Rows, *, writes: bool, is_whole: bool = True) -> npt.NDArray[Any]:
        """Rows that the calling thread reads or writes."""
        numbers, buffer = _rows(rows), rows.buffer
        access = self._host_access(what, writes=writes)
        self._found(touch(buffer, numbers, HOST, self._clocks.tick(HOST), access, self._access))
        if writes:
            buffer.is_written[rows.start : rows.stop] = True
        elif is_whole and not (written := buffer.is_written[numbers]).all():
            place = buffer.place(numbers[~written])
            self._found([Finding("poison", access, None, place, "nobody wrote them since they were allocated")])
        array: npt.NDArray[Any] = buffer.array[rows.start : rows.stop]
        return array

    def copy_now(self, target: Rows, source: Rows) -> None:
        """Copy as many rows as both have."""
        with self._lock:
            values = self._host_at("copy_now", source, writes=False)
            self._host_at("copy_now", target, writes=True)[...] = values

    def tensor(self, rows: Rows, keep: object) -> Tensor:
        """Rows as an array over the same memory, which keeps `keep` alive."""
        with self._lock:
            # Room behind the rows that are meant may never have been written.
            array = self._host_at("tensor", rows, writes=False, is_whole=False)
            return self._tensors.from_array(kept_alive(array, keep), "")

    def own(self, tensor: Tensor) -> Tensor:
        """A copy of an array."""
        return self._tensors.own(tensor)

    def cut(self, rows: Rows) -> Tensor:
        """Rows as an array with memory of its own."""
        with self._lock:
            return self._host_at("cut", rows, writes=False).copy()


def _is_part(array: npt.NDArray[Any], whole: npt.NDArray[Any]) -> bool:
    """Whether an array is the first rows of another, which begins where it begins."""
    if array.dtype != whole.dtype or array.shape[1:] != whole.shape[1:] or array.strides != whole.strides:
        return False
    return array.ndim > 0 and len(array) <= len(whole)


def _rows(rows: Rows) -> RowNumbers:
    return np.arange(rows.start, rows.stop, dtype=np.int64)
