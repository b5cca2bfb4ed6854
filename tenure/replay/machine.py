"""What the scheduler needs of whoever keeps the blocks: the block machine alone, or the joined cache."""

from collections.abc import Sequence
from typing import Protocol

from tenure.core.blocks.values import AllocationRequested, Answer, Event, GrowthReady, Ready, RequestId
from tenure.replay.counters import Counters


class Machine(Protocol):
    """Blocks, and perhaps rows, of the requests that a scheduler runs.

    Within a step: capacity, then `schedule` for everything that the step computes, `run_step`, and the reports.

    Attributes:
        counters: what happened so far.
    """

    counters: Counters

    @property
    def block_size(self) -> int:
        """Tokens per block."""
        ...

    @property
    def num_active(self) -> int:
        """Blocks in use."""
        ...

    def apply(self, event: Event) -> Answer:
        """Let an event of the block machine happen."""
        ...

    def shareable_blocks(self, request: RequestId) -> int:
        """Leading blocks of a request that a first allocation may share now; they may hold all its tokens."""
        ...

    def schedule(self, request: RequestId, before: int, after: int) -> None:
        """The step computes tokens `[before, after)` of a request, for which capacity is held."""
        ...

    def run_step(self) -> None:
        """Compute what was scheduled."""
        ...

    def report_chunk(self, request: RequestId, before: int, after: int, *, generates: bool) -> None:
        """Tokens `[before, after)` of a request are computed; if it `generates`, its next token follows."""
        ...

    def report_decode(self, requests: Sequence[RequestId]) -> None:
        """The last token of each of these is computed, and its next one follows."""
        ...

    def finish(self) -> None:
        """Every request has ended."""
        ...


def count_evictions(counters: Counters, event: Event, answer: Answer, free: int) -> None:
    """Count the copies that made room for fresh blocks: those that the `free` ones before did not cover."""
    if isinstance(answer, GrowthReady):
        fresh = len(answer.blocks)
    elif isinstance(answer, Ready) and isinstance(event, AllocationRequested):
        # Leases reuse blocks only while they hold none, so all blocks reused are among the new ones.
        fresh = len(answer.blocks) - event.reusable_blocks
    else:
        return
    counters.evicted_blocks += max(0, fresh - free)
