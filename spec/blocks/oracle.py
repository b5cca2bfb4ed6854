"""The naive oracle of the block machine: what every event must answer and command, and the state it must leave.

Written from the requirement, in the order in which the requirement speaks, with lists and dicts; it shares nothing
with the core's transitions but the values that go in and come out. Every event works on a copy of the whole state,
so a raise cannot leave anything behind; what is only read need not be copied. It decides nothing about speed.
"""

from typing import assert_never

from tenure.core.blocks.values import (
    AllocationRequested,
    Answer,
    BlockHash,
    BlockId,
    Command,
    DecodeReservationReleased,
    DecodeReservationRequested,
    DependencyAttached,
    DependencyId,
    DependencySatisfied,
    DestinationActivated,
    DestinationCancelled,
    DestinationRequested,
    Done,
    Event,
    Exhausted,
    ExternalPrefixRequested,
    GrowthReady,
    GrowthScheduled,
    LeaseFinished,
    LeaseOpened,
    LeasePreempted,
    RequestId,
    ReservationId,
    ReservedAllocationRequested,
    SnapshotDiscarded,
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
from tenure.core.errors import (
    LeaseAlreadyOpenError,
    NothingComputedError,
    SequenceBlockSizeError,
    StepTokensError,
)
from tenure.spec.blocks import oracle_leases as leases
from tenure.spec.blocks import oracle_reservations as reservations
from tenure.spec.blocks.oracle_lease import open_lease
from tenure.spec.blocks.oracle_state import Kind, OracleState

Outcome = tuple[Answer, list[Command]]


class BlockOracle:
    """A block machine that is easy to believe."""

    def __init__(self, config: BlockConfig) -> None:
        """An empty machine."""
        # Invariant: never changed in place, so that twins may share it.
        self._state = OracleState(config)
        self._view: BlockView | None = None

    def clone(self) -> "BlockOracle":
        """A twin that goes its own way from here."""
        twin = BlockOracle.__new__(BlockOracle)
        twin._state, twin._view = self._state, self._view
        return twin

    def apply(self, event: Event) -> tuple[Answer, tuple[Command, ...]]:
        """Tell the machine something; what it answers, and what it asks others to do.

        Raises:
            TenureError: the event is refused; nothing changed.
        """
        trial = self._state.clone()
        answer, commands = perform(trial, event)
        trial.forget_stale_snapshots(self._state)
        self._state, self._view = trial, None
        return answer, tuple(commands)

    def view(self) -> BlockView:
        """The whole state as plain data."""
        if self._view is None:
            self._view = self._state.view()
        return self._view

    def prefix_hit(self, block_hash: BlockHash) -> PrefixHit | None:
        """Whether a hash is visible, and whether its primary copy is in use."""
        pool = self._state.pool
        primary = pool.primary(block_hash)
        return None if primary is None else PrefixHit(pool.is_in_use(primary))

    def prefill_cost(self, request: RequestId) -> PrefillCost:
        """What computing a request would take now.

        Raises:
            UnknownLeaseError: no such lease.
        """
        lease, pool = self._state.look_at(request), self._state.pool
        overlap = active = 0
        if self._state.shares(lease):
            for entry in lease.entries:
                primary = None if entry.sequence_hash is None else pool.primary(entry.sequence_hash)
                if primary is None:
                    break
                overlap += 1
                active += pool.is_in_use(primary)
        cached = min(overlap * lease.block_size, lease.length)
        return PrefillCost(
            new_blocks=len(lease.entries) - overlap,
            new_tokens=lease.length - cached,
            cached_tokens=cached,
            active_cached_tokens=min(active * lease.block_size, lease.length),
        )

    def destination_pending(self, reservation: ReservationId) -> tuple[DependencyId, ...]:
        """Pending transfers that read a destination's fresh capacity, in the order of use."""
        capacity = self._state.reservation(reservation, "destination").capacity
        return self._state.pool.pending_fresh(capacity, len(capacity.fresh))

    def is_pending(self, dependency: DependencyId) -> bool:
        """Whether a transfer still reads."""
        return dependency in self._state.pool.attachments


def perform(state: OracleState, event: Event) -> Outcome:
    """Carry out one event on a state that is thrown away if this raises."""
    match event:
        case LeaseOpened():
            return _open(state, event), []
        case AllocationRequested(request, tokens, reusable):
            return leases.allocate(state, state.lease(request), tokens, reusable)
        case ReservedAllocationRequested(request, tokens, number):
            return leases.allocate_reserved(state, state.lease(request), tokens, number), []
        case WritesAuthorized(request, dependencies):
            leases.authorize(state, state.lease(request), dependencies)
            return Done(), []
        case TokensComputed(request, before, after):
            return Done(), leases.compute(state, state.lease(request), before, after)
        case TokenGenerated(request, token):
            return TokenAppended(*state.lease(request).append_token(token)), []
        case LeasePreempted(request):
            leases.release_all(state, state.lease(request))
            return Done(), []
        case LeaseFinished(request):
            leases.release_all(state, state.lease(request))
            del state.leases[request]
            return Done(), []
        case GrowthScheduled(requests):
            return _schedule_growth(state, requests)
        case StepComputed(requests, tokens):
            return _compute_step(state, requests, tokens)
        case _:
            return _perform_reserving(state, event)


ReservingEvent = (
    DecodeReservationRequested
    | DecodeReservationReleased
    | DestinationRequested
    | ExternalPrefixRequested
    | DestinationActivated
    | DestinationCancelled
    | StoreSourcesSnapshotted
    | SnapshotDiscarded
    | DependencyAttached
    | DependencySatisfied
)


def _perform_reserving(state: OracleState, event: ReservingEvent) -> Outcome:
    match event:
        case DecodeReservationRequested(blocks):
            return reservations.reserve_decode(state, blocks)
        case DecodeReservationReleased(number):
            return _give_back(state, number, "decode"), []
        case DestinationRequested(request):
            return reservations.reserve_destination(state, state.lease(request))
        case ExternalPrefixRequested(request, prefix_blocks, suffix):
            return reservations.reserve_external(state, state.lease(request), prefix_blocks, suffix)
        case DestinationActivated(request, number):
            return Done(), reservations.activate(state, request, number)
        case DestinationCancelled(number):
            return _give_back(state, number, "destination"), []
        case StoreSourcesSnapshotted(request, positions):
            return reservations.snapshot(state, state.lease(request), positions), []
        case SnapshotDiscarded(number):
            reservations.live_snapshot(state, number)
            del state.snapshots[number]
            return Done(), []
        case DependencyAttached(request, number, dependency):
            reservations.attach(state, request, number, dependency)
            return Done(), []
        case DependencySatisfied(dependency):
            return WasPending(state.pool.satisfy(dependency)), []
        case _:
            assert_never(event)


def _open(state: OracleState, event: LeaseOpened) -> Answer:
    sequence = event.sequence
    if sequence.request in state.leases:
        raise LeaseAlreadyOpenError(sequence.request)
    if sequence.block_size != state.config.block_size:
        raise SequenceBlockSizeError(sequence.request, sequence.block_size, state.config.block_size)
    state.leases_opened += 1
    state.leases[sequence.request] = open_lease(state.leases_opened, sequence)
    return Done()


def _give_back(state: OracleState, number: ReservationId, kind: Kind) -> Answer:
    state.pool.cancel(state.reservation(number, kind).capacity)
    del state.reservations[number]
    return Done()


def _schedule_growth(state: OracleState, requests: tuple[RequestId, ...]) -> Outcome:
    commands: list[Command] = []
    blocks: list[tuple[RequestId, BlockId]] = []
    dependencies: list[tuple[RequestId, tuple[DependencyId, ...]]] = []
    served = 0
    for request in requests:
        lease = state.lease(request)
        answer, told = leases.allocate(state, lease, lease.length, 0)
        if isinstance(answer, Exhausted):
            break
        served += 1
        commands += told
        blocks += [(request, block) for block in answer.blocks]
        if answer.dependencies:
            dependencies.append((request, answer.dependencies))
    return GrowthReady(served, tuple(blocks), tuple(dependencies)), commands


def _compute_step(state: OracleState, requests: tuple[RequestId, ...], tokens: tuple[int, ...] | None) -> Outcome:
    if tokens is not None and len(tokens) != len(requests):
        raise StepTokensError(len(requests), len(tokens))
    commands: list[Command] = []
    appended: list[int] = []
    for number, request in enumerate(requests):
        lease = state.lease(request)
        if lease.length == 0:
            raise NothingComputedError(request)
        commands += leases.compute(state, lease, lease.length - 1, lease.length)
        token, _ = lease.append_token(None if tokens is None else tokens[number])
        appended.append(token)
    return StepAppended(tuple(appended)), commands
