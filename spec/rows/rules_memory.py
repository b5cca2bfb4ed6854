"""The memory of one run of the row machine: what a view does not tell, and later events depend on."""

from collections.abc import Iterator
from copy import copy
from typing import NamedTuple

from tenure.core.rows.answers import ConsumePlan, SaveReserved
from tenure.core.rows.commands import (
    Clone,
    CommandId,
    CopyDeferred,
    CopyPage,
    FreezeRows,
    GatherRows,
    PreserveRows,
    ReleaseBuffers,
    RowCommand,
    ScatterRows,
    ScheduleGather,
)
from tenure.core.rows.events import (
    BlockId,
    Claim,
    CloneId,
    ConsumeRequested,
    ContentIdentity,
    CopyCompleted,
    Extended,
    GatherCompleted,
    ReadId,
    RequestId,
    Resumed,
    SaveCancelled,
    SavePublished,
    SaveRequested,
    ScatterCompleted,
    Started,
    StepId,
    StepStarted,
    WriteId,
)
from tenure.core.rows.names import Schedule
from tenure.core.rows.view import RowView, WriteView
from tenure.spec.rows.rule import ON_CLONES, RowObservation, arrivals, commanded, is_immediate, writes_of_claims


class Chunk(NamedTuple):
    """Where the rows of one claim are on the device: batch rows `[start, stop)` of a clone."""

    clone: CloneId
    start: int
    stop: int


class Frozen(NamedTuple):
    """A step that was reserved: what was asked for, and the freeze that was commanded."""

    asked: SaveRequested
    freeze: FreezeRows


class Memory:
    """What the observations of one run showed so far.

    Attributes:
        last: the newest command.
        pool_ended: commands of the pool's lane up to this one have ended.
        expects: of the step that started last: what the blocks of each hit should hold.
        computes: of the step that started last: what the blocks it completes hold.
        frozen: per step that was reserved, what was asked for and frozen.
        running: per step the freeze, until its page copy ended.
        page_writes: per page copy that has not ended, its step.
        chunks: per deferred claim, where its rows are on the device.
        gathers: per running read its gather.
        buffers: the reads that were given a buffer.
        hosts: per deferred write that was given to the device, whether its rows are on the host.
        preserves: per read the commands that set rows aside for it.
        scheduled: the commands that only schedule.
        scatters: per write its scatter, until it ended.
        asked: per step the requests of the materialize that is at it.
    """

    def __init__(self) -> None:
        """Nothing was seen yet."""
        self.last: CommandId = 0
        self.pool_ended: CommandId = 0
        self.expects: dict[RequestId, tuple[ContentIdentity, ...]] = {}
        self.computes: dict[BlockId, ContentIdentity] = {}
        self.frozen: dict[StepId, Frozen] = {}
        self.running: dict[StepId, CommandId] = {}
        self.page_writes: dict[WriteId, StepId] = {}
        self.chunks: dict[Claim, Chunk] = {}
        self.gathers: dict[ReadId, CommandId] = {}
        self.buffers: set[ReadId] = set()
        self.hosts: dict[WriteId, bool] = {}
        self.preserves: dict[ReadId, tuple[CommandId, ...]] = {}
        self.scheduled: set[CommandId] = set()
        self.scatters: dict[WriteId, CommandId] = {}
        self.asked: dict[StepId, tuple[RequestId, ...]] = {}

    def clone(self) -> "Memory":
        """The same memory, to go on differently."""
        other = copy(self)
        for name, value in vars(self).items():
            setattr(other, name, copy(value))
        return other

    def before(self, seen: RowObservation) -> None:
        """Remember what the checks of this observation need."""
        match seen.event, seen.answer:
            case StepStarted() as event, _:
                self.expects = {change.request: change.expects for change in arrivals(seen.before, event) if change.hit}
                self.computes = {
                    block: identity
                    for change in event.changes
                    if isinstance(change, Started | Extended | Resumed)
                    for block, identity in change.computes
                }
            case SaveRequested() as event, SaveReserved(step):
                for freeze in commanded(seen.commands, FreezeRows):
                    self.frozen[step] = Frozen(event, freeze)
                    self.running[step] = freeze.command
            case SavePublished(step), _ if step in self.frozen:
                self._remember_chunks(seen, step)
            case CopyCompleted(write), _ if write in self.page_writes:
                self.running.pop(self.page_writes.pop(write), None)
            case CopyCompleted(write), _ if write in self.hosts:
                self.hosts[write] = True
            case ConsumeRequested(step, requests), ConsumePlan():
                self.asked[step] = requests
            case _:
                pass
        for preserve in commanded(seen.commands, PreserveRows):
            self.preserves[preserve.read] = (*self.preserves.get(preserve.read, ()), preserve.command)

    def _remember_chunks(self, seen: RowObservation, step: StepId) -> None:
        claim, start = seen.before.next_claim, 0
        schedules = {each.schedule: clone.clone for clone in self.clones(step) for each in clone.formats}
        claim += 1 if Schedule.JOIN_NEXT_STEP in schedules else 0
        for count in self.frozen[step].asked.layout.counts.tolist():
            if count and Schedule.JOIN_ON_FINISH in schedules:
                self.chunks[claim] = Chunk(schedules[Schedule.JOIN_ON_FINISH], start, start + count)
                claim += 1
            start += count

    def after(self, seen: RowObservation) -> None:
        """Remember what later observations need, and forget what none will."""
        for command in seen.commands:
            self.last = max(self.last, command.command)
            self._remember(command)
        match seen.event:
            case ScatterCompleted(write):
                self.pool_ended = max(self.pool_ended, self.scatters.pop(write, 0))
            case GatherCompleted(read) if read in self.gathers:
                # The lane keeps its order, and the gather ran behind all that was set aside for it.
                self.pool_ended = max(self.pool_ended, *self.preserves.pop(read, ()), 0)
                del self.gathers[read]
            case SavePublished():
                self._forget(seen.after)
            case SaveCancelled(step):
                self.running.pop(step, None)
            case _:
                pass

    def _remember(self, command: RowCommand) -> None:
        match command:
            case GatherRows(read=read):
                self.gathers[read] = command.command
                self.buffers.add(read)
            case ScheduleGather():
                self.scheduled.add(command.command)
            case ScatterRows(write=write):
                self.scatters[write] = command.command
            case CopyDeferred(write=write):
                self.hosts[write] = False
            case ReleaseBuffers(writes=writes):
                for write in writes:
                    self.hosts.pop(write, None)
            case CopyPage(write=write, step=step):
                self.page_writes[write] = step
            case _:
                pass

    def _forget(self, view: RowView) -> None:
        claims = writes_of_claims(view)
        self.chunks = {claim: chunk for claim, chunk in self.chunks.items() if claim in claims}
        self.buffers.intersection_update(view.reads)
        known = {*view.writes, *view.fenced}
        self.hosts = {write: is_there for write, is_there in self.hosts.items() if is_there or write in known}
        self.preserves = {read: each for read, each in self.preserves.items() if read in view.reads}
        self.asked = {
            step: each for step, each in self.asked.items() if step in view.steps or step in view.fenced_steps
        }
        needed = {clone.clone for each in self.frozen.values() for clone in each.freeze.clones} & view.clones.keys()
        self.frozen = {
            step: each
            for step, each in self.frozen.items()
            if step in self.running or not needed.isdisjoint(clone.clone for clone in each.freeze.clones)
        }

    def clones(self, step: StepId) -> tuple[Clone, ...]:
        """The clones that were frozen for a step."""
        frozen = self.frozen.get(step)
        return () if frozen is None else frozen.freeze.clones

    # --- Asking -----------------------------------------------------------------------------------------------

    def freezes_of(self, clones: set[CloneId]) -> Iterator[CommandId]:
        """The newest freeze that may still run, of those that these clones come from."""
        steps = [step for step in self.running if any(each.clone in clones for each in self.clones(step))]
        yield from self.freezes(steps)

    def freezes(self, steps: list[StepId]) -> Iterator[CommandId]:
        """The newest of the freezes that may still run: their lane keeps its order."""
        running = [self.running[step] for step in steps if step in self.running]
        yield from sorted(running)[-1:]

    def batch_row(self, view: RowView, claim: Claim, slot: int) -> tuple[CloneId, int] | None:
        """Where the row of a deferred claim is on the device: clone and batch row."""
        number = writes_of_claims(view).get(claim)
        if number is None or claim not in self.chunks:
            return None
        slots = dict(view.writes[number].claims)[claim]
        chunk = self.chunks[claim]
        return (chunk.clone, chunk.start + slots.index(slot)) if slot in slots else None

    def clones_of_write(self, write: WriteView) -> list[CloneId]:
        """The clones that a write holds."""
        if write.phase not in ON_CLONES:
            return []
        if is_immediate(write):
            return [clone.clone for clone in self.clones(write.step)]
        return [self.chunks[claim].clone for claim, _ in write.claims if claim in self.chunks]
