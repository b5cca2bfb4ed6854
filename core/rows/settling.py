"""What a save does to the reads of its step: confirmed, planned anew, dropped, or found impossible (R02, R14).

What a start planned was a guess: which rows a hit means is known when the claims of its own step are made.
"""

import numpy as np

from tenure.core.rows.edit import Edit
from tenure.core.rows.events import ReadId, RequestId, StepId
from tenure.core.rows.names import HIDDEN, NameId, RowFormat
from tenure.core.rows.reads import drop_read, hit_claims, plan_read
from tenure.core.rows.records import Hit, Step
from tenure.core.rows.view import ReadPhase, UnreadableHit


def settle_reads(
    edit: Edit, number: StepId, step: Step, formats: tuple[RowFormat, ...]
) -> tuple[dict[tuple[RequestId, NameId], ReadId], tuple[UnreadableHit, ...]]:
    """Settle the reads of a step's hits, now that its claims are made; the reads that it has, and unreadable hits."""
    reads: dict[tuple[RequestId, NameId], ReadId] = {}
    unreadable: list[UnreadableHit] = []
    unsettled = dict(step.reads)
    for hit in step.hits:
        verdict = _hole(edit, hit, formats)
        if verdict is not None:
            unreadable.append(verdict)
            continue
        for each in formats:
            planned = unsettled.pop((hit.request, each.name), None)
            reads[hit.request, each.name] = _settle(edit, number, hit, each, planned)
    for planned in unsettled.values():
        drop_read(edit, planned)
    return reads, tuple(unreadable)


def _hole(edit: Edit, hit: Hit, formats: tuple[RowFormat, ...]) -> UnreadableHit | None:
    """R14: hidden with a hole is unreadable, for ever."""
    if all(each.name != HIDDEN for each in formats):
        return None
    holes = hit.slots[hit_claims(edit.tables, HIDDEN, hit) == 0]
    return UnreadableHit(hit.request, HIDDEN, tuple(holes.tolist())) if len(holes) else None


def _settle(edit: Edit, number: StepId, hit: Hit, row_format: RowFormat, planned: ReadId | None) -> ReadId:
    tables = edit.tables
    claims = hit_claims(tables, row_format.name, hit)
    if planned is not None:
        read = tables.reads[planned]
        if read.phase is not ReadPhase.FAILED and np.array_equal(read.claims, claims):
            edit.put(tables.reads, planned, read._replace(confirmed=True))
            edit.count("reads_confirmed")
            return planned
        drop_read(edit, planned)
        edit.count("reads_replanned")
    fresh = plan_read(edit, number, hit, row_format, claims)
    edit.put(tables.reads, fresh, tables.reads[fresh]._replace(confirmed=True))
    return fresh
