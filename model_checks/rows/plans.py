"""What an engine does, as plain values: the steps it starts, the tokens they compute, the names they emit.

A *program* says which steps may come next. A scripted one has a list of them; a free one has all that its bounds allow.
Tokens are nodes of a tree: a node is a token with everything before it, so two requests share exactly the nodes of
their common prefix.
"""

from collections.abc import Sequence
from functools import cache
from typing import Final, NamedTuple, Protocol, TypeAlias

from tenure.core.arrays import integers
from tenure.core.config import RowPolicy
from tenure.core.rows.events import (
    Aborted,
    ContentIdentity,
    Extended,
    Finished,
    LifeCycle,
    Resumed,
    SaveRequested,
    Started,
    StepStarted,
    WriteLayout,
)
from tenure.core.rows.names import HIDDEN, Output

NOTE: Final = "note"
"""The leftover that scopes emit."""
AT_ONCE: Final = "at once"
"""As a step's only consumer: it is discarded before the engine's next call."""
POLICY: Final = RowPolicy(
    immediate=frozenset({"m"}), deferred=frozenset({"c", "d"}), leftovers=frozenset({NOTE}), infer=False
)
"""`HIDDEN` and `m` are immediate, `c` and `d` deferred."""

EngineState: TypeAlias = tuple[object, ...]


class Change(NamedTuple):
    """What a start says of one request.

    Attributes:
        kind: "start", "resume", "go on", "finish" or "abort".
        scheduled: tokens of it that the step computes.
        hit: the blocks of its hit.
        nodes: per row of the hit the node that it must hold; empty where the hit is a lie (R14).
        is_named: whether the hit says what its blocks should hold.
    """

    kind: str
    request: str
    scheduled: int = 0
    hit: tuple[int, ...] = ()
    nodes: tuple[int, ...] = ()
    is_named: bool = False


class Token(NamedTuple):
    """One token that a step computes, and where its rows go."""

    request: str
    slot: int
    node: int


class StepPlan(NamedTuple):
    """One step: a scheduler output and its forward pass.

    Attributes:
        rows: what it computes, in batch order.
        emits: the names it emits.
        computes: blocks that it completes, with the node of the last token in each (given at the start).
        consumers: what may be done with the step: "discard", or the requests that it is materialized for; or `AT_ONCE`.
        is_dropped: the engine gives the step up instead of saving it; None: it may do either.
    """

    changes: tuple[Change, ...] = ()
    rows: tuple[Token, ...] = ()
    emits: tuple[str, ...] = (HIDDEN,)
    computes: tuple[tuple[int, int], ...] = ()
    consumers: tuple[str | tuple[str, ...], ...] = ()
    is_dropped: bool | None = False

    @property
    def batch(self) -> dict[str, int]:
        """Tokens of each request, in batch order."""
        counts: dict[str, int] = {}
        for row in self.rows:
            counts[row.request] = counts.get(row.request, 0) + 1
        return counts

    @property
    def story(self) -> str:
        """The start in a few words."""
        said = [_said(change) for change in self.changes]
        return "; ".join(said) or "nothing"


def _said(change: Change) -> str:
    words = f"{change.request} {change.kind}"
    if change.scheduled:
        words += f", {change.scheduled} tokens"
    return words + (f", hit on blocks {list(change.hit)}" if change.hit else "")


class Option(NamedTuple):
    """A step that may come next, and where the engine stands when it was started."""

    plan: StepPlan
    after: EngineState


class Program(Protocol):
    """What an engine may do."""

    def first(self) -> EngineState:
        """Where it begins."""
        ...

    def options(self, state: EngineState) -> tuple[Option, ...]:
        """The steps that may be started next, in a fixed order; none when it is done."""
        ...

    def forget(self, state: EngineState) -> EngineState:
        """Where it stands after a reset: no request is live."""
        ...

    def lose(self, state: EngineState, plan: StepPlan) -> EngineState:
        """Where it stands when a step was given up that it had started last."""
        ...


class Script:
    """A program whose steps are fixed.

    After a reset it goes on with the steps from `resume` on, if that is given; else it is done.
    """

    def __init__(self, steps: Sequence[StepPlan], resume: int | None = None) -> None:
        """Take the steps in order."""
        self._steps = tuple(steps)
        self._resume = len(self._steps) if resume is None else resume

    def first(self) -> EngineState:
        """At the first step."""
        return (0,)

    def options(self, state: EngineState) -> tuple[Option, ...]:
        """The next step."""
        (place,) = state
        assert isinstance(place, int)
        return (Option(self._steps[place], (place + 1,)),) if place < len(self._steps) else ()

    def forget(self, state: EngineState) -> EngineState:
        """At the step that follows a reset."""
        (place,) = state
        assert isinstance(place, int)
        return (max(place, self._resume),)

    def lose(self, state: EngineState, plan: StepPlan) -> EngineState:
        """It goes on as if nothing had been."""
        del plan
        return state


# --- Events of the machine --------------------------------------------------------------------------------------


def identity(node: int) -> ContentIdentity:
    """What a block holds whose last token is this node."""
    return ContentIdentity(node)


@cache
def start_of(plan: StepPlan, block_size: int) -> StepStarted:
    """The start of a step."""
    changes: list[LifeCycle] = []
    computes = tuple((block, identity(node)) for block, node in plan.computes)
    for change in plan.changes:
        mine = computes if change.scheduled else ()
        tokens = len(change.hit) * block_size
        ends = change.nodes[block_size - 1 :: block_size]
        match change.kind:
            case "start":
                expects = tuple(identity(node) for node in ends) if change.is_named else ()
                blocks = (change.hit,) if change.hit else ()
                changes.append(Started(change.request, change.scheduled, tokens, blocks, expects, mine))
            case "resume":
                changes.append(Resumed(change.request, change.scheduled, tokens, (change.hit,), (), mine))
            case "go on":
                changes.append(Extended((change.request,), integers([change.scheduled]), mine))
            case "finish":
                changes.append(Finished(change.request))
            case _:
                changes.append(Aborted(change.request))
        computes = () if mine else computes
    return StepStarted(tuple(changes))


@cache
def save_of(plan: StepPlan) -> SaveRequested:
    """The save of a step; a row has one byte."""
    batch = plan.batch
    layout = WriteLayout(tuple(batch), integers([*batch.values()]), integers([row.slot for row in plan.rows]))
    shape = (len(plan.rows), 1)
    outputs = tuple(Output(name) if name == NOTE else Output(name, shape, "uint8") for name in plan.emits)
    return SaveRequested(layout, outputs)
