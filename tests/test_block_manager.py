"""The facade that engines import: thread-safe, and honest to its sink."""

import logging
import threading
from collections.abc import Callable

import pytest
from pydantic import ValidationError

import tenure
from tenure import (
    BlockManager,
    ContractError,
    Exhausted,
    PublishRemoved,
    PublishStored,
    Ready,
    RecordTrace,
    Reserved,
    Sources,
    TenureError,
)
from tenure.core.blocks.values import Command
from tenure.core.blocks.view import PrefixHit
from tenure.spec.blocks.mirror import KvMirror
from tenure.spec.blocks.rules import check_view


def test_every_operation_of_the_machine_is_a_method() -> None:
    """One request's life, by names an engine writes."""
    heard: list[Command] = []
    manager = BlockManager(8, 4, sink=heard.append, dp_rank=2)
    manager.open_lease("a", range(9), 4)
    assert manager.resident_prefix_blocks("a") == 0
    assert isinstance(manager.allocate_lease("a", 9), Ready)
    manager.finalize("a", 0, 9)
    assert manager.generate_token("a", 50).token == 50
    assert manager.grow_leases(["a"]).served == 1
    assert manager.complete_step(["a"], [51]) == (51,)
    assert manager.allocated_tokens("a") == 10
    assert (manager.sequence_length("a"), manager.generated("a")) == (11, 2)
    assert manager.block_table("a") == (0, 1, 2)
    names = manager.block_hashes("a")
    assert names[0] is not None
    assert manager.prefix_hit(names[0]) == PrefixHit(True)
    sources = manager.snapshot_store_sources("a", [0, 1])
    assert isinstance(sources, Sources)
    assert manager.snapshot_store_sources("a", [2]) is None
    manager.attach("a", sources.snapshot, 5)
    assert manager.is_pending(5)
    extra = manager.snapshot_store_sources("a", [2])
    assert extra is None
    manager.preempt("a")
    reserved = manager.reserve_decode_blocks(6)
    assert isinstance(reserved, Reserved)
    assert manager.num_active == 6
    manager.open_lease("b", range(100, 108), 0)
    assert isinstance(manager.allocate_lease("b", 8), Ready)
    (dependency,) = {5}
    manager.authorize_lease_writes("b", [dependency])
    manager.finalize("b", 0, 8)
    manager.finish("b")
    assert manager.satisfy(5)
    assert not manager.satisfy(5)
    assert isinstance(manager.allocate_from_decode_reservation("a", 9, reserved.reservation), Ready)
    manager.release_decode_reservation(reserved.reservation)
    manager.finish("a")
    assert manager.num_free + manager.num_inactive == 8
    check_view(manager.view())

    stored = [each for each in heard if isinstance(each, PublishStored)]
    removed = [each for each in heard if isinstance(each, PublishRemoved)]
    assert [each.event_id for each in heard if not isinstance(each, RecordTrace)] == list(range(len(heard)))
    assert {each.dp_rank for each in stored} == {each.dp_rank for each in removed} == {2}
    assert removed


def test_destinations_by_method() -> None:
    """A prompt that is transferred in."""
    manager = BlockManager(6, 4)
    manager.open_lease("a", range(8), 0)
    answer = manager.reserve_destination("a")
    assert isinstance(answer, Reserved)
    assert manager.destination_pending_dependencies(answer.reservation) == ()
    manager.activate_destination("a", answer.reservation)
    manager.open_lease("b", range(12), 0)
    names = manager.block_hashes("b")
    assert names[2] is not None
    second = manager.reserve_external_prefix("b", 2, [names[2]])
    assert isinstance(second, Reserved)
    manager.cancel_destination(second.reservation)
    assert manager.prefill_cost("b").cached_tokens == 8
    snapshot = manager.snapshot_store_sources("a", [0])
    assert isinstance(snapshot, Sources)
    manager.discard_snapshot(snapshot.snapshot)

    assert isinstance(manager.reserve_decode_blocks(7), Exhausted)


def test_a_refused_call_changes_nothing_and_says_what_to_do() -> None:
    """The error is a `TenureError` with a scope and a sentence."""
    manager = BlockManager(2, 4)
    manager.open_lease(7, [1, 2, 3], 0)
    before = manager.view()
    with pytest.raises(TenureError, match="request 7: 9 tokens are more than its table of 4 holds") as refusal:
        manager.allocate_lease(7, 9)

    assert isinstance(refusal.value, ContractError)
    assert refusal.value.scope is tenure.Scope.REQUEST
    assert before == manager.view()


@pytest.mark.parametrize(
    "make",
    [
        lambda: BlockManager(0),
        lambda: BlockManager(4, 0),
        lambda: BlockManager(4, dp_rank=-1),
        lambda: BlockManager(2**41),
    ],
)
def test_a_configuration_outside_the_limits_is_refused_at_construction(make: Callable[[], BlockManager]) -> None:
    """Not in the middle of a step."""
    with pytest.raises(ValidationError):
        make()


def test_traces_without_a_sink_are_refused_at_construction() -> None:
    """Nobody would ever see them."""
    with pytest.raises(ValueError, match="needs a sink"):
        BlockManager(4, trace=True)


def test_live_snapshots_are_limited_as_configured() -> None:
    """The limit is the manager's to set."""
    manager = BlockManager(4, 4, snapshots_max=1)
    manager.open_lease(1, range(8), 0)
    manager.allocate_lease(1, 8)
    manager.finalize(1, 0, 8)
    assert manager.snapshot_store_sources(1, [0]) is not None
    with pytest.raises(tenure.CapacityError, match="snapshots_max"):
        manager.snapshot_store_sources(1, [1])


def test_without_a_sink_no_event_is_built() -> None:
    """And no event id is used."""
    manager = BlockManager(4, 4)
    manager.open_lease(1, range(8), 0)
    manager.allocate_lease(1, 8)
    manager.finalize(1, 0, 8)

    assert manager.view().next_event_id == 0


def test_trace_records_reach_the_sink_before_their_events() -> None:
    """Occupancy at the moment the event was due."""
    heard: list[Command] = []
    manager = BlockManager(4, 4, sink=heard.append, trace=True)
    manager.open_lease(1, range(8), 0)
    manager.allocate_lease(1, 8)
    manager.finalize(1, 0, 8)

    assert [type(each) for each in heard] == [RecordTrace, PublishStored]


def test_a_sink_that_fails_is_logged_and_its_event_id_stays_used(caplog: pytest.LogCaptureFixture) -> None:
    """A listener's fault never reaches the request."""
    heard: list[int] = []

    def sink(command: Command) -> None:
        assert isinstance(command, PublishStored)
        heard.append(command.event_id)
        if command.event_id == 0:
            msg = "listener gone"
            raise OSError(msg)

    manager = BlockManager(4, 4, sink=sink)
    with caplog.at_level(logging.ERROR, logger="tenure"):
        for request in (1, 2):
            manager.open_lease(request, [request] * 4, 0)
            manager.allocate_lease(request, 4)
            manager.finalize(request, 0, 4)

    assert heard == [0, 1]
    assert "the sink failed" in caplog.text


def test_neighbour_kv_events_a_slow_sink_cannot_reorder() -> None:
    """Two threads; the sink is stuck on event 0 while event 1 is born. Delivery stays 0, 1."""
    heard: list[int] = []
    entered, go_on = threading.Event(), threading.Event()

    def sink(command: Command) -> None:
        assert isinstance(command, PublishStored)
        if command.event_id == 0:
            entered.set()
            assert go_on.wait(60)
        heard.append(command.event_id)

    manager = BlockManager(4, 4, sink=sink)

    def compute(request: int) -> None:
        manager.open_lease(request, [request] * 4, 0)
        manager.allocate_lease(request, 4)
        manager.finalize(request, 0, 4)

    first = threading.Thread(target=compute, args=(1,))
    first.start()
    assert entered.wait(60)
    compute(2)
    assert heard == []
    threading.Timer(0.05, go_on.set).start()
    manager.flush()

    assert heard == [0, 1]
    first.join(60)


def test_a_sink_may_call_the_manager() -> None:
    """The sink runs outside the lock; what it causes is delivered after what it was given."""
    heard: list[int] = []

    def sink(command: Command) -> None:
        assert isinstance(command, PublishStored)
        heard.append(command.event_id)
        if command.event_id == 0:
            manager.open_lease(2, [2] * 4, 0)
            manager.allocate_lease(2, 4)
            manager.finalize(2, 0, 4)

    manager = BlockManager(4, 4, sink=sink)
    manager.open_lease(1, [1] * 4, 0)
    manager.allocate_lease(1, 4)
    manager.finalize(1, 0, 4)

    assert heard == [0, 1]


def test_many_threads_leave_a_sound_state_and_a_true_event_stream() -> None:
    """Four engines on one manager, with shared prefixes, eviction and preemption."""
    heard: list[Command] = []
    manager = BlockManager(24, 4, sink=heard.append)
    failures: list[BaseException] = []

    def serve(worker: int) -> None:
        try:
            for round_number in range(60):
                request = f"{worker}-{round_number}"
                prompt = [*range(8), *([worker] * 4), round_number % 5, 1, 2]
                manager.open_lease(request, prompt, 6)
                hit = min(manager.resident_prefix_blocks(request), 3)
                try:
                    answer = manager.allocate_lease(request, len(prompt), hit)
                except ContractError:
                    # Another thread evicted the hit in between: look again, and compute it all.
                    answer = manager.allocate_lease(request, len(prompt))
                    hit = 0
                if isinstance(answer, Ready):
                    manager.finalize(request, hit * 4, len(prompt))
                    manager.generate_token(request)
                    if manager.grow_leases([request]).served:
                        manager.complete_step([request])
                    if round_number % 7 == 0:
                        manager.preempt(request)
                manager.finish(request)
        except BaseException as failure:
            failures.append(failure)

    workers = [threading.Thread(target=serve, args=(number,)) for number in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
    view = manager.view()
    mirror = KvMirror()
    mirror.hear(heard)

    assert not failures
    assert not any(worker.is_alive() for worker in workers)
    check_view(view)
    mirror.compare(view)
    assert [each.event_id for each in heard if not isinstance(each, RecordTrace)] == list(range(len(heard)))
    assert (view.num_active, view.num_inactive + len(view.free)) == (0, 24)
