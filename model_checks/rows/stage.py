"""What the row machine's model is made of: its state, its canonical form, and how a told machine moves the rest.

The state is the machine's (by number, see `Cores`), the ghost memory, and the environment.
"""

from collections.abc import Hashable, Iterable
from hashlib import blake2b
from marshal import dumps  # noqa: TID251 - in memory only; its version 2 writes equal values alike
from typing import Any, Final, NamedTuple, TypeAlias, cast

from tenure.core.config import RowConfig, RowPolicy
from tenure.core.rows.names import HIDDEN
from tenure.model_checks.model import Broken, Event, Judged, Taken
from tenure.model_checks.rows.cells import Cells, Names, row_code
from tenure.model_checks.rows.cores import Cores, CoreStep
from tenure.model_checks.rows.environment import (
    Bounds,
    Environment,
    Saved,
    Truth,
)
from tenure.model_checks.rows.ghost import Device, Ghost, Live
from tenure.model_checks.rows.plans import NOTE, POLICY, Program, StepPlan
from tenure.model_checks.rows.telling import cell_changes, show_row, view_changes
from tenure.model_checks.rows.work import Reader

NO_OUTPUTS: Final = Live({}, {})
_ACTOR: Final = len("builder ")


PageCells: TypeAlias = tuple[tuple[int, int], ...]
"""Per cell of a page what it must hold."""


class State(NamedTuple):
    """One state of the model: the machine's, by number, and everything around it."""

    core: int
    ghost: Ghost
    env: Environment


class Call(NamedTuple):
    """A call that may be made, and what the machine says to it."""

    event: Event
    step: CoreStep


class Known(NamedTuple):
    """What is known of all states with one core and one environment.

    Attributes:
        calls: the calls that the protocol allows, and what the machine says to each.
        events: those that change something.
        steps: the same by event.
    """

    calls: tuple[Call, ...]
    events: tuple[Event, ...]
    steps: dict[Event, CoreStep]


class RowsStage:
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
        copying: bool = True,
        goals: frozenset[str] | None = None,
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
            copying: as in `Cores`.
            goals: as in `Cores`.
        """
        self._config, self._program, self._bounds = config, program, bounds
        self.names = Names(names)
        self.cores = Cores(config, policy, copying=copying, goals=goals) if cores is None else cores
        self._truth = Truth(config, self.names)
        self._device = Device(self.names, config.num_slots, in_pieces=in_pieces)
        self._tells_copied, self._is_honest, self._begins_apart = tells_copied, is_honest, begins_apart
        self._lag = lag
        self._coherent: set[Hashable] = set()
        # One object for equal environments, so that what is known of each is found by what it is.
        self._environments: dict[Environment, Environment] = {}
        self._codes: dict[int, bytes] = {}
        self._known: dict[tuple[int, int], Known] = {}
        self._said: dict[tuple[int, int], Judged] = {}
        # By the plan's object, which is kept so that no other object gets its place.
        self._lives: dict[tuple[int, int], tuple[Live, StepPlan]] = {}
        self._pages: dict[tuple[int, int, int, tuple[str, ...]], tuple[PageCells, StepPlan]] = {}
        self._readers: dict[tuple[int, tuple[int, ...]], Reader] = {}

    def initial(self) -> Iterable[State]:
        """Nothing happened."""
        return [State(0, Ghost((), Cells()), self._one(self._truth.nothing(self._program.first(), self._bounds)))]

    def _one(self, env: Environment) -> Environment:
        """The object that stands for all equal environments."""
        return self._environments.setdefault(env, env)

    def encode(self, state: State) -> bytes:
        """The machine's content, the commands in order of issue, the memory by cell, and the environment."""
        core, ghost, env = state
        code = self._codes.get(id(env))
        if code is None:
            code = self._codes[id(env)] = blake2b(repr(env).encode(), digest_size=16).digest()
        ops: list[object] = []
        for work, *rest in ghost.ops:
            ops += (work.code, *rest)
        return self.cores.all[core].code + code + dumps(ops, 2) + ghost.cells.code

    def pack(self, state: State) -> object:
        """The machine's state itself, and the rest."""
        return self.cores.packed(state.core), state.ghost, state.env

    def unpack(self, packed: object) -> State:
        """A state that another process packed."""
        machine, ghost, env = cast("tuple[Any, Ghost, Environment]", packed)
        return State(self.cores.unpacked(machine), ghost, self._one(env))

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
            ghost, found = self._device.issue(ghost, step.commands, self._live(env))
            broken += tuple(found)
        if step.numbers is not None:
            ghost = self._device.renumbered(ghost, step.numbers)
            ghost = self._device.freed(ghost, self.cores.all[step.core].free_pages)
        return Taken(State(step.core, ghost, env if env is state.env else self._one(env)), step.marks, broken)

    def _live(self, env: Environment) -> Live:
        """What the forward pass of the newest step left in its buffers: rows, and leftovers."""
        if env.plan is not None:
            plan, step = env.plan, env.step
        elif env.saved:
            plan, step = env.saved[-1].plan, env.saved[-1].step
        else:
            return NO_OUTPUTS
        known = self._lives.get((id(plan), step))
        if known is not None:
            return known[0]
        number = self.names.number
        live = Live(
            {
                name: [row_code(step, row.node, number[name]) for row in plan.rows]
                for name in plan.emits
                if name != NOTE
            },
            {name: row_code(step, 0, number[name]) for name in plan.emits if name == NOTE},
        )
        self._lives[id(plan), step] = live, plan
        return live

    def show(self, code: int) -> str:
        """A symbolic row in words."""
        return show_row(self.names, code)

    def changes(self, before: State, after: State) -> list[str]:
        """What an event changed, for a story."""
        views = (self.cores.all[each.core].view for each in (before, after))
        return [*view_changes(*views), *cell_changes(self.names, before.ghost.cells, after.ghost.cells)]


def slots_of(plan: StepPlan) -> list[int]:
    """The slots that a step computes, in batch order."""
    return [row.slot for row in plan.rows]


def saved_of(env: Environment, event: Event) -> Saved:
    """The saved step whose builder acts."""
    number = int(str(event[0])[_ACTOR:])
    for saved in env.saved:
        if saved.step == number:
            return saved
    msg = f"{event[0]} acts, and step {number} is not saved"
    raise AssertionError(msg)


def with_saved(env: Environment, saved: Saved) -> Environment:
    """The same with one saved step changed."""
    return env._replace(saved=tuple([saved if each.step == saved.step else each for each in env.saved]))


def without_saved(env: Environment, saved: Saved) -> Environment:
    """The same with one saved step less."""
    return env._replace(saved=tuple([each for each in env.saved if each.step != saved.step]))
