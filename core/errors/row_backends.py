"""Errors of the row machine about waits that took too long, and about what a backend did."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from tenure.core.errors.base import BackendError, CapacityError, ContractError, Scope, number_list, request_name


@dataclass(eq=False)
class WaitTimeoutError(CapacityError):
    """A call waited as long as it may (R07); it can be tried again, and then waits again."""

    scope: ClassVar[Scope] = Scope.CACHE
    waited_for: str
    unconsumed: Sequence[int]
    open_writes: Sequence[int]

    def sentence(self) -> str:
        return (
            f"waited in vain for {self.waited_for}; steps not consumed: {number_list(self.unconsumed)}, "
            f"open writes: {number_list(self.open_writes)}; consume the steps, look after the backend, and try again"
        )


@dataclass(eq=False)
class PageExhaustedError(WaitTimeoutError):
    """No page became free in time."""


@dataclass(eq=False)
class BudgetExhaustedError(WaitTimeoutError):
    """No device clone was let go in time."""


@dataclass(eq=False)
class WriteFailedError(BackendError):
    """A write failed, so rows behind published hashes are lost: said by every call until a reset (R12)."""

    scope: ClassVar[Scope] = Scope.CACHE
    write: int
    step: int
    reason: str

    def sentence(self) -> str:
        why = f" ({self.reason})" if self.reason else ""
        return (
            f"write {self.write} of step {self.step} failed{why}, and its rows are lost behind published hashes; "
            "abort what runs, reset the block pool and this cache"
        )


@dataclass(eq=False)
class ReadFailedError(BackendError):
    """A backend could not gather a hit; the step can be consumed for other requests."""

    step: int
    request: int | str
    name: str
    reason: str

    def sentence(self) -> str:
        why = f" ({self.reason})" if self.reason else ""
        return (
            f"the hit rows of {request_name(self.request)} under {self.name} in step {self.step} could not be gathered"
            f"{why}; materialize the step without this request, and recompute it"
        )


@dataclass(eq=False)
class WriteOrderError(BackendError):
    """A completion that a write cannot have now (R09)."""

    scope: ClassVar[Scope] = Scope.CACHE
    write: int
    found: str
    completion: str

    def sentence(self) -> str:
        return (
            f"write {self.write} is {self.found}, and cannot take {self.completion}; answer each command once, in order"
        )


@dataclass(eq=False)
class ReadOrderError(BackendError):
    """A completion that a read cannot have now."""

    scope: ClassVar[Scope] = Scope.CACHE
    read: int
    found: str
    completion: str

    def sentence(self) -> str:
        return (
            f"read {self.read} is {self.found}, and cannot take {self.completion}; answer each command once, in order"
        )


@dataclass(eq=False)
class OperationFailedError(BackendError):
    """An operation of a device failed, or was passed over behind one that did."""

    operation: str
    reason: str

    def sentence(self) -> str:
        return f"a device could not {self.operation}: {self.reason}; look after the device"


@dataclass(eq=False)
class FreezeFailedError(BackendError):
    """A step's rows could not be frozen; the save was cancelled, and all that it reserved was given back."""

    scope: ClassVar[Scope] = Scope.CACHE
    step: int
    reason: str

    def sentence(self) -> str:
        return (
            f"the rows of step {self.step} could not be frozen ({self.reason}), and its save was cancelled; save it "
            "again while its outputs are there, or give it up with drop_step"
        )


@dataclass(eq=False)
class CopyOutFailedError(BackendError):
    """The rows of a materialize could not be copied out; the step can be materialized again."""

    scope: ClassVar[Scope] = Scope.CACHE
    step: int
    reason: str

    def sentence(self) -> str:
        return f"the rows of step {self.step} could not be copied out ({self.reason}); materialize or discard it again"


@dataclass(eq=False)
class PageLockedMemoryError(CapacityError):
    """More page-locked memory than may be taken, for one more name."""

    scope: ClassVar[Scope] = Scope.CACHE
    name: str
    needed: int
    used: int
    limit: int
    whose: str

    def sentence(self) -> str:
        return (
            f"the pages of {self.name} need {self.needed} page-locked bytes, {self.used} are used and {self.whose} "
            f"allows {self.limit}; lower pages or page_rows_max, or make it a leftover"
        )


@dataclass(eq=False)
class ForeignTensorError(ContractError):
    """An output that the device cannot copy from."""

    name: str
    found: str
    expected: str

    def sentence(self) -> str:
        return (
            f"{self.name} is {self.found}, and this cache's device takes {self.expected}; hand such over, or make the "
            "cache with a device for what the engine works with"
        )


@dataclass(eq=False)
class ExecutorBrokenError(BackendError):
    """Commands are not carried out any more, because of a fault in a device or in Tenure."""

    scope: ClassVar[Scope] = Scope.CACHE
    reason: str

    def sentence(self) -> str:
        return f"commands are not carried out any more ({self.reason}); shut this cache down and make a new one"
