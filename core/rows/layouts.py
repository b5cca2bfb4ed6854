"""Checks a write layout against the step it is for (R15)."""

import numpy as np

from tenure.core.arrays import Integers
from tenure.core.config import as_int
from tenure.core.errors import (
    IdentityNotComputedError,
    LayoutMismatchError,
    PaddingError,
    RequestNamedTwiceError,
    RowCountError,
    SlotCountError,
    SlotNamedTwiceError,
    SlotOutOfRangeError,
    StepTooLargeError,
)
from tenure.core.rows.events import BlockId, ContentIdentity, RequestId, StepId, WriteLayout
from tenure.core.rows.lifecycles import is_number
from tenure.core.rows.records import Step
from tenure.core.rows.tables import Tables


def check_layout(tables: Tables, number: StepId, step: Step, layout: WriteLayout) -> None:
    """Refuse a layout that is not the one of the started step.

    Raises:
        SlotCountError, StepTooLargeError, PaddingError: slots unlike tokens, too many, or less when padded.
        RequestNamedTwiceError, RowCountError, LayoutMismatchError: the batch is not what was scheduled.
        SlotOutOfRangeError, SlotNamedTwiceError: a slot is not in the pool, or is named twice.
        IdentityNotComputedError: the start gave an identity for a block that is not computed.
    """
    tokens = sum(step.scheduled.values())
    if len(layout.slots) != tokens:
        raise SlotCountError(number, len(layout.slots), tokens)
    if tokens > tables.config.page_rows_max:
        raise StepTooLargeError(number, tokens, tables.config.page_rows_max)
    if layout.padded is not None and ((padded := as_int(layout.padded)) is None or padded < tokens):
        raise PaddingError(layout.padded, tokens)
    _check_batch(tables, number, step, layout)
    _check_slots(tables, layout)
    check_identities(tables, number, layout.slots, step.computes)


def check_identities(
    tables: Tables, number: StepId, slots: Integers, computes: tuple[tuple[BlockId, ContentIdentity], ...]
) -> None:
    """Refuse an identity for a block that a step does not compute.

    Raises:
        IdentityNotComputedError: there is one.
    """
    touched = frozenset(np.unique(slots // tables.config.block_size).tolist()) if computes else frozenset[int]()
    for block, _ in computes:
        if not is_number(block) or block not in touched:
            raise IdentityNotComputedError(number, block)


def _check_batch(tables: Tables, number: StepId, step: Step, layout: WriteLayout) -> None:
    counts = dict(zip(layout.requests, layout.counts.tolist(), strict=True))
    if len(counts) == len(layout.requests) and counts == step.scheduled:
        return
    if len(counts) < len(layout.requests):
        again = next(each for place, each in enumerate(layout.requests) if each in layout.requests[:place])
        raise RequestNamedTwiceError(again, "one layout")
    for request, count in counts.items():
        if count < 0:
            raise RowCountError(request, "rows", count)
    for request, count in counts.items():
        if count != step.scheduled.get(request, 0) or request not in tables.live:
            raise LayoutMismatchError(number, request, count, step.scheduled.get(request, 0))
    for request, scheduled in step.scheduled.items():
        if scheduled and request not in counts:
            raise LayoutMismatchError(number, request, 0, scheduled)


def _check_slots(tables: Tables, layout: WriteLayout) -> None:
    slots = layout.slots
    if int(slots.min()) < 0 or int(slots.max()) >= tables.num_slots:
        place = int(np.argmax((slots < 0) | (slots >= tables.num_slots)))
        slot = int(slots[place])
        raise SlotOutOfRangeError(request_at(layout, place), slot, slot // tables.config.block_size, tables.num_slots)
    # Every slot is marked with its place; where another place stands afterwards, it was named again.
    places = np.arange(len(slots), dtype=np.int64)
    tables.mark[slots] = places
    again = tables.mark[slots] != places
    if again.any():
        place = int(np.argmax(again))
        slot = int(slots[place])
        raise SlotNamedTwiceError(slot, request_at(layout, place), request_at(layout, int(tables.mark[slot])))


def request_at(layout: WriteLayout, row: int) -> RequestId:
    """Whose batch row this is."""
    return layout.requests[int(np.searchsorted(np.cumsum(layout.counts), row, side="right"))]


def starts_of(layout: WriteLayout) -> Integers:
    """Where each request's rows start, and their end. Shapes: result `[len(requests) + 1]`."""
    return np.concatenate(([0], np.cumsum(layout.counts)))
