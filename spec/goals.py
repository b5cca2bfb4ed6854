"""What must be reachable, whichever machine it is about.

A rule that is never put to the test holds for nothing. A goal is seen in a single observation; a run goal needs the
memory of a run.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

Seen = TypeVar("Seen")
"""An observation of one machine."""


@dataclass(frozen=True, slots=True)
class Goal(Generic[Seen]):
    """Something that must happen, seen in one observation."""

    name: str
    sentence: str
    reached: Callable[[Seen], bool]


@dataclass(frozen=True, slots=True)
class RunGoal(Generic[Seen]):
    """Something that must happen in a run; `start` makes a watcher that is shown its observations in order."""

    name: str
    sentence: str
    start: Callable[[], Callable[[Seen], bool]]


class Goals(Generic[Seen]):
    """Which goals were reached so far."""

    def __init__(self, goals: Sequence[Goal[Seen]], run_goals: Sequence[RunGoal[Seen]]) -> None:
        """None yet."""
        self._open = {goal.name: goal.reached for goal in goals} | {goal.name: goal.start() for goal in run_goals}
        self.reached: set[str] = set()

    def observe(self, seen: Seen) -> None:
        """Take note of one observation of a run."""
        for name in [name for name, watcher in self._open.items() if watcher(seen)]:
            self.reached.add(name)
            del self._open[name]

    @property
    def missing(self) -> list[str]:
        """Goals that were not reached."""
        return sorted(self._open)
