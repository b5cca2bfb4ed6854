"""What is seen of a search: one line while it goes on, a closing block when it is over."""

import time
from typing import Final

from rich.console import Console
from rich.table import Table

from tenure.model_checks.explorer.results import ScopeResult, Snapshot

PLAIN_EVERY_S: Final = 5.0
"""Seconds between two lines where no line can be rewritten."""
MIB: Final = 1 << 20


def progress_line(snapshots: list[Snapshot]) -> str:
    """How far the searches have come that are going on, in one line."""
    names = ", ".join(snapshot.name for snapshot in snapshots)
    rate = sum(snapshot.states_per_second for snapshot in snapshots)
    return (
        f"{names}: {sum(one.distinct for one in snapshots):,} distinct, "
        f"{sum(one.transitions for one in snapshots):,} transitions, "
        f"frontier {sum(one.frontier for one in snapshots):,}, "
        f"depth {max(one.depth for one in snapshots)}, {rate:,.0f} states/s, "
        f"{sum(one.memory_bytes for one in snapshots) / MIB:,.0f} MiB"
    )


class ProgressLine:
    """Shows how far searches have come: a line that is rewritten, or now and then a plain one.

    Call it with a snapshot; tell `done` of a scope that is over; `close` leaves a clean line.
    """

    def __init__(self, console: Console | None = None) -> None:
        self._console = console or Console(stderr=True)
        self._going: dict[str, Snapshot] = {}
        self._told = time.monotonic()
        self._is_open = False

    def __call__(self, snapshot: Snapshot) -> None:
        """Show it."""
        self._going[snapshot.name] = snapshot
        line = progress_line(list(self._going.values()))
        if self._console.is_terminal:
            width = max(20, self._console.width - 1)
            self._clear()
            self._console.file.write(line if len(line) <= width else line[: width - 3] + "...")
            self._console.file.flush()
            self._is_open = True
        elif time.monotonic() - self._told >= PLAIN_EVERY_S:
            self._told = time.monotonic()
            self._console.out(line, highlight=False)

    def done(self, result: ScopeResult) -> None:
        """A scope is over: its verdict stays on the screen."""
        self._going.pop(result.name, None)
        self._clear()
        self._console.out(verdict_line(result), highlight=False)

    def close(self) -> None:
        """Leave a clean line."""
        self._clear()

    def _clear(self) -> None:
        if self._is_open:
            self._console.file.write("\r\x1b[2K")
            self._is_open = False


def verdict_line(result: ScopeResult) -> str:
    """A scope and its verdict, in one line."""
    if result.search is None:
        return f"{result.verdict.value:<12} {result.name}"
    search = result.search
    return (
        f"{result.verdict.value:<12} {result.name}: {search.distinct:,} distinct, {search.transitions:,} transitions, "
        f"depth {search.depth}, {search.seconds:.1f} s"
    )


def closing_block(result: ScopeResult, width: int = 100) -> str:
    """All that is to be said of a scope: verdict, bounds, counts, the tables of events and of marks."""
    console = Console(width=width, color_system=None, force_terminal=False, highlight=False, emoji=False, markup=False)
    with console.capture() as capture:
        for line in _facts(result):
            console.print(line, soft_wrap=True)
        if result.search is not None:
            events = Table("actor", "event", "transitions", title="events")
            for count in result.search.events:
                events.add_row(count.actor, count.kind, f"{count.count:,}")
            marks = Table("mark", "seen", "first after", title="rules, events, commands, errors, goals")
            for seen in result.search.marks:
                marks.add_row(seen.mark, f"{seen.count:,}", str(seen.depth))
            for table in (events, marks):
                if table.row_count:
                    console.print(table)
    return capture.get()


def _facts(result: ScopeResult) -> list[str]:
    lines = [f"{result.verdict.value} {result.name} ({result.kind})"]
    lines += [f"  {reason}" for reason in result.reasons]
    lines.append("  covers: " + ", ".join(f"{what} {value}" for what, value in result.covers.items()))
    if result.assumes:
        lines.append(f"  assumes: {result.assumes}")
    lines += [f"  note: {note}" for note in result.notes]
    search = result.search
    if search is None:
        return lines
    why = search.cut or "it ended where something was wrong"
    whole = "every state was expanded" if search.finished else f"not every state was expanded: {why}"
    lines += [
        f"  {search.distinct:,} distinct states, {search.transitions:,} transitions, depth {search.depth}; {whole}",
        f"  out-degree {search.degree_min} to {search.degree_max}, mean {search.degree_mean:.2f}",
        f"  chance of a collision {search.collision:.1e} ({search.visited})",
        f"  {search.seconds:.2f} s, {search.states_per_second:,.0f} states/s, "
        f"{search.states_per_core_second:,.0f} states/s and core, {search.workers} processes",
        f"  memory {search.memory_peak_bytes / MIB:,.0f} MiB at most, {search.bytes_per_state:,.0f} bytes a state",
    ]
    if result.progress is not None:
        lines.append(
            f"  progress: {result.progress.owed} things owed somewhere; bound to act: "
            + (", ".join(result.progress.classes) or "nobody")
        )
    return lines
