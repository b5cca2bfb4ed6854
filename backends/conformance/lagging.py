"""The executor on a device of which one lane lags: what is given back and lent again while commands are under way.

Memory that is given back too early shows only if somebody else writes it before its user has come to an end. So here
the kit decides who goes on, and lets one lane stand still, few operations beyond what somebody waited for, while all
others go as far as they can: each lane in turn, and each at several places. Meanwhile the engine tells a story in which
host memory is wanted again, of the same size, while it is in use:

* every step hits slots that the next step computes in part, before the reads have begun: these rows are set aside, and
  those that are left have gaps, so that they are gathered by way of scratch memory;
* every step computes a slot that the next step computes again: so a deferred write that ends has a gap, and is
  scattered by way of scratch memory;
* every step also hits slots that were computed one or two steps ago: these rows are in the pool, in clones and in host
  rows of writes, and are gathered by way of scratch memory, whatever lags.
"""

from collections import Counter, deque
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import product
from typing import Final

from tenure.backends.capabilities import Capability
from tenure.backends.conformance.controlled import MOVES_MAX
from tenure.backends.conformance.lockstep import Pair, how_far, on_fresh_device
from tenure.backends.conformance.registry import check
from tenure.backends.conformance.rig import CheckFailedError, Rig
from tenure.backends.conformance.row_subject import RowSubject
from tenure.backends.device import Lane
from tenure.core.arrays import integers
from tenure.core.config import RowConfig, RowPolicy
from tenure.core.rows.events import Finished, LifeCycle, RequestId, Slot, Started, WriteLayout
from tenure.core.rows.names import HIDDEN, Output
from tenure.spec.choices import Choices
from tenure.spec.rows.emissions import Mark, Save
from tenure.spec.rows.engine import Plan, PlannedRow, Running
from tenure.spec.rows.reference_values import Emitted

LEADS: Final = range(3)
"""So many operations the lagging lane goes on beyond what was waited for: none, half of two, both."""
LATE: Final = 2
"""So many steps after it a step is materialized, and its requests end."""
GROUPS: Final = 2 * LATE + 1
"""Groups of slots that steps hit in turn; when one is hit again, what was computed since is in the pool."""
GROUP: Final = 6
"""Slots of a group."""
GAPS: Final = (1, 3)
"""Places in the group that a step hits, which the next step computes."""
FILLED: Final = GROUPS * GROUP
"""Slots of the groups, and the first one behind them, which every step computes."""
SLOTS: Final = FILLED + 1 + LATE
STEPS: Final = 2 * GROUPS + LATE
SHAPE: Final = (2,)
"""Of a row of each name, so that memory of one name serves the other."""
POLICY: Final = RowPolicy(deferred=frozenset({"late"}), infer=False)
CONFIG: Final = RowConfig(
    num_blocks=SLOTS, block_size=1, page_rows_max=FILLED, pages=LATE + 2, builder_lag_max=LATE, gathers_max=1
)


class LaggingSubject(RowSubject):
    """A cache on a controlled device of which one lane lags; what is answered is told at once."""

    def __init__(self, rig: Rig, lagging: Lane, lead: int) -> None:
        """`lead` operations beyond what somebody waited for, the lane stands still."""
        self._lagging, self._lead, self._left = lagging, lead, 0
        super().__init__(rig, CONFIG, POLICY, laziness=1)

    def nudge(self) -> None:
        """Let all lanes go as far as they can and may.

        Raises:
            CheckFailedError: they never stand still.
        """
        for _ in range(MOVES_MAX):
            others = [lane for lane in self._ready() if lane is not self._lagging]
            if others:
                self._advance(others[int(self.rig.random.integers(len(others)))])
            elif not self.pump():
                if not self._left or not self._ready():
                    return
                self._left -= 1
                self._advance(self._lagging)
        raise CheckFailedError(f"the lanes are not idle after {MOVES_MAX} moves")

    def move(self) -> None:
        """Somebody waits: if nothing else helps, the lagging lane goes on."""
        self._left = 0
        self.nudge()
        if self._ready():
            self._advance(self._lagging)
        self._left = self._lead

    def _ready(self) -> list[Lane]:
        assert self.rig.bench.ready is not None
        return list(self.rig.bench.ready())

    def _advance(self, lane: Lane) -> None:
        assert self.rig.bench.advance is not None
        self.rig.bench.advance(lane)


class Story:
    """What the engine tells both the oracle and the subject."""

    def __init__(self, rig: Rig, lagging: Lane, lead: int, seen: Counter[str]) -> None:
        """Nothing was told."""
        self._pair = Pair(LaggingSubject(rig, lagging, lead), CONFIG, Choices(()), seen)
        # The requests of the last steps, which have yet to end.
        self._began: deque[tuple[RequestId, ...]] = deque([()] * LATE)
        self._running: dict[RequestId, Running] = {}

    def tell(self) -> None:
        """All of it; everything is compared, and nothing may be left."""
        self._step({"first": (*range(FILLED),)}, {})
        for step in range(2, STEPS + 2):
            fresh, again = f"fresh {step}", f"again {step}"
            first, last = (_group(step - 1)[place] for place in GAPS)
            # What the next step computes, too, is in the middle: it leaves a gap.
            self._step(
                {fresh: (first, FILLED, last), again: (FILLED + 1 + step % LATE,)},
                {fresh: _group(step), again: _group(step - LATE - step % LATE)},
            )
            if step > LATE:
                self._pair.consume(step - LATE)
        self._pair.end()

    def _step(self, computes: Mapping[RequestId, Sequence[Slot]], hits: Mapping[RequestId, Sequence[Slot]]) -> None:
        """Requests begin with what they hit, compute their slots, and are saved; others end."""
        ended = self._began.popleft()
        self._began.append((*computes,))
        changes: list[LifeCycle] = [Finished(each) for each in ended]
        for request, slots in computes.items():
            hit = hits.get(request, ())
            changes.append(Started(request, len(slots), len(hit), ((*hit, *slots),)))
            self._running[request] = Running("", (*hit, *slots), len(hit) + len(slots))
        self._running = {request: run for request, run in self._running.items() if request not in ended}
        rows = [PlannedRow(request, f"slot {slot}", slot) for request, slots in computes.items() for slot in slots]
        plan = Plan(changes, rows, {}, self._running)
        self._pair.start_with(plan)
        self._pair.save_as(plan, self._save(plan))

    def _save(self, plan: Plan) -> Save:
        """A row of each name for every token."""
        step = self._pair.oracle.pending
        assert step is not None
        counts = plan.batch
        slots = integers([row.slot for row in plan.rows])
        outputs = [
            Emitted(
                Output(name, (len(plan.rows), *SHAPE), "float32"), [Mark(name, step, row.chain) for row in plan.rows]
            )
            for name in (HIDDEN, *POLICY.deferred)
        ]
        return Save(tuple(outputs), WriteLayout((*counts,), integers([*counts.values()]), slots))


def _group(number: int) -> Sequence[Slot]:
    """The slots of a group, the last one first, so that they are no run of rows."""
    first = number % GROUPS * GROUP
    return range(first + GROUP - 1, first - 1, -1)


@check(
    "L5.lagging-lanes",
    "R20: memory is lent again when the commands that it was lent to have ended, however far a lane lags",
    Capability.CONTROLLED,
)
def lagging_lanes(rig: Rig) -> str:
    """Each lane in turn."""
    seen: Counter[str] = Counter()

    def tell(other: Rig, lagging: Lane, lead: int) -> None:
        seen["histories"] += 1
        Story(other, lagging, lead, seen).tell()

    for number, (lagging, lead) in enumerate(product(Lane, LEADS)):
        where = f"where the lane {lagging.name} lags, with a lead of {lead} on what is waited for"
        on_fresh_device(rig, number, where, partial(tell, lagging=lagging, lead=lead))
    return how_far(seen, ["rows", "hits", "saves", "set aside"])
