"""`validate`: whether a record is a run of the core, how far it is, and why no further."""

from dataclasses import replace
from pathlib import Path
from typing import Final

from tenure.core.rows.events import RowEvent
from tenure.recording import Closed, Gap, Header
from tenure.validation.faults import fault_of
from tenure.validation.reading import Broken, CutOff, Entry, Mark, RecordReader, Told
from tenure.validation.report import Fault, Report, Verdict
from tenure.validation.states import PossibleStates, Search, TooManyStatesError

STATES_MAX: Final = 1000

CLOSED: Final = "closed"
CUT_OFF: Final = "cut off"
NOT_REACHED: Final = "not reached"

GAP: Final = "events are missing here: whoever recorded could not keep up with the run, or stopped recording"


def validate(path: Path, states_max: int = STATES_MAX) -> Report:
    """Hold a recorded run against the core, line by line, in memory that does not grow with its length.

    Where the record leaves events out, as few of them as the lines need are supposed first; only if that leads
    nowhere, everything that can have happened is.

    Attributes:
        states_max: so many states may be possible at one line, those that were looked at and dropped included; with
            more of them the verdict is UNKNOWN.

    Raises:
        RecordError: the file cannot be read, or is no record of this version.
    """
    nearest = _Pass(path, states_max, Search.NEAREST)
    found = nearest.run()
    if not nearest.is_lost or not found.unlogged:
        return found
    every = _Pass(path, states_max, Search.ALL).run()
    if every.verdict is Verdict.UNKNOWN and found.matched_lines > every.matched_lines:
        reason = f"{every.reason}; with as few events as the lines need, no run was found further than here"
        return replace(found, verdict=Verdict.UNKNOWN, reason=reason, fault=None)
    return every


class _Pass:
    """One reading of a record.

    Attributes:
        is_lost: no state that was looked at takes an event; there may be others.
    """

    def __init__(self, path: Path, states_max: int, search: Search) -> None:
        self._path, self._states_max = path, states_max
        self._reader = RecordReader(path)
        self._header: Header = self._reader.header
        self._states = PossibleStates(self._header.config, self._header.unlogged, states_max, search)
        self._matched, self._events, self._end = 1, 0, CUT_OFF
        self.is_lost = False

    def run(self) -> Report:
        """To the end, or as far as it goes."""
        try:
            for entry in self._reader.entries():
                stopped = self._stopped_at(entry)
                if stopped is not None:
                    return stopped
            return self._report(Verdict.VALID)
        finally:
            self._reader.close()

    def _stopped_at(self, entry: Entry) -> Report | None:
        """Take an entry; the report, if it goes no further."""
        match entry:
            case Told():
                return self._told(entry)
            case Mark():
                return self._marked(entry.line, entry.value)
            case Broken(line, text, problem, is_cut_off):
                if is_cut_off:
                    return None
                return self._invalid(Fault(line, text, f"not a line that can stand here: {problem}"))
            case CutOff():
                # Nobody knows whether it was taken.
                return None

    def _marked(self, line: int, value: Gap | Closed) -> Report | None:
        if isinstance(value, Gap):
            return self._report(Verdict.UNKNOWN, end=NOT_REACHED, reason=GAP, matched=line - 1)
        if value.events != self._events:
            problem = f"the run had {value.events} events, and {self._events} are here: lines are missing"
            return self._invalid(Fault(line, f"closed: {value.events} events, {value.left_out} left out", problem))
        if value.left_out:
            # From a gap on nothing is said, so there was none up to here.
            problem = f"{value.left_out} events were left out, and no gap line says where: lines are missing"
            return self._invalid(Fault(line, f"closed: {value.events} events, {value.left_out} left out", problem))
        self._matched, self._end = line, CLOSED
        return None

    def _told(self, told: Told) -> Report | None:
        try:
            has_fitted = self._states.take(told.event, told.result)
        except TooManyStatesError:
            self.is_lost = True
            reason = (
                f"too many states are possible before line {told.line} ({_name(told.event)}): the limit is "
                f"{self._states_max}; "
                "allow more with --max-states, or log more kinds of events"
            )
            return self._report(Verdict.UNKNOWN, end=NOT_REACHED, reason=reason)
        if not has_fitted:
            self.is_lost = True
            return self._invalid(fault_of(told, self._states.states))
        self._matched = told.line if told.result_line is None else told.result_line
        self._events += 1
        return None

    def _invalid(self, fault: Fault) -> Report:
        return self._report(Verdict.INVALID, end=NOT_REACHED, fault=fault, matched=fault.line - 1)

    def _report(
        self,
        verdict: Verdict,
        *,
        end: str | None = None,
        reason: str | None = None,
        fault: Fault | None = None,
        matched: int | None = None,
    ) -> Report:
        return Report(
            path=str(self._path),
            writer=self._header.writer,
            verdict=verdict,
            matched_lines=self._matched if matched is None else matched,
            events=self._events,
            end=self._end if end is None else end,
            unlogged=self._header.unlogged,
            states_most=self._states.most,
            reason=reason,
            fault=fault,
        )


def _name(event: RowEvent) -> str:
    return type(event).__name__
