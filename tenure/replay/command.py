"""What `tenure replay` does once its options are read: replay, show, write, and say what went wrong in one line."""

import io
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from importlib.resources import as_file, files
from pathlib import Path
from typing import Final, TextIO

import click
from rich.console import Console

from tenure.core.errors import InvariantViolation, TenureError
from tenure.replay.display import progress_bar, summary_table
from tenure.replay.errors import OptionError, OutputError, ReplayError, reason_of
from tenure.replay.options import ReplayOptions
from tenure.replay.run import replay
from tenure.replay.summary import Summary

EXIT_OWN_FAULT: Final = 1
EXIT_BAD_INPUT: Final = 2
EXIT_INTERRUPTED: Final = 130
EXIT_BROKEN_PIPE: Final = 141

SAMPLE: Final = "samples/conversations.jsonl"
SAMPLE_DEFAULTS: Final = {"block_size": 32, "capacity": 160, "max_running": 8, "max_batched_tokens": 512}
"""Tight enough that the sample shows evictions and preemptions."""


def run_command(
    sources: Sequence[Path], options: ReplayOptions, json_path: Path | None, *, sample: bool, show_progress: bool
) -> int:
    """Replay, and show and write the summary; the exit status."""
    try:
        with ExitStack() as stack:
            if sample:
                sources = [stack.enter_context(as_file(files("tenure").joinpath(SAMPLE)))]
            write_json = None if json_path is None else _json_writer(json_path, sources, options)
            with progress_bar(wanted=show_progress) as on_step:
                summary = replay(sources, options, on_step)
            if write_json is not None:
                write_json(summary)
            if str(json_path) != "-":
                show(summary)
    except BrokenPipeError:
        return EXIT_BROKEN_PIPE
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    except ReplayError as error:
        return _fail(str(error), EXIT_BAD_INPUT)
    except (InvariantViolation, TenureError) as error:
        return _fail(f"internal error, please report it: {error}", EXIT_OWN_FAULT)
    return EXIT_INTERRUPTED if summary.interrupted else 0


def show(summary: Summary) -> None:
    """Print the summary as a table.

    Raises:
        BrokenPipeError: nobody reads standard output.
        OutputError: it cannot be written.
    """
    # Rich would end the process itself where nobody reads any more, so it only renders.
    rendered = io.StringIO()
    stdout: TextIO | None = sys.stdout
    Console(file=rendered, force_terminal=stdout is not None and stdout.isatty()).print(summary_table(summary))
    _print(rendered.getvalue())


def _print(text: str) -> None:
    stdout: TextIO | None = sys.stdout
    if stdout is None:  # closed by whoever started the process
        return
    try:
        click.echo(text, nl=False)
        stdout.flush()
    except OSError as error:
        # Python would try to write what is left once more at its end, and complain.
        os.dup2(os.open(os.devnull, os.O_WRONLY), stdout.fileno())
        if isinstance(error, BrokenPipeError):
            raise
        raise OutputError("standard output", reason_of(error), "send it elsewhere") from None


def _json_writer(path: Path, sources: Sequence[Path], options: ReplayOptions) -> Callable[[Summary], None]:
    """Find out now, and not after a long replay, whether the summary can be written; what writes it then.

    Raises:
        OptionError: it would overwrite a trace or the KV events.
        OutputError: it cannot be written.
    """
    if str(path) == "-":
        return lambda summary: _print(summary.model_dump_json(indent=2) + "\n")
    try:
        # Opening to append makes the file where there is none, and leaves an earlier summary alone.
        with path.open("a", encoding="utf-8"):
            pass
        taken = [source for source in (*sources, *filter(None, [options.events])) if source.exists()]
        if any(path.samefile(source) for source in taken):
            raise OptionError(f"{path}: --json would overwrite another file of this replay", "give it another path")
    except (OSError, ValueError) as error:
        raise OutputError(str(path), reason_of(error), "give --json another path") from None

    def write(summary: Summary) -> None:
        try:
            path.write_text(summary.model_dump_json(indent=2) + "\n", encoding="utf-8")
        except OSError as error:
            raise OutputError(str(path), reason_of(error), "give --json another path") from None

    return write


def _fail(sentence: str, status: int) -> int:
    # A path may hold any character; whatever happens, the message stays one line.
    click.echo("tenure: " + "".join(c if c.isprintable() else ascii(c)[1:-1] for c in sentence), err=True)
    return status
