"""Configuration of the machines, with every limit; checked when it is made."""

import operator
from typing import Final, SupportsIndex, cast

from pydantic import BaseModel, ConfigDict, Field

U32_MAX: Final = 2**32 - 1
U64_MAX: Final = 2**64 - 1
BLOCKS_MAX: Final = 2**40
"""Capacity is a number here, not memory: blocks that were never used cost nothing."""


def as_int(value: object) -> int | None:
    """A whole number as a plain int, whatever kind of integer it is; None if it is no integer."""
    if type(value) is int:
        return value
    try:
        return operator.index(cast("SupportsIndex", value))
    except TypeError:
        return None


class BlockConfig(BaseModel):
    """What a block machine is built with.

    Attributes:
        capacity: physical blocks.
        block_size: tokens per block.
        prefix_caching: whether computed blocks become visible under their hash.
        kv_events: whether anybody listens to KV events; if not, none is built and no event id is used.
        trace: whether an occupancy record accompanies every KV event that is due, listened to or not.
        dp_rank: data-parallel rank, repeated in every KV event.
        snapshots_max: live store-source snapshots; one more is refused.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    capacity: int = Field(gt=0, le=BLOCKS_MAX)
    block_size: int = Field(gt=0, le=2**20)
    prefix_caching: bool = True
    kv_events: bool = False
    trace: bool = False
    dp_rank: int = Field(default=0, ge=0, le=U32_MAX)
    snapshots_max: int = Field(default=1024, gt=0)
