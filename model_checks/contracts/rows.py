"""Contracts on the row machine: who holds pages and clones, how writes and reads move, which claims count.

Claims and spans are computed over numpy: `effective_claim` and `span_ends` state the same for single numbers, and a
test shows that production equals them.
"""

from types import SimpleNamespace
from typing import Final, TypeVar, cast

from tenure.core.config import RowConfig, as_int
from tenure.core.errors import ReadOrderError, WriteOrderError
from tenure.core.rows import buffers, lifecycles
from tenure.core.rows.edit import Edit
from tenure.core.rows.events import (
    CopyBegan,
    CopyCompleted,
    GatherBegan,
    GatherCompleted,
    GatherFailed,
    ScatterCompleted,
    WriteFailed,
)
from tenure.core.rows.lifecycles import ReadCompletion, WriteCompletion
from tenure.core.rows.names import ITEM_BYTES, RowFormat, Schedule
from tenure.core.rows.records import Read, Write
from tenure.core.rows.tables import NOBODY, Tables
from tenure.core.rows.view import ReadPhase, WritePhase

T = TypeVar("T")

_NEW: Final = Tables(RowConfig(num_blocks=1, block_size=1, page_rows_max=1, pages=2))


# --- Holders of pages and clones ----------------------------------------------------------------------------------


def the_smallest_free_page_is_taken(first: tuple[int, int], second: tuple[int, int]) -> int | None:
    """R06: a page is free exactly if neither a step nor a write holds it.

    pre: min(*first, *second) >= 0
    post: _ == (0 if max(first) == 0 else 1 if max(second) == 0 else None)
    """
    tables = _NEW.clone()
    tables.pages = [first, second]
    return buffers.free_page(tables)


def a_step_lets_go_of_its_own_hold(step: int, write: int) -> tuple[int, int]:
    """R06: when a step lets a page go, its write still holds it.

    pre: step > 0 and write >= 0
    post: _ == (0, write)
    """
    edit = Edit(_NEW.clone())
    edit.tables.pages[0] = (step, write)
    buffers.step_lets_go(edit, 0)
    return edit.tables.pages[0]


def a_write_lets_go_of_its_own_hold(step: int, write: int) -> tuple[int, int]:
    """R06: when a write lets a page go, its step still holds it.

    pre: step >= 0 and write > 0
    post: _ == (step, 0)
    """
    edit = Edit(_NEW.clone())
    edit.tables.pages[0] = (step, write)
    buffers.write_lets_go(edit, 0)
    return edit.tables.pages[0]


def a_page_is_free_when_both_let_go(step: int, write: int, is_step_first: bool) -> bool:
    """R06: in either order, and not before.

    pre: step > 0 and write > 0
    post: _
    """
    edit = Edit(_NEW.clone())
    edit.tables.pages[:] = [(step, write), (step, write)]
    first, second = (buffers.step_lets_go, buffers.write_lets_go)[:: 1 if is_step_first else -1]
    first(edit, 0)
    too_early = buffers.free_page(edit.tables)
    second(edit, 0)
    return too_early is None and edit.tables.pages[0] == NOBODY and buffers.free_page(edit.tables) == 0


def no_page_is_let_go_of_nobody(page: int, step: int) -> tuple[int, int]:
    """R06: a step without a page (-1) lets go of none.

    pre: page < 0 and step > 0
    post: _ == (step, 0)
    """
    edit = Edit(_NEW.clone())
    edit.tables.pages[:] = [(step, 0), (step, 0)]
    buffers.step_lets_go(edit, page)
    buffers.write_lets_go(edit, page)
    return edit.tables.pages[-1]


def a_ticket_is_uncharged_once(others: int, size: int, freeze: int) -> bool:
    """R08: what a clone was charged is taken back once, and the clone is released once, behind its freeze.

    pre: others >= 0 and size > 0 and 0 <= freeze <= 1
    post: _
    """
    edit = Edit(_NEW.clone())
    edit.tables.charged, edit.tables.immediate_clones = others + size, {3: size}
    buffers.let_go_step_clones(edit, (3,), freeze)
    released = edit.released.clones == [3] and edit.released.after == ({freeze} if freeze else set())
    return released and edit.tables.charged == others and not edit.tables.immediate_clones


def a_ticket_of_nobody_costs_nothing(charged: int) -> int:
    """R08: letting no clone go changes no charge.

    pre: charged >= 0
    post: _ == charged
    """
    edit = Edit(_NEW.clone())
    edit.tables.charged = charged
    buffers.let_go_step_clones(edit, (), 1)
    return edit.tables.charged


# --- Moves of writes and reads ------------------------------------------------------------------------------------

_WRITE_EVENTS: Final[tuple[type[WriteCompletion], ...]] = (CopyBegan, CopyCompleted, ScatterCompleted, WriteFailed)
_READ_EVENTS: Final[tuple[type[ReadCompletion], ...]] = (GatherBegan, GatherCompleted, GatherFailed)
_WRITE_ORDER: Final = (
    WritePhase.PENDING,
    WritePhase.QUEUED,
    WritePhase.COPYING,
    WritePhase.HOST_READY,
    WritePhase.WRITTEN,
)


def _write_tables(phase: WritePhase) -> Tables:
    write = Write(Schedule.JOIN_ON_FINISH, phase, 1, "a")
    return cast("Tables", SimpleNamespace(writes={1: write}, next_write=2))


def _read_tables(phase: ReadPhase | None) -> Tables:
    read = cast("Read", SimpleNamespace(phase=phase))
    return cast("Tables", SimpleNamespace(reads={} if phase is None else {1: read}, next_read=2))


def _at(events: tuple[type[T], ...], place: int) -> type[T]:
    """One of them: found by comparison, since an index that is not known would make a class that is not."""
    return next(event for number, event in enumerate(events) if number == place)


def _takes_write(phase: WritePhase, kind: int) -> bool:
    try:
        lifecycles.moved_write(_write_tables(phase), _at(_WRITE_EVENTS, kind)(1))
    except WriteOrderError:
        return False
    return True


def writes_go_one_phase_at_a_time(phase: WritePhase, kind: int) -> bool:
    """R09: a completion is taken in the one phase before the one it leads to.

    pre: 0 <= kind <= 2
    post: _ == (phase.name == ("QUEUED", "COPYING", "HOST_READY")[kind])
    """
    return _takes_write(phase, kind)


def writes_fail_until_they_are_written(phase: WritePhase) -> bool:
    """R12: whatever is on its way may fail; what is written or has failed may not.

    post: _ == (phase.name not in ("WRITTEN", "FAILED"))
    """
    return _takes_write(phase, 3)


def writes_never_go_back(phase: WritePhase, kind: int) -> bool:
    """R09: a completion leads onward, or to FAILED.

    pre: 0 <= kind <= 3
    post: _
    """
    after = lifecycles.WRITE_MOVES[_at(_WRITE_EVENTS, kind)].get(phase)
    if after is None or after is WritePhase.FAILED:
        return True
    return _WRITE_ORDER.index(after) == _WRITE_ORDER.index(phase) + 1


def unknown_writes_are_refused(number: int) -> bool:
    """R09: a completion of a write that there is not tells nothing.

    pre: number != 1
    post: _
    """
    try:
        lifecycles.moved_write(_write_tables(WritePhase.QUEUED), CopyBegan(number))
    except WriteOrderError:
        return True
    return False


def gathers_end_where_they_began(phase: ReadPhase) -> bool:
    """R23: a gather completes only where one is running, dropped or not.

    post: _ == (phase.name in ("RUNNING", "LEFT"))
    """
    try:
        return lifecycles.moved_read(_read_tables(phase), GatherCompleted(1)) is not None
    except ReadOrderError:
        return False


def gathers_begin_once(phase: ReadPhase) -> bool:
    """R23: a gather begins where its read is planned; where the read failed or was dropped it comes too late.

    post: _ == (phase.name == "PLANNED")
    """
    try:
        return lifecycles.moved_read(_read_tables(phase), GatherBegan(1)) is not None
    except ReadOrderError:
        return False


def gathers_of_gone_reads_are_late(number: int, kind: int) -> bool:
    """R23: what is told of a read that is gone changes nothing, unless it was never told to begin.

    pre: kind == 0 or kind == 2
    post: _ == (number == 1)
    """
    try:
        return lifecycles.moved_read(_read_tables(None), _at(_READ_EVENTS, kind)(number)) is None
    except ReadOrderError:
        return False


def dropping_a_read_twice_is_dropping_it_once(phase: ReadPhase) -> bool:
    """R23: what runs goes on and is left, and stays left.

    post: _
    """
    after = lifecycles.READ_DROPS[phase]
    return after is None if phase.name not in ("RUNNING", "LEFT") else lifecycles.READ_DROPS[ReadPhase.LEFT] is after


# --- Claims, spans and sizes --------------------------------------------------------------------------------------


def effective_claim(claim: int, tenancy: int, floor: int) -> int:
    """The claim that counts: the newest, unless it is older than the slot's tenancy or the last reset; 0 for none.

    What `Tables.effective` computes for each slot.
    """
    return claim if claim >= max(tenancy, floor, 1) else 0


def rows_of_an_earlier_tenant_are_not_seen(claim: int, tenancy: int, floor: int) -> int:
    """R21: a claim older than the step that computed the slot last counts for nothing.

    pre: 0 <= claim < tenancy and 0 <= floor
    post: _ == 0
    """
    return effective_claim(claim, tenancy, floor)


def rows_before_a_reset_are_not_seen(claim: int, tenancy: int, floor: int) -> int:
    """R24: a claim older than the reset counts for nothing.

    pre: 0 <= claim < floor and 0 <= tenancy
    post: _ == 0
    """
    return effective_claim(claim, tenancy, floor)


def a_step_sees_its_own_claims(tenancy: int, more: int, floor: int) -> int:
    """R21: every claim of the step that computed the slot last counts, since its smallest is the tenancy number.

    pre: 1 <= tenancy and 0 <= more and 0 <= floor <= tenancy
    post: _ == tenancy + more
    """
    return effective_claim(tenancy + more, tenancy, floor)


def no_claim_counts_for_nothing(tenancy: int, floor: int) -> int:
    """R03: a slot that was never claimed is absent, whatever its tenancy.

    pre: 0 <= tenancy and 0 <= floor
    post: _ == 0
    """
    return effective_claim(0, tenancy, floor)


def span_ends(first: int, count: int, size: int) -> tuple[int, int]:
    """The first and last block that the slots `[first, first + count)` reach into."""
    return first // size, (first + count - 1) // size


def spans_reach_no_further_than_they_must(first: int, count: int) -> bool:
    """A span of slots needs as many blocks as hold it, one more at most if it begins within a block.

    pre: 0 <= first and 1 <= count <= 8
    post: _
    """
    low, high = span_ends(first, count, 4)
    needed = -(-count // 4)
    return needed <= high - low + 1 <= needed + 1 and low * 4 <= first < low * 4 + 4


def rows_have_the_bytes_of_their_items(width: int, height: int) -> int:
    """A row's bytes are those of all its items.

    pre: 0 <= width <= 4 and 0 <= height <= 4
    post: _ == width * height * 2
    """
    return RowFormat("m", (width, height), "float16", Schedule.JOIN_NEXT_STEP).row_bytes


def rows_without_a_shape_are_single_items(place: int) -> bool:
    """A scalar row has the bytes of one item.

    pre: 0 <= place < 7
    post: _
    """
    dtype = sorted(ITEM_BYTES)[place]
    return RowFormat("m", (), dtype, Schedule.JOIN_ON_FINISH).row_bytes == ITEM_BYTES[dtype]


def whole_numbers_stay_what_they_are(number: int) -> int | None:
    """A whole number is taken as it is.

    post: _ == number
    """
    return as_int(number)


CONDITIONS: Final = (
    the_smallest_free_page_is_taken,
    a_step_lets_go_of_its_own_hold,
    a_write_lets_go_of_its_own_hold,
    a_page_is_free_when_both_let_go,
    no_page_is_let_go_of_nobody,
    a_ticket_is_uncharged_once,
    a_ticket_of_nobody_costs_nothing,
    writes_go_one_phase_at_a_time,
    writes_fail_until_they_are_written,
    writes_never_go_back,
    unknown_writes_are_refused,
    gathers_end_where_they_began,
    gathers_begin_once,
    gathers_of_gone_reads_are_late,
    dropping_a_read_twice_is_dropping_it_once,
    rows_of_an_earlier_tenant_are_not_seen,
    rows_before_a_reset_are_not_seen,
    a_step_sees_its_own_claims,
    no_claim_counts_for_nothing,
    spans_reach_no_further_than_they_must,
    rows_have_the_bytes_of_their_items,
    rows_without_a_shape_are_single_items,
    whole_numbers_stay_what_they_are,
)
