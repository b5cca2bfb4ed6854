"""The pool: which block is free, set aside, private or cached, and which cached one is evicted next.

The functions here work on the tables of one edit. They know blocks, hashes and counts, and nothing of requests.

    free ----------- reserve ----------> reserved <---------- reserve evicts ---------- inactive
      ^  ^------- cancel, release -------'   |                                           |   ^
      |                                   allocate                          reference, pin   release, unpin
      |                                      v                                           v   |
      '----- release of a private copy --- private ------------- cache ------------> cached, in use

Source: the seed's "minimal physical block pool", as stated in section 2 of its requirement.
"""

from collections.abc import Iterable, Sequence

from tenure.core.blocks.tables import PRIVATE, Attachment, Edit, Tables
from tenure.core.blocks.values import BlockHash, BlockId, DependencyId, Exhausted
from tenure.core.errors import (
    AuthorizedTwiceError,
    CopyNotPrivateError,
    DependencyPendingError,
    OmittedDependencyError,
    PinUnderflowError,
    PrefixExceedsLayoutError,
    PrefixNotResidentError,
    ReferenceUnderflowError,
    SourcesChangedError,
    UnauthorizedWriteError,
    UnknownCopyError,
)
from tenure.core.persistent import ITEM, ITEMS, MISSING, TAIL

# --- Looking ----------------------------------------------------------------------------------------------------


def exact_prefix(tables: Tables, hashes: Sequence[BlockHash], total: int) -> list[BlockId]:
    """The primary copies of all `hashes`, for a layout of `total` blocks.

    Raises:
        PrefixExceedsLayoutError: more hashes than blocks.
        PrefixNotResidentError: a hash is not visible.
    """
    if len(hashes) > total:
        raise PrefixExceedsLayoutError(len(hashes), total)
    primary = tables.primary
    try:
        return [primary[block_hash] for block_hash in hashes]
    except KeyError as missing:
        raise PrefixNotResidentError(missing.args[0]) from None


def resident_prefix(tables: Tables, hashes: Iterable[BlockHash], total: int) -> list[BlockId]:
    """The primary copies of the longest leading run of visible hashes, for a layout of `total` blocks.

    Raises:
        PrefixExceedsLayoutError: the run has a candidate beyond `total`, or there is one and `total` is 0.
    """
    primary, blocks = tables.primary, list[BlockId]()
    for count, block_hash in enumerate(hashes):
        # The layout is checked before the look-up, so a candidate too many is refused even if it would miss.
        if count >= total:
            raise PrefixExceedsLayoutError(count + 1, total)
        block = primary.get(block_hash)
        if block is None:
            break
        blocks.append(block)
    return blocks


def shortfall(tables: Tables, hits: Sequence[BlockId], fresh: int) -> Exhausted | None:
    """Why `fresh` blocks cannot be had beside the prefix `hits`, or None if they can.

    Inactive hits do not count as evictable: they are about to be pinned.
    """
    free = tables.num_free
    need = fresh - free
    inactive = len(tables.lru)
    if need <= inactive - len(hits) or need <= 0:
        return None
    evictable = inactive - len({block for block in hits if block in tables.lru_position})
    return Exhausted(fresh, free + evictable) if need > evictable else None


def pending_dependencies(tables: Tables, blocks: Iterable[BlockId]) -> tuple[DependencyId, ...]:
    """The pending dependencies of the blocks, in order, each once; blocks without one are passed over."""
    tags = tables.tags
    if not tags:
        return ()
    return tuple(dict.fromkeys(tags[block] for block in blocks if block in tags))


def can_attach(tables: Tables, blocks: Sequence[BlockId]) -> bool:
    """Whether the blocks are distinct copies that no pending transfer reads."""
    if len(set(blocks)) != len(blocks):
        return False
    return all(block in tables.copies and block not in tables.tags for block in blocks)


# --- Setting aside ----------------------------------------------------------------------------------------------


def take_fresh(edit: Edit, fresh: int) -> tuple[list[BlockId], list[BlockHash]]:
    """Take `fresh` blocks out of free and inactive capacity, in reservation order, and say which hashes are gone.

    The caller asked `shortfall` first, and took its hits out of the LRU.
    """
    tables, stack = edit.tables, edit.tables.free
    from_stack = min(fresh, len(stack))
    from_untouched = min(fresh - from_stack, tables.capacity - tables.untouched)
    taken = list(range(tables.untouched + from_untouched - 1, tables.untouched - 1, -1))
    tables.untouched += from_untouched
    if from_stack:
        start = len(stack) - from_stack
        tail = stack[start:]
        edit.journal.append((TAIL, stack, start, tail))
        del stack[start:]
        taken += tail
    removed: list[BlockHash] = []
    if len(taken) < fresh:
        removed = _evict(edit, fresh - len(taken), taken)
    return taken, removed


def _evict(edit: Edit, count: int, taken: list[BlockId]) -> list[BlockHash]:
    """Append the `count` longest inactive copies to `taken`; the hashes whose last copy went, in that order."""
    tables, log = edit.tables, edit.journal.append
    lru, copies, hash_of, primary = tables.lru, tables.copies, tables.hash_of, tables.primary
    assert count <= len(lru), "shortfall was not asked"
    head = tables.lru_head
    positions: list[int] = []
    blocks: list[BlockId] = []
    hashes: list[BlockHash] = []
    removed: list[BlockHash] = []
    last: list[BlockId] = []
    for _ in range(count):
        while (block := lru.pop(head, None)) is None:
            head += 1
        positions.append(head)
        blocks.append(block)
        del tables.lru_position[block], copies[block]
        block_hash = hash_of.pop(block)
        hashes.append(block_hash)
        if tables.duplicates and block_hash in tables.duplicates:
            _drop_duplicate(edit, block_hash, block)
        else:
            # I29: only the last copy's hash is reported.
            del primary[block_hash]
            removed.append(block_hash)
            last.append(block)
    tables.lru_head = head
    log((ITEMS, lru, positions, blocks))
    log((ITEMS, tables.lru_position, blocks, positions))
    log((ITEMS, copies, blocks, [0] * count))
    log((ITEMS, hash_of, blocks, hashes))
    log((ITEMS, primary, removed, last))
    taken += blocks
    return removed


def _drop_duplicate(edit: Edit, block_hash: BlockHash, block: BlockId) -> None:
    """Take one of several copies out of the index; I08: the oldest survivor becomes the primary."""
    tables, log = edit.tables, edit.journal.append
    younger = tables.duplicates[block_hash]
    log((ITEM, tables.duplicates, block_hash, younger))
    if tables.primary[block_hash] == block:
        log((ITEM, tables.primary, block_hash, block))
        tables.primary[block_hash] = younger[0]
        rest = younger[1:]
    else:
        rest = tuple(each for each in younger if each != block)
    if rest:
        tables.duplicates[block_hash] = rest
    else:
        del tables.duplicates[block_hash]


def give_back(edit: Edit, blocks: Sequence[BlockId]) -> None:
    """Push blocks without content on the free stack, in order."""
    if blocks:
        stack = edit.tables.free
        edit.journal.append((TAIL, stack, len(stack), []))
        stack.extend(blocks)


def _leave_lru(edit: Edit, blocks: list[BlockId]) -> None:
    tables = edit.tables
    positions = [tables.lru_position.pop(block) for block in blocks]
    for position in positions:
        del tables.lru[position]
    edit.journal.append((ITEMS, tables.lru_position, blocks, positions))
    edit.journal.append((ITEMS, tables.lru, positions, blocks))


def _enter_lru(edit: Edit, blocks: list[BlockId]) -> None:
    """Append copies that became inactive, in order. I30: the order of becoming inactive is that of eviction."""
    tables, count = edit.tables, len(blocks)
    positions = range(tables.lru_tail, tables.lru_tail + count)
    tables.lru.update(zip(positions, blocks, strict=True))
    tables.lru_position.update(zip(blocks, positions, strict=True))
    tables.lru_tail += count
    edit.journal.append((ITEMS, tables.lru, positions, [MISSING] * count))
    edit.journal.append((ITEMS, tables.lru_position, blocks, [MISSING] * count))


def pin(edit: Edit, blocks: Sequence[BlockId]) -> None:
    """Pin cached copies, each once per occurrence. I04: a pinned copy is not in the LRU."""
    pins, copies, positions = edit.tables.pins, edit.tables.copies, edit.tables.lru_position
    edit.journal.append((ITEMS, pins, blocks, [pins.get(block, MISSING) for block in blocks]))
    leaving: list[BlockId] = []
    for block in blocks:
        pins[block] = count = pins.get(block, 0) + 1
        if count == 1 and copies[block] == 0:
            leaving.append(block)
    if leaving:
        _leave_lru(edit, leaving)
    assert all(block not in positions for block in blocks)


def unpin(edit: Edit, blocks: Sequence[BlockId]) -> None:
    """Take one pin back per occurrence, in order; copies in nobody's use become inactive in that order.

    Raises:
        PinUnderflowError: a block has no pin.
    """
    pins, copies = edit.tables.pins, edit.tables.copies
    edit.journal.append((ITEMS, pins, blocks, [pins.get(block, MISSING) for block in blocks]))
    entering: list[BlockId] = []
    for block in blocks:
        count = pins.get(block, 0)
        if count == 0:
            raise PinUnderflowError(block)
        if count > 1:
            pins[block] = count - 1
            continue
        del pins[block]
        if copies[block] == 0:
            entering.append(block)
    if entering:
        _enter_lru(edit, entering)


# --- Holding ----------------------------------------------------------------------------------------------------


def reference(edit: Edit, blocks: Sequence[BlockId]) -> None:
    """Add one reference to cached copies per occurrence. I04: a referenced copy is not in the LRU."""
    tables = edit.tables
    copies, inactive = tables.copies, tables.lru_position
    edit.journal.append((ITEMS, copies, blocks, [copies[block] for block in blocks]))
    leaving: list[BlockId] = []
    for block in blocks:
        count = copies[block]
        copies[block] = count + 1
        if count == 0 and block in inactive:
            leaving.append(block)
    if leaving:
        _leave_lru(edit, leaving)


def allocate_private(edit: Edit, fresh: Sequence[BlockId]) -> list[BlockId]:
    """Make private copies of capacity in reservation order; they come back in order of use, the last one first."""
    blocks = list(reversed(fresh))
    copies = edit.tables.copies
    edit.journal.append((ITEMS, copies, blocks, [MISSING] * len(blocks)))
    copies.update(dict.fromkeys(blocks, PRIVATE))
    return blocks


def check_writable(tables: Tables, block: BlockId) -> None:
    """Refuse a block that is no private copy, or whose write is not ordered behind the transfer that reads it.

    Raises:
        UnknownCopyError: the block has no content.
        CopyNotPrivateError: it is cached already.
        UnauthorizedWriteError: its dependency is pending and its write not authorized.
    """
    count = tables.copies.get(block)
    if count is None:
        raise UnknownCopyError(block)
    if count != PRIVATE:
        raise CopyNotPrivateError(block, tables.hash_of[block])
    # I22: nothing is written under a transfer that still reads.
    if block in tables.tags and block not in tables.authorized:
        raise UnauthorizedWriteError(None, block, (tables.tags[block],))


def cache_private(edit: Edit, blocks: Sequence[BlockId], hashes: Sequence[BlockHash]) -> list[bool]:
    """Put private copies into the prefix cache, one reference each; which of their hashes became visible.

    The caller asked `check_writable` for each of the blocks, which are distinct.
    """
    tables, log = edit.tables, edit.journal.append
    count = len(blocks)
    log((ITEMS, tables.copies, blocks, [PRIVATE] * count))
    tables.copies.update(dict.fromkeys(blocks, 1))
    log((ITEMS, tables.hash_of, blocks, [MISSING] * count))
    tables.hash_of.update(zip(blocks, hashes, strict=True))
    if tables.authorized:
        _drop_authorizations(edit, blocks)
    visible: list[bool] = []
    for block, block_hash in zip(blocks, hashes, strict=True):
        if block_hash in tables.primary:
            younger = tables.duplicates.get(block_hash, ())
            log((ITEM, tables.duplicates, block_hash, younger or MISSING))
            tables.duplicates[block_hash] = (*younger, block)
            visible.append(False)
        else:
            log((ITEM, tables.primary, block_hash, MISSING))
            tables.primary[block_hash] = block
            visible.append(True)
    return visible


def release(edit: Edit, blocks: Sequence[BlockId]) -> None:
    """Let go of one lease entry's hold per occurrence, in order.

    A private copy becomes free capacity; a cached one that nobody uses any more becomes inactive and stays visible.

    Raises:
        UnknownCopyError: a block has no content.
        ReferenceUnderflowError: a cached copy has no reference left.
    """
    tables = edit.tables
    copies, pins = tables.copies, tables.pins
    olds = [copies.get(block) for block in blocks]
    if None in olds:
        raise UnknownCopyError(blocks[olds.index(None)])
    edit.journal.append((ITEMS, copies, blocks, olds))
    inactive: list[BlockId] = []
    freed: list[BlockId] = []
    for block in blocks:
        count = copies.get(block, 0)
        if count > 1:
            copies[block] = count - 1
        elif count == 1:
            copies[block] = 0
            if block not in pins:
                inactive.append(block)
        elif count == PRIVATE:
            del copies[block]
            freed.append(block)
        else:
            raise ReferenceUnderflowError(block)
    if inactive:
        _enter_lru(edit, inactive)
    if freed:
        if tables.authorized:
            _drop_authorizations(edit, freed)
        give_back(edit, freed)


# --- Fences -----------------------------------------------------------------------------------------------------


def check_attachable(tables: Tables, blocks: Sequence[BlockId], dependency: DependencyId) -> None:
    """Refuse a transfer whose id is in use, or whose sources will not do.

    Raises:
        DependencyPendingError: the id is in use.
        SourcesChangedError: `can_attach` does not hold.
    """
    if dependency in tables.dependencies:
        raise DependencyPendingError(dependency)
    if not can_attach(tables, blocks):
        raise SourcesChangedError(tuple(blocks))


def attach(edit: Edit, blocks: tuple[BlockId, ...], dependency: DependencyId) -> None:
    """Tag copies as read by a transfer; the caller asked `check_attachable`.

    Nothing is pinned: the tag stays with the block through whatever comes.
    """
    tables, log = edit.tables, edit.journal.append
    tables.attached_ever += 1
    log((ITEM, tables.dependencies, dependency, MISSING))
    tables.dependencies[dependency] = Attachment(tables.attached_ever, blocks)
    log((ITEMS, tables.tags, blocks, [MISSING] * len(blocks)))
    tables.tags.update(dict.fromkeys(blocks, dependency))


def satisfy(edit: Edit, dependency: DependencyId) -> bool:
    """End a transfer: all its tags are void for good, and its id may be attached anew. Whether it was pending."""
    tables, log = edit.tables, edit.journal.append
    attachment = tables.dependencies.get(dependency)
    if attachment is None:
        return False
    log((ITEM, tables.dependencies, dependency, attachment))
    del tables.dependencies[dependency]
    for block in attachment.blocks:
        log((ITEM, tables.tags, block, dependency))
        del tables.tags[block]
    if tables.authorized:
        _drop_authorizations(edit, attachment.blocks)
    return True


def check_authorizable(tables: Tables, blocks: Sequence[BlockId], dependencies: Sequence[DependencyId]) -> None:
    """Refuse an authorization that names too little, or comes twice.

    Raises:
        UnknownCopyError: a block has no content.
        OmittedDependencyError: a block's pending dependency is not among `dependencies`.
        AuthorizedTwiceError: a block's write is authorized already.
    """
    for block in blocks:
        if block not in tables.copies:
            raise UnknownCopyError(block)
        dependency = tables.tags.get(block)
        if dependency is None:
            continue
        if dependency not in dependencies:
            raise OmittedDependencyError(block, dependency)
        if block in tables.authorized:
            raise AuthorizedTwiceError(block)


def authorize(edit: Edit, blocks: Sequence[BlockId]) -> None:
    """Allow the next write of those blocks that carry a pending dependency; the caller checked."""
    tagged = [block for block in blocks if block in edit.tables.tags]
    edit.journal.append((ITEMS, edit.tables.authorized, tagged, [MISSING] * len(tagged)))
    edit.tables.authorized.update(dict.fromkeys(tagged))


def _drop_authorizations(edit: Edit, blocks: Sequence[BlockId]) -> None:
    for block in blocks:
        if block in edit.tables.authorized:
            edit.journal.append((ITEM, edit.tables.authorized, block, None))
            del edit.tables.authorized[block]
