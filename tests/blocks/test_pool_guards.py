"""The pool's own guards, row by row of section 2: what a manager never asks for, another caller might."""

from collections.abc import Callable
from typing import Any

import pytest

from tenure.core.blocks import pool, prefix_index, tags
from tenure.core.blocks.machine import transition
from tenure.core.blocks.state import BlockState
from tenure.core.blocks.tables import Edit
from tenure.core.blocks.values import DecodeReservationReleased, DecodeReservationRequested
from tenure.core.config import BlockConfig
from tenure.core.errors import (
    AuthorizedTwiceError,
    CopyNotPrivateError,
    DependencyPendingError,
    DependencyRangeError,
    OmittedDependencyError,
    PinUnderflowError,
    PrefixExceedsLayoutError,
    PrefixNotResidentError,
    ReferenceUnderflowError,
    SourcesChangedError,
    TenureError,
    UnauthorizedWriteError,
    UnknownCopyError,
)


def prepared(copying: bool) -> BlockState:
    """Four blocks: 0 cached under 7 and referenced, 1 cached under 8 and inactive, 2 private and read by 5, 3 free."""

    def prepare(edit: Edit, _: None) -> None:
        taken, _removed = pool.take_fresh(edit, 3)
        blocks = pool.allocate_private(edit, taken)
        tags.attach(edit, (blocks[2],), 5)
        pool.cache_private(edit, blocks[:2], [7, 8])
        pool.release(edit, blocks[1:2])

    state, _, _ = BlockState.initial(BlockConfig(capacity=4, block_size=4), copying=copying).edited(None, prepare)
    return state


NAME: Any = "transfer"


def authorize_twice(edit: Edit) -> None:
    """The second authorization of one write."""
    tags.authorize(edit, [2])
    tags.check_authorizable(edit.tables, [2], [5])


REFUSALS: list[tuple[str, Callable[[Edit], object], type[TenureError]]] = [
    (
        "a prefix longer than the layout",
        lambda edit: prefix_index.exact_prefix(edit.tables, [7, 8], 1),
        PrefixExceedsLayoutError,
    ),
    (
        "a prefix hash that is not there",
        lambda edit: prefix_index.exact_prefix(edit.tables, [7, 9], 3),
        PrefixNotResidentError,
    ),
    (
        "a candidate too many",
        lambda edit: prefix_index.resident_prefix(edit.tables, [9], 0),
        PrefixExceedsLayoutError,
    ),
    (
        "a hit beyond the layout",
        lambda edit: prefix_index.resident_prefix(edit.tables, [7, 8], 1),
        PrefixExceedsLayoutError,
    ),
    ("releasing a free block", lambda edit: pool.release(edit, [3]), UnknownCopyError),
    ("releasing a block outside the pool", lambda edit: pool.release(edit, [99]), UnknownCopyError),
    ("releasing an inactive copy", lambda edit: pool.release(edit, [1]), ReferenceUnderflowError),
    ("releasing one reference twice", lambda edit: pool.release(edit, [0, 0]), ReferenceUnderflowError),
    ("releasing a private copy twice", lambda edit: pool.release(edit, [2, 2]), ReferenceUnderflowError),
    ("unpinning what is not pinned", lambda edit: pool.unpin(edit, [0]), PinUnderflowError),
    ("writing a free block", lambda edit: pool.check_writable(edit.tables, 3), UnknownCopyError),
    ("writing a cached block", lambda edit: pool.check_writable(edit.tables, 0), CopyNotPrivateError),
    ("writing under a reader", lambda edit: pool.check_writable(edit.tables, 2), UnauthorizedWriteError),
    ("attaching a dependency in use", lambda edit: tags.check_attachable(edit.tables, [0], 5), DependencyPendingError),
    ("attaching a negative number", lambda edit: tags.check_attachable(edit.tables, [0], -1), DependencyRangeError),
    ("attaching a huge number", lambda edit: tags.check_attachable(edit.tables, [0], 2**64), DependencyRangeError),
    ("attaching no number", lambda edit: tags.check_attachable(edit.tables, [0], NAME), DependencyRangeError),
    ("attaching to a block twice", lambda edit: tags.check_attachable(edit.tables, [0, 0], 6), SourcesChangedError),
    ("attaching to a free block", lambda edit: tags.check_attachable(edit.tables, [3], 6), SourcesChangedError),
    ("attaching under a reader", lambda edit: tags.check_attachable(edit.tables, [2], 6), SourcesChangedError),
    ("authorizing a free block", lambda edit: tags.check_authorizable(edit.tables, [3], [5]), UnknownCopyError),
    ("omitting a dependency", lambda edit: tags.check_authorizable(edit.tables, [0, 2], [6]), OmittedDependencyError),
    ("authorizing twice", authorize_twice, AuthorizedTwiceError),
]


@pytest.mark.parametrize("copying", [True, False], ids=["copying", "journal"])
@pytest.mark.parametrize(("act", "error"), [row[1:] for row in REFUSALS], ids=[row[0] for row in REFUSALS])
def test_i14_the_pool_refuses_and_nothing_changes(
    act: Callable[[Edit], object], error: type[TenureError], copying: bool
) -> None:
    """Also where a raise comes in the middle of an effect: the journal takes it back."""
    state = prepared(copying)
    before, key = state.view(), state.key()
    with pytest.raises(error) as refusal:
        state.edited(None, lambda edit, _: act(edit))

    assert str(refusal.value)
    assert before == state.view()
    assert key == state.key()


def test_an_unforeseen_exception_in_the_middle_of_an_effect_changes_nothing() -> None:
    """Not only our own errors: whatever is raised."""
    state = prepared(copying=False)
    before = state.view()

    def interrupted(edit: Edit, _: None) -> None:
        pool.release(edit, [0])
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        state.edited(None, interrupted)

    assert before == state.view()


def test_attaching_to_nothing_is_possible_and_pends() -> None:
    """An empty list of copies satisfies every condition."""
    state = prepared(copying=False)
    tags.check_attachable(state.tables, (), 6)
    after, _, _ = state.edited(None, lambda edit, _: tags.attach(edit, (), 6))

    assert after.view().dependencies == {5: (2,), 6: ()}
    assert tags.pending_dependencies(state.tables, [0, 2, 2]) == (5,)


def test_states_are_values() -> None:
    """Equal by content, hashable, printable; other things are not equal to them."""
    one, two = prepared(copying=True), prepared(copying=False)

    assert one == two
    assert hash(one) == hash(two)
    assert one != BlockState.initial(one.config)
    assert one != "state"
    assert repr(one) == "<BlockState: 2 active, 1 inactive, 1 free of 4 blocks, 0 leases>"
    assert one.config.capacity == 4


def test_states_that_differ_in_the_order_of_free_blocks_alone_are_different() -> None:
    """The order decides what is taken next."""
    config = BlockConfig(capacity=3, block_size=4)

    def there_and_back(edit: Edit, order: list[int]) -> None:
        taken, _ = pool.take_fresh(edit, 3)
        assert taken == [2, 1, 0]
        pool.give_back(edit, order)

    initial = BlockState.initial(config, copying=False)
    same, _, _ = initial.edited([2, 1, 0], there_and_back)
    other, _, _ = initial.edited([0, 1, 2], there_and_back)

    assert initial.view().free == same.view().free == (2, 1, 0)
    assert initial.view().free != other.view().free
    assert same != other


def test_the_view_of_a_huge_pool_costs_what_is_used_of_it() -> None:
    """A capacity is a number: blocks that were never used are counted, not listed."""
    config = BlockConfig(capacity=2**40, block_size=4)

    def take_two_and_give_one_back(edit: Edit, _: None) -> None:
        taken, _removed = pool.take_fresh(edit, 2)
        pool.give_back(edit, taken[1:])

    state, _, _ = BlockState.initial(config).edited(None, take_two_and_give_one_back)
    free = state.view().free

    assert len(free) == 2**40 - 1
    assert (free[0], free[-1], free[-2]) == (2**40 - 1, 0, 2)
    assert free[-3:] == (3, 2, 0)
    assert free == state.view().free
    assert free != BlockState.initial(config).view().free
    stranger: object = "free"
    assert free != stranger
    assert free != (0,)
    assert repr(free) == "FreeBlocks(1099511627775..2, [0])"
    with pytest.raises(IndexError):
        free[2**40]


def test_a_free_stack_says_the_same_however_it_came_about() -> None:
    """Blocks given back in the order in which they were first taken are as good as never used."""
    config = BlockConfig(capacity=4, block_size=4)

    def take(edit: Edit, count: int) -> None:
        taken, _removed = pool.take_fresh(edit, count)
        pool.give_back(edit, taken)

    fresh = BlockState.initial(config)
    one, _, _ = fresh.edited(1, take)
    three, _, _ = one.edited(3, take)

    assert fresh == one == three
    assert len({hash(fresh), hash(one), hash(three)}) == 1
    assert list(fresh.view().free) == list(three.view().free) == [3, 2, 1, 0]


def test_states_that_gave_out_other_ids_are_different() -> None:
    """The next id would differ, so the same event would be answered differently."""
    config = BlockConfig(capacity=4, block_size=4)
    fresh = BlockState.initial(config)
    reserved = transition(fresh, DecodeReservationRequested(0)).state
    released = transition(reserved, DecodeReservationReleased(1)).state
    attached, _, _ = fresh.edited(None, lambda edit, _: tags.attach(edit, (), 6))
    satisfied, _, _ = attached.edited(None, lambda edit, _: tags.satisfy(edit, 6))

    assert fresh.view() == released.view()
    assert fresh != released
    assert fresh != satisfied
