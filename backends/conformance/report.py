"""What a run of the kit found, for a person and as JSON."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cache
from typing import Any, Final, NamedTuple

from tenure.backends import device as port
from tenure.spec.rows.rule_texts import RULES

REVISION: Final = 6
"""Of the kit: goes up whenever a check is added, or passes or fails on other grounds."""


class Verdict(Enum):
    """What is known of one check."""

    PASS = "pass"  # noqa: S105 - a verdict, not a word to get in by
    FAIL = "fail"
    UNKNOWN = "unknown"
    NOT_CLAIMED = "not claimed"


class Coverage(NamedTuple):
    """Edges of generated traces: how many were met, of those that are open to what is claimed."""

    met: int
    open: int


@dataclass(frozen=True, slots=True)
class Result:
    """One check.

    Attributes:
        id: of the check.
        clause: of the port, or the rule.
        level: "core", or the capability that it belongs to.
        message: what was found; empty where there is nothing to say.
        repeat: the command that does it again.
        expected: why it was expected to fail; None if it was not.
        coverage: of a check that counts edges.
    """

    id: str
    clause: str
    level: str
    verdict: Verdict
    message: str
    repeat: str
    expected: str | None = None
    coverage: Coverage | None = None

    @property
    def is_as_it_should_be(self) -> bool:
        """Whether it failed if and only if that was expected."""
        if self.expected is not None:
            return self.verdict is Verdict.FAIL
        return self.verdict is not Verdict.FAIL


@dataclass(frozen=True, slots=True)
class Report:
    """All checks of one run."""

    maker: str
    capabilities: tuple[str, ...]
    seed: int
    results: tuple[Result, ...]

    @property
    def verdict(self) -> Verdict:
        """Fail if any check did what was not expected of it; else unknown if any is; else pass."""
        if any(not each.is_as_it_should_be for each in self.results):
            return Verdict.FAIL
        if any(each.verdict is Verdict.UNKNOWN for each in self.results):
            return Verdict.UNKNOWN
        return Verdict.PASS

    def of(self, verdict: Verdict) -> tuple[Result, ...]:
        """The checks with one verdict."""
        return tuple(each for each in self.results if each.verdict is verdict)

    def as_dict(self) -> dict[str, Any]:
        """The report as plain data."""
        return {
            "kit": {"revision": REVISION, "rules": rules_hash()},
            "maker": self.maker,
            "capabilities": list(self.capabilities),
            "seed": self.seed,
            "verdict": self.verdict.value,
            "counts": {verdict.value: len(self.of(verdict)) for verdict in Verdict},
            "checks": [_as_dict(each) for each in self.results],
        }

    def as_json(self) -> str:
        """The report as JSON."""
        return json.dumps(self.as_dict(), indent=2) + "\n"


def _as_dict(result: Result) -> dict[str, Any]:
    found: dict[str, Any] = {
        "id": result.id,
        "level": result.level,
        "clause": result.clause,
        "verdict": result.verdict.value,
        "message": result.message,
        "repeat": result.repeat,
    }
    if result.expected is not None:
        found["expected failure"] = result.expected
    if result.coverage is not None:
        found["edges"] = result.coverage._asdict()
    return found


@cache
def rules_hash() -> str:
    """Of the texts that the checks go back to: the duties of the port, and the rules of the row machine."""
    texts: Sequence[Mapping[str, str]] = [{"id": rule.id, "sentence": rule.sentence} for rule in RULES]
    text = json.dumps([port.__doc__, *texts], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]
