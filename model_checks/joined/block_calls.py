"""A scheduler that also generates tokens, grows leases, reserves capacity, and stores blocks elsewhere.

Each kind of call is one of a scope's `acts`; how many of those that begin something there may be, the scope bounds.
"""

from collections.abc import Iterator
from typing import Final

from tenure.core.blocks import values
from tenure.core.blocks.view import BlockView, LeaseView
from tenure.core.errors import TenureError, UnauthorizedWriteError
from tenure.core.joined.values import BlockEvent, CacheView
from tenure.model_checks.joined.model import JoinedModel, Left, left_of
from tenure.model_checks.model import Event
from tenure.model_checks.rows.cores import CoreStep
from tenure.model_checks.rows.environment import Environment
from tenure.model_checks.rows.stage import Call as MadeCall
from tenure.model_checks.rows.stage import State

TRANSFER: Final = 41
"""The one transfer of a scope."""
BEGINS: Final = ("generate", "reserve", "snapshot")
"""Acts that begin something, and of which there are only so many."""


class BlockCallsJoin(JoinedModel):
    """The joined cache under a scheduler that makes all calls of the block machine that the join passes on."""

    def _requests_may(self, seen: CacheView, left: Left) -> Iterator[Event]:
        yield from super()._requests_may(seen, left)
        yield from (("engine", *act) for act in self._acts_of(seen, left) if act[0] in self._acts)

    def _acts_of(self, seen: CacheView, left: Left) -> Iterator[tuple[str | int, ...]]:
        view = seen.blocks
        for name in self._order:
            lease, track = view.leases.get(name), seen.tracks.get(name)
            if lease is None or track is None or not lease.copies:
                continue
            yield from self._of_lease(view, name, lease)
            if left.others and not track.is_scheduled and track.computed == lease.length < self._tokens_of(name):
                yield "generate", name
            if left.others and not view.snapshots and not view.dependencies and not lease.pending_cache[0]:
                yield "snapshot", name
        if left.others and not view.reservations:
            yield "reserve", 1
        yield from (("release", key) for key in view.reservations)
        for key, snapshot in view.snapshots.items():
            yield "discard the snapshot", key
            yield "attach", key, snapshot.request
        yield from (("satisfy", dependency) for dependency in view.dependencies)

    def _of_lease(self, view: BlockView, name: str, lease: LeaseView) -> Iterator[tuple[str | int, ...]]:
        if lease.allocated_tokens < lease.length:
            yield "grow", name
            yield from (("grow from reserve", name, key) for key in view.reservations)
        if lease.pending_writes is not None:
            is_current = all(each in view.dependencies for each in lease.pending_writes.dependencies)
            yield "authorize" if is_current else "ask again", name

    def _tokens_of(self, name: str) -> int:
        """Tokens of a request whose nodes are known: its prompt, and what it may generate."""
        return len(self._requests[name].nodes)

    def _answer(self, state: State, event: Event) -> CoreStep:
        call = self._act(self._seen(state).blocks, event)
        return super()._answer(state, event) if call is None else self.cores.call(state.core, [call], event[1:])

    def _act(self, view: BlockView, event: Event) -> BlockEvent | None:
        kind, *about = event[1:]
        if kind not in self._acts:
            return None
        first = about[0]
        name, key = str(first), first if isinstance(first, int) else 0
        match kind:
            case "generate":
                return values.TokenGenerated(name, self._requests[name].generates)
            case "grow":
                return values.GrowthScheduled((name,))
            case "grow from reserve":
                return values.ReservedAllocationRequested(name, view.leases[name].length, int(about[1]))
            case "ask again":
                return values.AllocationRequested(name, view.leases[name].length)
            case "reserve":
                return values.DecodeReservationRequested(key)
            case "release":
                return values.DecodeReservationReleased(key)
            case "snapshot":
                return values.StoreSourcesSnapshotted(name, (0,))
            case "discard the snapshot":
                return values.SnapshotDiscarded(key)
            case "attach":
                return values.DependencyAttached(str(about[1]), key, TRANSFER)
            case "satisfy":
                return values.DependencySatisfied(key)
            case _:
                pending = view.leases[name].pending_writes
                assert pending is not None
                return values.WritesAuthorized(name, pending.dependencies)

    def _called(self, env: Environment, event: Event, step: CoreStep) -> Environment:
        if event[1] not in self._acts:
            return super()._called(env, event, step)
        left = left_of(env.engine)
        return env._replace(engine=left._replace(others=left.others - (event[1] in BEGINS)))

    def _is_due(self, env: Environment, call: MadeCall, error: TenureError) -> bool:
        return isinstance(error, UnauthorizedWriteError) or super()._is_due(env, call, error)

    def is_quiescent(self, state: State) -> bool:
        """Nothing is reserved, stored or waited for either."""
        view = self._seen(state).blocks
        is_held = view.reservations or view.snapshots or view.dependencies
        return not (is_held and not state.env.is_down) and super().is_quiescent(state)
