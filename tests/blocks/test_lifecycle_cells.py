"""Every (phase, event) cell of the lease and block lifecycles, legal and illegal."""

from collections.abc import Callable
from typing import Any

import pytest

from tenure.core.blocks.lifecycles import (
    BLOCK_MOVES,
    LEASE_CELLS,
    BlockPhase,
    LeasePhase,
    block_phases,
    lease_phase,
)
from tenure.core.blocks.sequence import new_sequence
from tenure.core.blocks.values import (
    AllocationRequested,
    DecodeReservationReleased,
    DecodeReservationRequested,
    DependencyAttached,
    DependencySatisfied,
    DestinationActivated,
    DestinationCancelled,
    DestinationRequested,
    Event,
    ExternalPrefixRequested,
    GrowthScheduled,
    LeaseFinished,
    LeaseOpened,
    LeasePreempted,
    ReservedAllocationRequested,
    SnapshotDiscarded,
    Sources,
    StepComputed,
    StoreSourcesSnapshotted,
    TokenGenerated,
    TokensComputed,
    WritesAuthorized,
)
from tenure.core.errors import TenureError
from tests.blocks.harness import Machine

PROMPT = range(6)
FENCE = 9


def machine_in(phase: LeasePhase, *, dirty: bool = False, prompt: range = PROMPT) -> Machine:
    """A machine whose request "r" is in a phase; `dirty`: the capacity it gets next is still read by a transfer."""
    machine = Machine(4)
    machine.cached("source", [1001])
    if dirty or phase is LeasePhase.FENCED:
        machine.attach("source", [0], FENCE)
    if dirty or phase is LeasePhase.FENCED:
        machine.finish("source")
    if phase is LeasePhase.CLOSED:
        return machine
    machine.open("r", prompt, 12, planned=range(100, 112))
    if phase is LeasePhase.HELD:
        machine.allocate("r", 6)
        if dirty:
            machine.reserve(1)
            machine.finalize("r", 0, 6)
    if phase is LeasePhase.FENCED:
        machine.reserve(2)
        machine.tell(AllocationRequested("r", 6))
    assert phase is lease_phase(machine.view(), "r")
    return machine


def generate(machine: Machine, count: int) -> Machine:
    """Generate tokens of "r"."""
    for _ in range(count):
        machine.generate("r")
    return machine


def without_tokens() -> Machine:
    """A lease of a request without any token."""
    machine = Machine(2)
    machine.open("r", [])
    return machine


def satisfied(machine: Machine) -> Machine:
    """End the transfer."""
    machine.tell(DependencySatisfied(FENCE))
    return machine


def reserved(machine: Machine, blocks: int) -> tuple[Machine, int]:
    """With a decode reservation."""
    return machine, machine.reserve(blocks)


def with_snapshot(machine: Machine, position: int) -> tuple[Machine, int]:
    """With a snapshot of one block of "r"."""
    answer = machine.tell(StoreSourcesSnapshotted("r", (position,)))
    assert isinstance(answer, Sources)
    return machine, answer.snapshot


def destination(machine: Machine, then: Callable[[Machine], object] | None = None) -> tuple[Machine, Event]:
    """With a destination of "r", and what happened since."""
    reservation = machine.reserved(machine.tell(DestinationRequested("r")))
    if then is not None:
        then(machine)
    return machine, DestinationActivated("r", reservation)


def fenced_beside_destination() -> tuple[Machine, Event]:
    """A destination is reserved first, then the lease gets fenced capacity otherwise."""
    machine = Machine(4)
    machine.cached("source", [1001])
    machine.attach("source", [0], FENCE)
    machine.open("r", range(4), 8)
    machine.finish("source")
    reservation = machine.reserved(machine.tell(DestinationRequested("r")))
    machine.reserve(2)
    machine.tell(AllocationRequested("r", 4))
    return machine, DestinationActivated("r", reservation)


def fenced_with_snapshot() -> tuple[Machine, Event]:
    """An earlier block of a fenced lease is a source all the same."""
    machine = fenced_later_block()
    machine, snapshot = with_snapshot(machine, 0)
    return machine, DependencyAttached("r", snapshot, 77)


def fenced_later_block() -> Machine:
    """Only the second block of "r" waits for an authorization."""
    machine = Machine(4)
    machine.cached("source", [1001])
    machine.attach("source", [0], FENCE)
    machine.open("r", range(6), 12, planned=range(100, 112))
    machine.allocate("r", 4)
    machine.finalize("r", 0, 4)
    machine.finish("source")
    machine.reserve(2)
    machine.tell(AllocationRequested("r", 6))
    assert lease_phase(machine.view(), "r") is LeasePhase.FENCED
    return machine


def reserved_dirty(phase: LeasePhase) -> tuple[Machine, Event]:
    """The reservation holds the block that a transfer still reads."""
    machine = machine_in(phase, dirty=True)
    if phase is LeasePhase.HELD:
        generate(machine, 3)
        return machine, ReservedAllocationRequested("r", 9, machine.reserve(1))
    return machine, ReservedAllocationRequested("r", 4, machine.reserve(4))


C, E, H, F = LeasePhase.CLOSED, LeasePhase.EMPTY, LeasePhase.HELD, LeasePhase.FENCED
SEQUENCE = new_sequence("r", PROMPT, 4, 4)


def at(phase: LeasePhase, event: Event, **options: Any) -> tuple[Machine, Event]:
    """A machine in a phase, and an event for it."""
    return machine_in(phase, **options), event


def tell_all(phase: LeasePhase) -> list[tuple[Machine, Event]]:
    """Events that need no preparation of their own."""
    return [
        at(phase, LeaseOpened(SEQUENCE)),
        at(phase, TokenGenerated("r")),
        at(phase, LeasePreempted("r")),
        at(phase, LeaseFinished("r")),
        at(phase, StoreSourcesSnapshotted("r", (0,))),
        at(phase, DestinationRequested("r")),
        at(phase, ExternalPrefixRequested("r", 0, (9143094415614847814,))),
        at(phase, WritesAuthorized("r", (FENCE,))),
    ]


def closed_rows() -> list[tuple[Machine, Event]]:
    """A request without a lease."""
    machine, reservation = reserved(machine_in(C), 1)
    other = machine_in(C)
    other.open("r", range(4))
    activation = destination(other, lambda machine: machine.finish("r"))
    return [
        *tell_all(C),
        at(C, AllocationRequested("r", 1)),
        at(C, GrowthScheduled(("r",))),
        (machine, ReservedAllocationRequested("r", 1, reservation)),
        at(C, TokensComputed("r", 0, 4)),
        at(C, StepComputed(("r",))),
        activation,
        at(C, DependencyAttached("r", 1, 1)),
    ]


def empty_rows() -> list[tuple[Machine, Event]]:
    """An open lease without blocks."""
    machine, reservation = reserved(machine_in(E), 2)
    nothing, empty_reservation = reserved(machine_in(E), 0)
    return [
        *tell_all(E),
        at(E, AllocationRequested("r", 0)),
        at(E, AllocationRequested("r", 6)),
        (generate(machine_in(E, dirty=True), 8), AllocationRequested("r", 14)),
        (without_tokens(), GrowthScheduled(("r",))),
        at(E, GrowthScheduled(("r",))),
        (generate(machine_in(E, dirty=True), 8), GrowthScheduled(("r",))),
        (nothing, ReservedAllocationRequested("r", 0, empty_reservation)),
        (machine, ReservedAllocationRequested("r", 6, reservation)),
        reserved_dirty(E),
        at(E, TokensComputed("r", 0, 4)),
        (generate(machine_in(E), 2), TokensComputed("r", 0, 8)),
        at(E, StepComputed(("r",))),
        (generate(machine_in(E), 2), StepComputed(("r",))),
        destination(machine_in(E)),
        destination(without_tokens()),
        at(E, DependencyAttached("r", 1, 1)),
    ]


def held_rows() -> list[tuple[Machine, Event]]:
    """A lease with blocks whose writes are all its own."""
    machine, reservation = reserved(generate(machine_in(H), 3), 1)
    computed = machine_in(H)
    computed.finalize("r", 0, 4)
    source, snapshot = with_snapshot(computed, 0)
    return [
        *tell_all(H),
        at(H, AllocationRequested("r", 6)),
        (generate(machine_in(H, dirty=True), 3), AllocationRequested("r", 9)),
        at(H, GrowthScheduled(("r",))),
        (generate(machine_in(H, dirty=True), 3), GrowthScheduled(("r",))),
        (machine, ReservedAllocationRequested("r", 9, reservation)),
        reserved_dirty(H),
        at(H, TokensComputed("r", 0, 4)),
        at(H, StepComputed(("r",))),
        destination(machine_in(E), lambda machine: machine.allocate("r", 4)),
        (source, DependencyAttached("r", snapshot, 5)),
    ]


def fenced_rows() -> list[tuple[Machine, Event]]:
    """A lease some of whose writes wait for an authorization."""
    grown, reservation = reserved(generate(machine_in(F), 3), 0)
    again, empty_reservation = reserved(machine_in(F), 0)
    pruned, pruned_reservation = reserved(satisfied(machine_in(F)), 0)
    full = generate(machine_in(F), 2)
    return [
        *tell_all(F),
        at(F, AllocationRequested("r", 6)),
        (satisfied(machine_in(F)), AllocationRequested("r", 6)),
        (generate(machine_in(F), 3), AllocationRequested("r", 9)),
        at(F, GrowthScheduled(("r",))),
        (satisfied(machine_in(F)), GrowthScheduled(("r",))),
        (generate(machine_in(F), 3), GrowthScheduled(("r",))),
        (again, ReservedAllocationRequested("r", 6, empty_reservation)),
        (pruned, ReservedAllocationRequested("r", 6, pruned_reservation)),
        (grown, ReservedAllocationRequested("r", 9, reservation)),
        at(F, TokensComputed("r", 0, 3)),
        at(F, TokensComputed("r", 0, 4)),
        (fenced_later_block(), TokensComputed("r", 0, 4)),
        at(F, StepComputed(("r",))),
        (full, StepComputed(("r",))),
        fenced_beside_destination(),
        fenced_with_snapshot(),
    ]


ROWS: dict[LeasePhase, Callable[[], list[tuple[Machine, Event]]]] = {
    C: closed_rows,
    E: empty_rows,
    H: held_rows,
    F: fenced_rows,
}


@pytest.mark.parametrize("phase", LeasePhase, ids=lambda phase: phase.value)
def test_lease_cells_lead_where_the_table_says_and_nowhere_else(phase: LeasePhase) -> None:
    """Every outcome in the table is reached, and no other one is."""
    found: dict[type[Event], set[object]] = {}
    for machine, event in ROWS[phase]():
        assert phase is lease_phase(machine.view(), "r"), event
        before = machine.view()
        try:
            machine.tell(event)
            outcome: object = lease_phase(machine.view(), "r")
        except TenureError as refusal:
            outcome = type(refusal)
        if isinstance(outcome, type):
            assert before == machine.view()
        found.setdefault(type(event), set()).add(outcome)
    expected = {event: set(cell.to | cell.refusals) for (at, event), cell in LEASE_CELLS.items() if at is phase}

    assert expected == found


def test_lease_cells_cover_every_event_that_names_a_request() -> None:
    """An event added to the machine needs a row in the table."""
    named = {event for _, event in LEASE_CELLS}
    nameless = {
        DecodeReservationRequested,
        DecodeReservationReleased,
        DestinationCancelled,
        SnapshotDiscarded,
        DependencySatisfied,
    }

    assert set(Event.__args__) == named | nameless


# --- Blocks -----------------------------------------------------------------------------------------------------


def block_histories() -> list[Callable[[Machine], None]]:
    """Histories that together make every move of the block table."""

    def external(machine: Machine) -> None:
        machine.cached("a", [1, 2])
        machine.finish("a")
        machine.req("b", [1, 5, 6, 7])
        answer = machine.tell(ExternalPrefixRequested("b", 1, (5, 6, 7)))
        machine.tell(DestinationCancelled(machine.reserved(answer)))
        machine.req("c", [1, 2, 9])
        machine.cancel(machine.reserved(machine.tell(DestinationRequested("c"))))

    def destinations(machine: Machine) -> None:
        machine.cached("a", [1, 2])
        machine.finish("a")
        machine.open("b", range(13))
        reservation = machine.reserved(machine.tell(DestinationRequested("b")))
        machine.tell(DestinationActivated("b", reservation))
        machine.preempt("b")
        machine.finish("b")

    def growth(machine: Machine) -> None:
        machine.cached("a", [1, 2])
        machine.finish("a")
        machine.open("b", range(3), 12)
        machine.allocate("b", 3)
        for _ in range(12):
            machine.tell(StepComputed(("b",)))
            machine.tell(GrowthScheduled(("b",)))
        machine.finish("b")

    def hits(machine: Machine) -> None:
        machine.cached("a", [1, 2])
        machine.finish("a")
        machine.req("b", [1, 3, 4, 5])
        machine.allocate("b", 16, reuse=1)
        machine.preempt("b")
        machine.release(machine.reserve(4))
        reservation = machine.reserve(2)
        machine.tell(ReservedAllocationRequested("b", 8, reservation))
        machine.finish("b")

    def inactive_reserved(machine: Machine) -> None:
        machine.cached("a", [1, 2])
        machine.finish("a")
        machine.release(machine.reserve(4))

    return [external, destinations, growth, hits, inactive_reserved]


def test_block_moves_are_those_of_the_table_and_all_of_them_happen() -> None:
    """A move that never happens, or one that is not in the table, is a wrong table."""
    found: dict[type[Event], set[tuple[BlockPhase, BlockPhase]]] = {}

    class Watched(Machine):
        """Notes the moves that every event makes."""

        def tell(self, event: Event) -> Any:
            before = block_phases(self.view())
            answer = super().tell(event)
            after = block_phases(self.view())
            for block in before.keys() | after.keys():
                move = (before.get(block, BlockPhase.FREE), after.get(block, BlockPhase.FREE))
                if move[0] is not move[1]:
                    found.setdefault(type(event), set()).add(move)
            return answer

    for history in block_histories():
        history(Watched(4))

    assert {event: set(moves) for event, moves in BLOCK_MOVES.items()} == found
