"""What stands in a lane of an emulated device: operations, events, waits."""

from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from tenure.backends.device import Lane
from tenure.backends.fake.clocks import ACTORS, Clock
from tenure.backends.fake.memory import FakeBuffer, RowNumbers, poisoned
from tenure.core.errors import OperationFailedError


class FakeEvent:
    """A place in a lane.

    Attributes:
        lane: where it was recorded; None: it never was, and nobody waits for it.
        launched: what lay behind the host when it was recorded.
        clock: what lies behind it, once it was reached.
        has_ended: whether it was reached, or never recorded.
        error: what failed before it.
        move: its number among all moves of the device.
    """

    __slots__ = ("clock", "error", "has_ended", "lane", "launched", "move")

    def __init__(self, lane: Lane | None = None, launched: Clock | None = None, move: int | None = None) -> None:
        self.lane = lane
        self.move = move
        self.launched: Clock = np.zeros(len(ACTORS), dtype=np.int64) if launched is None else launched
        self.clock: Clock = np.zeros(len(ACTORS), dtype=np.int64)
        self.has_ended = lane is None
        self.error: OperationFailedError | None = None

    def __str__(self) -> str:
        return "an event" if self.lane is None else f"an event of lane {self.lane.name}"

    def reach(self, clock: Clock, error: OperationFailedError | None) -> None:
        """The lane has come here."""
        self.clock, self.error, self.has_ended = clock, error, True


class Wait(NamedTuple):
    """A lane goes on behind an event, and fails with it if that is needed."""

    event: FakeEvent
    is_needed: bool

    def __str__(self) -> str:
        return f"waits for {self.event}"


class Operation:
    """Rows that move: row `target_rows[i]` of the target becomes row `source_rows[i]` of `values`.

    Attributes:
        number: counts up over all operations and accesses of a device.
        what: the port's method.
        lane: where it runs.
        source: the buffer that is read; None where what is written comes from nowhere.
        launched: what lay behind the host when it was asked for.
        asked_at, began_at, ended_at: after how many moves of the device; -1: not yet.
        done: how many rows were moved.
    """

    __slots__ = (
        "asked_at",
        "began_at",
        "done",
        "ended_at",
        "lane",
        "launched",
        "number",
        "source",
        "source_rows",
        "target",
        "target_rows",
        "values",
        "what",
    )

    def __init__(
        self,
        number: int,
        what: str,
        lane: Lane,
        target: FakeBuffer,
        target_rows: RowNumbers,
        source: FakeBuffer | None,
        source_rows: RowNumbers,
        values: npt.NDArray[Any],
        launched: Clock,
        asked_at: int,
    ) -> None:
        self.number, self.what, self.lane = number, what, lane
        self.target, self.target_rows = target, target_rows
        self.source, self.source_rows, self.values = source, source_rows, values
        self.launched, self.asked_at, self.began_at, self.ended_at, self.done = launched, asked_at, -1, -1, 0

    def __str__(self) -> str:
        return f"{self.what} #{self.number}"

    @property
    def actor(self) -> str:
        """The lane's name."""
        return self.lane.name

    @property
    def is_over(self) -> bool:
        """Whether every row was moved."""
        return self.done >= len(self.target_rows)

    def move(self, rows: int | None) -> None:
        """Move so many more rows, or all; while some are left, those are poison."""
        stop = len(self.target_rows) if rows is None else min(self.done + rows, len(self.target_rows))
        if not self.done and stop < len(self.target_rows):
            self.spoil()
        mine, whence = self.target_rows[self.done : stop], self.source_rows[self.done : stop]
        if self.target_rows.size == 1 and self.source_rows.size != 1:
            # The copy of a whole tensor is one row.
            whence = np.zeros(1, dtype=np.int64)
        self.target.array[mine] = self.values[whence]
        is_written = self.source is None or len(self.source_rows) != len(self.target_rows)
        self.target.is_written[mine] = True if is_written or self.source is None else self.source.is_written[whence]
        self.done = stop

    def spoil(self) -> None:
        """Rows that were to be moved and are not hold nothing."""
        rows = self.target_rows[self.done :]
        self.target.is_written[rows] = False
        self.target.array[rows] = poisoned(self.target.array.dtype)


Item: TypeAlias = Operation | FakeEvent | Wait
