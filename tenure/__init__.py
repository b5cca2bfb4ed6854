"""Tenure: a formally checked cache core for LLM serving engines."""

from tenure.block_manager import BlockManager
from tenure.core.blocks.hashing import IdentityKeys, MediaKey
from tenure.core.blocks.sequence import BlockIdentity, RequestSequence, new_sequence
from tenure.core.blocks.values import (
    Exhausted,
    GrowthReady,
    PublishRemoved,
    PublishStored,
    Ready,
    RecordTrace,
    Reserved,
    Sources,
    TokenAppended,
)
from tenure.core.config import BlockConfig
from tenure.core.errors import CapacityError, ContractError, InvariantViolation, Scope, TenureError

__version__ = "0.1.0"

__all__ = [
    "BlockConfig",
    "BlockIdentity",
    "BlockManager",
    "CapacityError",
    "ContractError",
    "Exhausted",
    "GrowthReady",
    "IdentityKeys",
    "InvariantViolation",
    "MediaKey",
    "PublishRemoved",
    "PublishStored",
    "Ready",
    "RecordTrace",
    "RequestSequence",
    "Reserved",
    "Scope",
    "Sources",
    "TenureError",
    "TokenAppended",
    "__version__",
    "new_sequence",
]
