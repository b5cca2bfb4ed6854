"""How checks become findings, and findings an error: the same for every machine."""

from collections.abc import Callable, Iterable, Sequence
from typing import Generic, TypeAlias, TypeVar

from tenure.core.errors import InvariantViolation
from tenure.spec.rule import Finding

View = TypeVar("View")
Seen = TypeVar("Seen")

Findings: TypeAlias = list[tuple[str, str]]
"""Rules that are broken, each with what was found where."""


class Judge(Generic[View, Seen]):
    """The checks of one machine: of its states, and of what its events did."""

    def __init__(
        self,
        state_checks: Sequence[tuple[str, Callable[[View], Finding]]],
        transition_checks: Sequence[tuple[str, Callable[[Seen], Finding]]],
        after: Callable[[Seen], View],
    ) -> None:
        """Judge by these checks, each under its rule; `after` is the state that an observation led to."""
        self._state_checks = state_checks
        self._transition_checks = transition_checks
        self._after = after

    def broken_rules(self, view: View) -> Findings:
        """Every rule that a state breaks, with what was found where."""
        return [(name, found) for name, check in self._state_checks if (found := check(view)) is not None]

    def broken_transition_rules(self, observation: Seen) -> Findings:
        """Every rule that an accepted event breaks, with what was found where."""
        return [(name, found) for name, check in self._transition_checks if (found := check(observation)) is not None]

    def check_view(self, view: View) -> None:
        """Judge a state.

        Raises:
            InvariantViolation: with the first rule that the state breaks.
        """
        raise_first(self.broken_rules(view))

    def check_observation(self, observation: Seen) -> None:
        """Judge an accepted event, and the state it led to.

        Raises:
            InvariantViolation: with the first rule that is broken.
        """
        raise_first(self.broken_transition_rules(observation))
        self.check_view(self._after(observation))


def raise_first(findings: Iterable[tuple[str, Finding]]) -> None:
    """Raise what was found first, if anything was.

    Raises:
        InvariantViolation: with the rule that is broken.
    """
    for name, found in findings:
        if found is not None:
            raise InvariantViolation(name, found)
