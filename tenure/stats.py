"""What a row cache tells of itself."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from tenure.backends.executor import Executor
from tenure.core.rows.state import RowState
from tenure.core.rows.view import RowCounters, WritePhase
from tenure.runtime import WaitFigures

_ENDED: Final = (WritePhase.WRITTEN, WritePhase.FAILED)


@dataclass(frozen=True, slots=True)
class CacheStats:
    """One moment of a row cache.

    Attributes:
        names: names that are registered.
        live_requests: requests that run.
        unconsumed_steps: saved steps that nobody consumed yet.
        open_writes: writes that are not WRITTEN.
        reads: reads that are planned, run, or are done and not taken.
        pages: pages in all.
        pages_held: pages that somebody holds.
        charged_bytes: device bytes that clones are charged for.
        budget_bytes: device bytes that they may be charged for.
        device_bytes: device bytes that clones take, what is kept to be used again included.
        buffers_held_bytes: host bytes in use by writes, reads and results.
        buffers_bytes: the same, what is kept to be used again included.
        bytes_copied: bytes by kind of copy, each there from the beginning: freeze, page, deferred, scatter, preserve,
            gather, copy_out.
        rows_written: rows that saves claimed, under all names.
        waits: by what was waited for (page, budget, write, read): how often, and seconds in all.
        counters: what the machine counts.
        has_failed: whether a write failed, so that nothing is served before a reset.
    """

    names: int
    live_requests: int
    unconsumed_steps: int
    open_writes: int
    reads: int
    pages: int
    pages_held: int
    charged_bytes: int
    budget_bytes: int
    device_bytes: int
    buffers_held_bytes: int
    buffers_bytes: int
    bytes_copied: Mapping[str, int]
    rows_written: int
    waits: Mapping[str, WaitFigures]
    counters: RowCounters
    has_failed: bool


def stats_of(
    state: RowState,
    executor: Executor,
    memory: tuple[int, int, int, int],
    waits: Mapping[str, WaitFigures],
    counts: Counter[str],
) -> CacheStats:
    """The figures of this moment, `memory` those of the storage. Whoever holds the machine's lock calls this."""
    tables = state.tables
    buffers_held, buffers_all, _, device_bytes = memory
    return CacheStats(
        names=len(tables.formats),
        live_requests=len(tables.live),
        unconsumed_steps=len(tables.unconsumed),
        open_writes=sum(each.phase not in _ENDED for each in tables.writes.values()),
        reads=len(tables.reads),
        pages=len(tables.pages),
        pages_held=sum(holders != (0, 0) for holders in tables.pages),
        charged_bytes=tables.charged,
        budget_bytes=tables.config.budget_bytes,
        device_bytes=device_bytes,
        buffers_held_bytes=buffers_held,
        buffers_bytes=buffers_all,
        bytes_copied={**executor.bytes_copied, "copy_out": counts["copy_out"]},
        rows_written=counts["rows_written"],
        waits=waits,
        counters=RowCounters(**tables.counters),
        has_failed=tables.failure is not None,
    )
