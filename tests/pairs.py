"""Tells both representations of a state the same event: they must agree in everything, also in what they refuse."""

from collections.abc import Callable
from typing import Protocol, TypeVar

import pytest

from tenure.core.errors import TenureError

S = TypeVar("S")
E = TypeVar("E")
A = TypeVar("A", covariant=True)
C = TypeVar("C", covariant=True)
T = TypeVar("T", bound=tuple[object, ...])


class Viewed(Protocol[A]):
    """A state that can be shown."""

    def view(self) -> A: ...


def told_twice(transition: Callable[[S, E], T], one: S, other: S, event: E) -> tuple[T, T]:
    """Both transitions, answers and commands equal; or the refusal, which both make alike."""
    try:
        first = transition(one, event)
    except TenureError as refusal:
        _also_refused(lambda: transition(other, event), refusal)
        raise
    second = transition(other, event)
    assert first[1:] == second[1:]
    return first, second


def _also_refused(call: Callable[[], object], refusal: TenureError) -> None:
    with pytest.raises(type(refusal)) as other:
        call()
    assert str(refusal) == str(other.value)


def same_view(one: Viewed[A], other: Viewed[A]) -> A:
    """The view of two states that must be equal."""
    view = one.view()
    assert view == other.view()
    assert one == other
    assert hash(one) == hash(other)
    return view
