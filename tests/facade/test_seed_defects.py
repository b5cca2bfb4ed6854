"""What the seed gets wrong ends as it must through the facade, on real memory, whichever thread does the work."""

from typing import Any

import numpy as np
import pytest

from tenure import Finished, RowPolicy, Started
from tenure.backends.device import Lane
from tenure.core.errors import (
    HitNotAlignedError,
    NameClassError,
    PageExhaustedError,
    SlotOutOfRangeError,
    UnreadableHitError,
    WaitTimeoutError,
)
from tests.facade.devices import ScriptedDevice
from tests.facade.engine import FIRST, FOURTH, SECOND, THIRD, WORKERS, Engine, eventually, extended, layout_of, started

pytestmark = pytest.mark.parametrize("worker", WORKERS, ids=["inline", "threaded"])


@pytest.mark.parametrize("when", ["early", "late"])
def test_r02_d01_same_step_hit_gets_the_rows_of_its_step(worker: bool, when: str) -> None:
    """Another tenant's hidden states were served, and which ones hung on when the gather ran."""
    device = ScriptedDevice(worker=worker)
    with Engine(device=device) as engine:
        engine.written("old", FIRST, h=[10] * 4, m=[100] * 4)
        if when == "late":
            device.hold(Lane.GATHER)
        engine.start(started("a", 4), started("b", 4, 0))
        if when == "early":
            eventually(lambda: device.calls["copy", Lane.GATHER] == 2)
        step = engine.save({"a": FIRST, "b": SECOND}, h=[20] * 4 + [30] * 4, m=[200] * 4 + [300] * 4)
        device.release()
        found = engine.materialize(step, "a", "b")

        assert [20] * 4 + [30] * 4 == found["h"]["b"]
        assert [200] * 4 + [300] * 4 == found["m"]["b"]
        assert [20] * 4 == found["h"]["a"]
        assert 2 == engine.cache.stats().counters.reads_replanned


def test_r02_d01_same_step_hit_on_a_block_never_used_before(worker: bool) -> None:
    """The seed stopped with a fatal error here."""
    with Engine(worker=worker) as engine:
        step = engine.step(started("a", 4), started("b", 4, 0), batch={"a": FIRST, "b": SECOND}, h=list(range(8)))

        assert list(range(8)) == engine.materialize(step, "b")["h"]["b"]


def test_r21_d02_name_that_is_not_emitted_shows_zeros_and_not_the_last_tenant(worker: bool) -> None:
    """Data of a finished, unrelated request came with the hit."""
    with Engine(worker=worker) as engine:
        engine.written("x", FIRST, h=[1] * 4, k=[111] * 4)
        engine.written("a", FIRST, h=[2] * 4)
        step = engine.step(started("b", 4, 0), batch={"b": SECOND}, h=[3] * 4, k=[222] * 4)
        found = engine.materialize(step, "b")

        assert [2] * 4 + [3] * 4 == found["h"]["b"]
        assert [0] * 4 + [222] * 4 == found["k"]["b"]


def test_r21_d02_hidden_that_is_not_emitted_is_a_hole(worker: bool) -> None:
    """A step saved without hidden on a recycled block let a hit read the last tenant's hidden states."""
    with Engine(worker=worker) as engine:
        engine.written("x", FIRST, h=[1] * 4)
        engine.written("a", FIRST, k=[5] * 4)
        step = engine.step(started("b", 4, 0), batch={"b": SECOND}, h=[3] * 4)

        with pytest.raises(UnreadableHitError, match=r"'b'.*4 of its slots"):
            engine.materialize(step, "b")


def test_r15_d03_leftover_stays_one_when_its_length_happens_to_fit(worker: bool) -> None:
    """A pass-through tensor of 15 rows was cut from the first step of 15 tokens on."""
    with Engine(worker=worker, policy=RowPolicy()) as engine:
        engine.start(started("a", 0), started("b", 0))
        ref = np.arange(30, dtype=np.float32).reshape(15, 2)
        for tokens in (4, 14, 3):
            counts = {"a": tokens, "b": 1}
            batch = {"a": tuple(range(tokens)), "b": (31,)}
            step = engine.step(extended(**counts), batch=batch, h=[0] * (tokens + 1), ref=ref)
            found = engine.cache.materialize(step, ("a", "b")).mm_outputs["ref"]
            # A leftover with as many rows as the batch has tokens is handed out by token, in that step alone.
            whole = tokens != 14
            assert np.array_equal(ref if whole else ref[:14], found["a"])
            assert np.array_equal(ref if whole else ref[14:], found["b"])

        assert 1 == engine.cache.stats().names


def test_r15_d03_rows_that_become_something_else_are_refused_with_both_shapes(worker: bool) -> None:
    """The class of a name is inferred once and held; the refusal costs the step nothing."""
    with Engine(worker=worker, policy=RowPolicy()) as engine:
        x = np.ones((7, 2), dtype=np.float32)
        engine.step(started("a", 4), batch={"a": FIRST}, h=[0] * 4, x=x[:4])
        engine.start(extended(a=4))
        with pytest.raises(NameClassError, match=r"first seen as a tensor of shape \[4, 2\].*shape \[7, 2\]"):
            engine.save({"a": SECOND}, h=[0] * 4, x=x)
        step = engine.save({"a": SECOND}, h=[0] * 4, x=["one"])

        assert {"a": "one"} == engine.materialize(step, "a")["x"]


def test_r15_d03_step_of_one_token_decides_nothing(worker: bool) -> None:
    """Every tensor with one row would look like rows."""
    with Engine(worker=worker, policy=RowPolicy()) as engine:
        one, three = np.ones((1, 2), dtype=np.float32), np.ones((3, 2), dtype=np.float32)
        engine.step(started("a", 1), batch={"a": (0,)}, h=[0], x=one, ref=one)
        assert 1 == engine.cache.stats().names
        engine.step(extended(a=3), batch={"a": (1, 2, 3)}, h=[0] * 3, x=three, ref=one)

        assert 2 == engine.cache.stats().names


def test_r08_d04_failed_saves_leak_no_budget(worker: bool) -> None:
    """Charged bytes stayed above zero for ever, until every later save blocked."""
    with Engine(worker=worker, pages=2) as engine:
        for number in range(2):
            change = extended(a=1) if number else started("a", 1)
            engine.step(change, batch={"a": (number,)}, h=[number], c=[number])
        engine.start(extended(a=1))
        eventually(lambda: engine.cache.stats().open_writes == 1)
        charged = engine.cache.stats().charged_bytes
        for _ in range(5):
            with engine.impatient(), pytest.raises(PageExhaustedError, match=r"steps not consumed: \[1, 2\]"):
                engine.save({"a": (2,)}, h=[2], c=[2])
            assert charged == engine.cache.stats().charged_bytes
        engine.discard(1)
        assert 3 == engine.save({"a": (2,)}, h=[2], c=[2])
        engine.discard(2, 3)
        engine.start(Finished("a"))
        engine.settle()

        assert 5 == engine.cache.stats().waits["page"].count
        eventually(engine.is_quiet)


@pytest.mark.parametrize("ending", ["mend", "drop"])
def test_r15_d05_save_that_fails_half_way_leaves_nothing_behind(worker: bool, ending: str) -> None:
    """The first request's write was registered and never run, so the next save waited for it in vain."""
    with Engine(worker=worker) as engine:
        engine.written("old", FIRST, h=[1] * 4, m=[1] * 4)
        before = engine.cache.stats()
        engine.start(started("a", 4), started("b", 4))
        outside = (32, 33, 34, 35)
        with pytest.raises(SlotOutOfRangeError, match=r"'b'.*slot 32 \(block 8\)"):
            engine.save({"a": FIRST, "b": outside}, h=[2] * 8, m=[3] * 8)
        after = engine.cache.stats()
        assert (before.pages_held, before.charged_bytes, before.open_writes) == (
            after.pages_held,
            after.charged_bytes,
            after.open_writes,
        )
        if ending == "mend":
            step = engine.save({"a": FIRST, "b": SECOND}, h=[2] * 8, m=[3] * 8)
            assert [2] * 4 == engine.materialize(step, "b")["h"]["b"]
        else:
            engine.cache.drop_step([*FIRST, *outside])
        step = engine.step(started("c", 4, 0), batch={"c": THIRD}, h=[4] * 4, m=[4] * 4)

        if ending == "mend":
            assert [2] * 4 + [4] * 4 == engine.materialize(step, "c")["h"]["c"]
        else:
            with pytest.raises(UnreadableHitError, match="'c'"):
                engine.materialize(step, "c")


@pytest.mark.parametrize("retry", ["without b", "mended"])
def test_r15_d06_refused_arrival_costs_nobody_anything(worker: bool, retry: str) -> None:
    """A finished request's write was forgotten with the refusal, and the mended arrival lost its hit."""
    with Engine(worker=worker) as engine:
        engine.step(started("a", 4), batch={"a": FIRST}, h=[1] * 4, c=[5] * 4)
        engine.materialize(1, "a")
        eventually(lambda: engine.cache.stats().open_writes == 1)
        with pytest.raises(HitNotAlignedError):
            engine.start(Finished("a"), Started("b", 2, 3, ((0,),)))
        assert 1 == engine.cache.stats().live_requests
        if retry == "without b":
            engine.start(Finished("a"))
        else:
            step = engine.step(Finished("a"), started("b", 2, 0), batch={"b": (4, 5)}, h=[2] * 2, c=[6] * 2)
            found = engine.materialize(step, "b")
            assert [1] * 4 + [2] * 2 == found["h"]["b"]
            assert [5] * 4 + [6] * 2 == found["c"]["b"]
            engine.start(Finished("b"))
        engine.settle()

        eventually(engine.is_quiet)


@pytest.mark.parametrize("when", ["early", "late"])
def test_r14_d09_verdict_on_a_hit_does_not_depend_on_timing(worker: bool, when: str) -> None:
    """Late, the request was served the rows of whoever got the block since."""
    with Engine(worker=worker) as engine:
        step = engine.step(started("a", 4), started("b", 4, 5), batch={"a": FIRST, "b": SECOND}, h=[1] * 4 + [2] * 4)
        if when == "late":
            other = engine.step(started("d", 4), batch={"d": (20, 21, 22, 23)}, h=[77] * 4)
            engine.materialize(other, "d")
            engine.settle()
        with pytest.raises(UnreadableHitError, match=r"'b'"):
            engine.materialize(step, "a", "b")

        assert [1] * 4 == engine.materialize(step, "a")["h"]["a"]
        assert 1 == engine.cache.stats().counters.unreadable_hits


def test_r07_d11_wait_that_timed_out_is_waited_for_again(worker: bool) -> None:
    """The list of writes to wait for was emptied by the first try, so the second one overtook a late write."""
    device = ScriptedDevice(worker=worker)
    with Engine(device=device) as engine:
        device.hold(Lane.POOL)
        engine.step(started("a", 4), batch={"a": FIRST}, h=[1] * 4)
        engine.materialize(1, "a")
        engine.start(Finished("a"), started("c", 4))
        for _ in range(2):
            with (
                engine.impatient(),
                pytest.raises(WaitTimeoutError, match=r"writes \[1\] to reach the pool.*open writes: \[1\]"),
            ):
                engine.save({"c": FIRST}, h=[9] * 4)
        device.release()
        step = engine.save({"c": FIRST}, h=[9] * 4)
        assert [9] * 4 == engine.materialize(step, "c")["h"]["c"]
        step = engine.step(started("e", 4, 0), batch={"e": FOURTH}, h=[8] * 4)

        assert [9] * 4 + [8] * 4 == engine.materialize(step, "e")["h"]["e"]
        assert engine.cache.stats().waits["write"].count >= 2


def test_d13_small_results_keep_no_big_buffers(worker: bool) -> None:
    """One kept row kept the whole step alive: a thousand of them, four gigabytes."""
    rows, width, steps = 4096, 64, 1000
    config: dict[str, Any] = {"num_blocks": rows // 4, "page_rows_max": rows, "pages": 2}
    policy = RowPolicy(infer=False)
    kept: list[Any] = []
    step_bytes = rows * width * 4
    with Engine(worker=worker, policy=policy, **config) as engine:
        hidden = np.zeros((rows, width), dtype=np.float32)
        batch = {"big": tuple(range(rows - 1)), "small": (rows - 1,)}
        layout = layout_of(batch)
        for number in range(steps):
            if number:
                engine.start(extended(big=rows - 1, small=1))
            else:
                engine.start(started("big", rows - 1), started("small", 1))
            hidden[-1] = number
            step = engine.cache.save_outputs(hidden, layout=layout)
            found = engine.cache.materialize(step, ("small", "big") if number % 2 else ("big", "small"))
            assert found.hidden_states is not None
            kept.append(found.hidden_states["small"])
            del found
        held = sum(memory_of(each) for each in kept)
        stats = engine.cache.stats()

        assert list(range(steps)) == [float(each[0, 0]) for each in kept]
        assert held <= 4 * steps * width * 4
        assert stats.buffers_bytes <= 8 * step_bytes
        assert stats.device_bytes <= 4 * step_bytes


def memory_of(array: Any) -> int:
    """Bytes that live because an array does."""
    while type(array.base) is np.ndarray:
        array = array.base
    kept = getattr(array.base, "kept", None)
    return int(array.nbytes if kept is None else kept[1].kind.bytes)


def test_r23_d13_reads_that_nobody_takes_free_their_buffers_at_once(worker: bool) -> None:
    """Results of gathers that nobody took lived until the next step began."""
    with Engine(worker=worker) as engine:
        engine.written("a", FIRST, h=[1] * 4, m=[2] * 4)
        eventually(engine.is_quiet)
        step = engine.step(started("b", 4, 0), started("c", 4), batch={"b": SECOND, "c": THIRD}, h=[3] * 8, m=[4] * 8)
        engine.settle()
        eventually(lambda: engine.cache.stats().bytes_copied["gather"] == 2 * 4 * 4)
        assert engine.cache.stats().buffers_held_bytes
        engine.materialize(step, "c")

        eventually(lambda: not engine.cache.stats().buffers_held_bytes)
        assert 0 == engine.cache.stats().reads


def test_r08_d14_clone_stays_charged_until_its_last_holder_lets_go(worker: bool) -> None:
    """The first of two writes released the whole clone while the second one still read it."""
    with Engine(worker=worker) as engine:
        clone_bytes = 8 * 4
        batch = {"a": FIRST, "b": SECOND}
        step = engine.step(started("a", 4), started("b", 4), batch=batch, h=[0] * 8, c=list(range(8)))
        engine.materialize(step, "a", "b")
        eventually(lambda: engine.cache.stats().charged_bytes == clone_bytes)
        engine.start(Finished("a"))
        eventually(lambda: engine.cache.stats().open_writes == 1)
        assert clone_bytes == engine.cache.stats().charged_bytes

        # What is frozen now would lie where the clone was, if it had been given back.
        step = engine.step(started("z", 8), batch={"z": tuple(range(16, 24))}, h=[0] * 8, c=[50] * 8)
        engine.discard(step)
        step = engine.step(started("d", 4, 0, 1), batch={"d": THIRD}, h=[0] * 4, c=[9] * 4)
        assert [*range(8), 9, 9, 9, 9] == engine.materialize(step, "d")["c"]["d"]
        engine.start(Finished("b"), Finished("d"), Finished("z"))
        engine.settle()

        eventually(engine.is_quiet)
