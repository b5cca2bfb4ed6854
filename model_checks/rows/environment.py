"""What is known beside the machine: what each slot should hold, what each saved step must hand out, who is at what."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple, TypeAlias

from tenure.core.config import RowConfig
from tenure.core.rows.names import HIDDEN
from tenure.model_checks.rows.cells import ZEROS, Names, row_code, row_of
from tenure.model_checks.rows.plans import NOTE, EngineState, StepPlan

IDLE, STARTED, RESERVED = range(3)
"""Where the engine is: between steps, with a step to save, with a save reserved."""

WAITING, COPYING, COPIED, RESTING = range(4)
"""Where the builder of a step is: not at it, reading page and buffers, reading buffers only, given up after copying."""

HitKey: TypeAlias = tuple[str, int]


class HitRead(NamedTuple):
    """A hit's buffer that a builder was given: of whom, under which name, which read, how many rows."""

    request: str
    name: int
    read: int
    rows: int


class Saved(NamedTuple):
    """A saved step that nobody consumed yet.

    Attributes:
        expected: per request with a hit, and name, the rows that its hit must give; None if it cannot be read.
        builder: where its builder is.
        asked: what the builder asked for.
        page: the page it reads; -1 for none.
        hits: the buffers it reads.
        is_fenced: a reset forgot the step while the builder was at it.
    """

    step: int
    plan: StepPlan
    expected: tuple[tuple[HitKey, tuple[int, ...] | None], ...]
    builder: int = WAITING
    asked: tuple[str, ...] = ()
    page: int = -1
    hits: tuple[HitRead, ...] = ()
    is_fenced: bool = False


class Bounds(NamedTuple):
    """How often something may still happen.

    Attributes:
        failures: commands that end badly.
        resets: resets that no failure asks for.
        abandons: materialize calls that raise after their plan; below 0, any number of them.
        shutdowns: 1 if the cache may be shut down.
    """

    failures: int = 0
    resets: int = 0
    abandons: int = 0
    shutdowns: int = 0


class Environment(NamedTuple):
    """Everything but the machine and the memory.

    Attributes:
        engine: where the program is.
        plan: the step that waits to be saved; `step` is its number.
        raw: per name and slot the row that was claimed last (`ZEROS`: none).
        computed: per slot the step that computed it last (0: none since the reset).
        named: per block the node that it was said to end with (0: unknown).
        saved: saved steps that nobody consumed yet.
        is_failed, is_down: a write failed; the cache is shut down.
    """

    engine: EngineState
    raw: tuple[int, ...]
    computed: tuple[int, ...]
    named: tuple[int, ...]
    bounds: Bounds
    plan: StepPlan | None = None
    phase: int = IDLE
    step: int = 0
    saved: tuple[Saved, ...] = ()
    is_failed: bool = False
    is_down: bool = False


class Truth:
    """What should stand in every slot, by the rules in words: kept without a look at the machine."""

    def __init__(self, config: RowConfig, names: Names) -> None:
        """For a pool of this many slots under these names."""
        self._slots, self._block_size, self._names = config.num_slots, config.block_size, names

    def nothing(self, engine: EngineState, bounds: Bounds) -> Environment:
        """At the beginning."""
        width = len(self._names.names)
        blocks = self._slots // self._block_size
        return Environment(engine, (ZEROS,) * (width * self._slots), (0,) * self._slots, (0,) * blocks, bounds)

    def row(self, env: Environment, name: int, slot: int) -> int:
        """The row that counts (R21): the one claimed last, if the step that computed the slot last emitted it."""
        code = env.raw[name * self._slots + slot]
        return code if code and row_of(code).step == env.computed[slot] else ZEROS

    def claimed(self, env: Environment) -> Iterator[tuple[int, int, int]]:
        """Every (name, slot) that was ever claimed, with the row claimed last."""
        for place, code in enumerate(env.raw):
            if code:
                yield (*divmod(place, self._slots), code)

    def published(self, env: Environment) -> Environment:
        """The step was saved: its rows are claimed, its hits are fixed."""
        plan, step = env.plan, env.step
        assert plan is not None
        raw, computed = list(env.raw), list(env.computed)
        for row in plan.rows:
            computed[row.slot] = step
            for name in plan.emits:
                if name != NOTE:
                    number = self._names.number[name]
                    raw[number * self._slots + row.slot] = row_code(step, row.node, number)
        env = env._replace(raw=tuple(raw), computed=tuple(computed), named=self._renamed(env, plan))
        expected = tuple(self._expected(env, plan))
        saved = (*env.saved, Saved(step, plan, expected))
        return env._replace(plan=None, phase=IDLE, step=0, saved=saved)

    def dropped(self, env: Environment) -> Environment:
        """The step was given up: its slots hold nothing that counts."""
        plan = env.plan
        assert plan is not None
        computed = list(env.computed)
        for row in plan.rows:
            computed[row.slot] = env.step
        named = self._renamed(env, plan._replace(computes=()))
        return env._replace(computed=tuple(computed), named=named, plan=None, phase=IDLE, step=0)

    def forgotten(self, env: Environment, engine: EngineState) -> Environment:
        """After a reset: nothing was ever claimed; builders at a step go on with what they have."""
        empty = self.nothing(engine, env.bounds)
        still = tuple(
            each._replace(is_fenced=True) for each in env.saved if each.is_fenced or each.builder in (COPYING, COPIED)
        )
        return empty._replace(saved=still)

    def _renamed(self, env: Environment, plan: StepPlan) -> tuple[int, ...]:
        named = list(env.named)
        for row in plan.rows:
            named[row.slot // self._block_size] = 0
        for block, node in plan.computes:
            named[block] = node
        return tuple(named)

    def _expected(self, env: Environment, plan: StepPlan) -> Iterator[tuple[HitKey, tuple[int, ...] | None]]:
        for change in plan.changes:
            if change.kind != "start" or not change.hit:
                continue
            for name in plan.emits:
                if name != NOTE:
                    number = self._names.number[name]
                    rows = tuple(self._hit_rows(env, change.hit, change.nodes if change.is_named else (), number))
                    is_hole = name == HIDDEN and ZEROS in rows
                    yield (change.request, number), None if is_hole else rows

    def _hit_rows(self, env: Environment, blocks: Sequence[int], nodes: Sequence[int], name: int) -> Iterator[int]:
        size = self._block_size
        for place, block in enumerate(blocks):
            differs = bool(nodes) and env.named[block] != nodes[(place + 1) * size - 1]
            for slot in range(block * size, (block + 1) * size):
                yield ZEROS if differs else self.row(env, name, slot)

    def own_rows(self, saved: Saved, request: str, name: int) -> list[int]:
        """The rows of a request that its step made."""
        return [row_code(saved.step, row.node, name) for row in saved.plan.rows if row.request == request]

    def strangers(self, saved: Saved) -> list[str]:
        """Hits that promise a chain and give another: the engine of a scope must be honest, unless it says so."""
        found: list[str] = []
        for change in saved.plan.changes:
            for (request, name), rows in saved.expected:
                if request == change.request and change.nodes and rows is not None:
                    for node, code in zip(change.nodes, rows, strict=True):
                        if code and row_of(code).node != node:
                            found.append(f"{request} hits node {node} under {self._names.names[name]}")
        return found
