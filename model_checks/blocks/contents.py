"""The ghost memory of a search: what honest actors wrote into which block, and what they take it for.

The machine knows names, not bytes. Here the bytes are symbols: a block's content is the tokens computed into it and all
before them. A prefix hit on a block with another content, a name on a block that was not written in full, and a
write into a block under its reader are then plain facts.

Rules: I06 (a name stands for one content), I15 (a name stands for computed content), I22 (readers are waited for).
"""

from typing import Final, NamedTuple, TypeAlias

from tenure.core.blocks import values
from tenure.core.blocks.values import BlockId, RequestId
from tenure.core.blocks.view import BlockView, CachedCopy, PrivateCopy
from tenure.model_checks.blocks.forms import Form, Names
from tenure.model_checks.blocks.worlds import Content, World
from tenure.model_checks.model import Broken
from tenure.spec.blocks.rule import Observation


class Track(NamedTuple):
    """What an engine knows of a request with an open lease: its sequence, and how much of it is computed."""

    sequence: int
    computed: int


class Ghost(NamedTuple):
    """What is known beside the machine.

    Attributes:
        tracks: every request with an open lease.
        contents: every block that somebody wrote and nobody gave away since.
    """

    tracks: dict[RequestId, Track]
    contents: dict[BlockId, Content]


GhostForm: TypeAlias = Form
EMPTY: Final = Ghost({}, {})


def freeze_ghost(ghost: Ghost, names: Names) -> GhostForm:
    """A ghost as plain values, under canonical block names."""
    return (
        tuple(sorted((str(request), *track) for request, track in ghost.tracks.items())),
        tuple(sorted((names[block], content) for block, content in ghost.contents.items())),
    )


def thaw_ghost(form: GhostForm) -> Ghost:
    """The ghost of a form."""
    return Ghost({request: Track(index, done) for request, index, done in form[0]}, dict(form[1]))


def follow(world: World, ghost: Ghost, sequence: int, seen: Observation) -> tuple[Ghost, list[Broken]]:
    """What is known after an accepted event, and what it contradicts; `sequence` is that of an opened lease."""
    memory = _Memory(world, ghost, seen)
    memory.take(sequence)
    memory.forget()
    return Ghost(memory.tracks, memory.contents), memory.broken


class _Memory:
    """The memory while one event is taken in."""

    def __init__(self, world: World, ghost: Ghost, seen: Observation) -> None:
        self.world, self.seen = world, seen
        self.tracks, self.contents = dict(ghost.tracks), dict(ghost.contents)
        self.broken: list[Broken] = []

    def take(self, sequence: int) -> None:
        """Whatever the event says of tokens and blocks."""
        seen, event = self.seen, self.seen.event
        match event:
            case values.LeaseOpened():
                self.tracks[event.sequence.request] = Track(sequence, 0)
            case values.LeaseFinished():
                del self.tracks[event.request]
            case values.LeasePreempted():
                self._compute(event.request, 0)
            case values.AllocationRequested() if isinstance(seen.answer, values.Ready):
                held = len(seen.before.leases[event.request].copies)
                self._served(event.request, event.tokens)
                self._hit(event.request, held, min(event.reusable_blocks, held + len(seen.answer.blocks)))
            case values.GrowthScheduled() if isinstance(seen.answer, values.GrowthReady):
                self._grow(event.requests, seen.answer.served)
            case values.TokensComputed():
                self._write(event.request, event.before, event.after)
            case values.StepComputed():
                for request in event.requests:
                    length = seen.before.leases[request].length
                    self._write(request, length - 1, length)
            case values.DestinationActivated():
                self._activate(event)
            case _:
                pass

    def forget(self) -> None:
        """Blocks that were given away hold nothing that anybody may count on; names are held against contents."""
        before, after = self.seen.before, self.seen.after
        for block in [each for each in self.contents if each not in after.copies]:
            del self.contents[block]
        for block, copy in after.copies.items():
            then = before.copies.get(block)
            if isinstance(copy, PrivateCopy):
                if not isinstance(then, PrivateCopy) and not self._is_written(block):
                    self.contents.pop(block, None)
            elif not isinstance(then, CachedCopy) or then.block_hash != copy.block_hash:
                self._check_name(block, copy)

    def _is_written(self, block: BlockId) -> bool:
        event = self.seen.event
        return isinstance(event, values.DestinationActivated) and block in self.seen.after.leases[event.request].copies

    def _compute(self, request: RequestId, computed: int) -> None:
        self.tracks[request] = self.tracks[request]._replace(computed=computed)

    def _served(self, request: RequestId, tokens: int) -> None:
        """The engine takes the answer for capacity for so many tokens."""
        found = self.seen.after.leases[request].allocated_tokens
        if found < tokens:
            self._break("I18", f"{found} tokens are allocated to {request!r}, which was told that {tokens} are")

    def _grow(self, requests: tuple[RequestId, ...], served: int) -> None:
        """Those served have capacity for all they know; the others are as they were."""
        before, after = self.seen.before.leases, self.seen.after.leases
        for request in requests[:served]:
            self._served(request, before[request].length)
        for request in requests[served:]:
            if before[request] != after[request]:
                self._break("I13", f"the lease of {request!r} changed although it was told that there is no capacity")

    def _hit(self, request: RequestId, start: int, stop: int) -> None:
        """The engine takes the blocks at positions `[start, stop)` for computed."""
        if start >= stop:
            return
        index, lease, size = (
            self.tracks[request].sequence,
            self.seen.after.leases[request],
            self.world.config.block_size,
        )
        for position in range(start, stop):
            wanted = self.world.content(index, position, lease.length)
            found = self.contents.get(lease.copies[position])
            if found is None:
                block = lease.copies[position]
                self._break("I15", f"block {block} is a hit at position {position} of {request!r} and was not written")
            elif found != wanted:
                self._break("I06", f"{found} is the hit at position {position} of {request!r}, which is {wanted}")
        self._compute(request, max(self.tracks[request].computed, min(stop * size, lease.length)))

    def _write(self, request: RequestId, start: int, stop: int) -> None:
        """The engine writes tokens `[start, stop)` of a request into its blocks."""
        index, before, size = self.tracks[request].sequence, self.seen.before, self.world.config.block_size
        lease = before.leases[request]
        shares = before.config.prefix_caching and lease.caching
        for position in range(start // size, -(-stop // size)):
            if position >= len(lease.copies):
                self._break("I18", f"position {position} of {request!r} is written and has no block")
                continue
            block = lease.copies[position]
            if shares and block in before.tags and block not in before.authorized:
                self._break("I22", f"block {block} is written while dependency {before.tags[block]} reads it")
            if isinstance(before.copies.get(block), CachedCopy):
                self._break("I10", f"block {block} is written by {request!r} and cached for others")
            self.contents[block] = self.world.content(index, position, stop)
        self._compute(request, max(self.tracks[request].computed, stop))

    def _activate(self, event: values.DestinationActivated) -> None:
        """What was transferred in is written; what was pinned is a hit."""
        reservation = self.seen.before.reservations[event.reservation]
        lease, index = self.seen.after.leases[event.request], self.tracks[event.request].sequence
        hits = len(reservation.prefix)
        self._hit(event.request, 0, hits)
        arrived = min(len(lease.copies) * self.world.config.block_size, lease.prompt_tokens)
        for position, block in enumerate(lease.copies[hits:], hits):
            if block in self.seen.before.tags:
                reader = self.seen.before.tags[block]
                self._break("I22", f"block {block} is written by a transfer while dependency {reader} reads it")
            self.contents[block] = self.world.content(index, position, arrived)
        self._compute(event.request, max(self.tracks[event.request].computed, arrived))

    def _check_name(self, block: BlockId, copy: CachedCopy) -> None:
        found = self.contents.get(block)
        if found is None:
            self._break("I15", f"block {block} became visible as {copy.block_hash} and was not written")
            return
        if found[0] == "given":
            name: str | int | None = found[1]
            is_whole = found[2] == self.world.config.block_size
        else:
            name = self.world.names.get(found)
            is_whole = name is not None
        if not is_whole:
            self._break("I15", f"block {block} became visible as {copy.block_hash} and holds only {found}")
        elif name != copy.block_hash:
            self._break("I06", f"block {block} became visible as {copy.block_hash} and holds {found}")

    def _break(self, rule: str, found: str) -> None:
        self.broken.append(Broken(rule, found))


def resident_blocks(view: BlockView, request: RequestId) -> int:
    """How many leading blocks of a request a lookup finds."""
    lease = view.leases[request]
    if not (view.config.prefix_caching and lease.caching):
        return 0
    count = 0
    for name in lease.hashes:
        if name is None or name not in view.index:
            break
        count += 1
    return count
