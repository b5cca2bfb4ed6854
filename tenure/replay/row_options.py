"""What a replay that carries rows can be told about them, with every limit; checked when it is made."""

from typing import Annotated, Final, Literal

from pydantic import BaseModel, ConfigDict, Field

from tenure.replay.errors import OptionError
from tenure.replay.row_specs import RowSpec

NAMES_MAX: Final = 64
DEPTH_MAX: Final = 2**10
BUDGET_MAX: Final = 2**40
PREEMPT_RATE_MAX: Final = 0.5
"""Requests must get on: whoever is preempted begins anew, but for what it finds again."""
MEMORY_MAX: Final = 2**36
"""Bytes of pool, pages and engine buffers that a replay is willing to take: 64 GiB."""

Rate = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]


class RowOptions(BaseModel):
    """How rows are carried, and what disturbs their requests.

    Attributes:
        specs: the names, at least one.
        staging_depth: pages of the staging pool.
        builder_lag: by how many steps the builder is late at most; a draw decides for each step.
        abort_rate: the share of requests that are aborted, each after a number of steps that a draw decides.
        preempt_rate: the probability that a step begins with the preemption of a request that a draw chooses.
        discard_rate: the probability that a step is discarded instead of materialized.
        visibility: when a block can be hit: as soon as its rows are saved, or as soon as they are scheduled.
        budget_bytes: device bytes that clones of rows may take.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    specs: Annotated[tuple[RowSpec, ...], Field(min_length=1, max_length=NAMES_MAX)]
    staging_depth: Annotated[int, Field(ge=2, le=DEPTH_MAX)] = 4
    builder_lag: Annotated[int, Field(ge=0, le=DEPTH_MAX)] = 1
    abort_rate: Rate = 0.0
    preempt_rate: Annotated[float, Field(ge=0, le=PREEMPT_RATE_MAX, allow_inf_nan=False)] = 0.0
    discard_rate: Rate = 0.0
    visibility: Literal["computed", "scheduled"] = "computed"
    budget_bytes: Annotated[int, Field(ge=1, le=BUDGET_MAX)] = 2**30

    def check_together(self, slots: int, step_tokens: int) -> None:
        """Find options that are right one by one and wrong together.

        Raises:
            OptionError: a name comes twice, the builder may lag as far as there are pages, or the rows of that many
                slots, and of steps of that many tokens, take more memory than a replay takes.
        """
        names = [spec.name for spec in self.specs]
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise OptionError(f"--rows names {', '.join(twice)} more than once", "give each name once")
        if self.builder_lag >= self.staging_depth:
            raise OptionError(
                f"a builder that lags {self.builder_lag} steps holds as many pages, and a save needs one more than "
                f"the {self.staging_depth} that there are would leave",
                "lower --builder-lag below --staging-depth, or raise --staging-depth",
            )
        row_bytes = sum(spec.row_bytes for spec in self.specs)
        # The engine has one buffer of a step's size besides the pages.
        needed = row_bytes * (slots + step_tokens * (self.staging_depth + 1))
        if needed > MEMORY_MAX:
            raise OptionError(
                f"{row_bytes} bytes a token, for {slots} slots and {self.staging_depth} pages of {step_tokens} tokens, "
                f"are {needed} bytes, and a replay takes {MEMORY_MAX} at most",
                "lower --capacity, --max-batched-tokens or the row shapes of --rows",
            )
