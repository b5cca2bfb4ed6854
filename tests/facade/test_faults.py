"""Faults of a device: how far each reaches, what still works, and that nothing is left behind (R12, R18)."""

from collections.abc import Callable
from threading import Event, current_thread, main_thread
from typing import Any

import numpy as np
import pytest

from tenure import Finished, OutputCache, RowConfig, RowFormat, Schedule
from tenure.backends.device import Lane, Memory
from tenure.core.errors import (
    CopyOutFailedError,
    ExecutorBrokenError,
    ForeignTensorError,
    FreezeFailedError,
    OperationFailedError,
    PageLockedMemoryError,
    ReadFailedError,
    SaveNotReservedError,
    WriteFailedError,
)
from tenure.core.rows.view import ReadPhase
from tests.facade.devices import ScriptedDevice, ScriptedEvent
from tests.facade.engine import (
    FIRST,
    FOURTH,
    PATIENCE_S,
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


def spoil_page_copy(engine: Engine) -> None:
    """A step's copy to its page fails."""
    engine.device.fail("copy", Lane.COPY)
    engine.step(extended(a=4), batch={"a": SECOND}, h=[2] * 4, c=[6] * 4)


def spoil_scatter(engine: Engine) -> None:
    """Rows reach the host and not the pool."""
    engine.device.fail("copy", Lane.POOL)
    engine.step(extended(a=4), batch={"a": SECOND}, h=[2] * 4, c=[6] * 4)


def spoil_deferred_copy(engine: Engine) -> None:
    """What a request left behind at its end cannot be copied."""
    engine.device.fail("copy", Lane.COPY)
    engine.start(Finished("a"))


def spoil_deferred_memory(engine: Engine) -> None:
    """There is no host memory for what a request left behind."""
    # Neither page-locked nor pageable, nor once what lay idle was freed.
    engine.device.fail("allocate", times=9)
    engine.start(Finished("a"))


SPOILERS = (spoil_page_copy, spoil_scatter, spoil_deferred_copy, spoil_deferred_memory)


@pytest.mark.parametrize("spoil", SPOILERS, ids=lambda spoil: spoil.__name__)
def test_r12_failed_write_is_fatal_until_a_reset_and_leaks_nothing(
    worker: bool, spoil: Callable[[Engine], None]
) -> None:
    """Its rows are lost behind hashes that are published; what serves none of them must go on working."""
    device = ScriptedDevice(worker=worker)
    with Engine(device=device, pages=4) as engine:
        waiting = engine.step(started("a", 4), started("b", 1), batch={"a": FIRST, "b": (31,)}, h=[1] * 5, c=[5] * 5)
        eventually(lambda: engine.cache.stats().open_writes == 2)
        spoil(engine)
        eventually(lambda: engine.cache.stats().has_failed)
        assert device.struck >= (2 if spoil is spoil_deferred_memory else 1)
        device.forgive()
        found: list[WriteFailedError] = []
        for call in (
            lambda: engine.start(started("z", 1)),
            lambda: engine.materialize(waiting, "a"),
            lambda: engine.start(started("z", 1)),
        ):
            with pytest.raises(WriteFailedError, match="the test says so") as raised:
                call()
            found.append(raised.value)
        assert 1 == len({(each.write, each.step, each.reason) for each in found})
        assert "write" in str(found[0])
        engine.discard(waiting)
        assert engine.cache.reset()
        eventually(engine.is_quiet)
        assert not engine.cache.stats().has_failed

        engine.written("n", FIRST, h=[7] * 4, c=[8] * 4)
        step = engine.step(started("o", 4, 0), batch={"o": SECOND}, h=[9] * 4, c=[9] * 4)
        found_rows = engine.materialize(step, "o")
        assert [7] * 4 + [9] * 4 == found_rows["h"]["o"]
        assert [8] * 4 + [9] * 4 == found_rows["c"]["o"]
        engine.start(Finished("o"))
        engine.settle()
        eventually(engine.is_quiet)


def test_r12_deferred_rows_do_without_page_locked_memory(worker: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """A write that is lost stops the cache; pageable memory is only slower."""
    refused: list[Memory] = []

    def allocate(memory: Memory, rows: int, row_shape: tuple[int, ...], dtype: str) -> Any:
        if memory is Memory.PAGE_LOCKED:
            refused.append(memory)
            raise OperationFailedError("allocate", "there is none")
        return has_memory(memory, rows, row_shape, dtype)

    device = ScriptedDevice(worker=worker)
    with Engine(device=device) as engine:
        step = engine.step(started("a", 4), batch={"a": FIRST}, h=[1] * 4, c=[5, 6, 7, 8])
        engine.materialize(step, "a")
        has_memory = device.allocate
        monkeypatch.setattr(device, "allocate", allocate)
        engine.start(Finished("a"), started("b", 1, 0))
        step = engine.save({"b": (SECOND[0],)}, h=[2], c=[9])

        assert [5, 6, 7, 8, 9] == engine.materialize(step, "b")["c"]["b"]
        assert refused


def test_r12_save_that_waits_is_woken_by_a_failure(worker: bool) -> None:
    """It would wait for a write that never comes."""
    device = ScriptedDevice(worker=worker)
    with Engine(device=device) as engine:
        device.hold(Lane.POOL)
        device.fail("copy", Lane.POOL)
        step = engine.step(started("a", 4), batch={"a": FIRST}, h=[1] * 4)
        engine.materialize(step, "a")
        engine.start(extended(a=1))
        save = engine.save_later({"a": (4,)}, h=[2])
        device.release()
        with pytest.raises(WriteFailedError, match="write 1 of step 1"):
            save.result()
        assert engine.cache.reset()

        eventually(engine.is_quiet)


def test_r12_materialize_that_waits_is_woken_by_a_failure(worker: bool) -> None:
    """Nor does a builder wait for rows that are lost."""
    device = ScriptedDevice(worker=worker)
    with Engine(device=device) as engine:
        device.hold(Lane.COPY)
        device.fail("copy", Lane.COPY)
        step = engine.step(started("a", 4), batch={"a": FIRST}, h=[1] * 4)
        call = Call(engine.materialize, step, "a")
        device.release()
        with pytest.raises(WriteFailedError):
            call.result()
        engine.discard(step)

        assert engine.cache.reset()
        eventually(engine.is_quiet)


def test_r12_freeze_that_fails_late_costs_the_write(worker: bool) -> None:
    """A device may say only after the save that the frozen rows are no good; nobody may ever get them."""
    device = ScriptedDevice(worker=worker)
    with Engine(device=device) as engine:
        device.hold(Lane.COMPUTE)
        device.fail("copy", Lane.COMPUTE)
        step = engine.step(started("a", 4), batch={"a": FIRST}, h=[1] * 4)
        device.release()
        with pytest.raises(WriteFailedError):
            engine.materialize(step, "a")
        engine.discard(step)
        assert engine.cache.reset()
        eventually(engine.is_quiet)
        engine.written("b", FIRST, h=[2] * 4)

        eventually(engine.is_quiet)


def test_r12_freeze_that_fails_between_its_launch_and_the_publication_costs_the_write(
    worker: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Others carry commands out meanwhile, and must not forget it: the page copy would take what lies in the clone."""
    device = ScriptedDevice(worker=worker)
    with Engine(device=device) as engine:
        device.hold(Lane.COMPUTE)
        device.fail("copy", Lane.COMPUTE)
        query = device.query
        interrupted: list[bool] = []

        def late(event: ScriptedEvent) -> bool:
            found = query(event)
            if current_thread() is main_thread() and not interrupted:
                interrupted.append(found)
                device.release()
                for _ in range(3):
                    assert not engine.cache.reset()
                    Event().wait(0.01)
            return found

        monkeypatch.setattr(device, "query", late)
        step = engine.step(started("a", 4), batch={"a": FIRST}, h=[1] * 4)
        assert [False] == interrupted
        with pytest.raises(WriteFailedError, match="the test says so"):
            engine.materialize(step, "a")
        engine.discard(step)
        assert engine.cache.reset()

        eventually(engine.is_quiet)


def test_r20_clone_of_a_cancelled_save_is_free_when_the_device_is_done_with_it(worker: bool) -> None:
    """The copies that were asked for before the save failed may still run, into memory that is somebody else's."""
    device = ScriptedDevice(worker=worker)
    with Engine(device=device, page_rows_max=4) as engine:
        slab_bytes = 4 * 4
        engine.written("old", FIRST, c=[0] * 4)
        assert slab_bytes == engine.cache.stats().device_bytes
        engine.start(started("a", 4))
        device.hold(Lane.COMPUTE)
        device.fail("to_host", Lane.COMPUTE)
        with pytest.raises(FreezeFailedError):
            engine.save({"a": FIRST}, c=[1] * 4, ref=np.zeros(3))
        step = engine.save({"a": FIRST}, c=[2] * 4, ref=np.zeros(3))
        assert 2 * slab_bytes == engine.cache.stats().device_bytes
        device.release()

        assert [2] * 4 == engine.materialize(step, "a")["c"]["a"]
        engine.start(Finished("a"))
        engine.settle()
        eventually(engine.is_quiet)


@pytest.mark.parametrize("what", ["copy", "gather"])
def test_r14_gather_that_fails_costs_its_request_alone(worker: bool, what: str) -> None:
    """The damage of a failed read is the read's request; the others of the step are served."""
    device = ScriptedDevice(worker=worker)
    with Engine(device=device) as engine:
        # Blocks in order are one copy, the other way round an index. Nothing can be read before the save.
        blocks = (0, 1) if what == "copy" else (1, 0)
        device.fail(what, Lane.GATHER)
        batch = {"old": (*FIRST, *SECOND), "a": THIRD, "b": FOURTH}
        step = engine.step(
            started("old", 8), started("a", 4, *blocks), started("b", 4), batch=batch, h=[1] * 8 + [9] * 4 + [10] * 4
        )
        eventually(lambda: device.struck == 1)
        with pytest.raises(ReadFailedError, match=r"'a'.*the test says so"):
            engine.materialize(step, "b", "a")
        # What it gathered is worth nothing, and is not kept for the step.
        eventually(lambda: engine.cache.stats().buffers_held_bytes == 0)
        found = engine.materialize(step, "b", "old")
        assert [10] * 4 == found["h"]["b"]
        assert [1] * 8 == found["h"]["old"]
        assert not engine.cache.stats().has_failed
        engine.start(Finished("a"), Finished("b"), Finished("old"))
        engine.settle()

        eventually(engine.is_quiet)


def test_r14_read_without_memory_costs_its_request_alone(worker: bool) -> None:
    """As a gather that fails; there was no buffer to gather into."""
    device = ScriptedDevice(worker=worker)
    with Engine(device=device) as engine:
        engine.written("n", FOURTH, h=[0] * 4)
        # The next memory that is asked for is that of the read.
        device.fail("allocate", times=2)
        batch = {"old": FIRST, "a": SECOND, "b": THIRD}
        step = engine.step(
            started("old", 4), started("a", 4, 0), started("b", 4), batch=batch, h=[1] * 4 + [9] * 4 + [10] * 4
        )
        eventually(lambda: device.struck == 2)
        with pytest.raises(ReadFailedError, match="'a'"):
            engine.materialize(step, "a")
        assert [10] * 4 == engine.materialize(step, "b")["h"]["b"]
        engine.start(Finished("a"), Finished("b"), Finished("old"))
        engine.settle()

        eventually(engine.is_quiet)


def test_r02_speculative_gather_that_fails_is_planned_anew_at_the_save(worker: bool) -> None:
    """What a start began to read is a guess; that it failed is no reason to refuse the hit."""
    device = ScriptedDevice(worker=worker)
    with Engine(device=device) as engine:
        engine.written("old", FIRST, h=[1, 2, 3, 4])
        device.fail("copy", Lane.GATHER)
        engine.start(started("a", 4, 0))
        eventually(lambda: device.struck == 1)
        reads = engine.machine.state.tables.reads
        eventually(lambda: [ReadPhase.FAILED] == [each.phase for each in list(reads.values())])
        step = engine.save({"a": THIRD}, h=[9] * 4)

        assert [1, 2, 3, 4, 9, 9, 9, 9] == engine.materialize(step, "a")["h"]["a"]


def fail_clone(device: ScriptedDevice) -> None:
    """The copy of live rows fails."""
    device.fail("copy", Lane.COMPUTE)


def fail_leftover(device: ScriptedDevice) -> None:
    """The copy of a leftover fails."""
    device.fail("to_host", Lane.COMPUTE)


def fail_memory(nth: int) -> Callable[[ScriptedDevice], None]:
    """The n-th allocation fails: pool, three pages, slab of each new name."""
    return lambda device: device.fail("allocate", nth=nth)


FREEZE_FAULTS = {
    "clone": fail_clone,
    "leftover": fail_leftover,
    **{f"allocation {nth}": fail_memory(nth) for nth in range(1, 11)},
}


@pytest.mark.parametrize("ending", ["retry", "other shape", "drop"])
@pytest.mark.parametrize("fault", FREEZE_FAULTS.values(), ids=FREEZE_FAULTS)
def test_r08_save_whose_freeze_fails_is_cancelled_and_leaks_nothing(
    worker: bool, fault: Callable[[ScriptedDevice], None], ending: str
) -> None:
    """A failure before publication gives ticket, page and new names back, wherever it strikes."""
    device = ScriptedDevice(worker=worker)
    with Engine(device=device) as engine:
        engine.start(started("a", 4))
        fault(device)
        ref = np.arange(6, dtype=np.float32)
        with pytest.raises(FreezeFailedError, match=r"step 1 could not be frozen.*the test says so"):
            engine.save({"a": FIRST}, h=[1] * 4, c=[2] * 4, ref=ref)
        stats = engine.cache.stats()
        assert (0, 0, 0, 0) == (stats.names, stats.pages_held, stats.charged_bytes, stats.open_writes)
        if ending == "drop":
            engine.cache.drop_step(FIRST)
            engine.start(Finished("a"))
        else:
            hidden, mm = engine.outputs(h=[1] * 4, c=[2] * 4, ref=ref)
            if ending == "other shape":
                hidden = np.repeat(hidden, 3, axis=1)
            step = engine.cache.save_outputs(hidden, mm, layout=layout_of({"a": FIRST}))
            ref[:] = 0
            engine.overwrite()
            found = engine.cache.materialize(step, ("a",))
            assert found.hidden_states is not None
            assert np.array_equal(np.ones((4, 3 if ending == "other shape" else 1)), found.hidden_states["a"])
            assert [2] * 4 == found.mm_outputs["c"]["a"][:, 0].tolist()
            assert [0, 1, 2, 3, 4, 5] == found.mm_outputs["ref"]["a"].tolist()
            del found
            engine.start(Finished("a"))
        engine.settle()

        eventually(engine.is_quiet)


def test_r08_name_that_is_retried_with_another_shape_while_its_freeze_still_runs(worker: bool) -> None:
    """The clone of the first try lies in memory of the old shape, and is given back when the device is done with it."""
    device = ScriptedDevice(worker=worker)
    with Engine(device=device) as engine:
        engine.start(started("a", 4))
        device.hold(Lane.COMPUTE)
        device.fail("to_host", Lane.COMPUTE)
        with pytest.raises(FreezeFailedError):
            engine.save({"a": FIRST}, h=[1] * 4, ref=np.zeros(3, dtype=np.float32))
        wide = np.full((4, 2), 3, dtype=np.float32)
        step = engine.cache.save_outputs(wide, layout=layout_of({"a": FIRST}))
        device.release()
        found = engine.cache.materialize(step, ("a",))

        assert found.hidden_states is not None
        assert np.array_equal(np.full((4, 2), 3), found.hidden_states["a"])
        del found
        engine.start(Finished("a"))
        engine.settle()
        eventually(engine.is_quiet)
        assert not [each for each in device.held if each.array.shape[1:] == (1,)]


def test_r15_tensor_of_another_device_is_refused_and_the_save_cancelled(worker: bool) -> None:
    """The engine handed over what this device cannot read; it may hand over something else."""
    torch = pytest.importorskip("torch")
    with Engine(worker=worker, tensors="torch") as engine:
        engine.start(started("a", 4))
        with pytest.raises(ForeignTensorError, match=r"on meta.*torch tensors on the CPU"):
            engine.cache.save_outputs(torch.empty((4, 1), device="meta"), layout=layout_of({"a": FIRST}))
        stats = engine.cache.stats()
        assert (0, 0, 0) == (stats.names, stats.pages_held, stats.charged_bytes)
        step = engine.save({"a": FIRST}, h=[1] * 4)

        assert [1] * 4 == engine.materialize(step, "a")["h"]["a"]


def test_r15_pages_that_do_not_fit_page_locked_memory_cancel_the_save(worker: bool) -> None:
    """A name is refused with the sizes when it is first seen, and the others go on."""
    device = ScriptedDevice(worker=worker)
    device.page_locked_max = 3 * 64 * 4
    with Engine(device=device) as engine:
        engine.start(started("a", 4))
        with pytest.raises(PageLockedMemoryError, match=r"pages of m need 768 page-locked bytes, 768 are used and dev"):
            engine.save({"a": FIRST}, h=[1] * 4, m=[2] * 4)
        step = engine.save({"a": FIRST}, h=[1] * 4)
        assert [1] * 4 == engine.materialize(step, "a")["h"]["a"]
        engine.start(Finished("a"))
        engine.settle()

        eventually(engine.is_quiet)


def test_r01_materialize_without_memory_consumes_nothing(worker: bool) -> None:
    """There may be memory for it later."""
    device = ScriptedDevice(worker=worker)
    with Engine(device=device) as engine:
        step = engine.step(started("a", 4), batch={"a": FIRST}, h=[1] * 4, m=[2] * 4)
        engine.settle()
        # The second name's: the first one's was leased by then.
        device.fail("allocate", nth=2, times=2)
        with pytest.raises(CopyOutFailedError, match=r"step 1 could not be copied out.*the test says so"):
            engine.materialize(step, "a")
        device.fail("copy_now")
        with pytest.raises(CopyOutFailedError):
            engine.materialize(step, "a")
        assert 0 == engine.cache.stats().buffers_held_bytes
        found = engine.materialize(step, "a")

        assert [1] * 4 == found["h"]["a"]
        assert [2] * 4 == found["m"]["a"]
        engine.start(Finished("a"))
        eventually(engine.is_quiet)


def test_r12_broken_executor_says_so_and_can_be_shut_down(worker: bool) -> None:
    """A device that raises what no device may is a fault for good; nobody waits for it."""
    device = ScriptedDevice(worker=worker)

    def explode(kind: str, lane: Lane | None) -> None:
        if (kind, lane) == ("copy", Lane.COPY):
            msg = "no device says this"
            raise LookupError(msg)

    engine = Engine(device=device, wait_timeout_s=PATIENCE_S)
    device.before = explode
    # Whoever carries commands out when it happens gets the error itself; everybody else is told what it was.
    call = Call(lambda: engine.materialize(engine.step(started("a", 4), batch={"a": FIRST}, h=[1] * 4), "a"))
    with pytest.raises((LookupError, ExecutorBrokenError), match="no device says this"):
        call.result()
    for refused in (
        lambda: engine.materialize(1, "a"),
        lambda: engine.start(extended(a=1)),
        lambda: engine.discard(1),
        engine.cache.reset,
    ):
        with pytest.raises(ExecutorBrokenError, match="no device says this"):
            refused()
    assert 1 == engine.cache.stats().unconsumed_steps
    engine.cache.shutdown()


def test_r24_save_whose_cache_is_reset_before_it_is_published_is_told_so(worker: bool) -> None:
    """A reset after a failure does not wait for a freeze; what that one made is given back when it is over."""
    device = ScriptedDevice(worker=worker)
    with Engine(device=device) as engine:
        device.hold(Lane.POOL)
        device.fail("copy", Lane.POOL)
        # Without rows its write is written at once, and the next save need not wait for a failing one.
        engine.step(started("a", 4), batch={"a": FIRST}, c=[1] * 4)
        engine.start(Finished("a"), started("b", 4))
        eventually(lambda: engine.cache.stats().open_writes == 1)

        def interfere(kind: str, lane: Lane | None) -> None:
            if (kind, lane) == ("copy", Lane.COMPUTE):
                device.before = lambda kind, lane: None
                device.release()
                eventually(lambda: engine.cache.stats().has_failed)
                assert engine.cache.reset()

        device.before = interfere
        with pytest.raises(SaveNotReservedError):
            engine.save({"b": SECOND}, h=[2] * 4)
        assert 1 == device.struck
        eventually(engine.is_quiet)
        engine.written("n", FIRST, h=[7] * 4)

        eventually(engine.is_quiet)


def test_r15_formats_that_do_not_fit_are_refused_at_construction(worker: bool) -> None:
    """Better than in the middle of a step; and what was allocated by then is given back."""
    device = ScriptedDevice(worker=worker)
    formats = [RowFormat(name, (2,), "float32", Schedule.JOIN_NEXT_STEP) for name in ("m", "k")]
    config = RowConfig(num_blocks=8, block_size=4, page_rows_max=64, pages=2, page_locked_bytes_max=1500)
    with pytest.raises(PageLockedMemoryError, match=r"pages of k need 1024.*page_locked_bytes_max allows 1500"):
        OutputCache(config, device=device, formats=formats)
    device.close(1.0)

    # The pool and the two pages of the name that fits.
    assert 3 == device.calls["allocate", None]
