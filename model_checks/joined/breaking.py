"""A scheduler that keeps to no protocol: every call of the join in every state, right or wrong.

What the join may take is a move, as it is of any scheduler: leases opened and left empty, any prefix shared that it
lets be shared, tokens scheduled in any pieces, steps started, saved and given up, requests ended at any moment. What is
wrong wherever it is made must be refused with a typed error and change nothing; what may be either is tried once in
each state of the cache, and whatever it leads to must obey every rule of states.
"""

from collections.abc import Hashable, Iterator
from typing import Final, NamedTuple, TypeAlias

from tenure.core.arrays import integers
from tenure.core.blocks import values as blocks
from tenure.core.errors import TenureError
from tenure.core.joined.values import (
    BatchDropped,
    BatchSaveRequested,
    BatchStarted,
    CacheEvent,
    CacheView,
    TokensScheduled,
)
from tenure.core.rows import events
from tenure.core.rows.names import HIDDEN, Output
from tenure.model_checks.joined.model import JoinedModel, Left
from tenure.model_checks.model import Broken, Event
from tenure.model_checks.rows.breaking import NOBODY, strange_completions
from tenure.model_checks.rows.cores import CoreStep
from tenure.model_checks.rows.environment import IDLE, STARTED, Environment
from tenure.model_checks.rows.plans import POLICY, StepPlan, save_of
from tenure.model_checks.rows.stage import Call as MadeCall
from tenure.model_checks.rows.stage import State

STRANGER: Final = "stranger"
"""A request that no scope has."""


TRIED: Final = 4
"""In one state in this many the calls are made that may be taken, and those that are wrong in every state."""


CallOfAny: TypeAlias = CacheEvent | blocks.Event | events.RowEvent
"""A call of the join or of one of its machines."""


class Try(NamedTuple):
    """A call, and what tells it from others; `rule` is broken if it is taken, and None where it may be."""

    rule: str | None
    event: CallOfAny
    token: Hashable


class BreakingJoin(JoinedModel):
    """The joined cache under a scheduler that keeps to no protocol."""

    # --- Moves --------------------------------------------------------------------------------------------------

    def _requests_may(self, seen: CacheView, left: Left) -> Iterator[Event]:
        for place, name in enumerate(self._order):
            lease = seen.blocks.leases.get(name)
            if lease is None:
                if left.arrivals[place]:
                    yield "engine", "open", name
                continue
            length = len(self._requests[name].tokens)
            if not lease.copies:
                for shared in range(length // self._config.block_size + 1):
                    yield "engine", "share", name, shared
            elif left.steps:
                track = seen.tracks[name]
                rest = length - (track.ahead or track.computed)
                yield from (("engine", "schedule", name, tokens) for tokens in self._pieces(rest))
            yield "engine", "finish", name
            if left.preemptions:
                yield "engine", "preempt", name

    def _pieces(self, rest: int) -> tuple[int, ...]:
        """How many tokens a step may compute of so many."""
        return tuple(sorted({1, rest} if self._in_chunks else {rest})) if rest else ()

    def _answer(self, state: State, event: Event) -> CoreStep:
        kind = str(event[1])
        if kind not in ("open", "share"):
            return super()._answer(state, event)
        name = str(event[2])
        call = blocks.LeaseOpened(self._sequence(name))
        if kind == "open":
            return self.cores.call(state.core, [call], (kind, name))
        shared = int(event[3])
        request = blocks.AllocationRequested(name, len(self._requests[name].tokens), shared)
        return self.cores.call(state.core, [request], (kind, name, shared))

    def _called(self, env: Environment, event: Event, step: CoreStep) -> Environment:
        if event[1] == "share":
            return env
        return super()._called(env, ("engine", "arrive", *event[2:]) if event[1] == "open" else event, step)

    def _is_due(self, env: Environment, call: MadeCall, error: TenureError) -> bool:
        return call.event[0] == "engine" or super()._is_due(env, call, error)

    # --- Calls that are wrong, and calls that may be --------------------------------------------------------------

    def _judge_mistakes(self, state: State, marks: set[str], broken: list[Broken]) -> None:
        for each in self._tries(state):
            step = self.cores.tried(state.core, each.event, each.token)
            marks.update(step.marks)
            broken += step.broken
            if each.rule is not None and step.error is None:
                broken.append(Broken(each.rule, f"{each.event} was taken, and answered {step.answer}"))
        if not self.cores.is_untouched(state.core):
            broken.append(Broken("R15", "a call was refused, and changed something"))

    def _is_tried_at_length(self, state: State) -> bool:
        """Whether calls that may be taken, and those about nobody, are made here: chosen by the cache's content."""
        return self.cores.all[state.core].code[0] % TRIED == 0

    def _tries(self, state: State) -> Iterator[Try]:
        env, seen = state.env, self._seen(state)
        yield from self._steps_out_of_order(env)
        for name in self._order:
            yield from self._of_request(seen, name)
        for strange in strange_completions(seen.rows):
            yield Try(strange.rule, strange.event, ("strange", strange.token))
        if not self._is_tried_at_length(state):
            return
        yield from _of_the_machines()
        yield from self._of_request(seen, STRANGER)
        for made in _of_nobody():
            yield Try("R15", made, (type(made).__name__, "of nobody"))
        for holder in seen.tracks:
            yield from _on_a_lease(str(holder))
        for tried in (*_of_blocks(), events.ShutdownRequested(), events.ResetRequested()):
            yield Try(None, tried, (type(tried).__name__, "at any time"))

    def _steps_out_of_order(self, env: Environment) -> Iterator[Try]:
        if env.phase != IDLE or env.is_failed or env.is_down:
            yield Try("R22", BatchStarted(), "start")
        if env.phase != STARTED or env.plan is None:
            yield Try("R22", BatchDropped(), "drop")
            yield Try("R15", BatchSaveRequested(save_of(StepPlan()).outputs), "save")
        else:
            rows = len(env.plan.rows)
            bad = {
                "nothing": (),
                "too few rows": (Output(HIDDEN, (rows - 1, 1), "uint8"),),
                "without hidden": (Output("c", (rows, 1), "uint8"),),
            }
            for what, outputs in bad.items():
                rule = "R15" if what == "too few rows" else "X01"
                yield Try(rule, BatchSaveRequested(outputs), ("save", what, rows))
            yield Try("R15", BatchSaveRequested(save_of(env.plan).outputs, rows - 1), ("save", "padded", rows))
        if env.saved or env.phase != IDLE:
            yield Try("R15", events.PolicyRegistered(POLICY), "policy")

    def _of_request(self, seen: CacheView, name: str) -> Iterator[Try]:
        lease, track = seen.blocks.leases.get(name), seen.tracks.get(name)
        if lease is None or track is None:
            for wrong in (
                TokensScheduled(name, 1),
                blocks.AllocationRequested(name, 1),
                blocks.LeaseFinished(name),
                blocks.LeasePreempted(name),
                blocks.TokenGenerated(name),
                blocks.GrowthScheduled((name,)),
                blocks.StoreSourcesSnapshotted(name, (0,)),
            ):
                yield Try("R15", wrong, (type(wrong).__name__, name))
            return
        yield Try("R15", blocks.LeaseOpened(self._sequence(name)), ("open again", name))
        rest = min(lease.allocated_tokens, lease.length) - (track.ahead or track.computed)
        for tokens in (0, -1, rest + 1):
            yield Try("X02", TokensScheduled(name, tokens), ("schedule", name, tokens))
        if track.is_scheduled:
            yield from (
                Try("X02", TokensScheduled(name, each), ("schedule", name, each)) for each in range(1, rest + 1)
            )
        if lease.copies:
            for shared in (1, len(lease.copies), len(lease.copies) + 1):
                request = blocks.AllocationRequested(name, lease.length + 1, shared)
                yield Try("X01", request, ("share again", name, shared))


def _on_a_lease(name: str) -> Iterator[Try]:
    for tried in (
        blocks.StoreSourcesSnapshotted(name, (0,)),
        blocks.AllocationRequested(name, 1),
        blocks.TokenGenerated(name),
        blocks.GrowthScheduled((name,)),
    ):
        yield Try(None, tried, (type(tried).__name__, name, "held"))


def _of_the_machines() -> Iterator[Try]:
    """What the join tells its machines by itself, and calls about nobody and nothing."""
    for foreign in (
        blocks.TokensComputed("a", 0, 1),
        blocks.StepComputed(("a",)),
        blocks.DestinationRequested("a"),
        blocks.ExternalPrefixRequested("a", 0, ()),
        blocks.DestinationActivated("a", 1),
        blocks.DestinationCancelled(1),
        events.StepStarted(()),
        save_of(StepPlan()),
        events.StepDropped(integers([0])),
    ):
        yield Try("R15", foreign, type(foreign).__name__)
    for nothing in (
        blocks.DecodeReservationRequested(-1),
        blocks.DecodeReservationReleased(NOBODY),
        blocks.ReservedAllocationRequested("a", 1, NOBODY),
        blocks.DependencyAttached("a", NOBODY, 1),
        blocks.WritesAuthorized("a", ()),
    ):
        yield Try("R15", nothing, type(nothing).__name__)


def _of_nobody() -> Iterator[CacheEvent]:
    """Publications, consumers and cancellations of steps that there are not."""
    yield events.SavePublished(NOBODY)
    yield events.SaveCancelled(NOBODY)
    yield events.ConsumeRequested(NOBODY, ())
    yield events.StepDiscarded(NOBODY)
    yield events.StepConsumed(NOBODY)
    yield events.ConsumeAbandoned(NOBODY)
    yield events.RowsCopiedOut(NOBODY)


def _of_blocks() -> Iterator[CacheEvent]:
    yield blocks.DecodeReservationRequested(1)
    yield blocks.SnapshotDiscarded(NOBODY)
    yield blocks.DependencySatisfied(1)
