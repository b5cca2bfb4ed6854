"""Writes what a machine takes to a file, beside the threads that tell it.

Whoever tells the machine appends to a bounded queue, and never waits: one thread writes. What finds the queue full is
left out, and its number stands in the file where it is missing. A disk that fails ends the record and nothing else.
"""

import logging
import os
from dataclasses import dataclass
from io import TextIOBase
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Event, Thread
from typing import BinaryIO, Final, NamedTuple, TypeAlias

from tenure.core.config import RowConfig
from tenure.core.errors import TenureError, TraceFormatError
from tenure.core.rows.answers import RowAnswer
from tenure.core.rows.events import RowEvent
from tenure.core.schemas import to_json
from tenure.recording.errors import RecordError
from tenure.recording.lines import Header, closed_line, gap_line, header_line, refused_event_line, refused_line

QUEUE_MAX: Final = 8192
"""Events that wait to be written at most. The largest hold the slots of a step, 8 bytes a token."""
LOOK_EVERY_S: Final = 0.02
"""The thread that writes looks for events so often."""
THREAD_NAME: Final = "tenure-recorder"

Target: TypeAlias = str | os.PathLike[str] | BinaryIO

_log: Final = logging.getLogger("tenure.recording")


@dataclass(frozen=True, slots=True)
class RecordStatus:
    """What became of a record so far.

    Attributes:
        events: events that were handed over.
        left_out: events that found the queue full, and are in no line.
        written: lines that were written.
        error: why nothing more is written; None while all is well.
    """

    events: int
    left_out: int
    written: int
    error: str | None


class _Refusal(NamedTuple):
    error: str
    scope: str


class _Left(NamedTuple):
    """So many events were left out here."""

    events: int


class _End(NamedTuple):
    """Nothing comes any more."""


_Item: TypeAlias = tuple[RowEvent, RowAnswer | _Refusal] | _Left | _End


class Recorder:
    """One record, and the thread that writes it.

    `took` and `refused` are called by whoever tells the machine, one at a time and in the machine's order. Events and
    answers are immutable, arrays in them read-only copies, so what is written is what the machine was told.
    """

    def __init__(self, target: Target, config: RowConfig, *, writer: str, queue_max: int = QUEUE_MAX) -> None:
        """Begin the record; a file that is there is begun anew.

        Raises:
            RecordError: the file cannot be opened, or the target is neither a path nor a binary file object.
        """
        self._name, self._file, self._is_own = _opened(target)
        self._queue_max = queue_max
        self._queue: SimpleQueue[_Item] = SimpleQueue()
        # Counted by whoever tells the machine.
        self._events = self._left_out = self._missing = 0
        # Counted by the thread that writes.
        self._written = self._told = self._gaps = 0
        self._error: str | None = None
        self._is_over = False
        self._is_ending = Event()
        self._header = header_line(Header(writer=writer, config=config))
        self._thread = Thread(target=self._run, name=THREAD_NAME, daemon=True)
        self._thread.start()

    # --- Called by whoever tells the machine --------------------------------------------------------------------

    def took(self, event: RowEvent, answer: RowAnswer) -> None:
        """The machine took an event; never waits."""
        self._put((event, answer))

    def refused(self, event: RowEvent, error: TenureError) -> None:
        """The machine refused an event; never waits."""
        self._put((event, _Refusal(type(error).__name__, error.scope.name)))

    def _put(self, item: tuple[RowEvent, RowAnswer | _Refusal]) -> None:
        if self._is_over:
            return
        if self._error is not None or self._queue.qsize() >= self._queue_max:
            self._missing += 1
            self._left_out += 1
            return
        if self._missing:
            self._queue.put(_Left(self._missing))
            self._missing = 0
        self._events += 1
        self._queue.put(item)

    @property
    def status(self) -> RecordStatus:
        """What became of the record so far."""
        return RecordStatus(self._events, self._left_out, self._written, self._error)

    def close(self, timeout_s: float) -> None:
        """End the record: what waits is written, and the file closed. May be called again.

        A disk that takes longer keeps its thread, and nobody else.
        """
        if not self._is_over:
            self._is_over = True
            if self._missing:
                self._queue.put(_Left(self._missing))
            self._queue.put(_End())
            self._is_ending.set()
        self._thread.join(timeout_s)

    # --- The thread that writes ---------------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            try:
                self._write(self._header)
                self._file.flush()
                while not self._is_at_end():
                    pass
            finally:
                if self._is_own:
                    self._file.close()
        except Exception as error:
            self._error = str(error) or type(error).__name__
            _log.warning("the record %s ends here, and the cache goes on without: %s", self._name, self._error)
            self._drop_all()

    def _is_at_end(self) -> bool:
        """Write the next item; whether it was the last."""
        try:
            item = self._queue.get_nowait()
        except Empty:
            # Whoever reads the file meanwhile finds whole lines.
            self._file.flush()
            # Not woken by each event: threads that take turns so often keep each other from their work.
            self._is_ending.wait(LOOK_EVERY_S)
            return False
        match item:
            case _Left(events):
                self._write_gap(events)
            case _End():
                self._write(closed_line(self._told, self._gaps))
                self._file.flush()
                return True
            case (event, result):
                self._write_event(event, result)
        return False

    def _write_event(self, event: RowEvent, result: RowAnswer | _Refusal) -> None:
        try:
            if isinstance(result, _Refusal):
                lines = refused_event_line(event), refused_line(*result)
            else:
                lines = to_json(event, checked=False), to_json(result, checked=False)
        except (TraceFormatError, RecursionError):
            # What no line can stand for is mostly why it was refused, and then it changed nothing.
            if not isinstance(result, _Refusal):
                self._write_gap(1)
            return
        for line in lines:
            self._write(line)
        self._told += 1

    def _write_gap(self, events: int) -> None:
        self._write(gap_line(events))
        self._gaps += events

    def _write(self, line: str) -> None:
        self._file.write(line.encode() + b"\n")
        self._written += 1

    def _drop_all(self) -> None:
        """Nothing is written any more: what waits is let go."""
        while not self._queue.empty():
            self._queue.get_nowait()


def _opened(target: Target) -> tuple[str, BinaryIO, bool]:
    """The name of a file, the file, and whether it is to be closed."""
    if not isinstance(target, str | os.PathLike):
        given: object = target
        is_text = isinstance(given, TextIOBase)
        if is_text or not all(callable(getattr(given, name, None)) for name in ("write", "flush")):
            problem = "it writes text" if is_text else "it is neither a path nor a file object"
            raise RecordError(repr(given), problem, "give record= a path, or a binary file")
        return str(getattr(target, "name", "of a file object")), target, False
    path = Path(target)
    try:
        return str(path), path.open("wb"), True
    except (OSError, ValueError) as error:
        reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
        raise RecordError(str(path), f"cannot be written ({reason})", "give record= another path") from None
