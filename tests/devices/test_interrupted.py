"""The executor on the emulated device, in every order: operations that others come in between, and one that fails."""

from typing import Any, Final
from unittest.mock import patch

import pytest

from tenure.backends.fake import FakeDevice, Seeded
from tenure.core.errors import InvariantViolation
from tenure.model_checks.devices.histories import OF_DEVICES
from tenure.model_checks.devices.orders import commutes, drawn_orders, every_order
from tenure.model_checks.devices.world import FAILS, World
from tenure.model_checks.rows.plans import AT_ONCE
from tenure.model_checks.rows.scripts import ALL, C, H, History, arrive, ends, last, step
from tests.devices.test_orders import DEFERRED, LARGER, ONE_STEP, SMALL
from tests.fake.race_mutants import own

MOMENTS_OF_A_NIGHT: Final = 1_000
TWO_ROWS: Final = History("", (step(arrive("a", 2), rows="a:0:1 a:1:2", to=[ALL]), last(*ends("a"))))
"""Each operation has two halves."""
DEFERRED_ROWS: Final = History(
    "", (step(arrive("a", 2), rows="a:0:1 a:1:2", emits=(C,), to=[AT_ONCE]), last(*ends("a")))
)
HIT_OF_TWO_ROWS: Final = History(
    "",
    (
        step(arrive("a", 2), rows="a:0:1 a:1:2", emits=(H,)),
        step(*ends("a"), arrive("b", 1, 0, 1, nodes=(1, 2)), rows="b:0:3", emits=(H,), to=[ALL]),
        last(*ends("b")),
    ),
    blocks=2,
)
"""Of which the first is written anew by the step that reads it."""
AT_NIGHT: Final = {**LARGER, **SMALL, "deferred-rows": DEFERRED_ROWS, "hit-of-two-rows": HIT_OF_TWO_ROWS}
FREEZE_COPY_SCATTER: Final = {"copy in COMPUTE", "copy in COPY", "copy in POOL"}
"""What a step without a hit asks a device for."""


@pytest.mark.parametrize(
    ("history", "in_pieces", "failures", "moments"),
    [(ONE_STEP, False, 1, 138), (TWO_ROWS, True, 0, 121), (TWO_ROWS, True, 1, 361)],
)
def test_r02_r12_r18_r20_every_order_goes_well_of_halves_and_with_one_failure(
    history: History, in_pieces: bool, failures: int, moments: int
) -> None:
    """To the end: rows, races, what is left, whichever operation fails and whatever comes in between."""
    explored = every_order(history, in_pieces=in_pieces, failures=failures)

    assert "" == explored.found, explored.trail
    assert (True, moments) == (explored.finished, explored.moments)
    assert explored.rows
    assert (FREEZE_COPY_SCATTER if failures else set()) == {*explored.failed}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("history", "in_pieces", "failures", "moments"),
    [
        (DEFERRED, False, 1, 292),
        (DEFERRED_ROWS, True, 0, 179),
        (DEFERRED_ROWS, True, 1, 941),
        (SMALL["hit-beside-its-step"], False, 1, 1074),
        (SMALL["hit-of-the-slot-that-its-step-writes"], False, 1, 754),
    ],
)
def test_r02_r12_r18_r20_every_order_of_longer_histories_goes_well_with_one_failure(
    history: History, in_pieces: bool, failures: int, moments: int
) -> None:
    """Likewise."""
    explored = every_order(history, in_pieces=in_pieces, failures=failures)

    assert "" == explored.found, explored.trail
    assert (True, moments) == (explored.finished, explored.moments)
    assert not failures or FREEZE_COPY_SCATTER <= {*explored.failed}


@pytest.mark.slow
@pytest.mark.parametrize("name", AT_NIGHT)
def test_r02_r12_r18_r20_orders_go_well_of_halves_and_with_one_failure_for_a_night(name: str) -> None:
    """As far as some minutes go."""
    explored = every_order(AT_NIGHT[name], in_pieces=True, failures=1, moments_max=MOMENTS_OF_A_NIGHT)

    assert "" == explored.found, explored.trail
    assert explored.finished or MOMENTS_OF_A_NIGHT <= explored.moments


def test_r02_r12_r18_r20_drawn_orders_go_well_in_pieces_and_with_failures() -> None:
    """Of histories that are too long for every order; what may fail there does."""
    failed: set[str] = set()
    for history in OF_DEVICES.values():
        explored = drawn_orders(history, Seeded(3), 25, in_pieces=True, failures=1)
        assert "" == explored.found, explored.trail
        failed |= {*explored.failed}

    assert FREEZE_COPY_SCATTER | {"copy in GATHER"} <= failed
    assert {each.partition(" in ")[0] for each in failed} >= {"copy", "scatter_rows", "zero_rows"}


def test_copy_that_ends_with_its_first_row_is_found_in_pieces_alone() -> None:
    """Whole operations hide it."""
    carry_out: Any = own(FakeDevice, "_carry_out")

    def carried_out(device: FakeDevice, *given: Any, **how: Any) -> bool:
        carry_out(device, *given, **how)
        return True

    with patch.object(FakeDevice, "_carry_out", carried_out):
        whole, in_pieces = every_order(TWO_ROWS), every_order(TWO_ROWS, in_pieces=True)

    assert "" == whole.found
    assert "hands out" in in_pieces.found


def test_failure_that_is_passed_on_to_nobody_is_found_by_a_failure_alone() -> None:
    """A page that is copied from rows that were never frozen."""
    wait = FakeDevice.wait

    def waited(device: FakeDevice, lane: Any, event: Any, *, is_needed: bool) -> None:
        del is_needed
        wait(device, lane, event, is_needed=False)

    with patch.object(FakeDevice, "wait", waited):
        without, with_one = every_order(ONE_STEP), every_order(ONE_STEP, failures=1)

    assert "" == without.found
    assert "hands out" in with_one.found
    assert any(FAILS in move for move in with_one.trail)


def test_r12_save_whose_publication_meets_a_failure_is_cancelled() -> None:
    """The failure of an earlier write is told between reservation and publication: no fault, and nothing is left."""
    world = World(LARGER["scatters-in-order"], failures=1)
    first_step = (("engine", "start"), ("engine", "save"), ("builder", "1", "discard"), ("engine", "start"))
    until_scattered = (("lane", "COMPUTE"), ("lane", "COPY"), ("news",))
    for move in first_step:
        while move not in world.moves():
            world.make(next(each for each in until_scattered if each in world.moves()))
        world.make(move)
    while ("lane", "POOL", FAILS) not in world.moves():
        world.make(next(each for each in until_scattered if each in world.moves()))
    world.make(("lane", "POOL", FAILS))

    world.make(("engine", "save"))

    assert ("engine", "reset") in world.moves()
    while moves := world.moves():
        world.make(moves[-1])
    world.check_end()


def test_r12_scatter_that_needs_the_gather_it_is_ordered_behind_is_found_by_a_failure_alone() -> None:
    """A read that fails costs its request, and not the write whose rows come to the same slots."""
    wait = FakeDevice.wait

    def waited(device: FakeDevice, lane: Any, event: Any, *, is_needed: bool) -> None:
        del is_needed
        wait(device, lane, event, is_needed=True)

    history = SMALL["hit-of-the-slot-that-its-step-writes"]
    with patch.object(FakeDevice, "wait", waited):
        explored = every_order(history, failures=1)

    without = every_order(history, failures=1, moments_max=explored.moments + 1)

    assert "R12" == explored.found[:3]
    assert any(FAILS in move for move in explored.trail)
    assert "" == without.found, without.trail


def test_move_that_is_wrong_at_once_is_told_with_its_trail() -> None:
    """Also where it is the last move of a prefix, which nothing was gone on from."""
    advance = FakeDevice.advance

    def advanced(device: FakeDevice, lane: Any, *, fails: bool = False) -> None:
        if fails:
            raise InvariantViolation("R20", "it failed")
        advance(device, lane)

    with patch.object(FakeDevice, "advance", advanced):
        explored = every_order(ONE_STEP, failures=1)

    assert "R20: it failed" == explored.found
    assert FAILS in explored.trail[-1]
    assert not any(FAILS in move for move in explored.trail[:-1])


def test_two_failures_do_not_commute() -> None:
    """There is but one, and the first leaves none for the second."""
    assert commutes(("lane", "COPY", FAILS), ("lane", "POOL"))
    assert not commutes(("lane", "COPY", FAILS), ("lane", "POOL", FAILS))
    assert not commutes(("lane", "COPY", FAILS), ("lane", "COPY"))
