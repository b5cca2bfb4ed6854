"""Where two values differ first: a message that shows two whole records leaves the reader to find it."""

from collections.abc import Sequence
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np


def difference(found: Any, expected: Any) -> str:
    """What stands where it should not, after the way there: the fields and places that lead to it.

    Both are records of fields (dataclasses, named tuples), tuples, arrays, or plain values, and not equal.
    """
    way, here, there = _way(found, expected)
    words, should = _in_words(here), _in_words(there)
    if words == should:
        words, should = repr(here), repr(there)
    return f"{f'{type(expected).__name__}{way}' if way else 'it'} is {words}, and should be {should}"


def _way(found: Any, expected: Any) -> tuple[str, Any, Any]:
    if type(found) is type(expected):
        for step, here, there in _parts(found, expected):
            if not _is_equal(here, there):
                way, *ends = _way(here, there)
                return f"{step}{way}", ends[0], ends[1]
    return "", found, expected


def _parts(found: Any, expected: Any) -> list[tuple[str, Any, Any]]:
    """What both are made of, if that is of one shape; records first, which are tuples too."""
    names: Sequence[str] = getattr(found, "_fields", ())
    if is_dataclass(found):
        names = [each.name for each in fields(found)]
    if names:
        return [(f".{name}", getattr(found, name), getattr(expected, name)) for name in names]
    if isinstance(found, tuple) and len(found) == len(expected):
        pairs: Any = enumerate(zip(found, expected, strict=True))
        return [(f"[{place}]", here, there) for place, (here, there) in pairs]
    return []


def _is_equal(found: Any, expected: Any) -> bool:
    if isinstance(found, np.ndarray) and isinstance(expected, np.ndarray):
        return found.dtype == expected.dtype and np.array_equal(found, expected)
    return bool(found == expected)


def _in_words(value: Any) -> str:
    return str(value.tolist()) if isinstance(value, np.ndarray) else repr(value)
