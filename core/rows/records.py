"""The records in the tables of the row machine: plain immutable data."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tenure.core.arrays import Integers
from tenure.core.rows.commands import Clone
from tenure.core.rows.events import BlockId, ContentIdentity, ReadId, RequestId, StepId, WriteId
from tenure.core.rows.names import HeldClass, NameId, RowFormat, Schedule
from tenure.core.rows.view import ReadPhase, StepPhase, UnreadableHit, WritePhase


class Write(NamedTuple):
    """One write.

    Attributes:
        claim: the claim of an immediate write; 0 if it has no names, or is deferred.
        slots: the slots of its rows; of a deferred write once it is closed.
        clones: what an immediate write holds until HOST_READY; `freeze` is the command that makes them.
        names: the names of an immediate write that reach the pool.
        chunks: of a deferred write that is closed: its rows of the chunk table, by column (PLACE is 0).
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
