"""What every search of a history of pages and ends must have shown."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from tenure.model_checks.marks import marks
from tenure.model_checks.model import Marks

END_MARKS: Final[Mapping[str, Marks]] = MappingProxyType(
    {
        "page-under-a-reader": marks(
            rules="1 3-9 11 17-18 20 22",
            events=(
                "ConsumeAbandoned ConsumeRequested CopyBegan CopyCompleted PolicyRegistered RowsCopiedOut "
                "SavePublished SaveRequested ScatterCompleted StepConsumed StepDiscarded StepStarted "
                "WaitTimedOut"
            ),
            commands="CopyPage FreezeRows ReleaseBuffers ScatterRows",
            goals=(
                "abandoned consumed_out_of_order consumed_without_page consumer_waits_page_copy discarded "
                "only_ends save_waits_page save_waits_written saved_without_hidden"
            ),
            errors="PageExhausted WaitTimeout",
            family="R",
        ),
        "waits-again": marks(
            rules="1 3-11 16-18 20-22",
            events=(
                "CopyBegan CopyCompleted PolicyRegistered SavePublished SaveRequested ScatterCompleted "
                "StepDiscarded StepDropped StepStarted WaitTimedOut"
            ),
            commands="CopyDeferred CopyPage FreezeRows ReleaseBuffers ScatterRows",
            goals=(
                "claimed_in_transit discarded dropped finished_pending only_ends save_waits_host_ready "
                "save_waits_page save_waits_written saved_deferred_alone saved_without_hidden"
            ),
            errors="PageExhausted WaitTimeout",
            family="R",
        ),
        "builder-lag": marks(
            rules="1 3-9 11 17-18 20 22",
            events=(
                "CopyBegan CopyCompleted PolicyRegistered SavePublished SaveRequested ScatterCompleted "
                "StepDiscarded StepStarted WaitTimedOut"
            ),
            commands="CopyPage FreezeRows ReleaseBuffers ScatterRows",
            goals="discarded only_ends save_waits_page save_waits_written",
            errors="PageExhausted WaitTimeout",
            family="R",
        ),
        "over-budget": marks(
            rules="1 3-11 16-18 20-22",
            events=(
                "ConsumeRequested CopyBegan CopyCompleted PolicyRegistered SavePublished SaveRequested "
                "ScatterCompleted StepConsumed StepDiscarded StepDropped StepStarted WaitTimedOut"
            ),
            commands="CopyDeferred CopyPage FreezeRows ReleaseBuffers ScatterRows",
            goals=(
                "consumer_waits_page_copy discarded dropped ended_and_began ended_on_its_way finished_pending "
                "flushed flushed_several hidden_by_tenancy only_ends over_budget registered_late "
                "save_waits_clone save_waits_host_ready save_waits_written saved_deferred_alone "
                "saved_without_hidden saved_without_rows ticket_shared"
            ),
            errors="BudgetExhausted WaitTimeout",
            family="R",
        ),
        "asked-for-ever": marks(
            rules="1-9 11 14 17-18 20 22",
            events=(
                "ConsumeAbandoned ConsumeRequested CopyBegan CopyCompleted GatherBegan GatherCompleted "
                "PolicyRegistered SavePublished SaveRequested ScatterCompleted StepConsumed StepStarted "
                "WaitTimedOut"
            ),
            commands="CopyPage FreezeRows GatherRows ReleaseBuffers ScatterRows ScheduleGather",
            goals=(
                "abandoned consumed_out_of_order consumer_waits_page_copy consumer_waits_reads hit_marked "
                "only_ends read_awaits read_confirmed save_waits_written"
            ),
            errors="WaitTimeout",
            family="R",
        ),
        "consumed-in-part": marks(
            rules="1-9 11 14 17-18 20 22-23",
            events=(
                "ConsumeAbandoned ConsumeRequested CopyBegan CopyCompleted GatherBegan GatherCompleted "
                "PolicyRegistered SavePublished SaveRequested ScatterCompleted StepConsumed StepDiscarded "
                "StepStarted WaitTimedOut"
            ),
            commands="CopyPage FreezeRows GatherRows ReleaseBuffers ScatterRows ScheduleGather",
            goals=(
                "abandoned consumed_in_part consumer_waits_page_copy consumer_waits_reads discarded hit_marked "
                "late_gather left left_read_ends only_ends read_awaits read_confirmed save_waits_written"
            ),
            errors="WaitTimeout",
            family="R",
        ),
        "name-not-emitted": marks(
            rules="1-9 11 14 17-18 20-22",
            events=(
                "ConsumeRequested CopyBegan CopyCompleted GatherBegan GatherCompleted PolicyRegistered "
                "SavePublished SaveRequested ScatterCompleted StepConsumed StepDiscarded StepStarted "
                "WaitTimedOut"
            ),
            commands="CopyPage FreezeRows GatherRows ReleaseBuffers ScatterRows ScheduleGather",
            goals=(
                "consumer_waits_page_copy consumer_waits_reads discarded hidden_by_tenancy hit_marked only_ends "
                "read_awaits read_confirmed save_waits_written zeros_alone"
            ),
            errors="WaitTimeout",
            family="R",
        ),
        "hidden-not-emitted": marks(
            rules="1-9 11 14-15 17-18 20-23",
            events=(
                "CopyBegan CopyCompleted GatherBegan GatherCompleted PolicyRegistered SavePublished "
                "SaveRequested ScatterCompleted StepDiscarded StepStarted WaitTimedOut"
            ),
            commands="CopyPage FreezeRows GatherRows ReleaseBuffers ScatterRows ScheduleGather",
            goals=(
                "discarded hidden_by_tenancy hit_marked late_gather left left_read_ends only_ends read_awaits "
                "registered_late save_waits_written saved_without_hidden unreadable"
            ),
            errors="UnreadableHit WaitTimeout",
            family="R",
        ),
        "step-given-up": marks(
            rules="1 3-9 11 14-15 17-18 20-22",
            events=(
                "CopyBegan CopyCompleted PolicyRegistered SavePublished SaveRequested ScatterCompleted "
                "StepDiscarded StepDropped StepStarted WaitTimedOut"
            ),
            commands="CopyPage FreezeRows ReleaseBuffers ScatterRows",
            goals="discarded dropped hit_marked only_ends save_waits_written unreadable",
            errors="UnreadableHit WaitTimeout",
            family="R",
        ),
        "hit-with-a-hole": marks(
            rules="1-9 11 14-15 17-18 20 22",
            events=(
                "ConsumeRequested CopyBegan CopyCompleted GatherBegan GatherCompleted PolicyRegistered "
                "SavePublished SaveRequested ScatterCompleted StepConsumed StepDiscarded StepStarted "
                "WaitTimedOut"
            ),
            commands="CopyPage FreezeRows GatherRows ReleaseBuffers ScatterRows ScheduleGather",
            goals=(
                "consumed_around consumed_in_part consumed_out_of_order consumer_waits_page_copy "
                "consumer_waits_reads discarded hit_marked only_ends read_confirmed save_waits_written "
                "unreadable"
            ),
            errors="UnreadableHit WaitTimeout",
            family="R",
        ),
        "named-blocks": marks(
            rules="1-9 11 14-15 17-18 20-23",
            events=(
                "ConsumeRequested CopyBegan CopyCompleted GatherBegan GatherCompleted PolicyRegistered "
                "SavePublished SaveRequested ScatterCompleted StepConsumed StepDiscarded StepDropped StepStarted "
                "WaitTimedOut"
            ),
            commands="CopyPage FreezeRows GatherRows ReleaseBuffers ScatterRows ScheduleGather",
            goals=(
                "consumed_around consumed_in_part consumer_waits_page_copy consumer_waits_reads discarded "
                "dropped hit_marked identity_differs identity_fits late_gather left left_read_ends only_ends "
                "read_awaits read_confirmed save_waits_written unreadable"
            ),
            errors="UnreadableHit WaitTimeout",
            family="R",
        ),
        "named-blocks-of-one-hit": marks(
            rules="1-9 11 14 17-18 20 22-23",
            events=(
                "ConsumeRequested CopyBegan CopyCompleted GatherBegan GatherCompleted PolicyRegistered "
                "SavePublished SaveRequested ScatterCompleted StepConsumed StepDiscarded StepStarted WaitTimedOut"
            ),
            commands="CopyPage FreezeRows GatherRows ReleaseBuffers ScatterRows ScheduleGather",
            goals=(
                "consumer_waits_page_copy consumer_waits_reads discarded hit_marked identity_differs identity_fits "
                "late_gather left left_read_ends only_ends read_confirmed save_waits_written saved_without_hidden "
                "zeros_among_rows"
            ),
            errors="WaitTimeout",
            family="R",
        ),
        "failed-write": marks(
            rules="1-12 14 16-18 20 22-24",
            events=(
                "ConsumeRequested CopyBegan CopyCompleted GatherBegan GatherCompleted GatherFailed "
                "PolicyRegistered ResetRequested SaveCancelled SavePublished SaveRequested ScatterCompleted "
                "StepConsumed StepDiscarded StepStarted WaitTimedOut WriteFailed"
            ),
            commands="CopyDeferred CopyPage FreezeRows GatherRows ReleaseBuffers ScatterRows ScheduleGather",
            goals=(
                "cancelled consumer_waits_page_copy consumer_waits_reads discarded fault fenced_step_ends "
                "fenced_write_ends finished_pending gathered_after_written gathered_from_clone "
                "gathered_from_host hit_marked late_gather left left_read_ends only_ends read_confirmed "
                "read_failed read_failed_with_write reservation_reset reset_after_failure rows_lost "
                "save_waits_host_ready save_waits_written saved_deferred_alone saved_without_hidden step_fenced "
                "ticket_outlives_writes write_failed write_fenced"
            ),
            errors="ReadFailed WaitTimeout WriteFailed",
            family="R",
        ),
        "failed-immediate-write": marks(
            rules="1-9 11-14 17-18 20 22-23",
            events=(
                "ConsumeRequested CopyBegan CopyCompleted GatherBegan GatherCompleted GatherFailed "
                "PolicyRegistered ResetRequested SaveCancelled SavePublished SaveRequested ScatterCompleted "
                "StepConsumed StepDiscarded StepStarted WaitTimedOut WriteFailed"
            ),
            commands="CopyPage FreezeRows GatherRows PreserveRows ReleaseBuffers ScatterRows ScheduleGather",
            goals=(
                "cancelled consumed_out_of_order consumer_waits_page_copy consumer_waits_reads discarded fault "
                "fenced_step_ends gathered_preserved hit_marked late_gather left left_read_ends only_ends "
                "preserved read_awaits read_confirmed read_failed read_failed_with_write reset_after_failure "
                "rows_lost save_waits_page save_waits_written scatter_behind_left_reader scatter_behind_reader "
                "step_fenced write_failed"
            ),
            errors="PageExhausted ReadFailed WaitTimeout WriteFailed",
            family="R",
        ),
        "failed-read": marks(
            rules="1-9 11-14 17-18 20 22-23",
            events=(
                "ConsumeRequested CopyBegan CopyCompleted GatherBegan GatherCompleted GatherFailed "
                "PolicyRegistered ResetRequested SaveCancelled SavePublished SaveRequested ScatterCompleted "
                "StepConsumed StepDiscarded StepStarted WaitTimedOut WriteFailed"
            ),
            commands="CopyPage FreezeRows GatherRows PreserveRows ReleaseBuffers ScatterRows ScheduleGather",
            goals=(
                "cancelled consumer_waits_page_copy consumer_waits_reads discarded fault fenced_step_ends "
                "gathered_preserved hit_marked late_gather left left_read_ends only_ends preserved read_awaits "
                "read_confirmed read_failed read_failed_with_write reset_after_failure rows_lost "
                "save_waits_written scatter_behind_left_reader scatter_behind_reader step_fenced write_failed"
            ),
            errors="ReadFailed WaitTimeout WriteFailed",
            family="R",
        ),
        "reset-behind-a-write": marks(
            rules="1 3-12 16-18 20 22 24",
            events=(
                "ConsumeRequested CopyBegan CopyCompleted PolicyRegistered ResetRequested SaveCancelled "
                "SavePublished SaveRequested ScatterCompleted StepConsumed StepDiscarded StepStarted "
                "WaitTimedOut WriteFailed"
            ),
            commands="CopyDeferred CopyPage FreezeRows ReleaseBuffers ScatterRows",
            goals=(
                "claimed_in_transit consumer_waits_page_copy discarded fault fenced_write_ends finished_pending "
                "only_ends reset_at_rest reset_refused save_waits_host_ready save_waits_written write_fenced"
            ),
            errors="WaitTimeout WriteFailed",
            family="R",
        ),
        "reset-with-a-step": marks(
            rules="1 3-11 16-18 20 22 24",
            events=(
                "ConsumeAbandoned ConsumeRequested CopyBegan CopyCompleted PolicyRegistered ResetRequested "
                "SavePublished SaveRequested ScatterCompleted StepConsumed StepDiscarded StepStarted "
                "WaitTimedOut"
            ),
            commands="CopyDeferred CopyPage FreezeRows ReleaseBuffers ScatterRows",
            goals=(
                "abandoned consumer_waits_page_copy discarded fenced_write_ends finished_pending only_ends "
                "reset_at_rest reset_refused write_fenced"
            ),
            errors="WaitTimeout",
            family="R",
        ),
        "reset-under-a-builder": marks(
            rules="1-12 14 16-18 20 22-24",
            events=(
                "ConsumeAbandoned ConsumeRequested CopyBegan CopyCompleted GatherBegan GatherCompleted "
                "GatherFailed PolicyRegistered ResetRequested RowsCopiedOut SaveCancelled SavePublished "
                "SaveRequested ScatterCompleted StepConsumed StepDiscarded StepStarted WaitTimedOut WriteFailed"
            ),
            commands="CopyDeferred CopyPage FreezeRows GatherRows ReleaseBuffers ScatterRows ScheduleGather",
            goals=(
                "abandoned cancelled consumed_without_page consumer_waits_page_copy consumer_waits_reads "
                "discarded fault fenced_step_ends fenced_write_ends finished_pending gathered_after_written "
                "gathered_from_clone gathered_from_host hit_marked late_gather left left_read_ends only_ends "
                "read_confirmed read_failed read_failed_with_write reservation_reset reset_after_failure "
                "rows_lost save_waits_host_ready save_waits_written saved_deferred_alone saved_without_hidden "
                "step_fenced ticket_outlives_writes write_failed write_fenced"
            ),
            errors="ReadFailed WaitTimeout WriteFailed",
            family="R",
        ),
        "shut-down": marks(
            rules="1-11 14-18 20 22-23",
            events=(
                "ConsumeRequested CopyBegan CopyCompleted GatherBegan GatherCompleted PolicyRegistered "
                "SaveCancelled SavePublished SaveRequested ScatterCompleted ShutdownRequested StepConsumed "
                "StepDiscarded StepStarted WaitTimedOut"
            ),
            commands="CopyDeferred CopyPage FreezeRows GatherRows ReleaseBuffers ScatterRows ScheduleGather",
            goals=(
                "cancelled consumed_out_of_order consumer_waits_page_copy consumer_waits_reads discarded "
                "finished_pending gathered_after_written gathered_from_clone gathered_from_host hit_marked "
                "late_gather left left_read_ends only_ends read_confirmed save_waits_host_ready "
                "save_waits_written saved_deferred_alone saved_without_hidden shut_down ticket_outlives_writes"
            ),
            errors="ShutDown WaitTimeout",
            family="R",
        ),
    }
)
"""Per scope the marks that must be seen."""
