"""The executor on the device under test beside the naive oracle: the same calls of both, every row compared.

Every row is a canary: it says which name, step and token it is of, and the engine overwrites its outputs after each
save. So a page that is used early, a copy that comes late or a row too few shows as a row of something else.
"""

import hashlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final

import numpy as np

from tenure.backends.capabilities import Capability
from tenure.backends.conformance.bench import Array
from tenure.backends.conformance.histories import numbers, require_met
from tenure.backends.conformance.registry import check
from tenure.backends.conformance.rig import CheckFailedError, Rig
from tenure.backends.conformance.row_subject import Found, RowSubject
from tenure.backends.cpu.arrays import STORAGE
from tenure.backends.leftovers import is_tuple
from tenure.core.config import RowConfig
from tenure.core.errors import TenureError
from tenure.core.rows.events import StepId
from tenure.core.rows.names import HIDDEN, NameId
from tenure.spec.choices import Choices
from tenure.spec.rows.emissions import POLICIES, Mark, Save, some_save
from tenure.spec.rows.engine import Engine, Plan
from tenure.spec.rows.reference import ReferenceCache
from tenure.spec.rows.reference_values import Emitted, Materialized

CALLS: Final = 120
HISTORIES: Final = 6
NUMBERS: Final = 40
"""Numbers that one call uses up at most, about."""
LAZY: Final = 16
"""What the device has done is looked at so seldom that later steps overwrite what reads have yet to take."""
SEEDS: Final = 1000
"""So many histories of one check have seeds of their own."""
EXACT: Final[Mapping[str, int]] = {"float16": 2000, "uint8": 250, "float32": 2**23, "int32": 2**30, "int64": 2**62}
"""Whole numbers that a dtype tells apart."""
SPOILED: Final = 1
"""What outputs hold when nobody may look at them any more."""


class Canaries:
    """Every row that the oracle knows as values of a dtype; zeros stay zeros."""

    def __init__(self) -> None:
        self._numbers: dict[Any, int] = {}

    def rows(self, rows: Sequence[Any], row_shape: Sequence[int], dtype: str) -> Array:
        """Rows as an array."""
        array = np.zeros((len(rows), *row_shape), STORAGE[dtype])
        for place, row in enumerate(rows):
            if not _is_zero(row):
                number = self._numbers.setdefault(row, len(self._numbers) + 2)
                array[place] = number % EXACT[dtype] + SPOILED + 1
        return array


def _is_zero(row: Any) -> bool:
    # What a hole of a hit is: nested tuples of zeros.
    if not is_tuple(row) or isinstance(row, Mark):
        return bool(row == 0)
    return all(_is_zero(part) for part in row)


class Pair:
    """The oracle and the subject.

    Attributes:
        oracle: what should come of the calls.
        subject: what does.
        seen: what came of the calls.
    """

    def __init__(self, subject: RowSubject, config: RowConfig, choices: Choices, seen: Counter[str]) -> None:
        """Both know nothing yet."""
        self.seen = seen
        self._rig, self._config, self._choices = subject.rig, config, choices
        self.oracle = ReferenceCache(config, subject.policy)
        self.subject = subject
        self._engine = Engine(config, choices.pick(["never", "at starts"]))
        self._plan: Plan | None = None
        self._canaries = Canaries()
        # By name and step what was emitted.
        self._leftovers: dict[tuple[NameId, str], Array] = {}
        # Buffers of the engine, which every forward pass writes again.
        self._live: dict[tuple[NameId, tuple[int, ...], str], Any] = {}

    def call(self) -> None:
        """Some call."""
        usual = [self.start, self.save, self.materialize, self.save, self.start, self.save, self.start, self.save]
        self._choices.often(usual, self.drop, self.discard)()

    # --- Calls ----------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """A scheduler output; a step that waits to be saved is saved first."""
        if self._plan is not None:
            self.save()
        self.drop()
        self.start_with(self._engine.plan(self._choices))

    def start_with(self, plan: Plan) -> None:
        """A scheduler output as planned."""
        expected = self.oracle.new_step_starts(plan.changes)
        found = self.subject.start(plan.changes)
        if expected != found:
            raise CheckFailedError(f"a step began as {found}, and should have as {expected}")
        self.seen["hits"] += len(expected.hits)
        self._engine.take(plan)
        self._plan = plan if expected.step is not None else None

    def save(self) -> None:
        """What the forward pass emits, as it may come."""
        plan, step = self._plan, self.oracle.pending
        if plan is None or step is None:
            return
        while len(self.oracle.unconsumed) >= self._config.pages:
            self.consume(self.oracle.unconsumed[0])
        save = some_save(plan, step, self._choices)
        try:
            self.oracle.check_save(save.outputs, save.layout)
        except TenureError:
            return
        self.save_as(plan, save)

    def save_as(self, plan: Plan, save: Save) -> None:
        """What the forward pass of the started step emits, frozen, and overwritten at once."""
        step = self.oracle.save_outputs(save.outputs, save.layout)
        live = {each.output.name: self._emit(each) for each in save.outputs}
        self.subject.save([each.output for each in save.outputs], save.layout, live)
        self._leftovers |= {(each.output.name, f"step {step}"): self._values(each) for each in save.outputs}
        self._overwrite(save, live)
        self.seen["saves"] += 1
        self._engine.compute(plan)
        self._plan = None

    def _emit(self, emitted: Emitted) -> Any:
        """A forward pass writes an output."""
        shape, dtype = emitted.output.shape, emitted.output.dtype
        if shape is None or dtype is None:
            return emitted.content
        values = self._values(emitted)
        key = emitted.output.name, shape, dtype
        if key in self._live:
            self._rig.bench.overwrite(self._live[key], values)
        else:
            self._live[key] = self._rig.bench.make(values, dtype)
        return self._live[key]

    def _values(self, emitted: Emitted) -> Array:
        shape, dtype = emitted.output.shape, emitted.output.dtype
        return np.empty(0) if shape is None or dtype is None else self._canaries.rows(emitted.content, shape[1:], dtype)

    def _overwrite(self, save: Save, live: dict[NameId, Any]) -> None:
        for each in save.outputs:
            if each.output.shape is not None and each.output.dtype is not None:
                values = np.full(each.output.shape, SPOILED, STORAGE[each.output.dtype])
                self._rig.bench.overwrite(live[each.output.name], values)

    def materialize(self) -> None:
        """Some saved step, or nothing if there is none."""
        if self.oracle.unconsumed:
            self.consume(self._choices.pick(self.oracle.unconsumed))

    def consume(self, step: StepId) -> None:
        """Materialize a step for everybody who can read it, and compare."""
        batch = self.oracle.batch_of(step)
        readable = tuple(each for each in batch if self.oracle.is_readable(step, each))
        self.seen["unreadable"] += len(batch) - len(readable)
        expected = self.oracle.materialize(step, readable)
        self._compare(expected, self.subject.materialize(step, readable), f"step {step}")

    def _compare(self, expected: Materialized, found: Found, what: str) -> None:
        wanted = dict(expected.mm_outputs)
        if expected.hidden_states is not None:
            wanted[HIDDEN] = expected.hidden_states
        names = {*found.rows, *found.leftovers}
        if set(wanted) != names:
            raise CheckFailedError(f"{what} has {sorted(names)}, and should have {sorted(wanted)}")
        for name, by_request in found.rows.items():
            row_format = self.oracle.formats[name]
            for request, rows in by_request.items():
                values = self._canaries.rows(wanted[name][request], row_format.row_shape, row_format.dtype)
                self._rig.same(values, rows, f"{name or 'hidden'} rows of request {request!r} in {what}")
                self.seen["rows"] += len(values)
        for name, whole in found.leftovers.items():
            self._compare_leftover(name, whole, wanted[name], what)

    def _compare_leftover(self, name: NameId, whole: Any, shares: Any, what: str) -> None:
        if self._rig.device.describe(whole) is None:
            return
        values = self._leftovers[name, what]
        self._rig.same(values, np.array(self._rig.bench.read(whole)), f"leftover {name} of {what}")
        self.seen["leftovers"] += len(shares)

    def discard(self) -> None:
        """Nobody wants some step."""
        if self.oracle.unconsumed:
            step = self._choices.pick(self.oracle.unconsumed)
            self.oracle.discard_step(step)
            self.subject.discard(step)

    def drop(self) -> None:
        """The started step is given up."""
        if self._plan is not None:
            slots = [row.slot for row in self._plan.rows]
            self.oracle.drop_step(slots)
            self.subject.drop(np.array(slots, dtype=np.int64))
            self._engine.compute(self._plan)
            self._plan = None

    def end(self) -> None:
        """Everything is consumed, everybody ends, and nothing is left."""
        self.drop()
        for step in self.oracle.unconsumed:
            self.consume(step)
        self.start_with(self._engine.ending())
        self.subject.come_to_rest()
        self.subject.close()
        self.seen.update(self.subject.seen)
        counters = self.subject.state.tables.counters
        self.seen["set aside"] += counters["rows_preserved"]


def lockstep(
    rig: Rig, histories: int, config_of: Callable[[Choices], RowConfig], must_see: Sequence[str], laziness: int = 3
) -> str:
    """Seeded histories, each on a fresh device; more of them than usual until they met what they must."""
    seen: Counter[str] = Counter()

    def tell(other: Rig, number: int) -> None:
        text = f"{rig.seed} {number}".encode()
        choices = Choices(hashlib.shake_256(text).digest(NUMBERS * CALLS))
        config = config_of(choices)
        pair = Pair(RowSubject(other, config, choices.pick(POLICIES), laziness), config, choices, seen)
        for _ in range(CALLS):
            pair.call()
        pair.end()

    for number in numbers(histories, seen, must_see):
        on_fresh_device(rig, number, f"history {number}", partial(tell, number=number))
    return how_far(seen, must_see)


def on_fresh_device(rig: Rig, number: int, where: str, tell: Callable[[Rig], None]) -> None:
    """Tell one of several histories of a check, with a seed of its own.

    Raises:
        CheckFailedError: it failed, `where` said, or the device itself found something.
    """
    bench = rig.make()
    other = Rig(bench, rig.seed * SEEDS + number, rig.timeout_s, rig.make, is_controlled=rig.is_controlled)
    try:
        tell(other)
    except CheckFailedError as error:
        raise CheckFailedError(f"{where}: {error}") from None
    finally:
        bench.device.close(rig.timeout_s)
    if found := bench.findings():
        raise CheckFailedError(f"{where}: the device itself found: {found[0]}")


def how_far(seen: Counter[str], must_see: Sequence[str]) -> str:
    """What a check met, in words.

    Raises:
        OutOfTimeError: it did not meet what it must.
    """
    require_met(seen, must_see)
    return (
        f"{seen['histories']} histories, {seen['rows']} rows compared, {seen['saves']} saves, {seen['hits']} hits, "
        f"{seen['set aside']} rows set aside"
    )


def _config(choices: Choices, **more: Any) -> RowConfig:
    values: dict[str, Any] = {
        "num_blocks": choices.pick([4, 6, 3]),
        "block_size": choices.pick([2, 1, 3]),
        "page_rows_max": 18,
        "pages": choices.pick([3, 2]),
        "budget_bytes": choices.pick([10**6, 60, 200, 30]),
        "copy_chunk_bytes": 4096,
    }
    return RowConfig(**(values | more))


@check("L1.rows-agree-with-the-oracle", "R02: a hit reads its slots as they stand after the save of its own step")
def rows_agree(rig: Rig) -> str:
    """Histories of many configurations."""
    return lockstep(rig, HISTORIES, _config, ["rows", "hits", "saves", "CopyDeferred", "leftovers"])


@check("L2.rows-are-set-aside", "R13: what a planned read needs is set aside before it is overwritten")
def rows_are_set_aside(rig: Rig) -> str:
    """One read at a time, so that later steps overwrite what the others wait for."""
    return lockstep(
        rig, HISTORIES, lambda choices: _config(choices, gathers_max=1), ["rows", "hits", "set aside"], LAZY
    )


@check("L3.pages-are-not-used-early", "R07: a page is used again when step and write are done with it")
def pages_are_not_used_early(rig: Rig) -> str:
    """Two pages, which every other step uses again."""
    return lockstep(
        rig, HISTORIES, lambda choices: _config(choices, pages=2, budget_bytes=30), ["rows", "saves", "CopyPage"]
    )


@check("L4.any-order", "the rows do not depend on the order in which lanes go on", Capability.CONTROLLED)
def any_order(rig: Rig) -> str:
    """The kit decides who goes on, between any two calls."""
    return lockstep(
        rig,
        2 * HISTORIES,
        lambda choices: _config(choices, gathers_max=choices.pick([64, 1])),
        ["rows", "hits", "saves", "set aside"],
    )
