"""Actors whose calls are fixed: every order in which they can come is explored, and nothing else.

A call names a request and leaves to the moment what only the moment knows: the reservation's id, how much of a prefix
is resident, how far the request is computed. An allocation that finds no capacity is tried again. A call that cannot be
made yet is waited for; an optional one may be left out.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, Final, TypeAlias

from tenure.core.blocks.view import BlockView
from tenure.model_checks.blocks.contents import Ghost, resident_blocks
from tenure.model_checks.blocks.nodes import Outcome
from tenure.model_checks.blocks.players import Left
from tenure.model_checks.blocks.worlds import World
from tenure.model_checks.model import Event, Owed

IMPOSSIBLE: Final[Event] = ()
"""What a call comes to where it cannot be made now."""
END_RULE: Final = "I31"
"""Capacity that somebody waits for comes back when all who hold it are done."""


@dataclass(frozen=True, slots=True)
class Call:
    """One call of an actor.

    Attributes:
        kind: what is called, in the words of `_RESOLVERS`.
        given: its arguments.
        optional: whether it may be left out.
        behind: `(actor, calls)`: how many calls others must have behind them.
    """

    kind: str
    given: tuple[Any, ...] = ()
    optional: bool = False
    behind: tuple[tuple[str, int], ...] = ()

    def maybe(self) -> "Call":
        """The same call, which may be left out."""
        return replace(self, optional=True)

    def after(self, actor: str, calls: int) -> "Call":
        """The same call, which waits until an actor has some calls behind it."""
        return replace(self, behind=(*self.behind, (actor, calls)))


@dataclass(frozen=True, slots=True)
class Moment:
    """What a call is resolved in."""

    world: World
    view: BlockView
    ghost: Ghost


Resolver: TypeAlias = Callable[..., Event]


def _opened(_: Moment, index: int) -> Event:
    return ("LeaseOpened", index)


def _allocated(now: Moment, request: str, tokens: int | None, shares: bool) -> Event:
    lease, size = now.view.leases[request], now.world.config.block_size
    target = lease.length if tokens is None else tokens
    shared = min(resident_blocks(now.view, request), -(-target // size)) if shares else 0
    return ("AllocationRequested", request, target, shared if shared > len(lease.copies) else 0)


def _authorized(now: Moment, request: str) -> Event:
    """The authorization, if writes wait for it; else a question that changes nothing."""
    lease = now.view.leases[request]
    pending = lease.pending_writes
    if pending is not None:
        tags = [now.view.tags.get(block) for block in lease.copies[pending.start : pending.stop]]
        readers = tuple(dict.fromkeys(tag for tag in tags if tag is not None))
        if readers == pending.dependencies:
            return ("WritesAuthorized", request, *readers)
    return ("AllocationRequested", request, lease.allocated_tokens, 0)


def _computed(now: Moment, request: str, end: int | None) -> Event:
    lease, done = now.view.leases[request], now.ghost.tracks[request].computed
    return (
        "TokensComputed",
        request,
        done,
        max(done, min(lease.allocated_tokens, lease.length) if end is None else end),
    )


def _destined(_: Moment, request: str) -> Event:
    return ("DestinationRequested", request)


def _external(now: Moment, request: str, prefix: int, count: int) -> Event:
    lease = now.view.leases[request]
    names = [each for each in lease.hashes[prefix : prefix + count] if each is not None]
    if resident_blocks(now.view, request) < prefix or len(names) < count:
        return IMPOSSIBLE
    return ("ExternalPrefixRequested", request, prefix, *names)


def _reservation_of(now: Moment, request: str | None) -> int | None:
    return next((key for key, each in now.view.reservations.items() if each.request == request), None)


def _activated(now: Moment, request: str) -> Event:
    key = _reservation_of(now, request)
    if key is None or now.view.reservations[key].dependencies:
        return IMPOSSIBLE
    return ("DestinationActivated", request, key)


def _cancelled(now: Moment, request: str) -> Event:
    key = _reservation_of(now, request)
    return IMPOSSIBLE if key is None else ("DestinationCancelled", key)


def _drawn(now: Moment, request: str) -> Event:
    key, lease = _reservation_of(now, None), now.view.leases[request]
    if key is None or lease.pending_writes is not None:
        return IMPOSSIBLE
    growth = -(-lease.length // now.world.config.block_size) - len(lease.copies)
    fits = growth <= len(now.view.reservations[key].fresh)
    return ("ReservedAllocationRequested", request, lease.length, key) if fits else IMPOSSIBLE


def _given_back(now: Moment) -> Event:
    key = _reservation_of(now, None)
    return IMPOSSIBLE if key is None else ("DecodeReservationReleased", key)


def _snapshotted(now: Moment, request: str, *positions: int) -> Event:
    lease = now.view.leases.get(request)
    reach = (max(positions) + 1) * now.world.config.block_size
    if lease is None or now.ghost.tracks[request].computed < reach or len(lease.copies) <= max(positions):
        return IMPOSSIBLE
    return ("StoreSourcesSnapshotted", request, *positions)


def _snapshot_of(now: Moment, request: str) -> int | None:
    return next((key for key, each in now.view.snapshots.items() if each.request == request), None)


def _attached(now: Moment, request: str, dependency: int) -> Event:
    key = _snapshot_of(now, request)
    if key is None or dependency in now.view.dependencies:
        return IMPOSSIBLE
    is_read = not now.view.tags.keys().isdisjoint(now.view.snapshots[key].blocks)
    return IMPOSSIBLE if is_read else ("DependencyAttached", request, key, dependency)


def _discarded(now: Moment, request: str) -> Event:
    key = _snapshot_of(now, request)
    return IMPOSSIBLE if key is None else ("SnapshotDiscarded", key)


def _satisfied(now: Moment, dependency: int) -> Event:
    return ("DependencySatisfied", dependency) if dependency in now.view.dependencies else IMPOSSIBLE


def _grown(now: Moment, *requests: str) -> Event:
    open_ones = tuple(each for each in requests if each in now.view.leases)
    return ("GrowthScheduled", *open_ones) if open_ones == requests else IMPOSSIBLE


def _stepped(now: Moment, *requests: str) -> Event:
    leases = [now.view.leases.get(each) for each in requests]
    ready = all(
        each is not None
        and 0 < each.length <= each.allocated_tokens
        and each.pending_writes is None
        and each.generated < each.max_output
        for each in leases
    )
    return ("StepComputed", *requests) if ready else IMPOSSIBLE


def _named(kind: str) -> Resolver:
    """A call that is the same at every moment."""

    def resolved(_: Moment, given: str | int) -> Event:
        return (kind, given)

    return resolved


_RESOLVERS: Final[Mapping[str, Resolver]] = MappingProxyType(
    {
        "opened": _opened,
        "allocated": _allocated,
        "authorized": _authorized,
        "computed": _computed,
        "generated": _named("TokenGenerated"),
        "preempted": _named("LeasePreempted"),
        "finished": _named("LeaseFinished"),
        "reserved": _named("DecodeReservationRequested"),
        "drawn": _drawn,
        "given_back": _given_back,
        "destined": _destined,
        "external": _external,
        "activated": _activated,
        "cancelled": _cancelled,
        "snapshotted": _snapshotted,
        "attached": _attached,
        "discarded": _discarded,
        "satisfied": _satisfied,
        "grown": _grown,
        "stepped": _stepped,
    }
)


class Script:
    """Actors with their calls; implements `Players`."""

    def __init__(self, world: World, actors: Mapping[str, Sequence[Call]]) -> None:
        self._world = world
        self._names = tuple(actors)
        self._calls = tuple(tuple(calls) for calls in actors.values())
        self._starts = tuple(sum(map(len, self._calls[:place])) for place in range(len(self._calls)))

    def first(self) -> Left:
        """How many calls each actor has behind it."""
        return (0,) * len(self._calls)

    def offers(self, view: BlockView, ghost: Ghost) -> tuple[Event, ...]:
        """Every call of every actor as it would be made now."""
        now = Moment(self._world, view, ghost)
        return tuple(
            self._resolved(now, actor, call)
            for actor, calls in zip(self._names, self._calls, strict=True)
            for call in calls
        )

    @staticmethod
    def _resolved(now: Moment, actor: str, call: Call) -> Event:
        try:
            event = _RESOLVERS[call.kind](now, *call.given)
        except KeyError:
            # The request of a later call has no lease yet, or none any more.
            return IMPOSSIBLE
        return (actor, *event) if event else IMPOSSIBLE

    def _reachable(self, left: Left, place: int) -> range:
        """The calls that an actor may make next: the first, and those behind optional ones."""
        calls, stop = self._calls[place], left[place]
        while stop < len(calls) and calls[stop].optional:
            stop += 1
        return range(left[place], min(stop + 1, len(calls)))

    def allowed(self, left: Left, offers: tuple[Event, ...]) -> tuple[Event, ...]:
        """Of each actor the next calls that can be made."""
        found: dict[Event, None] = {}
        for place, calls in enumerate(self._calls):
            for index in self._reachable(left, place):
                event = offers[self._starts[place] + index]
                if event and self._may_come(left, calls[index]):
                    found[event] = None
        return tuple(found)

    def _may_come(self, left: Left, call: Call) -> bool:
        return all(left[self._names.index(actor)] >= count for actor, count in call.behind)

    def after(self, left: Left, offers: tuple[Event, ...], event: Event, outcome: Outcome) -> Left:
        """The actor has the call behind it, if it got what it asked for."""
        place = self._names.index(str(event[0]))
        index = next(each for each in self._reachable(left, place) if offers[self._starts[place] + each] == event)
        if self._calls[place][index].kind == "grown":
            # Whoever schedules a batch looks at what it got and goes on.
            return (*left[:place], index + 1, *left[place + 1 :])
        asked_anew = self._calls[place][index].kind == "authorized" and event[1] == "AllocationRequested"
        if not outcome.accepted or (asked_anew and outcome.fenced):
            return left
        return (*left[:place], index + 1, *left[place + 1 :])

    def is_done(self, left: Left, view: BlockView) -> bool:
        """Everybody is through, and nothing is held for nobody."""
        return not self.owed(left) and not view.reservations and not any(each.copies for each in view.leases.values())

    def owed(self, left: Left) -> frozenset[Owed]:
        """The actors that are not through."""
        return frozenset(
            Owed(END_RULE, f"{name} is through")
            for place, name in enumerate(self._names)
            if any(not call.optional for call in self._calls[place][left[place] :])
        )

    def is_bound(self, actor: str) -> bool:
        """Everybody goes on."""
        del actor
        return True


# --- The calls ------------------------------------------------------------------------------------------------------


def opened(index: int) -> Call:
    """A lease over a sequence of the world."""
    return Call("opened", (index,))


def allocated(request: str, tokens: int | None = None, *, shares: bool = True) -> Call:
    """Capacity for some tokens or for all, sharing what is resident."""
    return Call("allocated", (request, tokens, shares))


def authorized(request: str) -> Call:
    """The writes that wait are ordered behind their readers, if any wait."""
    return Call("authorized", (request,))


def computed(request: str, end: int | None = None) -> Call:
    """Tokens are computed from where the request stands, up to `end` or as far as it has capacity."""
    return Call("computed", (request, end))


def call(kind: str, *given: Any) -> Call:
    """Any other call: its kind and its arguments."""
    return Call(kind, given)


def lives(request: str, index: int, *, ends: bool = True) -> tuple[Call, ...]:
    """A request that is admitted, computed and done."""
    calls = (opened(index), allocated(request), authorized(request), computed(request))
    return (*calls, call("finished", request)) if ends else calls
