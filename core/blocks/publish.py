"""KV events and trace records: what the machine tells the outside about visibility.

Nothing is built and no event id is used when nobody listens, when caching is off, or when there is no hash to name.

Rules: I24 (consecutive ids), I26 (no hash twice), I27 (a group is consecutive, its parent is the entry before it).
"""

from collections.abc import Sequence
from typing import NamedTuple

from tenure.core.blocks.tables import Edit, Lease
from tenure.core.blocks.values import BlockHash, PublishRemoved, PublishStored, RecordTrace


class Appearance(NamedTuple):
    """One block of a lease, walked in position order, and whether its hash became visible just now."""

    position: int
    visible: bool
    block_hash: BlockHash
    local_hash: int | None


def publish_removed(edit: Edit, hashes: Sequence[BlockHash]) -> None:
    """Announce, in one event, the hashes whose last copies were evicted."""
    tables = edit.tables
    if not hashes or not tables.caching:
        return
    _trace(edit, "eviction")
    if tables.config.kv_events:
        edit.commands.append(PublishRemoved(tables.next_event_id, tables.config.dp_rank, tuple(hashes)))
        tables.next_event_id += 1


def publish_stored(edit: Edit, lease: Lease, blocks: Sequence[Appearance]) -> None:
    """Announce the hashes that became visible among consecutive blocks of one operation.

    One event a group: a position left out, a block that did not become visible, and a change in whether there are
    local hashes close it.
    """
    config = edit.tables.config
    if not edit.tables.caching or not (config.kv_events or config.trace):
        return
    group: list[Appearance] = []
    for block in blocks:
        if not block.visible:
            continue
        if group:
            last = group[-1]
            if block.position != last.position + 1 or (block.local_hash is None) != (last.local_hash is None):
                _publish_group(edit, lease, group)
                group = []
        group.append(block)
    if group:
        _publish_group(edit, lease, group)


def _publish_group(edit: Edit, lease: Lease, group: list[Appearance]) -> None:
    tables = edit.tables
    _trace(edit, "allocation")
    if not tables.config.kv_events:
        return
    first = group[0].position
    token_ids = None
    if lease.emit_token_ids:
        size = tables.block_size
        token_ids = tuple(tuple(lease.window[each.position * size : (each.position + 1) * size]) for each in group)
    edit.commands.append(
        PublishStored(
            event_id=tables.next_event_id,
            dp_rank=tables.config.dp_rank,
            parent_hash=lease.hashes[first - 1] if first else None,
            block_hashes=tuple([each.block_hash for each in group]),
            tokens_hashes=tuple([each.local_hash or 0 for each in group]),
            token_ids=token_ids,
        )
    )
    tables.next_event_id += 1


def _trace(edit: Edit, kind: str) -> None:
    tables = edit.tables
    if tables.config.trace:
        edit.commands.append(
            RecordTrace(
                kind="allocation" if kind == "allocation" else "eviction",
                dp_rank=tables.config.dp_rank,
                block_size=tables.block_size,
                active=tables.num_active,
                inactive=len(tables.lru),
                capacity=tables.capacity,
            )
        )
