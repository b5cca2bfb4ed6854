"""Source-reuse fences: a write to a block waits for the transfer that still reads it.

A store snapshots the blocks it wants to read, is admitted, and attaches its transfer as a *dependency*. From then on
the dependency's tag stays on those blocks, through release, eviction and reuse, until it is satisfied. Nothing is
pinned: whoever gets such a block next orders its write behind the transfer and says so.

Rules: I16, I17, I20 to I23.
Source: source-reuse dependencies of the seed's manager; edges 2 and 3 of its requirement.
"""

from tenure.core.blocks import tags
from tenure.core.blocks.leases import drop_snapshots, find_lease, set_pending
from tenure.core.blocks.tables import PRIVATE, Edit, Lease, Snapshot, Tables
from tenure.core.blocks.values import (
    DependencyAttached,
    DependencySatisfied,
    Done,
    NoSources,
    SnapshotDiscarded,
    SnapshotId,
    Sources,
    StoreSourcesSnapshotted,
    WasPending,
    WritesAuthorized,
)
from tenure.core.errors import (
    DependencyMismatchError,
    EmptyDependenciesError,
    EmptySnapshotError,
    NothingToAuthorizeError,
    SnapshotOwnerError,
    SnapshotsExhaustedError,
    UnknownSnapshotError,
)
from tenure.core.persistent import ITEM, MISSING


def on_writes_authorized(edit: Edit, event: WritesAuthorized) -> Done:
    """Let a lease write capacity that a transfer still reads: the engine ordered the write behind it.

    The dependencies stay pending; only `DependencySatisfied` ends them.

    Raises:
        UnknownLeaseError: no open lease.
        EmptyDependenciesError: nothing is named.
        NothingToAuthorizeError: no writes are pending.
        DependencyMismatchError: not what was answered, in order, or some of it is satisfied since.
    """
    tables = edit.tables
    lease = find_lease(tables, event.request)
    if not event.dependencies:
        raise EmptyDependenciesError(event.request)
    if lease.pending is None:
        raise NothingToAuthorizeError(event.request)
    stored = lease.pending.dependencies
    if event.dependencies != stored:
        raise DependencyMismatchError(event.request, stored, event.dependencies)
    blocks = lease.copies[lease.pending.start : lease.pending.stop]
    actual = tags.pending_dependencies(tables, blocks)
    if actual != stored:
        raise DependencyMismatchError(event.request, actual, event.dependencies)
    tags.check_authorizable(tables, blocks, event.dependencies)

    drop_snapshots(edit, event.request)
    tags.authorize(edit, blocks)
    set_pending(edit, lease, None)
    return Done()


def on_store_sources_snapshotted(edit: Edit, event: StoreSourcesSnapshotted) -> Sources | NoSources:
    """Choose computed blocks of a lease as the sources of a store, if a transfer may be attached to them now.

    Raises:
        UnknownLeaseError: no open lease.
        EmptySnapshotError: no positions.
        SnapshotsExhaustedError: `snapshots_max` are live.
    """
    tables = edit.tables
    lease = find_lease(tables, event.request)
    if not event.positions:
        raise EmptySnapshotError(event.request)
    if not _are_sources(tables, lease, event.positions):
        return NoSources()
    if len(tables.snapshots) >= tables.config.snapshots_max:
        raise SnapshotsExhaustedError(tables.config.snapshots_max)

    tables.snapshots_ever += 1
    key, log = tables.snapshots_ever, edit.journal.append
    log((ITEM, tables.snapshots, key, MISSING))
    tables.snapshots[key] = Snapshot(
        event.request, event.positions, tuple(lease.copies[position] for position in event.positions)
    )
    keys = tables.snapshots_of.get(event.request, ())
    log((ITEM, tables.snapshots_of, event.request, keys or MISSING))
    tables.snapshots_of[event.request] = (*keys, key)
    hashes = (lease.hashes[position] for position in event.positions)
    return Sources(key, tuple(block_hash for block_hash in hashes if block_hash is not None))


def _are_sources(tables: Tables, lease: Lease, positions: tuple[int, ...]) -> bool:
    previous = -1
    for position in positions:
        if position <= previous or position >= len(lease.copies) or lease.hashes[position] is None:
            return False
        # With caching, a private copy under a known hash is one that still waits to be computed.
        if tables.shares(lease) and tables.copies[lease.copies[position]] == PRIVATE:
            return False
        if lease.pending is not None and lease.pending.start <= position < lease.pending.stop:
            return False
        previous = position
    return tags.can_attach(tables, [lease.copies[position] for position in positions])


def _find_snapshot(tables: Tables, key: SnapshotId) -> Snapshot:
    snapshot = tables.snapshots.get(key)
    if snapshot is None:
        raise UnknownSnapshotError(key)
    return snapshot


def _end_snapshot(edit: Edit, key: SnapshotId, snapshot: Snapshot) -> None:
    tables, log = edit.tables, edit.journal.append
    log((ITEM, tables.snapshots, key, snapshot))
    del tables.snapshots[key]
    keys = tables.snapshots_of[snapshot.request]
    log((ITEM, tables.snapshots_of, snapshot.request, keys))
    rest = tuple(each for each in keys if each != key)
    if rest:
        tables.snapshots_of[snapshot.request] = rest
    else:
        del tables.snapshots_of[snapshot.request]


def on_snapshot_discarded(edit: Edit, event: SnapshotDiscarded) -> Done:
    """Forget a snapshot.

    Raises:
        UnknownSnapshotError: it is not live.
    """
    _end_snapshot(edit, event.snapshot, _find_snapshot(edit.tables, event.snapshot))
    return Done()


def on_dependency_attached(edit: Edit, event: DependencyAttached) -> Done:
    """Fence the blocks of a snapshot behind the transfer that reads them; the snapshot's id dies.

    Raises:
        UnknownSnapshotError: it is not live.
        SnapshotOwnerError: it is another request's.
        DependencyPendingError: the dependency's id is in use.
        SourcesChangedError: another transfer took some of the blocks since.
    """
    snapshot = _find_snapshot(edit.tables, event.snapshot)
    if snapshot.request != event.request:
        raise SnapshotOwnerError(event.snapshot, snapshot.request, event.request)
    tags.check_attachable(edit.tables, snapshot.blocks, event.dependency)

    tags.attach(edit, snapshot.blocks, event.dependency)
    _end_snapshot(edit, event.snapshot, snapshot)
    return Done()


def on_dependency_satisfied(edit: Edit, event: DependencySatisfied) -> WasPending:
    """End a transfer. An id that is not pending is no error."""
    return WasPending(tags.satisfy(edit, event.dependency))
