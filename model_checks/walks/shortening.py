"""A walk that ends in a fault, made short and told as a story.

First whatever can be left out is left out: of a model's walk events, of a machine's beside its oracle numbers. Then, in
a model, the shortest way to a break of the same rule is looked for, as far as a small search goes.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Any, Final, NamedTuple, TypeVar

from tenure.core.errors import InvariantViolation
from tenure.model_checks.explorer import Limits, explore
from tenure.model_checks.model import Broken, Event, Model
from tenure.model_checks.walks.codes import CRASH, encode_events, follow, steps
from tenure.model_checks.walks.machines import Machine, ModelMachine, OracleMachine

PATIENCE_S: Final = 60.0
SEARCH: Final = Limits(states=30_000, seconds=20)

T = TypeVar("T")


class Fault(NamedTuple):
    """A walk that breaks something.

    Attributes:
        rule: what it breaks.
        found: what was found.
        data: the bytes of the walk.
        story: what happens, one event a line; empty until it was told.
    """

    rule: str
    found: str
    data: bytes
    story: tuple[str, ...] = ()


def fault_of(machine: Machine, data: bytes) -> Fault | None:
    """What the walk of these bytes breaks, if anything."""
    try:
        machine.walker().walk(data)
    except InvariantViolation as violation:
        return Fault(violation.rule, str(violation).removeprefix(f"{violation.rule}: "), data)
    except Exception as error:
        return Fault(CRASH, f"{type(error).__name__}: {error}", data)
    return None


def shorten(machine: Machine, fault: Fault, seconds: float = PATIENCE_S) -> Fault:
    """A shorter walk that breaks the same rule, with its story."""
    if isinstance(machine, ModelMachine):
        return _shorter_events(machine, fault, seconds)
    return _shorter_bytes(machine, fault, seconds) if isinstance(machine, OracleMachine) else fault


def left_out(whole: Sequence[T], holds: Callable[[Sequence[T]], bool], seconds: float = PATIENCE_S) -> Sequence[T]:
    """As few of some things, in order, as will do: leaving any one of them out more would not (Zeller's ddmin).

    Args:
        whole: all of them, which do.
        holds: whether some of them do.
        seconds: when to be content with what was found.
    """
    until = time.monotonic() + seconds
    size = max(len(whole) // 2, 1)
    while size and time.monotonic() < until:
        at, before = 0, len(whole)
        while at < len(whole) and time.monotonic() < until:
            rest = [*whole[:at], *whole[at + size :]]
            if holds(rest):
                whole = rest
            else:
                at += size
        if size > 1 or len(whole) == before:
            size //= 2
    return whole


def _shorter_bytes(machine: OracleMachine, fault: Fault, seconds: float) -> Fault:
    def breaks(numbers: Sequence[int]) -> bool:
        found = fault_of(machine, bytes(numbers))
        return found is not None and found.rule == fault.rule

    read = _Told(fault.data)
    _go(machine, read)
    numbers: Sequence[int] = list(read.told)
    if not breaks(numbers):
        return fault
    numbers = left_out(numbers, breaks, seconds)
    data = bytes(numbers)
    return (fault_of(machine, data) or fault)._replace(story=_go(machine, data))


class _Told(Iterator[int]):
    """Numbers, and those of them that were read."""

    def __init__(self, numbers: bytes) -> None:
        self._numbers = iter(numbers)
        self.told: list[int] = []

    def __next__(self) -> int:
        number = next(self._numbers)
        self.told.append(number)
        return number


def _go(machine: OracleMachine, data: Iterable[int]) -> tuple[str, ...]:
    """The events that a machine takes, without those that it refuses."""
    story: list[str] = []
    # What it ends with is told beside the story.
    with suppress(Exception):
        machine.walk(data, lambda seen: story.append(str(seen.event)))
    return tuple(story)


def _shorter_events(machine: ModelMachine, fault: Fault, seconds: float) -> Fault:
    model = machine.make()
    events, broken = _last_walk(model, fault.data)
    if broken is None:
        # It broke once and does not break again: the bytes are all there is to tell.
        return fault

    def breaks(some: Sequence[Event]) -> bool:
        found = _end(model, some)[1]
        return found is not None and found.rule == fault.rule

    events, again = _end(model, left_out(events, breaks, seconds))
    broken = again or broken
    # A search ends where its model raises.
    search = () if fault.rule == CRASH else explore(machine.make(), limits=SEARCH).broken
    shorter = [each for each in search if each.rule == fault.rule and each.depth < len(events)]
    initial = 0
    if shorter:
        events, broken, initial = list(shorter[0].events), Broken(shorter[0].rule, shorter[0].found), shorter[0].initial
    data = encode_events(machine.make(), events, initial)
    return Fault(broken.rule, broken.found, data, tuple(model.describe(event) for event in events))


def _last_walk(model: Model[Any], data: bytes) -> tuple[list[Event], Broken | None]:
    """The walk among those of some bytes that breaks a rule."""
    numbers = iter(data)
    while True:
        events: list[Event] = []
        for step in steps(model, numbers):
            events.append(step.event)
            if step.broken:
                return events, step.broken[0]
        if not events:
            return events, None


def _end(model: Model[Any], events: Sequence[Event]) -> tuple[list[Event], Broken | None]:
    """Those events that can happen, and what the last of them breaks."""
    taken: list[Event] = []
    for step in follow(model, events):
        taken.append(step.event)
        if step.broken:
            return taken, step.broken[0]
    return taken, None
