"""The graph while it grows."""

from array import array
from collections.abc import Mapping, Sequence

from tenure.model_checks.explorer.graph import Graph
from tenure.model_checks.explorer.part import Chunk, Judgement
from tenure.model_checks.explorer.trail import Trail
from tenure.model_checks.model import Owed


class Edges:
    """Transitions in the order in which they were taken, and what every state owes."""

    def __init__(self) -> None:
        self._sources = array("I")
        self._targets = array("I")
        self._events = array("H")
        self._labels = array("H")
        self._classes: dict[str | None, int] = {None: 0}
        self._owed: dict[int, int] = {}
        self._debts: dict[frozenset[Owed], int] = {}

    def add_chunk(self, chunk: Chunk, numbers: Mapping[bytes, int]) -> None:
        """Keep the transitions of a chunk; all its candidates are numbered by now."""
        self._sources.extend(chunk.parents)
        self._targets.extend(numbers[key] for key in chunk.keys)
        self._events.extend(chunk.indices)
        self._labels.extend(self._classes.setdefault(label, len(self._classes)) for label in chunk.labels)

    def add_debts(self, judged: Sequence[Judgement]) -> None:
        """Keep what new states owe."""
        for said in judged:
            for state, owed in zip(said.ids, said.owed, strict=True):
                self._owed[state] = self._debts.setdefault(owed, len(self._debts))

    def graph(self, trail: Trail, keys: Sequence[bytes]) -> Graph:
        """All of it; only when the search is complete."""
        return Graph(
            keys=list(keys),
            parents=trail.parents,
            indices=trail.indices,
            sources=self._sources,
            targets=self._targets,
            events=self._events,
            labels=self._labels,
            classes=tuple(label or "" for label in self._classes),
            owed=array("I", (self._owed[state] for state in range(len(trail)))),
            debts=tuple(self._debts),
        )
