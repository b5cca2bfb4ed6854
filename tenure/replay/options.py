"""What a replay can be told, with every limit; checked when it is made."""

from pathlib import Path
from typing import Annotated, Final

from pydantic import BaseModel, ConfigDict, Field

from tenure.core.config import BLOCKS_MAX, U64_MAX
from tenure.replay.errors import OptionError
from tenure.replay.requests import TRACE_BLOCK_MAX
from tenure.replay.row_options import RowOptions

BLOCK_SIZE_MAX: Final = 2**20
RUNNING_MAX: Final = 2**16
STEP_TOKENS_MAX: Final = 2**31
UNLIMITED: Final = BLOCKS_MAX
"""A capacity that no trace uses up; what is never used costs nothing."""


class ReplayOptions(BaseModel):
    """How a trace is replayed.

    Attributes:
        capacity: physical blocks of the cache.
        block_size: tokens per block; divides the block of every trace.
        trace_block_size: tokens per hash id in Mooncake traces, which do not say it themselves.
        max_running: requests that hold blocks at the same time.
        max_batched_tokens: tokens computed in one step.
        limit: requests to replay; None for all.
        seed: decides the tokens, which no trace tells.
        events: a file for the KV events, one JSON object a line.
        event_token_ids: whether Stored events carry the tokens.
        check: whether every rule is checked while the trace is replayed.
        check_every: look at the whole state after every how many transitions, or steps where rows are carried; None
            for each transition, or for as many steps as a cache of that size can afford.
        skip_bad: whether requests that cannot be replayed are counted instead of ending the replay.
        rows: the rows that the replay carries, and what disturbs their requests; None to replay blocks alone.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    capacity: Annotated[int, Field(ge=1, le=BLOCKS_MAX)] = 16384
    block_size: Annotated[int, Field(ge=2, le=BLOCK_SIZE_MAX)] = 16
    trace_block_size: Annotated[int, Field(ge=1, le=TRACE_BLOCK_MAX)] = 512
    max_running: Annotated[int, Field(ge=1, le=RUNNING_MAX)] = 64
    max_batched_tokens: Annotated[int, Field(ge=1, le=STEP_TOKENS_MAX)] = 8192
    limit: Annotated[int, Field(ge=1)] | None = None
    seed: Annotated[int, Field(ge=0, le=U64_MAX)] = 0
    events: Path | None = None
    event_token_ids: bool = False
    check: bool = False
    check_every: Annotated[int, Field(ge=1)] | None = None
    skip_bad: bool = False
    rows: RowOptions | None = None

    def check_together(self) -> None:
        """Find options that are right one by one and wrong together.

        Raises:
            OptionError: a step has no room for one token of every running request; or see `RowOptions`.
        """
        if self.max_batched_tokens < self.max_running:
            raise OptionError(
                f"a step of {self.max_batched_tokens} tokens has no room for {self.max_running} running requests",
                "raise --max-batched-tokens or lower --max-running",
            )
        if self.rows is not None:
            self.rows.check_together(self.capacity * self.block_size, self.max_batched_tokens)
