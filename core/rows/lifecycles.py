"""Every legal move as data: writes, rows, steps, reads and requests; handlers, spec, tests and diagrams read these."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, TypeAlias

import numpy as np

from tenure.core.errors import ReadOrderError, WriteOrderError
from tenure.core.rows.events import (
    CopyBegan,
    CopyCompleted,
    GatherBegan,
    GatherCompleted,
    GatherFailed,
    ReadId,
    ScatterCompleted,
    WriteFailed,
    WriteId,
)
from tenure.core.rows.records import Read, Write
from tenure.core.rows.tables import Tables
from tenure.core.rows.view import Occupancy, ReadPhase, StepPhase, WritePhase

_PENDING, _QUEUED, _COPYING = WritePhase.PENDING, WritePhase.QUEUED, WritePhase.COPYING
_HOST_READY, _WRITTEN, _FAILED = WritePhase.HOST_READY, WritePhase.WRITTEN, WritePhase.FAILED

WriteCompletion: TypeAlias = CopyBegan | CopyCompleted | ScatterCompleted | WriteFailed
ReadCompletion: TypeAlias = GatherBegan | GatherCompleted | GatherFailed

WRITE_MOVES: Final[Mapping[type[WriteCompletion], Mapping[WritePhase, WritePhase]]] = MappingProxyType(
    {
        CopyBegan: MappingProxyType({_QUEUED: _COPYING}),
        CopyCompleted: MappingProxyType({_COPYING: _HOST_READY}),
        ScatterCompleted: MappingProxyType({_HOST_READY: _WRITTEN}),
        WriteFailed: MappingProxyType(dict.fromkeys((_PENDING, _QUEUED, _COPYING, _HOST_READY), _FAILED)),
    }
)
"""Per completion the moves that it makes; any other is refused (R09). CopyCompleted goes on to WRITTEN at once where
nothing is left to scatter."""

WRITE_CHAIN: Final = frozenset(
    {(_PENDING, _QUEUED)} | {move for moves in WRITE_MOVES.values() for move in moves.items()}
)
"""All moves of a write: what completions do, and PENDING -> QUEUED by a finish, an abort or the byte budget (R10)."""

READ_MOVES: Final[Mapping[type[ReadCompletion], Mapping[ReadPhase, ReadPhase | None]]] = MappingProxyType(
    {
        GatherBegan: MappingProxyType({ReadPhase.PLANNED: ReadPhase.RUNNING}),
        GatherCompleted: MappingProxyType({ReadPhase.RUNNING: ReadPhase.DONE, ReadPhase.LEFT: None}),
        GatherFailed: MappingProxyType(
            {ReadPhase.PLANNED: ReadPhase.FAILED, ReadPhase.RUNNING: ReadPhase.FAILED, ReadPhase.LEFT: None}
        ),
    }
)
"""Per completion the moves that it makes; None: the read is gone (R23)."""

READ_LATE: Final[Mapping[type[ReadCompletion], tuple[ReadPhase, ...]]] = MappingProxyType(
    {GatherBegan: (ReadPhase.FAILED, ReadPhase.LEFT), GatherFailed: (ReadPhase.FAILED,)}
)
"""Per completion the phases in which it comes too late and changes nothing: a read whose preserve failed is begun, or
fails, once more."""

READ_DROPS: Final[Mapping[ReadPhase, ReadPhase | None]] = MappingProxyType(
    {
        ReadPhase.PLANNED: None,
        ReadPhase.RUNNING: ReadPhase.LEFT,
        ReadPhase.DONE: None,
        ReadPhase.FAILED: None,
        ReadPhase.LEFT: ReadPhase.LEFT,
    }
)
"""What dropping does to a read: what runs goes on until it ends (R23)."""

_ABSENT, _IN_TRANSIT = Occupancy.ABSENT, Occupancy.IN_TRANSIT
_COMMITTED, _LOST = Occupancy.COMMITTED, Occupancy.LOST

ROW_MOVES: Final[Mapping[tuple[Occupancy, Occupancy], str]] = MappingProxyType(
    {
        (_ABSENT, _IN_TRANSIT): "claimed",
        (_IN_TRANSIT, _IN_TRANSIT): "claimed anew, superseding",
        (_IN_TRANSIT, _ABSENT): "computed by a step that does not emit it, or reset",
        (_IN_TRANSIT, _COMMITTED): "its write reached WRITTEN",
        (_IN_TRANSIT, _LOST): "its write reached FAILED",
        (_COMMITTED, _IN_TRANSIT): "claimed, after planned reads were served",
        (_COMMITTED, _ABSENT): "computed by a step that does not emit it, or reset",
        (_LOST, _ABSENT): "slot of a dropped step, or reset",
    }
)
"""Moves of one (name, slot) (R03, R21), and what makes them."""

_STARTED, _RESERVED, _SAVED = StepPhase.STARTED, StepPhase.RESERVED, StepPhase.SAVED
_CONSUMING = StepPhase.CONSUMING

STEP_MOVES: Final[Mapping[tuple[StepPhase | None, StepPhase | None], tuple[str, ...]]] = MappingProxyType(
    {
        (None, _STARTED): ("StepStarted",),
        (_STARTED, _RESERVED): ("SaveRequested",),
        (_STARTED, None): ("StepDropped", "ResetRequested"),
        (_RESERVED, _STARTED): ("SaveCancelled",),
        (_RESERVED, _SAVED): ("SavePublished",),
        (_RESERVED, None): ("ResetRequested",),
        (_SAVED, _CONSUMING): ("ConsumeRequested",),
        (_SAVED, None): ("StepDiscarded", "ResetRequested"),
        (_CONSUMING, _SAVED): ("ConsumeAbandoned",),
        (_CONSUMING, None): ("StepConsumed", "ResetRequested"),
    }
)
"""Moves of a step (R01, R22), and the events that make them; None: before its start, after its end. A reset ends steps
only after a failure (R24)."""


def moved_write(tables: Tables, event: WriteCompletion) -> Write:
    """The write that a completion is about, if it may take it.

    Raises:
        WriteOrderError: it may not (R09).
    """
    write = tables.writes.get(event.write) if is_number(event.write) else None
    if write is None or write.phase not in WRITE_MOVES[type(event)]:
        raise WriteOrderError(event.write, _found(write, event.write, tables.next_write), type(event).__name__)
    return write


def moved_read(tables: Tables, event: ReadCompletion) -> Read | None:
    """The read that a completion is about; None if the completion is late.

    Raises:
        ReadOrderError: it may not take it.
    """
    read = tables.reads.get(event.read) if is_number(event.read) else None
    is_gone = read is None and is_number(event.read) and 0 < event.read < tables.next_read
    if is_gone and not isinstance(event, GatherCompleted):
        return None
    if read is not None and read.phase in READ_LATE.get(type(event), ()):
        return None
    if read is None or read.phase not in READ_MOVES[type(event)]:
        raise ReadOrderError(event.read, _found(read, event.read, tables.next_read), type(event).__name__)
    return read


def _found(record: Write | Read | None, number: ReadId | WriteId, next_number: int) -> str:
    if record is not None:
        return str(record.phase.value)
    return "gone" if is_number(number) and 0 < number < next_number else "unknown"


def is_number(value: object) -> bool:
    """Whether a caller gave a whole number of any kind, and no truth value."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def write_diagram() -> str:
    """The life of a write as a Mermaid state diagram."""
    lines = ["stateDiagram-v2"]
    lines += [f'  state "{phase.value}" as {phase.name}' for phase in WritePhase]
    lines += ["  [*] --> PENDING: deferred", "  [*] --> QUEUED: immediate"]
    lines.append("  PENDING --> QUEUED: finish, abort or byte budget")
    for event, moves in WRITE_MOVES.items():
        lines += [f"  {before.name} --> {after.name}: {event.__name__}" for before, after in moves.items()]
    return "\n".join(lines)


def row_diagram() -> str:
    """What one (name, slot) holds as a Mermaid state diagram."""
    lines = ["stateDiagram-v2"]
    lines += [f'  state "{each.value}" as {each.name}' for each in Occupancy]
    lines.append("  [*] --> ABSENT")
    lines += [f"  {before.name} --> {after.name}: {why}" for (before, after), why in ROW_MOVES.items()]
    return "\n".join(lines)


def step_diagram() -> str:
    """The life of a step as a Mermaid state diagram."""
    lines = ["stateDiagram-v2"]
    lines += [f'  state "{phase.value}" as {phase.name}' for phase in StepPhase]
    for (before, after), events in STEP_MOVES.items():
        start, end = (each.name if each else "[*]" for each in (before, after))
        lines.append(f"  {start} --> {end}: {', '.join(events)}")
    return "\n".join(lines)


def read_diagram() -> str:
    """The life of a read as a Mermaid state diagram."""
    lines = ["stateDiagram-v2"]
    lines += [f'  state "{phase.value}" as {phase.name}' for phase in ReadPhase]
    lines.append("  [*] --> PLANNED: StepStarted, SavePublished")
    moves: dict[tuple[ReadPhase, ReadPhase | None], list[str]] = {}
    for event, table in READ_MOVES.items():
        for before, after in table.items():
            moves.setdefault((before, after), []).append(event.__name__)
    for before, after in READ_DROPS.items():
        if before is not after:
            moves.setdefault((before, after), []).append("dropped")
    moves.setdefault((ReadPhase.DONE, None), []).append("StepConsumed")
    moves.setdefault((ReadPhase.PLANNED, ReadPhase.FAILED), []).append("WriteFailed")
    moves.setdefault((ReadPhase.RUNNING, ReadPhase.LEFT), []).append("WriteFailed")
    for (before, after), causes in moves.items():
        lines.append(f"  {before.name} --> {after.name if after else '[*]'}: {', '.join(causes)}")
    return "\n".join(lines)
