"""KV events on their way to whoever listens: in order, outside every other lock, one thread at a time."""

import logging
from collections import deque
from collections.abc import Callable, Iterable
from threading import Lock
from typing import TypeAlias

from tenure.core.blocks.values import Command

_LOG = logging.getLogger("tenure")
Sink: TypeAlias = Callable[[Command], None]


class Outbox:
    """Hands commands to a sink in the order in which they were put, whoever put them."""

    def __init__(self, sink: Sink | None) -> None:
        self._sink = sink
        self._commands: deque[Command] = deque()
        # Whoever holds it hands commands over.
        self._delivery = Lock()

    def put(self, commands: Iterable[Command]) -> None:
        """Take commands; whoever holds the machine's lock calls this, so that their order is the machine's."""
        self._commands.extend(commands)

    def deliver(self) -> None:
        """Hand over what was put.

        A thread that finds another one delivering leaves its commands to it; that one looks again after letting go
        of the delivery lock, so nothing is left behind and a slow sink blocks nobody's transition.
        """
        while self._commands and self._delivery.acquire(blocking=False):
            try:
                while self._commands:
                    self._hand_over(self._commands.popleft())
            finally:
                self._delivery.release()

    def flush(self) -> None:
        """Wait until the sink was given everything that was put before this call. Not to be called by the sink."""
        while True:
            self.deliver()
            with self._delivery:
                if not self._commands:
                    return

    def _hand_over(self, command: Command) -> None:
        if self._sink is None:
            return
        try:
            self._sink(command)
        except Exception:
            # The event's id stays used; a listener's fault must not reach the request that caused the event.
            _LOG.exception("the sink failed on %r", command)
