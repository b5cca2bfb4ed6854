"""A row-machine state as plain values: what the spec, the tests and the docs look at.

A view costs what the cache holds; it is for judging and explaining, not for serving.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from tenure.core.config import RowConfig, RowPolicy
from tenure.core.rows.events import (
    BlockId,
    Claim,
    CloneId,
    ContentIdentity,
    ReadId,
    RequestId,
    Slot,
    StepId,
    WriteId,
)
from tenure.core.rows.names import HeldClass, NameId, RowFormat, Schedule


class Occupancy(Enum):
    """What one (name, slot) holds (R03)."""

    ABSENT = "absent"
    IN_TRANSIT = "in transit"
    COMMITTED = "committed"
    LOST = "lost"


class WritePhase(Enum):
    """Where a write is in its life (R09)."""

    PENDING = "pending"
    QUEUED = "queued"
    COPYING = "copying"
    HOST_READY = "host ready"
    WRITTEN = "written"
    FAILED = "failed"


class ReadPhase(Enum):
    """Where a read is in its life.

    LEFT: dropped while it was running; it keeps its buffer and its ordering edge until it ends (R23).
    """

    PLANNED = "planned"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    LEFT = "dropped while running"


class StepPhase(Enum):
    """Where a step is in its life."""

    STARTED = "started"
    RESERVED = "reserved"
    SAVED = "saved"
    CONSUMING = "being consumed"


@dataclass(frozen=True, slots=True)
class WriteView:
    """One write that is not WRITTEN, or whose host rows a read still holds.

    Attributes:
        schedule: JOIN_NEXT_STEP: the immediate write of `step`; JOIN_ON_FINISH: a deferred write of `request`.
        step: the step that opened it.
        claims: its claims with the slots of each, in order. An immediate write has at most one.
        names: the names it moves.
        page: the page that it views; None for a deferred write.
        ended: whether its request finished or was aborted.
    """

    schedule: Schedule
    phase: WritePhase
    step: StepId
    request: RequestId | None
    claims: tuple[tuple[Claim, tuple[Slot, ...]], ...]
    names: tuple[NameId, ...]
    page: int | None
    ended: bool


@dataclass(frozen=True, slots=True)
class FencedWrite:
    """A write that a reset forgot while a device was still at it, and what it holds until then (R24)."""

    phase: WritePhase
    page: int | None
    clones: tuple[CloneId, ...]


@dataclass(frozen=True, slots=True)
class ReadView:
    """One read.

    Attributes:
        slots: the hit span's slots, in position order.
        claims: the effective claim that each row was planned with; 0 reads zeros.
        pool: rows that are read from the pool (or were, in a read that ended), by place in `slots`.
        preserved: rows that were set aside, by place in `slots`.
        writes: deferred writes whose buffers it holds.
        clones: device clones that it holds while it is running.
        awaits: open immediate writes that must be WRITTEN before it starts.
        confirmed: whether the save of its step has settled it.
    """

    phase: ReadPhase
    step: StepId
    request: RequestId
    name: NameId
    slots: tuple[Slot, ...]
    claims: tuple[Claim, ...]
    pool: tuple[int, ...]
    preserved: tuple[int, ...]
    writes: tuple[WriteId, ...]
    clones: tuple[CloneId, ...]
    awaits: tuple[WriteId, ...]
    confirmed: bool


class UnreadableHit(NamedTuple):
    """Why a hit can never be served: the slots without a row under a name."""

    request: RequestId
    name: NameId
    slots: tuple[Slot, ...]


@dataclass(frozen=True, slots=True)
class StepView:
    """One step that was started and not yet consumed or dropped.

    Attributes:
        batch: its requests and the tokens of each: as scheduled before the save, in batch order after it.
        hits: the hit span of each arriving request, in slots.
        names: the names it emits as rows, once saved.
        leftovers: the other names it emits, once saved.
        write: its immediate write, once saved.
        page: the page that it holds, if it does.
        unreadable: hits that can never be served, once saved.
        reads: the reads of each request and name.
    """

    phase: StepPhase
    batch: tuple[tuple[RequestId, int], ...]
    hits: tuple[tuple[RequestId, tuple[Slot, ...]], ...]
    names: tuple[NameId, ...]
    leftovers: tuple[NameId, ...]
    write: WriteId | None
    page: int | None
    unreadable: tuple[UnreadableHit, ...]
    reads: tuple[tuple[RequestId, NameId, ReadId], ...]


class CloneView(NamedTuple):
    """A device clone that is charged (its ticket), and how many hold it."""

    bytes: int
    holders: int


class RowCounters(NamedTuple):
    """What happened so far.

    Attributes:
        steps_saved: publications.
        steps_dropped: steps given up.
        over_budget: saves whose clones alone exceed the budget.
        flushes: deferred writes that the byte budget queued.
        hits: hit spans marked at arrival.
        hit_rows: rows that consumed steps took from hits, over all names.
        resumed_with_hit: resumptions whose hit marked none.
        unreadable_hits: hits found unreadable at a save.
        reads_confirmed: reads that a save found planned right.
        reads_replanned: reads that a save planned anew, its old read dropped.
        reads_dropped: reads dropped, re-planned ones among them.
        rows_preserved: rows set aside before a claim.
        waits_for_in_transit: reads that were planned on an open immediate write.
        charged_peak: the most bytes charged at any time.
    """

    steps_saved: int = 0
    steps_dropped: int = 0
    over_budget: int = 0
    flushes: int = 0
    hits: int = 0
    hit_rows: int = 0
    resumed_with_hit: int = 0
    unreadable_hits: int = 0
    reads_confirmed: int = 0
    reads_replanned: int = 0
    reads_dropped: int = 0
    rows_preserved: int = 0
    waits_for_in_transit: int = 0
    charged_peak: int = 0


@dataclass(frozen=True, slots=True)
class RowView:
    """Everything that a row-machine state holds.

    Attributes:
        newest: per registered name and slot the newest raw claim (R04), 0 for none.
        tenancy: per slot its tenancy number.
        floor: claims below it were forgotten by a reset.
        next_claim, next_step, next_write, next_read, next_clone: the next number of each kind.
        live: the live requests, with the open deferred write of each.
        pages: per page its holders: `("step", id)` and `("write", id)`.
        pending: the step that was started and waits to be saved or dropped.
        identities: per block what it holds, where a start said so.
        failure: the write that failed, until a reset.
        fenced_steps: steps that a reset forgot while a materialize was at them, with the page that they still hold.
    """

    config: RowConfig
    policy: RowPolicy
    formats: tuple[RowFormat, ...]
    classes: Mapping[NameId, HeldClass]
    newest: Mapping[NameId, tuple[Claim, ...]]
    tenancy: tuple[Claim, ...]
    floor: Claim
    next_claim: Claim
    next_step: StepId
    next_write: WriteId
    next_read: ReadId
    next_clone: CloneId
    live: Mapping[RequestId, WriteId | None]
    writes: Mapping[WriteId, WriteView]
    fenced: Mapping[WriteId, FencedWrite]
    clones: Mapping[CloneId, CloneView]
    charged: int
    pages: tuple[frozenset[tuple[str, int]], ...]
    fenced_steps: Mapping[StepId, int | None]
    steps: Mapping[StepId, StepView]
    pending: StepId | None
    reads: Mapping[ReadId, ReadView]
    identities: Mapping[BlockId, ContentIdentity]
    failure: WriteId | None
    shut_down: bool
    counters: RowCounters

    def write_of(self, claim: Claim) -> WriteId | None:
        """The write that holds a claim, if it is not WRITTEN."""
        for number, write in self.writes.items():
            if write.phase is not WritePhase.WRITTEN and any(claim == each for each, _ in write.claims):
                return number
        return None

    def effective(self, name: NameId, slot: Slot) -> Claim:
        """The effective claim of (name, slot), 0 for none (R03)."""
        claim = self.newest[name][slot] if name in self.newest else 0
        return claim if claim >= max(self.tenancy[slot], self.floor) else 0

    def occupancy(self, name: NameId, slot: Slot) -> Occupancy:
        """What (name, slot) holds (R03)."""
        claim = self.effective(name, slot)
        if not claim:
            return Occupancy.ABSENT
        write = self.write_of(claim)
        if write is None:
            return Occupancy.COMMITTED
        return Occupancy.LOST if self.writes[write].phase is WritePhase.FAILED else Occupancy.IN_TRANSIT
