"""What callers of a simulation still hold: rows that were handed out must stay what they were."""

from collections import deque
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from tenure.core.errors import InvariantViolation

HELD_MAX: Final = 24
"""So many tensors are held at a time: those of the last few materialize calls."""


class Held(NamedTuple):
    """One tensor.

    Attributes:
        what: it is, in words.
        tensor: as it was handed out.
        copy: of what it held then.
    """

    what: str
    tensor: npt.NDArray[Any]
    copy: npt.NDArray[Any]


class HandedOut:
    """Tensors that somebody holds, the newest of all that were handed out; the others were let go."""

    def __init__(self) -> None:
        """Nothing was handed out."""
        self._held: deque[Held] = deque()

    def hold(self, what: str, tensor: npt.NDArray[Any]) -> None:
        """Hold one more; the one that was held for longest is looked at again and let go, if there are too many.

        Raises:
            InvariantViolation: that one has changed.
        """
        self._held.append(Held(what, tensor, tensor.copy()))
        if len(self._held) > HELD_MAX:
            _look_again(self._held.popleft())

    def let_go(self) -> None:
        """Look at all again, and hold none.

        Raises:
            InvariantViolation: one of them has changed.
        """
        while self._held:
            _look_again(self._held.popleft())


def _look_again(held: Held) -> None:
    if not np.array_equal(held.tensor, held.copy):
        raise InvariantViolation("R02", f"{held.what} has changed since it was handed out, while it was held")
