"""A family of toy scopes, one for each verdict, as the registry takes it."""

from collections.abc import Callable
from typing import Any, cast

from tenure.model_checks.explorer.toys import Counting, Ring, Slots
from tenure.model_checks.model import Event, Marks, Model, Scope, ScopeSet, Taken

GROWS: Marks = frozenset({"goal even", "event Grown"})


class Telling(Counting):
    """Says what changes, and what a core would be told."""

    def changes(self, before: int, after: int) -> list[str]:
        """The number."""
        return [f"count: {before} -> {after}"]

    def core_events(self, state: int, event: Event) -> list[object]:
        """Something that no trace has a line for."""
        return [("grow", state, event[2])]


class Falling(Counting):
    """Raises where it should answer."""

    def take(self, state: int, event: Event) -> Taken:
        """Never."""
        raise ZeroDivisionError(event[2])


def _scope(name: str, make: Callable[[], Any], sets: tuple[ScopeSet, ...], expects: Marks, **more: Any) -> Scope:
    made = cast("Callable[[], Model[object]]", make)
    return Scope(f"toys/{name}", "free", frozenset(sets), {"size": 1}, expects, made, **more)


SCOPES = (
    _scope("proved", lambda: Counting(6), ("smoke", "ci"), GROWS, assumes="numbers only grow", source="T01"),
    _scope("paid", lambda: Ring(2), ("ci",), frozenset(), progress=True),
    _scope("refuted", lambda: Telling(9, wrong=5), ("deep",), GROWS, source="T02", assumes="numbers only grow"),
    _scope("vain", lambda: Counting(6), ("deep",), GROWS | {"goal odd"}),
    _scope("falling", lambda: Falling(6), ("deep",), GROWS),
    _scope("hogged", lambda: Ring(2, may_hog=True), ("deep",), frozenset(), progress=True),
    _scope("large", lambda: Slots(2, 2, 2), ("deep",), frozenset()),
)
CLAIMS: Marks = GROWS
