"""Duties 6 to 9: what is over at the call, threads, the listener, the end."""

import gc
import threading
import time
import weakref
from collections.abc import Callable
from functools import partial
from typing import Any, Final

import numpy as np

from tenure.backends.conformance.orders import LOAD, busy, load
from tenure.backends.conformance.registry import check
from tenure.backends.conformance.rig import HOST, ROWS, CheckFailedError, Held, OutOfTimeError, Rig, index_of
from tenure.backends.device import Event, Lane, Memory, Rows
from tenure.core.errors import OperationFailedError

GRACE_S: Final = 1.0
"""How long a listener may take to be told that nothing is left to run."""


class Keep:
    """Something to be kept alive."""


@check("D6.copy-now-is-over", "`copy_now` is over when it returns")
def copy_now_is_over(rig: Rig) -> None:
    """Between all host memory; and it writes no other row."""
    for origin in HOST:
        for aim in HOST:
            source, target = rig.put(origin, rig.values()), rig.put(aim, rig.values())
            rig.device.copy_now(Rows(target.buffer, 3, 9), Rows(source.buffer, 1, 7))
            expected = target.values.copy()
            expected[3:9] = source.values[1:7]
            rig.expect_now(target, expected, f"copy_now from {origin.name} to {aim.name}")


@check("D6.tensor-shares-memory", "`tensor` is a tensor over the same memory")
def tensor_shares_memory(rig: Rig) -> None:
    """What is written behind it is seen through it."""
    held, other = rig.put(Memory.PAGEABLE, rig.values()), rig.put(Memory.PAGEABLE, rig.values())
    tensor = rig.device.tensor(Rows(held.buffer, 2, 6), None)
    rig.device.copy_now(Rows(held.buffer, 2, 6), Rows(other.buffer, 0, 4))
    rig.same(other.values[:4], np.array(rig.bench.read(tensor)), "a tensor over rows that were written since")


@check("D6.tensor-keeps-alive", "what is made from a tensor without copying keeps `keep` alive, and nothing else does")
def tensor_keeps_alive(rig: Rig) -> None:
    """A slice of it alone."""
    held = rig.put(Memory.PAGEABLE, rig.values())
    keep = Keep()
    kept = weakref.ref(keep)
    tensor: Any = rig.device.tensor(held.rows, keep)
    part: Any = tensor[2:5]
    del keep, tensor
    gc.collect()
    rig.require(kept() is not None, "a slice of a tensor is there, and what it keeps alive is gone")
    rig.same(held.values[2:5], np.array(rig.bench.read(part)), "a slice of a tensor")
    del part
    gc.collect()
    rig.require(kept() is None, "nothing that was made from a tensor is left, and what it kept alive is still there")


@check("D6.own-and-cut-are-copies", "`own` and `cut` have memory of their own, and are over when they return")
def own_and_cut_are_copies(rig: Rig) -> None:
    """What is written to the rows afterwards is not seen through them."""
    held, other = rig.put(Memory.PAGEABLE, rig.values()), rig.put(Memory.PAGEABLE, rig.values())
    cut = rig.device.cut(Rows(held.buffer, 1, 9))
    owned = rig.device.own(rig.device.tensor(Rows(held.buffer, 1, 9), None))
    rig.device.copy_now(held.rows, other.rows)
    rig.same(held.values[1:9], np.array(rig.bench.read(cut)), "a cut of rows that were written since")
    rig.same(held.values[1:9], np.array(rig.bench.read(owned)), "own of rows that were written since")


# --- Threads --------------------------------------------------------------------------------------------------------


def beside(rig: Rig, works: list[Callable[[], object]]) -> None:
    """Do several things on threads of their own, and raise what the first of them raised."""
    errors: list[BaseException] = []

    def run(work: Callable[[], object]) -> None:
        try:
            work()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(work,), daemon=True) for work in works]
    until = time.monotonic() + rig.timeout_s
    for each in threads:
        each.start()
    for each in threads:
        each.join(max(until - time.monotonic(), 0.0))
    if errors:
        raise errors[0]
    if any(each.is_alive() for each in threads):
        raise OutOfTimeError(f"calls from several threads did not return in {rig.timeout_s} s")


@check("D7.any-thread", "every method may be called from any thread, one thread at a time for one lane")
def any_thread(rig: Rig) -> None:
    """Three lanes at work from three threads, and memory that comes and goes on a fourth."""
    device = rig.device
    index = index_of(list(range(ROWS))[::-1])
    jobs: list[tuple[Lane, Held, list[Held]]] = []
    for lane in (Lane.COPY, Lane.POOL, Lane.GATHER):
        source = rig.put(Memory.DEVICE if lane is Lane.COPY else Memory.PAGEABLE, rig.values())
        jobs.append((lane, source, [rig.put(Memory.PAGEABLE, rig.values()) for _ in range(3)]))

    def work(lane: Lane, source: Held, targets: list[Held]) -> None:
        for _ in range(30):
            for each in targets:
                device.copy(lane, each.rows, source.rows)
                device.gather_rows(lane, each.rows, source.buffer, index)
            rig.end(lane)

    def allocate() -> None:
        for _ in range(100):
            buffer = device.allocate(Memory.PAGEABLE, ROWS, (3,), "float32")
            device.describe(device.tensor(Rows(buffer, 0, ROWS), None))
            device.free(buffer)

    beside(rig, [*(partial(work, *job) for job in jobs), allocate])
    for lane, source, targets in jobs:
        for each in targets:
            rig.expect(each, source.values[::-1].copy(), f"lane {lane.name}, asked from a thread of its own")


# --- Listening ------------------------------------------------------------------------------------------------------


@check("D8.listener-is-told", "whenever an event that was open at the call may have completed, the listener is called")
def listener_is_told(rig: Rig) -> None:
    """Nobody asks the device meanwhile; and when it is closed, it is too late."""
    told = threading.Event()
    seen: list[bool] = []
    device = rig.device
    loads = {lane: load(rig, lane) for lane in (Lane.COPY, Lane.POOL, Lane.GATHER)}
    device.listen(told.set)
    for lane, (sources, targets) in loads.items():
        for _ in range(4):
            told.clear()
            busy(rig, lane, sources, targets)
            event = device.record(lane)
            if device.query(event):
                continue
            until = time.monotonic() + rig.timeout_s
            is_over = False
            while not is_over:
                if not told.wait(GRACE_S) and device.query(event):
                    # Once more, for what came in between.
                    rig.require(told.wait(GRACE_S), f"an event of lane {lane.name} has completed, and nobody was told")
                told.clear()
                is_over = device.query(event)
                if time.monotonic() > until:
                    raise OutOfTimeError(f"an event of lane {lane.name} did not complete in {rig.timeout_s} s")
            seen.append(is_over)


@check("D8.listener-may-take-its-time", "the listener is called with no lock held, on a thread that no lane waits for")
def listener_may_take_its_time(rig: Rig) -> None:
    """While it stands, others ask the device for more; and it asks itself."""
    device = rig.device
    entered, may_go = threading.Event(), threading.Event()
    (sources, targets), pool = load(rig, Lane.COPY), rig.put(Memory.PAGEABLE, rig.values())
    other = rig.put(Memory.PAGEABLE, rig.values())
    first, second = rig.put(Memory.PAGEABLE, rig.values()), rig.put(Memory.PAGEABLE, rig.values())
    errors: list[BaseException] = []

    def listener() -> None:
        if entered.is_set():
            return
        entered.set()
        try:
            device.copy(Lane.GATHER, other.rows, pool.rows)
            device.query(device.record(Lane.GATHER))
            device.free(device.allocate(Memory.PAGEABLE, 1, (), "uint8"))
        except BaseException as error:
            errors.append(error)
        # Longer than others wait for calls to return.
        may_go.wait(2 * rig.timeout_s)

    def ask() -> None:
        for _ in range(LOAD):
            device.copy(Lane.POOL, second.rows, first.rows)
            device.query(device.record(Lane.POOL))
            device.free(device.allocate(Memory.PAGEABLE, 1, (), "uint8"))

    is_open: list[Event] = []
    device.listen(listener)
    try:
        _beside_listener(rig, lambda: is_open.extend(_open_events(rig, sources, targets)))
        if not is_open and not entered.is_set():
            return
        if not entered.wait(rig.timeout_s):
            raise OutOfTimeError("the listener was not called")
        _beside_listener(rig, ask)
    finally:
        may_go.set()
    if errors:
        raise CheckFailedError(f"the listener asked the device for more, and it raised {errors[0]!r}")
    for lane in (Lane.COPY, Lane.POOL, Lane.GATHER):
        rig.end(lane)


def _open_events(rig: Rig, sources: list[Held], targets: list[Held]) -> list[Event]:
    """An event that was open when it was recorded, if there is one."""
    for _ in range(4):
        busy(rig, Lane.COPY, sources, targets)
        event = rig.device.record(Lane.COPY)
        if not rig.device.query(event):
            return [event]
    return []


def _beside_listener(rig: Rig, calls: Callable[[], object]) -> None:
    """Fail unless calls return, whatever the listener is at."""
    try:
        beside(rig, [calls])
    except OutOfTimeError:
        raise CheckFailedError("calls do not return while the listener takes its time") from None


# --- The end --------------------------------------------------------------------------------------------------------


@check("D9.close-ends-threads", "`close` returns when no thread of the device is left, and told again does nothing")
def close_ends_threads(rig: Rig) -> None:
    """Of a device that has worked, with work left, and of one that never did."""
    for has_work in (False, True):
        before = set(threading.enumerate())
        bench = rig.make()
        device = bench.device
        if has_work:
            other = Rig(bench, rig.seed, rig.timeout_s, rig.make)
            sources, targets = load(other, Lane.COPY)
            busy(other, Lane.COPY, sources, targets)
            device.record(Lane.COPY)
        began = time.monotonic()
        device.close(rig.timeout_s)
        if time.monotonic() - began > rig.timeout_s + GRACE_S:
            raise CheckFailedError(f"`close` took longer than the {rig.timeout_s} s that it was given")
        left = [each.name for each in set(threading.enumerate()) - before]
        rig.require(not left, f"`close` has returned, and threads are left: {', '.join(left)}")
        device.close(rig.timeout_s)


@check(
    "D9.held-memory-outlives-close", "allocate of pageable memory, free, copy_now, tensor, own, cut work after close"
)
def held_memory_outlives_close(rig: Rig) -> None:
    """Rows that callers still hold."""
    device = rig.device
    held, target = rig.put(Memory.PAGEABLE, rig.values()), rig.put(Memory.PAGEABLE, rig.values())
    device.close(rig.timeout_s)
    try:
        device.copy_now(target.rows, held.rows)
        rig.expect_now(target, held.values, "copy_now after close")
        fresh = device.allocate(Memory.PAGEABLE, ROWS, (3,), "float32")
        device.copy_now(Rows(fresh, 0, ROWS), held.rows)
        found = rig.bench.read(device.own(device.tensor(Rows(fresh, 0, ROWS), None)))
        rig.same(held.values, np.array(found), "own of a tensor after close")
        device.free(fresh)
    except OperationFailedError as error:
        raise CheckFailedError(f"after close: {error}") from None
