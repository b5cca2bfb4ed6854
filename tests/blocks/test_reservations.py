"""Reservations: every refusal, and what it leaves behind."""

from typing import Any

import pytest

from tenure.core.blocks import queries
from tenure.core.blocks.values import (
    AllocationRequested,
    DecodeReservationReleased,
    DecodeReservationRequested,
    DestinationActivated,
    DestinationCancelled,
    DestinationRequested,
    Event,
    ExternalPrefixRequested,
    PublishStored,
    Ready,
    Reserved,
    ReservedAllocationRequested,
    StepComputed,
    StoreSourcesSnapshotted,
    TokenGenerated,
    TokensComputed,
)
from tenure.core.errors import (
    ComputedBackwardsError,
    EmptySnapshotError,
    EmptySuffixError,
    NegativeCountError,
    OutputExhaustedError,
    PendingDependenciesError,
    ReservationExceedsPromptError,
    ReservationKindError,
    SuffixBeyondTableError,
    SuffixMismatchError,
    TenureError,
    TokenRangeError,
    UnknownReservationError,
    UnresolvedPrefixError,
)
from tests.blocks.harness import Machine


def a_machine() -> tuple[Machine, int, int]:
    """A machine, a decode reservation (1), and a destination (2) of "r", which has two full blocks and a tail."""
    machine = Machine(12)
    machine.cached("seed", [7])
    machine.open("r", range(10), 1)
    machine.req("s", [7, 8])
    return machine, machine.reserve(1), machine.reserved(machine.tell(DestinationRequested("r")))


HALF: Any = 0.5


@pytest.mark.parametrize(
    ("event", "error"),
    [
        (DecodeReservationRequested(HALF), NegativeCountError),
        (AllocationRequested("r", HALF), NegativeCountError),
        (AllocationRequested("r", 4, HALF), NegativeCountError),
        (TokensComputed("r", HALF, 4), NegativeCountError),
        (TokensComputed("r", 0, HALF), NegativeCountError),
        (ExternalPrefixRequested("s", HALF, (7,)), NegativeCountError),
        (TokenGenerated("r", HALF), TokenRangeError),
        (StepComputed(("r",), (HALF,)), TokenRangeError),
        (DecodeReservationRequested(-1), NegativeCountError),
        (DecodeReservationReleased(9), UnknownReservationError),
        (DecodeReservationReleased(2), ReservationKindError),
        (DestinationCancelled(1), ReservationKindError),
        (DestinationCancelled(9), UnknownReservationError),
        (DestinationActivated("r", 1), ReservationKindError),
        (ReservedAllocationRequested("r", 4, 2), ReservationKindError),
        (ReservedAllocationRequested("r", -1, 1), NegativeCountError),
        (AllocationRequested("r", -1), NegativeCountError),
        (AllocationRequested("r", 4, -1), NegativeCountError),
        (AllocationRequested("r", 10, 3), UnresolvedPrefixError),
        (ExternalPrefixRequested("s", 0, ()), EmptySuffixError),
        (ExternalPrefixRequested("s", -1, (7,)), NegativeCountError),
        (ExternalPrefixRequested("s", 1, (8, 9)), SuffixBeyondTableError),
        (ExternalPrefixRequested("s", 1, (9,)), SuffixMismatchError),
        (TokensComputed("r", -1, 4), NegativeCountError),
        (TokensComputed("r", 4, 3), ComputedBackwardsError),
        (TokenGenerated("r", -1), TokenRangeError),
        (TokenGenerated("s"), OutputExhaustedError),
        (StoreSourcesSnapshotted("r", ()), EmptySnapshotError),
    ],
)
def test_i14_bad_arguments_are_refused_before_anything_changes(event: Event, error: type[TenureError]) -> None:
    """The harness compares the whole state."""
    machine, _, _ = a_machine()
    machine.refuses(event, error)


def test_an_external_prefix_over_an_unresolved_block_is_refused() -> None:
    """Only a generated block can stand unresolved in front of others."""
    machine = Machine(8)
    machine.open("r", range(3), 6, planned=range(3, 9))
    for _ in range(6):
        machine.generate("r")

    machine.refuses(ExternalPrefixRequested("r", 1, (5,)), SuffixMismatchError)


def test_a_destination_that_covers_generated_blocks_is_not_activated() -> None:
    """A transfer brings a prompt."""
    machine = Machine(8)
    machine.open("r", range(4), 4)
    machine.allocate("r", 4)
    machine.finalize("r", 0, 4)
    for _ in range(4):
        machine.generate("r")
    machine.allocate("r", 8)
    machine.finalize("r", 4, 8)
    machine.preempt("r")
    second = machine.hashes("r")[1]
    assert second is not None
    reservation = machine.reserved(machine.tell(ExternalPrefixRequested("r", 1, (second,))))

    machine.refuses(
        DestinationActivated("r", reservation), ReservationExceedsPromptError, "has 2 blocks, the prompt only 1"
    )


def test_a_destination_over_capacity_still_read_is_activated_only_after() -> None:
    """What is transferred in would be read by the wrong store."""
    machine = Machine(1)
    machine.cached("source", [7])
    machine.attach("source", [0], 3)
    machine.finish("source")
    machine.req("r", [8])
    answer = machine.tell(DestinationRequested("r"))
    assert isinstance(answer, Reserved)
    assert answer.dependencies == (3,)
    machine.refuses(DestinationActivated("r", answer.reservation), PendingDependenciesError, r"\[3\]")
    machine.satisfy(3)
    machine.tell(DestinationActivated("r", answer.reservation))

    assert machine.hit(8)


def test_a_destination_publishes_full_blocks_and_keeps_its_tail_private() -> None:
    """One event, tokens with it where they are wanted."""
    machine = Machine(4, kv_events=True)
    machine.open("r", range(10), 0, emit_token_ids=True)
    reservation = machine.reserved(machine.tell(DestinationRequested("r")))
    machine.tell(DestinationActivated("r", reservation))
    (event,) = machine.take_events()
    assert isinstance(event, PublishStored)

    assert event.token_ids == ((0, 1, 2, 3), (4, 5, 6, 7))
    assert queries.allocated_tokens(machine.state, "r") == 10
    assert machine.view().leases["r"].pending_cache == (False, False, False)


def test_i15_a_tail_that_output_once_filled_is_not_visible_when_the_prompt_is_transferred_again() -> None:
    """Only the prompt was transferred: whoever shared the block would read output that nobody computed."""
    machine = Machine(2, kv_events=True)
    machine.open("r", range(6), 2)
    machine.allocate("r", 6)
    machine.finalize("r", 0, 6)
    for _ in range(2):
        machine.generate("r")
    machine.allocate("r", 8)
    machine.finalize("r", 6, 8)
    tail = machine.hashes("r")[1]
    assert tail is not None
    assert machine.hit(tail)
    machine.preempt("r")
    machine.cached("other", [7, 8])
    machine.finish("other")
    machine.tell(DestinationActivated("r", machine.reserved(machine.tell(DestinationRequested("r")))))

    assert not machine.hit(tail)
    assert machine.view().leases["r"].pending_cache == (False, True)

    machine.finalize("r", 6, 8)

    assert machine.hit(tail)


def test_a_destination_of_a_partial_block_alone_publishes_nothing() -> None:
    """And one without caching neither."""
    machine = Machine(4, kv_events=True)
    machine.open("r", [1, 2])
    machine.tell(DestinationActivated("r", machine.reserved(machine.tell(DestinationRequested("r")))))
    silent = Machine(4, caching=False, kv_events=True)
    silent.open("r", range(8))
    silent.tell(DestinationActivated("r", silent.reserved(silent.tell(DestinationRequested("r")))))

    assert not machine.take_events()
    assert not silent.take_events()
    assert len(silent.blocks("r")) == 2


def test_a_destination_of_an_empty_prompt_is_empty() -> None:
    """Nothing to reserve, nothing to hold."""
    machine = Machine(1)
    machine.open("r", [])
    answer = machine.tell(DestinationRequested("r"))
    assert isinstance(answer, Reserved)
    assert (answer.blocks, answer.fresh) == (0, 0)
    machine.tell(DestinationActivated("r", answer.reservation))

    assert machine.blocks("r") == ()


def test_allocation_behind_a_snapshot_reads_old_capacity_in_the_order_of_use() -> None:
    """Dependencies are answered in the order of the new blocks, each once."""
    machine = Machine(4)
    machine.cached("source", [1, 2, 3])
    machine.attach("source", [0, 2], 11)
    machine.attach("source", [1], 12)
    machine.finish("source")
    machine.reserve(1)
    machine.req("r", [4, 5, 6])
    answer = machine.tell(AllocationRequested("r", 12))

    assert isinstance(answer, Ready)
    assert answer.blocks == (0, 1, 2)
    assert answer.dependencies == (11, 12)
    assert queries.generated(machine.state, "r") == 0
    assert queries.sequence_length(machine.state, "r") == 12
