"""The CPU as a device: numpy memory, tensors of torch where the engine has torch, inline or with one worker thread."""

from collections.abc import Mapping

from tenure.backends.capabilities import Capability, claims
from tenure.backends.cpu.device import CpuDevice

__all__ = ["CpuDevice", "make_device"]


@claims(Capability.ASYNC, Capability.FAULTS, Capability.UNIFIED)
def make_device(options: Mapping[str, object] | None = None) -> CpuDevice:
    """A device that takes numpy arrays, with a worker unless `worker` in `options` is false."""
    return CpuDevice(worker=bool((options or {}).get("worker", True)), tensors="numpy")
