"""The CPU as a device: the numbered duties of the port, and every kind of tensor in and out."""

import subprocess
import sys
import threading
from collections.abc import Iterator
from threading import Event
from typing import Any

import numpy as np
import pytest

from tenure import Finished, OutputCache, RowConfig, RowPolicy, Started
from tenure.backends.cpu import CpuDevice
from tenure.backends.cpu.device import CpuBuffer
from tenure.backends.device import Lane, Memory, Rows
from tenure.core.errors import ForeignTensorError, FreezeFailedError, OperationFailedError, RowDtypeError
from tests.facade.engine import PATIENCE_S, WORKERS, eventually, layout_of

DTYPES = ("float32", "float16", "bfloat16", "int32", "int64", "uint8", "bool")
ROW_SHAPES = ((), (3,), (3, 2), (0,))


@pytest.fixture(params=WORKERS, ids=["inline", "threaded"])
def device(request: pytest.FixtureRequest) -> Iterator[CpuDevice]:
    """A device, gone at the end."""
    made = CpuDevice(worker=request.param, tensors="numpy")
    yield made
    made.close(PATIENCE_S)


def buffer_of(*rows: float) -> CpuBuffer:
    """One number a row."""
    return CpuBuffer(np.array(rows, dtype=np.float32)[:, None], "float32")


def all_of(buffer: CpuBuffer) -> Rows:
    """All rows of a buffer."""
    return Rows(buffer, 0, len(buffer.array))


def content(buffer: CpuBuffer) -> list[float]:
    """Its numbers."""
    found: list[float] = buffer.array[:, 0].tolist()
    return found


# --- Duties -------------------------------------------------------------------------------------------------------


def test_duty_1_operations_of_a_lane_take_effect_in_order(device: CpuDevice) -> None:
    """Each reads what the one before it wrote."""
    first, second, third = buffer_of(1, 2, 3), buffer_of(0, 0, 0), buffer_of(0, 0, 0)
    for lane in (Lane.COPY, Lane.POOL, Lane.GATHER):
        device.copy(lane, all_of(second), all_of(first))
        device.gather_rows(lane, all_of(third), second, np.array([2, 0, 0]))
        device.scatter_rows(lane, first, np.array([1, 0]), Rows(third, 0, 2))
        device.zero_rows(lane, Rows(second, 1, 3))
        assert device.synchronize(device.record(lane), PATIENCE_S)

    # Three rounds of the same, by hand.
    expected = [1, 2, 3]
    for _ in range(3):
        expected = [expected[0], expected[2], expected[2]]
    assert expected == content(first)
    assert [1, 0, 0] == content(second)


def test_duty_2_live_outputs_are_read_at_the_call(device: CpuDevice) -> None:
    """What the engine overwrites afterwards must not be seen."""
    live, clone = buffer_of(1, 2), buffer_of(0, 0)
    device.copy(Lane.COMPUTE, all_of(clone), all_of(live))
    live.array[:] = 9

    assert device.synchronize(device.record(Lane.COMPUTE), PATIENCE_S)
    assert [1, 2] == content(clone)


def test_duty_4_failure_is_passed_on_up_to_the_next_event(device: CpuDevice) -> None:
    """Everything between is not done, the event fails with the reason, and behind it the lane goes on."""
    source, target = buffer_of(1, 2), buffer_of(7, 7)
    device.gather_rows(Lane.POOL, all_of(target), source, np.array([0, 5]))
    device.copy(Lane.POOL, all_of(target), all_of(source))
    failed = device.record(Lane.POOL)
    for _ in range(2):
        with pytest.raises(OperationFailedError, match=r"gather rows: IndexError: rows 0 to 5 of a buffer of 2 rows"):
            device.synchronize(failed, PATIENCE_S)
        with pytest.raises(OperationFailedError):
            device.query(failed)
    assert [7, 7] == content(target)
    device.copy(Lane.POOL, all_of(target), all_of(source))

    assert device.synchronize(device.record(Lane.POOL), PATIENCE_S)
    assert [1, 2] == content(target)


@pytest.mark.parametrize("lane", [Lane.COMPUTE, Lane.COPY])
@pytest.mark.parametrize("is_needed", [True, False])
def test_duty_4_wait_fails_with_its_event_only_if_it_is_needed(device: CpuDevice, lane: Lane, is_needed: bool) -> None:
    """A scatter behind a failed gather is fine; a gather behind a failed copy is not."""
    source, target = buffer_of(1, 2), buffer_of(7, 7)
    device.scatter_rows(lane, target, np.array([-1]), Rows(source, 0, 1))
    failed = device.record(lane)
    device.wait(Lane.POOL, failed, is_needed=is_needed)
    device.copy(Lane.POOL, all_of(target), all_of(source))
    event = device.record(Lane.POOL)

    if is_needed:
        with pytest.raises(OperationFailedError, match="scatter rows"):
            device.synchronize(event, PATIENCE_S)
        assert [7, 7] == content(target)
    else:
        assert device.synchronize(event, PATIENCE_S)
        assert [1, 2] == content(target)


def test_duty_3_forward_pass_may_wait_for_another_lane(device: CpuDevice) -> None:
    """The lane COMPUTE goes on behind the event, and what it reads is there."""
    source, middle, target = buffer_of(1, 2), buffer_of(0, 0), buffer_of(0, 0)
    device.copy(Lane.COPY, all_of(middle), all_of(source))
    device.wait(Lane.COMPUTE, device.record(Lane.COPY), is_needed=True)
    device.copy(Lane.COMPUTE, all_of(target), all_of(middle))

    assert [1, 2] == content(target)


class Stop:
    """An index that holds the lane it is used on, as an operation that takes its time does."""

    def __init__(self) -> None:
        self.is_there = Event()
        self.may_go_on = Event()

    def __len__(self) -> int:
        self.is_there.set()
        assert self.may_go_on.wait(PATIENCE_S)
        return 0


def stop(device: CpuDevice) -> Stop:
    """Hold the host lane."""
    held: Any = Stop()
    device.gather_rows(Lane.POOL, Rows(buffer_of(0), 0, 0), buffer_of(0), held)
    assert held.is_there.wait(PATIENCE_S)
    found: Stop = held
    return found


def test_duty_3_synchronize_gives_up_in_time_and_may_be_asked_again() -> None:
    """Whoever waits decides how long."""
    device = CpuDevice(worker=True, tensors="numpy")
    held = stop(device)
    event = device.record(Lane.POOL)
    assert not device.query(event)
    assert not device.synchronize(event, 0.01)
    held.may_go_on.set()

    # An empty index with a length is no index: the operation failed, and says so.
    with pytest.raises(OperationFailedError):
        device.synchronize(event, PATIENCE_S)
    device.close(PATIENCE_S)


def test_duty_8_listener_is_called_behind_every_event_on_the_worker() -> None:
    """Nobody else looks after a device whose operations outlive the call."""
    device = CpuDevice(worker=True, tensors="numpy")
    heard: list[tuple[str, int]] = []
    events: list[Any] = []
    are_listed = Event()

    def hear() -> None:
        # It may be called before `record` has returned.
        assert are_listed.wait(PATIENCE_S)
        heard.append((threading.current_thread().name, sum(device.query(event) for event in events)))

    device.listen(hear)
    events += [device.record(Lane.COPY)]
    are_listed.set()
    eventually(lambda: len(heard) == 1)
    are_listed.clear()
    events += [device.record(Lane.POOL), device.record(Lane.GATHER)]
    are_listed.set()
    eventually(lambda: len(heard) == 3)
    device.close(PATIENCE_S)

    assert {"tenure-cpu-worker"} == {name for name, _ in heard}
    assert 1 == heard[0][1]
    assert 3 == heard[-1][1]


@pytest.mark.parametrize("worker", WORKERS, ids=["inline", "threaded"])
def test_duty_9_close_leaves_no_thread_and_events_that_were_not_reached_stay_open(worker: bool) -> None:
    """Nobody is told that something happened which did not."""
    before = set(threading.enumerate())
    device = CpuDevice(worker=worker, tensors="numpy")
    assert worker == bool(set(threading.enumerate()) - before)
    device.close(PATIENCE_S)
    device.close(PATIENCE_S)
    event = device.record(Lane.POOL)

    assert not set(threading.enumerate()) - before
    assert worker != device.query(event)
    assert worker != device.synchronize(event, 0.01)


def test_duty_9_close_ends_what_is_under_way_and_begins_nothing_more() -> None:
    """A shutdown waits for one operation, not for all that are asked for."""
    before = set(threading.enumerate())
    device = CpuDevice(worker=True, tensors="numpy")
    source, target = buffer_of(1), buffer_of(7)
    held = stop(device)
    device.copy(Lane.POOL, all_of(target), all_of(source))
    device.close(0.01)
    held.may_go_on.set()
    device.close(PATIENCE_S)

    assert [7] == content(target)
    assert not set(threading.enumerate()) - before


def test_duty_5_memory_that_is_not_there_is_an_error_of_the_port(device: CpuDevice) -> None:
    """An engine can act on it; a MemoryError would stop it."""
    with pytest.raises(OperationFailedError, match="allocate 1099511627776 rows"):
        device.allocate(Memory.DEVICE, 2**40, (2**20,), "int64")

    assert device.page_locked_bytes_max() is None
    assert device.is_unified()


def test_duty_6_tensor_keeps_what_its_memory_needs(device: CpuDevice) -> None:
    """Views of views keep it as well; it goes with the last of them."""
    gone: list[int] = []

    class Keep:
        def __del__(self) -> None:
            gone.append(1)

    view = device.tensor(Rows(buffer_of(1, 2, 3, 4), 1, 4), Keep())
    part = view[1:][:, 0]
    del view
    assert not gone
    assert [3, 4] == part.tolist()
    del part
    assert gone


# --- Tensors in and out -------------------------------------------------------------------------------------------


def sample(dtype: str, shape: tuple[int, ...], seed: int) -> Any:
    """Any bits that a dtype may have, as numpy keeps them; bfloat16 as uint16."""
    numpy_dtype = np.dtype("uint16" if dtype == "bfloat16" else dtype)
    rng = np.random.default_rng(seed)
    if dtype == "bool":
        return rng.integers(0, 2, shape).astype(bool)
    raw = rng.integers(0, 256, (*shape, numpy_dtype.itemsize)).astype(np.uint8)
    return raw.view(numpy_dtype).reshape(shape)


def to_tensor(array: Any, dtype: str, tensors: str) -> Any:
    """What an engine would hand over."""
    if tensors == "numpy":
        return array
    torch = pytest.importorskip("torch")
    tensor = torch.from_numpy(array)
    return tensor.view(torch.bfloat16) if dtype == "bfloat16" else tensor


def to_bits(tensor: Any, dtype: str, tensors: str) -> Any:
    """What came back, as bytes."""
    if tensors == "torch":
        torch = pytest.importorskip("torch")
        assert isinstance(tensor, torch.Tensor)
        assert getattr(torch, dtype) is tensor.dtype
        tensor = (tensor.view(torch.uint16) if dtype == "bfloat16" else tensor).numpy()
    return np.ascontiguousarray(tensor).view(np.uint8)


@pytest.mark.parametrize("worker", WORKERS, ids=["inline", "threaded"])
@pytest.mark.parametrize("tensors", ["numpy", "torch"])
@pytest.mark.parametrize("shape", ROW_SHAPES, ids=str)
@pytest.mark.parametrize("dtype", DTYPES)
def test_r02_rows_of_every_dtype_and_shape_come_back_bit_for_bit(
    worker: bool, tensors: Any, shape: tuple[int, ...], dtype: str
) -> None:
    """Through freeze, page, pool, gather, and copy-out; and deferred ones through their host rows as well."""
    if tensors == "torch":
        pytest.importorskip("torch")
    config = RowConfig(num_blocks=8, block_size=4, page_rows_max=16, pages=2)
    policy = RowPolicy(hidden=False, immediate=frozenset({"m"}), deferred=frozenset({"c"}))
    with OutputCache(config, policy, device=CpuDevice(worker=worker, tensors=tensors)) as cache:
        first = {name: sample(dtype, (4, *shape), seed) for seed, name in enumerate("mc")}
        cache.new_step_starts([Started("a", 4)])
        live = {name: to_tensor(rows.copy(), dtype, tensors) for name, rows in first.items()}
        step = cache.save_outputs(None, live, layout=layout_of({"a": (0, 2, 1, 3)}))
        found = cache.materialize(step, ["a"])
        for name, rows in first.items():
            assert np.array_equal(rows.view(np.uint8), to_bits(found.mm_outputs[name]["a"], dtype, tensors))
        cache.new_step_starts([Finished("a"), Started("b", 3, 4, ((0,),))])
        second = {name: sample(dtype, (3, *shape), seed) for seed, name in enumerate("mc", 7)}
        live = {name: to_tensor(rows.copy(), dtype, tensors) for name, rows in second.items()}
        step = cache.save_outputs(None, live, layout=layout_of({"b": (4, 5, 6)}))
        found = cache.materialize(step, ["b"])
        for name, rows in first.items():
            tensor = found.mm_outputs[name]["b"]
            expected = np.concatenate([rows[[0, 2, 1, 3]], second[name]])
            assert expected.shape == tuple(tensor.shape)
            assert np.array_equal(expected.view(np.uint8), to_bits(tensor, dtype, tensors))


def strided(array: Any) -> Any:
    """Every other column of something wider."""
    wide = np.zeros((*array.shape[:-1], 2 * array.shape[-1]), array.dtype)
    wide[..., ::2] = array
    return wide[..., ::2]


def backwards(array: Any) -> Any:
    """Negative strides."""
    return np.ascontiguousarray(array[::-1, ::-1])[::-1, ::-1]


def transposed(array: Any) -> Any:
    """Columns first."""
    return np.asfortranarray(array)


def frozen(array: Any) -> Any:
    """Nobody may write it."""
    array = array.copy()
    array.flags.writeable = False
    return array


def unaligned(array: Any) -> Any:
    """A field of packed records: strides are no multiple of the items."""
    packed = np.zeros(array.shape[0], dtype=[("tag", "u1"), ("rows", array.dtype, array.shape[1:])])
    packed["rows"] = array
    return packed["rows"]


LAYOUTS = (strided, backwards, transposed, frozen, unaligned)


@pytest.mark.parametrize("tensors", ["numpy", "torch"])
@pytest.mark.parametrize("rows", [8, 2**20], ids=["few", "many"])
@pytest.mark.parametrize("lay", LAYOUTS, ids=lambda lay: lay.__name__)
def test_r02_arrays_of_any_layout_are_frozen_as_they_are_seen(tensors: Any, rows: int, lay: Any) -> None:
    """Outputs are views of whatever the model made, small ones and large ones, which are copied another way."""
    if tensors == "torch":
        pytest.importorskip("torch")
    array = np.arange(rows * 6, dtype=np.float32).reshape(rows, 6)
    config = RowConfig(num_blocks=rows // 4, block_size=4, page_rows_max=rows, pages=2)
    with OutputCache(config, device=CpuDevice(tensors=tensors)) as cache:
        cache.new_step_starts([Started("a", rows)])
        live = lay(array)
        assert np.array_equal(array, live)
        step = cache.save_outputs(live, layout=layout_of({"a": tuple(range(rows))}))
        found = cache.materialize(step, ["a"]).hidden_states

        assert found is not None
        assert np.array_equal(array, np.asarray(found["a"]))


def test_r02_torch_tensors_of_any_layout_are_frozen_as_they_are_seen() -> None:
    """Models hand over what needs gradients, is expanded, or is a slice; nothing of that comes back."""
    torch: Any = pytest.importorskip("torch")
    base = torch.arange(64, dtype=torch.float32).reshape(8, 8)
    tensors = (
        base.clone().requires_grad_(),
        torch.nn.Parameter(base.clone()),
        base.t(),
        base[:, ::2],
        base[:1].expand(8, 8),
        base.clone().requires_grad_() * 2,
    )
    config = RowConfig(num_blocks=8, block_size=4, page_rows_max=8, pages=2)
    for live in tensors:
        with OutputCache(config, device=CpuDevice(tensors="torch")) as cache:
            cache.new_step_starts([Started("a", 8)])
            leftover = [live[:2]]
            step = cache.save_outputs(live, {"ref": leftover}, layout=layout_of({"a": tuple(range(8))}))
            found = cache.materialize(step, ["a"])
            assert found.hidden_states is not None
            tensor, ref = found.hidden_states["a"], found.mm_outputs["ref"]["a"]

            assert torch.equal(live, tensor)
            assert not tensor.requires_grad
            assert torch.equal(live[:2], ref)
            assert not ref.requires_grad


@pytest.mark.parametrize(
    "dtype", ["float64", "complex64", "int8", "int16", "uint32", "datetime64[s]", ">f4", "O", "U3"]
)
def test_r15_dtype_that_no_row_may_have_is_refused(dtype: str) -> None:
    """It is refused when it is first seen, with the dtypes that are known."""
    config = RowConfig(num_blocks=8, block_size=4, page_rows_max=8, pages=2)
    with OutputCache(config, device=CpuDevice(tensors="numpy")) as cache:
        cache.new_step_starts([Started("a", 2)])
        with pytest.raises(RowDtypeError, match="float32, float16, bfloat16"):
            cache.save_outputs(np.zeros((2, 3), dtype=dtype), layout=layout_of({"a": (0, 1)}))

        assert 0 == cache.stats().names


def test_r15_torch_dtype_that_no_row_may_have_is_refused() -> None:
    """Under the name that torch's users know."""
    torch: Any = pytest.importorskip("torch")
    config = RowConfig(num_blocks=8, block_size=4, page_rows_max=8, pages=2)
    with OutputCache(config, device=CpuDevice(tensors="torch")) as cache:
        cache.new_step_starts([Started("a", 2)])
        with pytest.raises(RowDtypeError, match="cannot be float8_e4m3fn"):
            cache.save_outputs(torch.zeros((2, 3), dtype=torch.float8_e4m3fn), layout=layout_of({"a": (0, 1)}))
        mm = {"scale": torch.zeros((5, 3), dtype=torch.float64)}
        step = cache.save_outputs(torch.zeros((2, 3)), mm, layout=layout_of({"a": (0, 1)}))

        assert torch.float64 is cache.materialize(step, ["a"]).mm_outputs["scale"]["a"].dtype


NO_TORCH = """
import sys

class NoTorch:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == "torch":
            raise ImportError("there is no torch")

sys.meta_path.insert(0, NoTorch())
import numpy as np
from tenure import OutputCache, RowConfig, Started, WriteLayout
from tenure.backends.cpu import CpuDevice

config = RowConfig(num_blocks=8, block_size=4, page_rows_max=8, pages=2)
for device in (None, CpuDevice(tensors="numpy"), CpuDevice(tensors="auto", worker=True)):
    with OutputCache(config, device=device) as cache:
        cache.new_step_starts([Started("a", 2)])
        layout = WriteLayout(("a",), np.array([2]), np.array([0, 1]))
        step = cache.save_outputs(np.ones((2, 3), np.float32), layout=layout)
        print(cache.materialize(step, ["a"]).hidden_states["a"].sum())
try:
    CpuDevice(tensors="torch")
except ImportError as error:
    print(error)
print("torch" in sys.modules)
"""


def test_numpy_engine_needs_no_torch() -> None:
    """The demo and the embedded default run where torch is not installed, and do not import it where it is."""
    found = subprocess.run([sys.executable, "-c", NO_TORCH], capture_output=True, text=True, check=True)

    assert ["6.0", "6.0", "6.0", "there is no torch", "False"] == found.stdout.split("\n")[:-1]


def test_torch_engine_may_hand_over_numpy_arrays() -> None:
    """Both kinds may come in one step; rows come back as torch tensors, leftovers as what they were."""
    torch: Any = pytest.importorskip("torch")
    config = RowConfig(num_blocks=8, block_size=4, page_rows_max=8, pages=2)
    policy = RowPolicy(immediate=frozenset({"m"}), infer=False)
    with OutputCache(config, policy, device=CpuDevice(tensors="torch")) as cache:
        cache.new_step_starts([Started("a", 2)])
        mm = {"m": np.ones((2, 1), dtype=np.float16), "ref": np.arange(3), "both": (torch.ones(1), np.ones(1))}
        step = cache.save_outputs(torch.zeros((2, 3)), mm, layout=layout_of({"a": (0, 1)}))
        found = cache.materialize(step, ["a"]).mm_outputs

        assert torch.equal(torch.ones((2, 1), dtype=torch.float16), found["m"]["a"])
        assert isinstance(found["ref"]["a"], np.ndarray)
        assert [torch.Tensor, np.ndarray] == [type(each) for each in found["both"]["a"]]


def test_r15_tensors_of_another_kind_are_refused_and_not_passed_by() -> None:
    """A cache that was made before the engine imported torch must not take its tensors for something that is no row."""
    torch: Any = pytest.importorskip("torch")
    config = RowConfig(num_blocks=8, block_size=4, page_rows_max=8, pages=2)
    policy = RowPolicy(immediate=frozenset({"m"}), leftovers=frozenset({"ref"}))
    with OutputCache(config, policy, device=CpuDevice(tensors="numpy")) as cache:
        cache.new_step_starts([Started("a", 2)])
        rows, layout = np.zeros((2, 3), dtype=np.float32), layout_of({"a": (0, 1)})
        with pytest.raises(ForeignTensorError, match=r"hidden.* is Tensor on cpu, and .* takes numpy arrays"):
            cache.save_outputs(torch.zeros((2, 3)), layout=layout)
        with pytest.raises(ForeignTensorError, match="m is Tensor on cpu"):
            cache.save_outputs(rows, {"m": torch.zeros((2, 3))}, layout=layout)
        for leftover in (torch.zeros(5), [torch.zeros(5)], {"deep": (torch.zeros(5),)}):
            with pytest.raises(FreezeFailedError, match="Tensor, and this device takes numpy arrays"):
                cache.save_outputs(rows, {"ref": leftover}, layout=layout)
        step = cache.save_outputs(rows, {"m": rows, "ref": np.float32(1)}, layout=layout)

        assert 1.0 == cache.materialize(step, ["a"]).mm_outputs["ref"]["a"]
