"""KV events and trace records: what the machine tells the outside about visibility.

Nothing is built and no event id is used when nobody listens, or when there is no hash to name;
with caching off no hash ever becomes visible.

Rules: I24 (consecutive ids), I25 (the events tell exactly what is visible), I26 (no hash twice), I27 (a group is
consecutive, its parent is the entry before it).
"""

from collections.abc import Sequence
from typing import Literal, cast

from tenure.core.blocks.tables import Edit, Lease
from tenure.core.blocks.values import BlockHash, PublishRemoved, PublishStored, RecordTrace


def publish_removed(edit: Edit, hashes: Sequence[BlockHash]) -> None:
    """Announce, in one event, the hashes whose last copies were evicted."""
    tables = edit.tables
    config = tables.config
    if not hashes:
        return
    if config.trace:
        _trace(edit, "eviction")
    if config.kv_events:
        edit.commands.append(PublishRemoved(tables.next_event_id, config.dp_rank, tuple(hashes)))
        tables.next_event_id += 1


def publish_stored(edit: Edit, lease: Lease, positions: Sequence[int], visible: Sequence[bool]) -> None:
    """Announce the hashes that became visible in one operation, among blocks of a lease in position order.

    One event a group: a position left out, a block that did not become visible, and a change in whether there are
    local hashes close it.
    """
    local_hashes = lease.local_hashes
    if isinstance(positions, range) and all(visible) and None not in local_hashes[positions.start : positions.stop]:
        publish_group(edit, lease, positions.start, positions.stop)
        return
    start = stop = -1
    for position, seen in zip(positions, visible, strict=True):
        if not seen:
            continue
        if position == stop and (local_hashes[position] is None) == (local_hashes[start] is None):
            stop += 1
            continue
        if start >= 0:
            publish_group(edit, lease, start, stop)
        start, stop = position, position + 1
    if start >= 0:
        publish_group(edit, lease, start, stop)


def publish_group(edit: Edit, lease: Lease, start: int, stop: int) -> None:
    """Announce the blocks `[start, stop)` of a lease, which all became visible and all have a local hash or none."""
    tables = edit.tables
    config = tables.config
    if config.trace:
        _trace(edit, "allocation")
    if not config.kv_events:
        return
    token_ids = None
    if lease.emit_token_ids:
        size, window = tables.block_size, lease.window
        token_ids = tuple(tuple(window[place * size : (place + 1) * size]) for place in range(start, stop))
    hashes = lease.hashes
    local_hashes: Sequence[int | None] = lease.local_hashes[start:stop]
    if local_hashes[0] is None:
        local_hashes = (0,) * len(local_hashes)
    edit.commands.append(
        PublishStored(
            tables.next_event_id,
            config.dp_rank,
            hashes[start - 1] if start else None,
            cast("tuple[int, ...]", tuple(hashes[start:stop])),
            cast("tuple[int, ...]", tuple(local_hashes)),
            token_ids,
        )
    )
    tables.next_event_id += 1


def _trace(edit: Edit, kind: Literal["allocation", "eviction"]) -> None:
    tables = edit.tables
    edit.commands.append(
        RecordTrace(
            kind=kind,
            dp_rank=tables.config.dp_rank,
            block_size=tables.block_size,
            active=tables.num_active,
            inactive=len(tables.lru),
            capacity=tables.capacity,
        )
    )
