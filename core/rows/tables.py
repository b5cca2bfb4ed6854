"""The plain tables behind a row-machine state.

Nothing here decides anything. Per (name, slot) only the newest claim is kept, and per slot its tenancy number: whether
a row is absent, in transit or committed follows from them and from the few writes that are open (R03).
"""

from collections.abc import Callable, Hashable, Mapping
from operator import attrgetter
from typing import Any, Final, Self, TypeAlias

import numpy as np
import numpy.typing as npt

from tenure.core.arrays import Integers, content
from tenure.core.columns import Columns, spans
from tenure.core.config import RowConfig, RowPolicy
from tenure.core.requests import sorted_requests
from tenure.core.rows.events import (
    BlockId,
    CloneId,
    ContentIdentity,
    ReadId,
    RequestId,
    StepId,
    WriteId,
)
from tenure.core.rows.names import HeldClass, NameId, RowFormat
from tenure.core.rows.records import Failure, FencedStep, Read, Step, Write
from tenure.core.rows.view import RowCounters, StepPhase, WritePhase

NOBODY: Final = (0, 0)
"""The holders of a free page: no step, no write."""

# Columns of `Tables.chunks`, one row a chunk of a deferred write that is not yet WRITTEN.
CHUNK_CLAIM, CHUNK_WRITE, CHUNK_CLONE, CHUNK_START, CHUNK_STOP, CHUNK_NAMES, CHUNK_PLACE = range(7)
# Columns of `Tables.clones`, one row a charged clone of deferred rows. FREEZE is 0 once the freeze is known to have
# ended.
CLONE_ID, CLONE_BYTES, CLONE_HOLDERS, CLONE_FREEZE = range(4)

Scalars: TypeAlias = tuple[Any, ...]
_SCALARS: Final = (
    "next_claim",
    "next_step",
    "next_write",
    "next_read",
    "next_clone",
    "next_command",
    "floor",
    "step_floor",
    "charged",
    "pending",
    "dead_chunks",
    "dead_clones",
    "started",
    "shut_down",
    "failure",
    "policy",
)
_scalars_of: Final = attrgetter(*_SCALARS)


class Tables:
    """Claims, writes, clones, pages, steps and reads of one machine."""

    __slots__ = (
        "batch_row",
        "chunk_slots",
        "chunks",
        "classes",
        "clones",
        "config",
        "counters",
        "fenced_steps",
        "formats",
        "identities",
        "immediate",
        "immediate_clones",
        "live",
        "mark",
        "named",
        "newest",
        "num_slots",
        "open_write",
        "pages",
        "planned",
        "reads",
        "running",
        "signatures",
        "steps",
        "tenancy",
        "unready",
        "wanted",
        "writes",
        "writes_of",
        *_SCALARS,
    )

    next_claim: int
    next_step: int
    next_write: int
    next_read: int
    next_clone: int
    next_command: int
    floor: int
    step_floor: int
    charged: int
    pending: int
    dead_chunks: int
    dead_clones: int
    started: bool
    shut_down: bool
    failure: Failure | None
    policy: RowPolicy

    def __init__(self, config: RowConfig) -> None:
        self.config = config
        self.num_slots = config.num_slots
        self.scalars = (1, 1, 1, 1, 1, 1, 0, 1, 0, 0, 0, 0, False, False, None, RowPolicy())
        self.counters: dict[str, int] = dict.fromkeys(RowCounters._fields, 0)
        # In order of registration.
        self.formats: dict[NameId, RowFormat] = {}
        self.classes: dict[NameId, HeldClass] = {}
        # R04: per name and slot the newest claim; numbers only grow.
        self.newest: dict[NameId, Integers] = {}
        # R21: per slot the smallest claim of the step that computed it last.
        self.tenancy: Integers = np.zeros(self.num_slots, dtype=np.int64)
        # Per slot the batch row of that step.
        self.batch_row: Integers = np.zeros(self.num_slots, dtype=np.int64)
        # Scratch for looking for slots named twice; never read before it is written.
        self.mark: Integers = np.empty(self.num_slots, dtype=np.int64)
        self.identities: dict[BlockId, ContentIdentity] = {}
        # Which blocks have an identity.
        self.named: npt.NDArray[np.bool_] = np.zeros(config.num_blocks, dtype=np.bool_)
        # Live requests: keys only.
        self.live: dict[RequestId, None] = {}
        # The PENDING write of each request that has one.
        self.open_write: dict[RequestId, WriteId] = {}
        self.writes: dict[WriteId, Write] = {}
        # Immediate writes that are open: keys only.
        self.immediate: dict[WriteId, None] = {}
        # Deferred writes in phase QUEUED or COPYING whose request ended: keys only.
        self.unready: dict[WriteId, None] = {}
        # Deferred writes of each live request that are not WRITTEN or FAILED.
        self.writes_of: dict[RequestId, tuple[WriteId, ...]] = {}
        self.chunks = Columns.empty(7)
        # The slots of all chunks, one after the other; a chunk's PLACE is where its slots begin.
        self.chunk_slots = Columns.empty(1)
        # What a chunk's NAMES numbers.
        self.signatures: dict[tuple[RowFormat, ...], int] = {}
        # Charged clones of immediate rows, each held by one: its save, then its write.
        self.immediate_clones: dict[CloneId, int] = {}
        # Charged clones of deferred rows.
        self.clones = Columns.empty(4)
        # Per page (step, write) that hold it; 0 for none. R06: free iff both are 0.
        self.pages: list[tuple[StepId, WriteId]] = [NOBODY] * config.pages
        self.steps: dict[StepId, Step] = {}
        self.fenced_steps: dict[StepId, FencedStep] = {}
        self.reads: dict[ReadId, Read] = {}
        # Reads in phase PLANNED, and reads in phase RUNNING or LEFT: keys only.
        self.planned: dict[ReadId, None] = {}
        self.running: dict[ReadId, None] = {}
        # Per slot how many planned reads have it in their hit span, so that most saves need not look at them.
        self.wanted: Integers = np.zeros(self.num_slots, dtype=np.int64)

    @property
    def scalars(self) -> Scalars:
        """Every single value that changes, so that a journal notes them at once."""
        values: Scalars = _scalars_of(self)
        return values

    @scalars.setter
    def scalars(self, values: Scalars) -> None:
        for name, value in zip(_SCALARS, values, strict=True):
            setattr(self, name, value)

    def clone(self) -> Self:
        """A copy that shares nothing mutable but scratch."""
        other = object.__new__(type(self))
        other.config, other.num_slots, other.mark = self.config, self.num_slots, self.mark
        other.scalars, other.counters = self.scalars, self.counters.copy()
        other.immediate_clones = self.immediate_clones.copy()
        other.formats, other.classes = self.formats.copy(), self.classes.copy()
        other.newest = {name: claims.copy() for name, claims in self.newest.items()}
        other.tenancy, other.batch_row = self.tenancy.copy(), self.batch_row.copy()
        other.identities, other.named = self.identities.copy(), self.named.copy()
        other.live, other.open_write = self.live.copy(), self.open_write.copy()
        other.writes, other.immediate, other.unready = self.writes.copy(), self.immediate.copy(), self.unready.copy()
        other.writes_of = self.writes_of.copy()
        other.chunks, other.chunk_slots = self.chunks.clone(), self.chunk_slots.clone()
        other.signatures, other.clones = self.signatures.copy(), self.clones.clone()
        other.pages, other.steps, other.fenced_steps = self.pages.copy(), self.steps.copy(), self.fenced_steps.copy()
        other.wanted = self.wanted.copy()
        other.reads, other.planned, other.running = self.reads.copy(), self.planned.copy(), self.running.copy()
        return other

    def key(self, of: Callable[[Any], Hashable] | None = None) -> tuple[Any, ...]:
        """The content, for equality and hashing: no counters, and of chunks and clones only those that are open.

        `of` gives what stands for a record, configuration or policy, `record_key` by default: whoever makes many keys
        may remember what stands for which.
        """
        of = record_key if of is None else of
        names = [tuple(map(of, formats)) for formats in self.signatures]
        return (
            of(self.config),
            tuple(map(of, self.formats.values())),
            tuple((name, of(held)) for name, held in self.classes.items()),
            tuple((name, claims.tobytes()) for name, claims in self.newest.items()),
            (self.tenancy.tobytes(), self.batch_row.tobytes()),
            (tuple(sorted(self.identities.items())), self.named.tobytes(), self.wanted.tobytes()),
            tuple(sorted_requests(self.live)),
            tuple((request, self.open_write[request]) for request in sorted_requests(self.open_write)),
            tuple((number, of(self.writes[number])) for number in sorted(self.writes)),
            (tuple(names), self._open_chunks()),
            self._held_clones(),
            tuple(self.immediate_clones.items()),
            tuple(self.pages),
            tuple((number, of(self.steps[number])) for number in sorted(self.steps)),
            tuple(sorted(self.fenced_steps.items())),
            tuple((number, of(self.reads[number])) for number in sorted(self.reads)),
            self.scalars[:10],
            self.scalars[12:-1],
            of(self.policy),
        )

    def _open_chunks(self) -> tuple[tuple[Any, ...], ...]:
        """The chunks of writes that are not WRITTEN.

        What may be forgotten at any time, when the table is put together again, tells no states apart.
        """
        if not len(self.chunks):
            return ()
        slots = self.chunk_slots.column(0)
        chunks: list[list[int]] = self.chunks[0:].T.tolist()
        open_writes = {number for number, write in self.writes.items() if write.phase is not WritePhase.WRITTEN}
        return tuple(
            (claim, write, clone, start, stop, named, slots[place : place + stop - start].tobytes())
            for claim, write, clone, start, stop, named, place in chunks
            if write in open_writes
        )

    def _held_clones(self) -> bytes:
        if not len(self.clones):
            return b""
        clones = self.clones[0:]
        return clones[:, clones[CLONE_HOLDERS] > 0].tobytes()

    def slots_of(self, chunks: npt.NDArray[np.int64]) -> Integers:
        """The slots of chunks, one chunk after the other. Shapes: `chunks: [7, k]`, columns of the chunk table."""
        places = chunks[CHUNK_PLACE]
        return self.chunk_slots.column(0)[spans(places, places + chunks[CHUNK_STOP] - chunks[CHUNK_START])]

    def effective(self, name: NameId, slots: Integers) -> Integers:
        """The effective claims of a name on `slots`, 0 for none (R03, R21). Shapes: `slots: [k]`, result `[k]`."""
        claims = self.newest[name][slots]
        return np.where(claims >= np.maximum(self.tenancy[slots], max(self.floor, 1)), claims, 0)

    @property
    def unconsumed(self) -> tuple[StepId, ...]:
        """Steps that were saved and must be consumed."""
        done = (StepPhase.SAVED, StepPhase.CONSUMING)
        return tuple(sorted(number for number, step in self.steps.items() if step.phase in done))


def record_key(record: Any) -> Hashable:
    """The content of a record, so that equal records have equal keys."""
    if not isinstance(record, Step):
        key: Hashable = content(record)
        return key
    step = record
    reads = tuple(sorted(step.reads.items(), key=lambda item: item[1]))
    scheduled = tuple((request, step.scheduled[request]) for request in sorted_requests(step.scheduled))
    others = tuple(value for value in step if not isinstance(value, Mapping))
    return reads, scheduled, content(others)
