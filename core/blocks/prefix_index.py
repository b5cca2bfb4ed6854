"""The prefix index: which copies a hash is found by, and which of them stands for it.

Rules: I07 (a hash is visible as long as it has a copy), I08 (its oldest surviving copy is the primary).
"""

from collections.abc import Iterable, Sequence

from tenure.core.blocks.tables import Edit, Tables
from tenure.core.blocks.values import BlockHash, BlockId
from tenure.core.errors import PrefixExceedsLayoutError, PrefixNotResidentError
from tenure.core.persistent import ITEM, MISSING


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


def enter_index(edit: Edit, block: BlockId, block_hash: BlockHash) -> bool:
    """Enter a cached copy into the index. I07: a hash is visible as long as it has a copy."""
    tables = edit.tables
    if block_hash not in tables.primary:
        edit.journal.append((ITEM, tables.primary, block_hash, MISSING))
        tables.primary[block_hash] = block
        return True
    younger = tables.duplicates.get(block_hash, ())
    edit.journal.append((ITEM, tables.duplicates, block_hash, younger or MISSING))
    tables.duplicates[block_hash] = (*younger, block)
    return False


def leave_index(edit: Edit, block: BlockId, block_hash: BlockHash) -> bool:
    """Take a copy out of the index; whether its hash is gone with it. I08: the oldest survivor is the primary."""
    tables, log = edit.tables, edit.journal.append
    younger = tables.duplicates.get(block_hash)
    if younger is None:
        log((ITEM, tables.primary, block_hash, block))
        del tables.primary[block_hash]
        return True
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
    return False
