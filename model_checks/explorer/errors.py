"""Errors of the explorer: a model that fails, a search that cannot go on, and what is refused beforehand."""

from dataclasses import dataclass
from typing import ClassVar

from tenure.core.errors.base import ContractError, Scope, TenureError
from tenure.model_checks.model import Event


@dataclass(eq=False)
class ModelError(TenureError):
    """A model raised where it had to answer.

    Attributes:
        asked: the method of the model that raised.
        found: the exception, in words.
        initial: the place of the first state among the initial ones.
        events: what led to the state, the event last taken included.
    """

    scope: ClassVar[Scope] = Scope.CACHE
    asked: str
    found: str
    initial: int
    events: tuple[Event, ...]

    def sentence(self) -> str:
        """The message."""
        path = "\n".join(f"  {number}. {event!r}" for number, event in enumerate(self.events, 1)) or "  (no event)"
        return (
            f"{self.asked}() of the model raised {self.found}; a model reports what is broken and raises nothing; "
            f"from initial state {self.initial} by\n{path}"
        )


@dataclass(eq=False)
class WorkerDiedError(TenureError):
    """A process of the search ended before its work did."""

    scope: ClassVar[Scope] = Scope.CACHE
    worker: int
    exit_code: int | None
    found: str = ""

    def sentence(self) -> str:
        """The message."""
        how = self.found or (
            f"was ended by signal {-self.exit_code}"
            if self.exit_code is not None and self.exit_code < 0
            else f"ended with exit code {self.exit_code}"
        )
        return f"process {self.worker} of the search {how}, which proves nothing; search again, or resume"


@dataclass(eq=False)
class CheckpointError(ContractError):
    """A checkpoint that belongs to another search, or that cannot be read."""

    scope: ClassVar[Scope] = Scope.CACHE
    folder: str
    what: str
    expected: str
    found: str

    def sentence(self) -> str:
        """The message."""
        return (
            f"checkpoint {self.folder}: {self.what} is {self.found}, expected {self.expected}; "
            f"search without resuming, or name another folder"
        )


@dataclass(eq=False)
class RefusedError(ContractError):
    """A combination that would say more than it knows."""

    scope: ClassVar[Scope] = Scope.CACHE
    what: str
    reason: str

    def sentence(self) -> str:
        """The message."""
        return f"{self.what} is refused: {self.reason}"
