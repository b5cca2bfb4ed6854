"""Which states were met before: by their canonical bytes, or by 64 bits of them.

Python's own `hash` is not used: for tuples it is no fingerprint, for bytes it differs from run to run.
"""

from collections.abc import Sequence
from hashlib import blake2b
from typing import Literal, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

VisitedKind: TypeAlias = Literal["exact", "compact"]
RECENT_MAX = 1 << 16


def digest(key: bytes) -> bytes:
    """64 bits that stand for a canonical form in a compact search."""
    return blake2b(key, digest_size=8).digest()


class Visited(Protocol):
    """A set of states."""

    kind: VisitedKind

    def __len__(self) -> int: ...

    def admit(self, keys: Sequence[bytes]) -> list[bool]:
        """Which of these are new, in order; afterwards none is."""
        ...

    def collision(self) -> float:
        """The chance that two states were taken for one."""
        ...


class Exact:
    """Canonical bytes in a set: nothing is ever mistaken."""

    __slots__ = ("keys",)

    kind: VisitedKind = "exact"

    def __init__(self) -> None:
        self.keys: set[bytes] = set()

    def __len__(self) -> int:
        return len(self.keys)

    def admit(self, keys: Sequence[bytes]) -> list[bool]:
        """Which of these are new, in order; afterwards none is."""
        known = self.keys
        add = known.add
        flags: list[bool] = []
        for key in keys:
            if key in known:
                flags.append(False)
            else:
                add(key)
                flags.append(True)
        return flags

    def collision(self) -> float:
        """None."""
        return 0.0


class NumberedKeys:
    """Canonical bytes with the number of their state, for searches that keep the graph."""

    __slots__ = ("numbers",)

    kind: VisitedKind = "exact"

    def __init__(self) -> None:
        # Invariant: the keys stand in the order of their numbers.
        self.numbers: dict[bytes, int] = {}

    def __len__(self) -> int:
        return len(self.numbers)

    def admit(self, keys: Sequence[bytes]) -> list[bool]:
        """Which of these are new, in order; afterwards none is, and they are numbered."""
        numbers = self.numbers
        flags: list[bool] = []
        for key in keys:
            count = len(numbers)
            flags.append(numbers.setdefault(key, count) == count)
        return flags

    def collision(self) -> float:
        """None."""
        return 0.0


class Compact:
    """Digests in sorted arrays of doubling length, the newest in a small set: 8 bytes a state.

    Keys are digests already.
    """

    __slots__ = ("recent", "runs")

    kind: VisitedKind = "compact"

    def __init__(self) -> None:
        self.recent: set[int] = set()
        # Invariant: sorted, the longest first, each more than twice as long as the next; no digest in two of them.
        self.runs: list[NDArray[np.uint64]] = []

    def __len__(self) -> int:
        return len(self.recent) + sum(len(run) for run in self.runs)

    def admit(self, keys: Sequence[bytes]) -> list[bool]:
        """Which of these are new, in order; afterwards none is."""
        if not keys:
            return []
        asked = np.frombuffer(b"".join(keys), dtype="<u8").astype(np.uint64)
        found = np.zeros(len(asked), dtype=np.bool_)
        for run in self.runs:
            places = np.searchsorted(run, asked)
            places[places == len(run)] = 0
            found |= run[places] == asked
        recent = self.recent
        flags: list[bool] = []
        for number, old in zip(asked.tolist(), found.tolist(), strict=True):
            new = not old and number not in recent
            if new:
                recent.add(number)
            flags.append(new)
        if len(recent) >= RECENT_MAX:
            self._put_away()
        return flags

    def collision(self) -> float:
        """About n * n / 2**65 for n states."""
        return len(self) ** 2 / 2.0**65

    def digests(self) -> NDArray[np.uint64]:
        """All of them, in no order."""
        return np.concatenate([*self.runs, np.fromiter(self.recent, np.uint64, len(self.recent))])

    def restore(self, digests: NDArray[np.uint64]) -> None:
        """Take digests that were saved; those here are forgotten."""
        self.recent = set()
        self.runs = [np.sort(digests)] if len(digests) else []

    def _put_away(self) -> None:
        run = np.sort(np.fromiter(self.recent, np.uint64, len(self.recent)))
        self.recent = set()
        while self.runs and len(self.runs[-1]) <= 2 * len(run):
            run = np.sort(np.concatenate([self.runs.pop(), run]))
        self.runs.append(run)
