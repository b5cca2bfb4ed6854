"""I01 to I12: the pool's accounts. Every block is somewhere, once, and every count can be counted again."""

from collections import Counter
from itertools import pairwise

from tenure.core.blocks.values import BlockId
from tenure.core.blocks.view import BlockView, CachedCopy, PrivateCopy
from tenure.spec.blocks.rule import Observation, publishing_requests
from tenure.spec.rule import Finding


def capacity_is_whole(view: BlockView) -> Finding:
    """I01."""
    total = len(view.copies) + view.num_reserved + len(view.free)
    if total != view.config.capacity:
        return (
            f"{total} blocks of a capacity of {view.config.capacity}: {len(view.copies)} with content, "
            f"{view.num_reserved} reserved, {len(view.free)} free"
        )
    return None


def reserved_blocks_are_set_aside(view: BlockView) -> Finding:
    """I02."""
    seen: set[BlockId] = set()
    capacity = view.config.capacity
    for where, blocks in [
        ("free", view.free),
        *((f"reservation {number}", each.fresh) for number, each in view.reservations.items()),
        ("copies", view.copies),
    ]:
        for block in blocks:
            if block in seen:
                return f"block {block} of {where} is also somewhere else"
            if not 0 <= block < capacity:
                return f"block {block} of {where} is outside [0, {capacity})"
            seen.add(block)
    for number, each in view.reservations.items():
        if (each.kind == "destination") != (each.request is not None):
            return f"reservation {number} is a {each.kind} reservation of request {each.request!r}"
        if each.kind == "decode" and each.prefix:
            return f"reservation {number} pins {len(each.prefix)} blocks, but is for decoding"
    return None


def lru_is_one_line(view: BlockView) -> Finding:
    """I03."""
    if len(set(view.lru)) != len(view.lru):
        return f"{view.lru} lists a block twice in the LRU order"
    positions = [position for position, _ in view.lru_positions]
    if any(one >= other for one, other in pairwise(positions)):
        return f"positions {positions} of the LRU order do not ascend"
    inactive = set(view.lru)
    ordered = tuple(block for _, block in view.lru_positions if block in inactive)
    if ordered != view.lru:
        return f"{ordered} is the order by position, {view.lru} the LRU order"
    return None


def lru_holds_the_inactive(view: BlockView) -> Finding:
    """I04."""
    inactive = {
        block
        for block, copy in view.copies.items()
        if isinstance(copy, CachedCopy) and copy.references == 0 and copy.pins == 0
    }
    if inactive != set(view.lru):
        return f"{sorted(set(view.lru))} are in the LRU order, {sorted(inactive)} are inactive"
    return None


def only_the_inactive_have_a_place(view: BlockView) -> Finding:
    """I05."""
    inactive = set(view.lru)
    for position, block in view.lru_positions:
        if block not in inactive:
            return f"block {block} has LRU position {position} and is not inactive"
    return None


def copies_are_indexed_once(view: BlockView) -> Finding:
    """I06."""
    pairs = [(name, block) for name, entry in view.index.items() for block in (entry.primary, *entry.duplicates)]
    for name, block in pairs:
        copy = view.copies.get(block)
        if not isinstance(copy, CachedCopy) or copy.block_hash != name:
            return f"block {block} is indexed under hash {name} and is {copy}"
    listed = set(pairs)
    if len(listed) != len(pairs):
        (name, block), times = Counter(pairs).most_common(1)[0]
        return f"block {block} is indexed {times} times under hash {name}"
    for block, copy in view.copies.items():
        if isinstance(copy, CachedCopy) and (copy.block_hash, block) not in listed:
            return f"block {block} is cached under hash {copy.block_hash} and not indexed there"
    return None


def index_knows_the_visible(view: BlockView) -> Finding:
    """I07."""
    visible = {copy.block_hash for copy in view.copies.values() if isinstance(copy, CachedCopy)}
    if strays := view.index.keys() ^ visible:
        return f"hashes {sorted(strays)} are indexed without a copy, or the reverse"
    for name, entry in view.index.items():
        if entry.duplicates and len({entry.primary, *entry.duplicates}) != 1 + len(entry.duplicates):
            return f"{entry} of hash {name} lists a block twice"
    return None


def index_keeps_caching_order(seen: Observation) -> Finding:
    """I08: survivors stay in order, and what was cached now stands behind them in the order of the walk."""
    before = seen.before.index
    changed = {
        name: entry
        for name, entry in seen.after.index.items()
        if (old := before.get(name)) is not entry and old != entry
    }
    if not changed:
        return None
    walk = [
        block
        for request in publishing_requests(seen.event)
        if request in seen.after.leases
        for block in seen.after.leases[request].copies
    ]
    for name, entry in changed.items():
        old = before.get(name)
        now = [entry.primary, *entry.duplicates]
        then = [] if old is None else [old.primary, *old.duplicates]
        survivors = [block for block in then if block in now]
        added = [block for block in now if block not in then]
        if any(block not in walk for block in added):
            return f"{added} came under hash {name}, but the event computed {walk}"
        expected = survivors + sorted(added, key=walk.index)
        if now != expected:
            return f"{now} is the order of the copies of hash {name}; they were cached in the order {expected}"
    return None


def pins_are_counted(view: BlockView) -> Finding:
    """I09."""
    pins: dict[BlockId, int] = {}
    for number, each in view.reservations.items():
        for name, block in each.prefix:
            copy = view.copies.get(block)
            if not isinstance(copy, CachedCopy) or copy.block_hash != name:
                return f"block {block}, pinned by reservation {number} under hash {name}, is {copy}"
            pins[block] = pins.get(block, 0) + 1
    for block, copy in view.copies.items():
        if isinstance(copy, CachedCopy) and copy.pins != pins.get(block, 0):
            return f"{copy.pins} pins on block {block}; reservations list it {pins.get(block, 0)} times"
    return None


def references_are_counted(view: BlockView) -> Finding:
    """I10."""
    holds: dict[BlockId, int] = {}
    for lease in view.leases.values():
        for block in lease.copies:
            holds[block] = holds.get(block, 0) + 1
    for block in holds:
        if block not in view.copies:
            return f"block {block} is held by a lease and has no content"
    for block, copy in view.copies.items():
        expected = 1 if isinstance(copy, PrivateCopy) else copy.references
        if holds.get(block, 0) != expected:
            return f"block {block} is {copy} and held by {holds.get(block, 0)} lease entries"
    return None


def counts_add_up(view: BlockView) -> Finding:
    """I11."""
    total = view.num_active + view.num_inactive + len(view.free)
    if total != view.config.capacity:
        return (
            f"{view.num_active} active, {view.num_inactive} inactive and {len(view.free)} free blocks "
            f"are {total}, not {view.config.capacity}"
        )
    return None


def active_is_within_bounds(view: BlockView) -> Finding:
    """I12."""
    if not 0 <= view.num_active <= view.config.capacity:
        return f"{view.num_active} active blocks are outside [0, {view.config.capacity}]"
    return None


def nothing_is_active_when_all_is_given_back(view: BlockView) -> Finding:
    """I31."""
    if view.reservations or any(lease.copies for lease in view.leases.values()):
        return None
    if view.num_active != 0 or len(view.free) + view.num_inactive != view.config.capacity:
        return (
            f"{view.num_active} active blocks while nobody holds or reserves any; {len(view.free)} free and "
            f"{view.num_inactive} inactive of {view.config.capacity}"
        )
    return None


def caching_off_hides_everything(view: BlockView) -> Finding:
    """I36, of a state."""
    if view.config.prefix_caching:
        return None
    if view.index or view.lru:
        return f"{sorted(view.index)} are visible and {view.lru} inactive with prefix caching off"
    if view.next_event_id:
        return f"{view.next_event_id} KV events were sent with prefix caching off"
    return None


def caching_off_is_silent(seen: Observation) -> Finding:
    """I36, of a transition."""
    if seen.commands and not seen.after.config.prefix_caching:
        return f"{seen.commands} were commanded with prefix caching off"
    return None
