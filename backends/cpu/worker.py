"""Lanes of the CPU device: carried out at the call, or in order on one worker thread."""

from collections.abc import Callable
from queue import SimpleQueue
from threading import Condition, Lock, Thread
from time import monotonic
from typing import Any, Final, TypeAlias

from tenure.backends.device import Lane, Listener
from tenure.core.errors import OperationFailedError

Work: TypeAlias = Callable[..., None]


class CpuEvent:
    """A place in a lane: whether it was reached, and what failed before it."""

    __slots__ = ("error", "is_done")

    def __init__(self, error: OperationFailedError | None = None, *, is_done: bool = True) -> None:
        self.error = error
        self.is_done = is_done

    @property
    def has_completed(self) -> bool:
        """Whether the lane has come here.

        Raises:
            OperationFailedError: something failed before.
        """
        if self.error is not None:
            raise self.error
        return self.is_done


DONE: Final = CpuEvent()


class InlineLanes:
    """Everything is over when the call returns."""

    def __init__(self) -> None:
        self._failed: dict[Lane, OperationFailedError] = {}

    def do(self, lane: Lane, operation: str, work: Work, *arguments: Any) -> None:
        """Do one thing, unless something failed on this lane since its last event."""
        if lane in self._failed:
            return
        try:
            work(*arguments)
        except Exception as error:
            self._failed[lane] = OperationFailedError(operation, f"{type(error).__name__}: {error}")

    def record(self, lane: Lane) -> CpuEvent:
        """The event of all that the lane was asked for; it is over."""
        error = self._failed.pop(lane, None)
        return DONE if error is None else CpuEvent(error)

    def wait(self, lane: Lane, event: CpuEvent, *, is_needed: bool) -> None:
        """Fail with an event that is needed."""
        if event.error is not None and is_needed:
            self._failed.setdefault(lane, event.error)

    def synchronize(self, event: CpuEvent, timeout_s: float) -> bool:
        """Whether an event has completed."""
        del timeout_s
        return event.has_completed

    def listen(self, listener: Listener) -> None:
        """There is nothing to say later."""

    def close(self, timeout_s: float) -> None:
        """There is nothing to end."""


class WorkerLanes:
    """The lane COMPUTE at the call; all others are one lane of the host, in order on a worker thread."""

    def __init__(self) -> None:
        self._inline = InlineLanes()
        self._on_worker = InlineLanes()
        self._queue: SimpleQueue[tuple[Lane, str, Work, tuple[Any, ...]] | tuple[Lane, CpuEvent] | None] = SimpleQueue()
        # A condition is entered by its lock, which no interrupt leaves half way.
        self._lock = Lock()
        self._reached = Condition(self._lock)
        self._listener: Listener = _hear_nothing
        self._is_closed = False
        self._thread = Thread(target=self._run, name="tenure-cpu-worker", daemon=True)
        self._thread.start()

    def do(self, lane: Lane, operation: str, work: Work, *arguments: Any) -> None:
        """Do one thing, or have it done."""
        if lane is Lane.COMPUTE:
            self._inline.do(lane, operation, work, *arguments)
        else:
            self._queue.put((lane, operation, work, arguments))

    def record(self, lane: Lane) -> CpuEvent:
        """The event of all that the lane was asked for."""
        if lane is Lane.COMPUTE:
            return self._inline.record(lane)
        event = CpuEvent(is_done=False)
        self._queue.put((lane, event))
        return event

    def wait(self, lane: Lane, event: CpuEvent, *, is_needed: bool) -> None:
        """Go on behind an event: every other lane's earlier one lies before this place of the worker's order."""
        if lane is Lane.COMPUTE:
            while not event.is_done:
                self.synchronize(event, 1.0)
            self._inline.wait(lane, event, is_needed=is_needed)
        else:
            self._queue.put((lane, "wait", self._on_worker_wait, (lane, event, is_needed)))

    def _on_worker_wait(self, lane: Lane, event: CpuEvent, is_needed: bool) -> None:
        if not event.is_done:
            msg = "it waits for an event that lies behind it"
            raise RuntimeError(msg)
        self._on_worker.wait(lane, event, is_needed=is_needed)

    def synchronize(self, event: CpuEvent, timeout_s: float) -> bool:
        """Wait for an event; whether it has completed in time."""
        until = monotonic() + timeout_s
        with self._lock:
            while not event.is_done and (left := until - monotonic()) > 0:
                self._reached.wait(left)
        return event.has_completed

    def listen(self, listener: Listener) -> None:
        """Call `listener` on the worker thread behind every event."""
        self._listener = listener

    def close(self, timeout_s: float) -> None:
        """Let the worker end what it is at, and nothing more; its thread is gone, or `timeout_s` are over."""
        self._is_closed = True
        self._queue.put(None)
        self._thread.join(timeout_s)

    def _run(self) -> None:
        while not self._is_closed:
            item = self._queue.get()
            if item is None:
                return
            if len(item) == 2:
                self._reach(*item)
            else:
                lane, operation, work, arguments = item
                self._on_worker.do(lane, operation, work, *arguments)

    def _reach(self, lane: Lane, event: CpuEvent) -> None:
        event.error = self._on_worker.record(lane).error
        event.is_done = True
        with self._lock:
            self._reached.notify_all()
        self._listener()


def _hear_nothing() -> None:
    """Nobody listens yet."""
