"""Tenure: a formally checked cache core for LLM serving engines."""

from tenure.block_manager import BlockManager
from tenure.block_table import BlockTable, NumpyBlockTable
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
from tenure.core.config import BlockConfig, CacheConfig, RowConfig, RowPolicy
from tenure.core.errors import BackendError, CapacityError, ContractError, InvariantViolation, Scope, TenureError
from tenure.core.rows.events import Aborted, Extended, Finished, Resumed, Started, WriteLayout
from tenure.core.rows.names import HIDDEN, RowFormat, Schedule
from tenure.joined_cache import JoinedCache
from tenure.output_cache import OutputCache
from tenure.outputs import StepOutputs
from tenure.stats import CacheStats

__version__ = "0.1.0"

__all__ = [
    "Aborted",
    "BackendError",
    "BlockConfig",
    "BlockIdentity",
    "BlockManager",
    "BlockTable",
    "CacheConfig",
    "CacheStats",
    "CapacityError",
    "ContractError",
    "Exhausted",
    "Extended",
    "Finished",
    "GrowthReady",
    "HIDDEN",
    "IdentityKeys",
    "InvariantViolation",
    "JoinedCache",
    "MediaKey",
    "NumpyBlockTable",
    "OutputCache",
    "PublishRemoved",
    "PublishStored",
    "Ready",
    "RecordTrace",
    "RequestSequence",
    "Reserved",
    "Resumed",
    "RowConfig",
    "RowFormat",
    "RowPolicy",
    "Schedule",
    "Scope",
    "Sources",
    "Started",
    "StepOutputs",
    "TenureError",
    "TokenAppended",
    "WriteLayout",
    "__version__",
    "new_sequence",
]
