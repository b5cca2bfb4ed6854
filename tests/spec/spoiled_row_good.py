"""Good observations of the row machine, one for each thing that an event can do."""

from tenure.core.rows.events import (
    ConsumeAbandoned,
    ConsumeRequested,
    ContentIdentity,
    CopyBegan,
    CopyCompleted,
    Finished,
    GatherBegan,
    GatherCompleted,
    GatherFailed,
    ResetRequested,
    Resumed,
    RowsCopiedOut,
    SaveCancelled,
    ScatterCompleted,
    ShutdownRequested,
    StepConsumed,
    StepDiscarded,
    StepDropped,
    WriteFailed,
)
from tenure.core.rows.names import HIDDEN
from tests.spec.spoiled_row_history import RowHistory, arrives, goes_on, machine
from tests.spec.spoiled_row_states import (
    awaiting_history,
    busy_history,
    consuming_history,
    fenced_history,
    held_host_rows_history,
    idle_history,
    left_history,
    over_budget_history,
    preserved_history,
    reserved_history,
    running_history,
    unreadable_history,
)

SEVEN = ContentIdentity(7, "g")

# --- Starts and saves -----------------------------------------------------------------------------------------------


def found_rows_history() -> RowHistory:
    """`b` hits rows that are in the pool: its reads are scheduled at once."""
    history = RowHistory()
    history.land(history.step("a", (0, 1, 2, 3)))
    history.start(arrives("b", 2, 2, (0,)), goes_on(a=1))
    return history


def ended_history() -> RowHistory:
    """`a` finishes while a chunk of its is pending."""
    history = busy_history()
    history.end("a")
    return history


def aborted_history() -> RowHistory:
    """`a` is aborted while a chunk of its is pending."""
    history = busy_history()
    history.end("a", aborted=True)
    return history


def waits_written_history() -> RowHistory:
    """A save waits for the immediate write of the step before."""
    history = busy_history()
    history.start(goes_on(a=1))
    history.request_save({"a": (5,)})
    return history


def waits_host_ready_history() -> RowHistory:
    """A save waits for the deferred write of a request that ended."""
    history = ended_history()
    history.land(3)
    history.start(goes_on(b=1))
    history.request_save({"b": (8,)})
    return history


def waits_clone_history() -> RowHistory:
    """A save finds the budget used up, and flushes the writes with a chunk on the oldest clone."""
    history = RowHistory(machine(budget_bytes=100))
    history.start(arrives("a", 2), arrives("b", 1))
    history.land(history.save({"a": (0, 1), "b": (2,)}))
    history.start(arrives("d", 2))
    history.land(history.save({"d": (4, 5)}))
    history.start(goes_on(a=2, b=2))
    history.request_save({"a": (6, 7), "b": (8, 9)})
    return history


def waits_page_history() -> RowHistory:
    """A save finds every page held."""
    history = RowHistory(machine(pages=2))
    history.land(history.step("a", (0, 1)))
    history.land(history.step("b", (2, 3)))
    history.start(goes_on(a=1))
    history.request_save({"a": (4,)})
    return history


def replanned_history() -> RowHistory:
    """A hit of the step's own rows: the read that was planned on an earlier tenant is planned anew."""
    history = RowHistory()
    history.land(history.step("old", (0, 1)))
    history.start(arrives("a", 2), arrives("b", 1, 2, (0,)))
    history.tell(GatherBegan(1))
    history.save({"a": (0, 1), "b": (2,)})
    return history


def cancelled_history() -> RowHistory:
    history = reserved_history()
    history.tell(SaveCancelled(3))
    return history


def dropped_history() -> RowHistory:
    """A step with reads is given up."""
    history = found_rows_history()
    history.tell(StepDropped((8, 9, 99)))  # type: ignore[arg-type]
    return history


def identified_history() -> RowHistory:
    """A step computes a block that its start gives an identity."""
    history = RowHistory()
    history.start(arrives("a", 2, computes=((0, SEVEN),)))
    history.save({"a": (0, 1)})
    return history


def mismatched_history() -> RowHistory:
    """A hit expects something else than its block holds."""
    history = identified_history()
    history.land(1)
    history.start(arrives("b", 1, 2, (0,), expects=(ContentIdentity(8, "g"),)))
    history.save({"b": (2,)})
    return history


# --- Writes ---------------------------------------------------------------------------------------------------------


def began_history() -> RowHistory:
    history = busy_history()
    history.tell(CopyBegan(3))
    return history


def copied_history() -> RowHistory:
    """Write 3 is on the host: its rows are to be scattered."""
    history = busy_history()
    history.copy(3)
    return history


def scattered_history() -> RowHistory:
    history = busy_history()
    history.land(3)
    return history


def copied_masked_history() -> RowHistory:
    """The deferred write of `a` is on the host, and `d` took two of its slots meanwhile."""
    history = preserved_history()
    history.end("a")
    history.copy(2)
    return history


def copied_in_vain_history() -> RowHistory:
    """Every row of the deferred write of `a` is superseded when it comes to the host."""
    history = RowHistory()
    history.land(history.step("a", (0, 1)))
    history.land(history.step("d", (0, 1)))
    history.end("a")
    history.copy(2)
    return history


def scatter_behind_history() -> RowHistory:
    """Step 3 of `d` takes slots that a read is running on; its scatter is behind the read."""
    history = running_history()
    history.land(3)
    history.copy(history.step("d", (0, 1)))
    return history


def scatter_behind_left_history() -> RowHistory:
    """As before, with a read that nobody wants any more."""
    history = left_history()
    history.land(3)
    history.copy(history.step("d", (0, 1)))
    return history


def write_failed_history() -> RowHistory:
    """The deferred write of `a` fails, and with it the read that counts on it."""
    history = busy_history()
    history.tell(WriteFailed(2))
    return history


# --- Reads ----------------------------------------------------------------------------------------------------------


def gathering_history() -> RowHistory:
    """The hidden read of `b` begins."""
    history = busy_history()
    history.tell(GatherBegan(1))
    return history


def gathering_clone_history() -> RowHistory:
    """The deferred read of `b` begins while its rows are on the device."""
    history = busy_history()
    history.tell(GatherBegan(3))
    return history


def gathered_early_history() -> RowHistory:
    """A hit of the step's own deferred rows begins while their freeze may still run."""
    history = RowHistory()
    history.start(arrives("a", 2), arrives("b", 1, 2, (0,)))
    history.save({"a": (0, 1), "b": (2,)})
    history.tell(GatherBegan(history.reads()["b", "c"]))
    return history


def gathering_host_history() -> RowHistory:
    """The deferred read of `b` begins when its rows are on the host."""
    history = ended_history()
    history.copy(2)
    history.tell(GatherBegan(3))
    return history


def gathering_preserved_history() -> RowHistory:
    history = preserved_history()
    history.tell(GatherBegan(1))
    return history


def gathered_history() -> RowHistory:
    """The deferred read of `b` ends, and lets go of its clone."""
    history = gathering_clone_history()
    history.tell(GatherCompleted(3))
    return history


def gather_failed_history() -> RowHistory:
    history = gathering_clone_history()
    history.tell(GatherFailed(3))
    return history


def late_gather_history() -> RowHistory:
    """A gather would begin that nobody wants."""
    history = left_history()
    history.tell(GatherBegan(2))
    return history


def left_read_ends_history() -> RowHistory:
    history = left_history()
    history.tell(GatherCompleted(3))
    return history


# --- Consuming ------------------------------------------------------------------------------------------------------


def consumer_waits_history() -> RowHistory:
    history = busy_history()
    history.tell(ConsumeRequested(2, ("b",)))
    return history


def copied_out_history() -> RowHistory:
    history = consuming_history()
    history.tell(RowsCopiedOut(2))
    return history


def consumed_history() -> RowHistory:
    history = copied_out_history()
    history.tell(StepConsumed(2))
    return history


def consumed_for_others_history() -> RowHistory:
    """Step 2 is consumed for `a`: what was gathered for `b` goes back."""
    history = busy_history()
    history.copy(3)
    for read in (1, 2, 3):
        history.gather(read)
    history.tell(ConsumeRequested(2, ("a",)))
    history.tell(StepConsumed(2))
    return history


def abandoned_history() -> RowHistory:
    history = consuming_history()
    history.tell(ConsumeAbandoned(2))
    return history


def discarded_history() -> RowHistory:
    history = running_history()
    history.tell(StepDiscarded(2))
    return history


# --- Ends -----------------------------------------------------------------------------------------------------------


def reset_refused_history() -> RowHistory:
    history = busy_history()
    history.tell(ResetRequested())
    return history


def late_copy_history() -> RowHistory:
    """A write that a reset fenced is on the host."""
    history = fenced_history()
    history.tell(CopyCompleted(3))
    return history


def late_begin_history() -> RowHistory:
    """A write that a reset fenced is taken by the device."""
    history = running_history()
    history.tell(WriteFailed(2))
    history.tell(ResetRequested())
    history.tell(CopyBegan(3))
    return history


def late_consumer_history() -> RowHistory:
    history = fenced_history()
    history.tell(RowsCopiedOut(1))
    history.tell(StepConsumed(1))
    return history


def shut_down_history() -> RowHistory:
    history = busy_history()
    history.tell(ShutdownRequested())
    return history


def fenced_scatter_history() -> RowHistory:
    """A fenced write whose scatter was under way is in the pool."""
    history = copied_history()
    history.tell(WriteFailed(2))
    history.tell(ResetRequested())
    history.tell(ScatterCompleted(3))
    return history


# --- Rarer things ---------------------------------------------------------------------------------------------------


def around_history() -> RowHistory:
    """A step with an unreadable hit is consumed for the other request, twice: the first try raises."""
    history = unreadable_history()
    history.copy(1)
    history.tell(ConsumeRequested(1, ("a",)))
    history.tell(RowsCopiedOut(1))
    history.tell(ConsumeAbandoned(1))
    history.tell(ConsumeRequested(1, ("a",)))
    return history


def again_history() -> RowHistory:
    """`a` loses its open write to the budget, its step is given up, and one start ends it and begins it anew."""
    history = waits_clone_history()
    history.tell(StepDropped((6, 7, 8, 9)))  # type: ignore[arg-type]
    history.start(Finished("a"), Finished("b"), arrives("a", 1))
    return history


def host_rows_after_written_history() -> RowHistory:
    """A read takes deferred rows from the host although they are in the pool; another step has no such name."""
    history = held_host_rows_history()
    history.tell(GatherBegan(3))
    history.start(goes_on(b=1))
    history.save({"b": (1,)}, (HIDDEN,))
    return history


def host_rows_done_history() -> RowHistory:
    """The last read of host rows ends: they go."""
    history = held_host_rows_history()
    history.gather(3)
    return history


def mixed_history() -> RowHistory:
    """A hit on rows in the pool, on pending ones and on absent ones, of names that came one after the other."""
    history = RowHistory()
    history.land(history.step("a", (0, 1), (HIDDEN,)))
    history.land(history.step("d", (2, 3), ("c",)))
    history.end("d")
    history.land(max(history.view.writes))
    history.land(history.step("e", (4, 5)))
    history.start(arrives("b", 1, 6, (0, 1, 2)))
    history.save({"b": (6,)}, ("c",))
    history.gather(history.reads()["b", "c"])
    return history


def overwritten_history() -> RowHistory:
    """`a` computes a slot of its pending write again, under all names; then a step has nothing to cache."""
    history = RowHistory()
    history.land(history.step("a", (0, 1)))
    history.start(goes_on(a=1))
    history.land(history.save({"a": (1,)}))
    history.start(goes_on(a=1))
    history.save({"a": (2,)}, ())
    return history


def reset_at_rest_history() -> RowHistory:
    history = idle_history()
    history.tell(ResetRequested())
    return history


def reset_reserved_history() -> RowHistory:
    """A write fails while a save is reserved, and the reset takes the reservation back."""
    history = reserved_history()
    history.tell(WriteFailed(2))
    history.tell(ResetRequested())
    return history


def resumed_history() -> RowHistory:
    """A preempted request is back with a hit, and marks none; another finds what it expects."""
    history = identified_history()
    history.land(1)
    history.start(Resumed("a", 1, 2, ((0,),)), arrives("b", 1, 2, (0,), expects=(SEVEN,)))
    return history


def zeros_history() -> RowHistory:
    """A hit on a block that no step computed under a name is served zeros."""
    history = RowHistory()
    history.land(history.step("a", (0, 1)))
    history.start(arrives("b", 1, 2, (4,)))
    history.save({"b": (2,)}, ("m",))
    return history


GOOD_HISTORIES = [
    awaiting_history,
    busy_history,
    running_history,
    preserved_history,
    left_history,
    consuming_history,
    reserved_history,
    unreadable_history,
    fenced_history,
    over_budget_history,
    found_rows_history,
    ended_history,
    aborted_history,
    waits_written_history,
    waits_host_ready_history,
    waits_clone_history,
    waits_page_history,
    replanned_history,
    cancelled_history,
    dropped_history,
    identified_history,
    mismatched_history,
    began_history,
    copied_history,
    scattered_history,
    copied_masked_history,
    copied_in_vain_history,
    scatter_behind_history,
    scatter_behind_left_history,
    write_failed_history,
    gathering_history,
    gathering_clone_history,
    gathered_early_history,
    gathering_host_history,
    gathering_preserved_history,
    gathered_history,
    gather_failed_history,
    late_gather_history,
    left_read_ends_history,
    consumer_waits_history,
    copied_out_history,
    consumed_history,
    consumed_for_others_history,
    abandoned_history,
    discarded_history,
    reset_refused_history,
    late_copy_history,
    late_begin_history,
    late_consumer_history,
    shut_down_history,
    fenced_scatter_history,
    around_history,
    again_history,
    host_rows_after_written_history,
    host_rows_done_history,
    mixed_history,
    overwritten_history,
    reset_at_rest_history,
    reset_reserved_history,
    resumed_history,
    zeros_history,
]
