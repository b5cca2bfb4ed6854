"""What a replay found of its rows, as a value."""

from tenure.replay.counters import Counters
from tenure.replay.row_counters import RowCounters
from tenure.replay.row_options import RowOptions
from tenure.replay.summary_part import SummaryPart
from tenure.stats import CacheStats


class RowSetup(SummaryPart):
    """The options about rows. `names` are the `--rows`, written out."""

    names: tuple[str, ...]
    visibility: str
    staging_depth: int
    builder_lag: int
    abort_rate: float
    preempt_rate: float
    discard_rate: float
    budget_bytes: int


class WaitPart(SummaryPart):
    """How often a call waited, and how long in all."""

    count: int
    seconds: float


class RowTiming(SummaryPart):
    """What the pace of threads decides: which copies are still wanted when their turn comes, and who waits.

    Attributes:
        bytes_copied: bytes by kind of copy.
        waits: by what was waited for.
        flushes: how often deferred rows were copied early, for want of budget.
        reads_confirmed, reads_replanned, reads_dropped: what became of the reads of hits.
    """

    bytes_copied: dict[str, int]
    waits: dict[str, WaitPart]
    flushes: int
    reads_confirmed: int
    reads_replanned: int
    reads_dropped: int


class RowFigures(SummaryPart):
    """Rows: what one name holds for one token is one.

    Attributes:
        steps_saved, steps_discarded: steps, and those that the builder discarded.
        written: rows of the tokens computed.
        handed_out: rows that came back from materialize.
        from_hits: those that a request did not compute itself.
        from_hits_of_the_same_step: those of them that the step itself computed, for another request.
        verified: rows compared bit for bit; all that were handed out if the replay checks.
        mismatches: rows that were wrong; the first one ends a replay, so a summary tells of none.
        aborts, preemptions_by_choice: disturbed requests. Preemptions for want of capacity are the scheduler's.
        checked_states: states of the whole cache that were held against its rules.
    """

    setup: RowSetup
    steps_saved: int
    steps_discarded: int
    written: int
    handed_out: int
    from_hits: int
    from_hits_of_the_same_step: int
    verified: int
    mismatches: int
    aborts: int
    preemptions_by_choice: int
    checked_states: int
    timing: RowTiming


def row_figures(rows: RowCounters, counters: Counters, stats: CacheStats, options: RowOptions) -> RowFigures:
    """The summary of what was counted."""
    chosen = options.model_dump(exclude={"specs"})
    return RowFigures(
        setup=RowSetup(names=tuple(map(str, options.specs)), **chosen),
        steps_saved=rows.steps,
        steps_discarded=rows.discarded_steps,
        written=rows.written,
        handed_out=rows.handed_out,
        from_hits=rows.from_hits,
        from_hits_of_the_same_step=rows.same_step,
        verified=rows.verified,
        mismatches=0,
        aborts=counters.aborts,
        preemptions_by_choice=counters.chosen_preemptions,
        checked_states=rows.checked_states,
        timing=RowTiming(
            bytes_copied=dict(sorted(stats.bytes_copied.items())),
            waits={
                what: WaitPart(count=wait.count, seconds=round(wait.seconds, 3))
                for what, wait in sorted(stats.waits.items())
            },
            flushes=stats.counters.flushes,
            reads_confirmed=stats.counters.reads_confirmed,
            reads_replanned=stats.counters.reads_replanned,
            reads_dropped=stats.counters.reads_dropped,
        ),
    )
