"""Runs a block machine beside the oracle and compares everything that can be seen, after every event."""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Final, Generic, Protocol, TypeVar

from tenure.core.blocks.values import Answer, Command, Event, RequestId
from tenure.core.blocks.view import BlockView, PrefillCost
from tenure.core.config import BlockConfig
from tenure.core.errors import InvariantViolation, TenureError
from tenure.spec.blocks.histories import next_event
from tenure.spec.blocks.mirror import KvMirror
from tenure.spec.blocks.oracle import BlockOracle
from tenure.spec.blocks.rule import Observation
from tenure.spec.blocks.rules import check_observation, check_refusal
from tenure.spec.blocks.rules_events import changed_fields
from tenure.spec.blocks.rules_leases import broken_cost
from tenure.spec.choices import Choices

S = TypeVar("S")

AGREEMENT = "AGREEMENT"
"""Stands where a rule's id stands if the machine and the oracle differ."""
COMPARED: Final = attrgetter(*(name for name in BlockView.__dataclass_fields__ if name != "lru_positions"))
"""All of a view but the LRU positions, which are the machine's own bookkeeping; their order is judged by I03."""


class Subject(Protocol[S]):
    """A block machine with states that stay readable."""

    def initial(self, config: BlockConfig, /) -> S:
        """An empty machine."""
        ...

    def transition(self, state: S, event: Event) -> tuple[S, Answer, tuple[Command, ...]]:
        """Carry an event out, or raise and leave `state` as it was."""
        ...

    def view(self, state: S) -> BlockView:
        """A state as plain data."""
        ...

    def prefill_cost(self, state: S, request: RequestId) -> PrefillCost:
        """What computing a request would take."""
        ...


@dataclass(frozen=True, slots=True)
class Kept(Generic[S]):
    """A moment of a history, to come back to."""

    state: S
    view: BlockView
    oracle: BlockOracle
    visible: frozenset[int]


class Lockstep(Generic[S]):
    """One history of a machine and the oracle together.

    Attributes:
        state: the machine's newest state.
        view: the same as plain data.
        kept: moments that were kept.
        seen: how often each kind of event was accepted, and each error raised.
    """

    def __init__(
        self,
        subject: Subject[S],
        config: BlockConfig,
        watch: Callable[[Observation], None] | None = None,
    ) -> None:
        """Both empty; `watch` is shown every accepted event."""
        self._subject = subject
        self._watch = watch
        self._oracle = BlockOracle(config)
        self._mirror = KvMirror()
        self.state = subject.initial(config)
        self.view = subject.view(self.state)
        self.kept: list[Kept[S]] = []
        self.seen: Counter[str] = Counter()
        self._compare_views("the start")

    def tell(self, event: Event) -> Answer | TenureError:
        """Tell both, compare both, and judge the machine by every rule.

        Raises:
            InvariantViolation: the two differ, or a rule is broken.
        """
        before, was = self.view, self.state
        expected, expected_commands = self._ask_oracle(event)
        answer, commands = self._ask_subject(event)
        self.seen[type(answer if isinstance(answer, TenureError) else event).__name__] += 1
        if isinstance(answer, TenureError) or isinstance(expected, TenureError):
            if type(answer) is not type(expected):
                raise InvariantViolation(AGREEMENT, f"{event} gives {answer!r}; expected {expected!r}")
            self.view = self._subject.view(was)
            check_refusal(before, event, self.view)
            self._compare_views(event)
            return answer
        self.view = self._subject.view(self.state)
        if answer != expected:
            raise InvariantViolation(AGREEMENT, f"{event} is answered {answer}; expected {expected}")
        if commands != expected_commands:
            raise InvariantViolation(AGREEMENT, f"{event} commands {commands}; expected {expected_commands}")
        self._compare_views(event)
        observation = Observation(before, event, self.view, answer, commands)
        check_observation(observation)
        self._mirror.hear(commands)
        if self.view.config.kv_events:
            self._mirror.compare(self.view)
        if self._watch is not None:
            self._watch(observation)
        return answer

    def _ask_oracle(self, event: Event) -> tuple[Answer | TenureError, tuple[Command, ...]]:
        try:
            return self._oracle.apply(event)
        except TenureError as refusal:
            # An answer from here on: where it was raised would be kept alive, and the states there with it.
            return refusal.with_traceback(None), ()

    def _ask_subject(self, event: Event) -> tuple[Answer | TenureError, tuple[Command, ...]]:
        try:
            self.state, answer, commands = self._subject.transition(self.state, event)
        except TenureError as refusal:
            return refusal.with_traceback(None), ()
        return answer, commands

    def _compare_views(self, moment: Event | str) -> None:
        found, expected = self.view, self._oracle.view()
        if COMPARED(found) != COMPARED(expected):
            names = changed_fields(expected, replace(found, lru_positions=expected.lru_positions))
            details = "; ".join(
                f"{name} is {getattr(found, name)}, expected {getattr(expected, name)}" for name in names.split(", ")
            )
            raise InvariantViolation(AGREEMENT, f"after {moment}: {details}")
        for request in self.view.leases:
            cost, expected_cost = self._subject.prefill_cost(self.state, request), self._oracle.prefill_cost(request)
            if cost != expected_cost:
                raise InvariantViolation(AGREEMENT, f"after {moment}: {cost}, expected {expected_cost}")
            finding = broken_cost(self.view, request, cost)
            if finding is not None:
                raise InvariantViolation("I35", finding)

    def keep(self) -> None:
        """Remember this moment."""
        self.kept.append(Kept(self.state, self.view, self._oracle.clone(), frozenset(self._mirror.visible)))

    def go_back(self, number: int) -> None:
        """Read a kept moment again, then the newest state, and go on from the kept one.

        Raises:
            InvariantViolation: a state does not read as it did.
        """
        kept = self.kept[number % len(self.kept)]
        for name, state, view in (("an old", kept.state, kept.view), ("the newest", self.state, self.view)):
            if self._subject.view(state) != view:
                changed = changed_fields(view, self._subject.view(state))
                raise InvariantViolation(AGREEMENT, f"{changed} of {name} state changed afterwards")
        self.state, self.view, self._oracle = kept.state, kept.view, kept.oracle.clone()
        self._mirror = KvMirror(kept.visible)


def walk(
    choices: Iterable[int],
    config: BlockConfig,
    subject: Subject[S],
    watch: Callable[[Observation], None] | None = None,
) -> Lockstep[S]:
    """The history that a row of numbers stands for, told to a machine and the oracle.

    One number in about thirty keeps the moment or goes back to a kept one instead of telling an event.
    """
    numbers = Choices(choices)
    lockstep = Lockstep(subject, config, watch)
    while not numbers.is_spent:
        jump = numbers.pick(range(60))
        if jump == 59 and lockstep.kept:
            lockstep.go_back(numbers.pick(range(len(lockstep.kept))))
        elif jump >= 57:
            lockstep.keep()
            del lockstep.kept[:-4]
        else:
            lockstep.tell(next_event(lockstep.view, numbers))
    return lockstep
