"""The executor on the emulated device: every order of small histories, and each of its waits and events taken out."""

from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any, Final
from unittest.mock import patch

import pytest

from tenure.backends.device import Lane
from tenure.backends.executor import Executor
from tenure.backends.fake import FakeDevice, Seeded
from tenure.backends.fake.operations import FakeEvent
from tenure.core.rows.commands import RowCommand
from tenure.core.rows.events import WriteFailed
from tenure.model_checks.devices.histories import ALL_HISTORIES, OF_DEVICES
from tenure.model_checks.devices.orders import commutes, drawn_orders, every_order
from tenure.model_checks.devices.world import World
from tenure.model_checks.rows.plans import AT_ONCE, start_of
from tenure.model_checks.rows.scopes import HISTORIES
from tenure.model_checks.rows.scripts import ALL, C, History, arrive, ends, last, step
from tests.fake.race_mutants import own

ORDERS: Final = 25
ONE_STEP: Final = History("", (step(arrive("a"), rows="a:0:1", to=[ALL]), last(*ends("a"))))
DEFERRED: Final = History("", (step(arrive("a"), rows="a:0:1", emits=(C,), to=[AT_ONCE]), last(*ends("a"))))


@pytest.mark.parametrize("name", ALL_HISTORIES)
def test_r02_r18_r20_first_orders_of_a_history_go_well(name: str) -> None:
    """Rows, races, what is left: for each case, defect and wrong reading, with the executor that ships."""
    explored = every_order(ALL_HISTORIES[name], orders_max=ORDERS)

    assert "" == explored.found, explored.trail
    assert ORDERS == explored.orders


@pytest.mark.parametrize("history", [ONE_STEP, DEFERRED])
def test_r02_r18_r20_every_order_of_a_step_goes_well(history: History) -> None:
    """To the end: what is the case in all orders is the case."""
    explored = every_order(history)

    assert "" == explored.found, explored.trail
    assert explored.finished
    assert 5 < explored.orders


class TwoLanes:
    """A world in which two lanes go on twice each, and the news comes when both are done."""

    def __init__(self, history: History) -> None:
        del history
        self.left = {"COPY": 2, "POOL": 2}
        self.is_told = False
        self.handed: list[Any] = []

    def moves(self) -> list[Any]:
        """Lanes that are not done; then the news."""
        lanes = [("lane", lane) for lane, left in self.left.items() if left]
        return lanes or ([] if self.is_told else [("news",)])

    def make(self, move: Any) -> None:
        """One of them."""
        if move[0] == "lane":
            self.left[move[1]] -= 1
        else:
            self.is_told = True

    def check_end(self) -> None:
        """All is done."""
        assert self.is_told


def test_orders_that_differ_in_lanes_side_by_side_are_run_once() -> None:
    """Two moves of each lane are in six orders, which all come to the same."""
    with patch("tenure.model_checks.devices.orders.World", TwoLanes):
        with_sleep = every_order(ONE_STEP)
        with patch("tenure.model_checks.devices.orders.commutes", return_value=False):
            without = every_order(ONE_STEP)

    assert (1, True) == (with_sleep.orders, with_sleep.finished)
    assert (6, 0, True) == (without.orders, without.cut, without.finished)
    assert commutes(("lane", "COPY"), ("lane", "POOL"))
    assert not commutes(("lane", "COPY"), ("news",))
    assert not commutes(("lane", "COPY"), ("lane", "COPY"))


# --- Taken out --------------------------------------------------------------------------------------------------------

WAITS: Final = (
    ("CopyPage", "FreezeRows"),
    ("CopyDeferred", "FreezeRows"),
    ("GatherRows", "FreezeRows"),
    ("GatherRows", "PreserveRows"),
    ("ScatterRows", "GatherRows"),
)
"""Commands that wait, and for which."""
FOR_FAILURE: Final = ("CopyDeferred", "FreezeRows")
"""Ordered by the lane already, since the page of the step is copied first; but it must fail if the freeze did."""
RECORDS: Final = ("FreezeRows", "CopyPage", "CopyDeferred", "ScatterRows", "PreserveRows", "GatherRows")
"""Commands behind which an event is recorded."""


class Watched:
    """Notes which command the executor is at, and takes something out.

    Attributes:
        waits: how often which command waited for which.
        same_lane: waits for an event of the lane that waits.
    """

    def __init__(self, wait: tuple[str, str] | None = None, record: str | None = None) -> None:
        self.wait, self.record = wait, record
        self.waits: Counter[tuple[str, str]] = Counter()
        self.records: Counter[str] = Counter()
        self.same_lane = 0
        self._now = "FreezeRows"
        self._kinds: dict[int, str] = {}

    @contextmanager
    def planted(self) -> Generator[None]:
        """While it is entered."""
        launch = own(Executor, "_launch")
        wait, record = FakeDevice.wait, FakeDevice.record
        watched = self

        def launched(executor: Any, command: RowCommand) -> None:
            watched._now = type(command).__name__
            try:
                launch(executor, command)
            finally:
                watched._now = "FreezeRows"

        def waited(device: FakeDevice, lane: Any, event: FakeEvent, *, is_needed: bool) -> None:
            pair = watched._now, watched._kinds.get(id(event), "")
            watched.waits[pair] += 1
            watched.same_lane += event.lane is lane
            if pair != watched.wait:
                wait(device, lane, event, is_needed=is_needed)

        kept: list[FakeEvent] = []

        def recorded(device: FakeDevice, lane: Any) -> FakeEvent:
            watched.records[watched._now] += 1
            event = FakeEvent() if watched._now == watched.record else record(device, lane)
            kept.append(event)
            watched._kinds[id(event)] = watched._now
            return event

        with (
            patch.object(Executor, "_launch", launched),
            patch.object(FakeDevice, "wait", waited),
            patch.object(FakeDevice, "record", recorded),
        ):
            yield


def found_with(watched: Watched) -> str:
    """What some orders of the histories show."""
    with watched.planted():
        for history in (*OF_DEVICES.values(), *HISTORIES.values()):
            explored = drawn_orders(history, Seeded(1), 40)
            if explored.found:
                return explored.found
    return ""


def test_r20_waits_are_those_listed_and_none_is_implied_by_its_lane() -> None:
    """A wait that lane order implies costs a call of the driver, and is not made."""
    watched = Watched()
    with watched.planted():
        for history in (*OF_DEVICES.values(), HISTORIES["same-step-hit-on-deferred-rows"]):
            drawn_orders(history, Seeded(2), 60)

    assert {*WAITS} == {*watched.waits}
    assert {*RECORDS} == {*watched.records}
    assert 0 == watched.same_lane


@pytest.mark.parametrize("wait", [wait for wait in WAITS if wait != FOR_FAILURE])
def test_r20_wait_that_is_taken_out_is_noticed(wait: tuple[str, str]) -> None:
    """Every one of them is needed."""
    found = found_with(Watched(wait=wait))

    assert "race" in found, found


@pytest.mark.parametrize("is_taken_out", [False, True])
def test_r12_deferred_copy_of_a_failed_freeze_fails_only_because_it_waits_for_it(is_taken_out: bool) -> None:
    """Else it would copy what was never frozen, and say that it is done."""
    answers: list[object] = []
    watched = Watched(wait=FOR_FAILURE if is_taken_out else None)
    poll = Executor.poll

    def polled(executor: Executor) -> Any:
        found = poll(executor)
        answers.extend(found)
        return found

    with watched.planted(), patch.object(Executor, "poll", polled):
        world = World(DEFERRED)
        for move in (("engine", "start"), ("engine", "save")):
            world.make(move)
        world.make(("builder", "1", "discard"))
        world.tell(start_of(last(*ends("a")), 1))
        # The forward pass goes well, and the freeze behind it does not.
        world.device.advance(Lane.COMPUTE)
        world.device.advance(Lane.COMPUTE, fails=True)
        world.device.settle()
        world.pump()

    failed = [each for each in answers if isinstance(each, WriteFailed)]
    assert (1 if is_taken_out else 2) == len(failed), answers


@pytest.mark.parametrize("record", RECORDS)
def test_r20_event_that_is_not_recorded_is_noticed(record: str) -> None:
    """Whoever waits for it waits for nothing."""
    found = found_with(Watched(record=record))

    assert any(word in found for word in ("race", "poison", "use after free", "hands out")), found
