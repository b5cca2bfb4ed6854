"""The goals of the block machine as a search sees them.

Those of one observation are sought by the kind of event that can reach them, those of a run by a small memory that is
part of the state.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, NamedTuple, TypeAlias

from tenure.core.blocks import values
from tenure.core.blocks.values import BlockHash, DependencyId, Reserved, WasPending
from tenure.model_checks.blocks.calls import EVENT_NAMES
from tenure.spec.blocks.goals import GOALS
from tenure.spec.blocks.rule import Observation
from tenure.spec.blocks.rules_events import evicted_blocks
from tenure.spec.goals import Goal

_ALLOCATES: Final = ("AllocationRequested", "GrowthScheduled")
_RESERVES: Final = ("DecodeReservationRequested", "DestinationRequested", "ExternalPrefixRequested")
_PUBLISHES: Final = ("TokensComputed", "StepComputed", "DestinationActivated")
_EVICTS: Final = (*_ALLOCATES, *_RESERVES)
_RELEASES: Final = ("LeasePreempted", "LeaseFinished")
_GROWS: Final = (*_ALLOCATES, "ReservedAllocationRequested")

REACHED_BY: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "duplicate_cached": _PUBLISHES,
        "duplicate_promoted": _EVICTS,
        "duplicate_evicted": _EVICTS,
        "evicted_silently": _EVICTS,
        "removed_several": _EVICTS,
        "exhausted": _EVICTS,
        "exhausted_by_its_own_hits": _EVICTS,
        "leaf_before_parent": _EVICTS,
        "tail_resolved": _PUBLISHES,
        "two_groups": _PUBLISHES,
        "groups_split_by_payload": _PUBLISHES,
        "tokens_told": _PUBLISHES,
        "full_hit": _ALLOCATES,
        "inactive_revived": (*_EVICTS, "DestinationActivated"),
        "hit_from_the_middle": _EVICTS,
        "shared_by_two": (*_ALLOCATES, "DestinationActivated"),
        "pinned_twice": _RESERVES,
        "destination_with_prefix": ("DestinationActivated",),
        "destination_partial_tail": ("DestinationActivated",),
        "destination_cancelled_with_pins": ("DestinationCancelled",),
        "destination_behind_a_fence": _RESERVES,
        "external_prefix": _RESERVES,
        "decode_drawn": ("ReservedAllocationRequested",),
        "decode_ran_empty": ("ReservedAllocationRequested",),
        "fenced_through_eviction": _EVICTS,
        "fenced_through_reservation": ("ReservedAllocationRequested",),
        "clean_block_waits_too": _GROWS,
        "authorized": ("WritesAuthorized",),
        "authorized_write": _PUBLISHES,
        "authorization_outlived": ("DependencySatisfied",),
        "pruned_in_part": _GROWS,
        "pruned_to_nothing": _GROWS,
        "released_while_waiting": _RELEASES,
        "two_sources": ("StoreSourcesSnapshotted",),
        "private_source": ("StoreSourcesSnapshotted",),
        "no_sources": ("StoreSourcesSnapshotted",),
        "preempted": _RELEASES,
        "recomputed_in_chunks": _PUBLISHES,
        "growth_served_in_part": ("GrowthScheduled",),
        "step_fills_a_block": ("StepComputed",),
        "token_opens_a_block": ("TokenGenerated",),
        "traced_without_listener": (*_EVICTS, *_PUBLISHES),
    }
)
"""Which events can reach a goal; one that is not listed is looked for in every observation."""


def _by_event(names: tuple[str, ...]) -> dict[str, tuple[Goal[Observation], ...]]:
    return {name: tuple(goal for goal in GOALS if name in REACHED_BY.get(goal.name, names)) for name in names}


_GOALS: Final = _by_event(EVENT_NAMES)


def _released_unused(seen: Observation) -> bool:
    """A decode reservation goes back with all that it promised."""
    event = seen.event
    if isinstance(event, values.DecodeReservationReleased):
        return bool(seen.before.reservations[event.reservation].fresh)
    return isinstance(event, values.DestinationCancelled)


def reached_goals(seen: Observation) -> list[str]:
    """The goals that one observation reaches."""
    reached = [goal.name for goal in _GOALS[type(seen.event).__name__] if goal.reached(seen)]
    if _released_unused(seen):
        reached.append("reservation_given_back")
    return reached


# --- Goals that need the past ------------------------------------------------------------------------------------


class Noted(NamedTuple):
    """What of an event a memory keeps.

    Attributes:
        satisfied: the transfer that ended.
        attached: the transfer that began.
        gone: hashes that vanished.
        came: hashes that became visible.
        reserved: whether a reservation evicted something.
        given_back: whether a reservation ended without being used.
        live: reservations left.
        reused: transfers whose block was taken out of free capacity.
    """

    satisfied: DependencyId = -1
    attached: DependencyId = -1
    gone: tuple[BlockHash, ...] = ()
    came: tuple[BlockHash, ...] = ()
    reserved: bool = False
    given_back: bool = False
    live: int = 0
    reused: tuple[DependencyId, ...] = ()


def note(seen: Observation) -> Noted:
    """What of an observation a memory keeps."""
    event, before, after = seen.event, seen.before, seen.after
    ended = isinstance(event, values.DependencySatisfied) and seen.answer == WasPending(pending=True)
    return Noted(
        satisfied=event.dependency if isinstance(event, values.DependencySatisfied) and ended else -1,
        attached=event.dependency if isinstance(event, values.DependencyAttached) else -1,
        gone=tuple(sorted(before.index.keys() - after.index.keys())),
        came=tuple(sorted(after.index.keys() - before.index.keys())),
        reserved=isinstance(seen.answer, Reserved) and bool(evicted_blocks(seen)),
        given_back=isinstance(event, values.DestinationCancelled | values.DecodeReservationReleased),
        live=len(after.reservations),
        reused=tuple(
            sorted(
                dependency
                for block, dependency in after.tags.items()
                if block in before.tags and block in before.free and block in after.copies
            )
        ),
    )


Remembered: TypeAlias = tuple[tuple[int, ...], tuple[int, ...], int, tuple[tuple[int, int], ...]]
"""Transfers that ended, hashes that are gone, whether the only reservation evicted, and how often blocks of a pending
transfer were taken out of free capacity."""
NO_MEMORY: Final[Remembered] = ((), (), 0, ())


def remember(memory: Remembered, noted: Noted) -> tuple[Remembered, list[str]]:
    """The memory after an event, and the goals that the event reached in its light.

    Whether a reservation evicted is remembered while it is the only one; a block counts as reused under a transfer
    that reads one block only, which is up to whoever sets the scene.
    """
    ended, gone, evicting, reuse = memory
    reached: list[str] = []
    if noted.attached in ended:
        reached.append("attached_anew")
    if not set(gone).isdisjoint(noted.came):
        reached.append("stored_again")
    if evicting and noted.given_back and not noted.live:
        reached.append("cancelled_after_eviction")
    counts = dict(reuse)
    for dependency in noted.reused:
        counts[dependency] = min(2, counts.get(dependency, 0) + 1)
    if 2 in counts.values():
        reached.append("fence_outlives_tenancies")
    if noted.satisfied >= 0:
        ended = tuple(sorted({*ended, noted.satisfied}))
        counts.pop(noted.satisfied, None)
    gone = tuple(sorted({*gone, *noted.gone} - set(noted.came)))
    evicting = int(noted.live == 1 and (noted.reserved or bool(evicting)))
    return (ended, gone, evicting, tuple(sorted(counts.items()))), reached
