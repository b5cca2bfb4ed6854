"""R06 and R08: who holds which page, and what the device clones cost."""

from collections import Counter
from collections.abc import Iterator

from tenure.core.rows.commands import CopyPage, FreezeRows, ReleaseBuffers
from tenure.core.rows.events import (
    CloneId,
    ConsumeAbandoned,
    CopyCompleted,
    ResetRequested,
    RowsCopiedOut,
    SaveCancelled,
    SavePublished,
    SaveRequested,
    ScatterCompleted,
    StepConsumed,
    StepDiscarded,
    WriteFailed,
)
from tenure.core.rows.names import Schedule
from tenure.core.rows.view import RowView, StepPhase, WritePhase, WriteView
from tenure.spec.rows.rule import (
    ON_CLONES,
    ON_ITS_WAY,
    RowObservation,
    commanded,
    is_immediate,
    names_by_schedule,
)
from tenure.spec.rule import Finding

Holder = tuple[str, int]


# --- Pages ----------------------------------------------------------------------------------------------------


def holders(view: RowView) -> dict[Holder, int]:
    """Who holds which page: steps until they let go, writes until they end, and what a reset left behind."""
    held = {("step", step): each.page for step, each in view.steps.items()}
    held |= {("step", step): page for step, page in view.fenced_steps.items()}
    held |= {("write", number): each.page for number, each in view.writes.items() if each.phase in ON_ITS_WAY}
    held |= {("write", number): each.page for number, each in view.fenced.items()}
    return {holder: page for holder, page in held.items() if page is not None}


def pages_are_free_without_holders(view: RowView) -> Finding:
    """R06, of a state."""
    if len(view.pages) != view.config.pages:
        return f"{len(view.pages)} pages, and {view.config.pages} are configured"
    expected: list[set[Holder]] = [set() for _ in view.pages]
    for holder, page in holders(view).items():
        if not 0 <= page < len(view.pages):
            return f"{holder[0]} {holder[1]} holds page {page} of {len(view.pages)}"
        expected[page].add(holder)
    for page, (found, wanted) in enumerate(zip(view.pages, expected, strict=True)):
        if found != frozenset(wanted):
            return f"page {page} is held by {sorted(found)}, and should be by {sorted(wanted)}"
        kinds = [kind for kind, _ in found]
        if len(set(kinds)) != len(kinds):
            return f"page {page} is held by {sorted(found)}; one step and its write may share one"
        writes = [view.writes[number].step for kind, number in found if kind == "write" and number in view.writes]
        steps = [number for kind, number in found if kind == "step"]
        if writes and steps and writes != steps:
            return f"page {page} is held by step {steps[0]} and by a write of step {writes[0]}"
    for number, write in view.writes.items():
        # A write that failed is shown without the page it let go.
        if write.phase is not WritePhase.FAILED and is_immediate(write) != (write.page is not None):
            return f"write {number} of schedule {write.schedule.value} views page {write.page}"
    return None


def pages_change_hands_when_free(seen: RowObservation) -> Finding:
    """R06, of a transition: bytes never change while somebody counts on them."""
    for page, (then, now) in enumerate(zip(seen.before.pages, seen.after.pages, strict=True)):
        if then == now:
            continue
        for holder in sorted(now - then):
            if not _may_take(seen, page, holder):
                return f"page {page}, held by {sorted(then)}, was taken by {holder} on {type(seen.event).__name__}"
        for holder in sorted(then - now):
            if not _may_leave(seen, holder):
                return f"page {page} was let go by {holder} on {type(seen.event).__name__}"
    return None


def _may_take(seen: RowObservation, page: int, holder: Holder) -> bool:
    kind, number = holder
    match seen.event:
        case SaveRequested():
            free = [place for place, holding in enumerate(seen.before.pages) if not holding]
            return kind == "step" and number == seen.before.pending and free[:1] == [page]
        case SavePublished(step):
            saved = seen.after.steps.get(step)
            return kind == "write" and saved is not None and number == saved.write and page == saved.page
        case _:
            return False


def _may_leave(seen: RowObservation, holder: Holder) -> bool:
    kind, number = holder
    match seen.event:
        case SaveCancelled(step) | RowsCopiedOut(step) | StepConsumed(step) | ConsumeAbandoned(step):
            return kind == "step" and number == step
        case StepDiscarded(step):
            return kind == "step" and number == step
        case CopyCompleted(write) | ScatterCompleted(write) | WriteFailed(write):
            return kind == "write" and number == write
        case ResetRequested():
            return kind == "step"
        case _:
            return False


def page_copies_go_to_held_pages(seen: RowObservation) -> Finding:
    """R06, of commands: a page is written by the one copy of the step that holds it."""
    copies = commanded(seen.commands, CopyPage)
    if not isinstance(seen.event, SavePublished):
        return f"{copies[0]} was commanded by {type(seen.event).__name__}" if copies else None
    step = seen.after.steps.get(seen.event.step)
    if step is None or len(copies) != 1:
        return f"{len(copies)} page copies for step {seen.event.step}"
    copy = copies[0]
    rows = sum(count for _, count in step.batch)
    if (copy.step, copy.write, copy.page, copy.num_rows) != (seen.event.step, step.write, step.page, rows):
        return f"{copy} is the page copy of step {seen.event.step}: {step}"
    return None


# --- Clones ---------------------------------------------------------------------------------------------------


def clones_of(view: RowView, write: WriteView) -> tuple[int, int]:
    """How many clones a write holds: the fewest and the most that the view allows."""
    if write.phase not in ON_CLONES:
        return 0, 0
    if not is_immediate(write):
        return len(write.claims), len(write.claims)
    fewest = 1 if write.names else 0
    step = view.steps.get(write.step)
    if step is None:
        # The step is consumed, and with it the knowledge of whether it had deferred names.
        return fewest, fewest + 1
    fewest += 1 if names_by_schedule(view, step)[1] else 0
    return fewest, fewest


def clones_are_charged_once(view: RowView) -> Finding:
    """R08, of a state."""
    total = sum(each.bytes for each in view.clones.values())
    if view.charged != total or any(each.bytes < 0 for each in view.clones.values()):
        return f"{view.charged} bytes are charged, and the clones {dict(view.clones)} have {total}"
    if view.charged > view.counters.charged_peak:
        return f"{view.charged} bytes are charged, and the peak is {view.counters.charged_peak}"
    if view.charged > view.config.budget_bytes:
        numbers = sorted(view.clones)
        if len(numbers) > 2 or numbers[-1] - numbers[0] != len(numbers) - 1:
            return (
                f"{view.charged} bytes of {view.config.budget_bytes} are charged by clones {numbers} of several steps"
            )
    return _clones_have_holders(view)


def _clones_have_holders(view: RowView) -> Finding:
    for number, clone in view.clones.items():
        if clone.holders < 1:
            return f"clone {number} is charged and has {clone.holders} holders"
    held = Counter(clone for clones in _held_clones(view) for clone in clones)
    for number, count in held.items():
        if number not in view.clones or view.clones[number].holders < count:
            return f"clone {number} is held {count} times by reads and fenced writes, and is {view.clones.get(number)}"
    bounds = [clones_of(view, write) for write in view.writes.values()]
    reserved = any(step.phase is StepPhase.RESERVED for step in view.steps.values())
    fewest = sum(held.values()) + sum(low for low, _ in bounds)
    most = sum(held.values()) + sum(high for _, high in bounds) + (2 if reserved else 0)
    found = sum(clone.holders for clone in view.clones.values())
    if not fewest <= found <= most:
        return f"{found} holders of clones, and writes, reads and saves hold {fewest} to {most}"
    return None


def clones_come_with_saves_and_go_with_holders(seen: RowObservation) -> Finding:
    """R08, of a transition: who took a clone, who let go, and that the bytes are given back once."""
    then, now = seen.before, seen.after
    released = [clone for each in commanded(seen.commands, ReleaseBuffers) for clone in each.clones.tolist()]
    gone = sorted(then.clones.keys() - now.clones.keys())
    if sorted(released) != gone:
        return f"clones {sorted(released)} were released, and {gone} are charged no more"
    for number in then.clones.keys() & now.clones.keys():
        if then.clones[number].bytes != now.clones[number].bytes:
            return f"clone {number} went from {then.clones[number]} to {now.clones[number]}"
    return _new_clones(seen) or _holders(seen)


def _new_clones(seen: RowObservation) -> Finding:
    then, now = seen.before, seen.after
    came = sorted(now.clones.keys() - then.clones.keys())
    freezes = commanded(seen.commands, FreezeRows)
    if not freezes:
        return f"clones {came} came with no freeze" if came or now.next_clone != then.next_clone else None
    if len(freezes) != 1 or not isinstance(seen.event, SaveRequested):
        return f"{len(freezes)} freezes were commanded by {type(seen.event).__name__}"
    freeze = freezes[0]
    expected = list(range(then.next_clone, then.next_clone + len(freeze.clones)))
    if not came == [each.clone for each in freeze.clones] == expected or now.next_clone != then.next_clone + len(came):
        return f"clones {came} came, {[each.clone for each in freeze.clones]} are frozen, {then.next_clone} came next"
    for clone in freeze.clones:
        size = freeze.num_rows * sum(each.row_bytes for each in clone.formats)
        if not clone.formats or clone.bytes != size or now.clones[clone.clone].bytes != size:
            return f"{clone} of {freeze.num_rows} rows has {size} bytes, and is charged {now.clones[clone.clone]}"
    schedules = [{each.schedule for each in clone.formats} for clone in freeze.clones]
    order = [{Schedule.JOIN_NEXT_STEP}, {Schedule.JOIN_ON_FINISH}]
    if schedules not in ([], order, order[:1], order[1:]):
        return f"{freeze.clones} are not the immediate clone and then the deferred one"
    return None


def _held_clones(view: RowView) -> Iterator[tuple[CloneId, ...]]:
    """The clones that each read, and each write behind a reset, holds."""
    yield from (read.clones for read in view.reads.values())
    yield from (write.clones for write in view.fenced.values())


def _holders(seen: RowObservation) -> Finding:
    then, now, event = seen.before, seen.after, seen.event
    if isinstance(event, SavePublished):
        return _shared(seen)
    change = {number: -clone.holders for number, clone in then.clones.items()}
    for number in change.keys() & now.clones.keys():
        change[number] += now.clones[number].holders
    for view, sign in ((now, -1), (then, 1)):
        for clones in _held_clones(view):
            for clone in clones:
                change[clone] = change.get(clone, 0) + sign
    moved = {number: count for number, count in change.items() if count}
    match event:
        case CopyCompleted(number) | WriteFailed(number) if number in then.writes:
            return _let_go(seen, then.writes[number], moved)
        case SaveCancelled() | ResetRequested():
            return None
        case _:
            return f"holders of clones changed by {moved} on {type(event).__name__}" if moved else None


def _let_go(seen: RowObservation, write: WriteView, moved: dict[CloneId, int]) -> Finding:
    fewest, most = clones_of(seen.before, write)
    if set(moved.values()) - {-1} or not fewest <= len(moved) <= most:
        return f"{seen.event} changed the holders of clones by {moved}; the write held {fewest} to {most} of them"
    return None


def _shared(seen: RowObservation) -> Finding:
    """At publication the immediate write holds every clone of the step, and each deferred write the deferred one."""
    then, now = seen.before, seen.after
    requests = sum(
        1
        for write in now.writes.values()
        if not is_immediate(write) and write.claims and write.claims[-1][0] >= then.next_claim
    )
    mine = {clone.clone: clone for each in commanded(seen.commands, CopyPage) for clone in each.clones}
    for number, clone in now.clones.items():
        if number not in mine:
            if then.clones.get(number) != clone:
                return f"clone {number} of another step went from {then.clones.get(number)} to {clone}"
            continue
        deferred = any(each.schedule is Schedule.JOIN_ON_FINISH for each in mine[number].formats)
        if clone.holders != 1 + (requests if deferred else 0):
            return f"clone {number} has {clone.holders} holders after its publication to {requests} deferred writes"
    missing = mine.keys() - now.clones.keys()
    return f"clones {sorted(missing)} are copied to a page and not charged" if missing else None


def budget_is_kept(seen: RowObservation) -> Finding:
    """R08, of an answer: a save that would go over the budget waits, unless nothing is charged."""
    then, now, budget = seen.before, seen.after, seen.after.config.budget_bytes
    if now.charged > then.charged:
        if not isinstance(seen.event, SaveRequested):
            return f"{now.charged - then.charged} bytes were charged by {type(seen.event).__name__}"
        if then.charged and now.charged > budget:
            return f"{now.charged} bytes of {budget} were charged while {then.charged} were"
    sizes = [sum(clone.bytes for clone in copy.clones) for copy in commanded(seen.commands, CopyPage)]
    expected = sum(1 for size in sizes if size > budget)
    found = now.counters.over_budget - then.counters.over_budget
    return (
        f"{found} saves were counted over the budget, and {sizes} of {budget} were saved" if found != expected else None
    )
