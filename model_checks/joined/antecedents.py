"""Where each rule of the joined cache had something to say."""

from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Final

from tenure.core.blocks.values import AllocationRequested, PublishRemoved, PublishStored
from tenure.core.blocks.view import CachedCopy
from tenure.core.joined.values import CacheView
from tenure.core.rows.commands import PreserveRows
from tenure.core.rows.events import SavePublished
from tenure.core.rows.view import ReadPhase
from tenure.spec.joined.rules import CacheObservation


def _shares(seen: CacheObservation) -> bool:
    """A prefix hit was granted."""
    return isinstance(seen.event, AllocationRequested) and seen.event.reusable_blocks > 0


def _is_shared(view: CacheView) -> bool:
    """Some lease holds a block that others may share."""
    copies = view.blocks.copies
    return any(
        isinstance(copies.get(block), CachedCopy) for lease in view.blocks.leases.values() for block in lease.copies
    )


def _waits_for_the_pool(view: CacheView) -> bool:
    return any(read.phase is ReadPhase.PLANNED and read.pool for read in view.rows.reads.values())


def _tells(seen: CacheObservation) -> bool:
    return any(isinstance(each, PublishStored | PublishRemoved) for each in seen.commands)


ANTECEDENTS: Final[Mapping[str, Callable[[CacheObservation], bool]]] = MappingProxyType(
    {
        "X01": lambda seen: bool(seen.after.blocks.index),
        "X02": lambda seen: isinstance(seen.event, SavePublished),
        "X03": lambda seen: _waits_for_the_pool(seen.after),
        "X04": _tells,
        "X05": lambda seen: _is_shared(seen.after),
    }
)
GOALS: Final[Mapping[str, Callable[[CacheObservation], bool]]] = MappingProxyType(
    {
        "prefix_shared": _shares,
        "shared_before_its_rows": lambda seen: _shares(seen) and bool(seen.before.unsaved),
        "removed_under_pressure": lambda seen: any(isinstance(each, PublishRemoved) for each in seen.commands),
        "read_preserved_in_join": lambda seen: any(isinstance(each, PreserveRows) for each in seen.commands),
    }
)


def exercised_by_join(seen: CacheObservation) -> Iterator[str]:
    """The marks of the rules to which an accepted event gave something to judge, and of what was reached."""
    for rule, holds in ANTECEDENTS.items():
        if holds(seen):
            yield f"rule {rule}"
    for goal, reached in GOALS.items():
        if reached(seen):
            yield f"goal {goal}"
