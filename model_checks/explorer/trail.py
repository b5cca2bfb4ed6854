"""Where every state was first met: the parent, and the place of the event. No state is kept or ever decoded."""

from array import array
from collections.abc import Iterable, Sequence
from typing import Any

from tenure.model_checks.model import Event, Model

NO_PARENT = 0xFFFF_FFFF
"""The parent of an initial state; its index is its place among the initial states."""
EVENTS_MAX = 0xFFFF
"""The most events that may be possible in one state."""


class Trail:
    """States in the order in which they were met, level by level.

    Attributes:
        parents: of every state the one it was first met from.
        indices: the place of the event among those of the parent.
        starts: of every level that is complete, and of the next one, its first state.
    """

    __slots__ = ("indices", "parents", "starts")

    def __init__(self) -> None:
        self.parents = array("I")
        self.indices = array("H")
        # Invariant: starts[k] is the first state after k events, and starts[-1] that of the level not yet complete.
        self.starts: list[int] = [0]

    def __len__(self) -> int:
        return len(self.parents)

    def per_depth(self) -> tuple[int, ...]:
        """How many states were first met after 0, 1, 2.. events."""
        ends = [*self.starts[1:], len(self)]
        return tuple(end - start for start, end in zip(self.starts, ends, strict=True) if end > start)

    def path(self, state: int) -> tuple[int, list[int]]:
        """The place of the initial state, and the places of the events that lead from it to a state."""
        indices: list[int] = []
        while (parent := self.parents[state]) != NO_PARENT:
            indices.append(self.indices[state])
            state = parent
        indices.reverse()
        return self.indices[state], indices

    def story(self, model: Model[Any], state: int) -> tuple[int, list[Event], Any]:
        """The initial state's place, the events that lead to a state, and the state itself."""
        initial, indices = self.path(state)
        reached = list(model.initial())[initial]
        events: list[Event] = []
        for index in indices:
            event = model.events(reached)[index]
            events.append(event)
            reached = model.take(reached, event).state
        return initial, events, reached

    def rebuild(self, model: Model[Any], wanted: Sequence[int]) -> list[Any]:
        """The states with these ascending numbers, by taking the events that led to them again.

        Every state on the way is made once, and forgotten as soon as the last state that comes of it is made.
        """
        needed = self._ancestors(wanted)
        children: dict[int, int] = {}
        for state in needed:
            children[self.parents[state]] = children.get(self.parents[state], 0) + 1
        kept = set(wanted)
        initial = list(model.initial())
        made: dict[int, Any] = {}
        menus: dict[int, Sequence[Event]] = {}
        for state in needed:
            parent, index = self.parents[state], self.indices[state]
            if parent == NO_PARENT:
                made[state] = initial[index]
                continue
            if parent not in menus:
                menus[parent] = model.events(made[parent])
            made[state] = model.take(made[parent], menus[parent][index]).state
            children[parent] -= 1
            if not children[parent]:
                del menus[parent]
                if parent not in kept:
                    del made[parent]
        return [made[state] for state in wanted]

    def _ancestors(self, wanted: Iterable[int]) -> list[int]:
        """These states and all they come from, in ascending order: parents are met before their children."""
        needed: set[int] = set()
        for state in wanted:
            at = state
            while at != NO_PARENT and at not in needed:
                needed.add(at)
                at = self.parents[at]
        return sorted(needed)
