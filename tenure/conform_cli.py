"""`tenure conform`: the conformance kit on somebody's device."""

import importlib
import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from tenure.backends.capabilities import Capability
from tenure.backends.leftovers import is_mapping

if TYPE_CHECKING:
    from tenure.backends.conformance import Report, Result

MAKER_FORM: Final = "MODULE:MAKER"
Decorated = TypeVar("Decorated", bound=Callable[..., Any])
WIDTH: Final = 130
"""Columns of the table where nobody says how wide it may be."""
CAPABILITIES: Final = {each.title: each for each in Capability}


def maker(text: str) -> Callable[..., Any]:
    """What `MODULE:MAKER` names; modules of the working folder are found as well."""
    module, _, path = text.partition(":")
    if not module or not path:
        raise click.BadParameter(
            f"{text!r} is no {MAKER_FORM}: a module, a colon, and what makes a device or cache there."
        )
    folder = str(Path.cwd())
    if folder not in sys.path:
        sys.path.insert(0, folder)
    try:
        found: Any = importlib.import_module(module)
    except (Exception, SystemExit) as error:
        raise click.BadParameter(f"{module!r} cannot be imported: {_said(error)}.") from None
    for name in path.split("."):
        if not hasattr(found, name):
            raise click.BadParameter(f"{module!r} has no {path!r}.")
        found = getattr(found, name)
    for name in ("make_device", "make_cache") if isinstance(found, type) else ():
        # A class of tests.
        found = _method_of(found, name)
    if not callable(found):
        raise click.BadParameter(f"{text!r} cannot be called.")
    made: Callable[..., Any] = found
    return made


def _method_of(kind: Any, name: str) -> Any:
    """A method of a fresh object of a class, if it has one; else the class."""
    if not hasattr(kind, name):
        return kind
    try:
        return getattr(kind(), name)
    except (Exception, SystemExit) as error:
        raise click.BadParameter(f"{kind.__qualname__!r} cannot be built: {_said(error)}.") from None


def _said(error: BaseException) -> str:
    """An error in one line."""
    return f"{type(error).__name__}: {' '.join(str(error).split())}"


def _maker_argument(ctx: click.Context, param: click.Parameter, value: str) -> tuple[str, Callable[..., Any]]:
    del ctx, param
    return value, maker(value)


def expected_reasons(ctx: click.Context, param: click.Parameter, value: Path | None) -> dict[str, str]:
    """A JSON object: the reason by id."""
    del ctx, param
    if value is None:
        return {}
    try:
        found: Any = json.loads(value.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise click.BadParameter(f"{str(value)!r} is no JSON: {error}.") from None
    if not is_mapping(found) or not all(isinstance(one, str) and one for pair in found.items() for one in pair):
        raise click.BadParameter(f"{str(value)!r} is no object that gives a reason by the id of a check.")
    return dict(found)


def kit_options(capabilities: Sequence[str], claims: str, unit: str) -> Callable[[Decorated], Decorated]:
    """The options of a command that runs a kit.

    Args:
        capabilities: what may be claimed.
        claims: the help of `--capability`.
        unit: what `--timeout` is for.
    """
    options = (
        click.option(
            "--capability",
            "names",
            type=click.Choice(capabilities),
            multiple=True,
            help=f"{claims}; may be given repeatedly.",
        ),
        click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Of all that is drawn."),
        click.option("--only", multiple=True, metavar="ID", help="A check, or the beginning of some; may be repeated."),
        click.option(
            "--timeout",
            "timeout_s",
            type=click.FloatRange(0.01),
            default=20.0,
            show_default=True,
            metavar="S",
            help=f"Seconds that one {unit} may take; what takes longer is unknown.",
        ),
        click.option(
            "--expected-failures",
            "expected",
            type=click.Path(path_type=Path, exists=True, dir_okay=False),
            callback=expected_reasons,
            metavar="FILE",
            help="A JSON object: why a check fails, by its id.",
        ),
        click.option(
            "--json",
            "target",
            type=click.Path(path_type=Path, dir_okay=False, writable=True),
            metavar="FILE",
            help="Write the report there.",
        ),
        click.option("--list", "list_only", is_flag=True, help="Show the checks, and run none."),
    )

    def decorated(command: Decorated) -> Decorated:
        for option in reversed(options):
            command = option(command)
        return command

    return decorated


@click.command("conform", short_help="Hold a device to the duties of the port.")
@click.argument("made_by", metavar=MAKER_FORM, callback=_maker_argument)
@kit_options(tuple(CAPABILITIES), "What the device claims, instead of what its maker says", "wait")
@click.pass_context
def conform_command(
    ctx: click.Context,
    made_by: tuple[str, Callable[..., Any]],
    names: tuple[str, ...],
    seed: int,
    only: tuple[str, ...],
    timeout_s: float,
    expected: dict[str, str],
    target: Path | None,
    *,
    list_only: bool,
) -> None:
    """Run every check that a device claims to pass, each on a fresh device.

    MODULE:MAKER is a callable that takes options (a mapping with `seed` and `is_controlled`) and gives a device, or a
    `tenure.backends.conformance.Bench` of one.

    \b
    Examples:
      tenure conform tenure.backends.fake:make_device
      tenure conform my_module:make_device --capability async --json out.json
      tenure conform my_module:make_device --only D3 --seed 7

    \b
    Exit status:
      0  every check that is claimed passes, or fails as expected
      1  a check fails, or one that was expected to fail does not
      2  the command line, or a file that it names, is unusable
      3  nothing fails, and of some check nothing can be said
    """  # noqa: D301 - click takes the \b as it is
    from tenure.backends import conformance

    text, make_device = made_by
    try:
        chosen = conformance.selected(only)
        if list_only:
            for one in chosen:
                click.echo(f"{one.id:<36} {one.level:<12} {one.clause}")
            return
        report = conformance.check_device(
            make_device,
            frozenset(CAPABILITIES[name] for name in names) if names else None,
            seed=seed,
            only=only,
            timeout_s=timeout_s,
            expected_failures=expected,
            maker_name=text,
        )
    except conformance.UnknownCheckError as error:
        raise click.UsageError(f"{error}.") from None
    end(ctx, report, target)


def write_report(report: "Report", target: Path | None) -> None:
    """Write the JSON, if it is wanted."""
    if target is not None:
        try:
            target.write_text(report.as_json(), encoding="utf-8")
        except OSError as error:
            raise click.UsageError(f"{str(target)!r} cannot be written: {error.strerror}.") from None


def end(ctx: click.Context, report: "Report", target: Path | None) -> None:
    """Show the report, write it if that is wanted, and end with the status that says what was found."""
    _show(report)
    write_report(report, target)
    ctx.exit({"pass": 0, "fail": 1, "unknown": 3}[report.verdict.value])


def _show(report: "Report") -> None:
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    from tenure.backends.conformance import Verdict

    console = Console(highlight=False, width=None if sys.stdout.isatty() else WIDTH)
    table = Table(title=f"{report.maker}, seed {report.seed}", title_justify="left")
    for column in ("verdict", "check", "level", "what was found"):
        table.add_column(column, overflow="fold", no_wrap=column in ("verdict", "check"))
    for verdict in (Verdict.FAIL, Verdict.UNKNOWN, Verdict.PASS, Verdict.NOT_CLAIMED):
        for each in report.of(verdict):
            found = f"{each.message}\nclause: {each.clause}" if verdict is Verdict.FAIL else each.message
            if each.coverage is not None:
                found = f"{each.coverage.met} of {each.coverage.open} open edges; {found}"
            table.add_row(_word(each), each.id, each.level, escape(found))
    console.print(table)
    for each in report.results:
        if not each.is_as_it_should_be or each.verdict is Verdict.UNKNOWN:
            console.print(f"again: {each.repeat}", markup=False, soft_wrap=True)
    counts = ", ".join(f"{len(report.of(verdict))} {verdict.value}" for verdict in Verdict)
    console.print(f"{report.verdict.value.upper()}: {counts}", markup=False)


def _word(result: "Result") -> str:
    word = result.verdict.value
    if result.expected is None:
        return word
    return f"{word}, expected" if result.is_as_it_should_be else f"{word}, unexpected"
