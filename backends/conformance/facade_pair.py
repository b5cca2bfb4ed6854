"""A cache with the calls of `tenure.OutputCache` beside the naive oracle: the same calls of both, everything compared.

Outputs are numpy arrays. Every row is a canary, and outputs are overwritten as soon as a save has returned.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar

import numpy as np

from tenure.backends.conformance.bench import Array
from tenure.backends.conformance.lockstep import SPOILED, Canaries
from tenure.backends.conformance.rig import CheckFailedError, Rig
from tenure.backends.cpu.arrays import STORAGE, is_array
from tenure.backends.leftovers import is_list
from tenure.core.config import RowConfig
from tenure.core.errors import TenureError, UnreadableHitError
from tenure.core.rows.events import Extended, LifeCycle, RequestId, Slot, StepId
from tenure.core.rows.names import HIDDEN, NameId
from tenure.spec.choices import Choices
from tenure.spec.rows.calls import some_bad_change
from tenure.spec.rows.emissions import POLICIES, SPOILERS, Save, some_save
from tenure.spec.rows.engine import Engine, Plan
from tenure.spec.rows.reference import ReferenceCache
from tenure.spec.rows.reference_values import Emitted, Materialized

T = TypeVar("T")
PLAIN: Final = ("float32", "int32", "float16", "uint8", "int64")
"""Dtypes that numpy has and that tell canaries apart."""
NO_STEPS: Final = (0, 99)


@dataclass(frozen=True, slots=True)
class CacheBench:
    """A cache, and its engine's side: how an output is overwritten, where the host's own hand is not in order with it.

    Attributes:
        cache: under test.
        overwrite: what the next forward pass does to an output.
    """

    cache: Any
    overwrite: Callable[[Array, Array], None] = np.copyto

    @classmethod
    def of(cls, made: Any) -> "CacheBench":
        """The bench of a cache that reads outputs at the call."""
        return made if isinstance(made, CacheBench) else cls(made)


class FacadePair:
    """The oracle and the subject.

    Attributes:
        seen: what came of the calls.
    """

    def __init__(
        self,
        make: Callable[[Mapping[str, Any]], Any],
        config: RowConfig,
        choices: Choices,
        seen: Counter[str],
        seed: int,
    ) -> None:
        """Both know nothing yet."""
        policy = choices.pick(POLICIES)
        self.seen = seen
        self._config = config
        self._oracle = ReferenceCache(config, policy)
        made = make({"config": config, "policy": policy, "seed": seed})
        if made is None:
            raise CheckFailedError("the maker gave no cache")
        bench = CacheBench.of(made)
        self._subject, self._overwrite = bench.cache, bench.overwrite
        self._engine = Engine(config, choices.pick(["never", "at starts"]))
        self._plan: Plan | None = None
        self._canaries = Canaries()
        # By step and name the shape and dtype of what was emitted as a tensor.
        self._emitted: dict[tuple[StepId, NameId], tuple[tuple[int, ...], str]] = {}
        # Slots that had rows until a step that was to compute them was given up, and the hits that lack these rows.
        self._given_up: set[Slot] = set()
        self._lack_given_up: set[tuple[StepId, RequestId]] = set()
        # Rows that were handed out: what is said of them, what they must stay, and they.
        self._handed: list[tuple[str, Array, Any]] = []
        self._is_down = False

    # --- The same of both -----------------------------------------------------------------------------------------

    def _both(self, what: str, expected: Callable[[], T], found: Callable[[], Any]) -> tuple[T, Any] | None:
        """Make a call of both; None if both refuse it by the same error."""
        refusal: TenureError | None = None
        wanted: Any = None
        try:
            wanted = expected()
        except TenureError as error:
            refusal = error
        try:
            made = found()
        except TenureError as error:
            if refusal is None:
                raise CheckFailedError(f"{what} is refused by {type(error).__name__}: {error}") from None
            if type(error).__name__ != type(refusal).__name__:
                should = type(refusal).__name__
                raise CheckFailedError(
                    f"{what} is refused by {type(error).__name__}, and should be by {should}"
                ) from None
            self.seen[f"refused {what}"] += 1
            return None
        except Exception as error:
            raise CheckFailedError(f"{what} raised {type(error).__name__}: {error}") from None
        if refusal is not None:
            raise CheckFailedError(f"{what} is taken, and should be refused by {type(refusal).__name__}: {refusal}")
        return wanted, made

    def _start_with(self, changes: Sequence[LifeCycle], plan: Plan | None) -> None:
        made = self._both(
            "new_step_starts",
            lambda: self._oracle.new_step_starts(changes),
            lambda: self._subject.new_step_starts(changes),
        )
        if made is None:
            return
        if made[0] != made[1]:
            raise CheckFailedError(f"new_step_starts returns {made[1]}, and should {made[0]}")
        self.seen["hits"] += len(made[0].hits)
        if plan is not None:
            self._engine.take(plan)
        self._plan = plan if made[0].step is not None else None

    # --- Good calls -----------------------------------------------------------------------------------------------

    def start(self, choices: Choices) -> None:
        """A scheduler output; a step that waits is given up first."""
        self.drop(choices)
        plan = self._engine.plan(choices)
        self._start_with(plan.changes, plan)

    def save(self, choices: Choices) -> None:
        """What the forward pass emits; steps are consumed while no page is free."""
        plan, step = self._plan, self._oracle.pending
        if plan is None or step is None:
            return
        while len(self._oracle.unconsumed) >= self._config.pages:
            self._consume(self._oracle.unconsumed[0])
        self._save_with(some_save(plan, step, choices))

    def _save_with(self, save: Save) -> None:
        names = [each.output.name for each in save.outputs]
        if len(set(names)) < len(names) or "" in names[1:] + [name for name in names[:1] if name != HIDDEN]:
            # A mapping says no name twice.
            return
        live = {each.output.name: self._content(each) for each in save.outputs}
        mm = {name: value for name, value in live.items() if name != HIDDEN}
        made = self._both(
            "save_outputs",
            lambda: self._oracle.save_outputs(save.outputs, save.layout),
            lambda: self._subject.save_outputs(live.get(HIDDEN), mm, layout=save.layout),
        )
        for value in live.values():
            self._spoil(value)
        if made is None:
            return
        if made[0] != made[1]:
            raise CheckFailedError(f"save_outputs returns step {made[1]}, and should {made[0]}")
        self.seen["saves"] += 1
        self._note_given_up(made[0], save)
        for each in save.outputs:
            if each.output.shape is not None and each.output.dtype is not None:
                self._emitted[made[0], each.output.name] = tuple(each.output.shape), each.output.dtype
        if self._plan is not None:
            self._engine.compute(self._plan)
            self._plan = None

    def _note_given_up(self, step: StepId, save: Save) -> None:
        """Which hits of a step that was saved just now lack no rows but those that a step given up took away."""
        self._given_up.difference_update(save.layout.slots.tolist())
        for request in self._unreadable(step):
            try:
                self._oracle.clone().materialize(step, [request])
            except UnreadableHitError as error:
                if self._given_up.issuperset(error.slots):
                    self._lack_given_up.add((step, request))

    def _unreadable(self, step: StepId) -> list[RequestId]:
        return [each for each in self._oracle.batch_of(step) if not self._oracle.is_readable(step, each)]

    def _content(self, emitted: Emitted) -> Any:
        shape, dtype = emitted.output.shape, emitted.output.dtype
        if shape is None or dtype is None:
            return list(emitted.content) if is_list(emitted.content) else emitted.content
        if not shape:
            return np.zeros((), STORAGE[dtype])
        rows = list(emitted.content)[: shape[0]]
        rows += [("more",)] * (shape[0] - len(rows))
        return self._canaries.rows(rows, shape[1:], dtype)

    def materialize(self, choices: Choices) -> None:
        """Some saved step, for all of its requests that can be read."""
        if self._oracle.unconsumed:
            self._consume(choices.pick(self._oracle.unconsumed))

    def _consume(self, step: StepId) -> None:
        """Ask in vain for those who cannot have rows, one by one, and then for all others."""
        batch, unreadable = self._oracle.batch_of(step), self._unreadable(step)
        for each in unreadable:
            self._materialize(step, [each])
            self.seen["hits of what was given up"] += (step, each) in self._lack_given_up
        self._materialize(step, [each for each in batch if each not in unreadable])

    def _materialize(self, step: StepId, requests: Sequence[RequestId]) -> None:
        made = self._both(
            "materialize",
            lambda: self._oracle.materialize(step, requests),
            lambda: self._subject.materialize(step, list(requests)),
        )
        if made is not None:
            self._compare(made[0], made[1], step)

    def discard(self, choices: Choices) -> None:
        """Nobody wants some step."""
        if self._oracle.unconsumed:
            self._discard(choices.pick(self._oracle.unconsumed))

    def _discard(self, step: StepId) -> None:
        self._both("discard_step", lambda: self._oracle.discard_step(step), lambda: self._subject.discard_step(step))

    def drop(self, choices: Choices) -> None:
        """The started step is given up."""
        del choices
        if self._plan is not None:
            slots = [row.slot for row in self._plan.rows]
            self._given_up.update(slot for slot in slots if self._oracle.has_row(HIDDEN, slot))
            self._both("drop_step", lambda: self._oracle.drop_step(slots), lambda: self._subject.drop_step(slots))
            self._engine.compute(self._plan)
            self._plan = None
            self.seen["drops"] += 1

    def reset(self, choices: Choices) -> None:
        """Everybody ends, every step is consumed, all rows are forgotten; or, sometimes, it is too early."""
        if choices.pick([False, True, True]):
            self.drop(choices)
            self._start_with(self._engine.ending().changes, None)
            for step in self._oracle.unconsumed:
                self._consume(step)
        made = self._both("reset", self._oracle.reset, lambda: self._subject.reset())
        if made is not None and made[0] is not made[1]:
            raise CheckFailedError(f"reset returns {made[1]}, and should {made[0]}")
        if made is not None and made[0]:
            self._engine.forget()
            self._given_up.clear()
            self._plan = None
        self.seen[f"reset {made is not None and made[0]}"] += 1

    # --- Bad calls ------------------------------------------------------------------------------------------------

    def start_badly(self, choices: Choices) -> None:
        """A scheduler output with something that cannot be; nothing of it may stay."""
        plan = self._engine.plan(choices)
        named: set[RequestId] = set()
        for change in plan.changes:
            named.update(change.requests if isinstance(change, Extended) else (change.request,))
        bad = some_bad_change(self._config, sorted(self._oracle.live - named, key=str), choices)
        changes = [*plan.changes, bad]
        try:
            self._oracle.clone().new_step_starts(changes)
        except TenureError:
            self._start_with(changes, None if self._plan is None else self._plan)

    def save_badly(self, choices: Choices) -> None:
        """An output, a slot, a batch or a padding that cannot be."""
        if self._plan is None or self._oracle.pending is None:
            return
        save = choices.pick(SPOILERS)(some_save(self._plan, self._oracle.pending, choices), choices, self._config)
        if any(each.output.shape is not None and each.output.dtype not in PLAIN for each in save.outputs):
            return
        try:
            self._oracle.check_save(save.outputs, save.layout)
        except TenureError:
            self._save_with(save)

    def consume_badly(self, choices: Choices) -> None:
        """A step that is gone, or never was; requests that it does not have, or twice."""
        known = self._oracle.unconsumed
        gone = [step for step in range(1, max(known, default=2)) if step not in known]
        step = choices.pick([*NO_STEPS, *gone])
        self._both("discard_step", lambda: self._oracle.discard_step(step), lambda: self._subject.discard_step(step))
        self._materialize(step, ())
        for each in known[:1]:
            batch = self._oracle.batch_of(each)
            self._materialize(each, choices.pick([(*batch, "nobody"), (*batch, *batch[:1])]))

    def register_late(self, choices: Choices) -> None:
        """A policy behind the first step."""
        policy = choices.pick(POLICIES)
        self._both(
            "register_policy",
            lambda: self._oracle.register_policy(policy),
            lambda: self._subject.register_policy(policy),
        )

    def shut_down(self, choices: Choices) -> None:
        """Nothing is begun, saved, given up or handed out any more; told twice. Discards and resets are as ever."""
        for _ in range(2):
            self._both("shutdown", self._oracle.shutdown, lambda: self._subject.shutdown())
        self._is_down = True
        plan, pending = self._plan, self._oracle.pending
        if plan is not None and pending is not None:
            self._save_with(some_save(plan, pending, choices))
            self.drop(choices)
        self._start_with((), None)
        self.register_late(choices)
        for step in self._oracle.unconsumed:
            self._materialize(step, ())
            self._consume(step)
        for step in NO_STEPS:
            self._discard(step)
        made = self._both("reset", self._oracle.reset, lambda: self._subject.reset())
        if made is not None and made[0] is not made[1]:
            raise CheckFailedError(f"reset returns {made[1]}, and should {made[0]}")

    # --- Rows -----------------------------------------------------------------------------------------------------

    def _compare(self, expected: Materialized, found: Any, step: StepId) -> None:
        what = f"step {step}"
        wanted: dict[NameId, Mapping[RequestId, Any]] = dict(expected.mm_outputs)
        got: dict[NameId, Any] = dict(found.mm_outputs)
        if expected.hidden_states is not None:
            wanted[HIDDEN] = expected.hidden_states
        if found.hidden_states is not None:
            got[HIDDEN] = found.hidden_states
        if set(wanted) != set(got):
            raise CheckFailedError(f"{what} has {sorted(got)}, and should have {sorted(wanted)}")
        for name, shares in wanted.items():
            if set(shares) != set(got[name]):
                raise CheckFailedError(f"{name} of {what} is of {sorted(map(str, got[name]))}")
            for request, rows in shares.items():
                where = f"{name or 'hidden'} rows of request {request!r} in {what}"
                self._compare_rows(self._emitted.get((step, name)), rows, got[name][request], where)

    def _compare_rows(self, emitted: tuple[tuple[int, ...], str] | None, rows: Any, found: Any, where: str) -> None:
        """Of a tensor shape, dtype and every bit; of anything else whether it is equal."""
        if emitted is None:
            if is_array(found) or rows != found:
                raise CheckFailedError(f"{where}: found {found!r}, and expected {rows!r}")
            return
        if not is_array(found):
            raise CheckFailedError(f"{where}: found {found!r}, and expected an array")
        shape, dtype = emitted
        values = self._canaries.rows(rows, shape[1:], dtype) if shape else np.zeros((), STORAGE[dtype])
        Rig.same(values, np.asarray(found), where)
        self._handed.append((where, values, found))
        self.seen["rows"] += len(rows) if shape else 0

    def end(self) -> None:
        """Everything is consumed, everybody ends; what was handed out in the meantime is what it was."""
        if not self._is_down and self._plan is not None:
            self._both("drop_step", lambda: self._oracle.drop_step(()), lambda: self._subject.drop_step(()))
        for step in self._oracle.unconsumed:
            self._discard(step)
        for where, values, found in self._handed:
            Rig.same(values, np.asarray(found), f"{where}, looked at again when the history is over")
        self._subject.shutdown()

    def _spoil(self, value: Any) -> None:
        """The next forward pass overwrites what this one left."""
        if is_array(value):
            self._overwrite(value, np.full_like(value, SPOILED))
        elif is_list(value):
            value.clear()
