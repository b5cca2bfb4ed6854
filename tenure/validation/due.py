"""Which answers of commands are due: what an executor may tell next, as far as commands say.

A command carries its answers. `began` is told once, and one of `done` and `failed` ends it. What is told and is due is
one of these; nothing here knows what the machine makes of it.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Final, NamedTuple, Self, TypeAlias, assert_never

from tenure.core.rows.commands import (
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
from tenure.core.rows.events import (
    CopyBegan,
    CopyCompleted,
    GatherBegan,
    GatherCompleted,
    GatherFailed,
    ReadId,
    RowEvent,
    ScatterCompleted,
    WriteFailed,
    WriteId,
)

Completion: TypeAlias = (
    CopyBegan | CopyCompleted | ScatterCompleted | WriteFailed | GatherBegan | GatherCompleted | GatherFailed
)
COMPLETIONS: Final = (
    CopyBegan,
    CopyCompleted,
    ScatterCompleted,
    WriteFailed,
    GatherBegan,
    GatherCompleted,
    GatherFailed,
)


class Due(NamedTuple):
    """The answers that are due.

    Attributes:
        writes: per write the answers of its one command that is not over.
        reads: per read the same; its preserves are in `preserves`.
        preserves: reads that rows were set aside for: one `GatherFailed` more may come.
    """

    writes: dict[WriteId, tuple[Completion, ...]]
    reads: dict[ReadId, tuple[Completion, ...]]
    preserves: frozenset[ReadId]

    @classmethod
    def nothing(cls) -> Self:
        """Before the first command."""
        return cls({}, {}, frozenset())

    def issued(self, commands: Iterable[RowCommand]) -> "Due":
        """With the commands of one more transition."""
        found = self
        for command in commands:
            match command:
                case CopyPage() | CopyDeferred():
                    answers = (command.began, command.done, command.failed)
                    found = found._replace(writes={**found.writes, command.write: answers})
                case ScatterRows():
                    found = found._replace(writes={**found.writes, command.write: (command.done, command.failed)})
                case ScheduleGather():
                    found = found._replace(reads={**found.reads, command.read: (command.began,)})
                case GatherRows():
                    found = found._replace(reads={**found.reads, command.read: (command.done, command.failed)})
                case PreserveRows():
                    found = found._replace(preserves=found.preserves | {command.read})
                case ReleaseBuffers():
                    # A preserve of a read that is gone may still fail, and means nothing any more.
                    found = found._replace(preserves=found.preserves - frozenset(command.reads))
                case FreezeRows():
                    # It is answered by whoever saves.
                    pass
                case _:
                    assert_never(command)
        return found

    def without(self, told: RowEvent) -> "Due | None":
        """When `told` was told; None if no command carries it."""
        if not isinstance(told, COMPLETIONS):
            return self
        event = bare(told)
        if isinstance(event, CopyBegan | CopyCompleted | ScatterCompleted | WriteFailed):
            answers = self.writes.get(event.write, ())
            if event not in answers:
                return None
            return self._replace(writes=_less(self.writes, event.write, answers, event))
        answers = self.reads.get(event.read, ())
        if isinstance(event, GatherFailed) and event.read in self.preserves:
            return self._replace(preserves=self.preserves - {event.read})
        if event not in answers:
            return None
        # The gather ran behind what was set aside for it, so that came to a good end.
        preserves = self.preserves - {event.read} if isinstance(event, GatherCompleted) else self.preserves
        return self._replace(reads=_less(self.reads, event.read, answers, event), preserves=preserves)

    def events(self) -> Iterator[Completion]:
        """Everything that is due, in order of writes, then of reads."""
        for number in sorted(self.writes):
            yield from self.writes[number]
        for number in sorted(self.reads.keys() | self.preserves):
            answers = self.reads.get(number, ())
            yield from answers
            if number in self.preserves and GatherFailed(number) not in answers:
                yield GatherFailed(number)

    def listed(self) -> tuple[object, ...]:
        """The content in an order that depends on nothing else."""
        return (sorted(self.writes.items()), sorted(self.reads.items()), sorted(self.preserves))


def bare(event: Completion) -> Completion:
    """A completion without what a backend may add to it."""
    return replace(event, reason="") if isinstance(event, WriteFailed | GatherFailed) else event


def _less(
    due: dict[int, tuple[Completion, ...]], number: int, answers: tuple[Completion, ...], told: Completion
) -> dict[int, tuple[Completion, ...]]:
    left = dict(due)
    if isinstance(told, CopyBegan):
        left[number] = tuple(each for each in answers if each != told)
    else:
        del left[number]
    return left
