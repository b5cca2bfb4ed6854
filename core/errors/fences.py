"""Errors about fences and store-source snapshots."""

from dataclasses import dataclass

from tenure.core.errors.base import CapacityError, ContractError, number_list, request_name


@dataclass(eq=False)
class EmptyDependenciesError(ContractError):
    """An authorization that names nothing."""

    request: int | str

    def sentence(self) -> str:
        return f"{request_name(self.request)}: an authorization must name at least one dependency"


@dataclass(eq=False)
class NothingToAuthorizeError(ContractError):
    """An authorization for a lease without pending writes."""

    request: int | str

    def sentence(self) -> str:
        return f"{request_name(self.request)} has no pending capacity writes to authorize"


@dataclass(eq=False)
class DependencyMismatchError(ContractError):
    """An authorization that does not name what is pending, in order."""

    request: int | str
    expected: tuple[int, ...]
    found: tuple[int, ...]

    def sentence(self) -> str:
        return (
            f"{request_name(self.request)}: authorization names {number_list(self.found)}, "
            f"pending is {number_list(self.expected)}; "
            "ask for the allocation again and pass its dependencies on as they are"
        )


@dataclass(eq=False)
class OmittedDependencyError(ContractError):
    """A block's pending dependency that an authorization leaves out."""

    block: int
    dependency: int

    def sentence(self) -> str:
        return f"block {self.block}: the authorization omits its pending dependency {self.dependency}"


@dataclass(eq=False)
class AuthorizedTwiceError(ContractError):
    """A block whose write is authorized already."""

    block: int

    def sentence(self) -> str:
        return f"block {self.block}: its write is already authorized"


@dataclass(eq=False)
class EmptySnapshotError(ContractError):
    """A store-source snapshot of nothing."""

    request: int | str

    def sentence(self) -> str:
        return f"{request_name(self.request)}: a store-source snapshot needs at least one block"


@dataclass(eq=False)
class UnknownSnapshotError(ContractError):
    """A snapshot id that never lived, was used, or whose lease changed."""

    snapshot: int

    def sentence(self) -> str:
        return (
            f"snapshot {self.snapshot} is unknown: it was attached or discarded, its lease changed, "
            "or it was never taken"
        )


@dataclass(eq=False)
class SnapshotOwnerError(ContractError):
    """A snapshot attached for another request."""

    snapshot: int
    owner: int | str
    request: int | str

    def sentence(self) -> str:
        return f"snapshot {self.snapshot} belongs to {request_name(self.owner)}, not to {request_name(self.request)}"


@dataclass(eq=False)
class SnapshotsExhaustedError(CapacityError):
    """One more live snapshot than configured."""

    limit: int

    def sentence(self) -> str:
        return f"{self.limit} store-source snapshots are live (snapshots_max); attach or discard some first"


@dataclass(eq=False)
class DependencyRangeError(ContractError):
    """A dependency id that is no unsigned 64-bit number."""

    dependency: object

    def sentence(self) -> str:
        return f"dependency {self.dependency!r} is not in [0, 2**64); number your transfers"


@dataclass(eq=False)
class DependencyPendingError(ContractError):
    """A dependency id that is in use."""

    dependency: int

    def sentence(self) -> str:
        return f"dependency {self.dependency} is already pending; satisfy it before its id is attached anew"


@dataclass(eq=False)
class SourcesChangedError(ContractError):
    """Store sources that another transfer has taken since the snapshot."""

    blocks: tuple[int, ...]

    def sentence(self) -> str:
        return (
            f"source blocks {number_list(self.blocks)} changed after the snapshot: gone, repeated, "
            "or read by another transfer"
        )
