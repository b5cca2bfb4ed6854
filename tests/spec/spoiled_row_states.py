"""Good states of the row machine, and for every rule of a state ways to break it by hand."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, TypeVar

from tenure.core.rows.events import (
    ConsumeRequested,
    CopyBegan,
    GatherBegan,
    ResetRequested,
    StepDiscarded,
    WriteFailed,
)
from tenure.core.rows.names import HIDDEN, RowFormat, Schedule
from tenure.core.rows.view import (
    CloneView,
    FencedWrite,
    ReadPhase,
    RowView,
    StepPhase,
    UnreadableHit,
    WritePhase,
)
from tests.spec.spoiled_row_history import ALL, RowHistory, arrives, goes_on, machine

K = TypeVar("K")
V = TypeVar("V")


# --- Good states ----------------------------------------------------------------------------------------------------


def awaiting_history() -> RowHistory:
    """Step 1 of `a` is saved and not copied; `b` arrives with a hit on its rows, planned as reads 1, 2 and 3."""
    history = RowHistory()
    history.step("a", (0, 1, 2, 3))
    history.start(arrives("b", 2, 4, (0, 1)), goes_on(a=1))
    return history


def busy_history() -> RowHistory:
    """Step 2 is saved: `a` appended slot 4, `b` computed 6 and 7, and its reads are settled; write 1 is WRITTEN."""
    history = awaiting_history()
    history.land(1)
    history.save({"a": (4,), "b": (6, 7)})
    return history


def running_history() -> RowHistory:
    """The hidden read and the deferred read of `b` run; the latter holds clone 2."""
    history = busy_history()
    history.tell(GatherBegan(1))
    history.tell(GatherBegan(3))
    return history


def preserved_history() -> RowHistory:
    """Step 3 of `d` took slots 0 and 1 from the reads of `b` that had not begun."""
    history = busy_history()
    history.land(3)
    history.step("d", (0, 1))
    return history


def left_history() -> RowHistory:
    """Nobody wants step 2 any more; reads 1 and 3 run still."""
    history = running_history()
    history.tell(StepDiscarded(2))
    return history


def consuming_history() -> RowHistory:
    """A materialize of step 2 is under way."""
    history = busy_history()
    history.copy(3)
    for read in (1, 2, 3):
        history.gather(read)
    history.tell(ConsumeRequested(2, ("b",)))
    return history


def reserved_history() -> RowHistory:
    """The save of step 3 is reserved."""
    history = busy_history()
    history.land(3)
    history.start(goes_on(a=1, b=1))
    history.request_save({"a": (5,), "b": (8,)})
    return history


def unreadable_history() -> RowHistory:
    """`b` has a hit on blocks that were never computed; `a` is served."""
    history = RowHistory()
    history.start(arrives("b", 1, 2, (4,)), arrives("a", 2))
    history.save({"b": (4,), "a": (0, 1)})
    return history


def failed_history() -> RowHistory:
    """The immediate write of step 2 failed."""
    history = busy_history()
    history.tell(WriteFailed(3))
    return history


def fenced_history() -> RowHistory:
    """A reset after a failure: write 3 is at the device, a materialize at step 1, and a read runs out."""
    history = running_history()
    history.tell(ConsumeRequested(1, ("a",)))
    history.tell(CopyBegan(3))
    history.tell(WriteFailed(2))
    history.tell(ResetRequested())
    return history


def over_budget_history() -> RowHistory:
    """The clones of one step exceed the budget."""
    history = RowHistory(machine(budget_bytes=50))
    history.step("a", (0, 1, 2, 3))
    return history


def held_host_rows_history() -> RowHistory:
    """The deferred write of `a` is WRITTEN, and read 3 still wants its host rows."""
    history = busy_history()
    history.land(3)
    history.end("a")
    history.land(2)
    return history


def idle_history() -> RowHistory:
    """Everything that was begun has ended."""
    history = RowHistory()
    history.land(history.step("a", (0, 1)))
    history.tell(StepDiscarded(1))
    history.end("a")
    history.land(2)
    return history


def awaiting() -> RowView:
    return awaiting_history().view


def busy() -> RowView:
    return busy_history().view


def running() -> RowView:
    return running_history().view


def preserved() -> RowView:
    return preserved_history().view


def left() -> RowView:
    return left_history().view


def consuming() -> RowView:
    return consuming_history().view


def reserved() -> RowView:
    return reserved_history().view


def unreadable() -> RowView:
    return unreadable_history().view


def failed() -> RowView:
    return failed_history().view


def fenced() -> RowView:
    return fenced_history().view


def over_budget() -> RowView:
    return over_budget_history().view


def held_host_rows() -> RowView:
    return held_host_rows_history().view


def idle() -> RowView:
    return idle_history().view


GOOD_STATES = [
    awaiting,
    busy,
    running,
    preserved,
    left,
    consuming,
    reserved,
    unreadable,
    failed,
    fenced,
    over_budget,
    held_host_rows,
    idle,
]


# --- Ways to break them ---------------------------------------------------------------------------------------------


def put(mapping: Mapping[K, V], key: K, value: V) -> dict[K, V]:
    """A mapping with one value changed."""
    return {**mapping, key: value}


def drop(mapping: Mapping[K, V], key: K) -> dict[K, V]:
    """A mapping without one key."""
    return {name: value for name, value in mapping.items() if name != key}


def write(view: RowView, number: int, **changes: Any) -> RowView:
    """A view with something changed in one write."""
    return replace(view, writes=put(view.writes, number, replace(view.writes[number], **changes)))


def read(view: RowView, number: int, **changes: Any) -> RowView:
    """A view with something changed in one read."""
    return replace(view, reads=put(view.reads, number, replace(view.reads[number], **changes)))


def step(view: RowView, number: int, **changes: Any) -> RowView:
    """A view with something changed in one step."""
    return replace(view, steps=put(view.steps, number, replace(view.steps[number], **changes)))


def claim(view: RowView, name: str, slot: int, number: int) -> RowView:
    """A view with another newest claim of one name at one slot."""
    column = list(view.newest[name])
    column[slot] = number
    return replace(view, newest=put(view.newest, name, tuple(column)))


def page(view: RowView, number: int, *holders: tuple[str, int]) -> RowView:
    """A view with other holders of one page."""
    pages = [*view.pages]
    pages[number] = frozenset(holders)
    return replace(view, pages=tuple(pages))


def clone(view: RowView, number: int, bytes_: int, holders: int) -> RowView:
    """A view with another clone."""
    return replace(view, clones=put(view.clones, number, CloneView(bytes_, holders)))


def charge_all(view: RowView) -> RowView:
    """A view whose budget is smaller than what two steps charge."""
    config = view.config.model_copy(update={"budget_bytes": 10})
    return replace(view, config=config)


def form(view: RowView, number: int, **changes: Any) -> RowView:
    """A view with something changed in the format of one name."""
    formats = [*view.formats]
    formats[number] = replace(formats[number], **changes)
    return replace(view, formats=tuple(formats))


Breaker = Callable[[RowView], RowView]
X = RowFormat("x", (2,), "float32", Schedule.JOIN_NEXT_STEP)

BROKEN_STATES: list[tuple[str, Callable[[], RowView], Breaker]] = [
    # R01: what is known of a step, by its phase.
    ("R01", busy, lambda v: step(v, 2, write=None)),
    ("R01", awaiting, lambda v: step(v, 2, write=2)),
    ("R01", awaiting, lambda v: step(v, 2, names=ALL)),
    ("R01", awaiting, lambda v: step(v, 2, page=1)),
    ("R01", reserved, lambda v: step(v, 3, page=None)),
    ("R01", busy, lambda v: step(v, 2, batch=(("a", 1), ("a", 2)))),
    ("R01", busy, lambda v: step(v, 2, batch=(("a", 0), ("b", 0)))),
    ("R01", busy, lambda v: step(v, 2, leftovers=("m",))),
    ("R01", busy, lambda v: step(v, 1, write=3)),
    # R02: hidden is never zeros.
    ("R02", busy, lambda v: read(v, 1, claims=(1, 1, 0, 1))),
    # R03: claims and writes agree.
    ("R03", busy, lambda v: replace(v, newest=drop(v.newest, "m"))),
    ("R03", busy, lambda v: replace(v, formats=(*v.formats, v.formats[0]))),
    ("R03", busy, lambda v: replace(v, newest=put(v.newest, "m", v.newest["m"][:-1]))),
    ("R03", busy, lambda v: claim(v, "m", 9, 3)),
    ("R03", busy, lambda v: claim(v, "m", 4, 4)),
    ("R03", busy, lambda v: claim(v, "m", 4, 1)),
    ("R03", busy, lambda v: claim(v, "c", 6, 0)),
    # R04: numbers.
    ("R04", busy, lambda v: replace(v, floor=v.next_claim + 1)),
    ("R04", busy, lambda v: claim(v, "m", 9, v.next_claim)),
    ("R04", busy, lambda v: replace(v, tenancy=(-1, *v.tenancy[1:]))),
    ("R04", busy, lambda v: replace(v, next_step=2)),
    ("R04", busy, lambda v: replace(v, next_write=4)),
    ("R04", busy, lambda v: replace(v, next_read=3)),
    ("R04", busy, lambda v: replace(v, next_clone=4)),
    ("R04", busy, lambda v: write(v, 2, claims=v.writes[2].claims[::-1])),
    ("R04", busy, lambda v: write(v, 4, claims=((4, (6, 7)),))),
    ("R04", busy, lambda v: replace(v, floor=3)),
    # R06: pages and their holders.
    ("R06", busy, lambda v: replace(v, pages=v.pages[:-1])),
    ("R06", busy, lambda v: step(v, 2, page=4)),
    ("R06", busy, lambda v: page(v, 0)),
    ("R06", busy, lambda v: page(v, 2, ("step", 1))),
    ("R06", busy, lambda v: page(v, 1, ("step", 2))),
    ("R06", fenced, lambda v: page(v, 1)),
    ("R06", fenced, lambda v: page(v, 0)),
    ("R06", busy, lambda v: page(step(v, 2, page=0), 0, ("step", 1), ("step", 2))),
    ("R06", busy, lambda v: page(page(write(v, 3, page=0), 0, ("step", 1), ("write", 3)), 1, ("step", 2))),
    ("R06", busy, lambda v: write(v, 2, page=3)),
    # R08: clones and the budget.
    ("R08", busy, lambda v: replace(v, charged=v.charged + 1)),
    ("R08", busy, lambda v: clone(v, 3, -48, 1)),
    ("R08", busy, lambda v: replace(v, counters=v.counters._replace(charged_peak=v.charged - 1))),
    ("R08", busy, charge_all),
    ("R08", busy, lambda v: clone(v, 3, 48, 0)),
    ("R08", running, lambda v: read(v, 3, clones=(2, 9))),
    ("R08", running, lambda v: clone(v, 2, 32, 1)),
    ("R08", busy, lambda v: clone(v, 4, 24, 2)),
    ("R08", busy, lambda v: clone(v, 4, 24, 4)),
    # R09: what a write of each schedule is.
    ("R09", busy, lambda v: write(v, 3, claims=((3, (4,)), (6, (6, 7))))),
    ("R09", busy, lambda v: write(v, 2, claims=())),
    ("R09", busy, lambda v: write(v, 2, names=())),
    ("R09", busy, lambda v: write(v, 2, names=("m",))),
    ("R09", busy, lambda v: write(v, 3, names=(HIDDEN, "x"))),
    # R10: open writes and live requests.
    ("R10", busy, lambda v: replace(v, live=put(v.live, "a", 4))),
    ("R10", busy, lambda v: replace(v, live=put(v.live, "a", 9))),
    ("R10", busy, lambda v: write(v, 2, phase=WritePhase.QUEUED)),
    ("R10", busy, lambda v: replace(v, live=put(v.live, "a", None))),
    ("R10", busy, lambda v: replace(v, live=drop(v.live, "a"))),
    ("R10", busy, lambda v: write(v, 3, phase=WritePhase.PENDING)),
    ("R10", busy, lambda v: write(v, 3, request="a")),
    ("R10", busy, lambda v: write(v, 2, request=None)),
    ("R10", busy, lambda v: replace(write(v, 2, phase=WritePhase.QUEUED), live=drop(v.live, "a"))),
    # R12: the failure.
    ("R12", failed, lambda v: replace(v, failure=None)),
    ("R12", failed, lambda v: replace(v, failure=2)),
    ("R12", busy, lambda v: replace(v, failure=2)),
    # R13: what a read counts on.
    ("R13", busy, lambda v: read(v, 1, claims=(1, 1, 1))),
    ("R13", preserved, lambda v: read(v, 1, pool=(0, 1, 2, 3))),
    ("R13", busy, lambda v: replace(v, newest=drop(v.newest, HIDDEN))),
    ("R13", busy, lambda v: read(v, 2, claims=(0, 1, 1, 1))),
    ("R13", busy, lambda v: read(v, 1, pool=(1, 2, 3), preserved=(0,))),
    ("R13", busy, lambda v: read(v, 3, pool=(0,))),
    ("R13", busy, lambda v: read(v, 3, writes=())),
    ("R13", awaiting, lambda v: read(v, 1, awaits=())),
    ("R13", awaiting, lambda v: read(v, 1, pool=())),
    ("R13", preserved, lambda v: read(v, 1, preserved=(), pool=(0, 1, 2, 3))),
    ("R13", busy, lambda v: read(v, 1, pool=(0, 1, 2))),
    ("R13", busy, lambda v: claim(v, HIDDEN, 0, 3)),
    ("R13", busy, lambda v: read(v, 3, writes=(2, 4))),
    ("R13", busy, lambda v: read(v, 3, writes=(2, 3))),
    ("R13", busy, lambda v: write(v, 2, phase=WritePhase.FAILED)),
    ("R13", awaiting, lambda v: write(v, 1, phase=WritePhase.FAILED)),
    ("R13", awaiting, lambda v: read(v, 3, awaits=(1,))),
    ("R13", busy, lambda v: read(v, 1, awaits=(3,))),
    ("R13", busy, lambda v: read(v, 3, clones=(2,))),
    ("R13", running, lambda v: read(v, 1, awaits=(3,))),
    ("R13", consuming, lambda v: read(v, 3, writes=(2,))),
    ("R13", consuming, lambda v: read(v, 3, clones=(2,))),
    ("R13", busy, lambda v: write(v, 4, phase=WritePhase.WRITTEN)),
    ("R13", held_host_rows, lambda v: read(v, 3, phase=ReadPhase.DONE, writes=())),
    # R14: verdicts.
    ("R14", busy, lambda v: step(v, 2, hits=(*v.steps[2].hits, *v.steps[2].hits))),
    ("R14", busy, lambda v: step(v, 2, hits=(*v.steps[2].hits, ("z", (0,))))),
    ("R14", awaiting, lambda v: step(v, 2, unreadable=(UnreadableHit("b", HIDDEN, (0,)),))),
    ("R14", unreadable, lambda v: step(v, 1, unreadable=v.steps[1].unreadable * 2)),
    ("R14", unreadable, lambda v: step(v, 1, unreadable=(UnreadableHit("a", HIDDEN, (0,)),))),
    ("R14", unreadable, lambda v: step(v, 1, unreadable=())),
    ("R14", busy, lambda v: step(v, 2, unreadable=(UnreadableHit("b", HIDDEN, (0,)),))),
    ("R14", busy, lambda v: step(v, 2, reads=v.steps[2].reads[1:])),
    # R15: names.
    ("R15", busy, lambda v: replace(v, config=machine(names_max=2))),
    ("R15", busy, lambda v: form(v, 1, dtype="complex64")),
    ("R15", busy, lambda v: form(v, 1, row_shape=(-1,))),
    ("R15", busy, lambda v: form(v, 0, schedule=Schedule.JOIN_ON_FINISH)),
    ("R15", busy, lambda v: replace(v, policy=v.policy.model_copy(update={"hidden": False}))),
    ("R15", busy, lambda v: form(v, 2, schedule=Schedule.JOIN_NEXT_STEP)),
    ("R15", busy, lambda v: form(v, 1, schedule=Schedule.JOIN_ON_FINISH)),
    ("R15", busy, lambda v: form(v, 1, name="log")),
    ("R15", busy, lambda v: replace(v, config=machine(pool_bytes_max=100))),
    # R18: nothing is left.
    ("R18", idle, lambda v: replace(v, reads={1: busy().reads[1]})),
    ("R18", idle, lambda v: replace(v, writes={2: replace(busy().writes[2], phase=WritePhase.WRITTEN)})),
    ("R18", idle, lambda v: clone(v, 1, 0, 1)),
    ("R18", idle, lambda v: replace(v, charged=1)),
    ("R18", idle, lambda v: page(v, 0, ("step", 1))),
    ("R18", idle, lambda v: replace(v, pending=1)),
    # R22: what is pending.
    ("R22", busy, lambda v: replace(v, pending=2)),
    ("R22", awaiting, lambda v: replace(v, pending=None)),
    ("R22", reserved, lambda v: step(v, 2, phase=StepPhase.STARTED)),
    # R23: whose reads.
    ("R23", busy, lambda v: replace(v, reads=drop(v.reads, 1))),
    ("R23", busy, lambda v: read(v, 1, name="m")),
    ("R23", running, lambda v: read(v, 1, phase=ReadPhase.LEFT)),
    ("R23", busy, lambda v: read(v, 1, slots=(0, 1))),
    ("R23", busy, lambda v: read(v, 1, confirmed=False)),
    ("R23", awaiting, lambda v: read(v, 1, confirmed=True)),
    ("R23", left, lambda v: read(v, 1, phase=ReadPhase.RUNNING)),
    ("R23", left, lambda v: read(v, 1, phase=ReadPhase.DONE)),
    # R24: fences.
    ("R24", fenced, lambda v: replace(v, fenced=put(v.fenced, v.next_write, v.fenced[3]))),
    ("R24", fenced, lambda v: replace(v, writes={3: busy().writes[3]})),
    ("R24", fenced, lambda v: replace(v, fenced=put(v.fenced, 3, FencedWrite(WritePhase.WRITTEN, None, ())))),
    ("R24", fenced, lambda v: replace(v, fenced=put(v.fenced, 3, replace(v.fenced[3], phase=WritePhase.HOST_READY)))),
    ("R24", fenced, lambda v: replace(v, fenced_steps={v.next_step: None})),
    ("R24", fenced, lambda v: replace(v, steps={1: busy().steps[1]})),
]
"""Each names the rule that must say so; some spoil more than one."""
