"""What every search of a free engine must have shown."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from tenure.model_checks.marks import marks
from tenure.model_checks.model import Marks

FREE_MARKS: Final[Mapping[str, Marks]] = MappingProxyType(
    {
        "two-steps-hidden": marks(
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
        "three-steps-hidden": marks(
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
                "save_waits_page save_waits_written"
            ),
            errors="PageExhausted WaitTimeout",
            family="R",
        ),
        "two-steps-deferred": marks(
            rules="1-11 14 16-18 20 22",
            events=(
                "ConsumeRequested CopyBegan CopyCompleted GatherBegan GatherCompleted PolicyRegistered "
                "SavePublished SaveRequested ScatterCompleted StepConsumed StepStarted WaitTimedOut"
            ),
            commands="CopyDeferred CopyPage FreezeRows GatherRows ReleaseBuffers ScatterRows ScheduleGather",
            goals=(
                "claimed_in_transit consumed_out_of_order consumer_waits_page_copy consumer_waits_reads "
                "finished_pending gathered_after_written gathered_from_clone gathered_from_host hit_marked "
                "only_ends read_confirmed same_step_deferred same_step_fresh save_waits_host_ready "
                "save_waits_written saved_deferred_alone saved_without_hidden second_chunk "
                "ticket_outlives_writes ticket_shared"
            ),
            errors="WaitTimeout",
            family="R",
        ),
        "two-steps-mixed": marks(
            rules="1-11 14 16-18 20-23",
            events=(
                "CopyBegan CopyCompleted GatherBegan GatherCompleted PolicyRegistered SavePublished "
                "SaveRequested ScatterCompleted StepDiscarded StepStarted WaitTimedOut"
            ),
            commands="CopyDeferred CopyPage FreezeRows GatherRows ReleaseBuffers ScatterRows ScheduleGather",
            goals=(
                "claimed_in_transit discarded finished_pending gathered_after_written gathered_from_clone "
                "gathered_from_host hidden_by_tenancy hit_marked late_gather left left_read_ends only_ends "
                "read_awaits read_confirmed registered_late same_step_deferred same_step_fresh "
                "save_waits_host_ready save_waits_written saved_deferred_alone saved_without_hidden second_chunk "
                "ticket_outlives_writes ticket_shared unreadable zeros_alone"
            ),
            errors="WaitTimeout",
            family="R",
        ),
        "aborted-and-preempted": marks(
            rules="1-11 14 16-18 20 22-23",
            events=(
                "CopyBegan CopyCompleted GatherBegan GatherCompleted PolicyRegistered SavePublished "
                "SaveRequested ScatterCompleted StepDiscarded StepStarted WaitTimedOut"
            ),
            commands="CopyDeferred CopyPage FreezeRows GatherRows ReleaseBuffers ScatterRows ScheduleGather",
            goals=(
                "aborted_pending claimed_in_transit discarded finished_pending gathered_after_written "
                "gathered_from_clone gathered_from_host hit_marked late_gather left left_read_ends masked "
                "only_ends own_chunk_superseded read_confirmed same_step_deferred same_step_fresh "
                "save_waits_host_ready save_waits_written saved_deferred_alone saved_without_hidden second_chunk "
                "ticket_outlives_writes ticket_shared wholly_superseded"
            ),
            errors="WaitTimeout",
            family="R",
        ),
        "two-steps-given-up": marks(
            rules="1-9 11 14 17-18 20-23",
            events=(
                "ConsumeRequested CopyBegan CopyCompleted GatherBegan GatherCompleted PolicyRegistered "
                "SavePublished SaveRequested ScatterCompleted StepConsumed StepDiscarded StepDropped StepStarted "
                "WaitTimedOut"
            ),
            commands="CopyPage FreezeRows GatherRows ReleaseBuffers ScatterRows ScheduleGather",
            goals=(
                "consumed_out_of_order consumer_waits_page_copy consumer_waits_reads discarded dropped "
                "dropped_with_reads hit_marked identity_fits late_gather left left_read_ends only_ends "
                "read_awaits read_confirmed same_step_fresh save_waits_written"
            ),
            errors="WaitTimeout",
            family="R",
        ),
        "whole-blocks": marks(
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
        "row-by-row": marks(
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
        "protocol-breaking": marks(
            rules="1-11 14-18 20 22-24",
            events=(
                "ConsumeRequested CopyBegan CopyCompleted GatherBegan GatherCompleted PolicyRegistered "
                "ResetRequested SavePublished SaveRequested ScatterCompleted StepConsumed StepDiscarded "
                "StepDropped StepStarted WaitTimedOut"
            ),
            commands="CopyDeferred CopyPage FreezeRows GatherRows ReleaseBuffers ScatterRows ScheduleGather",
            goals=(
                "consumer_waits_page_copy discarded dropped fenced_write_ends finished_pending "
                "gathered_after_written gathered_from_clone gathered_from_host hit_marked late_gather left "
                "left_read_ends only_ends registered_late reset_at_rest reset_refused save_waits_host_ready "
                "save_waits_written saved_deferred_alone saved_without_hidden ticket_outlives_writes unreadable "
                "write_fenced"
            ),
            errors=(
                "BlockOutOfRange HiddenRows HitBlocks HitWithoutTokens KvGroups LayoutMismatch NameClass "
                "OutputName Padding PolicyAfterStep ReadOrder ReplacementUnsupported RequestNamedTwice "
                "RequestOutsideSnapshot RowCount RowDtype SaveNotReserved SaveReserved SlotCount SlotOutOfRange "
                "StepAlreadyConsumed StepBeingConsumed StepNotBeingConsumed StepNotSaved StepNotStarted "
                "UnknownRequest UnknownStep UnreadableHit WaitTimeout WriteOrder"
            ),
            family="R",
        ),
        "protocol-breaking-and-shutdown": marks(
            rules="1-11 14-18 20 22-23",
            events=(
                "ConsumeRequested CopyBegan CopyCompleted GatherBegan GatherCompleted PolicyRegistered "
                "SaveCancelled SavePublished SaveRequested ScatterCompleted ShutdownRequested StepConsumed "
                "StepDiscarded StepDropped StepStarted WaitTimedOut"
            ),
            commands="CopyDeferred CopyPage FreezeRows GatherRows ReleaseBuffers ScatterRows ScheduleGather",
            goals=(
                "cancelled consumer_waits_page_copy discarded dropped finished_pending gathered_after_written "
                "gathered_from_clone gathered_from_host hit_marked late_gather left left_read_ends only_ends "
                "registered_late save_waits_host_ready save_waits_written saved_deferred_alone "
                "saved_without_hidden shut_down ticket_outlives_writes unreadable"
            ),
            errors=(
                "BlockOutOfRange HiddenRows HitBlocks HitWithoutTokens KvGroups LayoutMismatch NameClass "
                "OutputName Padding PolicyAfterStep ReadOrder ReplacementUnsupported RequestNamedTwice "
                "RequestOutsideSnapshot RowCount RowDtype SaveNotReserved SaveReserved ShutDown SlotCount "
                "SlotOutOfRange StepAlreadyConsumed StepBeingConsumed StepNotBeingConsumed StepNotSaved "
                "StepNotStarted UnknownRequest UnknownStep UnreadableHit WaitTimeout WriteOrder"
            ),
            family="R",
        ),
    }
)
"""Per scope the marks that must be seen."""
