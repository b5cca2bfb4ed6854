"""What the rules of the block machine look at."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

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
from tenure.spec.rule import Finding


@dataclass(frozen=True, slots=True)
class Observation:
    """One event that was accepted, with the whole state before and after it."""

    before: BlockView
    event: Event
    after: BlockView
    answer: Answer
    commands: tuple[Command, ...]


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
