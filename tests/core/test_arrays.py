"""Arrays inside values: read-only, compared by what they hold, and never a view of somebody else's memory."""

from dataclasses import dataclass

import numpy as np
import pytest

from tenure.core.arrays import ByContent, Integers, content, integers, read_only


@dataclass(frozen=True, slots=True, eq=False)
class Pair(ByContent):
    """A value with an array."""

    name: str
    numbers: Integers
    others: tuple[Integers, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Twin(ByContent):
    """The same fields under another name."""

    name: str
    numbers: Integers
    others: tuple[Integers, ...] = ()


@pytest.mark.parametrize(
    "given",
    [[1, 2], (1, 2), np.array([1, 2], np.int32), np.array([1, 2], np.uint64), np.array([1, 2])],
)
def test_integers_of_any_kind_are_a_copy_that_is_closed(given: object) -> None:
    """Engines pass what they have, and go on writing to it."""
    found = integers(given)  # type: ignore[arg-type]

    assert found.dtype == np.int64
    assert [1, 2] == found.tolist()
    assert not np.shares_memory(found, np.asarray(given))
    with pytest.raises(ValueError, match="read-only"):
        found[0] = 7


def test_integers_of_nothing_are_an_empty_array() -> None:
    """An empty list has no whole numbers in it, and is fine."""
    assert (0,) == integers([]).shape
    assert integers([]).dtype == np.int64


@pytest.mark.parametrize("given", [[1.5], [1.0], ["1"], [True], [None], [2**63], [2**64], [-(2**63) - 1]])
def test_integers_that_are_none_are_refused(given: object) -> None:
    """A slot of 1.5 must not become slot 1."""
    with pytest.raises((TypeError, OverflowError)):
        integers(given)  # type: ignore[arg-type]


def test_integers_may_be_the_greatest_of_64_bits_with_a_sign() -> None:
    """Whatever kind they come as; one more would become negative."""
    greatest = 2**63 - 1

    assert [greatest] == integers(np.array([greatest], np.uint64)).tolist()
    with pytest.raises(TypeError, match=r"^expected whole numbers that fit 64 bits with a sign$"):
        integers(np.array([greatest + 1], np.uint64))


@pytest.mark.parametrize("given", [3, [[1, 2]], np.zeros((2, 2), np.int64)])
def test_integers_of_another_shape_are_refused(given: object) -> None:
    """One number a row, in one row."""
    with pytest.raises(ValueError, match="one-dimensional"):
        integers(given)  # type: ignore[arg-type]


def test_read_only_arrays_are_the_same_memory() -> None:
    """Its maker gives it away, and pays for no copy."""
    array = np.arange(3)

    assert read_only(array) is array
    assert not array.flags.writeable


def test_values_with_arrays_are_equal_by_what_they_hold() -> None:
    """States are compared and hashed; numpy's own comparison gives an array."""
    one = Pair("x", integers([1, 2]), (integers([3]),))

    assert one == one
    assert one == Pair("x", integers([1, 2]), (integers([3]),))
    assert hash(one) == hash(Pair("x", integers([1, 2]), (integers([3]),)))
    for other in (
        Pair("y", integers([1, 2]), (integers([3]),)),
        Pair("x", integers([2, 1]), (integers([3]),)),
        Pair("x", integers([1, 2])),
        Pair("x", integers([1, 2]), (integers([4]),)),
    ):
        assert one != other
        assert hash(one) != hash(other)


def test_values_of_two_classes_are_never_equal() -> None:
    """A `CopyBegan` is not a `CopyCompleted`, whatever the numbers."""
    assert Pair("x", integers([1])) != Twin("x", integers([1]))
    assert hash(Pair("x", integers([1]))) != hash(Twin("x", integers([1])))
    assert Pair("x", integers([1])) != "x"


def test_content_of_arrays_tells_shape_and_type() -> None:
    """Equal bytes are not equal arrays."""
    zeros = np.zeros(2, np.int64)

    assert content(zeros) == content(np.zeros(2, np.int64))
    assert content(zeros) != content(np.zeros(4, np.int32))
    assert content(zeros) != content(np.zeros((2, 1), np.int64))
    assert (1, ("a",)) == content((1, ("a",)))
