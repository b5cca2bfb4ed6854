"""Errors about reservations."""

from dataclasses import dataclass

from tenure.core.errors.base import ContractError, number_list, request_name


@dataclass(eq=False)
class UnknownReservationError(ContractError):
    """A reservation id that never lived or is dead."""

    reservation: int

    def sentence(self) -> str:
        return f"reservation {self.reservation} is unknown: it was released, cancelled or activated, or never made"


@dataclass(eq=False)
class ReservationKindError(ContractError):
    """A decode reservation where a destination is wanted, or the reverse."""

    reservation: int
    found: str
    expected: str

    def sentence(self) -> str:
        return f"reservation {self.reservation} is a {self.found} reservation; this needs a {self.expected} one"


@dataclass(eq=False)
class ReservationTooSmallError(ContractError):
    """A decode reservation that does not cover the growth."""

    reservation: int
    request: int | str
    needed: int
    left: int

    def sentence(self) -> str:
        return (
            f"reservation {self.reservation} has {self.left} blocks left; "
            f"{request_name(self.request)} grows by {self.needed}"
        )


@dataclass(eq=False)
class ReservationOwnerError(ContractError):
    """A destination activated for another request, or for a later lease of the same id."""

    reservation: int
    owner: int | str
    request: int | str

    def sentence(self) -> str:
        if self.owner == self.request:
            return (
                f"reservation {self.reservation} was made for an earlier lease of {request_name(self.owner)}; cancel it"
            )
        return (
            f"reservation {self.reservation} belongs to {request_name(self.owner)}, not to {request_name(self.request)}"
        )


@dataclass(eq=False)
class ReservationExceedsPromptError(ContractError):
    """A destination with more blocks than the prompt."""

    reservation: int
    blocks: int
    prompt_blocks: int

    def sentence(self) -> str:
        return f"reservation {self.reservation} has {self.blocks} blocks, the prompt only {self.prompt_blocks}"


@dataclass(eq=False)
class PendingDependenciesError(ContractError):
    """A destination whose capacity is still read by earlier transfers."""

    reservation: int
    dependencies: tuple[int, ...]

    def sentence(self) -> str:
        return (
            f"reservation {self.reservation} cannot be activated while dependencies {number_list(self.dependencies)} "
            "still read its capacity; satisfy them first"
        )


@dataclass(eq=False)
class EmptySuffixError(ContractError):
    """An external prefix without a transferred suffix."""

    request: int | str

    def sentence(self) -> str:
        return (
            f"{request_name(self.request)}: an external prefix needs at least one transferred block; "
            "use plain allocation"
        )


@dataclass(eq=False)
class SuffixBeyondTableError(ContractError):
    """An external prefix longer than the request."""

    request: int | str
    blocks: int
    table_blocks: int

    def sentence(self) -> str:
        return (
            f"{request_name(self.request)}: prefix and suffix are {self.blocks} blocks, its table "
            f"has {self.table_blocks}"
        )


@dataclass(eq=False)
class SuffixMismatchError(ContractError):
    """A transferred block that is not the request's at that position."""

    request: int | str
    position: int
    expected: int | None
    found: int

    def sentence(self) -> str:
        return (
            f"{request_name(self.request)}, block {self.position}: suffix hash {self.found} is not "
            f"its own {self.expected}"
        )
