"""Walks through a model as bytes: each number is the index of an event among those that may happen, modulo their count.

Any bytes are a walk, so that whatever makes bytes makes walks: a seed, Hypothesis, a fuzzer. And any walk is bytes: the
trace of a counterexample becomes the bytes of the same walk, to be pinned as an example.

An event that led nowhere is not offered again until something changes: a walk spends no numbers on standing still.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final, NamedTuple

from tenure.core.errors.base import ContractError
from tenure.core.errors.base import Scope as Damage
from tenure.model_checks.model import Broken, Event, Judged, Model, Taken

STUCK_RULE: Final = "R11"
"""What is broken where nothing can happen and it is no place to rest."""
STUCK: Final = "nothing can happen any more, and this is no place to rest"
CRASH: Final = "CRASH"
"""Stands where a rule's id stands if something raised what it must not raise."""
_BYTE: Final = 256


@dataclass(eq=False)
class NotOfferedError(ContractError):
    """An event cannot happen where a walk has come to."""

    scope: ClassVar[Damage] = Damage.REQUEST
    event: Event
    place: int
    offered: int

    def sentence(self) -> str:
        """The message."""
        return (
            f"event {self.place + 1}, {self.event}, cannot happen there: it is none of the {self.offered} that can; "
            "encode the events of a walk of this very model, in order"
        )


class Step(NamedTuple):
    """One event of a walk.

    Attributes:
        event: what happened.
        taken: where it led.
        judged: what the rules say of that state.
        broken: all that it broke; a walk ends with the first step that has any.
        is_still: whether it led nowhere: the state is the one before.
    """

    event: Event
    taken: Taken
    judged: Judged
    broken: tuple[Broken, ...]
    is_still: bool = False


def decode(model: Model[Any], data: bytes) -> list[Event]:
    """The events that bytes stand for: to their end, to a place where nothing can happen, or to a fault."""
    return [step.event for step in steps(model, data)]


def steps(model: Model[Any], data: Iterable[int]) -> Iterator[Step]:
    """The walk that bytes stand for, with everything that the rules say of it."""
    numbers = iter(data)
    states = list(model.initial())
    first = _read(numbers, len(states)) if len(states) > 1 else 0
    if first is None:
        return
    path = _Path(model, states[first])
    while path.offered and (number := _read(numbers, len(path.offered))) is not None:
        step = path.go(number)
        yield step
        if step.broken:
            return


def follow(model: Model[Any], events: Iterable[Event], initial: int = 0) -> Iterator[Step]:
    """As many of these events as can happen, in order; one that cannot is left out."""
    path = _Path(model, list(model.initial())[initial])
    for event in events:
        if event in path.offered:
            step = path.go(path.offered.index(event))
            yield step
            if step.broken:
                return


def encode_events(model: Model[Any], events: Sequence[Event], initial: int = 0) -> bytes:
    """The bytes of the walk that is these events.

    Args:
        model: the model, built anew.
        events: what happened, in order.
        initial: which of the initial states it began in.

    Raises:
        NotOfferedError: an event cannot happen where it is told.
    """
    states = list(model.initial())
    data = bytearray()
    if len(states) > 1:
        data += _written(initial, len(states))
    path = _Path(model, states[initial])
    for place, event in enumerate(events):
        if event not in path.offered:
            raise NotOfferedError(event, place, len(path.offered))
        at = path.offered.index(event)
        data += _written(at, len(path.offered))
        if path.go(at).broken:
            break
    return bytes(data)


class _Path:
    """Where a walk has come to, and what may happen there."""

    def __init__(self, model: Model[Any], state: Any) -> None:
        self._model, self.state = model, state
        self.offered: Sequence[Event] = model.events(state)

    def go(self, at: int) -> Step:
        """Take the event offered at a place; a model that raises is at fault like one that breaks a rule."""
        try:
            return self._go(at)
        except Exception as error:
            found = Broken(CRASH, f"{type(error).__name__}: {error}")
            return Step(self.offered[at], Taken(None), Judged(), (found,))

    def _go(self, at: int) -> Step:
        model, before, event = self._model, self.state, self.offered[at]
        taken = model.take(before, event)
        if taken.state is None:
            return Step(event, taken, Judged(), taken.broken)
        judged = model.judge(taken.state)
        broken = (*taken.broken, *judged.broken)
        if taken.state == before:
            self.offered = [*self.offered[:at], *self.offered[at + 1 :]]
            return Step(event, taken, judged, broken, is_still=True)
        self.state = taken.state
        self.offered = model.events(taken.state)
        if not self.offered and not model.is_quiescent(taken.state):
            broken = (*broken, Broken(STUCK_RULE, STUCK))
        return Step(event, taken, judged, broken)


def _read(numbers: Iterator[int], options: int) -> int | None:
    """The next number, as an index among so many options; None if the bytes are used up."""
    value = next(numbers, None)
    if value is None:
        return None
    if options > _BYTE:
        value = value * _BYTE + next(numbers, 0)
    return value % options


def _written(index: int, options: int) -> bytes:
    return index.to_bytes(2 if options > _BYTE else 1, "big")
