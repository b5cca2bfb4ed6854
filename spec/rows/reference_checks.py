"""What the naive oracle refuses before anything changes: malformed arrivals and layouts (R15)."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from tenure.core.config import RowConfig
from tenure.core.errors import (
    BlockOutOfRangeError,
    HitBlocksError,
    HitIdentitiesError,
    HitNotAlignedError,
    HitWithoutTokensError,
    IdentityNotComputedError,
    KvGroupsError,
    LayoutMismatchError,
    PaddingError,
    ReplacementUnsupportedError,
    RequestNamedTwiceError,
    RowCountError,
    SlotCountError,
    SlotNamedTwiceError,
    SlotOutOfRangeError,
    StepTooLargeError,
    UnknownRequestError,
)
from tenure.core.rows.events import (
    Aborted,
    BlockId,
    ContentIdentity,
    Extended,
    Finished,
    LifeCycle,
    Replaced,
    RequestId,
    Resumed,
    Started,
    StepId,
    WriteLayout,
)


@dataclass(frozen=True, slots=True)
class HitSpan:
    """What an arriving request found computed: whole blocks, and what each should hold, if anybody said."""

    tokens: int
    blocks: tuple[BlockId, ...]
    expects: tuple[ContentIdentity, ...]


@dataclass(slots=True)
class Start:
    """A scheduler output that can be taken.

    Attributes:
        live: the requests that are live from it on.
        scheduled: tokens of each request named in it.
        hits: the hit spans that it marks.
        computes: per block what it will hold when the step was saved.
    """

    live: set[RequestId]
    scheduled: dict[RequestId, int] = field(default_factory=dict[RequestId, int])
    hits: dict[RequestId, HitSpan] = field(default_factory=dict[RequestId, HitSpan])
    computes: dict[BlockId, ContentIdentity] = field(default_factory=dict[BlockId, ContentIdentity])


def check_start(changes: Sequence[LifeCycle], live: Collection[RequestId], config: RowConfig) -> Start:
    """Read a scheduler output; ends come before everything else.

    Raises:
        TenureError: a part of it is malformed.
    """
    start = Start({*live} - {each.request for each in changes if isinstance(each, Finished | Aborted)})
    for change in changes:
        match change:
            case Extended(requests, scheduled, computes):
                for request, count in zip(requests, scheduled.tolist(), strict=True):
                    _schedule(start, request, count)
                    _check_live(start, request)
                _name_blocks(start, requests[0] if requests else "", computes, config)
            case Resumed(request, scheduled, hit):
                _schedule(start, request, scheduled)
                _check_live(start, request)
                if hit < 0:
                    raise RowCountError(request, "hit", hit)
                _name_blocks(start, request, change.computes, config)
            case Started(request, scheduled):
                _schedule(start, request, scheduled)
                if request not in start.live:
                    _mark_hit(start, change, config)
                start.live.add(request)
                _name_blocks(start, request, change.computes, config)
            case Replaced(request):
                raise ReplacementUnsupportedError(request)
            case Finished() | Aborted():
                pass
    return start


def _schedule(start: Start, request: RequestId, count: int) -> None:
    if request in start.scheduled:
        raise RequestNamedTwiceError(request, "one start")
    if count < 0:
        raise RowCountError(request, "scheduled", count)
    start.scheduled[request] = count


def _check_live(start: Start, request: RequestId) -> None:
    if request not in start.live:
        raise UnknownRequestError(request)


def _name_blocks(
    start: Start, request: RequestId, computes: Sequence[tuple[BlockId, ContentIdentity]], config: RowConfig
) -> None:
    for block, identity in computes:
        if not 0 <= block < config.num_blocks:
            raise BlockOutOfRangeError(request, block, config.num_blocks)
        start.computes[block] = identity


def _mark_hit(start: Start, arrival: Started, config: RowConfig) -> None:
    request, hit, size = arrival.request, arrival.hit, config.block_size
    if hit < 0:
        raise RowCountError(request, "hit", hit)
    if hit == 0:
        return
    if hit % size:
        raise HitNotAlignedError(request, hit, size)
    if arrival.scheduled == 0:
        raise HitWithoutTokensError(request, hit)
    count = hit // size
    if not arrival.blocks:
        raise HitBlocksError(request, hit, count, 0)
    table, *other_groups = arrival.blocks
    if other_groups:
        raise KvGroupsError(request, len(arrival.blocks))
    if len(table) < count:
        raise HitBlocksError(request, hit, count, len(table))
    for block in table[:count]:
        if not 0 <= block < config.num_blocks:
            raise BlockOutOfRangeError(request, block, config.num_blocks)
    if arrival.expects and len(arrival.expects) != count:
        raise HitIdentitiesError(request, count, len(arrival.expects))
    start.hits[request] = HitSpan(hit, table[:count], arrival.expects)


def check_layout(layout: WriteLayout, step: StepId, start: Start, config: RowConfig) -> None:
    """Hold a batch against the pool and against what was scheduled.

    Raises:
        TenureError: the batch cannot be saved.
    """
    counts: list[int] = layout.counts.tolist()
    slots: list[int] = layout.slots.tolist()
    tokens = sum(start.scheduled.values())
    if len(slots) != tokens:
        raise SlotCountError(step, len(slots), tokens)
    if tokens > config.page_rows_max:
        raise StepTooLargeError(step, tokens, config.page_rows_max)
    if layout.padded is not None and layout.padded < tokens:
        raise PaddingError(layout.padded, tokens)
    _check_batch(layout.requests, counts, step, start)
    owners = [request for request, count in zip(layout.requests, counts, strict=True) for _ in range(count)]
    for owner, slot in zip(owners, slots, strict=True):
        if not 0 <= slot < config.num_slots:
            raise SlotOutOfRangeError(owner, slot, slot // config.block_size, config.num_slots)
    for place, slot in enumerate(slots):
        if slot in slots[:place]:
            raise SlotNamedTwiceError(slot, owners[slots.index(slot)], owners[place])


def _check_batch(requests: Sequence[RequestId], counts: Sequence[int], step: StepId, start: Start) -> None:
    for place, request in enumerate(requests):
        if request in requests[:place]:
            raise RequestNamedTwiceError(request, "the layout")
    batch = dict(zip(requests, counts, strict=True))
    for request, count in batch.items():
        if count < 0:
            raise RowCountError(request, "rows", count)
    for request, count in batch.items():
        if count != start.scheduled.get(request, 0) or request not in start.live:
            raise LayoutMismatchError(step, request, count, start.scheduled.get(request, 0))
    for request, count in start.scheduled.items():
        if count and request not in batch:
            raise LayoutMismatchError(step, request, 0, count)


def check_identities(computes: dict[BlockId, ContentIdentity], blocks: Collection[BlockId], step: StepId) -> None:
    """Hold the blocks that a start names against those that the layout computes.

    Raises:
        IdentityNotComputedError: a named block is not among them.
    """
    for block in computes:
        if block not in blocks:
            raise IdentityNotComputedError(step, block)
