"""Memory that is used again: never by two at once, never more than the limits, and none anew in a steady state."""

import gc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, rule

from tenure import Finished, OutputCache, RowConfig, RowFormat, Schedule
from tenure.backends import memory
from tenure.backends.device import Memory
from tenure.backends.executor import Executor
from tenure.backends.memory import Allocator, Buffers, Lease, Region, Slabs, size_class
from tenure.core.errors import OperationFailedError, PageLockedMemoryError
from tests.facade.devices import ScriptedDevice
from tests.facade.engine import WORKERS, Engine, extended, started

ROW = RowFormat("m", (2,), "float32", Schedule.JOIN_NEXT_STEP)
ROW_BYTES = 8


def test_size_classes_are_few_and_waste_at_most_a_quarter() -> None:
    """Few sizes mean that what is given back fits the next one; a quarter is what that may cost."""
    classes = [size_class(rows) for rows in range(1, 5000)]

    assert all(rows <= found <= max(16, rows * 5 / 4) for rows, found in enumerate(classes, 1))
    assert classes == sorted(classes)
    assert len(set(classes)) <= 4 * 13
    assert classes == [size_class(each) for each in classes]


def test_buffer_is_handed_out_again_when_nobody_holds_it() -> None:
    """A fresh buffer costs more than the copy into it."""
    device = ScriptedDevice()
    buffers = Buffers(Allocator(device))
    lease = buffers.lease(Memory.PAGEABLE, ROW, 20)
    first, kind = lease.buffer, lease.kind
    other = buffers.lease(Memory.PAGEABLE, ROW, 20)
    assert first is not other.buffer
    view = lease.rows(0, 3)
    del lease
    again = buffers.lease(Memory.PAGEABLE, ROW, 19)

    assert view.buffer is again.buffer
    assert kind == again.kind
    assert (2 * 20 * ROW_BYTES, 2 * 20 * ROW_BYTES) == buffers.figures()
    del other, again
    assert (0, 2 * 20 * ROW_BYTES) == buffers.figures()
    assert 2 == device.calls["allocate", None]


@pytest.mark.parametrize(
    "other",
    [
        (Memory.PAGE_LOCKED, ROW, 20),
        (Memory.PAGEABLE, RowFormat("m", (2,), "int32", Schedule.JOIN_NEXT_STEP), 20),
        (Memory.PAGEABLE, RowFormat("m", (1, 2), "float32", Schedule.JOIN_NEXT_STEP), 20),
        (Memory.PAGEABLE, ROW, 21),
    ],
    ids=["memory", "dtype", "shape", "size"],
)
def test_buffer_stands_in_only_for_one_of_its_kind(other: tuple[Memory, RowFormat, int]) -> None:
    """Memory of another kind has other rows; one that is larger is somebody else's reserve."""
    device = ScriptedDevice()
    buffers = Buffers(Allocator(device))
    first = buffers.lease(Memory.PAGEABLE, ROW, 20).buffer

    assert first is not buffers.lease(*other).buffer
    assert (
        first is buffers.lease(Memory.PAGEABLE, RowFormat("other", (2,), "float32", Schedule.JOIN_ON_FINISH), 20).buffer
    )


def test_idle_buffers_beyond_the_limit_are_freed(monkeypatch: pytest.MonkeyPatch) -> None:
    """One large prefill must not hold its memory for ever."""
    monkeypatch.setattr(memory, "IDLE_BYTES_MAX", 3 * 16 * ROW_BYTES)
    device = ScriptedDevice()
    buffers = Buffers(Allocator(device))
    leases = [buffers.lease(Memory.PAGEABLE, ROW, 16) for _ in range(5)]
    assert 5 * 16 * ROW_BYTES == buffers.figures()[1]
    leases.clear()

    assert (0, 3 * 16 * ROW_BYTES) == buffers.figures()
    assert 2 == device.calls["free", None]


def test_idle_buffers_of_sizes_that_nobody_asks_for_give_way(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else a change of workload would fill the limit with what is never used again, and every step would allocate."""
    monkeypatch.setattr(memory, "IDLE_BYTES_MAX", 300 * ROW_BYTES)
    device = ScriptedDevice()
    buffers = Buffers(Allocator(device))
    leases = [buffers.lease(Memory.PAGEABLE, ROW, rows) for rows in (16, 64, 80, 96)]
    leases.clear()
    assert (0, 256 * ROW_BYTES) == buffers.figures()
    for rows in (128, 112) * 3:
        del leases[:]
        leases.append(buffers.lease(Memory.PAGEABLE, ROW, rows))
    before = device.calls["allocate", None]
    for rows in (128, 112) * 3:
        del leases[:]
        leases.append(buffers.lease(Memory.PAGEABLE, ROW, rows))
    assert before == device.calls["allocate", None]
    del leases[:]

    assert 0 < buffers.figures()[1] <= 300 * ROW_BYTES
    large = buffers.lease(Memory.PAGEABLE, ROW, 1000)
    del large
    assert before + 1 == device.calls["allocate", None]
    assert 0 < buffers.figures()[1] <= 300 * ROW_BYTES


def test_lease_held_in_a_cycle_is_given_back_by_the_collector() -> None:
    """Whoever keeps a result in a cycle of objects keeps it a little longer, not for ever, and takes no lock to end."""
    buffers = Buffers(Allocator(ScriptedDevice()))
    cycle: list[Any] = [buffers.lease(Memory.PAGEABLE, ROW, 16)]
    cycle.append(cycle)
    assert 16 * ROW_BYTES == buffers.figures()[0]
    del cycle
    gc.collect()

    assert 0 == buffers.figures()[0]


def test_failed_allocation_frees_what_is_idle_and_asks_again() -> None:
    """Memory that nobody uses must not stand in the way of somebody who would."""
    device = ScriptedDevice()
    allocator = Allocator(device)
    buffers, slabs = Buffers(allocator), Slabs(allocator, ROW, 64, 2**30)
    slabs.give([slabs.take(3)])
    del [buffers.lease(Memory.PAGEABLE, ROW, 100)][:]
    assert 2 == len(device.held)
    device.fail("allocate")
    lease = buffers.lease(Memory.PAGEABLE, ROW, 16)

    assert [lease.buffer] == device.held
    assert 1 == device.struck


@pytest.mark.parametrize(("budget_rows", "size"), [(1024, 64), (40, 10), (1, 1)])
def test_slabs_are_small_against_the_budget(budget_rows: int, size: int) -> None:
    """Device memory is what the budget is for; a step that exceeds a slab gets one of its size."""
    device = ScriptedDevice()
    slabs = Slabs(Allocator(device), ROW, 64, budget_rows * ROW_BYTES)
    slabs.take(1)
    slabs.take(60)

    assert ([64] if size == 64 else [size, 60]) == [len(each.array) for each in device.held]


def test_failed_allocation_counts_nothing() -> None:
    """Figures must not drift with errors."""
    device = ScriptedDevice()
    allocator = Allocator(device)
    buffers, slabs = Buffers(allocator), Slabs(allocator, ROW, 64, 2**30)
    device.fail("allocate", times=2)
    for take in (lambda: buffers.lease(Memory.PAGEABLE, ROW, 16), lambda: slabs.take(3)):
        with pytest.raises(OperationFailedError):
            take()

    assert (0, 0) == buffers.figures() == slabs.figures()


class BuffersAgainstModel(RuleBasedStateMachine):
    """Leases of any sizes, kept and dropped in any order, against a list of who holds what."""

    leases: Bundle[Any] = Bundle("leases")

    def __init__(self) -> None:
        super().__init__()
        self.device = ScriptedDevice()
        self.buffers = Buffers(Allocator(self.device))
        self.held: list[Lease] = []

    @rule(target=leases, rows=st.integers(1, 100))
    def lease(self, rows: int) -> int:
        """Somebody takes one."""
        lease = self.buffers.lease(Memory.PAGEABLE, ROW, rows)
        assert len(lease.buffer.array) >= rows
        assert all(lease.buffer is not each.buffer for each in self.held)
        self.held.append(lease)
        return len(self.held)

    @rule(which=consumes(leases))
    def drop(self, which: int) -> None:
        """Somebody gives one back."""
        del self.held[which % len(self.held)]

    @invariant()
    def figures_are_right(self) -> None:
        """What is held is what the model holds; all is what the device gave and did not get back."""
        held, total = self.buffers.figures()
        assert held == sum(each.kind.bytes for each in self.held)
        assert total == sum(each.array.nbytes for each in self.device.held)


TestBuffersAgainstModel = BuffersAgainstModel.TestCase


class SlabsAgainstModel(RuleBasedStateMachine):
    """Stretches of any sizes, given back in any groups, against the rows that each should own."""

    ROWS = 40
    regions: Bundle[Any] = Bundle("regions")

    def __init__(self) -> None:
        super().__init__()
        self.device = ScriptedDevice()
        self.patch = pytest.MonkeyPatch()
        self.patch.setattr(memory, "IDLE_SLABS_BYTES_MAX", self.ROWS * ROW_BYTES)
        self.slabs = Slabs(Allocator(self.device), ROW, self.ROWS, 2**30)
        self.next_mark = 1.0
        self.held: dict[float, Region] = {}

    @rule(target=regions, rows=st.integers(1, ROWS))
    def take(self, rows: int) -> float:
        """A clone is made; it is marked in all its rows."""
        region = self.slabs.take(rows)
        assert rows == region.stop - region.start
        region.slab.buffer.array[region.start : region.stop] = self.next_mark
        self.held[self.next_mark] = region
        self.next_mark += 1
        return self.next_mark - 1

    @rule(marks=st.lists(consumes(regions), max_size=5))
    def give(self, marks: list[float]) -> None:
        """Clones are let go together, in any order, each with all its rows still its own."""
        for mark in marks:
            region = self.held[mark]
            assert (region.slab.buffer.array[region.start : region.stop] == mark).all()
        self.slabs.give([self.held.pop(mark) for mark in marks])

    @invariant()
    def nothing_is_lost(self) -> None:
        """Held rows add up; slabs that nobody uses are freed but for two."""
        held, total = self.slabs.figures()
        assert held == sum(stop - start for _, start, stop in self.held.values()) * ROW_BYTES
        assert total == len(self.device.held) * self.ROWS * ROW_BYTES
        used = {id(region.slab) for region in self.held.values()}
        assert len(used) <= len(self.device.held) <= len(used) + 2

    @invariant()
    def free_stretches_are_merged(self) -> None:
        """Once all is given back, a stretch of the whole slab fits without a new one."""
        if not self.held and self.device.held:
            before = self.device.calls["allocate", None]
            region = self.slabs.take(self.ROWS)
            self.slabs.give([region])
            assert before == self.device.calls["allocate", None]

    def teardown(self) -> None:
        """All of it can be given back at the end."""
        self.patch.undo()
        self.slabs.give(self.held.values())
        self.slabs.free()
        assert not self.device.held


TestSlabsAgainstModel = SlabsAgainstModel.TestCase


def decode(engine: Engine, batch: dict[str, tuple[int, ...]], **rows: Any) -> None:
    """One decode step, and its builder."""
    counts = {request: len(slots) for request, slots in batch.items()}
    step = engine.step(extended(**counts), batch=batch, **rows)
    engine.settle_writes_of_steps()
    assert rows["h"] == [number for each in engine.materialize(step, *batch)["h"].values() for number in each]


def plain(engine: Engine, number: int) -> None:
    """Rows in order, and immediate ones alone."""
    decode(engine, {"a": (number % 64,), "b": (64 + number % 64,)}, h=[1, 2], m=[3, 4])


def scattered(engine: Engine, number: int) -> None:
    """Slots in no order, and deferred rows that are flushed now and then."""
    slots = (3 + number % 50, 1 + number % 50)
    decode(engine, {"a": (100 + number % 7,), "b": slots}, h=[1, 2, 3], m=[3, 4, 5], c=[5, 6, 7])


def arriving(engine: Engine, number: int) -> None:
    """Requests that come with a hit and go again."""
    request = f"r{number}"
    step = engine.step(started(request, 2, 28, 27), batch={request: (121, 120)}, h=[1, 2], m=[3, 4], c=[1, 2])
    found = engine.materialize(step, request)
    assert [9] * 8 + [1, 2] == found["h"][request]
    engine.start(Finished(request))
    engine.settle()


@pytest.mark.parametrize("worker", WORKERS, ids=["inline", "threaded"])
@pytest.mark.parametrize("unified", [False, True], ids=["apart", "unified"])
@pytest.mark.parametrize("work", [plain, scattered, arriving], ids=lambda work: work.__name__)
def test_steady_state_allocates_nothing(worker: bool, unified: bool, work: Callable[[Engine, int], None]) -> None:
    """A fresh clone costs four times a copy into warm memory, every step."""
    device = ScriptedDevice(worker=worker, unified=unified)
    with Engine(device=device, num_blocks=32, pages=3, budget_bytes=400) as engine:
        engine.written("old", tuple(range(108, 116)), h=[9] * 8, m=[9] * 8, c=[9] * 8)
        if work is not arriving:
            engine.start(started("a", 0), started("b", 0))
        for number in range(50):
            work(engine, number)
        before = device.calls["allocate", None]
        steps = engine.cache.stats().counters.steps_saved
        for number in range(50, 100):
            work(engine, number)

        assert before == device.calls["allocate", None]
        assert 50 == engine.cache.stats().counters.steps_saved - steps


def test_memory_of_known_names_is_there_from_the_start() -> None:
    """No step waits for the first touch of a pool."""
    device = ScriptedDevice()
    config = RowConfig(num_blocks=8, block_size=4, page_rows_max=16, pages=3)
    with OutputCache(config, device=device, formats=[ROW]):
        shapes = sorted(each.array.shape for each in device.held)

    assert [(16, 2), (16, 2), (16, 2), (32, 2)] == shapes


@pytest.mark.parametrize(
    ("configured", "reported", "whose"), [(1000, None, "page_locked_bytes_max"), (None, 1000, "device")]
)
def test_page_locked_limits_are_held_to_the_byte(configured: int | None, reported: int | None, whose: str) -> None:
    """Page-locked memory is taken from the whole machine: what does not fit is refused before anything is taken."""
    config = RowConfig(num_blocks=8, block_size=4, page_rows_max=25, pages=2, page_locked_bytes_max=configured)
    device = ScriptedDevice()
    device.page_locked_max = reported
    fits, too_much = (
        RowFormat(name, (width,), "uint8", Schedule.JOIN_NEXT_STEP) for name, width in (("fits", 20), ("more", 1))
    )
    executor = Executor(device, config, [fits])
    taken = device.calls["allocate", None]
    with pytest.raises(
        PageLockedMemoryError, match=rf"more need 50 page-locked bytes, 1000 are used and {whose} allow"
    ):
        executor.storage.register(too_much)

    assert taken == device.calls["allocate", None] == 3
    executor.storage.register(fits)
    assert taken == device.calls["allocate", None]


def test_name_that_comes_again_with_other_rows_gives_its_first_pages_back() -> None:
    """Neither memory nor page-locked bytes may be counted twice."""
    config = RowConfig(num_blocks=8, block_size=4, page_rows_max=25, pages=2, page_locked_bytes_max=1000)
    device = ScriptedDevice()
    executor = Executor(device, config)
    for width in (20, 10, 20):
        executor.storage.register(RowFormat("m", (width,), "uint8", Schedule.JOIN_NEXT_STEP))

    assert [(25, 20), (25, 20), (32, 20)] == sorted(each.array.shape for each in device.held)


def test_allocation_that_fails_for_a_name_gives_back_what_it_had() -> None:
    """Half a name is no name."""
    config = RowConfig(num_blocks=8, block_size=4, page_rows_max=25, pages=4)
    device = ScriptedDevice()
    executor = Executor(device, config)
    device.fail("allocate", nth=4)
    with pytest.raises(OperationFailedError):
        executor.storage.register(ROW)
    assert not device.held
    executor.storage.register(ROW)

    assert 5 == len(device.held)


def test_results_of_many_requests_are_views_of_one_buffer_where_that_is_no_waste() -> None:
    """A whole prefill of one request is not copied twice; a small share of a step is cut out."""
    with Engine(num_blocks=512, page_rows_max=2048) as engine:
        batch = {"big": tuple(range(1500)), "small": (1600,)}
        step = engine.step(started("big", 1500), started("small", 1), batch=batch, h=[1] * 1501)
        found = engine.cache.materialize(step, ("big", "small")).hidden_states
        assert found is not None
        held = engine.cache.stats().buffers_held_bytes
        big, small = found["big"], found["small"]
        del found
        assert held == engine.cache.stats().buffers_held_bytes
        assert np.shares_memory(big, big[1:])
        del big
        assert 0 == engine.cache.stats().buffers_held_bytes

        assert [[1.0]] == small.tolist()
