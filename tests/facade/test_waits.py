"""Waits: bounded, told apart, taken up again, ended by whoever brings what is waited for, and by a shutdown (R07)."""

import threading
from typing import Any

import pytest

from tenure import Finished
from tenure.backends.device import Lane, Listener
from tenure.core.errors import (
    BudgetExhaustedError,
    PageExhaustedError,
    ShutDownError,
    WaitTimeoutError,
)
from tests.facade.devices import ScriptedDevice
from tests.facade.engine import (
    FIRST,
    SECOND,
    THIRD,
    WORKERS,
    Call,
    Engine,
    assert_blocked,
    eventually,
    extended,
    layout_of,
    started,
)

pytestmark = pytest.mark.parametrize("worker", WORKERS, ids=["inline", "threaded"])


def _unheard(listener: Listener) -> None:
    """Nobody will be told."""


def test_r07_save_that_waits_for_a_page_times_out_and_names_who_has_them(worker: bool) -> None:
    """An engine that is stuck must learn which steps nobody took."""
    with Engine(worker=worker, pages=2) as engine:
        engine.step(started("a", 1), batch={"a": (0,)}, h=[0])
        engine.step(extended(a=1), batch={"a": (1,)}, h=[1])
        engine.settle_writes_of_steps()
        engine.start(extended(a=1))
        for _ in range(2):
            with (
                engine.impatient(),
                pytest.raises(PageExhaustedError, match=r"a free page; steps not consumed: \[1, 2\]"),
            ):
                engine.save({"a": (2,)}, h=[2])
        engine.discard(1)
        step = engine.save({"a": (2,)}, h=[2])

        assert [2] == engine.materialize(step, "a")["h"]["a"]
        assert 2 == engine.cache.stats().waits["page"].count


def test_r06_save_that_waits_for_a_page_goes_on_when_another_thread_discards(worker: bool) -> None:
    """A builder that catches up is all that a full set of pages needs."""
    with Engine(worker=worker, pages=2) as engine:
        engine.step(started("a", 1), batch={"a": (0,)}, h=[0])
        engine.step(extended(a=1), batch={"a": (1,)}, h=[1])
        engine.start(extended(a=1))
        save = engine.save_later({"a": (2,)}, h=[2])
        assert_blocked(save)
        engine.discard(2)

        assert 3 == save.result()
        assert [2] == engine.materialize(3, "a")["h"]["a"]
        assert [0] == engine.materialize(1, "a")["h"]["a"]


def test_r06_save_that_waits_for_a_page_goes_on_when_the_write_on_it_lands(worker: bool) -> None:
    """A consumed step's page is still the write's until its rows are in the pool."""
    device = ScriptedDevice(worker=worker)
    with Engine(device=device, pages=2) as engine:
        engine.step(started("a", 1), batch={"a": (0,)}, h=[0])
        engine.settle()
        device.hold(Lane.POOL)
        engine.step(extended(a=1), batch={"a": (1,)}, h=[1])
        engine.discard(1, 2)
        assert 1 == engine.cache.stats().pages_held
        engine.start(extended(a=1))
        save = engine.save_later({"a": (2,)}, h=[2])
        assert_blocked(save)
        device.release()

        assert 3 == save.result()


def test_r07_save_that_waits_for_the_budget_times_out_and_flushes_once(worker: bool) -> None:
    """Over budget, the oldest clone's writes are flushed; a retry waits for them and flushes nothing more."""
    device = ScriptedDevice(worker=worker)
    with Engine(device=device, budget_bytes=40, pages=4) as engine:
        step = engine.step(started("a", 4), batch={"a": FIRST}, c=[1, 2, 3, 4])
        engine.materialize(step, "a")
        eventually(lambda: engine.cache.stats().open_writes == 1)
        device.hold(Lane.COPY)
        engine.start(extended(a=4))
        for _ in range(3):
            with engine.impatient(), pytest.raises(BudgetExhaustedError, match="device clone 1 to be let go"):
                engine.save({"a": SECOND}, h=[0] * 4, c=[5, 6, 7, 8])
            assert 1 == engine.cache.stats().counters.flushes
            assert 16 == engine.cache.stats().charged_bytes
        device.release()
        step = engine.save({"a": SECOND}, h=[0] * 4, c=[5, 6, 7, 8])

        assert [5, 6, 7, 8] == engine.materialize(step, "a")["c"]["a"]
        assert engine.cache.stats().counters.charged_peak <= 40
        step = engine.step(Finished("a"), started("b", 4), batch={"b": THIRD}, h=[0] * 4, c=[9] * 4)
        engine.discard(step)
        step = engine.step(
            Finished("b"), started("e", 1), started("f", 1, 0, 1), batch={"e": (16,), "f": (17,)}, c=[9] * 2
        )
        assert [1, 2, 3, 4, 5, 6, 7, 8, 9] == engine.materialize(step, "f")["c"]["f"]


def test_r07_wait_lasts_as_long_as_configured(worker: bool) -> None:
    """An engine that asked for a short wait must not hang for the usual one."""
    device = ScriptedDevice(worker=worker)
    with Engine(device=device, wait_timeout_s=0.05) as engine:
        device.hold(Lane.COPY)
        step = engine.step(started("a", 4), batch={"a": FIRST}, h=[1] * 4)
        with pytest.raises(WaitTimeoutError):
            engine.materialize(step, "a")


@pytest.mark.parametrize("lane", [Lane.COMPUTE, Lane.COPY])
def test_r07_materialize_times_out_while_its_rows_are_on_their_way(worker: bool, lane: Lane) -> None:
    """It consumes nothing, and the next try waits again."""
    device = ScriptedDevice(worker=worker)
    with Engine(device=device) as engine:
        device.hold(lane)
        step = engine.step(started("a", 4), batch={"a": FIRST}, h=[1] * 4)
        for _ in range(2):
            with (
                engine.impatient(),
                pytest.raises(WaitTimeoutError, match=r"writes \[1\] to reach the host; steps not consumed: \[1\]"),
            ):
                engine.materialize(step, "a")
        device.release()

        assert [1] * 4 == engine.materialize(step, "a")["h"]["a"]


def test_r07_materialize_times_out_while_its_hit_is_gathered(worker: bool) -> None:
    """A slow gather must not look like a lost one."""
    device = ScriptedDevice(worker=worker)
    with Engine(device=device) as engine:
        engine.written("a", FIRST, h=[1] * 4)
        device.hold(Lane.GATHER)
        step = engine.step(started("b", 4, 0), batch={"b": SECOND}, h=[2] * 4)
        engine.settle()
        with engine.impatient(), pytest.raises(WaitTimeoutError, match=r"reads \[1\] to be done"):
            engine.materialize(step, "b")
        device.release()

        assert [1] * 4 + [2] * 4 == engine.materialize(step, "b")["h"]["b"]
        assert 1 <= engine.cache.stats().waits["read"].count


def test_r07_save_waits_until_a_finished_request_s_rows_are_on_the_host(worker: bool) -> None:
    """Its blocks may be anybody's from now on."""
    device = ScriptedDevice(worker=worker)
    with Engine(device=device) as engine:
        step = engine.step(started("a", 4), batch={"a": FIRST}, h=[1] * 4, c=[1, 2, 3, 4])
        engine.materialize(step, "a")
        eventually(lambda: engine.cache.stats().open_writes == 1)
        device.hold(Lane.COPY)
        engine.start(Finished("a"), started("b", 4))
        with engine.impatient(), pytest.raises(WaitTimeoutError, match=r"writes \[2\] to reach the host"):
            engine.save({"b": FIRST}, h=[2] * 4, c=[5, 6, 7, 8])
        device.release()
        engine.materialize(engine.save({"b": FIRST}, h=[2] * 4, c=[5, 6, 7, 8]), "b")
        step = engine.step(started("e", 4, 0), batch={"e": SECOND}, h=[3] * 4, c=[9] * 4)

        assert [5, 6, 7, 8, 9, 9, 9, 9] == engine.materialize(step, "e")["c"]["e"]


def test_r07_waiters_do_not_keep_each_other_busy(worker: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each wait that looks again must not wake the others, or a few builders eat a core and no wait ever times out."""
    device = ScriptedDevice(worker=worker)
    with Engine(device=device, wait_timeout_s=0.5) as engine:
        device.hold(Lane.COPY)
        step = engine.step(started("a", 4), batch={"a": FIRST}, h=[1] * 4)
        engine.start(extended(a=1))
        told: list[Any] = []
        tell = engine.machine.tell

        def counted(event: Any) -> Any:
            told.append(event)
            return tell(event)

        monkeypatch.setattr(engine.machine, "tell", counted)
        calls = [Call(engine.materialize, step, "a") for _ in range(3)]
        calls.append(engine.save_later({"a": (4,)}, h=[2]))
        for call in calls:
            with pytest.raises(WaitTimeoutError):
                call.result()

        assert len(calls) <= len(told) <= 20 * len(calls)


def test_r11_wait_looks_after_a_device_that_says_nothing(worker: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """A listener that is called too early, or missed, costs a moment and not the wait."""
    device = ScriptedDevice(worker=worker)
    monkeypatch.setattr(device, "listen", _unheard)
    with Engine(device=device) as engine:
        device.hold(Lane.COPY)
        step = engine.step(started("a", 4), batch={"a": FIRST}, h=[1] * 4)
        call = Call(engine.materialize, step, "a")
        assert_blocked(call)
        device.release()

        assert [1] * 4 == call.result()["h"]["a"]


def test_r07_wait_ends_in_time_however_much_else_goes_on(worker: bool) -> None:
    """Other threads' calls, each of which wakes who waits, must not put a time-out off for ever."""
    with Engine(worker=worker, pages=2) as engine:
        for number in range(2):
            engine.step(extended(a=1) if number else started("a", 1), batch={"a": (number,)}, h=[number])
        engine.settle_writes_of_steps()
        engine.start(extended(a=1))
        is_over = threading.Event()
        calls = [0, 0, 0]

        def hammer(place: int) -> None:
            while not is_over.is_set():
                assert not engine.cache.reset()
                calls[place] += 1

        others = [Call(hammer, place) for place in range(len(calls))]
        # All of them are at it before the wait begins, and go on beside it.
        eventually(lambda: all(calls))
        before = sum(calls)
        with engine.impatient(), pytest.raises(PageExhaustedError):
            engine.save({"a": (2,)}, h=[2])
        eventually(lambda: sum(calls) > before)
        is_over.set()

        for other in others:
            other.result()


def test_r12_shutdown_wakes_whoever_waits_and_leaves_no_thread(worker: bool) -> None:
    """A process that wants to end must not hang on a save or a builder."""
    before = set(threading.enumerate())
    device = ScriptedDevice(worker=worker)
    engine = Engine(device=device)
    device.hold(Lane.COPY)
    step = engine.step(started("a", 4), batch={"a": FIRST}, h=[1] * 4)
    engine.start(extended(a=1))
    calls = Call(engine.materialize, step, "a"), engine.save_later({"a": (4,)}, h=[2])
    assert_blocked(*calls)
    engine.cache.shutdown()
    for call in calls:
        with pytest.raises(ShutDownError):
            call.result()
    engine.cache.shutdown()

    assert not set(threading.enumerate()) - before
    engine.discard(step)
    assert 0 == engine.cache.stats().unconsumed_steps
    with pytest.raises(ShutDownError):
        engine.start(extended(a=1))
    with pytest.raises(ShutDownError):
        engine.save({"a": (4,)}, h=[2])


def test_r18_shutdown_gives_memory_back_but_for_what_callers_hold(worker: bool) -> None:
    """An accelerator's memory is wanted by whoever comes next; rows that were handed out stay good."""
    device = ScriptedDevice(worker=worker)
    engine = Engine(device=device)
    engine.written("a", FIRST, h=[1] * 4, c=[2] * 4)
    step = engine.step(started("b", 4, 0), batch={"b": tuple(range(8, 12))}, h=[3] * 4, c=[4] * 4)
    found = engine.cache.materialize(step, ["b"])
    assert found.hidden_states is not None
    engine.settle_writes_of_steps()
    engine.cache.shutdown()
    rows = found.hidden_states["b"]

    assert [1, 1, 1, 1, 3, 3, 3, 3] == rows.reshape(-1).tolist()
    # A hit and the step's own rows, for each of two names.
    assert 4 == len(device.held)


def test_r12_shutdown_of_an_idle_cache_leaves_no_thread(worker: bool) -> None:
    """The worker is the cache's, and ends with it; also as a context manager, and when a test raises in it."""
    before = set(threading.enumerate())

    def fail() -> None:
        with Engine(worker=worker) as engine, engine.cache:
            assert int(worker) == len(set(threading.enumerate()) - before)
            engine.written("a", FIRST, h=[1] * 4)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()

    assert not set(threading.enumerate()) - before


def test_r11_every_waiter_of_one_event_wakes(worker: bool) -> None:
    """Many builders may wait for one copy, for different steps' rows and for the same."""
    device = ScriptedDevice(worker=worker)
    with Engine(device=device, pages=4) as engine:
        device.hold(Lane.COPY)
        step = engine.step(started("a", 4), started("b", 4), batch={"a": FIRST, "b": SECOND}, h=[1] * 8)
        calls = [Call(engine.materialize, step, "a", "b") for _ in range(4)]
        assert_blocked(*calls)
        device.release()
        found: list[Any] = []
        for call in calls:
            try:
                found.append(call.result())
            except Exception as error:
                found.append(type(error).__name__)

        assert 1 == sum(isinstance(each, dict) for each in found)
        others = {each for each in found if not isinstance(each, dict)}
        assert others <= {"StepAlreadyConsumedError", "StepBeingConsumedError"}


def test_r01_steps_are_saved_and_materialized_on_different_threads_at_once(worker: bool) -> None:
    """A builder that lags takes old steps while the engine saves new ones; nobody sees another's rows."""
    with Engine(worker=worker, pages=4, num_blocks=64) as engine:
        rows: dict[int, list[float]] = {}
        hidden_layouts = [layout_of({"a": (number, number + 1)}) for number in range(0, 120, 2)]
        builders: list[Call] = []
        for number, _ in enumerate(hidden_layouts):
            change = extended(a=2) if number else started("a", 2)
            batch = {"a": (2 * number, 2 * number + 1)}
            step = engine.step(change, batch=batch, h=[number, -number], m=[number + 1, 0], c=[number + 2, 0])
            rows[step] = [number, -number]
            builders.append(Call(engine.materialize, step, "a"))
            if number >= 3:
                builders[number - 3].result()

        for step, builder in zip(rows, builders, strict=True):
            found = builder.result()
            assert rows[step] == found["h"]["a"]
            assert [rows[step][0] + 1, 0] == found["m"]["a"]
            assert [rows[step][0] + 2, 0] == found["c"]["a"]
