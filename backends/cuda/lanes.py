"""Lanes of the CUDA device: the engine's stream at the call, a stream and a thread that feeds it, and the host.

| lane | asked for on | carried out on | its event has ended when |
|---|---|---|---|
| COMPUTE | the calling thread | its current stream | `tenure-cuda-compute` has waited for the mark |
| COPY | `tenure-cuda-copy` | the copy stream | that thread has waited for the mark |
| POOL, GATHER | `tenure-cuda-host` | that thread; what it reads of the GPU, on the read stream | that thread is there |

No call on the engine's thread waits, whatever its lane waits for. Every wait is for an event that was recorded before,
so threads that each keep their order cannot wait for each other in a circle.
"""

from threading import Condition, Lock
from time import monotonic
from typing import Any, Final

from tenure.backends.cpu.worker import CpuEvent, InlineLanes, Work, Worker
from tenure.backends.cuda.api import Api, Mark, Stream
from tenure.backends.device import Lane, Listener
from tenure.core.errors import OperationFailedError


class ComputeEvent(CpuEvent):
    """A place in the engine's stream.

    Attributes:
        mark: which; None if it could not be marked.
        failed: what its lane failed with before. It is told when everything before has ended.
    """

    __slots__ = ("failed", "mark")

    def __init__(self, mark: Mark | None, failed: OperationFailedError | None) -> None:
        super().__init__(is_done=False)
        self.mark: Final = mark
        self.failed: Final = failed


class CudaWorker(Worker):
    """A thread that waits for GPU and for other threads, and holds no lock while it does."""

    def __init__(self, name: str, reached: Condition, api: Api) -> None:
        super().__init__(name, reached)
        self._queue.put(api.use_here)

    def begin_after(self, event: CpuEvent) -> None:
        """Return when an event of whatever thread has ended, or at the end."""
        with self._reached:
            while not event.is_done and not self._is_closed:
                self._reached.wait()


class Watcher(CudaWorker):
    """Waits for the marks of the engine's stream, one after the other."""

    def end_before(self, event: CpuEvent) -> None:
        """Return when the stream is past the mark of an event.

        Raises:
            OperationFailedError: its lane failed.
            RuntimeError: the device did.
        """
        assert isinstance(event, ComputeEvent)
        if event.mark is not None:
            event.mark.synchronize()
        if event.failed is not None:
            raise event.failed


class Feeder(CudaWorker):
    """Asks a stream for what its lane is asked for."""

    def __init__(self, name: str, reached: Condition, api: Api, stream: Stream) -> None:
        self._api = api
        self._stream = stream
        super().__init__(name, reached, api)

    def begin_after(self, event: CpuEvent) -> None:
        """Let the stream wait for the engine's; wait here for what the host does."""
        if isinstance(event, ComputeEvent) and event.mark is not None and event.failed is None and not event.is_done:
            # If what was marked fails, so does all that a GPU is asked for afterwards, this stream's mark included.
            self._api.wait(self._stream, event.mark)
        else:
            super().begin_after(event)

    def end_before(self, event: CpuEvent) -> None:
        """Return when the stream has done all it was asked for, also what was asked before something failed.

        So the stream is asked for the next command when this one has ended, some microseconds late; the operations of
        one command follow each other without a gap.
        """
        self._api.record(self._stream).synchronize()


class CudaLanes:
    """All lanes of one GPU."""

    def __init__(self, api: Api, copy_stream: Stream) -> None:
        self._api = api
        self._compute = InlineLanes()
        reached = Condition(Lock())
        self._watcher = Watcher("tenure-cuda-compute", reached, api)
        self._host = CudaWorker("tenure-cuda-host", reached, api)
        self._workers: dict[Lane, Worker] = {
            Lane.COPY: Feeder("tenure-cuda-copy", reached, api, copy_stream),
            Lane.POOL: self._host,
            Lane.GATHER: self._host,
        }
        self._threads = (self._watcher, self._host, self._workers[Lane.COPY])

    def do(self, lane: Lane, operation: str, work: Work, *arguments: Any) -> None:
        """Have one thing done; on the lane COMPUTE, ask the engine's stream for it.

        Raises:
            OperationFailedError: the engine's stream cannot be asked; what it was asked before goes on.
        """
        if lane is not Lane.COMPUTE:
            self._workers[lane].do(lane, operation, work, *arguments)
        elif not self._compute.has_failed(lane):
            try:
                work(*arguments)
            except Exception as error:
                raise OperationFailedError(operation, f"{type(error).__name__}: {error}") from error

    def record(self, lane: Lane) -> CpuEvent:
        """The event of all that a lane was asked for."""
        if lane is not Lane.COMPUTE:
            return self._workers[lane].record(lane)
        failed, mark = self._compute.record(lane).error, None
        try:
            mark = self._api.record(self._api.current_stream())
        except RuntimeError as error:
            failed = failed or OperationFailedError("mark a place in the engine's stream", str(error))
        return self._watcher.record(lane, ComputeEvent(mark, failed))

    def wait(self, lane: Lane, event: CpuEvent, *, is_needed: bool) -> None:
        """Let a lane go on behind an event; the lane COMPUTE holds its caller until then."""
        if lane is not Lane.COMPUTE:
            self._workers[lane].wait(lane, event, is_needed=is_needed)
            return
        self._watcher.begin_after(event)
        self._compute.wait(lane, event, is_needed=is_needed)

    def synchronize(self, event: CpuEvent, timeout_s: float) -> bool:
        """Wait on the calling thread for an event; whether it has completed in time."""
        return self._watcher.synchronize(event, timeout_s)

    def listen(self, listener: Listener) -> None:
        """Call `listener` behind every event, on the thread that waited for it: its lanes take more without waiting."""
        for each in self._threads:
            each.listen(listener)

    def close(self, timeout_s: float) -> None:
        """Let the threads end what they are at, and nothing more."""
        until = monotonic() + timeout_s
        for each in self._threads:
            # All are told before one is waited for.
            each.close(0.0)
        for each in self._threads:
            each.close(max(until - monotonic(), 0.0))
