"""For every rule of a transition of the row machine, ways to break it by hand, on good observations."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from tenure.core.arrays import integers
from tenure.core.rows.answers import ConsumePlan, Done, HitRows, ResetAnswered, StepBegan, StepSaved, Waiting
from tenure.core.rows.commands import (
    CopyDeferred,
    CopyPage,
    FreezeRows,
    GatherPart,
    GatherRows,
    Lane,
    PreserveRows,
    ReleaseBuffers,
    RowCommand,
    ScatterPart,
    ScatterRows,
    ScheduleGather,
    SourceKind,
)
from tenure.core.rows.events import (
    ConsumeRequested,
    ContentIdentity,
    CopyBegan,
    CopyCompleted,
    GatherCompleted,
    GatherFailed,
    PolicyRegistered,
    Replaced,
    Resumed,
    SavePublished,
    SaveRequested,
    Started,
    StepStarted,
    WaitedFor,
    WaitTimedOut,
    WriteFailed,
    WriteLayout,
)
from tenure.core.rows.names import HIDDEN, HeldClass, NameClass, Output
from tenure.core.rows.view import ReadPhase, RowView, StepPhase, UnreadableHit, WritePhase
from tenure.spec.rows.rule import RowObservation
from tests.spec import spoiled_row_good as good
from tests.spec import spoiled_row_states as states
from tests.spec.spoiled_row_history import RowHistory, arrives, goes_on, machine
from tests.spec.spoiled_row_states import claim, clone, drop, page, put, read, step, write

Spoiler = Callable[[RowObservation], RowObservation]


def after(change: Callable[[RowView], RowView]) -> Spoiler:
    """Spoils the state that an event led to."""
    return lambda seen: replace(seen, after=change(seen.after))


def before(change: Callable[[RowView], RowView]) -> Spoiler:
    """Spoils the state that an event was told to."""
    return lambda seen: replace(seen, before=change(seen.before))


def told(event: Any) -> Spoiler:
    """Another event led to the same."""
    return lambda seen: replace(seen, event=event)


def answered(answer: Any) -> Spoiler:
    """Another answer."""
    return lambda seen: replace(seen, answer=answer)


def with_commands(change: Callable[[tuple[RowCommand, ...]], tuple[RowCommand, ...]]) -> Spoiler:
    """Other commands."""
    return lambda seen: replace(seen, commands=change(seen.commands))


def changed(kind: type[Any], **changes: Any) -> Spoiler:
    """Something changed in every command of a kind."""
    return with_commands(
        lambda commands: tuple(replace(each, **changes) if isinstance(each, kind) else each for each in commands)
    )


def without(kind: type[Any]) -> Spoiler:
    """No command of a kind."""
    return with_commands(lambda commands: tuple(each for each in commands if not isinstance(each, kind)))


def twice(kind: type[Any]) -> Spoiler:
    """Every command of a kind a second time."""
    return with_commands(lambda commands: (*commands, *(each for each in commands if isinstance(each, kind))))


def borrowed(history: Callable[[], RowHistory]) -> Spoiler:
    """The commands of another history's newest event as well."""
    return with_commands(lambda commands: (*commands, *history().last.commands))


def counters(**changes: int) -> Callable[[RowView], RowView]:
    """Other counters."""
    return lambda view: replace(view, counters=view.counters._replace(**changes))


def tenancy(view: RowView, slot: int, number: int) -> RowView:
    """Another tenancy number."""
    numbers = [*view.tenancy]
    numbers[slot] = number
    return replace(view, tenancy=tuple(numbers))


def fence(view: RowView, **changes: Any) -> RowView:
    """Something changed in what write 3 left behind."""
    return replace(view, fenced=put(view.fenced, 3, replace(view.fenced[3], **changes)))


def plan(**changes: Any) -> Spoiler:
    """Something changed in a consume plan."""

    def spoil(seen: RowObservation) -> RowObservation:
        assert isinstance(seen.answer, ConsumePlan)
        return replace(seen, answer=replace(seen.answer, **changes))

    return spoil


def parts(*given: tuple[SourceKind, list[int], list[int], list[int]]) -> Spoiler:
    """Other parts of a gather: kind, sources, source rows and rows each."""
    made = tuple(
        GatherPart(kind, integers(sources), integers(source_rows), integers(rows))
        for kind, sources, source_rows, rows in given
    )
    return changed(GatherRows, parts=made)


def scattered(name: str, rows: list[int], slots: list[int]) -> ScatterPart:
    """One part of a scatter."""
    return ScatterPart(name, integers(rows), integers(slots))


def layout(**changes: Any) -> Spoiler:
    """A save that was reserved with another layout."""

    def spoil(seen: RowObservation) -> RowObservation:
        assert isinstance(seen.event, SaveRequested)
        old = seen.event.layout
        fields = {name: getattr(old, name) for name in ("requests", "counts", "slots", "padded")}
        return replace(seen, event=replace(seen.event, layout=WriteLayout(**{**fields, **changes})))

    return spoil


def outputs(*given: Output) -> Spoiler:
    """A save that was reserved with other outputs."""

    def spoil(seen: RowObservation) -> RowObservation:
        assert isinstance(seen.event, SaveRequested)
        return replace(seen, event=replace(seen.event, outputs=given))

    return spoil


def held(name: str) -> HeldClass:
    """A class that nothing declared."""
    return HeldClass(NameClass.LEFTOVER, (len(name),))


AGAIN = StepStarted((goes_on(a=1),))
WAIT_PAGE = Waiting(WaitedFor(page=True))

Broken = tuple[str, Callable[[], RowHistory], Spoiler]

STEPS: list[Broken] = [
    # R01: steps and consumers.
    ("R01", states.busy_history, after(lambda v: step(v, 2, phase=StepPhase.RESERVED))),
    ("R01", states.busy_history, after(lambda v: replace(v, steps=drop(v.steps, 1)))),
    ("R01", states.busy_history, after(lambda v: step(v, 1, leftovers=()))),
    ("R01", states.busy_history, after(lambda v: step(v, 2, batch=(("a", 1), ("b", 3))))),
    ("R01", states.awaiting_history, after(lambda v: replace(v, steps=drop(v.steps, 2)))),
    ("R01", states.reserved_history, after(lambda v: step(v, 3, phase=StepPhase.STARTED))),
    ("R01", good.cancelled_history, after(lambda v: step(v, 3, phase=StepPhase.RESERVED))),
    ("R01", good.dropped_history, after(lambda v: replace(v, steps=put(v.steps, 2, states.busy().steps[2])))),
    ("R01", good.copied_out_history, after(lambda v: step(v, 2, page=1))),
    ("R01", good.consumed_history, after(lambda v: replace(v, steps=put(v.steps, 2, states.busy().steps[2])))),
    ("R01", good.abandoned_history, after(lambda v: step(v, 2, phase=StepPhase.CONSUMING))),
    ("R01", good.discarded_history, before(lambda v: step(v, 2, phase=StepPhase.CONSUMING))),
    ("R01", states.consuming_history, after(lambda v: step(v, 2, phase=StepPhase.SAVED))),
    ("R01", states.consuming_history, before(lambda v: step(v, 2, phase=StepPhase.CONSUMING))),
    ("R01", states.consuming_history, told(ConsumeRequested(2, ("z",)))),
    ("R01", states.consuming_history, told(ConsumeRequested(2, ("b", "b")))),
    ("R01", states.consuming_history, told(ConsumeRequested(7, ("b",)))),
    ("R01", states.consuming_history, told(AGAIN)),
    ("R01", states.consuming_history, before(lambda v: read(v, 1, phase=ReadPhase.RUNNING))),
    ("R01", states.consuming_history, before(lambda v: write(v, 3, phase=WritePhase.COPYING))),
    ("R01", states.consuming_history, answered(Waiting(WaitedFor(reads=(1,))))),
    ("R01", good.consumer_waits_history, answered(Done())),
    ("R01", states.consuming_history, plan(page=3)),
    ("R01", states.consuming_history, plan(requests=("a",))),
    ("R01", states.consuming_history, plan(batch=("b", "a"))),
    ("R01", states.consuming_history, plan(starts=integers([0, 2, 3]))),
    ("R01", states.consuming_history, plan(formats=())),
    ("R01", states.consuming_history, plan(leftovers=())),
    ("R01", states.consuming_history, plan(hits=())),
    ("R01", states.consuming_history, plan(hits=(HitRows("b", HIDDEN, 2, 4),) * 3)),
    ("R01", good.late_consumer_history, after(lambda v: replace(v, next_claim=v.next_claim + 1))),
    ("R01", states.busy_history, after(counters(steps_saved=0))),
    ("R01", good.dropped_history, after(counters(steps_dropped=7))),
    ("R01", good.consumed_history, after(counters(hit_rows=0))),
    ("R01", good.began_history, after(counters(hit_rows=1))),
    # R15: what may not be taken.
    ("R15", states.awaiting_history, told(StepStarted((Replaced("a", 1),)))),
    ("R15", states.awaiting_history, told(StepStarted((goes_on(a=-1),)))),
    ("R15", states.awaiting_history, told(StepStarted((Started("b", 1, -2),)))),
    ("R15", states.awaiting_history, told(StepStarted((goes_on(a=1), Resumed("a", 1))))),
    ("R15", states.awaiting_history, told(StepStarted((Resumed("z", 1),)))),
    ("R15", states.awaiting_history, told(StepStarted((goes_on(z=1),)))),
    ("R15", states.awaiting_history, told(StepStarted((arrives("b", 2, 3, (0, 1)),)))),
    ("R15", states.awaiting_history, told(StepStarted((arrives("b", 0, 4, (0, 1)),)))),
    ("R15", states.awaiting_history, told(StepStarted((arrives("b", 2, 4),)))),
    ("R15", states.awaiting_history, told(StepStarted((Started("b", 2, 4, ((0, 1), (0, 1))),)))),
    ("R15", states.awaiting_history, told(StepStarted((arrives("b", 2, 4, (0,)),)))),
    ("R15", states.awaiting_history, told(StepStarted((arrives("b", 2, 4, (0, 6)),)))),
    ("R15", states.awaiting_history, told(StepStarted((arrives("b", 2, 4, (0, 1), (good.SEVEN,)),)))),
    ("R15", states.reserved_history, before(lambda v: replace(v, pending=None))),
    ("R15", states.reserved_history, layout(requests=("a", "a"))),
    ("R15", states.reserved_history, layout(requests=("a", "z"))),
    ("R15", states.reserved_history, layout(counts=[1, 2], slots=[5, 8, 9])),
    ("R15", states.reserved_history, layout(requests=("a", "b", "z"), counts=[1, 1, 0])),
    ("R15", states.reserved_history, layout(slots=[5, 5])),
    ("R15", states.reserved_history, layout(slots=[5])),
    ("R15", states.reserved_history, layout(slots=[5, 12])),
    ("R15", states.reserved_history, layout(padded=1)),
    ("R15", states.reserved_history, before(lambda v: replace(v, config=machine(page_rows_max=1)))),
    ("R15", states.reserved_history, outputs(Output("m", (2, 2), "float32"), Output("m"))),
    ("R15", states.reserved_history, outputs(Output(HIDDEN, (1, 2), "float32"))),
    ("R15", states.reserved_history, outputs(Output(HIDDEN))),
    ("R15", states.reserved_history, outputs(Output(HIDDEN, (2, 3), "float32"))),
    ("R15", states.reserved_history, outputs(Output(HIDDEN, (2, 2), "float16"))),
    ("R15", good.dropped_history, before(lambda v: replace(v, pending=None))),
    ("R15", states.busy_history, told(PolicyRegistered(states.busy().policy))),
    ("R15", states.busy_history, told(WaitTimedOut(WaitedFor(page=True)))),
    ("R15", states.busy_history, after(lambda v: replace(v, config=machine(7)))),
    ("R15", states.busy_history, after(lambda v: replace(v, policy=v.policy.model_copy(update={"infer": False})))),
    ("R15", states.busy_history, after(lambda v: replace(v, formats=v.formats[::-1]))),
    ("R15", good.began_history, after(lambda v: replace(v, formats=(*v.formats, states.X)))),
    ("R15", good.began_history, before(lambda v: replace(v, classes={"log": held("log")}))),
    ("R15", states.fenced_history, before(lambda v: replace(v, classes={"log": held("log")}))),
    ("R15", good.began_history, after(lambda v: replace(v, classes={"log": held("log")}))),
    ("R15", states.reserved_history, changed(FreezeRows, registers=(states.X,))),
    ("R15", states.reserved_history, before(lambda v: states.form(v, 1, row_shape=(9,)))),
    ("R15", states.busy_history, before(lambda v: replace(v, shut_down=True))),
    ("R15", good.shut_down_history, lambda seen: replace(seen, before=seen.after, after=seen.before)),
    ("R15", good.shut_down_history, after(lambda v: replace(v, shut_down=False))),
    ("R15", good.began_history, after(lambda v: replace(v, shut_down=True))),
    ("R15", good.waits_clone_history, after(lambda v: replace(v, next_claim=v.next_claim + 1))),
    ("R15", good.waits_page_history, after(lambda v: replace(v, next_claim=v.next_claim + 1))),
    # R22: starts.
    ("R22", states.awaiting_history, before(lambda v: replace(v, pending=1))),
    ("R22", states.awaiting_history, after(lambda v: replace(v, pending=None))),
    ("R22", states.awaiting_history, after(lambda v: replace(v, next_step=4))),
    ("R22", states.awaiting_history, after(lambda v: step(v, 2, batch=(("a", 1),)))),
]

HITS: list[Broken] = [
    # R02: what hits are read from.
    ("R02", states.awaiting_history, answered(StepBegan(2, ()))),
    ("R02", states.awaiting_history, answered(Done())),
    ("R02", states.awaiting_history, after(lambda v: step(v, 2, hits=(("b", (0, 1, 2, 5)),)))),
    ("R02", states.awaiting_history, after(lambda v: step(v, 2, reads=v.steps[2].reads[1:]))),
    ("R02", states.awaiting_history, after(lambda v: read(v, 1, claims=(1, 1, 1, 2)))),
    ("R02", states.awaiting_history, after(lambda v: read(v, 1, phase=ReadPhase.RUNNING))),
    ("R02", states.busy_history, after(lambda v: replace(v, reads=drop(v.reads, 2)))),
    ("R02", states.busy_history, after(lambda v: step(v, 2, reads=v.steps[2].reads[1:]))),
    ("R02", good.replanned_history, after(lambda v: read(v, max(v.reads), claims=(2, 2)))),
    (
        "R02",
        states.busy_history,
        after(
            lambda v: replace(
                step(v, 2, reads=(("b", HIDDEN, 9), *v.steps[2].reads[1:])), reads=put(v.reads, 9, v.reads[1])
            )
        ),
    ),
    ("R02", good.replanned_history, before(lambda v: read(v, 1, claims=(3, 3)))),
    ("R02", states.unreadable_history, after(lambda v: step(v, 1, unreadable=()))),
    ("R02", good.gathering_history, without(GatherRows)),
    ("R02", good.gathering_history, twice(GatherRows)),
    ("R02", good.gathered_history, borrowed(good.gathering_history)),
    ("R02", good.gathering_history, changed(GatherRows, num_rows=3)),
    ("R02", good.gathering_history, before(lambda v: read(v, 1, awaits=(3,)))),
    ("R02", good.gathering_history, parts((SourceKind.POOL, [0] * 4, [0, 1, 2, 2], [0, 1, 2, 3]))),
    ("R02", good.gathering_history, parts((SourceKind.POOL, [0] * 3, [0, 1, 2], [0, 1, 2]))),
    ("R02", good.gathering_history, parts((SourceKind.POOL, [0] * 5, [0, 1, 2, 3, 3], [0, 1, 2, 3, 3]))),
    ("R02", good.gathering_history, parts((SourceKind.PRESERVED, [0] * 4, [0, 1, 2, 3], [0, 1, 2, 3]))),
    ("R02", good.gathering_clone_history, parts((SourceKind.POOL, [0] * 4, [0, 1, 2, 3], [0, 1, 2, 3]))),
    ("R02", good.gathering_host_history, parts((SourceKind.HOST, [2] * 4, [0, 1, 3, 2], [0, 1, 2, 3]))),
    ("R02", good.gathering_preserved_history, parts((SourceKind.POOL, [0] * 4, [0, 1, 2, 3], [0, 1, 2, 3]))),
    ("R02", good.gathering_clone_history, after(lambda v: read(v, 3, clones=(4,)))),
    ("R02", good.gathering_history, after(lambda v: read(v, 1, pool=(0, 1)))),
    ("R02", good.gathering_history, before(lambda v: claim(v, HIDDEN, 0, 3))),
    ("R02", good.gathering_history, before(lambda v: replace(v, writes=put(v.writes, 1, states.awaiting().writes[1])))),
    ("R02", states.awaiting_history, after(counters(hits=0))),
    ("R02", states.awaiting_history, after(counters(waits_for_in_transit=0))),
    ("R02", good.resumed_history, after(counters(resumed_with_hit=0))),
    ("R02", states.busy_history, after(counters(reads_confirmed=0))),
    ("R02", good.replanned_history, after(counters(reads_replanned=0))),
    # R14: verdicts.
    ("R14", states.unreadable_history, after(lambda v: step(v, 1, unreadable=()))),
    ("R14", states.unreadable_history, after(lambda v: step(v, 1, unreadable=(UnreadableHit("b", "m", (8, 9)),)))),
    ("R14", states.unreadable_history, after(lambda v: step(v, 1, unreadable=(UnreadableHit("b", HIDDEN, (8,)),)))),
    ("R14", states.unreadable_history, after(lambda v: step(v, 1, unreadable=v.steps[1].unreadable * 2))),
    ("R14", states.unreadable_history, after(counters(unreadable_hits=0))),
    ("R14", good.began_history, after(lambda v: step(v, 2, unreadable=(UnreadableHit("b", HIDDEN, (0,)),)))),
]

READS: list[Broken] = [
    # R13: rows that are set aside, and scatters behind reads.
    ("R13", states.preserved_history, without(PreserveRows)),
    ("R13", states.preserved_history, twice(PreserveRows)),
    ("R13", states.preserved_history, changed(PreserveRows, rows=integers([0, 2]), slots=integers([0, 2]))),
    ("R13", states.preserved_history, changed(PreserveRows, read=3)),
    ("R13", states.preserved_history, after(lambda v: read(v, 1, preserved=(), pool=(0, 1, 2, 3)))),
    ("R13", states.preserved_history, after(counters(rows_preserved=0))),
    ("R13", good.began_history, borrowed(states.preserved_history)),
    ("R13", good.scatter_behind_history, changed(ScatterRows, after=())),
    ("R13", good.scatter_behind_left_history, changed(ScatterRows, after=())),
    # R23: the life of a read.
    ("R23", good.discarded_history, after(lambda v: replace(v, reads=drop(v.reads, 1)))),
    ("R23", good.discarded_history, after(lambda v: read(v, 1, phase=ReadPhase.RUNNING))),
    ("R23", good.discarded_history, after(lambda v: replace(v, reads=put(v.reads, 2, states.busy().reads[2])))),
    ("R23", good.discarded_history, after(lambda v: read(v, 3, clones=()))),
    ("R23", good.discarded_history, after(lambda v: read(v, 1, pool=()))),
    ("R23", good.began_history, after(lambda v: replace(v, reads=drop(v.reads, 1)))),
    ("R23", good.began_history, after(lambda v: replace(v, reads=put(v.reads, 9, v.reads[1])))),
    ("R23", good.began_history, after(lambda v: read(v, 1, claims=(1, 1, 1, 0)))),
    ("R23", good.began_history, after(lambda v: read(v, 1, slots=(0, 1, 2, 5)))),
    ("R23", good.began_history, after(lambda v: read(v, 1, confirmed=False))),
    (
        "R23",
        states.busy_history,
        after(lambda v: replace(v, reads=put(v.reads, 2, replace(v.reads[2], phase=ReadPhase.DONE)))),
    ),
    ("R23", states.busy_history, before(lambda v: replace(v, next_read=9, reads=drop(v.reads, 2)))),
    ("R23", good.gathering_history, after(lambda v: read(v, 1, phase=ReadPhase.PLANNED))),
    ("R23", good.gathered_history, told(GatherCompleted(2))),
    ("R23", good.gathered_history, told(GatherCompleted(77))),
    ("R23", good.gathered_history, before(lambda v: read(v, 3, phase=ReadPhase.DONE))),
    ("R23", good.gather_failed_history, after(lambda v: read(v, 3, phase=ReadPhase.DONE))),
    ("R23", good.gather_failed_history, before(lambda v: read(v, 3, phase=ReadPhase.DONE))),
    ("R23", good.left_read_ends_history, after(lambda v: replace(v, reads=put(v.reads, 3, states.left().reads[3])))),
    ("R23", good.left_read_ends_history, without(ReleaseBuffers)),
    ("R23", good.left_read_ends_history, changed(ReleaseBuffers, reads=(3, 3))),
    ("R23", good.left_read_ends_history, changed(ReleaseBuffers, reads=(1, 3))),
    ("R23", good.write_failed_history, after(lambda v: read(v, 3, phase=ReadPhase.PLANNED))),
    ("R23", good.write_failed_history, after(lambda v: read(v, 1, phase=ReadPhase.FAILED))),
    ("R23", good.write_failed_history, before(lambda v: read(v, 3, phase=ReadPhase.RUNNING))),
    ("R23", good.dropped_history, after(lambda v: replace(v, reads=states.busy().reads))),
    ("R24", states.fenced_history, after(lambda v: read(v, 1, phase=ReadPhase.RUNNING))),
    ("R23", good.discarded_history, after(counters(reads_dropped=0))),
    ("R23", good.left_read_ends_history, after(counters(reads_dropped=99))),
]

WRITES: list[Broken] = [
    # R04: numbers.
    ("R04", states.busy_history, before(lambda v: replace(v, next_write=99))),
    ("R04", good.began_history, after(lambda v: replace(v, next_claim=v.next_claim + 1))),
    ("R04", good.began_history, after(lambda v: claim(v, "m", 0, 5))),
    ("R04", states.busy_history, after(lambda v: claim(v, "m", 0, 2))),
    ("R04", states.busy_history, after(lambda v: replace(v, newest=drop(v.newest, "m")))),
    # R05: landing.
    ("R05", good.copied_history, without(ScatterRows)),
    ("R05", good.copied_history, twice(ScatterRows)),
    ("R05", good.copied_history, changed(ScatterRows, page=0)),
    ("R05", good.copied_history, changed(ScatterRows, write=2)),
    ("R05", good.copied_history, changed(ScatterRows, parts=(scattered("m", [0, 1, 2], [4, 6, 7]),))),
    ("R05", good.copied_history, changed(ScatterRows, parts=(scattered("m", [0, 1, 2], [4, 6, 7]),) * 2)),
    ("R05", good.copied_history, after(lambda v: write(v, 3, phase=WritePhase.WRITTEN))),
    (
        "R05",
        good.copied_masked_history,
        changed(ScatterRows, parts=(scattered("c", [*range(5)], [*range(5)]),)),
    ),
    ("R05", good.copied_masked_history, changed(ScatterRows, parts=(scattered("c", [0, 1, 2], [2, 3, 4]),))),
    ("R05", good.copied_in_vain_history, borrowed(good.copied_history)),
    ("R05", good.began_history, borrowed(good.copied_history)),
    # R09: the chain.
    ("R09", good.began_history, after(lambda v: write(v, 3, phase=WritePhase.QUEUED))),
    ("R09", good.began_history, after(lambda v: write(v, 3, phase=WritePhase.HOST_READY))),
    ("R09", good.began_history, after(lambda v: write(v, 2, phase=WritePhase.QUEUED))),
    ("R09", good.began_history, told(CopyBegan(77))),
    ("R09", good.began_history, after(lambda v: replace(v, writes=drop(v.writes, 4)))),
    ("R09", good.began_history, after(lambda v: replace(v, writes=put(v.writes, 9, v.writes[4])))),
    ("R09", states.busy_history, after(lambda v: write(v, 3, phase=WritePhase.COPYING))),
    ("R09", states.busy_history, after(lambda v: write(v, 4, phase=WritePhase.QUEUED))),
    ("R09", states.busy_history, before(lambda v: replace(v, next_write=5))),
    ("R09", good.began_history, after(lambda v: write(v, 3, page=2))),
    ("R09", good.began_history, after(lambda v: write(v, 2, ended=True))),
    ("R09", good.began_history, after(lambda v: write(v, 2, claims=v.writes[2].claims[:1]))),
    ("R09", good.scattered_history, after(lambda v: replace(v, writes=put(v.writes, 3, states.busy().writes[3])))),
    ("R09", good.write_failed_history, after(lambda v: write(v, 2, phase=WritePhase.PENDING))),
    # R10: ends and flushes.
    ("R10", good.ended_history, after(lambda v: write(v, 2, ended=False))),
    ("R10", good.ended_history, after(lambda v: write(v, 2, phase=WritePhase.PENDING))),
    ("R10", good.ended_history, after(lambda v: replace(v, writes=drop(v.writes, 2)))),
    ("R10", good.ended_history, without(CopyDeferred)),
    ("R10", good.ended_history, twice(CopyDeferred)),
    ("R10", good.ended_history, changed(CopyDeferred, stops=integers([3, 1]))),
    ("R10", good.ended_history, changed(CopyDeferred, num_rows=4)),
    ("R10", good.ended_history, changed(CopyDeferred, formats=())),
    ("R10", good.ended_history, told(AGAIN)),
    ("R10", good.ended_history, after(counters(flushes=1))),
    ("R10", good.ended_history, after(lambda v: replace(v, live={"a": None, "b": 4}))),
    ("R10", good.began_history, after(lambda v: replace(v, live=drop(v.live, "b")))),
    ("R10", states.awaiting_history, after(lambda v: replace(v, live=drop(v.live, "b")))),
    ("R10", good.waits_clone_history, after(counters(flushes=0))),
    ("R10", good.waits_clone_history, answered(WAIT_PAGE)),
    # R16: chunks.
    ("R16", states.busy_history, after(lambda v: step(v, 2, write=None))),
    ("R16", states.busy_history, after(lambda v: write(v, 3, claims=((4, (4, 6, 7)),)))),
    ("R16", states.busy_history, after(lambda v: write(v, 3, names=("m",)))),
    ("R16", states.busy_history, after(lambda v: write(v, 3, phase=WritePhase.COPYING))),
    ("R16", states.busy_history, answered(StepSaved(2, 4))),
    ("R16", states.busy_history, after(lambda v: replace(v, writes=put(v.writes, 5, v.writes[3])))),
    ("R16", states.busy_history, after(lambda v: write(v, 4, claims=((5, (6,)),)))),
    ("R16", states.busy_history, after(lambda v: write(v, 2, claims=v.writes[2].claims[1:]))),
    ("R16", states.busy_history, after(lambda v: write(v, 4, step=1))),
    ("R16", states.busy_history, after(lambda v: replace(v, next_claim=v.next_claim + 1))),
    ("R16", states.busy_history, after(lambda v: write(v, 3, claims=((3, (4, 6, 8)),)))),
    ("R16", states.busy_history, after(lambda v: write(v, 4, claims=((5, (7, 6)),)))),
    # R21: tenancy.
    ("R21", states.busy_history, after(lambda v: tenancy(v, 9, 3))),
    ("R21", states.busy_history, after(lambda v: tenancy(v, 6, 0))),
    ("R21", states.busy_history, after(lambda v: tenancy(tenancy(v, 0, 3), 6, 0))),
    ("R21", states.busy_history, after(lambda v: claim(v, "m", 6, 0))),
    ("R21", states.busy_history, after(lambda v: claim(v, "m", 9, 3))),
    ("R21", states.busy_history, after(lambda v: claim(v, "m", 6, 5))),
    ("R21", states.busy_history, after(lambda v: step(v, 2, names=(HIDDEN, "m")))),
    ("R21", states.busy_history, after(lambda v: replace(v, identities={0: good.SEVEN}))),
    ("R21", good.dropped_history, after(lambda v: tenancy(v, 8, 0))),
    ("R21", good.dropped_history, after(lambda v: replace(v, next_claim=v.next_claim + 1))),
    ("R21", good.dropped_history, after(lambda v: replace(v, identities={4: good.SEVEN}))),
    ("R21", good.began_history, after(lambda v: tenancy(v, 6, 1))),
    ("R21", good.began_history, after(lambda v: replace(v, identities={0: good.SEVEN}))),
    ("R21", states.fenced_history, after(lambda v: tenancy(v, 6, 1))),
]

HOLDERS: list[Broken] = [
    # R06: pages.
    ("R06", states.reserved_history, after(lambda v: page(page(v, 2), 3, ("step", 3)))),
    ("R06", states.reserved_history, before(lambda v: page(v, 2, ("step", 9)))),
    ("R06", states.busy_history, after(lambda v: page(v, 2, ("write", 3)))),
    ("R06", good.began_history, after(lambda v: page(v, 2, ("step", 9)))),
    ("R06", good.began_history, after(lambda v: page(v, 1, ("step", 2)))),
    ("R06", good.began_history, after(lambda v: page(v, 0))),
    ("R06", good.consumed_history, after(lambda v: page(v, 1))),
    ("R06", states.consuming_history, after(lambda v: page(v, 1, ("write", 3)))),
    ("R06", states.fenced_history, after(lambda v: page(v, 1))),
    ("R06", good.discarded_history, after(lambda v: page(v, 0))),
    ("R06", states.busy_history, without(CopyPage)),
    ("R06", states.busy_history, twice(CopyPage)),
    ("R06", states.busy_history, changed(CopyPage, page=0)),
    ("R06", states.busy_history, changed(CopyPage, num_rows=9)),
    ("R06", good.began_history, borrowed(states.busy_history)),
    # R08: clones.
    ("R08", good.copied_history, without(ReleaseBuffers)),
    ("R08", good.copied_history, changed(ReleaseBuffers, clones=integers([3, 3]))),
    ("R08", good.began_history, after(lambda v: replace(v, clones=drop(v.clones, 2)))),
    ("R08", good.began_history, after(lambda v: clone(v, 2, 31, 1))),
    ("R08", good.began_history, after(lambda v: clone(v, 9, 8, 1))),
    ("R08", states.reserved_history, without(FreezeRows)),
    ("R08", states.reserved_history, twice(FreezeRows)),
    ("R08", states.reserved_history, after(lambda v: replace(v, next_clone=9))),
    ("R08", states.reserved_history, after(lambda v: clone(v, 5, 1, 1))),
    ("R08", states.reserved_history, changed(FreezeRows, num_rows=3)),
    (
        "R08",
        states.reserved_history,
        with_commands(
            lambda commands: tuple(
                replace(
                    each,
                    clones=tuple(
                        one._replace(formats=other.formats)
                        for one, other in zip(each.clones, each.clones[::-1], strict=True)
                    ),
                )
                for each in commands
                if isinstance(each, FreezeRows)
            )
        ),
    ),
    ("R08", good.began_history, after(lambda v: clone(v, 2, 32, 2))),
    ("R08", good.copied_history, after(lambda v: clone(v, 4, 24, 3))),
    ("R08", good.copied_history, after(lambda v: clone(v, 4, 24, 1))),
    ("R08", good.gathering_clone_history, after(lambda v: clone(v, 2, 32, 1))),
    ("R08", good.gathered_history, after(lambda v: clone(v, 2, 32, 2))),
    ("R08", states.busy_history, after(lambda v: clone(v, 4, 24, 2))),
    ("R08", states.busy_history, after(lambda v: clone(v, 2, 32, 2))),
    ("R08", states.busy_history, after(lambda v: replace(v, clones=drop(v.clones, 3)))),
    ("R08", good.began_history, after(lambda v: replace(v, charged=v.charged + 1))),
    ("R08", states.reserved_history, after(lambda v: replace(v, config=machine(budget_bytes=100)))),
    ("R08", states.busy_history, after(counters(over_budget=1))),
    ("R08", states.reserved_history, after(counters(charged_peak=7))),
    ("R08", good.began_history, after(counters(charged_peak=10**6))),
    ("R08", states.over_budget_history, after(counters(over_budget=0))),
    # R11: waits and work.
    ("R11", good.waits_written_history, answered(Waiting(WaitedFor()))),
    ("R11", good.waits_written_history, answered(Waiting(WaitedFor(written=(2,))))),
    ("R11", good.waits_written_history, answered(Waiting(WaitedFor(written=(1,))))),
    ("R11", good.waits_written_history, answered(Waiting(WaitedFor(host_ready=(2,))))),
    ("R11", good.waits_written_history, answered(WAIT_PAGE)),
    ("R11", good.waits_page_history, answered(Waiting(WaitedFor(clone=4)))),
    ("R11", good.waits_page_history, after(lambda v: page(v, 0))),
    ("R11", good.waits_page_history, answered(Waiting(WaitedFor(clone=2, page=True)))),
    ("R11", good.waits_host_ready_history, answered(WAIT_PAGE)),
    ("R11", good.waits_host_ready_history, answered(Waiting(WaitedFor(host_ready=(4,))))),
    ("R11", good.consumer_waits_history, answered(Waiting(WaitedFor(reads=(77,))))),
    ("R11", good.consumer_waits_history, answered(Waiting(WaitedFor(written=(3,))))),
    ("R11", good.consumer_waits_history, told(ConsumeRequested(1, ("a",)))),
    ("R11", good.consumer_waits_history, after(lambda v: step(v, 2, reads=()))),
    ("R11", good.began_history, answered(Waiting(WaitedFor(written=(3,))))),
    ("R11", states.reserved_history, before(lambda v: replace(v, writes=put(v.writes, 3, states.busy().writes[3])))),
    ("R11", states.reserved_history, before(lambda v: write(v, 4, phase=WritePhase.QUEUED, ended=True))),
    ("R11", good.found_rows_history, without(ScheduleGather)),
    ("R11", good.found_rows_history, twice(ScheduleGather)),
    ("R11", good.began_history, borrowed(good.found_rows_history)),
    # R12: failures.
    ("R12", states.busy_history, before(lambda v: replace(v, failure=2))),
    ("R12", states.fenced_history, after(lambda v: replace(v, failure=2))),
    ("R12", good.write_failed_history, after(lambda v: replace(v, failure=None))),
    ("R12", good.write_failed_history, after(lambda v: replace(v, failure=3))),
    ("R12", good.began_history, after(lambda v: replace(v, failure=3))),
    # R20: commands.
    ("R20", states.busy_history, changed(CopyPage, after=())),
    ("R20", states.preserved_history, changed(PreserveRows, command=1)),
    ("R20", states.busy_history, changed(CopyPage, after=(999,))),
    ("R20", states.busy_history, changed(CopyPage, after=(1, 1))),
    ("R20", states.busy_history, changed(CopyPage, lane=Lane.POOL)),
    ("R20", good.copied_history, changed(ScatterRows, lane=Lane.GATHER)),
    ("R20", states.preserved_history, changed(PreserveRows, lane=Lane.GATHER)),
    ("R20", states.busy_history, changed(CopyPage, done=CopyCompleted(2))),
    ("R20", states.busy_history, changed(CopyPage, began=CopyBegan(2))),
    ("R20", good.ended_history, changed(CopyDeferred, failed=WriteFailed(3))),
    ("R20", states.reserved_history, changed(FreezeRows, done=SavePublished(2))),
    ("R20", good.copied_history, changed(ScatterRows, failed=WriteFailed(2))),
    ("R20", states.preserved_history, changed(PreserveRows, failed=GatherFailed(9))),
    ("R20", good.gathering_history, changed(GatherRows, done=GatherCompleted(2))),
    ("R20", good.gathering_preserved_history, changed(GatherRows, after=())),
    # R24: resets.
    ("R24", good.began_history, after(lambda v: replace(v, floor=2))),
    ("R24", good.reset_refused_history, answered(ResetAnswered(done=True))),
    ("R24", good.reset_refused_history, after(lambda v: replace(v, next_claim=99))),
    ("R24", states.fenced_history, answered(ResetAnswered(done=False))),
    ("R24", states.fenced_history, after(lambda v: replace(v, next_claim=v.next_claim + 1))),
    ("R24", states.fenced_history, after(lambda v: replace(v, newest=put(v.newest, "m", (0,) * 12)))),
    ("R24", states.fenced_history, after(lambda v: replace(v, live={"a": None}))),
    ("R24", states.fenced_history, after(lambda v: replace(v, floor=0))),
    ("R24", states.fenced_history, after(lambda v: replace(v, fenced=drop(v.fenced, 3)))),
    (
        "R24",
        states.fenced_history,
        after(lambda v: fence(v, page=None)),
    ),
    (
        "R24",
        states.fenced_history,
        after(lambda v: fence(v, clones=())),
    ),
    ("R24", states.fenced_history, after(lambda v: replace(v, fenced=put(v.fenced, 4, v.fenced[3])))),
    ("R24", states.fenced_history, after(lambda v: replace(v, fenced=put(v.fenced, 2, v.fenced[3])))),
    ("R24", states.fenced_history, after(lambda v: replace(v, fenced_steps={}))),
    ("R24", states.fenced_history, after(lambda v: replace(v, reads=drop(v.reads, 1)))),
    ("R24", states.fenced_history, after(lambda v: replace(v, reads=put(v.reads, 2, states.busy().reads[2])))),
    ("R24", states.fenced_history, after(lambda v: replace(v, writes={4: states.busy().writes[4]}))),
    ("R24", good.late_copy_history, after(lambda v: replace(v, fenced=put(v.fenced, 3, states.fenced().fenced[3])))),
    ("R09", good.late_copy_history, before(lambda v: replace(v, fenced=drop(v.fenced, 3)))),
    ("R24", good.late_copy_history, answered(Done())),
    ("R24", good.late_copy_history, told(CopyBegan(3))),
    ("R24", good.late_begin_history, after(lambda v: replace(v, fenced=drop(v.fenced, 3)))),
    ("R24", good.late_begin_history, after(lambda v: replace(v, fenced=put(v.fenced, 9, v.fenced[3])))),
    ("R24", good.late_consumer_history, after(lambda v: replace(v, fenced_steps={1: None}))),
    ("R24", good.late_consumer_history, answered(Done())),
    (
        "R24",
        good.fenced_scatter_history,
        before(lambda v: fence(v, phase=WritePhase.COPYING)),
    ),
    ("R24", good.began_history, before(lambda v: replace(v, fenced={9: states.fenced().fenced[3]}))),
]

BROKEN_OBSERVATIONS: list[Broken] = [*STEPS, *HITS, *READS, *WRITES, *HOLDERS]
"""Each names the rule that must say so; some spoil more than one."""


# --- What only the memory of a run shows ----------------------------------------------------------------------------


def absent_by_identity_history() -> RowHistory:
    """A hit expects something else than its block holds, in a step without hidden rows: it is served zeros."""
    history = RowHistory()
    history.start(arrives("a", 2, computes=((0, good.SEVEN),)))
    history.land(history.save({"a": (0, 1)}, ("m",)))
    history.start(arrives("b", 1, 2, (0,), expects=(ContentIdentity(8, "g"),)))
    history.save({"b": (2,)}, ("m",))
    return history


def renumbered(seen: RowObservation) -> RowObservation:
    """Commands whose numbers leave some out."""
    return replace(seen, commands=tuple(replace(each, command=each.command + 9) for each in seen.commands))


def exchanged(view: RowView) -> RowView:
    """Two clones with each other's holders."""
    one, other = view.clones[3], view.clones[4]
    return clone(clone(view, 3, one.bytes, other.holders), 4, other.bytes, one.holders)


def behind(kind: type[Any], *numbers: int) -> Spoiler:
    """Commands of a kind behind others than they should be."""
    return changed(kind, after=numbers)


def frozen_names(seen: RowObservation) -> RowObservation:
    """A step that emits a name as rows that was not frozen."""
    return replace(seen, after=step(seen.after, 2, names=(HIDDEN, "m")))


def reordered(view: RowView) -> RowView:
    """The chunk and the immediate claim of a step with two slots exchanged."""
    return write(write(view, 3, claims=((3, (4, 7, 6)),)), 4, claims=((5, (7, 6)),))


def page_of_other_clones(seen: RowObservation) -> RowObservation:
    """A page copy of the deferred clone alone."""
    commands = tuple(
        replace(each, clones=each.clones[1:]) if isinstance(each, CopyPage) else each for each in seen.commands
    )
    return replace(seen, commands=commands)


BROKEN_RUNS: list[Broken] = [
    ("R20", states.busy_history, renumbered),
    ("R20", states.preserved_history, behind(CopyPage, 4)),
    ("R20", states.busy_history, behind(CopyPage, 1)),
    ("R20", good.ended_history, behind(CopyDeferred)),
    ("R20", good.gathered_early_history, behind(GatherRows)),
    ("R20", good.gathering_preserved_history, behind(GatherRows, 1)),
    ("R20", good.cancelled_history, behind(ReleaseBuffers)),
    ("R13", good.scatter_behind_history, behind(ScatterRows, 1)),
    ("R13", good.scatter_behind_left_history, behind(ScatterRows, 1)),
    ("R16", states.busy_history, frozen_names),
    ("R16", states.busy_history, after(lambda v: step(v, 2, leftovers=()))),
    ("R16", states.busy_history, after(lambda v: step(v, 2, batch=v.steps[2].batch[::-1]))),
    ("R16", states.busy_history, after(lambda v: replace(v, formats=v.formats[::-1]))),
    ("R16", states.busy_history, after(reordered)),
    ("R16", states.busy_history, page_of_other_clones),
    ("R16", good.ended_history, changed(CopyDeferred, clones=integers([4, 2]))),
    ("R16", good.ended_history, changed(CopyDeferred, starts=integers([0, 1]), stops=integers([4, 2]))),
    ("R02", good.gathering_clone_history, parts((SourceKind.CLONE, [2] * 4, [0, 1, 2, 2], [0, 1, 2, 3]))),
    ("R02", good.gathering_clone_history, parts((SourceKind.CLONE, [4] * 4, [0, 1, 2, 3], [0, 1, 2, 3]))),
    ("R02", absent_by_identity_history, after(lambda v: read(v, max(v.reads), claims=(1, 1)))),
    ("R14", good.mismatched_history, after(lambda v: step(v, 2, unreadable=()))),
    ("R14", states.unreadable_history, after(lambda v: step(v, 1, unreadable=()))),
    ("R21", good.identified_history, after(lambda v: replace(v, identities={0: ContentIdentity(9)}))),
    ("R21", good.identified_history, after(lambda v: replace(v, identities={}))),
    ("R21", good.identified_history, told(SavePublished(1, ((4, good.SEVEN),)))),
    ("R23", good.consumed_for_others_history, without(ReleaseBuffers)),
    ("R23", good.consumed_history, borrowed(good.consumed_for_others_history)),
    ("R23", good.left_read_ends_history, without(ReleaseBuffers)),
    ("R23", good.host_rows_done_history, changed(ReleaseBuffers, writes=())),
    ("R23", good.host_rows_done_history, changed(ReleaseBuffers, writes=(2, 2))),
    ("R23", good.host_rows_done_history, changed(ReleaseBuffers, writes=(2, 4))),
    ("R23", good.gathering_host_history, borrowed(good.host_rows_done_history)),
    ("R08", states.busy_history, after(exchanged)),
    ("R08", good.began_history, after(lambda v: clone(v, 2, 32, 2))),
    ("R10", good.waits_clone_history, after(lambda v: write(v, 2, phase=WritePhase.PENDING))),
    ("R10", good.waits_clone_history, after(lambda v: write(v, 5, phase=WritePhase.QUEUED))),
]
"""What a ledger that saw the run so far must say; an observation alone need not show it."""
