"""Every order of a history's moves, but for those that differ in moves of different lanes side by side.

Moves of two lanes commute: if they met at one row, they would race, and that is found in either order. So of orders
that differ in nothing else one is enough, which sleep sets choose (Godefroid 1996). Each order is run from the start.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from tenure.backends.device import Lane
from tenure.backends.fake import Chooser
from tenure.core.errors import InvariantViolation
from tenure.model_checks.devices.world import Move, World
from tenure.model_checks.rows.scripts import History

SLOW_MOVES: Final = 20
"""A lane that lags goes on once in so many times."""


@dataclass(slots=True)
class Explored:
    """What came of it.

    Attributes:
        orders: runs to the end.
        cut: runs that were not gone to their end since an equal one was.
        moves: moves made, those that were made again included.
        longest: moves of the longest run.
        rows: rows that were handed out and right.
        finished: whether every order was looked at.
        found: the first thing that is wrong; empty if nothing is.
        trail: the moves that lead to it.
    """

    orders: int = 0
    cut: int = 0
    moves: int = 0
    longest: int = 0
    rows: int = 0
    finished: bool = True
    found: str = ""
    trail: tuple[Move, ...] = field(default=())


def every_order(history: History, *, orders_max: int | None = None) -> Explored:
    """Go through all orders, depth first, to the first that goes wrong."""
    explored = Explored()
    # Prefixes that are to be gone on with, each with the moves that need not be made there.
    waiting: list[tuple[tuple[Move, ...], frozenset[Move]]] = [((), frozenset())]
    while waiting:
        prefix, sleeping = waiting.pop()
        if orders_max is not None and explored.orders >= orders_max:
            explored.finished = False
            break
        try:
            _go_on(history, prefix, sleeping, waiting, explored)
        except _Wrong as wrong:
            explored.found, explored.trail, explored.finished = wrong.found, wrong.trail, False
            break
    return explored


class _Wrong(Exception):  # noqa: N818 - it carries a finding
    def __init__(self, found: str, trail: Sequence[Move]) -> None:
        super().__init__(found)
        self.found, self.trail = found, tuple(trail)


def _go_on(
    history: History,
    prefix: tuple[Move, ...],
    sleeping: frozenset[Move],
    waiting: list[tuple[tuple[Move, ...], frozenset[Move]]],
    explored: Explored,
) -> None:
    """One run: the prefix again, then always the first move that is not asleep; the others wait."""
    world, trail = World(history), [*prefix]
    for move in prefix:
        world.make(move)
    explored.moves += len(prefix)
    while True:
        moves = world.moves()
        awake = [move for move in moves if move not in sleeping]
        try:
            if not moves:
                world.check_end()
                explored.orders += 1
                explored.longest = max(explored.longest, len(trail))
                explored.rows += sum(each.rows for each in world.handed)
                return
            if not awake:
                explored.cut += 1
                return
            for place in range(len(awake) - 1, 0, -1):
                asleep = sleeping.union(awake[:place])
                waiting.append(((*trail, awake[place]), frozenset(m for m in asleep if commutes(m, awake[place]))))
            first = awake[0]
            trail.append(first)
            world.make(first)
        except InvariantViolation as error:
            raise _Wrong(str(error), trail) from error
        explored.moves += 1
        sleeping = frozenset(move for move in sleeping if commutes(move, first))


def commutes(one: Move, other: Move) -> bool:
    """Whether two moves lead to the same whichever comes first."""
    return one[0] == other[0] == "lane" and one[1] != other[1]


def drawn_orders(history: History, chooser: Chooser, count: int) -> Explored:
    """So many runs whose moves are drawn; in each one lane or two lag behind all others."""
    explored = Explored(finished=False)
    for _ in range(count):
        world, trail = World(history), list[Move]()
        slow = {("lane", (*Lane,)[chooser.choose(len(Lane))].name) for _ in range(2)}
        try:
            while moves := world.moves():
                quick = [move for move in moves if move not in slow]
                if quick and chooser.choose(SLOW_MOVES):
                    moves = quick
                trail.append(moves[chooser.choose(len(moves))])
                world.make(trail[-1])
            world.check_end()
        except InvariantViolation as error:
            explored.found, explored.trail = str(error), tuple(trail)
            return explored
        explored.orders += 1
        explored.moves += len(trail)
        explored.longest = max(explored.longest, len(trail))
        explored.rows += sum(each.rows for each in world.handed)
    return explored
