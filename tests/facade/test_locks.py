"""No lock is held across a wait, a copy or an allocation, and what threads share may be looked at by any (R19)."""

import gc
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from threading import Event

import numpy as np
import pytest

from tenure import BlockConfig, CacheConfig, Finished, JoinedCache, RowConfig, RowPolicy
from tenure.backends.device import Lane
from tenure.core.blocks.values import Command
from tenure.core.errors import ReadFailedError
from tests.facade.devices import ScriptedDevice
from tests.facade.engine import (
    FIRST,
    FOURTH,
    PATIENCE_S,
    POLICY,
    SECOND,
    THIRD,
    WORKERS,
    Call,
    Engine,
    eventually,
    extended,
    layout_of,
    started,
)

pytestmark = pytest.mark.parametrize("worker", WORKERS, ids=["inline", "threaded"])


class Watch:
    """Locks that know who holds them.

    Attributes:
        taken: how often locks of each place were taken.
        asked: kinds of what was looked at with nothing held.
        waited: waits for a condition.
    """

    def __init__(self) -> None:
        self.held = threading.local()
        self.taken: Counter[str] = Counter()
        self.asked: Counter[str] = Counter()
        self.waited = 0

    def places(self) -> list[str]:
        """Whose locks the calling thread holds."""
        found: list[str] = getattr(self.held, "places", [])
        self.held.places = found
        return found

    def check(self, kind: str, lane: Lane | None = None) -> None:
        """Fail if the calling thread holds anything."""
        assert not self.places(), f"{kind} on {lane} while the locks of {self.places()} are held"
        self.asked[kind] += 1

    def maker(self, place: str) -> "Callable[[], WatchedLock]":
        """What stands in for `Lock` in a module."""
        return lambda: WatchedLock(self, place)


class WatchedLock:
    """A lock of a place."""

    def __init__(self, watch: Watch, place: str) -> None:
        self._lock = threading.Lock()
        self._watch = watch
        self._place = place

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        taken = self._lock.acquire(blocking, timeout)
        if taken:
            self._watch.taken[self._place] += 1
            self._watch.places().append(self._place)
        return taken

    def release(self) -> None:
        self._watch.places().remove(self._place)
        self._lock.release()

    def __enter__(self) -> None:
        self.acquire()

    def __exit__(self, *_: object) -> None:
        self.release()


@pytest.fixture
def watch(monkeypatch: pytest.MonkeyPatch) -> Watch:
    """Every lock of the facade and of the memory below it is watched."""
    watched = Watch()

    class WatchedCondition(threading.Condition):
        def wait(self, timeout: float | None = None) -> bool:
            # A wait lets its own lock go, and no other.
            assert ["runtime"] == watched.places()
            watched.waited += 1
            return super().wait(timeout)

    monkeypatch.setattr("tenure.runtime.Lock", watched.maker("runtime"))
    monkeypatch.setattr("tenure.runtime.Condition", WatchedCondition)
    monkeypatch.setattr("tenure.outbox.Lock", watched.maker("outbox"))
    monkeypatch.setattr("tenure.backends.memory.Lock", watched.maker("memory"))
    monkeypatch.setattr("tenure.backends.storage.Lock", watched.maker("memory"))
    return watched


def test_r19_no_lock_is_held_across_a_wait_a_copy_or_an_allocation(
    worker: bool, watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One slow copy under the state lock stops every request of the engine."""
    monkeypatch.setattr("tenure.backends.memory.IDLE_BYTES_MAX", 0)
    device = ScriptedDevice(worker=worker)
    device.before = watch.check
    with Engine(device=device, pages=3, budget_bytes=200) as engine:
        engine.written("old", (*SECOND, *FIRST), h=list(range(8)), m=[1] * 8, c=list(range(8)))
        device.hold(Lane.POOL, Lane.GATHER)
        ref = [np.zeros(3, dtype=np.float32)]
        engine.start(started("a", 4, 0, 1), started("b", 4, 1, 0))
        step = engine.save({"a": THIRD, "b": FOURTH}, h=[5] * 8, c=[6] * 8, k=[7] * 8, ref=ref)
        call = Call(engine.materialize, step, "a", "b")
        engine.start(extended(a=4))
        save = engine.save_later({"a": (16, 18, 17, 31)}, h=[7] * 4, c=[8] * 4, k=[1] * 4)
        eventually(lambda: watch.waited > 3)
        device.release()
        found = call.result()
        assert [0, 1, 2, 3, 4, 5, 6, 7, 5, 5, 5, 5] == found["h"]["b"]
        engine.discard(save.result())
        engine.start(Finished("a"), Finished("b"))
        engine.settle()
        call.forget()
        del found

        eventually(engine.is_quiet)
        operations = {"copy", "gather", "scatter", "zero", "to_host", "copy_now", "query", "allocate", "free"}
        assert operations <= set(watch.asked)
        assert watch.taken["runtime"]
        assert watch.taken["memory"]


def test_r19_kv_events_are_delivered_without_the_state_lock(worker: bool, watch: Watch) -> None:
    """A sink that is slow, or that asks the cache something, must not stop or block it."""
    heard: list[Command] = []

    def sink(command: Command) -> None:
        assert "runtime" not in watch.places()
        heard.append(command)
        assert cache.stats().pages == 2

    device = ScriptedDevice(worker=worker)
    device.before = watch.check
    config = CacheConfig(
        blocks=BlockConfig(capacity=8, block_size=4, kv_events=True),
        rows=RowConfig(num_blocks=8, block_size=4, page_rows_max=64, pages=2, wait_timeout_s=PATIENCE_S),
    )
    with JoinedCache(config, POLICY, device=device, sink=sink) as cache:
        cache.blocks.open_lease("a", list(range(9)), 4)
        cache.blocks.allocate_lease("a", 9, 0)
        cache.schedule("a", 9)
        cache.new_step_starts()
        step = cache.save_outputs(np.ones((9, 1), dtype=np.float32))
        cache.discard_step(step)

    assert 1 == len(heard)
    assert watch.taken["outbox"]


def test_r19_slow_operation_stops_nobody_who_needs_nothing_of_it(worker: bool) -> None:
    """While one thread is inside a copy of the device, others start, ask, consume and discard."""
    device = ScriptedDevice(worker=worker)
    with Engine(device=device, pages=4) as engine:
        first = engine.step(started("a", 4), batch={"a": FIRST}, h=[1] * 4)
        second = engine.step(extended(a=4), batch={"a": SECOND}, h=[2] * 4)
        engine.settle()
        is_inside, may_go_on = Event(), Event()

        def pause(kind: str, lane: Lane | None) -> None:
            if (kind, lane) == ("copy", Lane.COPY):
                is_inside.set()
                assert may_go_on.wait(PATIENCE_S)

        device.before = pause
        engine.start(extended(a=4))
        save = engine.save_later({"a": THIRD}, h=[3] * 4)
        assert is_inside.wait(PATIENCE_S)
        assert [1] * 4 == Call(engine.materialize, first, "a").result()["h"]["a"]
        Call(engine.discard, second).result()
        assert 1 == Call(engine.cache.stats).result().unconsumed_steps
        assert not Call(engine.cache.reset).result()
        assert 0 == Call(engine.start, Finished("nobody")).result()
        may_go_on.set()

        assert [3] * 4 == engine.materialize(save.result(), "a")["h"]["a"]


@pytest.fixture
def impatience() -> Iterator[None]:
    """Threads take turns as often as they can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.mark.usefixtures("impatience")
def test_r19_stats_may_be_asked_while_new_names_come_in(worker: bool) -> None:
    """A metrics thread must not stumble over a name that the engine is just making room for."""
    names = [f"n{number}" for number in range(200)]
    policy = RowPolicy(immediate=frozenset(names[::2]), deferred=frozenset(names[1::2]))
    with Engine(worker=worker, pages=2, policy=policy) as engine:
        is_over = Event()

        def watch_stats() -> int:
            looks = 0
            while not is_over.is_set():
                assert engine.cache.stats().pages == 2
                looks += 1
            return looks

        watcher = Call(watch_stats)
        row = np.ones((1, 1), dtype=np.float32)
        for number, name in enumerate(names):
            engine.start(extended(a=1) if number else started("a", 1))
            step = engine.cache.save_outputs(row, {name: row}, layout=layout_of({"a": (number % 32,)}))
            engine.discard(step)
        is_over.set()

        assert watcher.result()
        assert len(names) + 1 == engine.cache.stats().names


def test_r18_operations_refused_at_the_call_leave_nothing_to_the_garbage_collector(worker: bool) -> None:
    """An error that is kept must not keep, by its traceback, the buffers of the operation that it was about."""
    device = ScriptedDevice(worker=worker)
    with Engine(device=device) as engine:
        engine.written("old", (*SECOND, *FIRST), h=list(range(8)), c=[1] * 8)
        gc.collect()
        gc.disable()
        try:
            device.fail("gather at the call", Lane.GATHER, times=100)
            step = engine.step(started("a", 4, 1, 0), batch={"a": THIRD}, h=[9] * 4, c=[2] * 4)
            engine.settle_writes_of_steps()
            eventually(lambda: device.struck >= 2)
            with pytest.raises(ReadFailedError):
                engine.materialize(step, "a")
            engine.discard(step)
            engine.start(Finished("a"))
            engine.settle()
            eventually(engine.is_quiet)

            device.fail("scatter", Lane.POOL)
            engine.step(started("s", 4), batch={"s": (1, 3, 5, 7)}, h=[9] * 4)
            eventually(lambda: engine.cache.stats().has_failed)
            assert engine.cache.reset()
            eventually(engine.is_quiet)
        finally:
            gc.enable()
