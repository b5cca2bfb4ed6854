"""Duties 1 to 4: lanes, the launch, events, failure."""

from functools import partial
from itertools import product
from typing import Final

import numpy as np

from tenure.backends.capabilities import Capability
from tenure.backends.conformance.registry import check
from tenure.backends.conformance.rig import (
    BIG_ROWS,
    BIG_SHAPE,
    LANES_BEHIND,
    ROWS,
    CheckFailedError,
    Held,
    OutOfTimeError,
    Rig,
    index_of,
    source_of,
)
from tenure.backends.device import Buffer, Event, Lane, Memory, Rows
from tenure.core.errors import OperationFailedError

LOAD: Final = 6
"""Large operations that keep a lane busy."""
ROUNDS: Final = 3


def load(rig: Rig, lane: Lane) -> tuple[list[Held], list[Held]]:
    """Sources and targets of operations that take their time; targets hold other values."""
    sources = [rig.put(source_of(lane), rig.values(BIG_ROWS, BIG_SHAPE)) for _ in range(2)]
    targets = [rig.put(Memory.PAGEABLE, rig.values(BIG_ROWS, BIG_SHAPE)) for _ in range(LOAD)]
    return sources, targets


def busy(rig: Rig, lane: Lane, sources: list[Held], targets: list[Held]) -> None:
    """Ask a lane for as many large copies as there are targets."""
    for number, target in enumerate(targets):
        rig.device.copy(lane, target.rows, sources[number % 2].rows)


def check_busy(rig: Rig, sources: list[Held], targets: list[Held], what: str) -> None:
    """Hold all targets of `busy` against their sources, as they are at this moment."""
    found = [rig.look(each) for each in reversed(targets)]
    for number, each in enumerate(reversed(found)):
        rig.same(sources[number % 2].values, each, what)


@check("D1.lanes-in-order", "operations of one lane take effect in the order in which they were asked for")
def lanes_in_order(rig: Rig) -> None:
    """Every operation writes over rows that the one before it wrote."""
    device = rig.device
    for lane in LANES_BEHIND:
        sources = [rig.put(source_of(lane), rig.values()) for _ in range(3)]
        target = rig.put(Memory.PAGEABLE, rig.values())
        expected = target.values.copy()
        for number in range(9):
            source = sources[number % 3]
            index = rig.random.permutation(ROWS)
            device.copy(lane, target.rows, source.rows)
            device.gather_rows(lane, Rows(target.buffer, 0, 8), source.buffer, index_of(index[:8].tolist()))
            expected[:], expected[:8] = source.values, source.values[index[:8]]
        rig.end(lane)
        rig.expect(target, expected, f"lane {lane.name}, copies and gathers over each other")


@check("D1.lane-reads-what-it-wrote", "operations of one lane take effect in the order in which they were asked for")
def lane_reads_what_it_wrote(rig: Rig) -> None:
    """Every operation of a chain reads what the one before it wrote."""
    device = rig.device
    for lane in (Lane.POOL, Lane.GATHER):
        first, second, third = (rig.put(Memory.PAGEABLE, rig.values()) for _ in range(3))
        held = [each.values.copy() for each in (first, second, third)]
        for _ in range(6):
            index = rig.random.permutation(ROWS)
            device.copy(lane, second.rows, first.rows)
            device.gather_rows(lane, third.rows, second.buffer, index_of(index.tolist()))
            device.scatter_rows(lane, first.buffer, index_of([5, 2]), Rows(third.buffer, 1, 3))
            held[1] = held[0].copy()
            held[2] = held[1][index]
            held[0][[5, 2]] = held[2][1:3]
        rig.end(lane)
        for each, expected in zip((first, second, third), held, strict=True):
            rig.expect(each, expected, f"lane {lane.name}, a chain of copy, gather and scatter")


@check("D1.compute-in-order", "operations of one lane take effect in the order in which they were asked for")
def compute_in_order(rig: Rig) -> None:
    """The last of several copies of live outputs counts."""
    values = [rig.values() for _ in range(4)]
    target = rig.put(Memory.DEVICE, rig.values())
    for each in values:
        rig.device.copy(Lane.COMPUTE, target.rows, Rows(rig.live(each)[1], 0, ROWS))
    rig.end(Lane.COMPUTE)
    rig.expect(target, values[-1], "four copies of live outputs onto one buffer")


@check(
    "D2.compute-reads-at-the-call",
    "lane COMPUTE reads live outputs as they are at the call, ahead of what the thread asks later",
)
def compute_reads_at_the_call(rig: Rig) -> None:
    """A buffer that every forward pass overwrites, copied after each."""
    tensor, live = rig.live(rig.values(BIG_ROWS, BIG_SHAPE))
    kept: list[Held] = []
    for _ in range(LOAD):
        values = rig.values(BIG_ROWS, BIG_SHAPE)
        target = Held(rig.allocate(Memory.DEVICE, BIG_ROWS, BIG_SHAPE, "float32"), Memory.DEVICE, values, "float32")
        rig.bench.overwrite(tensor, values)
        rig.device.copy(Lane.COMPUTE, target.rows, Rows(live, 0, BIG_ROWS))
        kept.append(target)
    rig.bench.overwrite(tensor, np.zeros_like(rig.values(BIG_ROWS, BIG_SHAPE)))
    rig.end(Lane.COMPUTE)
    for each in kept:
        rig.expect(each, each.values, "a copy of a live output that was overwritten right after the call")


@check("D2.to-host-reads-at-the-call", "lane COMPUTE reads live outputs as they are at the call")
def to_host_reads_at_the_call(rig: Rig) -> None:
    """Leftovers, of shapes that no row has."""
    for shape in ((7, 3), (5,), (2, 0)):
        values = rig.values(*shape[:1], shape[1:])
        tensor = rig.bench.make(values, "float32")
        copy = rig.device.to_host(Lane.COMPUTE, tensor)
        rig.bench.overwrite(tensor, np.zeros_like(values))
        rig.end(Lane.COMPUTE)
        rig.same(values, np.array(rig.bench.read(copy)), f"to_host of a tensor of shape {list(shape)}")


@check("D3.event-after-everything-before", "an event completes when everything before it in the lane has ended")
def event_after_everything_before(rig: Rig) -> None:
    """Look at the targets as soon as the event has completed."""
    for lane in LANES_BEHIND:
        sources, targets = load(rig, lane)
        for _ in range(LOAD):
            busy(rig, lane, sources[::-1], targets)
        busy(rig, lane, sources, targets)
        event = rig.device.record(lane)
        rig.eventually(partial(rig.device.query, event), f"an event of lane {lane.name} completes")
        check_busy(rig, sources, targets, f"lane {lane.name}, right behind its event")


@check("D3.event-completes-once", "an event that has completed stays so, and every later event of the lane completes")
def event_completes_once(rig: Rig) -> None:
    """Two events in a row, an event of an idle lane, and events asked for in another order."""
    device = rig.device
    source = rig.put(Memory.DEVICE, rig.values())
    for lane in Lane:
        if lane is not Lane.COMPUTE:
            device.copy(
                lane,
                rig.put(Memory.PAGEABLE, rig.values()).rows,
                source.rows if lane is Lane.COPY else rig.put(Memory.PAGEABLE, rig.values()).rows,
            )
        events = [device.record(lane) for _ in range(3)]
        for event in reversed(events):
            rig.await_event(event)
        for event in events:
            rig.require(device.query(event), f"an event of lane {lane.name} has completed, and then it has not")


def _wait_pairs() -> tuple[tuple[Lane, Lane], ...]:
    return (
        (Lane.COPY, Lane.POOL),
        (Lane.COPY, Lane.GATHER),
        (Lane.POOL, Lane.GATHER),
        (Lane.GATHER, Lane.POOL),
    )


@check("D3.wait-orders-lanes", "a wait makes a lane go no further until an event has ended")
def wait_orders_lanes(rig: Rig) -> None:
    """The second lane reads what the first wrote last, and overwrites what it read first, needed or not."""
    device = rig.device
    for number, (first, second) in product(range(ROUNDS), _wait_pairs()):
        is_needed = number % 2 == 0
        sources, targets = load(rig, first)
        out = rig.put(Memory.PAGEABLE, rig.values(BIG_ROWS, BIG_SHAPE))
        again = rig.put(Memory.PAGEABLE, rig.values(BIG_ROWS, BIG_SHAPE))
        busy(rig, first, sources, targets)
        event = device.record(first)
        device.wait(second, event, is_needed=is_needed)
        device.copy(second, out.rows, targets[-1].rows)
        device.copy(second, targets[-1].rows, again.rows)
        rig.end(second)
        what = (
            f"lane {second.name} waits for an event of lane {first.name} {'with' if is_needed else 'without'} is_needed"
        )
        rig.expect(out, sources[(LOAD - 1) % 2].values, f"{what}, and reads what that wrote")
        rig.expect(targets[-1], again.values, f"{what}, and writes over it")


@check("D3.every-wait-holds", "of several waits in a row each holds, in whatever order their events complete")
def every_wait_holds(rig: Rig) -> None:
    """One of two events comes late; the lane that waits for both reads what lies before it."""
    device = rig.device
    both = ((Lane.GATHER, (Lane.COPY, Lane.POOL)), (Lane.POOL, (Lane.COPY, Lane.GATHER)))
    for (second, firsts), late, is_needed in product(both, (0, 1), (True, False)):
        sources, targets = load(rig, firsts[late])
        out = rig.put(Memory.PAGEABLE, rig.values(BIG_ROWS, BIG_SHAPE))
        busy(rig, firsts[late], sources, targets)
        for event in [device.record(first) for first in firsts]:
            device.wait(second, event, is_needed=is_needed)
        device.copy(second, out.rows, targets[-1].rows)
        rig.end(second)
        what = f"lane {second.name} waits for lanes {' and '.join(each.name for each in firsts)}"
        rig.expect(out, sources[(LOAD - 1) % 2].values, f"{what}, of which {firsts[late].name} comes late")


@check("D3.wait-orders-the-forward-pass", "a wait makes a lane go no further until an event has ended")
def wait_orders_the_forward_pass(rig: Rig) -> None:
    """The lane COPY takes a clone behind its freeze, and the next freeze goes onto it behind that copy."""
    device = rig.device
    clone = rig.put(Memory.DEVICE, rig.values())
    freezes: list[tuple[Buffer, Held]] = []
    for _ in range(LOAD):
        values = rig.values()
        page = rig.allocate(Memory.PAGE_LOCKED, ROWS, values.shape[1:], "float32")
        freezes.append((rig.live(values)[1], Held(page, Memory.PAGE_LOCKED, values, "float32")))
    # The lane COPY is behind from the first freeze on.
    busy(rig, Lane.COPY, *load(rig, Lane.COPY))
    for live, page in freezes:
        device.copy(Lane.COMPUTE, clone.rows, Rows(live, 0, ROWS))
        device.wait(Lane.COPY, device.record(Lane.COMPUTE), is_needed=True)
        device.copy(Lane.COPY, page.rows, clone.rows)
        device.wait(Lane.COMPUTE, device.record(Lane.COPY), is_needed=True)
    rig.end(Lane.COPY)
    for _, page in freezes:
        rig.expect(page, page.values, "a clone that is frozen onto and copied from by turns")


# --- Failure --------------------------------------------------------------------------------------------------------


def ask_to_fail(rig: Rig, lane: Lane) -> None:
    """An operation that fails."""
    if rig.bench.fail is None:
        raise CheckFailedError("faults are claimed, and the bench has no `fail`")
    rig.bench.fail(lane)


def must_fail(rig: Rig, event: Event, what: str) -> None:
    """Fail unless an event fails, whoever asks and however often."""
    rig.refuses(lambda: rig.await_event(event), f"{what}: `synchronize` does not raise")
    rig.refuses(lambda: rig.device.query(event), f"{what}: `query` does not raise")
    rig.refuses(lambda: rig.device.query(event), f"{what}: `query` does not raise when it is asked again")


def failed_event(rig: Rig, lane: Lane, *, is_over: bool) -> Event:
    """An event behind an operation that fails; where `is_over`, it has failed when this returns."""
    ask_to_fail(rig, lane)
    event = rig.device.record(lane)
    if is_over:
        rig.refuses(lambda: rig.await_event(event), f"an event behind a failed operation of lane {lane.name} is well")
    return event


@check(
    "D4.failure-passes-over-to-record",
    "behind a failed operation the lane passes over all up to its next record, whose event fails; then it goes on",
    Capability.FAULTS,
)
def failure_passes_over_to_record(rig: Rig) -> None:
    """What stands behind the failure is not done; what stands behind the event is."""
    for lane in LANES_BEHIND:
        source = rig.put(source_of(lane), rig.values())
        target = rig.put(Memory.PAGEABLE, rig.values())
        ask_to_fail(rig, lane)
        rig.device.copy(lane, target.rows, source.rows)
        event = rig.device.record(lane)
        must_fail(rig, event, f"the event behind a failed operation of lane {lane.name}")
        rig.expect(target, target.values, f"lane {lane.name} does what stands behind a failure")
        rig.device.copy(lane, target.rows, source.rows)
        rig.end(lane)
        rig.expect(target, source.values, f"lane {lane.name} goes on behind the event of a failure")


@check(
    "D4.failure-spares-other-events",
    "only the event of the next record fails",
    Capability.FAULTS,
)
def failure_spares_other_events(rig: Rig) -> None:
    """An event before, one after, and one of another lane."""
    for lane in LANES_BEHIND:
        before = rig.device.record(lane)
        ask_to_fail(rig, lane)
        failed = rig.device.record(lane)
        after = rig.device.record(lane)
        must_fail(rig, failed, f"the event behind a failed operation of lane {lane.name}")
        rig.await_event(before)
        rig.await_event(after)
        for other in LANES_BEHIND:
            rig.end(other)


@check(
    "D4.wait-passes-failure-on",
    "a lane that waits with is_needed for a failed event passes over all up to its next record, whose event fails",
    Capability.FAULTS,
)
def wait_passes_failure_on(rig: Rig) -> None:
    """Failure goes along the waits that need what failed."""
    for (first, second), is_over in product(_wait_pairs(), (False, True)):
        source, target = rig.put(Memory.PAGEABLE, rig.values()), rig.put(Memory.PAGEABLE, rig.values())
        rig.device.wait(second, failed_event(rig, first, is_over=is_over), is_needed=True)
        rig.device.copy(second, target.rows, source.rows)
        event = rig.device.record(second)
        what = f"lane {second.name} needs a failed event of lane {first.name}{', failed by then' if is_over else ''}"
        must_fail(rig, event, what)
        rig.expect(target, target.values, what)


@check(
    "D4.wait-unneeded-goes-on",
    "a wait without is_needed makes the lane go on when the event has ended, also badly",
    Capability.FAULTS,
)
def wait_unneeded_goes_on(rig: Rig) -> None:
    """A scatter behind a gather that failed is done."""
    for (first, second), is_over in product(_wait_pairs(), (False, True)):
        source, target = rig.put(Memory.PAGEABLE, rig.values()), rig.put(Memory.PAGEABLE, rig.values())
        rig.device.wait(second, failed_event(rig, first, is_over=is_over), is_needed=False)
        rig.device.copy(second, target.rows, source.rows)
        what = f"lane {second.name} is ordered behind a failed event of lane {first.name}, and does not need it"
        try:
            rig.end(second)
        except OperationFailedError as error:
            raise CheckFailedError(f"{what}: {error}") from None
        rig.expect(target, source.values, what)


# --- By capability --------------------------------------------------------------------------------------------------


@check("D2.work-goes-on-behind-the-call", "operations may go on behind the call that asks for them", Capability.ASYNC)
def work_goes_on_behind_the_call(rig: Rig) -> None:
    """At least once an event has not completed when it was recorded."""
    sources, targets = load(rig, Lane.COPY)
    for _ in range(20):
        busy(rig, Lane.COPY, sources, targets)
        event = rig.device.record(Lane.COPY)
        was_over = rig.device.query(event)
        rig.await_event(event)
        if not was_over:
            return
    raise OutOfTimeError("every event had completed by the time it was asked for; the load may be too small")


@check(
    "D2.unified-compute-is-over",
    "operations of the lane COMPUTE of a unified device are over at the call",
    Capability.UNIFIED,
)
def unified_compute_is_over(rig: Rig) -> None:
    """Right onto a page, which the host reads at once."""
    rig.require(rig.device.is_unified(), "unified memory is claimed, and `is_unified` says no")
    for memory in (Memory.PAGE_LOCKED, Memory.PAGEABLE):
        values = rig.values(BIG_ROWS, BIG_SHAPE)
        page = rig.allocate(memory, BIG_ROWS, BIG_SHAPE, "float32")
        rig.device.copy(Lane.COMPUTE, Rows(page, 0, BIG_ROWS), Rows(rig.live(values)[1], 0, BIG_ROWS))
        rig.require(rig.device.query(rig.device.record(Lane.COMPUTE)), "an event of lane COMPUTE is open at the call")
        rig.same(values, np.array(rig.bench.read(rig.device.cut(Rows(page, 0, BIG_ROWS)))), "a page, right behind")
