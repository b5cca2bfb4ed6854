"""An engine that breaks the protocol: in every state it makes every call that is wrong there.

Each must be refused with a typed error, and change nothing; calls that are merely unexpected (a reset, a shutdown, a
step given up, a request aborted in the middle) are moves of the model as they are of any engine. In states that differ
only around the machine the same mistake is made once.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Final, NamedTuple

from tenure.core.arrays import integers
from tenure.core.rows.events import (
    ConsumeAbandoned,
    ConsumeRequested,
    CopyBegan,
    CopyCompleted,
    Extended,
    Finished,
    GatherBegan,
    GatherCompleted,
    LifeCycle,
    PolicyRegistered,
    Replaced,
    Resumed,
    RowEvent,
    RowsCopiedOut,
    SaveCancelled,
    SavePublished,
    SaveRequested,
    ScatterCompleted,
    Started,
    StepConsumed,
    StepDiscarded,
    StepDropped,
    StepStarted,
    WriteFailed,
)
from tenure.core.rows.lifecycles import READ_LATE, READ_MOVES, WRITE_MOVES
from tenure.core.rows.names import Output
from tenure.core.rows.view import RowView
from tenure.model_checks.model import Broken, Event
from tenure.model_checks.rows.cores import CoreStep
from tenure.model_checks.rows.environment import COPIED, COPYING, IDLE, RESTING, STARTED, WAITING, Environment
from tenure.model_checks.rows.model import RowsModel
from tenure.model_checks.rows.plans import POLICY, StepPlan, save_of
from tenure.model_checks.rows.stage import State

NOBODY: Final = 99
"""A number that no step, write or read of a scope has."""


class Mistake(NamedTuple):
    """A call that must be refused, the rule that says so, and what tells it from others."""

    rule: str
    event: RowEvent
    token: object


class BreakingModel(RowsModel):
    """The row machine under an engine that keeps to no protocol."""

    def _callable(self, state: State) -> Iterator[Event]:
        """As any engine's; this one resets what it shut down."""
        yield from super()._callable(state)
        if state.env.is_down:
            yield ("engine", "reset")

    def _called(self, env: Environment, event: Event, step: CoreStep) -> Environment:
        after = super()._called(env, event, step)
        if event[1] != "reset" or not env.is_down:
            return after
        return after._replace(is_down=True, bounds=env.bounds)

    def _judge_mistakes(self, state: State, marks: set[str], broken: list[Broken]) -> None:
        for mistake in self._mistakes(state):
            step = self.cores.step(state.core, mistake.event, ("mistake", mistake.token))
            marks.update(step.marks)
            broken += step.broken
            if step.error is None:
                broken.append(Broken(mistake.rule, f"{mistake.event} was taken, and answered {step.answer}"))

    def _mistakes(self, state: State) -> Iterator[Mistake]:
        env = state.env
        yield from self._steps_out_of_order(env)
        yield from self._wrong_consumers(env)
        if env.is_down:
            yield from self._after_shutdown(env)
        yield from strange_completions(self.cores.all[state.core].view)
        if env.phase == STARTED and env.plan is not None and env.plan.rows and not env.is_failed:
            for place, save in enumerate(_bad_saves(save_of(env.plan), self._config.num_slots)):
                yield Mistake("R15", save, ("save", place, env.plan))
        if env.phase == IDLE and not env.is_failed and not env.is_down:
            for place, start in enumerate(_bad_starts(self._config.block_size, self._config.num_blocks)):
                yield Mistake("R15", start, ("start", place))

    def _steps_out_of_order(self, env: Environment) -> Iterator[Mistake]:
        if env.phase != IDLE or env.is_failed or env.is_down:
            yield Mistake("R22", StepStarted(()), "start")
            yield Mistake("R22", StepStarted((Started("late", 1),)), "start with tokens")
        if env.phase != STARTED:
            yield Mistake("R15", save_of(StepPlan()), "save")
            yield Mistake("R22", StepDropped(integers([0])), "drop")
        yield Mistake("R15", SavePublished(NOBODY), "publish")
        yield Mistake("R15", SaveCancelled(NOBODY), "cancel")
        if env.saved or env.phase != IDLE or env.is_down:
            yield Mistake("R15", PolicyRegistered(POLICY), "policy")

    @staticmethod
    def _after_shutdown(env: Environment) -> Iterator[Mistake]:
        """Calls that were right if the cache were not shut down."""
        for saved in env.saved:
            if not saved.is_fenced and saved.builder in (WAITING, RESTING):
                batch = tuple(saved.plan.batch)
                yield Mistake("R15", ConsumeRequested(saved.step, batch), ("materialize", saved.step, batch))
        if env.phase == STARTED and env.plan is not None:
            yield Mistake("R15", save_of(env.plan), ("save", env.plan))
            slots = integers([row.slot for row in env.plan.rows])
            yield Mistake("R15", StepDropped(slots), ("drop", env.plan))

    def _wrong_consumers(self, env: Environment) -> Iterator[Mistake]:
        known = {saved.step for saved in env.saved}
        for number in (*(number for number in range(1, max(known, default=0)) if number not in known), 0, NOBODY):
            yield Mistake("R01", ConsumeRequested(number, ()), ("materialize", number))
            yield Mistake("R01", StepDiscarded(number), ("discard", number))
            yield Mistake("R01", StepConsumed(number), ("consumed", number))
        for saved in env.saved:
            if saved.is_fenced:
                continue
            first = saved.plan.rows[0].request
            yield Mistake("R01", ConsumeRequested(saved.step, ("stranger",)), ("stranger", saved.step))
            yield Mistake("R15", ConsumeRequested(saved.step, (first, first)), ("twice", saved.step))
            if saved.builder in (COPYING, COPIED):
                yield Mistake("R01", ConsumeRequested(saved.step, (first,)), ("again", saved.step))
                yield Mistake("R01", StepDiscarded(saved.step), ("discard", saved.step))
            else:
                yield Mistake("R01", StepConsumed(saved.step), ("consumed", saved.step))
                yield Mistake("R01", ConsumeAbandoned(saved.step), ("abandoned", saved.step))
                yield Mistake("R01", RowsCopiedOut(saved.step), ("copied", saved.step))


def strange_completions(view: RowView) -> Iterator[Mistake]:
    """Completions of nothing, twice, or too early: of every write and read those that its phase does not allow."""
    for write in (CopyBegan, CopyCompleted, ScatterCompleted, WriteFailed):
        yield Mistake("R09", write(NOBODY), write.__name__)
        phases = {number: each.phase for number, each in view.writes.items()}
        phases |= {number: each.phase for number, each in view.fenced.items()}
        for number, phase in phases.items():
            if phase not in WRITE_MOVES[write]:
                yield Mistake("R09", write(number), (write.__name__, number))
    for read in (GatherBegan, GatherCompleted):
        yield Mistake("R23", read(NOBODY), read.__name__)
        for number, each in view.reads.items():
            if each.phase not in (*READ_MOVES[read], *READ_LATE.get(read, ())) or (each.awaits and read is GatherBegan):
                yield Mistake("R23", read(number), (read.__name__, number))


def _bad_starts(block_size: int, num_blocks: int) -> Iterator[StepStarted]:
    """Scheduler outputs that contradict themselves or the pool; each also ends somebody, who must not be lost (D06)."""
    bad: list[LifeCycle] = [
        Started("x", -1),
        Started("x", 1, -1),
        Started("x", 1, block_size, ()),
        Started("x", 1, block_size, ((0,), (0,))),
        Started("x", 1, block_size, ((num_blocks,),)),
        Started("x", 0, block_size, ((0,),)),
        Resumed("nobody", 1),
        Replaced("x", 1),
        Extended(("nobody",), integers([1])),
    ]
    if block_size > 1:
        bad.append(Started("x", 1, 1, ((0,),)))
    for change in bad:
        yield StepStarted((Finished("a"), change))
    yield StepStarted((Started("x", 1), Started("x", 1)))


def _bad_saves(save: SaveRequested, num_slots: int) -> Iterator[SaveRequested]:
    """Saves unlike their start, their pool or what is known of their names (D05)."""
    layout, slots = save.layout, save.layout.slots.tolist()
    yield SaveRequested(replace(layout, slots=integers([*slots, slots[0]])), save.outputs)
    yield SaveRequested(replace(layout, slots=integers([*slots[:-1], num_slots])), save.outputs)
    yield SaveRequested(replace(layout, slots=integers([*slots[:-1], -1])), save.outputs)
    yield SaveRequested(replace(layout, requests=("stranger", *layout.requests[1:])), save.outputs)
    yield SaveRequested(replace(layout, padded=len(slots) - 1), save.outputs)
    if len(slots) > 1:
        yield SaveRequested(replace(layout, slots=integers([slots[-1], *slots[1:]])), save.outputs)
    for output in save.outputs:
        if output.shape is not None:
            yield SaveRequested(layout, (Output(output.name, (len(slots) - 1, 1), output.dtype),))
            yield SaveRequested(layout, (output, output))
            yield SaveRequested(layout, (Output(output.name, output.shape, "no such type"),))
