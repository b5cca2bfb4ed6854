"""The CPU as a device: numpy memory, tensors of torch where the engine has torch, inline or with one worker thread."""

from tenure.backends.cpu.device import CpuDevice

__all__ = ["CpuDevice"]
