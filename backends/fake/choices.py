"""Who decides what an emulated device does next: a seed, or a list of choices that was written down."""

from collections.abc import Sequence
from random import Random
from typing import Protocol


class Chooser(Protocol):
    """Decides."""

    def choose(self, count: int) -> int:
        """One of so many; `count` is at least 1."""
        ...


class Seeded:
    """Choices drawn from a seed, and written down.

    Attributes:
        taken: every choice among two or more, in order; none are kept if `keep` is false.
        count: how many there were.
    """

    def __init__(self, seed: int, *, keep: bool = False) -> None:
        """Equal seeds choose alike."""
        self._random = Random(seed)  # noqa: S311 - to be repeated, not to be secret
        self._keep = keep
        self.taken: list[int] = []
        self.count = 0

    def choose(self, count: int) -> int:
        """One of so many."""
        if count == 1:
            return 0
        choice = self._random.randrange(count)
        self.count += 1
        if self._keep:
            self.taken.append(choice)
        return choice


class Scripted:
    """Choices that were written down; the first of all there are when they are used up.

    Attributes:
        taken: the choices among two or more that were made, in order.
        count: how many there were.
    """

    def __init__(self, choices: Sequence[int]) -> None:
        """A choice that is too large stands for the last one there is."""
        self._left = list(reversed(choices))
        self.taken: list[int] = []
        self.count = 0

    def choose(self, count: int) -> int:
        """One of so many."""
        if count == 1:
            return 0
        choice = min(self._left.pop(), count - 1) if self._left else 0
        self.taken.append(choice)
        self.count += 1
        return choice
