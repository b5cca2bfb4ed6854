"""States and transitions as arrays, for what a set of states cannot answer: progress, drawings."""

from array import array
from dataclasses import dataclass

from tenure.model_checks.model import Owed

NO_CLASS = 0
"""The place in `Graph.classes` of an actor that is not bound to act."""


@dataclass(frozen=True, slots=True, repr=False)
class Graph:
    """All distinct states, numbered in the order in which they were met, and all transitions between them.

    Attributes:
        keys: the canonical form of every state.
        parents: the state each was first met from; `trail.NO_PARENT` for an initial one.
        indices: the place of the event that led there; for an initial state its own place.
        sources: of every transition the state it leaves.
        targets: the state it leads to.
        events: the place of its event among those of its source.
        labels: the place of its actor in `classes`.
        classes: actors that are bound to act; the first stands for all that are not.
        owed: of every state the place of what it owes in `debts`.
        debts: sets of what is owed.
    """

    keys: list[bytes]
    parents: "array[int]"
    indices: "array[int]"
    sources: "array[int]"
    targets: "array[int]"
    events: "array[int]"
    labels: "array[int]"
    classes: tuple[str, ...]
    owed: "array[int]"
    debts: tuple[frozenset[Owed], ...]
