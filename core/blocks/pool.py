"""The pool: which block is free, set aside, private or cached, and which cached one is evicted next.

The functions here work on the tables of one edit. They know blocks, hashes and counts, and nothing of requests.

    free ----------- reserve ----------> reserved <---------- reserve evicts ---------- inactive
      ^  ^------- cancel, release -------'   |                                           |   ^
      |                                   allocate                          reference, pin   release, unpin
      |                                      v                                           v   |
      '----- release of a private copy --- private ------------- cache ------------> cached, in use

Source: the seed's "minimal physical block pool", as stated in section 2 of its requirement.
"""

from collections import deque
from collections.abc import Iterable, Sequence

from tenure.core.blocks.prefix_index import enter_index, leave_index
from tenure.core.blocks.publish import publish_removed
from tenure.core.blocks.tables import EMPTY, INACTIVE, PRIVATE, Edit, Tables
from tenure.core.blocks.tags import drop_authorizations, has_content
from tenure.core.blocks.values import BlockHash, BlockId, Exhausted
from tenure.core.errors import (
    CopyNotPrivateError,
    PinUnderflowError,
    ReferenceUnderflowError,
    UnauthorizedWriteError,
    UnknownCopyError,
)
from tenure.core.persistent import CELL, CELLS, ITEM, ITEMS, MISSING, TAIL

# --- Looking ----------------------------------------------------------------------------------------------------


def shortfall(tables: Tables, hits: Sequence[BlockId], fresh: int) -> Exhausted | None:
    """Why `fresh` blocks cannot be had beside the prefix `hits`, or None if they can.

    Inactive hits do not count as evictable: they are about to be pinned.
    """
    free = tables.num_free
    need = fresh - free
    inactive = len(tables.lru)
    if need <= inactive - len(hits) or need <= 0:
        return None
    evictable = inactive - len({block for block in hits if tables.copies[block] >= INACTIVE})
    return Exhausted(fresh, free + evictable) if need > evictable else None


def _exhaust(calls: Iterable[None]) -> None:
    """Run an iterator of calls to its end, in C."""
    deque(calls, maxlen=0)


# --- Setting aside ----------------------------------------------------------------------------------------------


def take_fresh(edit: Edit, fresh: int) -> tuple[list[BlockId], list[BlockHash]]:
    """Take `fresh` blocks out of free and inactive capacity, in reservation order, and say which hashes are gone.

    The caller asked `shortfall` first, and took its hits out of the LRU.
    """
    tables, stack = edit.tables, edit.tables.free
    from_stack = min(fresh, len(stack))
    never_used = min(fresh - from_stack, tables.capacity - len(tables.copies))
    taken: list[BlockId] = []
    if never_used:
        taken += reversed(range(len(tables.copies), len(tables.copies) + never_used))
        _touch(edit, never_used)
    if from_stack:
        start = len(stack) - from_stack
        tail = stack[start:]
        edit.journal.append((TAIL, stack, start, tail))
        del stack[start:]
        taken += tail
    if len(taken) == fresh:
        return taken, []
    evicted, removed = _evict(edit, fresh - len(taken))
    return taken + evicted, removed


def _touch(edit: Edit, count: int) -> None:
    """Make room for `count` blocks that were never used before."""
    tables = edit.tables
    edit.journal.append((TAIL, tables.copies, len(tables.copies), []))
    edit.journal.append((TAIL, tables.hash_of, len(tables.hash_of), []))
    tables.copies += [EMPTY] * count
    tables.hash_of += [0] * count


def _evict(edit: Edit, count: int) -> tuple[list[BlockId], list[BlockHash]]:
    """Empty the `count` copies that have been inactive longest; those of their hashes that have no copy left (I29)."""
    tables, log = edit.tables, edit.journal.append
    lru, hash_of, primary, duplicates = tables.lru, tables.hash_of, tables.primary, tables.duplicates
    assert count <= len(lru), "shortfall was not asked"
    place = tables.lru_head
    places: list[int] = []
    blocks: list[BlockId] = []
    while len(blocks) < count:
        block = lru.get(place)
        if block is not None:
            places.append(place)
            blocks.append(block)
        place += 1
    tables.lru_head = place
    log((ITEMS, lru, places, blocks))
    log((CELLS, tables.copies, blocks, places))
    _exhaust(map(lru.__delitem__, places))
    for block in blocks:
        tables.copies[block] = EMPTY
    hashes = [hash_of[block] for block in blocks]
    if duplicates and not duplicates.keys().isdisjoint(hashes):
        pairs = zip(blocks, hashes, strict=True)
        return blocks, [name for block, name in pairs if leave_index(edit, block, name)]
    log((ITEMS, primary, hashes, blocks))
    _exhaust(map(primary.__delitem__, hashes))
    return blocks, hashes


def take_private(edit: Edit) -> BlockId | None:
    """Make one block of free or inactive capacity a private copy, or answer None if there is none.

    The same as `take_fresh` and `allocate_private` of one block, which decode growth asks for most often. What it
    evicts is announced.
    """
    tables, log = edit.tables, edit.journal.append
    old = EMPTY
    if tables.free:
        block = tables.free[-1]
        log((TAIL, tables.free, len(tables.free) - 1, [block]))
        tables.free.pop()
    elif len(tables.copies) < tables.capacity:
        block = len(tables.copies)
        _touch(edit, 1)
    elif tables.lru:
        lru, old = tables.lru, tables.lru_head
        while (found := lru.get(old)) is None:
            old += 1
        block = found
        tables.lru_head = old + 1
        log((ITEM, lru, old, block))
        del lru[old]
        block_hash = tables.hash_of[block]
        if leave_index(edit, block, block_hash):
            publish_removed(edit, (block_hash,))
    else:
        return None
    log((CELL, tables.copies, block, old))
    tables.copies[block] = PRIVATE
    return block


def give_back(edit: Edit, blocks: Sequence[BlockId]) -> None:
    """Push blocks without content on the free stack, in order."""
    if blocks:
        stack = edit.tables.free
        edit.journal.append((TAIL, stack, len(stack), []))
        stack.extend(blocks)


def _leave_lru(edit: Edit, places: list[int], blocks: list[BlockId]) -> None:
    lru = edit.tables.lru
    edit.journal.append((ITEMS, lru, places, blocks))
    _exhaust(map(lru.__delitem__, places))


def _enter_lru(edit: Edit, blocks: list[BlockId]) -> None:
    """Append copies that became inactive, in order. I30: the order of becoming inactive is that of eviction."""
    tables, tail, copies = edit.tables, edit.tables.lru_tail, edit.tables.copies
    tables.lru_tail = tail + len(blocks)
    # A list, so that the table and the LRU share one int object a block.
    places = list(range(tail, tables.lru_tail))
    edit.journal.append((ITEMS, tables.lru, places, [MISSING] * len(blocks)))
    tables.lru.update(zip(places, blocks, strict=True))
    for place, block in zip(places, blocks, strict=True):
        copies[block] = place


def _use(edit: Edit, blocks: Sequence[BlockId], more: int) -> None:
    """Take blocks out of the LRU as far as they are in it, and add `more` references per occurrence."""
    copies = edit.tables.copies
    olds = list(map(copies.__getitem__, blocks))
    edit.journal.append((CELLS, copies, blocks, olds))
    places: list[int] = []
    leaving: list[BlockId] = []
    for block in blocks:
        count = copies[block]
        if count >= INACTIVE:
            places.append(count)
            leaving.append(block)
            copies[block] = more
        else:
            copies[block] = count + more
    if leaving:
        _leave_lru(edit, places, leaving)


def pin(edit: Edit, blocks: Sequence[BlockId]) -> None:
    """Pin cached copies, each once per occurrence. I04: a pinned copy is not in the LRU."""
    pins = edit.tables.pins
    edit.journal.append((ITEMS, pins, blocks, [pins.get(block, MISSING) for block in blocks]))
    for block in blocks:
        pins[block] = pins.get(block, 0) + 1
    _use(edit, blocks, 0)


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
        edit.journal.append((CELLS, copies, entering, [0] * len(entering)))
        _enter_lru(edit, entering)


# --- Holding ----------------------------------------------------------------------------------------------------


def reference(edit: Edit, blocks: Sequence[BlockId]) -> None:
    """Add one reference to cached copies per occurrence. I04: a referenced copy is not in the LRU."""
    _use(edit, blocks, 1)


def allocate_private(edit: Edit, fresh: Sequence[BlockId]) -> list[BlockId]:
    """Make private copies of capacity in reservation order; they come back in order of use, the last one first."""
    blocks = list(reversed(fresh))
    copies = edit.tables.copies
    edit.journal.append((CELLS, copies, blocks, [EMPTY] * len(blocks)))
    for block in blocks:
        copies[block] = PRIVATE
    return blocks


def check_writable(tables: Tables, block: BlockId) -> None:
    """Refuse a block that is no private copy, or whose write is not ordered behind the transfer that reads it.

    Raises:
        UnknownCopyError: the block has no content.
        CopyNotPrivateError: it is cached already.
        UnauthorizedWriteError: its dependency is pending and its write not authorized.
    """
    if not has_content(tables, block):
        raise UnknownCopyError(block)
    if tables.copies[block] != PRIVATE:
        raise CopyNotPrivateError(block, tables.hash_of[block])
    # I22: nothing is written under a transfer that still reads.
    if block in tables.tags and block not in tables.authorized:
        raise UnauthorizedWriteError(None, block, (tables.tags[block],))


def cache_private(edit: Edit, blocks: Sequence[BlockId], hashes: Sequence[BlockHash]) -> list[bool]:
    """Put private copies into the prefix cache, one reference each; which of their hashes became visible.

    The caller asked `check_writable` for each of the blocks, which are distinct.
    """
    tables, log, count = edit.tables, edit.journal.append, len(blocks)
    copies, hash_of = tables.copies, tables.hash_of
    log((CELLS, copies, blocks, [PRIVATE] * count))
    log((CELLS, hash_of, blocks, [hash_of[block] for block in blocks]))
    for block, block_hash in zip(blocks, hashes, strict=True):
        copies[block] = 1
        hash_of[block] = block_hash
    if tables.authorized:
        drop_authorizations(edit, blocks)
    if tables.primary.keys().isdisjoint(hashes) and len(set(hashes)) == count:
        log((ITEMS, tables.primary, hashes, [MISSING] * count))
        tables.primary.update(zip(hashes, blocks, strict=True))
        return [True] * count
    return [enter_index(edit, block, block_hash) for block, block_hash in zip(blocks, hashes, strict=True)]


def cache_one(edit: Edit, block: BlockId, block_hash: BlockHash) -> bool:
    """`cache_private` of one block while no transfer is pending; whether its hash became visible."""
    tables, log = edit.tables, edit.journal.append
    log((CELL, tables.copies, block, PRIVATE))
    tables.copies[block] = 1
    log((CELL, tables.hash_of, block, tables.hash_of[block]))
    tables.hash_of[block] = block_hash
    return enter_index(edit, block, block_hash)


def release(edit: Edit, blocks: Sequence[BlockId]) -> None:
    """Let go of one lease entry's hold per occurrence, in order. I10: an entry held is a reference counted.

    A private copy becomes free capacity; a cached one that nobody uses any more becomes inactive and stays visible.

    Raises:
        UnknownCopyError: a block has no content.
        ReferenceUnderflowError: a cached copy has no reference left.
    """
    tables = edit.tables
    copies, pins = tables.copies, tables.pins
    try:
        olds = list(map(copies.__getitem__, blocks))
    except IndexError:
        olds = [EMPTY]
    if EMPTY in olds:
        raise UnknownCopyError(next(block for block in blocks if not has_content(tables, block)))
    edit.journal.append((CELLS, copies, blocks, olds))
    inactive: list[BlockId] = []
    freed: list[BlockId] = []
    is_repeated = len(set(blocks)) < len(blocks)
    for block, old in zip(blocks, olds, strict=True):
        count = copies[block] if is_repeated else old
        if count == 1:
            copies[block] = 0
            if not pins or block not in pins:
                inactive.append(block)
        elif 1 < count < INACTIVE:
            copies[block] = count - 1
        elif count == PRIVATE:
            copies[block] = EMPTY
            freed.append(block)
        else:
            raise ReferenceUnderflowError(block)
    if inactive:
        _enter_lru(edit, inactive)
    if freed:
        if tables.authorized:
            drop_authorizations(edit, freed)
        give_back(edit, freed)
