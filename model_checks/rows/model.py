"""The row machine and everything around it as a model: engine, builders, a device with its memory, faults.

The engine follows the protocol: calls that wait are told again when they can go on, a step is saved or given up before
the next start.
"""

from typing import Final, cast

from tenure.core.errors import ShutDownError, WriteFailedError
from tenure.core.rows.answers import Ignored, Waiting
from tenure.core.rows.events import (
    SaveCancelled,
    SavePublished,
    WriteFailed,
)
from tenure.core.rows.view import ReadPhase, WritePhase
from tenure.model_checks.model import NOTHING, Broken, Event, Owed, Taken
from tenure.model_checks.rows.engine_calls import COPIES
from tenure.model_checks.rows.environment import (
    COPIED,
    COPYING,
    RESERVED,
    STARTED,
)
from tenure.model_checks.rows.ghost import Ghost
from tenure.model_checks.rows.judging import RowsJudging
from tenure.model_checks.rows.stage import State, saved_of

FAULT: Final = frozenset({"goal fault"})


class RowsModel(RowsJudging):
    """The row machine in an environment."""

    def take(self, state: State, event: Event) -> Taken:
        """Make a call, or let the device do something."""
        actor, kind = event[0], event[1]
        if actor == "device":
            return self._device_did(state, event)
        if kind in ("copied its page", "return", "abandon"):
            return self._builder_did(state, saved_of(state.env, event), str(kind))
        step = self._known_of(state).steps.get(event) or self._answer(state, event)
        if step.answer is None:
            return Taken(state, step.marks, step.broken)
        taken = self._told(state, step, self._called(state.env, event, step), state.ghost)
        return self._begin_copying(taken, event) if kind == "materialize" else taken

    def _device_did(self, state: State, event: Event) -> Taken:
        core, ghost, env = state
        kind, place = event[1], int(event[2])
        if kind == "run":
            op = ghost.ops[place]
            ghost, broken = self._device.run(ghost, place)
            if self._begins_apart or op.work.kind not in COPIES or op.told:
                return Taken(State(core, ghost, env), NOTHING, tuple(broken))
            step = self.cores.step(core, self._device.answer(ghost, place))
            return self._told(state, step, env, self._device.tell(ghost, place), tuple(broken))
        if kind == "fail":
            return self._device_failed(state, place, has_begun=len(event) > 4)
        answer = self._device.answer(ghost, place)
        ghost = self._device.tell(ghost, place)
        if isinstance(answer, SavePublished | SaveCancelled):
            return self._freeze_answered(state, answer, ghost)
        step = self.cores.step(core, answer)
        if isinstance(answer, WriteFailed) and not isinstance(step.answer, Ignored):
            env = env._replace(is_failed=True)
        return self._told(state, step, env, ghost)

    def _device_failed(self, state: State, place: int, *, has_begun: bool) -> Taken:
        """A command ends badly; a copy perhaps after the machine was told that a device took it."""
        core, ghost, env = state
        marks, broken = FAULT, tuple[Broken, ...]()
        if has_begun:
            step = self.cores.step(core, self._device.answer(ghost, place))
            begun = self._told(state, step, env, self._device.tell(ghost, place))
            core, ghost, env = cast("State", begun.state)
            marks, broken = FAULT | step.marks, begun.broken
        env = self._one(env._replace(bounds=env.bounds._replace(failures=env.bounds.failures - 1)))
        return Taken(State(core, self._device.fail(ghost, place), env), marks, broken)

    def _freeze_answered(self, state: State, answer: SavePublished | SaveCancelled, ghost: Ghost) -> Taken:
        """The calling thread goes on: it publishes or cancels, unless a reset took the reservation from it."""
        env = state.env
        if env.phase != RESERVED or env.step != answer.step:
            return Taken(State(state.core, ghost, env))
        step = self.cores.step(state.core, answer)
        if isinstance(step.error, WriteFailedError | ShutDownError):
            answer, refused = SaveCancelled(answer.step), step
            step = self.cores.step(state.core, answer)
            step = step._replace(marks=step.marks | refused.marks, broken=step.broken + refused.broken)
        is_saved = isinstance(answer, SavePublished)
        env = self._truth.published(env) if is_saved else env._replace(phase=STARTED)
        found: tuple[Broken, ...] = ()
        if is_saved and self._is_honest:
            found = tuple(Broken("R02", each) for each in self._truth.strangers(env.saved[-1]))
        has_hole = any(rows is None for saved in env.saved[-1:] for _, rows in saved.expected)
        return self._told(state, step, env, ghost, found, "R14" if has_hole else "R15")

    def owed(self, state: State) -> frozenset[Owed]:
        """Writes and reads that a device is at must end, whoever waits for what a device brings must go on."""
        view, env = self.cores.all[state.core].view, state.env
        on_its_way = (WritePhase.QUEUED, WritePhase.COPYING, WritePhase.HOST_READY)
        found = {f"write {number} ends" for number, write in view.writes.items() if write.phase in on_its_way}
        found.update(f"write {number} ends" for number in view.fenced)
        running = (ReadPhase.RUNNING, ReadPhase.LEFT)
        found.update(f"read {number} ends" for number, read in view.reads.items() if read.phase in running)
        found.update(f"builder {saved.step} returns" for saved in env.saved if saved.builder in (COPYING, COPIED))
        for call in self._known_of(state).calls:
            answer = call.step.answer
            if isinstance(answer, Waiting) and not answer.waited_for.page and not self._matters(state, call):
                found.add(f"{call.event[0]} goes on with {call.event[1]}")
        return frozenset(Owed("R11", what) for what in found)

    def fairness(self, state: State, event: Event) -> str | None:
        """Devices carry out and tell what they were given; builders that copy return; a save that may go on does."""
        del state
        actor, kind = str(event[0]), event[1]
        if actor == "device":
            return None if kind == "fail" else f"{event[3]}"
        if actor == "engine":
            return "the save" if kind == "save" else None
        return None if kind == "discard" or kind == "abandon" else f"{actor} {kind}"

    def core_events(self, state: State, event: Event) -> tuple[object, ...]:
        """What the machine is told when an event happens."""
        told: list[object] = []
        self.cores.told = told
        if event[0] == "engine" or event[1] in ("materialize", "discard"):
            self._answer(state, event)
        else:
            self.take(state, event)
        self.cores.told = None
        return tuple(told)

    def describe(self, event: Event) -> str:
        """One event as a line of a story."""
        actor, kind, *more = event
        if actor == "device":
            late = f", {more[2]}" if len(more) > 2 else ""
            verb = {"run": "carries out", "tell": "tells of", "fail": "fails at"}[str(kind)]
            return f"device {verb} the {more[1]}{late}"
        if kind == "start":
            return f"engine starts a step: {more[1]}"
        if kind == "materialize":
            return f"{actor} asks for {more[1]}"
        return f"{actor}: {' '.join(map(str, (kind, *more)))}"
