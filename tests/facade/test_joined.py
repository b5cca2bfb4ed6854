"""`JoinedCache`: blocks and their rows as an engine has them; and the block pool alone beside rows alone."""

import threading
from typing import Any, Literal

import numpy as np
import pytest

from tenure import (
    HIDDEN,
    BlockConfig,
    BlockManager,
    CacheConfig,
    Exhausted,
    JoinedCache,
    PublishRemoved,
    PublishStored,
    Ready,
    RowConfig,
    Sources,
)
from tenure.backends.cpu import CpuDevice
from tenure.backends.device import Lane
from tenure.core.blocks.values import Command
from tenure.core.errors import (
    ExecutorBrokenError,
    HiddenMissingError,
    NotForJoinError,
    OutputNameError,
    RowsOwedError,
    StepNotStartedError,
    TokenCountError,
    WriteFailedError,
)
from tests.facade.devices import ScriptedDevice
from tests.facade.engine import PATIENCE_S, POLICY, WORKERS, Engine, eventually, rows_of, started

pytestmark = pytest.mark.parametrize("worker", WORKERS, ids=["inline", "threaded"])
SIZE = 4


class Joined:
    """An engine over a joined cache: rows of a token are a function of all tokens up to it.

    Attributes:
        heard: KV events, in the order in which they came.
        batch: who computes which position in the next step, in order.
    """

    def __init__(
        self,
        worker: bool,
        *,
        visibility: Literal["computed", "scheduled"] = "computed",
        num_blocks: int = 8,
        device: Any = None,
    ) -> None:
        config = CacheConfig(
            blocks=BlockConfig(capacity=num_blocks, block_size=SIZE, kv_events=True),
            rows=RowConfig(
                num_blocks=num_blocks, block_size=SIZE, page_rows_max=64, pages=3, wait_timeout_s=PATIENCE_S
            ),
            visibility=visibility,
        )
        self.heard: list[Command] = []
        made = CpuDevice(worker=worker, tensors="numpy") if device is None else device
        self.cache = JoinedCache(config, POLICY, device=made, sink=self.heard.append)
        self.tokens: dict[str, list[int]] = {}
        self.batch: list[tuple[str, int]] = []
        self._at: dict[str, int] = {}

    def __enter__(self) -> "Joined":
        return self

    def __exit__(self, *_: object) -> None:
        self.cache.shutdown()

    def arrive(self, request: str, tokens: list[int]) -> int:
        """A request comes, and holds blocks for all its tokens; the tokens that it need not compute."""
        blocks = self.cache.blocks
        blocks.open_lease(request, tokens, 8)
        reused = self.cache.servable_prefix_blocks(request)
        answer = blocks.allocate_lease(request, len(tokens), reused)
        assert isinstance(answer, Ready)
        self.tokens[request] = list(tokens)
        self._at[request] = reused * SIZE
        return reused * SIZE

    def schedule(self, request: str, count: int | None = None) -> None:
        """Its next tokens, all that are known if not said."""
        first = self._at[request]
        count = len(self.tokens[request]) - first if count is None else count
        self.cache.schedule(request, count)
        self.batch += [(request, position) for position in range(first, first + count)]

    def row(self, request: str, position: int) -> float:
        """What the model emits for a token: it depends on all tokens up to it."""
        value = 0
        for token in self.tokens[request][: position + 1]:
            value = (value * 31 + token) % 65521
        return float(value)

    def rows(self, request: str, first: int, stop: int) -> list[float]:
        """The rows of some positions."""
        return [self.row(request, position) for position in range(first, stop)]

    def save(self) -> int:
        """The forward pass of the started batch, and its save."""
        numbers = np.array([self.row(*each) for each in self.batch], dtype=np.float32)[:, None]
        step = self.cache.save_outputs(numbers, {"m": numbers + 1, "c": numbers + 2})
        numbers[:] = -1
        for request, position in self.batch:
            self._at[request] = position + 1
        self.batch = []
        return step

    def step(self, *requests: str) -> int:
        """Schedule, start and save."""
        for request in requests:
            self.schedule(request)
        self.cache.new_step_starts()
        return self.save()

    def check(self, step: int, request: str, first: int = 0) -> None:
        """What a step has of a request is its rows from `first` on, under every name."""
        found = rows_of(self.cache.materialize(step, [request]))
        expected = self.rows(request, first, self._at[request])
        assert expected == found["h"][request]
        assert [n + 1 for n in expected] == found["m"][request]
        assert [n + 2 for n in expected] == found["c"][request]

    def finish(self, *requests: str) -> None:
        """They end."""
        for request in requests:
            self.cache.blocks.finish(request)


def test_x01_hit_comes_with_its_rows(worker: bool) -> None:
    """Slots and hits follow from the leases; what the blocks grant is served."""
    with Joined(worker) as site:
        assert 0 == site.arrive("a", list(range(10)))
        site.check(site.step("a"), "a")
        site.finish("a")
        assert 8 == site.arrive("b", [*range(9), 77])
        step = site.step("b")
        site.check(step, "b")

        assert 8 * 3 == site.cache.stats().counters.hit_rows


def test_x01_servable_blocks_are_those_whose_rows_are_there(worker: bool) -> None:
    """With visibility "computed" nothing can be hit before its save, and a request computes on across steps."""
    with Joined(worker) as site:
        site.arrive("a", list(range(12)))
        site.schedule("a", 5)
        site.cache.new_step_starts()
        site.cache.blocks.open_lease("b", list(range(12)), 4)
        assert 0 == site.cache.servable_prefix_blocks("b")
        step = site.save()
        assert 1 == site.cache.servable_prefix_blocks("b")
        site.cache.discard_step(step)
        site.cache.discard_step(site.step("a"))

        # All three are visible; a request that is all hit would compute nothing, and have no row to go on from.
        assert 3 == site.cache.blocks.resident_prefix_blocks("b")
        assert 2 == site.cache.servable_prefix_blocks("b")


def test_x01_same_step_hit_where_blocks_are_visible_when_scheduled(worker: bool) -> None:
    """Request b shares what a computes in the same step, also on blocks of a former tenant; its rows are a's."""
    with Joined(worker, visibility="scheduled", num_blocks=4) as site:
        site.arrive("old", [9] * 9)
        site.check(site.step("old"), "old")
        site.finish("old")
        site.arrive("a", list(range(9)))
        site.schedule("a")
        assert 8 == site.arrive("b", [*range(8), 50])
        step = site.step("b")
        found = rows_of(site.cache.materialize(step, ["a", "b"]))

        assert site.rows("a", 0, 9) == found["h"]["a"]
        assert site.rows("b", 0, 9) == found["h"]["b"]
        assert [n + 2 for n in site.rows("b", 0, 9)] == found["c"]["b"]


def test_x01_hit_on_rows_that_are_owed_is_refused_until_they_are_computed(worker: bool) -> None:
    """A step that was given up leaves its blocks visible, and nobody is served what was never computed."""
    with Joined(worker, visibility="scheduled") as site:
        site.arrive("a", list(range(9)))
        site.schedule("a")
        site.cache.new_step_starts()
        site.cache.drop_step()
        site.batch = []
        assert 8 == site.arrive("b", [*range(8), 50])
        site.schedule("b")
        with pytest.raises(RowsOwedError, match="'b'"):
            site.cache.new_step_starts()
        site.schedule("a")
        site.cache.new_step_starts()
        found = rows_of(site.cache.materialize(site.save(), ["b"]))

        assert site.rows("b", 0, 9) == found["h"]["b"]


def test_x04_kv_events_come_in_order_and_tell_the_truth(worker: bool) -> None:
    """Routers replay them: what is announced is visible, and evictions come before what takes their place."""
    with Joined(worker, num_blocks=4) as site:
        for number in range(4):
            site.arrive(f"r{number}", [number] * 9)
            site.check(site.step(f"r{number}"), f"r{number}")
            site.finish(f"r{number}")
        visible: set[int] = set()
        ids: list[int] = []
        for event in site.heard:
            assert isinstance(event, PublishStored | PublishRemoved)
            ids.append(event.event_id)
            if isinstance(event, PublishStored):
                assert visible.isdisjoint(event.block_hashes)
                visible |= set(event.block_hashes)
            else:
                assert visible >= set(event.block_hashes)
                visible -= set(event.block_hashes)

        assert list(range(len(ids))) == ids
        assert any(isinstance(event, PublishRemoved) for event in site.heard)
        assert visible == set(site.cache.view().blocks.index)


def test_x04_events_of_many_threads_are_in_order(worker: bool) -> None:
    """Leases come and go on other threads than the engine's."""
    with Joined(worker, num_blocks=64) as site:

        def come_and_go(name: str) -> None:
            for number in range(30):
                site.cache.blocks.open_lease(f"{name}{number}", [number] * 5, 1)
                assert isinstance(site.cache.blocks.allocate_lease(f"{name}{number}", 5), Ready)
                site.cache.blocks.finish(f"{name}{number}")

        threads = [threading.Thread(target=come_and_go, args=(name,)) for name in "xyz"]
        for thread in threads:
            thread.start()
        for number in range(20):
            site.arrive(f"r{number}", [100 + number] * 9)
            site.check(site.step(f"r{number}"), f"r{number}")
            site.finish(f"r{number}")
        for thread in threads:
            thread.join()
        site.cache.blocks.flush()
        ids = [event.event_id for event in site.heard if isinstance(event, PublishStored | PublishRemoved)]

        assert list(range(len(ids))) == ids
        assert len(ids) >= 20


def test_join_tells_some_things_by_itself(worker: bool) -> None:
    """Whoever tells it that tokens are computed would announce blocks without rows."""
    with Joined(worker) as site:
        site.arrive("a", list(range(9)))
        blocks = site.cache.blocks
        for refused in (
            lambda: blocks.finalize("a", 0, 9),
            lambda: blocks.complete_step(["a"], [1]),
            lambda: blocks.reserve_destination("a"),
        ):
            with pytest.raises(NotForJoinError):
                refused()
        site.check(site.step("a"), "a")


def test_every_block_operation_is_there(worker: bool) -> None:
    """What `BlockManager` has, the joined cache has: growth, reservations, fences, questions."""
    with Joined(worker) as site:
        blocks = site.cache.blocks
        site.arrive("a", list(range(7)))
        site.check(site.step("a"), "a")
        assert 55 == blocks.generate_token("a", 55).token
        site.tokens["a"].append(55)
        assert 1 == blocks.grow_leases(["a"]).served
        step = site.step("a")
        site.check(step, "a", first=7)
        assert (8, 8, 1) == (blocks.sequence_length("a"), blocks.allocated_tokens("a"), blocks.generated("a"))
        assert 2 == len(blocks.block_table("a")) == len(blocks.block_hashes("a"))
        assert isinstance(blocks.reserve_decode_blocks(100), Exhausted)
        assert blocks.prefix_hit(blocks.block_hashes("a")[0] or 0) is not None
        assert 0 <= blocks.prefill_cost("a").new_tokens
        sources = blocks.snapshot_store_sources("a", [0])
        assert isinstance(sources, Sources)
        blocks.attach("a", sources.snapshot, 3)
        assert blocks.is_pending(3)
        assert blocks.satisfy(3)
        assert (2, 0, 6) == (blocks.num_active, blocks.num_inactive, blocks.num_free)
        assert blocks.view() == site.cache.view().blocks
        blocks.preempt("a")
        assert () == blocks.block_table("a")
        blocks.finish("a")
        blocks.flush()
        assert 8 == blocks.config.capacity


def test_r24_reset_forgets_rows_and_hashes_together(worker: bool) -> None:
    """A hash that outlived its rows would be hit and could not be served."""
    with Joined(worker) as site:
        site.arrive("a", list(range(9)))
        step = site.step("a")
        assert not site.cache.reset()
        site.check(step, "a")
        assert not site.cache.reset()
        site.finish("a")
        site.cache.new_step_starts()
        eventually(lambda: not site.cache.stats().open_writes)
        assert site.cache.reset()
        announced = {each for event in site.heard if isinstance(event, PublishStored) for each in event.block_hashes}
        removed = {each for event in site.heard if isinstance(event, PublishRemoved) for each in event.block_hashes}
        assert announced == removed != set()

        assert 0 == site.arrive("b", list(range(9)))
        site.check(site.step("b"), "b")


def test_r24_reset_is_refused_while_a_lease_holds_blocks(worker: bool) -> None:
    """Blocks that were granted, and tokens that were scheduled, are not taken away behind their request's back."""
    with Joined(worker) as site:
        site.arrive("a", list(range(9)))
        site.schedule("a")
        table = site.cache.blocks.block_table("a")
        assert not site.cache.reset()
        assert table == site.cache.blocks.block_table("a") != ()

        assert 1 == site.cache.new_step_starts().step


def test_r12_failed_write_is_fatal_to_the_join_until_a_reset(worker: bool) -> None:
    """Hashes are published whose rows are lost; the reset preempts what runs and takes the hashes back."""
    device = ScriptedDevice(worker=worker)
    with Joined(worker, device=device) as site:
        site.arrive("a", list(range(9)))
        device.fail("copy", Lane.POOL)
        site.step("a")
        eventually(lambda: site.cache.stats().has_failed)
        with pytest.raises(WriteFailedError):
            site.cache.new_step_starts()
        assert site.cache.reset()
        assert () == site.cache.blocks.block_table("a")
        site.finish("a")
        assert 0 == site.arrive("b", list(range(9)))
        site.check(site.step("b"), "b")


def test_x01_saves_that_are_refused_publish_nothing(worker: bool) -> None:
    """Neither a wrong token count nor a step without hidden states may make a hash visible."""
    with Joined(worker) as site:
        with pytest.raises(StepNotStartedError):
            site.cache.save_outputs(np.ones((1, 1), dtype=np.float32))
        site.arrive("a", list(range(9)))
        site.schedule("a")
        site.cache.new_step_starts()
        rows = np.ones((9, 1), dtype=np.float32)
        with pytest.raises(TokenCountError, match=r"8.*9"):
            site.cache.save_outputs(rows, num_tokens_unpadded=8)
        with pytest.raises(HiddenMissingError):
            site.cache.save_outputs(None, {"m": rows})
        with pytest.raises(OutputNameError):
            site.cache.save_outputs(rows, {HIDDEN: rows})
        assert not site.heard
        step = site.save()
        assert site.heard
        site.check(step, "a")


def test_x01_save_whose_freeze_fails_publishes_nothing_and_can_be_retried(worker: bool) -> None:
    """The hash comes with the rows or not at all."""
    device = ScriptedDevice(worker=worker)
    with Joined(worker, device=device) as site:
        site.arrive("a", list(range(9)))
        site.schedule("a")
        site.cache.new_step_starts()
        device.fail("allocate", nth=3)
        with pytest.raises(Exception, match="could not be frozen"):
            site.save()
        assert not site.heard
        assert 0 == site.cache.stats().charged_bytes
        step = site.save()
        site.check(step, "a")

        assert 1 == len(site.heard)


def test_broken_executor_is_told_through_the_blocks_as_well(worker: bool) -> None:
    """One machine: nothing of it goes on."""
    device = ScriptedDevice(worker=worker)
    with Joined(worker, device=device) as site:

        def explode(kind: str, lane: Lane | None) -> None:
            if lane is Lane.COPY:
                msg = "no device says this"
                raise LookupError(msg)

        site.arrive("a", list(range(9)))
        device.before = explode
        with pytest.raises((LookupError, ExecutorBrokenError), match="no device says this"):
            site.check(site.step("a"), "a")
        with pytest.raises(ExecutorBrokenError):
            site.cache.blocks.open_lease("b", [1], 1)


def test_block_pool_can_be_used_apart(worker: bool) -> None:
    """An engine may keep rows in one cache and blocks in another, and tell each what it needs to know."""
    heard: list[Command] = []
    manager = BlockManager(8, SIZE, sink=heard.append)
    manager.open_lease("a", list(range(9)), 0)
    assert isinstance(manager.allocate_lease("a", 9), Ready)
    with Engine(worker=worker) as engine:
        table = manager.block_table("a")
        slots = tuple(table[n // SIZE] * SIZE + n % SIZE for n in range(9))
        step = engine.step(started("a", 9), batch={"a": slots}, h=list(range(9)))
        manager.finalize("a", 0, 9)
        engine.discard(step)
        manager.open_lease("b", [*range(8), 50], 0)
        reused = manager.resident_prefix_blocks("b")
        assert isinstance(manager.allocate_lease("b", 9, reused), Ready)
        own = manager.block_table("b")
        batch = {"b": (own[2] * SIZE,)}
        step = engine.step(started("b", 1, *own[:reused]), batch=batch, h=[77])

        assert 2 == reused
        assert [*range(8), 77] == engine.materialize(step, "b")["h"]["b"]
        assert 1 == len(heard)
