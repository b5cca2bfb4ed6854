"""What `tenure check`, `tenure explain` and `tenure mutants` do once their options are read."""

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any, Final

import click
from rich.console import Console
from rich.table import Table

from tenure.core.errors import TenureError
from tenure.model_checks.counterexamples import replay_file
from tenure.model_checks.explorer import (
    Limits,
    Options,
    ProgressLine,
    RefusedError,
    ScopeResult,
    Snapshot,
    Verdict,
    closing_block,
    junit_text,
    run_scopes,
)
from tenure.model_checks.explorer.scopes import unsearched
from tenure.model_checks.model import NOTHING, Model, Scope
from tenure.model_checks.mutants.runner import Fate, Hunt, hunt_all, junit_of, mutants_named
from tenure.model_checks.reports.regression import example_line, regression_test
from tenure.model_checks.reports.report import require_libraries, write_mutants, write_report
from tenure.model_checks.reports.story import print_story
from tenure.model_checks.reports.summary import Run, scope_line, summary_lines
from tenure.model_checks.scopes import chosen, claims_of
from tenure.model_checks.stories import Story, load, save, story_of

COUNTEREXAMPLES: Final = Path("counterexamples")
"""Where they are written if there is no report."""
EXIT_BAD_INPUT: Final = 2
EXIT_SURVIVED: Final = 1
EXIT_BROKEN_PIPE: Final = 141
WIDTH_MIN: Final = 60
WIDTH: Final = 120
WIDTH_OF_TABLES: Final = 160
"""Columns where the output is no terminal."""
INTERRUPTED: Final = "interrupted before it was known"


@dataclass(frozen=True, slots=True)
class CheckOptions:
    """What the command line says of a check; see `tenure check --help`."""

    models: tuple[str, ...]
    scopes: tuple[str, ...]
    workers: int
    limits: Limits
    compact: bool
    resume: bool
    checkpoints: Path | None
    report: Path | None
    junit: Path | None
    graph: bool
    verbose: bool
    show_progress: bool


def _console(width: int = WIDTH_OF_TABLES) -> Console:
    """The screen, as wide as it is; a file or a pipe has a width of its own."""
    return Console(highlight=False, markup=False, emoji=False, width=None if sys.stdout.isatty() else width)


def list_scopes(models: Sequence[str], names: Sequence[str]) -> int:
    """Show the scopes that are meant; all of them if nothing is said."""
    table = Table("scope", "kind", "sets", "about", "comes from", box=None, pad_edge=False)
    found = chosen(models, names or ("deep", "ci", "smoke"))
    for scope in found:
        sets = ", ".join(name for name in ("smoke", "ci", "deep") if name in scope.sets)
        table.add_row(scope.name, scope.kind, sets, f"{scope.heavy:,}", scope.source)
    console = _console()
    console.print(table)
    console.print(f"{len(found)} scopes; 'about' is a guess of distinct states")
    return 0


def check(options: CheckOptions) -> int:
    """Search, tell, write; the exit code of the worst verdict.

    Raises:
        UnknownScopeError: there is no such scope.
        MissingExtraError: a library that a report needs is not installed.
    """
    scopes = chosen(options.models, options.scopes)
    if options.report is not None:
        require_libraries(graphs=options.graph)
    run = _search(scopes, options)
    files = _save_counterexamples(run, options)
    if options.verbose:
        for result in run.results:
            click.echo("\n" + closing_block(result, max(WIDTH_MIN, _console(WIDTH).width)), nl=False)
    for line in summary_lines(run):
        click.echo(line)
    for name in [name for each in files.values() for name in each]:
        click.echo(f"tenure explain {name}")
    if options.junit is not None:
        options.junit.write_text(junit_text([*run.results, *_of_the_set(run)]), encoding="utf-8")
    if options.report is not None:
        write_report(options.report, run, files, graphs=options.graph and not run.interrupted)
        click.echo(f"report: {options.report / 'report.html'}")
    return run.verdict.exit_code


def _search(scopes: Sequence[Scope], options: CheckOptions) -> Run:
    """The results, as many as there are when somebody interrupts."""
    known: dict[str, ScopeResult] = {}
    progress = _Progress(is_wanted=options.show_progress)
    asked: list[int] = []

    def done(result: ScopeResult) -> None:
        known[result.name] = result
        progress.done(result)
        _end_if(asked)

    def told(snapshot: Snapshot) -> None:
        _end_if(asked)
        if options.show_progress:
            progress(snapshot)

    began, interrupted = time.monotonic(), False
    how = Options(
        limits=options.limits,
        visited="compact" if options.compact else "exact",
        checkpoints=options.checkpoints,
        resume=options.resume,
    )
    try:
        with _ended_by_signals(asked):
            run_scopes(scopes, options.workers, how, progress=told, done=done)
    except KeyboardInterrupt:
        interrupted = True
    finally:
        progress.close()
    results = [known.get(scope.name) or unsearched(scope, Verdict.UNDETERMINED, INTERRUPTED) for scope in scopes]
    seconds = time.monotonic() - began
    return Run(tuple(scopes), tuple(results), claims_of(scopes), seconds, options.workers, interrupted)


def _end_if(asked: Sequence[int]) -> None:
    """Python drops what is raised in a weak reference's callback, among others: who was asked to end still does."""
    if asked:
        raise KeyboardInterrupt


@contextmanager
def _ended_by_signals(asked: list[int]) -> Generator[None]:
    """A search that a job's time limit ends tells what is known, as one that Ctrl-C ends does.

    Args:
        asked: gets the signals that came.
    """
    searching = os.getpid()

    def end(number: int, frame: FrameType | None) -> None:
        del frame
        if os.getpid() == searching:
            asked.append(number)
            raise KeyboardInterrupt
        # A process that was forked meanwhile ends as it would have.
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {signal.SIGTERM: signal.signal(signal.SIGTERM, end)}
    # Whoever ignores Ctrl-C goes on doing so.
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        before[signal.SIGINT] = signal.signal(signal.SIGINT, end)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class _Progress(ProgressLine):
    """The line of a search that goes on; verdicts go to the output proper."""

    def __init__(self, *, is_wanted: bool) -> None:
        super().__init__(Console(stderr=True, quiet=not is_wanted))

    def done(self, result: ScopeResult) -> None:
        """A scope is over."""
        self._going.pop(result.name, None)
        self._clear()
        click.echo(scope_line(result))


def _save_counterexamples(run: Run, options: CheckOptions) -> dict[str, list[str]]:
    """A file for every rule that is broken; by scope, where they are."""
    folder = COUNTEREXAMPLES if options.report is None else options.report / "counterexamples"
    files: dict[str, list[str]] = {}
    for scope, result in zip(run.scopes, run.results, strict=True):
        for example in result.counterexamples:
            try:
                files.setdefault(scope.name, []).append(str(save(story_of(scope, example), folder)))
            except Exception as error:
                # The verdict stands, whether its story can be written or not.
                click.echo(f"the story of {example.rule} in {scope.name} cannot be written: {error}", err=True)
    return files


def _of_the_set(run: Run) -> list[ScopeResult]:
    """What all scopes together miss, as a result of its own."""
    missing = run.together.missing
    if not missing:
        return []
    together = Scope("ci/together", "free", frozenset(), {}, NOTHING, _nothing)
    return [unsearched(together, Verdict.BAD_MODEL, f"seen in no scope, though claimed: {', '.join(missing)}")]


def _nothing() -> Model[Any]:
    raise RefusedError("a search of all scopes together", "each has a model of its own")


# --- Counterexamples ------------------------------------------------------------------------------------------


def explain(file: Path, *, everything: bool, write_test: Path | None, hypothesis: bool) -> int:
    """Tell the story, or write it as a test.

    Raises:
        CounterexampleFileError: the file is no counterexample.
        NotOfferedError: the model does not go along it any more.
    """
    story = load(file)
    if write_test is not None:
        write_test.write_text(regression_test(story), encoding="utf-8")
        click.echo(f"{write_test}: passes once {story.rule} holds there")
    elif hypothesis:
        click.echo(example_line(story))
    else:
        print_story(story, _console(WIDTH), everything=everything)
        with_fault = f" --mutant {story.mutant}" if story.mutant else ""
        click.echo(f"\ntenure explain {file} --replay{with_fault}")
    return 0


def replay_counterexample(file: Path, mutant: str | None) -> int:
    """Go through it again: 1 if a rule breaks, 0 if none does any more, 3 if that is not known.

    Raises:
        CounterexampleFileError: the file is no counterexample.
        UnknownMutantError: there is no such fault.
    """
    planted = None if mutant is None else mutants_named([mutant])[0]
    replayed = replay_file(file, planted)
    rule = f" {replayed.rule}" if replayed.rule else ""
    click.echo(f"{replayed.outcome.value}{rule}: {replayed.how}")
    return replayed.outcome.exit_code


# --- Planted faults -------------------------------------------------------------------------------------------


def list_mutants(names: Sequence[str]) -> int:
    """Show the planted faults."""
    table = Table("fault", "rule", "scope", "what is wrong", "comes from", box=None, pad_edge=False)
    found = mutants_named(names)
    for mutant in found:
        table.add_row(mutant.id, mutant.rule, mutant.scope, mutant.what, mutant.source)
    console = _console()
    console.print(table)
    console.print(f"{len(found)} planted faults")
    return 0


def hunt(names: Sequence[str], workers: int, report: Path | None, junit: Path | None, save_to: Path | None) -> int:
    """Hunt planted faults: 0 if each is killed by its rule, else 1.

    Raises:
        UnknownMutantError: there is no such fault.
        MissingExtraError: a library that a report needs is not installed.
    """
    mutants = mutants_named(names)
    if report is not None:
        require_libraries(graphs=False)
    began = time.monotonic()
    hunts = hunt_all(mutants, workers, done=lambda each: click.echo(hunt_line(each)))
    seconds = time.monotonic() - began
    click.echo("")
    _console().print(hunt_table(hunts))
    killed = sum(each.fate is Fate.KILLED for each in hunts)
    click.echo(f"{killed} of {len(hunts)} killed by the rule that was named beforehand, {seconds:.1f} s")
    for each in hunts:
        if each.fate is not Fate.KILLED:
            click.echo(f"{each.fate.value} {each.mutant.id}: {each.why}")
    if save_to is not None:
        for story in _of_their_rule(hunts):
            click.echo(f"tenure explain {save(story, save_to)}")
    if junit is not None:
        junit.write_text(junit_of(hunts), encoding="utf-8")
    if report is not None:
        write_mutants(report, [each.to_json() for each in hunts], seconds)
    return 0 if killed == len(hunts) else EXIT_SURVIVED


def _of_their_rule(hunts: Iterable[Hunt]) -> list[Story]:
    """The counterexample of every fault by the rule that was named; by another if that one held."""
    found: list[Story] = []
    for each in hunts:
        by_rule = {story.rule: story for story in each.stories}
        found += [by_rule.get(each.mutant.rule, each.stories[0])] if each.stories else []
    return found


def hunt_line(each: Hunt) -> str:
    """What became of a fault, in one line."""
    why = f": {each.why}" if each.why else ""
    where = f" ({each.mutant.rule} in {each.mutant.scope})" if each.mutant.rule else ""
    return f"{each.fate.value:<12} {each.mutant.id}{where}{why}"


def hunt_table(hunts: Iterable[Hunt]) -> Table:
    """Fault, rule, scope, depth, states, seconds."""
    table = Table("fault", "fate", "rule", "scope", "depth", "states", "seconds", box=None, pad_edge=False)
    for column in table.columns[-3:]:
        column.justify = "right"
    for each in hunts:
        table.add_row(
            each.mutant.id,
            each.fate.value,
            each.mutant.rule,
            each.mutant.scope,
            str(each.depth),
            f"{each.states:,}",
            f"{each.seconds:.1f}",
        )
    return table


def with_exit_code(work: Callable[[], int]) -> int:
    """The exit code of some work; what a caller did wrong is told in one line.

    Not for what a search finds: that has exit codes of its own.
    """
    try:
        return work()
    except BrokenPipeError:
        return EXIT_BROKEN_PIPE
    except (TenureError, OSError) as error:
        click.echo(f"tenure: {error}", err=True)
        return EXIT_BAD_INPUT
