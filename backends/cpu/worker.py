"""Lanes of the CPU device: carried out at the call, or in order on a worker thread."""

from collections.abc import Callable
from functools import partial
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
            self.fail(lane, operation, error)

    def fail(self, lane: Lane, operation: str, error: Exception) -> None:
        """What comes is passed over up to the next event, which fails with what failed first."""
        self._failed.setdefault(lane, OperationFailedError(operation, f"{type(error).__name__}: {error}"))

    def has_failed(self, lane: Lane) -> bool:
        """Whether something failed on this lane since its last event."""
        return lane in self._failed

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


class Worker:
    """One or more lanes, in order on a thread of their own; each lane has its failures.

    Workers that share `reached` can wait for each other's events.
    """

    def __init__(self, name: str, reached: Condition | None = None) -> None:
        self._lanes = InlineLanes()
        self._queue: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        # A condition with a plain lock is entered by that lock, which no interrupt leaves half way.
        self._reached = Condition(Lock()) if reached is None else reached
        self._listener: Listener = _hear_nothing
        self._is_closed = False
        self._thread = Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def do(self, lane: Lane, operation: str, work: Work, *arguments: Any) -> None:
        """Have one thing done, unless something failed on this lane since its last event."""
        self._queue.put(partial(self._lanes.do, lane, operation, work, *arguments))

    def record(self, lane: Lane, event: CpuEvent | None = None) -> CpuEvent:
        """The event of all that the lane was asked for."""
        if event is None:
            event = CpuEvent(is_done=False)
        self._queue.put(partial(self._reach, lane, event))
        return event

    def wait(self, lane: Lane, event: CpuEvent, *, is_needed: bool) -> None:
        """Go on behind an event."""
        self._queue.put(partial(self._go_behind, lane, event, is_needed))

    def synchronize(self, event: CpuEvent, timeout_s: float) -> bool:
        """Wait on the calling thread for an event; whether it has completed in time."""
        until = monotonic() + timeout_s
        with self._reached:
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
        with self._reached:
            self._reached.notify_all()
        self._thread.join(timeout_s)

    # --- On the thread ------------------------------------------------------------------------------------------

    def begin_after(self, event: CpuEvent) -> None:
        """Return when what comes may begin: other lanes' earlier events lie before this place of the worker's order.

        Raises:
            RuntimeError: the event lies behind this place.
        """
        if not event.is_done:
            msg = "it waits for an event that lies behind it"
            raise RuntimeError(msg)

    def end_before(self, event: CpuEvent) -> None:
        """Return when all has ended that is to have ended before an event; it has."""

    def _run(self) -> None:
        while not self._is_closed and (item := self._queue.get()) is not None:
            item()

    def _go_behind(self, lane: Lane, event: CpuEvent, is_needed: bool) -> None:
        try:
            self.begin_after(event)
        except Exception as error:
            self._lanes.fail(lane, "wait", error)
        self._lanes.wait(lane, event, is_needed=is_needed)

    def _reach(self, lane: Lane, event: CpuEvent) -> None:
        try:
            self.end_before(event)
        except Exception as error:
            self._lanes.fail(lane, "end what it was asked for", error)
        event.error = self._lanes.record(lane).error
        event.is_done = True
        with self._reached:
            self._reached.notify_all()
        self._listener()


class WorkerLanes(Worker):
    """The lane COMPUTE at the call; all others are one lane of the host, in order on a worker thread."""

    def __init__(self) -> None:
        self._inline = InlineLanes()
        super().__init__("tenure-cpu-worker")

    def do(self, lane: Lane, operation: str, work: Work, *arguments: Any) -> None:
        """Do one thing, or have it done."""
        if lane is Lane.COMPUTE:
            self._inline.do(lane, operation, work, *arguments)
        else:
            super().do(lane, operation, work, *arguments)

    def record(self, lane: Lane, event: CpuEvent | None = None) -> CpuEvent:
        """The event of all that the lane was asked for."""
        return self._inline.record(lane) if lane is Lane.COMPUTE else super().record(lane, event)

    def wait(self, lane: Lane, event: CpuEvent, *, is_needed: bool) -> None:
        """Go on behind an event."""
        if lane is Lane.COMPUTE:
            while not event.is_done:
                self.synchronize(event, 1.0)
            self._inline.wait(lane, event, is_needed=is_needed)
        else:
            super().wait(lane, event, is_needed=is_needed)


def _hear_nothing() -> None:
    """Nobody listens yet."""
