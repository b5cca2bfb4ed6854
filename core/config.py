"""Configuration of the machines, with every limit; checked when it is made."""

import operator
from typing import Final, Literal, Self, SupportsIndex, cast

from pydantic import BaseModel, ConfigDict, Field, model_validator

U32_MAX: Final = 2**32 - 1
U64_MAX: Final = 2**64 - 1
BLOCKS_MAX: Final = 2**40
"""Capacity is a number here, not memory: blocks that were never used cost nothing."""
SLOTS_MAX: Final = 2**31
"""Slots of a row pool; per slot and name the row machine keeps 8 bytes."""


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


class RowPolicy(BaseModel):
    """What a model's outputs are.

    Attributes:
        hidden: whether hidden states are cached and returned; if not, they are never looked at.
        immediate: mm names whose outputs are per-token rows, copied to the host in their step.
        deferred: mm names whose outputs are per-token rows that reach the pool when their request ends.
        leftovers: mm names that are never per-token rows.
        infer: whether a name that is not declared is classified by the first output that tells: a tensor of at least
            two dimensions with one row a token is immediate, anything else a leftover. A step of one token tells
            nothing.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    hidden: bool = True
    immediate: frozenset[str] = frozenset()
    deferred: frozenset[str] = frozenset()
    leftovers: frozenset[str] = frozenset()
    infer: bool = True

    @model_validator(mode="after")
    def _names_are_declared_once(self) -> Self:
        for one, other in (
            (self.immediate, self.deferred),
            (self.immediate, self.leftovers),
            (self.deferred, self.leftovers),
        ):
            if both := sorted(one & other):
                msg = f"a name has one class, and these are declared with two: {', '.join(both)}"
                raise ValueError(msg)
        return self


class RowConfig(BaseModel):
    """What a row machine is built with.

    Attributes:
        num_blocks: blocks of the KV cache; the pool has `num_blocks * block_size` slots.
        block_size: tokens per block.
        page_rows_max: rows of one page: the most tokens that one step may have.
        pages: depth of the staging pool, in pages.
        builder_lag_max: steps that may be saved and not yet consumed when the next save begins; less than `pages`,
            since that save needs a page of its own (R07).
        budget_bytes: device bytes that clones may be charged for; those of one step alone may be more (R08). A device
            keeps them in slabs, of which at most a quarter of this per name, or a step's rows, is not in use beside
            what is kept to be used again.
        names_max: names that may be registered.
        pool_bytes_max: bytes that the pool may take, all names together; None for no limit.
        wait_timeout_s: seconds that a call waits at most; for whoever waits.
        page_locked_bytes_max: page-locked bytes that staging may take; None for no limit. Checked where a device is
            bound: when it is, for names whose rows are known by then, and when a name is first seen.
        copy_chunk_bytes: bytes that one operation of a device copies at most; longer copies are cut, so that what
            waits behind them on the same link gets its turn.
        gathers_max: reads that are under way at the same time. Others wait; what is overwritten meanwhile is set aside
            for them (R13).
        kernel_block_size: tokens per block of the attention kernel's block table; None if it is `block_size`. It must
            divide `block_size`.
        kv_groups: KV cache groups of the engine. Only one can be mirrored by slot.
        context_parallel: ranks that share the context of one request. Only one can be mirrored.
        speculative_tokens: drafted tokens a step. Rows of tokens that are not accepted yet cannot be mirrored.
        kv_role: the part of this engine in transfers of KV. What a remote producer computed has no rows here, so a
            consumer is refused.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    num_blocks: int = Field(gt=0, le=2**31)
    block_size: int = Field(gt=0, le=2**20)
    page_rows_max: int = Field(gt=0, le=2**30)
    pages: int = Field(default=4, gt=1, le=2**16)
    builder_lag_max: int = Field(default=1, ge=0)
    budget_bytes: int = Field(default=2**30, gt=0)
    names_max: int = Field(default=256, gt=0)
    pool_bytes_max: int | None = Field(default=None, gt=0)
    wait_timeout_s: float = Field(default=30.0, gt=0, le=10**6)
    page_locked_bytes_max: int | None = Field(default=None, gt=0)
    copy_chunk_bytes: int = Field(default=2**26, ge=2**12)
    gathers_max: int = Field(default=64, gt=0)
    kernel_block_size: int | None = Field(default=None, gt=0)
    kv_groups: int = Field(default=1, gt=0)
    context_parallel: int = Field(default=1, gt=0)
    speculative_tokens: int = Field(default=0, ge=0)
    kv_role: Literal["none", "producer", "consumer", "both"] = "none"

    @property
    def num_slots(self) -> int:
        """Rows of the pool."""
        return self.num_blocks * self.block_size

    @model_validator(mode="after")
    def _parts_fit(self) -> Self:
        if self.num_slots > SLOTS_MAX:
            msg = f"{self.num_blocks} blocks of {self.block_size} tokens are more than {SLOTS_MAX} slots"
            raise ValueError(msg)
        if self.builder_lag_max >= self.pages:
            msg = (
                f"pages is {self.pages} and builder_lag_max is {self.builder_lag_max}: a save behind a builder that "
                f"lags so far needs {self.builder_lag_max + 1} pages, or it waits for ever (R07)"
            )
            raise ValueError(msg)
        return self

    @model_validator(mode="after")
    def _layout_can_be_mirrored(self) -> Self:
        off = "switch the row cache off for this engine"
        if self.kernel_block_size is not None and self.block_size % self.kernel_block_size:
            msg = (
                f"kernel_block_size is {self.kernel_block_size} and block_size is {self.block_size}: a block must be a "
                "whole number of kernel blocks, or a slot has no place in it"
            )
            raise ValueError(msg)
        if self.kv_groups > 1:
            msg = f"kv_groups is {self.kv_groups}: a token has a slot in each group, and rows have one place; {off}"
            raise ValueError(msg)
        if self.context_parallel > 1:
            msg = (
                f"context_parallel is {self.context_parallel}: slots number the tokens of one rank, and a step emits "
                f"those of all; {off}"
            )
            raise ValueError(msg)
        if self.speculative_tokens:
            msg = (
                f"speculative_tokens is {self.speculative_tokens}: a step emits rows of drafted tokens before it is "
                f"known which are accepted; {off}, or speculative decoding"
            )
            raise ValueError(msg)
        if self.kv_role in ("consumer", "both"):
            msg = (
                f"kv_role is {self.kv_role!r}: tokens that a remote producer computed have no rows in this cache, so "
                f"their hits could never be served; {off}"
            )
            raise ValueError(msg)
        return self


class CacheConfig(BaseModel):
    """What a joined cache is built with.

    Attributes:
        blocks: the block machine's configuration; prefix caching is on.
        rows: the row machine's configuration, for the same blocks.
        visibility: when a block's hash becomes visible: "computed", when the rows of its step are published; or
            "scheduled", as soon as its last token is scheduled, so that another request of the same step can hit it.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    blocks: BlockConfig
    rows: RowConfig
    visibility: Literal["computed", "scheduled"] = "computed"

    @model_validator(mode="after")
    def _machines_fit(self) -> Self:
        for what, one, other in (
            ("the number of blocks", self.blocks.capacity, self.rows.num_blocks),
            ("block_size", self.blocks.block_size, self.rows.block_size),
        ):
            if one != other:
                msg = f"{what} is {one} in the block machine and {other} in the row machine; they must agree"
                raise ValueError(msg)
        return self
