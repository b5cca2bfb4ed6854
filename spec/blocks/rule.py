"""What a rule of the block machine is, and what the rules look at."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias

from tenure.core.blocks.values import (
    Answer,
    Command,
    DestinationActivated,
    Event,
    RequestId,
    StepComputed,
    TokensComputed,
)
from tenure.core.blocks.view import BlockView


@dataclass(frozen=True, slots=True)
class Rule:
    """One invariant.

    Attributes:
        id: its name in code, tests and reports; never used again for another.
        sentence: what holds.
        reason: what would go wrong without it.
        source: where it comes from.
        kind: whether a state alone can break it, or only a transition.
    """

    id: str
    sentence: str
    reason: str
    source: str
    kind: Literal["predicate", "transition"]


@dataclass(frozen=True, slots=True)
class Observation:
    """One event that was accepted, with the whole state before and after it."""

    before: BlockView
    event: Event
    after: BlockView
    answer: Answer
    commands: tuple[Command, ...]


Finding: TypeAlias = str | None
"""What was found and where, value first; None where the rule holds."""
StateCheck: TypeAlias = Callable[[BlockView], Finding]
TransitionCheck: TypeAlias = Callable[[Observation], Finding]


def publishing_requests(event: Event) -> tuple[RequestId, ...]:
    """The requests whose blocks an event may make visible, in order."""
    match event:
        case TokensComputed(request) | DestinationActivated(request):
            return (request,)
        case StepComputed(requests):
            return requests
        case _:
            return ()
