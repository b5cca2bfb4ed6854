"""The CUDA device without a GPU: each duty of the port, a cache at full speed, and what the seed got wrong.

`tests/gpu/test_gpu.py` does the same on a GPU where there is one. Here `TorchCuda` is stood in for by streams that
are threads (see `tests/backends/cuda_stand_in.py`), so that all but torch's GPU calls themselves is executed.
"""

import re
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

torch: Any = pytest.importorskip("torch")

from tenure import Finished, OutputCache, RowConfig, RowPolicy, Started  # noqa: E402
from tenure.backends.cuda import CudaDevice, engine, make_device  # noqa: E402
from tenure.backends.cuda.api import NO_GPU  # noqa: E402
from tenure.backends.cuda.device import CudaBuffer  # noqa: E402
from tenure.backends.device import Lane, Memory, Rows  # noqa: E402
from tenure.core.errors import ForeignTensorError, OperationFailedError, PageLockedMemoryError  # noqa: E402
from tests.backends.cuda_runs import (  # noqa: E402
    DEFECTS,
    THREADS,
    CudaEngine,
    ServedDevice,
    run_defect,
    run_stress,
)
from tests.backends.cuda_stand_in import StandIn, StreamBuffer  # noqa: E402
from tests.facade.engine import FIRST, SECOND, eventually, extended, layout_of, started  # noqa: E402

DTYPES = ("float32", "float16", "bfloat16", "int32", "int64", "uint8", "bool")
HOST_LANES = (Lane.POOL, Lane.GATHER)
PATIENCE_S = 60.0


@pytest.fixture
def api() -> Iterator[StandIn]:
    """A GPU, gone at the end."""
    made = StandIn()
    yield made
    made.end()


@pytest.fixture
def device(api: StandIn) -> Iterator[CudaDevice]:
    """A device on it, gone before it."""
    made = CudaDevice(api=api, page_locked_bytes_max=2**20)
    yield made
    made.close(PATIENCE_S)


def host(device: CudaDevice, *rows: float, memory: Memory = Memory.PAGEABLE) -> CudaBuffer:
    """Host memory, one number a row."""
    made = device.allocate(memory, len(rows), (1,), "float32")
    made.tensor[:, 0] = torch.tensor(rows)
    return made


def live(device: CudaDevice, api: StandIn, *rows: float) -> CudaBuffer:
    """An output of the engine."""
    return device.live("h", api.put(torch.tensor(rows)[:, None]))


def clone(device: CudaDevice, api: StandIn, *rows: float) -> CudaBuffer:
    """Device memory that is written on the engine's stream, perhaps later."""
    made = device.allocate(Memory.DEVICE, len(rows), (1,), "float32")
    device.copy(Lane.COMPUTE, all_of(made), all_of(live(device, api, *rows)))
    return made


def all_of(buffer: CudaBuffer) -> Rows:
    """All rows of a buffer."""
    return Rows(buffer, 0, len(buffer.tensor))


def content(buffer: CudaBuffer) -> list[float]:
    """Its numbers."""
    rows: Any = buffer.tensor
    found: list[float] = rows[:, 0].tolist()
    return found


def ended(device: CudaDevice, lane: Lane) -> bool:
    """Whether a lane came to its end."""
    return device.synchronize(device.record(lane), PATIENCE_S)


# --- Duties -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("lane", HOST_LANES)
def test_duty1_operations_of_a_host_lane_take_effect_in_order(device: CudaDevice, lane: Lane) -> None:
    """Each reads what the one before it wrote."""
    first, second, third = (host(device, *rows) for rows in ((1, 2, 3), (0, 0, 0), (0, 0, 0)))
    device.copy(lane, all_of(second), all_of(first))
    device.gather_rows(lane, all_of(third), second, np.array([2, 0, 0]))
    device.scatter_rows(lane, first, np.array([1, 0]), Rows(third, 0, 2))
    device.zero_rows(lane, Rows(second, 1, 3))

    assert ended(device, lane)
    assert [1, 3, 3] == content(first)
    assert [1, 0, 0] == content(second)


@pytest.mark.parametrize("memory", [Memory.PAGE_LOCKED, Memory.PAGEABLE])
@pytest.mark.parametrize("lane", [Lane.COPY, Lane.GATHER])
def test_duty1_reads_of_the_gpu_take_effect_in_order(
    device: CudaDevice, api: StandIn, lane: Lane, memory: Memory
) -> None:
    """On a stream of the lane's own, whatever memory they go to."""
    source, target = clone(device, api, 1, 2, 3), host(device, 0, 0, 0, memory=memory)
    device.wait(lane, device.record(Lane.COMPUTE), is_needed=True)
    device.copy(lane, all_of(target), all_of(source))
    device.gather_rows(lane, Rows(target, 0, 2), source, np.array([2, 1]))

    assert ended(device, lane)
    assert [3, 2, 3] == content(target)
    stream = "copy" if lane is Lane.COPY else "read"
    assert (1, 1) == (api.asked["copy", stream], api.asked["take", stream])


def test_duty1_host_lane_reads_what_it_read_of_the_gpu(device: CudaDevice, api: StandIn) -> None:
    """The read stream is behind the thread only until the thread goes on."""
    source, middle, target = clone(device, api, 1, 2), host(device, 0, 0), host(device, 0, 0)
    api.dawdle = 1.0
    device.wait(Lane.GATHER, device.record(Lane.COMPUTE), is_needed=True)
    device.copy(Lane.GATHER, all_of(middle), all_of(source))
    device.scatter_rows(Lane.GATHER, target, np.array([1, 0]), all_of(middle))

    assert ended(device, Lane.GATHER)
    assert [2, 1] == content(target)


def test_duty2_live_output_is_read_behind_the_forward_pass_and_ahead_of_the_next(
    device: CudaDevice, api: StandIn
) -> None:
    """As with the static output buffers of a CUDA graph: the same tensor is written again and again."""
    output = StreamBuffer(api, np.zeros((2, 1), np.float32))
    gate = api.engine.hold()
    events: list[Any] = []
    clones = [device.allocate(Memory.DEVICE, 2, (1,), "float32") for _ in range(3)]
    for number, target in enumerate(clones, 1):
        output[:, 0] = [number, 10 * number]
        device.copy(Lane.COMPUTE, all_of(target), all_of(device.live("h", output.tensor)))
        events.append(device.record(Lane.COMPUTE))
    assert not any(map(device.query, events))
    gate.set()

    assert device.synchronize(events[-1], PATIENCE_S)
    assert [[1, 10], [2, 20], [3, 30]] == [content(each) for each in clones]


def test_duty2_thread_that_changes_its_stream_is_followed(device: CudaDevice, api: StandIn) -> None:
    """The current stream is asked for at every call, and memory is kept for the one that was used last."""
    api.engine = api.stream("another")
    target = clone(device, api, 5)

    assert ended(device, Lane.COMPUTE)
    assert [5] == content(target)
    assert 1 == api.asked["copy", "another"]
    device.free(target)
    device.free(host(device, 1))
    assert ["read", "another"] == api.kept


def test_duty2_nothing_that_waits_holds_its_caller(device: CudaDevice, api: StandIn) -> None:
    """Copies behind a forward pass, and gathers behind them, are asked for while it runs."""
    gate = api.engine.hold()
    source, page, pool = clone(device, api, 1, 2), host(device, 0, 0, memory=Memory.PAGE_LOCKED), host(device, 0, 0)
    frozen = device.record(Lane.COMPUTE)
    device.wait(Lane.COPY, frozen, is_needed=True)
    device.copy(Lane.COPY, all_of(page), all_of(source))
    copied = device.record(Lane.COPY)
    device.wait(Lane.POOL, copied, is_needed=True)
    device.scatter_rows(Lane.POOL, pool, np.array([1, 0]), all_of(page))
    scattered = device.record(Lane.POOL)
    device.wait(Lane.COPY, scattered, is_needed=True)
    device.copy(Lane.COPY, Rows(page, 0, 1), Rows(source, 1, 2))
    again = device.record(Lane.COPY)
    assert [False] * 4 == [device.query(each) for each in (frozen, copied, scattered, again)]
    assert [0, 0] == content(pool)
    eventually(lambda: api.asked["wait", "copy"])
    gate.set()

    assert device.synchronize(again, PATIENCE_S)
    assert [2, 1] == content(pool)
    assert [2, 2] == content(page)


def test_duty3_event_completes_when_its_stream_is_there_and_not_before(device: CudaDevice, api: StandIn) -> None:
    """Whoever waits decides how long, and may ask again."""
    source, page = clone(device, api, 1), host(device, 0, memory=Memory.PAGE_LOCKED)
    assert ended(device, Lane.COMPUTE)
    copying = api.streams[1]
    gate = copying.hold()
    device.copy(Lane.COPY, all_of(page), all_of(source))
    event = device.record(Lane.COPY)
    assert not device.synchronize(event, 0.01)
    assert not device.query(event)
    gate.set()

    assert device.synchronize(event, PATIENCE_S)
    assert device.query(event)
    assert [1] == content(page)


def test_duty3_forward_pass_that_waits_goes_on_behind_the_event(device: CudaDevice, api: StandIn) -> None:
    """The executor never asks for it; whoever does is held until then."""
    source, page = clone(device, api, 1), host(device, 0, memory=Memory.PAGE_LOCKED)
    device.wait(Lane.COPY, device.record(Lane.COMPUTE), is_needed=True)
    device.copy(Lane.COPY, all_of(page), all_of(source))
    event = device.record(Lane.COPY)
    device.wait(Lane.COMPUTE, event, is_needed=True)

    assert device.query(event)
    assert [1] == content(page)


@pytest.mark.parametrize("lane", HOST_LANES)
def test_duty4_failure_is_passed_on_up_to_the_next_event(device: CudaDevice, lane: Lane) -> None:
    """Everything between is not done, the event fails with the reason, and behind it the lane goes on."""
    source, target = host(device, 1, 2), host(device, 7, 7)
    device.gather_rows(lane, all_of(target), source, np.array([0, 5]))
    device.copy(lane, all_of(target), all_of(source))
    failed = device.record(lane)
    for _ in range(2):
        with pytest.raises(OperationFailedError, match=r"gather rows: IndexError: rows 0 to 5 of a buffer of 2 rows"):
            device.synchronize(failed, PATIENCE_S)
        with pytest.raises(OperationFailedError):
            device.query(failed)
    assert [7, 7] == content(target)
    device.copy(lane, all_of(target), all_of(source))

    assert ended(device, lane)
    assert [1, 2] == content(target)


def test_duty4_stream_that_refuses_fails_behind_what_it_was_asked_before(device: CudaDevice, api: StandIn) -> None:
    """An event that failed too early would have its buffers used again while a copy runs."""
    source, page = clone(device, api, 1, 2), host(device, 7, 7, memory=Memory.PAGE_LOCKED)
    assert ended(device, Lane.COMPUTE)
    gate = api.streams[1].hold()
    device.copy(Lane.COPY, Rows(page, 0, 1), Rows(source, 0, 1))
    device.gather_rows(Lane.COPY, all_of(page), source, np.array([0, 2]))
    device.copy(Lane.COPY, Rows(page, 1, 2), Rows(source, 1, 2))
    failed = device.record(Lane.COPY)
    assert not device.synchronize(failed, 0.05)
    gate.set()
    with pytest.raises(OperationFailedError, match="rows 0 to 2 of a buffer of 2 rows"):
        device.synchronize(failed, PATIENCE_S)

    # Not asked of the GPU, which would be lost.
    assert 0 == api.asked["take", "copy"]
    assert [1, 7] == content(page)
    assert ended(device, Lane.COPY)


@pytest.mark.parametrize("is_needed", [True, False])
@pytest.mark.parametrize("lane", [Lane.COPY, Lane.POOL])
def test_duty4_wait_fails_with_its_event_only_if_it_is_needed(
    device: CudaDevice, api: StandIn, lane: Lane, is_needed: bool
) -> None:
    """A scatter behind a failed gather is fine; a gather behind a failed copy is not."""
    source, page, target = clone(device, api, 1), host(device, 1, memory=Memory.PAGE_LOCKED), host(device, 7)
    assert ended(device, Lane.COMPUTE)
    if lane is Lane.COPY:
        api.fails["copy"] = 1
        device.copy(lane, all_of(page), all_of(source))
    else:
        device.scatter_rows(lane, target, np.array([-1]), all_of(page))
    failed = device.record(lane)
    device.wait(Lane.GATHER, failed, is_needed=is_needed)
    device.copy(Lane.GATHER, all_of(target), all_of(page))
    event = device.record(Lane.GATHER)

    if is_needed:
        with pytest.raises(OperationFailedError, match=r"copy rows|scatter rows"):
            device.synchronize(event, PATIENCE_S)
        assert [7] == content(target)
    else:
        assert device.synchronize(event, PATIENCE_S)
        assert [1] == content(target)


def test_duty4_freeze_that_is_refused_raises_at_the_call_and_its_lane_goes_on(device: CudaDevice, api: StandIn) -> None:
    """So a save fails while its outputs are there, and the next one does not."""
    api.fails["copy"] = 1
    with pytest.raises(OperationFailedError, match="copy rows: RuntimeError: CUDA error"):
        clone(device, api, 1)
    api.fails["copy"] = 1
    with pytest.raises(OperationFailedError, match="copy a leftover: RuntimeError: CUDA error"):
        device.to_host(Lane.COMPUTE, api.put(torch.ones(2)))

    assert ended(device, Lane.COMPUTE)


def test_duty4_forward_pass_that_needed_a_failed_event_is_passed_over(device: CudaDevice, api: StandIn) -> None:
    """Up to its next event, which fails when all before it has ended."""
    device.scatter_rows(Lane.POOL, host(device, 7), np.array([-1]), all_of(host(device, 1)))
    device.wait(Lane.COMPUTE, device.record(Lane.POOL), is_needed=True)
    target = clone(device, api, 1)
    gate = api.engine.hold()
    failed = device.record(Lane.COMPUTE)
    device.wait(Lane.COPY, failed, is_needed=True)
    copied = device.record(Lane.COPY)
    assert not device.query(failed)
    gate.set()
    for event in (failed, copied):
        with pytest.raises(OperationFailedError, match="scatter rows"):
            device.synchronize(event, PATIENCE_S)

    assert 0 == api.asked["copy", "engine"]
    assert [99] == content(target)


def test_duty4_record_never_raises_and_its_event_says_why_there_is_none(device: CudaDevice, api: StandIn) -> None:
    """Whoever cleans up behind a failure records first."""
    api.fails["record"] = 1
    event = device.record(Lane.COMPUTE)
    device.wait(Lane.COPY, event, is_needed=True)
    copied = device.record(Lane.COPY)
    for each in (event, copied):
        with pytest.raises(OperationFailedError, match=r"mark a place in the engine's stream: .*CUDA error"):
            device.synchronize(each, PATIENCE_S)

    assert ended(device, Lane.COPY)


def test_duty4_lost_gpu_fails_every_event_of_its_streams(device: CudaDevice, api: StandIn) -> None:
    """What fails on a GPU shows later, wherever it is asked next, and for good; the host's lanes go on."""
    source, page = clone(device, api, 1), host(device, 7, memory=Memory.PAGE_LOCKED)
    api.fails["copy later"] = 1
    device.wait(Lane.COPY, device.record(Lane.COMPUTE), is_needed=True)
    device.copy(Lane.COPY, all_of(page), all_of(source))
    with pytest.raises(OperationFailedError, match="illegal memory access"):
        ended(device, Lane.COPY)
    device.copy(Lane.GATHER, all_of(page), all_of(source))
    for lane in (Lane.COPY, Lane.GATHER, Lane.COMPUTE):
        with pytest.raises(OperationFailedError, match="illegal memory access"):
            ended(device, lane)

    assert [7] == content(page)
    assert ended(device, Lane.POOL)


@pytest.mark.parametrize(("memory", "fault"), [(Memory.DEVICE, "device_memory"), (Memory.PAGE_LOCKED, "page_locked")])
def test_duty5_memory_that_is_not_there_is_an_error_of_the_port(
    device: CudaDevice, api: StandIn, memory: Memory, fault: str
) -> None:
    """An engine can act on it; an error of torch's would stop it."""
    api.fails[fault] = 1
    with pytest.raises(OperationFailedError, match="allocate 4 rows"):
        device.allocate(memory, 4, (2,), "int64")

    assert (4, 2) == tuple(device.allocate(memory, 4, (2,), "int64").tensor.shape)
    with pytest.raises(OperationFailedError, match="allocate 1099511627776 rows"):
        device.allocate(Memory.PAGEABLE, 2**40, (2**20,), "int64")


def test_duty5_page_locked_memory_has_a_limit() -> None:
    """A host whose memory is all locked stands still."""
    api = StandIn()
    device = CudaDevice(api=api, page_locked_bytes_max=1000)
    config = RowConfig(num_blocks=8, block_size=4, page_rows_max=16, pages=2)
    with OutputCache(config, device=device) as cache:
        cache.new_step_starts([Started("a", 4)])
        with pytest.raises(PageLockedMemoryError, match="1000"):
            cache.save_outputs(api.put(torch.zeros(4, 16)), layout=layout_of({"a": FIRST}))
    unlimited = CudaDevice(api=api)

    found = unlimited.page_locked_bytes_max()
    assert found is not None
    assert found > 2**20
    assert not unlimited.is_unified()
    unlimited.close(PATIENCE_S)
    api.end()


def test_duty6_host_memory_is_at_hand_on_the_calling_thread(device: CudaDevice) -> None:
    """Whoever materializes copies by itself, and waits for no lane."""
    source, target = host(device, 1, 2, 3), host(device, 0, 0, 0)
    device.copy_now(Rows(target, 1, 3), Rows(source, 0, 2))
    cut, own = device.cut(Rows(target, 1, 3)), device.own(target.tensor)
    target.tensor.fill_(9)

    assert [1, 2] == cut[:, 0].tolist()
    assert [0, 1, 2] == own[:, 0].tolist()


@pytest.mark.parametrize("dtype", DTYPES)
def test_duty6_tensor_keeps_what_its_memory_needs(device: CudaDevice, dtype: str) -> None:
    """Views of views keep it as well; it goes with the last of them."""
    gone: list[int] = []

    class Keep:
        def __del__(self) -> None:
            gone.append(1)

    buffer = device.allocate(Memory.PAGE_LOCKED, 4, (2,), dtype)
    buffer.tensor.zero_()[1:] = 1
    view = device.tensor(Rows(buffer, 1, 4), Keep())
    assert getattr(torch, dtype) is view.dtype
    assert view.data_ptr() == buffer.tensor[1:].data_ptr()
    part = view[1:][:, 0]
    del view, buffer
    assert not gone
    assert [1, 1] == part.tolist()
    del part
    assert gone


def test_duty7_lanes_may_be_asked_from_threads_side_by_side(device: CudaDevice, api: StandIn) -> None:
    """A builder pumps while the engine freezes."""
    lanes = (Lane.COPY, Lane.POOL, Lane.GATHER)
    targets = {lane: host(device, 0, memory=Memory.PAGE_LOCKED) for lane in lanes}
    sources = {lane: host(device, 0) for lane in lanes}
    seen: list[Any] = []

    def ask(lane: Lane) -> None:
        for number in range(1, 101):
            device.copy(lane, all_of(targets[lane]), all_of(sources[lane]))
            if number % 10 == 0:
                seen.append(device.record(lane))

    threads = [threading.Thread(target=ask, args=(lane,)) for lane in lanes]
    for each in threads:
        each.start()
    for _ in range(20):
        clone(device, api, 1)
        seen.append(device.record(Lane.COMPUTE))
    for each in threads:
        each.join()

    assert all(device.synchronize(event, PATIENCE_S) for event in seen)
    assert 50 == len(seen)


def test_duty8_listener_is_called_behind_every_event_on_a_thread_of_the_device(
    device: CudaDevice, api: StandIn
) -> None:
    """Nobody else looks after a device whose operations outlive the call."""
    heard: list[tuple[str, int]] = []
    events: list[Any] = []
    are_listed = threading.Event()

    def hear() -> None:
        # It may be called before `record` has returned.
        assert are_listed.wait(PATIENCE_S)
        heard.append((threading.current_thread().name, sum(map(device.query, events))))

    device.listen(hear)
    for lane in Lane:
        are_listed.clear()
        events.append(device.record(lane))
        are_listed.set()
        eventually(lambda: len(events) == len(heard))

    assert [1, 2, 3, 4] == [count for _, count in heard]
    assert {name for name, _ in heard} == THREADS
    assert api.users == THREADS


def test_duty8_listener_may_ask_for_more_and_take_its_time(device: CudaDevice) -> None:
    """It is the pump: what it asks for is taken without waiting, on its own lane as well."""
    source, target = host(device, 1), host(device, 0)
    asked: list[Any] = []

    def pump() -> None:
        if not asked:
            for _ in range(100):
                device.copy(Lane.POOL, all_of(target), all_of(source))
            asked.append(device.record(Lane.POOL))

    device.listen(pump)
    device.record(Lane.POOL)
    eventually(lambda: asked)

    assert device.synchronize(asked[0], PATIENCE_S)
    assert [1] == content(target)


def test_duty9_close_leaves_no_thread_and_events_that_were_not_reached_stay_open(
    device: CudaDevice, api: StandIn
) -> None:
    """Nobody is told that something happened which did not; what callers hold stays."""
    target = host(device, 7)
    device.close(PATIENCE_S)
    device.close(PATIENCE_S)
    events = [device.record(lane) for lane in Lane]
    device.wait(Lane.COMPUTE, events[1], is_needed=True)

    assert not THREADS & {thread.name for thread in threading.enumerate()}
    assert not any(device.query(event) or device.synchronize(event, 0.01) for event in events)
    device.copy_now(all_of(target), all_of(host(device, 8)))
    assert [8] == device.cut(all_of(target))[:, 0].tolist()
    device.free(target)


@pytest.mark.parametrize("what", ["stream", "event"])
def test_duty9_close_in_the_middle_returns_in_time_and_begins_nothing_more(
    device: CudaDevice, api: StandIn, what: str
) -> None:
    """A shutdown waits for what is under way as long as it may, and not for what is asked for."""
    source, page = clone(device, api, 1), host(device, 7, memory=Memory.PAGE_LOCKED)
    assert ended(device, Lane.COMPUTE)
    gate = api.streams[1].hold()
    if what == "stream":
        first = device.record(Lane.COPY)
    else:
        device.copy(Lane.COPY, all_of(page), all_of(page))
        first = device.record(Lane.COPY)
        device.wait(Lane.POOL, first, is_needed=True)
    device.copy(Lane.COPY, all_of(page), all_of(source))
    device.copy(Lane.POOL, all_of(page), all_of(host(device, 5)))
    device.close(0.01)
    gate.set()
    device.close(PATIENCE_S)

    assert not THREADS & {thread.name for thread in threading.enumerate()}
    assert content(page) in ([7], [5])
    assert 0 == api.asked["copy", "copy"]


# --- Tensors in and out -------------------------------------------------------------------------------------------


def test_r15_tensor_that_lies_elsewhere_is_refused_with_its_place(device: CudaDevice, api: StandIn) -> None:
    """Copying from another GPU, or from the host, would wait for the wrong stream."""
    for tensor, found in (
        (torch.zeros(2, 1, device="meta"), "a tensor on meta"),
        (torch.zeros(2, 1), "a tensor on cpu"),
        (np.zeros((2, 1), np.float32), "ndarray"),
    ):
        with pytest.raises(ForeignTensorError, match=rf"h is {found}, and .* takes torch tensors on cuda:3"):
            device.live("h", tensor)
    with pytest.raises(OperationFailedError, match="it lies on meta, and this device is cuda:3"):
        device.to_host(Lane.COMPUTE, torch.zeros(2, device="meta"))


def test_r02_leftovers_come_to_the_host_behind_the_forward_pass(device: CudaDevice, api: StandIn) -> None:
    """Of whatever shape and dtype; what lies on the host is copied at once."""
    output = StreamBuffer(api, np.zeros((2, 3), np.float64))
    gate = api.engine.hold()
    output[:] = np.arange(6).reshape(2, 3)
    found = device.to_host(Lane.COMPUTE, output.tensor.t())
    output.fill(-1)
    event = device.record(Lane.COMPUTE)
    on_host, array = torch.ones(2), np.ones(2)
    copies = device.to_host(Lane.COMPUTE, on_host), device.to_host(Lane.COMPUTE, array)
    on_host.zero_()
    array[:] = 0
    gate.set()

    assert device.synchronize(event, PATIENCE_S)
    assert [[0, 3], [1, 4], [2, 5]] == found.tolist()
    assert [[1, 1], [1, 1]] == [each.tolist() for each in copies]


def test_r02_engine_in_inference_mode_leaves_memory_that_other_threads_can_write(api: StandIn) -> None:
    """Memory made in that mode may be written in that mode alone, and the mode is a thread's own."""
    config = RowConfig(num_blocks=8, block_size=4, page_rows_max=16, pages=2)
    with OutputCache(config, device=CudaDevice(api=api)) as cache:
        with torch.inference_mode():
            cache.new_step_starts([Started("a", 4)])
            hidden, ref = api.put(torch.ones(4, 2) * 3), api.put(torch.ones(5))
            mm = {"ref": ref, "host": torch.ones(5)}
            step = cache.save_outputs(hidden, mm, layout=layout_of({"a": FIRST}))
        found = cache.materialize(step, ["a"])
        assert found.hidden_states is not None
        rows, leftover = found.hidden_states["a"], found.mm_outputs["ref"]["a"]
        rows += 1
        leftover += 1
        found.mm_outputs["host"]["a"].add_(1)

        assert torch.equal(torch.full((4, 2), 4.0), rows)
        assert torch.equal(torch.full((5,), 2.0), leftover)


@pytest.mark.parametrize("dtype", DTYPES)
def test_r02_rows_of_every_dtype_come_back_bit_for_bit(api: StandIn, dtype: str) -> None:
    """Through freeze, page, pool, gather, and copy-out; deferred ones through their host rows, or from the GPU."""
    config = RowConfig(num_blocks=8, block_size=4, page_rows_max=16, pages=2)
    policy = RowPolicy(hidden=False, immediate=frozenset({"m"}), deferred=frozenset({"c"}), infer=False)
    with OutputCache(config, policy, device=CudaDevice(api=api)) as cache:
        first = {name: api.put(torch.randint(0, 2, (4, 3)).to(getattr(torch, dtype))) for name in "mc"}
        cache.new_step_starts([Started("a", 4)])
        step = cache.save_outputs(None, first, layout=layout_of({"a": (0, 2, 1, 3)}))
        found = cache.materialize(step, ["a"]).mm_outputs
        assert all(torch.equal(first[name], found[name]["a"]) for name in "mc")
        second = {name: api.put(torch.randint(0, 2, (3, 3)).to(getattr(torch, dtype))) for name in "mc"}
        cache.new_step_starts([Finished("a"), Started("b", 3, 4, ((0,),))])
        step = cache.save_outputs(None, second, layout=layout_of({"b": (4, 5, 6)}))
        found = cache.materialize(step, ["b"]).mm_outputs

        for name in "mc":
            expected = torch.cat([first[name][[0, 2, 1, 3]], second[name]])
            assert torch.equal(expected, found[name]["b"])


def test_r02_deferred_rows_that_are_still_on_the_gpu_are_read_from_there(api: StandIn) -> None:
    """A hit on a request that goes on, whose rows no page ever had."""
    device = ServedDevice(api)
    with CudaEngine(device=device) as engine:
        engine.step(started("a", 4), batch={"a": FIRST}, h=[1] * 4, c=[1, 2, 3, 4])
        engine.step(
            extended(a=2), started("b", 4, 0), batch={"a": (8, 9), "b": SECOND}, h=[2] * 6, c=[5, 6, 7, 8, 9, 9]
        )
        found = engine.materialize(2, "b")

        assert [1, 2, 3, 4, 7, 8, 9, 9] == found["c"]["b"]
        assert api.asked["copy", "read"] + api.asked["take", "read"]


def test_make_device_needs_a_gpu() -> None:
    """Without one it says so, and does not fail at the first step."""
    if engine.num_gpus():
        pytest.skip("there is a GPU here")
    with pytest.raises(OperationFailedError, match=re.escape(NO_GPU)):
        make_device({"index": 0})


# --- The whole cache ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("function", "settings"), DEFECTS)
def test_seed_defects_end_well_on_streams(
    function: Callable[..., None], settings: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every defect of the seed, with copies that run beside the engine and end when they like."""
    run_defect(function, settings, monkeypatch, StandIn)


def test_r02_r18_threads_at_full_speed_get_their_rows_from_streams_and_leave_nothing() -> None:
    """An engine, two builders that dawdle, three streams that do: what interleavings break shows here."""
    device = ServedDevice(StandIn(dawdle=0.05))
    run_stress(device, 400)

    assert device.api.asked["wait", "copy"]
