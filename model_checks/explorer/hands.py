"""Who expands a level: this process alone, or several. Either way the search sees the same chunks in the same order."""

from collections.abc import Iterator, Sequence
from typing import Protocol

from tenure.model_checks.explorer.part import CHUNK, Chunk, Judgement, Part


class Hands(Protocol):
    """What a search asks of whoever expands its states."""

    settled: bool
    """Whether every candidate of a chunk is new, so that nobody has to look."""

    def expand(self, begin: int, end: int) -> Iterator[Chunk]:
        """The states of a level that were not expanded yet, chunk by chunk."""
        ...

    def keep(self, new: Sequence[bool] | None, first: int) -> None:
        """Of the chunk that came last keep the candidates that are new; they are numbered from `first` on."""
        ...

    def settle(self) -> list[Judgement]:
        """What the rules say of all that was kept and not told of yet."""
        ...

    def turn(self) -> None:
        """Go on to the next level."""
        ...

    def stuck(self) -> list[int]:
        """States of the next level in which nothing can happen though it should."""
        ...

    def cpu_seconds(self) -> float:
        """Processor time of other processes, all told."""
        ...

    def close(self) -> None:
        """Let everything go."""
        ...


class Here:
    """The frontier in this process."""

    def __init__(self, part: Part, *, settled: bool) -> None:
        self._part = part
        self._judged: list[Judgement] = []
        self._candidates = 0
        self.settled = settled

    def expand(self, begin: int, end: int) -> Iterator[Chunk]:
        """The states of a level that were not expanded yet, chunk by chunk."""
        for low in range(begin, end, CHUNK):
            chunk = self._part.expand(min(low + CHUNK, end))
            self._candidates = len(chunk.keys)
            yield chunk

    def keep(self, new: Sequence[bool] | None, first: int) -> None:
        """Of the chunk that came last keep the candidates that are new; they are numbered from `first` on."""
        places = range(self._candidates) if new is None else [place for place, flag in enumerate(new) if flag]
        self._judged.append(self._part.keep(places, range(first, first + len(places))))

    def settle(self) -> list[Judgement]:
        """What the rules say of all that was kept and not told of yet."""
        judged, self._judged = self._judged, []
        return judged

    def turn(self) -> None:
        """Go on to the next level."""
        self._part.turn()
        if not self.settled:
            self._part.forget()

    def stuck(self) -> list[int]:
        """States of the next level in which nothing can happen though it should."""
        return self._part.stuck()

    def cpu_seconds(self) -> float:
        """There are no other processes."""
        return 0.0

    def close(self) -> None:
        """Nothing to let go."""
