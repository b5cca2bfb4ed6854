"""Walks of all machines by the million, from a command line: `python -m tenure.model_checks.walks`."""

import sys
from typing import Final

import click
from rich.console import Console
from rich.table import Table

from tenure.model_checks.walks.machines import MACHINES
from tenure.model_checks.walks.runner import PROFILES, WalksResult, run_walks
from tenure.model_checks.walks.shortening import Fault

STORY_MAX: Final = 60
LINE_MAX: Final = 400


@click.command()
@click.option("--profile", type=click.Choice(sorted(PROFILES)), default="ci", show_default=True)
@click.option("--events", type=click.IntRange(min=1), help="Events of all machines together; else the profile's.")
@click.option("--seconds", type=click.FloatRange(min=0, min_open=True), help="Begin no further batch after that.")
@click.option("--workers", type=click.IntRange(min=1), default=2, show_default=True)
@click.option("--seed", type=int, default=0, show_default=True)
@click.option("--machine", "names", multiple=True, type=click.Choice(list(MACHINES)), help="Only these; repeatable.")
def main(
    profile: str, events: int | None, seconds: float | None, workers: int, seed: int, names: tuple[str, ...]
) -> None:
    """Walk the machines at random, beside their oracles and under every rule; 1 if something is found."""
    result = run_walks(
        events or PROFILES[profile],
        seconds=seconds,
        workers=workers,
        seed=seed,
        machines=[MACHINES[name] for name in names or MACHINES],
    )
    show(result, Console())
    sys.exit(result.exit_code)


def show(result: WalksResult, console: Console) -> None:
    """A line for each machine, then what was found."""
    table = Table()
    table.add_column("machine", no_wrap=True)
    for column in ("events", "events/s", "states", "met", "CPU s", "found"):
        table.add_column(column, justify="right")
    for each in result.machines:
        speed = f"{each.events / each.cpu_s:,.0f}" if each.cpu_s else "-"
        states = f"{each.states:,}" if each.states else "-"
        table.add_row(
            each.machine.name,
            f"{each.events:,}",
            speed,
            states,
            str(len(each.seen)),
            f"{each.cpu_s:.1f}",
            str(len(each.faults)),
        )
    console.print(table)
    console.print(
        f"{result.events:,} events in {result.seconds:.1f} s; "
        "events/s: per CPU second; states: distinct, by batch; met: mechanisms"
    )
    for each in result.machines:
        for fault in each.faults:
            _tell(each.machine.name, fault, console)
    for name, marks in result.missed.items():
        console.print(f"{name}: so many events should have met {', '.join(sorted(marks))}", markup=False)
    if result.is_cut:
        console.print("the time was over before all was walked")


def _tell(name: str, fault: Fault, console: Console) -> None:
    console.print(f"\n{name} breaks {fault.rule}", style="bold", markup=False)
    hidden = len(fault.story) - STORY_MAX
    for number, line in enumerate(fault.story[-STORY_MAX:], max(hidden, 0) + 1):
        console.print(f"{number:4} {line[:LINE_MAX]}", markup=False, soft_wrap=True)
    console.print(
        f"     {fault.found[: 4 * LINE_MAX]}\n     bytes.fromhex('{fault.data.hex()}')", markup=False, soft_wrap=True
    )


if __name__ == "__main__":
    main()
