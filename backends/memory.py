"""Memory of the executor: buffers that are used again instead of made anew.

A fresh buffer costs more than the copy into it, since its pages are mapped one by one. So what is given back is kept,
up to a limit, and handed out again. Locks here cover a few list operations each, and no allocation.
"""

from collections import deque
from collections.abc import Callable, Iterable
from itertools import accumulate
from operator import attrgetter
from threading import Lock
from typing import Final, NamedTuple, TypeAlias

from tenure.backends.device import Buffer, Device, Memory, Rows
from tenure.core.errors import OperationFailedError
from tenure.core.rows.names import RowFormat

ROWS_MIN: Final = 16
IDLE_BYTES_MAX: Final = 2**30
"""Bytes that idle buffers may take; beyond them, those of the kind that was not used for longest are freed."""
IDLE_SLABS_BYTES_MAX: Final = 2**27
"""Bytes that the empty slabs of one name may take, but for the first: a flush empties many, and they fill up again."""
SLABS_IN_BUDGET: Final = 4
"""How many slabs of one name the byte budget holds at least, if a step's rows fit so small ones."""


class Allocator:
    """Asks a device for memory; when there is none left, what lies idle is freed, and it is asked once more."""

    def __init__(self, device: Device) -> None:
        self.device = device
        # Each frees what it can do without, and says whether that was anything.
        self.reclaims: list[Callable[[], bool]] = []

    def allocate(self, memory: Memory, rows: int, row_format: RowFormat) -> Buffer:
        """A buffer of `rows` rows, their content arbitrary.

        Raises:
            OperationFailedError: there is no such memory left.
        """
        row_shape, dtype = row_format.row_shape, row_format.dtype
        try:
            return self.device.allocate(memory, rows, row_shape, dtype)
        except OperationFailedError:
            # Another thread may make a name ready meanwhile.
            if not sum([reclaim() for reclaim in list(self.reclaims)]):
                raise
        return self.device.allocate(memory, rows, row_shape, dtype)


class Kind(NamedTuple):
    """Buffers that can stand in for each other."""

    memory: Memory
    row_shape: tuple[int, ...]
    dtype: str
    rows: int
    bytes: int


def size_class(rows: int) -> int:
    """The rows of the buffer that so many rows are put into: at most a quarter more, in few sizes."""
    if rows <= ROWS_MIN:
        return ROWS_MIN
    step = 1 << max((rows - 1).bit_length() - 3, 0)
    return -(-rows // step) * step


Returned: TypeAlias = "deque[tuple[Kind, Buffer]]"


class Lease:
    """A buffer in use; it is given back when nobody holds the lease any more.

    Attributes:
        buffer: the device's buffer.
        kind: what it is.
    """

    __slots__ = ("_returned", "buffer", "kind")

    def __init__(self, returned: Returned, kind: Kind, buffer: Buffer) -> None:
        self._returned = returned
        self.kind = kind
        self.buffer = buffer

    def rows(self, start: int, stop: int) -> Rows:
        """Rows `[start, stop)` of the buffer."""
        return Rows(self.buffer, start, stop)

    def __del__(self) -> None:
        # This may run anywhere, also where this thread holds a lock; appending needs none.
        self._returned.append((self.kind, self.buffer))


class Buffers:
    """Host buffers by size: what writes, reads and results are kept in."""

    def __init__(self, allocator: Allocator) -> None:
        self._allocator = allocator
        self._device = allocator.device
        allocator.reclaims.append(self.free_idle)
        self._lock = Lock()
        self._returned: Returned = deque()
        self._idle: dict[Kind, list[Buffer]] = {}
        self._idle_bytes = 0
        self._bytes = 0

    def lease(self, memory: Memory, row_format: RowFormat, rows: int) -> Lease:
        """A buffer of at least so many rows, their content arbitrary.

        Raises:
            OperationFailedError: there is no such memory left.
        """
        capacity = size_class(rows)
        kind = Kind(memory, row_format.row_shape, row_format.dtype, capacity, capacity * row_format.row_bytes)
        with self._lock:
            superfluous = self._take_back()
            idle = self._idle.get(kind)
            buffer = idle.pop() if idle else None
            if buffer is not None:
                self._idle_bytes -= kind.bytes
        for each in superfluous:
            self._device.free(each)
        if buffer is None:
            buffer = self._allocator.allocate(memory, capacity, row_format)
            with self._lock:
                self._bytes += kind.bytes
        return Lease(self._returned, kind, buffer)

    def _take_back(self) -> list[Buffer]:
        """Sort what was given back; what is too much. The lock is held."""
        superfluous: list[Buffer] = []
        while self._returned:
            kind, buffer = self._returned.popleft()
            if kind.bytes > IDLE_BYTES_MAX:
                self._bytes -= kind.bytes
                superfluous.append(buffer)
                continue
            # The kind that was used last goes last.
            buffers = self._idle.pop(kind, [])
            buffers.append(buffer)
            self._idle[kind] = buffers
            self._idle_bytes += kind.bytes
        while self._idle_bytes > IDLE_BYTES_MAX:
            kind, buffers = next(iter(self._idle.items()))
            if buffers:
                superfluous.append(buffers.pop())
                self._idle_bytes -= kind.bytes
                self._bytes -= kind.bytes
            else:
                del self._idle[kind]
        return superfluous

    def free_idle(self) -> bool:
        """Free everything that nobody uses; whether there was anything."""
        with self._lock:
            superfluous = self._take_back()
            superfluous += [buffer for buffers in self._idle.values() for buffer in buffers]
            self._bytes -= self._idle_bytes
            self._idle_bytes = 0
            self._idle.clear()
        for each in superfluous:
            self._device.free(each)
        return bool(superfluous)

    def figures(self) -> tuple[int, int]:
        """Bytes that somebody holds, and bytes in all."""
        with self._lock:
            superfluous = self._take_back()
            figures = self._bytes - self._idle_bytes, self._bytes
        for each in superfluous:
            self._device.free(each)
        return figures


class Slab:
    """One large device buffer, and the stretches of it that are free: `(start, stop)`, in order, none touching."""

    __slots__ = ("buffer", "free", "rows")

    def __init__(self, buffer: Buffer, rows: int) -> None:
        self.buffer = buffer
        self.rows = rows
        self.free = [(0, rows)]

    def take(self, rows: int) -> "Region | None":
        """The first stretch that is long enough."""
        for place, (start, stop) in enumerate(self.free):
            if stop - start >= rows:
                if stop - start == rows:
                    del self.free[place]
                else:
                    self.free[place] = (start + rows, stop)
                return Region(self, start, start + rows)
        return None

    def give(self, stretches: Iterable[tuple[int, int]]) -> None:
        """Stretches are free again."""
        merged: list[tuple[int, int]] = []
        end = -1
        for start, stop in sorted([*self.free, *stretches]):
            if start == end:
                merged[-1] = (merged[-1][0], stop)
            else:
                merged.append((start, stop))
            end = stop
        self.free = merged

    @property
    def is_empty(self) -> bool:
        """Whether nothing of it is in use."""
        return self.free == [(0, self.rows)]


class Region(NamedTuple):
    """Rows `[start, stop)` of a slab."""

    slab: Slab
    start: int
    stop: int


_START: Final = attrgetter("start")


class Slabs:
    """Device memory of the clones of one name: stretches of a few large buffers.

    So the chunks of a deferred write, one a step, are rows of one buffer, and are copied with one gather.
    """

    def __init__(self, allocator: Allocator, row_format: RowFormat, rows_max: int, budget_bytes: int) -> None:
        """No memory yet. A stretch has at most `rows_max` rows; `budget_bytes` is what all clones may be charged."""
        self._allocator = allocator
        self._device = allocator.device
        allocator.reclaims.append(self.free_idle)
        self._format = row_format
        # Small against the budget, so that what slabs take beyond their clones is, too.
        self._rows = max(min(rows_max, budget_bytes // SLABS_IN_BUDGET // max(row_format.row_bytes, 1)), 1)
        self._idle_bytes_max = min(IDLE_SLABS_BYTES_MAX, budget_bytes)
        self._lock = Lock()
        self._slabs: list[Slab] = []

    def take(self, rows: int) -> Region:
        """A stretch of so many rows, their content arbitrary.

        Raises:
            OperationFailedError: there is no device memory left.
        """
        with self._lock:
            for slab in self._slabs:
                if (region := slab.take(rows)) is not None:
                    return region
        size = max(self._rows, rows)
        fresh = Slab(self._allocator.allocate(Memory.DEVICE, size, self._format), size)
        region = fresh.take(rows)
        assert region is not None
        with self._lock:
            self._slabs.append(fresh)
        return region

    def give(self, regions: Iterable[Region]) -> None:
        """Stretches are not used any more; slabs that nobody uses are freed, but for a few."""
        # Clones of one write lie mostly one behind the other, so few stretches are left of many.
        stretches: dict[int, list[tuple[int, int]]] = {}
        last, first, end = None, 0, 0
        for slab, start, stop in sorted(regions, key=_START):
            if slab is not last or start != end:
                if last is not None:
                    stretches.setdefault(id(last), []).append((first, end))
                last, first = slab, start
            end = stop
        if last is not None:
            stretches.setdefault(id(last), []).append((first, end))
        with self._lock:
            for slab in self._slabs:
                if (mine := stretches.get(id(slab))) is not None:
                    slab.give(mine)
            superfluous = self._superfluous()
            self._slabs = [slab for slab in self._slabs if slab not in superfluous]
        for slab in superfluous:
            self._device.free(slab.buffer)

    def _superfluous(self) -> list[Slab]:
        """The empty slabs that are too much to keep. The lock is held."""
        others = [slab for slab in self._slabs if slab.is_empty][1:]
        sizes = accumulate(slab.rows * self._format.row_bytes for slab in others)
        return [slab for slab, size in zip(others, sizes, strict=True) if size > self._idle_bytes_max]

    def free_idle(self) -> bool:
        """Free every slab that nobody uses; whether there was any."""
        with self._lock:
            idle = [slab for slab in self._slabs if slab.is_empty]
            self._slabs = [slab for slab in self._slabs if not slab.is_empty]
        for slab in idle:
            self._device.free(slab.buffer)
        return bool(idle)

    def free(self) -> None:
        """Give all memory back, and do not ask for more; nobody uses a stretch of it."""
        self._allocator.reclaims.remove(self.free_idle)
        with self._lock:
            slabs, self._slabs = self._slabs, []
        for slab in slabs:
            self._device.free(slab.buffer)

    def figures(self) -> tuple[int, int]:
        """Bytes that somebody holds, and bytes in all."""
        with self._lock:
            rows = sum(each.rows for each in self._slabs)
            idle = sum(stop - start for each in self._slabs for start, stop in each.free)
        return (rows - idle) * self._format.row_bytes, rows * self._format.row_bytes
