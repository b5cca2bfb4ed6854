"""The production machines as the lock-step walks of the spec want them, and walks that are bytes from the first one on.

The first bytes choose the configuration, the others what happens.
"""

from collections import Counter
from collections.abc import Callable, Iterable

from tenure.core.blocks import queries
from tenure.core.blocks import values as block_values
from tenure.core.blocks.machine import transition as block_transition
from tenure.core.blocks.state import BlockState
from tenure.core.blocks.view import BlockView, PrefillCost
from tenure.core.config import BlockConfig, RowConfig
from tenure.core.rows.answers import RowAnswer
from tenure.core.rows.commands import RowCommand
from tenure.core.rows.events import RowEvent
from tenure.core.rows.machine import transition as row_transition
from tenure.core.rows.state import RowState
from tenure.core.rows.view import RowView
from tenure.spec.blocks import lockstep as block_lockstep
from tenure.spec.blocks.rule import Observation
from tenure.spec.choices import Choices
from tenure.spec.rows import lockstep as row_lockstep
from tenure.spec.rows.emissions import POLICIES
from tenure.spec.rows.engine import IDENTITIES
from tenure.spec.rows.rule import RowObservation


class BlockSubject:
    """The block machine as it ships, with journals."""

    def initial(self, config: BlockConfig) -> BlockState:
        """All blocks free."""
        return BlockState.initial(config)

    def transition(
        self, state: BlockState, event: block_values.Event
    ) -> tuple[BlockState, block_values.Answer, tuple[block_values.Command, ...]]:
        """What the machine does."""
        return block_transition(state, event)

    def view(self, state: BlockState) -> BlockView:
        """The state as plain data."""
        return state.view()

    def prefill_cost(self, state: BlockState, request: block_values.RequestId) -> PrefillCost:
        """What computing a request would take."""
        return queries.prefill_cost(state, request)


class RowSubject:
    """The row machine as it ships, with journals."""

    def initial(self, config: RowConfig) -> RowState:
        """Nothing is cached."""
        return RowState.initial(config)

    def transition(self, state: RowState, event: RowEvent) -> tuple[RowState, RowAnswer, tuple[RowCommand, ...]]:
        """What the machine does."""
        after = row_transition(state, event)
        return after.state, after.answer, after.commands

    def view(self, state: RowState) -> RowView:
        """The state as plain data."""
        return state.view()


def walk_blocks(data: Iterable[int], watch: Callable[[Observation], None]) -> Counter[str]:
    """The block machine beside its oracle; what was told and raised.

    Raises:
        InvariantViolation: the two differ, or a rule is broken.
    """
    numbers = iter(data)
    first = Choices([next(numbers, 0) for _ in range(6)])
    config = BlockConfig(
        capacity=3 + first.pick(range(8)),
        block_size=2 + first.pick(range(3)),
        prefix_caching=first.pick(range(8)) != 7,
        kv_events=first.pick(range(5)) != 4,
        trace=first.pick([False, True]),
        snapshots_max=first.pick([1024, 1024, 1024, 1]),
    )
    return block_lockstep.walk(numbers, config, BlockSubject(), watch).seen


LIMITS = ((256, None), (256, None), (256, None), (256, 200), (3, None))
"""On names, and on bytes of the pool."""


def walk_rows(data: Iterable[int], watch: Callable[[RowObservation], None]) -> Counter[str]:
    """The row machine beside its oracle, to a quiet end; what was told and raised.

    Raises:
        InvariantViolation: the two differ, a rule is broken, or something is left.
    """
    numbers = iter(data)
    first = Choices([next(numbers, 0) for _ in range(8)])
    blocks, size = first.pick(range(2, 7)), first.pick(range(1, 4))
    limits = first.pick(LIMITS)
    config = RowConfig(
        num_blocks=blocks,
        block_size=size,
        pages=first.pick(range(2, 5)),
        budget_bytes=first.pick((10**6, 60, 200, 30)),
        page_rows_max=first.pick([blocks * size] * 3 + [3]),
        names_max=limits[0],
        pool_bytes_max=limits[1],
    )
    policy, identities = first.pick(POLICIES), first.pick(IDENTITIES)
    return row_lockstep.walk(numbers, config, RowSubject(), policy, identities, watch).seen
