"""What every search of a history of hits and writes must have shown."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from tenure.model_checks.marks import marks
from tenure.model_checks.model import Marks

ROW_MARKS: Final[Mapping[str, Marks]] = MappingProxyType(
    {
        "same-step-hit": marks(
            rules="1-9 11 13-14 17-18 20 22-23",
            events=(
                "ConsumeRequested CopyBegan CopyCompleted GatherBegan GatherCompleted PolicyRegistered "
                "SavePublished SaveRequested ScatterCompleted StepConsumed StepDiscarded StepStarted "
                "WaitTimedOut"
            ),
            commands="CopyPage FreezeRows GatherRows ReleaseBuffers ScatterRows ScheduleGather",
            goals=(
                "consumer_waits_page_copy consumer_waits_reads discarded hit_marked late_gather left "
                "left_read_ends only_ends read_awaits same_step_replanned save_waits_written "
                "scatter_behind_left_reader"
            ),
            errors="WaitTimeout",
            family="R",
        ),
        "same-step-hit-on-fresh-blocks": marks(
            rules="1-9 11 14 17-18 20 22-23",
            events=(
                "ConsumeRequested CopyBegan CopyCompleted GatherBegan GatherCompleted PolicyRegistered "
                "SavePublished SaveRequested ScatterCompleted StepConsumed StepDiscarded StepStarted "
                "WaitTimedOut"
            ),
            commands="CopyPage FreezeRows GatherRows ReleaseBuffers ScatterRows ScheduleGather",
            goals=(
                "consumed_out_of_order consumer_waits_page_copy consumer_waits_reads discarded hit_marked "
                "late_gather left left_read_ends only_ends read_awaits read_confirmed same_step_fresh "
                "save_waits_written"
            ),
            errors="WaitTimeout",
            family="R",
        ),
        "same-step-hit-on-deferred-rows": marks(
            rules="1-11 14 16-18 20 22-23",
            events=(
                "ConsumeRequested CopyBegan CopyCompleted GatherBegan GatherCompleted PolicyRegistered "
                "SavePublished SaveRequested ScatterCompleted StepConsumed StepDiscarded StepStarted "
                "WaitTimedOut"
            ),
            commands="CopyDeferred CopyPage FreezeRows GatherRows ReleaseBuffers ScatterRows ScheduleGather",
            goals=(
                "claimed_in_transit consumer_waits_page_copy consumer_waits_reads discarded finished_pending "
                "gathered_after_written gathered_from_clone gathered_from_host hit_marked late_gather left "
                "left_read_ends only_ends same_step_deferred same_step_replanned save_waits_host_ready "
                "save_waits_written saved_deferred_alone saved_without_hidden ticket_outlives_writes "
                "ticket_shared"
            ),
            errors="WaitTimeout",
            family="R",
        ),
        "raw-claims-at-the-save": marks(
            rules="1-11 14 16-18 20-23",
            events=(
                "ConsumeRequested CopyBegan CopyCompleted GatherBegan GatherCompleted PolicyRegistered "
                "SavePublished SaveRequested ScatterCompleted StepConsumed StepDiscarded StepStarted "
                "WaitTimedOut"
            ),
            commands="CopyDeferred CopyPage FreezeRows GatherRows ReleaseBuffers ScatterRows ScheduleGather",
            goals=(
                "consumer_waits_page_copy consumer_waits_reads discarded finished_pending hidden_by_tenancy "
                "hit_marked late_gather left left_read_ends only_ends read_awaits registered_late "
                "save_waits_host_ready save_waits_written saved_deferred_alone saved_without_hidden zeros_alone"
            ),
            errors="WaitTimeout",
            family="R",
        ),
        "delayed-read": marks(
            rules="1-9 11 13-14 17-18 20 22",
            events=(
                "ConsumeRequested CopyBegan CopyCompleted GatherBegan GatherCompleted PolicyRegistered "
                "SavePublished SaveRequested ScatterCompleted StepConsumed StepDiscarded StepStarted "
                "WaitTimedOut"
            ),
            commands="CopyPage FreezeRows GatherRows PreserveRows ReleaseBuffers ScatterRows ScheduleGather",
            goals=(
                "consumer_waits_page_copy consumer_waits_reads discarded gathered_preserved hit_marked only_ends "
                "preserved preserved_in_part read_awaits read_confirmed save_waits_written scatter_behind_reader"
            ),
            errors="WaitTimeout",
            family="R",
        ),
        "rows-that-look-absent": marks(
            rules="1-11 14 16-18 20-22",
            events=(
                "ConsumeRequested CopyBegan CopyCompleted GatherBegan GatherCompleted PolicyRegistered "
                "SavePublished SaveRequested ScatterCompleted StepConsumed StepDiscarded StepStarted "
                "WaitTimedOut"
            ),
            commands="CopyDeferred CopyPage FreezeRows GatherRows ReleaseBuffers ScatterRows ScheduleGather",
            goals=(
                "claimed_in_transit consumer_waits_page_copy consumer_waits_reads discarded finished_pending "
                "gathered_after_written gathered_from_clone gathered_from_host hidden_by_tenancy hit_marked "
                "only_ends read_confirmed registered_late save_waits_host_ready save_waits_written "
                "saved_deferred_alone saved_without_hidden ticket_outlives_writes"
            ),
            errors="WaitTimeout",
            family="R",
        ),
        "read-holds-buffers": marks(
            rules="1-11 14 16-18 20 22",
            events=(
                "ConsumeRequested CopyBegan CopyCompleted GatherBegan GatherCompleted PolicyRegistered "
                "SavePublished SaveRequested ScatterCompleted StepConsumed StepDiscarded StepStarted "
                "WaitTimedOut"
            ),
            commands="CopyDeferred CopyPage FreezeRows GatherRows ReleaseBuffers ScatterRows ScheduleGather",
            goals=(
                "claimed_in_transit consumer_waits_page_copy consumer_waits_reads discarded finished_pending "
                "gathered_after_written gathered_from_clone gathered_from_host hit_marked only_ends "
                "read_confirmed save_waits_host_ready save_waits_written saved_deferred_alone "
                "saved_without_hidden ticket_outlives_writes ticket_shared"
            ),
            errors="WaitTimeout",
            family="R",
        ),
        "running-read-is-dropped": marks(
            rules="1-9 11 13-14 17-18 20-23",
            events=(
                "ConsumeRequested CopyBegan CopyCompleted GatherBegan GatherCompleted PolicyRegistered "
                "SavePublished SaveRequested ScatterCompleted StepConsumed StepDiscarded StepDropped StepStarted "
                "WaitTimedOut"
            ),
            commands="CopyPage FreezeRows GatherRows ReleaseBuffers ScatterRows ScheduleGather",
            goals=(
                "consumed_in_part consumer_waits_page_copy consumer_waits_reads discarded dropped "
                "dropped_with_reads hit_marked late_gather left left_read_ends only_ends read_awaits "
                "same_step_replanned save_waits_written saved_without_hidden scatter_behind_left_reader"
            ),
            errors="WaitTimeout",
            family="R",
        ),
        "growing-deferred-write": marks(
            rules="1-11 14 16-18 20-23",
            events=(
                "ConsumeRequested CopyBegan CopyCompleted GatherBegan GatherCompleted PolicyRegistered "
                "SavePublished SaveRequested ScatterCompleted StepConsumed StepDiscarded StepStarted "
                "WaitTimedOut"
            ),
            commands="CopyDeferred CopyPage FreezeRows GatherRows ReleaseBuffers ScatterRows ScheduleGather",
            goals=(
                "consumer_waits_page_copy consumer_waits_reads discarded finished_pending gathered_after_written "
                "gathered_from_clone gathered_from_host hidden_by_tenancy hit_marked late_gather left "
                "left_read_ends only_ends read_awaits registered_late same_step_deferred same_step_fresh "
                "save_waits_written saved_deferred_alone saved_without_hidden second_chunk "
                "ticket_outlives_writes ticket_shared"
            ),
            errors="WaitTimeout",
            family="R",
        ),
        "rewritten-by-its-own-write": marks(
            rules="1-11 14 16-18 20 22",
            events=(
                "ConsumeRequested CopyBegan CopyCompleted GatherBegan GatherCompleted PolicyRegistered "
                "SavePublished SaveRequested ScatterCompleted StepConsumed StepDiscarded StepStarted "
                "WaitTimedOut"
            ),
            commands="CopyDeferred CopyPage FreezeRows GatherRows ReleaseBuffers ScatterRows ScheduleGather",
            goals=(
                "claimed_in_transit consumer_waits_page_copy consumer_waits_reads discarded finished_pending "
                "gathered_after_written gathered_from_clone gathered_from_host hit_marked masked only_ends "
                "own_chunk_superseded read_confirmed save_waits_written saved_deferred_alone "
                "saved_without_hidden second_chunk ticket_outlives_writes"
            ),
            errors="WaitTimeout",
            family="R",
        ),
        "one-write-a-request": marks(
            rules="1-11 14 16-18 20 22",
            events=(
                "ConsumeRequested CopyBegan CopyCompleted GatherBegan GatherCompleted PolicyRegistered "
                "SavePublished SaveRequested ScatterCompleted StepConsumed StepDiscarded StepStarted "
                "WaitTimedOut"
            ),
            commands="CopyDeferred CopyPage FreezeRows GatherRows ReleaseBuffers ScatterRows ScheduleGather",
            goals=(
                "consumer_waits_page_copy consumer_waits_reads discarded finished_pending gathered_after_written "
                "gathered_from_clone gathered_from_host hit_marked only_ends read_confirmed "
                "save_waits_host_ready save_waits_written saved_deferred_alone saved_without_hidden "
                "ticket_outlives_writes ticket_shared"
            ),
            errors="WaitTimeout",
            family="R",
        ),
        "abort-keeps-its-rows": marks(
            rules="1-11 14 16-18 20 22",
            events=(
                "ConsumeRequested CopyBegan CopyCompleted GatherBegan GatherCompleted PolicyRegistered "
                "SavePublished SaveRequested ScatterCompleted StepConsumed StepStarted WaitTimedOut"
            ),
            commands="CopyDeferred CopyPage FreezeRows GatherRows ReleaseBuffers ScatterRows ScheduleGather",
            goals=(
                "aborted_pending consumed_out_of_order consumer_waits_page_copy consumer_waits_reads "
                "finished_pending gathered_after_written gathered_from_clone gathered_from_host hit_marked "
                "only_ends read_confirmed save_waits_host_ready save_waits_written saved_deferred_alone "
                "saved_without_hidden ticket_outlives_writes"
            ),
            errors="WaitTimeout",
            family="R",
        ),
        "rows-of-several-sources": marks(
            rules="1-11 14 16-18 20 22-23",
            events=(
                "ConsumeRequested CopyBegan CopyCompleted GatherBegan GatherCompleted PolicyRegistered "
                "SavePublished SaveRequested ScatterCompleted StepConsumed StepDiscarded StepStarted "
                "WaitTimedOut"
            ),
            commands="CopyDeferred CopyPage FreezeRows GatherRows ReleaseBuffers ScatterRows ScheduleGather",
            goals=(
                "consumer_waits_page_copy consumer_waits_reads discarded finished_pending gathered_after_written "
                "gathered_from_clone gathered_from_host gathered_from_several hit_marked late_gather left "
                "left_read_ends only_ends read_confirmed save_waits_host_ready save_waits_written "
                "saved_deferred_alone saved_without_hidden ticket_outlives_writes"
            ),
            errors="WaitTimeout",
            family="R",
        ),
        "zeros-among-rows": marks(
            rules="1-9 11 14 17-18 20 22",
            events=(
                "ConsumeRequested CopyBegan CopyCompleted GatherBegan GatherCompleted PolicyRegistered "
                "SavePublished SaveRequested ScatterCompleted StepConsumed StepDiscarded StepStarted "
                "WaitTimedOut"
            ),
            commands="CopyPage FreezeRows GatherRows ReleaseBuffers ScatterRows ScheduleGather",
            goals=(
                "consumer_waits_page_copy consumer_waits_reads discarded hit_marked only_ends read_confirmed "
                "registered_late save_waits_written saved_without_hidden zeros_among_rows"
            ),
            errors="WaitTimeout",
            family="R",
        ),
        "resumed-with-a-hit": marks(
            rules="1-11 14 16-18 20 22",
            events=(
                "ConsumeRequested CopyBegan CopyCompleted GatherBegan GatherCompleted PolicyRegistered "
                "SavePublished SaveRequested ScatterCompleted StepConsumed StepDiscarded StepStarted "
                "WaitTimedOut"
            ),
            commands="CopyDeferred CopyPage FreezeRows GatherRows ReleaseBuffers ScatterRows ScheduleGather",
            goals=(
                "consumed_out_of_order consumer_waits_page_copy consumer_waits_reads discarded finished_pending "
                "gathered_after_written gathered_from_clone gathered_from_host hit_marked only_ends "
                "read_confirmed resumed_with_hit save_waits_written saved_deferred_alone saved_without_hidden "
                "second_chunk ticket_outlives_writes"
            ),
            errors="WaitTimeout",
            family="R",
        ),
        "byte-budget": marks(
            rules="1-11 14 16-18 20 22",
            events=(
                "ConsumeRequested CopyBegan CopyCompleted GatherBegan GatherCompleted PolicyRegistered "
                "SavePublished SaveRequested ScatterCompleted StepConsumed StepDiscarded StepStarted "
                "WaitTimedOut"
            ),
            commands="CopyDeferred CopyPage FreezeRows GatherRows ReleaseBuffers ScatterRows ScheduleGather",
            goals=(
                "consumer_waits_page_copy consumer_waits_reads discarded finished_pending flushed "
                "gathered_after_written gathered_from_clone gathered_from_host hit_marked only_ends "
                "read_confirmed save_waits_clone save_waits_written saved_deferred_alone saved_without_hidden "
                "second_chunk ticket_outlives_writes ticket_shared"
            ),
            errors="BudgetExhausted WaitTimeout",
            family="R",
        ),
        "two-deferred-names": marks(
            rules="1-11 14 16-18 20-22",
            events=(
                "ConsumeRequested CopyBegan CopyCompleted GatherBegan GatherCompleted PolicyRegistered "
                "SavePublished SaveRequested ScatterCompleted StepConsumed StepDiscarded StepStarted "
                "WaitTimedOut"
            ),
            commands="CopyDeferred CopyPage FreezeRows GatherRows ReleaseBuffers ScatterRows ScheduleGather",
            goals=(
                "consumer_waits_page_copy consumer_waits_reads discarded finished_pending flushed "
                "gathered_after_written gathered_from_clone gathered_from_host hidden_by_tenancy hit_marked "
                "masked only_ends read_confirmed registered_late save_waits_clone save_waits_written "
                "saved_deferred_alone saved_without_hidden second_chunk ticket_outlives_writes zeros_alone"
            ),
            errors="BudgetExhausted WaitTimeout",
            family="R",
        ),
        "late-completion": marks(
            rules="1 3-11 16-18 20 22",
            events=(
                "CopyBegan CopyCompleted PolicyRegistered SavePublished SaveRequested ScatterCompleted "
                "StepDiscarded StepStarted WaitTimedOut"
            ),
            commands="CopyDeferred CopyPage FreezeRows ReleaseBuffers ScatterRows",
            goals=(
                "claimed_in_transit discarded finished_pending only_ends save_waits_host_ready "
                "save_waits_written saved_deferred_alone saved_without_hidden"
            ),
            errors="WaitTimeout",
            family="R",
        ),
        "scatters-in-order": marks(
            rules="1 3-11 16-18 20 22",
            events=(
                "CopyBegan CopyCompleted PolicyRegistered SavePublished SaveRequested ScatterCompleted "
                "StepDiscarded StepStarted WaitTimedOut"
            ),
            commands="CopyDeferred CopyPage FreezeRows ReleaseBuffers ScatterRows",
            goals=(
                "claimed_in_transit discarded finished_pending only_ends save_waits_host_ready "
                "save_waits_written saved_deferred_alone saved_without_hidden"
            ),
            errors="WaitTimeout",
            family="R",
        ),
    }
)
"""Per scope the marks that must be seen."""
