"""What the row machine asks others to do.

A command carries its number, its lane, its ordering and its answers. It may run when every command numbered in
`after` has ended; commands of the lanes COMPUTE, COPY and POOL run in the order of issue within their lane, those of
GATHER in any. A command that reads what a failed one in its `after` should have written is not run, and answers that
it failed; a scatter is only ordered behind gathers, and runs behind a failed one too. An answer is told to the machine
verbatim (a failure may add its reason). `done` of a `FreezeRows` is told when its copies are launched, every
other one when the work has ended.

| command | reads | writes |
|---|---|---|
| `FreezeRows` | live outputs | its clones |
| `CopyPage` | the step's clones, leftovers | the page |
| `CopyDeferred` | chunks of clones | the write's host rows |
| `ScatterRows` | the page, or the write's host rows | pool rows |
| `PreserveRows` | pool rows | rows set aside for one read |
| `ScheduleGather` | nothing | nothing |
| `GatherRows` | pool rows, rows set aside, clones, host rows | the read's buffer |
| `ReleaseBuffers` | nothing | nothing; the buffers named are free |
"""

from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple, TypeAlias

from tenure.core.arrays import ByContent, Integers
from tenure.core.rows.events import (
    CloneId,
    CopyBegan,
    CopyCompleted,
    GatherBegan,
    GatherCompleted,
    GatherFailed,
    ReadId,
    SaveCancelled,
    SavePublished,
    ScatterCompleted,
    StepId,
    WriteFailed,
    WriteId,
)
from tenure.core.rows.names import NameId, RowFormat

CommandId: TypeAlias = int


class Lane(Enum):
    """Where a command runs."""

    COMPUTE = "on the device, in order with the forward pass"
    COPY = "copies from the device to the host"
    POOL = "the one host lane that writes pool rows"
    GATHER = "anywhere on the host, in any order"


class Clone(NamedTuple):
    """A device copy of a step's rows under some names, `[num_rows, *row_shape]` each; `bytes` in all."""

    clone: CloneId
    formats: tuple[RowFormat, ...]
    bytes: int


@dataclass(frozen=True, slots=True)
class FreezeRows:
    """Copy a step's live rows before the next forward pass overwrites them, and leftovers to the host.

    Before it is answered, pool memory for the names of `registers` is allocated; if the save is cancelled, a backend
    may keep it for the next try. `num_rows` rows of each name, from the first on.
    """

    command: CommandId
    lane: Lane
    after: tuple[CommandId, ...]
    step: StepId
    num_rows: int
    clones: tuple[Clone, ...]
    leftovers: tuple[NameId, ...]
    registers: tuple[RowFormat, ...]
    done: SavePublished
    failed: SaveCancelled


@dataclass(frozen=True, slots=True)
class CopyPage:
    """Copy all clones of a step to its page, rows in batch order; leftovers are on the host when it ends."""

    command: CommandId
    lane: Lane
    after: tuple[CommandId, ...]
    write: WriteId
    step: StepId
    page: int
    num_rows: int
    clones: tuple[Clone, ...]
    began: CopyBegan
    done: CopyCompleted
    failed: WriteFailed


@dataclass(frozen=True, slots=True, eq=False)
class CopyDeferred(ByContent):
    """Copy the chunks of a deferred write to host rows of its own, one chunk after the other.

    Chunk i is the rows `[starts[i], stops[i])` of clone `clones[i]`, under the names that clone has.

    Shapes: `clones`, `starts`, `stops`: `[chunks]`.
    """

    command: CommandId
    lane: Lane
    after: tuple[CommandId, ...]
    write: WriteId
    formats: tuple[RowFormat, ...]
    num_rows: int
    clones: Integers
    starts: Integers
    stops: Integers
    began: CopyBegan
    done: CopyCompleted
    failed: WriteFailed


@dataclass(frozen=True, slots=True, eq=False)
class ScatterPart(ByContent):
    """Pool rows of one name: source row `rows[i]` goes to slot `slots[i]`. Shapes: `[k]` both; no slot twice."""

    name: NameId
    rows: Integers
    slots: Integers


@dataclass(frozen=True, slots=True)
class ScatterRows:
    """Copy rows of a write into the pool: from its `page`, or from its host rows where `page` is None."""

    command: CommandId
    lane: Lane
    after: tuple[CommandId, ...]
    write: WriteId
    page: int | None
    parts: tuple[ScatterPart, ...]
    done: ScatterCompleted
    failed: WriteFailed


@dataclass(frozen=True, slots=True, eq=False)
class PreserveRows(ByContent):
    """Copy pool rows aside for a read: slot `slots[i]` is the read's row `rows[i]`. Shapes: `[k]` both."""

    command: CommandId
    lane: Lane
    after: tuple[CommandId, ...]
    read: ReadId
    format: RowFormat
    rows: Integers
    slots: Integers
    failed: GatherFailed


@dataclass(frozen=True, slots=True)
class ScheduleGather:
    """Run a read when there is room for it: tell `began`, and carry out the `GatherRows` that comes back."""

    command: CommandId
    lane: Lane
    after: tuple[CommandId, ...]
    read: ReadId
    began: GatherBegan


class SourceKind(Enum):
    """Where rows of a read come from, and what `sources` and `source_rows` of a `GatherPart` number."""

    POOL = "pool: sources are 0, source rows are slots"
    PRESERVED = "rows set aside for this read: sources are 0, source rows are rows of the read"
    CLONE = "device clones: sources are clones, source rows are batch rows"
    HOST = "host rows of deferred writes: sources are writes, source rows are their host rows"


@dataclass(frozen=True, slots=True, eq=False)
class GatherPart(ByContent):
    """Row `source_rows[i]` of `sources[i]` becomes the read's row `rows[i]`. Shapes: `[k]` each."""

    kind: SourceKind
    sources: Integers
    source_rows: Integers
    rows: Integers


@dataclass(frozen=True, slots=True)
class GatherRows:
    """Fill a read's buffer, `[num_rows, *row_shape]`. Rows that no part names are zeros (R14).

    Rows set aside for the read are free when it has ended: nothing reads them again.
    """

    command: CommandId
    lane: Lane
    after: tuple[CommandId, ...]
    read: ReadId
    format: RowFormat
    num_rows: int
    parts: tuple[GatherPart, ...]
    done: GatherCompleted
    failed: GatherFailed


@dataclass(frozen=True, slots=True, eq=False)
class ReleaseBuffers(ByContent):
    """Buffers that nothing will use any more.

    Attributes:
        clones: device clones. Shapes: `[k]`.
        writes: deferred writes whose host rows are free.
        reads: reads that nobody will take: their buffer is free, and so are rows set aside, if there are any left.
    """

    command: CommandId
    lane: Lane
    after: tuple[CommandId, ...]
    clones: Integers
    writes: tuple[WriteId, ...]
    reads: tuple[ReadId, ...]


RowCommand: TypeAlias = (
    FreezeRows | CopyPage | CopyDeferred | ScatterRows | PreserveRows | ScheduleGather | GatherRows | ReleaseBuffers
)

CommandAnswer: TypeAlias = (
    SavePublished
    | SaveCancelled
    | CopyBegan
    | CopyCompleted
    | ScatterCompleted
    | WriteFailed
    | GatherBegan
    | GatherCompleted
    | GatherFailed
)
"""What commands carry, and whoever carries them out tells verbatim."""
