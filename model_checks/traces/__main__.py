"""`python -m tenure.model_checks.traces`: write the conformance kit's traces anew."""

from pathlib import Path

import click

from tenure.backends.conformance import traces
from tenure.model_checks.traces.edges import edge_scopes
from tenure.model_checks.traces.pinned import pinned_scopes


@click.command()
@click.option(
    "--into",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    default=Path(str(traces.DATA)),
    help="The folder to write to; by default the one that the kit reads.",
)
@click.option("--edges/--no-edges", default=True, help="Write the traces that take every edge.")
@click.option("--pinned/--no-pinned", default=True, help="Write the traces of planted faults; that takes longer.")
def main(into: Path, *, edges: bool, pinned: bool) -> None:
    """Write the traces that the conformance kit goes through."""
    if edges:
        scopes = list(edge_scopes())
        size = traces.save(scopes, into / traces.EDGES)
        for scope in scopes:
            told = sum(len(trace.told) for trace in scope.traces)
            click.echo(f"{scope.name}: {scope.num_edges} edges, {len(scope.traces)} traces, {told} events")
        click.echo(f"{traces.EDGES}: {size} bytes")
    if pinned:
        scopes = list(pinned_scopes())
        size = traces.save(scopes, into / traces.PINNED)
        click.echo(f"{sum(len(scope.traces) for scope in scopes)} planted faults told apart")
        click.echo(f"{traces.PINNED}: {size} bytes")


if __name__ == "__main__":
    main()
