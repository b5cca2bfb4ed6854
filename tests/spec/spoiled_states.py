"""Good states, and for every rule of a state ways to break it by hand."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, TypeVar

from tenure.core.blocks.values import (
    DecodeReservationRequested,
    DestinationRequested,
    LeaseOpened,
    RequestId,
    WritesAuthorized,
)
from tenure.core.blocks.view import BlockView, CachedCopy, IndexEntry, PendingWrites, PrivateCopy
from tests.spec.history import History, config, fenced_pair, named

K = TypeVar("K")
V = TypeVar("V")


# --- Good states ----------------------------------------------------------------------------------------------------


def busy_history() -> History:
    """Requests 1 and 2 hold two copies each of hashes 7 and 8; 20 to 22 are inactive; 5 has a destination behind 7."""
    history = History(config(12))
    history.compute(named(1, [7, 8]))
    history.compute(named(2, [7, 8]))
    history.leave_behind(named(3, [20, 21, 22]))
    history.fence(1, [0], 5)
    history.tell(LeaseOpened(named(5, [7, 40])))
    history.tell(DestinationRequested(5))
    history.tell(DecodeReservationRequested(2))
    return history


def busy() -> BlockView:
    return busy_history().view


def waiting() -> BlockView:
    return fenced_pair().view


def authorized() -> BlockView:
    history = fenced_pair()
    history.tell(WritesAuthorized(9, (2, 1)))
    return history.view


def idle() -> BlockView:
    history = History(config(3))
    history.leave_behind(named(1, [7]))
    return history.view


# --- Ways to break them ---------------------------------------------------------------------------------------------


def put(mapping: Mapping[K, V], key: K, value: V) -> dict[K, V]:
    """A mapping with one value changed."""
    return {**mapping, key: value}


def drop(mapping: Mapping[K, V], key: K) -> dict[K, V]:
    """A mapping without one key."""
    return {name: value for name, value in mapping.items() if name != key}


def lease(view: BlockView, request: RequestId, **changes: Any) -> BlockView:
    """A view with something changed in one lease."""
    return replace(view, leases=put(view.leases, request, replace(view.leases[request], **changes)))


def reservation(view: BlockView, number: int, **changes: Any) -> BlockView:
    """A view with something changed in one reservation."""
    changed = replace(view.reservations[number], **changes)
    return replace(view, reservations=put(view.reservations, number, changed))


def writes(view: BlockView, **changes: Any) -> PendingWrites:
    """Request 9's pending writes with something changed."""
    pending = view.leases[9].pending_writes
    assert pending is not None
    return replace(pending, **changes)


def copy(view: BlockView, block: int, value: PrivateCopy | CachedCopy) -> BlockView:
    """A view with another copy in one block."""
    return replace(view, copies=put(view.copies, block, value))


def index(view: BlockView, name: int, entry: IndexEntry) -> BlockView:
    """A view with another index entry."""
    return replace(view, index=put(view.index, name, entry))


Breaker = Callable[[BlockView], BlockView]

BROKEN_STATES: list[tuple[str, Callable[[], BlockView], Breaker]] = [
    ("I01", busy, lambda v: replace(v, free=v.free[1:])),
    ("I02", busy, lambda v: reservation(v, 2, fresh=(v.free[0], v.reservations[2].fresh[1]))),
    ("I02", busy, lambda v: reservation(v, 2, fresh=(12, v.reservations[2].fresh[1]))),
    ("I02", busy, lambda v: reservation(v, 1, request=None)),
    ("I02", busy, lambda v: reservation(v, 2, prefix=((8, 1),))),
    ("I03", busy, lambda v: replace(v, lru=(v.lru[0], *v.lru))),
    ("I03", busy, lambda v: replace(v, lru_positions=v.lru_positions[::-1])),
    ("I03", busy, lambda v: replace(v, lru=v.lru[::-1])),
    ("I04", busy, lambda v: replace(v, lru=v.lru[1:], lru_positions=v.lru_positions[1:])),
    ("I05", busy, lambda v: replace(v, lru_positions=(*v.lru_positions, (99, 0)))),
    ("I06", busy, lambda v: index(v, 7, IndexEntry(0, ()))),
    ("I06", busy, lambda v: index(v, 7, IndexEntry(0, (1,)))),
    ("I06", busy, lambda v: index(v, 7, IndexEntry(0, (2, 2)))),
    ("I06", waiting, lambda v: index(v, 20, IndexEntry(0, ()))),
    ("I07", busy, lambda v: replace(v, index=drop(v.index, 8))),
    ("I07", busy, lambda v: index(v, 99, IndexEntry(0, ()))),
    ("I07", busy, lambda v: index(v, 7, IndexEntry(0, (0,)))),
    ("I09", busy, lambda v: copy(v, 0, CachedCopy(7, 1, 2))),
    ("I09", busy, lambda v: copy(v, 0, CachedCopy(8, 1, 1))),
    ("I10", busy, lambda v: copy(v, 1, CachedCopy(8, 2, 0))),
    ("I10", busy, lambda v: replace(v, copies=drop(v.copies, 1))),
    ("I10", waiting, lambda v: lease(v, 9, copies=(0, 0))),
    ("I11", busy, lambda v: replace(v, free=(*v.free, 0))),
    ("I12", busy, lambda v: replace(v, config=config(2))),
    ("I15", busy, lambda v: lease(v, 1, pending_cache=(True, False))),
    ("I15", busy, lambda v: lease(v, 1, pending_cache=(False,))),
    ("I15", waiting, lambda v: lease(v, 9, pending_cache=(False, False))),
    ("I15", waiting, lambda v: replace(v, config=config(2, prefix_caching=False))),
    ("I16", waiting, lambda v: lease(v, 9, pending_writes=None)),
    ("I16", waiting, lambda v: lease(v, 9, pending_writes=writes(v, stop=1))),
    ("I16", waiting, lambda v: lease(v, 9, pending_writes=writes(v, stop=3))),
    ("I16", waiting, lambda v: lease(v, 9, pending_writes=writes(v, dependencies=(1,)))),
    ("I16", waiting, lambda v: replace(v, authorized=frozenset({0}))),
    ("I17", waiting, lambda v: lease(v, 9, pending_writes=writes(v, dependencies=()))),
    ("I17", waiting, lambda v: lease(v, 9, pending_writes=writes(v, dependencies=(1, 1)))),
    ("I17", waiting, lambda v: lease(v, 9, pending_writes=writes(v, stop=1))),
    ("I18", busy, lambda v: lease(v, 1, allocated_tokens=4)),
    ("I18", busy, lambda v: lease(v, 1, hashes=(7,))),
    ("I20", busy, lambda v: replace(v, tags={})),
    ("I20", busy, lambda v: replace(v, tags={0: 5, 1: 5})),
    ("I20", busy, lambda v: replace(v, dependencies={5: (0,), 4: (0,)}, tags={0: 4})),
    ("I21", busy, lambda v: replace(v, authorized=frozenset({0}))),
    ("I21", authorized, lambda v: replace(v, authorized=v.authorized | {7})),
    ("I23", busy, lambda v: replace(v, attached_ever=0)),
    ("I23", busy, lambda v: replace(v, attached_ever=0, dependencies={})),
    ("I31", idle, lambda v: copy(v, 1, PrivateCopy())),
    ("I31", busy, lambda v: replace(v, leases={}, reservations={})),
    ("I32", busy, lambda v: lease(v, 1, hashes=(None, 8))),
    ("I32", busy, lambda v: lease(v, 1, hashes=(7, None))),
    ("I32", busy, lambda v: lease(v, 1, length=7)),
    ("I33", busy, lambda v: lease(v, 1, length=9)),
    ("I33", busy, lambda v: lease(v, 1, local_hashes=())),
    ("I33", busy, lambda v: lease(v, 1, generated=1)),
    ("I34", busy, lambda v: lease(v, 1, window_start=3)),
    ("I34", busy, lambda v: lease(v, 1, window_start=12)),
    ("I34", busy, lambda v: lease(v, 1, window=(1,))),
    ("I34", busy, lambda v: lease(v, 1, emit_token_ids=True)),
    ("I35", busy, lambda v: lease(v, 1, length=5)),
    ("I36", busy, lambda v: replace(v, config=config(12, prefix_caching=False))),
    ("I36", waiting, lambda v: replace(v, index={}, lru=(), config=config(2, prefix_caching=False))),
]
