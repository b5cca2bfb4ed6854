"""What must be reachable: the mechanisms of the row machine, each as something that an exploration has to see.

`GOALS` are seen in a single observation; `RUN_GOALS` need the memory of a run and make a fresh watcher for each.
"""

from typing import Final

from tenure.core.rows.commands import PreserveRows, SourceKind
from tenure.core.rows.events import (
    Aborted,
    ConsumeAbandoned,
    ConsumeRequested,
    Finished,
    GatherFailed,
    SaveCancelled,
    SaveRequested,
    ShutdownRequested,
    StepDiscarded,
    StepDropped,
    WriteFailed,
)
from tenure.core.rows.view import ReadPhase, WritePhase
from tenure.spec.goals import Goal, Goals, RunGoal
from tenure.spec.rows import goal_watchers as watch
from tenure.spec.rows import goal_watchers_steps as steps
from tenure.spec.rows.rule import RowObservation, commanded


class RowGoalBook(Goals[RowObservation]):
    """Which goals of the row machine were reached so far."""

    def __init__(self) -> None:
        """None yet."""
        super().__init__(GOALS, RUN_GOALS)


_HITS: Final[tuple[Goal[RowObservation], ...]] = (
    Goal("hit_marked", "A hit span is marked.", watch.counted("hits")),
    Goal("same_step_replanned", "A hit of its own step's rows is planned anew.", watch.same_step_hit_replanned),
    Goal("same_step_fresh", "A hit of its own step's rows is on fresh blocks.", watch.same_step_hit_on_fresh_blocks),
    Goal("same_step_deferred", "A hit is on its own step's deferred rows.", watch.same_step_hit_on_deferred_rows),
    Goal("read_confirmed", "A read was planned right.", watch.counted("reads_confirmed")),
    Goal("read_awaits", "A read waits for an immediate write.", watch.counted("waits_for_in_transit")),
    Goal("unreadable", "A hit has a hole in its hidden rows.", watch.counted("unreadable_hits")),
    Goal("zeros_among_rows", "A read has rows that are absent.", watch.reads_zeros),
    Goal("zeros_alone", "A read has no row at all.", watch.reads_nothing_but_zeros),
    Goal("identity_differs", "A block holds something else than its hit expects.", watch.identity_differs),
    Goal("identity_fits", "A block holds what its hit expects.", watch.identity_fits),
    Goal("resumed_with_hit", "A resumed request comes with a hit.", watch.counted("resumed_with_hit")),
)
_READS: Final[tuple[Goal[RowObservation], ...]] = (
    Goal("preserved", "Rows are set aside.", lambda seen: bool(commanded(seen.commands, PreserveRows))),
    Goal("preserved_in_part", "Some rows of a read are set aside, others stay.", watch.preserves_in_part),
    Goal("gathered_preserved", "Rows that were set aside are gathered.", watch.gathers_from(SourceKind.PRESERVED)),
    Goal("gathered_from_clone", "Deferred rows are gathered from the device.", watch.gathers_from(SourceKind.CLONE)),
    Goal(
        "gathered_from_host",
        "Deferred rows are gathered from the host, before they are in the pool.",
        watch.gathers_from(SourceKind.HOST, WritePhase.HOST_READY),
    ),
    Goal(
        "gathered_after_written",
        "Deferred rows are gathered from the host although they are in the pool.",
        watch.gathers_from(SourceKind.HOST, WritePhase.WRITTEN),
    ),
    Goal("gathered_from_several", "One gather takes rows of the pool and of a write.", watch.gathers_from_several),
    Goal(
        "scatter_behind_reader",
        "A scatter waits for a read that is running.",
        lambda seen: watch.scatter_behind(seen, ReadPhase.RUNNING),
    ),
    Goal(
        "scatter_behind_left_reader",
        "A scatter waits for a read that was dropped.",
        lambda seen: watch.scatter_behind(seen, ReadPhase.LEFT),
    ),
    Goal("left", "A read is dropped while it runs.", steps.left),
    Goal("left_read_ends", "A read that was dropped ends.", steps.left_read_ends),
    Goal("late_gather", "A gather would begin that nobody wants.", steps.late_gather),
    Goal("read_failed", "A gather fails.", lambda seen: isinstance(seen.event, GatherFailed)),
    Goal("read_failed_with_write", "A read fails with a write.", steps.write_failure_fails_a_read),
)
_WRITES: Final[tuple[Goal[RowObservation], ...]] = (
    Goal("flushed", "The byte budget closes an open write.", watch.counted("flushes")),
    Goal("flushed_several", "The byte budget closes several writes at once.", lambda s: len(watch.flushed(s)) > 1),
    Goal(
        "second_chunk",
        "A write takes another chunk.",
        lambda seen: any(watch.has_chunks(write, 2) for write in seen.after.writes.values()),
    ),
    Goal("masked", "A scatter leaves superseded rows out.", watch.masked),
    Goal("wholly_superseded", "A write has nothing left to scatter.", watch.wholly_superseded),
    Goal("own_chunk_superseded", "A write claims a slot again.", watch.chunk_superseded_by_its_own_write),
    Goal("claimed_in_transit", "A row on its way is superseded.", steps.claimed_while_in_transit),
    Goal("ticket_shared", "Several deferred writes hold a clone.", watch.ticket_shared),
    Goal("ticket_outlives_writes", "A read is the last holder of a clone.", watch.ticket_outlives_its_writes),
    Goal("over_budget", "The clones of one step exceed the budget.", watch.counted("over_budget")),
    Goal("finished_pending", "The end of a request queues its write.", steps.ended_while_pending(Finished)),
    Goal("aborted_pending", "An abort queues the write of its request.", steps.ended_while_pending(Aborted)),
    Goal("ended_on_its_way", "A request ends while its flushed write moves.", steps.ended_while_on_its_way),
)
_STEPS: Final[tuple[Goal[RowObservation], ...]] = (
    Goal("save_waits_written", "A save waits for the pool.", watch.waits_for("written", SaveRequested)),
    Goal("save_waits_host_ready", "A save waits for ended requests.", watch.waits_for("host_ready", SaveRequested)),
    Goal("save_waits_clone", "A save waits for a clone.", watch.waits_for("clone", SaveRequested)),
    Goal("save_waits_page", "A save waits for a page.", watch.waits_for("page", SaveRequested)),
    Goal("consumer_waits_page_copy", "A consumer waits for rows.", watch.waits_for("host_ready", ConsumeRequested)),
    Goal("consumer_waits_reads", "A consumer waits for hit rows.", watch.waits_for("reads", ConsumeRequested)),
    Goal("consumed_in_part", "A request's hit is not asked for.", steps.consumed_in_part),
    Goal("consumed_around", "A step is consumed without its unreadable hit.", steps.consumed_around_an_unreadable_hit),
    Goal("consumed_out_of_order", "A later step is consumed first.", steps.consumed_out_of_order),
    Goal("consumed_without_page", "Rows of an earlier try are used.", steps.planned_without_page),
    Goal("abandoned", "A materialize raises.", lambda seen: isinstance(seen.event, ConsumeAbandoned)),
    Goal("discarded", "A step is discarded.", lambda seen: isinstance(seen.event, StepDiscarded)),
    Goal("dropped", "A step is given up.", lambda seen: isinstance(seen.event, StepDropped)),
    Goal("dropped_with_reads", "A step with reads is given up.", steps.dropped_with_reads),
    Goal("cancelled", "A save is cancelled.", lambda seen: isinstance(seen.event, SaveCancelled)),
    Goal("saved_without_rows", "A step has nothing to cache.", steps.saved_without_rows),
    Goal("saved_deferred_alone", "A step has deferred rows alone.", steps.saved_only_deferred_rows),
    Goal("saved_without_hidden", "A step has rows, and no hidden ones.", steps.saved_without_hidden),
    Goal("hidden_by_tenancy", "A row is absent since its slot changed hands.", steps.hidden_by_tenancy),
    Goal("registered_late", "A name is new after others.", steps.registered_late),
    Goal("only_ends", "A start has no tokens, and ends requests.", steps.only_ends),
    Goal("ended_and_began", "One start ends a request and begins another of its name.", steps.ended_and_began_anew),
)
_ENDS: Final[tuple[Goal[RowObservation], ...]] = (
    Goal("write_failed", "A write fails.", lambda seen: isinstance(seen.event, WriteFailed)),
    Goal("rows_lost", "Rows are lost.", steps.has_occupancy_lost),
    Goal("reset_refused", "A reset is refused.", lambda seen: steps.reset(seen, done=False, after_failure=False)),
    Goal("reset_at_rest", "A reset is done at rest.", lambda seen: steps.reset(seen, done=True, after_failure=False)),
    Goal(
        "reset_after_failure",
        "A reset is done after a failure.",
        lambda seen: steps.reset(seen, done=True, after_failure=True),
    ),
    Goal("write_fenced", "A reset leaves a write at a device.", steps.reset_fences),
    Goal("step_fenced", "A reset leaves a step to its consumer.", steps.reset_fences_a_step),
    Goal("reservation_reset", "A reset takes a reserved save back.", steps.reset_of_a_reserved_save),
    Goal("fenced_write_ends", "A fenced write gives its page back.", steps.fenced_write_ends),
    Goal("fenced_step_ends", "A materialize returns that a reset overtook.", steps.fenced_step_ends),
    Goal("shut_down", "The cache is shut down.", lambda seen: isinstance(seen.event, ShutdownRequested)),
)

GOALS: Final[tuple[Goal[RowObservation], ...]] = (*_HITS, *_READS, *_WRITES, *_STEPS, *_ENDS)

RUN_GOALS: Final[tuple[RunGoal[RowObservation], ...]] = (
    RunGoal("page_reused", "A page is taken a second time.", steps.PageReused),
    RunGoal("live_again", "An id is used again while a write of its earlier life moves.", steps.LiveAgainWhileMoving),
    RunGoal("read_late", "A read begins after several later steps were saved.", steps.PlannedLateBySeveral),
)
