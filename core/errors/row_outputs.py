"""Errors of the row machine about what a step saves: its layout, its outputs, and the room for them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from tenure.core.errors.base import CapacityError, ContractError, Scope, number_list, request_name


def _shape(shape: Sequence[int] | None) -> str:
    return "not a tensor" if shape is None else f"a tensor of shape {number_list(shape)}"


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
class LayoutMissingError(ContractError):
    """A step whose slots nobody said."""

    def sentence(self) -> str:
        return (
            "nobody says which slots the step computes; give a layout (slots, to drop it), or make the cache with a "
            "block table"
        )


@dataclass(eq=False)
class TokenCountError(ContractError):
    """A number of tokens unlike the layout's."""

    found: int
    expected: int

    def sentence(self) -> str:
        return (
            f"num_tokens_unpadded is {self.found}, and the layout has {self.expected} tokens; "
            "the block table is not the one of this batch"
        )


@dataclass(eq=False)
class BatchRowError(ContractError):
    """A row of the batch's block table that cannot be."""

    request: int | str
    problem: str

    def sentence(self) -> str:
        return f"{request_name(self.request)} in the block table of the batch: {self.problem}"
