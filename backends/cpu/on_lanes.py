"""The part of a device that is its lanes' business alone: events, listening, the end."""

from typing import Any, Protocol

from tenure.backends.cpu.worker import CpuEvent, Work
from tenure.backends.device import Lane, Listener


class Lanes(Protocol):
    """Lanes whose events are `CpuEvent`s."""

    def do(self, lane: Lane, operation: str, work: Work, /, *arguments: Any) -> None:
        """Do one thing, or have it done."""
        ...

    def record(self, lane: Lane, /) -> CpuEvent:
        """An event of all that the lane was asked for."""
        ...

    def wait(self, lane: Lane, event: CpuEvent, /, *, is_needed: bool) -> None:
        """Go on behind an event."""
        ...

    def synchronize(self, event: CpuEvent, timeout_s: float, /) -> bool:
        """Wait for an event; whether it has completed in time."""
        ...

    def listen(self, listener: Listener, /) -> None:
        """Call `listener` behind every event."""
        ...

    def close(self, timeout_s: float, /) -> None:
        """End."""
        ...


class OnLanes:
    """A device that leaves all of this to its lanes."""

    _lanes: Lanes

    def record(self, lane: Lane) -> CpuEvent:
        """An event that completes when everything asked of the lane so far has ended."""
        return self._lanes.record(lane)

    def wait(self, lane: Lane, event: CpuEvent, *, is_needed: bool) -> None:
        """What is asked of the lane from now on begins when the event has ended."""
        self._lanes.wait(lane, event, is_needed=is_needed)

    def query(self, event: CpuEvent) -> bool:
        """Whether an event has completed; nothing is asked of an accelerator.

        Raises:
            OperationFailedError: it failed.
        """
        return event.has_completed

    def synchronize(self, event: CpuEvent, timeout_s: float) -> bool:
        """Wait on the calling thread until an event has completed; whether it has in time.

        Raises:
            OperationFailedError: it failed.
        """
        return self._lanes.synchronize(event, timeout_s)

    def listen(self, listener: Listener) -> None:
        """Call `listener` behind every event, on a thread of the device."""
        self._lanes.listen(listener)

    def close(self, timeout_s: float) -> None:
        """End the device's threads, if it has any."""
        self._lanes.close(timeout_s)
