"""Numbers at their bounds, and what answers and errors say of fenced capacity."""

import pytest

from tenure.core.blocks.machine import transition
from tenure.core.blocks.sequence import BlockIdentity, new_sequence
from tenure.core.blocks.state import BlockState
from tenure.core.blocks.values import (
    AllocationRequested,
    DecodeReservationRequested,
    DependencyAttached,
    ExternalPrefixRequested,
    GrowthReady,
    GrowthScheduled,
    LeaseFinished,
    LeaseOpened,
    Ready,
    ReservedAllocationRequested,
    Sources,
    StepComputed,
    StoreSourcesSnapshotted,
    TokensComputed,
    WritesAuthorized,
)
from tenure.core.config import U32_MAX, U64_MAX, BlockConfig
from tenure.core.errors import NegativeCountError, PrefixExceedsGrowthError, UnauthorizedWriteError
from tests.blocks.harness import Machine


def fenced(machine: Machine, dependencies: tuple[int, ...]) -> None:
    """Computed blocks, each read by a transfer of its own, whose lease has ended."""
    machine.cached("old", range(1, 1 + len(dependencies)))
    for position, dependency in enumerate(dependencies):
        machine.attach("old", (position,), dependency)
    machine.finish("old")


def test_reserved_capacity_tells_its_fences_in_the_order_of_use() -> None:
    """The last block of a reservation is used first, and so are its fences told, in view and answer."""
    machine = Machine(3, 2)
    fenced(machine, (5, 6, 7))
    reservation = machine.reserve(3)
    (seen,) = machine.view().reservations.values()
    used = [machine.view().tags[block] for block in reversed(seen.fresh)]

    assert {5, 6, 7} == {*used}
    assert tuple(used) == seen.dependencies
    machine.open("a", (1, 2, 3, 4))
    answer = machine.tell(ReservedAllocationRequested("a", 4, reservation))
    assert isinstance(answer, Ready)
    assert tuple(used[:2]) == answer.dependencies


def test_dependency_may_be_any_unsigned_number_of_64_bits() -> None:
    """The least and the greatest."""
    for dependency in (0, U64_MAX):
        machine = Machine(2, 2)
        machine.cached("a", (1,))
        sources = machine.tell(StoreSourcesSnapshotted("a", (0,)))
        assert isinstance(sources, Sources)
        machine.tell(DependencyAttached("a", sources.snapshot, dependency))
        assert machine.satisfy(dependency)


def test_token_and_hash_may_be_the_greatest_there_is() -> None:
    """Tokens of 32 bits, names of 64."""
    machine = Machine(4, 2)
    machine.open("a", (1,), 1)
    machine.allocate("a", 1)
    machine.finalize("a", 0, 1)
    machine.generate("a", U32_MAX)
    machine.tell(LeaseOpened(new_sequence("b", (1, 2), 0, 2, identities=[BlockIdentity(U64_MAX, U64_MAX)])))

    assert (U64_MAX,) == machine.hashes("b")


def test_count_that_is_none_is_refused_by_its_name() -> None:
    """Whose it is, and which."""
    machine = Machine(4, 2)
    machine.open("a", (1, 2, 3, 4))
    machine.refuses(DecodeReservationRequested(-1), NegativeCountError, r"\bblocks\b")
    machine.refuses(ExternalPrefixRequested("a", -1, (7,)), NegativeCountError, r"request 'a'.*\bprefix_blocks\b")
    machine.refuses(AllocationRequested("a", -1), NegativeCountError, r"request 'a'.*\btokens\b")
    machine.refuses(AllocationRequested("a", 1, -1), NegativeCountError, r"request 'a'.*\breusable_blocks\b")
    machine.refuses(TokensComputed("a", -1, 2), NegativeCountError, r"request 'a'.*\bbefore\b")


def test_i17_more_reusable_blocks_than_new_ones_are_refused_where_some_are_held() -> None:
    """What is held is no part of the growth."""
    machine = Machine(4, 2)
    machine.open("a", (1, 2, 3, 4, 5, 6))
    machine.allocate("a", 2)

    machine.refuses(AllocationRequested("a", 4, 3), PrefixExceedsGrowthError)


def test_i21_block_that_is_not_held_waits_for_no_authorization() -> None:
    """Held blocks of the lease do; one of known name behind them is passed over, as without a transfer."""
    machine = Machine(2, 2)
    fenced(machine, (5,))
    machine.open("a", (1, 2, 3, 4, 5, 6))
    answer = machine.tell(AllocationRequested("a", 4))
    assert isinstance(answer, Ready)
    assert (5,) == answer.dependencies
    machine.refuses(TokensComputed("a", 2, 6), UnauthorizedWriteError)
    before = machine.view()
    machine.tell(TokensComputed("a", 4, 6))

    assert before == machine.view()


def test_i21_i22_authorization_ends_with_the_write_that_a_decode_step_completes() -> None:
    """The transfer still reads the block, so the next write to it must be authorized anew."""
    machine = Machine(2, 2)
    fenced(machine, (5,))
    machine.open("a", (1, 2), 3)
    machine.allocate("a", 2)
    machine.finalize("a", 0, 2)
    machine.tell(StepComputed(("a",), (3,)))
    grown = machine.tell(GrowthScheduled(("a",)))
    assert isinstance(grown, GrowthReady)
    assert (("a", (5,)),) == grown.dependencies
    machine.tell(WritesAuthorized("a", (5,)))
    block = machine.blocks("a")[1]
    machine.tell(StepComputed(("a",), (4,)))
    assert {block} == machine.view().authorized
    machine.tell(StepComputed(("a",), (5,)))

    assert not machine.view().authorized
    assert {block: 5} == machine.view().tags


def test_r17_growth_that_finds_all_of_it_held_changes_nothing() -> None:
    """The state behind it is the very same."""
    machine = Machine(4, 2)
    machine.open("a", (1, 2, 3), 3)
    machine.allocate("a", 3)
    before = machine.state
    machine.tell(GrowthScheduled(("a",)))

    assert before is machine.state


def test_growth_within_a_block_voids_a_snapshot_as_every_growth_does() -> None:
    """It was taken between the token and the growth for it."""
    machine = Machine(4, 2)
    machine.open("a", (1, 2, 3), 3)
    machine.allocate("a", 3)
    machine.finalize("a", 0, 3)
    machine.tell(StepComputed(("a",), (4,)))
    machine.tell(StoreSourcesSnapshotted("a", (0,)))
    assert machine.view().snapshots
    machine.tell(GrowthScheduled(("a",)))

    assert not machine.view().snapshots


def test_r17_reservation_that_was_drawn_from_is_as_one_that_was_made_for_the_rest() -> None:
    """Two ways to the same blocks, under the same id."""
    drawn, made = Machine(3, 2), Machine(3, 2)
    for machine in (drawn, made):
        machine.open("a", (1, 2))
    reservation = drawn.reserve(2)
    drawn.tell(ReservedAllocationRequested("a", 2, reservation))
    made.allocate("a", 2)
    made.reserve(1)

    assert made.view() == drawn.view()
    assert made.state == drawn.state


def test_r17_machine_keeps_differences_where_nothing_is_said() -> None:
    """An older version has no tables of its own."""
    state = BlockState.initial(BlockConfig(capacity=4, block_size=2))
    transition(state, LeaseOpened(new_sequence("a", (1, 2), 0, 2)))

    assert getattr(state, "_store") is None  # noqa: B009 - looks inside


def test_second_snapshot_of_a_request_leaves_older_versions_as_they_were() -> None:
    """Both are kept; the version before the second knows of the first alone."""
    machine = Machine(4, 2)
    machine.cached("a", (1, 2))
    first = machine.tell(StoreSourcesSnapshotted("a", (0,)))
    second = machine.tell(StoreSourcesSnapshotted("a", (1,)))

    assert isinstance(first, Sources)
    assert isinstance(second, Sources)
    for sources, dependency in ((second, 4), (first, 3)):
        machine.tell(DependencyAttached("a", sources.snapshot, dependency))
    assert machine.satisfy(3)
    assert machine.satisfy(4)


def test_version_before_a_second_snapshot_still_drops_the_first_with_its_lease() -> None:
    """It was read, left and come back to; another way on from there is that of a machine that copies itself."""
    machine = Machine(4, 2)
    machine.cached("a", (1, 2))
    machine.tell(StoreSourcesSnapshotted("a", (0,)))
    journaled, copying = machine.journaled, machine.copying
    machine.tell(StoreSourcesSnapshotted("a", (1,)))
    back, same = (transition(state, LeaseFinished("a")) for state in (journaled, copying))

    assert same == back
    assert not back.state.view().snapshots


@pytest.mark.parametrize("tokens", [(0,), (U32_MAX,)])
def test_prompt_may_be_of_the_least_and_the_greatest_token(tokens: tuple[int, ...]) -> None:
    """They are tokens as others are."""
    machine = Machine(2, 2)
    machine.open("a", tokens * 2)
    machine.allocate("a", 2)
    machine.finalize("a", 0, 2)

    assert None not in machine.hashes("a")
