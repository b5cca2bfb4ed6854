"""A row of numbers as a row of choices, each "number modulo options"."""

from collections.abc import Iterable, Sequence
from typing import TypeVar

T = TypeVar("T")


class Choices:
    """A row of numbers, each read once; the first option of every choice is the plainest."""

    def __init__(self, numbers: Iterable[int]) -> None:
        """Read `numbers` from the first on."""
        self._numbers = iter(numbers)
        self.is_spent = False

    def pick(self, options: Sequence[T]) -> T:
        """The option that the next number stands for; the first one when the numbers are used up."""
        number = next(self._numbers, None)
        if number is None:
            self.is_spent = True
            return options[0]
        return options[number % len(options)]

    def often(self, usual: Sequence[T], *others: T) -> T:
        """One of the `usual` options in nine of ten cases."""
        often = -(-9 * len(others) // len(usual)) * len(usual)
        place = self.pick(range(often + len(others)))
        return usual[place % len(usual)] if place < often else others[place - often]
