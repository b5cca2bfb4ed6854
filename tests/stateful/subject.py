"""The core's block machine as the lock-step runner wants to see it."""

from tenure.core.blocks import queries
from tenure.core.blocks.machine import transition
from tenure.core.blocks.state import BlockState
from tenure.core.blocks.values import Answer, Command, Event, RequestId
from tenure.core.blocks.view import BlockView, PrefillCost
from tenure.core.config import BlockConfig


class CoreSubject:
    """Tells the core events, and holds its queries against its own views."""

    def initial(self, config: BlockConfig) -> BlockState:
        """An empty core."""
        return BlockState.initial(config)

    def transition(self, state: BlockState, event: Event) -> tuple[BlockState, Answer, tuple[Command, ...]]:
        """The core's transition."""
        after, answer, commands = transition(state, event)
        return after, answer, commands

    def view(self, state: BlockState) -> BlockView:
        """The core's view, after every query was compared with it."""
        view = state.view()
        assert queries.num_active(state) == view.num_active
        assert queries.num_inactive(state) == view.num_inactive
        assert queries.num_free(state) == len(view.free)
        for request, lease in view.leases.items():
            assert queries.block_table(state, request) == lease.copies
            assert queries.allocated_tokens(state, request) == lease.allocated_tokens
            assert queries.sequence_length(state, request) == lease.length
            assert queries.generated(state, request) == lease.generated
        for dependency in (*view.dependencies, 9999):
            assert queries.is_pending(state, dependency) == (dependency in view.dependencies)
        for number, reservation in view.reservations.items():
            if reservation.kind == "destination":
                assert queries.destination_pending(state, number) == reservation.dependencies
        for name, entry in view.index.items():
            hit = queries.prefix_hit(state, name)
            assert hit is not None
            assert hit.is_active == (entry.primary not in view.lru)
        return view

    def prefill_cost(self, state: BlockState, request: RequestId) -> PrefillCost:
        """The core's prefill cost."""
        return queries.prefill_cost(state, request)
