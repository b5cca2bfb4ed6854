"""Every order in which a history can go on an emulated device, but for those that cannot differ in what they show.

Two things save work. Moments with the same future are gone on from once (`moments`). And moves of two lanes commute: if
they met at one row, they would race, and that is found in either order; so of orders that differ in nothing else one is
run, which sleep sets choose (Godefroid 1996; with moments that are met again: Godefroid, Holzmann and Pirottin 1992).
A world cannot be copied, so each run begins at the start.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from tenure.backends.device import Lane
from tenure.backends.fake import Chooser
from tenure.core.errors import InvariantViolation
from tenure.model_checks.devices.moments import moment_of
from tenure.model_checks.devices.world import FAILS, Move, World
from tenure.model_checks.rows.cores import Shorthand
from tenure.model_checks.rows.scripts import History

SLOW_MOVES: Final = 20
"""A lane that lags goes on once in so many times."""


@dataclass(slots=True)
class Explored:
    """What came of it.

    Attributes:
        moments: different moments that were met; 0 where moves are drawn.
        ends: runs that came to an end of the history.
        moves: moves made, those that were made again included.
        longest: moves of the longest run.
        rows: rows that were handed out and right.
        finished: whether every order was looked at.
        found: the first thing that is wrong; empty if nothing is.
        trail: the moves that lead to it.
        failed: at the ends, which operations had ended badly, in which lanes, and how often.
    """

    moments: int = 0
    ends: int = 0
    moves: int = 0
    longest: int = 0
    rows: int = 0
    finished: bool = True
    found: str = ""
    trail: tuple[Move, ...] = field(default=())
    failed: Counter[str] = field(default_factory=Counter[str])


def every_order(
    history: History, *, in_pieces: bool = False, failures: int = 0, moments_max: int | None = None
) -> Explored:
    """Go through all orders, depth first, to the first that goes wrong.

    Args:
        history: what the engine does.
        in_pieces: operations move one row at a time, and whatever the device allows may come in between.
        failures: so many operations may end badly, any of them.
        moments_max: where to stop; to the end if it is not given.
    """
    search = _Search(partial(World, history, in_pieces=in_pieces, failures=failures))
    while search.waiting:
        if moments_max is not None and len(search.asleep_at) >= moments_max:
            search.explored.finished = False
            break
        try:
            search.run(*search.waiting.pop())
        except _Wrong as wrong:
            explored = search.explored
            explored.found, explored.trail, explored.finished = wrong.found, wrong.trail, False
            break
    search.explored.moments = len(search.asleep_at)
    return search.explored


class _Wrong(Exception):  # noqa: N818 - it carries a finding
    def __init__(self, found: str, trail: Sequence[Move]) -> None:
        super().__init__(found)
        self.found, self.trail = found, tuple(trail)


class _Search:
    """Where all runs of one history have been.

    Attributes:
        waiting: prefixes that are to be gone on with, each with the moves that need not be made there.
        asleep_at: by moment the moves that were not made there, since what they lead to is met elsewhere.
    """

    def __init__(self, make: Callable[[], World]) -> None:
        self.explored = Explored()
        self.waiting: list[tuple[tuple[Move, ...], frozenset[Move]]] = [((), frozenset())]
        self.asleep_at: dict[bytes, frozenset[Move]] = {}
        self._make = make
        self._shorthand = Shorthand()

    def run(self, prefix: tuple[Move, ...], sleeping: frozenset[Move]) -> None:
        """One run: the prefix again, then always the first move that is to be made; the others wait.

        Raises:
            _Wrong: something is, or may never end well.
        """
        explored, world, trail = self.explored, self._make(), list[Move]()
        try:
            # The last move of a prefix is made here for the first time.
            for move in prefix:
                trail.append(move)
                world.make(move)
            while True:
                moves = world.moves()
                due, sleeping = self._due(world, moves, sleeping)
                if not moves:
                    world.check_end()
                    explored.ends += 1
                    explored.rows += sum(each.rows for each in world.handed)
                    explored.failed.update(world.failed)
                if not due:
                    return
                for place in range(len(due) - 1, 0, -1):
                    asleep = sleeping.union(due[:place])
                    kept = frozenset(move for move in asleep if commutes(move, due[place]))
                    self.waiting.append(((*trail, due[place]), kept))
                sleeping = frozenset(move for move in sleeping if commutes(move, due[0]))
                trail.append(due[0])
                world.make(due[0])
        except InvariantViolation as error:
            raise _Wrong(str(error), trail) from error
        finally:
            explored.moves += len(trail)
            explored.longest = max(explored.longest, len(trail))

    def _due(
        self, world: World, moves: Sequence[Move], sleeping: frozenset[Move]
    ) -> tuple[list[Move], frozenset[Move]]:
        """The moves that are to be made at a moment, and those that are not: asleep, or made there before."""
        moment = moment_of(world, self._shorthand)
        before = self.asleep_at.get(moment)
        self.asleep_at[moment] = sleeping if before is None else before & sleeping
        due = [move for move in moves if move not in sleeping and (before is None or move in before)]
        return due, frozenset(moves).difference(due)


def commutes(one: Move, other: Move) -> bool:
    """Whether two moves lead to the same whichever comes first; of two failures there may be but one."""
    fail = FAILS in one and FAILS in other
    return one[0] == other[0] == "lane" and one[1] != other[1] and not fail


def drawn_orders(
    history: History, chooser: Chooser, count: int, *, in_pieces: bool = False, failures: int = 0
) -> Explored:
    """So many runs whose moves are drawn; in each one lane or two lag behind all others, and failures are rare."""
    explored = Explored(finished=False)
    for _ in range(count):
        world, trail = World(history, in_pieces=in_pieces, failures=failures), list[Move]()
        slow = {("lane", (*Lane,)[chooser.choose(len(Lane))].name) for _ in range(2)}
        try:
            while moves := world.moves():
                quick = [move for move in moves if move[:2] not in slow and FAILS not in move]
                if quick and chooser.choose(SLOW_MOVES):
                    moves = quick
                trail.append(moves[chooser.choose(len(moves))])
                world.make(trail[-1])
            world.check_end()
        except InvariantViolation as error:
            explored.found, explored.trail = str(error), tuple(trail)
            return explored
        explored.ends += 1
        explored.moves += len(trail)
        explored.longest = max(explored.longest, len(trail))
        explored.rows += sum(each.rows for each in world.handed)
        explored.failed.update(world.failed)
    return explored
