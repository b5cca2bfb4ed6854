"""A whole block-machine state as plain immutable data: what the spec judges and what a person reads."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import eq
from typing import Literal, TypeAlias, cast, overload

from tenure.core.blocks.values import BlockHash, BlockId, DependencyId, RequestId, ReservationId, SnapshotId
from tenure.core.config import BlockConfig


@dataclass(frozen=True, slots=True)
class PrivateCopy:
    """A block with content that one lease alone holds and may write."""


@dataclass(frozen=True, slots=True)
class CachedCopy:
    """A block whose content is visible under a hash.

    Attributes:
        block_hash: what it can be found by.
        references: lease entries that hold it.
        pins: occurrences in live reservations' prefixes.
    """

    block_hash: BlockHash
    references: int
    pins: int


Copy: TypeAlias = PrivateCopy | CachedCopy


@dataclass(frozen=True, slots=True)
class IndexEntry:
    """The copies of one hash: the oldest surviving one, and the younger ones in the order they were cached."""

    primary: BlockId
    duplicates: tuple[BlockId, ...]


@dataclass(frozen=True, slots=True)
class ReservationView:
    """Capacity set aside.

    Attributes:
        kind: what the id may be used for.
        request: the request of a destination; None for a decode reservation.
        prefix: `(hash, pinned block)` in position order.
        fresh: blocks of fresh capacity in reservation order; the *last* one is used first.
        dependencies: pending transfers that read the fresh capacity, in the order of use, each once.
    """

    kind: Literal["decode", "destination"]
    request: RequestId | None
    prefix: tuple[tuple[BlockHash, BlockId], ...]
    fresh: tuple[BlockId, ...]
    dependencies: tuple[DependencyId, ...]


@dataclass(frozen=True, slots=True)
class PendingWrites:
    """Fresh blocks of a lease, positions `[start, stop)`, that wait for an authorization naming `dependencies`."""

    start: int
    stop: int
    dependencies: tuple[DependencyId, ...]


@dataclass(frozen=True, slots=True)
class LeaseView:
    """One request's lease and sequence.

    Attributes:
        hashes: per block position the sequence hash, None while it is not resolved.
        local_hashes: per position the hash of the block's own tokens, None if not retained.
        copies: blocks held, by position: a prefix of the table.
        pending_cache: per held block, whether it still waits to be computed before it becomes visible.
        allocated_tokens: the allocation watermark.
        pending_writes: capacity whose writes are not authorized yet.
        prompt_tokens: tokens of the prompt.
        max_output: output tokens the request may generate.
        generated: output tokens so far.
        length: tokens known, prompt and output.
        window_start: position of the first token still kept.
        window: the tokens kept, from `window_start` to `length`.
        planned: output tokens fixed beforehand.
        caching: whether this request takes part in prefix caching.
        emit_token_ids: whether KV events of this request carry its tokens.
    """

    hashes: tuple[BlockHash | None, ...]
    local_hashes: tuple[int | None, ...]
    copies: tuple[BlockId, ...]
    pending_cache: tuple[bool, ...]
    allocated_tokens: int
    pending_writes: PendingWrites | None
    prompt_tokens: int
    max_output: int
    generated: int
    length: int
    window_start: int
    window: tuple[int, ...]
    planned: tuple[int, ...]
    caching: bool
    emit_token_ids: bool


@dataclass(frozen=True, slots=True)
class SnapshotView:
    """A live store-source snapshot: positions of a lease and the blocks that were there."""

    request: RequestId
    positions: tuple[int, ...]
    blocks: tuple[BlockId, ...]


class FreeBlocks(Sequence[BlockId]):
    """The free stack; the *last* block is taken first. Blocks that were never used are not listed but computed.

    Equal to any tuple or list of the same blocks in the same order.
    """

    __slots__ = ("_capacity", "_returned", "_used")

    def __init__(self, capacity: int, used: int, returned: tuple[BlockId, ...]) -> None:
        """Blocks `[used, capacity)`, highest first, and above them those that were used before."""
        self._capacity, self._used, self._returned = capacity, used, returned

    def __len__(self) -> int:
        return self._capacity - self._used + len(self._returned)

    @overload
    def __getitem__(self, index: int) -> BlockId: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[BlockId, ...]: ...
    def __getitem__(self, index: int | slice) -> BlockId | tuple[BlockId, ...]:
        if isinstance(index, slice):
            return tuple(self[each] for each in range(*index.indices(len(self))))
        place = range(len(self))[index]
        never_used = self._capacity - self._used
        return self._capacity - 1 - place if place < never_used else self._returned[place - never_used]

    def __eq__(self, other: object) -> bool:
        if isinstance(other, FreeBlocks):
            mine = (self._capacity, self._used, self._returned)
            return mine == (other._capacity, other._used, other._returned)
        if not isinstance(other, tuple | list):
            return NotImplemented
        blocks = cast("Sequence[object]", other)
        return len(self) == len(blocks) and all(map(eq, self, blocks))

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"FreeBlocks({self._capacity - 1}..{self._used}, {list(self._returned)})"


@dataclass(frozen=True, slots=True)
class BlockView:
    """Everything a block-machine state holds. Mappings are read-only; tuples are in the order that counts.

    Attributes:
        copies: every block with content.
        index: every visible hash.
        lru: inactive copies, the next to be evicted first.
        lru_positions: `(position, block)` as the machine keeps them, ascending; positions only order.
        free: anonymous capacity; the *last* one is taken first.
        reservations: capacity set aside.
        leases: open leases.
        snapshots: live store-source snapshots.
        tags: per block the pending transfer that reads it, whatever became of the block since.
        authorized: private blocks whose next write is ordered behind their tag.
        dependencies: pending transfers and the blocks each was attached to.
        attached_ever: dependencies attached so far.
        next_event_id: id of the next KV event.
    """

    config: BlockConfig
    copies: Mapping[BlockId, Copy]
    index: Mapping[BlockHash, IndexEntry]
    lru: tuple[BlockId, ...]
    lru_positions: tuple[tuple[int, BlockId], ...]
    free: Sequence[BlockId]
    reservations: Mapping[ReservationId, ReservationView]
    leases: Mapping[RequestId, LeaseView]
    snapshots: Mapping[SnapshotId, SnapshotView]
    tags: Mapping[BlockId, DependencyId]
    authorized: frozenset[BlockId]
    dependencies: Mapping[DependencyId, tuple[BlockId, ...]]
    attached_ever: int
    next_event_id: int

    @property
    def num_inactive(self) -> int:
        """Copies that nobody references or pins."""
        return len(self.lru)

    @property
    def num_reserved(self) -> int:
        """Fresh blocks in live reservations."""
        return sum(len(reservation.fresh) for reservation in self.reservations.values())

    @property
    def num_active(self) -> int:
        """Copies in use, and fresh blocks in live reservations."""
        return len(self.copies) - len(self.lru) + self.num_reserved


@dataclass(frozen=True, slots=True)
class PrefillCost:
    """What computing a request's prompt would take now.

    Attributes:
        new_blocks: blocks that no resident prefix covers.
        new_tokens: tokens to compute; 0 on a full hit (recomputing the last token is the scheduler's policy).
        cached_tokens: tokens covered by the resident prefix.
        active_cached_tokens: those of them in blocks whose primary copy is in use.
    """

    new_blocks: int
    new_tokens: int
    cached_tokens: int
    active_cached_tokens: int


@dataclass(frozen=True, slots=True)
class PrefixHit:
    """A visible hash; `is_active` looks at its primary copy alone."""

    is_active: bool
