"""The values of the joined cache: what it may be told beyond the events of its machines, and its view."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from tenure.core.arrays import ByContent, Integers
from tenure.core.blocks import values as block_values
from tenure.core.blocks.view import BlockView
from tenure.core.config import CacheConfig
from tenure.core.rows import answers, commands, events
from tenure.core.rows.names import Output
from tenure.core.rows.view import RowView

RequestId: TypeAlias = int | str
BlockId: TypeAlias = int


# --- Events -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TokensScheduled:
    """The next step computes so many further tokens of a request, in blocks that its lease holds.

    With visibility "scheduled" the blocks that they fill become visible at once, so that a later allocation for the
    same step can share them.
    """

    request: RequestId
    tokens: int


@dataclass(frozen=True, slots=True)
class BatchStarted:
    """The step of everything scheduled since the last one starts; answer `StepBegan`, its step None without tokens."""


@dataclass(frozen=True, slots=True)
class BatchSaveRequested:
    """As `SaveRequested`, with the write layout made from the leases, requests in the order they were scheduled."""

    outputs: tuple[Output, ...]
    padded: int | None = None


@dataclass(frozen=True, slots=True)
class BatchDropped:
    """As `StepDropped`: the started step is given up, and its tokens are to be scheduled again."""


BlockEvent: TypeAlias = (
    block_values.LeaseOpened
    | block_values.AllocationRequested
    | block_values.ReservedAllocationRequested
    | block_values.GrowthScheduled
    | block_values.WritesAuthorized
    | block_values.TokenGenerated
    | block_values.LeasePreempted
    | block_values.LeaseFinished
    | block_values.DecodeReservationRequested
    | block_values.DecodeReservationReleased
    | block_values.StoreSourcesSnapshotted
    | block_values.SnapshotDiscarded
    | block_values.DependencyAttached
    | block_values.DependencySatisfied
)
"""What the join passes on to the block machine. It tells `TokensComputed` by itself."""

RowEvent: TypeAlias = (
    events.SavePublished
    | events.SaveCancelled
    | events.ConsumeRequested
    | events.RowsCopiedOut
    | events.StepConsumed
    | events.ConsumeAbandoned
    | events.StepDiscarded
    | events.CopyBegan
    | events.CopyCompleted
    | events.ScatterCompleted
    | events.WriteFailed
    | events.GatherBegan
    | events.GatherCompleted
    | events.GatherFailed
    | events.WaitTimedOut
    | events.PolicyRegistered
    | events.ResetRequested
    | events.ShutdownRequested
)
"""What the join passes on to the row machine. It tells `StepStarted`, `SaveRequested` and `StepDropped` by itself."""

CacheEvent: TypeAlias = TokensScheduled | BatchStarted | BatchSaveRequested | BatchDropped | BlockEvent | RowEvent
CacheAnswer: TypeAlias = block_values.Answer | answers.RowAnswer
CacheCommand: TypeAlias = block_values.Command | commands.RowCommand


# --- What is known of requests ------------------------------------------------------------------------------------


class Track(NamedTuple):
    """What the join knows of a request with an open lease.

    Attributes:
        group: who may share its blocks; never equal for different isolation groups or adapters.
        hit: tokens of the prefix hit that no step has announced yet.
        computed: tokens whose rows are saved, or were hit.
        published: tokens that the block machine was told of as computed, as far as they filled blocks.
        is_live: whether the row machine knows it.
        ahead: where the tokens end that the started step computes of it; 0 if it is not in that step.
        is_scheduled: whether it is in the batch of the next step.
    """

    group: str
    hit: int = 0
    computed: int = 0
    published: int = 0
    is_live: bool = False
    ahead: int = 0
    is_scheduled: bool = False


class Scheduled(NamedTuple):
    """Tokens `[before, after)` of a request, which one step computes."""

    request: RequestId
    before: int
    after: int


@dataclass(frozen=True, slots=True, eq=False)
class StartedBatch(ByContent):
    """The batch of the started step, with the slot of each of its tokens. Shapes: `slots: [tokens]`.

    `hits` are the hits that its arrivals announced, as the tracks were before: what a drop gives back.
    """

    batch: tuple[Scheduled, ...]
    slots: Integers
    hits: tuple[tuple[RequestId, Track], ...]


@dataclass(frozen=True, slots=True)
class CacheView:
    """Everything that a joined cache holds.

    Attributes:
        tracks: requests with an open lease.
        batch: what is scheduled for the next step.
        started: what the started step computes, until it is saved or dropped.
        announced: per request of the started step that came with a hit, its tokens: owed again if the step is dropped.
        unsaved: with visibility "scheduled": visible blocks whose rows are to be computed, and by whom.
        ended: live requests whose end the row machine will be told with the next step.
    """

    config: CacheConfig
    blocks: BlockView
    rows: RowView
    tracks: Mapping[RequestId, Track]
    batch: tuple[Scheduled, ...]
    started: tuple[Scheduled, ...]
    announced: Mapping[RequestId, int]
    unsaved: Mapping[BlockId, RequestId]
    ended: tuple[RequestId, ...]
