"""What happens to the KV events of a replay: they are counted, and written where they are wanted."""

from typing import assert_never

from tenure.core.blocks.values import Command, KvEvent, PublishRemoved, PublishStored, RecordTrace
from tenure.replay.counters import Counters
from tenure.replay.event_log import EventLog


class KvFeed:
    """Takes KV events in order."""

    def __init__(self, counters: Counters, log: EventLog | None) -> None:
        self._counters = counters
        self._log = log

    def take(self, command: Command) -> None:
        """Count an event, and write it.

        Raises:
            OutputError: it could not be written.
        """
        match command:
            case PublishStored():
                self._counters.stored_events += 1
                self._counters.stored_hashes += len(command.block_hashes)
                self._write(command)
            case PublishRemoved():
                self._counters.removed_events += 1
                self._counters.removed_hashes += len(command.block_hashes)
                self._write(command)
            case RecordTrace():
                # The counters keep their own account of occupancy.
                pass
            case _:
                assert_never(command)

    def _write(self, event: KvEvent) -> None:
        if self._log is not None:
            self._log.write(event)
