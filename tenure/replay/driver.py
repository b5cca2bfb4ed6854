"""Drives the block machine: gives it events, keeps its newest state, and carries out what it commands."""

from typing import assert_never

from tenure.core.blocks import queries
from tenure.core.blocks.machine import transition
from tenure.core.blocks.state import BlockState
from tenure.core.blocks.values import (
    AllocationRequested,
    Answer,
    Command,
    Event,
    GrowthReady,
    KvEvent,
    PublishRemoved,
    PublishStored,
    Ready,
    RecordTrace,
)
from tenure.core.config import BlockConfig
from tenure.replay.checking import Checker
from tenure.replay.counters import Counters
from tenure.replay.event_log import EventLog


class Driver:
    """One machine, what it has done so far, and who watches it.

    Attributes:
        state: the newest state.
        counters: what the transitions add up to.
    """

    def __init__(
        self, config: BlockConfig, counters: Counters, log: EventLog | None = None, checker: Checker | None = None
    ) -> None:
        self.state = BlockState.initial(config)
        self.counters = counters
        self._log = log
        self._checker = checker

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
        self._count_evictions(event, answer, free)
        for command in commands:
            self._carry_out(command)
        if self._checker is not None:
            self._checker.observe(before, event, self.state, answer, commands)
        return answer

    def check_end(self) -> None:
        """Check what must hold when every request has finished."""
        if self._checker is not None:
            self._checker.check_end(self.state)

    def _count_evictions(self, event: Event, answer: Answer, free: int) -> None:
        """Count the copies that made room for fresh blocks: those that free capacity did not cover."""
        if isinstance(answer, GrowthReady):
            fresh = len(answer.blocks)
        elif isinstance(answer, Ready) and isinstance(event, AllocationRequested):
            # Leases reuse blocks only while they hold none, so all blocks reused are among the new ones.
            fresh = len(answer.blocks) - event.reusable_blocks
        else:
            return
        self.counters.evicted_blocks += max(0, fresh - free)

    def _carry_out(self, command: Command) -> None:
        match command:
            case PublishStored():
                self.counters.stored_events += 1
                self.counters.stored_hashes += len(command.block_hashes)
                self._publish(command)
            case PublishRemoved():
                self.counters.removed_events += 1
                self.counters.removed_hashes += len(command.block_hashes)
                self._publish(command)
            case RecordTrace():
                # The counters keep their own account of occupancy.
                pass
            case _:
                assert_never(command)

    def _publish(self, event: KvEvent) -> None:
        if self._log is not None:
            self._log.write(event)
