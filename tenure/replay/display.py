"""Shows a person a replay: how far it is while it runs, and what it found at its end."""

import sys
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from typing import Final, TextIO

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TaskProgressColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from tenure.replay.counters import Counters
from tenure.replay.row_summary import RowFigures
from tenure.replay.run import OnStep
from tenure.replay.summary import Summary

STEPS_PER_UPDATE: Final = 32


@contextmanager
def progress_bar(*, wanted: bool) -> Generator[OnStep | None]:
    """A callback that shows progress on standard error; None where nobody would see it."""
    stderr: TextIO | None = sys.stderr
    # Whoever started the process may have closed it.
    if not (wanted and stderr is not None and stderr.isatty()):
        yield None
        return
    columns = (SpinnerColumn(), BarColumn(), TaskProgressColumn(), TextColumn("{task.description}"))
    with Progress(*columns, TimeElapsedColumn(), console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("reading", total=1.0)

        def on_step(counters: Counters, fraction: float) -> None:
            if counters.steps % STEPS_PER_UPDATE == 0:
                hits = 100 * counters.hit_tokens / max(1, counters.prompt_tokens)
                text = f"{counters.requests:,} requests, {counters.steps:,} steps, {hits:.1f} % hits"
                progress.update(task, completed=fraction, description=text)

        yield on_step


def summary_table(summary: Summary) -> Table:
    """The summary as a table of names and figures."""
    table = Table(title="Replay, interrupted" if summary.interrupted else "Replay", title_justify="left")
    table.add_column("figure")
    table.add_column("value", justify="right")
    for section in _sections(summary):
        for name, value in section:
            table.add_row(name, value)
        table.add_section()
    return table


def _sections(summary: Summary) -> Iterator[list[tuple[str, str]]]:
    setup, requests, hits, cache = summary.setup, summary.requests, summary.hits, summary.cache
    yield [
        ("capacity, blocks", "unlimited" if setup.capacity is None else f"{setup.capacity:,}"),
        ("block size, tokens", f"{setup.block_size:,}"),
    ]
    finished = [("requests", f"{requests.finished:,}")]
    if requests.admitted != requests.finished:
        finished.append(("requests admitted", f"{requests.admitted:,}"))
    if requests.bad:
        finished.append(("bad requests left out", f"{requests.bad:,}"))
    yield [
        *finished,
        ("prompt tokens", f"{requests.prompt_tokens:,}"),
        ("output tokens", f"{requests.output_tokens:,}"),
    ]
    yield [
        ("hit tokens at first admission", _share(hits.tokens_at_first_admission, hits.tokens_percent)),
        ("hit blocks at first admission", _share(hits.blocks_at_first_admission, hits.blocks_percent)),
        ("hit tokens after preemption", f"{hits.tokens_after_preemption:,}"),
    ]
    yield [
        ("peak active blocks", f"{cache.peak_active_blocks:,}"),
        ("evicted blocks", f"{cache.evicted_blocks:,}"),
        ("hashes stored (events)", f"{cache.stored_hashes:,} ({cache.stored_events:,})"),
        ("hashes removed (events)", f"{cache.removed_hashes:,} ({cache.removed_events:,})"),
    ]
    scheduler = summary.scheduler
    yield [("steps", f"{scheduler.steps:,}"), ("preemptions", f"{scheduler.preemptions:,}")]
    if scheduler.checked_transitions:
        yield [("transitions checked", f"{scheduler.checked_transitions:,} of {scheduler.transitions:,}")]
    if summary.rows is not None:
        yield from _row_sections(summary.rows)
    yield [
        ("seconds", f"{summary.timing.seconds:,.1f}"),
        ("requests per second", f"{summary.timing.requests_per_second:,.1f}"),
    ]


def _row_sections(rows: RowFigures) -> Iterator[list[tuple[str, str]]]:
    yield [
        ("rows written", f"{rows.written:,}"),
        ("rows handed out", f"{rows.handed_out:,}"),
        ("rows served from hits", f"{rows.from_hits:,}"),
        ("rows served from hits of the same step", f"{rows.from_hits_of_the_same_step:,}"),
    ]
    disturbed = [("aborts", f"{rows.aborts:,}"), ("preemptions by choice", f"{rows.preemptions_by_choice:,}")]
    if rows.steps_discarded:
        disturbed.append(("steps discarded", f"{rows.steps_discarded:,}"))
    yield disturbed
    if rows.verified:
        yield [
            ("rows verified", f"{rows.verified:,}"),
            ("wrong rows", f"{rows.mismatches:,}"),
            ("whole states checked", f"{rows.checked_states:,} of {rows.steps_saved:,}"),
        ]
    copied = [(f"bytes copied, {kind}", f"{count:,}") for kind, count in rows.timing.bytes_copied.items() if count]
    waits = rows.timing.waits.items()
    yield [*copied, *((f"waits for a {what}", f"{wait.count:,} ({wait.seconds:,.1f} s)") for what, wait in waits)]


def _share(count: int, percent: float) -> str:
    return f"{count:,} ({percent:.1f} %)"
