"""R17 and R20, of commands: numbers, lanes, edges and the answers that a command carries."""

from typing import Final, assert_never

from tenure.core.rows.commands import (
    CopyDeferred,
    CopyPage,
    FreezeRows,
    GatherRows,
    Lane,
    PreserveRows,
    ReleaseBuffers,
    RowCommand,
    ScatterRows,
    ScheduleGather,
)
from tenure.core.rows.events import (
    CopyBegan,
    CopyCompleted,
    GatherBegan,
    GatherCompleted,
    GatherFailed,
    ReadId,
    RowEvent,
    SaveCancelled,
    SavePublished,
    ScatterCompleted,
    WriteFailed,
)
from tenure.spec.rows.rule import RowObservation, changed_fields, commanded, is_running
from tenure.spec.rule import Finding

LANES: Final[dict[type[RowCommand], Lane]] = {
    FreezeRows: Lane.COMPUTE,
    CopyPage: Lane.COPY,
    CopyDeferred: Lane.COPY,
    ScatterRows: Lane.POOL,
    PreserveRows: Lane.POOL,
    ScheduleGather: Lane.GATHER,
    GatherRows: Lane.GATHER,
}
"""Where each command runs; pool rows are written and set aside in one lane (R05). Releasing may be done anywhere."""


def commands_are_numbered_in_order(seen: RowObservation) -> Finding:
    """R20: a command comes after what it names, in its lane, and carries the answers of its own work."""
    numbers = [command.command for command in seen.commands]
    if numbers and numbers != list(range(numbers[0], numbers[0] + len(numbers))):
        return f"commands are numbered {numbers}"
    for command in seen.commands:
        if any(number >= command.command for number in command.after) or len({*command.after}) != len(command.after):
            return f"command {command.command} runs after {command.after}"
        if LANES.get(type(command), command.lane) is not command.lane:
            return f"command {command.command}, {type(command).__name__}, runs in {command.lane.name}"
        found = _answers(command)
        if found:
            return found
    return None


def _answers(command: RowCommand) -> Finding:
    wanted: tuple[RowEvent, ...]
    found: tuple[RowEvent, ...]
    match command:
        case FreezeRows(step=step):
            wanted = (SavePublished(step), SaveCancelled(step))
            found = (command.done, command.failed)
        case CopyPage(write=write) | CopyDeferred(write=write):
            wanted = (CopyBegan(write), CopyCompleted(write), WriteFailed(write))
            found = (command.began, command.done, command.failed)
        case ScatterRows(write=write):
            wanted = (ScatterCompleted(write), WriteFailed(write))
            found = (command.done, command.failed)
        case PreserveRows(read=read):
            wanted, found = (GatherFailed(read),), (command.failed,)
        case ScheduleGather(read=read):
            wanted, found = (GatherBegan(read),), (command.began,)
        case GatherRows(read=read):
            wanted = (GatherCompleted(read), GatherFailed(read))
            found = (command.done, command.failed)
        case ReleaseBuffers():
            return None
        case _:
            assert_never(command)
    return None if found == wanted else f"command {command.command} is answered by {found}, and not by {wanted}"


def scatters_wait_for_running_reads(seen: RowObservation) -> Finding:
    """R13 and R23, of edges: a scatter is behind every gather that is running on a pool row it overwrites.

    A view does not tell the numbers of commands, so they are counted here; the ledger compares them one by one.
    """
    for scatter in commanded(seen.commands, ScatterRows):
        reads = overwritten_reads(seen, scatter)
        if len(scatter.after) < len(reads):
            return f"{scatter} is behind {scatter.after}, and the reads {reads} are running on its rows"
    return None


def overwritten_reads(seen: RowObservation, scatter: ScatterRows) -> list[ReadId]:
    """The reads that are running, and read a pool row that a scatter writes; dropped ones among them."""
    written = {(part.name, slot) for part in scatter.parts for slot in part.slots.tolist()}
    return sorted(
        number
        for number, read in seen.after.reads.items()
        if is_running(read) and any((read.name, read.slots[place]) in written for place in read.pool)
    )


def edges_are_named(seen: RowObservation) -> Finding:
    """R20, of edges that one event shows: a page copy waits for its freeze, a gather for the rows set aside for it."""
    for copy in commanded(seen.commands, CopyPage):
        if copy.clones and not copy.after:
            return f"{copy} is behind no freeze"
    for gather in commanded(seen.commands, GatherRows):
        read = seen.after.reads.get(gather.read)
        if read is not None and read.preserved and not gather.after:
            return f"{gather} is behind nothing, and rows {read.preserved} were set aside for it"
    return None


def broken_determinism(first: RowObservation, second: RowObservation) -> Finding:
    """R17: what differs between two times that one event was told to one state."""
    if first.before != second.before or first.event != second.event:
        return f"{first.event} and {second.event} were told, to states that differ in " + changed_fields(
            first.before, second.before
        )
    if first.answer != second.answer:
        return f"{first.event} was answered by {first.answer}, and by {second.answer}"
    if first.commands != second.commands:
        return f"{first.event} commanded {first.commands}, and {second.commands}"
    if first.after != second.after:
        return f"{changed_fields(first.after, second.after)} differ after {first.event} was told twice"
    return None
