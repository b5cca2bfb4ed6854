"""Reset: refused while anything is in use, fenced against what a device or a builder is still at (R24)."""

import gc
import weakref
from threading import Event

import numpy as np
import pytest

from tenure import Finished
from tenure.backends.device import Lane
from tenure.core.errors import UnknownStepError, UnreadableHitError, WriteFailedError
from tests.facade.devices import ScriptedDevice
from tests.facade.engine import (
    FIRST,
    FOURTH,
    PATIENCE_S,
    SECOND,
    THIRD,
    WORKERS,
    Call,
    Engine,
    assert_blocked,
    eventually,
    extended,
    started,
)

pytestmark = pytest.mark.parametrize("worker", WORKERS, ids=["inline", "threaded"])


class Thing:
    """A leftover of a kind that nobody knows, handed on as it is."""


def test_r24_reset_is_refused_while_a_request_is_live_or_a_step_is_unconsumed(worker: bool) -> None:
    """Whoever clears the block pool must know whether the rows are gone with it."""
    with Engine(worker=worker) as engine:
        step = engine.step(started("a", 4), batch={"a": FIRST}, h=[1] * 4)
        assert not engine.cache.reset()
        engine.start(Finished("a"))
        assert not engine.cache.reset()
        assert [1] * 4 == engine.materialize(step, "a")["h"]["a"]
        engine.settle()
        assert engine.cache.reset()
        step = engine.step(started("b", 4, 0), batch={"b": SECOND}, h=[2] * 4)

        with pytest.raises(UnreadableHitError):
            engine.materialize(step, "b")


def test_r04_numbers_of_steps_go_on_after_a_reset(worker: bool) -> None:
    """An id from before must not name a step of after."""
    with Engine(worker=worker) as engine:
        engine.written("a", FIRST, h=[1] * 4)
        assert engine.cache.reset()

        with pytest.raises(UnknownStepError):
            engine.materialize(1, "a")
        assert 2 == engine.step(started("a", 4), batch={"a": FIRST}, h=[1] * 4)


def test_r24_page_and_clones_stay_with_the_copy_that_still_uses_them(worker: bool) -> None:
    """After a failure reset does not wait; memory that a copy still uses must not be given to the next step."""
    device = ScriptedDevice(worker=worker)
    with Engine(device=device) as engine:
        step = engine.step(started("a", 4), batch={"a": FIRST}, h=[1] * 4, c=[1] * 4)
        engine.materialize(step, "a")
        eventually(lambda: engine.cache.stats().open_writes == 1)
        device.hold(Lane.POOL)
        device.fail("copy", Lane.POOL)
        engine.start(Finished("a"), started("b", 4))
        eventually(lambda: engine.cache.stats().charged_bytes == 0)
        device.hold(Lane.COPY)
        step = engine.save({"b": SECOND}, h=[2] * 4, c=[2] * 4)
        engine.discard(step)
        device.release(Lane.POOL)
        eventually(lambda: engine.cache.stats().has_failed)
        assert engine.cache.reset()
        stats = engine.cache.stats()
        assert (1, 32, 0) == (stats.pages_held, stats.charged_bytes, stats.live_requests)

        # Room for one step of the same size; its rows must lie elsewhere.
        step = engine.step(started("m", 4), batch={"m": SECOND}, h=[7] * 4, c=[8] * 4)
        assert 2 == engine.cache.stats().pages_held
        device.release()
        found = engine.materialize(step, "m")
        assert [7] * 4 == found["h"]["m"]
        assert [8] * 4 == found["c"]["m"]
        step = engine.step(started("o", 4, 1), batch={"o": THIRD}, h=[9] * 4, c=[9] * 4)
        found = engine.materialize(step, "o")
        assert [7] * 4 + [9] * 4 == found["h"]["o"]
        assert [8] * 4 + [9] * 4 == found["c"]["o"]
        engine.start(Finished("m"), Finished("o"))
        engine.settle()

        eventually(engine.is_quiet)


def test_r24_late_scatter_does_not_overwrite_what_came_after_the_reset(worker: bool) -> None:
    """Scatters run in the order in which they were issued, also over a reset, so the newest rows are final."""
    device = ScriptedDevice(worker=worker)
    with Engine(device=device) as engine:
        step = engine.step(started("a", 4), started("x", 4), batch={"a": FIRST, "x": FOURTH}, h=[1] * 8, c=[1] * 8)
        engine.discard(step)
        eventually(lambda: engine.cache.stats().open_writes == 2)
        device.hold(Lane.POOL)
        step = engine.step(extended(a=4), batch={"a": SECOND}, h=[2] * 4, c=[2] * 4)
        engine.discard(step)
        eventually(lambda: device.calls["copy", Lane.POOL] == 1)
        device.fail("copy", Lane.COPY)
        fail_deferred(engine, "x")
        assert engine.cache.reset()
        assert 1 == engine.cache.stats().pages_held
        step = engine.step(started("b", 4), batch={"b": SECOND}, h=[9] * 4, c=[9] * 4)
        assert [9] * 4 == engine.materialize(step, "b")["h"]["b"]
        device.release()
        engine.settle_immediate()
        step = engine.step(started("d", 4, 1), batch={"d": THIRD}, h=[5] * 4, c=[5] * 4)
        found = engine.materialize(step, "d")

        assert [9] * 4 + [5] * 4 == found["h"]["d"]
        assert [9] * 4 + [5] * 4 == found["c"]["d"]


def fail_deferred(engine: Engine, request: str) -> None:
    """The write of a request that ends fails (the device was told to let the next copy fail)."""
    engine.start(Finished(request))
    eventually(lambda: engine.cache.stats().has_failed)


@pytest.mark.parametrize("ends", ["returns", "raises"])
def test_r24_materialize_under_way_outlives_a_reset(worker: bool, ends: str) -> None:
    """It reads page and reads without a lock; a reset beside it must leave both, and what it returns is whole."""
    device = ScriptedDevice(worker=worker)
    with Engine(device=device, pages=4) as engine:
        engine.written("old", FIRST, h=[1] * 4, c=[2] * 4)
        engine.start(started("p", 4, 0), started("q", 4))
        ref, thing = np.arange(3, dtype=np.float32), Thing()
        alive = weakref.ref(thing)
        step = engine.save({"p": SECOND, "q": THIRD}, h=[3] * 8, c=[4] * 8, ref=ref, k=[8] * 8, thing=thing)
        del thing
        eventually(lambda: engine.cache.stats().open_writes == 2)
        is_copying, may_go_on = Event(), Event()

        def pause(kind: str, _: Lane | None) -> None:
            if kind == "copy_now" and not is_copying.is_set():
                is_copying.set()
                assert may_go_on.wait(PATIENCE_S)

        device.before = pause
        if ends == "raises":
            device.fail("copy_now")
        call = Call(engine.cache.materialize, step, ("p",))
        assert is_copying.wait(PATIENCE_S)
        device.fail("copy", Lane.COPY)
        fail_deferred(engine, "q")
        assert engine.cache.reset()
        held = engine.cache.stats()
        assert 1 == held.pages_held
        other = engine.step(started("z", 8), batch={"z": (*FIRST, *SECOND)}, h=[50] * 8, c=[60] * 8, k=[70] * 8)
        may_go_on.set()
        if ends == "raises":
            with pytest.raises(Exception, match="could not be copied out"):
                call.result()
        else:
            found = call.result()
            assert [1] * 4 + [3] * 4 == found.hidden_states["p"][:, 0].tolist()
            assert [2] * 4 + [4] * 4 == found.mm_outputs["c"]["p"][:, 0].tolist()
            assert [0] * 4 + [8] * 4 == found.mm_outputs["k"]["p"][:, 0].tolist()
            assert [0, 1, 2] == found.mm_outputs["ref"]["p"].tolist()
            assert alive() is found.mm_outputs["thing"]["p"]
            del found
        call.forget()
        gc.collect()
        assert alive() is None
        engine.discard(other)
        engine.start(Finished("z"))
        engine.settle()

        eventually(engine.is_quiet)


def test_r24_calls_that_wait_over_a_reset_are_told(worker: bool) -> None:
    """Their step is forgotten; they must not wait for it for ever."""
    device = ScriptedDevice(worker=worker)
    with Engine(device=device) as engine:
        step = engine.step(started("a", 4), started("q", 4), batch={"a": FIRST, "q": SECOND}, h=[1] * 8, c=[1] * 8)
        engine.discard(step)
        eventually(lambda: engine.cache.stats().open_writes == 2)
        device.fail("copy", Lane.COPY)
        device.hold(Lane.COPY)
        engine.start(Finished("q"), extended(a=1))
        call = engine.save_later({"a": (8,)}, h=[2], c=[2])
        assert_blocked(call)
        device.release()
        with pytest.raises(WriteFailedError):
            call.result()

        assert engine.cache.reset()
        eventually(engine.is_quiet)


def test_r24_reset_beside_a_waiting_builder_ends_its_wait(worker: bool) -> None:
    """Whether it hears of the failure or that its step is gone: it hears."""
    device = ScriptedDevice(worker=worker)
    with Engine(device=device) as engine:
        step = engine.step(started("q", 4), batch={"q": SECOND}, h=[1] * 4, c=[1] * 4)
        engine.discard(step)
        eventually(lambda: engine.cache.stats().open_writes == 1)
        device.hold(Lane.GATHER)
        step = engine.step(started("b", 4, 1), batch={"b": FIRST}, h=[2] * 4, c=[2] * 4)
        # The next copy is then that of q's deferred rows.
        engine.settle_writes_of_steps()
        call = Call(engine.materialize, step, "b")
        assert_blocked(call)
        device.fail("copy", Lane.COPY)
        fail_deferred(engine, "q")
        assert engine.cache.reset()
        with pytest.raises((WriteFailedError, UnknownStepError)):
            call.result()
        device.release()

        eventually(engine.is_quiet)
