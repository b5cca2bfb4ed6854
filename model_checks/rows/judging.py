"""What the rules say of a state of the row machine's model."""

from tenure.core.errors import ReadFailedError, TenureError, UnreadableHitError, WriteFailedError
from tenure.core.rows.answers import Waiting
from tenure.core.rows.events import (
    WaitTimedOut,
)
from tenure.core.rows.view import WritePhase
from tenure.model_checks.model import Broken, Judged
from tenure.model_checks.rows.cells import BUFFER_SHIFT, POISON, ZEROS, buffer_code, buffer_of
from tenure.model_checks.rows.engine_calls import RowsCalls
from tenure.model_checks.rows.environment import (
    IDLE,
    RESTING,
    WAITING,
    Environment,
)
from tenure.model_checks.rows.ghost import Ghost
from tenure.model_checks.rows.stage import Call, State, saved_of
from tenure.spec.rows.jobs import POOL
from tenure.spec.rows.memory import Place


class RowsJudging(RowsCalls):
    """Refused calls, pool rows, claims, and what is left at rest."""

    def judge(self, state: State) -> Judged:
        """Calls that cannot go on now, pool rows, what the machine says of every slot, and what is left at rest."""
        core, ghost, env = state
        # The first state is that of a machine which was told its policy.
        marks, broken = {"event PolicyRegistered"} if core == 0 else set[str](), list[Broken]()
        said = self._said_of_calls(state)
        marks.update(said.marks)
        broken += said.broken
        if self._lag:
            broken += self._waits_for_itself(state)
        broken += self._wrong_pool(state, marks)
        broken += self._wrong_claims(state)
        if self.is_quiescent(state) and not env.is_down:
            marks.add("rule R18")
            left = [*self.cores.all[core].left_over, *self._forgotten_buffers(ghost)]
            broken += [Broken("R18", f"at rest, there are still {each}") for each in left]
        return Judged(frozenset(marks), tuple(broken))

    def _said_of_calls(self, state: State) -> Judged:
        """What is found of calls that are refused or wait; the same wherever machine and environment are the same."""
        key = state.core, id(state.env)
        said = self._said.get(key)
        if said is None:
            marks, broken = set[str](), list[Broken]()
            for call in self._known_of(state).calls:
                if not self._matters(state, call):
                    self._judge_refusal(state, call, marks, broken)
            self._judge_mistakes(state, marks, broken)
            said = self._said[key] = Judged(frozenset(marks), tuple(broken))
        return said

    def _waits_for_itself(self, state: State) -> list[Broken]:
        """R07: with engine and builders on one thread, a page must not be waited for that only the waiter can bring."""
        answers = [call.step.answer for call in self._known_of(state).calls]
        if any(isinstance(answer, Waiting) and answer.waited_for.page for answer in answers) and not self.events(state):
            saved = len(state.env.saved)
            return [Broken("R07", f"a page is waited for, and {saved} steps wait for the waiter")]
        return []

    def _judge_refusal(self, state: State, call: Call, marks: set[str], broken: list[Broken]) -> None:
        step, env = call.step, state.env
        marks.update(step.marks)
        broken += step.broken
        if isinstance(step.answer, Waiting):
            late = self.cores.step(state.core, WaitTimedOut(step.answer.waited_for))
            marks.update(late.marks, ("event WaitTimedOut",))
            broken += late.broken
        elif step.error is not None and not self._is_due(env, call, step.error):
            broken.append(Broken("R15", f"{' '.join(map(str, call.event))} is legal, and refused: {step.error}"))

    def _judge_mistakes(self, state: State, marks: set[str], broken: list[Broken]) -> None:
        """What the machine says to calls that are none; this engine makes none."""

    def _is_due(self, env: Environment, call: Call, error: TenureError) -> bool:
        """Whether a call had to be refused."""
        if isinstance(error, UnreadableHitError):
            saved = saved_of(env, call.event)
            asked = saved.plan.consumers[int(call.event[2])]
            return any(rows is None and request in asked for (request, _), rows in saved.expected)
        if isinstance(error, ReadFailedError):
            return env.bounds.failures < self._bounds.failures
        return env.is_failed if isinstance(error, WriteFailedError) else False

    def _wrong_pool(self, state: State, marks: set[str]) -> list[Broken]:
        """R05: with no write open, the pool has the newest row of every slot that was ever claimed."""
        core, ghost, env = state
        view = self.cores.all[core].view
        is_open = any(write.phase is not WritePhase.WRITTEN for write in view.writes.values()) or view.fenced
        if is_open or env.is_failed or any(op.work.kind == "ScatterRows" for op in ghost.ops):
            return []
        broken: list[Broken] = []
        for name, slot, code in self._truth.claimed(env):
            marks.add("rule R05")
            found = ghost.cells.get(self.names.cell(Place(POOL, self.names.names[name], slot)), POISON)
            if found != code:
                broken.append(Broken("R05", f"slot {slot} has {self.show(found)}; claimed last: {self.show(code)}"))
        return broken

    def _wrong_claims(self, state: State) -> list[Broken]:
        """R21: the machine takes exactly those rows for present that the last computation of their slot made."""
        key = state.core, state.env.raw, state.env.computed
        if key in self._coherent:
            return []
        self._coherent.add(key)
        view, names = self.cores.all[state.core].view, self.names.names
        broken: list[Broken] = []
        for name in view.newest:
            number = self.names.number[name]
            for slot in range(self._config.num_slots):
                has_claim, row = bool(view.effective(name, slot)), self._truth.row(state.env, number, slot)
                if has_claim != (row != ZEROS):
                    found = f"slot {slot} under {names[number]} is {'present' if has_claim else 'absent'}"
                    broken.append(Broken("R21", f"{found}, and should hold {self.show(row)}"))
        return broken

    @staticmethod
    def _forgotten_buffers(ghost: Ghost) -> list[str]:
        buffers = {cell >> BUFFER_SHIFT for cell in ghost.cells} - {buffer_code(POOL)}
        return [f"{each.kind} {each.number}" for each in map(buffer_of, sorted(buffers))]

    def is_quiescent(self, state: State) -> bool:
        """The program is over, every step consumed, the device idle; or the cache is shut down and the device idle."""
        env = state.env
        if any(not op.has_ended for op in state.ghost.ops) or self._device.due(state.ghost):
            return False
        if env.is_failed and not env.is_down:
            return False
        if env.is_down:
            return all(saved.builder in (WAITING, RESTING) for saved in env.saved)
        return env.phase == IDLE and not env.saved and not any(self._starts(state))
