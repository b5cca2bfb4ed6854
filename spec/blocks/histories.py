"""Which event comes next in a history that is made of numbers."""

from collections.abc import Callable
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
    RequestId,
    ReservedAllocationRequested,
    SnapshotDiscarded,
    StepComputed,
    StoreSourcesSnapshotted,
    TokenGenerated,
    TokensComputed,
    WritesAuthorized,
)
from tenure.core.blocks.view import BlockView, LeaseView
from tenure.spec.blocks import chooser
from tenure.spec.choices import Choices

Maker: TypeAlias = Callable[[BlockView, Choices], Event]


def open_lease(view: BlockView, choices: Choices) -> Event:
    """A request arrives."""
    return LeaseOpened(chooser.some_sequence(view, choices))


def allocate(view: BlockView, choices: Choices) -> Event:
    """A lease asks for capacity."""
    request, lease = chooser.some_lease(view, choices)
    return AllocationRequested(request, *chooser.some_allocation(view, lease, choices))


def allocate_reserved(view: BlockView, choices: Choices) -> Event:
    """A lease draws on a decode reservation."""
    number, _ = some_reservation(view, choices, "decode")
    request, lease = chooser.some_lease(view, choices)
    return ReservedAllocationRequested(request, chooser.some_allocation(view, lease, choices)[0], number)


def authorize(view: BlockView, choices: Choices) -> Event:
    """A lease's pending writes are ordered behind their readers."""
    request, lease = chooser.some_lease(view, choices, chooser.is_waiting)
    return WritesAuthorized(request, chooser.some_dependencies(view, lease, choices))


def compute(view: BlockView, choices: Choices) -> Event:
    """Tokens of a lease were computed."""
    request, lease = chooser.some_lease(view, choices, chooser.is_hidden)
    return TokensComputed(request, *chooser.some_range(view, lease, choices))


def generate(view: BlockView, choices: Choices) -> Event:
    """A request gets its next token."""
    return TokenGenerated(chooser.some_lease(view, choices, chooser.can_generate)[0], chooser.some_token(choices))


def schedule_growth(view: BlockView, choices: Choices) -> Event:
    """A batch of requests asks for capacity."""
    return GrowthScheduled(chooser.some_batch(view, choices))


def compute_step(view: BlockView, choices: Choices) -> Event:
    """A decode step of a batch ended."""
    requests = chooser.some_batch(view, choices, chooser.can_step)
    return StepComputed(requests, chooser.some_tokens(len(requests), choices))


def preempt(view: BlockView, choices: Choices) -> Event:
    """A request gives its blocks up."""
    return LeasePreempted(chooser.some_request(view, choices))


def finish(view: BlockView, choices: Choices) -> Event:
    """A request ends."""
    return LeaseFinished(chooser.some_request(view, choices))


def reserve_decode(view: BlockView, choices: Choices) -> Event:
    """Capacity is set aside for growth."""
    del view
    return DecodeReservationRequested(choices.often([1, 2, 3, 4], 0, -1))


def release_decode(view: BlockView, choices: Choices) -> Event:
    """A decode reservation goes back."""
    return DecodeReservationReleased(some_reservation(view, choices, "decode")[0])


def reserve_destination(view: BlockView, choices: Choices) -> Event:
    """A transferred prompt asks for room."""
    return DestinationRequested(chooser.some_lease(view, choices, chooser.is_empty)[0])


def reserve_external(view: BlockView, choices: Choices) -> Event:
    """A transferred suffix asks for room behind a resident prefix."""
    request, lease = chooser.some_lease(view, choices, chooser.is_empty)
    return ExternalPrefixRequested(request, *chooser.some_suffix(view, lease, choices))


def activate(view: BlockView, choices: Choices) -> Event:
    """A transfer landed."""
    number, owner = some_reservation(view, choices, "destination")
    stranger = chooser.some_request(view, choices)
    return DestinationActivated(choices.often([stranger if owner is None else owner], stranger), number)


def cancel(view: BlockView, choices: Choices) -> Event:
    """A destination is given up."""
    return DestinationCancelled(some_reservation(view, choices, "destination")[0])


def snapshot(view: BlockView, choices: Choices) -> Event:
    """A store wants to read blocks."""
    request, lease = chooser.some_lease(view, choices, chooser.is_readable)
    return StoreSourcesSnapshotted(request, chooser.some_positions(lease, choices))


def discard(view: BlockView, choices: Choices) -> Event:
    """A store changes its mind."""
    return SnapshotDiscarded(chooser.some_id(tuple(view.snapshots), choices))


def attach(view: BlockView, choices: Choices) -> Event:
    """A store is admitted."""
    number = chooser.some_id(tuple(view.snapshots), choices)
    stranger = chooser.some_request(view, choices)
    snapshot_view = view.snapshots.get(number)
    owner = stranger if snapshot_view is None else snapshot_view.request
    return DependencyAttached(choices.often([owner], stranger), number, choices.pick([1, 2, 3, 1]))


def satisfy(view: BlockView, choices: Choices) -> Event:
    """A transfer ends."""
    return DependencySatisfied(chooser.some_id(tuple(view.dependencies), choices))


def some_reservation(view: BlockView, choices: Choices, kind: str) -> tuple[int, RequestId | None]:
    """A live reservation of a kind with its owner; rarely of the other kind, or dead."""
    wanted = [number for number, each in view.reservations.items() if each.kind == kind]
    number = choices.often(wanted or [chooser.DEAD_ID], *view.reservations, chooser.DEAD_ID)
    reservation = view.reservations.get(number)
    return number, None if reservation is None else reservation.request


MAKERS: Final[tuple[Maker, ...]] = (
    open_lease,
    allocate,
    compute,
    generate,
    schedule_growth,
    compute_step,
    preempt,
    finish,
    reserve_decode,
    release_decode,
    allocate_reserved,
    reserve_destination,
    reserve_external,
    activate,
    cancel,
    snapshot,
    attach,
    discard,
    satisfy,
    authorize,
)
"""One maker for each kind of event."""


def _any_lease(fits: Callable[[LeaseView], object]) -> Callable[[BlockView], object]:
    return lambda view: any(map(fits, view.leases.values()))


def _any_reservation(kind: str) -> Callable[[BlockView], object]:
    return lambda view: any(each.kind == kind for each in view.reservations.values())


SENSIBLE: Final[tuple[tuple[Maker, int, Callable[[BlockView], object]], ...]] = (
    (open_lease, 5, lambda view: len(view.leases) < len(chooser.REQUESTS)),
    (allocate, 6, lambda view: view.leases),
    (compute, 6, _any_lease(chooser.is_hidden)),
    (generate, 1, _any_lease(chooser.can_generate)),
    (schedule_growth, 1, lambda view: view.leases),
    (compute_step, 3, _any_lease(chooser.can_step)),
    (preempt, 1, _any_lease(lambda lease: lease.copies)),
    (finish, 2, lambda view: view.leases),
    (reserve_decode, 1, lambda view: view.lru or len(view.reservations) < 2),
    (release_decode, 1, _any_reservation("decode")),
    (allocate_reserved, 3, _any_reservation("decode")),
    (reserve_destination, 1, _any_lease(chooser.is_empty)),
    (reserve_external, 1, _any_lease(chooser.is_empty)),
    (activate, 3, _any_reservation("destination")),
    (cancel, 1, _any_reservation("destination")),
    (snapshot, 4, _any_lease(chooser.is_readable)),
    (attach, 8, lambda view: view.snapshots),
    (discard, 1, lambda view: view.snapshots),
    (satisfy, 1, lambda view: view.dependencies),
    (authorize, 3, _any_lease(chooser.is_waiting)),
)
"""Each maker, how often it is wanted, and when it can make an event that does something."""


def next_event(view: BlockView, choices: Choices) -> Event:
    """What is told to the machine next; mostly something that can be done now."""
    sensible: list[Maker] = []
    for maker, weight, when in SENSIBLE:
        if when(view):
            sensible += [maker] * weight
    return choices.often(sensible, choices.pick(MAKERS))(view, choices)
