"""The oracle's pool: which blocks have content, who uses it, and which block is given out or evicted next.

Lists and dicts, searched from the front; nothing is kept that can be counted. Raising belongs to the caller, but for
the one guard that the pool itself owes its blocks: no write under a reader.
"""

from dataclasses import dataclass, field

from tenure.core.blocks.values import BlockHash, BlockId, DependencyId, Exhausted, RequestId
from tenure.core.errors import UnauthorizedWriteError


@dataclass(slots=True)
class OracleCopy:
    """One block with content; without a hash it is private."""

    block_hash: BlockHash | None = None
    references: int = 0
    pins: int = 0


@dataclass(slots=True)
class Capacity:
    """What a reserve set aside: pinned hits in position order, and fresh blocks of which the last is used first."""

    prefix: list[tuple[BlockHash, BlockId]] = field(default_factory=list[tuple[BlockHash, BlockId]])
    fresh: list[BlockId] = field(default_factory=list[BlockId])

    def clone(self) -> "Capacity":
        """An independent twin."""
        return Capacity(list(self.prefix), list(self.fresh))


class OraclePool:
    """A pool of numbered blocks."""

    def __init__(self, capacity: int) -> None:
        """All blocks are free, block 0 on top."""
        self.capacity = capacity
        self.copies: dict[BlockId, OracleCopy] = {}
        # Per hash its copies in the order they were cached; the first is the primary.
        self.index: dict[BlockHash, list[BlockId]] = {}
        self.lru: list[BlockId] = []
        self.free: list[BlockId] = list(range(capacity - 1, -1, -1))
        # A tag belongs to the block's number, so it needs no moving when the block changes hands.
        self.tags: dict[BlockId, DependencyId] = {}
        self.authorized: set[BlockId] = set()
        # Per pending dependency the number of its attachment and the blocks it was attached to.
        self.attachments: dict[DependencyId, tuple[int, tuple[BlockId, ...]]] = {}
        self.attached_ever = 0

    def clone(self) -> "OraclePool":
        """An independent twin."""
        twin = OraclePool.__new__(OraclePool)
        twin.capacity = self.capacity
        twin.copies = {
            block: OracleCopy(copy.block_hash, copy.references, copy.pins) for block, copy in self.copies.items()
        }
        twin.index = {name: list(blocks) for name, blocks in self.index.items()}
        twin.lru = list(self.lru)
        twin.free = list(self.free)
        twin.tags = dict(self.tags)
        twin.authorized = set(self.authorized)
        twin.attachments = dict(self.attachments)
        twin.attached_ever = self.attached_ever
        return twin

    # --- Looking up ---------------------------------------------------------------------------------------------

    def primary(self, name: BlockHash) -> BlockId | None:
        """The oldest copy under a hash."""
        return self.index[name][0] if name in self.index else None

    def is_in_use(self, block: BlockId) -> bool:
        """Whether a cached copy is referenced or pinned."""
        return self.copies[block].references > 0 or self.copies[block].pins > 0

    def num_active(self, reserved: int) -> int:
        """Copies that are not inactive, and `reserved` fresh blocks."""
        return len(self.copies) - len(self.lru) + reserved

    def pending_of(self, blocks: list[BlockId]) -> tuple[DependencyId, ...]:
        """The pending transfers that read these blocks, each once, in the blocks' order."""
        found: list[DependencyId] = []
        for block in blocks:
            if block in self.tags and self.tags[block] not in found:
                found.append(self.tags[block])
        return tuple(found)

    def pending_fresh(self, capacity: Capacity, count: int) -> tuple[DependencyId, ...]:
        """The pending transfers of the next `count` fresh blocks, in the order of use."""
        return self.pending_of(capacity.fresh[::-1][:count])

    # --- Reserving ----------------------------------------------------------------------------------------------

    def reserve(self, names: list[BlockHash], fresh: int) -> tuple[Capacity, list[BlockHash]] | Exhausted:
        """Pin the primaries of `names`, all resident, and set `fresh` blocks aside.

        Answers with the hashes that went with their last copy, in eviction order.
        """
        hits = [(name, self.index[name][0]) for name in names]
        # A hash listed twice is one block less to evict, not two.
        spared = {block for _, block in hits if block in self.lru}
        available = len(self.free) + len(self.lru) - len(spared)
        if fresh > available:
            return Exhausted(fresh, available)
        for _, block in hits:
            if block in self.lru:
                self.lru.remove(block)
            self.copies[block].pins += 1
        evictions = max(0, fresh - len(self.free))
        kept = len(self.free) - (fresh - evictions)
        taken = self.free[kept:]
        self.free = self.free[:kept]
        removed: list[BlockHash] = []
        for _ in range(evictions):
            block, name, is_last = self._evict()
            taken.append(block)
            if is_last:
                removed.append(name)
        return Capacity(hits, taken), removed

    def _evict(self) -> tuple[BlockId, BlockHash, bool]:
        block = self.lru.pop(0)
        name = self.copies.pop(block).block_hash
        assert name is not None, f"block {block} was inactive without a hash"
        self.index[name].remove(block)
        if self.index[name]:
            return block, name, False
        del self.index[name]
        return block, name, True

    def cancel(self, capacity: Capacity) -> None:
        """Take pins back, leaf first, then the fresh blocks in reservation order."""
        for _, block in reversed(capacity.prefix):
            self.copies[block].pins -= 1
            self._retire(block)
        self.free.extend(capacity.fresh)

    def _retire(self, block: BlockId) -> None:
        if not self.is_in_use(block):
            self.lru.append(block)

    # --- Holding ------------------------------------------------------------------------------------------------

    def activate_prefix(self, capacity: Capacity) -> list[tuple[BlockHash, BlockId]]:
        """Turn every pin into a reference."""
        hits = capacity.prefix
        for _, block in hits:
            self.copies[block].pins -= 1
            self.copies[block].references += 1
        capacity.prefix = []
        return hits

    def allocate_private(self, capacity: Capacity) -> BlockId:
        """Give content to the last fresh block."""
        block = capacity.fresh.pop()
        self.copies[block] = OracleCopy()
        return block

    def cache_private(self, block: BlockId, name: BlockHash, request: RequestId) -> bool:
        """Make a private copy visible under a hash; whether the hash was invisible until now.

        Raises:
            UnauthorizedWriteError: a transfer still reads the block and the write is not ordered behind it.
        """
        copy = self.copies[block]
        assert copy.block_hash is None, f"block {block} is cached already"
        # I22: content may only stand where no earlier reader can see it.
        if block in self.tags and block not in self.authorized:
            raise UnauthorizedWriteError(request, block, (self.tags[block],))
        self.authorized.discard(block)
        copy.block_hash = name
        copy.references = 1
        self.index.setdefault(name, []).append(block)
        return len(self.index[name]) == 1

    def release(self, block: BlockId) -> None:
        """One lease entry lets go of a block."""
        copy = self.copies[block]
        if copy.block_hash is None:
            del self.copies[block]
            # An authorization was for a write of the tenancy that ends here.
            self.authorized.discard(block)
            self.free.append(block)
            return
        assert copy.references > 0, f"block {block} was released twice"
        copy.references -= 1
        self._retire(block)

    # --- Fences -------------------------------------------------------------------------------------------------

    def can_attach(self, blocks: list[BlockId]) -> bool:
        """Whether a new transfer may read these blocks: distinct, with content, read by no other."""
        return len(set(blocks)) == len(blocks) and all(
            block in self.copies and block not in self.tags for block in blocks
        )

    def attach(self, blocks: list[BlockId], dependency: DependencyId) -> None:
        """Fence later writes to the blocks."""
        self.attached_ever += 1
        self.attachments[dependency] = (self.attached_ever, tuple(blocks))
        for block in blocks:
            self.tags[block] = dependency
            self.authorized.discard(block)

    def satisfy(self, dependency: DependencyId) -> bool:
        """End a transfer: its tags, and the authorizations behind them, are void for good."""
        if dependency not in self.attachments:
            return False
        del self.attachments[dependency]
        for block in [block for block, tag in self.tags.items() if tag == dependency]:
            del self.tags[block]
            self.authorized.discard(block)
        return True

    def attachment(self, dependency: DependencyId) -> int | None:
        """Which attachment of an id is pending."""
        return self.attachments[dependency][0] if dependency in self.attachments else None

    def authorize(self, blocks: list[BlockId]) -> None:
        """Order the next write of each tagged block behind its transfer."""
        for block in blocks:
            if block in self.tags:
                assert block not in self.authorized, f"block {block} was authorized twice"
                self.authorized.add(block)
