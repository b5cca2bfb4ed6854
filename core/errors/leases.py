"""Errors about leases."""

from dataclasses import dataclass

from tenure.core.errors.base import ContractError, number_list, request_name


@dataclass(eq=False)
class UnknownLeaseError(ContractError):
    """No open lease has this id."""

    request: int | str

    def sentence(self) -> str:
        return f"{request_name(self.request)} has no open lease: it was never opened, or is finished"


@dataclass(eq=False)
class LeaseAlreadyOpenError(ContractError):
    """An id whose earlier lease is still open."""

    request: int | str

    def sentence(self) -> str:
        return f"{request_name(self.request)} already has an open lease; finish it before the id is used again"


@dataclass(eq=False)
class AllocationBeyondTableError(ContractError):
    """More tokens than the lease's table has room for."""

    request: int | str
    tokens: int
    table_tokens: int

    def sentence(self) -> str:
        return (
            f"{request_name(self.request)}: {self.tokens} tokens are more than its table of {self.table_tokens} holds; "
            "append the tokens to the sequence first"
        )


@dataclass(eq=False)
class FencedGrowthError(ContractError):
    """Growth while earlier capacity is not authorized."""

    request: int | str
    dependencies: tuple[int, ...]

    def sentence(self) -> str:
        return (
            f"{request_name(self.request)} cannot grow before its writes behind dependencies "
            f"{number_list(self.dependencies)} "
            "are authorized; authorize them, or ask again for what it holds once they are satisfied"
        )


@dataclass(eq=False)
class PrefixExceedsGrowthError(ContractError):
    """More reusable blocks than the allocation covers."""

    request: int | str
    reusable: int
    growth: int

    def sentence(self) -> str:
        return (
            f"{request_name(self.request)}: {self.reusable} new reusable blocks exceed the "
            f"{self.growth} blocks newly allocated"
        )


@dataclass(eq=False)
class CachingOffError(ContractError):
    """Reuse where nothing is ever cached."""

    request: int | str
    reusable: int

    def sentence(self) -> str:
        return f"{request_name(self.request)}: {self.reusable} reusable blocks, but prefix caching is off; pass 0"


@dataclass(eq=False)
class UnresolvedPrefixError(ContractError):
    """A prefix block without a hash."""

    request: int | str
    position: int

    def sentence(self) -> str:
        return (
            f"{request_name(self.request)}, block {self.position}: a reusable prefix must be of full "
            "blocks, this one has no hash"
        )


@dataclass(eq=False)
class PrefixNotResidentError(ContractError):
    """A prefix hash that is not visible (any more)."""

    block_hash: int

    def sentence(self) -> str:
        return f"prefix hash {self.block_hash} is not resident; look the prefix up again"


@dataclass(eq=False)
class PrefixExceedsLayoutError(ContractError):
    """More prefix candidates than blocks in all."""

    candidates: int
    total: int

    def sentence(self) -> str:
        return f"{self.candidates} prefix blocks exceed a layout of {self.total} blocks"


@dataclass(eq=False)
class LeaseResidentError(ContractError):
    """A destination for a lease that already holds blocks."""

    request: int | str
    blocks: int

    def sentence(self) -> str:
        return f"{request_name(self.request)} already holds {self.blocks} blocks; a destination needs an empty lease"


@dataclass(eq=False)
class ComputedBackwardsError(ContractError):
    """A computed range that ends before it begins."""

    request: int | str
    before: int
    after: int

    def sentence(self) -> str:
        return f"{request_name(self.request)}: computed tokens went from {self.before} back to {self.after}"


@dataclass(eq=False)
class UnauthorizedWriteError(ContractError):
    """A block was computed although its write was not ordered behind the transfer that reads it."""

    request: int | str | None
    block: int
    dependencies: tuple[int, ...]

    def sentence(self) -> str:
        where = "" if self.request is None else f"{request_name(self.request)}, "
        return (
            f"{where}block {self.block} may not be written before dependencies {number_list(self.dependencies)}: "
            "authorize its writes, or wait and ask for the allocation again"
        )


@dataclass(eq=False)
class BlockNotHeldError(ContractError):
    """A block was computed that the lease does not hold."""

    request: int | str
    position: int
    held: int

    def sentence(self) -> str:
        return (
            f"{request_name(self.request)}: block {self.position} was computed, but only {self.held} "
            "blocks are held; allocate first"
        )


@dataclass(eq=False)
class MissingTokensError(ContractError):
    """A block's tokens are not known (yet, or any more)."""

    request: int | str
    position: int
    window_start: int
    length: int

    def sentence(self) -> str:
        return (
            f"{request_name(self.request)}: block {self.position} needs all its tokens, "
            f"but only [{self.window_start}, {self.length}) are known"
        )


@dataclass(eq=False)
class UnresolvedParentError(ContractError):
    """A block was computed before the one in front of it was resolved."""

    request: int | str
    position: int

    def sentence(self) -> str:
        return (
            f"{request_name(self.request)}: block {self.position} cannot be named while block {self.position - 1} is "
            "unresolved; report computed tokens without leaving any out"
        )


@dataclass(eq=False)
class UnresolvedTailError(ContractError):
    """Everything is computed and the last block, although full, has no name."""

    request: int | str
    computed: int
    length: int

    def sentence(self) -> str:
        return (
            f"{request_name(self.request)}: {self.computed} of {self.length} tokens are "
            "computed, but its last full block "
            "was never resolved; report computed tokens without leaving any out"
        )
