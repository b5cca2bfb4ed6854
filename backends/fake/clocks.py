"""Happens-before between the host and the lanes, as vector clocks (Lamport 1978; Mattern 1989).

All threads of the host count as one: what a cache does between them is ordered by its lock, which is tested by itself.
"""

from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from tenure.backends.device import Lane

Clock: TypeAlias = npt.NDArray[np.int64]
"""Per actor how much of what it did lies before. Shapes: `[len(ACTORS)]`."""

HOST: Final = 0
ACTORS: Final = ("host", *(lane.name for lane in Lane))
ACTOR_OF: Final = {lane: number for number, lane in enumerate(Lane, 1)}


class Clocks:
    """What each actor knows to lie behind it."""

    def __init__(self) -> None:
        """Nothing has happened."""
        self._now = [np.zeros(len(ACTORS), dtype=np.int64) for _ in ACTORS]

    def now(self, actor: int) -> Clock:
        """A copy of an actor's clock."""
        return self._now[actor].copy()

    def tick(self, actor: int) -> Clock:
        """An actor does something; its clock, valid until its next move."""
        clock = self._now[actor]
        clock[actor] += 1
        return clock

    def join(self, actor: int, other: Clock) -> None:
        """What lies behind `other` lies behind the actor from now on."""
        np.maximum(self._now[actor], other, out=self._now[actor])
