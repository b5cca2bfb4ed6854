"""A scheduler's step over many leases as single events: all decode growth in one, all decoded tokens in another.

Each batch is defined as a sequence of single events and gives the same state; a raise in the middle undoes all of it.
What it saves is the cost of an event: most leases of a step only move a watermark, and gain a token.
"""

from tenure.core.blocks import pool
from tenure.core.blocks.computed import finalize_last, next_token, open_block
from tenure.core.blocks.leases import drop_snapshots, find_lease, grow, keep
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
from tenure.core.persistent import ATTRIBUTE, ATTRIBUTES, TAIL, TAILS


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
    leases, snapshots_of = tables.leases, tables.snapshots_of
    # One entry for all watermarks that only move: written before the first of them does.
    edit.journal.append((ATTRIBUTES, moved, "allocated", watermarks))
    for request in event.requests:
        lease = leases.get(request) or find_lease(tables, request)
        tokens = lease.start + len(lease.window)
        held = len(lease.copies)
        if tokens > held * size:
            block = _grow_one(edit, lease, tokens) if tokens <= (held + 1) * size else None
            if block is not None:
                blocks.append((request, block))
                served += 1
                continue
            answer = grow(edit, lease, tokens, -(-tokens // size))
            if isinstance(answer, Exhausted):
                break
            blocks += [(request, block) for block in answer.blocks]
            if answer.dependencies:
                fenced.append((request, answer.dependencies))
        elif lease.pending is not None or (snapshots_of and request in snapshots_of):
            dependencies = keep(edit, lease, tokens).dependencies
            if dependencies:
                fenced.append((request, dependencies))
        elif tokens > lease.allocated:
            watermarks.append(lease.allocated)
            moved.append(lease)
            lease.allocated = tokens
        served += 1
    if not moved:
        del edit.journal[0]
    return GrowthReady(served, tuple(blocks), tuple(fenced))


def _grow_one(edit: Edit, lease: Lease, tokens: int) -> BlockId | None:
    """`grow` by one fresh block where nothing is fenced; None where it is not that simple, and nothing is changed."""
    tables = edit.tables
    if lease.pending is not None or tables.tags or lease.request in tables.snapshots_of:
        return None
    block = pool.take_private(edit)
    if block is None:
        return None
    log = edit.journal.append
    log((TAIL, lease.copies, len(lease.copies), []))
    lease.copies.append(block)
    log((ATTRIBUTE, lease, "allocated", lease.allocated))
    lease.allocated = tokens
    return block


def _are_tokens(given: tuple[int, ...]) -> bool:
    return set(map(type, given)) == {int} and 0 <= min(given) <= max(given) <= U32_MAX


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
    in_range = given is not None and _are_tokens(given)
    tokens: list[int] = []
    windows: list[list[int]] = []
    lengths: list[int] = []
    leases, snapshots_of = tables.leases, tables.snapshots_of
    # One entry for all tokens: written before the first of them is appended.
    edit.journal.append((TAILS, windows, lengths, None))
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
        if snapshots_of:
            drop_snapshots(edit, request)
        if is_full:
            open_block(edit, lease)
        window = lease.window
        lengths.append(len(window))
        windows.append(window)
        window.append(token)
        tokens.append(token)
    if not windows:
        del edit.journal[0]
    return StepAppended(tuple(tokens))
