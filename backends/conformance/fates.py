"""What a trace's completions are of: which command tells each, and which commands end badly."""

from collections.abc import Iterable
from typing import Final, NamedTuple, TypeAlias

from tenure.backends.conformance.traces import Trace, TraceScope
from tenure.core.errors import TenureError
from tenure.core.rows.commands import (
    CommandId,
    CopyDeferred,
    CopyPage,
    GatherRows,
    Lane,
    PreserveRows,
    RowCommand,
    ScatterRows,
    ScheduleGather,
)
from tenure.core.rows.events import GatherFailed, PolicyRegistered, RowEvent, WriteFailed
from tenure.core.rows.machine import transition
from tenure.core.rows.state import RowState

Answering: TypeAlias = CopyPage | CopyDeferred | ScatterRows | PreserveRows | ScheduleGather | GatherRows


class Owed(NamedTuple):
    """Who tells an event.

    Attributes:
        command: its number.
        lane: where it runs.
    """

    command: CommandId
    lane: Lane


ORDER: Final = (GatherRows, PreserveRows)
"""Of a read that fails, the gather does if it runs."""


class Ledger:
    """Which commands are under way, and what each still tells."""

    def __init__(self) -> None:
        """None is."""
        self._under_way: list[Answering] = []
        self._begun: set[CommandId] = set()

    def take(self, commands: Iterable[RowCommand]) -> None:
        """Commands begin."""
        self._under_way += [each for each in commands if isinstance(each, Answering)]

    def settle(self, event: RowEvent) -> Owed | None:
        """An event is told: by which command; None if no device owes it."""
        command = self._who_tells(event)
        if command is None:
            return None
        has_failed = isinstance(event, WriteFailed | GatherFailed)
        if has_failed or event == getattr(command, "done", None) or isinstance(command, ScheduleGather):
            # Tables compare arrays; this is about the one command.
            self._under_way = [each for each in self._under_way if each.command != command.command]
        return Owed(command.command, command.lane)

    def _who_tells(self, event: RowEvent) -> Answering | None:
        if isinstance(event, WriteFailed | GatherFailed):
            found = [each for each in self._under_way if _same(getattr(each, "failed", None), event)]
            return min(found, key=_rank) if found else None
        for each in self._under_way:
            has_begun = each.command in self._begun or getattr(each, "began", None) is None
            if event == getattr(each, "done" if has_begun else "began", None):
                self._begun.add(each.command)
                return each
        return None


def failing_of(scope: TraceScope, trace: Trace) -> frozenset[CommandId]:
    """The commands that a trace says end badly, found without a device."""
    state = transition(RowState.initial(scope.config), PolicyRegistered(scope.policy)).state
    ledger = Ledger()
    failing: set[CommandId] = set()
    for _, event, _ in trace.told:
        owed = ledger.settle(event)
        if owed is not None and isinstance(event, WriteFailed | GatherFailed):
            failing.add(owed.command)
        try:
            state, _, commands = transition(state, event)
        except TenureError:
            continue
        ledger.take(commands)
    return frozenset(failing)


def _same(failed: object, event: WriteFailed | GatherFailed) -> bool:
    """But for the reason, which a device gives."""
    if isinstance(event, WriteFailed):
        return isinstance(failed, WriteFailed) and failed.write == event.write
    return isinstance(failed, GatherFailed) and failed.read == event.read


def _rank(command: RowCommand) -> int:
    return ORDER.index(type(command)) if isinstance(command, ORDER) else 0
