"""The emulated device: the duties of the port, races, poison, faults."""

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tenure.backends.device import Lane, Memory, Rows
from tenure.backends.fake import FAULT_KINDS, FakeDevice, FaultKind, Faults, Scripted, Seeded, timeline
from tenure.backends.fake.memory import POISON, FakeBuffer
from tenure.backends.fake.operations import FakeEvent
from tenure.core.arrays import integers
from tenure.core.errors import ForeignTensorError, OperationFailedError


def buffer_of(device: FakeDevice, *values: int, memory: Memory = Memory.PAGEABLE) -> FakeBuffer:
    """A buffer of one number a row, written by the host."""
    buffer = device.allocate(memory, len(values), (), "int64")
    source = device.live("x", np.array(values, dtype=np.int64))
    device.copy_now(Rows(buffer, 0, len(values)), Rows(source, 0, len(values)))
    return buffer


def all_of(buffer: FakeBuffer) -> Rows:
    """Every row."""
    return Rows(buffer, 0, len(buffer.array))


def values_of(device: FakeDevice, buffer: FakeBuffer) -> list[int]:
    """What the host reads there."""
    found: list[int] = device.cut(all_of(buffer)).tolist()
    return found


def kinds_of(device: FakeDevice) -> list[str]:
    """What was found, by kind."""
    return [each.kind for each in device.findings]


def ended(device: FakeDevice, lane: Lane) -> bool:
    """Whether everything asked of a lane has ended, after the device went on as far as it can."""
    event = device.record(lane)
    device.settle()
    return device.query(event)


# --- Lanes, waits, events ---------------------------------------------------------------------------------------------


def test_duty1_operations_of_one_lane_run_in_order() -> None:
    """The last of two copies to one place is what stands there."""
    for seed in range(8):
        device = FakeDevice(Seeded(seed))
        first, second, target = buffer_of(device, 1), buffer_of(device, 2), buffer_of(device, 0)
        device.copy(Lane.POOL, all_of(target), all_of(first))
        device.copy(Lane.POOL, all_of(target), all_of(second))
        assert ended(device, Lane.POOL)
        assert [2] == values_of(device, target)
        assert [] == device.findings


def test_duty1_lanes_run_in_any_order() -> None:
    """Both orders are reached; a device that always runs in one hides what depends on it."""
    seen: set[tuple[int, ...]] = set()
    for choice in (0, 1):
        device = FakeDevice(Scripted([choice]))
        first, second, target = buffer_of(device, 1), buffer_of(device, 2), buffer_of(device, 0)
        device.copy(Lane.POOL, all_of(target), all_of(first))
        device.copy(Lane.GATHER, all_of(target), all_of(second))
        device.settle()
        seen.add(tuple(target.array.tolist()))

    assert {(1,), (2,)} == seen


def test_duty2_nothing_has_run_when_a_call_returns() -> None:
    """So whoever counts on it is found out."""
    device = FakeDevice()
    source, target = buffer_of(device, 1), buffer_of(device, 0)
    device.copy(Lane.COPY, all_of(target), all_of(source))
    event = device.record(Lane.COPY)
    assert not device.query(event)
    assert [0] == target.array.tolist()

    device.advance(Lane.COPY)

    assert device.query(event)
    assert [1] == target.array.tolist()


def test_duty3_a_lane_goes_no_further_than_an_event_it_waits_for() -> None:
    """In whatever order the lanes are let go on."""
    device = FakeDevice()
    source, middle, target = buffer_of(device, 1), buffer_of(device, 0), buffer_of(device, 0)
    device.copy(Lane.COPY, all_of(middle), all_of(source))
    event = device.record(Lane.COPY)
    device.wait(Lane.POOL, event, is_needed=True)
    device.copy(Lane.POOL, all_of(target), all_of(middle))
    assert [Lane.COPY] == device.ready()
    device.settle()

    assert ended(device, Lane.POOL)
    assert [1] == values_of(device, target)
    assert [] == device.findings


def test_duty3_an_event_that_was_never_recorded_is_waited_for_by_nobody() -> None:
    """As CUDA has it: a forgotten record must not look like an edge."""
    device = FakeDevice()
    source, target = buffer_of(device, 1), buffer_of(device, 0)
    device.wait(Lane.POOL, FakeEvent(), is_needed=True)
    device.copy(Lane.POOL, all_of(target), all_of(source))

    assert [Lane.POOL] == device.ready()


def test_duty4_a_failure_passes_over_what_follows_up_to_the_next_event() -> None:
    """That event fails, once, and the lane goes on behind it."""
    device = FakeDevice()
    source, target = buffer_of(device, 1), buffer_of(device, 0)
    device.copy(Lane.POOL, all_of(target), all_of(source))
    device.zero_rows(Lane.POOL, all_of(source))
    failed = device.record(Lane.POOL)
    device.advance(Lane.POOL, fails=True)
    device.settle()
    with pytest.raises(OperationFailedError, match="told to fail"):
        device.query(failed)
    assert [1] == source.array.tolist()
    device.copy(Lane.POOL, all_of(target), all_of(source))

    assert ended(device, Lane.POOL)
    assert [1] == values_of(device, target)


@pytest.mark.parametrize("is_needed", [True, False])
def test_duty4_who_needs_a_failed_event_fails_and_who_does_not_goes_on(is_needed: bool) -> None:
    """A scatter behind a failed gather is only ordered behind it."""
    device = FakeDevice()
    source, target = buffer_of(device, 1), buffer_of(device, 0)
    device.copy(Lane.GATHER, all_of(buffer_of(device, 0)), all_of(source))
    event = device.record(Lane.GATHER)
    device.wait(Lane.POOL, event, is_needed=is_needed)
    device.copy(Lane.POOL, all_of(target), all_of(source))
    behind = device.record(Lane.POOL)
    device.advance(Lane.GATHER, fails=True)
    device.settle()

    if is_needed:
        with pytest.raises(OperationFailedError):
            device.query(behind)
    else:
        assert device.query(behind)
    assert [0 if is_needed else 1] == target.array.tolist()


def test_duty2_live_outputs_are_read_in_order_with_the_forward_pass() -> None:
    """Behind what was asked before, ahead of what is asked later."""
    device = FakeDevice()
    live = np.zeros(2, dtype=np.int64)
    clone = device.allocate(Memory.DEVICE, 2, (), "int64")
    device.forward(live, np.array([1, 2]))
    device.copy(Lane.COMPUTE, all_of(clone), Rows(device.live("x", live), 0, 2))
    device.forward(live, np.array([3, 4]))
    device.settle()

    assert [1, 2] == clone.array.tolist()
    assert [3, 4] == live.tolist()
    assert [] == device.findings


def test_duty9_nothing_runs_after_close() -> None:
    """What has not ended by then never does."""
    device = FakeDevice()
    source, target = buffer_of(device, 1), buffer_of(device, 0)
    device.copy(Lane.COPY, all_of(target), all_of(source))
    event = device.record(Lane.COPY)
    device.close(1.0)
    assert [] == device.ready()
    assert not device.query(event)
    device.free(source)

    assert [] == device.findings


@pytest.mark.parametrize("in_pieces", [False, True])
def test_duty8_a_device_with_a_thread_goes_on_by_itself_and_tells(in_pieces: bool) -> None:
    """The executor needs nobody who drives it."""
    device = FakeDevice(Seeded(3), is_driven=False, in_pieces=in_pieces)
    news: list[bool] = []
    device.listen(lambda: news.append(True))
    source, target = buffer_of(device, 1, 2, 3), buffer_of(device, 0, 0, 0)
    device.gather_rows(Lane.GATHER, all_of(target), source, integers([2, 0, 1]))
    event = device.record(Lane.GATHER)
    assert device.synchronize(event, 10.0)
    assert [3, 1, 2] == values_of(device, target)
    device.close(10.0)

    assert news
    assert [] == device.findings


# --- Races ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("first", [Lane.POOL, Lane.GATHER])
def test_r20_unordered_accesses_are_a_race_in_whichever_order_they_ran(first: Lane) -> None:
    """A run that went well by chance is no proof; the report says what is missing."""
    device = FakeDevice()
    source, pool, read = buffer_of(device, 1, 2), buffer_of(device, 0, 0), buffer_of(device, 0, 0)
    device.scatter_rows(Lane.POOL, pool, integers([1]), Rows(source, 0, 1))
    device.copy(Lane.GATHER, all_of(read), all_of(pool))
    device.advance(first)
    device.settle()
    (found,) = device.findings
    text = str(found)

    assert "race" == found.kind
    assert "row 1 of pageable buffer" in text
    assert "scatter_rows #" in text
    assert "copy #" in text
    assert f"waits for no event that was recorded in lane {first.name}" in text


def test_r20_rows_apart_and_two_readers_are_no_race() -> None:
    """A detector that cries at everything is switched off."""
    device = FakeDevice()
    source, pool = buffer_of(device, 1, 2), buffer_of(device, 0, 0)
    reads = buffer_of(device, 0), buffer_of(device, 0)
    device.scatter_rows(Lane.POOL, pool, integers([1]), Rows(source, 0, 1))
    device.copy(Lane.GATHER, all_of(reads[0]), Rows(pool, 0, 1))
    device.copy(Lane.COPY, all_of(reads[1]), Rows(pool, 0, 1))
    device.settle()

    assert [] == device.findings


def test_r20_the_host_is_ordered_behind_what_it_was_told_has_ended() -> None:
    """And behind nothing else, however long ago it ran."""
    for is_asked in (True, False):
        device = FakeDevice()
        source, target = buffer_of(device, 1), buffer_of(device, 0)
        device.copy(Lane.COPY, all_of(target), all_of(source))
        event = device.record(Lane.COPY)
        device.settle()
        if is_asked:
            assert device.query(event)
        device.cut(all_of(target))

        assert ([] if is_asked else ["race"]) == kinds_of(device)
        if not is_asked:
            assert "nobody asked whether" in str(device.findings[0])


def test_r20_an_edge_through_a_third_lane_is_an_edge() -> None:
    """Happens-before is transitive."""
    device = FakeDevice()
    source, middle, target = buffer_of(device, 1), buffer_of(device, 0), buffer_of(device, 0)
    device.copy(Lane.COPY, all_of(middle), all_of(source))
    device.wait(Lane.GATHER, device.record(Lane.COPY), is_needed=True)
    device.wait(Lane.POOL, device.record(Lane.GATHER), is_needed=True)
    device.copy(Lane.POOL, all_of(target), all_of(middle))
    device.settle()

    assert [] == device.findings


def test_r20_a_write_over_what_another_lane_reads_is_a_race() -> None:
    """Two readers, one of them unordered with the writer."""
    device = FakeDevice()
    source, pool = buffer_of(device, 1), buffer_of(device, 5)
    reads = buffer_of(device, 0), buffer_of(device, 0)
    device.copy(Lane.GATHER, all_of(reads[0]), all_of(pool))
    device.wait(Lane.POOL, device.record(Lane.GATHER), is_needed=False)
    device.copy(Lane.COPY, all_of(reads[1]), all_of(pool))
    device.copy(Lane.POOL, all_of(pool), all_of(source))
    device.settle()
    (found,) = device.findings

    assert "race" == found.kind
    assert {"POOL", "COPY"} == {found.later.actor, found.earlier.actor if found.earlier else ""}


# --- Memory -----------------------------------------------------------------------------------------------------------


def test_r20_memory_that_was_never_written_is_poison_and_handing_it_out_is_told() -> None:
    """So rows that nobody wrote cannot pass for zeros; copies pass it on."""
    device = FakeDevice()
    fresh = device.allocate(Memory.PAGE_LOCKED, 2, (3,), "uint8")
    target = device.allocate(Memory.PAGEABLE, 2, (3,), "uint8")
    device.copy(Lane.COPY, all_of(target), all_of(fresh))
    assert ended(device, Lane.COPY)
    assert [[POISON] * 3] * 2 == target.array.tolist()
    device.cut(all_of(target))

    assert ["poison"] == kinds_of(device)
    assert "rows 0 to 1 of pageable buffer 2" in str(device.findings[0])


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "int32", "int64", "uint8", "bool"])
@pytest.mark.parametrize("shape", [(), (3,), (2, 2)])
def test_r20_every_dtype_and_shape_is_poisoned(dtype: str, shape: tuple[int, ...]) -> None:
    """A kind of memory without poison is one without a check."""
    buffer = FakeDevice().allocate(Memory.DEVICE, 2, shape, dtype)

    # What is either true or false has no byte to spare.
    assert {1 if dtype == "bool" else POISON} == set(buffer.array.tobytes())


def test_r18_memory_that_was_given_back_is_poison_and_using_it_is_told() -> None:
    """Whoever is late reads nothing that looks right."""
    device = FakeDevice()
    source, target = buffer_of(device, 1), buffer_of(device, 0)
    device.copy(Lane.GATHER, all_of(target), all_of(source))
    device.free(source)
    device.settle()

    assert "use after free" in kinds_of(device)
    assert {POISON} == set(target.array.tobytes())


def test_r18_giving_back_twice_is_told() -> None:
    """And what was never allocated."""
    device = FakeDevice()
    buffer = buffer_of(device, 1)
    device.free(buffer)
    device.free(buffer)

    assert ["bad free"] == kinds_of(device)
    assert set() == device.held


def test_r20_rows_are_poison_while_they_are_written() -> None:
    """One row at a time, others see every prefix."""
    device = FakeDevice(in_pieces=True)
    source, target = buffer_of(device, 1, 2), buffer_of(device, 7, 7)
    device.copy(Lane.COPY, all_of(target), all_of(source))
    event = device.record(Lane.COPY)
    device.advance(Lane.COPY)
    assert 1 == target.array[0]
    assert {POISON} == set(target.array[1:].tobytes())
    assert not device.query(event)
    device.advance(Lane.COPY)

    assert device.query(event)
    assert [1, 2] == values_of(device, target)


def test_leftovers_hold_their_content_when_the_lane_is_past_them() -> None:
    """Of any shape; before that they are poison."""
    for value in (np.arange(6).reshape(2, 3), np.array(4.5), np.zeros((0, 2))):
        device = FakeDevice()
        live = value.copy()
        copy = device.to_host(Lane.COMPUTE, live)
        if live.size:
            assert not np.array_equal(value, copy)
        device.settle()

        assert np.array_equal(value, copy)
        assert [] == device.findings


def test_foreign_tensors_are_refused_by_name() -> None:
    """A list is no tensor."""
    with pytest.raises(ForeignTensorError, match="list"):
        FakeDevice().live("x", [1, 2])


# --- Faults -----------------------------------------------------------------------------------------------------------


def struck(kind: FaultKind) -> tuple[FakeDevice, npt.NDArray[Any], FakeBuffer]:
    """A device on which a fault strikes the next time it can, a live output and a buffer."""
    device = FakeDevice(faults=Faults(Seeded(0), ()))
    target = device.allocate(Memory.PAGEABLE, 1, (), "int64")
    device.faults._left[kind] = 1  # pyright: ignore[reportPrivateUsage] - the next time
    return device, np.array([1]), target


@pytest.mark.parametrize("rows", [2**50, 2**62])
def test_duty5_memory_that_this_machine_has_not_is_refused_and_none_is_held(rows: int) -> None:
    """By the error that an executor can act on, with no fault asked for."""
    device = FakeDevice()
    for memory in Memory:
        with pytest.raises(OperationFailedError, match=f"allocate {rows} rows"):
            device.allocate(memory, rows, (256,), "float32")

    assert not device.held
    assert 1 == device.allocate(Memory.DEVICE, 1, (), "int64").number


def test_faults_that_a_call_tells_at_once() -> None:
    """An operation, and an allocation."""
    device, live, target = struck("call")
    with pytest.raises(OperationFailedError):
        device.copy(Lane.COPY, all_of(target), Rows(device.live("x", live), 0, 1))
    device, live, target = struck("allocation")
    with pytest.raises(OperationFailedError):
        device.allocate(Memory.DEVICE, 1, (), "int64")

    assert {"allocation": 1} == device.faults.injected


@pytest.mark.parametrize("kind", ["copy", "stuck", "worker", "lost", "late"])
def test_faults_in_a_lane(kind: FaultKind) -> None:
    """The event fails, or never completes, or completes late."""
    device, live, target = struck(kind)
    lane = Lane.POOL
    device.copy(lane, all_of(target), Rows(device.live("x", live), 0, 1))
    event = device.record(lane)
    device.settle()

    assert {kind: 1} == device.faults.injected
    if kind in ("copy", "lost"):
        with pytest.raises(OperationFailedError):
            device.query(event)
        assert {POISON} == set(target.array.tobytes())
    else:
        assert (kind == "late") is device.query(event)
        assert device.stands_still is (kind != "late")


def test_a_lost_device_refuses_everything() -> None:
    """And says why."""
    device = FakeDevice()
    buffer = buffer_of(device, 1)
    device.lose()
    with pytest.raises(OperationFailedError, match="lost"):
        device.allocate(Memory.DEVICE, 1, (), "int64")
    with pytest.raises(OperationFailedError, match="lost"):
        device.copy(Lane.COPY, all_of(buffer), all_of(buffer))


def run_once(chooser: Seeded | Scripted, kinds: Sequence[FaultKind]) -> list[str]:
    """A few copies in three lanes, and what became of them."""
    device = FakeDevice(chooser, faults=Faults(chooser, kinds))
    told: list[str] = []
    for number in range(400):
        try:
            source, target = buffer_of(device, number), buffer_of(device, 0)
            lane = (Lane.COPY, Lane.POOL, Lane.GATHER)[number % 3]
            device.copy(lane, all_of(target), all_of(source))
            event = device.record(lane)
            if number % 5 == 0:
                device.settle()
            told.append(str(device.query(event)))
        except OperationFailedError as error:
            told.append(str(error))
    return [*told, str(device.faults.injected)]


def test_runs_are_repeated_by_their_seed_and_by_their_choices() -> None:
    """A failure that cannot be seen again is not found."""
    chooser = Seeded(5, keep=True)
    told = run_once(chooser, FAULT_KINDS)

    assert told == run_once(Seeded(5), FAULT_KINDS)
    assert told == run_once(Scripted(chooser.taken), FAULT_KINDS)
    assert told != run_once(Seeded(6), FAULT_KINDS)
    assert "Counter()" != told[-1]


def test_timeline_shows_operations_by_lane() -> None:
    """What ended, from when to when, and at which rows."""
    device = FakeDevice(in_pieces=True)
    source, target = buffer_of(device, 1, 2), buffer_of(device, 0, 0)
    device.copy(Lane.COPY, all_of(target), all_of(source))
    device.copy(Lane.POOL, all_of(source), all_of(source))
    device.advance(Lane.COPY)
    device.advance(Lane.COPY)
    told = json.loads(json.dumps(timeline(device.operations)))
    (shown,) = [each for each in told["traceEvents"] if each["ph"] == "X"]

    assert shown["name"].startswith("copy #")
    assert (1, "rows 0 to 1 of pageable buffer 3") == (shown["dur"], shown["args"]["target"])
    assert "COPY" == [each["args"]["name"] for each in told["traceEvents"] if each["ph"] == "M"][shown["tid"]]
