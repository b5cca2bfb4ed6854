"""The executor on the emulated device: every order of small histories, and each of its waits and events taken out."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final
from unittest.mock import patch

import pytest

from tenure.backends.executor import Executor
from tenure.backends.fake import FakeDevice
from tenure.backends.fake.operations import FakeEvent
from tenure.core.rows.commands import RowCommand
from tenure.model_checks.devices.orders import commutes, every_order
from tenure.model_checks.rows.plans import AT_ONCE
from tenure.model_checks.rows.scopes import HISTORIES
from tenure.model_checks.rows.scripts import ALL, C, History, arrive, ends, last, step

ORDERS: Final = 60
ONE_STEP: Final = History("", (step(arrive("a"), rows="a:0:1", to=[ALL]), last(*ends("a"))))
DEFERRED: Final = History("", (step(arrive("a"), rows="a:0:1", emits=(C,), to=[AT_ONCE]), last(*ends("a"))))


@pytest.mark.parametrize("name", HISTORIES)
def test_r02_r18_r20_first_orders_of_a_history_go_well(name: str) -> None:
    """Rows, races, what is left: for each case, defect and wrong reading, with the executor that ships."""
    explored = every_order(HISTORIES[name], orders_max=ORDERS)

    assert "" == explored.found, explored.trail
    assert ORDERS == explored.orders


@pytest.mark.parametrize("history", [ONE_STEP, DEFERRED])
def test_r02_r18_r20_every_order_of_a_step_goes_well(history: History) -> None:
    """To the end: what is the case in all orders is the case."""
    explored = every_order(history)

    assert "" == explored.found, explored.trail
    assert explored.finished
    assert 5 < explored.orders


def test_orders_that_differ_in_lanes_side_by_side_are_run_once() -> None:
    """Without sleep sets the same is found, in more runs."""
    history = History("", (step(arrive("a"), rows="a:0:1", emits=("m", C), to=[AT_ONCE]), last(*ends("a"))))
    with_sleep = every_order(history)
    with patch("tenure.model_checks.devices.orders.commutes", lambda one, other: False):
        without = every_order(history)

    assert with_sleep.finished
    assert without.finished
    assert (0, "", "") == (without.cut, without.found, with_sleep.found)
    assert with_sleep.orders < without.orders
    assert commutes(("lane", "COPY"), ("lane", "POOL"))
    assert not commutes(("lane", "COPY"), ("news",))


# --- Taken out --------------------------------------------------------------------------------------------------------

WAITS: Final = (
    ("CopyPage", "FreezeRows"),
    ("CopyDeferred", "FreezeRows"),
    ("GatherRows", "FreezeRows"),
    ("GatherRows", "PreserveRows"),
    ("ScatterRows", "GatherRows"),
)
"""Commands that wait, and for which."""
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
    def planted(self) -> Iterator[None]:
        """While it is entered."""
        launch, wait, record = Executor._launch, FakeDevice.wait, FakeDevice.record
        watched = self

        def launched(executor: Any, command: RowCommand) -> None:
            watched._now = type(command).__name__
            try:
                launch(executor, command)  # type: ignore[arg-type]
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


FOUND_IN: Final = (
    "delayed-read",
    "same-step-hit-on-deferred-rows",
    "running-read-is-dropped",
    "rows-that-look-absent",
    "two-preserves-one-fails",
)
"""Histories that have all of them between them."""


def found_with(watched: Watched) -> str:
    """What the histories show, in the first of their orders."""
    with watched.planted():
        for name in FOUND_IN:
            explored = every_order(HISTORIES[name], orders_max=3000)
            if explored.found:
                return explored.found
    return ""


def test_r20_waits_are_those_listed_and_none_is_implied_by_its_lane() -> None:
    """A wait that lane order implies costs a call of the driver, and is not made."""
    watched = Watched()
    with watched.planted():
        for history in HISTORIES.values():
            every_order(history, orders_max=40)

    assert {*WAITS} == {*watched.waits}
    assert {*RECORDS} == {*watched.records}
    assert 0 == watched.same_lane


@pytest.mark.parametrize("wait", WAITS)
def test_r20_wait_that_is_taken_out_is_noticed(wait: tuple[str, str]) -> None:
    """Every one of them is needed."""
    found = found_with(Watched(wait=wait))

    assert "race" in found, found


@pytest.mark.parametrize("record", RECORDS)
def test_r20_event_that_is_not_recorded_is_noticed(record: str) -> None:
    """Whoever waits for it waits for nothing."""
    found = found_with(Watched(record=record))

    assert any(word in found for word in ("race", "poison", "use after free", "hands out")), found
