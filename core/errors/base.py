"""The roots of the one hierarchy of errors: whose fault, and how far the damage reaches.

A transition that raised has changed nothing. Exhausted capacity is not an error but an answer.
"""

from collections.abc import Sequence
from enum import Enum
from typing import ClassVar


class Scope(Enum):
    """How far the damage of an error reaches."""

    REQUEST = "request"
    CACHE = "cache"


class TenureError(Exception):
    """Root of what a caller of Tenure may have to handle; every subclass makes its own sentence of its fields."""

    scope: ClassVar[Scope] = Scope.REQUEST

    def sentence(self) -> str:
        """The message: what was found, what was expected, what to do."""
        raise NotImplementedError

    def __str__(self) -> str:
        try:
            return self.sentence()
        except ValueError:
            # Python writes no number of several thousand digits.
            return f"{type(self).__name__}: a number in it is too long to be written"


class ContractError(TenureError):
    """The caller broke the contract; the state is as it was before the call."""


class CapacityError(TenureError):
    """A configured limit was reached; the state is as it was, and the call may be tried again later."""


class BackendError(TenureError):
    """A backend broke its clauses, or could not do what it was asked; the state is as it was before the call."""


class InvariantViolation(AssertionError):  # noqa: N818 - our own fault is no error a caller handles
    """Tenure itself is wrong. Carries the id of the broken rule; only the command line catches it, to print it."""

    def __init__(self, rule: str, sentence: str) -> None:
        super().__init__(f"{rule}: {sentence}")
        self.rule = rule


def request_name(request: int | str) -> str:
    """How messages name a request."""
    return f"request {request!r}"


def number_list(values: Sequence[int]) -> str:
    """How messages list numbers."""
    return "[" + ", ".join(map(str, values)) + "]"
