"""The plain tables behind a block-machine state, and the edit that a transition makes to them.

Nothing here decides anything. The tables are mutated in place by the newest state's transition, and every change
goes into the edit's journal, so that an older state can be had back and a raise leaves no trace.

What is derived is not stored: a block is *reserved* if it is neither free nor a copy (I02); an entry's copy waits to be
cached iff it is private under a known hash; a lease's resident entries are a prefix of its table; a dependency tag
stays with its block number, whatever becomes of the block.
"""

import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Literal, NamedTuple, Self, TypeAlias

from tenure.core import journaled
from tenure.core.blocks.hashing import IdentityKeys
from tenure.core.blocks.values import (
    BlockHash,
    BlockId,
    Command,
    DependencyId,
    RequestId,
    ReservationId,
    SnapshotId,
)
from tenure.core.config import BlockConfig
from tenure.core.requests import sorted_requests

PRIVATE: Final = -1
"""In place of a reference count: the copy is private to one lease entry."""
EMPTY: Final = -2
"""In place of a reference count: no content; the block is free or reserved."""
INACTIVE: Final = 2**48
"""In place of a reference count, any number from here on: the copy is in the LRU, and this is its place there."""

Scalars: TypeAlias = tuple[int, int, int, int, int, int, int]


class Attachment(NamedTuple):
    """One use of a dependency id: its number tells it from later uses of the same id."""

    number: int
    blocks: tuple[BlockId, ...]


class PendingCapacity(NamedTuple):
    """Fresh positions `[start, stop)` of a lease whose writes wait for `(dependency, attachment number)` pairs."""

    start: int
    stop: int
    attachments: tuple[tuple[DependencyId, int], ...]

    @property
    def dependencies(self) -> tuple[DependencyId, ...]:
        """The dependency ids, in the order in which they were answered."""
        return tuple(dependency for dependency, _ in self.attachments)


@dataclass(frozen=True, slots=True)
class Reservation:
    """Capacity set aside; `lease_number` is the lease a destination was made for, 0 for a decode reservation."""

    kind: Literal["decode", "destination"]
    request: RequestId | None
    lease_number: int
    prefix: tuple[tuple[BlockHash, BlockId], ...]
    fresh: tuple[BlockId, ...]


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Store sources as they were when chosen."""

    request: RequestId
    positions: tuple[int, ...]
    blocks: tuple[BlockId, ...]


class Lease:
    """One request's lease and the state of its sequence."""

    __slots__ = (
        "allocated",
        "caching",
        "copies",
        "emit_token_ids",
        "hashes",
        "keys",
        "local_hashes",
        "max_output",
        "number",
        "pending",
        "planned",
        "prompt_tokens",
        "request",
        "retain_local_hashes",
        "start",
        "uuid",
        "window",
    )

    request: RequestId
    uuid: bytes
    number: int
    # Per block position; the three lists never shrink but by `copies` at preemption.
    hashes: list[BlockHash | None]
    local_hashes: list[int | None]
    copies: list[BlockId]
    allocated: int
    pending: PendingCapacity | None
    prompt_tokens: int
    max_output: int
    planned: tuple[int, ...]
    caching: bool
    retain_local_hashes: bool
    emit_token_ids: bool
    keys: IdentityKeys | None
    # The tokens still kept: positions [start, start + len(window)) of the sequence.
    start: int
    window: list[int]

    @property
    def length(self) -> int:
        """Tokens known, prompt and output."""
        return self.start + len(self.window)

    def clone(self) -> "Lease":
        """A copy that shares nothing mutable."""
        other = object.__new__(Lease)
        for name in Lease.__slots__:
            setattr(other, name, getattr(self, name))
        other.hashes = self.hashes.copy()
        other.local_hashes = self.local_hashes.copy()
        other.copies = self.copies.copy()
        other.window = self.window.copy()
        return other

    def key(self) -> tuple[Any, ...]:
        """The content, for equality and hashing."""
        return (
            self.number,
            tuple(self.hashes),
            tuple(self.local_hashes),
            tuple(self.copies),
            self.allocated,
            self.pending,
            self.prompt_tokens,
            self.max_output,
            self.planned,
            self.caching,
            self.retain_local_hashes,
            self.emit_token_ids,
            self.keys,
            self.start,
            tuple(self.window),
        )


class Tables:
    """Pool, leases, reservations, snapshots and fences of one machine."""

    __slots__ = (
        "attached_ever",
        "authorized",
        "block_size",
        "caching",
        "capacity",
        "config",
        "copies",
        "dependencies",
        "duplicates",
        "free",
        "hash_of",
        "leases",
        "leases_ever",
        "lru",
        "lru_head",
        "lru_tail",
        "next_event_id",
        "pack_block",
        "pins",
        "primary",
        "reservations",
        "reservations_ever",
        "snapshots",
        "snapshots_ever",
        "snapshots_of",
        "tags",
    )

    def __init__(self, config: BlockConfig) -> None:
        self.config = config
        self.capacity = config.capacity
        self.block_size = config.block_size
        self.caching = config.prefix_caching
        self.pack_block: Callable[..., bytes] = struct.Struct(f"<{config.block_size}I").pack
        # Per block that was ever used: references of a cached copy in use (0 if it is only pinned), its place in the
        # LRU if it is inactive, PRIVATE or EMPTY. The other blocks, [len(copies), capacity), are free.
        self.copies: list[int] = []
        # Per block that was ever used: the hash of its cached copy; of no meaning where there is none. I06: a block
        # has one cell, so one copy has one hash.
        self.hash_of: list[BlockHash] = []
        # Cached copies with at least one pin. I09: one pin an occurrence in a live reservation's prefix.
        self.pins: dict[BlockId, int] = {}
        self.primary: dict[BlockHash, BlockId] = {}
        # Hashes with at least two copies: the younger ones in the order they were cached.
        self.duplicates: dict[BlockHash, tuple[BlockId, ...]] = {}
        # Inactive copies by place: places only grow, so the smallest is the next to be evicted. I03, I05: the place
        # stands here and in `copies`, and nowhere else, so no half of a link can be left behind.
        self.lru: dict[int, BlockId] = {}
        # Invariant: INACTIVE <= lru_head <= every key of lru < lru_tail.
        self.lru_head = INACTIVE
        self.lru_tail = INACTIVE
        # Free blocks that were used before; the last one is taken first, and before any block never used.
        self.free: list[BlockId] = []
        self.reservations: dict[ReservationId, Reservation] = {}
        self.leases: dict[RequestId, Lease] = {}
        self.snapshots: dict[SnapshotId, Snapshot] = {}
        # Requests with at least one live snapshot, and which.
        self.snapshots_of: dict[RequestId, tuple[SnapshotId, ...]] = {}
        # Per block the pending transfer that reads it.
        self.tags: dict[BlockId, DependencyId] = {}
        # Private copies whose tag may be overwritten: keys only.
        self.authorized: dict[BlockId, None] = {}
        # Pending transfers.
        self.dependencies: dict[DependencyId, Attachment] = {}
        self.attached_ever = 0
        self.leases_ever = 0
        self.reservations_ever = 0
        self.snapshots_ever = 0
        self.next_event_id = 0

    @property
    def scalars(self) -> Scalars:
        """All numbers that change, so that a journal notes them at once."""
        return (
            self.lru_head,
            self.lru_tail,
            self.attached_ever,
            self.leases_ever,
            self.reservations_ever,
            self.snapshots_ever,
            self.next_event_id,
        )

    @scalars.setter
    def scalars(self, values: Scalars) -> None:
        (
            self.lru_head,
            self.lru_tail,
            self.attached_ever,
            self.leases_ever,
            self.reservations_ever,
            self.snapshots_ever,
            self.next_event_id,
        ) = values

    @property
    def num_free(self) -> int:
        """Blocks of anonymous capacity. I01: every other block holds a copy or is set aside."""
        return len(self.free) + self.capacity - len(self.copies)

    @property
    def num_active(self) -> int:
        """Copies in use, and blocks set aside. I11, I12: what is neither free nor inactive, so never out of range."""
        return self.capacity - self.num_free - len(self.lru)

    def shares(self, lease: Lease) -> bool:
        """Whether a lease's blocks are found by others and its prefix is looked up: caching is on on both sides."""
        return self.caching and lease.caching

    def clone(self) -> Self:
        """A copy that shares nothing mutable."""
        other = object.__new__(type(self))
        other.config, other.pack_block = self.config, self.pack_block
        other.capacity, other.block_size, other.caching = self.capacity, self.block_size, self.caching
        other.copies, other.hash_of, other.pins = self.copies.copy(), self.hash_of.copy(), self.pins.copy()
        other.primary, other.duplicates = self.primary.copy(), self.duplicates.copy()
        other.lru = self.lru.copy()
        other.free = self.free.copy()
        other.reservations = self.reservations.copy()
        other.snapshots, other.snapshots_of = self.snapshots.copy(), self.snapshots_of.copy()
        other.leases = {request: lease.clone() for request, lease in self.leases.items()}
        other.tags, other.authorized = self.tags.copy(), self.authorized.copy()
        other.dependencies = self.dependencies.copy()
        other.scalars = self.scalars
        return other

    def lru_order(self) -> tuple[BlockId, ...]:
        """Inactive copies, the next to be evicted first."""
        return tuple(self.lru[place] for place in sorted(self.lru))

    def key(self) -> tuple[Any, ...]:
        """The content, for equality and hashing; places in the LRU count by their order alone."""
        return (
            self.config,
            tuple((block, min(count, INACTIVE)) for block, count in enumerate(self.copies) if count != EMPTY),
            tuple(block_hash for block_hash, count in zip(self.hash_of, self.copies, strict=True) if count >= 0),
            tuple(sorted(self.pins.items())),
            tuple(sorted(self.primary.items())),
            tuple(sorted(self.duplicates.items())),
            self.lru_order(),
            self.canonical_free(),
            tuple(sorted(self.reservations.items(), key=_first)),
            tuple((request, self.leases[request].key()) for request in sorted_requests(self.leases)),
            tuple(sorted(self.snapshots.items(), key=_first)),
            tuple(sorted(self.tags.items())),
            tuple(sorted(self.authorized)),
            tuple(sorted(self.dependencies.items())),
            self.scalars[2:],
        )

    def canonical_free(self) -> tuple[int, tuple[BlockId, ...]]:
        """The free stack with its lowest blocks counted as never used where that says the same."""
        used, stack = len(self.copies), self.free
        skip = 0
        while skip < len(stack) and stack[skip] == used - 1:
            used -= 1
            skip += 1
        return used, tuple(stack[skip:])


def _first(item: tuple[int, object]) -> int:
    return item[0]


class Edit(journaled.Edit[Tables]):
    """What one transition of the block machine works on."""

    __slots__ = ()

    commands: list[Command]
