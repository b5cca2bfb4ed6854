"""I20 to I23: what a fence may do. A tag comes by attachment, goes by satisfaction, and in between forbids writes."""

from tenure.core.blocks.values import DependencyAttached, DependencySatisfied
from tenure.core.blocks.view import BlockView, CachedCopy, LeaseView, PrivateCopy, SnapshotView
from tenure.spec.blocks.rule import Observation
from tenure.spec.rule import Finding


def tags_belong_to_attachments(view: BlockView) -> Finding:
    """I20, of a state."""
    attached = {block: dependency for dependency, blocks in view.dependencies.items() for block in blocks}
    if attached != view.tags:
        return f"{dict(view.tags)} are the tags, {attached} what the pending dependencies were attached to"
    if sum(len(blocks) for blocks in view.dependencies.values()) != len(attached):
        return f"{dict(view.dependencies)} attach two dependencies to one block"
    return None


def tags_only_come_and_go_with_their_transfer(seen: Observation) -> Finding:
    """I20, of a transition."""
    then, now = seen.before.tags, seen.after.tags
    for block, dependency in now.items():
        if then.get(block) != dependency and not _attaches(seen, block, dependency):
            return f"block {block} came to be tagged with dependency {dependency} by {seen.event}"
    for block, dependency in then.items():
        ended = isinstance(seen.event, DependencySatisfied) and seen.event.dependency == dependency
        if block not in now and not ended:
            return f"block {block} lost its tag of dependency {dependency} by {seen.event}"
        if ended and now.get(block) == dependency:
            return f"block {block} still has the tag of dependency {dependency}, which is satisfied"
    return None


def _attaches(seen: Observation, block: int, dependency: int) -> bool:
    event = seen.event
    if not isinstance(event, DependencyAttached) or event.dependency != dependency:
        return False
    snapshot = seen.before.snapshots.get(event.snapshot)
    return block not in seen.before.tags and snapshot is not None and block in snapshot.blocks


def authorizations_are_for_tagged_private_blocks(view: BlockView) -> Finding:
    """I21."""
    for block in sorted(view.authorized):
        copy = view.copies.get(block)
        if block not in view.tags or not isinstance(copy, PrivateCopy):
            return f"block {block} is authorized, is {copy} and has tag {view.tags.get(block)}"
    return None


def nothing_becomes_visible_under_a_reader(seen: Observation) -> Finding:
    """I22."""
    for block, copy in seen.after.copies.items():
        if not isinstance(copy, CachedCopy) or isinstance(seen.before.copies.get(block), CachedCopy):
            continue
        if block in seen.before.tags and block not in seen.before.authorized:
            return f"block {block} was written while dependency {seen.before.tags[block]} reads it"
    return None


def snapshots_end_when_their_lease_changes(seen: Observation) -> Finding:
    """I22, of what transfers are attached to: else one would be, to blocks that are no longer what it was to read."""
    for number, snapshot in seen.after.snapshots.items():
        if number not in seen.before.snapshots:
            continue
        then, now = (view.leases.get(snapshot.request) for view in (seen.before, seen.after))
        if now is None or (then is not now and then != now):
            return f"snapshot {number} of {snapshot.request!r} outlives {seen.event}, which changed its lease"
    return None


def snapshots_choose_what_is_there_to_be_read(seen: Observation) -> Finding:
    """I22, of what a store may choose: else a transfer would read a block that is still to be written."""
    for number, snapshot in seen.after.snapshots.items():
        if number in seen.before.snapshots:
            continue
        lease = seen.before.leases.get(snapshot.request)
        if lease is None or not _are_sources(seen.before, lease, snapshot):
            return f"snapshot {number} is {snapshot}, which {lease} does not have to be read"
    return None


def _are_sources(view: BlockView, lease: LeaseView, snapshot: SnapshotView) -> bool:
    """Whether they are distinct blocks of the lease with names and contents, and no transfer reads them yet."""
    positions, waiting = snapshot.positions, lease.pending_writes
    if list(positions) != sorted({*positions} & {*range(len(lease.copies))}):
        return False
    if snapshot.blocks != tuple(lease.copies[position] for position in positions):
        return False
    unwritten = range(0) if waiting is None else range(waiting.start, waiting.stop)
    return not view.tags.keys() & {*snapshot.blocks} and not any(
        lease.hashes[position] is None or lease.pending_cache[position] or position in unwritten
        for position in positions
    )


def untracked_pools_have_no_fences(view: BlockView) -> Finding:
    """I23, of a state."""
    if view.attached_ever < len(view.dependencies):
        return f"{view.attached_ever} dependencies were ever attached, {len(view.dependencies)} are pending"
    if view.attached_ever == 0 and (view.tags or view.authorized):
        return f"{dict(view.tags)} are tags and {set(view.authorized)} authorized, but nothing was ever attached"
    return None


def attachments_are_counted(seen: Observation) -> Finding:
    """I23, of a transition."""
    added = 1 if isinstance(seen.event, DependencyAttached) else 0
    if seen.after.attached_ever != seen.before.attached_ever + added:
        return (
            f"{seen.after.attached_ever} dependencies ever attached after {seen.before.attached_ever} and {seen.event}"
        )
    return None
