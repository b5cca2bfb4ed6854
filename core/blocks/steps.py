"""A scheduler's step over many leases as single events: all decode growth in one, all decoded tokens in another.

Each batch is defined as a sequence of single events and gives the same state; a raise in the middle undoes all of it.
What it saves is the cost of an event: most leases of a step only move a watermark, and gain a token.
"""

from tenure.core.blocks import pool
from tenure.core.blocks.computed import finalize_last, next_token, open_block
from tenure.core.blocks.leases import drop_snapshots, find_lease, grow, keep, set_allocated
from tenure.core.blocks.tables import Edit, Lease
from tenure.core.blocks.values import (
    BlockId,
    DependencyId,
    Exhausted,
    GrowthReady,
    GrowthScheduled,
    RequestId,
    StepAppended,
    StepComputed,
)
from tenure.core.config import U32_MAX
from tenure.core.errors import NothingComputedError, StepTokensError
from tenure.core.persistent import ATTRIBUTES, LASTS, MISSING, TAIL


def on_growth_scheduled(edit: Edit, event: GrowthScheduled) -> GrowthReady:
    """Hold capacity for all known tokens of each request, in order, up to the first that finds none.

    Raises:
        UnknownLeaseError: a request without an open lease.
        FencedGrowthError: a lease must grow while its earlier capacity waits for an authorization.
    """
    tables = edit.tables
    size = tables.block_size
    blocks: list[tuple[RequestId, BlockId]] = []
    fenced: list[tuple[RequestId, tuple[DependencyId, ...]]] = []
    moved: list[Lease] = []
    watermarks: list[int] = []
    served = 0
    leases, snapshots = tables.leases, tables.snapshots
    try:
        for request in event.requests:
            lease = leases.get(request) or find_lease(tables, request)
            tokens = lease.start + len(lease.window)
            held = len(lease.copies)
            if tokens > held * size:
                if tokens <= (held + 1) * size and lease.pending is None and not (snapshots or tables.tags):
                    block = pool.take_private(edit)
                    if block is None:
                        break
                    edit.journal.append((TAIL, lease.copies, held, []))
                    lease.copies.append(block)
                    set_allocated(edit, lease, tokens)
                    blocks.append((request, block))
                    served += 1
                    continue
                answer = grow(edit, lease, tokens, -(-tokens // size))
                if isinstance(answer, Exhausted):
                    break
                blocks += [(request, block) for block in answer.blocks]
                if answer.dependencies:
                    fenced.append((request, answer.dependencies))
            elif lease.pending is not None or snapshots:
                dependencies = keep(edit, lease, tokens).dependencies
                if dependencies:
                    fenced.append((request, dependencies))
            elif tokens > lease.allocated:
                moved.append(lease)
                watermarks.append(lease.allocated)
                lease.allocated = tokens
            served += 1
    finally:
        # One entry for all watermarks, also when a raise is about to undo them.
        if moved:
            edit.journal.append((ATTRIBUTES, moved, "allocated", watermarks))
    return GrowthReady(served, tuple(blocks), tuple(fenced))


def on_step_computed(edit: Edit, event: StepComputed) -> StepAppended:
    """Complete the last known token of each request and append its next one.

    Raises:
        StepTokensError: not one token a request.
        UnknownLeaseError, NothingComputedError: a request that cannot have taken part.
        OutputExhaustedError, TokenRangeError, and those of `finalize`.
    """
    tables, given = edit.tables, event.tokens
    size = tables.block_size
    if given is not None and len(given) != len(event.requests):
        raise StepTokensError(len(event.requests), len(given))
    # Checked at once; if one is out of range, the request whose turn it is raises.
    in_range = bool(given) and 0 <= min(given or ()) <= max(given or ()) <= U32_MAX
    tokens: list[int] = []
    windows: list[list[int]] = []
    leases, snapshots = tables.leases, tables.snapshots
    try:
        for index, request in enumerate(event.requests):
            lease = leases.get(request) or find_lease(tables, request)
            length = lease.start + len(lease.window)
            is_full = length % size == 0
            if is_full:
                if length == 0:
                    raise NothingComputedError(request)
                finalize_last(edit, lease)
            ordinal = length - lease.prompt_tokens
            if given is None:
                planned = lease.planned
                token = planned[ordinal] if ordinal < len(planned) else next_token(lease, None)
            elif in_range and ordinal < lease.max_output:
                token = given[index]
            else:
                token = next_token(lease, given[index])
            if snapshots:
                drop_snapshots(edit, request)
            if is_full:
                open_block(edit, lease)
            window = lease.window
            window.append(token)
            windows.append(window)
            tokens.append(token)
    finally:
        # One entry for all tokens, also when a raise is about to undo them.
        if windows:
            edit.journal.append((LASTS, windows, [MISSING] * len(windows), None))
    return StepAppended(tuple(tokens))
