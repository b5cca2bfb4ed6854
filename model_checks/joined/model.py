"""The joined cache under a small scheduler: leases, shared prefixes and rows in one model.

The scheduler opens leases, shares what may be shared, puts tokens into steps, finishes and preempts, in any order. What
a step computes, and what its hits promise, follows from the tokens of the requests and from where their leases say
that these lie: so what is handed out is held against each request's own chain.
"""

from collections.abc import Iterator
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from tenure.core.blocks.hashing import IdentityKeys
from tenure.core.blocks.sequence import BlockIdentity, RequestSequence, new_sequence
from tenure.core.blocks.values import AllocationRequested, LeaseFinished, LeaseOpened, LeasePreempted
from tenure.core.cache import servable_prefix_blocks
from tenure.core.config import CacheConfig
from tenure.core.errors import RequestInStepError, RowsOwedError, TenureError
from tenure.core.joined.values import (
    BatchDropped,
    BatchSaveRequested,
    BatchStarted,
    CacheView,
    TokensScheduled,
)
from tenure.core.rows.answers import StepBegan, Waiting
from tenure.core.rows.names import HIDDEN
from tenure.model_checks.joined.cores import Call, JoinedCores
from tenure.model_checks.model import Broken, Event, Taken
from tenure.model_checks.rows.cores import CoreStep
from tenure.model_checks.rows.environment import IDLE, STARTED, Bounds, Environment
from tenure.model_checks.rows.model import RowsModel
from tenure.model_checks.rows.plans import AT_ONCE, POLICY, Change, EngineState, Option, StepPlan, Token, save_of
from tenure.model_checks.rows.stage import Call as MadeCall
from tenure.model_checks.rows.stage import State

Kept: TypeAlias = Literal["all", "hits", "none"]
"""Which steps builders consume: all, those with a hit, or none."""


ASKS_FOR_CAPACITY: Final = ("arrive", "share", "allocate", "reserve")
"""Calls that wait while there are no blocks."""


class Request(NamedTuple):
    """A request of a scope.

    Attributes:
        tokens: its prompt.
        nodes: per token the node of the token tree; requests with other isolation groups have other nodes.
        group: its isolation group.
        hashes: per whole block a hash that is given instead of being made of the tokens.
        adapter: what its rows are computed with besides the model; requests with others have other nodes.
        generates: the token that it generates each time, where it generates any; `nodes` are as many as tokens then.
    """

    tokens: tuple[int, ...]
    nodes: tuple[int, ...]
    group: str | None = None
    hashes: tuple[int, ...] | None = None
    adapter: str | None = None
    generates: int | None = None


class Left(NamedTuple):
    """What the scheduler may still do.

    Attributes:
        steps: steps with tokens.
        arrivals: of each request.
        preemptions: of any.
        drops: steps given up.
        others: tokens generated, reservations and snapshots.
    """

    steps: int
    arrivals: tuple[int, ...]
    preemptions: int = 0
    drops: int = 0
    others: int = 0


def left_of(engine: EngineState) -> Left:
    """The same, as an environment keeps it."""
    return Left(*engine)  # type: ignore[arg-type]


class _Scheduler:
    """Where a scheduler stands is told by the cache; a program only counts what is left."""

    def __init__(self, left: Left) -> None:
        self._left = left

    def first(self) -> EngineState:
        return self._left

    def options(self, state: EngineState) -> tuple[Option, ...]:
        del state
        return ()

    def forget(self, state: EngineState) -> EngineState:
        return state

    def lose(self, state: EngineState, plan: StepPlan) -> EngineState:
        del plan
        left = left_of(state)
        return left._replace(steps=left.steps + 1, drops=left.drops - 1)


class JoinedModel(RowsModel):
    """The joined cache in an environment."""

    cores: JoinedCores

    def __init__(
        self,
        config: CacheConfig,
        requests: dict[str, Request],
        left: Left,
        *,
        emits: tuple[str, ...] = (HIDDEN,),
        bounds: Bounds = Bounds(),  # noqa: B008 - a constant
        tells_copied: bool = False,
        discards: bool = True,
        in_chunks: bool = False,
        in_turn: bool = False,
        keeps: Kept = "all",
        acts: frozenset[str] = frozenset(),
        copying: bool = True,
    ) -> None:
        """Put a cache under a scheduler.

        Args:
            config: the cache's.
            requests: who may arrive.
            left: how often what may happen.
            emits: the names of every step.
            bounds: faults, resets and so on.
            tells_copied: builders may let the page go before they return.
            discards: steps may be discarded, not only materialized.
            in_chunks: a step may compute one token of a request, not only all that are left; also ahead of the step
                that is started.
            in_turn: requests arrive and are scheduled in one order, and end in the opposite one, behind all of that.
            keeps: the steps that builders consume; others are discarded before the scheduler's next call.
            acts: further calls that the scheduler makes, where the model knows any.
            copying: as in `Cores`.
        """
        self._acts = acts
        self._keeps = keeps
        self._in_chunks, self._in_turn = in_chunks, in_turn
        self._discards = discards
        self._requests, self._emits = requests, emits
        self._order = tuple(requests)
        super().__init__(
            config.rows,
            _Scheduler(left),
            bounds=bounds,
            cores=JoinedCores(config, POLICY, copying=copying),
            tells_copied=tells_copied,
            is_honest=True,
        )

    def _seen(self, state: State) -> CacheView:
        return self.cores.cache(state.core).seen

    # --- The scheduler ----------------------------------------------------------------------------------------

    def _engine_calls(self, state: State) -> Iterator[Event]:
        env, seen = state.env, self._seen(state)
        left = left_of(env.engine)
        calls = self._requests_may(seen, left)
        yield from _first_of(calls) if self._in_turn else calls
        if env.phase == IDLE and (seen.batch or seen.ended):
            yield "engine", "start", ", ".join(map(str, (each.request for each in seen.batch)))
        if env.phase == STARTED:
            yield "engine", "save", env.step
            if left.drops:
                yield "engine", "drop", env.step
        if env.is_failed or env.bounds.resets:
            yield ("engine", "reset")
        if env.bounds.shutdowns:
            yield ("engine", "shutdown")

    def _requests_may(self, seen: CacheView, left: Left) -> Iterator[Event]:
        scheduled = {each.request for each in seen.batch}
        for place, name in enumerate(self._order):
            lease, track = seen.blocks.leases.get(name), seen.tracks.get(name)
            if lease is None or track is None:
                if left.arrivals[place]:
                    yield "engine", "arrive", name
                continue
            if not lease.copies:
                yield "engine", "allocate", name
                yield "engine", "finish", name
                continue
            done = track.ahead or track.computed
            rest = min(lease.allocated_tokens, lease.length) - done
            if left.steps and name not in scheduled and rest > 0:
                yield "engine", "schedule", name, rest
                if self._in_chunks and rest > 1:
                    yield "engine", "schedule", name, 1
            yield "engine", "finish", name
            if left.preemptions:
                yield "engine", "preempt", name

    def _answer(self, state: State, event: Event) -> CoreStep:
        """What the cache says to a call."""
        kind, core = str(event[1]), state.core
        more = list(event[2:])
        name = str(more[0]) if more else ""
        calls: list[Call]
        match kind:
            case "arrive":
                calls = [LeaseOpened(self._sequence(name)), lambda cache: self._allocation(cache, name)]
            case "allocate":
                calls = [lambda cache: self._allocation(cache, name)]
            case "schedule":
                tokens = int(more[1])
                calls = [TokensScheduled(name, tokens)]
                return self.cores.call(core, calls, (kind, name, tokens))
            case "finish":
                calls = [LeaseFinished(name)]
            case "preempt":
                calls = [LeasePreempted(name)]
            case "start":
                calls = [BatchStarted()]
            case "save":
                assert state.env.plan is not None
                calls = [BatchSaveRequested(save_of(state.env.plan).outputs)]
            case "drop":
                calls = [BatchDropped()]
            case _:
                return super()._answer(state, event)
        return self.cores.call(core, calls, (kind, name))

    def _sequence(self, name: str) -> RequestSequence:
        request = self._requests[name]
        size = self._config.block_size
        identities = None
        if request.hashes is not None:
            identities = [BlockIdentity(each, None) for each in request.hashes]
            identities += [BlockIdentity(None, None)] * (len(request.tokens) % size > 0)
        keys = IdentityKeys(isolation_group=request.group, adapter=request.adapter)
        return new_sequence(name, list(request.tokens), 4, size, keys=keys, identities=identities)

    def _allocation(self, cache: Any, name: str) -> AllocationRequested:
        return AllocationRequested(name, len(self._requests[name].tokens), servable_prefix_blocks(cache, name))

    def _called(self, env: Environment, event: Event, step: CoreStep) -> Environment:
        kind = event[1]
        left = left_of(env.engine)
        if kind == "arrive":
            place = self._order.index(str(event[2]))
            arrivals = tuple(count - (each == place) for each, count in enumerate(left.arrivals))
            return env._replace(engine=left._replace(arrivals=arrivals))
        if kind == "preempt":
            return env._replace(engine=left._replace(preemptions=left.preemptions - 1))
        if kind in ("allocate", "schedule", "finish"):
            return env
        if kind == "start":
            assert isinstance(step.answer, StepBegan)
            if step.answer.step is None:
                return env
            plan = self._plan(self.cores.cache(step.core).seen, step.answer)
            engine = left._replace(steps=left.steps - 1)
            return env._replace(engine=engine, plan=plan, phase=STARTED, step=step.answer.step)
        return super()._called(env, event, step)

    def _plan(self, seen: CacheView, answer: StepBegan) -> StepPlan:
        """What a started step computes, by the tokens of its requests and the blocks of their leases."""
        hits = dict(answer.hits)
        changes: list[Change] = []
        rows: list[Token] = []
        computes: list[tuple[int, int]] = []
        size = self._config.block_size
        for each in seen.started:
            name, nodes = str(each.request), self._requests[str(each.request)].nodes
            blocks = seen.blocks.leases[name].copies
            hit = hits.get(name, 0)
            changes.append(Change("start", name, each.after - each.before, blocks[: hit // size], nodes[:hit]))
            rows += [
                Token(name, blocks[at // size] * size + at % size, nodes[at]) for at in range(each.before, each.after)
            ]
            whole = range(each.before // size, each.after // size)
            computes += [(blocks[place], nodes[(place + 1) * size - 1]) for place in whole]
        batch = tuple(dict.fromkeys(row.request for row in rows))
        consumers: tuple[str | tuple[str, ...], ...] = (batch, "discard") if self._discards else (batch,)
        if self._keeps == "none" or (self._keeps == "hits" and not hits):
            consumers = (AT_ONCE,)
        return StepPlan(tuple(changes), tuple(rows), self._emits, tuple(computes), consumers)

    # --- What it leads to -------------------------------------------------------------------------------------

    def take(self, state: State, event: Event) -> Taken:
        """As the row machine's; a hit that was granted must be readable when its step is saved (X01, X05)."""
        taken = super().take(state, event)
        after = taken.state
        if not isinstance(after, State) or len(after.env.saved) <= len(state.env.saved):
            return taken
        saved = after.env.saved[-1]
        broken = [
            Broken("X01", f"{request} was granted a hit without its rows at step {saved.step}")
            for (request, _), rows in saved.expected
            if rows is None
        ]
        broken += [Broken("X05", each) for each in self._truth.strangers(saved)]
        return taken._replace(broken=(*taken.broken, *broken)) if broken else taken

    def _is_due(self, env: Environment, call: MadeCall, error: TenureError) -> bool:
        return isinstance(error, RowsOwedError | RequestInStepError) or super()._is_due(env, call, error)

    def _judge_refusal(self, state: State, call: MadeCall, marks: set[str], broken: list[Broken]) -> None:
        if call.event[1] in ASKS_FOR_CAPACITY and isinstance(call.step.answer, Waiting):
            marks.update(call.step.marks | {"goal no_capacity"})
            broken += call.step.broken
            return
        super()._judge_refusal(state, call, marks, broken)

    def is_quiescent(self, state: State) -> bool:
        """Nobody is left to come or to go, and the device is idle."""
        left = left_of(state.env.engine)
        seen = self._seen(state)
        if not state.env.is_down and (any(left.arrivals) or seen.blocks.leases or seen.ended):
            return False
        return super().is_quiescent(state)

    def _starts(self, state: State) -> Iterator[Event]:
        """Between steps."""
        seen = self._seen(state)
        if seen.batch or seen.ended:
            yield "engine", "start", ""

    def changes(self, before: State, after: State) -> list[str]:
        """What an event changed, for a story: leases and visible hashes before rows."""
        old, new = self._seen(before), self._seen(after)
        found = [
            f"{name} holds blocks {list(new.blocks.leases[name].copies) if name in new.blocks.leases else 'no more'}"
            for name in self._order
            if _copies(old, name) != _copies(new, name)
        ]
        visible = sorted({*new.blocks.index}.symmetric_difference(old.blocks.index))
        found += [f"hash {each} is {'visible' if each in new.blocks.index else 'gone'}" for each in visible]
        return found + super().changes(before, after)

    def describe(self, event: Event) -> str:
        """One event as a line of a story."""
        if event[0] == "engine" and event[1] == "start":
            return f"engine starts the step of {event[2] or 'nobody: ends are told'}"
        return super().describe(event)


def _first_of(calls: Iterator[Event]) -> Iterator[Event]:
    """The first kind of call for the first request; ends of requests come behind all others, the last one first.

    Whoever came first may owe rows to those behind.
    """
    found = [*calls]
    others = [call for call in found if call[1] != "finish"]
    yield from (call for call in others if call[:3] == others[0][:3]) if others else found[-1:]


def _copies(seen: CacheView, name: str) -> tuple[int, ...] | None:
    lease = seen.blocks.leases.get(name)
    return None if lease is None else tuple(lease.copies)
