"""`tenure conform-cache`: the conformance kit on somebody's cache."""

import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import click

from tenure.conform_cli import MAKER_FORM, end, kit_options, maker

CAPABILITIES: Final = ("machine", "facade")


@click.command("conform-cache", short_help="Hold a cache to the row machine, or to the naive oracle.")
@click.argument("made_by", metavar=f"[{MAKER_FORM}]", required=False)
@click.option("--exec", "command", metavar="COMMAND", help="Start this instead, and tell it events line by line.")
@kit_options(CAPABILITIES, "How the cache can be called, instead of what its maker says", "reply")
@click.pass_context
def conform_cache_command(
    ctx: click.Context,
    made_by: str | None,
    command: str | None,
    names: tuple[str, ...],
    seed: int,
    only: tuple[str, ...],
    timeout_s: float,
    expected: dict[str, str],
    target: Path | None,
    *,
    list_only: bool,
) -> None:
    """Run every check that a cache claims to pass, each on a fresh cache.

    MODULE:MAKER is a callable that takes options (a mapping with `config`, `policy` and `seed`) and gives a cache: one
    with the calls of `tenure.OutputCache` (capability facade), or one with `tell(event)` (capability machine). COMMAND
    is told events of the row machine on its input, and replies on its output; docs/conformance.md has the lines.

    \b
    Examples:
      tenure conform-cache my_module:make_cache --json out.json
      tenure conform-cache --exec "python examples/cache_child.py"
      tenure conform-cache my_module:make_cache --only M1 --seed 7

    \b
    Exit status:
      0  every check that is claimed passes, or fails as expected
      1  a check fails, or one that was expected to fail does not
      2  the command line, or a file that it names, is unusable
      3  nothing fails, and of some check nothing can be said
    """  # noqa: D301 - click takes the \b as it is
    from tenure.backends.conformance import UnknownCheckError, caches

    if list_only:
        for one in caches.CACHE_CHECKS.values():
            click.echo(f"{one.id:<20} {one.level:<10} {one.clause}")
        return
    if (made_by is None) == (command is None):
        raise click.UsageError(f"give {MAKER_FORM} or --exec COMMAND, one of the two.")
    if command is not None:
        _check_command(command, names)
    make_cache: str | Callable[..., Any] = maker(made_by) if made_by is not None else str(command)
    claimed = [each for each in caches.CacheCapability if each.title in names]
    try:
        report = caches.check_cache(
            make_cache,
            claimed or None,
            seed=seed,
            only=only,
            timeout_s=timeout_s,
            expected_failures=expected,
            maker_name=made_by,
        )
    except UnknownCheckError as error:
        raise click.UsageError(f"{error}.") from None
    if not report.capabilities:
        raise click.UsageError("the maker claims no capability; give --capability machine, or facade.")
    end(ctx, report, target)


def _check_command(command: str, names: tuple[str, ...]) -> None:
    """Refuse what no child can be started by, or be."""
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise click.UsageError(f"--exec {command!r} is no command: {error}.") from None
    if not words:
        raise click.UsageError("--exec has no command; say what to start.")
    if "facade" in names:
        raise click.UsageError("a child is told events, so --exec goes with --capability machine alone.")
