"""`tenure validate`: whether a recorded run is a run of the core."""

import sys
from pathlib import Path
from typing import Final

import click

from tenure.recording import RecordError
from tenure.validation import STATES_MAX, Report, validate

WIDTH: Final = 130
"""Columns where nobody says how wide it may be."""


@click.command("validate", short_help="Say whether a recorded run is a run of the core.")
@click.argument("path", metavar="FILE", type=click.Path(path_type=Path, dir_okay=False))
@click.option(
    "--json",
    "target",
    type=click.Path(path_type=Path, dir_okay=False, writable=True),
    metavar="OUT",
    help="Write the report there; '-' writes it instead of the text.",
)
@click.option(
    "--max-states",
    type=click.IntRange(1),
    default=STATES_MAX,
    show_default=True,
    metavar="N",
    help="States that may be possible at one line of a record that leaves events out; with more, nothing is said.",
)
@click.pass_context
def validate_command(ctx: click.Context, path: Path, target: Path | None, max_states: int) -> None:
    """Replay a recorded run on the core, and say how far it is a run of the core.

    FILE is what OutputCache(..., record=FILE) wrote, or a log of that form by another implementation: one JSON object a
    line, a header first, then every event with its answer. A header may say that events which commands carry are in no
    line; then everything that may have happened is supposed.

    \b
    Examples:
      tenure validate run.ndjson
      tenure validate --json report.json --max-states 20000 log.ndjson

    \b
    Exit status:
      0  VALID: a run of the core, to its end or to where it was cut off
      1  INVALID: no run of the core; the line, what the core does there, and what it would have taken
      2  the command line, or a file that it names, is unusable, or FILE is no record
      3  UNKNOWN: events are missing in the file, or too many states are possible
    """  # noqa: D301 - click takes the \b as it is
    try:
        report = validate(path, max_states)
    except RecordError as error:
        raise click.BadParameter(f"{error}.", param_hint="FILE") from None
    if target == Path("-"):
        click.echo(report.as_json(), nl=False)
    else:
        # First what was found: a file that cannot be written must not cost the run.
        _show(report)
        if target is not None:
            try:
                target.write_text(report.as_json(), encoding="utf-8")
            except OSError as error:
                raise click.UsageError(f"{str(target)!r} cannot be written: {error.strerror}.") from None
    ctx.exit({"valid": 0, "invalid": 1, "unknown": 3}[report.verdict.value])


def _show(report: Report) -> None:
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    console = Console(highlight=False, width=None if sys.stdout.isatty() else WIDTH)
    fault = report.fault
    if fault is not None:
        table = Table(title=f"line {fault.line}", title_justify="left", show_header=False)
        table.add_column(no_wrap=True)
        table.add_column(overflow="fold")
        table.add_row("found", escape(fault.text))
        table.add_row("problem", escape(fault.problem))
        for name, texts in (
            ("the core", fault.expected),
            ("difference", fault.differences),
            ("was possible", fault.possible),
        ):
            for text in texts:
                table.add_row(name, escape(text))
        console.print(table)
    if report.reason is not None:
        console.print(f"to know: {report.reason}", markup=False)
    states = f", {report.states_most} states at most" if report.unlogged else ""
    console.print(
        f"{report.verdict.value.upper()}: {report.path}: {report.matched_lines} lines, {report.events} events are a "
        f"run of the core; end: {report.end}{states}",
        markup=False,
        soft_wrap=True,
    )
