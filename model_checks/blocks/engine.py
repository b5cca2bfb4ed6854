"""A small serving engine that keeps to the protocol and is otherwise free: in every state, all it could sensibly do.

It is free to admit, compute, generate, preempt and give up in any order and in different portions; stores and transfers
run beside it. What it is allowed at all is said by its `Habits`, so that a search is bounded by what it looks at.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from tenure.core.blocks.values import RequestId
from tenure.core.blocks.view import BlockView, LeaseView
from tenure.model_checks.blocks.contents import Ghost, resident_blocks
from tenure.model_checks.blocks.nodes import Outcome
from tenure.model_checks.blocks.players import Left
from tenure.model_checks.blocks.worlds import World
from tenure.model_checks.model import Event, Owed


@dataclass(frozen=True, slots=True)
class Habits:
    """What an engine does, within which bounds.

    Attributes:
        arrivals: how often each request may come; None for no bound.
        misses: whether it also computes what it could have shared.
        chunks: whether it also allocates and computes block by block.
        crumbs: whether it also computes token by token.
        singles: whether it decodes one request at a time, by `TokenGenerated`.
        batches: whether it decodes in batches, by `StepComputed` and `GrowthScheduled`.
        preempts: whether it takes blocks from requests that go on later.
        aborts: whether requests end before they have all their output.
        decode: sizes of decode reservations, of which `decode_max` may be live.
        decode_max: live decode reservations.
        destinations: whether prompts are transferred in.
        externals: whether single blocks are.
        stores: store-source snapshots that may be live; 0 for none.
        dependencies: ids that transfers go by.
    """

    arrivals: int | None = 1
    misses: bool = False
    chunks: bool = False
    crumbs: bool = False
    singles: bool = False
    batches: bool = False
    preempts: bool = False
    aborts: bool = False
    decode: tuple[int, ...] = ()
    decode_max: int = 1
    destinations: bool = False
    externals: bool = False
    stores: int = 0
    dependencies: tuple[int, ...] = (41,)

    @property
    def generates(self) -> bool:
        """Whether there is output: also where it is decoded in batches, its first token comes with the prompt."""
        return self.singles or self.batches


class Engine:
    """An engine with its stores and transfers; implements `Players`."""

    def __init__(self, world: World, habits: Habits) -> None:
        self._world, self._habits = world, habits

    def first(self) -> Left:
        """Per request how often it may still come; nothing where there is no bound."""
        arrivals = self._habits.arrivals
        return () if arrivals is None else (arrivals,) * len(self._world.requests)

    def offers(self, view: BlockView, ghost: Ghost) -> tuple[Event, ...]:
        """All that the engine, its stores and its transfers could do now."""
        return tuple(
            dict.fromkeys(
                [
                    *self._requests(view, ghost),
                    *self._batches(view, ghost),
                    *self._reservations(view),
                    *self._stores(view, ghost),
                ]
            )
        )

    def allowed(self, left: Left, offers: tuple[Event, ...]) -> tuple[Event, ...]:
        """All but arrivals that are used up."""
        if 0 not in left:
            return offers
        spent = {request for request, count in zip(self._world.requests, left, strict=True) if not count}
        return tuple(each for each in offers if each[1] != "LeaseOpened" or each[0] not in spent)

    def after(self, left: Left, offers: tuple[Event, ...], event: Event, outcome: Outcome) -> Left:
        """One arrival less."""
        del offers
        if not left or event[1] != "LeaseOpened" or not outcome.accepted:
            return left
        place = self._world.requests.index(event[0])
        return (*left[:place], left[place] - 1, *left[place + 1 :])

    def is_done(self, left: Left, view: BlockView) -> bool:
        """Nobody has a lease, a reservation, a snapshot or a transfer, and nobody will come."""
        held = view.leases or view.reservations or view.snapshots or view.dependencies
        return not held and not any(left)

    def owed(self, left: Left) -> frozenset[Owed]:
        """Nothing: an engine may put everything off."""
        del left
        return frozenset()

    def is_bound(self, actor: str) -> bool:
        """Only transfers end by themselves."""
        return actor == "transfer"

    # --- Requests ---------------------------------------------------------------------------------------------------

    def _requests(self, view: BlockView, ghost: Ghost) -> Iterator[Event]:
        for request in self._world.requests:
            lease = view.leases.get(request)
            promised = [key for key, each in view.reservations.items() if each.request == request]
            if lease is None:
                # Of which lease a destination is cannot be asked: one that is left over goes before the next lease.
                if not promised:
                    yield from ((request, "LeaseOpened", index) for index in self._world.of(request))
                continue
            done = ghost.tracks[request].computed
            if self._habits.aborts or (lease.generated == lease.max_output and done >= lease.length - 1):
                yield (request, "LeaseFinished", request)
            if promised and not lease.copies:
                for key in promised:
                    if not view.reservations[key].dependencies:
                        yield ("transfer", "DestinationActivated", request, key)
                continue
            if self._habits.preempts and lease.copies:
                yield (request, "LeasePreempted", request)
            if lease.pending_writes is not None:
                yield self._authorize(view, request, lease)
                continue
            yield from self._grow(view, request, lease, done)
            yield from self._compute(request, lease, done)
            if not lease.copies and done == 0:
                yield from self._destine(view, request, lease)

    @staticmethod
    def _authorize(view: BlockView, request: RequestId, lease: LeaseView) -> Event:
        """The pending writes, ordered behind their readers; where some of these are done, the answer is asked anew."""
        pending = lease.pending_writes
        assert pending is not None
        tags = [view.tags.get(block) for block in lease.copies[pending.start : pending.stop]]
        readers = tuple(dict.fromkeys(tag for tag in tags if tag is not None))
        if readers == pending.dependencies:
            return (request, "WritesAuthorized", request, *readers)
        return (request, "AllocationRequested", request, lease.allocated_tokens, 0)

    def _grow(self, view: BlockView, request: RequestId, lease: LeaseView, done: int) -> Iterator[Event]:
        size, held, length = self._world.config.block_size, len(lease.copies), lease.length
        if lease.allocated_tokens >= length:
            return
        targets = [length]
        if self._habits.chunks:
            targets.append(min(length, (held + 1) * size))
        resident = resident_blocks(view, request) if done >= min(held * size, length) else 0
        for target in dict.fromkeys(targets):
            shared = min(resident, -(-target // size))
            if shared > held:
                yield (request, "AllocationRequested", request, target, shared)
            if shared <= held or self._habits.misses:
                yield (request, "AllocationRequested", request, target, 0)
        for key, each in view.reservations.items():
            if each.kind == "decode" and -(-length // size) - held <= len(each.fresh):
                yield (request, "ReservedAllocationRequested", request, length, key)

    def _compute(self, request: RequestId, lease: LeaseView, done: int) -> Iterator[Event]:
        size, reach = self._world.config.block_size, min(lease.allocated_tokens, lease.length)
        if done < reach:
            ends = [reach]
            if self._habits.chunks:
                ends.append(min(reach, (done // size + 1) * size))
            if self._habits.crumbs:
                ends.append(done + 1)
            for end in dict.fromkeys(ends):
                yield (request, "TokensComputed", request, done, end)
        elif self._habits.generates and done == lease.length and lease.generated < lease.max_output:
            yield (request, "TokenGenerated", request)

    def _destine(self, view: BlockView, request: RequestId, lease: LeaseView) -> Iterator[Event]:
        if self._habits.destinations:
            yield (request, "DestinationRequested", request)
        names = [
            name for name in lease.hashes[: lease.prompt_tokens // self._world.config.block_size] if name is not None
        ]
        if self._habits.externals and names:
            prefix = min(resident_blocks(view, request), len(names) - 1)
            yield (request, "ExternalPrefixRequested", request, prefix, names[prefix])
            if prefix + 1 < len(names):
                yield (request, "ExternalPrefixRequested", request, prefix, *names[prefix:])

    # --- The rest -----------------------------------------------------------------------------------------------------

    def _batches(self, view: BlockView, ghost: Ghost) -> Iterator[Event]:
        if not self._habits.batches:
            return
        steps: list[RequestId] = []
        growths: list[RequestId] = []
        for request, lease in view.leases.items():
            done, fenced = ghost.tracks[request].computed, lease.pending_writes is not None
            if not lease.copies or done != lease.length - 1:
                continue
            if lease.allocated_tokens < lease.length:
                fits = lease.length <= len(lease.copies) * self._world.config.block_size
                if fits or not fenced:
                    growths.append(request)
            elif lease.generated < lease.max_output and not fenced:
                steps.append(request)
        for kind, requests in (("StepComputed", steps), ("GrowthScheduled", growths)):
            if requests:
                yield ("engine", kind, *requests)
                yield ("engine", kind, *reversed(requests))
                for request in requests:
                    yield ("engine", kind, request)

    def _reservations(self, view: BlockView) -> Iterator[Event]:
        decode = [key for key, each in view.reservations.items() if each.kind == "decode"]
        if len(decode) < self._habits.decode_max:
            for blocks in self._habits.decode:
                yield ("engine", "DecodeReservationRequested", blocks)
        for key in decode:
            yield ("engine", "DecodeReservationReleased", key)
        for key, each in view.reservations.items():
            if each.kind == "destination":
                yield ("engine", "DestinationCancelled", key)

    def _stores(self, view: BlockView, ghost: Ghost) -> Iterator[Event]:
        if not self._habits.stores:
            return
        if len(view.snapshots) < self._habits.stores:
            for request, lease in view.leases.items():
                done = ghost.tracks[request].computed // self._world.config.block_size
                positions = tuple(
                    place for place in range(min(done, len(lease.copies))) if lease.hashes[place] is not None
                )
                for chosen in dict.fromkeys((positions, positions[:1], positions[-1:])):
                    if chosen:
                        yield ("store", "StoreSourcesSnapshotted", request, *chosen)
        idle = [each for each in self._habits.dependencies if each not in view.dependencies]
        for key, each in view.snapshots.items():
            yield ("store", "SnapshotDiscarded", key)
            if view.tags.keys().isdisjoint(each.blocks):
                for dependency in idle:
                    yield ("store", "DependencyAttached", each.request, key, dependency)
        for dependency in view.dependencies:
            yield ("transfer", "DependencySatisfied", dependency)
