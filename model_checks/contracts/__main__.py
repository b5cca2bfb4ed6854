"""CrossHair over all contracts, from a command line: `python -m tenure.model_checks.contracts`."""

import sys
from importlib.util import find_spec

import click
from rich.console import Console
from rich.table import Table

from tenure.model_checks.contracts.gate import CONFIRMED, SECONDS, GateResult, run_gate


@click.command()
@click.option("--seconds-per-condition", "seconds", type=click.FloatRange(min=0, min_open=True), default=SECONDS)
@click.option("--workers", type=click.IntRange(min=1), default=2, show_default=True)
def main(seconds: float, workers: int) -> None:
    """Exit with 0 only if exactly the expected number of conditions is confirmed, and nothing else came out."""
    if find_spec("crosshair") is None:
        raise click.ClickException("CrossHair is not installed: pip install crosshair-tool")
    result = run_gate(seconds=seconds, workers=workers)
    show(result, Console())
    sys.exit(0 if result.passed else 1)


def show(result: GateResult, console: Console) -> None:
    """A line for each condition, then the count."""
    table = Table("condition", "result", "seconds", "what CrossHair says")
    for each in result.answers:
        style = None if each.state == CONFIRMED else "bold red"
        table.add_row(each.condition, each.state, f"{each.seconds:.1f}", each.message, style=style)
    console.print(table)
    console.print(
        f"{result.confirmed} confirmed of {len(result.answers)}, expected {result.expected}, in {result.seconds:.1f} s"
    )


if __name__ == "__main__":
    main()
