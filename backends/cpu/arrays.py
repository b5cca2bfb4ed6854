"""numpy arrays as the engine's tensors: what a machine without torch works with.

numpy has no bfloat16. An array of uint16 is taken for the bits of one, since no row may have that dtype, and rows of
bfloat16 come back as uint16.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final, TypeAlias, TypeGuard

import numpy as np
import numpy.typing as npt

from tenure.core.arrays import Integers
from tenure.core.errors import OperationFailedError

Array: TypeAlias = npt.NDArray[Any]

STORAGE: Final[Mapping[str, np.dtype[Any]]] = MappingProxyType(
    {
        "float32": np.dtype(np.float32),
        "float16": np.dtype(np.float16),
        "bfloat16": np.dtype(np.uint16),
        "int32": np.dtype(np.int32),
        "int64": np.dtype(np.int64),
        "uint8": np.dtype(np.uint8),
        "bool": np.dtype(np.bool_),
    }
)
"""Per dtype of a row how numpy keeps it."""
_NAMES: Final[Mapping[np.dtype[Any], str]] = MappingProxyType({kept: name for name, kept in STORAGE.items()})


class _Kept:
    """Lends memory to an array that keeps something alive: whatever views the array, keeps this."""

    __slots__ = ("__array_interface__", "kept")

    def __init__(self, array: Array, kept: object) -> None:
        self.__array_interface__ = array.__array_interface__
        self.kept = (array, kept)


def kept_alive(array: Array, keep: object) -> Array:
    """An array over the same memory; it and whatever is made of it without copying keep `keep` alive."""
    return np.asarray(_Kept(array, keep))


def copy_array(target: Array, source: Array) -> None:
    """Copy rows of one shape and dtype."""
    np.copyto(target, source)


def gather_array(target: Array, source: Array, index: Integers) -> None:
    """Row i of the target becomes row `index[i]` of the source.

    Raises:
        IndexError: there is no such row.
    """
    check_index(index, len(source))
    # The index is in range, and "clip" is the mode that needs no buffer.
    np.take(source, index, axis=0, out=target, mode="clip")


def scatter_array(target: Array, index: Integers, source: Array) -> None:
    """Row `index[i]` of the target becomes row i of the source.

    Raises:
        IndexError: there is no such row.
    """
    check_index(index, len(target))
    target[index] = source


def check_index(index: Integers, rows: int) -> None:
    """Let an index pass that names rows of so many.

    Raises:
        IndexError: it names others.
    """
    if len(index) and not (int(index.min()) >= 0 and int(index.max()) < rows):
        msg = f"rows {int(index.min())} to {int(index.max())} of a buffer of {rows} rows"
        raise IndexError(msg)


def is_array(value: object) -> TypeGuard[Array]:
    """Whether a value is a numpy array."""
    return isinstance(value, np.ndarray)


class NumpyTensors:
    """numpy arrays, as they come and as they are given back."""

    @property
    def expected(self) -> str:
        """What is taken, in words."""
        return "numpy arrays"

    def describe(self, value: object) -> tuple[tuple[int, ...], str] | None:
        """Shape and dtype of an array, or of a tensor of another library, to be refused by name; None for the rest."""
        if is_array(value):
            return value.shape, _NAMES.get(value.dtype, str(value.dtype))
        if hasattr(value, "__dlpack__"):
            foreign: Any = value
            return tuple(foreign.shape), str(foreign.dtype).rpartition(".")[2]
        return None

    def to_array(self, value: object) -> Array | None:
        """An array over the memory of a tensor, in the dtype that it is kept in; None if there is none."""
        return value if is_array(value) else None

    def from_array(self, array: Array, dtype: str) -> Any:
        """A tensor over the memory of an array that is kept for `dtype`."""
        del dtype
        return array

    def own(self, value: Any) -> Any:
        """A copy of a tensor, of whatever shape and dtype.

        Raises:
            OperationFailedError: it is of another library.
        """
        if not is_array(value):
            raise OperationFailedError(
                "copy a leftover", f"it is a {type(value).__name__}, and this device takes {self.expected}"
            )
        return np.array(value)
