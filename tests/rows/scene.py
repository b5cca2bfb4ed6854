"""A row machine with a device of dicts, told by a script: the tests say who does what when, and see the rows.

Both representations of a state run in lock-step, every rule is checked after every event, and the device raises at
races, poison and leaks. Rows are small numbers; a batch is written `{request: (slots, ...)}`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any, TypeAlias, cast

import numpy as np
import numpy.typing as npt

from tenure.core.arrays import integers
from tenure.core.config import RowConfig, RowPolicy
from tenure.core.errors import TenureError
from tenure.core.rows.answers import ConsumePlan, RowAnswer, SaveReserved, StepBegan, Waiting
from tenure.core.rows.commands import (
    CommandId,
    CopyDeferred,
    CopyPage,
    FreezeRows,
    GatherRows,
    PreserveRows,
    ReleaseBuffers,
    RowCommand,
    ScatterRows,
    ScheduleGather,
)
from tenure.core.rows.events import (
    ConsumeAbandoned,
    ConsumeRequested,
    Extended,
    LifeCycle,
    PolicyRegistered,
    RequestId,
    RowEvent,
    RowsCopiedOut,
    SavePublished,
    SaveRequested,
    Started,
    StepConsumed,
    StepStarted,
    WaitTimedOut,
    WriteLayout,
)
from tenure.core.rows.names import HIDDEN, Output
from tenure.core.rows.view import Occupancy, RowView
from tenure.spec.rows.comparison import assemble, by_name, places_of
from tenure.spec.rows.interpreter import Interpreter
from tenure.spec.rows.memory import Row
from tenure.spec.rows.reference import Emitted, Materialized
from tenure.spec.rows.rule import RowObservation
from tenure.spec.rows.rules import check_observation, check_refusal, check_timeout
from tenure.spec.rows.rules_ledger import Ledger
from tests.stateful.row_subject import RowSubject

Batch: TypeAlias = Mapping[Any, Sequence[int]]
POLICY = RowPolicy(
    immediate=frozenset({"m", "k"}), deferred=frozenset({"c", "d"}), leftovers=frozenset({"ref"}), infer=False
)
COPIES = (CopyPage, CopyDeferred)
GATHERS = (ScheduleGather, GatherRows, PreserveRows)
ALWAYS = (FreezeRows, ReleaseBuffers)
EVERYTHING = (*COPIES, ScatterRows, *GATHERS)


def started(request: RequestId, tokens: int, *hit_blocks: int, block_size: int = 4, **more: Any) -> Started:
    """An arrival whose hit, if any, is exactly these blocks."""
    blocks = (hit_blocks,) if hit_blocks else ()
    return Started(request, tokens, len(hit_blocks) * block_size, blocks, **more)


def extended(**counts: int) -> Extended:
    """Live requests that go on."""
    return Extended(tuple(counts), np.array(list(counts.values())))


class Scene:
    """One row machine, one device, and what was emitted."""

    def __init__(
        self,
        num_blocks: int = 8,
        block_size: int = 4,
        policy: RowPolicy = POLICY,
        **config: Any,
    ) -> None:
        self.subject = RowSubject()
        settings: dict[str, Any] = {"page_rows_max": 64, "pages": 3, **config}
        self.config = RowConfig(num_blocks=num_blocks, block_size=block_size, **settings)
        self.state = self.subject.initial(self.config)
        self.view: RowView = self.subject.view(self.state)
        self.ledger = Ledger()
        self.device = Interpreter(self.config.num_slots)
        self.commands: dict[CommandId, RowCommand] = {}
        self.outputs: dict[int, tuple[Emitted, ...]] = {}
        self.own_rows: dict[int, dict[str, list[Row]]] = {}
        self.tell(PolicyRegistered(policy))

    # --- Events -----------------------------------------------------------------------------------------------

    def tell(self, event: RowEvent, live: Mapping[str, Any] | None = None) -> RowAnswer:
        """One event; a refusal must change nothing."""
        before = self.view
        try:
            self.state, answer, commands = self.subject.transition(self.state, event)
        except TenureError as refusal:
            after = self.subject.view(self.state)
            check_refusal(before, event, after)
            if isinstance(event, WaitTimedOut):
                check_timeout(after, event, refusal)
            assert before == after
            raise
        self.view = self.subject.view(self.state)
        seen = RowObservation(before, event, self.view, answer, commands)
        check_observation(seen)
        self.ledger.check(seen)
        for command in commands:
            self.check_arrays(command)
        self.commands.update({each.command: each for each in commands})
        self.device.issue(commands, live)
        return answer

    def check_arrays(self, value: Any) -> None:
        """Arrays in commands are what they say: read-only, of 64 bits."""
        if isinstance(value, np.ndarray):
            array = cast("npt.NDArray[Any]", value)
            assert array.dtype == np.int64
            assert not array.flags.writeable
        elif isinstance(value, tuple):
            for each in cast("Sequence[Any]", value):
                self.check_arrays(each)
        elif is_dataclass(value):
            for field in fields(value):
                self.check_arrays(getattr(value, field.name))

    def start(self, *changes: LifeCycle) -> int:
        """A scheduler output; the number of its step, 0 without tokens."""
        answer = self.tell(StepStarted(changes))
        assert isinstance(answer, StepBegan)
        return answer.step or 0

    def request_save(self, batch: Batch, padded: int | None = None, **rows: Any) -> RowAnswer:
        """Ask for a save; `rows` are per name one number a token in batch order (`h` is hidden), or a leftover."""
        emitted = tuple(_emitted("h" if name == "h" else name, values) for name, values in rows.items())
        counts = integers([len(slots) for slots in batch.values()])
        slots = integers([slot for slots in batch.values() for slot in slots])
        layout = WriteLayout(tuple(batch), counts, slots, padded)
        event = SaveRequested(layout, tuple(each.output for each in emitted))
        answer = self.tell(event, {each.output.name: each.content for each in emitted})
        if isinstance(answer, SaveReserved):
            self.outputs[answer.step] = emitted
        return answer

    def publish(self) -> int:
        """The freeze of the reserved save is launched."""
        (freeze,) = (number for number in self.device.due if isinstance(self.commands[number], FreezeRows))
        event = self.device.tell(freeze)
        assert isinstance(event, SavePublished)
        self.tell(event)
        self.run()
        return event.step

    def save(self, batch: Batch, padded: int | None = None, **rows: Any) -> int:
        """Save a step, letting the device run whatever the save waits for."""
        answer = self.request_save(batch, padded, **rows)
        while isinstance(answer, Waiting):
            assert self.run(*EVERYTHING), f"{answer} waits for nothing that will come"
            answer = self.request_save(batch, padded, **rows)
        return self.publish()

    def step(self, *changes: LifeCycle, batch: Batch, **rows: Any) -> int:
        """Start and save one step."""
        self.start(*changes)
        return self.save(batch, **rows)

    # --- The device -------------------------------------------------------------------------------------------

    def run(self, *kinds: type[RowCommand], only: int | None = None) -> bool:
        """Run commands of these kinds (of write or read `only`) as far as they get; whether anything happened."""
        happened = False
        while self._run_one(kinds, only):
            happened = True
        return happened

    def _run_one(self, kinds: tuple[type[RowCommand], ...], only: int | None) -> bool:
        device = self.device

        def is_meant(number: CommandId) -> bool:
            command = self.commands[number]
            if isinstance(command, ALWAYS):
                return True
            mine = {getattr(command, "write", None), getattr(command, "read", None)}
            return isinstance(command, kinds) and (only is None or only in mine)

        for number in device.due:
            if is_meant(number) and not isinstance(self.commands[number], FreezeRows):
                self.tell(device.tell(number))
                return True
        for choices, act in ((device.can_end, device.end), (device.can_begin, device.begin)):
            for number in choices:
                if is_meant(number):
                    act(number)
                    return True
        return False

    def begin_gather(self, read: int) -> None:
        """A backend takes up one read and does not end it."""
        (schedule,) = (
            number
            for number in self.device.due
            if isinstance(command := self.commands[number], ScheduleGather) and command.read == read
        )
        self.tell(self.device.tell(schedule))
        (gather,) = (
            number
            for number, command in self.commands.items()
            if isinstance(command, GatherRows) and command.read == read
        )
        self.device.begin(gather)

    def drain(self) -> None:
        """Run everything."""
        self.run(*EVERYTHING)

    def fail(self, kind: type[RowCommand], only: int | None = None) -> None:
        """The first command of a kind (of write or read `only`) that may fail does, and says so."""
        for number in self.device.can_fail:
            command = self.commands[number]
            if isinstance(command, kind) and only in (
                None,
                getattr(command, "write", None),
                getattr(command, "read", None),
            ):
                self.device.fail(number)
                while number in self.device.due:
                    self.tell(self.device.tell(number))
                return
        raise AssertionError(f"no {kind.__name__} may fail")

    # --- Consumers --------------------------------------------------------------------------------------------

    def plan(self, step: int, *requests: RequestId, wait: bool = True) -> ConsumePlan | Waiting:
        """Ask for a materialize; with `wait` the device runs what it waits for."""
        answer = self.tell(ConsumeRequested(step, requests))
        while isinstance(answer, Waiting) and wait and self.run(*EVERYTHING):
            answer = self.tell(ConsumeRequested(step, requests))
        assert isinstance(answer, ConsumePlan | Waiting)
        return answer

    def copy_out(self, plan: ConsumePlan) -> Materialized:
        """Read what a plan says, and tell that the page was copied."""
        page, hits = places_of(plan)
        if plan.page is not None:
            rows = self.device.end_reading(self.device.begin_reading(page, "a builder"))
            self.own_rows[plan.step] = by_name(plan, rows)
        found = self.device.end_reading(self.device.begin_reading(hits, "a builder"))
        self.tell(RowsCopiedOut(plan.step))
        return assemble(plan, self.outputs[plan.step], self.own_rows[plan.step], found)

    def materialize(self, step: int, *requests: RequestId) -> dict[str, dict[RequestId, Any]]:
        """Consume a step: per name (`h` is hidden) and request its rows."""
        plan = self.plan(step, *requests)
        assert isinstance(plan, ConsumePlan), plan
        found = self.copy_out(plan)
        self.tell(StepConsumed(step))
        for hit in plan.hits:
            self.device.take(hit.read)
        hidden = {} if found.hidden_states is None else {"h": dict(found.hidden_states)}
        return hidden | {name: dict(rows) for name, rows in found.mm_outputs.items()}

    def abandon(self, step: int) -> None:
        """The materialize under way raises."""
        self.tell(ConsumeAbandoned(step))

    # --- What is seen -----------------------------------------------------------------------------------------

    def occupancy(self, name: str, *slots: int) -> list[Occupancy]:
        """What a name (`h` is hidden) holds at some slots."""
        return [self.view.occupancy(HIDDEN if name == "h" else name, slot) for slot in slots]

    def pool(self, name: str, *slots: int) -> list[Row]:
        """The pool rows of a name (`h` is hidden)."""
        return [self.device.pool_row(HIDDEN if name == "h" else name, slot) for slot in slots]

    def read_of(self, step: int, request: RequestId, name: str) -> int:
        """The number of a step's read."""
        name = HIDDEN if name == "h" else name
        return next(read for who, what, read in self.view.steps[step].reads if (who, what) == (request, name))

    def is_quiet(self) -> bool:
        """R18: nothing is left but what the pool holds."""
        view = self.view
        tables = (view.writes, view.fenced, view.clones, view.steps, view.fenced_steps, view.reads, view.live)
        return not any(tables) and not any(view.pages) and view.charged == 0 and not self.device.buffers


def _emitted(name: str, values: Any) -> Emitted:
    if name == "h":
        return Emitted(Output(HIDDEN, (len(values), 1), "float32"), list(values))
    if isinstance(values, Emitted):
        return values
    if name in ("m", "k", "c", "d"):
        return Emitted(Output(name, (len(values), 1), "float32"), list(values))
    return Emitted(Output(name), values)
