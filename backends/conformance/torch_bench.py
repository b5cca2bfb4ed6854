"""The bench of an engine that works with torch. Imports torch; nothing else of the kit does."""

from typing import Any, Final

import numpy as np
import torch

from tenure.backends.capabilities import Capability, claims
from tenure.backends.conformance.bench import Array, Bench, Options
from tenure.backends.cuda import CudaDevice
from tenure.backends.device import Device

CUDA_CLAIMS: Final = frozenset({Capability.ASYNC, Capability.PAGE_LOCKED})


@claims(*CUDA_CLAIMS)
def make_cuda(options: Options) -> Bench:
    """The GPU that `index` in `options` names, or the current one, for `tenure conform`.

    Raises:
        OperationFailedError: there is no GPU.
    """
    device = CudaDevice(options.get("index"))
    return torch_bench(device, f"cuda:{device.index}")


def torch_bench(device: Device, where: str = "cpu") -> Bench:
    """The bench of a device whose tensors are torch's; `where` the forward pass computes, as torch calls it.

    Tensors are overwritten on the calling thread's current stream.
    """
    plain = Bench.of(device)
    return Bench(
        device,
        make=lambda values, dtype: _to_torch(values, dtype).to(where, copy=True),
        overwrite=_overwrite,
        read=_to_numpy,
        fail=plain.fail,
        ready=plain.ready,
        advance=plain.advance,
        findings=plain.findings,
    )


def _to_torch(values: Array, dtype: str) -> torch.Tensor:
    tensor = torch.from_numpy(values.copy())  # pyright: ignore[reportUnknownMemberType] - torch leaves its arrays open
    return tensor.view(torch.bfloat16) if dtype == "bfloat16" else tensor


def _overwrite(tensor: Any, values: Array) -> None:
    dtype = "bfloat16" if tensor.dtype is torch.bfloat16 else str(values.dtype)
    tensor.copy_(_to_torch(values, dtype))


def _to_numpy(tensor: Any) -> Array:
    bits = tensor.view(torch.uint16) if tensor.dtype is torch.bfloat16 else tensor
    return np.asarray(bits.numpy())
