"""The port: what a device must be able to do for the executor to carry commands out on it.

A device has memory, lanes and events, and decides nothing. Its duties, by number:

1. **Lanes.** Operations of one lane take effect in the order in which they were asked for; those of different lanes
   in any order that waits allow. The lanes are those of `tenure.core.rows.commands.Lane`.
2. **Launch.** A method that names a lane may return before its operation has ended, except that operations of the
   lane COMPUTE read live outputs as they are at the call: behind everything the calling thread asked of the device
   before, and ahead of everything it asks later.
3. **Events.** `record` marks a place in a lane; its event completes when everything before it in the lane has ended.
   `wait` makes a lane go no further until an event has ended, well or badly.
4. **Failure.** When an operation fails, or an event that the lane waits for with `is_needed` has failed, the lane
   passes over every operation up to its next `record`, and the event of that one fails. Behind it the lane goes on. A
   device may also raise `OperationFailedError` at the call of an operation, `allocate` or `to_host`; then the lane
   goes on at once. `record`, `wait`, `free` and `close` do not raise.
5. **Memory.** A buffer is whole rows of one shape and dtype. It is never used after `free`, which is called when
   every operation on it has ended. Which operations meet which memory, the table below says. A live output may be a
   strided view: its rows are copied as they read, unless `live` refuses it.
6. **Now.** `copy_now`, `tensor`, `own` and `cut` work on host memory that no lane is writing, on the calling
   thread, and are over when they return.
7. **Threads.** Every method may be called from any thread; calls that name one lane come from one thread at a time.
8. **Listening.** A device whose operations outlive the call has somebody wait for them: whenever an event may have
   completed, it calls the listener. The listener asks the device for more, and may take its time: it is called on a
   thread that no lane waits for (or whose lanes take any number of operations without waiting), with no lock of the
   device held. A device needs not if everything has ended at the call.
9. **End.** At `close` no operation is asked for any more. It returns when no thread of the device is left, or after
   `timeout_s` at the latest. What has not ended by then never does: its events stay incomplete, or fail. What callers
   hold outlives it: `allocate` of pageable memory, `free`, `copy_now`, `tensor`, `own` and `cut` still work.

| lane | operation | from | to |
|---|---|---|---|
| COMPUTE | `copy` | live outputs | device (page-locked, if unified) |
| COMPUTE | `to_host` | live outputs | the host |
| COPY | `copy`, `gather_rows` | device | page-locked, or pageable |
| POOL | `copy`, `gather_rows`, `scatter_rows` | page-locked, or pageable | pageable |
| GATHER | the same, `zero_rows` | pageable, page-locked, device | pageable |

The executor waits on lanes other than COMPUTE, and never calls `synchronize`; whoever tests or measures a device does.
"""

from collections.abc import Callable
from enum import Enum
from typing import Any, NamedTuple, Protocol, TypeAlias

from tenure.core.arrays import Integers
from tenure.core.rows.commands import Lane

__all__ = ["Buffer", "Device", "Event", "Lane", "Listener", "Memory", "Rows", "Tensor"]

Buffer: TypeAlias = Any
"""A device's own: rows of one shape and dtype in one memory."""
Event: TypeAlias = Any
"""A device's own: a place in a lane."""
Tensor: TypeAlias = Any
"""What the engine works with: a tensor or an array."""
Listener: TypeAlias = Callable[[], None]


class Memory(Enum):
    """Where a buffer lies."""

    DEVICE = "where the forward pass computes"
    PAGE_LOCKED = "on the host, and the device can copy to it directly, if it makes a difference"
    PAGEABLE = "on the host"


class Rows(NamedTuple):
    """Rows `[start, stop)` of a buffer."""

    buffer: Buffer
    start: int
    stop: int


class Device(Protocol):
    """One accelerator, or something that passes for one."""

    def page_locked_bytes_max(self) -> int | None:
        """Page-locked bytes that this device can give; None if it makes no difference between kinds of memory."""
        ...

    def is_unified(self) -> bool:
        """Whether device memory is host memory: then rows are frozen right onto their page, and not copied twice.

        Operations of the lane COMPUTE of such a device are over at the call.
        """
        ...

    def allocate(self, memory: Memory, rows: int, row_shape: tuple[int, ...], dtype: str) -> Buffer:
        """A buffer of `rows` rows, their content arbitrary.

        Shapes: `[rows, *row_shape]`; `dtype` is a key of `ITEM_BYTES`.

        Raises:
            OperationFailedError: there is no such memory left, or never was so much; nothing is taken.
        """
        ...

    def free(self, buffer: Buffer) -> None:
        """Give a buffer back."""
        ...

    def describe(self, value: object) -> tuple[tuple[int, ...], str] | None:
        """Shape and dtype of a tensor, a dtype that no row may have included; None for what is no tensor."""
        ...

    def live(self, name: str, tensor: Tensor) -> Buffer:
        """A tensor of the engine as a buffer that can be copied from, with the memory that it has, strided or not.

        Raises:
            ForeignTensorError: it lies where this device cannot copy from, or in a way in which it cannot.
        """
        ...

    def to_host(self, lane: Lane, tensor: Tensor) -> Tensor:
        """Start to copy a tensor of any shape to the host; the copy, which holds its content when the lane is past it.

        Raises:
            OperationFailedError: it cannot be copied.
        """
        ...

    # --- Operations ---------------------------------------------------------------------------------------------

    def copy(self, lane: Lane, target: Rows, source: Rows) -> None:
        """Copy as many rows as both have."""
        ...

    def gather_rows(self, lane: Lane, target: Rows, source: Buffer, index: Integers) -> None:
        """Row i of the target becomes row `index[i]` of the source. Shapes: `index: [rows of the target]`."""
        ...

    def scatter_rows(self, lane: Lane, target: Buffer, index: Integers, source: Rows) -> None:
        """Row `index[i]` of the target becomes row i of the source. Shapes: `index: [rows of the source]`."""
        ...

    def zero_rows(self, lane: Lane, target: Rows) -> None:
        """Every element of the target becomes 0."""
        ...

    # --- Order --------------------------------------------------------------------------------------------------

    def record(self, lane: Lane) -> Event:
        """An event that completes when everything asked of the lane so far has ended."""
        ...

    def wait(self, lane: Lane, event: Event, *, is_needed: bool) -> None:
        """What is asked of the lane from now on begins when the event has ended; `is_needed`: and fails if that did."""
        ...

    def query(self, event: Event) -> bool:
        """Whether an event has completed.

        Raises:
            OperationFailedError: it failed.
        """
        ...

    def synchronize(self, event: Event, timeout_s: float) -> bool:
        """Wait on the calling thread until an event has completed; whether it has in time.

        Raises:
            OperationFailedError: it failed.
        """
        ...

    def listen(self, listener: Listener) -> None:
        """Call `listener` whenever an event may have completed, on a thread of the device; told once, at first."""
        ...

    # --- On the calling thread ----------------------------------------------------------------------------------

    def copy_now(self, target: Rows, source: Rows) -> None:
        """As `copy`, from host to host."""
        ...

    def tensor(self, rows: Rows, keep: object) -> Tensor:
        """Host rows as a tensor of the engine's kind over the same memory, which lives as long as `keep` does.

        Whatever is made from the tensor without copying, a slice `tensor[start:stop]` say, keeps `keep` alive.
        """
        ...

    def own(self, tensor: Tensor) -> Tensor:
        """A copy of a host tensor of any shape, dtype and strides, with memory of its own."""
        ...

    def cut(self, rows: Rows) -> Tensor:
        """Host rows as a tensor of the engine's kind with memory of its own."""
        ...

    def close(self, timeout_s: float) -> None:
        """End; told again it does nothing."""
        ...
