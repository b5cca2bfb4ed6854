"""`BlockManager`: the block machine as an engine imports it.

It holds the newest state behind one lock, offers the machine's operations as methods, and hands KV events to a sink
in the order of their ids. It decides nothing that the machine does not decide.
"""

from collections.abc import Callable, Sequence
from threading import Lock
from typing import Any, TypeVar, overload

import numpy as np
import numpy.typing as npt

from tenure.core.blocks import queries
from tenure.core.blocks.hashing import IdentityKeys
from tenure.core.blocks.machine import transition
from tenure.core.blocks.sequence import BlockIdentity, RequestSequence, new_sequence
from tenure.core.blocks.state import BlockState
from tenure.core.blocks.values import (
    AllocationRequested,
    Answer,
    BlockHash,
    BlockId,
    DecodeReservationReleased,
    DecodeReservationRequested,
    DependencyAttached,
    DependencyId,
    DependencySatisfied,
    DestinationActivated,
    DestinationCancelled,
    DestinationRequested,
    Event,
    Exhausted,
    ExternalPrefixRequested,
    GrowthReady,
    GrowthScheduled,
    LeaseFinished,
    LeaseOpened,
    LeasePreempted,
    NoSources,
    Ready,
    RequestId,
    ReservationId,
    Reserved,
    ReservedAllocationRequested,
    SnapshotDiscarded,
    SnapshotId,
    Sources,
    StepAppended,
    StepComputed,
    StoreSourcesSnapshotted,
    TokenAppended,
    TokenGenerated,
    TokensComputed,
    WasPending,
    WritesAuthorized,
)
from tenure.core.blocks.view import BlockView, PrefillCost, PrefixHit
from tenure.core.config import BlockConfig
from tenure.outbox import Outbox, Sink

First = TypeVar("First", bound=Answer)
Second = TypeVar("Second", bound=Answer)
Found = TypeVar("Found")


class BlockManager:
    """Thread-safe holder of the newest block-machine state.

    Every method is one atomic step. One that raises a `TenureError`, or answers `Exhausted`, has changed nothing. The
    sink is called outside the lock, by one thread at a time, with commands in order, and not necessarily by the thread
    that caused them: `flush` waits for what is on its way. An `Exception` of the sink is logged and goes no further.

    Attributes:
        config: what the machine was built with.
    """

    def __init__(
        self,
        capacity: int,
        block_size: int = 16,
        *,
        prefix_caching: bool = True,
        sink: Sink | None = None,
        trace: bool = False,
        dp_rank: int = 0,
        snapshots_max: int = 1024,
    ) -> None:
        """Start with all of `capacity` blocks free.

        KV events (`PublishStored`, `PublishRemoved`) are built only where there is a `sink`; with `trace` it is given
        a `RecordTrace` before each of them.

        Raises:
            pydantic.ValidationError: a value outside the limits of `BlockConfig`.
            ValueError: `trace` without a sink to give the records to.
        """
        if trace and sink is None:
            msg = "trace=True needs a sink that takes the records"
            raise ValueError(msg)
        self.config = BlockConfig(
            capacity=capacity,
            block_size=block_size,
            prefix_caching=prefix_caching,
            kv_events=sink is not None,
            trace=trace,
            dp_rank=dp_rank,
            snapshots_max=snapshots_max,
        )
        self._state = BlockState.initial(self.config)
        self._lock = Lock()
        self._outbox = Outbox(sink)

    # --- Requests -----------------------------------------------------------------------------------------------

    def open_lease(
        self,
        request: RequestId,
        prompt: Sequence[int] | npt.NDArray[np.uint32],
        max_output: int,
        *,
        retain_local_hashes: bool = True,
        emit_token_ids: bool = False,
        planned: Sequence[int] = (),
        keys: IdentityKeys | None = None,
        identities: Sequence[BlockIdentity] | None = None,
    ) -> RequestSequence:
        """Name the blocks of a prompt and open an empty lease for it.

        Shapes: `prompt: [num_tokens]`, unsigned 32-bit values; copied.

        Raises:
            LeaseAlreadyOpenError: the request has an open lease.
            ContractError: see `new_sequence`.
        """
        sequence = new_sequence(
            request,
            prompt,
            max_output,
            self.config.block_size,
            caching=self.config.prefix_caching,
            retain_local_hashes=retain_local_hashes,
            emit_token_ids=emit_token_ids,
            planned=planned,
            keys=keys,
            identities=identities,
        )
        self.apply(LeaseOpened(sequence))
        return sequence

    def generate_token(self, request: RequestId, token: int | None = None) -> TokenAppended:
        """Append an output token: the given, the planned or the synthetic one."""
        return self._told(TokenGenerated(request, token), TokenAppended)

    def allocate_lease(self, request: RequestId, tokens: int, reusable_blocks: int = 0) -> Ready | Exhausted:
        """Hold capacity for the first `tokens` tokens, sharing the first `reusable_blocks` blocks."""
        return self._told(AllocationRequested(request, tokens, reusable_blocks), Ready, Exhausted)

    def finalize(self, request: RequestId, before: int, after: int) -> None:
        """Publish the blocks that computing tokens `[before, after)` completed."""
        self.apply(TokensComputed(request, before, after))

    def grow_leases(self, requests: Sequence[RequestId]) -> GrowthReady:
        """Hold capacity for all known tokens of many requests, in order, up to the first that finds none."""
        return self._told(GrowthScheduled(tuple(requests)), GrowthReady)

    def complete_step(self, requests: Sequence[RequestId], tokens: Sequence[int] | None = None) -> tuple[int, ...]:
        """End a decode step: each request's last known token is computed and its next one appended."""
        event = StepComputed(tuple(requests), None if tokens is None else tuple(tokens))
        return self._told(event, StepAppended).tokens

    def preempt(self, request: RequestId) -> None:
        """Release a request's blocks, leaf first; its lease stays open."""
        self.apply(LeasePreempted(request))

    def finish(self, request: RequestId) -> None:
        """Release a request's blocks, leaf first, and close its lease."""
        self.apply(LeaseFinished(request))

    # --- Reservations -------------------------------------------------------------------------------------------

    def reserve_decode_blocks(self, blocks: int) -> Reserved | Exhausted:
        """Set fresh capacity aside for later growth."""
        return self._told(DecodeReservationRequested(blocks), Reserved, Exhausted)

    def allocate_from_decode_reservation(self, request: RequestId, tokens: int, reservation: ReservationId) -> Ready:
        """As `allocate_lease`, out of a decode reservation."""
        return self._told(ReservedAllocationRequested(request, tokens, reservation), Ready)

    def release_decode_reservation(self, reservation: ReservationId) -> None:
        """Give back what is left of a decode reservation."""
        self.apply(DecodeReservationReleased(reservation))

    def reserve_destination(self, request: RequestId) -> Reserved | Exhausted:
        """Set room aside for a prompt that is transferred in, its longest resident prefix pinned."""
        return self._told(DestinationRequested(request), Reserved, Exhausted)

    def reserve_external_prefix(
        self, request: RequestId, prefix_blocks: int, suffix: Sequence[BlockHash]
    ) -> Reserved | Exhausted:
        """Set room aside for exactly `suffix`, behind `prefix_blocks` resident blocks."""
        return self._told(ExternalPrefixRequested(request, prefix_blocks, tuple(suffix)), Reserved, Exhausted)

    def destination_pending_dependencies(self, reservation: ReservationId) -> tuple[DependencyId, ...]:
        """The transfers that still read a destination's capacity, in the order of use."""
        return self._asked(lambda state: queries.destination_pending(state, reservation))

    def activate_destination(self, request: RequestId, reservation: ReservationId) -> None:
        """Let a lease take the blocks of its destination; full ones become visible at once."""
        self.apply(DestinationActivated(request, reservation))

    def cancel_destination(self, reservation: ReservationId) -> None:
        """Give a destination up."""
        self.apply(DestinationCancelled(reservation))

    # --- Fences -------------------------------------------------------------------------------------------------

    def authorize_lease_writes(self, request: RequestId, dependencies: Sequence[DependencyId]) -> None:
        """Say that a lease's pending writes are ordered behind `dependencies`, exactly as answered."""
        self.apply(WritesAuthorized(request, tuple(dependencies)))

    def snapshot_store_sources(self, request: RequestId, positions: Sequence[int]) -> Sources | None:
        """Choose computed blocks as the sources of a store; None if they will not do now."""
        answer = self._told(StoreSourcesSnapshotted(request, tuple(positions)), Sources, NoSources)
        return answer if isinstance(answer, Sources) else None

    def attach(self, request: RequestId, snapshot: SnapshotId, dependency: DependencyId) -> None:
        """Fence the blocks of a snapshot behind the transfer that reads them."""
        self.apply(DependencyAttached(request, snapshot, dependency))

    def discard_snapshot(self, snapshot: SnapshotId) -> None:
        """Forget a snapshot."""
        self.apply(SnapshotDiscarded(snapshot))

    def satisfy(self, dependency: DependencyId) -> bool:
        """End a transfer; whether it was pending."""
        return self._told(DependencySatisfied(dependency), WasPending).pending

    def is_pending(self, dependency: DependencyId) -> bool:
        """Whether a transfer is attached and not satisfied."""
        return self._asked(lambda state: queries.is_pending(state, dependency))

    # --- Questions ----------------------------------------------------------------------------------------------

    def prefill_cost(self, request: RequestId) -> PrefillCost:
        """What computing all known tokens of a request would take now."""
        return self._asked(lambda state: queries.prefill_cost(state, request))

    def prefix_hit(self, block_hash: BlockHash) -> PrefixHit | None:
        """Whether a hash is visible, and whether its primary copy is in use."""
        return self._asked(lambda state: queries.prefix_hit(state, block_hash))

    def resident_prefix_blocks(self, request: RequestId) -> int:
        """Leading blocks of a request that are visible now: what an allocation may reuse at most."""
        return self._asked(lambda state: queries.resident_prefix_blocks(state, request))

    def block_table(self, request: RequestId) -> tuple[BlockId, ...]:
        """The physical blocks a request holds, by position."""
        return self._asked(lambda state: queries.block_table(state, request))

    def block_hashes(self, request: RequestId) -> tuple[BlockHash | None, ...]:
        """The sequence hashes of a request's blocks, by position; None where unresolved."""
        return self._asked(lambda state: queries.block_hashes(state, request))

    def allocated_tokens(self, request: RequestId) -> int:
        """The allocation watermark of a request."""
        return self._asked(lambda state: queries.allocated_tokens(state, request))

    def sequence_length(self, request: RequestId) -> int:
        """Tokens known of a request, prompt and output."""
        return self._asked(lambda state: queries.sequence_length(state, request))

    def generated(self, request: RequestId) -> int:
        """Output tokens of a request so far."""
        return self._asked(lambda state: queries.generated(state, request))

    @property
    def num_active(self) -> int:
        """Blocks in use or set aside."""
        return self._asked(queries.num_active)

    @property
    def num_inactive(self) -> int:
        """Visible blocks that nobody uses: the next to be evicted."""
        return self._asked(queries.num_inactive)

    @property
    def num_free(self) -> int:
        """Blocks without content that nobody set aside."""
        return self._asked(queries.num_free)

    def view(self) -> BlockView:
        """The whole state as plain data."""
        return self._asked(lambda state: state.view())

    # --- The one way in and the one way out ---------------------------------------------------------------------

    def apply(self, event: Event) -> Answer:
        """Take any event of the machine.

        Raises:
            ContractError: the event is not legal now; nothing changed.
            CapacityError: a configured limit is reached; nothing changed.
        """
        with self._lock:
            state, answer, commands = transition(self._state, event)
            self._state = state
            self._outbox.put(commands)
        if commands:
            self._outbox.deliver()
        return answer

    @overload
    def _told(self, event: Event, first: type[First]) -> First: ...
    @overload
    def _told(self, event: Event, first: type[First], second: type[Second]) -> First | Second: ...
    def _told(self, event: Event, first: type[Any], second: type[Any] | None = None) -> Any:
        answer = self.apply(event)
        assert isinstance(answer, first) or (second is not None and isinstance(answer, second))
        return answer

    def _asked(self, question: Callable[[BlockState], Found]) -> Found:
        with self._lock:
            return question(self._state)

    def flush(self) -> None:
        """Wait until the sink was given everything that happened before this call. Not to be called by the sink."""
        self._outbox.flush()
