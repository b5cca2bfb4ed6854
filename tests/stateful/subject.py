"""The core's block machine, in both representations at once, as the lock-step runner wants to see it."""

from typing import NamedTuple

from tenure.core.blocks import queries
from tenure.core.blocks.machine import transition
from tenure.core.blocks.state import BlockState
from tenure.core.blocks.values import Answer, Command, Event, RequestId
from tenure.core.blocks.view import BlockView, PrefillCost
from tenure.core.config import BlockConfig
from tests.pairs import same_view, told_twice


class Pair(NamedTuple):
    """One state that copies its tables, and the same one that keeps the difference to its successors."""

    copying: BlockState
    journaled: BlockState


class CoreSubject:
    """Tells both representations the same events, and holds the core's queries against its own views."""

    def initial(self, config: BlockConfig) -> Pair:
        """An empty core, twice."""
        return Pair(BlockState.initial(config, copying=True), BlockState.initial(config, copying=False))

    def transition(self, state: Pair, event: Event) -> tuple[Pair, Answer, tuple[Command, ...]]:
        """The core's transition; both must agree, also in what they refuse and how."""
        copying, journaled = told_twice(transition, state.copying, state.journaled, event)
        return Pair(copying.state, journaled.state), copying.answer, copying.commands

    def view(self, state: Pair) -> BlockView:
        """The core's view, the same in both, after every query was compared with it."""
        # Positions only order; a copy and a difference may number them alike, and do.
        view = same_view(state.journaled, state.copying)
        compare_queries(state.journaled, view)
        return view

    def prefill_cost(self, state: Pair, request: RequestId) -> PrefillCost:
        """The core's prefill cost."""
        cost = queries.prefill_cost(state.journaled, request)
        assert cost == queries.prefill_cost(state.copying, request)
        return cost


def compare_queries(state: BlockState, view: BlockView) -> None:
    """Hold every query against the view."""
    assert queries.num_active(state) == view.num_active
    assert queries.num_inactive(state) == view.num_inactive
    assert queries.num_free(state) == len(view.free)
    for request, lease in view.leases.items():
        assert queries.block_table(state, request) == lease.copies
        assert queries.block_hashes(state, request) == lease.hashes
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
