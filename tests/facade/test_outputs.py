"""What a lookup returns: how much memory it keeps; and what a request that is back from preemption saves."""

from typing import Any

import numpy as np
import pytest

from tenure import Finished, NumpyBlockTable, Resumed, RowConfig
from tenure.outputs import SMALL_BYTES
from tests.facade.engine import WORKERS, Engine, eventually, extended, started

pytestmark = pytest.mark.parametrize("worker", WORKERS, ids=["inline", "threaded"])
STEP_TOKENS = 2048


def kept_bytes(engine: Engine, rows: Any) -> int:
    """Bytes that stay in use as long as somebody keeps `rows`, and nothing else: its own, or those of a buffer."""
    root: Any = rows
    while isinstance(root, np.ndarray) and root.base is not None:
        root = root.base
    own = root.nbytes if isinstance(root, np.ndarray) else 0
    return own + engine.cache.stats().buffers_held_bytes


def settings(**changes: Any) -> dict[str, Any]:
    """Pages that hold a whole step."""
    return {"num_blocks": 2048, "page_rows_max": STEP_TOKENS, **changes}


def test_r06_lookup_of_few_rows_never_keeps_more_than_twice_their_size(worker: bool) -> None:
    """One token of a long prefill, kept by a consumer, must not keep the prefill; nor may that depend on its size."""
    slots = range(STEP_TOKENS)
    keeps: dict[str, int] = {"own memory": 0, "a view": 0}
    with Engine(worker=worker, **settings()) as engine:
        for count in (*range(1, 40), *range(40, 1600, 13), 2040):
            names = f"a{count}", f"b{count}"
            changes = started(names[0], count), started(names[1], STEP_TOKENS - count)
            batch = {names[1]: slots[count:], names[0]: slots[:count]}
            step = engine.step(*changes, batch=batch, h=range(STEP_TOKENS))
            # Its rows lie behind the others, before them, or alone.
            asked = (names[::-1], names, names[:1])[count % 3]
            found = engine.cache.materialize(step, asked)
            assert found.hidden_states is not None
            rows = found.hidden_states[names[0]]
            del found
            engine.start(*map(Finished, names))
            engine.settle()

            assert list(range(STEP_TOKENS - count, STEP_TOKENS)) == rows[:, 0].tolist()
            # The last way copies out these rows alone, into a buffer that may be small as a whole.
            most = max(8 * count, SMALL_BYTES) if asked == names[:1] else 8 * count
            assert 4 * count <= kept_bytes(engine, rows) <= most
            keeps["own memory" if not engine.cache.stats().buffers_held_bytes else "a view"] += 1
            del rows
        eventually(lambda: engine.cache.stats().buffers_held_bytes == 0)

    assert all(keeps.values())


@pytest.mark.parametrize("own", [1, 5, 60, 127, 128, 129, 1000, 1600])
def test_r06_lookup_behind_a_hit_never_keeps_more_than_twice_its_size(worker: bool, own: int) -> None:
    """The buffer of a hit has room for a step behind it; with a short hit that room is most of it."""
    with Engine(worker=worker, **settings()) as engine:
        engine.written("old", range(STEP_TOKENS), h=range(STEP_TOKENS))
        for blocks in (1, 2, 3, 8, 31, 32, 33, 255, 256, 512):
            batch = {"a": range(2100, 2100 + own), "b": range(4200, 4200 + STEP_TOKENS - own)}
            rows_of_step = [3000 + place for place in range(STEP_TOKENS)]
            changes = started("a", own, *range(blocks)), started("b", STEP_TOKENS - own)
            step = engine.step(*changes, batch=batch, h=rows_of_step)
            found = engine.cache.materialize(step, ("b", "a"))
            assert found.hidden_states is not None
            rows = found.hidden_states["a"]
            del found
            engine.start(Finished("a"), Finished("b"))
            engine.settle()

            assert [*range(4 * blocks), *rows_of_step[:own]] == rows[:, 0].tolist()
            assert rows.nbytes == 4 * (4 * blocks + own)
            assert rows.nbytes <= kept_bytes(engine, rows) <= max(2 * rows.nbytes, SMALL_BYTES)
            del rows


# --- Requests that are back ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("hit", [0, 4])
def test_r02_resumed_request_saves_its_rows_to_its_new_blocks(worker: bool, hit: int) -> None:
    """Its old blocks are somebody else's by now; what it computes again must be found where the table says."""
    config = RowConfig(num_blocks=8, block_size=4, page_rows_max=64, pages=3)
    table = NumpyBlockTable(config, 4, 4)
    with Engine(worker=worker, cache={"block_table": table}) as engine:

        def save(*counts: int, **rows: Any) -> int:
            hidden, mm = engine.outputs(**rows)
            step = engine.cache.save_outputs(hidden, mm, num_tokens_unpadded=sum(counts))
            engine.overwrite()
            table.advance(np.array(counts))
            return step

        table.add("a", [0, 1])
        engine.start(started("a", 6))
        engine.discard(save(6, h=[1, 2, 3, 4, 5, 6], c=[11, 12, 13, 14, 15, 16]))
        # a is preempted; b gets its second block, and the first one stays cached.
        table.remove("a")
        table.add("b", [1])
        engine.start(started("b", 4))
        engine.discard(save(4, h=[50] * 4, c=[51] * 4))
        blocks = [0, 5] if hit else [4, 5]
        table.add("a", blocks, hit)
        new = 8 - hit
        engine.start(extended(b=0), Resumed("a", new, hit, ((0,),) if hit else ()))
        values = list(range(1 + hit, 9))
        step = save(0, new, h=values, c=[10 + each for each in values])
        assert values == engine.materialize(step, "a")["h"]["a"]
        engine.start(Finished("a"), Finished("b"))
        engine.settle()
        table.remove("a")
        table.remove("b")

        table.add("z", [*blocks, 6], 8)
        table.add("y", [1, 7], 4)
        engine.start(started("z", 1, *blocks), started("y", 1, 1))
        step = save(1, 1, h=[0, 0], c=[0, 0])
        found = engine.materialize(step, "z", "y")
        assert {"z": [1, 2, 3, 4, 5, 6, 7, 8, 0], "y": [50] * 4 + [0]} == found["h"]
        assert {"z": [11, 12, 13, 14, 15, 16, 17, 18, 0], "y": [51] * 4 + [0]} == found["c"]
