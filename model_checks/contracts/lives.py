"""Contracts on the tables of legal moves: of steps, of rows, of blocks and of leases."""

from collections.abc import Iterable
from typing import Final, TypeVar

from tenure.core.blocks.lifecycles import BLOCK_MOVES, LEASE_CELLS, BlockPhase, LeasePhase
from tenure.core.rows.lifecycles import ROW_MOVES, STEP_MOVES
from tenure.core.rows.view import Occupancy, StepPhase

T = TypeVar("T")

_BLOCK_EVENTS: Final = tuple(BLOCK_MOVES)
_LEASE_EVENTS: Final = tuple(event for phase, event in LEASE_CELLS if phase is LeasePhase.CLOSED)
_RELEASES: Final = ("LeasePreempted", "LeaseFinished", "DestinationCancelled")


def _at(events: tuple[type[T], ...], place: int) -> type[T]:
    """One of them: found by comparison, since an index that is not known would make a class that is not."""
    return next(event for number, event in enumerate(events) if number == place)


def _names(kinds: Iterable[type[object]]) -> frozenset[str]:
    return frozenset(kind.__name__ for kind in kinds)


def rows_that_are_lost_come_back_only_absent(after: Occupancy) -> bool:
    """R12: what a failed write lost is nobody's until it is computed anew.

    post: _ == (after.name == "ABSENT")
    """
    return (Occupancy.LOST, after) in ROW_MOVES


def rows_are_committed_only_by_their_write(before: Occupancy) -> bool:
    """R03: a row is committed from in transit and from nowhere else.

    post: _ == (before.name == "IN_TRANSIT")
    """
    return (before, Occupancy.COMMITTED) in ROW_MOVES


def steps_are_consumed_once(after: StepPhase) -> bool:
    """R01: a step at a consumer ends, or goes back to where it can be consumed; it is never started or reserved again.

    post: _ == (after.name == "SAVED")
    """
    return (StepPhase.CONSUMING, after) in STEP_MOVES


def steps_are_published_after_they_are_reserved(before: StepPhase) -> bool:
    """R22: rows of a step are visible only when they are frozen, or were handed out and kept.

    post: _ == (before.name in ("RESERVED", "CONSUMING"))
    """
    return (before, StepPhase.SAVED) in STEP_MOVES


def every_step_may_end(phase: StepPhase) -> bool:
    """R24: from every phase there is a way to the end.

    post: _
    """
    return bool(STEP_MOVES.get((phase, None)))


def blocks_that_are_set_aside_never_become_inactive(kind: int, after: BlockPhase) -> bool:
    """I02: reserved capacity is used or given back; it is in no cache.

    pre: 0 <= kind < 13
    post: not _ or after.name in ("FREE", "PRIVATE", "IN_USE")
    """
    return (BlockPhase.RESERVED, after) in BLOCK_MOVES[_at(_BLOCK_EVENTS, kind)]


def blocks_are_cached_only_from_private_or_reserved(kind: int, before: BlockPhase) -> bool:
    """I15: a copy that nobody wrote is not cached; an inactive one is cached already.

    pre: 0 <= kind < 13
    post: not _ or before.name in ("PRIVATE", "RESERVED", "INACTIVE")
    """
    return (before, BlockPhase.IN_USE) in BLOCK_MOVES[_at(_BLOCK_EVENTS, kind)]


def only_releases_make_blocks_inactive(kind: int, before: BlockPhase) -> bool:
    """I31: a copy becomes inactive when it is let go, and by nothing else.

    pre: 0 <= kind < 13
    post: _ == (before.name == "IN_USE" and kind in _BLOCK_RELEASES)
    """
    return (before, BlockPhase.INACTIVE) in BLOCK_MOVES[_at(_BLOCK_EVENTS, kind)]


_BLOCK_RELEASES: Final = frozenset(place for place, event in enumerate(_BLOCK_EVENTS) if event.__name__ in _RELEASES)


def leases_open_once(kind: int) -> bool:
    """L02: nothing but opening leads out of a closed lease.

    pre: 0 <= kind < 15
    post: _ == (kind == _OPENING)
    """
    return bool(LEASE_CELLS[LeasePhase.CLOSED, _at(_LEASE_EVENTS, kind)].to)


_OPENING: Final = [event.__name__ for event in _LEASE_EVENTS].index("LeaseOpened")


def leases_close_only_by_finishing(phase: LeasePhase, kind: int) -> bool:
    """L02: a lease ends when its request finishes, from every phase in which it is open.

    pre: 0 <= kind < 15
    post: _ == (phase.name != "CLOSED" and kind == _FINISHING)
    """
    return LeasePhase.CLOSED in LEASE_CELLS[phase, _at(_LEASE_EVENTS, kind)].to


_FINISHING: Final = [event.__name__ for event in _LEASE_EVENTS].index("LeaseFinished")


def fenced_leases_are_not_computed(kind: int) -> bool:
    """I22: under a fence, nothing that would be written is answered without a refusal.

    pre: 0 <= kind < 15
    post: not _ or kind in _COMPUTING
    """
    names = _names(LEASE_CELLS[LeasePhase.FENCED, _at(_LEASE_EVENTS, kind)].refusals)
    return "UnauthorizedWriteError" in names


_COMPUTING: Final = frozenset(
    place for place, event in enumerate(_LEASE_EVENTS) if event.__name__ in ("TokensComputed", "StepComputed")
)


def every_cell_of_a_lease_says_something(phase: LeasePhase, kind: int) -> bool:
    """L02: whatever is told of a lease in whatever phase leads somewhere or is refused with a class of its own.

    pre: 0 <= kind < 15
    post: _
    """
    cell = LEASE_CELLS[phase, _at(_LEASE_EVENTS, kind)]
    return bool(cell.to or cell.refusals)


CONDITIONS: Final = (
    rows_that_are_lost_come_back_only_absent,
    rows_are_committed_only_by_their_write,
    steps_are_consumed_once,
    steps_are_published_after_they_are_reserved,
    every_step_may_end,
    blocks_that_are_set_aside_never_become_inactive,
    blocks_are_cached_only_from_private_or_reserved,
    only_releases_make_blocks_inactive,
    leases_open_once,
    leases_close_only_by_finishing,
    fenced_leases_are_not_computed,
    every_cell_of_a_lease_says_something,
)
