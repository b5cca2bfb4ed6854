"""A GPU as a device, through `torch.cuda`: NVIDIA's, and AMD's where torch was built for ROCm. Imports torch."""

from collections.abc import Mapping

from tenure.backends.cuda.device import CudaDevice

__all__ = ["CudaDevice", "make_device"]


def make_device(options: Mapping[str, object] | None = None) -> CudaDevice:
    """The GPU that `index` in `options` names, or the current one."""
    index = (options or {}).get("index")
    assert index is None or isinstance(index, int)
    return CudaDevice(index)
