"""The calls that every row cache has, whoever makes its write layout: save, materialize, discard, reset, shut down.

What runs without the lock, and in which order, is decided here; everything else by the machine.
"""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from itertools import pairwise
from types import TracebackType
from typing import Any, Generic, NamedTuple, Self, TypeVar

from tenure.backends.cpu import CpuDevice
from tenure.backends.device import Device, Rows
from tenure.backends.executor import Executor
from tenure.core.config import RowConfig, RowPolicy
from tenure.core.errors import (
    CopyOutFailedError,
    ExecutorBrokenError,
    FreezeFailedError,
    OperationFailedError,
    OutputNameError,
    SaveNotReservedError,
)
from tenure.core.rows.answers import ConsumePlan, Done, HitRows, Ignored, ResetAnswered, SaveReserved
from tenure.core.rows.commands import FreezeRows
from tenure.core.rows.events import (
    ConsumeAbandoned,
    ConsumeRequested,
    PolicyRegistered,
    RequestId,
    ResetRequested,
    SaveCancelled,
    SavePublished,
    ShutdownRequested,
    StepConsumed,
    StepDiscarded,
    StepId,
    WaitTimedOut,
)
from tenure.core.rows.names import HIDDEN, NameId, Output, RowFormat
from tenure.core.rows.state import RowState
from tenure.core.rows.view import StepPhase
from tenure.outputs import CutRows, HitBuffer, SharedLeftover, Spans, StepOutputs
from tenure.runtime import Machine, Runtime
from tenure.stats import CacheStats, stats_of

M = TypeVar("M", bound=Machine)


class RowCache(ABC, Generic[M]):
    """A row cache on a device, for one engine thread and any number of builders.

    `save_outputs`, and what starts and drops steps, are called by one thread at a time; everything else by any. A call
    that raises has changed nothing that matters to its next try: see each. A fault of the device against its duties, or
    of Tenure, is raised as it is by the call that meets it, and later calls raise `ExecutorBrokenError`. After
    `shutdown`, and as a context manager at its end, no thread is left.
    """

    def __init__(
        self,
        machine: M,
        config: RowConfig,
        policy: RowPolicy | None,
        device: Device | None,
        formats: Iterable[RowFormat],
    ) -> None:
        device = CpuDevice() if device is None else device
        self._machine = machine
        self._config = config
        self._device = device
        self._runtime = Runtime(machine, Executor(device, config, formats), config.wait_timeout_s)
        # Per saved step what of it is not rows.
        self._leftovers: dict[StepId, Mapping[NameId, Any]] = {}
        self._counts: Counter[str] = Counter()
        if policy is not None:
            self.register_policy(policy)

    @abstractmethod
    def _row_state(self) -> RowState:
        """The newest state of the row machine. The lock is held."""

    # --- The life of a cache ----------------------------------------------------------------------------------------

    def register_policy(self, policy: RowPolicy) -> None:
        """Say what the model's outputs are; before the first step.

        Raises:
            PolicyAfterStepError: a step has started.
            ShutDownError: the cache is shut down.
        """
        self._runtime.tell(PolicyRegistered(policy))

    def reset(self) -> bool:
        """Forget every row; False, and nothing changes, while a request is live or a step not consumed.

        After a failure it is never refused, and forgets requests and steps as well (R24).

        Raises:
            ExecutorBrokenError: commands are not carried out any more.
        """
        answer = self._runtime.tell_and(ResetRequested(), self._forget_if_done)
        return answer.done

    def _forget_if_done(self, answer: ResetAnswered) -> ResetAnswered:
        if answer.done:
            # A materialize under way still takes those of its step.
            fenced = self._row_state().tables.fenced_steps
            for step in [each for each in self._leftovers if each not in fenced]:
                del self._leftovers[step]
        return answer

    def shutdown(self) -> None:
        """Serve no call any more: whoever waits gets a `ShutDownError`. May be called again; leaves no thread.

        Memory is given back but for what callers hold: what a materialize returned stays good.
        """
        try:
            self._runtime.tell(ShutdownRequested())
        except ExecutorBrokenError:
            # Nothing is served any more as it is.
            pass
        finally:
            self._device.close(self._config.wait_timeout_s)
            if self._runtime.stop() and not self._runtime.asked(self._is_somebody_at_it):
                self._runtime.executor.storage.close()

    def _is_somebody_at_it(self) -> bool:
        """Whether a save or a materialize under way still uses memory. The lock is held."""
        tables = self._row_state().tables
        busy = (StepPhase.RESERVED, StepPhase.CONSUMING)
        return bool(tables.fenced_steps) or any(step.phase in busy for step in tables.steps.values())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.shutdown()

    def stats(self) -> CacheStats:
        """Figures of this moment; also after a failure or a shutdown."""
        waits, executor = self._runtime.waits, self._runtime.executor
        # R19: this may free memory, so it is not done with the lock.
        memory = executor.storage.figures()
        return self._runtime.asked(lambda: stats_of(self._row_state(), executor, memory, waits, self._counts))

    # --- Save -------------------------------------------------------------------------------------------------------

    def _outputs(self, hidden: Any, mm: Mapping[NameId, Any] | None) -> tuple[tuple[Output, ...], dict[NameId, Any]]:
        """The outputs of a step as the machine is told of them, and as they are."""
        if mm is not None and HIDDEN in mm:
            raise OutputNameError(HIDDEN, "hidden states are no mm output; hand them over as hidden_states")
        live: dict[NameId, Any] = {} if hidden is None else {HIDDEN: hidden}
        live.update(mm or {})
        outputs: list[Output] = []
        for name, value in live.items():
            described = self._device.describe(value)
            outputs.append(Output(name) if described is None else Output(name, *described))
        return tuple(outputs), live

    def _save(self, request: Any, live: Mapping[NameId, Any]) -> StepId:
        """Reserve, freeze, then publish or cancel."""
        found: list[SaveReserved] = []
        try:
            self._runtime.ask(request, WaitTimedOut, found.append)
            (reserved,) = found
            command, leftovers = self._runtime.executor.freeze(reserved.step, reserved.page, live)
            self._runtime.tell_and(SavePublished(reserved.step), lambda _: self._saved(command, leftovers))
        except BaseException as error:
            for each in found:
                self._cancel(each.step)
                if isinstance(error, OperationFailedError):
                    raise FreezeFailedError(each.step, str(error)) from error
            raise
        return reserved.step

    def _saved(self, command: FreezeRows, leftovers: Mapping[NameId, Any]) -> None:
        """A save is published. The lock is held."""
        self._leftovers[command.step] = leftovers
        self._counts["rows_written"] += command.num_rows * sum(len(clone.formats) for clone in command.clones)

    def _cancel(self, step: StepId) -> None:
        self._runtime.executor.abandon_freeze(step)
        try:
            self._runtime.tell(SaveCancelled(step))
        except (SaveNotReservedError, ExecutorBrokenError):
            # A reset came in between and has given back what was reserved; or nothing is given back any more.
            return

    # --- Consume ----------------------------------------------------------------------------------------------------

    def materialize(self, step_id: StepId, req_ids: Sequence[RequestId]) -> StepOutputs:
        """The rows of a saved step for some of its requests; the step is consumed.

        Any thread, also while the engine is in later steps. If it raises, the step is not consumed.

        Raises:
            UnknownStepError, StepAlreadyConsumedError, StepBeingConsumedError: the step cannot be consumed.
            RequestNamedTwiceError, RequestOutsideSnapshotError: not the step's requests, each once.
            UnreadableHitError, ReadFailedError: a request's hit cannot be served; ask for the others.
            WaitTimeoutError: its rows did not arrive in time; ask again.
            CopyOutFailedError: there is no memory for them; ask again.
            ShutDownError, WriteFailedError, ExecutorBrokenError: nothing is served any more.
        """
        found: list[ConsumePlan] = []
        try:
            self._runtime.ask(ConsumeRequested(step_id, tuple(req_ids)), WaitTimedOut, found.append)
            (plan,) = found
            outputs, copied = self._copy_out(plan)
        except BaseException as error:
            if found:
                self._runtime.tell_and(ConsumeAbandoned(step_id), lambda answer: self._abandoned(step_id, answer))
                if isinstance(error, OperationFailedError):
                    raise CopyOutFailedError(step_id, str(error)) from error
            raise
        self._runtime.tell_and(StepConsumed(step_id), lambda _: self._consumed(step_id, plan.hits, copied))
        return outputs

    def _consumed(self, step: StepId, hits: Sequence[HitRows] = (), copied: int = 0) -> None:
        """Nobody asks for a step any more, and the buffers of its hits are the caller's. The lock is held."""
        self._leftovers.pop(step, None)
        for each in hits:
            self._runtime.executor.storage.take_read(each.read)
        self._counts["copy_out"] += copied

    def _abandoned(self, step: StepId, answer: Done | Ignored) -> None:
        """A materialize raises; its step is there for the next one, unless a reset forgot it. The lock is held."""
        if isinstance(answer, Ignored):
            self._leftovers.pop(step, None)

    def discard_step(self, step_id: StepId) -> None:
        """Consume a saved step that nobody will materialize; what it wrote goes on.

        Raises:
            UnknownStepError, StepAlreadyConsumedError, StepBeingConsumedError: the step cannot be consumed.
            ExecutorBrokenError: commands are not carried out any more.
        """
        self._runtime.tell_and(StepDiscarded(step_id), lambda _: self._consumed(step_id))

    def _copy_out(self, plan: ConsumePlan) -> tuple[StepOutputs, int]:
        """Copy the rows of a plan from its page. Nobody else writes or frees what it names until it ends."""
        device, storage = self._device, self._runtime.executor.storage
        assert plan.page is not None
        picked = _pick(plan)
        hits: dict[NameId, dict[RequestId, HitBuffer]] = {}
        for request, name, read, num_rows in plan.hits:
            hits.setdefault(name, {})[request] = HitBuffer(storage.read(read), num_rows)
        found: dict[NameId, Mapping[RequestId, Any]] = {}
        copied = 0
        for each in plan.formats:
            page, lease = storage.page(plan.page, each.name), storage.lease_result(each, picked.total)
            place = 0
            for start, stop in picked.ranges:
                device.copy_now(lease.rows(place, place + stop - start), Rows(page, start, stop))
                place += stop - start
            copied += picked.total * each.row_bytes
            make_room = partial(storage.lease_result, each)
            found[each.name] = CutRows(device, lease, picked.spans, hits.get(each.name, {}), make_room)
        hidden = found.pop(HIDDEN, None)
        if plan.leftovers:
            leftovers = self._runtime.asked(lambda: self._leftovers.get(plan.step, {}))
            tokens = int(plan.starts[-1])
            for name in plan.leftovers:
                found[name] = SharedLeftover(device, leftovers[name], picked.places, picked.batch_spans, tokens)
        return StepOutputs(hidden, found), copied


class _Picked(NamedTuple):
    """The requests of a plan.

    Attributes:
        places: where each stands in the batch.
        batch_spans: which rows of the batch each has.
        ranges: the rows of the batch that are copied, in the order in which they are copied.
        total: how many they are.
        spans: where each one's rows are among them.
    """

    places: Mapping[RequestId, int]
    batch_spans: Spans
    ranges: Sequence[tuple[int, int]]
    total: int
    spans: Spans


def _pick(plan: ConsumePlan) -> _Picked:
    starts: list[int] = plan.starts.tolist()
    places = {request: place for place, request in enumerate(plan.batch)}
    batch_spans = dict(zip(plan.batch, pairwise(starts), strict=True))
    if plan.requests == plan.batch:
        return _Picked(places, batch_spans, ((0, starts[-1]),), starts[-1], batch_spans)
    spans: dict[RequestId, tuple[int, int]] = {}
    ranges: list[tuple[int, int]] = []
    total = 0
    for request in plan.requests:
        start, stop = batch_spans[request]
        spans[request] = (total, total + stop - start)
        total += stop - start
        if ranges and ranges[-1][1] == start:
            ranges[-1] = (ranges[-1][0], stop)
        else:
            ranges.append((start, stop))
    asked = {request: batch_spans[request] for request in plan.requests}
    return _Picked(places, asked, ranges, total, spans)
