"""The builder of a replay: on its own thread, and late, it consumes the steps that were saved.

Steps are consumed in order. Each waits until a number of later steps, which a draw decides, are saved; the staging
pages must outnumber the largest, or a save would wait for a page that only its own step could set free.
"""

from collections import deque
from collections.abc import Sequence
from threading import Condition, Lock, Thread
from typing import Final, NamedTuple, Protocol

from tenure.core.blocks.values import RequestId
from tenure.replay.disturbances import BUILDER, stream
from tenure.replay.row_counters import RowCounters, SavedStep
from tenure.replay.row_options import RowOptions
from tenure.replay.verifier import Outputs, Verifier, parts_of

REORDER_RATE: Final = 0.25
"""How often a builder asks for the requests of a step in another order than the batch's."""
LOOK_AGAIN_S: Final = 0.5
"""A thread that is interrupted in the middle of waking the builder must not leave it asleep."""


class Consumable(Protocol):
    """Whoever keeps saved steps: the joined cache."""

    def materialize(self, step: int, requests: Sequence[RequestId], /) -> Outputs:
        """The rows of some requests; the step is consumed."""
        ...

    def discard_step(self, step: int, /) -> None:
        """Consume a step for nothing."""
        ...


class _Due(NamedTuple):
    """A step, how many steps must have been handed over before it is consumed, and how."""

    saved: SavedStep
    after: int
    is_discarded: bool


class Builder:
    """Materializes steps, or discards them, and verifies what comes back.

    A failure on its thread is raised by the next call that hands a step over, or ends it. From then on steps are only
    discarded, so that nobody waits for their pages.
    """

    def __init__(
        self, cache: Consumable, options: RowOptions, seed: int, counters: RowCounters, *, checks: bool
    ) -> None:
        self._cache = cache
        self._options = options
        self._counters = counters
        self._draws = stream(seed, BUILDER)
        self._verifier = Verifier(options.specs) if checks else None
        # The engine's thread enters the lock and not the condition, which an interrupt could leave held for ever.
        self._lock = Lock()
        self._changed = Condition(self._lock)
        self._steps: deque[_Due] = deque()
        self._handed = 0
        self._is_last = False
        self._is_stopped = False
        self._failure: Exception | None = None
        self._thread = Thread(target=self._run, name="tenure-builder", daemon=True)
        self._thread.start()

    # --- On the engine's thread -----------------------------------------------------------------------------------

    def hand(self, saved: SavedStep) -> None:
        """Hand a step over.

        Raises:
            Exception: what the builder failed with.
        """
        lag = int(self._draws.integers(self._options.builder_lag, endpoint=True))
        is_discarded = self._draws.random() < self._options.discard_rate
        if self._draws.random() < REORDER_RATE:
            order: list[int] = self._draws.permutation(len(saved.spans)).tolist()
            saved = saved._replace(spans=tuple(saved.spans[place] for place in order))
        with self._lock:
            self._handed += 1
            self._steps.append(_Due(saved, self._handed + lag, is_discarded))
            self._changed.notify_all()
        self._raise_failure()

    def finish(self) -> None:
        """Wait until every step is consumed; the thread has ended then.

        Raises:
            Exception: what the builder failed with.
        """
        with self._lock:
            self._is_last = True
            self._changed.notify_all()
        self._thread.join()
        self._raise_failure()

    def stop(self) -> None:
        """Begin no further step. The one at hand ends by itself, or when the cache is shut down."""
        with self._lock:
            self._is_stopped = True
            self._changed.notify_all()

    def join(self) -> None:
        """Wait for the end of the thread, which was told to stop."""
        self._thread.join()

    def _raise_failure(self) -> None:
        if self._failure is not None:
            raise self._failure

    # --- On the builder's thread ----------------------------------------------------------------------------------

    def _run(self) -> None:
        while (due := self._next()) is not None:
            try:
                if due.is_discarded or self._failure is not None:
                    self._discard(due.saved)
                else:
                    self._build(due.saved)
            except Exception as error:
                if self._failure is None:
                    self._failure = error

    def _next(self) -> _Due | None:
        """The next step, when it is due; None at the end."""
        with self._lock:
            while not self._has_next():
                self._changed.wait(LOOK_AGAIN_S)
            return self._steps.popleft() if self._steps and not self._is_stopped else None

    def _has_next(self) -> bool:
        if self._is_stopped or self._is_last or self._failure is not None:
            return self._is_stopped or self._is_last or bool(self._steps)
        return bool(self._steps) and self._steps[0].after <= self._handed

    def _discard(self, saved: SavedStep) -> None:
        self._cache.discard_step(saved.step)
        self._counters.discarded_steps += 1

    def _build(self, saved: SavedStep) -> None:
        outputs = self._cache.materialize(saved.step, [span.request for span in saved.spans])
        counters = self._counters
        for spec in self._options.specs:
            parts = parts_of(spec, saved, outputs)
            if self._verifier is not None:
                counters.verified += self._verifier.verify(spec, saved.step, parts)
            counters.handed_out += sum(len(part.rows) for part in parts)
        names = len(self._options.specs)
        counters.from_hits += names * sum(span.before - span.first for span in saved.spans)
        counters.same_step += names * sum(span.same_step for span in saved.spans)
