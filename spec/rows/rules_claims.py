"""R03, R04 and R21: whose row a slot holds. Claims and tenancy numbers, counted again."""

from tenure.core.rows.events import Claim, ResetRequested, SavePublished, Slot, StepDropped
from tenure.core.rows.view import RowView, WritePhase
from tenure.spec.rows.rule import (
    RowObservation,
    changed_fields,
    computed_slots,
    is_immediate,
    names_by_schedule,
    writes_of_claims,
)
from tenure.spec.rule import Finding


def occupancy_follows_the_claims(view: RowView) -> Finding:
    """R03: a claim whose write is here is a claim of that write, on that slot, under that name."""
    names = [each.name for each in view.formats]
    if set(names) != set(view.newest) or len(set(names)) != len(names):
        return f"{sorted(view.newest)} have claims, {names} are registered"
    open_slots = {claim: slots for write in view.writes.values() for claim, slots in write.claims}
    numbers = writes_of_claims(view)
    for name, column in view.newest.items():
        if len(column) != view.config.num_slots:
            return f"{len(column)} claims of {name} for {view.config.num_slots} slots"
        for slot, claim in enumerate(column):
            number = numbers.get(claim)
            if number is None:
                continue
            if slot not in open_slots[claim]:
                return f"claim {claim} of ({name}, {slot}) is of write {number}, which did not claim that slot"
            if name not in view.writes[number].names:
                return f"claim {claim} of ({name}, {slot}) is of write {number}, which does not move {name}"
    return _claims_are_recorded(view)


def _claims_are_recorded(view: RowView) -> Finding:
    for number, write in view.writes.items():
        for claim, slots in write.claims:
            for slot in slots:
                newest = [view.newest[name][slot] for name in write.names if name in view.newest]
                # A chunk of a deferred write need not have all of its names; an immediate write has one batch.
                taken = (min if is_immediate(write) else max)(newest, default=0)
                if taken < claim:
                    return f"claim {claim} of write {number} on slot {slot} is not known there: {newest} are newest"
    return None


def numbers_are_in_order(view: RowView) -> Finding:
    """R04, of a state: what was given out lies below what comes next, and no claim is given out twice."""
    if view.floor > view.next_claim:
        return f"floor {view.floor} lies above the next claim {view.next_claim}"
    columns = {**view.newest, "tenancy": view.tenancy}
    for name, column in columns.items():
        if column and not 0 <= min(column) <= max(column) < view.next_claim:
            return f"{max(column)} is a number of {name}, and {view.next_claim} comes next"
    for what, given, limit in (
        ("step", view.steps, view.next_step),
        ("write", view.writes, view.next_write),
        ("read", view.reads, view.next_read),
        ("clone", view.clones, view.next_clone),
    ):
        if given and max(given) >= limit:
            return f"{what} {max(given)} is there, and {limit} comes next"
    seen: set[Claim] = set()
    for number, write in view.writes.items():
        claims = [claim for claim, _ in write.claims]
        if sorted(set(claims)) != claims or not seen.isdisjoint(claims):
            return f"claims {claims} of write {number} do not ascend, or are another's too"
        # A write that is WRITTEN, and kept for a read that a reset left, may lie below the floor.
        floor = 1 if write.phase is WritePhase.WRITTEN else view.floor
        if claims and not floor <= claims[0] <= claims[-1] < view.next_claim:
            return f"claims {claims} of write {number} are outside [{floor}, {view.next_claim})"
        seen.update(claims)
    return None


def numbers_only_grow(seen: RowObservation) -> Finding:
    """R04, of a transition."""
    then, now = seen.before, seen.after
    for what in ("next_claim", "next_step", "next_write", "next_read", "next_clone", "floor"):
        if getattr(now, what) < getattr(then, what):
            return f"{what} fell from {getattr(then, what)} to {getattr(now, what)}"
    if now.next_claim != then.next_claim and not isinstance(seen.event, SavePublished | StepDropped):
        return f"claims {then.next_claim} to {now.next_claim - 1} were used by {type(seen.event).__name__}"
    if then.newest == now.newest:
        return None
    if not isinstance(seen.event, SavePublished):
        return f"newest claims changed by {type(seen.event).__name__}"
    fresh = range(then.next_claim, now.next_claim)
    for name, column in now.newest.items():
        old = then.newest.get(name, (0,) * len(column))
        for slot, (was, claim) in enumerate(zip(old, column, strict=False)):
            if claim != was and claim not in fresh:
                return f"the newest claim of ({name}, {slot}) went from {was} to {claim}, and {fresh} are new"
    return f"{set(then.newest) - set(now.newest)} lost their claims" if then.newest.keys() - now.newest else None


def computed_slots_change_hands(seen: RowObservation) -> Finding:
    """R21: a step that computes a slot begins a tenancy there, under every name."""
    then, now, event = seen.before, seen.after, seen.event
    match event:
        case SavePublished(step):
            slots = computed_slots(seen)
            tokens = sum(count for _, count in now.steps[step].batch) if step in now.steps else len(slots)
            if len(slots) != tokens:
                return f"{slots} began a tenancy, and step {step} computed {tokens} slots"
            return _emitted_names_are_claimed(seen, slots) or _tenancies(seen, slots)
        case StepDropped(dropped):
            inside = sorted({slot for slot in dropped.tolist() if 0 <= slot < now.config.num_slots})
            if now.next_claim != then.next_claim + 1:
                return f"a dropped step used the numbers {then.next_claim} to {now.next_claim - 1}"
            return _tenancies(seen, inside)
        case ResetRequested():
            return f"tenancies changed by {type(event).__name__}" if then.tenancy != now.tenancy else None
        case _:
            return _tenancies(seen, [])


def _emitted_names_are_claimed(seen: RowObservation, slots: list[Slot]) -> Finding:
    assert isinstance(seen.event, SavePublished)
    step = seen.after.steps.get(seen.event.step)
    if step is None:
        return None
    for name, column in seen.after.newest.items():
        old = seen.before.newest.get(name, (0,) * len(column))
        for slot in slots:
            if (name in step.names) != (column[slot] >= seen.before.next_claim):
                return f"({name}, {slot}) has claim {column[slot]}, and step {seen.event.step} emits {step.names}"
        changed = [slot for slot, (was, claim) in enumerate(zip(old, column, strict=False)) if was != claim]
        if not set(changed) <= set(slots):
            return f"{changed} were claimed under {name}, and step {seen.event.step} computed {slots}"
    immediate, _ = names_by_schedule(seen.after, step)
    first = seen.before.next_claim
    for name in immediate:
        found = {seen.after.newest[name][slot] for slot in slots if name in seen.after.newest}
        if found - {first}:
            return f"{sorted(found)} are the claims of {name} in one step, and {first} is that of all immediate rows"
    return None


def _tenancies(seen: RowObservation, slots: list[Slot]) -> Finding:
    then, now = seen.before, seen.after
    if not slots:
        if then.tenancy == now.tenancy and then.identities == now.identities:
            return None
        return f"{changed_fields(then, now)} changed by {type(seen.event).__name__}, which computes nothing"
    mine = set(slots)
    for slot, (was, number) in enumerate(zip(then.tenancy, now.tenancy, strict=True)):
        expected = then.next_claim if slot in mine else was
        if number != expected:
            return f"slot {slot} has the tenancy number {number}, and should have {expected}"
    touched = {slot // now.config.block_size for slot in slots}
    for block in then.identities.keys() | now.identities.keys():
        was_told, is_told = then.identities.get(block), now.identities.get(block)
        if block not in touched and was_told != is_told:
            return f"block {block} went from {was_told} to {is_told}, and no slot of it was computed"
        if block in touched and isinstance(seen.event, StepDropped) and is_told is not None:
            return f"block {block} keeps {is_told} although a dropped step computed it"
    return None
