"""The executor on the emulated device: every order of small histories, and each of its waits and events taken out."""

from collections import Counter
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from itertools import count
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
from tenure.model_checks.devices.moments import moment_of
from tenure.model_checks.devices.orders import commutes, drawn_orders, every_order
from tenure.model_checks.devices.world import World
from tenure.model_checks.rows.cores import Shorthand
from tenure.model_checks.rows.plans import AT_ONCE, start_of
from tenure.model_checks.rows.scopes import HISTORIES
from tenure.model_checks.rows.scripts import ALL, C, H, History, arrive, ends, last, step
from tests.fake.race_mutants import own

MOMENTS: Final = 25
MOMENTS_OF_A_NIGHT: Final = 4_000
ONE_STEP: Final = History("", (step(arrive("a"), rows="a:0:1", to=[ALL]), last(*ends("a"))))
DEFERRED: Final = History("", (step(arrive("a"), rows="a:0:1", emits=(C,), to=[AT_ONCE]), last(*ends("a"))))
FIRST: Final = step(arrive("a"), rows="a:0:1", emits=(H,))
SMALL: Final = {
    "one-step": ONE_STEP,
    "one-deferred-step": DEFERRED,
    "hit-beside-its-step": History(
        "",
        (FIRST, step(*ends("a"), arrive("b", 1, 0, nodes=(1,)), rows="b:1:2", emits=(H,), to=[ALL]), last(*ends("b"))),
        blocks=2,
    ),
    "hit-of-the-slot-that-its-step-writes": History(
        "",
        (FIRST, step(*ends("a"), arrive("b", 1, 0, nodes=(1,)), rows="b:0:2", emits=(H,), to=[ALL]), last(*ends("b"))),
        blocks=1,
    ),
}
"""Histories of which every order is run."""
LARGER: Final = {
    **ALL_HISTORIES,
    "hit-of-a-slot-taken-anew": History(
        "",
        (
            FIRST,
            step(*ends("a"), arrive("b", 1, 0, nodes=(1,)), rows="b:1:2", emits=(H,), to=[ALL]),
            step(*ends("b"), arrive("x"), rows="x:0:9", emits=(H,)),
            last(*ends("x")),
        ),
        blocks=2,
    ),
}
"""Histories of which every order, or as many as a night has room for, is run at night."""


@pytest.mark.parametrize("name", ALL_HISTORIES)
def test_r02_r18_r20_first_orders_of_a_history_go_well(name: str) -> None:
    """Rows, races, what is left: for each case, defect and wrong reading, with the executor that ships."""
    explored = every_order(ALL_HISTORIES[name], moments_max=MOMENTS)

    assert "" == explored.found, explored.trail
    assert MOMENTS <= explored.moments
    assert explored.ends


@pytest.mark.parametrize("name", SMALL)
def test_r02_r18_r20_every_order_of_a_small_history_goes_well(name: str) -> None:
    """To the end: what is the case in all orders is the case."""
    explored = every_order(SMALL[name])

    assert "" == explored.found, explored.trail
    assert explored.finished
    assert 50 < explored.moments
    assert explored.rows or name == "one-deferred-step"


@pytest.mark.slow
@pytest.mark.parametrize("name", LARGER)
def test_r02_r18_r20_orders_of_a_history_go_well_for_a_night(name: str) -> None:
    """As far as some minutes go."""
    explored = every_order(LARGER[name], moments_max=MOMENTS_OF_A_NIGHT)

    assert "" == explored.found, explored.trail
    assert explored.finished or MOMENTS_OF_A_NIGHT <= explored.moments


@pytest.mark.parametrize("wait", [("CopyPage", "FreezeRows"), ("ScatterRows", "GatherRows")])
def test_r20_race_is_found_by_the_search_of_a_small_history(wait: tuple[str, str]) -> None:
    """A wait is taken out, and the search comes to an order that shows it."""
    with Watched(wait=wait).planted():
        explored = every_order(SMALL["hit-of-the-slot-that-its-step-writes"])

    assert "race" in explored.found
    assert explored.trail
    assert not explored.finished


class TwoLanes:
    """A world in which two lanes go on twice each, and the news comes when both are done."""

    def __init__(self, history: History, **kinds: Any) -> None:
        del history, kinds
        self.left = {"COPY": 2, "POOL": 2}
        self.is_told = False
        self.handed: list[Any] = []
        self.failed: list[str] = []

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


@pytest.mark.parametrize(
    ("sleeps", "merges", "ends", "moments"), [(1, 0, 1, 10), (0, 1, 1, 10), (1, 1, 1, 10), (0, 0, 6, 25)]
)
def test_orders_that_differ_in_lanes_side_by_side_are_run_once(
    sleeps: bool, merges: bool, ends: int, moments: int
) -> None:
    """Two moves of each lane are in six orders, which all come to the same: by sleep sets, by moments, by both."""
    numbers = count()

    def moment_of(world: TwoLanes, _: object) -> bytes:
        return repr((world.left, world.is_told) if merges else next(numbers)).encode()

    with ExitStack() as stack:
        stack.enter_context(patch("tenure.model_checks.devices.orders.World", TwoLanes))
        stack.enter_context(patch("tenure.model_checks.devices.orders.moment_of", moment_of))
        if not sleeps:
            stack.enter_context(patch("tenure.model_checks.devices.orders.commutes", return_value=False))
        explored = every_order(ONE_STEP)

    assert (ends, moments, True) == (explored.ends, explored.moments, explored.finished)


def test_only_moves_of_two_lanes_commute() -> None:
    """The news may come between any two."""
    assert commutes(("lane", "COPY"), ("lane", "POOL"))
    assert not commutes(("lane", "COPY"), ("news",))
    assert not commutes(("lane", "COPY"), ("lane", "COPY"))


def test_sleep_sets_leave_no_moment_out() -> None:
    """Every moment that is reached without them is reached with them."""
    with patch("tenure.model_checks.devices.orders.commutes", return_value=False):
        without = every_order(DEFERRED)
    explored = every_order(DEFERRED)

    assert without.moments == explored.moments
    assert without.moves > explored.moves


# --- Moments ----------------------------------------------------------------------------------------------------------


def saved_world() -> World:
    """A world whose step was saved, and whose device did nothing yet."""
    world = World(ONE_STEP)
    for move in (("engine", "start"), ("engine", "save")):
        world.make(move)
    return world


def moment(world: World) -> bytes:
    """The moment of a world."""
    return moment_of(world, Shorthand())


def test_moments_of_lanes_in_either_order_are_equal() -> None:
    """How a world came to where it is makes no difference."""
    one, other = saved_world(), saved_world()
    for world in (one, other):
        while Lane.COPY not in world.device.ready():
            world.device.advance(Lane.COMPUTE)
    for lane in (Lane.COMPUTE, Lane.COPY):
        one.device.advance(lane)
    for lane in (Lane.COPY, Lane.COMPUTE):
        other.device.advance(lane)

    assert moment(saved_world()) == moment(saved_world())
    assert moment(one) == moment(other)
    assert moment(one) != moment(saved_world())


def test_moments_differ_in_whatever_makes_a_future() -> None:
    """Rows, what was written, what lies behind whom, what is to be done, what the machine knows."""

    def ended(world: World) -> None:
        world.device.settle()

    def asked(world: World) -> None:
        world.device.settle()
        world.pump()

    def changed(world: World) -> None:
        buffer = min(world.device.held, key=lambda each: each.number)
        buffer.array[:] = 7

    def written(world: World) -> None:
        buffer = min(world.device.held, key=lambda each: each.number)
        buffer.is_written[:] = True

    def emptied(world: World) -> None:
        world.device.record(Lane.GATHER)
        world.device.wait(Lane.GATHER, FakeEvent(), is_needed=True)
        world.device.record(Lane.COPY)

    def known(world: World) -> None:
        # The host has seen that everything was done, and told nobody.
        world.device.settle()
        world.device.close(0)
        vars(world.device)["_is_closed"] = False

    def lost(world: World) -> None:
        world.device.lose()

    moments = [moment(saved_world())]
    for change in (ended, asked, changed, written, emptied, known, lost):
        world = saved_world()
        change(world)
        moments.append(moment(world))

    assert len(moments) == len({*moments})


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
