"""One trace on a device: the machine is told what the trace tells, and completions come from the device.

Completions are held until it is their turn. A device that the kit controls runs an operation no sooner than the trace
needs its end; any other device runs them when it likes, which is no later than that. All rows are canaries, and what a
materialize would return is compared with the naive oracle at the moment when the trace says that it was read.
"""

import time
from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeAlias

import numpy as np

from tenure.backends.conformance.bench import Array
from tenure.backends.conformance.fates import Ledger, Owed, failing_of
from tenure.backends.conformance.lockstep import SPOILED, Canaries
from tenure.backends.conformance.refusals import require_refusal
from tenure.backends.conformance.rig import LOOK_AGAIN_S, CheckFailedError, OutOfTimeError, Rig
from tenure.backends.conformance.row_subject import Counted
from tenure.backends.conformance.traces import Trace, TraceScope
from tenure.backends.cpu.arrays import STORAGE
from tenure.backends.device import Rows
from tenure.backends.executor import Executor
from tenure.core.errors import TenureError
from tenure.core.rows.answers import ConsumePlan, Ignored, ResetAnswered, RowAnswer, SaveReserved, StepBegan
from tenure.core.rows.commands import CommandAnswer, CommandId, Lane, RowCommand
from tenure.core.rows.events import (
    ConsumeAbandoned,
    ConsumeRequested,
    GatherFailed,
    PolicyRegistered,
    RequestId,
    ResetRequested,
    RowEvent,
    RowsCopiedOut,
    SaveCancelled,
    SavePublished,
    SaveRequested,
    ShutdownRequested,
    StepConsumed,
    StepDiscarded,
    StepDropped,
    StepId,
    StepStarted,
    WriteFailed,
)
from tenure.core.rows.machine import transition
from tenure.core.rows.names import HIDDEN, NameId
from tenure.core.rows.state import RowState
from tenure.spec.rows.emissions import Mark
from tenure.spec.rows.reference import Emitted, Materialized, ReferenceCache

NameRows: TypeAlias = dict[tuple[NameId, RequestId], Array]
FAILURES: Final = (WriteFailed, GatherFailed)


class Replaying:
    """A trace on the device of a rig."""

    def __init__(self, rig: Rig, scope: TraceScope, trace: Trace) -> None:
        """Nothing was told but the policy."""
        self._rig, self._trace = rig, trace
        self._failing = failing_of(scope, trace) if scope.has_failures else frozenset[CommandId]()
        self._ledger = Ledger()
        self._device: Any = Counted(rig.device)
        self._executor = Executor(self._device, scope.config)
        self._state = transition(RowState.initial(scope.config), PolicyRegistered(scope.policy)).state
        self._oracle = ReferenceCache(scope.config, scope.policy)
        self._canaries = Canaries()
        # Answers of the device that it is not time to tell.
        self._held: list[CommandAnswer] = []
        self._save: SaveRequested | None = None
        self._reserved: SaveReserved | None = None
        # What is frozen and not published.
        self._live: dict[NameId, Any] | None = None
        # Builders at work: their plan, and what they must hand out.
        self._plans: dict[StepId, tuple[ConsumePlan, Materialized]] = {}
        # Rows of pages that builders copied out; the step keeps them for the next one.
        self._pages: dict[StepId, NameRows] = {}
        self.met: set[int] = set()
        """The edges that were taken, and were as the trace says."""

    def run(self) -> None:
        """Tell everything.

        Raises:
            CheckFailedError: something that should come does not, or rows are wrong.
            OutOfTimeError: something takes too long.
        """
        for place, (_, event, refused) in enumerate(self._trace.told):
            try:
                self._tell(event, self._ledger.settle(event), refused)
            except CheckFailedError as error:
                where = f"trace {self._trace.name}, event {place + 1} of {len(self._trace.told)} ({event})"
                raise CheckFailedError(f"{where}: {error}") from None
            edge = self._trace.met_at(place)
            self.met |= set() if edge is None else {edge}
        self._end()

    def _tell(self, event: RowEvent, owed: Owed | None, refused: str) -> None:
        if owed is not None:
            event = self._await(event, owed)
        elif isinstance(event, SavePublished):
            self._freeze(event.step)
        elif isinstance(event, SaveCancelled):
            self._executor.abandon_freeze(event.step)
        elif isinstance(event, RowsCopiedOut | StepConsumed):
            self._copy_out(event.step)
        if isinstance(event, StepConsumed):
            self._compare(event.step)
        try:
            self._state, answer, commands = transition(self._state, event)
        except TenureError as error:
            # A trace may tell what nobody may; what the device was asked for and answered is never refused.
            self._rig.require(owed is None, f"the device's answer {event} is refused: {error}")
            require_refusal(refused, type(error).__name__)
            return
        require_refusal(refused, "")
        if not isinstance(answer, Ignored):
            self._follow(event, answer)
        self._launch(commands)

    def _launch(self, commands: Sequence[RowCommand]) -> None:
        """Ask the device, for what must end badly so that it does."""
        self._ledger.take(commands)
        for each in commands:
            if each.command in self._failing:
                assert self._rig.bench.fail is not None
                self._rig.bench.fail(each.lane)
            self._executor.accept((each,))
            self._executor.run()

    # --- Answers --------------------------------------------------------------------------------------------------

    def _await(self, event: RowEvent, owed: Owed) -> CommandAnswer:
        """The device's own answer, when it is there."""
        until = time.monotonic() + self._rig.timeout_s
        while True:
            for each in self._held:
                if each == event or (isinstance(event, FAILURES) and _is_same_failure(each, event)):
                    self._held.remove(each)
                    return each
            self._executor.run()
            self._held += (found := self._executor.poll())
            if not found:
                self._move(owed.lane)
            if time.monotonic() > until:
                raise OutOfTimeError(f"{event} does not come")

    def _move(self, lane: Lane) -> None:
        """Let the device go on, in the lane that matters if that can."""
        bench = self._rig.bench
        if not self._rig.is_controlled:
            time.sleep(LOOK_AGAIN_S)
            return
        assert bench.ready is not None
        assert bench.advance is not None
        ready = list(bench.ready())
        if not ready:
            raise CheckFailedError("no lane can go on, and it does not come")
        bench.advance(lane if lane in ready else ready[0])

    # --- What follows from an event -------------------------------------------------------------------------------

    def _follow(self, event: RowEvent, answer: RowAnswer) -> None:
        """Let the oracle do the same."""
        oracle = self._oracle
        match event, answer:
            case StepStarted(), _:
                began = oracle.new_step_starts(event.changes)
                self._rig.require(began == answer, f"the step began as {answer}, and should have as {began}")
                assert isinstance(answer, StepBegan)
            case SaveRequested(), SaveReserved():
                self._save, self._reserved = event, answer
            case SavePublished(), _:
                assert self._save is not None
                oracle.save_outputs(self._emitted(self._save, event.step), self._save.layout, event.computes)
                self._overwrite()
            case SaveCancelled(), _:
                self._live = None
            case StepDropped(), _:
                oracle.drop_step(event.slots.tolist())
            case StepDiscarded(), _:
                oracle.discard_step(event.step)
            case ConsumeRequested(), ConsumePlan():
                self._plans[event.step] = answer, oracle.begin_materialize(event.step, event.requests)
            case StepConsumed() | ConsumeAbandoned(), _:
                self._leave(event)
            case ResetRequested(), ResetAnswered(done=True):
                self._rig.require(oracle.reset(), "the reset was done, and should have been refused")
            case ShutdownRequested(), _:
                oracle.shutdown()
            case WriteFailed(), _:
                oracle.fail_write(event.write)
            case _:
                pass

    def _leave(self, event: StepConsumed | ConsumeAbandoned) -> None:
        plan, _ = self._plans.pop(event.step)
        if event.step in self._oracle.unconsumed:
            self._oracle.end_materialize(event.step, returns=isinstance(event, StepConsumed))
        if isinstance(event, StepConsumed):
            self._pages.pop(event.step, None)
            for hit in plan.hits:
                self._executor.storage.take_read(hit.read)

    # --- Rows -----------------------------------------------------------------------------------------------------

    def _emitted(self, save: SaveRequested, step: StepId) -> list[Emitted]:
        count = len(save.layout.slots)
        return [
            Emitted(
                each, [Mark(each.name, step, f"row {row}") for row in range(count)] if each.shape else f"note {step}"
            )
            for each in save.outputs
        ]

    def _freeze(self, step: StepId) -> None:
        """The forward pass writes, and what it wrote is frozen; once, however often publishing is tried."""
        if self._save is None or self._reserved is None or self._reserved.step != step or self._live is not None:
            return
        live: dict[NameId, Any] = {}
        for emitted in self._emitted(self._save, step):
            shape, dtype = emitted.output.shape, emitted.output.dtype
            if shape is None or dtype is None:
                live[emitted.output.name] = emitted.content
            else:
                values = self._canaries.rows(emitted.content, shape[1:], dtype)
                live[emitted.output.name] = self._rig.bench.make(values, dtype)
        self._executor.freeze(step, self._reserved.page, live)
        self._live = live

    def _overwrite(self) -> None:
        """The next forward pass writes over what is frozen."""
        assert self._save is not None
        assert self._live is not None
        for each in self._save.outputs:
            if each.shape is not None and each.dtype is not None:
                values = np.full(each.shape, SPOILED, STORAGE[each.dtype])
                self._rig.bench.overwrite(self._live[each.name], values)
        self._live = None

    def _copy_out(self, step: StepId) -> None:
        """What the page of a step holds now, unless it was let go."""
        if step not in self._plans or step in self._pages:
            return
        plan, _ = self._plans[step]
        assert plan.page is not None
        found: NameRows = {}
        for each in plan.formats:
            page = self._executor.storage.page(plan.page, each.name)
            for place, request in enumerate(plan.batch):
                found[each.name, request] = self._read(page, int(plan.starts[place]), int(plan.starts[place + 1]))
        self._pages[step] = found

    def _read(self, buffer: Any, start: int, stop: int) -> Array:
        return np.array(self._rig.bench.read(self._device.cut(Rows(buffer, start, stop))))

    def _compare(self, step: StepId) -> None:
        """Hold what a builder hands out against what it should."""
        if step not in self._plans:
            return
        plan, expected = self._plans[step]
        wanted: dict[NameId, Mapping[RequestId, Any]] = dict(expected.mm_outputs)
        if expected.hidden_states is not None:
            wanted[HIDDEN] = expected.hidden_states
        for each in plan.formats:
            for request in plan.requests:
                hits = [
                    self._read(self._executor.storage.read(hit.read).buffer, 0, hit.num_rows)
                    for hit in plan.hits
                    if (hit.request, hit.name) == (request, each.name)
                ]
                found = np.concatenate([*hits, self._pages[step][each.name, request]])
                values = self._canaries.rows(wanted[each.name][request], each.row_shape, each.dtype)
                what = f"{each.name or 'hidden'} rows of request {request!r} in step {step}"
                self._rig.same(values, found, what)

    # --- The end --------------------------------------------------------------------------------------------------

    def _end(self) -> None:
        """Let the device end what it was asked for, and give all memory back."""
        bench = self._rig.bench
        if self._rig.is_controlled:
            assert bench.ready is not None
            assert bench.advance is not None
            while ready := bench.ready():
                bench.advance(ready[0])
        else:
            events = [self._rig.device.record(lane) for lane in Lane]
            for each in events:
                self._rig.await_event(each)
        # Whoever frees must have asked.
        self._executor.poll()
        self._executor.storage.close()
        if found := bench.findings():
            raise CheckFailedError(f"trace {self._trace.name}: the device itself found: {found[0]}")


def _is_same_failure(answer: CommandAnswer, event: RowEvent) -> bool:
    """The same but for the reason, which a device gives."""
    if isinstance(event, WriteFailed):
        return isinstance(answer, WriteFailed) and answer.write == event.write
    return isinstance(answer, GatherFailed) and isinstance(event, GatherFailed) and answer.read == event.read
