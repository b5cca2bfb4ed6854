"""What moves a block machine in a search: who may tell it what, and when there is nothing left to tell."""

from typing import Protocol, TypeAlias

from tenure.core.blocks.view import BlockView
from tenure.model_checks.blocks.contents import Ghost
from tenure.model_checks.blocks.nodes import Outcome
from tenure.model_checks.model import Event, Owed

Left: TypeAlias = tuple[int, ...]
"""What the players may still do: numbers whose meaning is theirs."""


class Players(Protocol):
    """The environment of a machine. What it knows is in `Left` and in the ghost; the object itself never changes."""

    def first(self) -> Left:
        """What may be done altogether."""
        ...

    def offers(self, view: BlockView, ghost: Ghost) -> tuple[Event, ...]:
        """Whatever could be told to such a machine by anybody, in a fixed order; () stands for what cannot be now."""
        ...

    def allowed(self, left: Left, offers: tuple[Event, ...]) -> tuple[Event, ...]:
        """Those of the offers that may still come."""
        ...

    def after(self, left: Left, offers: tuple[Event, ...], event: Event, outcome: Outcome) -> Left:
        """What may be done after an event."""
        ...

    def is_done(self, left: Left, view: BlockView) -> bool:
        """Whether it is right that nobody does anything more."""
        ...

    def owed(self, left: Left) -> frozenset[Owed]:
        """Who has still to come to an end."""
        ...

    def is_bound(self, actor: str) -> bool:
        """Whether an actor does what it can some time."""
        ...
