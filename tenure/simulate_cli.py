"""`tenure simulate`: long seeded histories of the whole cache on the emulated device."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

if TYPE_CHECKING:
    from tenure.backends.fake import FaultKind
    from tenure.simulation import Failure, Summary

KINDS_FORM: Final = "KIND[,KIND...], all or none"
CHOICES_DEFAULT: Final = 100_000


def fault_kinds(text: str) -> "tuple[FaultKind, ...]":
    """The kinds of faults that a list names."""
    from tenure.backends.fake import FAULT_KINDS

    if text == "all":
        return FAULT_KINDS
    wanted = [] if text == "none" else text.split(",")
    known: dict[str, FaultKind] = {kind: kind for kind in FAULT_KINDS}
    if unknown := [each for each in wanted if each not in known]:
        raise click.BadParameter(f"{unknown[0]!r} is none of {', '.join(known)}, all, none.")
    return tuple(known[each] for each in dict.fromkeys(wanted))


def _faults_option(ctx: click.Context, param: click.Parameter, value: str) -> "tuple[FaultKind, ...]":
    del ctx, param
    return fault_kinds(value)


@click.command("simulate", short_help="Live through seeded histories of the cache on the emulated device.")
@click.option("--seed", type=click.IntRange(0), default=1, show_default=True, help="What decides everything.")
@click.option(
    "--choices",
    type=click.IntRange(1),
    default=CHOICES_DEFAULT,
    show_default=True,
    metavar="N",
    help="Go on until the scheduler made so many choices.",
)
@click.option(
    "--faults",
    "kinds",
    default="none",
    show_default=True,
    callback=_faults_option,
    metavar=KINDS_FORM,
    help="What goes wrong: copy, call, allocation, late, stuck, worker, lost.",
)
@click.option("--life", type=click.IntRange(0), help="Begin with this life, as a failure names it.")
@click.option(
    "--repeat",
    "recorded",
    type=click.Path(path_type=Path, dir_okay=False, exists=True),
    metavar="FILE",
    help="Live once more through a failure that --save wrote.",
)
@click.option(
    "--save",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Write a failure's choices, timeline (for Perfetto) and happens-before graph (GraphML) there.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the summary as JSON.")
@click.pass_context
def simulate_command(
    ctx: click.Context,
    seed: int,
    choices: int,
    kinds: "tuple[FaultKind, ...]",
    life: int | None,
    recorded: Path | None,
    save: Path | None,
    as_json: bool,
) -> None:
    """Live through histories of the whole cache on the emulated device, one choice at a time.

    A scheduler that a seed drives chooses who goes on: the engine, a builder, a lane of the device, or the news that
    something has ended. Every row that is handed out is held against the tokens that it belongs to, every access of
    memory against every other, and at the end of each life nothing may be left.

    \b
    Exit status:
      0  nothing is wrong
      1  something is: what, and how to see it again
      2  the command line, or a file that it names, is unusable
    """  # noqa: D301 - click takes the \b as it is
    from tenure.simulation import Simulation

    if recorded is not None:
        ctx.exit(_repeated(recorded))
    summary = Simulation(seed, kinds).run(choices, first=life or 0)
    click.echo(json.dumps(as_dict(summary), indent=2) if as_json else as_table(summary), nl=as_json)
    if summary.failure is not None:
        _tell(summary.failure, seed, kinds, save)
    ctx.exit(0 if summary.failure is None else 1)


def as_dict(summary: "Summary") -> dict[str, object]:
    """The summary as plain data."""
    failure = summary.failure
    return {
        "seed": summary.seed,
        "choices": summary.choices,
        "lives": summary.lives,
        "lives ended by a device that stopped": summary.stuck,
        "seconds": round(summary.seconds, 3),
        **{name: summary.figures[name] for name in sorted(summary.figures)},
        "distinct orders": summary.orders,
        "races": summary.races,
        "misuses": summary.misuses,
        "leaks": summary.leaks,
        "faults": dict(sorted(summary.faults.items())),
        "failure": None if failure is None else {"life": failure.life, "found": failure.found},
    }


def as_table(summary: "Summary") -> str:
    """The summary for a person."""
    from io import StringIO

    from rich.console import Console
    from rich.table import Table

    table = Table(title="Simulation", title_justify="left")
    table.add_column("figure")
    table.add_column("value", justify="right")
    figures = summary.figures
    faults = ", ".join(f"{kind} {count}" for kind, count in sorted(summary.faults.items())) or "none"
    for name, value in (
        ("seed", f"{summary.seed}"),
        ("choices", f"{summary.choices:,}"),
        ("lives", f"{summary.lives:,}"),
        ("of them ended by a device that stopped", f"{summary.stuck:,}"),
        ("engine steps", f"{figures['steps']:,}"),
        ("distinct orders of lanes within a step", f"{summary.orders:,}"),
        ("rows verified", f"{figures['rows']:,}"),
        ("rows of hits", f"{figures['hit_rows']:,}"),
        ("preemptions", f"{figures['preempted']:,}"),
        ("steps given up, discarded", f"{figures['dropped']:,}, {figures['discarded']:,}"),
        ("reads that failed", f"{figures['failed_reads']:,}"),
        ("resets after a failure", f"{figures['resets']:,}"),
        ("faults injected", faults),
        ("races", f"{summary.races:,}"),
        ("other wrong uses of memory", f"{summary.misuses:,}"),
        ("leaks", f"{summary.leaks:,}"),
        ("seconds", f"{summary.seconds:.1f}"),
    ):
        table.add_row(name, value)
    out = StringIO()
    Console(file=out, width=110).print(table)
    return out.getvalue()


def _tell(failure: "Failure", seed: int, kinds: "tuple[FaultKind, ...]", save: Path | None) -> None:
    faults = ",".join(kinds) or "none"
    click.echo(f"life {failure.life}: {failure.found}")
    click.echo(f"found with {failure.was:,} choices, and again with {len(failure.choices):,}")
    click.echo(f"again: tenure simulate --seed {seed} --life {failure.life} --choices 1 --faults {faults}")
    if save is None:
        return
    try:
        _save(failure, seed, kinds, save)
    except OSError as error:
        raise click.UsageError(f"{str(save)!r} cannot be written: {error.strerror}.") from None


def _save(failure: "Failure", seed: int, kinds: "tuple[FaultKind, ...]", save: Path) -> None:
    from tenure.model_checks.reports.errors import MissingExtraError
    from tenure.simulation.graphs import write_happens_before

    save.mkdir(parents=True, exist_ok=True)
    path, timeline = save / f"life-{failure.life}.json", save / f"life-{failure.life}.timeline.json"
    record = {"seed": seed, "life": failure.life, "faults": list(kinds), "choices": failure.choices}
    path.write_text(json.dumps({**record, "found": failure.found}) + "\n", encoding="utf-8")
    timeline.write_text(json.dumps(failure.timeline) + "\n", encoding="utf-8")
    click.echo(f"again, shortened: tenure simulate --repeat {path}; its timeline: {timeline}")
    graph = save / f"life-{failure.life}.graphml"
    try:
        write_happens_before(failure.moves, graph)
    except MissingExtraError as error:
        click.echo(f"no happens-before graph: {error}")
    else:
        click.echo(f"what lay before what, as a graph: {graph}")


def _repeated(path: Path) -> int:
    from tenure.simulation import Simulation
    from tenure.simulation.record import Recorded, RecordError

    try:
        record = Recorded.read(path)
    except RecordError as error:
        raise click.BadParameter(str(error), param_hint="--repeat") from None
    found = Simulation(record.seed, record.faults).repeat(record.choices)
    click.echo("nothing is wrong any more" if found is None else found[0])
    return 0 if found is None else 1
