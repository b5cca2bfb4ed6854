"""What a validation found, for people and for programs."""

import json
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

REPORT_VERSION: Final = 1


class Verdict(Enum):
    """Whether a record is a run of the core."""

    VALID = "valid"
    INVALID = "invalid"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Fault:
    """Where a record leaves every run of the core.

    Attributes:
        line: the line that no run has here, from 1.
        text: that line, or the event that it belongs to; shortened.
        problem: what is wrong, in a sentence.
        expected: what the core does there instead, one for each possible state that differs.
        differences: how an answer differs, field by field.
        possible: events that the core would have taken there, and what it would have answered.
    """

    line: int
    text: str
    problem: str
    expected: tuple[str, ...] = ()
    differences: tuple[str, ...] = ()
    possible: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Report:
    """The verdict on one record.

    Attributes:
        path: the file.
        writer: who wrote it, as its header says.
        verdict: the verdict.
        matched_lines: the longest prefix, in lines, that a run of the core begins with. Where the verdict is UNKNOWN
            it may be longer.
        events: events of that prefix.
        end: how the record ends: "closed", "cut off", or "not reached".
        unlogged: the kinds of events that the record leaves out.
        states_most: how many states had to be looked at together.
        reason: why nothing can be said; None if something can.
        fault: where it is wrong; None if it is not.
    """

    path: str
    writer: str
    verdict: Verdict
    matched_lines: int
    events: int
    end: str
    unlogged: tuple[str, ...]
    states_most: int
    reason: str | None = None
    fault: Fault | None = None

    def as_dict(self) -> dict[str, Any]:
        """As plain data; fields are only ever added."""
        fault = self.fault
        return {
            "version": REPORT_VERSION,
            "file": self.path,
            "writer": self.writer,
            "verdict": self.verdict.value,
            "matched_lines": self.matched_lines,
            "events": self.events,
            "end": self.end,
            "unlogged": list(self.unlogged),
            "states_most": self.states_most,
            "reason": self.reason,
            "fault": None
            if fault is None
            else {
                "line": fault.line,
                "text": fault.text,
                "problem": fault.problem,
                "expected": list(fault.expected),
                "differences": list(fault.differences),
                "possible": list(fault.possible),
            },
        }

    def as_json(self) -> str:
        """As a JSON object, with a line end."""
        return json.dumps(self.as_dict(), indent=2) + "\n"
