"""Reset of a joined cache: rows and hashes are forgotten together (R24, X01)."""

from tenure.core.blocks import machine as block_machine
from tenure.core.blocks import queries
from tenure.core.blocks import values as block_values
from tenure.core.blocks.state import BlockState
from tenure.core.joined.state import CacheState, CacheTransition, tell_rows
from tenure.core.joined.values import CacheCommand, RequestId, Track
from tenure.core.persistent import Map
from tenure.core.rows import events
from tenure.core.rows.answers import ResetAnswered


def on_reset_requested(state: CacheState, event: events.ResetRequested) -> CacheTransition:
    """Forget every row and every hash: the next identical prompt misses (R24, X01).

    Refused while a request lives, a lease holds blocks or a step is there, except after a failure; then leases are
    preempted, and their requests start anew.
    """
    after, commands = state, list[CacheCommand]()
    rows = state.rows.tables
    if rows.failure is None and any(lease.copies for lease in state.blocks.tables.leases.values()):
        return CacheTransition(state, ResetAnswered(False), ())
    if state.ended and state.started is None and rows.failure is None and not rows.shut_down:
        told = tell_rows(state, events.StepStarted(tuple(events.Finished(each) for each in state.ended)))
        after = told.state
        commands += told.commands
    told = tell_rows(after, event)
    if told.answer != ResetAnswered(True):
        return CacheTransition(state, told.answer, ())
    commands += told.commands
    blocks = told.state.blocks
    tracks: dict[RequestId, Track] = {}
    for request in blocks.view().leases:
        blocks, _, found = block_machine.transition(blocks, block_values.LeasePreempted(request))
        commands += found
        tracks[request] = Track(state.tracks[request].group)
    blocks, found = _without_content(blocks)
    commands += found
    fresh = CacheState(state.config, blocks, told.state.rows, Map(tracks), Map())
    return CacheTransition(fresh, told.answer, tuple(commands))


def _without_content(blocks: BlockState) -> tuple[BlockState, tuple[block_values.Command, ...]]:
    """Evict every inactive block: all capacity is reserved, and given back."""
    available = queries.num_free(blocks) + queries.num_inactive(blocks)
    if not available:
        return blocks, ()
    blocks, answer, commands = block_machine.transition(blocks, block_values.DecodeReservationRequested(available))
    assert isinstance(answer, block_values.Reserved)
    blocks, _, more = block_machine.transition(blocks, block_values.DecodeReservationReleased(answer.reservation))
    return blocks, (*commands, *more)
