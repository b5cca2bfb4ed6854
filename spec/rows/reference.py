"""The naive oracle of the row machine: a cache of rows that a reader believes at a glance.

It keeps, per slot, the rows that the slot's last computation emitted, and nothing older: so a name that was not
emitted is gone (R21). A hit is read when its step is saved, right after the step's own rows were kept (R02), and what
it found stays with the step (R13, R14). There are no pages, claims, writes, budgets or waits here; what depends on
them, it cannot tell.

Rows may be anything: numbers, tuples, marks of a test. Shapes and dtypes come with them in an `Output`.
"""

from collections.abc import Iterable, Mapping, Sequence

from tenure.core.config import RowConfig, RowPolicy
from tenure.core.errors import (
    PolicyAfterStepError,
    ReadFailedError,
    RequestNamedTwiceError,
    RequestOutsideSnapshotError,
    SaveNotReservedError,
    SaveReservedError,
    ShutDownError,
    StepAlreadyConsumedError,
    StepBeingConsumedError,
    StepNotBeingConsumedError,
    StepNotSavedError,
    StepNotStartedError,
    UnknownStepError,
    UnreadableHitError,
    WriteFailedError,
)
from tenure.core.rows.answers import StepBegan
from tenure.core.rows.events import BlockId, ContentIdentity, LifeCycle, RequestId, Slot, StepId, WriteLayout
from tenure.core.rows.names import HIDDEN, NameId, RowFormat
from tenure.spec.rows.reference_checks import HitSpan, Start, check_identities, check_layout, check_start
from tenure.spec.rows.reference_names import Names, SortedOutputs, sort_outputs
from tenure.spec.rows.reference_values import (
    Computed,
    Emitted,
    Hole,
    Materialized,
    PendingSave,
    Row,
    SavedStep,
    blocks_of,
    share_of,
    zero_row,
)

__all__ = ["Emitted", "Materialized", "ReferenceCache", "Row"]


class ReferenceCache:
    """A row cache that is easy to believe. Every call raises the error that the requirement names, or takes effect."""

    def __init__(self, config: RowConfig, policy: RowPolicy | None = None) -> None:
        """Nothing is kept yet. Of `config` it minds the pool, the largest step and the limits on names."""
        self._config = config
        self._policy = RowPolicy() if policy is None else policy
        self._rows: dict[Slot, dict[NameId, Row]] = {}
        self._identities: dict[BlockId, ContentIdentity] = {}
        self._names = Names()
        self._live: set[RequestId] = set()
        self._has_started = self._is_shut_down = False
        self._next_step = self._first_step = 1
        self._started: Start | None = None
        self._reserved: PendingSave | None = None
        self._saved: dict[StepId, SavedStep] = {}
        self._being_consumed: set[StepId] = set()
        self._failed_reads: dict[tuple[StepId, RequestId], NameId] = {}
        self._failure: tuple[int, StepId, str] | None = None

    def clone(self) -> "ReferenceCache":
        """A twin that goes its own way from here."""
        twin = ReferenceCache.__new__(ReferenceCache)
        twin.__dict__.update(self.__dict__)
        for name in ("_rows", "_identities", "_live", "_saved", "_being_consumed", "_failed_reads"):
            setattr(twin, name, getattr(self, name).copy())
        return twin

    # --- What can be looked at --------------------------------------------------------------------------------

    @property
    def live(self) -> frozenset[RequestId]:
        """The live requests."""
        return frozenset(self._live)

    @property
    def pending(self) -> StepId | None:
        """The step that was started and neither saved nor dropped."""
        return None if self._started is None else self._next_step - 1

    @property
    def unconsumed(self) -> tuple[StepId, ...]:
        """The saved steps that wait to be consumed, oldest first."""
        return tuple(sorted(self._saved))

    @property
    def formats(self) -> dict[NameId, RowFormat]:
        """The names whose rows have been seen."""
        return dict(self._names.formats)

    @property
    def identities(self) -> dict[BlockId, ContentIdentity]:
        """What blocks hold, where a start said so."""
        return dict(self._identities)

    @property
    def has_failed(self) -> bool:
        """Whether a write failed since the last reset."""
        return self._failure is not None

    def batch_of(self, step: StepId) -> tuple[RequestId, ...]:
        """The requests of a saved step that waits to be consumed, in batch order."""
        return self._saved[step].batch

    def is_readable(self, step: StepId, request: RequestId) -> bool:
        """Whether a saved step's request can be materialized."""
        return request not in self._saved[step].holes and (step, request) not in self._failed_reads

    def has_row(self, name: NameId, slot: Slot) -> bool:
        """Whether a slot's last computation emitted a name."""
        return name in self._rows.get(slot, {})

    # --- Calls of the facade ----------------------------------------------------------------------------------

    def register_policy(self, policy: RowPolicy) -> None:
        """Say what the model's outputs are, before the first step.

        Raises:
            TenureError: too late.
        """
        self._refuse_if_shut_down()
        if self._has_started:
            raise PolicyAfterStepError
        self._policy = policy

    def new_step_starts(self, changes: Sequence[LifeCycle]) -> StepBegan:
        """Take one scheduler output, all of it or nothing.

        Raises:
            TenureError: it is malformed, or the step before it waits to be saved.
        """
        self._refuse_if_down()
        if self._reserved is not None:
            raise SaveReservedError(self._next_step - 1)
        if self._started is not None:
            raise StepNotSavedError(self._next_step - 1)
        start = check_start(changes, self._live, self._config)
        self._has_started = True
        self._live = set(start.live)
        if not sum(start.scheduled.values()):
            return StepBegan(None, ())
        self._started = start
        self._next_step += 1
        return StepBegan(self._next_step - 1, tuple((request, hit.tokens) for request, hit in start.hits.items()))

    def save_outputs(self, outputs: Iterable[Emitted], layout: WriteLayout, computes: Computed = ()) -> StepId:
        """Keep the rows of the step that was started; read the hits of its arrivals.

        `computes` adds to what the start said of the blocks that the step completes.

        Raises:
            TenureError: an argument is bad, or no step waits.
        """
        self._reserved = self.check_save(outputs, layout)
        try:
            return self.end_save(self._next_step - 1, computes)
        finally:
            self._reserved = None

    def check_save(self, outputs: Iterable[Emitted], layout: WriteLayout) -> PendingSave:
        """Whether a save can be made.

        Raises:
            TenureError: as `save_outputs`.
        """
        self._refuse_if_down()
        if self._started is None:
            raise StepNotStartedError("save_outputs")
        if self._reserved is not None:
            raise SaveReservedError(self._next_step - 1)
        outputs = tuple(outputs)
        step = self._next_step - 1
        check_layout(layout, step, self._started, self._config)
        tokens = len(layout.slots)
        plain = [each.output for each in outputs]
        found = sort_outputs(plain, tokens, layout.padded, self._names, self._policy, self._config)
        check_identities(self._started.computes, blocks_of(layout.slots.tolist(), self._config.block_size), step)
        return PendingSave(outputs, layout, found)

    def begin_save(self, outputs: Iterable[Emitted], layout: WriteLayout) -> None:
        """The first half of `save_outputs`: everything but the effect.

        Raises:
            TenureError: as `save_outputs`.
        """
        self._reserved = self.check_save(outputs, layout)

    def cancel_save(self, step: StepId) -> None:
        """Take the first half back.

        Raises:
            SaveNotReservedError: there was none.
        """
        if self._reserved is None or step != self.pending:
            raise SaveNotReservedError(step)
        self._reserved = None

    def end_save(self, step: StepId, computes: Computed = ()) -> StepId:
        """The second half of `save_outputs`.

        Raises:
            TenureError: there was no first half, a write failed since, or `computes` names other blocks.
        """
        self._refuse_if_down()
        if self._reserved is None or self._started is None or step != self.pending:
            raise SaveNotReservedError(step)
        start, (outputs, layout, found) = self._started, self._reserved
        slots = layout.slots.tolist()
        check_identities(dict(computes), blocks_of(slots, self._config.block_size), step)
        self._started = self._reserved = None
        self._names = found.names
        content = {each.output.name: each.content for each in outputs}
        # R21: whatever the slots held before is gone, also under names that the step does not emit.
        for row, slot in enumerate(slots):
            self._rows[slot] = {name: content[name][row] for name in found.rows}
        for block in blocks_of(slots, self._config.block_size):
            self._identities.pop(block, None)
        self._identities.update(start.computes)
        self._identities.update(computes)
        self._saved[step] = self._settle(outputs, layout, found, start.hits)
        return step

    def drop_step(self, slots: Sequence[Slot]) -> None:
        """Give a started step up: what its slots held is gone, and nothing takes its place.

        Raises:
            TenureError: no step waits, or its save has begun.
        """
        self._refuse_if_shut_down()
        if self._reserved is not None:
            raise SaveReservedError(self._next_step - 1)
        if self._started is None:
            raise StepNotStartedError("drop_step")
        self._started = None
        in_pool = [slot for slot in slots if 0 <= slot < self._config.num_slots]
        for slot in in_pool:
            self._rows.pop(slot, None)
        for block in blocks_of(in_pool, self._config.block_size):
            self._identities.pop(block, None)

    def materialize(self, step: StepId, requests: Sequence[RequestId]) -> Materialized:
        """Consume a step: the rows of the requests asked for.

        Raises:
            TenureError: they cannot be had; the step can still be consumed by another call (R01).
        """
        rows = self.begin_materialize(step, requests)
        self.end_materialize(step)
        return rows

    def begin_materialize(self, step: StepId, requests: Sequence[RequestId]) -> Materialized:
        """The first half of `materialize`: what it will return. Until its end nobody else can consume the step.

        Raises:
            TenureError: as `materialize`.
        """
        self._refuse_if_down()
        saved = self._saved_step(step)
        for place, request in enumerate(requests):
            if request in requests[:place]:
                raise RequestNamedTwiceError(request, "materialize")
        outside = [request for request in requests if request not in saved.batch]
        if outside:
            raise RequestOutsideSnapshotError(step, outside)
        for request in requests:
            if request in saved.holes:
                raise UnreadableHitError(step, request, *saved.holes[request])
        for request in requests:
            if (step, request) in self._failed_reads:
                raise ReadFailedError(step, request, self._failed_reads[step, request], "")
        self._being_consumed.add(step)
        asked = {name: {request: rows[request] for request in requests} for name, rows in saved.rows.items()}
        hidden = asked.pop(HIDDEN, None)
        shares = {name: {request: each[request] for request in requests} for name, each in saved.leftovers.items()}
        return Materialized(hidden, {**asked, **shares})

    def end_materialize(self, step: StepId, *, returns: bool = True) -> None:
        """The second half: the step is consumed if the call returns, and stays if it raises.

        Raises:
            StepNotBeingConsumedError: there was no first half.
        """
        if step not in self._being_consumed:
            raise StepNotBeingConsumedError(step)
        self._being_consumed.remove(step)
        if returns:
            del self._saved[step]

    def discard_step(self, step: StepId) -> None:
        """Consume a step without looking.

        Raises:
            TenureError: there is no such step, or somebody materializes it.
        """
        self._saved_step(step)
        del self._saved[step]

    def reset(self) -> bool:
        """Forget all rows, unless a request is live or a step is not consumed; after a failure always (R24)."""
        steps_left = self._started is not None or self._saved
        if (self._live or steps_left) and self._failure is None:
            return False
        self._rows, self._identities = {}, {}
        self._live, self._saved = set(), {}
        self._being_consumed, self._failed_reads = set(), {}
        self._started = self._reserved = self._failure = None
        self._first_step = self._next_step
        return True

    def shutdown(self) -> None:
        """Serve no call any more; may be told again."""
        self._is_shut_down = True

    # --- What befalls it --------------------------------------------------------------------------------------

    def fail_write(self, write: int = 0, step: StepId = 0, reason: str = "") -> None:
        """A write failed; every call that depends on rows says so until a reset (R12). The first one counts."""
        if self._failure is None:
            self._failure = (write, step, reason)

    def fail_read(self, step: StepId, request: RequestId, name: NameId) -> None:
        """The hit of a saved step's request could not be gathered."""
        self._failed_reads.setdefault((step, request), name)

    # --- Helpers ----------------------------------------------------------------------------------------------

    def _settle(
        self,
        outputs: tuple[Emitted, ...],
        layout: WriteLayout,
        found: SortedOutputs,
        hits: Mapping[RequestId, HitSpan],
    ) -> SavedStep:
        """Everything that the step will return: each hit as its slots stand now, and the step's own rows."""
        saved = SavedStep(
            layout.requests, {name: {} for name in found.rows}, {name: {} for name in found.leftovers}, {}
        )
        content = {each.output.name: each for each in outputs}
        tokens = len(layout.slots)
        start = 0
        for place, (request, count) in enumerate(zip(layout.requests, layout.counts.tolist(), strict=True)):
            stop = start + count
            for name in found.rows:
                hit = self._hit_rows(name, request, hits.get(request), saved.holes)
                saved.rows[name][request] = hit + list(content[name].content[start:stop])
            for name in found.leftovers:
                saved.leftovers[name][request] = share_of(content[name], place, start, stop, tokens)
            start = stop
        return saved

    def _hit_rows(
        self, name: NameId, request: RequestId, hit: HitSpan | None, holes: dict[RequestId, Hole]
    ) -> list[Row]:
        if hit is None:
            return []
        size = self._config.block_size
        zero = zero_row(self._names.formats[name].row_shape)
        rows: list[Row] = []
        missing: list[Slot] = []
        for place, block in enumerate(hit.blocks):
            # R14: a block that holds something else than the hit expects is a hole.
            is_right = not hit.expects or self._identities.get(block) == hit.expects[place]
            for slot in range(block * size, block * size + size):
                if is_right and self.has_row(name, slot):
                    rows.append(self._rows[slot][name])
                else:
                    rows.append(zero)
                    missing.append(slot)
        if missing and name == HIDDEN:
            holes[request] = Hole(name, tuple(missing))
        return rows

    def _saved_step(self, step: StepId) -> SavedStep:
        if step in self._being_consumed:
            raise StepBeingConsumedError(step)
        if step in self._saved:
            return self._saved[step]
        if not self._first_step <= step < self._next_step or step == self.pending:
            raise UnknownStepError(step, self.unconsumed)
        raise StepAlreadyConsumedError(step, self.unconsumed)

    def _refuse_if_shut_down(self) -> None:
        if self._is_shut_down:
            raise ShutDownError

    def _refuse_if_down(self) -> None:
        self._refuse_if_shut_down()
        if self._failure is not None:
            raise WriteFailedError(*self._failure)
