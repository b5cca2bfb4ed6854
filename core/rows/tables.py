"""The plain tables behind a row-machine state, and the edit that a transition makes to them.

Nothing here decides anything. Per (name, slot) only the newest claim is kept, and per slot its tenancy number: whether
a row is absent, in transit or committed follows from them and from the few writes that are open (R03).
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple, Self, TypeAlias

import numpy as np
import numpy.typing as npt

from tenure.core import journaled
from tenure.core.arrays import Integers, content, read_only
from tenure.core.columns import Columns, spans
from tenure.core.config import RowConfig, RowPolicy
from tenure.core.persistent import ATTRIBUTE, CELL, ITEM, MISSING, TAIL
from tenure.core.requests import sorted_requests
from tenure.core.rows.commands import Clone, Lane, ReleaseBuffers, RowCommand
from tenure.core.rows.events import (
    BlockId,
    CloneId,
    ContentIdentity,
    ReadId,
    RequestId,
    StepId,
    WriteId,
)
from tenure.core.rows.names import HeldClass, NameId, RowFormat, Schedule
from tenure.core.rows.view import ReadPhase, RowCounters, StepPhase, UnreadableHit, WritePhase

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


class Write(NamedTuple):
    """One write.

    Attributes:
        claim: the claim of an immediate write; 0 if it has no names, or is deferred.
        slots: the slots of its rows; of a deferred write once it is closed.
        clones: what an immediate write holds until HOST_READY; `freeze` is the command that makes them.
        names: the names of an immediate write that reach the pool.
        chunks: of a deferred write that is closed: its rows of the chunk table, by column (PLACE is stale).
        readers: the reads that hold its host rows (or, before HOST_READY, will).
        ended: its request finished or was aborted.
        fenced: a reset forgot it.
    """

    schedule: Schedule
    phase: WritePhase
    step: StepId
    request: RequestId | None
    claim: int = 0
    page: int = -1
    slots: Integers | None = None
    clones: tuple[int, ...] = ()
    freeze: int = 0
    names: tuple[NameId, ...] = ()
    chunks: npt.NDArray[np.int64] | None = None
    readers: tuple[ReadId, ...] = ()
    ended: bool = False
    fenced: bool = False


class Read(NamedTuple):
    """One read; arrays have one element a row of the hit span.

    Attributes:
        claims: the effective claim that each row was planned with; 0 reads zeros.
        writes: the open deferred write that each row comes from; 0 for the pool and zeros.
        batch_rows: the row in the clone of the step that computed the slot.
        holds: the deferred writes whose buffers it holds.
        awaits: immediate writes that must be WRITTEN before it starts.
        preserved: which rows were set aside; None for none.
        preserves: the commands that did it.
        clones: what it holds while it is running.
        pool: while it is running: which rows are read from the pool.
    """

    phase: ReadPhase
    step: StepId
    request: RequestId
    format: RowFormat
    slots: Integers
    claims: Integers
    writes: Integers
    batch_rows: Integers
    holds: tuple[WriteId, ...]
    awaits: tuple[WriteId, ...]
    preserved: npt.NDArray[np.bool_] | None = None
    preserves: tuple[int, ...] = ()
    clones: tuple[int, ...] = ()
    pool: npt.NDArray[np.bool_] | None = None
    command: int = 0
    confirmed: bool = False
    reason: str = ""


class Hit(NamedTuple):
    """A hit span of a started step."""

    request: RequestId
    slots: Integers
    blocks: tuple[BlockId, ...]
    expects: tuple[ContentIdentity, ...]


class Reservation(NamedTuple):
    """What a save set aside, and what it is about to publish."""

    batch: tuple[RequestId, ...]
    starts: Integers
    slots: Integers
    immediate: tuple[RowFormat, ...]
    deferred: tuple[RowFormat, ...]
    formats: tuple[RowFormat, ...]
    leftovers: tuple[NameId, ...]
    registers: tuple[RowFormat, ...]
    classes: tuple[tuple[NameId, HeldClass], ...]
    clones: tuple[Clone, ...]
    freeze: int


class Step(NamedTuple):
    """One step that was started and not yet consumed or dropped.

    Attributes:
        scheduled: tokens per request, as the start said.
        reads: the read of each (request, name).
        saved: what was reserved, and published if the phase is SAVED or CONSUMING.
        page: the page that it holds; -1 for none.
        asked: the requests of the materialize under way.
    """

    phase: StepPhase
    scheduled: Mapping[RequestId, int]
    hits: tuple[Hit, ...]
    computes: tuple[tuple[BlockId, ContentIdentity], ...]
    reads: Mapping[tuple[RequestId, NameId], ReadId]
    saved: Reservation | None = None
    write: WriteId = 0
    page: int = -1
    unreadable: tuple[UnreadableHit, ...] = ()
    asked: tuple[RequestId, ...] = ()


class FencedStep(NamedTuple):
    """A step that a reset forgot while a materialize was at it.

    Attributes:
        page: the page that it still holds; -1 for none.
        asked: done reads of the requests that the materialize was asked for.
        others: its other done reads.
    """

    page: int
    asked: tuple[ReadId, ...]
    others: tuple[ReadId, ...]


class Failure(NamedTuple):
    """The first write that failed."""

    write: WriteId
    step: StepId
    reason: str


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

    @property
    def scalars(self) -> Scalars:
        """Every single value that changes, so that a journal notes them at once."""
        return (
            self.next_claim,
            self.next_step,
            self.next_write,
            self.next_read,
            self.next_clone,
            self.next_command,
            self.floor,
            self.step_floor,
            self.charged,
            self.pending,
            self.dead_chunks,
            self.dead_clones,
            self.started,
            self.shut_down,
            self.failure,
            self.policy,
        )

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
        other.reads, other.planned, other.running = self.reads.copy(), self.planned.copy(), self.running.copy()
        return other

    def key(self) -> tuple[Any, ...]:
        """The content, for equality and hashing: no counters, and of chunks and clones only those that are open."""
        chunks = self.chunks[0:]
        names = list(self.signatures)
        open_chunks = tuple(
            (*map(int, chunk[:CHUNK_NAMES]), names[int(chunk[CHUNK_NAMES])], self.slots_of(chunk[:, None]).tobytes())
            for chunk in chunks.T
            if int(chunk[CHUNK_WRITE]) in self.writes
        )
        clones = self.clones[0:]
        return (
            self.config,
            tuple(self.formats.values()),
            tuple(self.classes.items()),
            tuple((name, claims.tobytes()) for name, claims in self.newest.items()),
            (self.tenancy.tobytes(), self.batch_row.tobytes()),
            tuple(sorted(self.identities.items())),
            tuple(sorted_requests(self.live)),
            tuple((request, self.open_write[request]) for request in sorted_requests(self.open_write)),
            tuple((number, content(self.writes[number])) for number in sorted(self.writes)),
            open_chunks,
            clones[:, clones[CLONE_HOLDERS] > 0].tobytes(),
            tuple(self.immediate_clones.items()),
            tuple(self.pages),
            tuple((number, _step_key(self.steps[number])) for number in sorted(self.steps)),
            tuple(sorted(self.fenced_steps.items())),
            tuple((number, content(self.reads[number])) for number in sorted(self.reads)),
            self.scalars[:10],
            self.scalars[12:],
        )

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


def _step_key(step: Step) -> tuple[Any, ...]:
    reads = tuple(sorted(step.reads.items(), key=lambda item: item[1]))
    scheduled = tuple((request, step.scheduled[request]) for request in sorted_requests(step.scheduled))
    others = tuple(value for value in step if not isinstance(value, Mapping))
    return reads, scheduled, content(others)


class Edit(journaled.Edit[Tables]):
    """What one transition of the row machine works on: every change is noted in the journal before it is made."""

    __slots__ = ("_released",)

    commands: list[RowCommand]

    def __init__(self, tables: Tables) -> None:
        super().__init__(tables)
        self._released: _Released | None = None

    def put(self, table: dict[Any, Any], key: Any, value: Any) -> None:
        """Set one item."""
        self.journal.append((ITEM, table, key, table.get(key, MISSING)))
        table[key] = value

    def remove(self, table: dict[Any, Any], key: Any) -> None:
        """Remove one item, if it is there."""
        if key in table:
            self.journal.append((ITEM, table, key, table[key]))
            del table[key]

    def assign(self, array: Any, places: Any, values: Any) -> None:
        """Set elements of an array, or of a column (`Columns`); no place twice."""
        self.journal.append((CELL, array, places, array[places]))
        array[places] = values

    def hold_page(self, page: int, holders: tuple[StepId, WriteId]) -> None:
        """Set the holders of a page."""
        pages = self.tables.pages
        self.journal.append((CELL, pages, page, pages[page]))
        pages[page] = holders

    def extend(self, columns: Columns, rows: npt.NDArray[np.int64]) -> None:
        """Append rows to a table of columns. Shapes: `rows: [columns, k]`."""
        start = len(columns)
        self.journal.append((TAIL, columns, start, rows[:, :0]))
        columns[start:] = rows

    def replace(self, name: str, value: Any) -> None:
        """Set a whole table."""
        self.journal.append((ATTRIBUTE, self.tables, name, getattr(self.tables, name)))
        setattr(self.tables, name, value)

    def count(self, counter: str, more: int = 1) -> None:
        """Add to a counter."""
        if more:
            counters = self.tables.counters
            self.put(counters, counter, counters[counter] + more)

    def number(self) -> int:
        """The number of the next command."""
        number = self.tables.next_command
        self.tables.next_command = number + 1
        return number

    @property
    def released(self) -> "_Released":
        """What this transition released so far."""
        if self._released is None:
            self._released = _Released([], [], [], set())
        return self._released

    def release_clones(self, clones: Iterable[CloneId], after: Iterable[int] = ()) -> None:
        """Device clones are free, when the commands `after` have ended."""
        self.released.clones.extend(clones)
        self.released.after.update(after)

    def release_host_rows(self, write: WriteId) -> None:
        """The host rows of a deferred write are free."""
        self.released.writes.append(write)

    def release_read(self, read: ReadId, after: Iterable[int] = ()) -> None:
        """The buffer of a read, and what was set aside for it, are free when the commands `after` have ended."""
        self.released.reads.append(read)
        self.released.after.update(after)

    def close(self) -> None:
        """Emit the one release command of the transition, if anything was released; everything in ascending order."""
        if self._released is not None:
            clones, writes, reads, after = self._released
            numbers = read_only(np.array(sorted(clones), dtype=np.int64))
            ordered = tuple(sorted(after)), numbers, tuple(sorted(writes)), tuple(sorted(reads))
            self.commands.append(ReleaseBuffers(self.number(), Lane.GATHER, *ordered))


class _Released(NamedTuple):
    clones: list[CloneId]
    writes: list[WriteId]
    reads: list[ReadId]
    after: set[int]
