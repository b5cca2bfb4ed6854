"""Requests of a simulation, and the rows that each of their tokens must have."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import numpy as np

from tenure.core.arrays import Integers

BLOCK_SIZE: Final = 4
NAMES: Final = ("h", "m", "c")
"""Hidden states, an immediate name, a deferred one."""
NOTE: Final = "note"
"""What is emitted and is no row."""
PROMPTS_MAX: Final = 6
OUTPUT_MAX: Final = 6


def rows_of(name: str, tokens: Sequence[int]) -> Integers:
    """Per token a number that depends on it and on all before it, so that no other row passes for it."""
    words = np.array(tokens, dtype=np.int64) * 1_000_003 + NAMES.index(name) + 1
    return np.cumsum(words * np.arange(1, len(tokens) + 1) % 1_000_000_007)


class Share(NamedTuple):
    """What a builder must get for one request: the rows `[first, stop)` of its tokens."""

    tokens: tuple[int, ...]
    first: int
    stop: int


class Saved(NamedTuple):
    """A step on its way to a builder; `note` is what its leftover holds."""

    step: int
    shares: dict[str, Share]
    note: int


@dataclass(slots=True)
class Request:
    """A running request.

    Attributes:
        tokens: those that are known.
        output: how many are still to be generated.
        computed: how many have rows.
        is_held: whether its lease has blocks.
    """

    name: str
    tokens: list[int]
    output: int
    computed: int = 0
    is_held: bool = False


@dataclass(slots=True)
class Batch:
    """Who computes how many tokens in a step; `hits`: whose prefix is shared, and how many tokens of it."""

    members: list[tuple[Request, int]]
    hits: dict[str, int] = field(default_factory=dict[str, int])

    @property
    def tokens(self) -> int:
        """In all."""
        return sum(count for _, count in self.members)
