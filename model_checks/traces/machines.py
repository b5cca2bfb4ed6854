"""States of the row machine by content, and what each event leads to; unlike in `rows/cores.py`, nobody judges them."""

from collections.abc import Hashable
from functools import cached_property
from typing import Any

from tenure.core.config import RowConfig, RowPolicy
from tenure.core.errors import TenureError
from tenure.core.rows.events import PolicyRegistered, RowEvent
from tenure.core.rows.machine import transition
from tenure.core.rows.state import RowState
from tenure.core.rows.view import RowView
from tenure.model_checks.model import NOTHING
from tenure.model_checks.rows.cores import Cores, CoreStep, Shorthand, renumbered


class Known:
    """One state of the machine."""

    def __init__(self, state: RowState) -> None:
        """Nobody looked at it yet."""
        self.state = state

    @cached_property
    def view(self) -> RowView:
        """What it looks like."""
        return self.state.view()


class PlainCores(Cores):
    """The machine's states by number, the first one behind the policy."""

    def __init__(self, config: RowConfig, policy: RowPolicy) -> None:
        """Only the policy was told."""
        self.all: list[Any] = []
        self.told: list[object] | None = None
        self._numbers: dict[Hashable, int] = {}
        self._steps: dict[tuple[int, Hashable], CoreStep] = {}
        self._shorthand = Shorthand()
        first = transition(RowState.initial(config, copying=True), PolicyRegistered(policy)).state
        self.intern(renumbered(first)[0])

    def intern(self, state: RowState) -> int:
        """The number of a state whose commands are renumbered."""
        key = state.tables.key(self._shorthand)
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = len(self.all)
            self.all.append(Known(state))
        return number

    def _made(self, core: int, event: RowEvent) -> CoreStep:
        before: RowState = self.all[core].state
        try:
            after = transition(before, event)
        except TenureError as error:
            return CoreStep(core, None, error, (), NOTHING, (), None)
        number = core
        if after.state is not before:
            number = self.intern(renumbered(after.state, in_place=True)[0])
        return CoreStep(number, after.answer, None, after.commands, NOTHING, (), None)
