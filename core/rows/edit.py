"""What one transition of the row machine works on: every change is noted in the journal before it is made."""

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tenure.core import journaled
from tenure.core.arrays import read_only
from tenure.core.columns import Columns
from tenure.core.persistent import ATTRIBUTE, CELL, ITEM, MISSING, TAIL
from tenure.core.rows.commands import Lane, ReleaseBuffers, RowCommand
from tenure.core.rows.events import CloneId, ReadId, StepId, WriteId
from tenure.core.rows.tables import Tables


class Edit(journaled.Edit[Tables]):
    """What one transition of the row machine works on: every change is noted in the journal before it is made."""

    __slots__ = ("_released",)

    commands: list[RowCommand]

    def __init__(self, tables: Tables) -> None:
        super().__init__(tables)
        self._released: _Released | None = None

    def put(self, table: dict[Any, Any], key: Any, value: Any) -> None:
        """Set one item."""
        self.journal.append((ITEM, table, key, table.get(key, MISSING)))
        table[key] = value

    def remove(self, table: dict[Any, Any], key: Any) -> None:
        """Remove one item, if it is there."""
        if key in table:
            self.journal.append((ITEM, table, key, table[key]))
            del table[key]

    def assign(self, array: Any, places: Any, values: Any) -> None:
        """Set elements of an array, or of a column (`Columns`); no place twice."""
        self.journal.append((CELL, array, places, array[places]))
        array[places] = values

    def hold_page(self, page: int, holders: tuple[StepId, WriteId]) -> None:
        """Set the holders of a page."""
        pages = self.tables.pages
        self.journal.append((CELL, pages, page, pages[page]))
        pages[page] = holders

    def extend(self, columns: Columns, rows: npt.NDArray[np.int64]) -> None:
        """Append rows to a table of columns. Shapes: `rows: [columns, k]`."""
        start = len(columns)
        self.journal.append((TAIL, columns, start, rows[:, :0]))
        columns[start:] = rows

    def replace(self, name: str, value: Any) -> None:
        """Set a whole table."""
        self.journal.append((ATTRIBUTE, self.tables, name, getattr(self.tables, name)))
        setattr(self.tables, name, value)

    def count(self, counter: str, more: int = 1) -> None:
        """Add to a counter."""
        if more:
            counters = self.tables.counters
            self.put(counters, counter, counters[counter] + more)

    def number(self) -> int:
        """The number of the next command."""
        number = self.tables.next_command
        self.tables.next_command = number + 1
        return number

    @property
    def released(self) -> "_Released":
        """What this transition released so far."""
        if self._released is None:
            self._released = _Released([], [], [], set())
        return self._released

    def release_clones(self, clones: Iterable[CloneId], after: Iterable[int] = ()) -> None:
        """Device clones are free, when the commands `after` have ended."""
        self.released.clones.extend(clones)
        self.released.after.update(after)

    def release_host_rows(self, write: WriteId) -> None:
        """The host rows of a deferred write are free."""
        self.released.writes.append(write)

    def release_read(self, read: ReadId, after: Iterable[int] = ()) -> None:
        """The buffer of a read, and what was set aside for it, are free when the commands `after` have ended."""
        self.released.reads.append(read)
        self.released.after.update(after)

    def close(self) -> None:
        """Emit the one release command of the transition, if anything was released; everything in ascending order."""
        if self._released is not None:
            clones, writes, reads, after = self._released
            numbers = read_only(np.array(sorted(clones), dtype=np.int64))
            ordered = tuple(sorted(after)), numbers, tuple(sorted(writes)), tuple(sorted(reads))
            self.commands.append(ReleaseBuffers(self.number(), Lane.GATHER, *ordered))


class _Released(NamedTuple):
    clones: list[CloneId]
    writes: list[WriteId]
    reads: list[ReadId]
    after: set[int]
