"""Histories of a cache that is told events of the row machine: whole lives, in which everybody is slow now and then.

The traces go through small scopes, in which a scatter waits for two gathers at most, and buffers are given back one by
one. Here a fixed story has several of each at a time; then an engine, builders and a device of larger configurations
decide what comes next, as the machine answers. The cache is told the same, and compared after each event.
"""

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

from tenure.backends.conformance.cache_registry import CacheCapability, CacheRig, cache_check
from tenure.backends.conformance.histories import numbers, require_met
from tenure.backends.conformance.machine_checks import Pair
from tenure.core.arrays import integers
from tenure.core.config import RowConfig, RowPolicy
from tenure.core.errors import TenureError
from tenure.core.rows.answers import RowAnswer
from tenure.core.rows.commands import GatherRows, ReleaseBuffers, RowCommand, ScatterRows, ScheduleGather
from tenure.core.rows.events import Finished, LifeCycle, RequestId, RowEvent, Slot, Started, WriteLayout
from tenure.core.rows.machine import transition
from tenure.core.rows.names import HIDDEN, Output
from tenure.core.rows.state import RowState
from tenure.core.rows.view import RowView
from tenure.spec.choices import Choices
from tenure.spec.rows import calls
from tenure.spec.rows.emissions import POLICIES, Mark, Save
from tenure.spec.rows.engine import IDENTITIES, Plan, PlannedRow, Running
from tenure.spec.rows.histories import MOODS, Mood, next_call
from tenure.spec.rows.lockstep import Lockstep
from tenure.spec.rows.reference_values import Emitted

HISTORIES: Final = 8
CALLS: Final = 400
SPELL: Final = 40
"""So many calls long somebody is slow."""
NUMBERS: Final = 40
"""Numbers that one call uses up at most, about."""
SLOW_READS: Final = Mood(instead=((calls.advance, calls.advance_copies),))
"""Reads that have begun do not end."""
FENCES: Final = "scatters behind three"
CLONES: Final = "releases of two clones"
WRITES: Final = "releases of two writes"
READS: Final = "releases of two reads"
WIDTHS: Final = (2, 3, 5)
"""So many writes and reads a story has at a time."""
STORY_POLICY: Final = RowPolicy(deferred=frozenset({"late"}), infer=False)
MUST_SEE: Final = (FENCES, CLONES, WRITES, READS)


class Beside:
    """The row machine as what a history is told to; whatever it is told, the cache is told first."""

    def __init__(self, pair: Pair, where: str, seen: Counter[str]) -> None:
        """`where` it stands, `seen` what came of it."""
        self._pair, self._where, self._seen = pair, where, seen
        self._told = 0

    def initial(self, config: RowConfig) -> RowState:
        """An empty machine."""
        return RowState.initial(config)

    def transition(self, state: RowState, event: RowEvent) -> tuple[RowState, RowAnswer, tuple[RowCommand, ...]]:
        """Carry an event out.

        Raises:
            CheckFailedError: the cache says something else.
            TenureError: it is refused, by both.
        """
        self._told += 1
        self._seen["events"] += 1
        self._pair.tell(event, f"{self._where}, event {self._told}")
        try:
            found = transition(state, event)
        except TenureError:
            self._seen["refused"] += 1
            raise
        self._count(found.commands)
        return found.state, found.answer, found.commands

    def view(self, state: RowState) -> RowView:
        """A state as plain data."""
        return state.view()

    def _count(self, commands: tuple[RowCommand, ...]) -> None:
        for each in commands:
            match each:
                case ScatterRows():
                    self._seen[FENCES] += len(each.after) > 2
                case ReleaseBuffers():
                    for what, freed in ((CLONES, each.clones), (WRITES, each.writes), (READS, each.reads)):
                        self._seen[what] += len(freed) > 1
                case _:
                    pass


class Story:
    """Several reads at a time of what several writes made, which one more write overtakes."""

    def __init__(self, driver: Lockstep[RowState]) -> None:
        """Nothing was told."""
        self._driver = driver
        self._running: dict[RequestId, Running] = {}

    def tell(self, width: int) -> None:
        """So many writes, and so many reads; up to a quiet end."""
        both = range(width)
        for slot in both:
            self._step({f"writes {slot}": (slot,)}, ())
            self._go_on()
        # The deferred writes end with their requests, and begin with that.
        self._step({f"reads {place}": (width + place,) for place in both}, both, ended=(*self._running,))
        self._go_on(GatherRows)
        self._step({"overtakes": (*both,)}, (), ended=(*self._running,))
        self._go_on(GatherRows)
        self._driver.come_to_rest()

    def _step(
        self, computes: Mapping[RequestId, Sequence[Slot]], hit: Sequence[Slot], ended: Sequence[RequestId] = ()
    ) -> None:
        """Requests begin with what they hit, and are saved; others end."""
        changes: list[LifeCycle] = [Finished(each) for each in ended]
        self._running = {each: run for each, run in self._running.items() if each not in ended}
        self._running |= {each: Running("", (*hit, *own), len(hit) + len(own)) for each, own in computes.items()}
        changes += [Started(each, len(own), len(hit), ((*hit, *own),)) for each, own in computes.items()]
        rows = [PlannedRow(each, f"slot {slot}", slot) for each, own in computes.items() for slot in own]
        plan = Plan(changes, rows, {}, self._running)
        self._driver.start(changes, plan)
        # What is on the host is read from there.
        self._go_on(ScheduleGather, GatherRows, ScatterRows)
        self._go_on(GatherRows, ScatterRows)
        outputs = [
            Emitted(Output(name, (len(rows), 1), "int32"), [Mark(name, 0, row.chain) for row in rows])
            for name in (HIDDEN, *STORY_POLICY.deferred)
        ]
        counts = integers([len(own) for own in computes.values()])
        self._driver.request_save(
            Save(tuple(outputs), WriteLayout((*computes,), counts, integers([row.slot for row in rows])))
        )

    def _go_on(self, *late: type[RowCommand]) -> None:
        """All that is commanded is carried out and told, but for what comes late."""
        driver, device = self._driver, self._driver.world.device
        while True:
            waits = {each.command for each in device.open if isinstance(each, late)}
            if due := [each for each in device.due if each not in waits]:
                driver.answer(due[0])
            elif begins := [each for each in device.can_begin if each not in waits]:
                device.begin(begins[0])
            elif ends := [each for each in device.can_end if each not in waits]:
                device.end(ends[0])
            else:
                return


def _config(choices: Choices) -> RowConfig:
    return RowConfig(
        num_blocks=choices.pick([3, 6, 4]),
        block_size=choices.pick([1, 2]),
        page_rows_max=18,
        pages=choices.pick([3, 4]),
        budget_bytes=choices.pick([10**6, 200, 60]),
        copy_chunk_bytes=4096,
        gathers_max=choices.pick([64, 4]),
    )


@cache_check("M6.histories", "R17: the same in whole lives of larger caches", CacheCapability.MACHINE)
def whole_lives(rig: CacheRig) -> str:
    """Stories, and drawn lives until one release has named several of each kind, and three gathers fenced a scatter."""
    seen: Counter[str] = Counter()
    with rig.machine() as subject:
        for width in WIDTHS:
            config = RowConfig(
                num_blocks=2 * width, block_size=1, page_rows_max=width, pages=width + 2, builder_lag_max=width + 1
            )
            beside = Beside(Pair(subject, config, STORY_POLICY), f"{width} at a time", seen)
            Story(Lockstep(beside, config, STORY_POLICY)).tell(width)
        for number in numbers(HISTORIES, seen, MUST_SEE):
            text = f"{rig.seed} {number}".encode()
            choices = Choices(hashlib.shake_256(text).digest(NUMBERS * CALLS))
            config, policy = _config(choices), choices.pick(POLICIES)
            beside = Beside(Pair(subject, config, policy), f"history {number}", seen)
            identities = choices.pick(IDENTITIES)
            mood = MOODS[0]
            driver = Lockstep(beside, config, policy, identities)
            for place in range(CALLS):
                if not place % SPELL:
                    mood = choices.often([SLOW_READS, Mood()], *MOODS)
                if driver.view.shut_down:
                    break
                next_call(driver, choices, mood)
            driver.come_to_rest()
    require_met(seen, MUST_SEE)
    return f"{seen['histories']} histories, {seen['events']} events, {seen['refused']} of them refused"
