"""A simulation: one life after the other, until so many choices were made."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import Final, NamedTuple

from tenure.backends.fake import Chooser, Move, Scripted, Seeded, timeline
from tenure.backends.fake.faults import FaultKind
from tenure.simulation.life import Figures, Life

SHORTENING_TRIES: Final = 300
"""So often a failing life is lived again to make it shorter."""


class Failure(NamedTuple):
    """A life that went wrong.

    Attributes:
        life: its number.
        choices: what was chosen in it, as short as it was found.
        was: how many choices it had at first.
        found: what is wrong.
        timeline: its last operations, for Perfetto.
        moves: what lay before what at its end.
    """

    life: int
    choices: tuple[int, ...]
    was: int
    found: str
    timeline: dict[str, object]
    moves: tuple[Move, ...]


@dataclass(slots=True)
class Summary:
    """What a simulation came to.

    Attributes:
        seed, choices, lives, seconds: how much there was; choices of the emulated scheduler.
        figures: sums over the lives.
        faults: how often which fault was injected.
        orders: how many different orders of lanes there were within a step.
        races, misuses: accesses in no order, and other wrong uses of memory, that the device found; also in the life
            that failed, as its leaks.
        leaks: pieces of memory that were held at the end.
        stuck: lives that ended since the device was told to stand still, or was lost.
        failure: what went wrong; None if nothing did.
    """

    seed: int
    choices: int = 0
    lives: int = 0
    seconds: float = 0.0
    figures: Counter[str] = field(default_factory=Counter[str])
    faults: Counter[str] = field(default_factory=Counter[str])
    orders: int = 0
    races: int = 0
    misuses: int = 0
    leaks: int = 0
    stuck: int = 0
    failure: Failure | None = None


class Simulation:
    """Lives of a cache, drawn from one seed."""

    def __init__(self, seed: int, kinds: Sequence[FaultKind], *, shortens: bool = True) -> None:
        """Faults of these kinds happen; a failure is shortened unless told otherwise."""
        self._seed, self._kinds, self._shortens = seed, tuple(kinds), shortens

    def chooser(self, life: int, *, keep: bool = False) -> Seeded:
        """Who decides in a life."""
        return Seeded(self._seed * 1_000_003 + life, keep=keep)

    def run(self, choices: int, progress: Callable[[Summary], None] | None = None, first: int = 0) -> Summary:
        """So many choices, the life that is under way to its end; or to the first failure."""
        summary, orders, began = Summary(self._seed), set[int](), perf_counter()
        number = first
        while summary.choices < choices and summary.failure is None:
            chooser = self.chooser(number)
            life = Life(chooser, self._kinds)
            try:
                figures = life.run()
            except Exception as error:
                summary.failure = self._failure(number, error)
            else:
                _add(summary, figures)
            orders |= life.orders
            summary.races += life.races
            summary.misuses += life.misuses
            summary.leaks += life.leaks
            summary.choices += chooser.count
            summary.lives += 1
            summary.faults.update(life.faults.injected)
            summary.orders, summary.seconds = len(orders), perf_counter() - began
            number += 1
            if progress is not None:
                progress(summary)
        return summary

    # --- A failure ----------------------------------------------------------------------------------------------

    def _failure(self, number: int, error: Exception) -> Failure:
        chooser = self.chooser(number, keep=True)
        again = self._lived(chooser)
        if again is None or again[0] != in_words(error):
            return Failure(number, (), 0, f"{in_words(error)} (and not when it is repeated: {again})", {}, ())
        taken = chooser.taken
        shortest = self._shortened(taken, type(error).__name__) if self._shortens else taken
        found, life = self._lived(Scripted(shortest)) or again
        device = life.device
        return Failure(number, tuple(shortest), len(taken), found, timeline(device.operations), tuple(device.trail))

    def repeat(self, choices: Sequence[int]) -> tuple[str, Life] | None:
        """What goes wrong in a life with these choices; None: nothing."""
        return self._lived(Scripted(choices))

    def _lived(self, chooser: Chooser) -> tuple[str, Life] | None:
        life = Life(chooser, self._kinds)
        try:
            life.run()
        except Exception as error:
            return in_words(error), life
        return None

    def _shortened(self, choices: Sequence[int], kind: str) -> list[int]:
        """Fewer and smaller choices that go wrong in the same way: as delta debugging does (Zeller 2002)."""
        best = list(choices)
        size, tries = max(len(best) // 2, 1), 0
        while size and tries < SHORTENING_TRIES:
            place = 0
            while place < len(best) and tries < SHORTENING_TRIES:
                tries += 1
                shorter = best[:place] + best[place + size :]
                found = self._lived(Scripted(shorter))
                if found is not None and found[0].startswith(kind):
                    best = shorter
                else:
                    place += size
            size //= 2
        return best


def in_words(error: Exception) -> str:
    """An exception in one line."""
    return f"{type(error).__name__}: {error}"


def _add(summary: Summary, figures: Figures) -> None:
    summary.stuck += figures.is_stuck
    values = figures._asdict()
    del values["is_stuck"]
    summary.figures.update(values)
