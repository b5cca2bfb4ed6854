"""Errors of the row machine: what the engine did wrong, which limit was reached, what a backend did wrong."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from tenure.core.errors.base import (
    BackendError,
    CapacityError,
    ContractError,
    Scope,
    number_list,
    request_name,
)


def _shape(shape: Sequence[int] | None) -> str:
    return "not a tensor" if shape is None else f"a tensor of shape {number_list(shape)}"


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


# --- Layout and outputs ---------------------------------------------------------------------------------------


@dataclass(eq=False)
class LayoutMismatchError(ContractError):
    """A batch that differs from what the step's start scheduled."""

    scope: ClassVar[Scope] = Scope.CACHE
    step: int
    request: int | str
    found: int
    scheduled: int

    def sentence(self) -> str:
        return (
            f"step {self.step}: the layout has {self.found} rows of {request_name(self.request)}, and the start "
            f"scheduled {self.scheduled} tokens of it; build both from the same scheduler output"
        )


@dataclass(eq=False)
class SlotCountError(ContractError):
    """Slots unlike tokens."""

    scope: ClassVar[Scope] = Scope.CACHE
    step: int
    slots: int
    tokens: int

    def sentence(self) -> str:
        return f"step {self.step}: {self.slots} slots for {self.tokens} tokens; each token has one slot"


@dataclass(eq=False)
class SlotOutOfRangeError(ContractError):
    """A slot outside the pool."""

    request: int | str
    slot: int
    block: int
    num_slots: int

    def sentence(self) -> str:
        return (
            f"{request_name(self.request)}: slot {self.slot} (block {self.block}) is outside [0, {self.num_slots}); "
            "mend its block table and save again, or give the step up with drop_step"
        )


@dataclass(eq=False)
class SlotNamedTwiceError(ContractError):
    """Two tokens of one step on one slot."""

    slot: int
    first: int | str
    second: int | str

    def sentence(self) -> str:
        return (
            f"slot {self.slot} is named twice in one step, by {request_name(self.first)} and by "
            f"{request_name(self.second)}; a step computes a slot once"
        )


@dataclass(eq=False)
class StepTooLargeError(ContractError):
    """A step that does not fit a page."""

    scope: ClassVar[Scope] = Scope.CACHE
    step: int
    tokens: int
    page_rows_max: int

    def sentence(self) -> str:
        return (
            f"step {self.step}: {self.tokens} tokens do not fit a page of {self.page_rows_max} rows; "
            "configure page_rows_max for the largest batch"
        )


@dataclass(eq=False)
class HiddenRowsError(ContractError):
    """Hidden states that are no rows, or too few."""

    scope: ClassVar[Scope] = Scope.CACHE
    shape: Sequence[int] | None
    needed: int

    def sentence(self) -> str:
        return f"hidden states are {_shape(self.shape)}; expected at least {self.needed} rows of one dimension or more"


@dataclass(eq=False)
class PaddingError(ContractError):
    """Fewer padded rows than tokens."""

    scope: ClassVar[Scope] = Scope.CACHE
    padded: int
    tokens: int

    def sentence(self) -> str:
        return f"a step of {self.tokens} tokens cannot be padded to {self.padded} rows"


@dataclass(eq=False)
class NameClassError(ContractError):
    """An output that contradicts what its name is (D03)."""

    scope: ClassVar[Scope] = Scope.CACHE
    name: str
    held: str
    first_shape: Sequence[int] | None
    shape: Sequence[int] | None
    tokens: int

    def sentence(self) -> str:
        origin = "declared" if self.first_shape is None else f"first seen as {_shape(self.first_shape)}"
        return (
            f"{self.name} is {self.held} ({origin}), and a step of {self.tokens} tokens emits {_shape(self.shape)}; "
            "declare the name's class in the policy"
        )


@dataclass(eq=False)
class RowFormatChangedError(ContractError):
    """Rows of a known name with another shape or dtype."""

    scope: ClassVar[Scope] = Scope.CACHE
    name: str
    expected_shape: Sequence[int]
    expected_dtype: str
    shape: Sequence[int]
    dtype: str

    def sentence(self) -> str:
        return (
            f"rows of {self.name} are {self.expected_dtype}{number_list(self.expected_shape)}, and the step emits "
            f"{self.dtype}{number_list(self.shape)}; a name keeps its row shape and dtype"
        )


@dataclass(eq=False)
class RowDtypeError(ContractError):
    """A dtype that no row may have."""

    scope: ClassVar[Scope] = Scope.CACHE
    name: str
    dtype: str | None
    known: Sequence[str]

    def sentence(self) -> str:
        return f"rows of {self.name} cannot be {self.dtype}; known are {', '.join(self.known)}"


@dataclass(eq=False)
class OutputNameError(ContractError):
    """A name that cannot be one, or that comes twice in a step."""

    scope: ClassVar[Scope] = Scope.CACHE
    name: object
    why: str

    def sentence(self) -> str:
        return f"output name {self.name!r}: {self.why}"


@dataclass(eq=False)
class IdentityNotComputedError(ContractError):
    """An identity for a block that the step does not compute."""

    step: int
    block: int

    def sentence(self) -> str:
        return (
            f"step {self.step}: an identity is given for block {self.block}, and the layout computes no "
            "slot of it; give a block's identity in the step that completes it"
        )


# --- Limits ---------------------------------------------------------------------------------------------------


@dataclass(eq=False)
class NamesExhaustedError(CapacityError):
    """One name more than the configuration allows."""

    scope: ClassVar[Scope] = Scope.CACHE
    name: str
    names_max: int

    def sentence(self) -> str:
        return f"{self.name} would be name {self.names_max + 1} of at most {self.names_max}; raise names_max"


@dataclass(eq=False)
class PoolExhaustedError(CapacityError):
    """A name whose pool would not fit; refused when it is first seen, never cached in part."""

    scope: ClassVar[Scope] = Scope.CACHE
    name: str
    needed: int
    used: int
    pool_bytes_max: int

    def sentence(self) -> str:
        return (
            f"{self.name} needs {self.needed} bytes of pool, and {self.used} of {self.pool_bytes_max} are used; "
            "raise pool_bytes_max, or declare the name a leftover in the policy"
        )


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


# --- Backends -------------------------------------------------------------------------------------------------


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
