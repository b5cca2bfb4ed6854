"""The machine, its engine and its builders over a device of which only the answers are seen, as a graph.

An edge is something that the machine is told in one state of it, its engine and what is asked: also a call that waits
or is refused, and a wait that takes too long. Orders in which a device carries operations out are left to the devices.
"""

from collections import deque
from collections.abc import Hashable, Iterator
from typing import Any, NamedTuple, TypeAlias

from tenure.core.config import RowConfig
from tenure.core.errors import ShutDownError, WriteFailedError
from tenure.core.rows.answers import Ignored, ResetAnswered, Waiting
from tenure.core.rows.events import (
    ConsumeAbandoned,
    ConsumeRequested,
    GatherCompleted,
    GatherFailed,
    RowEvent,
    RowsCopiedOut,
    SaveCancelled,
    SavePublished,
    StepConsumed,
    StepDiscarded,
    WaitTimedOut,
    WriteFailed,
)
from tenure.core.rows.names import HIDDEN
from tenure.model_checks.model import Event
from tenure.model_checks.rows.breaking import BreakingModel
from tenure.model_checks.rows.cells import Cells
from tenure.model_checks.rows.cores import CoreStep
from tenure.model_checks.rows.engine_calls import RowsCalls
from tenure.model_checks.rows.environment import (
    COPIED,
    RESERVED,
    RESTING,
    STARTED,
    WAITING,
    Bounds,
    Environment,
)
from tenure.model_checks.rows.ghost import Ghost
from tenure.model_checks.rows.plans import NOTE, POLICY, Program
from tenure.model_checks.rows.stage import Call, State, saved_of, with_saved, without_saved
from tenure.model_checks.traces.answering import Asked, asked_of, without_ended
from tenure.model_checks.traces.machines import PlainCores

NOBODY: Ghost = Ghost((), Cells())
NAMES = (HIDDEN, "m", "c", "d", NOTE)


class Node(NamedTuple):
    """The machine by number, its engine and builders, and what its commands still answer, in a fixed order."""

    core: int
    env: Environment
    asked: tuple[Asked, ...]


class Edge(NamedTuple):
    """What the machine is told in a node, one after the other, and where that leads."""

    told: tuple[RowEvent, ...]
    target: Node


Numbered: TypeAlias = tuple[tuple[RowEvent, ...], int]
"""What is told, and the number of the node that it leads to."""


class AnswersModel(RowsCalls):
    """The row machine, told everything that an engine, its builders and a device may tell it."""

    def __init__(self, config: RowConfig, program: Program, bounds: Bounds, *, tells_copied: bool = False) -> None:
        """Nothing happened."""
        cores = PlainCores(config, POLICY)
        super().__init__(config, program, bounds=bounds, names=NAMES, cores=cores, tells_copied=tells_copied)
        self._nothing = self._truth.nothing(program.first(), bounds)

    def first(self) -> Node:
        """The policy is registered, and nothing else happened."""
        return Node(0, self._plain(self._nothing), ())

    def _plain(self, env: Environment) -> Environment:
        """What rows hold is no matter of the machine's."""
        empty, saved = self._nothing, tuple(each._replace(expected=()) for each in env.saved)
        return self._one(env._replace(raw=empty.raw, computed=empty.computed, named=empty.named, saved=saved))

    def edges(self, node: Node) -> Iterator[Edge]:
        """What may be told, each once, in a fixed order."""
        state = State(node.core, NOBODY, node.env)
        for call in self._known_of(state).calls:
            yield from self._call(node, state, call)
        for event in self._builders(node.env):
            yield self._builder(node, event)
        for asked in dict.fromkeys(node.asked):
            if asked.next is not None:
                yield self._answered(node, asked, asked.next)
            if asked.failed is not None and (bounds := self._after_failure(node, asked)) is not None:
                env = self._one(node.env._replace(bounds=bounds))
                yield self._answered(node._replace(env=env), asked, asked.failed, is_end=True)

    # --- Calls ----------------------------------------------------------------------------------------------------

    def _call(self, node: Node, state: State, call: Call) -> Iterator[Edge]:
        told: list[Any] = []
        self.cores.told = told
        self._answer(state, call.event)
        self.cores.told = None
        step = call.step
        if step.error is not None:
            yield Edge((told[0],), node)
            return
        is_taken = not isinstance(step.answer, Waiting | ResetAnswered) or step.answer == ResetAnswered(done=True)
        env = self._called(node.env, call.event, step) if is_taken else node.env
        yield Edge((told[0],), self._node(node, step, env, node.asked))
        if isinstance(step.answer, Waiting) and step.core == node.core:
            yield Edge((WaitTimedOut(step.answer.waited_for),), node)

    def _builder(self, node: Node, event: Event) -> Edge:
        env, saved = node.env, saved_of(node.env, event)
        told: RowEvent
        match event[1]:
            case "copied its page":
                told, env = RowsCopiedOut(saved.step), with_saved(env, saved._replace(builder=COPIED, page=-1))
            case "return":
                told, env = StepConsumed(saved.step), without_saved(env, saved)
            case _:
                told = ConsumeAbandoned(saved.step)
                env = env._replace(bounds=env.bounds._replace(abandons=env.bounds.abandons - 1))
                resting = RESTING if saved.builder == COPIED or saved.page < 0 else WAITING
                rest = saved._replace(builder=resting, asked=(), page=-1, hits=())
                env = without_saved(env, saved) if saved.is_fenced else with_saved(env, rest)
        return Edge((told,), self._node(node, self.cores.step(node.core, told), env, node.asked))

    # --- Answers --------------------------------------------------------------------------------------------------

    @staticmethod
    def _after_failure(node: Node, asked: Asked) -> Bounds | None:
        """What may still happen when it failed; None if it may not.

        Of a read of which a gather runs only that may fail, so that the kit knows what has to go wrong. A save may also
        be given up by the engine.
        """
        bounds = node.env.bounds
        if asked.kind == "FreezeRows" and bounds.abandons:
            return bounds._replace(abandons=bounds.abandons - 1)
        runs = any(each.kind == "GatherRows" and each.read == asked.read for each in node.asked)
        if not bounds.failures or (asked.kind == "PreserveRows" and runs):
            return None
        return bounds._replace(failures=bounds.failures - 1)

    def _answered(self, node: Node, asked: Asked, answer: RowEvent, *, is_end: bool = False) -> Edge:
        rest = list(node.asked)
        rest.remove(asked)
        left = None if is_end else asked.told()
        if left is not None:
            rest.append(left)
        if isinstance(answer, GatherCompleted | GatherFailed):
            rest = [*without_ended(rest, asked.read)]
        if isinstance(answer, SavePublished | SaveCancelled):
            return self._save_answered(node, answer, rest)
        step, env = self.cores.step(node.core, answer), node.env
        if isinstance(answer, WriteFailed) and not isinstance(step.answer, Ignored):
            env = env._replace(is_failed=True)
        return Edge((answer,), self._node(node, step, env, rest))

    def _save_answered(self, node: Node, answer: SavePublished | SaveCancelled, rest: list[Asked]) -> Edge:
        """The calling thread goes on: what cannot be published any more is cancelled."""
        told: tuple[RowEvent, ...] = (answer,)
        step, env = self.cores.step(node.core, answer), node.env
        if isinstance(step.error, WriteFailedError | ShutDownError):
            answer = SaveCancelled(answer.step)
            told, step = (*told, answer), self.cores.step(node.core, answer)
        is_saved = isinstance(answer, SavePublished)
        env = self._truth.published(env) if is_saved else env._replace(phase=STARTED)
        return Edge(told, self._node(node, step, env, rest))

    def _node(self, node: Node, step: CoreStep, env: Environment, asked: "list[Asked] | tuple[Asked, ...]") -> Node:
        found = [*asked, *(each for each in map(asked_of, step.commands) if each is not None)]
        if env.phase != RESERVED:
            # A reset took the reservation: the calling thread finds out when its freeze has ended, and tells nothing.
            found = [each for each in found if each.kind != "FreezeRows"]
        return Node(step.core, self._plain(env), tuple(sorted(found, key=repr)))


class StrayingModel(AnswersModel, BreakingModel):
    """Likewise, and told in every state what nobody who keeps to the contract tells."""

    def edges(self, node: Node) -> Iterator[Edge]:
        """What may be told, then what may not, which leads nowhere."""
        yield from super().edges(node)
        for mistake in self._mistakes(State(node.core, NOBODY, node.env)):
            yield Edge((mistake.event,), node)
        saved = {each.step for each in node.env.saved}
        for gone in range(1, self.cores.all[node.core].state.tables.next_step):
            if gone not in saved and gone != node.env.step:
                yield Edge((ConsumeRequested(gone, ()),), node)
                yield Edge((StepDiscarded(gone),), node)


class TraceGraph(NamedTuple):
    """All nodes, numbered in the order in which they are met, and per node its edges."""

    edges: list[list[Numbered]]

    @property
    def num_edges(self) -> int:
        """Of all nodes."""
        return sum(map(len, self.edges))


def graph_of(model: AnswersModel, nodes_max: int = 200_000) -> TraceGraph:
    """Everything that can be reached, breadth first.

    Raises:
        ValueError: there are more nodes than that.
    """
    first = model.first()
    numbers: dict[Hashable, int] = {first: 0}
    waiting = deque([first])
    found: list[list[Numbered]] = []
    while waiting:
        edges: list[Numbered] = []
        for told, target in model.edges(waiting.popleft()):
            if target not in numbers:
                numbers[target] = len(numbers)
                waiting.append(target)
            number = numbers[target]
            edges.append((told, number))
        found.append(edges)
        if len(numbers) > nodes_max:
            msg = f"more than {nodes_max} nodes can be reached"
            raise ValueError(msg)
    return TraceGraph(found)
