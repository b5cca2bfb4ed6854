"""A facade without threads: makes the calls of an engine and its builders, in phases, and compares everything.

Each method makes one call, or one part of one, on a row machine and on the oracle beside it, carries commands to the
naive device, and raises as soon as the two sides differ or a rule is broken. Who calls what when is not decided here.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final, Generic, Protocol, TypeVar

from tenure.core.arrays import integers
from tenure.core.config import RowConfig, RowPolicy
from tenure.core.errors import (
    BudgetExhaustedError,
    InvariantViolation,
    PageExhaustedError,
    TenureError,
    WaitTimeoutError,
)
from tenure.core.rows.answers import ConsumePlan, Ignored, ResetAnswered, RowAnswer, SaveReserved, StepSaved, Waiting
from tenure.core.rows.commands import CommandId, RowCommand
from tenure.core.rows.events import (
    ConsumeAbandoned,
    ConsumeRequested,
    GatherFailed,
    LifeCycle,
    PolicyRegistered,
    RequestId,
    ResetRequested,
    RowEvent,
    RowsCopiedOut,
    SaveCancelled,
    SavePublished,
    SaveRequested,
    ShutdownRequested,
    Slot,
    StepConsumed,
    StepDiscarded,
    StepDropped,
    StepId,
    StepStarted,
    WaitedFor,
    WaitTimedOut,
    WriteFailed,
)
from tenure.core.rows.view import ReadPhase, RowView
from tenure.spec.rows import comparison
from tenure.spec.rows.comparison import AGREEMENT
from tenure.spec.rows.emissions import Save
from tenure.spec.rows.engine import Plan
from tenure.spec.rows.jobs import LiveOutputs
from tenure.spec.rows.rule import RowObservation
from tenure.spec.rows.rules import check_observation, check_refusal, check_timeout
from tenure.spec.rows.world import Builder, Saving, World

S = TypeVar("S")
T = TypeVar("T")

SETTLING: Final = (SavePublished, StepDropped, ResetRequested)
"""Events that change what slots hold."""


class Subject(Protocol[S]):
    """A row machine with states that stay readable."""

    def initial(self, config: RowConfig, /) -> S:
        """An empty machine."""
        ...

    def transition(self, state: S, event: RowEvent) -> tuple[S, RowAnswer, tuple[RowCommand, ...]]:
        """Carry an event out, or raise and leave `state` as it was."""
        ...

    def view(self, state: S) -> RowView:
        """A state as plain data."""
        ...


class Driver(Generic[S]):
    """One machine, its oracle, and who calls them.

    Attributes:
        state: the machine's newest state.
        view: the same as plain data.
        world: everything else.
        seen: how often each kind of event was accepted, and each error raised.
    """

    def __init__(
        self,
        subject: Subject[S],
        config: RowConfig,
        policy: RowPolicy | None = None,
        identities: str = "never",
        watch: Callable[[RowObservation], None] | None = None,
    ) -> None:
        """Both empty, the policy registered; `watch` is shown every accepted event."""
        self.subject = subject
        self.config = config
        self._watch = watch
        self.seen: Counter[str] = Counter()
        self.state = subject.initial(config)
        self.view = subject.view(self.state)
        self.world = World.new(config, RowPolicy(), identities)
        if policy is not None:
            self.register_policy(policy)

    # --- Telling ----------------------------------------------------------------------------------------------

    def tell(
        self, event: RowEvent, expected: TenureError | None = None, live: LiveOutputs | None = None
    ) -> RowAnswer | TenureError:
        """Tell the machine an event that must be refused as `expected`, or taken if that is None.

        Raises:
            InvariantViolation: it is not, a rule is broken, or a command cannot be.
        """
        before, was = self.view, self.state
        refusal: TenureError | None = None
        answer: RowAnswer | None = None
        commands: tuple[RowCommand, ...] = ()
        try:
            self.state, answer, commands = self.subject.transition(was, event)
        except TenureError as error:
            # Where it was raised would be kept alive with it, and the states there.
            refusal = error.with_traceback(None)
        if type(refusal) is not type(expected):
            raise InvariantViolation(AGREEMENT, f"{event} gives {refusal or answer!r}; expected {expected!r}")
        self.view = self.subject.view(self.state)
        self.seen[type(refusal or event).__name__] += 1
        if refusal is not None:
            check_refusal(before, event, self.view)
            if isinstance(event, WaitTimedOut):
                check_timeout(self.view, event, refusal)
            return refusal
        assert answer is not None
        observation = RowObservation(before, event, self.view, answer, commands)
        check_observation(observation)
        self.world.ledger.check(observation)
        if self._watch is not None:
            self._watch(observation)
        self.world.device.issue(commands, live)
        return answer

    def _told(
        self, event: RowEvent, call: Callable[[], T], live: LiveOutputs | None = None
    ) -> tuple[T, RowAnswer] | None:
        """Make a call of the oracle, and tell the machine the event that goes with it; None if both refuse."""
        result: T
        try:
            result = call()
        except TenureError as error:
            self.tell(event, error)
            return None
        answer = self.tell(event, live=live)
        assert not isinstance(answer, TenureError)
        comparison.compare_states(self.view, self.world.oracle, with_rows=isinstance(event, SETTLING))
        return result, answer

    def _answered(self, event: RowEvent, expected: object, found: object) -> None:
        if expected != found:
            raise InvariantViolation(AGREEMENT, f"{event} is answered {found}; expected {expected}")

    # --- Steps ------------------------------------------------------------------------------------------------

    def start(self, changes: Sequence[LifeCycle], plan: Plan | None = None) -> bool:
        """A scheduler output; whether it was taken."""
        event = StepStarted(tuple(changes))
        told = self._told(event, lambda: self.world.oracle.new_step_starts(changes))
        if told is None:
            return False
        self._answered(event, *told)
        if plan is not None:
            self.world.engine.take(plan)
        step = told[0].step
        self.world.plan = plan if step is not None else None
        if step is not None and plan is not None:
            self.world.hits.update({(step, request): hit for request, hit in plan.hits.items()})
        return True

    def request_save(self, save: Save) -> None:
        """Ask for a save, for the first time or again."""
        event = SaveRequested(save.layout, tuple(each.output for each in save.outputs))
        live = {each.output.name: each.content for each in save.outputs}
        told = self._told(event, lambda: self.world.oracle.check_save(save.outputs, save.layout), live)
        if told is None:
            return
        match told[1]:
            case Waiting(waited_for):
                comparison.check_wait(self.view, waited_for)
                self.world.saving = Saving(save, waited_for)
            case SaveReserved(step):
                self._answered(event, self.world.oracle.pending, step)
                self.world.oracle.begin_save(save.outputs, save.layout)
                self.world.saving = Saving(save, None)
            case _:
                raise InvariantViolation(AGREEMENT, f"{event} is answered {told[1]}")

    def _publish(self, event: SavePublished) -> None:
        world = self.world
        if world.plan is not None and world.saving is not None and world.oracle.pending == event.step:
            event = replace(event, computes=world.plan.computes)
        told = self._told(event, lambda: world.oracle.end_save(event.step, event.computes))
        if told is None:
            if world.saving is not None and world.oracle.pending == event.step:
                world.saving = replace(world.saving, must_cancel=True)
            return
        assert isinstance(told[1], StepSaved)
        assert world.saving is not None
        self._answered(event, told[0], told[1].step)
        save = world.saving.save
        world.saving = None
        if world.plan is not None:
            world.engine.compute(world.plan)
            world.plan = None
        world.outputs[event.step] = save.outputs
        rows = self.view.steps[event.step].names
        for each in save.outputs:
            if each.output.name in rows:
                slots = save.layout.slots.tolist()
                world.newest.update({(each.output.name, slot): each.content[row] for row, slot in enumerate(slots)})

    def cancel_save(self, step: StepId) -> None:
        """Give a reservation back."""
        if self._told(SaveCancelled(step), lambda: self.world.oracle.cancel_save(step)) is not None:
            self.world.saving = None

    def drop(self, slots: Sequence[Slot]) -> None:
        """Give the started step up."""
        event = StepDropped(integers(slots))
        if self._told(event, lambda: self.world.oracle.drop_step(slots)) is None:
            return
        world = self.world
        world.saving = None
        if world.plan is not None:
            world.engine.compute(world.plan)
            world.plan = None

    # --- Consuming --------------------------------------------------------------------------------------------

    def request_consume(self, step: StepId, requests: tuple[RequestId, ...]) -> None:
        """Ask for a materialize, for the first time or again."""
        world = self.world
        event = ConsumeRequested(step, requests)
        told = self._told(event, lambda: world.oracle.begin_materialize(step, requests))
        if told is None:
            if step in world.builders and not world.builders[step].is_copying:
                del world.builders[step]
            return
        expected, answer = told
        if isinstance(answer, Waiting):
            world.oracle.end_materialize(step, returns=False)
            comparison.check_wait(self.view, answer.waited_for)
            world.builders[step] = Builder(requests, answer.waited_for)
            return
        assert isinstance(answer, ConsumePlan)
        own_rows = world.own_rows.get(step)
        comparison.compare_plan(answer, event, expected, is_copied_out=own_rows is not None)
        page, hits = comparison.places_of(answer)
        world.builders[step] = Builder(
            requests,
            None,
            answer,
            expected,
            None if own_rows is not None else world.device.begin_reading(page, f"the builder of step {step}"),
            world.device.begin_reading(hits, f"the builder of step {step}"),
            own_rows,
        )

    def _copy_page(self, step: StepId) -> Builder:
        """Let a builder finish its reading of the page."""
        builder = self.world.builders[step]
        if builder.page_reading is None:
            return builder
        assert builder.plan is not None
        rows = self.world.device.end_reading(builder.page_reading)
        builder = replace(builder, page_reading=None, own_rows=comparison.by_name(builder.plan, rows))
        self.world.builders[step] = builder
        return builder

    def copy_out(self, step: StepId) -> None:
        """A builder has the rows of the page."""
        builder = self._copy_page(step)
        answer = self.tell(RowsCopiedOut(step))
        self._check_fence(RowsCopiedOut(step), builder, answer)
        if not builder.is_fenced and builder.own_rows is not None:
            self.world.own_rows[step] = builder.own_rows

    def end_consume(self, step: StepId) -> None:
        """A builder returns what it made."""
        world = self.world
        builder = self._copy_page(step)
        assert builder.plan is not None
        assert builder.expected is not None
        assert builder.own_rows is not None
        assert builder.hit_reading is not None
        hits = world.device.end_reading(builder.hit_reading)
        found = comparison.assemble(builder.plan, world.outputs[step], builder.own_rows, hits)
        if found != builder.expected:
            raise InvariantViolation("R02", f"step {step} is materialized as {found}; expected {builder.expected}")
        comparison.check_chains(builder.plan, found, world.hits)
        answer = self.tell(StepConsumed(step))
        self._check_fence(StepConsumed(step), builder, answer)
        for hit in builder.plan.hits:
            world.device.take(hit.read)
        del world.builders[step]
        if not builder.is_fenced:
            world.oracle.end_materialize(step)
            self._forget_step(step)

    def abandon(self, step: StepId) -> None:
        """A builder raises."""
        world = self.world
        builder = world.builders.pop(step)
        for reading in (builder.page_reading, builder.hit_reading):
            if reading is not None:
                world.device.end_reading(reading)
        answer = self.tell(ConsumeAbandoned(step))
        self._check_fence(ConsumeAbandoned(step), builder, answer)
        if not builder.is_fenced:
            world.oracle.end_materialize(step, returns=False)

    def _check_fence(self, event: RowEvent, builder: Builder, answer: RowAnswer | TenureError) -> None:
        if isinstance(answer, Ignored) is not builder.is_fenced:
            raise InvariantViolation("R24", f"{event} is answered {answer}")

    def discard(self, step: StepId) -> None:
        """Consume a step without looking."""
        if self._told(StepDiscarded(step), lambda: self.world.oracle.discard_step(step)) is not None:
            self._forget_step(step)

    def _forget_step(self, step: StepId) -> None:
        self.world.outputs.pop(step, None)
        self.world.own_rows.pop(step, None)

    def time_out(self, waited_for: WaitedFor) -> None:
        """A call waited as long as it may; its error says what it depends on (R07), and it can be made again."""
        error = WaitTimeoutError
        if waited_for.page:
            error = PageExhaustedError
        elif waited_for.clone is not None:
            error = BudgetExhaustedError
        refusal = self.tell(WaitTimedOut(waited_for), error("", (), ()))
        assert isinstance(refusal, WaitTimeoutError)
        self._answered(WaitTimedOut(waited_for), self.world.oracle.unconsumed, tuple(refusal.unconsumed))

    # --- The device -------------------------------------------------------------------------------------------

    def answer(self, command: CommandId) -> None:
        """Tell the next answer of a command."""
        event = self.world.device.tell(command)
        match event:
            case SavePublished():
                self._publish(event)
            case SaveCancelled(step):
                self.cancel_save(step)
            case WriteFailed(write):
                if not isinstance(self.tell(event), Ignored):
                    self.world.oracle.fail_write(write)
            case GatherFailed(read):
                self.tell(event)
                failed = self.view.reads.get(read)
                if failed is not None and failed.phase is ReadPhase.FAILED and failed.confirmed:
                    self.world.oracle.fail_read(failed.step, failed.request, failed.name)
            case _:
                self.tell(event)
        if not self.world.oracle.has_failed:
            comparison.check_landed(self.view, self.world.device, self.world.newest)

    # --- The rest of a cache's life ---------------------------------------------------------------------------

    def register_policy(self, policy: RowPolicy) -> None:
        """Say what the model's outputs are."""
        self._told(PolicyRegistered(policy), lambda: self.world.oracle.register_policy(policy))

    def reset(self) -> None:
        """Forget everything, if that may be."""
        world = self.world
        told = self._told(ResetRequested(), world.oracle.reset)
        assert told is not None
        self._answered(ResetRequested(), ResetAnswered(told[0]), told[1])
        if not told[0]:
            return
        world.engine.forget()
        world.plan = world.saving = None
        world.builders = {
            step: replace(builder, is_fenced=True) for step, builder in world.builders.items() if builder.is_copying
        }
        world.own_rows.clear()
        world.outputs = {step: world.outputs[step] for step in world.builders}
        world.newest.clear()

    def shut_down(self) -> None:
        """Serve nothing any more."""
        self._told(ShutdownRequested(), self.world.oracle.shutdown)
