"""The CUDA device on a GPU: the duties of the port, rows through the whole cache, and what only a GPU can show.

The same is done without a GPU in `tests/backends/test_cuda_device.py`, where more can be made to fail.
"""

import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

torch: Any = pytest.importorskip("torch")

from tenure import Extended, Finished, OutputCache, RowConfig, RowPolicy, Started  # noqa: E402
from tenure.backends.cuda import CudaDevice, engine, make_device  # noqa: E402
from tenure.backends.cuda.api import NO_GPU, TorchCuda  # noqa: E402
from tenure.backends.device import Lane, Memory, Rows  # noqa: E402
from tenure.core.errors import ForeignTensorError, OperationFailedError  # noqa: E402
from tests.backends.cuda_runs import DEFECTS, THREADS, ServedDevice, run_defect, run_stress  # noqa: E402
from tests.facade.engine import FIRST, eventually, layout_of  # noqa: E402

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not engine.num_gpus(), reason=NO_GPU),
]
DTYPES = ("float32", "float16", "bfloat16", "int32", "int64", "uint8", "bool")
PATIENCE_S = 60.0
LONG_CYCLES = 200_000_000
"""About a tenth of a second of a kernel that does nothing."""


class GpuBuffer:
    """A buffer of a model: written, and overwritten, on the current stream."""

    def __init__(self, array: Any) -> None:
        self.tensor = torch.from_numpy(array).cuda()

    def __setitem__(self, where: Any, values: Any) -> None:
        self.tensor[where] = torch.from_numpy(np.array(values)).to(self.tensor)

    def __getitem__(self, where: slice) -> Any:
        return self.tensor[where]

    def fill(self, value: float) -> None:
        """The next forward pass."""
        self.tensor.fill_(value)


class Gpu(TorchCuda):
    """The GPU, for engines whose outputs are numpy arrays too."""

    def buffer(self, array: Any) -> GpuBuffer:
        """A buffer of a model."""
        return GpuBuffer(array)

    def put(self, tensor: Any) -> Any:
        """A tensor on the GPU."""
        return tensor.cuda()

    def end(self) -> None:
        """Streams stay."""


@pytest.fixture
def device() -> Iterator[CudaDevice]:
    """The current GPU."""
    made = make_device()
    yield made
    made.close(PATIENCE_S)


def all_of(buffer: Any) -> Rows:
    """All rows of a buffer."""
    return Rows(buffer, 0, len(buffer.tensor))


def clone(device: CudaDevice, tensor: Any) -> Any:
    """A frozen tensor of one dimension."""
    dtype = str(tensor.dtype).removeprefix("torch.")
    made = device.allocate(Memory.DEVICE, len(tensor), (), dtype)
    device.copy(Lane.COMPUTE, all_of(made), all_of(device.live("h", tensor)))
    return made


def host(device: CudaDevice, memory: Memory, rows: int, dtype: str = "float32") -> Any:
    """Host memory of zeros."""
    made: Any = device.allocate(memory, rows, (), dtype)
    made.tensor.zero_()
    return made


def ended(device: CudaDevice, lane: Lane) -> bool:
    """Whether a lane came to its end."""
    return device.synchronize(device.record(lane), PATIENCE_S)


# --- Duties -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("memory", [Memory.PAGE_LOCKED, Memory.PAGEABLE])
@pytest.mark.parametrize("lane", [Lane.COPY, Lane.GATHER])
def test_duty1_reads_of_the_gpu_take_effect_in_order(
    device: CudaDevice, lane: Lane, memory: Memory, dtype: str
) -> None:
    """Whole stretches and rows by index, into both kinds of host memory."""
    rows = torch.tensor([1, 0, 1, 1], device="cuda").to(getattr(torch, dtype))
    source, target = clone(device, rows), host(device, memory, 4, dtype)
    device.wait(lane, device.record(Lane.COMPUTE), is_needed=True)
    device.copy(lane, all_of(target), all_of(source))
    device.gather_rows(lane, Rows(target, 0, 2), source, np.array([1, 0]))

    assert ended(device, lane)
    assert [0, 1, 1, 1] == target.tensor.tolist()
    assert (memory is Memory.PAGE_LOCKED) is target.tensor.is_pinned()


@pytest.mark.parametrize("lane", [Lane.POOL, Lane.GATHER])
def test_duty1_operations_of_a_host_lane_take_effect_in_order(device: CudaDevice, lane: Lane) -> None:
    """Page-locked memory is host memory."""
    first, second = host(device, Memory.PAGE_LOCKED, 3), host(device, Memory.PAGEABLE, 3)
    first.tensor[:] = torch.tensor([1.0, 2.0, 3.0])
    device.scatter_rows(lane, second, np.array([2, 0, 1]), all_of(first))
    device.gather_rows(lane, all_of(first), second, np.array([0, 0, 2]))
    device.zero_rows(lane, Rows(second, 0, 1))

    assert ended(device, lane)
    assert [[2, 2, 1], [0, 3, 1]] == [first.tensor.tolist(), second.tensor.tolist()]


def test_duty2_output_is_read_behind_the_forward_pass_and_ahead_of_the_next(device: CudaDevice) -> None:
    """On whatever stream the calling thread works, without waiting for it."""
    output = torch.zeros(4, device="cuda")
    for stream in (engine.current_stream(), engine.make_stream()):
        # Asking the driver for memory may wait for the GPU.
        frozen = device.allocate(Memory.DEVICE, 4, (), "float32")
        assert all(ended(device, lane) for lane in (Lane.COMPUTE, Lane.COPY))
        with engine.on_stream(stream):
            engine.long_kernel(LONG_CYCLES)
            output.fill_(5)
            device.copy(Lane.COMPUTE, all_of(frozen), all_of(device.live("h", output)))
            event = device.record(Lane.COMPUTE)
            output.fill_(9)
            assert not device.query(event)
        page = host(device, Memory.PAGE_LOCKED, 4)
        device.wait(Lane.COPY, event, is_needed=True)
        device.copy(Lane.COPY, all_of(page), all_of(frozen))

        assert ended(device, Lane.COPY)
        assert [5] * 4 == page.tensor.tolist()


def test_duty3_event_completes_when_its_stream_is_there(device: CudaDevice) -> None:
    """Whoever waits decides how long, and may ask again."""
    engine.long_kernel(LONG_CYCLES)
    event = device.record(Lane.COMPUTE)

    assert not device.synchronize(event, 0.001)
    assert device.synchronize(event, PATIENCE_S)
    assert device.query(event)


def test_duty4_failure_is_passed_on_up_to_the_next_event_and_costs_no_gpu(device: CudaDevice) -> None:
    """A row that is not there is refused on the host; asked of the GPU, it would end the process's use of it."""
    source, page = clone(device, torch.ones(2, device="cuda")), host(device, Memory.PAGE_LOCKED, 2)
    device.wait(Lane.COPY, device.record(Lane.COMPUTE), is_needed=True)
    device.gather_rows(Lane.COPY, all_of(page), source, np.array([0, 5]))
    failed = device.record(Lane.COPY)
    device.wait(Lane.POOL, failed, is_needed=True)
    device.zero_rows(Lane.POOL, all_of(page))
    for event in (failed, device.record(Lane.POOL)):
        with pytest.raises(OperationFailedError, match="rows 0 to 5 of a buffer of 2 rows"):
            device.synchronize(event, PATIENCE_S)
    device.copy(Lane.COPY, all_of(page), all_of(source))

    assert ended(device, Lane.COPY)
    assert [1, 1] == page.tensor.tolist()


@pytest.mark.parametrize("memory", [Memory.DEVICE, Memory.PAGEABLE])
def test_duty5_memory_that_is_not_there_is_an_error_of_the_port(device: CudaDevice, memory: Memory) -> None:
    """An engine can act on it."""
    with pytest.raises(OperationFailedError, match="allocate 1099511627776 rows"):
        device.allocate(memory, 2**40, (2**10,), "int64")
    device.free(device.allocate(memory, 4, (2,), "int64"))


def test_duty8_listener_is_called_behind_every_event(device: CudaDevice) -> None:
    """On a thread of the device."""
    heard: list[str] = []
    device.listen(lambda: heard.append(threading.current_thread().name))
    for lane in Lane:
        device.record(lane)

    eventually(lambda: len(heard) == len(Lane))
    assert set(heard) == THREADS


def test_duty9_close_leaves_no_thread() -> None:
    """Also while the GPU is at something."""
    device = make_device()
    engine.long_kernel(LONG_CYCLES)
    device.record(Lane.COMPUTE)
    device.close(PATIENCE_S)

    assert not THREADS & {thread.name for thread in threading.enumerate()}


def test_r15_tensor_that_lies_elsewhere_is_refused(device: CudaDevice) -> None:
    """A second GPU, if there is one, and the host."""
    places = ["cpu"] + [f"cuda:{other}" for other in range(1, engine.num_gpus())]
    for place in places:
        with pytest.raises(ForeignTensorError, match=place):
            device.live("h", torch.zeros(2, device=place))


def test_every_gpu_works_whichever_is_current() -> None:
    """The index is in every allocation and stream; the current GPU of other threads does not matter."""
    for index in range(engine.num_gpus()):
        device = make_device({"index": index})
        rows = torch.arange(4.0, device=f"cuda:{index}")
        page, source = host(device, Memory.PAGE_LOCKED, 4), clone(device, rows)
        device.wait(Lane.COPY, device.record(Lane.COMPUTE), is_needed=True)
        device.gather_rows(Lane.COPY, all_of(page), source, np.array([3, 1, 2, 0]))

        assert ended(device, Lane.COPY)
        assert [3, 1, 2, 0] == page.tensor.tolist()
        assert 0 == engine.current_gpu()
        device.close(PATIENCE_S)


# --- The whole cache ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("function", "settings"), DEFECTS)
def test_seed_defects_end_well_on_a_gpu(
    function: Callable[..., None], settings: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every defect of the seed."""
    run_defect(function, settings, monkeypatch, Gpu)


def test_r02_r18_threads_at_full_speed_get_their_rows_from_a_gpu_and_leave_nothing() -> None:
    """An engine, and two builders that dawdle."""
    run_stress(ServedDevice(Gpu()), 1000)


@pytest.mark.parametrize("dtype", DTYPES)
def test_r02_rows_of_every_dtype_come_back_bit_for_bit(dtype: str) -> None:
    """Through freeze, page, pool, gather, and copy-out; in inference mode, as engines run."""
    config = RowConfig(num_blocks=8, block_size=4, page_rows_max=16, pages=2)
    policy = RowPolicy(hidden=False, immediate=frozenset({"m"}), deferred=frozenset({"c"}), infer=False)
    with OutputCache(config, policy, device=make_device()) as cache, torch.inference_mode():
        first, second = (
            {name: torch.randint(0, 2, (count, 3), device="cuda").to(getattr(torch, dtype)) for name in "mc"}
            for count in (4, 3)
        )
        cache.new_step_starts([Started("a", 4)])
        cache.discard_step(cache.save_outputs(None, first, layout=layout_of({"a": (0, 2, 1, 3)})))
        cache.new_step_starts([Finished("a"), Started("b", 3, 4, ((0,),))])
        step = cache.save_outputs(None, second, layout=layout_of({"b": (4, 5, 6)}))
        found = cache.materialize(step, ["b"]).mm_outputs

        for name in "mc":
            assert torch.equal(torch.cat([first[name][[0, 2, 1, 3]], second[name]]).cpu(), found[name]["b"])


def test_r02_static_output_of_a_cuda_graph_is_frozen_at_every_replay() -> None:
    """The same buffer holds the rows of every step; each step's are its own."""
    given = torch.zeros(4, 8, device="cuda")
    graph, output = engine.captured(lambda: given * 2)
    config = RowConfig(num_blocks=64, block_size=4, page_rows_max=16, pages=4, builder_lag_max=3)
    with OutputCache(config, device=make_device()) as cache:
        steps: list[int] = []
        for number in range(3):
            cache.new_step_starts([Extended(("a",), np.array([4])) if number else Started("a", 4)])
            given.fill_(number + 1)
            graph.replay()
            steps.append(cache.save_outputs(output, layout=layout_of({"a": tuple(4 * number + k for k in FIRST)})))
        for number, step in enumerate(steps):
            found = cache.materialize(step, ["a"]).hidden_states

            assert found is not None
            assert torch.equal(torch.full((4, 8), 2.0 * (number + 1)), found["a"])


def test_copies_of_a_save_run_beside_a_long_kernel(device: CudaDevice) -> None:
    """On the GPU's own timeline: the copy begins and ends between the kernel's beginning and its end."""
    source, page = clone(device, torch.ones(2**24, device="cuda")), host(device, Memory.PAGE_LOCKED, 2**24)
    assert ended(device, Lane.COMPUTE)
    frozen = device.record(Lane.COMPUTE)
    began = engine.timed_mark()
    engine.long_kernel(5 * LONG_CYCLES)
    over = engine.timed_mark()
    device.wait(Lane.COPY, frozen, is_needed=True)
    device.copy(Lane.COPY, all_of(page), all_of(source))
    assert ended(device, Lane.COPY)
    assert not over.query()
    copied = engine.timed_mark(device._copying)  # pyright: ignore[reportPrivateUsage]
    for mark in (over, copied):
        mark.synchronize()

    assert 0 < began.elapsed_time(copied) < began.elapsed_time(over)
    assert bool((page.tensor == 1).all())
