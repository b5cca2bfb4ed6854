"""Reads that end late, while their slots are computed anew: what is set aside, ordered, dropped (R13, R20, R23)."""

import pytest

from tenure import Finished
from tenure.backends.device import Lane
from tenure.core.errors import ReadFailedError, UnreadableHitError
from tests.facade.devices import ScriptedDevice
from tests.facade.engine import FIRST, FOURTH, SECOND, THIRD, WORKERS, Engine, eventually, started

pytestmark = pytest.mark.parametrize("worker", WORKERS, ids=["inline", "threaded"])
FIFTH = (16, 17, 18, 19)


def late(worker: bool) -> tuple[Engine, ScriptedDevice, int]:
    """A step of two hits: a's read runs and stands still, b's waits for its turn."""
    device = ScriptedDevice(worker=worker)
    engine = Engine(device=device, gathers_max=1)
    engine.written("old", (*FIRST, *SECOND), h=[1, 2, 3, 4, 5, 6, 7, 8])
    device.hold(Lane.GATHER)
    step = engine.step(started("a", 4, 0), started("b", 4, 1), batch={"a": THIRD, "b": FOURTH}, h=[10] * 4 + [11] * 4)
    engine.settle()
    return engine, device, step


def over(engine: Engine) -> None:
    """Everything ended, and nothing is left."""
    engine.start(*(Finished(each) for each in list(engine.machine.state.tables.live)))
    engine.settle()
    eventually(engine.is_quiet)


def test_r13_rows_of_a_read_that_has_not_begun_are_set_aside(worker: bool) -> None:
    """The block is another tenant's by the time that the gather runs; only the rows that overlap are copied."""
    engine, device, step = late(worker)
    with engine:
        # Half of b's block; its rows are old's until the read is done.
        other = engine.step(started("d", 2), batch={"d": (5, 7)}, h=[77] * 2)
        assert [77] * 2 == engine.materialize(other, "d")["h"]["d"]
        engine.settle()
        assert 2 == engine.cache.stats().counters.rows_preserved
        assert 2 * 4 == engine.cache.stats().bytes_copied["preserve"]
        device.release()
        found = engine.materialize(step, "a", "b")
        assert [1, 2, 3, 4] + [10] * 4 == found["h"]["a"]
        assert [5, 6, 7, 8] + [11] * 4 == found["h"]["b"]
        again = engine.step(started("e", 1, 1), batch={"e": (20,)}, h=[0])

        assert [5, 77, 7, 77, 0] == engine.materialize(again, "e")["h"]["e"]
        over(engine)


def test_r13_rows_are_set_aside_for_a_read_more_than_once(worker: bool) -> None:
    """Several steps take parts of a hit; each part is old's own."""
    engine, device, step = late(worker)
    with engine:
        for number, slots in enumerate(((7, 4), (5,), (4, 6))):
            request = f"d{number}"
            later = engine.step(started(request, len(slots)), batch={request: slots}, h=[70 + number] * len(slots))
            engine.materialize(later, request)
        engine.settle()
        # Slot 4 was set aside by the first and not by the third.
        assert 4 == engine.cache.stats().counters.rows_preserved
        device.release()

        assert [5, 6, 7, 8] + [11] * 4 == engine.materialize(step, "b")["h"]["b"]
        over(engine)


def test_r13_scatter_is_ordered_behind_a_gather_that_runs(worker: bool) -> None:
    """Nothing is copied aside for what is under way; the pool rows are overwritten when it has read them."""
    engine, device, step = late(worker)
    with engine:
        other = engine.step(started("d", 4), batch={"d": FIRST}, h=[77] * 4)
        assert [77] * 4 == engine.materialize(other, "d")["h"]["d"]
        assert 1 == engine.cache.stats().open_writes
        assert 0 == engine.cache.stats().counters.rows_preserved
        device.release()
        assert [1, 2, 3, 4] + [10] * 4 == engine.materialize(step, "a")["h"]["a"]
        engine.settle()
        again = engine.step(started("e", 1, 0), batch={"e": (20,)}, h=[0])

        assert [77] * 4 + [0] == engine.materialize(again, "e")["h"]["e"]
        over(engine)


def test_r14_scatter_behind_a_gather_that_fails_lands_all_the_same(worker: bool) -> None:
    """It was ordered behind the gather, and needs nothing of it; a cache must not fail with one read."""
    engine, device, step = late(worker)
    with engine:
        other = engine.step(started("d", 4), batch={"d": FIRST}, h=[77] * 4)
        engine.discard(other)
        device.fail("copy", Lane.GATHER)
        device.release()
        engine.settle()
        with pytest.raises(ReadFailedError, match="'a'"):
            engine.materialize(step, "a")
        assert [5, 6, 7, 8] + [11] * 4 == engine.materialize(step, "b")["h"]["b"]
        again = engine.step(started("e", 1, 0), batch={"e": (20,)}, h=[0])

        assert [77] * 4 + [0] == engine.materialize(again, "e")["h"]["e"]
        over(engine)


@pytest.mark.parametrize("fault", ["operation", "memory"])
def test_r14_preserve_that_fails_costs_its_request_alone(
    worker: bool, fault: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rows are gone with the new tenant's scatter; nobody may be served what is there instead."""
    # Nothing is used again, so whatever needs memory asks for it.
    monkeypatch.setattr("tenure.backends.memory.IDLE_BYTES_MAX", 0)
    engine, device, step = late(worker)
    with engine:
        engine.start(started("d", 4))
        device.fail(*(("copy", Lane.POOL) if fault == "operation" else ("allocate", None)))
        other = engine.save({"d": SECOND}, h=[77] * 4)
        engine.settle()
        assert 1 == device.struck
        device.release()
        assert [77] * 4 == engine.materialize(other, "d")["h"]["d"]
        with pytest.raises(ReadFailedError, match=r"'b'.*the test says so"):
            engine.materialize(step, "a", "b")
        assert [1, 2, 3, 4] + [10] * 4 == engine.materialize(step, "a")["h"]["a"]
        assert not engine.cache.stats().has_failed
        again = engine.step(started("e", 1, 1), batch={"e": (20,)}, h=[0])

        assert [77] * 4 + [0] == engine.materialize(again, "e")["h"]["e"]
        over(engine)


def test_r23_read_that_is_dropped_while_it_runs_keeps_its_edge_and_buffer_until_it_ends(worker: bool) -> None:
    """Nobody wants it; its memory must not be given to the next one while the device still writes it."""
    engine, device, step = late(worker)
    with engine:
        engine.discard(step)
        # One read has no buffer yet and goes at once; the other is at it.
        assert 1 == engine.cache.stats().reads
        held = engine.cache.stats().buffers_held_bytes
        assert held
        other = engine.step(started("d", 4), batch={"d": FIRST}, h=[77] * 4)
        assert [77] * 4 == engine.materialize(other, "d")["h"]["d"]
        assert (1, held) == (engine.cache.stats().open_writes, engine.cache.stats().buffers_held_bytes)
        device.release()
        engine.settle()
        eventually(lambda: engine.cache.stats().buffers_held_bytes == 0)

        assert 0 == engine.cache.stats().counters.rows_preserved
        over(engine)


def test_r20_room_for_rows_on_their_way_is_nobody_else_s_until_they_arrived(worker: bool) -> None:
    """Rows that are picked before they are scattered lie in between; results must not be put into the same memory."""
    device = ScriptedDevice(worker=worker)
    with Engine(device=device, pages=4) as engine:
        engine.discard(engine.step(started("a", 4), batch={"a": FIRST}, c=[1, 2, 3, 4]))
        kept = engine.step(started("b", 1), batch={"b": (1,)}, c=[9])
        engine.settle_writes_of_steps()
        device.hold(Lane.POOL)
        engine.start(Finished("a"))
        # All but the row that b took since.
        eventually(lambda: device.calls["scatter", Lane.POOL] == 1)
        assert 1 == device.calls["gather", Lane.POOL]
        found = engine.cache.materialize(kept, ["b"]).mm_outputs["c"]
        device.release()
        engine.settle_writes_of_steps()

        assert [[9.0]] == found["b"].tolist()
        del found
        step = engine.step(started("e", 1, 0), batch={"e": (20,)}, h=[0], c=[5])
        with pytest.raises(UnreadableHitError):
            engine.materialize(step, "e")
        engine.discard(step)
        step = engine.step(started("f", 1, 0), batch={"f": (21,)}, c=[6])
        assert [1, 9, 3, 4, 6] == engine.materialize(step, "f")["c"]["f"]
        over(engine)


def test_r11_no_more_gathers_run_at_once_than_configured_and_all_of_them_run(worker: bool) -> None:
    """A burst of hits must not take all memory; nor may a read that was dropped take a place for ever."""
    device = ScriptedDevice(worker=worker)
    with Engine(device=device, gathers_max=2, num_blocks=32) as engine:
        engine.written("old", (*FIRST, *SECOND), h=[1, 2, 3, 4, 5, 6, 7, 8], m=[1] * 8)
        device.hold(Lane.GATHER)
        requests = [f"r{number}" for number in range(6)]
        batch = {request: (40 + place,) for place, request in enumerate(requests)}
        dropped = engine.step(*(started(each, 1, 0, 1) for each in requests), batch=batch, h=[0] * 6, m=[0] * 6)
        engine.settle()
        eventually(lambda: device.calls["copy", Lane.GATHER] == 2)
        engine.discard(dropped)
        again = [f"s{number}" for number in range(6)]
        batch = {request: (60 + place,) for place, request in enumerate(again)}
        step = engine.step(*(started(each, 1, 0, 1) for each in again), batch=batch, h=[9] * 6, m=[0] * 6)
        engine.settle()
        assert 2 == device.calls["copy", Lane.GATHER]
        device.release()
        found = engine.materialize(step, *again)

        assert {each: [1, 2, 3, 4, 5, 6, 7, 8, 9] for each in again} == found["h"]
        assert 2 + 12 == device.calls["copy", Lane.GATHER]
        over(engine)


def test_r12_device_that_never_completes_costs_a_time_out_and_no_thread(worker: bool) -> None:
    """Every wait ends, and so does the shutdown; FOURTH, FIFTH and the rest stay what they were."""
    engine, device, step = late(worker)
    device.hold(Lane.COPY, Lane.POOL, Lane.COMPUTE)
    engine.start(started("z", 4))
    save = engine.save_later({"z": FIFTH}, h=[1] * 4)
    assert save.result() == step + 1
    engine.start(started("y", 1))
    blocked = engine.save_later({"y": (30,)}, h=[1])
    engine.cache.shutdown()
    with pytest.raises(Exception, match="shut down"):
        blocked.result()

    assert 2 == engine.cache.stats().pages_held
