"""What an engine may rely on: the three ways of outputs, leftovers, hits, consuming, pages, refusals."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import pytest

from tenure import HIDDEN, Finished, RowPolicy, Started
from tenure.backends.device import Lane
from tenure.core.errors import (
    LayoutMissingError,
    OutputNameError,
    PolicyAfterStepError,
    RequestNamedTwiceError,
    RequestOutsideSnapshotError,
    SlotCountError,
    StepAlreadyConsumedError,
    StepNotSavedError,
    StepTooLargeError,
    TokenCountError,
    UnknownStepError,
)
from tests.facade.devices import ScriptedDevice
from tests.facade.engine import FIRST, FOURTH, SECOND, THIRD, WORKERS, Engine, eventually, extended, layout_of, started

pytestmark = pytest.mark.parametrize("worker", WORKERS, ids=["inline", "threaded"])


class Pair(NamedTuple):
    """What a model may hand on."""

    left: Any
    right: int


# --- The three ways of outputs ------------------------------------------------------------------------------------


def test_r15_outputs_go_the_three_ways(worker: bool) -> None:
    """Hidden and immediate rows reach the pool at once, deferred ones at the end, leftovers never."""
    with Engine(worker=worker) as engine:
        odd = np.arange(5, dtype=np.float32)
        step = engine.step(started("a", 4), batch={"a": FIRST}, h=[1] * 4, m=[2] * 4, c=[3] * 4, ref=odd)
        found = engine.materialize(step, "a")
        assert [1] * 4 == found["h"]["a"]
        assert [2] * 4 == found["m"]["a"]
        assert [3] * 4 == found["c"]["a"]
        assert odd.tolist() == found["ref"]["a"].tolist()
        eventually(lambda: engine.cache.stats().open_writes == 1)
        assert 2 * 4 * 4 == engine.cache.stats().bytes_copied["scatter"]
        engine.start(Finished("a"))
        engine.settle()
        stats = engine.cache.stats()

        assert 3 * 4 * 4 == stats.bytes_copied["scatter"]
        assert 4 * 4 == stats.bytes_copied["deferred"]
        assert (3, 12) == (stats.names, stats.rows_written)


@pytest.mark.parametrize("where", ["layout", "call"])
def test_r15_tensors_of_padded_length_are_cut_to_the_tokens(worker: bool, where: str) -> None:
    """Graphs of fixed size emit more rows than there are tokens; wherever that is said, it is heard."""
    with Engine(worker=worker) as engine:
        engine.start(started("a", 3))
        hidden, mm = engine.outputs(h=[1, 2, 3, 90, 91], m=[4, 5, 6, 92, 93], c=[7, 8, 9], k=[1, 2, 3, 94, 95])
        padded = 5 if where == "layout" else None
        step = engine.cache.save_outputs(
            hidden, mm, num_tokens_unpadded=3, num_tokens_padded=5, layout=layout_of({"a": (0, 1, 2)}, padded)
        )
        engine.overwrite()
        found = engine.materialize(step, "a")

        assert {"h": [1, 2, 3], "m": [4, 5, 6], "c": [7, 8, 9], "k": [1, 2, 3]} == {
            name: rows["a"] for name, rows in found.items()
        }


def test_r02_long_copies_are_cut_and_whole_all_the_same(worker: bool) -> None:
    """What waits behind a long copy on the same link gets its turn; no row is lost at a cut."""
    device = ScriptedDevice(worker=worker)
    with Engine(device=device, num_blocks=1024, page_rows_max=4096, copy_chunk_bytes=4096) as engine:
        numbers = list(range(2500))
        step = engine.step(started("a", 2500), batch={"a": tuple(range(2500))}, h=numbers, c=numbers)
        found = engine.materialize(step, "a")

        assert numbers == found["h"]["a"] == found["c"]["a"]
        # 1,024 rows of four bytes at most, for each of two names.
        assert 2 * 3 == device.calls["copy", Lane.COMPUTE] == device.calls["copy", Lane.COPY]
        engine.start(Finished("a"))
        engine.settle()
        assert 3 * 3 == device.calls["copy", Lane.COPY]
        engine.start(started("b", 1, *range(625)))
        step = engine.save({"b": (2500,)}, h=[0], c=[0])
        assert numbers == engine.materialize(step, "b")["c"]["b"][:2500]


def test_r15_name_is_inferred_once_and_held(worker: bool) -> None:
    """Without a declaration the first step of more than one token decides."""
    with Engine(worker=worker, policy=RowPolicy()) as engine:
        rows, flat, image = np.ones((4, 2), np.float32), np.ones(4, np.float32), np.ones((7, 3), np.float32)
        step = engine.step(started("a", 4), batch={"a": FIRST}, h=[0] * 4, rows=rows, flat=flat, image=image)
        engine.materialize(step, "a")
        step = engine.step(started("b", 4, 0), batch={"b": SECOND}, h=[0] * 4, rows=2 * rows, flat=flat, image=image)
        found = engine.cache.materialize(step, ["b"]).mm_outputs

        assert 2 == engine.cache.stats().names
        assert [1] * 4 + [2] * 4 == found["rows"]["b"][:, 0].tolist()
        assert (4,) == found["flat"]["b"].shape
        assert (7, 3) == found["image"]["b"].shape


def test_r02_hidden_states_are_not_looked_at_where_the_policy_opts_out(worker: bool) -> None:
    """Models that hand no hidden states on pay nothing for them, whatever they are."""
    policy = RowPolicy(hidden=False, immediate=frozenset({"m"}))
    with Engine(worker=worker, policy=policy) as engine:
        engine.start(started("a", 4))
        hidden: Any = ["no", "tensor"]
        _, mm = engine.outputs(m=[2] * 4)
        step = engine.cache.save_outputs(hidden, mm, layout=layout_of({"a": FIRST}))
        found = engine.cache.materialize(step, ["a"])

        assert found.hidden_states is None
        assert [2] * 4 == found.mm_outputs["m"]["a"][:, 0].tolist()
        assert 1 == engine.cache.stats().names


def test_r02_step_without_hidden_states_and_one_without_anything(worker: bool) -> None:
    """Every step is consumed, also one that emits nothing, and every save takes a page."""
    with Engine(worker=worker) as engine:
        step = engine.step(started("a", 4), batch={"a": FIRST}, m=[1] * 4)
        found = engine.cache.materialize(step, ["a"])
        assert found.hidden_states is None
        step = engine.step(extended(a=4), batch={"a": SECOND}, ref="text")
        assert 1 == engine.cache.stats().pages_held
        assert {"ref": {"a": "text"}} == engine.materialize(step, "a")
        step = engine.step(extended(a=4), batch={"a": THIRD})
        found = engine.cache.materialize(step, ["a"])

        assert (None, {}) == (found.hidden_states, found.mm_outputs)


# --- Leftovers ----------------------------------------------------------------------------------------------------


def test_r02_leftovers_are_those_of_the_save_all_the_way_down(worker: bool) -> None:
    """Models reuse what they hand over: tensors, lists and maps alike."""
    with Engine(worker=worker) as engine:
        array = np.arange(3, dtype=np.float64)
        nested: dict[Any, Any] = {
            "list": [array, [array]],
            "pair": Pair(array, 1),
            "tuple": (array,),
            "text": "x",
            7: None,
        }
        listed = [array, "second"]
        zero = np.array(4.0)
        step = engine.step(
            started("a", 4), started("b", 4), batch={"a": FIRST, "b": SECOND}, ref=nested, plain=listed, zero=zero
        )
        array[:] = -1
        zero[...] = -1
        nested["list"].clear()
        listed.clear()
        found = engine.cache.materialize(step, ["b", "a"]).mm_outputs
        ref, expected = found["ref"]["a"], [0, 1, 2]

        assert [expected, [expected]] == [ref["list"][0].tolist(), [each.tolist() for each in ref["list"][1]]]
        assert isinstance(ref["pair"], Pair)
        assert (expected, 1) == (ref["pair"].left.tolist(), ref["pair"].right)
        assert expected == ref["tuple"][0].tolist()
        assert ref[7] is None
        assert expected == found["plain"]["a"].tolist()
        assert "second" == found["plain"]["b"]
        assert (4.0, ()) == (float(found["zero"]["a"]), found["zero"]["b"].shape)


def test_r02_leftovers_are_split_by_what_they_are(worker: bool) -> None:
    """A list by request, a tensor with a row for each token by token; all else is everybody's."""
    with Engine(worker=worker) as engine:
        by_token, longer = np.arange(6), np.arange(7)
        step = engine.step(
            started("a", 2),
            started("b", 3),
            started("c", 1),
            batch={"a": (0, 1), "b": (4, 5, 6), "c": (8,)},
            h=[0] * 6,
            listed=["for a", "for b"],
            one=["for all"],
            token=by_token,
            longer=longer,
            number=3,
        )
        by_token[:] = -1
        found = engine.cache.materialize(step, ["c", "b"]).mm_outputs

        assert [2, 3, 4] == found["token"]["b"].tolist()
        assert [5] == found["token"]["c"].tolist()
        assert "for b" == found["listed"]["b"]
        assert ["for a", "for b"] == found["listed"]["c"]
        assert ["for all"] == found["one"]["b"]
        assert longer.tolist() == found["longer"]["c"].tolist()
        assert 3 == found["number"]["b"]
        assert ["c", "b"] == list(found["token"])


def test_d13_share_of_a_leftover_has_memory_of_its_own(worker: bool) -> None:
    """One request's rows must not keep those of the whole batch."""
    with Engine(worker=worker, page_rows_max=2048, num_blocks=512) as engine:
        batch = {"big": tuple(range(1999)), "small": (1999,)}
        token = np.arange(2000)
        step = engine.step(started("big", 1999), started("small", 1), batch=batch, token=token)
        found = engine.cache.materialize(step, ["small"]).mm_outputs["token"]["small"]

        assert [1999] == found.tolist()
        assert found.base is None


# --- Hits ---------------------------------------------------------------------------------------------------------


def test_r02_shared_blocks_are_merged_and_the_tail_is_untouched(worker: bool) -> None:
    """Prefix, divergence and the first request's own tail, each its own."""
    with Engine(worker=worker) as engine:
        step = engine.step(started("a", 6), batch={"a": (*FIRST, 4, 5)}, h=[1, 2, 3, 4, 5, 6])
        engine.materialize(step, "a")
        step = engine.step(
            extended(a=1), started("b", 3, 0), batch={"a": (6,), "b": (8, 9, 10)}, h=[7, 95, 96, 97], m=[1] * 4
        )
        found = engine.materialize(step, "b", "a")
        assert [7] == found["h"]["a"]
        assert [1, 2, 3, 4, 95, 96, 97] == found["h"]["b"]
        engine.step(extended(a=1), batch={"a": (7,)}, h=[8])
        step = engine.step(Finished("a"), started("c", 1, 0, 1), batch={"c": (12,)}, h=[50])

        assert [*range(1, 9), 50] == engine.materialize(step, "c")["h"]["c"]


def test_r02_live_id_opens_no_hit_and_a_finished_one_does(worker: bool) -> None:
    """A continuation that is announced again must not be given its rows twice."""
    with Engine(worker=worker) as engine:
        engine.materialize(engine.step(started("a", 4), batch={"a": FIRST}, h=[1] * 4), "a")
        assert () == engine.cache.new_step_starts([started("a", 2, 0)]).hits
        step = engine.save({"a": (4, 5)}, h=[2] * 2)
        assert [2] * 2 == engine.materialize(step, "a")["h"]["a"]
        assert (("a", 4),) == engine.cache.new_step_starts([Finished("a"), started("a", 2, 0)]).hits
        step = engine.save({"a": (8, 9)}, h=[3] * 2)

        assert [1] * 4 + [3] * 2 == engine.materialize(step, "a")["h"]["a"]


@pytest.mark.parametrize("tokens", [1, 124, 125, 300], ids=["few", "just fit", "just do not", "many"])
@pytest.mark.parametrize("blocks", [1, 40])
def test_r02_rows_of_a_hit_and_of_its_step_are_one_tensor(worker: bool, tokens: int, blocks: int) -> None:
    """Whether they fit behind the hit or a larger buffer is needed; looked up once or again."""
    hit = 4 * blocks
    with Engine(worker=worker, num_blocks=256, page_rows_max=512) as engine:
        numbers = list(range(hit))
        engine.written("a", tuple(range(hit)), h=numbers, m=[n + 0.5 for n in numbers])
        own = [1000 + n for n in range(tokens)]
        batch = {"other": (1000,), "b": tuple(range(500, 500 + tokens))}
        engine.start(started("other", 1), started("b", tokens, *range(blocks)))
        step = engine.save(batch, h=[7, *own], m=[8, *own])
        outputs = engine.cache.materialize(step, ["b", "other"])
        assert outputs.hidden_states is not None
        first = outputs.hidden_states["b"]
        again = outputs.hidden_states["b"]

        for found in (first, again, outputs.hidden_states["b"]):
            assert numbers + own == found[:, 0].tolist()
        assert [n + 0.5 for n in numbers] + own == outputs.mm_outputs["m"]["b"][:, 0].tolist()
        assert [[7.0]] == outputs.hidden_states["other"].tolist()


def test_r02_rows_that_a_caller_changed_are_changed_as_a_whole(worker: bool) -> None:
    """Two lookups may share memory; a second one must not write half of the rows anew."""
    with Engine(worker=worker) as engine:
        engine.written("old", FIRST, h=[1] * 4)
        step = engine.step(started("a", 2, 0), batch={"a": SECOND[:2]}, h=[2] * 2)
        rows = engine.cache.materialize(step, ["a"]).hidden_states
        assert rows is not None
        before = rows["a"].reshape(-1).tolist()
        rows["a"][:] *= 10

        assert rows["a"].reshape(-1).tolist() in (before, [10 * each for each in before])
        assert [1] * 4 + [2] * 2 == before


def test_r14_hit_shows_zeros_for_a_name_without_rows(worker: bool) -> None:
    """With the name's dtype and row shape; also where only some of its rows are there."""
    with Engine(worker=worker, policy=RowPolicy(immediate=frozenset({"m"}), deferred=frozenset({"c"}))) as engine:
        shape = (2, 3)
        rows = np.full((4, *shape), 5, np.int32)
        hidden = np.ones((4, 1), np.float32)
        engine.start(started("a", 4))
        engine.cache.save_outputs(hidden, {"m": rows, "c": rows}, layout=layout_of({"a": FIRST}))
        engine.start(extended(a=4))
        step = engine.cache.save_outputs(hidden, layout=layout_of({"a": SECOND}))
        engine.discard(1, step)
        engine.start(Finished("a"))
        engine.settle()
        engine.start(started("b", 1, 0, 1))
        mm = {"m": np.full((1, *shape), 6, np.int32), "c": np.full((1, *shape), 7, np.int32)}
        step = engine.cache.save_outputs(hidden[:1], mm, layout=layout_of({"b": (16,)}))
        found = engine.cache.materialize(step, ["b"]).mm_outputs

        for name, own in (("m", 6), ("c", 7)):
            tensor = found[name]["b"]
            assert (np.dtype(np.int32), (9, *shape)) == (tensor.dtype, tensor.shape)
            assert [5] * 4 + [0] * 4 + [own] == tensor[:, 1, 2].tolist()


def test_r02_deferred_rows_of_a_running_request_are_served_from_wherever_they_are(worker: bool) -> None:
    """From device clones while it runs, from flushed host rows, and from the pool, in position order."""
    with Engine(worker=worker, budget_bytes=100, num_blocks=16, pages=4) as engine:
        chain: list[float] = []
        for number in range(6):
            own = [10 * number + offset for offset in range(4)]
            change = extended(a=4) if number else started("a", 4)
            slots = tuple(range(4 * number, 4 * number + 4))
            engine.discard(engine.step(change, batch={"a": slots}, h=own, c=own))
            chain += own
        assert engine.cache.stats().counters.flushes
        step = engine.step(started("b", 1, *range(6)), batch={"b": (40,)}, h=[1], c=[2])
        found = engine.materialize(step, "b")

        assert [*chain, 1] == found["h"]["b"]
        assert [*chain, 2] == found["c"]["b"]


def test_r05_later_of_two_deferred_rows_is_final_whatever_the_finish_order(worker: bool) -> None:
    """A slot that changed hands while both requests run keeps the later one's row."""
    for order in (("a", "b"), ("b", "a")):
        with Engine(worker=worker) as engine:
            engine.discard(engine.step(started("a", 4), batch={"a": FIRST}, h=[1] * 4, c=[1] * 4))
            engine.discard(engine.step(started("b", 2), batch={"b": (1, 3)}, h=[2] * 2, c=[2] * 2))
            for request in order:
                engine.start(Finished(request))
                engine.settle_writes_of_steps()
            step = engine.step(started("d", 1, 0), batch={"d": (8,)}, h=[3], c=[3])
            found = engine.materialize(step, "d")

            assert [1, 2, 1, 2, 3] == found["c"]["d"]
            assert [1, 2, 1, 2, 3] == found["h"]["d"]


# --- Consuming ----------------------------------------------------------------------------------------------------


def test_r01_steps_are_consumed_in_any_order_once(worker: bool) -> None:
    """A builder may be late, or leave a step out, and hears when it is wrong."""
    with Engine(worker=worker, pages=4) as engine:
        steps = [engine.step(started("a", 1), batch={"a": (0,)}, h=[0])]
        steps += [engine.step(extended(a=1), batch={"a": (n,)}, h=[n]) for n in (1, 2)]
        for place in (2, 0):
            assert [place] == engine.materialize(steps[place], "a")["h"]["a"]
        engine.discard(steps[1])

        for step in steps:
            with pytest.raises(StepAlreadyConsumedError, match=f"step {step}"):
                engine.materialize(step, "a")
            with pytest.raises(StepAlreadyConsumedError):
                engine.discard(step)
        for unknown in (99, 0, -1):
            with pytest.raises(UnknownStepError):
                engine.materialize(unknown, "a")


def test_r01_requests_are_those_asked_for_in_their_order(worker: bool) -> None:
    """A subset, reordered, none at all; nobody who was not in the batch, nobody twice."""
    with Engine(worker=worker, pages=4) as engine:
        batch = {"a": (0, 1), "b": (4,), "c": (8, 9, 10), "d": (12,)}
        engine.start(*(started(request, len(slots)) for request, slots in batch.items()))
        numbers = [1, 1, 2, 3, 3, 3, 4]
        step = engine.save(batch, h=numbers, m=numbers)
        with pytest.raises(RequestOutsideSnapshotError, match="z"):
            engine.materialize(step, "a", "z")
        with pytest.raises(RequestNamedTwiceError, match="'a'"):
            engine.materialize(step, "a", "b", "a")
        found = engine.materialize(step, "d", "a", "c")
        assert {"d": [4], "a": [1, 1], "c": [3, 3, 3]} == found["h"]
        assert ["d", "a", "c"] == list(found["m"])
        step = engine.step(extended(a=1), batch={"a": (2,)}, h=[9])

        assert {"h": {}} == engine.materialize(step)


def test_r01_results_are_mappings_that_nobody_can_change(worker: bool) -> None:
    """Several consumers may share them; a request that was not asked for is not there."""
    with Engine(worker=worker) as engine:
        step = engine.step(started("a", 4), started("b", 4), batch={"a": FIRST, "b": SECOND}, h=[1] * 8, ref=["x", "y"])
        found = engine.cache.materialize(step, ["a"])
        assert found.hidden_states is not None
        for rows in (found.hidden_states, found.mm_outputs["ref"]):
            assert isinstance(rows, Mapping)
            mapping: Any = rows
            assert ["a"] == list(mapping)
            assert 1 == len(mapping)
            assert "b" not in mapping
            with pytest.raises(KeyError):
                mapping["b"]
            with pytest.raises(TypeError):
                mapping["a"] = 1
            with pytest.raises(TypeError):
                del mapping["a"]
        outputs: Any = found
        with pytest.raises(AttributeError):
            outputs.hidden_states = None


def test_d13_results_outlive_their_cache(worker: bool) -> None:
    """A builder may still hold rows, or the mapping that cuts them, when the engine has gone."""
    with Engine(worker=worker) as engine:
        engine.written("a", FIRST, h=[1] * 4)
        step = engine.step(started("b", 4, 0), started("c", 4), batch={"b": SECOND, "c": THIRD}, h=[2] * 4 + [3] * 4)
        found = engine.cache.materialize(step, ["b", "c"]).hidden_states
        assert found is not None
        kept = found["b"]
        engine.step(extended(b=4, c=4), batch={"b": FIRST, "c": FOURTH}, h=[9] * 8)
    del engine

    assert [1] * 4 + [2] * 4 == kept[:, 0].tolist()
    assert [3] * 4 == found["c"][:, 0].tolist()


def test_r06_pages_recycle_over_more_steps_than_there_are(worker: bool) -> None:
    """Rows are copied out of their page, so the next step on it changes nothing that was handed out."""
    with Engine(worker=worker, pages=2, num_blocks=16) as engine:
        kept: list[Any] = []
        for number in range(20):
            change = extended(a=2) if number else started("a", 2)
            step = engine.step(change, batch={"a": (2 * number, 2 * number + 1)}, h=[number, -number])
            found = engine.cache.materialize(step, ["a"]).hidden_states
            assert found is not None
            kept.append(found)
            del found

        assert [[n, -n] for n in range(20)] == [each["a"][:, 0].tolist() for each in kept]
        kept.clear()
        engine.start(Finished("a"))
        engine.settle()
        eventually(engine.is_quiet)


# --- What is refused ----------------------------------------------------------------------------------------------


def test_r15_refused_saves_change_nothing(worker: bool) -> None:
    """Each is refused by what is wrong with it, and the step can be saved as it should have been."""
    with Engine(worker=worker, page_rows_max=4) as engine:
        engine.start(started("a", 2))
        hidden, _ = engine.outputs(h=[1, 2])
        with pytest.raises(SlotCountError, match="1 slots for 2 tokens"):
            engine.cache.save_outputs(hidden, layout=layout_of({"a": (0,)}))
        with pytest.raises(TokenCountError, match=r"num_tokens_unpadded is 3.*2 tokens"):
            engine.cache.save_outputs(hidden, num_tokens_unpadded=3, layout=layout_of({"a": (0, 1)}))
        with pytest.raises(LayoutMissingError):
            engine.cache.save_outputs(hidden)
        with pytest.raises(LayoutMissingError):
            engine.cache.drop_step()
        with pytest.raises(OutputNameError, match="hidden states are no mm output"):
            engine.cache.save_outputs(hidden, {HIDDEN: hidden}, layout=layout_of({"a": (0, 1)}))
        with pytest.raises(PolicyAfterStepError):
            engine.cache.register_policy(RowPolicy())
        with pytest.raises(StepNotSavedError):
            engine.start(extended(a=1))
        assert 0 == engine.cache.stats().pages_held
        step = engine.save({"a": (0, 1)}, h=[1, 2])
        assert [1, 2] == engine.materialize(step, "a")["h"]["a"]
        engine.start(extended(a=5))
        with pytest.raises(StepTooLargeError, match="5 tokens do not fit a page of 4"):
            engine.save({"a": (2, 3, 4, 5, 6)}, h=[1] * 5)
        engine.cache.drop_step([2, 3, 4, 5, 6])
        engine.start(Started("b", 1))

        assert 3 == engine.save({"b": (9,)}, h=[1])


def test_r15_slots_that_are_no_whole_numbers_are_not_dropped(worker: bool) -> None:
    """A slot of 1.5 is a mistake; rounding it would forget somebody's row."""
    with Engine(worker=worker) as engine:
        engine.written("a", FIRST, h=[1, 2, 3, 4])
        engine.start(started("b", 1))
        slots: Any = [1.5]
        with pytest.raises(TypeError):
            engine.cache.drop_step(slots)
        engine.cache.drop_step([])
        step = engine.step(started("c", 1, 0), batch={"c": (8,)}, h=[5])

        assert [1, 2, 3, 4, 5] == engine.materialize(step, "c")["h"]["c"]
