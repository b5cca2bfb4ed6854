"""Checks every rule of the spec while a trace is replayed, and replays the KV events beside it."""

from collections.abc import Sequence
from typing import Final

from tenure.core.blocks import queries
from tenure.core.blocks.state import BlockState
from tenure.core.blocks.values import Answer, Command, Event
from tenure.core.blocks.view import BlockView
from tenure.core.errors import InvariantViolation
from tenure.replay.counters import Counters
from tenure.spec.blocks.mirror import KvMirror
from tenure.spec.blocks.rule import Observation
from tenure.spec.blocks.rules import check_observation

CHECKED_CAPACITY_MAX: Final = 2**20
"""A check lists every block, the free ones too, so it wants a cache of a size that can be listed."""


class Checker:
    """Watches transitions; the first broken rule ends the replay."""

    def __init__(self, counters: Counters, every: int) -> None:
        """Check the state and the transition after every `every`-th one; the KV events are followed always."""
        self._counters = counters
        self._every = every
        self._mirror = KvMirror()
        self._latest: tuple[BlockState, BlockView] | None = None

    def observe(
        self, before: BlockState, event: Event, after: BlockState, answer: Answer, commands: Sequence[Command]
    ) -> None:
        """Check one transition.

        Raises:
            InvariantViolation: a rule is broken.
        """
        self._mirror.hear(commands)
        if self._counters.transitions % self._every:
            return
        view = self._view(before)
        self._latest = (after, self._view(after))
        check_observation(Observation(view, event, self._latest[1], answer, tuple(commands)))
        self._counters.checked_transitions += 1

    def check_end(self, state: BlockState) -> None:
        """Check what must hold when every request has finished.

        Raises:
            InvariantViolation: a rule is broken.
        """
        # I25: whoever heard the KV events alone knows exactly what is visible.
        self._mirror.compare(self._view(state))
        # I31: when nobody holds anything, nothing is active.
        active = queries.num_active(state)
        if active:
            raise InvariantViolation("I31", f"{active} blocks are active after every request has finished")

    def _view(self, state: BlockState) -> BlockView:
        """The view of a state; that of the transition before is still at hand."""
        if self._latest is not None and self._latest[0] is state:
            return self._latest[1]
        return state.view()
