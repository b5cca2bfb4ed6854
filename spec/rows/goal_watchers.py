"""How the goals of the row machine are recognised in an observation, or in the observations of a run."""

from collections.abc import Callable

from tenure.core.rows.answers import Waiting
from tenure.core.rows.commands import CopyDeferred, GatherRows, PreserveRows, ScatterRows, SourceKind
from tenure.core.rows.events import (
    ConsumeRequested,
    CopyCompleted,
    SavePublished,
    SaveRequested,
    StepStarted,
)
from tenure.core.rows.view import ReadPhase, ReadView, RowCounters, StepView, WritePhase, WriteView
from tenure.spec.rows.rule import (
    RowObservation,
    arrivals,
    commanded,
    is_immediate,
    published,
)
from tenure.spec.rows.rules_commands import overwritten_reads

Watcher = Callable[[RowObservation], bool]

# --- What an observation shows --------------------------------------------------------------------------------------


def counted(name: str) -> Watcher:
    """Whether a counter rose."""
    place = RowCounters._fields.index(name)
    return lambda seen: seen.after.counters[place] > seen.before.counters[place]


def waits_for(name: str, kind: type[SaveRequested | ConsumeRequested]) -> Watcher:
    """Whether a call waits for a certain thing."""

    def watcher(seen: RowObservation) -> bool:
        if not isinstance(seen.event, kind) or not isinstance(seen.answer, Waiting):
            return False
        wanted: object = getattr(seen.answer.waited_for, name)
        return wanted not in ((), None, False)

    return watcher


def saved_step(seen: RowObservation) -> StepView | None:
    """The step that was saved now."""
    return seen.after.steps.get(seen.event.step) if isinstance(seen.event, SavePublished) else None


def became(seen: RowObservation, then: ReadPhase, now: ReadPhase) -> list[ReadView]:
    """The reads that went from one phase to another."""
    return [
        read
        for number, read in seen.after.reads.items()
        if read.phase is now and number in seen.before.reads and seen.before.reads[number].phase is then
    ]


def same_step_hit(seen: RowObservation) -> list[tuple[ReadView, bool]]:
    """The reads of rows that the step saved now computed itself, and whether each had an earlier plan."""
    step = saved_step(seen)
    if step is None:
        return []
    planned = {(read.request, read.name) for read in seen.before.reads.values() if read.step == published(seen.event)}
    reads = [seen.after.reads[number] for _, _, number in step.reads]
    return [
        (read, (read.request, read.name) in planned) for read in reads if max(read.claims) >= seen.before.next_claim
    ]


def same_step_hit_replanned(seen: RowObservation) -> bool:
    """Whether a read that looked at rows of an earlier tenant was planned anew."""
    return any(was_planned for _, was_planned in same_step_hit(seen))


def same_step_hit_on_fresh_blocks(seen: RowObservation) -> bool:
    """Whether a hit on rows that never were before is read."""
    return any(not was_planned for _, was_planned in same_step_hit(seen))


def same_step_hit_on_deferred_rows(seen: RowObservation) -> bool:
    """Whether a hit is read from chunks that its own step saved."""
    return any(read.writes for read, _ in same_step_hit(seen))


def scatter_behind(seen: RowObservation, phase: ReadPhase) -> bool:
    """Whether a scatter waits for a read of this phase."""
    return any(
        seen.after.reads[read].phase is phase
        for scatter in commanded(seen.commands, ScatterRows)
        if scatter.after
        for read in overwritten_reads(seen, scatter)
    )


def flushed(seen: RowObservation) -> list[CopyDeferred]:
    """The copies that the byte budget asked for."""
    return commanded(seen.commands, CopyDeferred) if isinstance(seen.event, SaveRequested) else []


def has_chunks(write: WriteView, count: int) -> bool:
    """Whether a write has taken this many chunks."""
    return not is_immediate(write) and len(write.claims) >= count


def masked(seen: RowObservation) -> bool:
    """Whether a scatter leaves rows out because they are superseded."""
    for scatter in commanded(seen.commands, ScatterRows):
        write = seen.before.writes[scatter.write]
        rows = sum(len(slots) for _, slots in write.claims)
        if any(len(part.slots) < rows for part in scatter.parts):
            return True
    return False


def wholly_superseded(seen: RowObservation) -> bool:
    """Whether a write with rows has nothing to scatter."""
    if not isinstance(seen.event, CopyCompleted) or commanded(seen.commands, ScatterRows):
        return False
    write = seen.before.writes.get(seen.event.write)
    return write is not None and bool(write.claims)


def chunk_superseded_by_its_own_write(seen: RowObservation) -> bool:
    """Whether a write claims a slot a second time."""
    for write in seen.after.writes.values():
        slots = [slot for _, each in write.claims for slot in each]
        if len({*slots}) < len(slots):
            return True
    return False


def gathers_from(kind: SourceKind, *phases: WritePhase) -> Watcher:
    """Whether a gather takes rows from this kind of source, while their write is in one of these phases."""

    def watcher(seen: RowObservation) -> bool:
        for gather in commanded(seen.commands, GatherRows):
            for part in gather.parts:
                if part.kind is not kind or not len(part.rows):
                    continue
                sources = [seen.before.writes.get(source) for source in part.sources.tolist()]
                if not phases or any(write is not None and write.phase in phases for write in sources):
                    return True
        return False

    return watcher


def gathers_from_several(seen: RowObservation) -> bool:
    """Whether one gather has rows from the pool and from a write."""
    for gather in commanded(seen.commands, GatherRows):
        kinds = {part.kind for part in gather.parts if len(part.rows)}
        if SourceKind.POOL in kinds and not kinds.isdisjoint((SourceKind.CLONE, SourceKind.HOST)):
            return True
    return False


def preserves_in_part(seen: RowObservation) -> bool:
    """Whether some rows of a read are set aside and others stay in the pool."""
    return any(
        len(command.rows) < len(seen.after.reads[command.read].pool) + len(seen.after.reads[command.read].preserved)
        and bool(seen.after.reads[command.read].pool)
        for command in commanded(seen.commands, PreserveRows)
    )


def ticket_shared(seen: RowObservation) -> bool:
    """Whether two deferred writes hold one clone."""
    return saved_step(seen) is not None and any(clone.holders > 2 for clone in seen.after.clones.values())


def ticket_outlives_its_writes(seen: RowObservation) -> bool:
    """Whether only a running read holds a clone still."""
    readers = [clone for read in seen.after.reads.values() for clone in read.clones]
    return any(clone.holders == readers.count(number) for number, clone in seen.after.clones.items() if readers)


def reads_zeros(seen: RowObservation) -> bool:
    """Whether a settled read has rows that are absent, and others."""
    return saved_step(seen) is not None and any(
        read.confirmed and 0 in read.claims and any(read.claims) for read in seen.after.reads.values()
    )


def reads_nothing_but_zeros(seen: RowObservation) -> bool:
    """Whether a settled read has no row at all."""
    return any(not any(read.claims) for read in seen.after.reads.values() if read.confirmed)


def identity_differs(seen: RowObservation) -> bool:
    """Whether a hit expects something else than its blocks hold, and would find rows there."""
    return _expectation(seen, is_met=False)


def identity_fits(seen: RowObservation) -> bool:
    """Whether a hit finds what it expects."""
    return _expectation(seen, is_met=True)


def _expectation(seen: RowObservation, *, is_met: bool) -> bool:
    if not isinstance(seen.event, StepStarted):
        return False
    view, size = seen.before, seen.before.config.block_size
    for change in arrivals(view, seen.event):
        for block, expected in zip(change.blocks[0] if change.blocks else (), change.expects, strict=False):
            has_rows = any(view.effective(each.name, block * size) for each in view.formats)
            if has_rows and (view.identities.get(block) == expected) is is_met:
                return True
    return False
