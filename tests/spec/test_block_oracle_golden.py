"""The oracle against recorded answers of the seed's own manager: every field of every line."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest

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
    NoSources,
    PublishRemoved,
    PublishStored,
    Ready,
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
from tenure.core.config import BlockConfig
from tenure.spec.blocks.oracle import BlockOracle
from tenure.spec.blocks.rules import check_view
from tests.paths import golden_folder

GOLDEN = golden_folder()
FILES = sorted(GOLDEN.glob("block_ops_*.jsonl"))

Line = dict[str, Any]
Operation = Callable[[Line], tuple[Line, tuple[Command, ...]]]


class Replay:
    """Tells the oracle what a line says, and what the oracle answers in the line's own words."""

    def __init__(self, first: Line) -> None:
        self.caching = cast("bool", first["caching"])
        self.config = BlockConfig(
            capacity=first["capacity"],
            block_size=first["block_size"],
            prefix_caching=self.caching,
            kv_events=True,
            dp_rank=first["dp_rank"],
        )
        self.oracle = BlockOracle(self.config)
        self.decode: dict[int, int] = {}
        self.destinations: dict[int, int] = {}

    def tell(self, line: Line) -> Line:
        """Carry a line's operation out; the line as it should read."""
        operation = cast("Operation", getattr(self, "on_" + line["op"]))
        told, commands = operation(line)
        view = self.oracle.view()
        return told | {
            "active": view.num_active,
            "inactive": view.num_inactive,
            "events": [event_words(command) for command in commands],
        }

    def apply(self, event: Event) -> tuple[Answer, tuple[Command, ...]]:
        return self.oracle.apply(event)

    def hashes(self, request: int) -> Any:
        return list(self.oracle.view().leases[request].hashes) if self.caching else "random"

    def held(self, request: int) -> Line:
        lease = self.oracle.view().leases[request]
        return {"allocated": lease.allocated_tokens, "resident": len(lease.copies)}

    def on_new(self, line: Line) -> tuple[Line, tuple[Command, ...]]:
        sequence = new_sequence(
            line["id"],
            line["prompt"],
            len(line["outputs"]),
            self.config.block_size,
            caching=self.caching,
            retain_local_hashes=line["retain_local_hashes"],
            emit_token_ids=line["emit_token_ids"],
            planned=line["outputs"],
        )
        _, commands = self.apply(LeaseOpened(sequence))
        return {"hashes": self.hashes(line["id"])}, commands

    def on_allocate(self, line: Line) -> tuple[Line, tuple[Command, ...]]:
        cost = self.oracle.prefill_cost(line["id"])
        answer, commands = self.apply(AllocationRequested(line["id"], line["tokens"], line["reuse"]))
        told: Line = {
            "cost": [cost.new_blocks, cost.new_tokens, cost.cached_tokens, cost.active_cached_tokens],
            **self.held(line["id"]),
        }
        if isinstance(answer, Exhausted):
            return told | {"exhausted": True}, commands
        assert isinstance(answer, Ready)
        return told | {"value": len(answer.blocks), "deps": list(answer.dependencies)}, commands

    def on_allocate_decode(self, line: Line) -> tuple[Line, tuple[Command, ...]]:
        event = ReservedAllocationRequested(line["id"], line["tokens"], self.decode[line["rid"]])
        answer, commands = self.apply(event)
        assert isinstance(answer, Ready)
        allocated = self.held(line["id"])["allocated"]
        told = {"value": len(answer.blocks), "deps": list(answer.dependencies), "allocated": allocated}
        return told, commands

    def on_finalize(self, line: Line) -> tuple[Line, tuple[Command, ...]]:
        _, commands = self.apply(TokensComputed(line["id"], line["before"], line["after"]))
        return {"hashes": self.hashes(line["id"])}, commands

    def on_generate(self, line: Line) -> tuple[Line, tuple[Command, ...]]:
        answer, commands = self.apply(TokenGenerated(line["id"]))
        assert isinstance(answer, TokenAppended)
        return {"token": answer.token, "opened": answer.opened_block}, commands

    def on_preempt(self, line: Line) -> tuple[Line, tuple[Command, ...]]:
        return {}, self.apply(LeasePreempted(line["id"]))[1]

    def on_finish(self, line: Line) -> tuple[Line, tuple[Command, ...]]:
        return {}, self.apply(LeaseFinished(line["id"]))[1]

    def on_reserve_decode(self, line: Line) -> tuple[Line, tuple[Command, ...]]:
        answer, commands = self.apply(DecodeReservationRequested(line["count"]))
        if isinstance(answer, Exhausted):
            return {"exhausted": True}, commands
        assert isinstance(answer, Reserved)
        self.decode[line["rid"]] = answer.reservation
        return {}, commands

    def on_release_decode(self, line: Line) -> tuple[Line, tuple[Command, ...]]:
        return {}, self.apply(DecodeReservationReleased(self.decode.pop(line["rid"])))[1]

    def on_reserve_destination(self, line: Line) -> tuple[Line, tuple[Command, ...]]:
        return self.reserved(line, DestinationRequested(line["id"]))

    def on_reserve_external(self, line: Line) -> tuple[Line, tuple[Command, ...]]:
        return self.reserved(line, ExternalPrefixRequested(line["id"], line["prefix"], tuple(line["suffix"])))

    def reserved(self, line: Line, event: Event) -> tuple[Line, tuple[Command, ...]]:
        answer, commands = self.apply(event)
        if isinstance(answer, Exhausted):
            return {"exhausted": True}, commands
        assert isinstance(answer, Reserved)
        self.destinations[line["id"]] = answer.reservation
        told = {
            "blocks": answer.blocks,
            "fresh": answer.fresh,
            "transferable_tokens": answer.transferable_tokens,
            "deps": list(answer.dependencies),
        }
        return told, commands

    def on_activate_destination(self, line: Line) -> tuple[Line, tuple[Command, ...]]:
        event = DestinationActivated(line["id"], self.destinations.pop(line["id"]))
        _, commands = self.apply(event)
        return self.held(line["id"]), commands

    def on_cancel_destination(self, line: Line) -> tuple[Line, tuple[Command, ...]]:
        number = self.destinations.pop(line["id"])
        dependencies = self.oracle.destination_pending(number)
        return {"deps": list(dependencies)}, self.apply(DestinationCancelled(number))[1]

    def on_snapshot_attach(self, line: Line) -> tuple[Line, tuple[Command, ...]]:
        answer, commands = self.apply(StoreSourcesSnapshotted(line["id"], tuple(line["indices"])))
        if isinstance(answer, NoSources):
            return {"none": True}, commands
        assert isinstance(answer, Sources)
        _, more = self.apply(DependencyAttached(line["id"], answer.snapshot, line["dep"]))
        hashes = list(answer.hashes) if self.caching else "random"
        return {"hashes": hashes}, commands + more

    def on_satisfy(self, line: Line) -> tuple[Line, tuple[Command, ...]]:
        answer, commands = self.apply(DependencySatisfied(line["dep"]))
        assert isinstance(answer, WasPending)
        return {"was_pending": answer.pending}, commands

    def on_authorize(self, line: Line) -> tuple[Line, tuple[Command, ...]]:
        pending = self.oracle.view().leases[line["id"]].pending_writes
        _, commands = self.apply(WritesAuthorized(line["id"], tuple(line["deps"])))
        return {"blocks": list(range(pending.start, pending.stop)) if pending else []}, commands


def event_words(command: Command) -> Line:
    """A KV event in the words of the recording."""
    assert isinstance(command, PublishRemoved | PublishStored)
    told: Line = {"id": command.event_id, "dp": command.dp_rank}
    if isinstance(command, PublishRemoved):
        return told | {"removed": list(command.block_hashes)}
    tokens = command.token_ids or [None] * len(command.block_hashes)
    stored = [
        [name, local, None if ids is None else list(ids)]
        for name, local, ids in zip(command.block_hashes, command.tokens_hashes, tokens, strict=True)
    ]
    return told | {"parent": command.parent_hash, "stored": stored}


@pytest.mark.skipif(not FILES, reason=f"no recorded answers in {GOLDEN}")
@pytest.mark.parametrize("path", FILES, ids=[path.stem for path in FILES])
def test_oracle_recorded_operations_answers_as_the_seed_did(path: Path) -> None:
    """The oracle judges the core; here something that is no reading of ours judges the oracle."""
    lines = [cast("Line", json.loads(line)) for line in path.read_text().splitlines()]
    replay = Replay(lines[0])
    for number, line in enumerate(lines[1:], start=2):
        told = replay.tell(line)

        assert line == line | told, f"line {number}: {line}"
        check_view(replay.oracle.view())
