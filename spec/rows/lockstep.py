"""Walks: whole histories of a row machine beside the oracle, with moments kept and gone back to, and quiet ends."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from tenure.core.config import RowConfig, RowPolicy
from tenure.core.errors import InvariantViolation
from tenure.core.rows.view import RowView
from tenure.spec.choices import Choices
from tenure.spec.rows import calls, histories
from tenure.spec.rows.comparison import AGREEMENT
from tenure.spec.rows.driver import Driver, Subject
from tenure.spec.rows.rule import RowObservation, changed_fields
from tenure.spec.rows.world import World

S = TypeVar("S")

PATIENCE: Final = 10_000
"""Calls within which everything comes to rest."""


@dataclass(frozen=True, slots=True)
class Kept(Generic[S]):
    """A moment of a history, to come back to."""

    state: S
    view: RowView
    world: World


class Lockstep(Driver[S]):
    """A driver that can keep moments, go back to them, and come to rest.

    Attributes:
        kept: moments that were kept.
    """

    def __init__(
        self,
        subject: Subject[S],
        config: RowConfig,
        policy: RowPolicy | None = None,
        identities: str = "never",
        watch: Callable[[RowObservation], None] | None = None,
    ) -> None:
        """As a driver; nothing is kept."""
        super().__init__(subject, config, policy, identities, watch)
        self.kept: list[Kept[S]] = []

    def keep(self) -> None:
        """Remember this moment."""
        self.kept.append(Kept(self.state, self.view, self.world.clone()))

    def go_back(self, number: int) -> None:
        """Read a kept moment again, then the newest state, and go on from the kept one.

        Raises:
            InvariantViolation: a state does not read as it did.
        """
        kept = self.kept[number % len(self.kept)]
        for name, state, view in (("an old", kept.state, kept.view), ("the newest", self.state, self.view)):
            found = self.subject.view(state)
            if found != view:
                raise InvariantViolation(AGREEMENT, f"{changed_fields(view, found)} of {name} state changed afterwards")
        self.state, self.view, self.world = kept.state, kept.view, kept.world.clone()

    def come_to_rest(self) -> None:
        """Let everything end that was begun, end every request, and see that nothing is left (R11, R18).

        Raises:
            InvariantViolation: something never ends, or stays.
        """
        for _ in range(PATIENCE):
            if not self._go_on():
                break
        else:
            raise InvariantViolation("R11", f"no rest after {PATIENCE} calls; open: {self.world.device.open}")
        self._check_rest()

    def _go_on(self) -> bool:
        """Do one thing that brings the end nearer; False if there is none."""
        world, plain = self.world, Choices(())
        device = world.device
        if device.due:
            calls.answer(self, plain)
        elif device.can_begin or device.can_end:
            calls.advance(self, plain)
        elif any(builder.is_copying for builder in world.builders.values()):
            calls.end_consume(self, plain)
        elif world.saving is not None and world.saving.must_cancel:
            calls.cancel(self, plain)
        elif world.oracle.has_failed:
            self.reset()
        elif self.view.shut_down:
            return False
        elif world.builders:
            self._ask_again_or_discard()
        elif world.oracle.unconsumed:
            self.discard(world.oracle.unconsumed[0])
        elif world.saving is not None:
            self._save_or_drop()
        elif world.oracle.pending is not None:
            calls.drop(self, plain)
        elif world.oracle.live:
            calls.end_all(self, plain)
        else:
            return False
        return True

    def _ask_again_or_discard(self) -> None:
        """With an idle device no builder has anything left to wait for."""
        step, builder = next(iter(self.world.builders.items()))
        self.request_consume(step, builder.requests)
        again = self.world.builders.get(step)
        if again is not None and not again.is_copying:
            raise InvariantViolation("R11", f"step {step} waits for {again.waited_for} of an idle device")

    def _save_or_drop(self) -> None:
        """With an idle device and no step to consume, no save has anything left to wait for."""
        saving = self.world.saving
        assert saving is not None
        self.request_save(saving.save)
        again = self.world.saving
        if again is not None and again.waited_for is not None and self.world.device.is_idle:
            raise InvariantViolation("R11", f"the save waits for {again.waited_for} of an idle device")
        if again is saving:
            self.drop(())

    def _check_rest(self) -> None:
        view, world = self.view, self.world
        if not world.device.is_idle:
            raise InvariantViolation("R11", f"commands that can never run: {world.device.open}")
        if view.shut_down:
            return
        left = {
            "live requests": view.live,
            "writes": view.writes,
            "writes behind a reset": view.fenced,
            "clones": view.clones,
            "charged bytes": view.charged,
            "held pages": [holders for holders in view.pages if holders],
            "steps": view.steps,
            "steps behind a reset": view.fenced_steps,
            "reads": view.reads,
            "buffers": world.device.buffers,
        }
        for what, found in left.items():
            if found:
                raise InvariantViolation("R18", f"at rest, {what} are left: {found}")


def walk(
    choices: Iterable[int],
    config: RowConfig,
    subject: Subject[S],
    policy: RowPolicy | None = None,
    identities: str = "never",
    watch: Callable[[RowObservation], None] | None = None,
) -> Lockstep[S]:
    """The history that a row of numbers stands for, told to a machine and the oracle, up to its quiet end.

    One number in about thirty keeps the moment, goes back to a kept one, or changes who is slow.
    """
    numbers = Choices(choices)
    lockstep = Lockstep(subject, config, policy, identities, watch)
    mood = histories.MOODS[0]
    while not numbers.is_spent:
        jump = numbers.pick(range(128))
        has_to_go_back = jump >= 112 if lockstep.view.shut_down else jump == 127
        if has_to_go_back and lockstep.kept:
            lockstep.go_back(numbers.pick(range(len(lockstep.kept))))
        elif jump >= 126:
            lockstep.keep()
            del lockstep.kept[:-4]
        elif jump >= 123:
            mood = numbers.pick(histories.MOODS)
        else:
            histories.next_call(lockstep, numbers, mood)
    lockstep.come_to_rest()
    return lockstep
