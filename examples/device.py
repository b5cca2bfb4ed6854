"""A device in a hundred lines: where to begin with one of your own.

It keeps the port `tenure.backends.device.Device` the plainest way there is: numpy memory, and every operation over when
the call returns. Put your accelerator's calls where numpy's are, then see what is missing, from within `examples/`:

    tenure conform device:make_device
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from tenure.backends.cpu.arrays import STORAGE, is_array, kept_alive
from tenure.backends.device import Device, Lane, Listener, Memory, Rows
from tenure.core.arrays import Integers
from tenure.core.errors import ForeignTensorError, OperationFailedError

NAMES = {kept: name for name, kept in STORAGE.items()}


class Buffer:
    """Rows of one shape and dtype. Shapes: `array: [rows, *row_shape]`."""

    def __init__(self, array: np.ndarray[Any, Any]) -> None:
        self.array = array


class Event:
    """A place in a lane, and what failed before it. With streams: whatever your runtime records."""

    def __init__(self, error: OperationFailedError | None) -> None:
        self.error = error


def view(rows: Rows) -> np.ndarray[Any, Any]:
    """Rows as an array over their memory."""
    array: np.ndarray[Any, Any] = rows.buffer.array[rows.start : rows.stop]
    return array


class TemplateDevice:
    """See the numbered duties at the head of `tenure.backends.device`."""

    def __init__(self) -> None:
        # Duty 4: what failed in a lane since its last event.
        self._failed: dict[Lane, OperationFailedError] = {}

    # --- Memory (duty 5) -------------------------------------------------------------------------------------------

    def page_locked_bytes_max(self) -> int | None:
        return None  # all host memory is alike; a device that copies by itself says how much it can lock

    def is_unified(self) -> bool:
        return True  # device memory is host memory; else False, and COMPUTE need not be over at the call

    def allocate(self, memory: Memory, rows: int, row_shape: tuple[int, ...], dtype: str) -> Buffer:
        del memory  # a device with memory of its own chooses by it: DEVICE, PAGE_LOCKED, PAGEABLE
        try:
            return Buffer(np.empty((rows, *row_shape), STORAGE[dtype]))
        except (MemoryError, ValueError) as error:  # numpy raises the second for what 64 bits cannot count
            raise OperationFailedError(f"allocate {rows} rows", str(error)) from error

    def free(self, buffer: Buffer) -> None:
        pass  # nothing uses it any more; here it goes with its last view

    def describe(self, value: object) -> tuple[tuple[int, ...], str] | None:
        # Also of tensors whose dtype no row may have: the core refuses them by name.
        return (value.shape, NAMES.get(value.dtype, str(value.dtype))) if is_array(value) else None

    def live(self, name: str, tensor: Any) -> Buffer:
        if not is_array(tensor):
            raise ForeignTensorError(name, type(tensor).__name__, "numpy arrays")
        return Buffer(tensor)  # over the engine's memory: nothing is copied here

    def to_host(self, lane: Lane, tensor: Any) -> Any:
        del lane  # with streams: start the copy behind what the lane was asked for
        return self.own(tensor)

    # --- Operations (duties 1, 2, 4) -------------------------------------------------------------------------------

    def _do(self, lane: Lane, operation: str, work: Callable[[], object]) -> None:
        """Where a device with streams launches on the stream of the lane; here everything is over at once."""
        if lane in self._failed:
            return
        try:
            work()
        except Exception as error:
            self._failed[lane] = OperationFailedError(operation, f"{type(error).__name__}: {error}")

    def copy(self, lane: Lane, target: Rows, source: Rows) -> None:
        self._do(lane, "copy rows", lambda: np.copyto(view(target), view(source)))

    def gather_rows(self, lane: Lane, target: Rows, source: Buffer, index: Integers) -> None:
        self._do(lane, "gather rows", lambda: np.copyto(view(target), source.array[index]))

    def scatter_rows(self, lane: Lane, target: Buffer, index: Integers, source: Rows) -> None:
        self._do(lane, "scatter rows", lambda: target.array.__setitem__(index, view(source)))

    def zero_rows(self, lane: Lane, target: Rows) -> None:
        self._do(lane, "zero rows", lambda: view(target).fill(0))

    def fail(self, lane: Lane) -> None:
        # Not of the port: with it the kit can check duty 4 (capability FAULTS).
        self._do(lane, "fail", lambda: 1 // 0)

    # --- Order (duties 3, 4, 8) ------------------------------------------------------------------------------------

    def record(self, lane: Lane) -> Event:
        return Event(self._failed.pop(lane, None))  # behind it the lane goes on

    def wait(self, lane: Lane, event: Event, *, is_needed: bool) -> None:
        # Everything has ended already; with streams: the lane's stream waits for the event.
        if is_needed and event.error is not None:
            self._failed.setdefault(lane, event.error)

    def query(self, event: Event) -> bool:
        if event.error is not None:
            raise event.error
        return True

    def synchronize(self, event: Event, timeout_s: float) -> bool:
        del timeout_s
        return self.query(event)

    def listen(self, listener: Listener) -> None:
        pass  # everything has ended at the call; else a thread of yours waits for events, and calls it

    # --- On the calling thread (duty 6) ----------------------------------------------------------------------------

    def copy_now(self, target: Rows, source: Rows) -> None:
        np.copyto(view(target), view(source))

    def tensor(self, rows: Rows, keep: object) -> Any:
        return kept_alive(view(rows), keep)  # whatever views it keeps `keep`, and so the memory, in use

    def own(self, tensor: Any) -> Any:
        if not is_array(tensor):
            raise OperationFailedError("copy a leftover", f"it is a {type(tensor).__name__}")
        return np.array(tensor)

    def cut(self, rows: Rows) -> Any:
        return view(rows).copy()

    def close(self, timeout_s: float) -> None:
        pass  # duty 9: no thread is left; told again it does nothing


def make_device(options: Mapping[str, Any]) -> Device:
    """What `tenure conform` calls, once a check: a fresh device."""
    del options  # `seed`, and `is_controlled` for devices that claim CONTROLLED
    return TemplateDevice()
