"""A scheduler output becomes a started step, all of it or nothing (R10, R15, R22)."""

from collections.abc import Mapping
from typing import NamedTuple, assert_never

import numpy as np

from tenure.core.arrays import read_only
from tenure.core.config import as_int
from tenure.core.errors import (
    BlockOutOfRangeError,
    HitBlocksError,
    HitIdentitiesError,
    HitNotAlignedError,
    HitWithoutTokensError,
    KvGroupsError,
    ReplacementUnsupportedError,
    RequestIdError,
    RequestNamedTwiceError,
    RowCountError,
    SaveReservedError,
    StepNotSavedError,
    UnknownRequestError,
)
from tenure.core.rows.answers import StepBegan
from tenure.core.rows.edit import Edit
from tenure.core.rows.events import (
    Aborted,
    BlockId,
    ContentIdentity,
    Extended,
    Finished,
    Replaced,
    RequestId,
    Resumed,
    Started,
    StepStarted,
)
from tenure.core.rows.guards import check_serving
from tenure.core.rows.names import HIDDEN, NameId
from tenure.core.rows.reads import hit_claims, plan_read
from tenure.core.rows.records import Hit, Step
from tenure.core.rows.tables import Tables
from tenure.core.rows.view import StepPhase
from tenure.core.rows.writes import end_request


class _Arrivals(NamedTuple):
    """What a scheduler output asks for, checked.

    Attributes:
        ends: live requests that end, in order.
        fresh: requests that arrive, in order.
        scheduled: tokens of every request that goes on or arrives.
        hits: the hit spans of arrivals.
        resumed_with_hit: resumptions whose hit marks none.
    """

    ends: tuple[RequestId, ...]
    fresh: tuple[RequestId, ...]
    scheduled: Mapping[RequestId, int]
    hits: tuple[Hit, ...]
    computes: tuple[tuple[BlockId, ContentIdentity], ...]
    resumed_with_hit: int


def on_step_started(edit: Edit, event: StepStarted) -> StepBegan:
    """Take one scheduler output: queue the writes of ended requests, mark hits, begin their reads.

    Rules: R10, R15, R22.

    Raises:
        ShutDownError, WriteFailedError: nothing is served any more (R12).
        StepNotSavedError, SaveReservedError: the step before was neither saved nor dropped.
        ReplacementUnsupportedError, UnknownRequestError, RequestNamedTwiceError, RowCountError, HitNotAlignedError,
        HitWithoutTokensError, KvGroupsError, HitBlocksError, HitIdentitiesError, BlockOutOfRangeError: a request is
            malformed.
    """
    tables = edit.tables
    check_serving(tables)
    if tables.pending:
        reserved = tables.steps[tables.pending].phase is StepPhase.RESERVED
        raise (SaveReservedError if reserved else StepNotSavedError)(tables.pending)
    arrivals = _checked(tables, event)

    tables.started = True
    for request in arrivals.ends:
        end_request(edit, request)
    for request in arrivals.fresh:
        edit.put(tables.live, request, None)
    edit.count("resumed_with_hit", arrivals.resumed_with_hit)
    # A step without tokens computes nothing and has no save (R22).
    if not any(arrivals.scheduled.values()):
        return StepBegan(None, ())
    step = tables.next_step
    tables.next_step = step + 1
    tables.pending = step
    reads = {
        (hit.request, name): number
        for hit in arrivals.hits
        for name in tables.formats
        if (number := _speculate(edit, step, hit, name)) is not None
    }
    edit.count("hits", len(arrivals.hits))
    edit.put(tables.steps, step, Step(StepPhase.STARTED, arrivals.scheduled, arrivals.hits, arrivals.computes, reads))
    return StepBegan(step, tuple((hit.request, len(hit.slots)) for hit in arrivals.hits))


def _speculate(edit: Edit, step: int, hit: Hit, name: NameId) -> int | None:
    """Plan a read before the step's save; that save confirms it or plans anew. What cannot be read is left to it."""
    claims = hit_claims(edit.tables, name, hit)
    if not claims.any() or (name == HIDDEN and not claims.all()):
        return None
    return plan_read(edit, step, hit, edit.tables.formats[name], claims)


def _ends(tables: Tables, event: StepStarted) -> tuple[RequestId, ...]:
    """The live requests that end, in order; every id is looked at."""
    for each in event.changes:
        if not isinstance(each, Extended):
            _check_id(each.request)
    return tuple(
        dict.fromkeys(
            each.request
            for each in event.changes
            if isinstance(each, Finished | Aborted) and each.request in tables.live
        )
    )


def _checked(tables: Tables, event: StepStarted) -> _Arrivals:
    ends = _ends(tables, event)
    ended = frozenset(ends)
    fresh: list[RequestId] = []
    scheduled: dict[RequestId, int] = {}
    hits: list[Hit] = []
    computes: list[tuple[BlockId, ContentIdentity]] = []
    resumed_with_hit = 0
    for each in event.changes:
        match each:
            case Finished() | Aborted():
                continue
            case Replaced(request):
                raise ReplacementUnsupportedError(request)
            case Extended():
                _extend(tables, each, ended, scheduled)
            case Started(request):
                _put_once(scheduled, request, _count(request, "scheduled", each.scheduled))
                if request not in tables.live or request in ended:
                    fresh.append(request)
                    if _count(request, "hit", each.hit):
                        hits.append(_hit(tables, each))
            case Resumed(request):
                if request not in tables.live or request in ended:
                    raise UnknownRequestError(request)
                _put_once(scheduled, request, _count(request, "scheduled", each.scheduled))
                resumed_with_hit += _count(request, "hit", each.hit) > 0
            case _:
                assert_never(each)
        for block, identity in each.computes:
            named = (*each.requests, "")[0] if isinstance(each, Extended) else each.request
            computes.append((_block(named, block, tables.config.num_blocks), identity))
    return _Arrivals(ends, tuple(fresh), scheduled, tuple(hits), tuple(computes), resumed_with_hit)


def _extend(tables: Tables, event: Extended, ended: frozenset[RequestId], scheduled: dict[RequestId, int]) -> None:
    counts = dict(zip(event.requests, event.scheduled.tolist(), strict=True))
    if not (tables.live.keys() >= counts.keys() and counts.keys().isdisjoint(ended)):
        raise UnknownRequestError(next(each for each in counts if each not in tables.live or each in ended))
    if len(counts) < len(event.requests) or not counts.keys().isdisjoint(scheduled):
        named = event.requests
        again = next(each for place, each in enumerate(named) if each in scheduled or each in named[:place])
        raise RequestNamedTwiceError(again, "one start")
    if len(event.scheduled) and int(event.scheduled.min()) < 0:
        place = int(np.argmin(event.scheduled))
        raise RowCountError(event.requests[place], "scheduled", int(event.scheduled[place]))
    scheduled.update(counts)


def _check_id(request: object) -> None:
    # As layouts and `Extended` take them: True would be the request 1, and a numpy integer is no key of a record.
    if type(request) is not str and type(request) is not int:
        raise RequestIdError(request)


def _put_once(scheduled: dict[RequestId, int], request: RequestId, count: int) -> None:
    if request in scheduled:
        raise RequestNamedTwiceError(request, "one start")
    scheduled[request] = count


def _count(request: RequestId, what: str, value: int) -> int:
    count = as_int(value)
    if count is None or count < 0:
        raise RowCountError(request, what, value)
    return count


def _block(request: RequestId, block: BlockId, num_blocks: int) -> BlockId:
    number = as_int(block)
    if number is None or not 0 <= number < num_blocks:
        raise BlockOutOfRangeError(request, block, num_blocks)
    return number


def _hit(tables: Tables, event: Started) -> Hit:
    """The hit span of an arrival, in slots.

    Raises:
        ContractError: it is malformed.
    """
    request, config = event.request, tables.config
    hit = _count(request, "hit", event.hit)
    size = config.block_size
    if hit % size:
        raise HitNotAlignedError(request, hit, size)
    if not event.scheduled:
        raise HitWithoutTokensError(request, hit)
    if len(event.blocks) > 1:
        raise KvGroupsError(request, len(event.blocks))
    table = event.blocks[0] if event.blocks else ()
    needed = hit // size
    if len(table) < needed:
        raise HitBlocksError(request, hit, needed, len(table))
    blocks = tuple(_block(request, block, config.num_blocks) for block in table[:needed])
    if event.expects and len(event.expects) != needed:
        raise HitIdentitiesError(request, needed, len(event.expects))
    starts = np.array(blocks, dtype=np.int64) * size
    slots = (starts[:, None] + np.arange(size, dtype=np.int64)).reshape(-1)
    return Hit(request, read_only(slots), blocks, tuple(event.expects))
