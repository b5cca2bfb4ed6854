"""Slots of a step from the block table, layouts that cannot be mirrored, and a cache that asks the table itself."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure import Finished, NumpyBlockTable, OutputCache, RowConfig, RowPolicy
from tenure.core.errors import BatchRowError, SlotOutOfRangeError, UnreadableHitError
from tests.facade.engine import WORKERS, Engine, extended, started


def config(**changes: Any) -> RowConfig:
    """Blocks of four tokens, or as said."""
    settings: dict[str, Any] = {"num_blocks": 64, "block_size": 4, "page_rows_max": 64, "pages": 2, **changes}
    return RowConfig(**settings)


def naive(blocks: Sequence[int], block_size: int, computed: int, count: int) -> list[int]:
    """A slot a token, as the definition has it."""
    return [blocks[n // block_size] * block_size + n % block_size for n in range(computed, computed + count)]


@st.composite
def batches(draw: st.DrawFn) -> tuple[int, int, list[tuple[list[int], int, int]]]:
    """Block size, kernel block size, and per request blocks, tokens computed, tokens of the step."""
    kernel = draw(st.integers(1, 4))
    size = kernel * draw(st.integers(1, 4))
    requests: list[tuple[list[int], int, int]] = []
    for _ in range(draw(st.integers(0, 5))):
        blocks = draw(st.lists(st.integers(0, 40), max_size=5))
        computed = draw(st.integers(0, len(blocks) * size))
        requests.append((blocks, computed, draw(st.integers(0, len(blocks) * size - computed))))
    return size, kernel, requests


@given(batches(), st.data())
def test_slots_are_those_of_the_naive_formula(
    batch: tuple[int, int, list[tuple[list[int], int, int]]], data: st.DataObject
) -> None:
    """One vectorized operation, kernel blocks smaller than the allocator's, requests that come and go."""
    size, kernel, requests = batch
    for kernel_size in (None, kernel):
        table = NumpyBlockTable(config(block_size=size, kernel_block_size=kernel_size), len(requests) + 1, 5)
        gone = data.draw(st.integers(0, len(requests)))
        for place, (blocks, computed, _) in enumerate(requests):
            if place == gone:
                table.add("gone", blocks)
            half = len(blocks) // 2
            table.add(f"r{place}", blocks[:half], computed)
            table.append(f"r{place}", blocks[half:])
        if "gone" in table.batch():
            table.remove("gone")
        counts = np.array([count for _, _, count in requests], dtype=np.int64)
        slots = table.step_slots(counts)

        assert [f"r{place}" for place in range(len(requests))] == list(table.batch())
        assert [slot for blocks, done, count in requests for slot in naive(blocks, size, done, count)] == slots.tolist()
        table.advance(counts)
        rest = np.array([len(blocks) * size - done - count for blocks, done, count in requests], dtype=np.int64)
        left = [(blocks, done + count, len(blocks) * size - done - count) for blocks, done, count in requests]
        assert [slot for each in left for slot in naive(each[0], size, *each[1:])] == table.step_slots(rest).tolist()


def test_slots_reach_the_last_place_of_a_full_row() -> None:
    """The table's width is used to its end, and not one token further."""
    table = NumpyBlockTable(config(), 2, 2)
    table.add("a", [3, 1], 7)
    table.add("b", [2])

    assert [7] == table.step_slots(np.array([1, 0])).tolist()
    with pytest.raises(BatchRowError, match=r"'a' in the block table.*2 tokens behind 7 need more than its 2 blocks"):
        table.step_slots(np.array([2, 1]))
    with pytest.raises(BatchRowError, match=r"'b'.*5 tokens behind 0 need more than its 1 blocks of 4"):
        table.step_slots(np.array([1, 5]))


def test_rows_that_cannot_be_are_refused_and_change_nothing() -> None:
    """Each says what to do; the batch is as it was."""
    table = NumpyBlockTable(config(), 2, 2)
    table.add("a", [3])
    refusals: tuple[tuple[Callable[[], object], str], ...] = (
        (lambda: table.add("a", [1]), "in the batch already"),
        (lambda: table.add("b", [1, 2, 3]), "do not fit its row of 2"),
        (lambda: table.append("a", [1, 2]), "3 kernel blocks do not fit its row of 2"),
        (lambda: table.append("z", [1]), "not in the batch; add it first"),
        (lambda: table.remove("z"), "not in the batch"),
    )
    for refused, why in refusals:
        with pytest.raises(BatchRowError, match=why):
            refused()
        assert ("a",) == table.batch()
    table.add("b", [1])
    with pytest.raises(BatchRowError, match="all 2 rows are taken"):
        table.add("c", [2])

    assert [12, 13, 4] == table.step_slots(np.array([2, 1])).tolist()


def test_row_of_a_request_that_left_is_used_again_from_its_start() -> None:
    """What is left of the last tenant of a row is no block of the next one."""
    table = NumpyBlockTable(config(), 1, 3)
    table.add("a", [3, 4, 5], 9)
    table.remove("a")
    table.add("b", [7])

    assert [28, 29, 30, 31] == table.step_slots(np.array([4])).tolist()
    with pytest.raises(BatchRowError):
        table.step_slots(np.array([5]))


# --- Layouts that cannot be mirrored ------------------------------------------------------------------------------


# --- A cache that asks its table ----------------------------------------------------------------------------------


class TableEngine(Engine):
    """An engine whose cache has the block table of the batch."""

    def __init__(self, *, worker: bool, **changes: Any) -> None:
        settings: dict[str, Any] = {"num_blocks": 16, "block_size": 4, "page_rows_max": 64, "pages": 3, **changes}
        self.table = NumpyBlockTable(RowConfig(**settings), 4, 8)
        super().__init__(worker=worker, cache={"block_table": self.table}, **settings)

    def save_batch(self, padded: int | None = None, **rows: Any) -> int:
        """Save what was started, its slots from the table; all of it is computed then."""
        hidden, mm = self.outputs(**rows)
        step = self.cache.save_outputs(hidden, mm, num_tokens_padded=padded)
        self.overwrite()
        return step


@pytest.mark.parametrize("worker", WORKERS, ids=["inline", "threaded"])
@pytest.mark.parametrize("kernel", [None, 2])
def test_r02_slots_of_a_step_come_from_the_block_table(worker: bool, kernel: int | None) -> None:
    """The engine hands over outputs and nothing else; requests without tokens may stand in the batch."""
    with TableEngine(worker=worker, kernel_block_size=kernel) as engine:
        table = engine.table
        table.add("idle", [9])
        table.add("a", [5, 2])
        table.add("b", [7])
        engine.start(started("idle", 0), started("a", 6), started("b", 2))
        step = engine.save_batch(h=[1, 2, 3, 4, 5, 6, 50, 51], m=[0] * 8)
        table.advance(np.array([0, 6, 2]))
        assert {"a": [1, 2, 3, 4, 5, 6], "b": [50, 51], "idle": []} == engine.materialize(step, "a", "b", "idle")["h"]

        table.remove("b")
        engine.start(Finished("b"), extended(a=2, idle=1))
        hidden, mm = engine.outputs(h=[60, 7, 8, 99, 99], m=[1, 1, 1, 99, 99])
        step = engine.cache.save_outputs(hidden, mm, num_tokens_unpadded=3, num_tokens_padded=5)
        table.advance(np.array([1, 2]))
        assert {"a": [7, 8], "idle": [60]} == engine.materialize(step, "a", "idle")["h"]

        table.add("c", [5, 2, 3], 8)
        engine.start(started("c", 1, 5, 2))
        step = engine.save_batch(h=[70])
        assert [*range(1, 9), 70] == engine.materialize(step, "c")["h"]["c"]


@pytest.mark.parametrize("worker", WORKERS, ids=["inline", "threaded"])
@pytest.mark.parametrize("ending", ["mend", "drop"])
def test_r15_d05_block_outside_the_pool_is_refused_and_can_be_given_up(worker: bool, ending: str) -> None:
    """A block table that names a block the pool does not have costs nothing, and nobody is shown old rows."""
    with TableEngine(worker=worker) as engine:
        table = engine.table
        engine.written("old", (0, 1, 2, 3), h=[9] * 4)
        table.add("a", [0])
        table.add("b", [99])
        engine.start(started("a", 4), started("b", 4))
        with pytest.raises(SlotOutOfRangeError, match=r"'b': slot 396 \(block 99\) is outside \[0, 64\)"):
            engine.save_batch(h=[1] * 8)
        if ending == "mend":
            table.remove("b")
            table.add("b", [3])
            step = engine.save_batch(h=[1] * 4 + [2] * 4)
            assert [2] * 4 == engine.materialize(step, "b")["h"]["b"]
            return
        engine.cache.drop_step()
        table.remove("a")
        table.remove("b")
        table.add("c", [0, 1], 4)
        engine.start(Finished("a"), Finished("b"), started("c", 1, 0))
        step = engine.save_batch(h=[5])

        with pytest.raises(UnreadableHitError, match="'c'"):
            engine.materialize(step, "c")


@pytest.mark.parametrize("worker", WORKERS, ids=["inline", "threaded"])
def test_r15_block_table_of_another_batch_is_refused(worker: bool) -> None:
    """A request that was scheduled and is not in the table would lose its rows; one without blocks has nowhere."""
    with TableEngine(worker=worker) as engine:
        engine.table.add("a", [1])
        engine.start(started("a", 2), started("b", 2))
        with pytest.raises(BatchRowError, match=r"'b' in the block table.*tokens of it are scheduled"):
            engine.save_batch(h=[1] * 4)
        engine.table.add("b", [])
        with pytest.raises(BatchRowError, match="'b'"):
            engine.save_batch(h=[1] * 4)
        engine.table.append("b", [2])
        step = engine.save_batch(h=[1, 2, 3, 4])

        assert [3, 4] == engine.materialize(step, "b")["h"]["b"]


def test_table_of_the_engine_s_own_is_asked_once_a_save() -> None:
    """Anything with the two methods will do."""

    class Table:
        asked = 0

        def batch(self) -> Sequence[str]:
            return ["x"]

        def step_slots(self, counts: Any) -> Any:
            self.asked += 1
            return np.arange(10, 10 + int(counts[0]))

    table = Table()
    with OutputCache(config(), RowPolicy(), block_table=table) as cache:
        cache.new_step_starts([started("x", 3)])
        step = cache.save_outputs(np.ones((3, 1), dtype=np.float32))
        cache.discard_step(step)

        assert 1 == table.asked
