"""A device of which only the answers are seen: what a command may answer, and when; no memory, no operations."""

from collections.abc import Sequence
from dataclasses import dataclass

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
from tenure.core.rows.events import ReadId


@dataclass(frozen=True, slots=True)
class Asked:
    """What a command still answers: one of `begins`, if it is there, comes first.

    Attributes:
        kind: of the command.
        begins: told before its end.
        done: told at its end; None where nothing is.
        failed: told instead of all that is not told yet; None where it cannot fail.
        read: the read that it belongs to; 0 for none.
    """

    kind: str
    begins: CommandAnswer | None
    done: CommandAnswer | None
    failed: CommandAnswer | None
    read: ReadId = 0

    @property
    def next(self) -> CommandAnswer | None:
        """What it tells next, if all goes well."""
        return self.begins or self.done

    def told(self) -> "Asked | None":
        """What is left when that was told; None if nothing is."""
        if self.begins is None or self.done is None:
            return None
        return Asked(self.kind, None, self.done, self.failed, self.read)


def asked_of(command: RowCommand) -> Asked | None:
    """What a command answers; None if it answers nothing, well or badly."""
    kind = type(command).__name__
    match command:
        case FreezeRows():
            return Asked(kind, None, command.done, command.failed)
        case CopyPage() | CopyDeferred():
            return Asked(kind, command.began, command.done, command.failed)
        case ScatterRows():
            return Asked(kind, None, command.done, command.failed)
        case PreserveRows():
            return Asked(kind, None, None, command.failed, command.read)
        case ScheduleGather():
            return Asked(kind, command.began, None, None, command.read)
        case GatherRows():
            return Asked(kind, None, command.done, command.failed, command.read)
        case ReleaseBuffers():
            return None


def without_ended(asked: Sequence[Asked], read: ReadId) -> tuple[Asked, ...]:
    """When a gather has ended, what was set aside for it is over as well."""
    return tuple(each for each in asked if not (each.kind == "PreserveRows" and each.read == read))
