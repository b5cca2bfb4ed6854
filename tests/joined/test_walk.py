"""Histories of a joined cache that nobody wrote: every rule after every event, every row against its chain."""

import os
import random
from collections import Counter
from collections.abc import Callable
from typing import Final

from hypothesis import given
from hypothesis import strategies as st

from tenure.core.blocks.values import AllocationRequested, LeaseFinished, LeasePreempted
from tenure.core.errors import TenureError
from tenure.core.rows.answers import Waiting
from tenure.core.rows.commands import CopyDeferred, CopyPage, GatherRows, ScatterRows, ScheduleGather
from tenure.core.rows.events import ResetRequested, StepDiscarded
from tenure.core.rows.view import StepPhase
from tenure.spec.choices import Choices
from tests.joined.site import Site

CHAINS = ((1, 1, 1, 1, 1, 1), (1, 1, 2, 2, 2, 2), (1, 1, 2, 2, 3, 3))
GROUPS = (None, "red")
COLLIDING = 77
FEW: Final = range(11, 30)
"""Such that every mechanism is met."""
SEEDS: Final = {"deep": range(1000), "mutation": range(11, 15)}.get(os.environ.get("HYPOTHESIS_PROFILE", ""), FEW)
"""`python -m tenure.model_checks.walks` walks by the million."""
MECHANISMS = (
    "rows_preserved",
    "reads_confirmed",
    "waits_for_in_transit",
    "flushes",
    "resumed_with_hit",
)
REFUSALS = ("IsolationError", "RequestInStepError", "RowsOwedError", "ScheduledBeyondError", "ScheduledTwiceError")
"""What must have happened in some history."""


class Walk:
    """Makes calls that small numbers choose; refused ones are part of it."""

    def __init__(self, choices: Choices, visibility: str, num_blocks: int, budget: int) -> None:
        self.site = Site(visibility, num_blocks=num_blocks, budget=budget)
        self.choices = choices
        self.seen: Counter[str] = Counter()
        self.next_request = 0
        self.reads_are_late = False

    def request(self, fits: Callable[[int], object] = bool) -> int | None:
        """An open request that fits, rarely any."""
        requests: list[int] = list(self.site.view.blocks.leases)  # type: ignore[arg-type]
        fitting = [request for request in requests if fits(request)] if self.choices.pick(range(8)) else requests
        return self.choices.pick(fitting) if fitting else None

    def left(self, request: int) -> int:
        """Tokens of a request that are not computed."""
        return len(self.site.tokens[request]) - self.site.view.tracks[request].computed

    def open(self) -> None:
        """A request of one of few chains, so that prefixes are shared; rarely under a colliding hash."""
        if len(self.site.view.blocks.leases) >= 4:
            return
        chain = self.choices.pick(CHAINS)
        length = self.choices.pick((3, 4, 5, 6, 1, 2))
        # Within a group a hash is one chain's; in another it may be anybody's.
        first = COLLIDING + 10 * len(str(chain).partition("2")[0])
        collides = self.choices.pick(range(3)) == 2
        hashes = [first + place for place in range(length // 2)] if collides else None
        self.next_request += 1
        self.site.open(self.next_request, chain[:length], self.choices.pick(GROUPS), hashes=hashes)

    def allocate(self) -> None:
        """Capacity, with as much sharing as may be; rarely with more."""
        leases = self.site.view.blocks.leases
        request = self.request(lambda each: leases[each].allocated_tokens < len(self.site.tokens[each]))
        if request is None:
            return
        if self.choices.pick(range(4)) == 3:
            self.site.tell(AllocationRequested(request, len(self.site.tokens[request]), self.choices.pick((1, 2))))
        else:
            self.site.allocate(request)

    def schedule(self) -> None:
        """Some of the tokens that are left."""
        leases, batch = self.site.view.blocks.leases, [each.request for each in self.site.view.batch]
        request = self.request(lambda each: leases[each].copies and each not in batch and self.left(each))
        if request is not None:
            left = self.left(request)
            self.site.schedule(request, self.choices.pick([left, left, left, 1, left + 1]))

    def generate(self) -> None:
        """A token at the end of what is computed."""
        request = self.request(lambda each: not self.left(each))
        if request is not None and not self.left(request):
            self.site.generate(request, self.choices.pick((1, 2, 3)))

    def save(self) -> None:
        """Ask for the save; publish it if it is reserved."""
        pending = self.site.view.rows.pending
        if pending is None:
            return
        if self.site.view.rows.steps[pending].phase is not StepPhase.RESERVED:
            self.seen["wait"] += isinstance(self.site.request_save(), Waiting)
        elif self.choices.pick(range(6)) != 5 or not self.cancel():
            self.site.publish()

    def cancel(self) -> bool:
        """The freeze of the reserved save fails, if it has not run already."""
        freeze = self.site.freeze()
        if freeze not in self.site.device.can_fail:
            return False
        self.site.device.fail(freeze)
        self.site.tell(self.site.device.tell(freeze))
        return True

    def consume(self) -> None:
        """Materialize or discard a saved step."""
        steps = [n for n, step in self.site.view.rows.steps.items() if step.phase is StepPhase.SAVED]
        if not steps:
            return
        step = self.choices.pick(steps)
        if self.choices.pick(range(5)) == 4:
            self.site.tell(StepDiscarded(step))
            return
        batch = [request for request, _ in self.site.view.rows.steps[step].batch]
        asked = batch if self.choices.pick(range(3)) else batch[:1]
        if self.site.materialize(step, *asked, wait=False):
            self.seen["materialized"] += 1
            self.seen["hit"] += any(self.site.expected[step][each][2] == 0 for each in asked)

    def release(self) -> None:
        """A request ends, or is preempted."""
        request = self.request(lambda each: not self.left(each) or not self.choices.pick(range(12)))
        if request is not None:
            ends: list[LeaseFinished | LeasePreempted] = [LeaseFinished(request), LeasePreempted(request)]
            self.site.tell(self.choices.often(ends[:1], ends[1]))

    def fail(self) -> None:
        """Rarely, a copy or a scatter fails, and after a while everything is reset."""
        site = self.site
        if site.view.rows.failure is not None or self.choices.pick(range(60)) == 59:
            site.tell(ResetRequested())
            return
        if self.choices.pick(range(40)) == 39:
            kinds = (CopyPage, CopyDeferred, ScatterRows)
            for number in site.device.can_fail:
                if isinstance(site.commands[number], kinds):
                    site.device.fail(number)
                    return

    def run(self, moves: int) -> None:
        """The device does some of what it may."""
        late = (ScheduleGather, GatherRows) if self.reads_are_late else ()
        for _ in range(moves):
            self.site.run_one(self.choices.pick(range(8)), passing_over=late)

    def change_mood(self) -> None:
        """For a while no read is begun, or again they are."""
        self.reads_are_late = not self.reads_are_late

    def drop(self) -> None:
        """Rarely, the started step is given up."""
        if self.choices.pick(range(12)) == 11:
            self.site.drop()

    def useful(self) -> list[Callable[[], object]]:
        """The calls that can do something now, the likelier the more often."""
        view = self.site.view
        leases = view.blocks.leases
        requests: list[int] = list(leases)  # type: ignore[arg-type]
        scheduled = [each.request for each in view.batch]
        saved = [step for step in view.rows.steps.values() if step.phase is StepPhase.SAVED]
        wanting = [each for each in requests if leases[each].allocated_tokens < len(self.site.tokens[each])]
        ready = [each for each in requests if leases[each].copies and self.left(each) and each not in scheduled]
        return [
            *[lambda: self.run(self.choices.pick((1, 2, 4, 8)))] * 3,
            *[self.open] * (len(requests) < 4),
            *[self.allocate] * (2 * bool(wanting)),
            *[self.schedule] * (2 * bool(ready)),
            *[self.site.start] * (2 * bool(view.batch or view.ended) * (view.rows.pending is None)),
            *[self.save] * (4 * (view.rows.pending is not None)),
            *[self.consume] * len(saved),
            *[self.generate] * any(not self.left(each) for each in requests),
            *[self.release] * bool(requests),
        ]

    def act(self) -> None:
        """One call, or something that the device does; rarely one that makes no sense now."""
        rare: list[Callable[[], object]] = [
            self.change_mood,
            self.fail,
            self.drop,
            self.allocate,
            self.schedule,
            self.save,
            self.consume,
            self.site.start,
            self.generate,
        ]
        try:
            self.choices.pick(rare if self.choices.pick(range(9)) == 8 else self.useful())()
        except TenureError as refusal:
            self.seen[type(refusal).__name__] += 1
        self.seen["events"] += 1

    def settle(self) -> None:
        """Let everything end: no row, page or charge is left (R18)."""
        site = self.site
        if site.view.rows.pending is not None:
            reserved = site.view.rows.steps[site.view.rows.pending].phase is StepPhase.RESERVED
            if not reserved or self.cancel():
                site.drop()
            elif site.view.rows.failure is None:
                site.publish()
        site.drain()
        for step in list(site.view.rows.steps):
            site.tell(StepDiscarded(step))
        site.tell(ResetRequested())
        site.drain()
        assert not site.view.rows.steps or site.view.rows.pending is not None
        assert not site.view.rows.reads


def walk(numbers: bytes | list[int], visibility: str, num_blocks: int = 6, budget: int = 10**6) -> Counter[str]:
    """A history out of numbers."""
    choices = Choices(numbers)
    history = Walk(choices, visibility, num_blocks, budget)
    while not choices.is_spent:
        history.act()
    history.settle()
    counters = history.site.view.rows.counters._asdict()
    return history.seen + Counter({name: counters[name] for name in MECHANISMS})


def test_x01_to_x05_hold_over_long_histories() -> None:
    """Fixed seeds, so that a failure is the same tomorrow; a history that meets nothing shows nothing."""
    seen = Counter[str]()
    for seed in SEEDS:
        numbers = random.Random(seed).choices(range(256), k=2000)  # noqa: S311
        visibility = ("computed", "scheduled")[seed % 2]
        seen += walk(numbers, visibility, num_blocks=3 + seed // 2 % 5, budget=(10**6, 60)[seed // 10 % 2])

    assert seen["materialized"] > 5 * len(SEEDS)
    assert seen["hit"] > 3 * len(SEEDS)
    missing = [name for name in (*MECHANISMS, *REFUSALS) if not seen[name]]
    assert not missing or len(SEEDS) < len(FEW)


@given(numbers=st.binary(max_size=300), visibility=st.sampled_from(["computed", "scheduled"]))
def test_x01_to_x05_hold_over_histories_that_shrink(numbers: bytes, visibility: str) -> None:
    """The same, where a failure becomes a short one."""
    walk(numbers, visibility)
