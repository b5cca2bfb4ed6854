"""When a rule of the block machine had something to judge.

A rule that holds where it cannot fail is no evidence. Each function here says whether a state, or an observation, was
one in which a faulty machine could have broken the rule; its docstring says why only then.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final, TypeAlias

from tenure.core.blocks.lifecycles import named_requests
from tenure.core.blocks.values import DependencyAttached, Exhausted, GrowthReady, PublishRemoved, PublishStored
from tenure.core.blocks.view import BlockView, CachedCopy, PrivateCopy
from tenure.spec.blocks.rule import Observation
from tenure.spec.blocks.rules_events import evicted_blocks
from tenure.spec.blocks.rules_leases import overlap_blocks, resolved_blocks

StateAntecedent: TypeAlias = Callable[[BlockView], bool]
SeenAntecedent: TypeAlias = Callable[[Observation], bool]


def something_is_held(view: BlockView) -> bool:
    """I01, I12: while everything is free there is nothing to lose count of."""
    return bool(view.copies or view.reservations)


def capacity_is_reserved(view: BlockView) -> bool:
    """I02: a block must be promised before it can be promised twice."""
    return any(each.fresh for each in view.reservations.values())


def two_are_inactive(view: BlockView) -> bool:
    """I03: one block has no order."""
    return len(view.lru) > 1


def some_are_inactive_and_some_not(view: BlockView) -> bool:
    """I04, I05: only then can one stand among the others."""
    return bool(view.lru) and len(view.copies) > len(view.lru)


def something_is_cached(view: BlockView) -> bool:
    """I06, I07: an empty index is right in every machine."""
    return any(isinstance(copy, CachedCopy) for copy in view.copies.values())


def something_is_pinned(view: BlockView) -> bool:
    """I09: pins are counted where there are any."""
    return any(isinstance(copy, CachedCopy) and copy.pins for copy in view.copies.values())


def a_lease_holds(view: BlockView) -> bool:
    """I10, I18: a lease without blocks has no references and no watermark to match."""
    return any(lease.copies for lease in view.leases.values())


def active_and_inactive(view: BlockView) -> bool:
    """I11: a sum with two zeros adds up too easily."""
    return bool(view.lru) and view.num_active > 0


def hidden_or_visible(view: BlockView) -> bool:
    """I15: a held block that waits to be computed, or is computed under its name."""
    return any(
        waits or isinstance(view.copies.get(block), CachedCopy)
        for lease in view.leases.values()
        for block, waits in zip(lease.copies, lease.pending_cache, strict=False)
    )


def a_private_block_is_read(view: BlockView) -> bool:
    """I16: only a private block under a reader has a write to wait for."""
    return any(isinstance(view.copies.get(block), PrivateCopy) for block in view.tags)


def a_lease_waits(view: BlockView) -> bool:
    """I17: the list of what is waited for exists."""
    return any(lease.pending_writes is not None for lease in view.leases.values())


def a_transfer_is_pending(view: BlockView) -> bool:
    """I20, I23: without a transfer there is no tag to be misplaced."""
    return bool(view.dependencies)


def a_write_is_authorized(view: BlockView) -> bool:
    """I21: an authorization exists."""
    return bool(view.authorized)


def all_is_given_back(view: BlockView) -> bool:
    """I31: nobody holds or reserves anything, and there were times when somebody did."""
    held = any(lease.copies for lease in view.leases.values()) or bool(view.reservations)
    return not held and bool(view.lru)


def a_block_is_unresolved(view: BlockView) -> bool:
    """I32: only then can one stand in the wrong place."""
    return any(None in lease.hashes for lease in view.leases.values())


def a_lease_is_open(view: BlockView) -> bool:
    """I33: a table exists."""
    return bool(view.leases)


def tokens_were_dropped(view: BlockView) -> bool:
    """I34: who keeps everything cannot keep too little."""
    return any(lease.window_start for lease in view.leases.values())


def a_prefix_is_resident(view: BlockView) -> bool:
    """I35: a cost without a hit is the whole prompt in any machine."""
    return any(overlap_blocks(view, lease)[0] for lease in view.leases.values())


def caching_is_off_and_blocks_are_held(view: BlockView) -> bool:
    """I36: blocks are there that a faulty machine could show."""
    return not view.config.prefix_caching and bool(view.copies)


STATE_ANTECEDENTS: Final[Mapping[str, StateAntecedent]] = MappingProxyType(
    {
        "I01": something_is_held,
        "I02": capacity_is_reserved,
        "I03": two_are_inactive,
        "I04": some_are_inactive_and_some_not,
        "I05": some_are_inactive_and_some_not,
        "I06": something_is_cached,
        "I07": something_is_cached,
        "I09": something_is_pinned,
        "I10": a_lease_holds,
        "I11": active_and_inactive,
        "I12": something_is_held,
        "I15": hidden_or_visible,
        "I16": a_private_block_is_read,
        "I17": a_lease_waits,
        "I18": a_lease_holds,
        "I20": a_transfer_is_pending,
        "I21": a_write_is_authorized,
        "I23": a_transfer_is_pending,
        "I31": all_is_given_back,
        "I32": a_block_is_unresolved,
        "I33": a_lease_is_open,
        "I34": tokens_were_dropped,
        "I35": a_prefix_is_resident,
        "I36": caching_is_off_and_blocks_are_held,
    }
)


# --- Of what an event did ----------------------------------------------------------------------------------------


def copies_of_a_hash_changed(seen: Observation) -> bool:
    """I08: a hash with several copies got or lost one."""
    then, now = seen.before.index, seen.after.index
    return then is not now and any(
        (entry.duplicates or now[name].duplicates) and entry != now[name] for name, entry in then.items() if name in now
    )


def no_capacity_was_found(seen: Observation) -> bool:
    """I13: the answer says that nothing changed."""
    answer = seen.answer
    return isinstance(answer, Exhausted) or (isinstance(answer, GrowthReady) and answer.served == 0)


def a_waiting_lease_was_told(seen: Observation) -> bool:
    """I17: an event named a lease that waits."""
    leases = seen.before.leases
    return any(
        request in leases and leases[request].pending_writes is not None for request in named_requests(seen.event)
    )


def a_watermark_moved(seen: Observation) -> bool:
    """I19: it rose or fell."""
    after = seen.after.leases
    return any(
        request not in after or after[request].allocated_tokens != then.allocated_tokens
        for request, then in seen.before.leases.items()
    )


def a_tagged_block_moved(seen: Observation) -> bool:
    """I20: a tag came or went, or its block changed hands under it."""
    before, after = seen.before, seen.after
    if before.tags != after.tags:
        return True
    return any(before.copies.get(block) != after.copies.get(block) for block in before.tags)


def something_became_visible_under_readers(seen: Observation) -> bool:
    """I22: a block became visible while some transfer reads."""
    return bool(seen.before.tags) and any(
        isinstance(copy, CachedCopy) and not isinstance(seen.before.copies.get(block), CachedCopy)
        for block, copy in seen.after.copies.items()
    )


def a_transfer_was_attached(seen: Observation) -> bool:
    """I23: the count had to rise."""
    return isinstance(seen.event, DependencyAttached)


def events_were_told(seen: Observation) -> bool:
    """I24, I25, I26: a KV event was sent."""
    return any(isinstance(each, PublishStored | PublishRemoved) for each in seen.commands)


def a_group_was_told(seen: Observation) -> bool:
    """I27: a Stored event was sent."""
    return any(isinstance(each, PublishStored) for each in seen.commands)


def several_were_commanded(seen: Observation) -> bool:
    """I28: one command has no order."""
    return len(seen.commands) > 1


def something_was_evicted(seen: Observation) -> bool:
    """I29: a block lost its content."""
    return bool(evicted_blocks(seen))


def the_line_changed(seen: Observation) -> bool:
    """I30: blocks entered or left the LRU order."""
    return seen.before.lru != seen.after.lru


def a_named_lease_changed(seen: Observation) -> bool:
    """I32: a lease with resolved blocks changed otherwise."""
    after = seen.after.leases
    return any(
        (now := after.get(request)) is not None and now is not then and now != then and resolved_blocks(then)
        for request, then in seen.before.leases.items()
    )


def blocks_were_computed_in_silence(seen: Observation) -> bool:
    """I36: with caching off, something happened that would have been told."""
    return not seen.after.config.prefix_caching and seen.before.leases != seen.after.leases


def blocks_moved(seen: Observation) -> bool:
    """L01: a block is elsewhere in its life than before."""
    return seen.before.copies != seen.after.copies or seen.before.reservations != seen.after.reservations


def a_lease_was_named(seen: Observation) -> bool:
    """L02: the event is about a lease."""
    return bool(named_requests(seen.event))


SEEN_ANTECEDENTS: Final[Mapping[str, SeenAntecedent]] = MappingProxyType(
    {
        "I08": copies_of_a_hash_changed,
        "I13": no_capacity_was_found,
        "I17": a_waiting_lease_was_told,
        "I19": a_watermark_moved,
        "I20": a_tagged_block_moved,
        "I22": something_became_visible_under_readers,
        "I23": a_transfer_was_attached,
        "I24": events_were_told,
        "I25": events_were_told,
        "I26": events_were_told,
        "I27": a_group_was_told,
        "I28": several_were_commanded,
        "I29": something_was_evicted,
        "I30": the_line_changed,
        "I32": a_named_lease_changed,
        "I36": blocks_were_computed_in_silence,
        "L01": blocks_moved,
        "L02": a_lease_was_named,
    }
)
"""I14 is exercised wherever an event is refused."""


def exercised_by_state(view: BlockView) -> list[str]:
    """The rules that a state puts to the test."""
    return [rule for rule, holds in STATE_ANTECEDENTS.items() if holds(view)]


def exercised_by_event(seen: Observation) -> list[str]:
    """The rules that an accepted event puts to the test."""
    return [rule for rule, holds in SEEN_ANTECEDENTS.items() if holds(seen)]
