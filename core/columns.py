"""A growing table of integer columns, cheap to extend and to cut back."""

from typing import Final, Self

import numpy as np
import numpy.typing as npt

from tenure.core.arrays import Integers

_ROOM: Final = 16


class Columns:
    """Rows of 64-bit integers, kept by column; ascending in column 0 where `find` is used.

    The slice `[start:]` reads or replaces everything from row `start` on, as a journal's TAIL entry does it;
    `[column, rows]` reads or replaces elements of a column, as a CELL entry does it.
    """

    __slots__ = ("_data", "length")

    def __init__(self, data: npt.NDArray[np.int64]) -> None:
        """Take over `data`. Shapes: `data: [columns, rows]`."""
        self._data = data
        self.length: int = data.shape[1]

    @classmethod
    def empty(cls, columns: int) -> Self:
        """A table without rows."""
        return cls(np.empty((columns, 0), dtype=np.int64))

    def __len__(self) -> int:
        return self.length

    def column(self, number: int) -> Integers:
        """One column, valid until the table changes."""
        column: Integers = self._data[number, : self.length]
        return column

    def __getitem__(self, place: slice | tuple[int, Integers]) -> npt.NDArray[np.int64]:
        chosen: npt.NDArray[np.int64]
        if isinstance(place, tuple):
            chosen = self._data[place]
            return chosen
        return self._data[:, place.start : self.length].copy()

    def __setitem__(self, place: slice | tuple[int, Integers], rows: npt.NDArray[np.int64]) -> None:
        if isinstance(place, tuple):
            self._data[place] = rows
            return
        start: int = place.start
        stop = start + rows.shape[1]
        if stop > self._data.shape[1]:
            larger = np.empty((self._data.shape[0], max(_ROOM, 2 * stop)), dtype=np.int64)
            larger[:, :start] = self._data[:, :start]
            self._data = larger
        self._data[:, start:stop] = rows
        self.length = stop

    def find(self, values: npt.NDArray[np.int64]) -> Integers:
        """Where column 0 holds each value; -1 where it does not. Shapes: `values: [k]`, result `[k]`."""
        column = self.column(0)
        if not len(column):
            return np.full(len(values), -1, dtype=np.int64)
        places = np.minimum(np.searchsorted(column, values), len(column) - 1)
        return np.where(column[places] == values, places, -1)

    def rows(self, places: Integers) -> npt.NDArray[np.int64]:
        """A copy of some rows, by column. Shapes: `places: [k]`, result `[columns, k]`."""
        return np.take(self._data, places, axis=1)

    def chosen(self, rows: npt.NDArray[np.bool_]) -> "Columns":
        """A table of the rows chosen by a mask."""
        return Columns(self.rows(np.flatnonzero(rows)))

    def clone(self) -> "Columns":
        """A copy that shares nothing."""
        return Columns(self._data[:, : self.length].copy())


def spans(starts: npt.NDArray[np.int64], stops: npt.NDArray[np.int64]) -> Integers:
    """All numbers of the half-open spans `[starts[i], stops[i])`, one span after the other."""
    lengths = stops - starts
    ends = np.cumsum(lengths)
    total = int(ends[-1]) if len(ends) else 0
    return np.repeat(starts - (ends - lengths), lengths) + np.arange(total, dtype=np.int64)
