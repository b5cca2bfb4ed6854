"""Three caches that are called alike: the naive oracle, and the facade inline and with a worker that dawdles.

What they return, the classes of their errors, and every row of every materialize must be the same.
"""

import random
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeVar

import numpy as np
import pytest

from tenure import OutputCache, RowConfig, RowPolicy
from tenure.backends.cpu import CpuDevice
from tenure.backends.cpu.arrays import is_array
from tenure.backends.device import Lane
from tenure.backends.leftovers import is_list, is_mapping, is_tuple
from tenure.core.errors import PageExhaustedError, TenureError, WaitTimeoutError
from tenure.core.rows.events import Extended, RequestId, Resumed, StepId
from tenure.core.rows.names import HIDDEN, NameId
from tenure.spec import ReferenceCache
from tenure.spec.choices import Choices
from tenure.spec.rows.calls import some_bad_change
from tenure.spec.rows.emissions import POLICIES, SPOILERS, Save, some_save
from tenure.spec.rows.engine import Engine, Plan
from tenure.spec.rows.reference_values import Emitted, Materialized

T = TypeVar("T")
NUMPY: Final[Mapping[str, Any]] = {
    "float32": np.float32,
    "int32": np.int32,
    "float16": np.float16,
    "uint8": np.uint8,
    "int64": np.int64,
    "bool": np.bool_,
    "float64": np.float64,
}


class DawdlingDevice(CpuDevice):
    """A CPU device whose worker takes a rest now and then, and which says late that a gather has ended.

    So calls meet it at every point of its work, and later steps claim what reads have yet to take.
    """

    def __init__(self) -> None:
        super().__init__(worker=True, tensors="numpy")
        self._random = random.Random(0)  # noqa: S311 - it decides how long nothing happens
        # Events of gathers, and how often they are still said not to have completed.
        self._late: dict[int, tuple[Any, int]] = {}

    def record(self, lane: Lane) -> Any:
        """As ever, behind a rest."""
        if lane is not Lane.COMPUTE and self._random.random() < 0.15:
            self._lanes.do(lane, "rest", time.sleep, self._random.random() * 0.002)
        event = super().record(lane)
        if lane is Lane.GATHER and self._random.random() < 0.5:
            self._late[id(event)] = (event, self._random.randrange(60))
        return event

    def query(self, event: Any) -> bool:
        """As ever, or not yet."""
        _, left = self._late.pop(id(event), (None, 0))
        if left:
            self._late[id(event)] = (event, left - 1)
            return False
        return super().query(event)


class Bits:
    """Rows as numbers: everything that the oracle takes for a row has one of its own."""

    def __init__(self) -> None:
        self._numbers: dict[Any, int] = {}

    def rows(self, emitted: Sequence[Any], row_shape: Sequence[int], dtype: str) -> np.ndarray[Any, Any]:
        """Rows as an array; zeros stay zeros."""
        array = np.zeros((len(emitted), *row_shape), NUMPY[dtype])
        for place, row in enumerate(emitted):
            is_zero = row == 0 or (type(row) is tuple and not any(_flat(row)))
            # Every number up to here is exact in every dtype.
            array[place] = 0 if is_zero else self._numbers.setdefault(row, len(self._numbers) + 1) % 251 + 1
        return array


def _flat(row: Any) -> list[Any]:
    return [leaf for part in row for leaf in _flat(part)] if is_tuple(row) else [row]


class Twins:
    """One method a kind of call; `seen` counts what came of them."""

    def __init__(self, config: RowConfig, policy: RowPolicy, identities: str, seen: Counter[str]) -> None:
        self.seen = seen
        self.config = config
        self.oracle = ReferenceCache(config, policy)
        inline = OutputCache(config, policy, device=CpuDevice(tensors="numpy"))
        self.caches = (inline, OutputCache(config, policy, device=DawdlingDevice()))
        self.engine = Engine(config, identities)
        self.plan: Plan | None = None
        self.bits = Bits()

    # --- Calls ------------------------------------------------------------------------------------------------

    def agree(self, expected: Callable[[], T], found: Callable[[OutputCache], Any]) -> tuple[T, list[Any]] | None:
        """Make a call everywhere; what came of it, or None if it was refused everywhere with the same class."""
        result: T
        try:
            result = expected()
        except TenureError as error:
            refusal = error
        else:
            return result, [found(cache) for cache in self.caches]
        for cache in self.caches:
            with pytest.raises(type(refusal)) as refused:
                found(cache)
            assert type(refusal) is type(refused.value)
        self.seen[type(refusal).__name__] += 1
        return None

    def start_with(self, changes: Sequence[Any], plan: Plan | None) -> None:
        made = self.agree(lambda: self.oracle.new_step_starts(changes), lambda cache: cache.new_step_starts(changes))
        if made is None:
            return
        assert [made[0]] * 2 == made[1]
        self.seen["hits"] += len(made[0].hits)
        self.seen["resumed with a hit"] += sum(isinstance(each, Resumed) and each.hit > 0 for each in changes)
        if plan is not None:
            self.engine.take(plan)
        self.plan = plan if made[0].step is not None else None

    def start(self, choices: Choices) -> None:
        plan = self.engine.plan(choices)
        self.start_with(plan.changes, plan)

    def end_all(self) -> None:
        plan = self.engine.ending()
        self.start_with(plan.changes, plan)

    def start_badly(self, choices: Choices) -> None:
        plan = self.engine.plan(choices)
        named: set[RequestId] = set()
        for change in plan.changes:
            named.update(change.requests if isinstance(change, Extended) else (change.request,))
        bad = some_bad_change(self.config, sorted(self.oracle.live - named, key=str), choices)
        changes = [*plan.changes, bad]
        try:
            self.oracle.clone().new_step_starts(changes)
        except TenureError:
            self.start_with(changes, None)

    def save_with(self, save: Save) -> None:
        live = {each.output.name: self.content(each) for each in save.outputs}
        if len(live) < len(save.outputs) or "" in live:
            # A mapping cannot say a name twice; and no name is checked by the machine's own tests.
            return
        hidden = live.pop(HIDDEN, None)
        if self.is_full and self.would_save(save):
            for cache in self.caches:
                self.is_out_of_pages(cache, save, hidden, live)
            return

        def save_on(cache: OutputCache) -> StepId:
            fresh = {name: _copied(value) for name, value in live.items()}
            kept = _copied(hidden)
            step = cache.save_outputs(kept, fresh, layout=save.layout)
            for value in (kept, *fresh.values()):
                _spoil(value)
            return step

        made = self.agree(lambda: self.oracle.save_outputs(save.outputs, save.layout), save_on)
        if made is None:
            return
        assert [made[0]] * 2 == made[1]
        self.seen["saved"] += 1
        if self.plan is not None:
            self.engine.compute(self.plan)
            self.plan = None

    @property
    def is_full(self) -> bool:
        """Whether every page is held by a step that nobody consumed."""
        return len(self.oracle.unconsumed) >= self.config.pages

    def would_save(self, save: Save) -> bool:
        try:
            self.oracle.check_save(save.outputs, save.layout)
        except TenureError:
            return False
        return True

    def is_out_of_pages(self, cache: OutputCache, save: Save, hidden: Any, live: dict[str, Any]) -> None:
        """R07: a save without a page waits, raises, and has changed nothing that a retry would miss."""
        runtime: Any = cache._runtime  # pyright: ignore[reportPrivateUsage]
        patience, runtime._timeout_s = runtime._timeout_s, 0.02
        refusal: WaitTimeoutError | None = None
        try:
            # What else it waits for comes in time, if not in the first.
            while not isinstance(refusal, PageExhaustedError):
                with pytest.raises(WaitTimeoutError) as refused:
                    cache.save_outputs(hidden, live, layout=save.layout)
                refusal = refused.value
        finally:
            runtime._timeout_s = patience
        assert self.oracle.unconsumed == tuple(refusal.unconsumed)
        self.seen["out of pages"] += 1

    def content(self, emitted: Emitted) -> Any:
        """What an engine hands over for something emitted."""
        shape, dtype = emitted.output.shape, emitted.output.dtype
        if shape is None:
            return emitted.content
        rows: list[Any] = emitted.content if is_list(emitted.content) else [emitted.content]
        if shape == ():
            return np.zeros((), NUMPY[dtype or "float64"])
        rows = rows[: shape[0]] + [("more",)] * (shape[0] - len(rows))
        return self.bits.rows(rows, shape[1:], dtype or "float64")

    def save(self, choices: Choices) -> None:
        if self.plan is not None and self.oracle.pending is not None:
            self.save_with(some_save(self.plan, self.oracle.pending, choices))

    def save_badly(self, choices: Choices) -> None:
        if self.plan is None or self.oracle.pending is None:
            return
        save = choices.pick(SPOILERS)(some_save(self.plan, self.oracle.pending, choices), choices, self.config)
        if any(each.output.shape is not None and each.output.dtype is None for each in save.outputs):
            return
        if not self.would_save(save):
            self.save_with(save)

    def drop(self) -> None:
        assert self.plan is not None
        slots = [row.slot for row in self.plan.rows]
        if self.agree(lambda: self.oracle.drop_step(slots), lambda cache: cache.drop_step(slots)) is not None:
            self.engine.compute(self.plan)
            self.plan = None

    def materialize(self, choices: Choices) -> None:
        if not self.oracle.unconsumed:
            return
        step = choices.pick(self.oracle.unconsumed)
        batch = self.oracle.batch_of(step)
        readable = tuple(each for each in batch if self.oracle.is_readable(step, each))
        usual = [readable, readable, readable[::-1], batch, readable[1:], ()]
        requests = choices.often(usual, batch[:1], (*batch, "nobody"), (*batch, *batch[:1]))
        made = self.agree(
            lambda: self.oracle.materialize(step, requests), lambda cache: cache.materialize(step, requests)
        )
        if made is None:
            return
        for found in made[1]:
            self.compare(made[0], found)

    def compare(self, expected: Materialized, found: Any) -> None:
        assert (expected.hidden_states is None) is (found.hidden_states is None)
        assert set(expected.mm_outputs) == set(found.mm_outputs)
        pairs = [(name, rows, found.mm_outputs[name]) for name, rows in expected.mm_outputs.items()]
        if expected.hidden_states is not None:
            pairs.append((HIDDEN, expected.hidden_states, found.hidden_states))
        for name, rows, other in pairs:
            assert set(rows) == set(other)
            for request, wanted in rows.items():
                self.compare_rows(name, wanted, other[request])

    def compare_rows(self, name: NameId, wanted: Any, found: Any) -> None:
        if not is_array(found):
            assert wanted == found
            return
        row_format = self.oracle.formats.get(name)
        dtype = str(found.dtype) if row_format is None else row_format.dtype
        row_shape = found.shape[1:] if row_format is None else row_format.row_shape
        if found.ndim:
            expected = self.bits.rows(wanted, row_shape, dtype)
            assert expected.shape == found.shape
            assert expected.dtype == found.dtype
            assert expected.tobytes() == found.tobytes()
        self.seen["rows compared"] += len(found) if found.ndim else 1

    def consume_badly(self, choices: Choices) -> None:
        step = choices.pick([0, 1, 2, 99])
        if step not in self.oracle.unconsumed:
            self.agree(lambda: self.oracle.discard_step(step), lambda cache: cache.discard_step(step))
            self.agree(lambda: self.oracle.materialize(step, ()), lambda cache: cache.materialize(step, ()))

    def discard(self, choices: Choices) -> None:
        if not self.oracle.unconsumed:
            return
        step = choices.pick(self.oracle.unconsumed)
        self.discard_one(step)

    def discard_one(self, step: StepId) -> None:
        self.agree(lambda: self.oracle.discard_step(step), lambda cache: cache.discard_step(step))

    def reset(self) -> None:
        made = self.agree(self.oracle.reset, lambda cache: cache.reset())
        assert made is not None
        assert [made[0]] * 2 == made[1]
        self.seen[f"reset {made[0]}"] += 1

    def register_late(self, choices: Choices) -> None:
        policy = choices.pick(POLICIES)
        self.agree(lambda: self.oracle.register_policy(policy), lambda cache: cache.register_policy(policy))

    def other(self, choices: Choices) -> None:
        """Calls that come rarely: the step is given up, everybody ends, the cache is reset, a policy comes too late."""
        if self.plan is not None and choices.pick([True, False]):
            self.drop()
        elif choices.pick([False, True]):
            self.register_late(choices)
        else:
            self.end_all()
            for step in self.oracle.unconsumed:
                self.discard_one(step)
        self.reset()

    # --- The end ----------------------------------------------------------------------------------------------

    def end(self) -> None:
        """R18: when everything is consumed and ended, nothing is left; and no thread is."""
        if self.plan is not None:
            self.drop()
        for step in self.oracle.unconsumed:
            self.discard_one(step)
        self.end_all()
        for cache in self.caches:
            with cache:
                _wait_until_quiet(cache)
            stats = cache.stats()
            self.seen["flushes"] += stats.counters.flushes
            self.seen["replanned"] += stats.counters.reads_replanned
            self.seen["preserved"] += stats.counters.rows_preserved
            self.seen["dropped"] += stats.counters.reads_dropped - stats.counters.reads_replanned


def _wait_until_quiet(cache: OutputCache) -> None:
    until = time.monotonic() + 60
    while True:
        cache._runtime.pump()  # pyright: ignore[reportPrivateUsage]
        stats = cache.stats()
        left = (
            stats.live_requests,
            stats.unconsumed_steps,
            stats.open_writes,
            stats.reads,
            stats.pages_held,
            stats.charged_bytes,
            stats.buffers_held_bytes,
        )
        if not any(left):
            return
        assert time.monotonic() < until, stats
        time.sleep(0.001)


def _copied(value: Any) -> Any:
    if is_array(value):
        return value.copy()
    if is_list(value):
        return list(value)
    return dict(value) if is_mapping(value) else value


def _spoil(value: Any) -> None:
    """The next forward pass overwrites what this one left."""
    if is_array(value):
        value.fill(1)
    elif is_list(value) or isinstance(value, dict):
        value.clear()
