"""`JoinedCache`: block machine and row machine as one, so that a block is visible only with its rows."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from tenure.backends.device import Device
from tenure.block_manager import BlockManager
from tenure.core.blocks.state import BlockState
from tenure.core.blocks.values import Answer, Event, PublishRemoved, PublishStored, RecordTrace
from tenure.core.cache import CacheState, servable_prefix_blocks, transition
from tenure.core.config import CacheConfig, RowPolicy
from tenure.core.errors import TokenCountError
from tenure.core.joined.values import (
    BatchDropped,
    BatchSaveRequested,
    BatchStarted,
    CacheAnswer,
    CacheEvent,
    CacheView,
    TokensScheduled,
)
from tenure.core.rows.answers import StepBegan
from tenure.core.rows.commands import RowCommand
from tenure.core.rows.events import RequestId, StepId
from tenure.core.rows.names import NameId, RowFormat
from tenure.core.rows.state import RowState
from tenure.outbox import Outbox, Sink
from tenure.row_cache import RowCache
from tenure.runtime import Runtime

Found = TypeVar("Found")


class JoinedMachine:
    """The joined machine and its newest state; KV events go to an outbox."""

    def __init__(self, config: CacheConfig, outbox: Outbox) -> None:
        self.state = CacheState.initial(config)
        self._outbox = outbox

    def tell(self, event: CacheEvent) -> tuple[CacheAnswer, tuple[RowCommand, ...]]:
        """Let an event happen."""
        self.state, answer, commands = transition(self.state, event)
        rows: list[RowCommand] = []
        for command in commands:
            if isinstance(command, PublishStored | PublishRemoved | RecordTrace):
                self._outbox.put((command,))
            else:
                rows.append(command)
        return answer, tuple(rows)


class JoinedBlocks(BlockManager):
    """The block operations of a joined cache.

    What the join tells by itself (`finalize`, `complete_step`, transfers into the cache) raises `NotForJoinError`.
    """

    def __init__(self, machine: JoinedMachine, runtime: Runtime, outbox: Outbox) -> None:
        # The state is the joined machine's, so nothing of the base is set up.
        self.config = machine.state.config.blocks
        self._machine = machine
        self._runtime = runtime
        self._outbox = outbox

    def apply(self, event: Event) -> Answer:
        """Take an event of the block machine.

        Raises:
            ContractError: the event is not legal now; nothing changed.
            CapacityError: a configured limit is reached; nothing changed.
        """
        answer: Answer = self._runtime.tell(event)
        self._outbox.deliver()
        return answer

    def _asked(self, question: Callable[[BlockState], Found]) -> Found:
        return self._runtime.asked(lambda: question(self._machine.state.blocks))


class JoinedCache(RowCache[JoinedMachine]):
    """A block pool and the rows of its blocks.

    A request's life: `blocks.open_lease`, `blocks.allocate_lease` sharing at most `servable_prefix_blocks`, in each
    step `schedule`; the step's: `new_step_starts`, the forward pass, `save_outputs`, and a `materialize`. Slots and
    hits follow from the leases.

    Rules: X01 to X05, and those of both machines.

    Attributes:
        blocks: the block operations, those of `BlockManager`.
    """

    def __init__(
        self,
        config: CacheConfig,
        policy: RowPolicy | None = None,
        *,
        device: Device | None = None,
        sink: Sink | None = None,
        formats: Iterable[RowFormat] = (),
    ) -> None:
        """A cache in which every block is free.

        Attributes:
            policy: what the model's outputs are; may also be registered later, before the first step.
            device: where rows are copied; the CPU, inline, if not given.
            sink: is given KV events, if `config.blocks.kv_events` asks for them.
            formats: names whose memory is to be there from the start, so that no step waits for it.

        Raises:
            PageLockedMemoryError: the pages of `formats` need more page-locked memory than there may be.
            OperationFailedError: there is not so much memory.
        """
        self._outbox = Outbox(sink)
        machine = JoinedMachine(config, self._outbox)
        super().__init__(machine, config.rows, policy, device, formats)
        self.blocks = JoinedBlocks(machine, self._runtime, self._outbox)

    def _row_state(self) -> RowState:
        return self._machine.state.rows

    def servable_prefix_blocks(self, request: RequestId) -> int:
        """Leading blocks that a first allocation may share now: visible, of the same isolation group, with their rows.

        Raises:
            UnknownLeaseError: no open lease.
        """
        return self._runtime.asked(lambda: servable_prefix_blocks(self._machine.state, request))

    def schedule(self, request: RequestId, tokens: int) -> None:
        """Put the next `tokens` tokens of a request into the next step, in blocks that its lease holds.

        Raises:
            UnknownLeaseError, ScheduledTwiceError, ScheduledBeyondError: nobody, twice, or too many.
            UnauthorizedWriteError: the lease's writes wait for a transfer.
        """
        self._tell(TokensScheduled(request, tokens))

    def new_step_starts(self) -> StepBegan:
        """Start the step of everything that is scheduled; ends since the last one are told with it.

        Raises:
            RowsOwedError: a hit lies on blocks whose rows nobody in the batch computes.
            StepNotSavedError, ShutDownError, WriteFailedError, ExecutorBrokenError: no step can start now.
        """
        began: StepBegan = self._tell(BatchStarted())
        return began

    def save_outputs(
        self,
        hidden_states: Any,
        mm_outputs: Mapping[NameId, Any] | None = None,
        *,
        num_tokens_unpadded: int | None = None,
        num_tokens_padded: int | None = None,
    ) -> StepId:
        """As `OutputCache.save_outputs`; rows in the order in which requests were scheduled."""
        outputs, live = self._outputs(hidden_states, mm_outputs)
        if num_tokens_unpadded is not None:
            self._runtime.asked(lambda: self._check_tokens(num_tokens_unpadded))
        step = self._save(BatchSaveRequested(outputs, num_tokens_padded), live)
        self._outbox.deliver()
        return step

    def _check_tokens(self, found: int) -> None:
        started = self._machine.state.started
        if started is not None and found != len(started.slots):
            raise TokenCountError(found, len(started.slots))

    def drop_step(self) -> None:
        """Give up the started step: its tokens are to be scheduled again.

        Raises:
            StepNotStartedError, SaveReservedError, ShutDownError: there is no step to give up.
        """
        self._tell(BatchDropped())

    def view(self) -> CacheView:
        """The whole state as plain data."""
        return self._runtime.asked(lambda: self._machine.state.view())

    def reset(self) -> bool:
        """Forget every row and every hash; see `RowCache.reset`. After a failure, leases are preempted."""
        done = super().reset()
        self._outbox.deliver()
        return done

    def _tell(self, event: CacheEvent) -> Any:
        answer = self._runtime.tell(event)
        self._outbox.deliver()
        return answer
