"""What lay before what in a run of an emulated device, step by step: the graph whose paths vector clocks sum up."""

from collections import deque
from collections.abc import Iterator
from typing import Final, NamedTuple

from tenure.backends.fake.clocks import ACTORS, HOST

REMEMBERED: Final = 4096
"""So many of the newest moves are kept, and the edges between them."""


class Move(NamedTuple):
    """An operation, an event, a wait, or what the host did.

    Attributes:
        number: counts up over all moves of a device, as they were asked for.
        actor: the lane that carries it out, or "host".
        what: in words; operations by their number, as findings name them.
        behind: the moves that lie right before it: in its lane, in the lane that it waits for, on the host.
    """

    number: int
    actor: str
    what: str
    behind: tuple[int, ...]


class Trail:
    """The newest moves of one device."""

    def __init__(self) -> None:
        """Nothing happened."""
        self._moves: deque[Move] = deque(maxlen=REMEMBERED)
        self._newest: list[int | None] = [None for _ in ACTORS]
        self._count = 0

    def move(self, actor: int, what: str, *behind: int | None) -> int:
        """Note a move, which lies behind others, and behind what its actor and the host did before; its number."""
        before = {each for each in (self._newest[actor], self._newest[HOST], *behind) if each is not None}
        self._count += 1
        self._moves.append(Move(self._count, ACTORS[actor], what, tuple(sorted(before))))
        self._newest[actor] = self._count
        return self._count

    def move_all(self, what: str) -> None:
        """Note that the host does something behind all that was asked of any lane."""
        self.move(HOST, what, *self._newest)

    def __iter__(self) -> Iterator[Move]:
        return iter(tuple(self._moves))
