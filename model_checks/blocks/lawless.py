"""An engine that keeps to nothing: every call at any time, with arguments that fit and arguments that do not.

Each call is either accepted, and then it breaks no rule, or refused with a typed error, and then it changes nothing
(I14). Bounded are only what is live at a time (reservations, snapshots) and the ids of transfers.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple

from tenure.core.blocks.values import BlockHash, RequestId, ReservationId, SnapshotId
from tenure.core.blocks.view import BlockView
from tenure.core.config import U32_MAX
from tenure.model_checks.blocks.contents import Ghost, resident_blocks
from tenure.model_checks.blocks.nodes import Outcome
from tenure.model_checks.blocks.players import Left
from tenure.model_checks.blocks.worlds import World
from tenure.model_checks.model import Event, Owed

STRANGER: Final = "nobody"
DEAD: Final = 99
FOREIGN_NAME: Final = 5


@dataclass(frozen=True, slots=True)
class Licence:
    """What a lawless engine is kept from, so that a search ends.

    Attributes:
        reservations: live reservations.
        dependencies: ids of transfers.
        batches: whether it does so in batches.
        destinations: whether prompts are transferred in.
        decode: sizes of decode reservations.
        fences: whether stores read blocks.
    """

    reservations: int = 1
    dependencies: tuple[int, ...] = (41,)
    batches: bool = False
    destinations: bool = False
    decode: tuple[int, ...] = ()
    fences: bool = False


class Looked(NamedTuple):
    """What a lawless engine looks at of an open lease."""

    length: int
    hashes: tuple[BlockHash | None, ...]
    resident: int
    is_empty: bool


class Sight(NamedTuple):
    """All that a lawless engine looks at; the same sight makes it offer the same calls."""

    leases: tuple[Looked | None, ...]
    reservations: tuple[ReservationId, ...]
    snapshots: tuple[SnapshotId, ...]


class Lawless:
    """Whoever calls whatever it likes; implements `Players`."""

    def __init__(self, world: World, licence: Licence) -> None:
        self._world, self._licence = world, licence
        self._known: dict[Sight, tuple[Event, ...]] = {}

    def first(self) -> Left:
        """No bound."""
        return ()

    def offers(self, view: BlockView, ghost: Ghost) -> tuple[Event, ...]:
        """All kinds of calls with a few arguments each, right and wrong."""
        del ghost
        sight = Sight(
            tuple(_looked(view, request) for request in self._world.requests),
            tuple(view.reservations),
            tuple(view.snapshots),
        )
        known = self._known.get(sight)
        if known is None:
            known = self._known[sight] = tuple(dict.fromkeys(("anybody", *call) for call in self._calls(sight)))
        return known

    def allowed(self, left: Left, offers: tuple[Event, ...]) -> tuple[Event, ...]:
        """All of them."""
        del left
        return offers

    def after(self, left: Left, offers: tuple[Event, ...], event: Event, outcome: Outcome) -> Left:
        """Nothing is used up."""
        del offers, event, outcome
        return left

    def is_done(self, left: Left, view: BlockView) -> bool:
        """There is always something to call."""
        del left, view
        return False

    def owed(self, left: Left) -> frozenset[Owed]:
        """Nothing."""
        del left
        return frozenset()

    def is_bound(self, actor: str) -> bool:
        """Nobody is."""
        del actor
        return False

    def _calls(self, sight: Sight) -> Iterator[Event]:
        for request, lease in zip((*self._world.requests, STRANGER), (*sight.leases, None), strict=True):
            yield from self._of_request(sight, request, lease)
        yield from self._of_reservations(sight)
        if self._licence.fences:
            yield from self._of_stores(sight)
        if self._licence.batches:
            yield from self._of_batches()

    def _of_request(self, sight: Sight, request: RequestId, lease: Looked | None) -> Iterator[Event]:
        if lease is None:
            yield from (("LeaseOpened", index) for index in self._world.of(request))
            if request == STRANGER or request == self._world.requests[0]:
                yield from self._of_lease(sight, request, None)
            return
        yield ("LeaseOpened", self._world.of(request)[0])
        yield from self._of_lease(sight, request, lease)

    def _of_lease(self, sight: Sight, request: RequestId, lease: Looked | None) -> Iterator[Event]:
        size = self._world.config.block_size
        length = 2 * size if lease is None else lease.length
        table = length if lease is None else len(lease.hashes) * size
        resident = 0 if lease is None else lease.resident
        for tokens in (1, length, length - 1, table + 1, -1):
            yield ("AllocationRequested", request, tokens, 0)
        for shared in {1, resident, resident + 1, 9, -1} - {0}:
            yield ("AllocationRequested", request, length, shared)
        yield from (("TokensComputed", request, *each) for each in _ranges(length, size))
        yield ("TokenGenerated", request)
        yield ("TokenGenerated", request, U32_MAX + 1)
        yield ("LeasePreempted", request)
        yield ("LeaseFinished", request)
        if self._licence.destinations:
            yield from self._transfers(request, lease, has_room=len(sight.reservations) < self._licence.reservations)
        if self._licence.fences:
            one, *_ = self._licence.dependencies
            yield from (("WritesAuthorized", request, *each) for each in ((), (one,), self._licence.dependencies))
            for positions in ((0,), (0, 1), (1, 0), ()):
                yield ("StoreSourcesSnapshotted", request, *positions)
            for key in (*sight.snapshots, DEAD):
                for dependency in (*self._licence.dependencies, -1):
                    yield ("DependencyAttached", request, key, dependency)
        for key in (*sight.reservations, DEAD):
            if self._licence.decode:
                yield ("ReservedAllocationRequested", request, length, key)
                yield ("ReservedAllocationRequested", request, 1, key)
            yield ("DestinationActivated", request, key)

    @staticmethod
    def _transfers(request: RequestId, lease: Looked | None, *, has_room: bool) -> Iterator[Event]:
        """Requests for room; what would be granted only while another reservation may be live."""
        yield ("ExternalPrefixRequested", request, 0)
        yield ("ExternalPrefixRequested", request, 0, FOREIGN_NAME)
        yield ("ExternalPrefixRequested", request, -1, FOREIGN_NAME)
        yield ("ExternalPrefixRequested", request, 9, FOREIGN_NAME)
        if lease is not None and lease.is_empty and not has_room:
            return
        names = () if lease is None else tuple(each for each in lease.hashes if each is not None)
        yield ("DestinationRequested", request)
        for prefix in range(min(2, len(names))):
            yield ("ExternalPrefixRequested", request, prefix, *names[prefix:])

    def _of_reservations(self, sight: Sight) -> Iterator[Event]:
        if self._licence.decode:
            yield ("DecodeReservationRequested", -1)
        for key in (*sight.reservations, DEAD):
            yield ("DecodeReservationReleased", key)
            yield ("DestinationCancelled", key)
        if len(sight.reservations) < self._licence.reservations:
            yield from (("DecodeReservationRequested", blocks) for blocks in self._licence.decode)

    def _of_stores(self, sight: Sight) -> Iterator[Event]:
        yield from (("SnapshotDiscarded", key) for key in (*sight.snapshots, DEAD))
        yield from (("DependencySatisfied", dependency) for dependency in self._licence.dependencies)

    def _of_batches(self) -> Iterator[Event]:
        requests = self._world.requests
        for batch in (requests, requests[::-1], requests[:1], (requests[0], STRANGER), requests[:1] * 2):
            yield ("GrowthScheduled", *batch)
            yield ("StepComputed", *batch)
        yield ("StepComputed", requests[0], 8)
        yield ("StepComputed", *requests, 8)
        yield ("StepComputed", requests[0], U32_MAX + 1)


def _looked(view: BlockView, request: RequestId) -> Looked | None:
    lease = view.leases.get(request)
    if lease is None:
        return None
    return Looked(lease.length, lease.hashes, resident_blocks(view, request), not lease.copies)


def _ranges(length: int, size: int) -> dict[tuple[int, int], None]:
    ranges = [(0, length), (0, size), (size, length), (length, length), (size + 1, size), (-1, size), (0, -1)]
    return dict.fromkeys(ranges)
