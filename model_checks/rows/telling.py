"""What changed from one state of the row machine's model to the next, in words: a difference, not a dump."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from tenure.core.rows.view import ReadView, RowView, StepView, WriteView
from tenure.model_checks.rows.cells import POISON, ZEROS, Names, row_of
from tenure.spec.rows.rule import is_immediate

GONE = "gone"


def show_row(names: Names, code: int) -> str:
    """A symbolic row in words."""
    if code in (ZEROS, POISON):
        return "zeros" if code == ZEROS else "nothing"
    row = row_of(code)
    return f"{names.names[row.name]} of node {row.node} by step {row.step}"


def view_changes(before: RowView, after: RowView) -> Iterator[str]:
    """What a machine's view has that it did not have before."""
    yield from _moved("step", before.steps, after.steps, _step)
    yield from _moved("write", before.writes, after.writes, _write)
    yield from _moved("read", before.reads, after.reads, _read)
    for page, (old, new) in enumerate(zip(before.pages, after.pages, strict=True)):
        if old != new:
            yield f"page {page}: {_holders(old)} -> {_holders(new)}"
    if before.charged != after.charged:
        yield f"charged: {before.charged} -> {after.charged} bytes"
    if [*before.live] != [*after.live]:
        yield f"live: {', '.join(map(str, after.live)) or 'nobody'}"
    if before.failure != after.failure:
        yield "the failure is forgotten" if after.failure is None else f"write {after.failure} is the failure"
    yield from _occupancies(before, after)


def _moved(
    what: str, before: Mapping[int, Any], after: Mapping[int, Any], in_words: Callable[[Any], str]
) -> Iterator[str]:
    for number in sorted({*before, *after}):
        old, new = before.get(number), after.get(number)
        if old == new:
            continue
        was = in_words(old) if old is not None else None
        now = in_words(new) if new is not None else GONE
        if was != now:
            yield f"{what} {number}: {now}" if was is None else f"{what} {number}: {was} -> {now}"


def _step(step: StepView) -> str:
    return step.phase.value


def _write(write: WriteView) -> str:
    kind = "immediate" if is_immediate(write) else f"deferred, of {write.request}"
    return f"{write.phase.value} ({kind})"


def _read(read: ReadView) -> str:
    aside = f", rows {list(read.preserved)} set aside" if read.preserved else ""
    waits = f", awaits {list(read.awaits)}" if read.awaits else ""
    return f"{read.phase.value} (slots {list(read.slots)} under {read.name} for {read.request}{aside}{waits})"


def _holders(holders: frozenset[tuple[str, int]]) -> str:
    return " and ".join(f"{kind} {number}" for kind, number in sorted(holders)) or "free"


def _occupancies(before: RowView, after: RowView) -> Iterator[str]:
    for name in after.newest:
        for slot in range(len(after.tenancy)):
            old = before.occupancy(name, slot) if name in before.newest else None
            new = after.occupancy(name, slot)
            if old is not new and not (old is None and new.value == "absent"):
                yield f"slot {slot} under {name}: {old.value if old else 'absent'} -> {new.value}"


def cell_changes(names: Names, before: Mapping[int, int], after: Mapping[int, int]) -> Iterator[str]:
    """Which rows of which buffers are others now; buffers that go or come empty are no news."""
    for cell in sorted(after):
        old, new = before.get(cell, POISON), after[cell]
        if old != new and new != POISON:
            place = names.place(cell)
            where = "pool, slot" if place.buffer.kind == "pool" else f"{place.buffer.kind} {place.buffer.number}, row"
            yield f"{where} {place.row} under {place.name}: {show_row(names, new)}"
