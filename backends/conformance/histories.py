"""How many seeded histories a check tells, and what they must have met so that it says something."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

from tenure.backends.conformance.rig import OutOfTimeError

AT_MOST: Final = 60
"""So many histories a check tells at most. Of what a check must meet, the rarest comes in one history of four."""


def numbers(usual: int, seen: Counter[str], must_see: Sequence[str]) -> Iterator[int]:
    """The numbers of the histories that a check tells: as many as usual, and further ones until it met what it must.

    What a seed happens to draw so decides how long a check takes, and not whether anything can be said.

    Args:
        usual: so many in any case.
        seen: what came of those that were told, counted by whoever tells them.
        must_see: what must have come.
    """
    for number in range(max(usual, AT_MOST)):
        if number >= usual and not _missing(seen, must_see):
            return
        seen["histories"] += 1
        yield number


def require_met(seen: Counter[str], must_see: Sequence[str]) -> None:
    """Say nothing of a check that did not meet what it must.

    Raises:
        OutOfTimeError: it did not.
    """
    if missing := _missing(seen, must_see):
        raise OutOfTimeError(f"none of {seen['histories']} histories met {', '.join(missing)}; give another seed")


def _missing(seen: Counter[str], must_see: Sequence[str]) -> list[str]:
    return [what for what in must_see if not seen[what]]
