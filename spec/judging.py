"""How checks become findings, and findings an error: the same for every machine."""

from collections.abc import Callable, Iterable
from typing import TypeAlias, TypeVar

from tenure.core.errors import InvariantViolation
from tenure.spec.rule import Finding

Seen = TypeVar("Seen")

Findings: TypeAlias = list[tuple[str, str]]
"""Rules that are broken, each with what was found where."""


def broken(checks: Iterable[tuple[str, Callable[[Seen], Finding]]], seen: Seen) -> Findings:
    """Every rule that a state or an observation breaks."""
    return [(name, found) for name, check in checks if (found := check(seen)) is not None]


def raise_first(findings: Iterable[tuple[str, Finding]]) -> None:
    """Raise what was found first, if anything was.

    Raises:
        InvariantViolation: with the rule that is broken.
    """
    for name, found in findings:
        if found is not None:
            raise InvariantViolation(name, found)
