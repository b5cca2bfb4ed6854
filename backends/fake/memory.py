"""Emulated memory: real bytes, and per row who was at it last.

Rows that were never written, or are gone, hold poison. Two accesses of one row, one of them writing, that no edge
orders are a race on some device, whatever this run did; as FastTrack does (Flanagan and Freund 2009), the last write
and, per actor, the last read of each row are enough to find one of every kind.
"""

from collections.abc import Callable
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from tenure.backends.device import Memory
from tenure.backends.fake.clocks import ACTORS, Clock
from tenure.backends.fake.findings import Access, Finding, in_words, missing_edge

RowNumbers: TypeAlias = npt.NDArray[np.int64]
"""Rows of a buffer, each once. Shapes: `[k]`."""
AccessOf: TypeAlias = Callable[[int], Access]
"""An operation by its number and what it does: positive where it writes, negative where it reads."""

POISON: Final = 0xA5
"""Every byte of memory that holds nothing."""


class FakeBuffer:
    """Rows of one shape and dtype.

    Shapes: `array: [rows, *row_shape]`; `is_written: [rows]`; `write_time, write_actor, write_number: [rows]`;
    `read_time, read_number: [rows, len(ACTORS)]`.

    Attributes:
        number: counts up from 1 over all buffers of a device.
        memory: where it lies; None for an output of the engine.
        is_freed: nobody may use it any more.
    """

    __slots__ = (
        "array",
        "dtype",
        "is_freed",
        "is_written",
        "memory",
        "number",
        "read_number",
        "read_time",
        "write_actor",
        "write_number",
        "write_time",
    )

    def __init__(self, number: int, memory: Memory | None, array: npt.NDArray[Any], dtype: str) -> None:
        """Memory over an array; poison, but for an output of the engine."""
        rows = len(array)
        self.number, self.memory, self.array, self.dtype = number, memory, array, dtype
        self.is_freed = False
        self.is_written = np.full(rows, memory is None)
        self.write_time = np.zeros(rows, dtype=np.int64)
        self.write_actor = np.zeros(rows, dtype=np.int64)
        self.write_number = np.zeros(rows, dtype=np.int64)
        self.read_time = np.zeros((rows, len(ACTORS)), dtype=np.int64)
        self.read_number = np.zeros((rows, len(ACTORS)), dtype=np.int64)
        if memory is not None:
            poison(array)

    def __str__(self) -> str:
        kind = "live output" if self.memory is None else f"{self.memory.name.lower().replace('_', '-')} buffer"
        return f"{kind} {self.number}"

    def place(self, rows: RowNumbers) -> str:
        """Rows of it in words."""
        return f"row{'s' * (len(rows) > 1)} {in_words(rows.tolist())} of {self}"


def poisoned(dtype: np.dtype[Any]) -> Any:
    """An element that means nothing."""
    return np.frombuffer(bytes([POISON]) * dtype.itemsize, dtype=dtype)[0]


def poison(array: npt.NDArray[Any]) -> None:
    """Fill an array with what means nothing."""
    array[...] = poisoned(array.dtype)


def touch(
    buffer: FakeBuffer, rows: RowNumbers, actor: int, clock: Clock, access: Access, earlier_of: AccessOf
) -> list[Finding]:
    """Note an access of some rows, and say what is wrong with it."""
    found: list[Finding] = []
    if not len(rows):
        return found
    if buffer.is_freed:
        found.append(Finding("use after free", access, None, buffer.place(rows), "it was given back before"))
    late = buffer.write_time[rows] > clock[buffer.write_actor[rows]]
    if late.any():
        found.append(_race(buffer, rows[late], access, earlier_of(int(buffer.write_number[rows[late][0]]))))
    if access.writes:
        unordered = buffer.read_time[rows] > clock
        if unordered.any():
            place, other = (int(each[0]) for each in np.nonzero(unordered))
            number = int(buffer.read_number[rows[place], other])
            found.append(_race(buffer, rows[unordered.any(axis=1)], access, earlier_of(-number)))
        buffer.write_time[rows] = clock[actor]
        buffer.write_actor[rows] = actor
        buffer.write_number[rows] = access.number
    else:
        buffer.read_time[rows, actor] = clock[actor]
        buffer.read_number[rows, actor] = access.number
    return found


def _race(buffer: FakeBuffer, rows: RowNumbers, later: Access, earlier: Access) -> Finding:
    return Finding("race", later, earlier, buffer.place(rows), missing_edge(earlier, later))
