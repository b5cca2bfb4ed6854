"""What every search of the joined cache must have shown."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from tenure.model_checks.marks import marks
from tenure.model_checks.model import Marks

EXPECTS: Final[Mapping[str, Marks]] = MappingProxyType(
    {
        "one-request-twice": marks(
            rules="1-3 5-9 11 15 18 23 X01 X02 X03 X04 X05",
            events=(
                "AllocationRequested BatchSaveRequested BatchStarted ConsumeRequested CopyBegan CopyCompleted "
                "GatherBegan GatherCompleted LeaseFinished LeaseOpened PolicyRegistered SavePublished "
                "ScatterCompleted StepConsumed StepDiscarded TokensScheduled WaitTimedOut"
            ),
            commands="CopyPage FreezeRows GatherRows PublishStored ReleaseBuffers ScatterRows ScheduleGather",
            goals="prefix_shared",
            errors="RequestInStep WaitTimeout",
            family="R",
        ),
        "two-requests-computed": marks(
            rules="1-3 5-9 11 15 18 23 X01 X02 X03 X04 X05",
            events=(
                "AllocationRequested BatchSaveRequested BatchStarted ConsumeRequested CopyBegan CopyCompleted "
                "GatherBegan GatherCompleted LeaseFinished LeaseOpened PolicyRegistered SavePublished "
                "ScatterCompleted StepConsumed StepDiscarded TokensScheduled WaitTimedOut"
            ),
            commands="CopyPage FreezeRows GatherRows PublishStored ReleaseBuffers ScatterRows ScheduleGather",
            goals="no_capacity prefix_shared",
            errors="RequestInStep WaitTimeout",
            family="R",
        ),
        "two-requests-scheduled": marks(
            rules="1-3 5-9 11 15 18 23 X01 X02 X03 X04 X05",
            events=(
                "AllocationRequested BatchSaveRequested BatchStarted ConsumeRequested CopyBegan CopyCompleted "
                "GatherBegan GatherCompleted LeaseFinished LeaseOpened PolicyRegistered SavePublished "
                "ScatterCompleted StepConsumed StepDiscarded TokensScheduled WaitTimedOut"
            ),
            commands="CopyPage FreezeRows GatherRows PublishStored ReleaseBuffers ScatterRows ScheduleGather",
            goals="no_capacity prefix_shared shared_before_its_rows",
            errors="RequestInStep RowsOwed WaitTimeout",
            family="R",
        ),
        "deferred-rows-scheduled": marks(
            rules="1-3 5-9 11 15 18 20 X01 X02 X03 X04 X05",
            events=(
                "AllocationRequested BatchSaveRequested BatchStarted ConsumeRequested CopyBegan CopyCompleted "
                "GatherBegan GatherCompleted LeaseFinished LeaseOpened PolicyRegistered SavePublished "
                "ScatterCompleted StepConsumed TokensScheduled WaitTimedOut"
            ),
            commands=(
                "CopyDeferred CopyPage FreezeRows GatherRows PublishStored ReleaseBuffers ScatterRows ScheduleGather"
            ),
            goals="no_capacity prefix_shared shared_before_its_rows",
            errors="RequestInStep RowsOwed WaitTimeout",
            family="R",
        ),
        "three-blocks-under-pressure": marks(
            rules="1 3 5-9 11 15 18 X01 X02 X04 X05",
            events=(
                "AllocationRequested BatchSaveRequested BatchStarted ConsumeRequested CopyBegan CopyCompleted "
                "LeaseFinished LeaseOpened PolicyRegistered SavePublished ScatterCompleted StepConsumed "
                "StepDiscarded TokensScheduled WaitTimedOut"
            ),
            commands="CopyPage FreezeRows PublishRemoved PublishStored ReleaseBuffers ScatterRows",
            goals="no_capacity removed_under_pressure",
            errors="RequestInStep WaitTimeout",
            family="R",
        ),
        "steps-given-up": marks(
            rules="1-3 5-9 11 15 18 X01 X02 X03 X04 X05",
            events=(
                "AllocationRequested BatchDropped BatchSaveRequested BatchStarted ConsumeRequested CopyBegan "
                "CopyCompleted GatherBegan GatherCompleted LeaseFinished LeaseOpened PolicyRegistered "
                "SavePublished ScatterCompleted StepConsumed TokensScheduled WaitTimedOut"
            ),
            commands="CopyPage FreezeRows GatherRows PublishStored ReleaseBuffers ScatterRows ScheduleGather",
            goals="no_capacity prefix_shared shared_before_its_rows",
            errors="RequestInStep RowsOwed WaitTimeout",
            family="R",
        ),
        "hits-given-up": marks(
            rules="1-3 5-9 11 15 18 X01 X02 X03 X04 X05",
            events=(
                "AllocationRequested BatchDropped BatchSaveRequested BatchStarted ConsumeRequested CopyBegan "
                "CopyCompleted GatherBegan GatherCompleted LeaseFinished LeaseOpened PolicyRegistered "
                "SavePublished ScatterCompleted StepConsumed StepDiscarded TokensScheduled WaitTimedOut"
            ),
            commands="CopyPage FreezeRows GatherRows PublishStored ReleaseBuffers ScatterRows ScheduleGather",
            goals="prefix_shared shared_before_its_rows",
            errors="RequestInStep RowsOwed WaitTimeout",
            family="R",
        ),
        "preempted": marks(
            rules="1-3 5-9 11 15 18 X01 X02 X03 X04 X05",
            events=(
                "AllocationRequested BatchSaveRequested BatchStarted ConsumeRequested CopyBegan CopyCompleted "
                "GatherBegan GatherCompleted LeaseFinished LeaseOpened LeasePreempted PolicyRegistered "
                "SavePublished ScatterCompleted StepConsumed TokensScheduled WaitTimedOut"
            ),
            commands="CopyPage FreezeRows GatherRows PublishStored ReleaseBuffers ScatterRows ScheduleGather",
            goals="prefix_shared",
            errors="RequestInStep WaitTimeout",
            family="R",
        ),
        "colliding-hashes": marks(
            rules="1 3 5-9 11 15 18 X01 X02 X04 X05",
            events=(
                "AllocationRequested BatchSaveRequested BatchStarted ConsumeRequested CopyBegan CopyCompleted "
                "LeaseFinished LeaseOpened PolicyRegistered SavePublished ScatterCompleted StepConsumed "
                "StepDiscarded TokensScheduled WaitTimedOut"
            ),
            commands="CopyPage FreezeRows PublishStored ReleaseBuffers ScatterRows",
            errors="RequestInStep WaitTimeout",
            family="R",
        ),
        "colliding-hashes-scheduled": marks(
            rules="1 3 5-9 11 15 18 X01 X02 X04 X05",
            events=(
                "AllocationRequested BatchSaveRequested BatchStarted ConsumeRequested CopyBegan CopyCompleted "
                "LeaseFinished LeaseOpened PolicyRegistered SavePublished ScatterCompleted StepConsumed "
                "StepDiscarded TokensScheduled WaitTimedOut"
            ),
            commands="CopyPage FreezeRows PublishStored ReleaseBuffers ScatterRows",
            errors="RequestInStep RowsOwed WaitTimeout",
            family="R",
        ),
        "in-chunks": marks(
            rules="1 3 5-9 11 15 18 X01 X02 X04 X05",
            events=(
                "AllocationRequested BatchDropped BatchSaveRequested BatchStarted ConsumeRequested CopyBegan "
                "CopyCompleted LeaseFinished LeaseOpened PolicyRegistered SavePublished ScatterCompleted "
                "StepConsumed TokensScheduled WaitTimedOut"
            ),
            commands="CopyPage FreezeRows PublishStored ReleaseBuffers ScatterRows",
            errors="PageExhausted RequestInStep WaitTimeout",
            family="R",
        ),
        "whole-prompt": marks(
            rules="1 3 5-9 11 15 18 X01 X02 X04 X05",
            events=(
                "AllocationRequested BatchSaveRequested BatchStarted ConsumeRequested CopyBegan CopyCompleted "
                "LeaseFinished LeaseOpened PolicyRegistered SavePublished ScatterCompleted StepConsumed "
                "StepDiscarded TokensScheduled WaitTimedOut"
            ),
            commands="CopyPage FreezeRows PublishStored ReleaseBuffers ScatterRows",
            errors="RequestInStep WaitTimeout",
            family="R",
        ),
        "reset": marks(
            rules="1-3 5-9 11-12 15 18 20 23 X01 X02 X03 X04 X05",
            events=(
                "AllocationRequested BatchSaveRequested BatchStarted ConsumeRequested CopyBegan CopyCompleted "
                "GatherBegan GatherCompleted GatherFailed LeaseFinished LeaseOpened ResetRequested SaveCancelled "
                "SavePublished ScatterCompleted StepConsumed StepDiscarded TokensScheduled WaitTimedOut "
                "WriteFailed"
            ),
            commands=(
                "CopyPage FreezeRows GatherRows PublishRemoved PublishStored ReleaseBuffers ScatterRows ScheduleGather"
            ),
            goals="fault prefix_shared removed_under_pressure",
            errors="ReadFailed RequestInStep WaitTimeout WriteFailed",
            family="R",
        ),
        "protocol-breaking": marks(
            rules="1-3 5-9 15 18 22-23 X01 X02 X03 X04 X05",
            events=(
                "AllocationRequested BatchSaveRequested BatchStarted CopyBegan CopyCompleted GatherBegan "
                "GatherCompleted LeaseFinished LeaseOpened LeasePreempted PolicyRegistered SavePublished "
                "ScatterCompleted StepDiscarded TokensScheduled WaitTimedOut"
            ),
            commands=(
                "CopyPage FreezeRows GatherRows PublishRemoved PublishStored ReleaseBuffers ScatterRows ScheduleGather"
            ),
            goals="prefix_shared removed_under_pressure",
            errors=(
                "EmptyDependencies HiddenMissing HiddenRows LeaseAlreadyOpen NegativeCount NotForJoin Padding "
                "PolicyAfterStep PrefixNotResident ReadOrder RequestInStep SaveNotReserved SaveReserved "
                "ScheduledBeyond ScheduledTwice StepNotBeingConsumed StepNotSaved StepNotStarted UnknownLease "
                "UnknownReservation UnknownSnapshot UnknownStep WaitTimeout WriteOrder"
            ),
            family="R",
        ),
        "protocol-breaking-scheduled": marks(
            rules="1 3 5-6 8-9 15 18 22 X01 X02 X04 X05",
            events=(
                "AllocationRequested BatchSaveRequested BatchStarted CopyBegan CopyCompleted LeaseFinished "
                "LeaseOpened PolicyRegistered SavePublished ScatterCompleted StepDiscarded TokensScheduled"
            ),
            commands="CopyPage FreezeRows PublishStored ReleaseBuffers ScatterRows",
            errors=(
                "EmptyDependencies HiddenMissing HiddenRows Isolation LeaseAlreadyOpen NegativeCount NotForJoin "
                "Padding PolicyAfterStep PrefixNotResident ReadOrder RequestInStep RowsOwed SaveNotReserved "
                "SaveReserved ScheduledBeyond ScheduledTwice StepNotBeingConsumed StepNotSaved StepNotStarted "
                "UnknownLease UnknownReservation UnknownSnapshot UnknownStep WriteOrder"
            ),
            family="R",
        ),
        "rows-set-aside": marks(
            rules="1-3 5-9 11 13 15 18 20 X01 X02 X03 X04 X05",
            events=(
                "AllocationRequested BatchSaveRequested BatchStarted ConsumeRequested CopyBegan CopyCompleted "
                "GatherBegan GatherCompleted LeaseFinished LeaseOpened PolicyRegistered SavePublished "
                "ScatterCompleted StepConsumed StepDiscarded TokensScheduled WaitTimedOut"
            ),
            commands=(
                "CopyPage FreezeRows GatherRows PreserveRows PublishRemoved PublishStored ReleaseBuffers "
                "ScatterRows ScheduleGather"
            ),
            goals="no_capacity prefix_shared read_preserved_in_join removed_under_pressure",
            errors="RequestInStep WaitTimeout",
            family="R",
        ),
        "generated-and-shared": marks(
            rules="1-3 5-9 11 15 18 X01 X02 X03 X04 X05",
            events=(
                "AllocationRequested BatchSaveRequested BatchStarted ConsumeRequested CopyBegan CopyCompleted "
                "GatherBegan GatherCompleted GrowthScheduled LeaseFinished LeaseOpened PolicyRegistered "
                "SavePublished ScatterCompleted StepConsumed StepDiscarded TokenGenerated TokensScheduled "
                "WaitTimedOut"
            ),
            commands="CopyPage FreezeRows GatherRows PublishStored ReleaseBuffers ScatterRows ScheduleGather",
            goals="no_capacity prefix_shared",
            errors="RequestInStep WaitTimeout",
            family="R",
        ),
        "reserved": marks(
            rules="1 3 5-9 15 18 X01 X02 X04 X05",
            events=(
                "AllocationRequested BatchSaveRequested BatchStarted CopyBegan CopyCompleted "
                "DecodeReservationReleased DecodeReservationRequested GrowthScheduled LeaseFinished LeaseOpened "
                "PolicyRegistered ReservedAllocationRequested SavePublished ScatterCompleted StepDiscarded "
                "TokenGenerated TokensScheduled WaitTimedOut"
            ),
            commands="CopyPage FreezeRows PublishStored RecordTrace ReleaseBuffers ScatterRows",
            goals="no_capacity",
            errors="RequestInStep WaitTimeout",
            family="R",
        ),
        "stored-elsewhere": marks(
            rules="1 3 5-9 15 18 X01 X02 X04 X05",
            events=(
                "AllocationRequested BatchSaveRequested BatchStarted CopyBegan CopyCompleted DependencyAttached "
                "DependencySatisfied LeaseFinished LeaseOpened PolicyRegistered SavePublished ScatterCompleted "
                "SnapshotDiscarded StepDiscarded StoreSourcesSnapshotted TokensScheduled WaitTimedOut "
                "WritesAuthorized"
            ),
            commands="CopyPage FreezeRows PublishRemoved PublishStored ReleaseBuffers ScatterRows",
            goals="no_capacity removed_under_pressure",
            errors="RequestInStep UnauthorizedWrite WaitTimeout",
            family="R",
        ),
        "abandoned": marks(
            rules="1-3 5-9 11 15 18 23 X01 X02 X03 X04 X05",
            events=(
                "AllocationRequested BatchSaveRequested BatchStarted ConsumeAbandoned ConsumeRequested CopyBegan "
                "CopyCompleted GatherBegan GatherCompleted LeaseFinished LeaseOpened PolicyRegistered "
                "RowsCopiedOut SavePublished ScatterCompleted StepConsumed StepDiscarded TokensScheduled "
                "WaitTimedOut"
            ),
            commands="CopyPage FreezeRows GatherRows PublishStored ReleaseBuffers ScatterRows ScheduleGather",
            goals="prefix_shared",
            errors="RequestInStep WaitTimeout",
            family="R",
        ),
        "shut-down": marks(
            rules="1-3 5-9 11 15 18 20 X01 X02 X03 X04 X05",
            events=(
                "AllocationRequested BatchSaveRequested BatchStarted ConsumeRequested CopyBegan CopyCompleted "
                "GatherBegan GatherCompleted LeaseFinished LeaseOpened PolicyRegistered SaveCancelled "
                "SavePublished ScatterCompleted ShutdownRequested StepConsumed StepDiscarded TokensScheduled "
                "WaitTimedOut"
            ),
            commands="CopyPage FreezeRows GatherRows PublishStored ReleaseBuffers ScatterRows ScheduleGather",
            goals="prefix_shared",
            errors="RequestInStep ShutDown WaitTimeout",
            family="R",
        ),
        "adapters": marks(
            rules="1 3 5-6 8-9 15 18 X01 X02 X04 X05",
            events=(
                "AllocationRequested BatchSaveRequested BatchStarted CopyBegan CopyCompleted LeaseFinished "
                "LeaseOpened PolicyRegistered SavePublished ScatterCompleted StepDiscarded TokensScheduled"
            ),
            commands="CopyPage FreezeRows PublishStored ReleaseBuffers ScatterRows",
            errors="RequestInStep RowsOwed",
            family="R",
        ),
    }
)
"""Per scope the marks that must be seen."""
