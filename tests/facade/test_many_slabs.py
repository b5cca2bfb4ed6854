"""Deferred rows that lie in several places: in many slabs of device memory, in the host rows of several writes."""

from collections.abc import Sequence
from typing import Any

import pytest

from tenure import Finished
from tenure.backends.device import Lane
from tenure.core.rows.view import ReadPhase
from tests.facade.devices import ScriptedDevice
from tests.facade.engine import FIRST, SECOND, WORKERS, Engine, eventually, extended, started

pytestmark = pytest.mark.parametrize("worker", WORKERS, ids=["inline", "threaded"])
BYSTANDER = 60
"""The slot in front of each chunk; so a chunk is not all of its clone."""
COUNTS = (4, 5, 9, 2, 8)
"""Rows of the chunks. With the bystander two chunks fit one slab of twelve rows, or one does."""
BLOCKS = sum(COUNTS) // 4


def storage_of(engine: Engine) -> Any:
    """The memory that rows lie in."""
    return engine.cache._runtime.executor.storage  # pyright: ignore[reportPrivateUsage]


def slabs_of(engine: Engine, name: str) -> int:
    """How many slabs have rows of a name."""
    return len({id(region.slab) for region in list(storage_of(engine)._clones[name].regions.values())})


def token(slot: int) -> float:
    """The number of a's token in a slot."""
    return 100.0 + slot


def compute(engine: Engine) -> None:
    """Request a computes all slots from 0 on, a chunk a step, behind one token of request b."""
    first = 0
    for place, count in enumerate(COUNTS):
        slots = tuple(range(first, first + count))
        changes = [extended(b=1, a=count)] if place else [started("b", 1), started("a", count)]
        rows = [place, *map(token, slots)]
        step = engine.step(*changes, batch={"b": (BYSTANDER,), "a": slots}, c=rows, d=[-each for each in rows])
        engine.discard(step)
        first += count


def assert_hit_is_right(engine: Engine, request: str, blocks: Sequence[int], slot: int) -> None:
    """A hit of these blocks has a's rows, under both names."""
    step = engine.step(started(request, 1, *blocks), batch={request: (slot,)}, c=[7], d=[-7])
    found = engine.materialize(step, request)

    expected = [token(4 * block + offset) for block in blocks for offset in range(4)]
    assert [*expected, 7] == found["c"][request]
    assert [*(-each for each in expected), -7] == found["d"][request]


ORDERS = {"in order": tuple(range(BLOCKS)), "backwards": tuple(reversed(range(BLOCKS))), "mixed": (5, 0, 3, 6, 1)}


@pytest.mark.parametrize("blocks", ORDERS.values(), ids=ORDERS)
def test_r02_hit_on_a_live_request_is_served_from_clones_in_several_slabs(worker: bool, blocks: Sequence[int]) -> None:
    """Each row is looked up in the slab of its own clone, wherever the others lie."""
    device = ScriptedDevice(worker=worker)
    with Engine(device=device, num_blocks=16, page_rows_max=12) as engine:
        compute(engine)
        engine.settle_writes_of_steps()
        assert slabs_of(engine, "c") >= 3
        assert not engine.cache.stats().bytes_copied["deferred"]
        # Nothing is in the pool under these names.
        device.hold(Lane.POOL)
        assert_hit_is_right(engine, "r", blocks, 50)

        assert 0 == sum(device.calls[kind, Lane.POOL] for kind in ("copy", "gather", "scatter"))


@pytest.mark.parametrize("blocks", ORDERS.values(), ids=ORDERS)
@pytest.mark.parametrize("source", ["host", "pool"])
def test_r16_chunks_in_several_slabs_are_all_copied_when_the_request_finishes(
    worker: bool, source: str, blocks: Sequence[int]
) -> None:
    """Chunks in one slab are copied together; those of the next one must follow where they end."""
    device = ScriptedDevice(worker=worker)
    with Engine(device=device, num_blocks=16, page_rows_max=12) as engine:
        compute(engine)
        engine.settle_writes_of_steps()
        assert slabs_of(engine, "c") >= 3
        if source == "host":
            device.hold(Lane.POOL)
        engine.start(Finished("a"))
        eventually(lambda: engine.cache.stats().bytes_copied["deferred"] == 2 * 4 * sum(COUNTS))
        if source == "pool":
            engine.settle_writes_of_steps()
            assert 2 * 4 * sum(COUNTS) == engine.cache.stats().bytes_copied["scatter"]
        assert_hit_is_right(engine, "r", blocks, 50)


def test_r08_chunks_that_a_small_budget_flushes_are_served_too(worker: bool) -> None:
    """Some rows are in the pool, some in slabs that were used before, all under one hit."""
    device = ScriptedDevice(worker=worker)
    with Engine(device=device, num_blocks=16, page_rows_max=12, budget_bytes=8 * 25) as engine:
        compute(engine)
        assert engine.cache.stats().counters.flushes >= 1
        assert_hit_is_right(engine, "r", range(BLOCKS), 50)
        engine.start(Finished("a"), Finished("r"))
        assert_hit_is_right(engine, "s", range(BLOCKS), 51)


HOST_HITS = {"one after the other": (0, 1), "the later one first": (1, 0), "rows of both in one block": (0, 1, 2)}


@pytest.mark.parametrize("blocks", HOST_HITS.values(), ids=HOST_HITS)
def test_r16_hit_takes_host_rows_of_several_writes_each_by_its_own_index(worker: bool, blocks: Sequence[int]) -> None:
    """Two requests have ended and their rows are not in the pool yet; the same row number is another token in each."""
    device = ScriptedDevice(worker=worker)
    with Engine(device=device, num_blocks=16) as engine:
        device.hold(Lane.POOL)
        # p's host rows of FIRST begin at 6, q's of SECOND at 3; of the third block p has the ends and q the middle.
        slots = {"p": (*range(16, 22), *FIRST, 8, 9, 10, 11), "q": (24, 25, 26, *SECOND, 9, 10)}
        value: dict[int, float] = {}
        for number, (request, mine) in enumerate(slots.items()):
            rows = [100.0 * (number + 1) + place for place in range(len(mine))]
            value.update(zip(mine, rows, strict=True))
            engine.discard(engine.step(started(request, len(mine)), batch={request: mine}, c=rows))
        engine.start(Finished("p"), Finished("q"))
        eventually(lambda: engine.cache.stats().bytes_copied.get("deferred") == 4 * sum(map(len, slots.values())))
        storage = storage_of(engine)
        eventually(lambda: not storage._clones["c"].regions)
        assert 2 == len(storage._hosts)
        assert 2 == engine.cache.stats().open_writes
        step = engine.step(started("r", 2, *blocks), batch={"r": (28, 29)}, c=[7, 8])
        reads = engine.machine.state.tables.reads
        eventually(lambda: [ReadPhase.DONE] == [each.phase for each in list(reads.values())])
        # The pool stands still: whatever is served comes from the two writes.
        assert 2 == len(storage._hosts)

        assert [value[4 * block + offset] for block in blocks for offset in range(4)] + [7, 8] == (
            engine.materialize(step, "r")["c"]["r"]
        )
