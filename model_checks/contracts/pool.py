"""Contracts on the pool: holds, free capacity, the LRU, the prefix index. All of them run the production code."""

from typing import Final

from tenure.core.blocks import pool, prefix_index
from tenure.core.blocks.tables import EMPTY, INACTIVE, PRIVATE, Edit, Tables
from tenure.core.config import BlockConfig
from tenure.core.errors import PinUnderflowError, ReferenceUnderflowError, UnknownCopyError
from tenure.core.persistent import revert

_NEW: Final = Tables(BlockConfig(capacity=4, block_size=2))


def _edit(*copies: int) -> Edit:
    """An edit of tables with these blocks: references of each, PRIVATE or EMPTY."""
    tables = _NEW.clone()
    tables.copies = list(copies)
    tables.hash_of = [100 + block for block in range(len(copies))]
    return Edit(tables)


def release_takes_one_hold(holds: int) -> int:
    """I10: releasing takes one hold of several, and nothing else happens.

    pre: 1 < holds < 2**48
    post: _ == holds - 1
    """
    edit = _edit(holds)
    pool.release(edit, [0])
    return -1 if edit.tables.lru or edit.tables.free else edit.tables.copies[0]


def release_twice_takes_two_holds(holds: int) -> int:
    """I10: a block that an operation names twice loses two holds.

    pre: 2 < holds < 2**48
    post: _ == holds - 2
    """
    edit = _edit(holds)
    pool.release(edit, [0, 0])
    return edit.tables.copies[0]


def release_of_nothing_is_refused(holds: int) -> bool:
    """I10: a copy that nobody holds cannot be let go.

    pre: holds == 0 or holds >= 2**48
    post: _
    """
    try:
        pool.release(_edit(holds), [0])
    except ReferenceUnderflowError:
        return True
    return False


def release_of_no_copy_is_refused(block: int) -> bool:
    """A block without content cannot be let go, nor one that was never used.

    pre: 0 <= block <= 4
    post: _
    """
    try:
        pool.release(_edit(EMPTY), [block])
    except UnknownCopyError:
        return True
    return False


def release_leaves_every_block_somewhere(first: int, second: int) -> tuple[int, int, int]:
    """I01: whatever is released, blocks stay free, inactive or held; none is lost and none is counted twice.

    pre: first in (-1, 1, 2) and second in (-1, 1, 2)
    post: _[0] == (first == -1) + (second == -1) and _[1] == (first == 1) + (second == 1) and sum(_) == 2
    """
    edit = _edit(first, second)
    pool.release(edit, [0, 1])
    tables = edit.tables
    return len(tables.free), len(tables.lru), sum(0 < count < INACTIVE for count in tables.copies)


def release_and_undo_leave_no_trace(first: int, second: int) -> bool:
    """The journal of a release leads back to what was.

    pre: first in (-1, 1, 2, 3) and second in (-1, 1, 2, 3)
    post: _
    """
    edit = _edit(first, second)
    before, scalars = edit.tables.clone(), edit.tables.scalars
    pool.release(edit, [1, 0])
    tables = edit.tables
    revert(edit.journal)
    tables.scalars = scalars
    return (tables.copies, tables.free, tables.lru) == (before.copies, before.free, before.lru)


def last_release_goes_to_the_end_of_the_lru(place: int) -> tuple[int, ...]:
    """I30: what becomes inactive last is evicted last.

    pre: 2**48 <= place < 2**48 + 4
    post: _ == (1, 0)
    """
    edit = _edit(1, place)
    edit.tables.lru, edit.tables.lru_tail = {place: 1}, place + 1
    pool.release(edit, [0])
    return tuple(edit.tables.lru[each] for each in range(place, place + 2))


def reference_of_an_inactive_copy_leaves_the_lru(place: int, times: int) -> tuple[int, bool]:
    """I04: a copy that is referenced is not evicted.

    pre: 2**48 <= place < 2**48 + 4 and 1 <= times <= 2
    post: _ == (times, False)
    """
    edit = _edit(place)
    edit.tables.lru, edit.tables.lru_tail = {place: 0}, place + 1
    pool.reference(edit, [0] * times)
    return edit.tables.copies[0], bool(edit.tables.lru)


def pin_and_unpin_change_nothing(holds: int, pins: int) -> tuple[int, int]:
    """I09: a pin that is taken back is as if it had never been.

    pre: 1 <= holds < 2**48 and 0 <= pins
    post: _ == (holds, pins)
    """
    edit = _edit(holds)
    if pins:
        edit.tables.pins[0] = pins
    pool.pin(edit, [0])
    pool.unpin(edit, [0])
    return edit.tables.copies[0], edit.tables.pins.get(0, 0)


def unpin_of_nothing_is_refused(holds: int) -> bool:
    """I09: a pin that nobody took cannot be taken back.

    pre: 0 <= holds
    post: _
    """
    try:
        pool.unpin(_edit(holds), [0])
    except PinUnderflowError:
        return True
    return False


def shortfall_counts_what_can_be_had(never_used: int, inactive: int, hit: bool, fresh: int) -> bool:
    """I13: blocks can be had exactly if they are free or evictable; a hit that is inactive is not evictable.

    pre: 0 <= never_used and 1 <= inactive <= 2 and 0 <= fresh
    post: _ == (fresh <= never_used + inactive - hit)
    """
    edit = _edit(*(INACTIVE + place for place in range(inactive)))
    edit.tables.capacity = inactive + never_used
    edit.tables.lru = {INACTIVE + place: place for place in range(inactive)}
    return pool.shortfall(edit.tables, [0] if hit else [], fresh) is None


def fresh_blocks_are_distinct(used: int, fresh: int) -> bool:
    """I02: what is set aside is set aside once, from the free stack first.

    pre: 0 <= used <= 2 and 0 <= fresh <= 4
    post: _
    """
    edit = _edit(*(EMPTY for block in (0, 1) if block < used))
    edit.tables.free = [block for block in (0, 1) if block < used]
    taken, removed = pool.take_fresh(edit, len([block for block in range(4) if block < fresh]))
    return len(taken) == len(set(taken)) == fresh and not removed and edit.tables.num_free == 4 - fresh


def eviction_takes_the_longest_inactive(first: int, second: int) -> int:
    """I29, I30: of two inactive copies the one that became so first goes, wherever it stands in the table.

    pre: 2**48 <= first < 2**48 + 4 and 2**48 <= second < 2**48 + 4 and first != second
    post: _ == (0 if first < second else 1)
    """
    edit = _edit(first, second)
    tables = edit.tables
    tables.capacity, tables.lru, tables.lru_tail = 2, {second: 1, first: 0}, INACTIVE + 4
    tables.primary = {100: 0, 101: 1}
    (block,), _ = pool.take_fresh(edit, 1)
    return block


def private_copies_stay_private(state: int) -> bool:
    """I22: only a private copy is written.

    pre: state == -2 or state == -1 or state >= 0
    post: _ == (state == -1)
    """
    try:
        pool.check_writable(_edit(state).tables, 0)
    except Exception:
        return False
    return True


def private_blocks_come_in_order_of_use(fresh: int) -> bool:
    """Capacity in reservation order is used from the last one on.

    pre: 0 <= fresh <= 4
    post: _
    """
    edit = _edit(*(EMPTY for _ in range(4)))
    blocks = pool.allocate_private(edit, list(range(fresh)))
    return blocks == list(range(fresh - 1, -1, -1)) and edit.tables.copies.count(PRIVATE) == fresh


def a_hash_is_visible_as_long_as_it_has_a_copy(copies: int, leaving: int) -> tuple[bool, int]:
    """I07, I08: of copies of one hash the oldest that is left is the primary; the hash goes with the last.

    pre: 2 <= copies <= 3 and 0 <= leaving < copies
    post: _ == (False, 1 if leaving == 0 else 0)
    """
    edit = _edit(*(1 for _ in range(copies)))
    for block in range(copies):
        prefix_index.enter_index(edit, block, 7)
    is_gone = prefix_index.leave_index(edit, leaving, 7)
    return is_gone, edit.tables.primary[7]


def a_hash_goes_with_its_last_copy(name: int) -> bool:
    """I07: and then it is found nowhere.

    pre: 0 <= name < 4
    post: _
    """
    edit = _edit(1)
    entered = prefix_index.enter_index(edit, 0, name)
    return entered and prefix_index.leave_index(edit, 0, name) and not edit.tables.primary


CONDITIONS: Final = (
    release_takes_one_hold,
    release_twice_takes_two_holds,
    release_of_nothing_is_refused,
    release_of_no_copy_is_refused,
    release_leaves_every_block_somewhere,
    release_and_undo_leave_no_trace,
    last_release_goes_to_the_end_of_the_lru,
    reference_of_an_inactive_copy_leaves_the_lru,
    pin_and_unpin_change_nothing,
    unpin_of_nothing_is_refused,
    shortfall_counts_what_can_be_had,
    fresh_blocks_are_distinct,
    eviction_takes_the_longest_inactive,
    private_copies_stay_private,
    private_blocks_come_in_order_of_use,
    a_hash_is_visible_as_long_as_it_has_a_copy,
    a_hash_goes_with_its_last_copy,
)
