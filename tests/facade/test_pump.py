"""Who carries commands out, and who is told: work left to another thread's pump is done, waiters wake at once."""

from collections.abc import Callable
from contextlib import suppress
from threading import Event
from typing import Any

import pytest

from tenure import Finished
from tenure.backends.device import Lane
from tenure.core.errors import ExecutorBrokenError, ShutDownError, UnknownStepError, WriteFailedError
from tests.facade.devices import ScriptedDevice
from tests.facade.engine import (
    FIRST,
    PATIENCE_S,
    SECOND,
    THIRD,
    WORKERS,
    Call,
    Engine,
    eventually,
    extended,
    started,
)

pytestmark = pytest.mark.parametrize("worker", WORKERS, ids=["inline", "threaded"])
FOR_EVER_S = 3600.0


@pytest.fixture(name="never_look_again")
def _never_look_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Waits do not look by themselves: who is not told waits until the test gives up."""
    monkeypatch.setattr("tenure.runtime.LOOK_AGAIN_S", FOR_EVER_S)


def runtime_of(engine: Engine) -> Any:
    """What holds the lock and pumps."""
    return engine.cache._runtime  # pyright: ignore[reportPrivateUsage]


def until_waiting(engine: Engine, *calls: Call) -> None:
    """Calls are in their wait by now, not on their way there."""
    runtime = runtime_of(engine)
    eventually(lambda: len(runtime._changed._waiters) == len(calls))
    assert not [call for call in calls if call.is_over]


class Gate:
    """Stops the first thread that asks a device whether an event is over, and whatever it is in the middle of."""

    def __init__(self, device: ScriptedDevice) -> None:
        self._device = device
        self.is_reached = Event()
        self.is_open = Event()
        device.before = self._pause

    def _pause(self, kind: str, _: Lane | None) -> None:
        if kind == "query" and not self.is_reached.is_set():
            self.is_reached.set()
            assert self.is_open.wait(PATIENCE_S)


def finish(engine: Engine) -> None:
    """Queues the deferred write of a request: it is to be copied to the host."""
    engine.start(Finished("a"))


def arrive(engine: Engine) -> None:
    """Begins to read a hit, two names of it, beside the forward pass."""
    engine.start(started("z", 1, 0))


@pytest.mark.parametrize(("call", "lane", "copies"), [(finish, Lane.COPY, 1), (arrive, Lane.GATHER, 2)])
def test_r11_work_that_is_left_to_another_thread_is_done_without_a_further_call(
    worker: bool, call: Callable[[Engine], None], lane: Lane, copies: int
) -> None:
    """An engine that ends its last request calls no more; its rows would never reach the host."""
    device = ScriptedDevice(worker=worker)
    with Engine(device=device) as engine:
        engine.discard(engine.step(started("a", 4), batch={"a": FIRST}, h=[1] * 4, c=[2] * 4))
        engine.settle_writes_of_steps()
        device.hold(Lane.POOL)
        engine.step(started("b", 4), batch={"b": SECOND}, h=[3] * 4, c=[4] * 4)
        eventually(lambda: device.calls["copy", Lane.POOL] == 2)
        runtime = runtime_of(engine)
        eventually(lambda: not runtime._is_pumping)
        before = device.calls["copy", lane]

        gate = Gate(device)
        # What is under way stands still, so whoever asks the device hears of nothing new.
        pumping = Call(engine.cache.reset)
        assert gate.is_reached.wait(PATIENCE_S)
        Call(call, engine).result()
        assert runtime._is_pumping
        assert runtime.executor._accepted
        assert before == device.calls["copy", lane]
        gate.is_open.set()
        assert not pumping.result()

        # What the device completes meanwhile may be pumped again.
        eventually(lambda: not runtime._is_pumping and not runtime.executor._accepted)
        assert before + copies == device.calls["copy", lane]


@pytest.mark.usefixtures("never_look_again")
def test_r12_waiter_is_told_at_once_that_commands_are_carried_out_no_more(worker: bool) -> None:
    """Nothing that it waits for will come; a builder must not sit out its time-out to learn that."""
    device = ScriptedDevice(worker=worker)
    with Engine(device=device, wait_timeout_s=FOR_EVER_S) as engine:
        device.hold(Lane.COPY)
        step = engine.step(started("a", 4), batch={"a": FIRST}, h=[1] * 4)
        call = Call(engine.materialize, step, "a")
        until_waiting(engine, call)

        def explode(kind: str, _: Lane | None) -> None:
            if kind == "query":
                # The other call woke it; it has looked, and waits again.
                until_waiting(engine, call)
                msg = "no device says this"
                raise LookupError(msg)

        device.before = explode
        # Another thread may be at it, and it is that one's then.
        with suppress(LookupError, ExecutorBrokenError):
            engine.cache.reset()
        with pytest.raises(ExecutorBrokenError, match="no device says this"):
            call.result()


@pytest.mark.usefixtures("never_look_again")
def test_r11_waiter_is_told_at_once_of_another_call_that_lets_it_go_on(worker: bool) -> None:
    """A discard frees a page by itself, no device has a part in it."""
    with Engine(worker=worker, pages=2, wait_timeout_s=FOR_EVER_S) as engine:
        engine.step(started("a", 1), batch={"a": (0,)}, h=[0])
        engine.step(extended(a=1), batch={"a": (1,)}, h=[1])
        engine.settle()
        engine.start(extended(a=1))
        save = engine.save_later({"a": (2,)}, h=[2])
        until_waiting(engine, save)
        engine.discard(1)

        assert 3 == save.result()


@pytest.mark.usefixtures("never_look_again")
def test_r11_waiters_are_told_at_once_of_what_the_device_completed(worker: bool) -> None:
    """The thread that hears of it is another than those that wait, and all of them may go on by it."""
    device = ScriptedDevice(worker=worker)
    with Engine(device=device, wait_timeout_s=FOR_EVER_S) as engine:
        device.hold(Lane.COPY)
        step = engine.step(started("a", 4), batch={"a": FIRST}, h=[1] * 4)
        engine.start(extended(a=1))
        calls = Call(engine.materialize, step, "a"), engine.save_later({"a": (4,)}, h=[2])
        until_waiting(engine, *calls)
        device.release()

        assert [1] * 4 == calls[0].result()["h"]["a"]
        assert step + 1 == calls[1].result()


@pytest.mark.usefixtures("never_look_again")
def test_r11_waiters_are_told_at_once_of_a_shutdown(worker: bool) -> None:
    """A process that ends must not wait for its builders' time-outs."""
    device = ScriptedDevice(worker=worker)
    with Engine(device=device, wait_timeout_s=FOR_EVER_S) as engine:
        device.hold(Lane.COPY)
        step = engine.step(started("a", 4), batch={"a": FIRST}, h=[1] * 4)
        engine.start(extended(a=1))
        calls = Call(engine.materialize, step, "a"), engine.save_later({"a": (4,)}, h=[2])
        until_waiting(engine, *calls)
        shutdown = Call(engine.cache.shutdown)
        for call in calls:
            with pytest.raises(ShutDownError):
                call.result()
        shutdown.result()


@pytest.mark.usefixtures("never_look_again")
def test_r24_waiter_is_told_at_once_of_a_failure_and_its_reset(worker: bool) -> None:
    """Its step is gone, and nobody will ever write the rows that it waits for."""
    device = ScriptedDevice(worker=worker)
    with Engine(device=device, wait_timeout_s=FOR_EVER_S) as engine:
        engine.discard(engine.step(started("q", 4), batch={"q": SECOND}, h=[1] * 4, c=[1] * 4))
        engine.settle_writes_of_steps()
        device.hold(Lane.GATHER)
        step = engine.step(started("b", 4, 1), batch={"b": THIRD}, h=[2] * 4, c=[2] * 4)
        # The next copy is then that of q's deferred rows.
        engine.settle_writes_of_steps()
        call = Call(engine.materialize, step, "b")
        until_waiting(engine, call)
        device.fail("copy", Lane.COPY)
        engine.start(Finished("q"))
        eventually(lambda: engine.cache.stats().has_failed)
        assert engine.cache.reset()
        with pytest.raises((WriteFailedError, UnknownStepError)):
            call.result()
        device.release()

        eventually(engine.is_quiet)
