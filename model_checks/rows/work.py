"""Commands as work on cells: what they read, write and free, and what they answer."""

from collections.abc import Iterable
from hashlib import blake2b

from tenure.core.rows.commands import (
    CommandAnswer,
    CopyDeferred,
    CopyPage,
    FreezeRows,
    GatherRows,
    PreserveRows,
    ReleaseBuffers,
    RowCommand,
    ScatterRows,
    ScheduleGather,
)
from tenure.model_checks.rows.cells import BUFFER_SHIFT, ZEROS, Names, buffer_code, buffer_of
from tenure.spec.rows.interpreter import IN_ORDER
from tenure.spec.rows.jobs import Job


class Work:
    """A command as work on cells, the same for every state in which it is under way.

    Attributes:
        moves, fills: cells to copy from and to; values that are made here, and where to.
        frees: buffers that go.
        reads, writes, uses: the cells that it reads, that it writes, and both.
        buffers: the buffers that it uses.
        at: those, and the ones that go.
        early, done, failed: answers due at once, at its end, and at a bad end.
        label: how stories name it.
        pieces: in how many pieces it can be carried out.
        code: sixteen bytes that stand for it in encoded states.
    """

    __slots__ = (
        "at",
        "buffers",
        "code",
        "done",
        "early",
        "failed",
        "fills",
        "frees",
        "kind",
        "label",
        "lane",
        "moves",
        "pieces",
        "read",
        "reads",
        "uses",
        "writes",
    )

    def __init__(self, command: RowCommand, job: Job, names: Names) -> None:
        """Number the cells of a job."""
        self.kind = type(command).__name__
        self.lane = command.lane if command.lane in IN_ORDER else None
        self.moves = tuple((names.cell(source), names.cell(target)) for source, target in job.moves)
        self.fills = tuple((row if isinstance(row, int) else ZEROS, names.cell(target)) for row, target in job.fills)
        self.frees = frozenset(buffer_code(buffer) for buffer in job.frees)
        self.read = command.read if isinstance(command, PreserveRows | GatherRows | ScheduleGather) else 0
        self.early, self.done, self.failed = _answers(command)
        self.label = _label(command, self.frees)
        self._number([target for _, target in self.moves] + [target for _, target in self.fills])

    def _number(self, writes: Iterable[int]) -> None:
        """Work out what is asked of it again and again."""
        self.pieces = max(1, len(self.moves) + len(self.fills))
        self.reads, self.writes = frozenset(source for source, _ in self.moves), frozenset(writes)
        self.uses = self.reads | self.writes
        self.buffers = frozenset(cell >> BUFFER_SHIFT for cell in self.uses)
        self.at = self.buffers | self.frees
        text = repr((self.kind, self.moves, self.fills, sorted(self.frees), self.early, self.done, self.failed))
        self.code = blake2b(text.encode(), digest_size=16).digest()

    def conflict(self, other: "Work") -> str | None:
        """What both use, one of them writing or freeing it; None if they may run side by side."""
        if self.at.isdisjoint(other.at):
            return None
        cells = (self.writes & (other.writes | other.reads)) | (self.reads & other.writes)
        if cells:
            return f"cell {min(cells)}"
        freed = (self.frees & (other.buffers | other.frees)) | (other.frees & self.buffers)
        return str(buffer_of(min(freed))) if freed else None


class Reader(Work):
    """A builder that copies rows out: a reader outside every lane."""

    __slots__ = ()

    def __init__(self, step: int, cells: Iterable[int]) -> None:
        """The builder of a step reads these cells."""
        self.kind, self.lane, self.read = "Builder", None, step
        self.moves, self.fills, self.frees = tuple((cell, -1) for cell in cells), (), frozenset[int]()
        self.early, self.done, self.failed = (), None, None
        self.label = f"the builder of step {step}"
        self._number(())


def _answers(command: RowCommand) -> tuple[tuple[CommandAnswer, ...], CommandAnswer | None, CommandAnswer | None]:
    match command:
        case FreezeRows():
            return (command.done,), None, command.failed
        case CopyPage() | CopyDeferred():
            return (command.began,), command.done, command.failed
        case ScatterRows() | GatherRows():
            return (), command.done, command.failed
        case PreserveRows():
            return (), None, command.failed
        case ScheduleGather():
            return (command.began,), None, None
        case ReleaseBuffers():
            return (), None, None


def _label(command: RowCommand, frees: Iterable[int]) -> str:
    match command:
        case FreezeRows(step=step):
            return f"freeze of step {step}"
        case CopyPage(step=step, page=page):
            return f"copy of step {step} to page {page}"
        case CopyDeferred(write=write):
            return f"copy of deferred write {write}"
        case ScatterRows(write=write):
            return f"scatter of write {write}"
        case PreserveRows(read=read):
            return f"preserve for read {read}"
        case ScheduleGather(read=read):
            return f"turn of read {read}"
        case GatherRows(read=read):
            return f"gather of read {read}"
        case ReleaseBuffers():
            names = sorted(f"{buffer.kind} {buffer.number}" for buffer in map(buffer_of, frees))
            return f"release of {', '.join(names)}"
