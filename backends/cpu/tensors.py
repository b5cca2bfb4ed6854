"""torch CPU tensors as the engine's tensors. Imports torch; nothing else of the CPU device does."""

from collections.abc import Callable
from types import MappingProxyType
from typing import Any, Final

import numpy as np
import torch

from tenure.backends.cpu.arrays import Array, NumpyTensors

_NAMES: Final = MappingProxyType(
    {
        torch.float32: "float32",
        torch.float16: "float16",
        torch.bfloat16: "bfloat16",
        torch.int32: "int32",
        torch.int64: "int64",
        torch.uint8: "uint8",
        torch.bool: "bool",
    }
)
_from_numpy: Final[Callable[[Array], torch.Tensor]] = torch.from_numpy  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType] - torch leaves its arrays open
_PARALLEL_BYTES: Final = 2**24
"""From here on torch copies with all its threads. Below, waiting for them can take longer than the copy."""


class TorchTensors:
    """torch tensors as they come and as they are given back; numpy arrays are taken as well."""

    def __init__(self) -> None:
        self._numpy = NumpyTensors()

    @property
    def expected(self) -> str:
        """What is taken, in words."""
        return "torch tensors on the CPU, or numpy arrays"

    def describe(self, value: object) -> tuple[tuple[int, ...], str] | None:
        """Shape and dtype of a tensor; None for what is none."""
        if isinstance(value, torch.Tensor):
            dtype = _NAMES.get(value.dtype) or str(value.dtype).removeprefix("torch.")
            if value.layout is not torch.strided:
                dtype = f"{dtype} ({value.layout})"
            return tuple(value.shape), dtype
        return self._numpy.describe(value)

    def to_array(self, value: object) -> Array | None:
        """An array over the memory of a tensor, in the dtype that it is kept in; None if it is not on the CPU."""
        if not isinstance(value, torch.Tensor):
            return self._numpy.to_array(value)
        if value.device.type != "cpu":
            return None
        value = value.detach()
        bits = value.view(torch.uint16) if value.dtype is torch.bfloat16 else value
        array: Array = bits.numpy()
        return array

    def from_array(self, array: Array, dtype: str) -> Any:
        """A tensor over the memory of an array that is kept for `dtype`."""
        tensor = _from_numpy(array)
        return tensor.view(torch.bfloat16) if dtype == "bfloat16" else tensor

    def own(self, value: Any) -> Any:
        """A copy of a tensor on the CPU, of whatever shape and dtype."""
        if not isinstance(value, torch.Tensor):
            return self._numpy.own(value)
        value = value.detach()
        return value.clone() if value.device.type == "cpu" else value.cpu()


def copy_array(target: Array, source: Array) -> None:
    """Copy rows of one shape and dtype, large ones with all of torch's threads."""
    if target.nbytes >= _PARALLEL_BYTES and _is_tensor_like(source):
        _from_numpy(target).copy_(_from_numpy(source))
    else:
        np.copyto(target, source)


def _is_tensor_like(array: Array) -> bool:
    """Whether torch can see an array as a tensor."""
    return array.flags.writeable and all(step >= 0 and step % array.itemsize == 0 for step in array.strides)
