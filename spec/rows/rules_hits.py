"""R02 and R14: which rows a hit is read from, and whether it can be read at all."""

from collections.abc import Iterator, Mapping

from tenure.core.rows.answers import StepBegan
from tenure.core.rows.commands import GatherPart, GatherRows, SourceKind
from tenure.core.rows.events import (
    BlockId,
    Claim,
    ContentIdentity,
    GatherBegan,
    ReadId,
    RequestId,
    SavePublished,
    Slot,
    StepStarted,
)
from tenure.core.rows.names import HIDDEN, NameId
from tenure.core.rows.view import ReadPhase, ReadView, RowView, StepView, UnreadableHit, WritePhase
from tenure.spec.rows.rule import (
    BEFORE_SAVE,
    ON_CLONES,
    SAVED,
    RowObservation,
    arrivals,
    commanded,
    host_rows,
    published,
    step_reads,
    writes_of_claims,
)
from tenure.spec.rule import Finding

Expected = Mapping[RequestId, tuple[ContentIdentity, ...]]
"""Per hit what its blocks should hold, where the start said so."""


def hit_slots(view: RowView, hit: int, table: tuple[BlockId, ...]) -> tuple[Slot, ...]:
    """The slots of tokens `[0, hit)` of a request with this block table."""
    size = view.config.block_size
    within = range(min(hit, len(table) * size))
    return tuple(table[token // size] * size + token % size for token in within)


def hit_claims(
    view: RowView, name: NameId, slots: tuple[Slot, ...], expects: tuple[ContentIdentity, ...]
) -> tuple[Claim, ...]:
    """The effective claims of a hit's rows; a block that holds something else than expected has none (R14)."""
    size = view.config.block_size
    claims: list[Claim] = []
    for place, slot in enumerate(slots):
        wanted = expects[place // size : place // size + 1]
        is_other = bool(expects) and wanted != (view.identities.get(slot // size),)
        claims.append(0 if is_other else view.effective(name, slot))
    return tuple(claims)


# --- At the start -------------------------------------------------------------------------------------------------


def hits_are_marked_and_planned(seen: RowObservation) -> Finding:
    """R02, at a start: a hit is marked for each arrival, and its rows are looked for as the slots stand now."""
    event, now = seen.event, seen.after
    if not isinstance(event, StepStarted):
        return None
    hits = [change for change in arrivals(seen.before, event) if change.hit]
    began = StepBegan(step=now.pending, hits=tuple((change.request, change.hit) for change in hits))
    if seen.answer != began:
        return f"{seen.answer} answers {event}, and {began} is marked"
    step = None if now.pending is None else now.steps.get(now.pending)
    if step is None:
        return f"{hits} are marked in no step" if hits else None
    spans = {
        change.request: hit_slots(seen.before, change.hit, change.blocks[0] if change.blocks else ()) for change in hits
    }
    if dict(step.hits) != spans or len(step.hits) != len(spans):
        return f"{step.hits} are the hits of step {now.pending}, and {spans} were found"
    wanted: dict[tuple[RequestId, NameId], tuple[Claim, ...]] = {}
    for change in hits:
        for each in seen.before.formats:
            claims = hit_claims(seen.before, each.name, spans[change.request], change.expects)
            if any(claims) and not (each.name == HIDDEN and 0 in claims):
                wanted[change.request, each.name] = claims
    found = {(read.request, read.name): read.claims for _, read in step_reads(now, step)}
    if found != wanted or len(step.reads) != len(wanted):
        return f"the reads {found} were planned, and {wanted} are the newest rows of the hits"
    if any(read.phase is not ReadPhase.PLANNED for _, read in step_reads(now, step)):
        return f"reads of step {now.pending} began before they were scheduled"
    return None


# --- At the save --------------------------------------------------------------------------------------------------


def hits_are_settled_at_the_save(seen: RowObservation) -> Finding:
    """R02, at a save: every readable hit has one read a name, of the rows as they stand after the save.

    What a hit's blocks should hold is not in a view, so rows of a whole block may also count as absent here; the
    ledger, which saw the start, allows for nothing.
    """
    return settled(seen, None)


def settled(seen: RowObservation, expects: Expected | None) -> Finding:
    """What is wrong with the reads of a step that was saved now; None for `expects` if nobody remembers them."""
    event, now = seen.event, seen.after
    if not isinstance(event, SavePublished) or event.step not in now.steps:
        return None
    step = now.steps[event.step]
    refused = {each.request for each in step.unreadable}
    listed = {(request, name): number for request, name, number in step.reads}
    for request, slots in step.hits:
        for name in () if request in refused else step.names:
            number = listed.get((request, name))
            read = None if number is None else now.reads.get(number)
            if number is None or read is None:
                return f"the hit of {request!r} in step {event.step} has no read under {name}"
            wanted = hit_claims(now, name, slots, () if expects is None else expects.get(request, ()))
            if not _same_rows(now, read.claims, wanted, is_exact=expects is not None):
                return f"read {number} of {request!r} under {name} takes claims {read.claims}, and {wanted} are newest"
            found = _confirmed(seen, step, number, read)
            if found:
                return found
    return None


def _same_rows(view: RowView, found: tuple[Claim, ...], wanted: tuple[Claim, ...], *, is_exact: bool) -> bool:
    if is_exact or found == wanted:
        return found == wanted
    size = view.config.block_size
    blocks = range(0, len(wanted), size)
    parts = [(found[start : start + size], wanted[start : start + size]) for start in blocks]
    return len(found) == len(wanted) and all(part == want or not any(part) for part, want in parts)


def _confirmed(seen: RowObservation, step: StepView, number: ReadId, read: ReadView) -> Finding:
    """A read that was planned right is kept, any other is dropped and planned anew."""
    then = seen.before
    for old, earlier in step_reads(then, then.steps[read.step]):
        if (earlier.request, earlier.name) != (read.request, read.name):
            continue
        fits = earlier.claims == read.claims and earlier.phase is not ReadPhase.FAILED
        if fits != (old == number):
            return f"read {old}, {earlier.phase.value} with claims {earlier.claims}, made way for {number} with {read}"
        return None
    if number < then.next_read:
        return f"read {number} under {read.name} was taken over from another of {step}"
    return None


def verdicts_are_fixed_at_the_save(seen: RowObservation) -> Finding:
    """R14, of a transition: hidden with a hole is unreadable from the save on, whatever happens later."""
    return verdicts(seen, None)


def verdicts(seen: RowObservation, expects: Expected | None) -> Finding:
    """What is wrong with the verdicts of a transition; None for `expects` if nobody remembers them."""
    then, now = seen.before, seen.after
    for number, step in now.steps.items():
        earlier = then.steps.get(number)
        if published(seen.event) != number:
            if earlier is not None and earlier.unreadable != step.unreadable:
                return f"step {number} went from {earlier.unreadable} to {step.unreadable} on {seen.event}"
            continue
        refused = {each.request: each for each in step.unreadable}
        for request, slots in step.hits:
            found = _verdict(now, step, refused.get(request), (request, slots), expects)
            if found:
                return found
        counted = now.counters.unreadable_hits - then.counters.unreadable_hits
        if len(refused) != len(step.unreadable) or counted != len(refused):
            return f"{counted} unreadable hits were counted, and {step.unreadable} are"
    return None


def _verdict(
    view: RowView,
    step: StepView,
    found: UnreadableHit | None,
    hit: tuple[RequestId, tuple[Slot, ...]],
    expects: Expected | None,
) -> Finding:
    request, slots = hit
    known = () if expects is None else expects.get(request, ())
    claims = hit_claims(view, HIDDEN, slots, known) if HIDDEN in step.names else (1,) * len(slots)
    holes = tuple(slot for slot, claim in zip(slots, claims, strict=True) if not claim)
    if found is None:
        return f"the hit of {request!r} has no hidden row at {holes}, and is called readable" if holes else None
    if found.name != HIDDEN or HIDDEN not in step.names or not found.slots:
        return f"the hit of {request!r} is called unreadable for {found}, and the step emits {step.names}"
    if found.slots != holes and (expects is not None or not set(holes) <= set(found.slots) <= set(slots)):
        return f"the hit of {request!r} is called unreadable for {found}, and has no hidden row at {holes}"
    return None


def readable_hits_have_their_reads(view: RowView) -> Finding:
    """R14, of a state: an unreadable hit has no read, a readable one has one a name for as long as the step is."""
    for number, step in view.steps.items():
        hits = [request for request, _ in step.hits]
        refused = [each.request for each in step.unreadable]
        if len(set(hits)) != len(hits) or not set(hits) <= {request for request, _ in step.batch}:
            return f"step {number} has the hits of {hits} in the batch {step.batch}"
        if step.phase in BEFORE_SAVE:
            if refused:
                return f"step {number} is {step.phase.value}, and {step.unreadable} are judged"
            continue
        if len(set(refused)) != len(refused) or not set(refused) <= set(hits):
            return f"step {number} has the unreadable hits {refused} among {hits}"
        found = {(request, name) for request, name, _ in step.reads}
        wanted = {(request, name) for request in hits if request not in refused for name in step.names}
        # A failure stops all consumers, and a read that it overtook while running is nobody's any more.
        if not found <= wanted or len(found) != len(step.reads) or (found != wanted and view.failure is None):
            return f"step {number} has the reads {found}, and its readable hits want {wanted}"
    return None


# --- At the gather ------------------------------------------------------------------------------------------------


def gathers_take_the_right_rows(seen: RowObservation) -> Finding:
    """R02, of commands: where each row of a read comes from when its sources are fixed."""
    gathers = commanded(seen.commands, GatherRows)
    event = seen.event
    read = seen.before.reads.get(event.read) if isinstance(event, GatherBegan) else None
    if not isinstance(event, GatherBegan) or read is None or read.phase is not ReadPhase.PLANNED:
        return f"{gathers} were commanded by {event}" if gathers else None
    if len(gathers) != 1:
        return f"{len(gathers)} gathers were commanded for read {event.read}"
    gather = gathers[0]
    formats = {each.name: each for each in seen.before.formats}
    if (gather.read, gather.format, gather.num_rows) != (event.read, formats.get(read.name), len(read.slots)):
        return f"{gather} is the gather of read {event.read}, {read}"
    if read.awaits:
        return f"read {event.read} began, and awaits {read.awaits}"
    return _rows_from_their_sources(seen, event.read, read, gather)


def _rows_from_their_sources(seen: RowObservation, number: ReadId, read: ReadView, gather: GatherRows) -> Finding:
    wanted = _sources(seen.before, read)
    found: dict[int, tuple[SourceKind, int, int]] = {}
    for part in gather.parts:
        for row, source in part_rows(part):
            if row in found:
                return f"row {row} of read {number} has two sources"
            found[row] = source
    for place in wanted.keys() | found.keys():
        one, other = found.get(place), wanted.get(place)
        if one is None or other is None or one[: len(other)] != other:
            return f"row {place} of read {number} comes from {one}, and should from {other}"
    now = seen.after.reads.get(number)
    clones = {source for kind, source, _ in found.values() if kind is SourceKind.CLONE}
    pool = {place for place, source in found.items() if source[0] is SourceKind.POOL}
    if now is None or set(now.clones) != clones or len(now.clones) != len(clones) or set(now.pool) != pool:
        return f"read {number} takes rows {sorted(pool)} from the pool and others from clones {clones}, and is {now}"
    return None


def part_rows(part: GatherPart) -> Iterator[tuple[int, tuple[SourceKind, int, int]]]:
    """Each row of a part, with the kind, number and row of its source."""
    arrays = (part.rows.tolist(), part.sources.tolist(), part.source_rows.tolist())
    for row, source, source_row in zip(*arrays, strict=True):
        yield row, (part.kind, source, source_row)


def _sources(view: RowView, read: ReadView) -> dict[int, tuple[SourceKind] | tuple[SourceKind, int, int]]:
    """Per row its source: kind, number and row; of a clone only the kind, for a view does not tell the others."""
    numbers = writes_of_claims(view)
    rows = {
        (claim, slot): (write, place)
        for write in read.writes
        if write in view.writes
        for place, claim, slot in host_rows(view.writes[write])
    }
    wanted: dict[int, tuple[SourceKind] | tuple[SourceKind, int, int]] = {}
    for place, (slot, claim) in enumerate(zip(read.slots, read.claims, strict=True)):
        if not claim:
            continue
        if place in read.preserved:
            wanted[place] = (SourceKind.PRESERVED, 0, place)
        elif numbers.get(claim) in read.writes:
            write, row = rows[claim, slot]
            is_early = view.writes[write].phase in ON_CLONES
            wanted[place] = (SourceKind.CLONE,) if is_early else (SourceKind.HOST, write, row)
        else:
            wanted[place] = (SourceKind.POOL, 0, slot)
    return wanted


def pool_rows_are_those_of_their_claim(seen: RowObservation) -> Finding:
    """R02, of pool rows: what a gather takes from the pool has landed, and nothing is claimed over it."""
    event, then = seen.event, seen.before
    read = seen.after.reads.get(event.read) if isinstance(event, GatherBegan) else None
    if read is None or read.phase is not ReadPhase.RUNNING:
        return None
    numbers = writes_of_claims(then)
    for place in read.pool:
        claim, slot = read.claims[place], read.slots[place]
        write = numbers.get(claim)
        landed = write is None or then.writes[write].phase is WritePhase.WRITTEN
        if not landed or then.newest[read.name][slot] != claim:
            return f"row {place} of {event} is claim {claim} of ({read.name}, {slot}), and is not in the pool"
    return None


def delivered_hits_are_whole(view: RowView) -> Finding:
    """R02, of a state: no saved step has a read with a hole in its hidden rows."""
    for number, step in view.steps.items():
        for which, read in step_reads(view, step):
            if step.phase in SAVED and read.name == HIDDEN and 0 in read.claims:
                return f"read {which} of step {number} would give zeros for hidden rows: {read.claims}"
    return None
