"""Executors and devices with one fault each, and what must notice it."""

from collections.abc import Callable, Generator, Mapping
from contextlib import AbstractContextManager, contextmanager
from types import MappingProxyType
from typing import Any, Final, NamedTuple
from unittest.mock import patch

import numpy as np

from tenure.backends import executor as executors
from tenure.backends.device import Lane, Rows
from tenure.backends.executor import Executor
from tenure.backends.fake import FakeDevice
from tenure.backends.fake.lanes import FakeLanes
from tenure.backends.fake.operations import FakeEvent, Operation
from tenure.backends.gathers import Gathers
from tenure.backends.memory import Buffers, Lease
from tenure.backends.storage import Storage
from tenure.core.rows.commands import (
    CopyDeferred,
    CopyPage,
    GatherRows,
    PreserveRows,
    ReleaseBuffers,
    ScatterRows,
)
from tenure.core.rows.events import CopyCompleted, GatherCompleted, ScatterCompleted

RACE, CONTENT, POISON, FREED, DEADLOCK, LEFT = (
    "race",
    "hands",
    "poison",
    "use after free",
    "R11",
    "R18",
)


class RaceMutant(NamedTuple):
    """A fault.

    Attributes:
        plant: while it is entered, the fault is there.
        words: one of these is in what is found.
        why: what is wrong with it.
    """

    plant: Callable[[], AbstractContextManager[Any]]
    words: tuple[str, ...]
    why: str


def own(owner: type[Any], name: str) -> Any:
    """A method that is its class's own."""
    return getattr(owner, name)


# --- Waits and events -------------------------------------------------------------------------------------------------

_wait, _record, _query = FakeDevice.wait, FakeDevice.record, FakeDevice.query


def _no_wait(lane: Lane) -> Callable[[], AbstractContextManager[Any]]:
    def wait(self: FakeDevice, on: Lane, event: FakeEvent, *, is_needed: bool) -> None:
        if on is not lane:
            _wait(self, on, event, is_needed=is_needed)

    return lambda: patch.object(FakeDevice, "wait", wait)


def _wrong_lane(wrong: Lane, instead: Lane) -> Callable[[], AbstractContextManager[Any]]:
    def record(self: FakeDevice, lane: Lane) -> FakeEvent:
        return _record(self, instead if lane is wrong else lane)

    return lambda: patch.object(FakeDevice, "record", record)


def _waits_for_the_event_before() -> AbstractContextManager[Any]:
    last: dict[int, FakeEvent] = {}

    def record(self: FakeDevice, lane: Lane) -> FakeEvent:
        event = _record(self, lane)
        # Two events of a lane that nobody put an operation between would be one.
        last[id(event)] = event
        return event

    def wait(self: FakeDevice, lane: Lane, event: FakeEvent, *, is_needed: bool) -> None:
        events = [each for each in last.values() if each.lane is event.lane]
        place = next(number for number, each in enumerate(events) if each is event)
        _wait(self, lane, events[place - 1] if place else FakeEvent(), is_needed=is_needed)

    return _both(patch.object(FakeDevice, "record", record), patch.object(FakeDevice, "wait", wait))


@contextmanager
def _both(*planted: AbstractContextManager[Any]) -> Generator[None]:
    with planted[0], planted[1]:
        yield


def _never_recorded(lane: Lane) -> Callable[[], AbstractContextManager[Any]]:
    def record(self: FakeDevice, on: Lane) -> FakeEvent:
        return FakeEvent() if on is lane else _record(self, on)

    return lambda: patch.object(FakeDevice, "record", record)


def _always_done(self: FakeDevice, event: FakeEvent) -> bool:
    _query(self, event)
    return True


# --- Completions ------------------------------------------------------------------------------------------------------

_poll = Executor.poll
_launch = own(Executor, "_launch")


def _told_at_once(*kinds: type[Any]) -> Callable[[], AbstractContextManager[Any]]:
    """The answer is posted when the work was asked for."""

    def launch(self: Any, command: Any) -> None:
        _launch(self, command)
        if isinstance(command, kinds):
            del self._flights[command.command]
            self._open.pop(command.command)
            self._running -= isinstance(command, GatherRows)
            self._answers.append(command.done)

    return lambda: patch.object(Executor, "_launch", launch)


def _lost(kind: type[Any]) -> Callable[[], AbstractContextManager[Any]]:
    def poll(self: Executor) -> list[Any]:
        return [each for each in _poll(self) if not (isinstance(each, kind) and _number(each) % 7 == 3)]

    return lambda: patch.object(Executor, "poll", poll)


def _twice(kind: type[Any]) -> Callable[[], AbstractContextManager[Any]]:
    def poll(self: Executor) -> list[Any]:
        answers = _poll(self)
        return answers + [each for each in answers if isinstance(each, kind)]

    return lambda: patch.object(Executor, "poll", poll)


def _number(answer: Any) -> int:
    number: int = getattr(answer, "write", 0) or getattr(answer, "read", 0)
    return number


# --- Order and memory -------------------------------------------------------------------------------------------------


def _clones_let_go(self: Any, command: Any) -> None:
    """The clones of a copy are given back as soon as it was asked for."""
    _launch(self, command)
    if isinstance(command, CopyPage):
        numbers = np.array([each.clone for each in command.clones], dtype=np.int64)
        self.storage.release(ReleaseBuffers(0, Lane.POOL, (), numbers, (), ()))


_held: dict[int, list[Any]] = {}


def _behind_the_next_scatter(*kinds: type[Any]) -> Callable[[], AbstractContextManager[Any]]:
    """Commands of these kinds are carried out only when a later scatter was."""

    def launch(self: Any, command: Any) -> None:
        held = _held.setdefault(id(self), [])
        if isinstance(command, kinds) and not held:
            held.append(command)
            return
        _launch(self, command)
        if isinstance(command, ScatterRows) and held:
            _launch(self, held.pop())

    def plant() -> AbstractContextManager[Any]:
        _held.clear()
        return patch.object(Executor, "_launch", launch)

    return plant


def _scratch_let_go(self: Any) -> list[Lease]:
    self._scratch = []
    return []


def _aside_let_go(self: Any, command: Any) -> None:
    _launch(self, command)
    if isinstance(command, GatherRows):
        self.storage._asides.pop(command.read, None)


_lease = Buffers.lease


def _lent_twice(self: Any, *arguments: Any) -> Lease:
    lease = _lease(self, *arguments)
    self._idle.setdefault(lease.kind, []).append(lease.buffer)
    self._idle_bytes += lease.kind.bytes
    return lease


_ask = own(FakeLanes, "_ask")


def _last_first(self: Any, lane: Lane, *arguments: Any) -> None:
    """Of two operations of a gather the later one runs first."""
    _ask(self, lane, *arguments)
    items = self._lanes[lane]
    if lane is Lane.GATHER and len(items) > 1 and isinstance(items[-2], Operation):
        items[-1], items[-2] = items[-2], items[-1]


_copy_rows = own(Executor, "_copy")


def _frozen_in_another_lane(self: Any, lane: Lane, *arguments: Any) -> None:
    _copy_rows(self, Lane.COPY if lane is Lane.COMPUTE else lane, *arguments)


def _first_rows_alone(self: Any, lane: Lane, target: Rows, source: Rows, *more: Any) -> None:
    count = max(target.stop - target.start - 1, 1)
    short = (
        Rows(target.buffer, target.start, target.start + count),
        Rows(source.buffer, source.start, source.start + count),
    )
    _copy_rows(self, lane, *short, *more)


_copy_deferred = Gathers.copy_deferred


def _chunk_twice(self: Gathers, command: CopyDeferred) -> int:
    starts = command.starts.copy()
    if len(starts) > 1 and command.clones[0] != command.clones[1]:
        clones = command.clones.copy()
        clones[1] = clones[0]
        starts[1] = min(starts[0], starts[1])
        object.__setattr__(command, "clones", clones)
    return _copy_deferred(self, command)


def _no_zeros(self: FakeDevice, lane: Lane, target: Rows) -> None:
    del self, lane, target


_move = own(Gathers, "_move")


def _next_row(self: Any, lane: Lane, lease: Lease, rows: Any, source: Any, source_rows: Any, row_format: Any) -> None:
    wrong = np.minimum(source_rows + 1, len(source.array) - 1)
    _move(self, lane, lease, rows, source, wrong, row_format)


def _left_where_it_is(device: Any, value: Any) -> Any:
    del device
    return value


_gather_part = own(Gathers, "_gather_part")


def _asides_forgotten(self: Any, command: GatherRows, lease: Lease, part: Any) -> None:
    if part.kind.name != "PRESERVED":
        _gather_part(self, command, lease, part)


_tensor = own(FakeDevice, "tensor")


def _kept_by_nobody(self: Any, rows: Rows, keep: object) -> Any:
    del keep
    return _tensor(self, rows, None)


MUTANTS: Final[Mapping[str, RaceMutant]] = MappingProxyType(
    {
        "no-wait-for-the-freeze": RaceMutant(
            _no_wait(Lane.COPY), (RACE,), "A page copy does not wait for the freeze of its step."
        ),
        "no-wait-in-the-pool": RaceMutant(
            _no_wait(Lane.POOL), (RACE,), "A scatter does not wait for gathers that read its rows, nor for preserves."
        ),
        "no-wait-in-gathers": RaceMutant(
            _no_wait(Lane.GATHER), (RACE,), "A gather waits neither for a scatter nor for what is set aside for it."
        ),
        "event-of-another-lane": RaceMutant(
            _wrong_lane(Lane.COPY, Lane.POOL),
            (RACE, POISON, CONTENT),
            "The end of a page copy is an event of the pool.",
        ),
        "freeze-event-of-another-lane": RaceMutant(
            _wrong_lane(Lane.COMPUTE, Lane.GATHER), (RACE,), "The event of a freeze is recorded where nothing runs."
        ),
        "gather-event-of-another-lane": RaceMutant(
            _wrong_lane(Lane.GATHER, Lane.COMPUTE),
            (RACE, POISON),
            "The end of a gather is an event of the forward pass.",
        ),
        "scatter-event-of-another-lane": RaceMutant(
            _wrong_lane(Lane.POOL, Lane.COPY), (RACE,), "The end of a scatter is an event of the page copies."
        ),
        "freeze-event-never-recorded": RaceMutant(
            _never_recorded(Lane.COMPUTE), (RACE,), "Whoever waits for a freeze waits for an event that never was."
        ),
        "copy-event-never-recorded": RaceMutant(
            _never_recorded(Lane.COPY),
            (RACE, POISON, CONTENT),
            "A page copy is over as soon as it is asked for.",
        ),
        "waits-for-the-event-before": RaceMutant(
            _waits_for_the_event_before, (RACE,), "Every wait is for the event before the right one."
        ),
        "device-is-always-done": RaceMutant(
            lambda: patch.object(FakeDevice, "query", _always_done),
            (RACE, POISON),
            "The device says that all has ended.",
        ),
        "page-copy-told-at-once": RaceMutant(
            _told_at_once(CopyPage), (RACE, POISON, CONTENT), "A page copy is told to have ended when it was asked for."
        ),
        "gather-told-at-once": RaceMutant(
            _told_at_once(GatherRows), (RACE, POISON), "Hit rows are handed out while they are gathered."
        ),
        "scatter-told-at-once": RaceMutant(
            _told_at_once(ScatterRows), (RACE,), "A page is given back while it is scattered."
        ),
        "page-copy-never-told": RaceMutant(_lost(CopyCompleted), (DEADLOCK, LEFT), "The end of a copy is lost."),
        "gather-never-told": RaceMutant(_lost(GatherCompleted), (DEADLOCK, LEFT), "The end of a gather is lost."),
        "scatter-never-told": RaceMutant(_lost(ScatterCompleted), (DEADLOCK, LEFT), "The end of a scatter is lost."),
        "page-copy-told-twice": RaceMutant(_twice(CopyCompleted), ("cannot take",), "An end is told twice."),
        "clones-let-go": RaceMutant(
            lambda: patch.object(Executor, "_launch", _clones_let_go),
            (RACE, FREED, CONTENT, "AssertionError"),
            "A clone is given back while it is copied.",
        ),
        "preserved-too-late": RaceMutant(
            _behind_the_next_scatter(PreserveRows), (RACE, CONTENT), "Rows are set aside when they are gone."
        ),
        "scatters-swapped": RaceMutant(
            _behind_the_next_scatter(ScatterRows), (CONTENT, DEADLOCK), "Scatters of two steps change places."
        ),
        "scratch-let-go": RaceMutant(
            lambda: patch.object(Storage, "take_scratch", _scratch_let_go),
            (RACE,),
            "Scratch memory is used again at once.",
        ),
        "asides-let-go": RaceMutant(
            lambda: patch.object(Executor, "_launch", _aside_let_go),
            (RACE,),
            "Rows set aside are given back while a gather reads them.",
        ),
        "lent-twice": RaceMutant(
            lambda: patch.object(Buffers, "lease", _lent_twice), (RACE, CONTENT), "A buffer is lent to two at a time."
        ),
        "gather-out-of-order": RaceMutant(
            lambda: patch.object(FakeLanes, "_ask", _last_first),
            (CONTENT, RACE, POISON),
            "The device swaps operations of a lane.",
        ),
        "frozen-in-another-lane": RaceMutant(
            lambda: patch.object(Executor, "_copy", _frozen_in_another_lane),
            (RACE,),
            "Live outputs are read beside the forward pass.",
        ),
        "last-row-not-copied": RaceMutant(
            lambda: patch.object(Executor, "_copy", _first_rows_alone),
            (POISON, CONTENT),
            "The last row of a copy is missing.",
        ),
        "chunk-copied-twice": RaceMutant(
            lambda: patch.object(Gathers, "copy_deferred", _chunk_twice),
            (CONTENT, FREED),
            "A chunk is copied in another's place.",
        ),
        "no-zeros": RaceMutant(
            lambda: patch.object(FakeDevice, "zero_rows", _no_zeros),
            (POISON, CONTENT),
            "Rows that are absent are not zeros.",
        ),
        "next-row": RaceMutant(
            lambda: patch.object(Gathers, "_move", _next_row),
            (CONTENT, RACE, POISON),
            "A gather takes the row behind the right one.",
        ),
        "leftover-not-copied": RaceMutant(
            lambda: patch.object(executors, "copied_leftover", _left_where_it_is),
            ("leftover",),
            "A leftover is the live output itself.",
        ),
        "view-that-keeps-nothing": RaceMutant(
            lambda: patch.object(FakeDevice, "tensor", _kept_by_nobody),
            ("since it was handed out",),
            "A result's buffer is given back, and used again, while a view of it lives.",
        ),
        "asides-forgotten": RaceMutant(
            lambda: patch.object(Gathers, "_gather_part", _asides_forgotten),
            (POISON, CONTENT),
            "What was set aside is not gathered.",
        ),
    }
)
