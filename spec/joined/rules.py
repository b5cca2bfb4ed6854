"""The rules of the joined cache, X01 to X05, and the functions that check them."""

from collections.abc import Callable
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, TypeAlias

from tenure.core.blocks.values import AllocationRequested, LeasePreempted, PublishRemoved, PublishStored, Ready
from tenure.core.blocks.view import CachedCopy, PrivateCopy
from tenure.core.joined.values import (
    BatchDropped,
    BatchStarted,
    BlockId,
    CacheAnswer,
    CacheCommand,
    CacheEvent,
    CacheView,
    RequestId,
)
from tenure.core.rows.answers import ResetAnswered
from tenure.core.rows.events import ResetRequested, SavePublished
from tenure.core.rows.names import HIDDEN
from tenure.core.rows.view import Occupancy, ReadPhase
from tenure.spec.judging import Judge
from tenure.spec.rule import Finding, Rule

_SOURCE: Final = "the requirement of the joined cache"

RULES: Final[tuple[Rule, ...]] = (
    Rule(
        "X01",
        "A visible hash has its hidden rows: each of its copies holds that content, and its rows are committed, in "
        "transit, or about to be computed by the request that was scheduled to. A hit that was granted on it goes with "
        "the first step of its request that is not given up.",
        "Otherwise a prefix hit is granted that materialize can only refuse, or whose rows nobody is handed.",
        _SOURCE,
        "predicate",
        ("transition",),
    ),
    Rule(
        "X02",
        "A step computes only slots of blocks that one lease holds: privately, or where the hash is visible as soon as "
        "it is scheduled, by the request that was scheduled to compute them.",
        "Rows written into a shared copy change what other requests read.",
        _SOURCE,
        "transition",
    ),
    Rule(
        "X03",
        "What a waiting read will take from the pool is still the row that it was planned with.",
        "Otherwise a block's next tenant writes it before its last reader is done, or before the row was set aside.",
        _SOURCE,
        "predicate",
    ),
    Rule(
        "X04",
        "KV events tell at every point what is visible, and a hash whose rows are yet to be computed is held by the "
        "lease of whoever will.",
        "Otherwise a router sends requests to blocks that are gone, or whose rows never come.",
        _SOURCE,
        "predicate",
        ("transition",),
    ),
    Rule(
        "X05",
        "A request shares only blocks of its own isolation group and adapter, under the hash of its own chain.",
        "A hash has 64 bits, and two chains can meet in them by chance.",
        _SOURCE,
        "predicate",
    ),
)
RULES_BY_ID: Final = MappingProxyType({rule.id: rule for rule in RULES})


@dataclass(frozen=True, slots=True)
class CacheObservation:
    """One event that was accepted, with the whole state before and after it."""

    before: CacheView
    event: CacheEvent
    after: CacheView
    answer: CacheAnswer
    commands: tuple[CacheCommand, ...]


StateCheck: TypeAlias = Callable[[CacheView], Finding]
TransitionCheck: TypeAlias = Callable[[CacheObservation], Finding]


def _slots(view: CacheView, block: BlockId) -> range:
    size = view.config.rows.block_size
    return range(block * size, (block + 1) * size)


def visible_hashes_have_their_rows(view: CacheView) -> Finding:
    """X01."""
    for block_hash, entry in view.blocks.index.items():
        for block in (entry.primary, *entry.duplicates):
            if block in view.unsaved:
                continue
            identity = view.rows.identities.get(block)
            if identity is None or identity.hash != block_hash:
                return f"hash {block_hash} is visible with block {block}, which holds {identity}"
            if not view.rows.policy.hidden or view.rows.failure is not None:
                continue
            for slot in _slots(view, block):
                found = view.rows.occupancy(HIDDEN, slot)
                if found not in (Occupancy.COMMITTED, Occupancy.IN_TRANSIT):
                    return (
                        f"hash {block_hash} is visible with block {block}, and hidden at slot {slot} is {found.value}"
                    )
    return None


def shareable_prefix_leaves_a_token(view: CacheView, request: RequestId, blocks: int) -> Finding:
    """X01, of what `servable_prefix_blocks` says: a step announces a hit with the tokens behind it, so one is needed.

    A prompt that is a hit as a whole would be in no step, and its rows be handed to nobody.
    """
    size, length = view.config.blocks.block_size, view.blocks.leases[request].length
    if blocks and blocks * size >= length:
        return f"{blocks} blocks of {size} are to be shared by request {request!r}, which has {length} tokens"
    return None


def granted_hits_are_announced(seen: CacheObservation) -> Finding:
    """X01, of a transition: what is to be announced of a hit is what was granted, until a step goes with it."""
    owed = _owed_hits(seen)
    for request, track in seen.after.tracks.items():
        if track.hit != owed.get(request, 0):
            return (
                f"{track.hit} tokens of the hit of request {request!r} are to be announced after {seen.event}, and not "
                f"{owed.get(request, 0)}"
            )
    return _announced_hits(seen)


def _announced_hits(seen: CacheObservation) -> Finding:
    """What a started step announces; it marks no hit of a request that the row machine knows, which only resumes."""
    before, after = seen.before, seen.after
    if not isinstance(seen.event, BatchStarted):
        is_over = isinstance(seen.event, BatchDropped | SavePublished | ResetRequested) and not after.started
        expected = {} if is_over else dict(before.announced)
    else:
        expected = {each.request: hit for each in before.batch if (hit := before.tracks[each.request].hit)}
        step = None if after.rows.pending is None else after.rows.steps[after.rows.pending]
        marked = {} if step is None else dict(step.hits)
        for request, hit in expected.items():
            blocks = before.blocks.leases[request].copies[: hit // before.config.rows.block_size]
            slots = tuple(slot for block in blocks for slot in _slots(before, block))
            if not before.tracks[request].is_live and marked.get(request) != slots:
                return f"request {request!r} starts with a hit of {marked.get(request)}, and was granted {slots}"
    if after.announced != expected:
        return f"the started step announced hits of {dict(after.announced)} after {seen.event}, and not of {expected}"
    return None


def _owed_hits(seen: CacheObservation) -> dict[RequestId, int]:
    """Per request the tokens of its hit that a step has yet to announce."""
    before, event, size = seen.before, seen.event, seen.before.config.rows.block_size
    owed = {request: track.hit for request, track in before.tracks.items()}
    match event:
        case AllocationRequested(request, reusable_blocks=shared) if isinstance(seen.answer, Ready) and shared:
            owed[request] = shared * size
        case LeasePreempted(request):
            owed[request] = 0
        case ResetRequested() if seen.answer == ResetAnswered(True):
            owed = {}
        case BatchStarted():
            owed |= {each.request: 0 for each in before.batch}
        case BatchDropped():
            owed |= before.announced
        case _:
            pass
    return owed


def rows_go_to_blocks_of_one_s_own(seen: CacheObservation) -> Finding:
    """X02."""
    if not isinstance(seen.event, SavePublished | BatchDropped):
        if seen.before.rows.tenancy != seen.after.rows.tenancy:
            return f"{seen.event} computed slots"
        return None
    before = seen.before
    size = before.config.rows.block_size
    written = {
        slot // size
        for slot, (old, new) in enumerate(zip(before.rows.tenancy, seen.after.rows.tenancy, strict=True))
        if old != new
    }
    started = {each.request for each in before.started}
    for block in sorted(written):
        holders = [request for request, lease in before.blocks.leases.items() if block in lease.copies]
        if isinstance(before.blocks.copies.get(block), PrivateCopy):
            if len(holders) != 1 or holders[0] not in started:
                return f"block {block} is computed and held by {holders}; the step has {sorted(started, key=str)}"
        elif before.unsaved.get(block) not in started:
            return f"block {block} is computed and shared by {holders}"
    return None


def waiting_reads_find_their_rows(view: CacheView) -> Finding:
    """X03."""
    for number, read in view.rows.reads.items():
        if read.phase is not ReadPhase.PLANNED:
            continue
        for place in read.pool:
            newest = view.rows.newest[read.name][read.slots[place]]
            if newest != read.claims[place]:
                return f"read {number} of {read.name}: slot {read.slots[place]} was claimed again and not set aside"
    return None


def kv_events_tell_what_is_visible(seen: CacheObservation) -> Finding:
    """X04: applied to what was visible before, the events give what is visible afterwards."""
    if not seen.after.config.blocks.kv_events:
        return None
    visible = set(seen.before.blocks.index)
    for command in seen.commands:
        if isinstance(command, PublishStored):
            visible |= set(command.block_hashes)
        elif isinstance(command, PublishRemoved):
            visible -= set(command.block_hashes)
    wrong = visible.symmetric_difference(seen.after.blocks.index)
    return f"the events of {seen.event} are wrong about the hashes {sorted(wrong)}" if wrong else None


def owed_rows_have_somebody_to_compute_them(view: CacheView) -> Finding:
    """X04."""
    for block, owed_by in view.unsaved.items():
        lease = view.blocks.leases.get(owed_by)
        if lease is None or block not in lease.copies:
            return f"the rows of block {block} are to be computed by request {owed_by!r}, which does not hold it"
    return None


def shared_blocks_are_of_one_group(view: CacheView) -> Finding:
    """X05."""
    for request, lease in view.blocks.leases.items():
        for block, block_hash in zip(lease.copies, lease.hashes, strict=False):
            if not isinstance(view.blocks.copies.get(block), CachedCopy):
                continue
            found = _group_of(view, block)
            if (block_hash, view.tracks[request].group) != found:
                return f"request {request!r} shares block {block}, which holds {found}"
    return None


def _group_of(view: CacheView, block: BlockId) -> tuple[int | None, str] | None:
    owed_by: RequestId | None = view.unsaved.get(block)
    if owed_by is not None:
        copy = view.blocks.copies[block]
        return (copy.block_hash if isinstance(copy, CachedCopy) else None, view.tracks[owed_by].group)
    identity = view.rows.identities.get(block)
    return None if identity is None else (identity.hash, identity.group)


STATE_CHECKS: Final[tuple[tuple[str, StateCheck], ...]] = (
    ("X01", visible_hashes_have_their_rows),
    ("X03", waiting_reads_find_their_rows),
    ("X04", owed_rows_have_somebody_to_compute_them),
    ("X05", shared_blocks_are_of_one_group),
)
"""What a state alone must satisfy."""

TRANSITION_CHECKS: Final[tuple[tuple[str, TransitionCheck], ...]] = (
    ("X01", granted_hits_are_announced),
    ("X02", rows_go_to_blocks_of_one_s_own),
    ("X04", kv_events_tell_what_is_visible),
)
"""What an accepted event must satisfy."""

JUDGE: Final = Judge[CacheView, CacheObservation](STATE_CHECKS, TRANSITION_CHECKS, lambda seen: seen.after)
broken_rules = JUDGE.broken_rules
broken_transition_rules = JUDGE.broken_transition_rules
check_observation = JUDGE.check_observation
