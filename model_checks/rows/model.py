"""The row machine and everything around it as a model: engine, builders, a device with its memory, faults.

The state is the machine's (by number, see `Cores`), the ghost memory, and the environment. The engine follows the
protocol: calls that wait are told again when they can go on, a step is saved or given up before the next start.
"""

from collections.abc import Hashable, Iterable, Iterator
from hashlib import blake2b
from marshal import dumps  # noqa: TID251 - in memory only; its version 2 writes equal values alike
from typing import Any, Final, NamedTuple, cast

from tenure.core.arrays import integers
from tenure.core.config import RowConfig, RowPolicy
from tenure.core.errors import ReadFailedError, ShutDownError, TenureError, UnreadableHitError, WriteFailedError
from tenure.core.rows.answers import ConsumePlan, ResetAnswered, StepBegan, Waiting
from tenure.core.rows.events import (
    ConsumeAbandoned,
    ConsumeRequested,
    ResetRequested,
    RowEvent,
    RowsCopiedOut,
    SaveCancelled,
    SavePublished,
    ShutdownRequested,
    StepConsumed,
    StepDiscarded,
    StepDropped,
    WaitTimedOut,
    WriteFailed,
)
from tenure.core.rows.names import HIDDEN
from tenure.core.rows.view import ReadPhase, WritePhase
from tenure.model_checks.model import NOTHING, Broken, Event, Judged, Owed, Taken
from tenure.model_checks.rows.cells import BUFFER_SHIFT, POISON, ZEROS, Names, buffer_code, buffer_of, row_code, row_of
from tenure.model_checks.rows.cores import CoreStep, Cores
from tenure.model_checks.rows.environment import (
    COPIED,
    COPYING,
    IDLE,
    RESERVED,
    RESTING,
    STARTED,
    WAITING,
    Bounds,
    Environment,
    HitRead,
    Saved,
    Truth,
)
from tenure.model_checks.rows.ghost import Device, Ghost, Reader
from tenure.model_checks.rows.plans import AT_ONCE, NOTE, POLICY, Program, StepPlan, save_of, start_of
from tenure.spec.rows.jobs import POOL
from tenure.spec.rows.memory import Buffer, Place

FAULT: Final = frozenset({"goal fault"})
COPIES: Final = ("CopyPage", "CopyDeferred")


class State(NamedTuple):
    """One state of the model: the machine's, by number, and everything around it."""

    core: int
    ghost: Ghost
    env: Environment


class Call(NamedTuple):
    """A call that may be made, and what the machine says to it."""

    event: Event
    step: CoreStep


class RowsModel:
    """The row machine in an environment.

    Attributes:
        cores: the machine's states.
        names: the names of the scope.
    """

    def __init__(
        self,
        config: RowConfig,
        program: Program,
        *,
        bounds: Bounds = Bounds(),  # noqa: B008 - a constant
        lag: int = 0,
        policy: RowPolicy = POLICY,
        names: tuple[str, ...] = (HIDDEN, "m", "c", "d", NOTE),
        in_pieces: bool = False,
        begins_apart: bool = False,
        tells_copied: bool = False,
        is_honest: bool = True,
        cores: Cores | None = None,
    ) -> None:
        """Put a machine into an environment.

        Args:
            config: the machine's.
            program: what the engine does.
            bounds: faults, resets and so on.
            lag: builders act only when more steps than this are saved, or no call of the engine can go on but theirs:
                engine and builders on one thread.
            policy: which names are what.
            names: all names that steps emit.
            in_pieces: move rows one at a time.
            begins_apart: a device tells of taking a copy at any time before it tells of its end; else when it runs it.
            tells_copied: builders may let the page go before they return.
            is_honest: hits promise only what is there.
            cores: the machine's states, where they are not those of the row machine alone.
        """
        self._config, self._program, self._bounds = config, program, bounds
        self.names = Names(names)
        self.cores = Cores(config, policy) if cores is None else cores
        self._truth = Truth(config, self.names)
        self._device = Device(self.names, config.num_slots, in_pieces=in_pieces)
        self._tells_copied, self._is_honest, self._begins_apart = tells_copied, is_honest, begins_apart
        self._lag = lag
        self._coherent: set[Hashable] = set()
        self._codes: dict[Environment, bytes] = {}
        self._calls_of: tuple[State | None, list[Call]] = (None, [])

    def initial(self) -> Iterable[State]:
        """Nothing happened."""
        return [State(0, Ghost((), {}), self._truth.nothing(self._program.first(), self._bounds))]

    def encode(self, state: State) -> bytes:
        """The machine's content, the commands in order of issue, the memory by cell, and the environment."""
        core, ghost, env = state
        code = self._codes.get(env)
        if code is None:
            code = self._codes[env] = blake2b(repr(env).encode(), digest_size=16).digest()
        ops = tuple((op.work.code, *op[1:]) for op in ghost.ops)
        return self.cores.all[core].code + code + dumps((ops, tuple(sorted(ghost.cells.items()))), 2)

    def pack(self, state: State) -> object:
        """The machine's state itself, and the rest."""
        return self.cores.packed(state.core), state.ghost, state.env

    def unpack(self, packed: object) -> State:
        """A state that another process packed."""
        machine, ghost, env = cast("tuple[Any, Ghost, Environment]", packed)
        return State(self.cores.unpacked(machine), ghost, env)

    # --- What may happen --------------------------------------------------------------------------------------

    def events(self, state: State) -> list[Event]:
        """Calls that change something, then what the device may do."""
        found = [call.event for call in self._calls(state) if self._matters(state, call)]
        found += self._builders(state.env)
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
        return found

    @staticmethod
    def _matters(state: State, call: Call) -> bool:
        """A call that is refused or waits is made again later; whether it would be right now is judged in `judge`."""
        step = call.step
        if step.error is not None:
            return False
        return step.core != state.core or not isinstance(step.answer, Waiting | ResetAnswered)

    def _calls(self, state: State) -> list[Call]:
        known, calls = self._calls_of
        if known is not state:
            calls = [Call(event, self._answer(state, event)) for event in self._callable(state)]
            self._calls_of = state, calls
        return calls

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

    # --- What it leads to -------------------------------------------------------------------------------------

    def take(self, state: State, event: Event) -> Taken:
        """Make a call, or let the device do something."""
        actor, kind = event[0], event[1]
        if actor == "device":
            return self._device_did(state, str(kind), int(event[2]))
        if kind in ("copied its page", "return", "abandon"):
            return self._builder_did(state, _saved(state.env, event), str(kind))
        step = self._answer(state, event)
        if step.answer is None:
            return Taken(state, step.marks, step.broken)
        taken = self._told(state, step, self._called(state.env, event, step), state.ghost)
        return self._begin_copying(taken, event) if kind == "materialize" else taken

    def _answer(self, state: State, event: Event) -> CoreStep:
        """What the machine says to a call."""
        env, kind, core = state.env, event[1], state.core
        if kind == "start":
            plan = self._program.options(env.engine)[int(event[2])].plan
            return self.cores.step(core, start_of(plan, self._config.block_size), plan)
        if kind == "materialize":
            saved = _saved(env, event)
            asked = saved.plan.consumers[int(event[2])]
            assert isinstance(asked, tuple)
            return self.cores.step(core, ConsumeRequested(saved.step, asked))
        if kind == "discard":
            return self.cores.step(core, StepDiscarded(_saved(env, event).step))
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
        saved = _saved(env, event)
        if kind == "discard":
            return _without(env, saved)
        assert isinstance(answer, ConsumePlan)
        return _with(env, saved._replace(builder=COPYING, asked=tuple(map(str, answer.requests)), **self._given(answer)))

    def _given(self, plan: ConsumePlan) -> dict[str, Any]:
        hits = tuple(HitRead(str(hit.request), self.names.number[hit.name], hit.read, hit.num_rows) for hit in plan.hits)
        return {"page": -1 if plan.page is None else plan.page, "hits": hits}

    def _told(
        self,
        state: State,
        step: CoreStep,
        env: Environment,
        ghost: Ghost,
        broken: tuple[Broken, ...] = (),
        rule: str = "R09",
    ) -> Taken:
        """The machine took an event: its commands go to the device, and pages that nobody holds hold nothing."""
        broken += step.broken
        if step.error is not None:
            # A completion that the machine does not understand: it lost track of its device or of a builder.
            return Taken(state, step.marks, (*broken, Broken(rule, f"{type(step.error).__name__}: {step.error}")))
        if step.commands:
            ghost, found = self._device.issue(ghost, step.commands, *self._live(env))
            broken += tuple(found)
        if step.numbers is not None:
            ghost = self._device.renumbered(ghost, step.numbers)
            if free := self.cores.all[step.core].free_pages:
                ghost = self._device.freed(ghost, frozenset(buffer_code(Buffer("page", page)) for page in free))
        return Taken(State(step.core, ghost, env), step.marks, broken)

    def _live(self, env: Environment) -> tuple[dict[str, list[int]], dict[str, int]]:
        """What the forward pass of the newest step left in its buffers: rows, and leftovers."""
        if env.plan is not None:
            plan, step = env.plan, env.step
        elif env.saved:
            plan, step = env.saved[-1].plan, env.saved[-1].step
        else:
            return {}, {}
        number = self.names.number
        rows = {
            name: [row_code(step, row.node, number[name]) for row in plan.rows] for name in plan.emits if name != NOTE
        }
        return rows, {name: row_code(step, 0, number[name]) for name in plan.emits if name == NOTE}

    # --- The device -------------------------------------------------------------------------------------------

    def _device_did(self, state: State, kind: str, place: int) -> Taken:
        core, ghost, env = state
        if kind == "run":
            op = ghost.ops[place]
            ghost, broken = self._device.run(ghost, place)
            if self._begins_apart or op.work.kind not in COPIES or op.told:
                return Taken(State(core, ghost, env), NOTHING, tuple(broken))
            step = self.cores.step(core, self._device.answer(ghost, place))
            return self._told(state, step, env, self._device.tell(ghost, place), tuple(broken))
        if kind == "fail":
            bounds = env.bounds._replace(failures=env.bounds.failures - 1)
            return Taken(State(core, self._device.fail(ghost, place), env._replace(bounds=bounds)), FAULT)
        answer = self._device.answer(ghost, place)
        ghost = self._device.tell(ghost, place)
        if isinstance(answer, SavePublished | SaveCancelled):
            return self._freeze_answered(state, answer, ghost)
        step = self.cores.step(core, answer)
        if isinstance(answer, WriteFailed):
            env = env._replace(is_failed=self.cores.all[step.core].view.failure is not None)
        return self._told(state, step, env, ghost)

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

    # --- Builders ---------------------------------------------------------------------------------------------

    def _begin_copying(self, taken: Taken, event: Event) -> Taken:
        state = cast("State", taken.state)
        saved = _saved(state.env, event)
        ghost, found = self._device.read_by(state.ghost, Reader(saved.step, self._read_cells(saved)))
        hidden = [f"{request} at step {saved.step}" for (request, _), rows in saved.expected if rows is None]
        wrong = [Broken("R14", f"a hit with a hole is handed out: {each}") for each in hidden if each[0] in saved.asked]
        return taken._replace(state=state._replace(ghost=ghost), broken=(*taken.broken, *found, *wrong))

    def _read_cells(self, saved: Saved) -> Iterator[int]:
        if saved.page >= 0 and saved.builder == COPYING:
            for cell, _ in self._page_cells(saved):
                yield cell
        for hit in saved.hits:
            yield from self._hit_cells(hit)

    def _page_cells(self, saved: Saved) -> Iterator[tuple[int, int]]:
        """Per cell of the page that a builder reads what it must hold."""
        page, number = Buffer("page", saved.page), self.names.number
        for place, row in enumerate(saved.plan.rows):
            for name in saved.plan.emits:
                if row.request in saved.asked and name != NOTE:
                    cell = self.names.cell(Place(page, name, place))
                    yield cell, row_code(saved.step, row.node, number[name])
        if NOTE in saved.plan.emits:
            yield self.names.cell(Place(page, NOTE, 0)), row_code(saved.step, 0, number[NOTE])

    def _hit_cells(self, hit: HitRead) -> list[int]:
        buffer = Buffer("buffer", hit.read)
        return [self.names.cell(Place(buffer, self.names.names[hit.name], row)) for row in range(hit.rows)]

    def _builder_did(self, state: State, saved: Saved, kind: str) -> Taken:
        core, ghost, env = state
        broken = self._wrong_page(saved, ghost) if kind != "abandon" and saved.builder == COPYING else []
        ghost = self._device.leave(ghost, saved.step)
        if kind == "copied its page":
            rest = saved._replace(builder=COPIED, page=-1)
            ghost, found = self._device.read_by(ghost, Reader(saved.step, self._read_cells(rest)))
            step = self.cores.step(core, RowsCopiedOut(saved.step))
            return self._told(state, step, _with(env, rest), ghost, (*broken, *found))
        if kind == "return":
            broken += self._wrong_hits(saved, state.ghost)
            taken = [buffer_code(Buffer(each, hit.read)) for hit in saved.hits for each in ("buffer", "aside")]
            ghost = self._device.freed(ghost, frozenset(taken))
            return self._told(state, self.cores.step(core, StepConsumed(saved.step)), _without(env, saved), ghost, (*broken,))
        env = env._replace(bounds=env.bounds._replace(abandons=env.bounds.abandons - 1))
        resting = RESTING if saved.builder == COPIED or saved.page < 0 else WAITING
        rest = saved._replace(builder=resting, asked=(), page=-1, hits=())
        env = _without(env, saved) if saved.is_fenced else _with(env, rest)
        return self._told(state, self.cores.step(core, ConsumeAbandoned(saved.step)), env, ghost)

    def _wrong_page(self, saved: Saved, ghost: Ghost) -> list[Broken]:
        """R06: the rows that the page of a step holds, beside those that the step made."""
        if saved.page < 0:
            return []
        pairs = [(ghost.cells.get(cell, POISON), row) for cell, row in self._page_cells(saved)]
        if all(found == expected for found, expected in pairs):
            return []
        found, expected = (", ".join(map(self.show, rows)) for rows in zip(*pairs, strict=True))
        return [Broken("R06", f"page {saved.page} of step {saved.step} holds {found}; the step made {expected}")]

    def _wrong_hits(self, saved: Saved, ghost: Ghost) -> list[Broken]:
        """R02: the rows that a hit is handed, beside those that stood in its slots after the save of its step."""
        broken: list[Broken] = []
        expected = dict(saved.expected)
        for hit in saved.hits:
            found = tuple(ghost.cells.get(cell, POISON) for cell in self._hit_cells(hit))
            right = expected.get((hit.request, hit.name))
            if found != right:
                handed, should = ", ".join(map(self.show, found)), ", ".join(map(self.show, right or ()))
                broken.append(Broken("R02", f"{hit.request} is handed {handed}; its slots held {should or 'a hole'}"))
        given = {(hit.request, hit.name) for hit in saved.hits}
        for (request, name), rows in saved.expected:
            if request in saved.asked and rows is not None and (request, name) not in given:
                broken.append(Broken("R02", f"{request} gets no hit rows under {self.names.names[name]}"))
        return broken

    def show(self, code: int) -> str:
        """A symbolic row in words."""
        if code in (ZEROS, POISON):
            return "zeros" if code == ZEROS else "nothing"
        row = row_of(code)
        return f"{self.names.names[row.name]} of node {row.node} by step {row.step}"

    # --- Judging ----------------------------------------------------------------------------------------------

    def judge(self, state: State) -> Judged:
        """Calls that cannot go on now, pool rows, what the machine says of every slot, and what is left at rest."""
        core, ghost, env = state
        marks, broken = set[str](), list[Broken]()
        for call in self._calls(state):
            if not self._matters(state, call):
                self._judge_refusal(state, call, marks, broken)
        self._judge_mistakes(state, marks, broken)
        broken += self._wrong_pool(state, marks)
        broken += self._wrong_claims(state)
        if self.is_quiescent(state) and not env.is_down:
            marks.add("rule R18")
            left = [*self.cores.all[core].left_over, *self._forgotten_buffers(ghost)]
            broken += [Broken("R18", f"at rest, there are still {each}") for each in left]
        return Judged(frozenset(marks), tuple(broken))

    def _judge_refusal(self, state: State, call: Call, marks: set[str], broken: list[Broken]) -> None:
        step, env = call.step, state.env
        marks.update(step.marks)
        broken += step.broken
        if isinstance(step.answer, Waiting):
            late = self.cores.step(state.core, WaitTimedOut(step.answer.waited_for))
            marks.update(late.marks, ("event WaitTimedOut",))
            broken += late.broken
            if step.answer.waited_for.page and self._lag and not self.events(state):
                broken.append(Broken("R07", f"a page is waited for, and {len(env.saved)} steps wait for the waiter"))
        elif step.error is not None and not self._is_due(env, call, step.error):
            broken.append(Broken("R15", f"{' '.join(map(str, call.event))} is legal, and refused: {step.error}"))

    def _judge_mistakes(self, state: State, marks: set[str], broken: list[Broken]) -> None:
        """What the machine says to calls that are none; this engine makes none."""

    def _is_due(self, env: Environment, call: Call, error: TenureError) -> bool:
        """Whether a call had to be refused."""
        if isinstance(error, UnreadableHitError):
            saved = _saved(env, call.event)
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

    # --- Progress ---------------------------------------------------------------------------------------------

    def owed(self, state: State) -> frozenset[Owed]:
        """Writes and reads that a device is at must end, whoever waits for what a device brings must go on."""
        view, env = self.cores.all[state.core].view, state.env
        on_its_way = (WritePhase.QUEUED, WritePhase.COPYING, WritePhase.HOST_READY)
        found = {f"write {number} ends" for number, write in view.writes.items() if write.phase in on_its_way}
        found.update(f"write {number} ends" for number in view.fenced)
        running = (ReadPhase.RUNNING, ReadPhase.LEFT)
        found.update(f"read {number} ends" for number, read in view.reads.items() if read.phase in running)
        found.update(f"builder {saved.step} returns" for saved in env.saved if saved.builder in (COPYING, COPIED))
        for call in self._calls(state):
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

    def describe(self, event: Event) -> str:
        """One event as a line of a story."""
        actor, kind, *more = event
        if actor == "device":
            verb = {"run": "carries out", "tell": "tells of", "fail": "fails at"}[str(kind)]
            return f"device {verb} the {more[1]}"
        if kind == "start":
            return f"engine starts a step: {more[1]}"
        if kind == "materialize":
            return f"{actor} asks for {more[1]}"
        return f"{actor}: {' '.join(map(str, (kind, *more)))}"


def slots_of(plan: StepPlan) -> list[int]:
    """The slots that a step computes, in batch order."""
    return [row.slot for row in plan.rows]


def _saved(env: Environment, event: Event) -> Saved:
    """The saved step whose builder acts."""
    number = int(str(event[0]).split()[1])
    return next(saved for saved in env.saved if saved.step == number)


def _with(env: Environment, saved: Saved) -> Environment:
    return env._replace(saved=tuple(saved if each.step == saved.step else each for each in env.saved))


def _without(env: Environment, saved: Saved) -> Environment:
    return env._replace(saved=tuple(each for each in env.saved if each.step != saved.step))
