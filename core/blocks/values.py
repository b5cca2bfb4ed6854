"""The values of the block machine: what it may be told, what it answers, and what it asks others to do.

Everything here is plain immutable data. The transitions live elsewhere; the spec and every layer above import
these values and never the transitions.

Source: the operations of the seed's G1 block manager (aisimulate-core 0.12.0), restated as events.
"""

from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

from tenure.core.blocks.sequence import RequestSequence

RequestId: TypeAlias = int | str
"""Names a request and its lease. An int stands for a 128-bit UUID; a str is any engine's own id."""
BlockId: TypeAlias = int
"""One physical block, numbered from 0: the unit of capacity, and what an engine's block table holds."""
BlockHash: TypeAlias = int
"""An unsigned 64-bit sequence hash: names a block's tokens together with all tokens before them."""
ReservationId: TypeAlias = int
SnapshotId: TypeAlias = int
DependencyId: TypeAlias = int
"""A transfer that still reads a block, named by whoever runs it (an opaque unsigned 64-bit number)."""


# --- Events: what the machine may be told ---------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class LeaseOpened:
    """A request arrived: it gets an empty lease over the identities of its sequence."""

    sequence: RequestSequence


@dataclass(frozen=True, slots=True)
class AllocationRequested:
    """A lease asks to hold capacity for its first `tokens` tokens; answer `Ready` or `Exhausted`.

    `reusable_blocks` counts the leading blocks, from position 0, that a lookup found resident and that the lease
    is to share instead of computing them.
    """

    request: RequestId
    tokens: int
    reusable_blocks: int = 0


@dataclass(frozen=True, slots=True)
class ReservedAllocationRequested:
    """As `AllocationRequested`, with the capacity drawn from a decode reservation; answer `Ready`."""

    request: RequestId
    tokens: int
    reservation: ReservationId


@dataclass(frozen=True, slots=True)
class WritesAuthorized:
    """The engine ordered a lease's pending writes behind the transfers `dependencies`, in the order answered."""

    request: RequestId
    dependencies: tuple[DependencyId, ...]


@dataclass(frozen=True, slots=True)
class TokensComputed:
    """Tokens `[before, after)` of a request were computed: its blocks that are now full become visible."""

    request: RequestId
    before: int
    after: int


@dataclass(frozen=True, slots=True)
class TokenGenerated:
    """A request got its next output token; answer `TokenAppended`.

    Without `token`, it is the planned one or, past the plan, the synthetic one of the request.
    """

    request: RequestId
    token: int | None = None


@dataclass(frozen=True, slots=True)
class GrowthScheduled:
    """Each request asks for capacity for all tokens its sequence knows; answer `GrowthReady`.

    The same as one `AllocationRequested` each, in order, up to the first that finds no capacity.
    """

    requests: tuple[RequestId, ...]


@dataclass(frozen=True, slots=True)
class StepComputed:
    """A decode step ended: of each request the last known token was computed, and the next was sampled.

    The same as `TokensComputed` of the last token and then `TokenGenerated`, each request in order. `tokens` are
    the sampled tokens, one a request; without them each is planned or synthetic. Answer `StepAppended`.
    """

    requests: tuple[RequestId, ...]
    tokens: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True)
class LeasePreempted:
    """A request gives up all its blocks, leaf first, and keeps its lease and identities."""

    request: RequestId


@dataclass(frozen=True, slots=True)
class LeaseFinished:
    """A request ended: its blocks are released, leaf first, and its lease is gone."""

    request: RequestId


@dataclass(frozen=True, slots=True)
class DecodeReservationRequested:
    """Somebody asks for `blocks` blocks of fresh capacity, for later growth; answer `Reserved` or `Exhausted`."""

    blocks: int


@dataclass(frozen=True, slots=True)
class DecodeReservationReleased:
    """What is left of a decode reservation goes back; its id dies."""

    reservation: ReservationId


@dataclass(frozen=True, slots=True)
class DestinationRequested:
    """A request whose prompt will be transferred in asks for room; answer `Reserved` or `Exhausted`.

    The longest resident prefix of the prompt is pinned, the rest is fresh capacity.
    """

    request: RequestId


@dataclass(frozen=True, slots=True)
class ExternalPrefixRequested:
    """As `DestinationRequested`, for exactly `prefix_blocks` resident blocks and the blocks of `suffix`."""

    request: RequestId
    prefix_blocks: int
    suffix: tuple[BlockHash, ...]


@dataclass(frozen=True, slots=True)
class DestinationActivated:
    """The transfer into a destination landed: the lease takes its blocks, full ones visible at once."""

    request: RequestId
    reservation: ReservationId


@dataclass(frozen=True, slots=True)
class DestinationCancelled:
    """A destination is given up: its pins and its capacity go back; its id dies."""

    reservation: ReservationId


@dataclass(frozen=True, slots=True)
class StoreSourcesSnapshotted:
    """A store wants to read computed blocks of a lease; answer `Sources`, or `NoSources` if they will not do."""

    request: RequestId
    positions: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class SnapshotDiscarded:
    """A store-source snapshot is not wanted any more; its id dies."""

    snapshot: SnapshotId


@dataclass(frozen=True, slots=True)
class DependencyAttached:
    """The store of a snapshot was admitted as transfer `dependency`: later writes to its blocks are fenced."""

    request: RequestId
    snapshot: SnapshotId
    dependency: DependencyId


@dataclass(frozen=True, slots=True)
class DependencySatisfied:
    """A transfer no longer reads; answer `WasPending`."""

    dependency: DependencyId


Event: TypeAlias = (
    GrowthScheduled
    | StepComputed
    | AllocationRequested
    | TokensComputed
    | TokenGenerated
    | LeaseOpened
    | LeaseFinished
    | LeasePreempted
    | ReservedAllocationRequested
    | WritesAuthorized
    | DecodeReservationRequested
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


# --- Answers --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Done:
    """The event took effect; there is nothing more to say."""


@dataclass(frozen=True, slots=True)
class Ready:
    """The capacity is held.

    Attributes:
        blocks: the blocks newly held, in position order; prefix hits first.
        dependencies: transfers that still read some of them. The engine orders its next writes behind these and
            says so with `WritesAuthorized`, in this order.
    """

    blocks: tuple[BlockId, ...]
    dependencies: tuple[DependencyId, ...] = ()


@dataclass(frozen=True, slots=True)
class Exhausted:
    """There is not enough capacity now; nothing changed.

    Attributes:
        needed: fresh blocks that the call needs.
        available: blocks it could have had: free ones, and inactive ones that it does not itself reuse.
    """

    needed: int
    available: int


@dataclass(frozen=True, slots=True)
class TokenAppended:
    """The sequence grew by `token`; `opened_block` says that the token begins a new block."""

    token: int
    opened_block: bool


@dataclass(frozen=True, slots=True)
class GrowthReady:
    """What a batch of growths got.

    Attributes:
        served: how many requests, from the first on, have their capacity now; fewer than asked means that the
            next one found none.
        blocks: `(request, block)` for every block newly held, in order.
        dependencies: `(request, dependencies)` for every lease whose writes must be authorized.
    """

    served: int
    blocks: tuple[tuple[RequestId, BlockId], ...]
    dependencies: tuple[tuple[RequestId, tuple[DependencyId, ...]], ...]


@dataclass(frozen=True, slots=True)
class StepAppended:
    """The tokens appended by a decode step, one a request, in order."""

    tokens: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Reserved:
    """Capacity is set aside.

    Attributes:
        reservation: the id to activate, cancel, release or draw on.
        blocks: blocks in all, pinned prefix hits included.
        fresh: blocks of fresh capacity among them.
        transferable_tokens: `fresh * block_size`: what a transfer may have to bring, a partial tail as a whole.
        dependencies: transfers that still read the fresh capacity, in the order in which it would be used.
    """

    reservation: ReservationId
    blocks: int
    fresh: int
    transferable_tokens: int
    dependencies: tuple[DependencyId, ...]


@dataclass(frozen=True, slots=True)
class Sources:
    """A store-source snapshot: the id to attach with, and the hashes of the chosen blocks, in order.

    It dies when it is attached or discarded, or when its lease changes.
    """

    snapshot: SnapshotId
    hashes: tuple[BlockHash, ...]


@dataclass(frozen=True, slots=True)
class NoSources:
    """The chosen blocks cannot be read by a store now: not computed, not held, or still read by another."""


@dataclass(frozen=True, slots=True)
class WasPending:
    """Whether the dependency was pending until now."""

    pending: bool


Answer: TypeAlias = (
    Done | Ready | Exhausted | TokenAppended | GrowthReady | StepAppended | Reserved | Sources | NoSources | WasPending
)


# --- Commands: what the machine asks others to do -------------------------------------------------------------


class PublishStored(NamedTuple):
    """Tell routers that hashes became visible: consecutive blocks of one lease.

    Attributes:
        event_id: consecutive from 0 for one machine, over both kinds of KV event.
        dp_rank: the rank that speaks.
        parent_hash: the hash of the block before the first one; None at position 0.
        block_hashes: the sequence hashes, in position order.
        tokens_hashes: the local hashes; 0 where none was retained.
        token_ids: the tokens of each block, or None where they are not emitted.
    """

    event_id: int
    dp_rank: int
    parent_hash: BlockHash | None
    block_hashes: tuple[BlockHash, ...]
    tokens_hashes: tuple[int, ...]
    token_ids: tuple[tuple[int, ...], ...] | None


class PublishRemoved(NamedTuple):
    """Tell routers that hashes ceased to be visible, in the order of eviction."""

    event_id: int
    dp_rank: int
    block_hashes: tuple[BlockHash, ...]


@dataclass(frozen=True, slots=True)
class RecordTrace:
    """Log the occupancy at the moment a KV event was due, whether or not anybody listens to KV events.

    Units: `active`, `inactive` and `capacity` are blocks.
    """

    kind: Literal["allocation", "eviction"]
    dp_rank: int
    block_size: int
    active: int
    inactive: int
    capacity: int


KvEvent: TypeAlias = PublishStored | PublishRemoved
Command: TypeAlias = PublishStored | PublishRemoved | RecordTrace
