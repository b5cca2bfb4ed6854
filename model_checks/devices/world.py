"""A history of the row machine with its executor on an emulated device: what may happen next, and what is wrong.

The history's steps are those of `model_checks/rows`; here the rows are real numbers in memory, each the code of the
symbolic row that the rules in words (`Truth`) say must be there.
"""

from collections.abc import Iterator
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np

from tenure.backends.device import Lane, Rows
from tenure.backends.executor import Executor
from tenure.backends.fake import FakeDevice, Scripted
from tenure.core.arrays import integers
from tenure.core.config import RowConfig
from tenure.core.errors import InvariantViolation, ReadFailedError, TenureError, UnreadableHitError, WriteFailedError
from tenure.core.rows.answers import ConsumePlan, ResetAnswered, SaveReserved, StepBegan, Waiting
from tenure.core.rows.events import (
    ConsumeRequested,
    PolicyRegistered,
    ResetRequested,
    RowEvent,
    SaveCancelled,
    SavePublished,
    SaveRequested,
    StepConsumed,
    StepDiscarded,
    StepDropped,
    WriteLayout,
)
from tenure.core.rows.machine import transition
from tenure.core.rows.names import Output
from tenure.core.rows.state import RowState
from tenure.model_checks.rows.cells import Names, row_code
from tenure.model_checks.rows.environment import Bounds, Environment, Saved, Truth
from tenure.model_checks.rows.plans import AT_ONCE, NOTE, POLICY, StepPlan, start_of
from tenure.model_checks.rows.scripts import History

ITEM_BYTES: Final = 8
NAMES: Final = ("__hidden_states__", "m", "c", "d", NOTE)

FAILS: Final = "fails"
"""What a lane is at ends badly."""
Move: TypeAlias = tuple[str, ...]
"""`("lane", NAME)`, or with `FAILS` behind it, `("engine", WHAT)`, `("builder", STEP, WHAT)` or `("news",)`."""


class Handed(NamedTuple):
    """What a builder was given: of which step, and how many rows."""

    step: int
    rows: int


class World:
    """One run of a history.

    Attributes:
        device: where rows move.
        handed: what builders were given.
        failed: which operations ended badly, in which lanes.
    """

    def __init__(self, history: History, *, in_pieces: bool = False, failures: int = 0) -> None:
        """Nothing happened.

        Args:
            history: what the engine does.
            in_pieces: operations move one row at a time, and others come in between.
            failures: so many operations of the device may end badly. After a failed write the engine resets the cache,
                and does no more.
        """
        old = history.config
        self.config = RowConfig(
            num_blocks=old.num_blocks,
            block_size=old.block_size,
            page_rows_max=old.page_rows_max,
            pages=old.pages,
            budget_bytes=old.budget_bytes * ITEM_BYTES,
            builder_lag_max=old.builder_lag_max,
            gathers_max=1,
        )
        self.device = FakeDevice(Scripted(()), in_pieces=in_pieces)
        self.executor = Executor(self.device, self.config)
        self.device.listen(self.pump)
        self._names = Names(NAMES)
        self._truth = Truth(self.config, self._names)
        self._steps = list(history.steps)
        self._env: Environment = self._truth.nothing((0,), Bounds())
        self._live = {name: np.zeros((self.config.page_rows_max, 1), np.int64) for name in NAMES}
        self._state = RowState.initial(self.config)
        self._failures_left = failures
        self.handed: list[Handed] = []
        self.failed: list[str] = []
        self.tell(PolicyRegistered(POLICY))

    # --- The machine and its executor ---------------------------------------------------------------------------

    def tell(self, event: RowEvent) -> Any:
        """Let an event happen, and everything that follows and can be done now."""
        self._state, answer, commands = transition(self._state, event)
        self.executor.accept(commands)
        self.pump()
        return answer

    def pump(self) -> None:
        """Carry out what is commanded and tell what is answered, until nothing is."""
        while True:
            self.executor.run()
            answers = self.executor.poll()
            if not answers:
                return
            for answer in answers:
                self._state, _, commands = transition(self._state, answer)
                self.executor.accept(commands)

    # --- What may happen ----------------------------------------------------------------------------------------

    def moves(self) -> list[Move]:
        """What may happen now, in a fixed order."""
        found: list[Move] = [("lane", lane.name) for lane in self.device.ready()]
        if self._failures_left:
            # What the forward pass writes is no operation of the cache's.
            could = self.device.could_fail().items()
            found += [("lane", lane.name, FAILS) for lane, what in could if what != "forward"]
        if self.device.has_news:
            found.append(("news",))
        if self._state.tables.failure is not None:
            return [*found, ("engine", "reset")]
        return [*found, *self._engine(), *self._builders()]

    def _matters(self, event: RowEvent) -> bool:
        """Whether a call does anything but wait; one that waits may have writes flushed first."""
        step = transition(self._state, event)
        return step.state is not self._state or not isinstance(step.answer, Waiting)

    def _consumer(self, saved: Saved, asked: tuple[str, ...]) -> Iterator[Move]:
        """A materialize, if it need not wait; a step whose hit cannot be read is discarded."""
        try:
            if self._matters(ConsumeRequested(saved.step, asked)):
                yield "builder", str(saved.step), ", ".join(asked)
        except (UnreadableHitError, ReadFailedError):
            yield "builder", str(saved.step), "discard"

    def _engine(self) -> Iterator[Move]:
        env = self._env
        if any(saved.plan.consumers == (AT_ONCE,) for saved in env.saved):
            # It is discarded before the engine's next call.
            return
        if env.plan is None:
            if self._steps:
                yield "engine", "start"
        elif env.plan.is_dropped:
            yield "engine", "drop"
        elif self._matters(self._save_of(env.plan)):
            yield "engine", "save"

    def _builders(self) -> Iterator[Move]:
        for saved in self._env.saved:
            for consumer in saved.plan.consumers:
                if isinstance(consumer, tuple):
                    yield from self._consumer(saved, consumer)
                else:
                    yield "builder", str(saved.step), "discard"

    # --- What happens -------------------------------------------------------------------------------------------

    def make(self, move: Move) -> None:
        """Let something happen.

        Raises:
            InvariantViolation: what it shows to be wrong.
        """
        try:
            self._make(move)
        except InvariantViolation:
            raise
        except TenureError as error:
            raise InvariantViolation("R15", f"{' '.join(move)} raised {type(error).__name__}: {error}") from error
        if self.device.findings:
            raise InvariantViolation("R20", str(self.device.findings[0]))
        if self._state.tables.failure is not None and all(each.endswith(Lane.GATHER.name) for each in self.failed):
            raise InvariantViolation("R12", f"a write failed, and nothing has but a read: {', '.join(self.failed)}")

    def _make(self, move: Move) -> None:
        match move:
            case ("lane", name):
                self.device.advance(Lane[name])
            case ("lane", name, _):
                self.failed.append(f"{self.device.could_fail()[Lane[name]]} in {name}")
                self._failures_left -= 1
                self.device.advance(Lane[name], fails=True)
            case ("news",):
                self.device.tell_news()
            case ("engine", "start"):
                plan = self._steps.pop(0)
                began = self.tell(start_of(plan, self.config.block_size))
                assert isinstance(began, StepBegan)
                if began.step is not None:
                    self._env = self._env._replace(plan=plan, step=began.step)
            case ("engine", "drop"):
                assert self._env.plan is not None
                self.tell(StepDropped(integers([row.slot for row in self._env.plan.rows])))
                self._env = self._truth.dropped(self._env)
            case ("engine", "reset"):
                self._reset()
            case ("engine", _):
                self._save()
            case ("builder", step, what):
                saved = next(each for each in self._env.saved if each.step == int(step))
                self._consume(saved, what)
            case _:
                raise AssertionError(move)

    def _save_of(self, plan: StepPlan) -> SaveRequested:
        batch = plan.batch
        layout = WriteLayout(tuple(batch), integers([*batch.values()]), integers([row.slot for row in plan.rows]))
        shape = (len(plan.rows), 1)
        outputs = tuple(Output(name) if name == NOTE else Output(name, shape, "int64") for name in plan.emits)
        return SaveRequested(layout, outputs)

    def _save(self) -> None:
        """The forward pass, the save, the freeze, its publication; the buffers are overwritten at once."""
        plan, step = self._env.plan, self._env.step
        assert plan is not None
        reserved = self.tell(self._save_of(plan))
        if isinstance(reserved, Waiting):
            return
        count, number = len(plan.rows), self._names.number
        live: dict[str, Any] = {}
        for name in plan.emits:
            codes = [row_code(step, 0 if name == NOTE else row.node, number[name]) for row in plan.rows]
            live[name] = self._live[name][:count]
            self.device.forward(live[name], np.array(codes, dtype=np.int64)[:, None])
        assert isinstance(reserved, SaveReserved)
        self.executor.freeze(reserved.step, reserved.page, live)
        try:
            self.tell(SavePublished(reserved.step))
        except WriteFailedError:
            # R12: another write's failure was told since the reservation.
            self.executor.abandon_freeze(reserved.step)
            self.tell(SaveCancelled(reserved.step))
            return
        self._env = self._truth.published(self._env)
        for name in live:
            self.device.forward(live[name], np.full((count, 1), -1, np.int64))

    def _reset(self) -> None:
        """A write failed: whatever was saved is lost, and the engine stops."""
        if self.tell(ResetRequested()) != ResetAnswered(done=True):
            raise InvariantViolation("R12", "a reset behind a failed write is refused")
        self._steps.clear()
        self._env = self._truth.forgotten(self._env, (0,))

    def _consume(self, saved: Saved, what: str) -> None:
        if what == "discard":
            self.tell(StepDiscarded(saved.step))
            self._forget(saved)
            return
        asked = tuple(what.split(", "))
        plan = self.tell(ConsumeRequested(saved.step, asked))
        assert isinstance(plan, ConsumePlan)
        rows = self._check_page(saved, asked, plan) + self._check_hits(saved, plan)
        self.handed.append(Handed(saved.step, rows))
        self.tell(StepConsumed(saved.step))
        for hit in plan.hits:
            self.executor.storage.take_read(hit.read)
        self._forget(saved)

    def _forget(self, saved: Saved) -> None:
        self._env = self._env._replace(saved=tuple(each for each in self._env.saved if each.step != saved.step))

    # --- What is wrong ------------------------------------------------------------------------------------------

    def _check_page(self, saved: Saved, asked: tuple[str, ...], plan: ConsumePlan) -> int:
        """R06, of the rows that the step made."""
        assert plan.page is not None
        checked = 0
        for each in plan.formats:
            number = self._names.number[each.name]
            page = self.executor.storage.page(plan.page, each.name)
            for place, row in enumerate(saved.plan.rows):
                if row.request in asked:
                    self._compare(
                        saved, each.name, Rows(page, place, place + 1), [row_code(saved.step, row.node, number)]
                    )
                    checked += 1
        return checked

    def _check_hits(self, saved: Saved, plan: ConsumePlan) -> int:
        """R02, of the rows that stood in the hit's slots after the save of the step."""
        expected, checked = dict(saved.expected), 0
        for hit in plan.hits:
            rows = expected[str(hit.request), self._names.number[hit.name]]
            buffer = self.executor.storage.read(hit.read).buffer
            self._compare(saved, hit.name, Rows(buffer, 0, hit.num_rows), [*(rows or ())])
            checked += hit.num_rows
        return checked

    def _compare(self, saved: Saved, name: str, rows: Rows, expected: list[int]) -> None:
        found = self.device.cut(rows).ravel().tolist()
        if found != expected:
            raise InvariantViolation("R02", f"step {saved.step} hands out {found} under {name}, and should {expected}")

    def check_end(self) -> None:
        """Nothing can happen any more.

        Raises:
            InvariantViolation: it should, or something is left.
        """
        if self._steps or self._env.plan is not None or self._env.saved:
            waits = "; ".join(f"{lane.name}: {what}" for lane, what in self.device.waits().items())
            raise InvariantViolation(
                "R11", f"nothing can happen, and the history is not over; lanes: {waits or 'empty'}"
            )
        view = self._state.view()
        left = [view.reads, view.writes, view.clones, [each for each in view.pages if each]]
        if any(left):
            raise InvariantViolation("R18", f"at rest there are {left}")
        self.device.close(1.0)
        self.executor.storage.close()
        if self.device.held or self.device.findings:
            raise InvariantViolation("R18", f"never freed: {sorted(map(str, self.device.held))} {self.device.findings}")
