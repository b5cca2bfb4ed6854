"""Errors of the joined cache: what block machine and row machine would each let pass alone."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from tenure.core.errors.base import ContractError, Scope, request_name


@dataclass(eq=False)
class NotForJoinError(ContractError):
    """An event of one machine that the join tells by itself, or that brings blocks without rows."""

    event: str
    instead: str

    def sentence(self) -> str:
        return f"a joined cache is not told {self.event}: {self.instead}"


@dataclass(eq=False)
class RequestInStepError(ContractError):
    """A lease that is to end while a step computes its blocks (X02)."""

    request: int | str

    def sentence(self) -> str:
        return (
            f"{request_name(self.request)} is in the step that is scheduled, started or being saved; "
            "end it when that step is saved or given up"
        )


@dataclass(eq=False)
class RowsOwedError(ContractError):
    """A visible block whose rows are still to be computed, by the request that was scheduled to (X01, X04)."""

    request: int | str
    block: int
    owed_by: int | str

    def sentence(self) -> str:
        return (
            f"{request_name(self.request)}: the hash of block {self.block} is visible, and its rows are still to be "
            f"computed by {request_name(self.owed_by)}; schedule that request first (again, if its step was given up)"
        )


@dataclass(eq=False)
class IsolationError(ContractError):
    """A prefix hit on a block of another isolation group, or of other content under the same hash (X05)."""

    request: int | str
    block: int
    expected: Sequence[object]
    found: Sequence[object] | None

    def sentence(self) -> str:
        found = "content of unknown identity" if self.found is None else f"(hash, group) {tuple(self.found)}"
        return (
            f"{request_name(self.request)} may not share block {self.block}: it holds {found}, and "
            f"{tuple(self.expected)} is expected; reuse no more blocks than servable_prefix_blocks says"
        )


@dataclass(eq=False)
class ScheduledTwiceError(ContractError):
    """A request scheduled twice in one step."""

    request: int | str

    def sentence(self) -> str:
        return f"{request_name(self.request)} is scheduled in this step already; schedule it once a step"


@dataclass(eq=False)
class ScheduledBeyondError(ContractError):
    """Tokens scheduled for which no capacity is held, or that are not known."""

    request: int | str
    first: int
    tokens: int
    allocated: int
    length: int

    def sentence(self) -> str:
        return (
            f"{request_name(self.request)}: {self.tokens} tokens from {self.first} on are scheduled, capacity is held "
            f"for {self.allocated} and {self.length} are known; schedule at least one token within both"
        )


@dataclass(eq=False)
class HiddenMissingError(ContractError):
    """A step without hidden states where the policy has them: its blocks could never be hit (X01)."""

    scope: ClassVar[Scope] = Scope.CACHE
    step: int

    def sentence(self) -> str:
        return (
            f"step {self.step} emits no hidden states, so no hit on its blocks could be served; emit them, give the "
            "step up, or register a policy without hidden states"
        )
