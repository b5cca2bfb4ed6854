"""L01, L02: blocks and leases move as their lifecycle tables say, and in no other way."""

from tenure.core.blocks.lifecycles import (
    BLOCK_MOVES,
    LEASE_CELLS,
    BlockPhase,
    block_phases,
    lease_phase,
    named_requests,
)
from tenure.core.blocks.values import GrowthReady
from tenure.spec.blocks.rule import Observation
from tenure.spec.rule import Finding


def blocks_move_as_the_table_says(seen: Observation) -> Finding:
    """L01."""
    if seen.before is seen.after:
        return None
    then, now = block_phases(seen.before), block_phases(seen.after)
    if then == now:
        return None
    allowed = BLOCK_MOVES.get(type(seen.event), frozenset())
    for block in sorted(then.keys() | now.keys()):
        move = (then.get(block, BlockPhase.FREE), now.get(block, BlockPhase.FREE))
        if move[0] is not move[1] and move not in allowed:
            return f"block {block} went from {move[0].value} to {move[1].value} by {type(seen.event).__name__}"
    return None


def leases_move_as_the_table_says(seen: Observation) -> Finding:
    """L02."""
    named = named_requests(seen.event)
    if isinstance(seen.answer, GrowthReady):
        # Whoever stands behind the first request without capacity was not looked at.
        named = named[: seen.answer.served]
    for request in named:
        phase, to = lease_phase(seen.before, request), lease_phase(seen.after, request)
        if to not in LEASE_CELLS[phase, type(seen.event)].to:
            return f"the lease of {request!r} went from {phase.value} to {to.value} by {type(seen.event).__name__}"
    for request in {**seen.before.leases, **seen.after.leases}:
        if request in named:
            continue
        phase, to = lease_phase(seen.before, request), lease_phase(seen.after, request)
        if phase is not to:
            return f"the lease of {request!r} went from {phase.value} to {to.value} by an event about {named}"
    return None
