"""The joined cache: block machine and row machine as one value with one transition.

The block machine says who holds a block, the row machine which rows live in it; neither knows of the other. The join
makes the write layout from the leases, tells the block machine what is computed when the rows of it are published
(or scheduled, as configured), and refuses what either alone would let pass (X01 to X05).

A request's life: `LeaseOpened`, `AllocationRequested` (sharing at most `servable_prefix_blocks`), then in each step
`TokensScheduled`; the step: `BatchStarted`, `BatchSaveRequested`, `SavePublished`, and a consume.
"""

from typing import Final

from tenure.core.blocks import values as block_values
from tenure.core.errors import NotForJoinError
from tenure.core.joined.leases import (
    on_allocation_requested,
    on_lease_opened,
    on_lease_released,
    servable_prefix_blocks,
)
from tenure.core.joined.resets import on_reset_requested
from tenure.core.joined.state import CacheState, CacheTransition, tell_blocks, tell_rows
from tenure.core.joined.steps import (
    on_batch_dropped,
    on_batch_save_requested,
    on_batch_started,
    on_save_published,
    on_tokens_scheduled,
)
from tenure.core.joined.values import (
    BatchDropped,
    BatchSaveRequested,
    BatchStarted,
    BlockEvent,
    CacheEvent,
    TokensScheduled,
)
from tenure.core.rows import events

__all__ = ["CacheState", "CacheTransition", "servable_prefix_blocks", "transition"]

_FOREIGN: Final[dict[type[object], str]] = {
    block_values.TokensComputed: "publishing a save tells it",
    block_values.StepComputed: "publishing a save tells what was computed; tell TokenGenerated for each new token",
    block_values.DestinationRequested: "blocks that a transfer brings have no rows, so their hits could not be served",
    block_values.ExternalPrefixRequested: "blocks that a transfer brings have no rows, so hits could not be served",
    block_values.DestinationActivated: "blocks that a transfer brings have no rows, so hits could not be served",
    block_values.DestinationCancelled: "it makes no destinations",
    events.StepStarted: "tell BatchStarted",
    events.SaveRequested: "tell BatchSaveRequested",
    events.StepDropped: "tell BatchDropped",
}
"""Events of the machines that the join refuses, and what to do instead."""


def transition(state: CacheState, event: CacheEvent) -> CacheTransition:
    """Take one event.

    Raises:
        NotForJoinError: an event of one machine that the join tells by itself.
        TenureError: the event is not legal in this state; each handler's docstring names the classes.
    """
    match event:
        case TokensScheduled():
            return on_tokens_scheduled(state, event)
        case BatchStarted():
            return on_batch_started(state)
        case BatchSaveRequested():
            return on_batch_save_requested(state, event)
        case events.SavePublished():
            return on_save_published(state, event)
        case BatchDropped():
            return on_batch_dropped(state)
        case events.ResetRequested():
            return on_reset_requested(state, event)
        case block_values.LeaseOpened():
            return on_lease_opened(state, event)
        case block_values.AllocationRequested():
            return on_allocation_requested(state, event)
        case block_values.LeasePreempted() | block_values.LeaseFinished():
            return on_lease_released(state, event)
        case _:
            if (instead := _FOREIGN.get(type(event))) is not None:
                raise NotForJoinError(type(event).__name__, instead)
            return tell_blocks(state, event) if isinstance(event, BlockEvent) else tell_rows(state, event)
