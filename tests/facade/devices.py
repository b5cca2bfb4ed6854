"""A device that does what a test tells it: lanes that stand still, operations that fail, completions that come late.

Memory and arithmetic are the CPU device's; lanes and events are its own, and it keeps to the numbered duties of
`backends/device.py`. Lanes are drained at each call ("inline"), or on one thread of the device ("threaded").
"""

from collections import Counter, deque
from collections.abc import Callable
from threading import Condition, Lock, Thread, current_thread
from time import monotonic
from typing import Any, Literal, NamedTuple, TypeAlias

from tenure.backends.cpu import CpuDevice
from tenure.backends.device import Buffer, Lane, Listener, Memory, Rows, Tensor
from tenure.core.arrays import Integers
from tenure.core.errors import OperationFailedError

Tensors: TypeAlias = Literal["auto", "numpy", "torch"]
LANES = (Lane.COPY, Lane.POOL, Lane.GATHER)


class ScriptedEvent:
    """A place in a lane: whether it was reached, whether that may be known, and what failed before it."""

    def __init__(self) -> None:
        self.is_reached = False
        self.is_muted = False
        self.error: OperationFailedError | None = None

    @property
    def has_ended(self) -> bool:
        """Whether it was reached, as far as anybody outside may know."""
        return self.is_reached and not self.is_muted


class _Operation(NamedTuple):
    kind: str
    work: Callable[[], None]


class _Wait(NamedTuple):
    event: ScriptedEvent
    is_needed: bool


class _Fault:
    """The n-th operation of a kind on a lane (any, if None) fails, and as many as `times` from there on."""

    def __init__(self, kind: str, lane: Lane | None, nth: int, times: int) -> None:
        self.kind = kind
        self.lane = lane
        self.nth = nth
        self.times = times

    def strikes(self, kind: str, lane: Lane | None) -> bool:
        """Whether this operation is the one."""
        if kind != self.kind or self.lane not in (None, lane) or not self.times:
            return False
        self.nth -= 1
        if self.nth > 0:
            return False
        self.times -= 1
        return True


class ScriptedDevice:
    """The CPU, under the orders of a test.

    Attributes:
        calls: how often what was asked for: operations by `(kind, lane)`, `allocate` and `free`.
        struck: faults that happened.
        before: called with the kind and lane of what waits, copies or allocates, on the calling thread.
        page_locked_max: the limit that the device reports.
        held: buffers that were allocated and not given back.
        freed: buffers that were given back; whoever uses one again stops the test.
    """

    def __init__(self, *, worker: bool = False, tensors: Tensors = "numpy", unified: bool = False) -> None:
        self._unified = unified
        self._cpu = CpuDevice(tensors=tensors)
        self._lanes: dict[Lane, deque[_Operation | _Wait | ScriptedEvent]] = {lane: deque() for lane in LANES}
        self._held: set[Lane] = set()
        self._muted: dict[Lane, list[ScriptedEvent]] = {}
        self._errors: dict[Lane, OperationFailedError] = {}
        self._faults: list[_Fault] = []
        # Events of COMPUTE that are not to be reached yet; what is before them was done at the call.
        self._late: deque[ScriptedEvent] = deque()
        self._changed = Condition()
        self._listener: Listener = _hear_nothing
        self._draining = Lock()
        self._is_closed = False
        self._is_news = False
        self.calls: Counter[tuple[str, Lane | None]] = Counter()
        self.struck = 0
        self.before: Callable[[str, Lane | None], None] = _let_pass
        self.page_locked_max: int | None = None
        self.held: list[Buffer] = []
        self.freed: list[Buffer] = []
        self._thread: Thread | None = None
        if worker:
            self._thread = Thread(target=self._run, name="tenure-scripted-device", daemon=True)
            self._thread.start()

    # --- Orders of the test -------------------------------------------------------------------------------------

    def hold(self, *lanes: Lane) -> None:
        """Nothing runs on these lanes from now on; of COMPUTE, which runs at the call, nothing is known."""
        with self._changed:
            assert not (self._unified and Lane.COMPUTE in lanes), "where memory is unified, it is over at the call"
            self._held |= set(lanes)

    def mute(self, *lanes: Lane) -> None:
        """What runs on these lanes runs, and nobody is told."""
        with self._changed:
            for lane in lanes:
                self._muted.setdefault(lane, [])

    def release(self, *lanes: Lane) -> None:
        """Let lanes (all, if none is named) run and be known of."""
        lanes = lanes or (*LANES, Lane.COMPUTE)
        with self._changed:
            self._held -= set(lanes)
            while Lane.COMPUTE not in self._held and self._late:
                self._late.popleft().is_reached = True
            for lane in lanes:
                for event in self._muted.pop(lane, []):
                    event.is_muted = False
            self._is_news = True
            self._changed.notify_all()
        if self._thread is None:
            self._drain()
            self._listener()

    def fail(self, kind: str, lane: Lane | None = None, nth: int = 1, times: int = 1) -> None:
        """Let the n-th operation of a kind from now on fail: copy, gather, scatter, zero, to_host, allocate, ..."""
        with self._changed:
            self._faults.append(_Fault(kind, lane, nth, times))

    def forgive(self) -> None:
        """Nothing fails any more."""
        with self._changed:
            self._faults.clear()

    def _count(self, kind: str, lane: Lane | None) -> None:
        # Threads that ask for memory, and lanes that are asked, do so side by side.
        with self._changed:
            self.calls[kind, lane] += 1

    def _strikes(self, kind: str, lane: Lane | None) -> bool:
        with self._changed:
            struck = [fault for fault in self._faults if fault.strikes(kind, lane)]
            self.struck += len(struck)
        return bool(struck)

    def _strike_now(self, kind: str, lane: Lane | None) -> None:
        if self._strikes(kind, lane):
            raise OperationFailedError(kind, "the test says so")

    # --- Lanes --------------------------------------------------------------------------------------------------

    def _ask(self, kind: str, lane: Lane, work: Callable[[], None]) -> None:
        self.before(kind, lane)
        self._count(kind, lane)
        self._strike_now(f"{kind} at the call", lane)
        if lane is Lane.COMPUTE:
            self._do(lane, _Operation(kind, work))
            return
        self._put(lane, _Operation(kind, work))

    def _put(self, lane: Lane, item: "_Operation | _Wait | ScriptedEvent") -> None:
        with self._changed:
            self._lanes[lane].append(item)
            self._changed.notify_all()
        if self._thread is None:
            self._drain()

    def _do(self, lane: Lane, operation: _Operation) -> None:
        if lane in self._errors:
            return
        if self._strikes(operation.kind, lane):
            self._errors[lane] = OperationFailedError(operation.kind, "the test says so")
        else:
            operation.work()

    def _drain(self) -> None:
        with self._draining:
            while sum(self._advance(lane) for lane in LANES):
                pass

    def _advance(self, lane: Lane) -> bool:
        """Take one item of a lane, if it may go on; whether it did."""
        with self._changed:
            items = self._lanes[lane]
            if self._is_closed or lane in self._held or not items:
                return False
            item = items[0]
            if isinstance(item, _Wait) and not item.event.is_reached:
                return False
            items.popleft()
        if isinstance(item, _Operation):
            self._do(lane, item)
        elif isinstance(item, _Wait):
            if item.is_needed and item.event.error is not None:
                self._errors.setdefault(lane, item.event.error)
        else:
            self._reach(lane, item)
        return True

    def _reach(self, lane: Lane, event: ScriptedEvent) -> None:
        with self._changed:
            event.error = self._errors.pop(lane, None)
            if lane is Lane.COMPUTE and lane in self._held:
                self._late.append(event)
                return
            event.is_reached = True
            muted = self._muted.get(lane)
            if muted is not None:
                event.is_muted = True
                muted.append(event)
            self._is_news = True
            self._changed.notify_all()

    def _run(self) -> None:
        while True:
            self._drain()
            with self._changed:
                if self._is_closed:
                    return
                told, self._is_news = self._is_news, False
                if not told and not self._can_go_on():
                    self._changed.wait(1.0)
            if told:
                self._listener()

    def _can_go_on(self) -> bool:
        return any(
            items and lane not in self._held and not (isinstance(item := items[0], _Wait) and not item.event.is_reached)
            for lane, items in self._lanes.items()
        )

    # --- The port -----------------------------------------------------------------------------------------------

    def page_locked_bytes_max(self) -> int | None:
        return self.page_locked_max

    def is_unified(self) -> bool:
        return self._unified

    def allocate(self, memory: Memory, rows: int, row_shape: tuple[int, ...], dtype: str) -> Buffer:
        self.before("allocate", None)
        self._count("allocate", None)
        self._strike_now("allocate", None)
        buffer = self._cpu.allocate(memory, rows, row_shape, dtype)
        # Memory that nobody wrote is no row of anybody's.
        buffer.array.view("uint8" if buffer.array.dtype != bool else bool).fill(251)
        with self._changed:
            self.held.append(buffer)
        return buffer

    def free(self, buffer: Buffer) -> None:
        self.before("free", None)
        self._count("free", None)
        with self._changed:
            self.held = [each for each in self.held if each is not buffer]
            self.freed.append(buffer)

    def describe(self, value: object) -> tuple[tuple[int, ...], str] | None:
        return self._cpu.describe(value)

    def live(self, name: str, tensor: Tensor) -> Buffer:
        return self._cpu.live(name, tensor)

    def to_host(self, lane: Lane, tensor: Tensor) -> Tensor:
        self.before("to_host", lane)
        self._strike_now("to_host", lane)
        return self._cpu.to_host(lane, tensor)

    def copy(self, lane: Lane, target: Rows, source: Rows) -> None:
        self._check(target.buffer, source.buffer)
        self._ask("copy", lane, lambda: self._cpu.copy_now(target, source))

    def gather_rows(self, lane: Lane, target: Rows, source: Buffer, index: Integers) -> None:
        self._check(target.buffer, source)
        self._ask("gather", lane, lambda: self._now(self._cpu.gather_rows, target, source, index))

    def scatter_rows(self, lane: Lane, target: Buffer, index: Integers, source: Rows) -> None:
        self._check(target, source.buffer)
        self._ask("scatter", lane, lambda: self._now(self._cpu.scatter_rows, target, index, source))

    def zero_rows(self, lane: Lane, target: Rows) -> None:
        self._check(target.buffer)
        self._ask("zero", lane, lambda: self._now(self._cpu.zero_rows, target))

    def _now(self, operation: Callable[..., None], *arguments: Any) -> None:
        """The CPU does it on a lane that is used for nothing else."""
        operation(Lane.GATHER, *arguments)
        self._cpu.query(self._cpu.record(Lane.GATHER))

    def _check(self, *buffers: Buffer) -> None:
        assert not any(each is freed for each in buffers for freed in self.freed), "memory that was given back is used"

    def record(self, lane: Lane) -> ScriptedEvent:
        event = ScriptedEvent()
        if lane is Lane.COMPUTE:
            self._reach(lane, event)
        else:
            self._put(lane, event)
        return event

    def wait(self, lane: Lane, event: ScriptedEvent, *, is_needed: bool) -> None:
        assert lane is not Lane.COMPUTE, "nothing makes the forward pass wait"
        self._put(lane, _Wait(event, is_needed))

    def query(self, event: ScriptedEvent) -> bool:
        self.before("query", None)
        return self._has_completed(event)

    @staticmethod
    def _has_completed(event: ScriptedEvent) -> bool:
        if event.has_ended and event.error is not None:
            raise event.error
        return event.has_ended

    def synchronize(self, event: ScriptedEvent, timeout_s: float) -> bool:
        self.before("synchronize", None)
        until = monotonic() + timeout_s
        with self._changed:
            while not event.has_ended and (left := until - monotonic()) > 0:
                self._changed.wait(left)
        return self._has_completed(event)

    def listen(self, listener: Listener) -> None:
        self._listener = listener

    def copy_now(self, target: Rows, source: Rows) -> None:
        self.before("copy_now", None)
        self._check(target.buffer, source.buffer)
        self._count("copy_now", None)
        self._strike_now("copy_now", None)
        self._cpu.copy_now(target, source)

    def tensor(self, rows: Rows, keep: object) -> Tensor:
        return self._cpu.tensor(rows, keep)

    def own(self, tensor: Tensor) -> Tensor:
        return self._cpu.own(tensor)

    def cut(self, rows: Rows) -> Tensor:
        return self._cpu.cut(rows)

    def close(self, timeout_s: float) -> None:
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()
        if self._thread is not None and self._thread is not current_thread():
            self._thread.join(timeout_s)


def _hear_nothing() -> None:
    """Nobody listens yet."""


def _let_pass(kind: str, lane: Lane | None) -> None:
    """Nothing is in the way."""
