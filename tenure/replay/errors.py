"""What can be wrong with a replay that is the caller's to put right: its traces, its options, its output files.

Each makes one line of text: where, what was found, what to do. Whatever else goes wrong is our own fault.
"""

from dataclasses import dataclass
from pathlib import Path

from tenure.core.errors import TenureError

SKIP_ADVICE = "correct it, or go on without it (--skip-bad)"


@dataclass(frozen=True, slots=True)
class Place:
    """Where in a trace something stands.

    Attributes:
        path: the file, as the caller named it.
        line: number of the line, from 1; None where the file as a whole is meant.
        entry: the entry of a file that is one JSON object, as a path into it.
    """

    path: Path
    line: int | None = None
    entry: str | None = None

    def __str__(self) -> str:
        text = str(self.path)
        if self.line is not None:
            text += f":{self.line}"
        if self.entry is not None:
            text += f": {self.entry}"
        return text


class ReplayError(TenureError):
    """Root of what the caller of a replay can put right."""


@dataclass(eq=False)
class TraceError(ReplayError):
    """A trace, or one request of it, that cannot be replayed."""

    place: Place
    problem: str
    advice: str = SKIP_ADVICE

    def sentence(self) -> str:
        """Where, what, and what to do."""
        return f"{self.place}: {self.problem}; {self.advice}"


@dataclass(eq=False)
class OptionError(ReplayError):
    """Options that do not go together, or do not go with a trace."""

    problem: str
    advice: str

    def sentence(self) -> str:
        """What, and what to do."""
        return f"{self.problem}; {self.advice}"


@dataclass(eq=False)
class OutputError(ReplayError):
    """A file, or standard output, that was to be written and cannot be."""

    target: str
    reason: str
    advice: str

    def sentence(self) -> str:
        """Which file, why, and what to do."""
        return f"{self.target}: cannot be written ({self.reason}); {self.advice}"


def reason_of(error: Exception) -> str:
    """Why the system refused a file, in its own words."""
    return (error.strerror if isinstance(error, OSError) else None) or str(error)
