"""What disturbs the requests of a replay: aborts and preemptions, drawn from its seed."""

from typing import Final

import numpy as np

# Draws for different purposes come from different streams, so that one rate changes nothing but its own.
ABORTS: Final = 1
PREEMPTIONS: Final = 2
BUILDER: Final = 3


def stream(seed: int, purpose: int) -> np.random.Generator:
    """Draws for one purpose."""
    return np.random.default_rng((seed, purpose))


class Disturbances:
    """Decides who is aborted and preempted, and when. The same seed and questions give the same answers."""

    def __init__(self, seed: int, abort_rate: float, preempt_rate: float) -> None:
        self._aborts = stream(seed, ABORTS)
        self._preemptions = stream(seed, PREEMPTIONS)
        self._abort_rate = abort_rate
        self._preempt_rate = preempt_rate

    def steps_to_abort(self, output_tokens: int) -> int | None:
        """After how many steps a request is aborted, if it still lives; None if it may live to its end.

        A request takes about one step per output token, so most that are to be aborted live long enough.
        """
        if self._aborts.random() >= self._abort_rate:
            return None
        return int(self._aborts.integers(1, max(1, output_tokens), endpoint=True))

    def preempted(self, running: int) -> int | None:
        """Which of the running requests is preempted in this step; None if none is."""
        if self._preemptions.random() >= self._preempt_rate:
            return None
        return int(self._preemptions.integers(running)) if running else None
