"""Read-only arrays inside values, and values that are equal by what they hold."""

from typing import Any, Final, TypeAlias, cast

import numpy as np
import numpy.typing as npt

Integers: TypeAlias = npt.NDArray[np.int64]
"""A one-dimensional, read-only array of 64-bit integers."""


def integers(values: npt.ArrayLike) -> Integers:
    """A read-only copy of whole numbers.

    Shapes: `values: [k]`.

    Raises:
        TypeError: a value is no whole number, or does not fit 64 bits.
        ValueError: `values` is not one-dimensional.
    """
    given = np.asarray(values)
    if given.ndim != 1:
        msg = f"expected a one-dimensional array, found the shape {given.shape}"
        raise ValueError(msg)
    if given.size and given.dtype.kind not in "iu":
        msg = f"expected whole numbers that fit 64 bits, found {given.dtype}"
        raise TypeError(msg)
    if given.dtype == np.uint64 and given.size and int(given.max()) > np.iinfo(np.int64).max:
        msg = "expected whole numbers that fit 64 bits with a sign"
        raise TypeError(msg)
    return read_only(given.astype(np.int64))


def read_only(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The same array, closed to writing; its maker gives it away."""
    array.flags.writeable = False
    return array


_PLAIN: Final = frozenset((int, bool, str, type(None)))
"""What compares and hashes as it is, looked for first since most values are of these types."""


def content(value: Any) -> Any:
    """A value as something that compares and hashes, arrays included."""
    if isinstance(value, np.ndarray):
        array = cast("npt.NDArray[Any]", value)
        return (array.dtype.str, array.shape, array.tobytes())
    if isinstance(value, tuple):
        # To mypy its items are Any, and a cast too much; to pyright they are unknown.
        return tuple([each if type(each) in _PLAIN else content(each) for each in value])  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
    return value


class ByContent:
    """Base of frozen dataclasses that hold arrays: equal if of one class and equal in every field."""

    __slots__ = ()

    def _content(self) -> tuple[Any, ...]:
        fields: dict[str, Any] = vars(type(self))["__dataclass_fields__"]
        return tuple(content(getattr(self, name)) for name in fields)

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return self is other or self._content() == other._content()

    def __hash__(self) -> int:
        return hash((type(self).__name__, self._content()))
