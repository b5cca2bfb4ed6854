"""Devices with one fault each, and the check that must notice it."""

import math
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType
from typing import Any, Final, NamedTuple

import numpy as np

from tenure.backends.capabilities import Capability
from tenure.backends.cpu import CpuDevice
from tenure.backends.cpu.arrays import STORAGE
from tenure.backends.cpu.device import CpuBuffer
from tenure.backends.cpu.worker import CpuEvent
from tenure.backends.device import Device, Lane, Listener, Memory, Rows
from tenure.backends.fake import FailingDevice, Seeded
from tenure.backends.fake.operations import FakeEvent, Wait
from tenure.backends.leftovers import is_list
from tenure.core.arrays import Integers
from tenure.core.errors import OperationFailedError


class Broken(NamedTuple):
    """A fault.

    Attributes:
        make: makes a device that has it.
        check: the check that must fail.
        words: part of its message.
        capabilities: what the device claims.
    """

    make: Callable[[Mapping[str, Any]], Device]
    check: str
    words: str
    capabilities: frozenset[Capability] = frozenset()


class Inline(CpuDevice):
    """The CPU device inline, with numpy arrays."""

    def __init__(self) -> None:
        super().__init__(worker=False, tensors="numpy")


class Worker(CpuDevice):
    """The CPU device with a worker, with numpy arrays."""

    def __init__(self) -> None:
        super().__init__(worker=True, tensors="numpy")


class Emulated(FailingDevice):
    """The emulated accelerator, which says nothing of what it finds."""

    def __init__(self, options: Mapping[str, Any]) -> None:
        super().__init__(Seeded(options["seed"]), is_driven=options["is_controlled"])

    def _found(self, findings: list[Any]) -> None:
        del findings


# --- Duties 1 to 3 --------------------------------------------------------------------------------------------------


class LaneInPairs(Inline):
    """Every second copy of a lane overtakes the one before it."""

    def __init__(self) -> None:
        super().__init__()
        self._kept: dict[Lane, deque[Callable[[], None]]] = {lane: deque() for lane in Lane}

    def copy(self, lane: Lane, target: Rows, source: Rows) -> None:
        kept = self._kept[lane]
        kept.append(partial(super().copy, lane, target, source))
        if len(kept) == 2:
            kept.pop()()
            kept.pop()()

    def record(self, lane: Lane) -> CpuEvent:
        while self._kept[lane]:
            self._kept[lane].popleft()()
        return super().record(lane)


class LateCompute(Inline):
    """Live outputs are read when the event is asked for."""

    def __init__(self) -> None:
        super().__init__()
        self._kept: list[Callable[[], None]] = []

    def copy(self, lane: Lane, target: Rows, source: Rows) -> None:
        if lane is Lane.COMPUTE:
            self._kept.append(partial(super().copy, lane, target, source))
        else:
            super().copy(lane, target, source)

    def record(self, lane: Lane) -> CpuEvent:
        while self._kept:
            self._kept.pop(0)()
        return super().record(lane)


class SharedLeftover(Inline):
    """What is copied to the host is the tensor itself."""

    def to_host(self, lane: Lane, tensor: Any) -> Any:
        return tensor


class EarlyEvent(Worker):
    """Every event has completed as soon as it is recorded."""

    def query(self, event: CpuEvent) -> bool:
        super().query(event)
        return True


class EventOfTheNextOperation(Emulated):
    """An event completes one operation early."""

    def record(self, lane: Lane) -> FakeEvent:
        event = super().record(lane)
        with self._lock:
            items = self._lanes[lane]
            if len(items) > 1 and not event.has_ended:
                items[-1], items[-2] = items[-2], items[-1]
        return event


class NoWait(Emulated):
    """Lanes wait for nothing."""

    def wait(self, lane: Lane, event: FakeEvent, *, is_needed: bool) -> None:
        if event.error is not None:
            super().wait(lane, event, is_needed=is_needed)


class WaitsForWhatItNeeds(Emulated):
    """A wait without is_needed is none."""

    def wait(self, lane: Lane, event: FakeEvent, *, is_needed: bool) -> None:
        if is_needed:
            super().wait(lane, event, is_needed=is_needed)


class LastWaitAlone(Emulated):
    """Of waits in a row only the last holds."""

    def wait(self, lane: Lane, event: FakeEvent, *, is_needed: bool) -> None:
        with self._lock:
            items = self._lanes[lane]
            if items and isinstance(items[-1], Wait):
                items.pop()
        super().wait(lane, event, is_needed=is_needed)


class ImpatientWaits(Emulated):
    """A lane that waits while others make so many moves goes on."""

    PATIENCE = 8

    def __init__(self, options: Mapping[str, Any]) -> None:
        super().__init__(options)
        # By lane what it waits at, and since which move.
        self._since: dict[Lane, tuple[Wait, int]] = {}

    def advance(self, lane: Lane, *, fails: bool = False) -> None:
        super().advance(lane, fails=fails)
        with self._lock:
            for each, items in self._lanes.items():
                head = items[0] if items else None
                if not isinstance(head, Wait):
                    continue
                known, since = self._since.get(each, (None, 0))
                if known is not head:
                    self._since[each] = head, self.moves
                elif self.moves - since > self.PATIENCE:
                    items.popleft()
                    self._pass_marks(each)


class NoComputeWait(Emulated):
    """The forward pass waits for nothing."""

    def wait(self, lane: Lane, event: FakeEvent, *, is_needed: bool) -> None:
        if lane is not Lane.COMPUTE:
            super().wait(lane, event, is_needed=is_needed)


class EventForgets(Inline):
    """An event that was asked about is as if it had never completed."""

    def __init__(self) -> None:
        super().__init__()
        self._asked: set[int] = set()
        self._events: list[Any] = []

    def record(self, lane: Lane) -> Any:
        super().record(lane)
        event = CpuEvent()
        self._events.append(event)
        return event

    def query(self, event: Any) -> bool:
        is_first = id(event) not in self._asked
        self._asked.add(id(event))
        return is_first


class OneLane(Emulated):
    """Two lanes are one."""

    def copy(self, lane: Lane, target: Rows, source: Rows) -> None:
        super().copy(Lane.POOL if lane is Lane.GATHER else lane, target, source)

    def record(self, lane: Lane) -> FakeEvent:
        return super().record(Lane.POOL if lane is Lane.GATHER else lane)


# --- Duty 4 ---------------------------------------------------------------------------------------------------------


class FailureForgotten(Inline):
    """What stands behind a failure is done."""

    def copy(self, lane: Lane, target: Rows, source: Rows) -> None:
        array: Any = target.buffer.array[target.start : target.stop]
        array[...] = source.buffer.array[source.start : source.stop]


class FailureStays(Inline):
    """A lane that has failed once fails for ever."""

    def __init__(self) -> None:
        super().__init__()
        self._failed: dict[Lane, CpuEvent] = {}

    def record(self, lane: Lane) -> CpuEvent:
        event = super().record(lane)
        if event.error is not None:
            self._failed[lane] = event
        return self._failed.get(lane, event)


class FailureNotPassedOn(Inline):
    """A wait does not care how its event ended."""

    def wait(self, lane: Lane, event: CpuEvent, *, is_needed: bool) -> None:
        super().wait(lane, event, is_needed=False)


class FailureAlwaysPassedOn(Inline):
    """A wait fails with its event, needed or not."""

    def wait(self, lane: Lane, event: CpuEvent, *, is_needed: bool) -> None:
        super().wait(lane, event, is_needed=True)


class FailureSwallowed(Inline):
    """No event ever fails."""

    def record(self, lane: Lane) -> CpuEvent:
        super().record(lane)
        return CpuEvent()


# --- Duties 5 and 6 -------------------------------------------------------------------------------------------------


class GatherTooFar(Inline):
    """A gather writes one row too many."""

    def gather_rows(self, lane: Lane, target: Rows, source: CpuBuffer, index: Integers) -> None:
        super().gather_rows(lane, target, source, index)
        if 0 < target.stop < len(target.buffer.array) and len(source.array):
            target.buffer.array[target.stop] = source.array[0]


class LongGatherTooFar(Inline):
    """A gather of many rows writes one row too many."""

    def gather_rows(self, lane: Lane, target: Rows, source: CpuBuffer, index: Integers) -> None:
        super().gather_rows(lane, target, source, index)
        if len(index) > 1000 and target.stop < len(target.buffer.array):
            target.buffer.array[target.stop] = source.array[index[-1]]


class LentTwiceAfterFailure(Inline):
    """When something has failed, page-locked memory that is in use is lent again."""

    def __init__(self) -> None:
        super().__init__()
        self._last: CpuBuffer | None = None
        self._has_failed = False

    def fail(self, lane: Lane) -> None:
        super().fail(lane)
        self._has_failed = True

    def allocate(self, memory: Memory, rows: int, row_shape: tuple[int, ...], dtype: str) -> CpuBuffer:
        buffer, last = super().allocate(memory, rows, row_shape, dtype), self._last
        if memory is Memory.PAGE_LOCKED:
            if self._has_failed and last is not None and last.array.shape == buffer.array.shape:
                buffer = CpuBuffer(last.array, dtype)
            self._last = buffer
        return buffer


class ScatterInOrder(Inline):
    """A scatter takes no notice of its index."""

    def scatter_rows(self, lane: Lane, target: CpuBuffer, index: Integers, source: Rows) -> None:
        super().scatter_rows(lane, target, np.sort(index), source)


class ZeroOfEverything(Inline):
    """Zeroing some rows zeroes the buffer."""

    def zero_rows(self, lane: Lane, target: Rows) -> None:
        super().zero_rows(lane, Rows(target.buffer, 0, len(target.buffer.array)))


class IndexFromItsStart(Inline):
    """An index that is a view is read as if it were all of its memory."""

    def gather_rows(self, lane: Lane, target: Rows, source: CpuBuffer, index: Integers) -> None:
        base = index if index.base is None else np.asarray(index.base)
        super().gather_rows(lane, target, source, base[: len(index)])


class ShapeOfOne(Inline):
    """Rows without elements get one."""

    def allocate(self, memory: Memory, rows: int, row_shape: tuple[int, ...], dtype: str) -> CpuBuffer:
        return super().allocate(memory, rows, tuple(max(size, 1) for size in row_shape), dtype)


class HalfIsFloat(Inline):
    """float16 is kept as bfloat16 is."""

    def allocate(self, memory: Memory, rows: int, row_shape: tuple[int, ...], dtype: str) -> CpuBuffer:
        return super().allocate(memory, rows, row_shape, "float32" if dtype == "float16" else dtype)


class FreedWhileInUse(Inline):
    """The memory of every new buffer is that of the one before the last, freed or not."""

    def __init__(self) -> None:
        super().__init__()
        self._made: dict[tuple[int, tuple[int, ...], str], deque[CpuBuffer]] = {}

    def allocate(self, memory: Memory, rows: int, row_shape: tuple[int, ...], dtype: str) -> CpuBuffer:
        made = self._made.setdefault((rows, row_shape, dtype), deque(maxlen=5))
        array = made[0].array if len(made) == 5 else super().allocate(memory, rows, row_shape, dtype).array
        made.append(CpuBuffer(array, dtype))
        return made[-1]


class ListIsTensor(Inline):
    """A list is described as a tensor."""

    def describe(self, value: object) -> tuple[tuple[int, ...], str] | None:
        return ((len(value),), "float32") if is_list(value) else super().describe(value)


class LateCopyNow(Worker):
    """What is to be over at the call is done by the worker."""

    def copy_now(self, target: Rows, source: Rows) -> None:
        self._lanes.do(Lane.POOL, "dawdle", time.sleep, 0.05)
        self.copy(Lane.POOL, target, source)


class CutIsView(Inline):
    """A cut has no memory of its own."""

    def cut(self, rows: Rows) -> Any:
        return self.tensor(rows, None)


class TensorIsCopy(Inline):
    """A tensor has memory of its own."""

    def tensor(self, rows: Rows, keep: object) -> Any:
        return super().tensor(rows, keep).copy()


class TensorKeepsNothing(Inline):
    """Nothing is kept alive."""

    def tensor(self, rows: Rows, keep: object) -> Any:
        return super().tensor(rows, None)


class TensorKeepsForEver(Inline):
    """Everything is kept alive for ever."""

    def __init__(self) -> None:
        super().__init__()
        self._kept: list[object] = []

    def tensor(self, rows: Rows, keep: object) -> Any:
        self._kept.append(keep)
        return super().tensor(rows, keep)


# --- Duties 7 to 9 --------------------------------------------------------------------------------------------------


class OneThreadOnly(Inline):
    """Only the thread that asked first may ask."""

    def __init__(self) -> None:
        super().__init__()
        self._first: threading.Thread | None = None

    def allocate(self, memory: Memory, rows: int, row_shape: tuple[int, ...], dtype: str) -> CpuBuffer:
        self._first = self._first or threading.current_thread()
        assert self._first is threading.current_thread()
        return super().allocate(memory, rows, row_shape, dtype)


class Deaf(Worker):
    """Nobody is told anything."""

    def listen(self, listener: Listener) -> None:
        del listener


class TellsUnderLock(Worker):
    """The listener is called with a lock held that every call takes."""

    def __init__(self) -> None:
        super().__init__()
        self._one_at_a_time = threading.RLock()

    def listen(self, listener: Listener) -> None:
        def told() -> None:
            with self._one_at_a_time:
                listener()

        super().listen(told)

    def query(self, event: CpuEvent) -> bool:
        with self._one_at_a_time:
            return super().query(event)


class LeavesThread(Worker):
    """`close` does not wait for its thread."""

    def close(self, timeout_s: float) -> None:
        if not hasattr(self, "_timer"):
            # Long enough that whoever looks at once sees it, on the slowest machine.
            self._timer = threading.Timer(3.0, super().close, [timeout_s])
            self._timer.daemon = True
            self._timer.start()


class ClosesTwiceBadly(Inline):
    """It must be closed only once."""

    def __init__(self) -> None:
        super().__init__()
        self._is_closed = False

    def close(self, timeout_s: float) -> None:
        assert not self._is_closed
        self._is_closed = True


class NothingAfterClose(Inline):
    """A closed device has no memory."""

    def __init__(self) -> None:
        super().__init__()
        self._is_closed = False

    def copy_now(self, target: Rows, source: Rows) -> None:
        if not self._is_closed:
            super().copy_now(target, source)

    def close(self, timeout_s: float) -> None:
        self._is_closed = True


# --- Found by the layer above ---------------------------------------------------------------------------------------


class ReadsSwapped(Inline):
    """Gathers of more than two rows take the last two the wrong way round."""

    def gather_rows(self, lane: Lane, target: Rows, source: CpuBuffer, index: Integers) -> None:
        swapped = index.copy()
        if len(swapped) > 2:
            swapped[-2:] = swapped[-2:][::-1]
        super().gather_rows(lane, target, source, swapped)


class FewRows(Inline):
    """Rows behind the 4096th are not copied."""

    def copy(self, lane: Lane, target: Rows, source: Rows) -> None:
        count = min(source.stop - source.start, 4096)
        target, source = (Rows(each.buffer, each.start, each.start + count) for each in (target, source))
        super().copy(lane, target, source)


class ShortIndex(Inline):
    """Indexes have 15 bits."""

    def gather_rows(self, lane: Lane, target: Rows, source: CpuBuffer, index: Integers) -> None:
        super().gather_rows(lane, target, source, index % 2**15)


class FewScattered(Inline):
    """Rows behind the 4096th are not scattered."""

    def scatter_rows(self, lane: Lane, target: CpuBuffer, index: Integers, source: Rows) -> None:
        source = Rows(source.buffer, source.start, min(source.stop, source.start + 4096))
        super().scatter_rows(lane, target, index[:4096], source)


class BytesInARow(Inline):
    """Live outputs are read from their first address on."""

    def live(self, name: str, tensor: Any) -> CpuBuffer:
        buffer = super().live(name, tensor)
        step = buffer.array.itemsize
        strides = tuple(step * math.prod(buffer.array.shape[place + 1 :]) for place in range(buffer.array.ndim))
        whole = buffer.array if buffer.array.base is None else buffer.array.base
        return CpuBuffer(np.ndarray(buffer.array.shape, buffer.array.dtype, whole, strides=strides), buffer.dtype)


class LeftoversAreNumbers(Inline):
    """Truth values come to the host as numbers."""

    def to_host(self, lane: Lane, tensor: Any) -> Any:
        copy = super().to_host(lane, tensor)
        return copy.astype(np.uint8) if copy.dtype == np.bool_ else copy


class OwnsOnlyWhatIsDense(Inline):
    """Of a view no copy is made."""

    def own(self, tensor: Any) -> Any:
        return super().own(tensor) if tensor.flags.c_contiguous else tensor


class OutOfMemory(Inline):
    """What there is not is refused by an error of the language."""

    def allocate(self, memory: Memory, rows: int, row_shape: tuple[int, ...], dtype: str) -> CpuBuffer:
        return CpuBuffer(np.empty((rows, *row_shape), STORAGE[dtype]), dtype)


class CountsWhatItRefuses(Inline):
    """A budget of which what is refused takes its part."""

    def __init__(self) -> None:
        super().__init__()
        self.left = 2**60

    def allocate(self, memory: Memory, rows: int, row_shape: tuple[int, ...], dtype: str) -> CpuBuffer:
        self.left -= rows * math.prod(row_shape)
        if self.left < 0:
            raise OperationFailedError("allocate", "nothing is left")
        return super().allocate(memory, rows, row_shape, dtype)


def _of(kind: Callable[[], CpuDevice]) -> Callable[[Mapping[str, Any]], Any]:
    return lambda _: kind()


FAULTS: Final = frozenset({Capability.FAULTS})
CONTROLLED: Final = frozenset({Capability.CONTROLLED})


class PassesNoOldFailureOn(Emulated):
    """A wait for an event that has failed already is none."""

    def wait(self, lane: Lane, event: FakeEvent, *, is_needed: bool) -> None:
        super().wait(lane, event, is_needed=is_needed and not (event.has_ended and event.error))


class OldFailureAlwaysPassedOn(Emulated):
    """A wait for an event that has failed already always needs it."""

    def wait(self, lane: Lane, event: FakeEvent, *, is_needed: bool) -> None:
        super().wait(lane, event, is_needed=is_needed or bool(event.has_ended and event.error))


class NeverFails(Emulated):
    """An operation that should fail does nothing."""

    def fail(self, lane: Lane) -> None:
        del lane


BROKEN: Final[Mapping[str, Broken]] = MappingProxyType(
    {
        "lanes out of order": Broken(_of(LaneInPairs), "D1.lanes-in-order", "over each other"),
        "the forward pass is not waited for": Broken(_of(LateCompute), "D2.compute-reads-at-the-call", "overwritten"),
        "leftovers are not copied": Broken(_of(SharedLeftover), "D2.to-host-reads-at-the-call", "to_host"),
        "events before their operations": Broken(
            _of(EarlyEvent), "D3.event-after-everything-before", "right behind its event"
        ),
        "an event one operation early": Broken(
            EventOfTheNextOperation, "D3.event-waits-for-each-operation", "has completed", CONTROLLED
        ),
        "waits ignored": Broken(NoWait, "D3.wait-orders-lanes", "waits for an event"),
        "waits ignored, controlled": Broken(NoWait, "D3.waiting-lane-stands-still", "goes on", CONTROLLED),
        "waits that need nothing ignored": Broken(
            WaitsForWhatItNeeds, "D3.wait-orders-lanes", "without is_needed, and reads"
        ),
        "the last wait alone": Broken(LastWaitAlone, "D3.every-wait-holds", "comes late"),
        "the forward pass does not wait": Broken(
            NoComputeWait, "D3.wait-orders-the-forward-pass", "frozen onto and copied from"
        ),
        "an event forgets": Broken(_of(EventForgets), "D3.event-completes-once", "then it has not"),
        "two lanes are one": Broken(OneLane, "D1.lanes-apart", "unasked", CONTROLLED),
        "failure forgotten": Broken(_of(FailureForgotten), "D4.failure-passes-over-to-record", "does what", FAULTS),
        "failure stays": Broken(_of(FailureStays), "D4.failure-spares-other-events", "asked to", FAULTS),
        "failure swallowed": Broken(
            _of(FailureSwallowed), "D4.failure-passes-over-to-record", "does not raise", FAULTS
        ),
        "failure not passed on": Broken(_of(FailureNotPassedOn), "D4.wait-passes-failure-on", "needs", FAULTS),
        "old failure not passed on": Broken(
            PassesNoOldFailureOn, "D4.wait-passes-failure-on", "failed by then", FAULTS
        ),
        "old failure always passed on": Broken(
            OldFailureAlwaysPassedOn, "D4.wait-unneeded-goes-on", "does not need", FAULTS
        ),
        "failure always passed on": Broken(
            _of(FailureAlwaysPassedOn), "D4.wait-unneeded-goes-on", "does not need", FAULTS
        ),
        "a gather of one row too far": Broken(_of(GatherTooFar), "D5.only-its-rows", "gather_rows"),
        "a long gather of one row too far": Broken(
            _of(LongGatherTooFar), "D5.sizes", "gather_rows by an index of 5000"
        ),
        "memory lent twice": Broken(
            _of(LentTwiceAfterFailure), "D5.memory-outlives-failures", "operations failed", FAULTS
        ),
        "a scatter in order": Broken(_of(ScatterInOrder), "D5.table-pool", "scatter in lane POOL"),
        "a zeroed buffer": Broken(_of(ZeroOfEverything), "D5.only-its-rows", "zero_rows"),
        "an index read from its start": Broken(_of(IndexFromItsStart), "D5.index-forms", "gather_rows"),
        "few rows are copied": Broken(_of(FewRows), "D5.sizes", "copy of 5000 rows"),
        "an index of few bits": Broken(_of(ShortIndex), "D5.sizes", "gather_rows by an index of"),
        "few rows are scattered": Broken(
            _of(FewScattered), "D5.sizes", "scatter_rows in lane POOL by an index of 5000"
        ),
        "a view is read as its bytes lie": Broken(_of(BytesInARow), "D5.strided-outputs", "of a live output of"),
        "truth values are numbers": Broken(_of(LeftoversAreNumbers), "D5.leftovers-of-any-kind", "tensor of bool"),
        "memory runs out untyped": Broken(_of(OutOfMemory), "D5.more-than-there-is", "MemoryError"),
        "refused memory counts": Broken(_of(CountsWhatItRefuses), "D5.more-than-there-is", "is now refused"),
        "views are not owned": Broken(_of(OwnsOnlyWhatIsDense), "D6.own-of-any-kind", "written since"),
        "rows without elements": Broken(_of(ShapeOfOne), "D5.every-dtype-and-row-shape", "shape (5,1)"),
        "a dtype for another": Broken(_of(HalfIsFloat), "D5.every-dtype-and-row-shape", "float16"),
        "freed memory written": Broken(_of(FreedWhileInUse), "D5.freed-never-touched", "nothing was asked of"),
        "a list is a tensor": Broken(_of(ListIsTensor), "D5.describe", "[1, 2]"),
        "a cut is a view of freed memory": Broken(_of(CutIsView), "D6.own-and-cut-are-copies", "a cut of rows"),
        "copy_now comes late": Broken(_of(LateCopyNow), "D6.copy-now-is-over", "copy_now from"),
        "a tensor is a copy": Broken(_of(TensorIsCopy), "D6.tensor-shares-memory", "written since"),
        "a tensor keeps nothing": Broken(_of(TensorKeepsNothing), "D6.tensor-keeps-alive", "is gone"),
        "a tensor keeps for ever": Broken(_of(TensorKeepsForEver), "D6.tensor-keeps-alive", "still there"),
        "one thread only": Broken(_of(OneThreadOnly), "D7.any-thread", "AssertionError"),
        "the listener is never called": Broken(_of(Deaf), "D8.listener-is-told", "nobody was told"),
        "the listener is called under a lock": Broken(
            _of(TellsUnderLock), "D8.listener-may-take-its-time", "do not return"
        ),
        "close leaves a thread": Broken(_of(LeavesThread), "D9.close-ends-threads", "threads are left"),
        "close only once": Broken(_of(ClosesTwiceBadly), "D9.close-ends-threads", "AssertionError"),
        "nothing after close": Broken(_of(NothingAfterClose), "D9.held-memory-outlives-close", "after close"),
        "reads swapped": Broken(_of(ReadsSwapped), "L1.rows-agree-with-the-oracle", "rows of request"),
        "waits ignored on every edge": Broken(NoWait, "T1.all-edges", "rows of request", CONTROLLED),
        "an event one operation early on every edge": Broken(
            EventOfTheNextOperation, "T1.all-edges", "rows of request", CONTROLLED
        ),
        "a failure that does not fail": Broken(NeverFails, "T1.all-edges", "does not come", CONTROLLED | FAULTS),
        "the lanes are not ordered": Broken(NoWait, "L4.any-order", "history", CONTROLLED),
        "waits given up": Broken(ImpatientWaits, "L5.lagging-lanes", "where the lane", CONTROLLED),
    }
)
"""By what is wrong."""
