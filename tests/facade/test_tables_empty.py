"""What is left in the tables of the executor and its memory when everything is over: nothing (R18)."""

from collections.abc import Callable
from contextlib import suppress
from time import monotonic, sleep
from typing import Any

import numpy as np
import pytest

from tenure import Finished
from tenure.backends.device import Lane
from tenure.core.errors import (
    ExecutorBrokenError,
    FreezeFailedError,
    ReadFailedError,
    SaveNotReservedError,
    WriteFailedError,
)
from tests.facade.devices import ScriptedDevice
from tests.facade.engine import (
    FIRST,
    FOURTH,
    PATIENCE_S,
    SECOND,
    THIRD,
    WORKERS,
    Engine,
    eventually,
    extended,
    started,
)

pytestmark = pytest.mark.parametrize("worker", WORKERS, ids=["inline", "threaded"])
EXECUTOR_TABLES = (
    "_accepted",
    "_answers",
    "_open",
    "_flights",
    "_failed",
    "_freezes",
    "_unpublished",
    "_postponed",
    "_scheduled",
    "_running",
)
STORAGE_TABLES = ("_hosts", "_asides", "_reads", "_scratch", "_retired")
LEFTOVER = np.zeros(3, dtype=np.float32)
FIFTH = (16, 17, 18, 19)


def executor_of(engine: Engine) -> Any:
    """What carries commands out."""
    return engine.cache._runtime.executor  # pyright: ignore[reportPrivateUsage]


def left_in_tables(engine: Engine) -> dict[str, Any]:
    """By table what is in it."""
    executor = executor_of(engine)
    storage = executor.storage
    tables = {name: getattr(executor, name) for name in EXECUTOR_TABLES}
    tables |= {name: getattr(storage, name) for name in STORAGE_TABLES}
    # Other threads may change them meanwhile.
    tables["regions"] = [clone for each in storage._clones.values() for clone in list(each.regions)]
    tables["_leftovers"] = engine.cache._leftovers  # pyright: ignore[reportPrivateUsage]
    return {name: table for name, table in tables.items() if table}


def assert_nothing_left(engine: Engine) -> None:
    """Once the device is done, every table is empty, the machine is quiet, and all bytes are given back."""
    until = monotonic() + PATIENCE_S
    while (found := left_in_tables(engine)) and monotonic() < until:
        engine.cache._runtime.pump()  # pyright: ignore[reportPrivateUsage]
        sleep(0.001)

    assert {} == found
    eventually(engine.is_quiet)


def end(engine: Engine) -> None:
    """All requests end and all steps are discarded."""
    tables = engine.machine.state.tables
    engine.start(*(Finished(each) for each in list(tables.live)))
    engine.settle()


def use_everything(engine: Engine) -> None:
    """Steps with hits, deferred rows and leftovers, that are materialized, discarded, dropped, and overtaken."""
    engine.written("old", (*FIRST, *SECOND), h=[1] * 8, c=[2] * 8)
    engine.device.hold(Lane.GATHER)
    late = engine.step(
        started("a", 4, 0),
        started("b", 4, 1),
        batch={"a": THIRD, "b": FOURTH},
        h=[3] * 8,
        c=[4] * 8,
        ref=LEFTOVER,
    )
    # b's read has not begun: the rows that are computed anew are set aside for it.
    engine.discard(engine.step(started("d", 3), batch={"d": (5, 7, 6)}, h=[5] * 3, c=[6] * 3, ref=LEFTOVER))
    assert engine.cache.stats().counters.rows_preserved
    # Of d's deferred rows the first and the last reach the pool: they are picked before they are scattered.
    engine.discard(engine.step(started("g", 1), batch={"g": (7,)}, h=[7], c=[8]))
    engine.start(started("e", 4, 2))
    engine.cache.drop_step(FIFTH)
    # c's rows lie in clones.
    unwanted = engine.step(started("f", 1, 2), batch={"f": (20,)}, h=[7], c=[8])
    engine.discard(unwanted)
    engine.device.release()
    found = engine.materialize(late, "a", "b")
    assert [1] * 4 + [3] * 4 == found["h"]["b"]
    assert [2] * 4 + [4] * 4 == found["c"]["b"]


@pytest.mark.parametrize("is_unified", [False, True], ids=["device memory", "unified"])
def test_r18_nothing_is_left_in_any_table_when_all_requests_ended(worker: bool, is_unified: bool) -> None:
    """A server runs for months: whatever one step leaves behind is a leak."""
    device = ScriptedDevice(worker=worker, unified=is_unified)
    with Engine(device=device, gathers_max=1, pages=4) as engine:
        for _ in range(2):
            use_everything(engine)
            assert left_in_tables(engine)["regions"]
            picked = device.calls["gather", Lane.POOL]
            end(engine)
            assert device.calls["gather", Lane.POOL] > picked
            assert_nothing_left(engine)
            assert engine.cache.reset()
            assert_nothing_left(engine)


def fail_copy(device: ScriptedDevice) -> None:
    """A copy of live rows fails."""
    device.fail("copy", Lane.COMPUTE)


def fail_leftover(device: ScriptedDevice) -> None:
    """A copy of a leftover fails, behind those of the rows."""
    device.fail("to_host", Lane.COMPUTE)


def fail_memory(device: ScriptedDevice) -> None:
    """There is no memory for the pages of a name that is new, however often it is asked for."""
    device.fail("allocate", nth=2, times=99)


@pytest.mark.parametrize("fault", [fail_copy, fail_leftover, fail_memory])
@pytest.mark.parametrize("ending", ["retry", "drop"])
def test_r18_save_whose_freeze_fails_leaves_nothing_in_any_table(
    worker: bool, fault: Callable[[ScriptedDevice], None], ending: str
) -> None:
    """A save that is tried again and again must not fill the memory of what it failed to save."""
    device = ScriptedDevice(worker=worker)
    with Engine(device=device) as engine:
        engine.written("old", FIRST, h=[1] * 4)
        engine.start(started("a", 4, 0))
        for _ in range(3):
            struck = device.struck
            fault(device)
            with pytest.raises(FreezeFailedError):
                engine.save({"a": SECOND}, h=[1] * 4, c=[2] * 4, ref=LEFTOVER)
            engine.device._faults.clear()
            assert device.struck > struck
            executor = executor_of(engine)
            assert {} == executor._freezes
            assert {} == executor._unpublished
        if ending == "drop":
            engine.cache.drop_step(SECOND)
        else:
            step = engine.save({"a": SECOND}, h=[3] * 4, c=[4] * 4, ref=LEFTOVER)
            assert [1] * 4 + [3] * 4 == engine.materialize(step, "a")["h"]["a"]
        end(engine)
        assert_nothing_left(engine)


@pytest.mark.parametrize("ending", ["retry", "drop"])
def test_r18_save_that_is_interrupted_before_its_freeze_leaves_nothing_in_any_table(
    worker: bool, ending: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C may come between any two lines; a freeze that was never asked for must not be waited for."""
    device = ScriptedDevice(worker=worker)
    interrupted: list[Any] = []

    def interrupt(*arguments: Any) -> None:
        interrupted.append(arguments)
        raise KeyboardInterrupt

    with Engine(device=device) as engine:
        engine.discard(engine.step(started("q", 4), batch={"q": THIRD}, h=[1] * 4, c=[1] * 4))
        engine.start(started("a", 4), extended(q=1))
        with monkeypatch.context() as patch:
            patch.setattr(executor_of(engine), "freeze", interrupt)
            with pytest.raises(KeyboardInterrupt):
                engine.save({"a": FIRST, "q": (12,)}, h=[1] * 5, c=[2] * 5, ref=LEFTOVER)
        assert 1 == len(interrupted)
        if ending == "drop":
            engine.cache.drop_step((*FIRST, 12))
            engine.start(extended(a=4, q=1))
        step = engine.save({"a": SECOND, "q": (13,)}, h=[3] * 4 + [4], c=[5] * 4 + [6], ref=LEFTOVER)
        found = engine.materialize(step, "a", "q")
        assert [[3] * 4, [4]] == [*found["h"].values()]
        assert [[5] * 4, [6]] == [*found["c"].values()]
        end(engine)
        assert_nothing_left(engine)


@pytest.mark.parametrize("what", ["copy", "scatter", "deferred"])
def test_r18_reset_after_a_failure_leaves_nothing_in_any_table(worker: bool, what: str) -> None:
    """It forgets requests and steps that nobody ends or consumes any more; what they kept must go with them."""
    device = ScriptedDevice(worker=worker)
    with Engine(device=device, pages=4) as engine:
        for tries in range(1, 4):
            engine.start(started("p", 1))
            fail_leftover(device)
            with pytest.raises(FreezeFailedError):
                engine.save({"p": (30,)}, h=[0], c=[0], ref=LEFTOVER)
            engine.save({"p": (30,)}, h=[0], c=[0], ref=LEFTOVER)
            engine.step(started("q", 4), batch={"q": SECOND}, h=[1] * 4, c=[1] * 4, ref=LEFTOVER)
            eventually(lambda: engine.cache.stats().open_writes == 2)
            device.hold(Lane.GATHER)
            if what != "deferred":
                device.fail("copy", Lane.COPY if what == "copy" else Lane.POOL)
            engine.step(started("a", 4, 1), batch={"a": FIRST}, h=[2] * 4, c=[3] * 4, ref=LEFTOVER)
            if what == "deferred":
                # The next copy is then that of q's deferred rows.
                engine.settle_writes_of_steps()
                device.fail("copy", Lane.COPY)
                engine.start(Finished("q"))
            eventually(lambda: engine.cache.stats().has_failed)
            assert 2 * tries == device.struck
            assert 3 == len(left_in_tables(engine)["_leftovers"])
            assert engine.cache.reset()
            device.release()
            assert_nothing_left(engine)


def test_r14_gather_that_fails_gives_its_buffer_back_before_anybody_asks(worker: bool) -> None:
    """A builder that lags, or never comes, must not keep a buffer that holds nothing."""
    device = ScriptedDevice(worker=worker)
    with Engine(device=device) as engine:
        engine.written("old", (*FIRST, *SECOND), h=[1] * 4 + [2] * 4)
        kept = engine.step(started("z", 4, 1), batch={"z": FOURTH}, h=[3] * 4)
        engine.settle()
        eventually(lambda: not left_in_tables(engine).keys() - {"_reads", "_leftovers"})
        before = engine.cache.stats().buffers_held_bytes
        assert before
        device.hold(Lane.GATHER)
        device.fail("copy", Lane.GATHER)
        step = engine.step(started("a", 4, 0), batch={"a": THIRD}, h=[4] * 4)
        eventually(lambda: device.calls["copy", Lane.GATHER] == 2)
        assert engine.cache.stats().buffers_held_bytes > before
        device.release()
        eventually(lambda: device.struck == 1)

        eventually(lambda: not executor_of(engine)._flights)
        eventually(lambda: engine.cache.stats().buffers_held_bytes == before)
        with pytest.raises(ReadFailedError, match="'a'"):
            engine.materialize(step, "a")
        assert [2] * 4 + [3] * 4 == engine.materialize(kept, "z")["h"]["z"]
        engine.discard(step)
        end(engine)
        assert_nothing_left(engine)


def break_executor(engine: Engine, patch: pytest.MonkeyPatch) -> None:
    """The device raises what no device may, to another call than the save."""

    def explode() -> None:
        msg = "no device says this"
        raise LookupError(msg)

    patch.setattr(executor_of(engine), "poll", explode)
    # Another thread may be at it, and it is that one's then.
    with suppress(LookupError, ExecutorBrokenError):
        engine.cache.reset()
    eventually(lambda: engine.cache._runtime._broken is not None)  # pyright: ignore[reportPrivateUsage]


def fail_write(engine: Engine, _: pytest.MonkeyPatch) -> None:
    """The write of a request that ended fails."""
    engine.device.release()
    eventually(lambda: engine.cache.stats().has_failed)


def fail_and_reset(engine: Engine, patch: pytest.MonkeyPatch) -> None:
    """And everything is reset, what the save reserved included."""
    fail_write(engine, patch)
    assert engine.cache.reset()


@pytest.mark.parametrize(
    ("interfere", "is_frozen", "expected", "why"),
    [
        (fail_write, True, WriteFailedError, "the test says so"),
        (fail_and_reset, True, SaveNotReservedError, "step 2"),
        (break_executor, True, ExecutorBrokenError, "no device says this"),
        (fail_write, False, FreezeFailedError, "step 2 could not be frozen"),
        (fail_and_reset, False, FreezeFailedError, "step 2 could not be frozen"),
        (break_executor, False, FreezeFailedError, "step 2 could not be frozen"),
    ],
)
def test_r12_save_raises_what_stopped_it_and_not_what_its_cancel_met(
    worker: bool,
    interfere: Callable[[Engine, pytest.MonkeyPatch], None],
    is_frozen: bool,
    expected: type[Exception],
    why: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The first error says what is the matter; that nothing could be given back any more is its consequence."""
    device = ScriptedDevice(worker=worker)
    with Engine(device=device) as engine, monkeypatch.context() as patch:
        device.hold(Lane.POOL)
        device.fail("copy", Lane.POOL)
        # Without rows its write is written at once, and the next save need not wait for a failing one.
        engine.step(started("a", 4), batch={"a": FIRST}, c=[1] * 4)
        engine.start(Finished("a"), started("b", 4))
        eventually(lambda: engine.cache.stats().open_writes == 1)
        interfered: list[Lane] = []

        def at_freeze(kind: str, lane: Lane | None) -> None:
            if kind == "copy" and lane is Lane.COMPUTE and not interfered:
                interfered.append(lane)
                interfere(engine, patch)

        device.before = at_freeze
        if not is_frozen:
            device.fail("copy", Lane.COMPUTE)
        with pytest.raises(expected, match=why) as raised:
            engine.save({"b": SECOND}, h=[2] * 4)

        assert [Lane.COMPUTE] == interfered
        # No error of the cancel is told as the one, with this behind it.
        assert not isinstance(raised.value.__context__, expected)
