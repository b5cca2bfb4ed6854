"""Errors of the row machine about steps, consumers and requests."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from tenure.core.errors.base import (
    ContractError,
    Scope,
    number_list,
    request_name,
)

# --- Steps ----------------------------------------------------------------------------------------------------


@dataclass(eq=False)
class StepNotSavedError(ContractError):
    """A start while the step before it was neither saved nor dropped (R22)."""

    scope: ClassVar[Scope] = Scope.CACHE
    step: int

    def sentence(self) -> str:
        return f"step {self.step} was started and neither saved nor dropped; save it, or give it up with drop_step"


@dataclass(eq=False)
class StepNotStartedError(ContractError):
    """A save or a drop without a started step, or a second save of one (R15)."""

    scope: ClassVar[Scope] = Scope.CACHE
    call: str

    def sentence(self) -> str:
        return f"{self.call}: no step waits to be saved; start one with scheduled tokens first, and save each step once"


@dataclass(eq=False)
class SaveReservedError(ContractError):
    """A start, save or drop while a save is reserved."""

    scope: ClassVar[Scope] = Scope.CACHE
    step: int

    def sentence(self) -> str:
        return f"the save of step {self.step} is reserved; publish or cancel it first"


@dataclass(eq=False)
class SaveNotReservedError(ContractError):
    """A publication or a cancellation of a save that is not reserved."""

    scope: ClassVar[Scope] = Scope.CACHE
    step: int

    def sentence(self) -> str:
        return f"no save of step {self.step} is reserved; it was published, cancelled, or forgotten by a reset"


@dataclass(eq=False)
class UnknownStepError(ContractError):
    """A step that was never saved, or that a reset forgot (R01)."""

    step: int
    unconsumed: Sequence[int]

    def sentence(self) -> str:
        return (
            f"step {self.step} was never saved, or was dropped or forgotten by a reset; "
            f"steps to be consumed: {number_list(self.unconsumed)}"
        )


@dataclass(eq=False)
class StepAlreadyConsumedError(ContractError):
    """A second consume of one step (R01)."""

    step: int
    unconsumed: Sequence[int]

    def sentence(self) -> str:
        return (
            f"step {self.step} was consumed already, or dropped; a step is consumed once; "
            f"steps to be consumed: {number_list(self.unconsumed)}"
        )


@dataclass(eq=False)
class StepBeingConsumedError(ContractError):
    """A consume of a step that a materialize is at (R01)."""

    step: int

    def sentence(self) -> str:
        return f"step {self.step} is being materialized by another call; a step is consumed once"


@dataclass(eq=False)
class StepNotBeingConsumedError(ContractError):
    """The end of a materialize that was not planned."""

    step: int

    def sentence(self) -> str:
        return f"no materialize of step {self.step} is under way; ask for a plan with ConsumeRequested first"


@dataclass(eq=False)
class RequestOutsideSnapshotError(ContractError):
    """A consume for requests that the step did not have (R01)."""

    step: int
    requests: Sequence[int | str]

    def sentence(self) -> str:
        named = ", ".join(repr(each) for each in self.requests[:8])
        return f"step {self.step} was saved without the requests {named}; ask for requests of its batch only"


@dataclass(eq=False)
class UnreadableHitError(ContractError):
    """A consume for a request whose hit has a hole (R14); the step can be consumed for others."""

    step: int
    request: int | str
    name: str
    slots: Sequence[int]

    def sentence(self) -> str:
        some = number_list(self.slots[:8])
        return (
            f"the hit of {request_name(self.request)} in step {self.step} cannot be served: {self.name} has no row at "
            f"{len(self.slots)} of its slots, {some} first; materialize the step without this request, and recompute it"
        )


@dataclass(eq=False)
class PolicyAfterStepError(ContractError):
    """A policy after the first step (R15)."""

    scope: ClassVar[Scope] = Scope.CACHE

    def sentence(self) -> str:
        return "a policy is registered before the first step starts, and a step has started"


@dataclass(eq=False)
class ShutDownError(ContractError):
    """A call after shutdown."""

    scope: ClassVar[Scope] = Scope.CACHE

    def sentence(self) -> str:
        return "the cache is shut down; build a new one"


# --- Requests -------------------------------------------------------------------------------------------------


@dataclass(eq=False)
class UnknownRequestError(ContractError):
    """An extension or resumption of a request that is not live."""

    request: int | str

    def sentence(self) -> str:
        return f"{request_name(self.request)} is not live; announce it with Started first"


@dataclass(eq=False)
class RequestNamedTwiceError(ContractError):
    """One request named twice where once is meant."""

    request: int | str
    place: str

    def sentence(self) -> str:
        return f"{request_name(self.request)} is named twice in {self.place}; name it once"


@dataclass(eq=False)
class ReplacementUnsupportedError(ContractError):
    """A replaced prompt, which the machine cannot follow yet."""

    request: int | str

    def sentence(self) -> str:
        return (
            f"{request_name(self.request)} was given another prompt, which is not supported yet; "
            "finish it and start the new prompt under another id"
        )


@dataclass(eq=False)
class RowCountError(ContractError):
    """A negative count (R15)."""

    request: int | str
    what: str
    found: int

    def sentence(self) -> str:
        return f"{request_name(self.request)}: {self.what} is {self.found}; a count is never negative"


@dataclass(eq=False)
class HitNotAlignedError(ContractError):
    """A hit that ends inside a block."""

    request: int | str
    hit: int
    block_size: int

    def sentence(self) -> str:
        return (
            f"{request_name(self.request)}: a hit of {self.hit} tokens ends inside a block of {self.block_size}; "
            "token-exact hits are not supported yet, so cut it to whole blocks"
        )


@dataclass(eq=False)
class HitBlocksError(ContractError):
    """A hit without its blocks, or with too few."""

    request: int | str
    hit: int
    needed: int
    found: int

    def sentence(self) -> str:
        return (
            f"{request_name(self.request)}: a hit of {self.hit} tokens lies in {self.needed} blocks, and its block "
            f"table names {self.found}; pass the whole table"
        )


@dataclass(eq=False)
class HitWithoutTokensError(ContractError):
    """A hit of a request that computes nothing in the step."""

    request: int | str
    hit: int

    def sentence(self) -> str:
        return (
            f"{request_name(self.request)}: a hit of {self.hit} tokens with no token scheduled would be delivered by "
            "no step; announce the request in the step that schedules its first token"
        )


@dataclass(eq=False)
class KvGroupsError(ContractError):
    """A hit in none or several KV groups."""

    request: int | str
    found: int

    def sentence(self) -> str:
        return f"{request_name(self.request)}: a hit lies in one KV group, not in {self.found}"


@dataclass(eq=False)
class HitIdentitiesError(ContractError):
    """As many expected identities as hit blocks, or none."""

    request: int | str
    blocks: int
    found: int

    def sentence(self) -> str:
        return (
            f"{request_name(self.request)}: {self.found} identities are expected of {self.blocks} hit blocks; "
            "pass one a block, or none"
        )


@dataclass(eq=False)
class BlockOutOfRangeError(ContractError):
    """A block outside the pool."""

    request: int | str
    block: int
    num_blocks: int

    def sentence(self) -> str:
        return f"{request_name(self.request)}: block {self.block} is outside [0, {self.num_blocks})"
