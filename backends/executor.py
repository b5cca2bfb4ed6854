"""The executor: turns commands into operations of a device, and brings their answers back.

It decides nothing. Each command becomes: wait for the events of the commands that it names in `after`, operations in
its lane, an event. `poll` finds the events that have completed and hands back the answers that the commands carried.
Nothing here depends on how long anything takes.

Whoever holds the machine's lock calls `accept` with the commands of a transition, in order. One thread at a time calls
`run` and `poll`, without that lock (R19). The thread of the engine calls `freeze`, since what a forward pass leaves is
there for it alone.
"""

from collections import Counter, deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple, TypeAlias, assert_never

from tenure.backends.device import Device, Event, Lane, Rows
from tenure.backends.gathers import Gathers, pieces
from tenure.backends.leftovers import copied_leftover
from tenure.backends.memory import Lease
from tenure.backends.storage import Storage
from tenure.core.config import RowConfig
from tenure.core.errors import OperationFailedError
from tenure.core.rows.commands import (
    CommandAnswer,
    CommandId,
    CopyDeferred,
    CopyPage,
    FreezeRows,
    GatherRows,
    PreserveRows,
    ReleaseBuffers,
    RowCommand,
    ScatterRows,
    ScheduleGather,
)
from tenure.core.rows.events import StepId
from tenure.core.rows.names import NameId, RowFormat, Schedule

Work: TypeAlias = CopyPage | CopyDeferred | ScatterRows | PreserveRows | GatherRows
"""Commands that become operations in a lane other than COMPUTE."""

COPY_KINDS: Final = ("freeze", "page", "deferred", "scatter", "preserve", "gather")
"""What `bytes_copied` counts by: into clones and pages, out of them, and into, aside within and out of the pool."""


class _Flight(NamedTuple):
    """A command whose operations were asked for.

    Attributes:
        scratch: memory that the operations use and nobody else.
        error: what a device said at the call; the answer waits for the event all the same.
    """

    command: FreezeRows | Work
    event: Event
    scratch: Sequence[Lease] = ()
    error: OperationFailedError | None = None


class Executor:
    """Carries commands out on one device.

    Attributes:
        device: where.
        storage: the memory that rows lie in.
        bytes_copied: bytes by kind of copy, `COPY_KINDS`.
    """

    def __init__(self, device: Device, config: RowConfig, formats: Iterable[RowFormat] = ()) -> None:
        """Nothing is done yet; memory for the names of `formats` is there from the start.

        Raises:
            PageLockedMemoryError: their pages need more page-locked memory than the device or the configuration gives.
            OperationFailedError: there is not so much memory.
        """
        self.device = device
        self.bytes_copied: Counter[str] = Counter(dict.fromkeys(COPY_KINDS, 0))
        self.storage = Storage(device, config)
        try:
            for each in formats:
                self.storage.register(each)
        except BaseException:
            self.storage.close()
            raise
        self._gathers = Gathers(device, self.storage, config.copy_chunk_bytes)
        self._gathers_max = config.gathers_max
        # Reads that have not begun, and how many run.
        self._scheduled: deque[ScheduleGather] = deque()
        self._running = 0
        self._chunk_bytes = config.copy_chunk_bytes
        self._is_unified = device.is_unified()
        self._accepted: deque[RowCommand] = deque()
        self._answers: deque[CommandAnswer] = deque()
        # Freezes that are to come, by step.
        self._freezes: dict[StepId, FreezeRows] = {}
        self._flights: dict[CommandId, _Flight] = {}
        # What `after` may name and has not ended.
        self._open: dict[CommandId, Event | None] = {}
        # What `after` may name, and failed.
        self._failed: dict[CommandId, OperationFailedError] = {}
        # Freezes by step that no page copy was asked for yet: it will name them, however long ago they failed.
        self._unpublished: dict[StepId, CommandId] = {}
        self._postponed: list[ReleaseBuffers] = []

    # --- Commands in ------------------------------------------------------------------------------------------------

    def accept(self, commands: Iterable[RowCommand]) -> None:
        """Take the commands of one transition; nothing is carried out here."""
        for command in commands:
            if isinstance(command, FreezeRows):
                self._open[command.command] = None
                self._freezes[command.step] = command
                self._unpublished[command.step] = command.command
            else:
                self._accepted.append(command)

    def freeze(self, step: StepId, page: int, live: Mapping[NameId, Any]) -> tuple[FreezeRows, dict[NameId, Any]]:
        """Copy the live outputs of a step whose save is reserved; its command, and leftovers on their way to the host.

        `page` is the one that the save reserved. Leftovers hold their content when the step's page copy has ended.
        Whatever this raises, the command has ended, and the save is to be cancelled.

        Raises:
            ForeignTensorError: an output lies where the device cannot copy from.
            PageLockedMemoryError: the pages of a new name need too much page-locked memory.
            OperationFailedError: memory for a new name, or a copy, failed.
        """
        command = self._freezes.pop(step)
        try:
            leftovers = self._launch_freeze(command, page, live)
        finally:
            # What was asked for before a failure may still run.
            event = self.device.record(Lane.COMPUTE)
            self._open[command.command] = event
            self._flights[command.command] = _Flight(command, event)
        # What is known to have failed by now costs this save; what fails later costs the write, and so the cache.
        self.device.query(event)
        return command, leftovers

    def abandon_freeze(self, step: StepId) -> None:
        """A step will not be published; if its freeze was never asked for, it will not be."""
        self._unpublished.pop(step, None)
        command = self._freezes.pop(step, None)
        if command is not None:
            self._open.pop(command.command)

    def _launch_freeze(self, command: FreezeRows, page: int, live: Mapping[NameId, Any]) -> dict[NameId, Any]:
        device = self.device
        for each in command.registers:
            self.storage.register(each)
        for clone in command.clones:
            for each in clone.formats:
                if self._lies_on_page(each):
                    target = Rows(self.storage.page(page, each.name), 0, command.num_rows)
                else:
                    target = self.storage.clone_rows(clone.clone, each, command.num_rows)
                source = device.live(each.name, live[each.name])
                self._copy(Lane.COMPUTE, target, Rows(source, 0, command.num_rows), each, "freeze")
        return {name: copied_leftover(device, live[name]) for name in command.leftovers}

    def _lies_on_page(self, row_format: RowFormat) -> bool:
        """Whether rows need no clone: nobody but the page copy reads that of immediate rows."""
        return self._is_unified and row_format.schedule is Schedule.JOIN_NEXT_STEP

    def _copy(self, lane: Lane, target: Rows, source: Rows, row_format: RowFormat, kind: str) -> None:
        """Copy rows, no more bytes an operation than configured."""
        count = target.stop - target.start
        self.bytes_copied[kind] += count * row_format.row_bytes
        for first, last in pieces(count, self._chunk_bytes, row_format):
            self.device.copy(
                lane,
                Rows(target.buffer, target.start + first, target.start + last),
                Rows(source.buffer, source.start + first, source.start + last),
            )

    # --- Carrying out -----------------------------------------------------------------------------------------------

    def run(self) -> None:
        """Ask the device for everything that was accepted, in order."""
        while self._accepted:
            self._carry_out(self._accepted.popleft())
        # Else, what failed before was named by what was accepted before.
        unpublished = set(self._unpublished.values())
        self._failed = {number: error for number, error in self._failed.items() if number in unpublished}
        # What began is answered with a gather that is accepted before the next run, if the read is still wanted.
        for _ in range(min(self._gathers_max - self._running, len(self._scheduled))):
            self._answers.append(self._scheduled.popleft().began)

    def _carry_out(self, command: RowCommand) -> None:
        match command:
            case ScheduleGather():
                self._scheduled.append(command)
            case ReleaseBuffers():
                self._postponed.append(command)
            case CopyPage() | CopyDeferred():
                self._answers.append(command.began)
                self._launch(command)
            case ScatterRows() | PreserveRows() | GatherRows():
                self._launch(command)
            case FreezeRows():
                raise AssertionError(command)
            case _:
                assert_never(command)

    def _launch(self, command: Work) -> None:
        if isinstance(command, CopyPage):
            self._unpublished.pop(command.step, None)
        # A scatter is ordered behind gathers, and needs nothing of them; all else reads what it is ordered behind.
        is_needed = not isinstance(command, ScatterRows)
        error: OperationFailedError | None = None
        try:
            for number in command.after:
                if is_needed and number in self._failed:
                    raise self._failed[number]
                if (event := self._open.get(number)) is not None:
                    self.device.wait(command.lane, event, is_needed=is_needed)
            self._ask(command)
        except OperationFailedError as failure:
            # It is kept, and must not keep what the frames of its traceback hold.
            error = failure.with_traceback(None)
        event = self.device.record(command.lane)
        self._running += isinstance(command, GatherRows)
        self._open[command.command] = event
        self._flights[command.command] = _Flight(command, event, self.storage.take_scratch(), error)

    def _ask(self, command: Work) -> None:
        match command:
            case CopyPage():
                for clone in command.clones:
                    for each in clone.formats:
                        if self._lies_on_page(each):
                            continue
                        source = self.storage.clone_rows(clone.clone, each, command.num_rows)
                        page = Rows(self.storage.page(command.page, each.name), 0, command.num_rows)
                        self._copy(command.lane, page, source, each, "page")
            case CopyDeferred():
                self.bytes_copied["deferred"] += self._gathers.copy_deferred(command)
            case ScatterRows():
                self.bytes_copied["scatter"] += self._gathers.scatter(command)
            case PreserveRows():
                self.bytes_copied["preserve"] += self._gathers.preserve(command)
            case GatherRows():
                self.bytes_copied["gather"] += self._gathers.gather(command)
            case _:
                assert_never(command)

    # --- Answers out ------------------------------------------------------------------------------------------------

    def poll(self) -> list[CommandAnswer]:
        """The answers that are due, to be told verbatim, in order."""
        answers = self._answers
        if self._flights:
            # A thread may add a freeze meanwhile.
            for flight in list(self._flights.values()):
                self._land(flight, answers)
        if self._postponed:
            self._postponed = [each for each in self._postponed if not self._release(each)]
        found = list(answers)
        answers.clear()
        return found

    def _land(self, flight: _Flight, answers: "deque[CommandAnswer]") -> None:
        command, error = flight.command, flight.error
        try:
            if not self.device.query(flight.event):
                return
        except OperationFailedError as failure:
            error = error or failure.with_traceback(None)
        del self._flights[command.command]
        self._open.pop(command.command)
        if error is not None:
            self._failed[command.command] = error
        self._running -= isinstance(command, GatherRows)
        if isinstance(command, PreserveRows | GatherRows):
            self.storage.end_read(command, has_failed=error is not None)
        if isinstance(command, FreezeRows):
            # It was answered when it was launched; its page copy finds what failed since.
            return
        if error is None:
            if not isinstance(command, PreserveRows):
                answers.append(command.done)
        else:
            answers.append(replace(command.failed, reason=str(error)))

    def _release(self, command: ReleaseBuffers) -> bool:
        """Free what nobody uses, unless a freeze may still write it."""
        if any(number in self._open for number in command.after):
            return False
        self.storage.release(command)
        return True
