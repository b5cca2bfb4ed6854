"""What an emulated device found wrong with whoever uses it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

FindingKind: TypeAlias = Literal["race", "use after free", "poison", "bad free"]


@dataclass(frozen=True, slots=True)
class Access:
    """One operation at some memory.

    Attributes:
        number: of the operation, in the order in which they were asked for.
        what: the port's method.
        actor: the lane, or "host".
        writes: whether it writes there.
    """

    number: int
    what: str
    actor: str
    writes: bool

    def __str__(self) -> str:
        return f"{self.what} #{self.number} {'in lane ' if self.actor != 'host' else 'on the '}{self.actor}"


@dataclass(frozen=True, slots=True)
class Finding:
    """A use of memory that is wrong, on this device or on one that runs in another order.

    Attributes:
        kind: a race of two accesses; a use of freed memory; rows handed out that were never written; a free of memory
            that is not there.
        later: the access that was being made.
        earlier: the one that it is not ordered behind; None where there is none.
        place: the buffer and its rows, in words.
        reason: what is missing.
    """

    kind: FindingKind
    later: Access
    earlier: Access | None
    place: str
    reason: str

    def __str__(self) -> str:
        """One sentence for each fact."""
        verb = "writes" if self.later.writes else "reads"
        first = f"{self.kind}: {self.later} {verb} {self.place}"
        if self.earlier is not None:
            first += f", which {self.earlier} {'writes' if self.earlier.writes else 'reads'}"
        return f"{first}; {self.reason}"


def missing_edge(earlier: Access, later: Access) -> str:
    """What would order two accesses."""
    if later.actor == "host":
        return f"nobody asked whether an event behind #{earlier.number} has completed before the host went on"
    if earlier.actor == "host":
        return f"#{later.number} was asked for before the host was done"
    return f"lane {later.actor} waits for no event that was recorded in lane {earlier.actor} behind #{earlier.number}"


def in_words(rows: Sequence[int]) -> str:
    """Row numbers as spans."""
    return ", ".join(f"{start}" if start == stop else f"{start} to {stop}" for start, stop in _spans(rows))


def _spans(rows: Sequence[int]) -> Iterator[tuple[int, int]]:
    ordered = sorted(set(rows))
    start = last = ordered[0]
    for row in ordered[1:]:
        if row != last + 1:
            yield start, last
            start = row
        last = row
    yield start, last
