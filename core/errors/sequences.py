"""Errors about requests and their sequences."""

from dataclasses import dataclass

from tenure.core.errors.base import ContractError, request_name


@dataclass(eq=False)
class RequestIdError(ContractError):
    """A request id that is neither a str nor a UUID's int."""

    request: object

    def sentence(self) -> str:
        return f"request id {self.request!r} is no str and no int in [0, 2**128); use a UUID's integer or any string"


@dataclass(eq=False)
class InvalidKeysError(ContractError):
    """A media item that covers no tokens."""

    offset: int
    length: int

    def sentence(self) -> str:
        return (
            f"a media item at offset {self.offset} of length {self.length} covers no tokens; give "
            "offset >= 0, length > 0"
        )


@dataclass(eq=False)
class SequenceBlockSizeError(ContractError):
    """A block size that no sequence can have, or not the machine's."""

    request: int | str
    found: int
    expected: int | None = None

    def sentence(self) -> str:
        wanted = "at least 2" if self.expected is None else f"the machine's {self.expected}"
        return f"{request_name(self.request)}: block size {self.found} is not {wanted}"


@dataclass(eq=False)
class NegativeCountError(ContractError):
    """A count below zero, or one that is no whole number."""

    request: int | str | None
    what: str
    value: object

    def sentence(self) -> str:
        where = "" if self.request is None else f"{request_name(self.request)}: "
        return f"{where}{self.what} is {self.value!r}; it must be a whole number and not negative"


@dataclass(eq=False)
class TokenRangeError(ContractError):
    """A token that is no unsigned 32-bit number."""

    request: int | str
    found: object

    def sentence(self) -> str:
        return (
            f"{request_name(self.request)}: token {self.found} is not in [0, 2**32); arrays must be "
            "one-dimensional uint32"
        )


@dataclass(eq=False)
class HashRangeError(ContractError):
    """A hash that is no unsigned 64-bit number."""

    request: int | str
    position: int
    found: int

    def sentence(self) -> str:
        return f"{request_name(self.request)}, block {self.position}: hash {self.found} is not in [0, 2**64)"


@dataclass(eq=False)
class IdentityCountError(ContractError):
    """Identities that do not match the prompt's length."""

    request: int | str
    expected: int
    found: int

    def sentence(self) -> str:
        return (
            f"{request_name(self.request)}: {self.found} identities for a prompt of {self.expected} "
            "blocks; give one a block"
        )


@dataclass(eq=False)
class IdentityLayoutError(ContractError):
    """A full block without a hash, or a partial one with a hash."""

    request: int | str
    position: int
    is_full: bool

    def sentence(self) -> str:
        rule = "a full block needs a sequence hash" if self.is_full else "a partial tail must not have one"
        return f"{request_name(self.request)}, block {self.position}: {rule}"


@dataclass(eq=False)
class OutputExhaustedError(ContractError):
    """One token more than the request may generate."""

    request: int | str
    max_output: int

    def sentence(self) -> str:
        return f"{request_name(self.request)}: all {self.max_output} output tokens are generated; finish it"


@dataclass(eq=False)
class StepTokensError(ContractError):
    """A decode step with a different number of tokens than requests."""

    requests: int
    tokens: int

    def sentence(self) -> str:
        return f"a step of {self.requests} requests brought {self.tokens} tokens; give one a request, or none at all"


@dataclass(eq=False)
class NothingComputedError(ContractError):
    """A decode step of a request that has no token."""

    request: int | str

    def sentence(self) -> str:
        return f"{request_name(self.request)} has no tokens, so a step cannot have computed one of them"
