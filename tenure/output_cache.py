"""`OutputCache`: the row machine on a device, as an engine with a block pool of its own imports it."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from importlib.metadata import version
from typing import Any

import numpy as np

from tenure.backends.device import Device
from tenure.block_table import BlockTable
from tenure.core.arrays import Integers, integers
from tenure.core.config import RowConfig, RowPolicy
from tenure.core.errors import BatchRowError, LayoutMissingError, TenureError, TokenCountError
from tenure.core.rows.answers import RowAnswer, StepBegan
from tenure.core.rows.commands import RowCommand
from tenure.core.rows.events import (
    LifeCycle,
    RequestId,
    RowEvent,
    SaveRequested,
    StepDropped,
    StepId,
    StepStarted,
    WriteLayout,
)
from tenure.core.rows.machine import transition
from tenure.core.rows.names import NameId, RowFormat
from tenure.core.rows.state import RowState
from tenure.recording import Recorder, RecordStatus, Target
from tenure.row_cache import RowCache


class RowMachine:
    """The row machine and its newest state; whoever records is told of every event, in order."""

    def __init__(self, config: RowConfig, recorder: Recorder | None = None) -> None:
        self.state = RowState.initial(config)
        self.recorder = recorder

    def tell(self, event: RowEvent) -> tuple[RowAnswer, tuple[RowCommand, ...]]:
        """Let an event happen."""
        if self.recorder is None:
            self.state, answer, commands = transition(self.state, event)
            return answer, commands
        try:
            self.state, answer, commands = transition(self.state, event)
        except TenureError as error:
            self.recorder.refused(event, error)
            raise
        self.recorder.took(event, answer)
        return answer, commands


class OutputCache(RowCache[RowMachine]):
    """Per-token outputs of a model, mirrored by KV slot.

    The engine says which requests run (`new_step_starts`), hands over what a forward pass emitted (`save_outputs`),
    and somebody takes the rows of each step, those of prefix hits among them, once (`materialize` or `discard_step`).

    Rules: R01 to R24 of `docs/invariants-rows.md`.
    """

    def __init__(
        self,
        config: RowConfig,
        policy: RowPolicy | None = None,
        *,
        device: Device | None = None,
        block_table: BlockTable | None = None,
        formats: Iterable[RowFormat] = (),
        record: Target | None = None,
    ) -> None:
        """A cache in which every row is absent.

        Attributes:
            policy: what the model's outputs are; may also be registered later, before the first step.
            device: where rows are copied; the CPU, inline, if not given.
            block_table: says which slots a step writes; without one, each save gives its layout.
            formats: names whose memory is to be there from the start, so that no step waits for it.
            record: a path, or a binary file, to write every event and answer to (`docs/recorded-runs.md`). One thread
                writes; nobody waits for it but `shutdown`, for as long as a wait may take.

        Raises:
            PageLockedMemoryError: the pages of `formats` need more page-locked memory than there may be.
            OperationFailedError: there is not so much memory.
            RecordError: the file to record to cannot be opened.
        """
        self._block_table = block_table
        self._recorder = None if record is None else Recorder(record, config, writer=f"tenure {version('tenure')}")
        try:
            super().__init__(RowMachine(config, self._recorder), config, policy, device, formats)
        except BaseException:
            self._close_record(config)
            raise

    @property
    def recording(self) -> RecordStatus | None:
        """What became of the record so far; None if none was asked for."""
        return None if self._recorder is None else self._recorder.status

    def shutdown(self) -> None:
        """Serve no call any more, and end the record: see `RowCache.shutdown`."""
        try:
            super().shutdown()
        finally:
            self._close_record(self._config)

    def _close_record(self, config: RowConfig) -> None:
        if self._recorder is not None:
            self._recorder.close(config.wait_timeout_s)

    def _row_state(self) -> RowState:
        return self._machine.state

    def new_step_starts(self, changes: Iterable[LifeCycle]) -> StepBegan:
        """Take one scheduler output: who arrives, goes on, comes back, ends. All of it or nothing.

        Ends come before arrivals, whatever their order. Hit spans of arrivals are marked, and their rows begin to be
        read beside the forward pass.

        Raises:
            ContractError: a request is malformed, or the step before was neither saved nor dropped (R15, R22).
            ShutDownError, WriteFailedError, ExecutorBrokenError: nothing is served any more.
        """
        answer: StepBegan = self._runtime.tell(StepStarted(tuple(changes)))
        return answer

    def save_outputs(
        self,
        hidden_states: Any,
        mm_outputs: Mapping[NameId, Any] | None = None,
        *,
        num_tokens_unpadded: int | None = None,
        num_tokens_padded: int | None = None,
        layout: WriteLayout | None = None,
    ) -> StepId:
        """Keep what the forward pass of the started step emitted; the step to materialize or discard, once.

        When it returns, the outputs are frozen: the next forward pass may overwrite them. It may wait for the write of
        the step before, for writes of ended requests, for the byte budget, for a page.

        Shapes: `hidden_states`: `[n or more, *row_shape]`; names that are rows: `[n or num_tokens_padded, *row_shape]`.

        Attributes:
            hidden_states: None where the step has none.
            mm_outputs: by flat dotted name: tensors, or anything else.
            num_tokens_unpadded: n, the tokens of the step, to be held against its layout.
            num_tokens_padded: rows that tensors may have instead.
            layout: which rows belong to whom, and their slots; made from the block table if there is one.

        Raises:
            ContractError: the layout or an output is refused (R15); nothing changed.
            CapacityError: a limit is reached, or a wait took too long (R07); it may be tried again.
            FreezeFailedError: the device could not copy; all that the call reserved was given back.
            ShutDownError, WriteFailedError, ExecutorBrokenError: nothing is served any more.
        """
        outputs, live = self._outputs(hidden_states, mm_outputs)
        if layout is None:
            layout = self._layout(num_tokens_padded)
        elif layout.padded is None and num_tokens_padded is not None:
            layout = replace(layout, padded=num_tokens_padded)
        if num_tokens_unpadded is not None and num_tokens_unpadded != len(layout.slots):
            raise TokenCountError(num_tokens_unpadded, len(layout.slots))
        return self._save(SaveRequested(layout, outputs), live)

    def drop_step(self, slots: Sequence[int] | Integers | None = None) -> None:
        """Give up the started step: what it computed has no row under any name, and its reads are dropped.

        Shapes: `slots: [k]`, those that it may have computed; from the block table if there is one.

        Raises:
            StepNotStartedError, SaveReservedError, ShutDownError: there is no step to give up.
            LayoutMissingError: no slots are given, and there is no block table.
            BatchRowError: the block table has no block for a token; give the slots.
        """
        if slots is None:
            slots = self._layout(None).slots
        self._runtime.tell(StepDropped(integers(slots)))

    def _scheduled(self) -> Mapping[RequestId, int]:
        """Tokens of each request in the started step; none if no step waits to be saved. The lock is held."""
        tables = self._machine.state.tables
        return tables.steps[tables.pending].scheduled if tables.pending else {}

    def _layout(self, padded: int | None) -> WriteLayout:
        """The layout of the started step, its slots from the block table in one operation.

        Raises:
            LayoutMissingError: there is no block table.
            BatchRowError: a request that is scheduled has no row, or no block for a token.
        """
        table = self._block_table
        if table is None:
            raise LayoutMissingError
        scheduled = self._runtime.asked(self._scheduled)
        requests = tuple(table.batch())
        absent = scheduled.keys() - frozenset(requests)
        if missing := [each for each in scheduled if each in absent and scheduled[each]] if absent else ():
            raise BatchRowError(missing[0], "tokens of it are scheduled, and it is not there; add it first")
        counts = np.array([scheduled.get(request, 0) for request in requests], dtype=np.int64)
        return WriteLayout(requests, counts, table.step_slots(counts), padded)
