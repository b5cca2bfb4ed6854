"""Commands of the model checker; what they need is imported when one of them runs."""

import os
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, Any, Final

import click

if TYPE_CHECKING:
    from tenure.model_checks.explorer import Limits

BUDGET_FORM: Final = "states=N,seconds=S,mib=M"
BUDGETS: Final = ("states", "seconds", "mib", "depth")


def usable_cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def budget(text: str) -> dict[str, float]:
    """What `states=N,seconds=S,mib=M` says."""
    found: dict[str, float] = {}
    for part in filter(None, text.split(",")):
        name, _, value = part.partition("=")
        if name not in BUDGETS or name in found:
            raise click.BadParameter(f"{part!r} is none of {BUDGET_FORM}, depth=N, each at most once.")
        try:
            found[name] = float(value) if name == "seconds" else int(value)
        except ValueError:
            raise click.BadParameter(f"{value!r} is no number of {name}.") from None
        if not 0 < found[name] < float("inf"):
            raise click.BadParameter(f"{name} is {value}, and must be more than nothing.")
    return found


def _limits(text: str | None) -> "Limits":
    from tenure.model_checks.explorer import Limits

    found = budget(text or "")
    whole = {name: int(value) for name, value in found.items() if name != "seconds"}
    return Limits(seconds=found.get("seconds"), **whole)


def _budget_option(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
    del ctx, param
    budget(value or "")
    return value


def _file(ctx: click.Context, param: click.Parameter, value: Path | None) -> Path | None:
    """A file that can be written: said before the work, not after it."""
    del ctx, param
    if value is not None and not value.parent.is_dir():
        raise click.BadParameter(f"there is no folder {str(value.parent)!r}.")
    return value


def _made(ctx: click.Context, param: click.Parameter, value: Path | None) -> Path | None:
    """A folder that exists from now on, and takes files: known before a long search, not behind it."""
    del ctx, param
    if value is not None:
        tried = "made"
        try:
            value.mkdir(parents=True, exist_ok=True)
            tried = "written to"
            with TemporaryFile(dir=value):
                pass
        except OSError as error:
            raise click.BadParameter(f"{str(value)!r} cannot be {tried}: {error.strerror}.") from None
    return value


def _shared(command: Callable[..., Any]) -> Callable[..., Any]:
    """Options of both commands that search."""
    folder = click.Path(path_type=Path, file_okay=False, writable=True)
    file = click.Path(path_type=Path, dir_okay=False, writable=True)
    for option in (
        click.option("--list", "list_only", is_flag=True, help="Show what there is, and search nothing."),
        click.option("--junit", type=file, callback=_file, metavar="FILE", help="Write the results as JUnit XML."),
        click.option(
            "--report", type=folder, callback=_made, metavar="DIR", help="Write JSON and a page into this folder."
        ),
        click.option(
            "--workers",
            type=click.IntRange(1, 256),
            metavar="N",
            default=usable_cores,
            show_default="usable cores",
            help="Processes that search.",
        ),
    ):
        command = option(command)
    return command


@click.command("check", short_help="Explore every interleaving of the machines that ship.")
@click.argument("models", metavar="[MODEL]...", nargs=-1)
@click.option(
    "--scope",
    "scopes",
    multiple=True,
    metavar="NAME|smoke|ci|deep",
    help="A scope, or a set of them; may be given repeatedly. 'ci' if not said.",
)
@click.option(
    "--budget",
    "budget_text",
    callback=_budget_option,
    metavar=BUDGET_FORM,
    help="End a scope's search there: UNDETERMINED. Any of the three, and depth=N.",
)
@click.option("--compact", is_flag=True, help="Tell states apart by 64 bits: 13 bytes a state, and a chance told.")
@click.option("--resume", is_flag=True, help="Go on from what --checkpoints holds.")
@click.option(
    "--checkpoints",
    type=click.Path(path_type=Path, file_okay=False, writable=True),
    callback=_made,
    metavar="DIR",
    help="Save searches there as they go.",
)
@click.option("--graph", is_flag=True, help="With --report: the state graphs of small scopes, as GraphML and drawn.")
@click.option("--verbose", is_flag=True, help="All counts of every scope.")
@click.option("--no-progress", is_flag=True, help="Show no progress line.")
@_shared
@click.pass_context
def check_command(
    ctx: click.Context,
    /,
    models: tuple[str, ...],
    scopes: tuple[str, ...],
    budget_text: str | None,
    *,
    list_only: bool,
    no_progress: bool,
    **choices: Any,
) -> None:
    """Explore every state that the machines can reach, in scopes that say what they cover, and hold it against all
    rules.

    MODEL is blocks, rows, joined, or a scope's full name. A scope is PROVED if every state was looked at, no rule
    broke, and everything was seen that it claims to exercise. When all of 'ci' is searched, all of it together must
    also have seen every rule, event, command and goal.

    A broken rule is written as a file, into the report or into ./counterexamples; `tenure explain` tells its story.

    \b
    Examples:
      tenure check --scope smoke
      tenure check rows --workers 2 --report out --junit out/check.xml
      tenure check rows/same-step-hit --verbose
      tenure check --scope deep --budget seconds=3600 --checkpoints nights --resume

    \b
    Exit status, the worst verdict:
      0  PROVED
      1  REFUTED: a rule is broken
      2  the command line, or a file that it names, is unusable
      3  UNDETERMINED: a budget ended a search, or somebody interrupted it
      4  BAD MODEL: something claimed was never exercised, or the model fails
    """  # noqa: D205, D301 - click takes the \b as it is
    from tenure import checking

    if list_only:
        ctx.exit(checking.with_exit_code(lambda: checking.list_scopes(models, scopes)))
    if choices["resume"] and choices["checkpoints"] is None:
        raise click.UsageError("--resume needs --checkpoints: where the searches were saved.")
    if choices["graph"] and choices["report"] is None:
        raise click.UsageError("--graph needs --report: where the graphs go.")
    options = checking.CheckOptions(
        models, scopes, limits=_limits(budget_text), show_progress=not no_progress, **choices
    )
    ctx.exit(checking.with_exit_code(lambda: checking.check(options)))


@click.command("explain", short_help="Tell the story of a counterexample, or go through it again.")
@click.argument("file", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@click.option("--all", "everything", is_flag=True, help="Shorten nothing.")
@click.option(
    "--write-test",
    type=click.Path(path_type=Path, dir_okay=False, writable=True),
    callback=_file,
    metavar="PATH",
    help="Write a pytest module that fails as long as the rule breaks.",
)
@click.option("--hypothesis", is_flag=True, help="Print the @example line that pins it in a byte-driven walk.")
@click.option("--replay", "is_replayed", is_flag=True, help="Go through it again on the core that is here.")
@click.option("--mutant", metavar="ID", help="With --replay: with this fault planted.")
@click.pass_context
def explain_command(
    ctx: click.Context,
    /,
    file: Path,
    mutant: str | None,
    *,
    is_replayed: bool,
    **choices: Any,
) -> None:
    """Tell the story of a counterexample: who did what, what changed, and what that contradicts.

    \b
    Exit status:
      0  told; or, with --replay: no rule breaks any more
      1  with --replay: a rule breaks
      2  the command line or the file is unusable
      3  with --replay: the story cannot go on as told, and what may follow is too much to search
    """  # noqa: D301 - click takes the \b as it is
    from tenure import checking

    if mutant is not None and not is_replayed:
        raise click.UsageError("--mutant needs --replay.")
    if is_replayed:
        ctx.exit(checking.with_exit_code(lambda: checking.replay_counterexample(file, mutant)))
    ctx.exit(checking.with_exit_code(lambda: checking.explain(file, **choices)))


@click.command("mutants", short_help="Plant faults in the machines, and see that each is found.")
@click.argument("names", metavar="[ID]...", nargs=-1)
@click.option(
    "--save",
    "save_to",
    type=click.Path(path_type=Path, file_okay=False, writable=True),
    callback=_made,
    metavar="DIR",
    help="Write the counterexample of every fault there.",
)
@_shared
@click.pass_context
def mutants_command(
    ctx: click.Context,
    /,
    names: tuple[str, ...],
    save_to: Path | None,
    *,
    list_only: bool,
    workers: int,
    report: Path | None,
    junit: Path | None,
) -> None:
    """Plant one fault after the other in the machines, and search the scope that was named for it beforehand.

    A fault is killed if the rule that was named for it breaks. One that survives, or that another rule finds, is a
    failure.

    \b
    Exit status:
      0  all are killed, each by its rule
      1  some are not
      2  the command line, or a file that it names, is unusable
    """  # noqa: D301 - click takes the \b as it is
    from tenure import checking

    if list_only:
        ctx.exit(checking.with_exit_code(lambda: checking.list_mutants(names)))
    ctx.exit(checking.with_exit_code(lambda: checking.hunt(names, workers, report, junit, save_to)))
