"""What each command does to memory: rows that move, rows that are filled in, buffers that come and go."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol, TypeAlias, assert_never

from tenure.core.errors import InvariantViolation
from tenure.core.rows.commands import (
    CopyDeferred,
    CopyPage,
    FreezeRows,
    GatherPart,
    GatherRows,
    PreserveRows,
    ReleaseBuffers,
    RowCommand,
    ScatterRows,
    ScheduleGather,
    SourceKind,
)
from tenure.core.rows.names import NameId
from tenure.spec.rows.memory import Buffer, Place, Row
from tenure.spec.rows.reference_values import zero_row

POOL: Final = Buffer("pool", 0)
LEFTOVER: Final = "leftover "
"""Marks, on a page, what is no row: `leftover NAME`, row 0."""

LiveOutputs: TypeAlias = Mapping[NameId, Any]
"""What a forward pass leaves in its buffers: per name the rows of a tensor, or anything else."""


class Rooms(Protocol):
    """What must be known of a memory to tell what a command does to it."""

    @property
    def buffers(self) -> frozenset[Buffer]:
        """Every buffer that was allocated and not freed."""
        ...

    def names(self, buffer: Buffer) -> frozenset[str]:
        """The names under which a buffer has rows."""
        ...


@dataclass(frozen=True, slots=True)
class Job:
    """A command as work on memory.

    Attributes:
        moves: rows to copy, from and to.
        fills: rows that are made here, and where to.
        frees: buffers that nothing uses any more.
    """

    moves: tuple[tuple[Place, Place], ...] = ()
    fills: tuple[tuple[Row, Place], ...] = ()
    frees: tuple[Buffer, ...] = ()

    @property
    def targets(self) -> tuple[Place, ...]:
        """Every place that is written."""
        return (*(place for _, place in self.moves), *(place for _, place in self.fills))


def job_of(command: RowCommand, memory: Rooms, live: LiveOutputs) -> Job:
    """What a command does. `live` are the outputs that a freeze copies, and the leftovers that a page copy takes along.

    Raises:
        InvariantViolation: the command contradicts itself.
    """
    match command:
        case FreezeRows():
            return _freeze(command, live)
        case CopyPage():
            return _copy_page(command, live)
        case CopyDeferred():
            return _copy_deferred(command, memory)
        case ScatterRows():
            return _scatter(command)
        case PreserveRows(read=read, slots=slots, rows=rows):
            name, aside = command.format.name, Buffer("aside", read)
            pairs = zip(slots.tolist(), rows.tolist(), strict=True)
            return _once(command, Job(tuple((Place(POOL, name, slot), Place(aside, name, row)) for slot, row in pairs)))
        case GatherRows():
            return _gather(command)
        case ReleaseBuffers():
            return Job(frees=_released(command, memory))
        case ScheduleGather():
            return Job()
        case _:
            assert_never(command)


def _once(command: RowCommand, job: Job) -> Job:
    targets = job.targets
    if len(set(targets)) != len(targets):
        raise InvariantViolation("R20", f"{command} writes a place twice")
    return job


def _freeze(command: FreezeRows, live: LiveOutputs) -> Job:
    return Job(
        fills=tuple(
            (live[each.name][row], Place(Buffer("clone", clone.clone), each.name, row))
            for clone in command.clones
            for each in clone.formats
            for row in range(command.num_rows)
        )
    )


def _copy_page(command: CopyPage, live: LiveOutputs) -> Job:
    page = Buffer("page", command.page)
    moves = tuple(
        (Place(Buffer("clone", clone.clone), each.name, row), Place(page, each.name, row))
        for clone in command.clones
        for each in clone.formats
        for row in range(command.num_rows)
    )
    return _once(
        command, Job(moves, tuple((content, Place(page, LEFTOVER + name, 0)) for name, content in live.items()))
    )


def _copy_deferred(command: CopyDeferred, memory: Rooms) -> Job:
    host = Buffer("host", command.write)
    moves: list[tuple[Place, Place]] = []
    row = 0
    chunks = zip(command.clones.tolist(), command.starts.tolist(), command.stops.tolist(), strict=True)
    for number, start, stop in chunks:
        clone = Buffer("clone", number)
        if clone not in memory.buffers:
            raise InvariantViolation("R20", f"{command} copies from clone {number}, which is not there")
        for source in range(start, stop):
            moves += [(Place(clone, name, source), Place(host, name, row)) for name in sorted(memory.names(clone))]
            row += 1
    if row != command.num_rows:
        raise InvariantViolation("R16", f"{command} has {row} rows in its chunks and {command.num_rows} in all")
    return _once(command, Job(tuple(moves)))


def _scatter(command: ScatterRows) -> Job:
    source = Buffer("host", command.write) if command.page is None else Buffer("page", command.page)
    return _once(
        command,
        Job(
            tuple(
                (Place(source, part.name, row), Place(POOL, part.name, slot))
                for part in command.parts
                for row, slot in zip(part.rows.tolist(), part.slots.tolist(), strict=True)
            )
        ),
    )


def _gather(command: GatherRows) -> Job:
    name = command.format.name
    buffer = Buffer("buffer", command.read)
    moves = tuple(
        (source, Place(buffer, name, row)) for part in command.parts for source, row in _sources(command, part)
    )
    filled = {place.row for _, place in moves}
    zero = zero_row(command.format.row_shape)
    zeros = tuple((zero, Place(buffer, name, row)) for row in range(command.num_rows) if row not in filled)
    return _once(command, Job(moves, zeros))


def _sources(command: GatherRows, part: GatherPart) -> list[tuple[Place, int]]:
    kinds = {SourceKind.CLONE: "clone", SourceKind.HOST: "host"}
    found: list[tuple[Place, int]] = []
    for number, source, row in zip(part.sources.tolist(), part.source_rows.tolist(), part.rows.tolist(), strict=True):
        if part.kind is SourceKind.POOL:
            buffer = POOL
        elif part.kind is SourceKind.PRESERVED:
            buffer = Buffer("aside", command.read)
        else:
            buffer = Buffer(kinds[part.kind], number)
        found.append((Place(buffer, command.format.name, source), row))
    return found


def _released(command: ReleaseBuffers, memory: Rooms) -> tuple[Buffer, ...]:
    """The buffers named; a read has a buffer, rows set aside, or both."""
    named = [Buffer("clone", number) for number in command.clones.tolist()]
    named += [Buffer("host", number) for number in command.writes]
    for number in command.reads:
        both = [buffer for kind in ("buffer", "aside") if (buffer := Buffer(kind, number)) in memory.buffers]
        named += both or [Buffer("buffer", number)]
    return tuple(named)
