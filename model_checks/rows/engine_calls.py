"""Calls of the engine and of builders: which may be made, and what they lead to."""

from collections.abc import Iterator
from typing import Any, Final

from tenure.core.arrays import integers
from tenure.core.rows.answers import ConsumePlan, ResetAnswered, StepBegan, Waiting
from tenure.core.rows.events import (
    ConsumeRequested,
    ResetRequested,
    RowEvent,
    ShutdownRequested,
    StepDiscarded,
    StepDropped,
)
from tenure.model_checks.model import Event
from tenure.model_checks.rows.builders import RowsBuilders
from tenure.model_checks.rows.cores import CoreStep
from tenure.model_checks.rows.environment import (
    COPIED,
    COPYING,
    IDLE,
    RESERVED,
    RESTING,
    STARTED,
    WAITING,
    Environment,
    HitRead,
)
from tenure.model_checks.rows.plans import AT_ONCE, save_of, start_of
from tenure.model_checks.rows.stage import Call, Known, State, saved_of, slots_of, with_saved, without_saved

COPIES: Final = ("CopyPage", "CopyDeferred")


class RowsCalls(RowsBuilders):
    """What may happen, and what the machine says to a call."""

    def events(self, state: State) -> list[Event]:
        """Calls that change something, then what the device may do."""
        found = [*self._known_of(state).events]
        ghost, device = state.ghost, self._device
        runnable = device.runnable(ghost)
        found += [("device", "run", place, ghost.ops[place].work.label) for place in runnable]
        found += [
            ("device", "tell", place, ghost.ops[place].work.label)
            for place in device.due(ghost)
            if self._begins_apart or ghost.ops[place].work.kind not in COPIES or ghost.ops[place].has_ended
        ]
        if state.env.bounds.failures:
            fallible = device.fallible(ghost, runnable)
            found += [("device", "fail", place, ghost.ops[place].work.label) for place in fallible]
            found += [
                ("device", "fail", place, ghost.ops[place].work.label, "after it was told of")
                for place in fallible
                if not self._begins_apart and ghost.ops[place].work.kind in COPIES and not ghost.ops[place].told
            ]
        return found

    @staticmethod
    def _matters(state: State, call: Call) -> bool:
        """A call that is refused or waits is made again later; whether it would be right now is judged in `judge`."""
        step = call.step
        if step.error is not None:
            return False
        return step.core != state.core or not isinstance(step.answer, Waiting | ResetAnswered)

    def _known_of(self, state: State) -> Known:
        key = state.core, id(state.env)
        known = self._known.get(key)
        if known is None:
            calls = tuple(Call(event, self._answer(state, event)) for event in self._callable(state))
            matter = [call.event for call in calls if self._matters(state, call)]
            events = (*matter, *self._builders(state.env))
            known = self._known[key] = Known(calls, events, {call.event: call.step for call in calls})
        return known

    def _callable(self, state: State) -> Iterator[Event]:
        """Calls of the engine and of builders that the protocol allows."""
        env = state.env
        at_once = [saved for saved in env.saved if saved.plan.consumers == (AT_ONCE,)]
        if at_once:
            yield f"builder {at_once[0].step}", "discard"
        elif not env.is_down:
            yield from self._engine_calls(state)
        if self._lag and len(env.saved) <= self._lag and (env.phase != IDLE or self._program.options(env.engine)):
            return
        for saved in env.saved:
            if not saved.is_fenced and saved.builder in (WAITING, RESTING):
                for place, consumer in enumerate(saved.plan.consumers):
                    if consumer == AT_ONCE:
                        continue
                    if consumer == "discard":
                        yield f"builder {saved.step}", "discard"
                    elif not env.is_down:
                        yield f"builder {saved.step}", "materialize", place, ", ".join(consumer)

    def _starts(self, state: State) -> Iterator[Event]:
        """What the engine may do between steps."""
        for place, option in enumerate(self._program.options(state.env.engine)):
            yield "engine", "start", place, option.plan.story

    def _engine_calls(self, state: State) -> Iterator[Event]:
        env = state.env
        if env.phase == IDLE:
            yield from self._starts(state)
        elif env.phase == STARTED:
            assert env.plan is not None
            if not env.plan.is_dropped:
                yield "engine", "save", env.step
            if env.plan.is_dropped is not False:
                yield "engine", "drop", env.step
        if env.is_failed or env.bounds.resets:
            yield ("engine", "reset")
        if env.bounds.shutdowns:
            yield ("engine", "shutdown")

    def _builders(self, env: Environment) -> Iterator[Event]:
        """What builders that have a plan may do next."""
        for saved in env.saved:
            actor = f"builder {saved.step}"
            if saved.builder in (COPYING, COPIED):
                if saved.builder == COPYING and self._tells_copied and saved.page >= 0:
                    yield actor, "copied its page"
                yield actor, "return"
                if env.bounds.abandons:
                    yield actor, "abandon"

    def _answer(self, state: State, event: Event) -> CoreStep:
        """What the machine says to a call."""
        env, kind, core = state.env, event[1], state.core
        if kind == "start":
            plan = self._program.options(env.engine)[int(event[2])].plan
            return self.cores.step(core, start_of(plan, self._config.block_size), plan)
        if kind == "materialize":
            saved = saved_of(env, event)
            asked = saved.plan.consumers[int(event[2])]
            assert isinstance(asked, tuple)
            return self.cores.step(core, ConsumeRequested(saved.step, asked))
        if kind == "discard":
            return self.cores.step(core, StepDiscarded(saved_of(env, event).step))
        if kind in ("save", "drop"):
            assert env.plan is not None
            call: RowEvent = save_of(env.plan) if kind == "save" else StepDropped(integers(slots_of(env.plan)))
            return self.cores.step(core, call, (kind, env.plan))
        return self.cores.step(core, ResetRequested() if kind == "reset" else ShutdownRequested())

    def _called(self, env: Environment, event: Event, step: CoreStep) -> Environment:
        """The environment after a call of the engine or a builder that was taken."""
        kind, answer = event[1], step.answer
        if kind == "start":
            option = self._program.options(env.engine)[int(event[2])]
            assert isinstance(answer, StepBegan)
            if answer.step is None:
                return env._replace(engine=option.after)
            return env._replace(engine=option.after, plan=option.plan, phase=STARTED, step=answer.step)
        if kind == "save":
            return env if isinstance(answer, Waiting) else env._replace(phase=RESERVED)
        if kind == "drop":
            assert env.plan is not None
            return self._truth.dropped(env._replace(engine=self._program.lose(env.engine, env.plan)))
        if kind == "shutdown":
            return env._replace(is_down=True, bounds=env.bounds._replace(shutdowns=0))
        if kind == "reset":
            bounds = env.bounds if env.is_failed else env.bounds._replace(resets=env.bounds.resets - 1)
            return self._truth.forgotten(env._replace(bounds=bounds), self._program.forget(env.engine))
        saved = saved_of(env, event)
        if kind == "discard":
            return without_saved(env, saved)
        assert isinstance(answer, ConsumePlan)
        return with_saved(
            env, saved._replace(builder=COPYING, asked=tuple(map(str, answer.requests)), **self._given(answer))
        )

    def _given(self, plan: ConsumePlan) -> dict[str, Any]:
        hits = tuple(
            HitRead(str(hit.request), self.names.number[hit.name], hit.read, hit.num_rows) for hit in plan.hits
        )
        return {"page": -1 if plan.page is None else plan.page, "hits": hits}
