"""What every search of a history of no public case must have shown."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from tenure.model_checks.marks import marks
from tenure.model_checks.model import Marks

OVERTAKEN_MARKS: Final[Mapping[str, Marks]] = MappingProxyType(
    {
        "two-preserves-one-fails": marks(
            rules="1-9 11 13-14 17-18 20 22-23",
            events=(
                "ConsumeRequested CopyBegan CopyCompleted GatherBegan GatherCompleted GatherFailed "
                "PolicyRegistered SavePublished SaveRequested ScatterCompleted StepConsumed StepDiscarded "
                "StepStarted WaitTimedOut"
            ),
            commands="CopyPage FreezeRows GatherRows PreserveRows ReleaseBuffers ScatterRows ScheduleGather",
            goals=(
                "consumer_waits_page_copy consumer_waits_reads discarded fault gathered_preserved hit_marked "
                "late_gather left left_read_ends only_ends preserved preserved_in_part read_awaits "
                "read_confirmed read_failed save_waits_written saved_without_hidden scatter_behind_left_reader "
                "scatter_behind_reader"
            ),
            errors="ReadFailed WaitTimeout",
            family="R",
        ),
        "two-names-set-aside": marks(
            rules="1-9 11 13-14 17-18 20 22",
            events=(
                "ConsumeRequested CopyBegan CopyCompleted GatherBegan GatherCompleted PolicyRegistered "
                "SavePublished SaveRequested ScatterCompleted StepConsumed StepDiscarded StepStarted "
                "WaitTimedOut"
            ),
            commands="CopyPage FreezeRows GatherRows PreserveRows ReleaseBuffers ScatterRows ScheduleGather",
            goals=(
                "consumer_waits_page_copy consumer_waits_reads discarded gathered_preserved hit_marked only_ends "
                "preserved read_awaits read_confirmed save_waits_written scatter_behind_reader"
            ),
            errors="WaitTimeout",
            family="R",
        ),
        "chunks-of-other-names": marks(
            rules="1 3-11 16-18 20 22",
            events=(
                "CopyBegan CopyCompleted PolicyRegistered SavePublished SaveRequested ScatterCompleted "
                "StepDiscarded StepStarted WaitTimedOut"
            ),
            commands="CopyDeferred CopyPage FreezeRows ReleaseBuffers ScatterRows",
            goals=(
                "discarded finished_pending masked only_ends registered_late save_waits_written "
                "saved_deferred_alone saved_without_hidden second_chunk"
            ),
            errors="WaitTimeout",
            family="R",
        ),
        "clones-behind-a-reset": marks(
            rules="1 3-11 16-18 20-22 24",
            events=(
                "CopyBegan CopyCompleted PolicyRegistered ResetRequested SavePublished SaveRequested "
                "ScatterCompleted StepDiscarded StepStarted WaitTimedOut"
            ),
            commands="CopyDeferred CopyPage FreezeRows ReleaseBuffers ScatterRows",
            goals=(
                "claimed_in_transit discarded fenced_write_ends finished_pending hidden_by_tenancy only_ends "
                "reset_at_rest reset_refused save_waits_clone save_waits_host_ready save_waits_written "
                "saved_deferred_alone saved_without_hidden write_fenced"
            ),
            errors="BudgetExhausted WaitTimeout",
            family="R",
        ),
        "partial-materialize-overtaken": marks(
            rules="1-9 11-12 14 17-18 20 22-23",
            events=(
                "ConsumeRequested CopyBegan CopyCompleted GatherBegan GatherCompleted PolicyRegistered "
                "ResetRequested SavePublished SaveRequested ScatterCompleted StepConsumed StepDiscarded "
                "StepStarted WaitTimedOut WriteFailed"
            ),
            commands="CopyPage FreezeRows GatherRows ReleaseBuffers ScatterRows ScheduleGather",
            goals=(
                "consumed_in_part consumer_waits_page_copy consumer_waits_reads discarded fault fenced_step_ends "
                "hit_marked late_gather left left_read_ends only_ends read_awaits read_confirmed "
                "reset_after_failure rows_lost save_waits_written saved_without_hidden step_fenced write_failed"
            ),
            errors="WaitTimeout WriteFailed",
            family="R",
        ),
        "fails-twice": marks(
            rules="1 3-12 16-18 20-22 24",
            events=(
                "CopyBegan CopyCompleted PolicyRegistered ResetRequested SaveCancelled SavePublished SaveRequested "
                "ScatterCompleted StepDiscarded StepStarted WaitTimedOut WriteFailed"
            ),
            commands="CopyDeferred CopyPage FreezeRows ReleaseBuffers ScatterRows",
            goals=(
                "cancelled discarded fault fenced_write_ends finished_pending hidden_by_tenancy only_ends "
                "registered_late reservation_reset reset_after_failure rows_lost save_waits_host_ready "
                "save_waits_written saved_deferred_alone saved_without_hidden write_failed write_fenced"
            ),
            errors="WaitTimeout WriteFailed",
            family="R",
        ),
        "fails-twice-under-a-hit": marks(
            rules="1-12 14 16-18 20 22-24",
            events=(
                "ConsumeRequested CopyBegan CopyCompleted GatherBegan GatherCompleted GatherFailed PolicyRegistered "
                "ResetRequested SaveCancelled SavePublished SaveRequested ScatterCompleted StepConsumed "
                "StepDiscarded StepStarted WaitTimedOut WriteFailed"
            ),
            commands=("CopyDeferred CopyPage FreezeRows GatherRows ReleaseBuffers ScatterRows ScheduleGather"),
            goals=(
                "cancelled consumer_waits_page_copy consumer_waits_reads discarded fault fenced_step_ends "
                "fenced_write_ends finished_pending gathered_after_written gathered_from_clone gathered_from_host "
                "hit_marked late_gather left left_read_ends only_ends read_confirmed read_failed "
                "read_failed_with_write reservation_reset reset_after_failure rows_lost save_waits_host_ready "
                "save_waits_written saved_deferred_alone saved_without_hidden step_fenced ticket_outlives_writes "
                "write_failed write_fenced"
            ),
            errors="ReadFailed WaitTimeout WriteFailed",
            family="R",
        ),
        "chunks-put-together": marks(
            rules="1-11 14 16-18 20 22",
            events=(
                "ConsumeRequested CopyBegan CopyCompleted GatherBegan GatherCompleted PolicyRegistered "
                "SavePublished SaveRequested ScatterCompleted StepConsumed StepDiscarded StepStarted WaitTimedOut"
            ),
            commands=("CopyDeferred CopyPage FreezeRows GatherRows ReleaseBuffers ScatterRows ScheduleGather"),
            goals=(
                "consumer_waits_page_copy consumer_waits_reads discarded finished_pending gathered_after_written "
                "gathered_from_clone gathered_from_host hit_marked only_ends read_confirmed save_waits_host_ready "
                "save_waits_written saved_deferred_alone saved_without_hidden second_chunk ticket_outlives_writes "
                "ticket_shared"
            ),
            errors="WaitTimeout",
            family="R",
        ),
    }
)
"""Per scope the marks that must be seen."""
AFTER_SHUTDOWN: Final = marks(rules="24", events="ResetRequested", goals="reset_at_rest reset_refused", family="R")
"""What an engine that resets what it shut down shows besides."""
