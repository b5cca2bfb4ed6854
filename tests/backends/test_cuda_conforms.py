"""The conformance kit on the CUDA device over the stand-in's streams: all that a machine without a GPU can say of it.

`tests/gpu/test_gpu.py` does the same on a GPU.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

torch: Any = pytest.importorskip("torch")

from tenure.backends.conformance import Bench, Capability, Verdict, check_device  # noqa: E402
from tenure.backends.conformance.torch_bench import CUDA_CLAIMS, make_cuda, torch_bench  # noqa: E402
from tenure.backends.cuda import CudaDevice  # noqa: E402
from tests.backends.cuda_stand_in import StandIn  # noqa: E402

PAGE_LOCKED_MAX = 2**26


class OnStandIn(CudaDevice):
    """A CUDA device whose GPU is gone when it is closed."""

    def __init__(self, api: StandIn) -> None:
        self._stand_in = api
        super().__init__(api=api, page_locked_bytes_max=PAGE_LOCKED_MAX)

    def close(self, timeout_s: float) -> None:
        """Also of the threads that stand in for streams."""
        super().close(timeout_s)
        self._stand_in.end()


def make_device(options: Mapping[str, Any]) -> Bench:
    """A device, and an engine that computes on its own stream."""
    del options
    api = StandIn(dawdle=0.02)
    bench = torch_bench(OnStandIn(api))

    def make(values: npt.NDArray[Any], dtype: str) -> Any:
        return api.put(bench.make(values, dtype))

    def overwrite(tensor: Any, values: npt.NDArray[Any]) -> None:
        api.engine.ask(bench.overwrite, tensor, np.array(values))

    return Bench(bench.device, make, overwrite, bench.read)


def test_cuda_device_passes_all_that_it_claims() -> None:
    """The duties of the port, the executor in lock-step with the oracle, pinned traces."""
    ids = ("D", "L", "T2")
    report = check_device(make_device, CUDA_CLAIMS, only=ids, timeout_s=20)

    assert Verdict.PASS is report.verdict, [each for each in report.results if each.verdict is not Verdict.PASS]
    assert len(report.of(Verdict.PASS)) >= 30


@pytest.mark.slow
def test_cuda_device_goes_through_every_edge_that_is_open_to_it() -> None:
    """Thousands of traces."""
    (result,) = check_device(make_device, CUDA_CLAIMS, only=["T1"], timeout_s=120).results

    assert Verdict.PASS is result.verdict, result


def test_maker_for_the_kit_claims_what_a_gpu_is() -> None:
    """It copies behind the call, and from page-locked memory."""
    assert {Capability.ASYNC, Capability.PAGE_LOCKED} == CUDA_CLAIMS
    assert CUDA_CLAIMS == frozenset(getattr(make_cuda, "capabilities", ()))
