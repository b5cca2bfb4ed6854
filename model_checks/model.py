"""What the explorer asks of a model, and what a scope says of itself.

A model is a transition system: initial states, the events that may happen in a state, what each leads to. The explorer
knows nothing else of it, so that anybody can check a machine of their own. Events are tuples of plain values, so that
a counterexample is JSON and nothing else. What was seen on the way is told in *marks*, plain strings of a fixed form
(`rule R05`, `event SavePublished`, `command FreezeRows`, `error PageExhaustedError`, `goal NAME`): a claim that
something is proved is worth nothing where nothing happened.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias, TypeVar

S = TypeVar("S")

Event: TypeAlias = tuple[str | int, ...]
"""What may happen: the actor, the kind, then whatever tells it from others. `("device", "run", 3)`."""
Marks: TypeAlias = frozenset[str]
NOTHING: Marks = frozenset()


class Broken(NamedTuple):
    """A rule that is broken, and what was found where, value first."""

    rule: str
    found: str


class Taken(NamedTuple):
    """Where an event led.

    Attributes:
        state: the next state; None if something so wrong was found that there is none.
        marks: what was seen on the way.
        broken: the rules that the transition broke.
    """

    state: object
    marks: Marks = NOTHING
    broken: tuple[Broken, ...] = ()


class Judged(NamedTuple):
    """What the rules say of one state: marks of the rules that had something to judge, and those broken."""

    marks: Marks = NOTHING
    broken: tuple[Broken, ...] = ()


class Owed(NamedTuple):
    """Something that must come true sooner or later (progress), and the rule that says so.

    Two states owe the same if they are equal here: what is owed all the way around a fair loop is never paid.
    """

    rule: str
    what: str


class Model(Protocol[S]):
    """A transition system. All methods are deterministic; states are immutable for whoever holds them."""

    def initial(self) -> Iterable[S]:
        """Where it may begin, in a fixed order."""
        ...

    def events(self, state: S) -> Sequence[Event]:
        """What may happen next, in a fixed order; nothing twice."""
        ...

    def take(self, state: S, event: Event) -> Taken:
        """What an event of `events(state)` leads to."""
        ...

    def encode(self, state: S) -> bytes:
        """The canonical form: equal for two states exactly if nothing that may happen tells them apart."""
        ...

    def judge(self, state: S) -> Judged:
        """What the rules say of a state; asked once for each distinct one."""
        ...

    def is_quiescent(self, state: S) -> bool:
        """Whether it is right that nothing more happens here."""
        ...

    def owed(self, state: S) -> frozenset[Owed]:
        """What must sooner or later come true; empty where all is done."""
        ...

    def fairness(self, state: S, event: Event) -> str | None:
        """The actor that is bound to act: one whose event stays possible does it some time. None: it need not."""
        ...

    def describe(self, event: Event) -> str:
        """One event as a line of a story."""
        ...

    def pack(self, state: S) -> object:
        """The state as values that another process can be sent."""
        ...

    def unpack(self, packed: object) -> S:
        """A state that another process packed."""
        ...


ScopeKind: TypeAlias = Literal["free", "scenario"]
ScopeSet: TypeAlias = Literal["smoke", "ci", "deep"]


@dataclass(frozen=True, slots=True)
class Scope:
    """A model with bounds: what one search covers, and what it must have seen to prove anything.

    Attributes:
        name: `blocks/two-requests`; the part before the slash is the model's name.
        kind: `free`: the engine may do anything legal within the bounds; `scenario`: its calls are fixed.
        sets: the named sets it belongs to.
        covers: the bounds in words: blocks, slots per block, requests, names, pages, steps, failures.
        expects: marks that must be seen: rules exercised, kinds of events and commands, goals.
        make: the model, built anew.
        progress: whether progress is checked (weak fairness, on the whole graph).
        source: the case, defect or counterexample it comes from.
        assumes: what it takes for granted of the environment.
        heavy: a guess of its distinct states, so that long scopes are begun first.
    """

    name: str
    kind: ScopeKind
    sets: frozenset[ScopeSet]
    covers: Mapping[str, int | str]
    expects: Marks
    make: Callable[[], Model[Any]] = field(repr=False)
    progress: bool = False
    source: str = ""
    assumes: str = ""
    heavy: int = 1000

    @property
    def model(self) -> str:
        """The model's name."""
        return self.name.split("/", 1)[0]
