"""Dependency tags: which pending transfer reads a block, and which write to it is ordered behind that transfer.

A tag stays on its block's number through release, eviction, reservation and reuse, until its dependency is satisfied.
Nothing is pinned by it.

Rules: I20 (at most one tag a block), I21, I22, I23.
"""

from collections.abc import Iterable, Sequence

from tenure.core.blocks.tables import EMPTY, Attachment, Edit, Tables
from tenure.core.blocks.values import BlockId, DependencyId
from tenure.core.config import U64_MAX
from tenure.core.errors import (
    AuthorizedTwiceError,
    DependencyPendingError,
    DependencyRangeError,
    OmittedDependencyError,
    SourcesChangedError,
    UnknownCopyError,
)
from tenure.core.persistent import ITEM, ITEMS, MISSING


def has_content(tables: Tables, block: BlockId) -> bool:
    """Whether a block holds a copy."""
    return 0 <= block < len(tables.copies) and tables.copies[block] != EMPTY


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
    return all(has_content(tables, block) and block not in tables.tags for block in blocks)


def check_attachable(tables: Tables, blocks: Sequence[BlockId], dependency: DependencyId) -> None:
    """Refuse a transfer whose id is in use, or whose sources will not do.

    Raises:
        DependencyRangeError: the id is no unsigned 64-bit number.
        DependencyPendingError: the id is in use.
        SourcesChangedError: `can_attach` does not hold.
    """
    if not (type(dependency) is int and 0 <= dependency <= U64_MAX):
        raise DependencyRangeError(dependency)
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
        drop_authorizations(edit, attachment.blocks)
    return True


def check_authorizable(tables: Tables, blocks: Sequence[BlockId], dependencies: Sequence[DependencyId]) -> None:
    """Refuse an authorization that names too little, or comes twice.

    Raises:
        UnknownCopyError: a block has no content.
        OmittedDependencyError: a block's pending dependency is not among `dependencies`.
        AuthorizedTwiceError: a block's write is authorized already.
    """
    for block in blocks:
        if not has_content(tables, block):
            raise UnknownCopyError(block)
        dependency = tables.tags.get(block)
        if dependency is None:
            continue
        if dependency not in dependencies:
            raise OmittedDependencyError(block, dependency)
        if block in tables.authorized:
            raise AuthorizedTwiceError(block)


def authorize(edit: Edit, blocks: Sequence[BlockId]) -> None:
    """Allow the next write of those blocks that carry a pending dependency (I21); the caller checked."""
    tagged = [block for block in blocks if block in edit.tables.tags]
    edit.journal.append((ITEMS, edit.tables.authorized, tagged, [MISSING] * len(tagged)))
    edit.tables.authorized.update(dict.fromkeys(tagged))


def drop_authorizations(edit: Edit, blocks: Sequence[BlockId]) -> None:
    """Take back what was allowed of blocks that are written, released, or no longer read."""
    for block in blocks:
        if block in edit.tables.authorized:
            edit.journal.append((ITEM, edit.tables.authorized, block, None))
            del edit.tables.authorized[block]
