"""Replays one golden file of block operations through the machine and compares every field of every line."""

from collections.abc import Callable
from typing import Any, Protocol

from tenure.core.blocks.sequence import new_sequence
from tenure.core.blocks.values import (
    AllocationRequested,
    Answer,
    Command,
    DecodeReservationReleased,
    DecodeReservationRequested,
    DependencyAttached,
    DependencySatisfied,
    DestinationActivated,
    DestinationCancelled,
    DestinationRequested,
    Event,
    Exhausted,
    ExternalPrefixRequested,
    LeaseFinished,
    LeaseOpened,
    LeasePreempted,
    PublishRemoved,
    PublishStored,
    Ready,
    RequestId,
    Reserved,
    ReservedAllocationRequested,
    Sources,
    StoreSourcesSnapshotted,
    TokenAppended,
    TokenGenerated,
    TokensComputed,
    WasPending,
    WritesAuthorized,
)
from tenure.core.blocks.view import BlockView, LeaseView, PrefillCost
from tenure.core.config import BlockConfig

Line = dict[str, Any]


class Subject(Protocol):
    """A block machine that keeps its newest state."""

    def apply(self, event: Event) -> tuple[Answer, tuple[Command, ...]]:
        """Take an event."""
        ...

    def view(self) -> BlockView:
        """The newest state as plain data."""
        ...

    def prefill_cost(self, request: RequestId) -> PrefillCost:
        """What computing a request would take."""
        ...


class GoldenReplay:
    """A machine driven by golden lines; `run` gives a line back as the machine would have it."""

    def __init__(self, init: Line, make: Callable[[BlockConfig], Subject]) -> None:
        self.caching = bool(init["caching"])
        self.block_size = int(init["block_size"])
        config = BlockConfig(
            capacity=init["capacity"],
            block_size=self.block_size,
            prefix_caching=self.caching,
            kv_events=True,
            dp_rank=init["dp_rank"],
        )
        self.subject = make(config)
        self.commands: list[Command] = []
        self.decode: dict[int, int] = {}
        self.destinations: dict[int, int] = {}

    def tell(self, event: Event) -> Answer:
        """Take one event and keep the commands for the line's `events` field."""
        answer, commands = self.subject.apply(event)
        self.commands += commands
        return answer

    def run(self, line: Line) -> Line:
        """What the machine answers to a line, in the line's own form."""
        self.commands = []
        handler: Callable[[Line], Line] = getattr(self, "do_" + line["op"])
        found = handler(line)
        view = self.subject.view()
        events = [_event(command) for command in self.commands]
        return {**line, **found, "active": view.num_active, "inactive": view.num_inactive, "events": events}

    def lease(self, request: int) -> LeaseView:
        """A request's lease."""
        return self.subject.view().leases[request]

    def hashes(self, request: int) -> Any:
        """The `hashes` field of a request."""
        return list(self.lease(request).hashes) if self.caching else "random"

    def held(self, request: int) -> Line:
        """The `allocated` and `resident` fields of a request."""
        lease = self.lease(request)
        return {"allocated": lease.allocated_tokens, "resident": len(lease.copies)}

    def do_new(self, line: Line) -> Line:
        sequence = new_sequence(
            line["id"],
            line["prompt"],
            len(line["outputs"]),
            self.block_size,
            caching=self.caching,
            retain_local_hashes=line["retain_local_hashes"],
            emit_token_ids=line["emit_token_ids"],
            planned=line["outputs"],
        )
        self.tell(LeaseOpened(sequence))
        return {"hashes": self.hashes(line["id"])}

    def do_allocate(self, line: Line) -> Line:
        request = line["id"]
        cost = self.subject.prefill_cost(request)
        answer = self.tell(AllocationRequested(request, line["tokens"], line["reuse"]))
        found: Line = {
            "cost": [cost.new_blocks, cost.new_tokens, cost.cached_tokens, cost.active_cached_tokens],
            **self.held(request),
        }
        return found | _ready(answer)

    def do_allocate_decode(self, line: Line) -> Line:
        event = ReservedAllocationRequested(line["id"], line["tokens"], self.decode[line["rid"]])
        answer = self.tell(event)
        return {"allocated": self.lease(line["id"]).allocated_tokens} | _ready(answer)

    def do_finalize(self, line: Line) -> Line:
        self.tell(TokensComputed(line["id"], line["before"], line["after"]))
        return {"hashes": self.hashes(line["id"])}

    def do_generate(self, line: Line) -> Line:
        answer = self.tell(TokenGenerated(line["id"]))
        assert isinstance(answer, TokenAppended)
        return {"token": answer.token, "opened": answer.opened_block}

    def do_preempt(self, line: Line) -> Line:
        self.tell(LeasePreempted(line["id"]))
        return {}

    def do_finish(self, line: Line) -> Line:
        self.tell(LeaseFinished(line["id"]))
        return {}

    def do_reserve_decode(self, line: Line) -> Line:
        answer = self.tell(DecodeReservationRequested(line["count"]))
        if isinstance(answer, Exhausted):
            return {"exhausted": True}
        assert isinstance(answer, Reserved)
        self.decode[line["rid"]] = answer.reservation
        return {}

    def do_release_decode(self, line: Line) -> Line:
        self.tell(DecodeReservationReleased(self.decode.pop(line["rid"])))
        return {}

    def do_reserve_destination(self, line: Line) -> Line:
        return self._destination(line["id"], self.tell(DestinationRequested(line["id"])))

    def do_reserve_external(self, line: Line) -> Line:
        event = ExternalPrefixRequested(line["id"], line["prefix"], tuple(line["suffix"]))
        return self._destination(line["id"], self.tell(event))

    def _destination(self, request: int, answer: Answer) -> Line:
        if isinstance(answer, Exhausted):
            return {"exhausted": True}
        assert isinstance(answer, Reserved)
        self.destinations[request] = answer.reservation
        assert self.subject.view().reservations[answer.reservation].dependencies == answer.dependencies
        return {
            "blocks": answer.blocks,
            "fresh": answer.fresh,
            "transferable_tokens": answer.transferable_tokens,
            "deps": list(answer.dependencies),
        }

    def do_activate_destination(self, line: Line) -> Line:
        request = line["id"]
        self.tell(DestinationActivated(request, self.destinations.pop(request)))
        return self.held(request)

    def do_cancel_destination(self, line: Line) -> Line:
        reservation = self.destinations.pop(line["id"])
        pending = self.subject.view().reservations[reservation].dependencies
        self.tell(DestinationCancelled(reservation))
        return {"deps": list(pending)}

    def do_snapshot_attach(self, line: Line) -> Line:
        answer = self.tell(StoreSourcesSnapshotted(line["id"], tuple(line["indices"])))
        if not isinstance(answer, Sources):
            return {"none": True}
        self.tell(DependencyAttached(line["id"], answer.snapshot, line["dep"]))
        return {"hashes": list(answer.hashes) if self.caching else "random"}

    def do_satisfy(self, line: Line) -> Line:
        was = line["dep"] in self.subject.view().dependencies
        answer = self.tell(DependencySatisfied(line["dep"]))
        assert answer == WasPending(was)
        return {"was_pending": was}

    def do_authorize(self, line: Line) -> Line:
        pending = self.lease(line["id"]).pending_writes
        assert pending is not None
        self.tell(WritesAuthorized(line["id"], tuple(line["deps"])))
        return {"blocks": list(range(pending.start, pending.stop))}


def _ready(answer: Answer) -> Line:
    if isinstance(answer, Exhausted):
        return {"exhausted": True}
    assert isinstance(answer, Ready)
    return {"value": len(answer.blocks), "deps": list(answer.dependencies)}


def _event(command: Command) -> Line:
    if isinstance(command, PublishRemoved):
        return {"id": command.event_id, "dp": command.dp_rank, "removed": list(command.block_hashes)}
    assert isinstance(command, PublishStored)
    tokens = command.token_ids or (None,) * len(command.block_hashes)
    stored = [
        [block_hash, local, None if each is None else list(each)]
        for block_hash, local, each in zip(command.block_hashes, command.tokens_hashes, tokens, strict=True)
    ]
    return {"id": command.event_id, "dp": command.dp_rank, "stored": stored, "parent": command.parent_hash}
