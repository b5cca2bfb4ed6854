"""The block machine: one transition for every event.

`transition` is the whole machine. It is pure: it takes a state and an event, and gives the next state, the answer,
and the commands that somebody else must carry out, in order. A raise, and the answer `Exhausted`, change nothing.
"""

from typing import NamedTuple, assert_never

from tenure.core.blocks.computed import on_token_generated, on_tokens_computed
from tenure.core.blocks.fences import (
    on_dependency_attached,
    on_dependency_satisfied,
    on_snapshot_discarded,
    on_store_sources_snapshotted,
    on_writes_authorized,
)
from tenure.core.blocks.leases import (
    on_allocation_requested,
    on_lease_finished,
    on_lease_opened,
    on_lease_preempted,
)
from tenure.core.blocks.reservations import (
    on_decode_reservation_released,
    on_decode_reservation_requested,
    on_destination_activated,
    on_destination_cancelled,
    on_destination_requested,
    on_external_prefix_requested,
    on_reserved_allocation_requested,
)
from tenure.core.blocks.state import BlockState
from tenure.core.blocks.steps import on_growth_scheduled, on_step_computed
from tenure.core.blocks.tables import Edit
from tenure.core.blocks.values import (
    AllocationRequested,
    Answer,
    Command,
    DecodeReservationReleased,
    DecodeReservationRequested,
    DependencyAttached,
    DependencySatisfied,
    DestinationActivated,
    DestinationCancelled,
    DestinationRequested,
    Event,
    ExternalPrefixRequested,
    GrowthScheduled,
    LeaseFinished,
    LeaseOpened,
    LeasePreempted,
    ReservedAllocationRequested,
    SnapshotDiscarded,
    StepComputed,
    StoreSourcesSnapshotted,
    TokenGenerated,
    TokensComputed,
    WritesAuthorized,
)


class Transition(NamedTuple):
    """What an event led to: the next state, the answer to the caller, and commands for others, in order."""

    state: BlockState
    answer: Answer
    commands: tuple[Command, ...]


def transition(state: BlockState, event: Event) -> Transition:
    """Take one event.

    Raises:
        ContractError: the event is not legal in this state; each handler's docstring names the classes.
        CapacityError: a configured limit is reached.
    """
    return Transition(*state.edited(event, _dispatch))


def _dispatch(edit: Edit, event: Event) -> Answer:  # noqa: C901 - one line an event is the simplest form of it
    match event:
        case GrowthScheduled():
            return on_growth_scheduled(edit, event)
        case StepComputed():
            return on_step_computed(edit, event)
        case AllocationRequested():
            return on_allocation_requested(edit, event)
        case TokensComputed():
            return on_tokens_computed(edit, event)
        case TokenGenerated():
            return on_token_generated(edit, event)
        case LeaseOpened():
            return on_lease_opened(edit, event)
        case LeaseFinished():
            return on_lease_finished(edit, event)
        case LeasePreempted():
            return on_lease_preempted(edit, event)
        case ReservedAllocationRequested():
            return on_reserved_allocation_requested(edit, event)
        case WritesAuthorized():
            return on_writes_authorized(edit, event)
        case DecodeReservationRequested():
            return on_decode_reservation_requested(edit, event)
        case DecodeReservationReleased():
            return on_decode_reservation_released(edit, event)
        case DestinationRequested():
            return on_destination_requested(edit, event)
        case ExternalPrefixRequested():
            return on_external_prefix_requested(edit, event)
        case DestinationActivated():
            return on_destination_activated(edit, event)
        case DestinationCancelled():
            return on_destination_cancelled(edit, event)
        case StoreSourcesSnapshotted():
            return on_store_sources_snapshotted(edit, event)
        case SnapshotDiscarded():
            return on_snapshot_discarded(edit, event)
        case DependencyAttached():
            return on_dependency_attached(edit, event)
        case DependencySatisfied():
            return on_dependency_satisfied(edit, event)
        case _:
            assert_never(event)
