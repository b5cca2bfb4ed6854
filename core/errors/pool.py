"""Errors about the pool of blocks."""

from dataclasses import dataclass

from tenure.core.errors.base import ContractError


@dataclass(eq=False)
class UnknownCopyError(ContractError):
    """A block without content."""

    block: int

    def sentence(self) -> str:
        return f"block {self.block} holds no copy: it is free, reserved or outside the pool"


@dataclass(eq=False)
class CopyNotPrivateError(ContractError):
    """A cached copy where only a private one will do."""

    block: int
    block_hash: int

    def sentence(self) -> str:
        return (
            f"block {self.block} is already cached under hash {self.block_hash}; only a private copy "
            "can enter the cache"
        )


@dataclass(eq=False)
class ReferenceUnderflowError(ContractError):
    """A cached copy released more often than it was taken."""

    block: int

    def sentence(self) -> str:
        return f"block {self.block} has no references left to release: it was released twice"


@dataclass(eq=False)
class PinUnderflowError(ContractError):
    """A reservation's pin that is not there."""

    block: int

    def sentence(self) -> str:
        return f"block {self.block} has no pin left to take back"
