"""The four verdicts, and which of several counts."""

from collections.abc import Iterable
from enum import Enum


class Verdict(Enum):
    """What a search says; the value is printed, `exit_code` is what a shell gets.

    2 is none of them: that is the usual code for a wrong command line.
    """

    PROVED = "PROVED"
    REFUTED = "REFUTED"
    UNDETERMINED = "UNDETERMINED"
    BAD_MODEL = "BAD MODEL"

    @property
    def exit_code(self) -> int:
        """0, 1, 3 or 4."""
        return {"PROVED": 0, "REFUTED": 1, "UNDETERMINED": 3, "BAD MODEL": 4}[self.value]


# What is certainly wrong comes first, then what makes every other verdict worthless, then what is not known.
SEVERITY = (Verdict.REFUTED, Verdict.BAD_MODEL, Verdict.UNDETERMINED, Verdict.PROVED)


def worst(verdicts: Iterable[Verdict]) -> Verdict:
    """The verdict of several: REFUTED before BAD MODEL before UNDETERMINED before PROVED.

    Nothing at all proves nothing: BAD MODEL.
    """
    found = set(verdicts)
    return next((verdict for verdict in SEVERITY if verdict in found), Verdict.BAD_MODEL)
