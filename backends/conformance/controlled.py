"""Duties 1 and 3 where the kit decides when operations run: nothing is left to timing."""

from tenure.backends.capabilities import Capability
from tenure.backends.conformance.registry import check
from tenure.backends.conformance.rig import ROWS, CheckFailedError, Held, Rig
from tenure.backends.device import Lane, Memory

MOVES_MAX = 1000


def _ready(rig: Rig) -> list[Lane]:
    assert rig.bench.ready is not None
    return list(rig.bench.ready())


def _advance(rig: Rig, lane: Lane) -> None:
    assert rig.bench.advance is not None
    rig.bench.advance(lane)


def _settle(rig: Rig, *, but: Lane | None = None) -> None:
    """Go on until nobody can, in an order that the seed decides."""
    for _ in range(MOVES_MAX):
        lanes = [each for each in _ready(rig) if each is not but]
        if not lanes:
            return
        _advance(rig, lanes[int(rig.random.integers(len(lanes)))])
    raise CheckFailedError(f"the lanes are not idle after {MOVES_MAX} moves")


def _host(rig: Rig) -> Held:
    values = rig.values()
    buffer = rig.allocate(Memory.PAGEABLE, ROWS, values.shape[1:], "float32")
    live = rig.live(values)[1]
    clone = rig.allocate(Memory.DEVICE, ROWS, values.shape[1:], "float32")
    from_live, held = Held(live, Memory.DEVICE, values, "float32"), Held(buffer, Memory.PAGEABLE, values, "float32")
    cloned = Held(clone, Memory.DEVICE, values, "float32")
    rig.device.copy(Lane.COMPUTE, cloned.rows, from_live.rows)
    rig.device.wait(Lane.COPY, rig.device.record(Lane.COMPUTE), is_needed=True)
    rig.device.copy(Lane.COPY, held.rows, cloned.rows)
    event = rig.device.record(Lane.COPY)
    _settle(rig)
    rig.require(rig.device.query(event), "all lanes are idle, and an event is open")
    return held


@check(
    "D3.event-waits-for-each-operation",
    "an event completes when everything before it in the lane has ended, and not before",
    Capability.CONTROLLED,
)
def event_waits_for_each_operation(rig: Rig) -> None:
    """One move at a time."""
    source = _host(rig)
    targets = [_host(rig) for _ in range(4)]
    for lane in (Lane.POOL, Lane.GATHER):
        for target in targets:
            rig.device.copy(lane, target.rows, source.rows)
        event = rig.device.record(lane)
        for number in range(len(targets)):
            what = f"lane {lane.name} has done {number} of {len(targets)} operations, and its event has completed"
            rig.require(not rig.device.query(event), what)
            rig.require(lane in _ready(rig), f"lane {lane.name} waits for nothing, and cannot go on")
            _advance(rig, lane)
        rig.require(rig.device.query(event), f"lane {lane.name} has done everything, and its event is open")
        for target in targets:
            rig.expect_now(target, source.values, f"lane {lane.name}, behind its event")


@check(
    "D3.waiting-lane-stands-still",
    "a wait makes a lane go no further until an event has ended",
    Capability.CONTROLLED,
)
def waiting_lane_stands_still(rig: Rig) -> None:
    """Whatever else goes on."""
    first, second, third = (_host(rig) for _ in range(3))
    for ahead, behind in ((Lane.POOL, Lane.GATHER), (Lane.GATHER, Lane.POOL)):
        rig.device.copy(ahead, second.rows, first.rows)
        rig.device.wait(behind, rig.device.record(ahead), is_needed=True)
        rig.device.copy(behind, third.rows, second.rows)
        event = rig.device.record(behind)
        what = f"lane {behind.name} goes on, and what it waits for in lane {ahead.name} has not ended"
        rig.require(behind not in _ready(rig), what)
        _settle(rig, but=ahead)
        rig.require(not rig.device.query(event), what)
        _settle(rig)
        rig.require(rig.device.query(event), f"lane {behind.name} does not go on, and what it waits for has ended")
        rig.expect_now(third, first.values, what)


@check(
    "D1.lanes-apart",
    "operations of different lanes take effect in any order that waits allow",
    Capability.CONTROLLED,
)
def lanes_apart(rig: Rig) -> None:
    """Each lane can go first."""
    source = _host(rig)
    for first in (Lane.POOL, Lane.GATHER):
        other = Lane.GATHER if first is Lane.POOL else Lane.POOL
        for lane in (Lane.POOL, Lane.GATHER):
            rig.device.copy(lane, _host_of(rig).rows, source.rows)
        events = {lane: rig.device.record(lane) for lane in (first, other)}
        _settle(rig, but=other)
        rig.require(rig.device.query(events[first]), f"lane {first.name} waits for lane {other.name}, unasked")
        rig.require(not rig.device.query(events[other]), f"lane {other.name} goes on with lane {first.name}, unasked")
        _settle(rig)


def _host_of(rig: Rig) -> Held:
    values = rig.values()
    return Held(rig.allocate(Memory.PAGEABLE, ROWS, values.shape[1:], "float32"), Memory.PAGEABLE, values, "float32")
