"""Drives the block machine alone: gives it events, keeps its newest state, and carries out what it commands."""

from collections.abc import Sequence

from tenure.core.blocks import queries
from tenure.core.blocks.machine import transition
from tenure.core.blocks.state import BlockState
from tenure.core.blocks.values import Answer, Event, RequestId, StepComputed, TokenGenerated, TokensComputed
from tenure.core.config import BlockConfig
from tenure.replay.checking import Checker
from tenure.replay.counters import Counters
from tenure.replay.event_log import EventLog
from tenure.replay.kv_feed import KvFeed
from tenure.replay.machine import count_evictions


class Driver:
    """One machine, what it has done so far, and who watches it; a `Machine` without rows.

    Attributes:
        state: the newest state.
        counters: what the transitions add up to.
    """

    def __init__(
        self, config: BlockConfig, counters: Counters, log: EventLog | None = None, checker: Checker | None = None
    ) -> None:
        self.state = BlockState.initial(config)
        self.counters = counters
        self._feed = KvFeed(counters, log)
        self._checker = checker

    @property
    def block_size(self) -> int:
        """Tokens per block."""
        return self.state.config.block_size

    @property
    def num_active(self) -> int:
        """Blocks in use."""
        return queries.num_active(self.state)

    def apply(self, event: Event) -> Answer:
        """Let `event` happen; the machine's answer.

        Raises:
            InvariantViolation: the checker found a rule broken.
            OutputError: a KV event could not be written.
        """
        before = self.state
        free = queries.num_free(before)
        self.state, answer, commands = transition(before, event)
        self.counters.transitions += 1
        count_evictions(self.counters, event, answer, free)
        for command in commands:
            self._feed.take(command)
        if self._checker is not None:
            self._checker.observe(before, event, self.state, answer, commands)
        return answer

    def shareable_blocks(self, request: RequestId) -> int:
        """Leading blocks of a request that are visible."""
        return queries.resident_prefix_blocks(self.state, request)

    def schedule(self, request: RequestId, before: int, after: int) -> None:
        """Nothing: blocks become visible when they are computed."""

    def run_step(self) -> None:
        """Nothing: what a real engine would compute now is left out."""

    def report_chunk(self, request: RequestId, before: int, after: int, *, generates: bool) -> None:
        """Tell of the tokens computed, and of the one that follows."""
        self.apply(TokensComputed(request, before, after))
        if generates:
            self.apply(TokenGenerated(request))

    def report_decode(self, requests: Sequence[RequestId]) -> None:
        """Tell of all in one event."""
        self.apply(StepComputed(tuple(requests)))

    def finish(self) -> None:
        """Check what must hold when every request has ended."""
        if self._checker is not None:
            self._checker.check_end(self.state)
