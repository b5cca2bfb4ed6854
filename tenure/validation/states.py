"""The states that a run may be in, as far as its record tells, and how a line of it narrows them down.

A line is taken by every possible state, and those in which the core does something else drop out. Events of kinds that
are unlogged may have happened before any line: those that commands carry, and no others. Two searches look for them.
`NEAREST` tells only what a line needs, so a run that it follows is a run of the core, and where it fails nothing is
said. `ALL` keeps every state that there can be, so where none is left there is none.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from enum import Enum
from hashlib import blake2b
from typing import Final, NamedTuple, TypeAlias

from tenure.core.config import RowConfig
from tenure.core.errors import TenureError
from tenure.core.rows.answers import Ignored, RowAnswer, Waiting
from tenure.core.rows.events import GatherFailed, RowEvent, WaitedFor, WriteFailed
from tenure.core.rows.machine import transition
from tenure.core.rows.state import RowState
from tenure.core.rows.view import RowCounters
from tenure.recording import Refused, Unlogged
from tenure.validation.due import COMPLETIONS, Completion, Due

LOOKED_AT_FACTOR: Final = 5
"""So many times the states that one line may have are looked at in a whole record."""
DUE_READS_MAX: Final = 256
"""So many reads may be due before those that nobody wants any more are looked for."""


class Search(Enum):
    """How far events that are in no line are looked for."""

    NEAREST = "as few as a line needs"
    ALL = "every one that there can be"


class Possible(NamedTuple):
    """A state that the run may be in, and what its commands still owe."""

    state: RowState
    due: Due


class Taken(NamedTuple):
    """The core took an event."""

    after: Possible
    answer: RowAnswer


class NotDue(NamedTuple):
    """The core would take a completion, and no command carries it."""

    event: RowEvent


Outcome: TypeAlias = Taken | NotDue | TenureError
Result: TypeAlias = RowAnswer | Refused | None
"""What a record says an event led to; None where it says nothing but that it was not refused."""


class TooManyStatesError(Exception):
    """More states are possible than may be looked at."""


def outcome_of(possible: Possible, event: RowEvent) -> Outcome:
    """What the core makes of an event in one state."""
    try:
        state, answer, commands = transition(possible.state, event)
    except TenureError as error:
        return error.with_traceback(None)
    due = possible.due.without(event)
    if due is None:
        # One that comes after its read is gone, or failed, says so several times: once a command.
        if not (isinstance(event, GatherFailed) and isinstance(answer, Ignored)):
            return NotDue(event)
        due = possible.due
    return Taken(Possible(state, due.issued(commands)), answer)


def agrees(outcome: Outcome, result: Result) -> bool:
    """Whether the core does what a record says."""
    if isinstance(outcome, NotDue):
        return False
    if isinstance(outcome, Taken):
        return result is None or outcome.answer == result
    return isinstance(result, Refused) and result == refused_by(outcome)


def refused_by(error: TenureError) -> Refused:
    """What a record says of an error."""
    return Refused.model_validate({"error": type(error).__name__, "scope": error.scope.name})


class PossibleStates:
    """The states that a run may be in after the lines so far.

    Attributes:
        states: never empty.
        most: how many there were at most, those that were looked at and dropped included.
    """

    def __init__(self, config: RowConfig, unlogged: Collection[Unlogged], states_max: int, search: Search) -> None:
        """Before the first event."""
        names = frozenset(unlogged)
        self._unlogged = tuple(each for each in COMPLETIONS if each.__name__ in names)
        self._states_max = states_max
        self._search = search
        self._looked_at = 0
        self.states: Sequence[Possible] = (Possible(RowState.initial(config), Due.nothing()),)
        self.most = 1

    def take(self, event: RowEvent, result: Result) -> bool:
        """Let a line of the record happen; whether it may have. If not, `states` are those before it.

        Raises:
            TooManyStatesError: it cannot be said.
        """
        if not self._unlogged:
            found = self._agreeing(self.states, event, result)
        elif self._search is Search.ALL:
            self.states = self._closed(self.states)
            found = self._agreeing(self.states, event, result)
        else:
            found = self._nearest(event, result)
        if found:
            self.states = self._distinct([self._trimmed(each) for each in found] if self._unlogged else found)
        return bool(found)

    @staticmethod
    def _agreeing(states: Iterable[Possible], event: RowEvent, result: Result) -> list[Possible]:
        found: list[Possible] = []
        for each in states:
            outcome = outcome_of(each, event)
            if agrees(outcome, result):
                found.append(outcome.after if isinstance(outcome, Taken) else each)
        return found

    def _distinct(self, states: Sequence[Possible]) -> Sequence[Possible]:
        if len(states) == 1:
            return states
        return tuple({key_of(each): each for each in states}.values())

    # --- Events that are in no line -----------------------------------------------------------------------------

    def _hidden(self, possible: Possible, is_wanted: Callable[[Completion], bool]) -> Iterator[Possible]:
        """What unlogged events lead to that may happen, mean something, and are wanted."""
        for event in possible.due.events():
            if type(event) in self._unlogged and is_wanted(event):
                outcome = outcome_of(possible, event)
                if isinstance(outcome, Taken) and not _means_nothing(possible, outcome):
                    yield outcome.after

    def _trimmed(self, possible: Possible) -> Possible:
        """Without unlogged events that came too late, or will, which is the same."""
        due = possible.due
        if len(due.reads) <= DUE_READS_MAX:
            return possible
        for event in possible.due.events():
            if type(event) in self._unlogged:
                outcome = outcome_of(possible, event)
                if isinstance(outcome, Taken) and _means_nothing(possible, outcome):
                    due = due.without(event) or due
        return possible._replace(due=due)

    def _closed(self, states: Sequence[Possible]) -> Sequence[Possible]:
        """Every state that unlogged events lead to."""
        found = {key_of(each): each for each in states}
        fresh = list(found.values())
        while fresh:
            fresh = list(self._reached(fresh, found))
        return tuple(found.values())

    def _reached(self, states: Iterable[Possible], found: dict[bytes, Possible]) -> Iterator[Possible]:
        """States one unlogged event further that are not found yet; they are added.

        Raises:
            TooManyStatesError: they are too many.
        """
        for each in states:
            for after in self._hidden(each, _is_any):
                key = key_of(after)
                if key not in found:
                    found[key] = after
                    self.most = max(self.most, len(found))
                    self._looked_at += 1
                    if len(found) > self._states_max or self._looked_at > LOOKED_AT_FACTOR * self._states_max:
                        raise TooManyStatesError
                    yield after

    def _nearest(self, event: RowEvent, result: Result) -> list[Possible]:
        """The states after a line, before which as few unlogged events happened as can be; none if there are none."""
        found = self._agreeing(self.states, event, result) or self._by_what_is_missing(event, result)
        if found:
            return found
        seen = {key_of(each): each for each in self.states}
        fresh = list(seen.values())
        while fresh and not found:
            fresh = list(self._reached(fresh, seen))
            found = self._agreeing(fresh, event, result)
        return found

    def _by_what_is_missing(self, event: RowEvent, result: Result) -> list[Possible]:
        """Where the core says otherwise, its answer mostly tells which unlogged event is missing: tell that first."""
        for possible in self.states:
            each: Possible | None = possible
            while each is not None:
                outcome = outcome_of(each, event)
                if agrees(outcome, result):
                    return [outcome.after if isinstance(outcome, Taken) else each]
                each = self._one_further(each, outcome, event, result)
        return []

    def _one_further(self, possible: Possible, outcome: Outcome, event: RowEvent, result: Result) -> Possible | None:
        return next(self._hidden(possible, lambda hidden: _is_missing(hidden, outcome, event, result)), None)


def _means_nothing(before: Possible, outcome: Taken) -> bool:
    return isinstance(outcome.answer, Ignored) and outcome.after.state is before.state


def _is_any(_: Completion) -> bool:
    return True


_FAILURES: Final = (WriteFailed, GatherFailed)


def _is_missing(hidden: Completion, outcome: Outcome, event: RowEvent, result: Result) -> bool:
    """Whether an unlogged event brings the core nearer to what a record says."""
    if isinstance(hidden, _FAILURES):
        return False
    write, read = getattr(hidden, "write", None), getattr(hidden, "read", None)
    if isinstance(outcome, Taken) and isinstance(outcome.answer, Waiting):
        core = outcome.answer.waited_for
        said = result.waited_for if isinstance(result, Waiting) else WaitedFor()
        if write is None:
            return read in core.reads and read not in said.reads
        wants_room = (core.page, core.clone) != (said.page, said.clone)
        return wants_room or write in {*core.written, *core.host_ready} - {*said.written, *said.host_ready}
    if isinstance(event, COMPLETIONS):
        # What went before it in the life of its write or read; a read may wait for writes.
        return write is not None or read == getattr(event, "read", None)
    # Which page, or which write, is free depends on writes alone.
    return isinstance(outcome, Taken) and write is not None


def key_of(possible: Possible) -> bytes:
    """A digest that is the same for states that no later event can tell apart.

    Numbers of commands do not count: unlogged events may have happened in any order.
    """
    tables = possible.state.tables
    digest = blake2b(digest_size=16)
    for claims in (*tables.newest.values(), tables.tenancy, tables.batch_row):
        digest.update(claims.tobytes())
    view = replace(possible.state.view(), newest={}, tenancy=(), pages=(), counters=RowCounters())
    digest.update(repr((view, tables.pages, tables.started, sorted(tables.fenced_steps.items()))).encode())
    digest.update(repr(possible.due.listed()).encode())
    return digest.digest()
