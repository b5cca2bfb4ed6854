"""The lives of a block and of a lease as data: what every event may do to each, and what it is refused with.

What is not in these tables is illegal. The spec holds every transition against them (L01, L02); the tests go through
every cell; the diagrams in the docs are drawn from them. The handlers do not ask them: their guards say the same in the
terms of their own errors, and a look-up per block would cost what the machine is built to save.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType
from typing import Final, TypeAlias

from tenure.core.blocks.values import (
    AllocationRequested,
    DecodeReservationReleased,
    DecodeReservationRequested,
    DependencyAttached,
    DependencySatisfied,
    DestinationActivated,
    DestinationCancelled,
    DestinationRequested,
    Event,
    ExternalPrefixRequested,
    GrowthScheduled,
    LeaseFinished,
    LeaseOpened,
    LeasePreempted,
    ReservedAllocationRequested,
    SnapshotDiscarded,
    StepComputed,
    StoreSourcesSnapshotted,
    TokenGenerated,
    TokensComputed,
    WritesAuthorized,
)
from tenure.core.blocks.view import BlockView, PrivateCopy
from tenure.core.errors import (
    BlockNotHeldError,
    ContractError,
    FencedGrowthError,
    LeaseAlreadyOpenError,
    LeaseResidentError,
    NothingToAuthorizeError,
    UnauthorizedWriteError,
    UnknownLeaseError,
    UnknownSnapshotError,
)


class BlockPhase(Enum):
    """Where one physical block is in its life."""

    FREE = "free"
    RESERVED = "reserved"
    PRIVATE = "private"
    IN_USE = "cached, in use"
    INACTIVE = "cached, inactive"


BlockMove: TypeAlias = tuple[BlockPhase, BlockPhase]

_FREE, _RESERVED, _PRIVATE = BlockPhase.FREE, BlockPhase.RESERVED, BlockPhase.PRIVATE
_IN_USE, _INACTIVE = BlockPhase.IN_USE, BlockPhase.INACTIVE

_SET_ASIDE: Final = frozenset({(_FREE, _RESERVED), (_INACTIVE, _RESERVED)})
_RELEASED: Final = frozenset({(_PRIVATE, _FREE), (_IN_USE, _INACTIVE)})

BLOCK_MOVES: Final[Mapping[type[Event], frozenset[BlockMove]]] = MappingProxyType(
    {
        # A hit is referenced; an evicted block gets its new holder in the same event.
        AllocationRequested: frozenset({(_FREE, _PRIVATE), (_INACTIVE, _PRIVATE), (_INACTIVE, _IN_USE)}),
        GrowthScheduled: frozenset({(_FREE, _PRIVATE), (_INACTIVE, _PRIVATE)}),
        ReservedAllocationRequested: frozenset({(_RESERVED, _PRIVATE)}),
        TokensComputed: frozenset({(_PRIVATE, _IN_USE)}),
        StepComputed: frozenset({(_PRIVATE, _IN_USE)}),
        LeasePreempted: _RELEASED,
        LeaseFinished: _RELEASED,
        DecodeReservationRequested: _SET_ASIDE,
        DecodeReservationReleased: frozenset({(_RESERVED, _FREE)}),
        DestinationRequested: _SET_ASIDE | {(_INACTIVE, _IN_USE)},
        ExternalPrefixRequested: _SET_ASIDE | {(_INACTIVE, _IN_USE)},
        # A partial tail stays private; so does everything where caching is off.
        DestinationActivated: frozenset({(_RESERVED, _PRIVATE), (_RESERVED, _IN_USE)}),
        DestinationCancelled: frozenset({(_RESERVED, _FREE), (_IN_USE, _INACTIVE)}),
    }
)
"""Per event the moves that blocks make; an event that is not listed moves none."""


def block_phases(view: BlockView) -> dict[int, BlockPhase]:
    """The phase of every block that is not free."""
    phases: dict[int, BlockPhase] = {}
    for reservation in view.reservations.values():
        phases.update(dict.fromkeys(reservation.fresh, _RESERVED))
    for block, copy in view.copies.items():
        if isinstance(copy, PrivateCopy):
            phases[block] = _PRIVATE
        else:
            phases[block] = _IN_USE if copy.references or copy.pins else _INACTIVE
    return phases


class LeasePhase(Enum):
    """Where a request's lease is in its life."""

    CLOSED = "closed"
    EMPTY = "empty"
    HELD = "held"
    FENCED = "fenced"


@dataclass(frozen=True, slots=True)
class Cell:
    """What one event may do to a lease in one phase.

    Attributes:
        to: the phases it may lead to; none if it is always refused.
        refusals: the errors that belong to this phase. Errors of arguments (counts, positions, unknown
            reservations) may come in any phase and are not listed.
    """

    to: frozenset[LeasePhase]
    refusals: frozenset[type[ContractError]]


def _cell(*outcomes: LeasePhase | type[ContractError]) -> Cell:
    return Cell(
        frozenset(each for each in outcomes if isinstance(each, LeasePhase)),
        frozenset(each for each in outcomes if not isinstance(each, LeasePhase)),
    )


_CLOSED, _EMPTY, _HELD, _FENCED = LeasePhase.CLOSED, LeasePhase.EMPTY, LeasePhase.HELD, LeasePhase.FENCED

_OPEN_CELLS: Final[Mapping[type[Event], tuple[Cell, Cell, Cell]]] = {
    # event: a lease that is EMPTY, HELD, FENCED
    LeaseOpened: (_cell(LeaseAlreadyOpenError), _cell(LeaseAlreadyOpenError), _cell(LeaseAlreadyOpenError)),
    AllocationRequested: (
        _cell(_EMPTY, _HELD, _FENCED),
        _cell(_HELD, _FENCED),
        _cell(_FENCED, _HELD, FencedGrowthError),
    ),
    GrowthScheduled: (
        _cell(_EMPTY, _HELD, _FENCED),
        _cell(_HELD, _FENCED),
        _cell(_FENCED, _HELD, FencedGrowthError),
    ),
    ReservedAllocationRequested: (
        _cell(_EMPTY, _HELD, _FENCED),
        _cell(_HELD, _FENCED),
        _cell(_FENCED, _HELD, FencedGrowthError),
    ),
    WritesAuthorized: (_cell(NothingToAuthorizeError), _cell(NothingToAuthorizeError), _cell(_HELD)),
    TokensComputed: (_cell(_EMPTY, BlockNotHeldError), _cell(_HELD), _cell(_FENCED, UnauthorizedWriteError)),
    StepComputed: (_cell(_EMPTY, BlockNotHeldError), _cell(_HELD), _cell(_FENCED, UnauthorizedWriteError)),
    TokenGenerated: (_cell(_EMPTY), _cell(_HELD), _cell(_FENCED)),
    LeasePreempted: (_cell(_EMPTY), _cell(_EMPTY), _cell(_EMPTY)),
    LeaseFinished: (_cell(_CLOSED), _cell(_CLOSED), _cell(_CLOSED)),
    DestinationRequested: (_cell(_EMPTY), _cell(LeaseResidentError), _cell(LeaseResidentError)),
    ExternalPrefixRequested: (_cell(_EMPTY), _cell(LeaseResidentError), _cell(LeaseResidentError)),
    DestinationActivated: (_cell(_EMPTY, _HELD), _cell(LeaseResidentError), _cell(LeaseResidentError)),
    StoreSourcesSnapshotted: (_cell(_EMPTY), _cell(_HELD), _cell(_FENCED)),
    DependencyAttached: (_cell(UnknownSnapshotError), _cell(_HELD), _cell(_FENCED)),
}

LEASE_CELLS: Final[Mapping[tuple[LeasePhase, type[Event]], Cell]] = MappingProxyType(
    {
        **{(_CLOSED, event): _cell(UnknownLeaseError) for event in _OPEN_CELLS},
        (_CLOSED, LeaseOpened): _cell(_EMPTY),
        # Its snapshots died with the lease.
        (_CLOSED, DependencyAttached): _cell(UnknownSnapshotError),
        **{
            (phase, event): cell
            for event, cells in _OPEN_CELLS.items()
            for phase, cell in zip((_EMPTY, _HELD, _FENCED), cells, strict=True)
        },
    }
)
"""Per phase and event that names a request: what it leads to. No other event moves a lease."""


def lease_phase(view: BlockView, request: int | str) -> LeasePhase:
    """The phase of a request's lease."""
    lease = view.leases.get(request)
    if lease is None:
        return _CLOSED
    if lease.pending_writes is not None:
        return _FENCED
    return _HELD if lease.copies else _EMPTY


def named_requests(event: Event) -> tuple[int | str, ...]:
    """The requests that an event is about."""
    match event:
        case LeaseOpened(sequence):
            return (sequence.request,)
        case GrowthScheduled(requests) | StepComputed(requests):
            return requests
        case (
            DecodeReservationRequested()
            | DecodeReservationReleased()
            | DestinationCancelled()
            | SnapshotDiscarded()
            | DependencySatisfied()
        ):
            return ()
        case _:
            return (event.request,)


def block_diagram() -> str:
    """The life of a block as a Mermaid state diagram, drawn from `BLOCK_MOVES`."""
    lines = ["stateDiagram-v2"]
    lines += [f'  state "{phase.value}" as {phase.name}' for phase in BlockPhase]
    lines.append(f"  [*] --> {_FREE.name}")
    events: dict[BlockMove, list[str]] = {}
    for event, moves in BLOCK_MOVES.items():
        for move in moves:
            events.setdefault(move, []).append(event.__name__)
    order = list(BlockPhase)
    for move in sorted(events, key=lambda move: (order.index(move[0]), order.index(move[1]))):
        lines.append(f"  {move[0].name} --> {move[1].name}: {', '.join(events[move])}")
    return "\n".join(lines)


def lease_diagram() -> str:
    """The life of a lease as a Mermaid state diagram, drawn from `LEASE_CELLS`; events that stay are left out."""
    lines = ["stateDiagram-v2", f"  [*] --> {_CLOSED.name}"]
    events: dict[tuple[LeasePhase, LeasePhase], list[str]] = {}
    for (phase, event), cell in LEASE_CELLS.items():
        for to in LeasePhase:
            if to in cell.to and to is not phase:
                events.setdefault((phase, to), []).append(event.__name__)
    lines += [f"  {phase.name} --> {to.name}: {', '.join(names)}" for (phase, to), names in events.items()]
    return "\n".join(lines)
