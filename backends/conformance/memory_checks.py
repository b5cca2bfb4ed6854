"""Duty 5: buffers, the table of which operations meet which memory, and exactly the rows that are meant."""

from collections.abc import Callable, Mapping
from typing import Final

import numpy as np

from tenure.backends.capabilities import Capability
from tenure.backends.conformance.bench import Array
from tenure.backends.conformance.orders import failed_event
from tenure.backends.conformance.registry import check
from tenure.backends.conformance.rig import HOST, LANES_BEHIND, ROWS, CheckFailedError, Held, Rig, index_of, source_of
from tenure.backends.device import Lane, Memory, Rows, Tensor
from tenure.core.arrays import Integers
from tenure.core.rows.names import ITEM_BYTES

SHAPES: Final[tuple[tuple[int, ...], ...]] = ((), (1,), (3,), (3, 2), (0,), (2, 0, 3), (4099,))
FROM: Final[Mapping[Lane, tuple[Memory, ...]]] = {
    Lane.COPY: (Memory.DEVICE,),
    Lane.POOL: HOST,
    Lane.GATHER: (Memory.PAGEABLE, Memory.PAGE_LOCKED, Memory.DEVICE),
}
TO: Final[Mapping[Lane, tuple[Memory, ...]]] = {
    Lane.COPY: HOST,
    Lane.POOL: (Memory.PAGEABLE,),
    Lane.GATHER: (Memory.PAGEABLE,),
}


def _copy(rig: Rig, lane: Lane, source: Held, target: Held) -> Array:
    """Some rows in the middle."""
    rig.device.copy(lane, Rows(target.buffer, 2, 7), Rows(source.buffer, 4, 9))
    expected = target.values.copy()
    expected[2:7] = source.values[4:9]
    return expected


def _gather(rig: Rig, lane: Lane, source: Held, target: Held) -> Array:
    """Some rows, one of them twice, into the middle."""
    index = [9, 0, 4, 4, 11]
    rig.device.gather_rows(lane, Rows(target.buffer, 3, 8), source.buffer, index_of(index))
    expected = target.values.copy()
    expected[3:8] = source.values[index]
    return expected


def _scatter(rig: Rig, lane: Lane, source: Held, target: Held) -> Array:
    """Rows from the middle, to here and there."""
    index = [10, 0, 5]
    rig.device.scatter_rows(lane, target.buffer, index_of(index), Rows(source.buffer, 6, 9))
    expected = target.values.copy()
    expected[index] = source.values[6:9]
    return expected


Operation = Callable[[Rig, Lane, Held, Held], Array]
OPERATIONS: Final[Mapping[Lane, tuple[Operation, ...]]] = {
    Lane.COPY: (_copy, _gather),
    Lane.POOL: (_copy, _gather, _scatter),
    Lane.GATHER: (_copy, _gather, _scatter),
}


def _table(rig: Rig, lane: Lane) -> None:
    """Every operation of a lane, between all memories that the table has for it."""
    for operation in OPERATIONS[lane]:
        for origin in FROM[lane]:
            for aim in TO[lane]:
                source, target = rig.put(origin, rig.values()), rig.put(aim, rig.values())
                expected = operation(rig, lane, source, target)
                rig.end(lane)
                what = f"{operation.__name__.lstrip('_')} in lane {lane.name} from {origin.name} to {aim.name}"
                rig.expect(target, expected, what)
                rig.expect(source, source.values, f"the source of a {what}")


@check("D5.table-compute", "COMPUTE copies from live outputs to device memory, and to page-locked memory if unified")
def table_compute(rig: Rig) -> None:
    """Some rows of a live output into the middle of a buffer."""
    aims = (Memory.DEVICE, Memory.PAGE_LOCKED) if rig.device.is_unified() else (Memory.DEVICE,)
    for aim in aims:
        target, values = rig.put(aim, rig.values()), rig.values()
        rig.device.copy(Lane.COMPUTE, Rows(target.buffer, 1, 6), Rows(rig.live(values)[1], 3, 8))
        rig.end(Lane.COMPUTE)
        expected = target.values.copy()
        expected[1:6] = values[3:8]
        rig.expect(target, expected, f"copy in lane COMPUTE from a live output to {aim.name}")


@check("D5.table-copy", "COPY copies and gathers from device memory to both kinds of host memory")
def table_copy(rig: Rig) -> None:
    """The line of the table."""
    _table(rig, Lane.COPY)


@check("D5.table-pool", "POOL copies, gathers and scatters from both kinds of host memory to pageable memory")
def table_pool(rig: Rig) -> None:
    """The line of the table."""
    _table(rig, Lane.POOL)


@check("D5.table-gather", "GATHER copies, gathers, scatters and zeroes, from all memory to pageable memory")
def table_gather(rig: Rig) -> None:
    """The line of the table."""
    _table(rig, Lane.GATHER)
    target = rig.put(Memory.PAGEABLE, rig.values())
    rig.device.zero_rows(Lane.GATHER, Rows(target.buffer, 4, 9))
    rig.end(Lane.GATHER)
    expected = target.values.copy()
    expected[4:9] = 0
    rig.expect(target, expected, "zero_rows in lane GATHER")


@check("D5.only-its-rows", "an operation writes the rows of its target, and no other")
def only_its_rows(rig: Rig) -> None:
    """Between canary rows, at both ends of a buffer, and with no rows at all."""
    for start, stop in ((0, 3), (5, 9), (ROWS - 2, ROWS), (4, 4), (0, ROWS)):
        count = stop - start
        for lane in (Lane.COPY, Lane.POOL, Lane.GATHER):
            source = rig.put(source_of(lane), rig.values())
            copied, gathered, zeroed = (rig.put(Memory.PAGEABLE, rig.values()) for _ in range(3))
            index = rig.random.integers(0, ROWS, count).tolist()
            rig.device.copy(lane, Rows(copied.buffer, start, stop), Rows(source.buffer, 0, count))
            rig.device.gather_rows(lane, Rows(gathered.buffer, start, stop), source.buffer, index_of(index))
            after = [held.values.copy() for held in (copied, gathered, zeroed)]
            after[0][start:stop] = source.values[:count]
            after[1][start:stop] = source.values[np.array(index, dtype=np.int64)]
            if lane is Lane.GATHER:
                rig.device.zero_rows(lane, Rows(zeroed.buffer, start, stop))
                after[2][start:stop] = 0
            rig.end(lane)
            for held, expected, what in zip(
                (copied, gathered, zeroed), after, ("copy", "gather_rows", "zero_rows"), strict=True
            ):
                rig.expect(held, expected, f"{what} in lane {lane.name} of rows [{start}, {stop}) of {ROWS}")


@check("D5.index-forms", "an index is one-dimensional, int64, read-only, of any order and length")
def index_forms(rig: Rig) -> None:
    """Descending, every other element of a longer one, repeated, long, and none."""
    wide: Integers = index_of(list(range(2 * ROWS)))
    forms = [
        index_of(list(range(ROWS))[::-1]),
        wide[::2][: ROWS // 2],
        wide[:ROWS][::-1],
        index_of([7] * ROWS),
        index_of([]),
        index_of([ROWS - 1]),
    ]
    for lane in (Lane.COPY, Lane.POOL, Lane.GATHER):
        source = rig.put(source_of(lane), rig.values())
        for form in forms:
            target = rig.put(Memory.PAGEABLE, rig.values())
            rig.device.gather_rows(lane, Rows(target.buffer, 0, len(form)), source.buffer, form)
            rig.end(lane)
            expected = target.values.copy()
            expected[: len(form)] = source.values[form]
            rig.expect(target, expected, f"gather_rows in lane {lane.name} by {form.tolist()}")
    for lane in (Lane.POOL, Lane.GATHER):
        source = rig.put(Memory.PAGEABLE, rig.values())
        for form in forms[:3] + forms[4:]:
            target = rig.put(Memory.PAGEABLE, rig.values())
            rig.device.scatter_rows(lane, target.buffer, form, Rows(source.buffer, 0, len(form)))
            rig.end(lane)
            expected = target.values.copy()
            expected[form] = source.values[: len(form)]
            rig.expect(target, expected, f"scatter_rows in lane {lane.name} by {form.tolist()}")


@check("D5.sizes", "copies, sources and indexes are of any size")
def sizes(rig: Rig) -> None:
    """Copies of 5 MiB and of more than 4096 rows; indexes of 1 to 30,000 rows into 40,000."""
    for rows, row_shape in ((1280, (1024,)), (5000, (3,))):
        source = rig.put(Memory.DEVICE, rig.values(rows, row_shape))
        target = rig.put(Memory.PAGEABLE, rig.values(rows, row_shape))
        # Fresh memory may hold the very values by chance.
        rig.device.zero_rows(Lane.GATHER, target.rows)
        rig.end(Lane.GATHER)
        rig.device.copy(Lane.COPY, target.rows, source.rows)
        rig.end(Lane.COPY)
        rig.expect(target, source.values, f"copy of {rows} rows of float32{list(row_shape)}")
    pool = rig.put(Memory.PAGEABLE, rig.values(40_000))
    for count in (1, 65, 1000, 5000, 30_000):
        # A row before and one behind those that are meant stay as they are.
        target = rig.put(Memory.PAGEABLE, rig.values(count + 2))
        meant = Rows(target.buffer, 1, count + 1)
        rig.device.zero_rows(Lane.GATHER, meant)
        index = rig.random.permutation(40_000)[:count]
        rig.device.gather_rows(Lane.GATHER, meant, pool.buffer, index_of(index.tolist()))
        rig.end(Lane.GATHER)
        target.values[1:-1] = pool.values[index]
        rig.expect(target, target.values, f"gather_rows by an index of {count} rows into 40000")
    for lane in (Lane.POOL, Lane.GATHER):
        for count in (65, 5000, 30_000):
            source = rig.put(Memory.PAGEABLE, rig.values(count))
            index = rig.random.permutation(40_000)[:count]
            rig.device.scatter_rows(lane, pool.buffer, index_of(index.tolist()), source.rows)
            rig.end(lane)
            pool.values[index] = source.values
            rig.expect(pool, pool.values, f"scatter_rows in lane {lane.name} by an index of {count} rows into 40000")


@check("D5.every-dtype-and-row-shape", "a buffer is whole rows of one shape and dtype")
def every_dtype_and_row_shape(rig: Rig) -> None:
    """From a live output through every lane to a tensor of the engine, bit for bit."""
    device = rig.device
    for dtype in ITEM_BYTES:
        for row_shape in SHAPES:
            what = f"rows of {dtype}{list(row_shape)}"
            held = rig.put(Memory.PAGE_LOCKED, rig.values(5, row_shape, dtype), dtype)
            pool, read = (rig.allocate(Memory.PAGEABLE, 5, row_shape, dtype) for _ in range(2))
            device.scatter_rows(Lane.POOL, pool, index_of([4, 3, 2, 1, 0]), held.rows)
            device.wait(Lane.GATHER, device.record(Lane.POOL), is_needed=True)
            device.zero_rows(Lane.GATHER, Rows(read, 4, 5))
            device.gather_rows(Lane.GATHER, Rows(read, 0, 4), pool, index_of([4, 0, 2, 2]))
            rig.end(Lane.GATHER)
            expected = np.zeros_like(held.values)
            expected[:4] = held.values[[0, 4, 2, 2]]
            tensor = device.cut(Rows(read, 0, 5))
            rig.same(expected, np.array(rig.bench.read(tensor)), what)
            shared = device.tensor(Rows(read, 1, 3), None)
            rig.same(expected[1:3], np.array(rig.bench.read(shared)), f"{what}, as a tensor over the same memory")


@check("D5.describe", "`describe` says shape and dtype of a tensor, and None of what is no tensor")
def describe(rig: Rig) -> None:
    """Of every dtype that a row may have."""
    for dtype in ITEM_BYTES:
        for shape in ((4,), (4, 3), (0, 2)):
            tensor = rig.bench.make(rig.values(shape[0], shape[1:], dtype), dtype)
            found = rig.device.describe(tensor)
            # An array of the bits of bfloat16 may go by the name of what keeps them.
            names = (dtype, "uint16") if dtype == "bfloat16" else (dtype,)
            is_right = found is not None and tuple(found[0]) == shape and found[1] in names
            rig.require(is_right, f"a tensor of {dtype}{list(shape)} is described as {found}")
    for value in (None, 3, "text", [1, 2], {"a": 1}):
        rig.require(rig.device.describe(value) is None, f"{value!r} is described as a tensor")


@check("D5.freed-never-touched", "a buffer is never used after `free`, and no two buffers share memory")
def freed_never_touched(rig: Rig) -> None:
    """Canaries in buffers that live, while others come and go beside them."""
    _come_and_go(rig, lambda _: None, "others were freed and allocated")


@check(
    "D5.memory-outlives-failures",
    "no two buffers share memory, whatever has failed before",
    Capability.FAULTS,
)
def memory_outlives_failures(rig: Rig) -> None:
    """The same, with an operation that fails before every other allocation, in each lane by turns."""

    def fail(number: int) -> None:
        if number % 2:
            failed_event(rig, LANES_BEHIND[number // 2 % len(LANES_BEHIND)], is_over=True)

    _come_and_go(rig, fail, "operations failed, and others were freed and allocated")


def _come_and_go(rig: Rig, before: Callable[[int], None], what: str) -> None:
    device = rig.device
    live: list[Held] = []
    for number in range(24):
        before(number)
        memory = (Memory.PAGEABLE, Memory.PAGE_LOCKED)[number // 2 % 2]
        values = rig.values()
        buffer = device.allocate(memory, ROWS, (3,), "float32")
        source = rig.put(Memory.DEVICE, values)
        held = Held(buffer, memory, values, "float32")
        device.copy(Lane.COPY, held.rows, source.rows)
        rig.end(Lane.COPY)
        live.append(held)
        if number % 3 == 2:
            device.free(live.pop(0).buffer)
        for each in live:
            rig.expect(each, each.values, f"a buffer that nothing was asked of, while {what}")
    for each in live:
        device.free(each.buffer)


@check("D5.cuts-outlive-their-buffer", "a cut has memory of its own, which goes on when its buffer is freed")
def cuts_outlive_their_buffer(rig: Rig) -> None:
    """Rows that a caller got stay, when the buffer is freed and its memory is used again."""
    cuts: list[tuple[Tensor, Array]] = []
    for _ in range(8):
        values = rig.values()
        source, buffer = rig.put(Memory.DEVICE, values), rig.device.allocate(Memory.PAGEABLE, ROWS, (3,), "float32")
        rig.device.copy(Lane.COPY, Rows(buffer, 0, ROWS), source.rows)
        rig.end(Lane.COPY)
        cuts.append((rig.device.cut(Rows(buffer, 0, ROWS)), values))
        rig.device.free(buffer)
    for cut, values in cuts:
        rig.same(values, np.array(rig.bench.read(cut)), "a cut of a buffer that was freed since")


@check("D5.page-locked-limit", "`page_locked_bytes_max` is a number of bytes", Capability.PAGE_LOCKED)
def page_locked_limit(rig: Rig) -> None:
    """So many can be had, or some of them."""
    limit = rig.device.page_locked_bytes_max()
    if limit is None:
        raise CheckFailedError("page-locked memory is claimed, and `page_locked_bytes_max` is None")
    rig.require(limit > 0, f"`page_locked_bytes_max` is {limit}")
