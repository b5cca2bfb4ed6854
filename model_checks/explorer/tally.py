"""What is counted on the way."""

from collections.abc import Mapping
from typing import Any

from tenure.model_checks.explorer.part import Chunk, Judgement
from tenure.model_checks.explorer.results import EventCount, MarkSeen
from tenure.model_checks.model import Event, Marks

UNSOUND_MAX = 20
"""More examples of a model that does not say the same again tell nobody more."""


class Tally:
    """Counts of a search. Sets of marks are counted as they come, and spelled out at the end."""

    def __init__(self) -> None:
        self.expanded = 0
        self.transitions = 0
        self.low = 1 << 30
        self.high = 0
        self.kinds: dict[Event, int] = {}
        self.unsound: list[str] = []
        # Of every set of marks how often it came, and after how many events first.
        self._marks: dict[Marks, tuple[int, int]] = {}

    def add_chunk(self, chunk: Chunk, depth: int) -> None:
        """Count transitions that lead to this depth."""
        self.expanded += chunk.states
        self.transitions += chunk.transitions
        self.low = min(self.low, chunk.low)
        self.high = max(self.high, chunk.high)
        for kind, count in chunk.kinds.items():
            self.kinds[kind] = self.kinds.get(kind, 0) + count
        self._add(chunk.marks, depth)
        self._doubt(chunk.unsound)

    def add_judgement(self, judgement: Judgement, depth: int) -> None:
        """Count what was said of states at this depth."""
        self._add(judgement.marks, depth)
        self._doubt(judgement.unsound)

    def _doubt(self, unsound: list[str]) -> None:
        self.unsound.extend(unsound[: UNSOUND_MAX - len(self.unsound)])

    def _add(self, marks: Mapping[Marks, int], depth: int) -> None:
        for together, count in marks.items():
            before, first = self._marks.get(together, (0, depth))
            self._marks[together] = (before + count, min(first, depth))

    def marks(self) -> tuple[MarkSeen, ...]:
        """Every mark by itself."""
        seen: dict[str, tuple[int, int]] = {}
        for together, (count, depth) in self._marks.items():
            for mark in together:
                before, first = seen.get(mark, (0, depth))
                seen[mark] = (before + count, min(first, depth))
        return tuple(MarkSeen(mark, *seen[mark]) for mark in sorted(seen))

    def events(self) -> tuple[EventCount, ...]:
        """The table of events."""
        table: dict[tuple[str, str], int] = {}
        for kind, count in self.kinds.items():
            actor, name = (*map(str, kind), "", "")[:2]
            table[actor, name] = table.get((actor, name), 0) + count
        return tuple(EventCount(actor, kind, table[actor, kind]) for actor, kind in sorted(table))

    def to_json(self) -> dict[str, Any]:
        """All of it, for a checkpoint."""
        return {
            "expanded": self.expanded,
            "transitions": self.transitions,
            "low": self.low,
            "high": self.high,
            "kinds": [[list(kind), count] for kind, count in self.kinds.items()],
            "unsound": self.unsound,
            "marks": [[sorted(together), count, depth] for together, (count, depth) in self._marks.items()],
        }

    @classmethod
    def from_json(cls, saved: Mapping[str, Any]) -> "Tally":
        """What `to_json` told."""
        tally = cls()
        tally.expanded, tally.transitions = saved["expanded"], saved["transitions"]
        tally.low, tally.high = saved["low"], saved["high"]
        tally.kinds = {tuple(kind): count for kind, count in saved["kinds"]}
        tally.unsound = list(saved["unsound"])
        tally._marks = {frozenset(together): (count, depth) for together, count, depth in saved["marks"]}
        return tally
