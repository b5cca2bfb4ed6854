"""R15: what may not be taken. Each accepted event is looked at again, from the requirement's list of bad input."""

from collections import Counter
from math import prod
from typing import Final

from tenure.core.rows.commands import FreezeRows
from tenure.core.rows.events import (
    Aborted,
    Extended,
    Finished,
    PolicyRegistered,
    Replaced,
    RequestId,
    ResetRequested,
    Resumed,
    RowEvent,
    SavePublished,
    SaveRequested,
    Started,
    StepDropped,
    StepStarted,
    WaitTimedOut,
)
from tenure.core.rows.names import HIDDEN, ITEM_BYTES, NameClass, Schedule
from tenure.core.rows.view import RowView, StepPhase
from tenure.spec.rows.rule import RowObservation, arrivals, changed_fields, commanded
from tenure.spec.rule import Finding

LIVE_CHANGES: Final = (Extended, Resumed)


def refusal_changes_nothing(before: RowView, event: RowEvent, after: RowView) -> Finding:
    """R15, of a refusal."""
    if before != after:
        return f"{changed_fields(before, after)} changed although {event} was refused"
    return None


def accepted_events_are_good(seen: RowObservation) -> Finding:
    """R15, of what was taken."""
    match seen.event:
        case StepStarted():
            return _bad_start(seen, seen.event)
        case SaveRequested():
            return _bad_save(seen.before, seen.event)
        case StepDropped() if seen.before.pending is None:
            return f"{seen.event} was taken, and no step waits to be saved"
        case PolicyRegistered() if seen.before.next_step != 1:
            return f"{seen.event} was taken after step {seen.before.next_step - 1}"
        case WaitTimedOut():
            return f"{seen.event} was taken"
        case _:
            return None


# --- Starts -------------------------------------------------------------------------------------------------------


def _bad_start(seen: RowObservation, event: StepStarted) -> Finding:
    view = seen.before
    named: Counter[RequestId] = Counter()
    for change in event.changes:
        negative = False
        match change:
            case Replaced():
                return f"{change} was taken"
            case Extended(requests, counts, _):
                named.update(requests)
                negative = any(count < 0 for count in counts.tolist())
            case Started(request, scheduled, hit) | Resumed(request, scheduled, hit):
                named[request] += 1
                negative = scheduled < 0 or hit < 0
            case Finished() | Aborted():
                pass
        if negative:
            return f"{change} was taken with a negative count"
    twice = [request for request, count in named.items() if count > 1]
    if twice:
        return f"{event} was taken, and names {twice} twice"
    for change in event.changes:
        unknown = _unknown(view, event, change)
        if unknown:
            return f"{change} was taken, and {unknown} are not live"
    for change in arrivals(view, event):
        found = _bad_hit(view, change) if change.hit else None
        if found:
            return f"{change} was taken; {found}"
    return None


def _unknown(view: RowView, event: StepStarted, change: object) -> list[RequestId]:
    """The requests that a change lets go on although they are not live."""
    if not isinstance(change, LIVE_CHANGES):
        return []
    ended = {each.request for each in event.changes if isinstance(each, Finished | Aborted)}
    named = change.requests if isinstance(change, Extended) else (change.request,)
    return [request for request in named if request not in view.live or request in ended]


def _bad_hit(view: RowView, change: Started) -> Finding:
    size = view.config.block_size
    blocks = -(-change.hit // size)
    if change.hit % size:
        return f"{change.hit} tokens end inside a block of {size}"
    if change.scheduled <= 0:
        return "no token is scheduled"
    if len(change.blocks) != 1:
        return f"{len(change.blocks)} KV groups"
    table = change.blocks[0]
    if len(table) < blocks or not all(0 <= block < view.config.num_blocks for block in table[:blocks]):
        return f"{blocks} blocks of {view.config.num_blocks} are needed, {table} are given"
    if len(change.expects) not in (0, blocks):
        return f"{len(change.expects)} identities for {blocks} blocks"
    return None


# --- Saves --------------------------------------------------------------------------------------------------------


def _bad_save(view: RowView, event: SaveRequested) -> Finding:
    layout = event.layout
    step = None if view.pending is None else view.steps.get(view.pending)
    if step is None or step.phase is not StepPhase.STARTED:
        return f"{event} was taken, and no step waits to be saved"
    counts, slots = layout.counts.tolist(), layout.slots.tolist()
    tokens = sum(counts)
    wanted = {request: count for request, count in step.batch if count}
    found = {request: count for request, count in zip(layout.requests, counts, strict=True) if count}
    if len({*layout.requests}) != len(layout.requests) or found != wanted or any(count < 0 for count in counts):
        return f"the layout has {layout.requests} with {counts} rows, and {step.batch} is scheduled"
    if not {*layout.requests} <= view.live.keys():
        return f"the layout has {layout.requests}, and {sorted(map(repr, view.live))} are live"
    if len(slots) != tokens or len({*slots}) != tokens:
        return f"the layout has the slots {slots} for {tokens} tokens"
    if not all(0 <= slot < view.config.num_slots for slot in slots):
        return f"the layout has the slots {slots} of {view.config.num_slots}"
    if tokens > view.config.page_rows_max or (layout.padded is not None and layout.padded < tokens):
        return f"{tokens} tokens, padded to {layout.padded}, are saved on a page of {view.config.page_rows_max} rows"
    return _bad_outputs(view, event, tokens)


def _bad_outputs(view: RowView, event: SaveRequested, tokens: int) -> Finding:
    if len({each.name for each in event.outputs}) != len(event.outputs):
        return f"a name is emitted twice: {[each.name for each in event.outputs]}"
    formats = {each.name: each for each in view.formats}
    rows = {tokens, event.layout.padded or tokens}
    for output in event.outputs:
        if output.name == HIDDEN:
            is_bad = output.shape is None or len(output.shape) < 2 or output.shape[0] < tokens
            if view.policy.hidden and is_bad:
                return f"hidden is {output} in a step of {tokens} tokens"
            if not view.policy.hidden:
                continue
        elif not (output.shape and output.shape[0] in rows) or output.name not in formats:
            continue
        known = formats.get(output.name)
        if known is None or output.shape is None or not _is_row_name(view, output.name):
            continue
        if (known.row_shape, known.dtype) != (output.shape[1:], output.dtype):
            return f"{output} is emitted, and rows of {output.name} are {known}"
    return None


def _is_row_name(view: RowView, name: str) -> bool:
    held = view.classes.get(name)
    return name == HIDDEN or (held is not None and held.kind is not NameClass.LEFTOVER)


# --- Names --------------------------------------------------------------------------------------------------------


def names_are_proper(view: RowView) -> Finding:
    """R15, of a state: a registered name has a dtype that rows may have, fits the limits, and is of its schedule."""
    if len(view.formats) > view.config.names_max:
        return f"{len(view.formats)} names, of at most {view.config.names_max}"
    for each in view.formats:
        if each.dtype not in ITEM_BYTES or any(size < 0 for size in each.row_shape):
            return f"{each} is registered"
        if each.name == HIDDEN and (each.schedule is not Schedule.JOIN_NEXT_STEP or not view.policy.hidden):
            return f"hidden is registered as {each} under {view.policy}"
        if each.name in view.policy.leftovers or (
            (each.name in view.policy.deferred) != (each.schedule is Schedule.JOIN_ON_FINISH)
        ):
            return f"{each} is registered under {view.policy}"
    size = sum(ITEM_BYTES[each.dtype] * prod(each.row_shape) for each in view.formats) * view.config.num_slots
    limit = view.config.pool_bytes_max
    return f"{size} bytes of pool, of at most {limit}" if limit is not None and size > limit else None


def names_keep_what_they_are(seen: RowObservation) -> Finding:
    """R15, of names: registered for good, held in their class for good, and only by a publication."""
    then, now = seen.before, seen.after
    if then.config is not now.config and then.config != now.config:
        return f"the configuration went from {then.config} to {now.config}"
    if then.policy is not now.policy and then.policy != now.policy and not isinstance(seen.event, PolicyRegistered):
        return f"the policy went from {then.policy} to {now.policy} on {type(seen.event).__name__}"
    if now.formats[: len(then.formats)] != then.formats:
        return f"the names went from {then.formats} to {now.formats}"
    if now.formats != then.formats and not isinstance(seen.event, SavePublished):
        return f"names {now.formats[len(then.formats) :]} were registered by {type(seen.event).__name__}"
    if isinstance(seen.event, PolicyRegistered | ResetRequested):
        # A policy declares classes.
        lost = [] if isinstance(seen.event, PolicyRegistered) or then.classes == now.classes else [*then.classes]
    else:
        lost = [name for name, held in then.classes.items() if now.classes.get(name) != held]
    if lost:
        return f"the classes {lost} went from {dict(then.classes)} to {dict(now.classes)}"
    fresh = [name for name in now.classes if name not in then.classes]
    if fresh and not isinstance(seen.event, SavePublished | PolicyRegistered):
        return f"the classes of {fresh} were held by {type(seen.event).__name__}"
    return None


def new_names_are_registered(seen: RowObservation) -> Finding:
    """R15, of a save: what is frozen has the shape and type it always had, or is to be registered."""
    then = seen.before
    for freeze in commanded(seen.commands, FreezeRows):
        frozen = [each for clone in freeze.clones for each in clone.formats]
        known = {each.name: each for each in then.formats}
        new = sorted((each for each in frozen if each.name not in known), key=lambda each: each.name)
        if sorted(freeze.registers, key=lambda each: each.name) != new:
            return f"{freeze.registers} are to be registered, and {new} are new"
        if changed := [each for each in frozen if known.get(each.name, each) != each]:
            return f"{changed} are frozen, and known otherwise"
    return None
