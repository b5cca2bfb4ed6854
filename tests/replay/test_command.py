"""The command line: what it prints where, its exit statuses, and how it ends when it is cut short."""

import io
import json
import os
import runpy
import select
import signal
import subprocess
import sys
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

import pytest
from click.testing import CliRunner

from tenure.cli import main
from tenure.core.errors import InvariantViolation
from tenure.replay.command import SAMPLE
from tenure.replay.counters import Counters
from tenure.replay.display import STEPS_PER_UPDATE, progress_bar
from tests.paths import ROOT
from tests.replay.traces import GOOD, Invoke, WriteTrace

PROCESS_LIMIT_S = 120
"""Long enough for the slowest machine; only a process that hangs ever waits for it."""


def start(arguments: Sequence[object], stdout: int = subprocess.PIPE) -> subprocess.Popen[str]:
    def take_interrupts() -> None:
        # A process that was started in the background may have told its children to ignore them.
        signal.signal(signal.SIGINT, signal.SIG_DFL)

    command = [sys.executable, "-c", "from tenure.cli import main; main()", "replay", *map(str, arguments)]
    return subprocess.Popen(
        command,
        stdout=stdout,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=take_interrupts if os.name == "posix" else None,
    )


@pytest.mark.parametrize("command", sorted(main.commands))
def test_help_of_every_command_keeps_its_lines(command: str) -> None:
    """What click is told not to wrap it does not wrap: each exit status has a line, and no sign of markup is left."""
    text = CliRunner().invoke(main, [command, "--help"], terminal_width=110).stdout

    assert "\\b" not in text
    lines = [line.strip() for line in text.partition("Exit status")[2].splitlines()]
    assert any(line.startswith("0  ") for line in lines), text
    assert any(line.startswith("2  ") for line in lines), text


def test_version_and_help_are_readable() -> None:
    runner = CliRunner()

    assert runner.invoke(main, ["--version"]).stdout == f"tenure {version('tenure')}\n"
    assert "replay" in runner.invoke(main, ["--help"]).stdout
    text = runner.invoke(main, ["replay", "--help"], terminal_width=110).stdout
    for word in (
        "--capacity N|unlimited",
        "--check-every N",
        "Exit status:",
        "130  interrupted",
        "Mooncake",
        "agentic",
    ):
        assert word in text


def test_the_table_tells_the_figures(write_trace: WriteTrace, invoke: Invoke) -> None:
    result = invoke(write_trace(GOOD, GOOD), "--max-running", 1, "--capacity", "unlimited")

    cells = {
        row[0]: row[1]
        for row in (
            [cell.strip() for cell in line.strip("│").split("│")] for line in result.stdout.splitlines() if "│" in line
        )
    }
    del cells["seconds"], cells["requests per second"]
    assert (result.exit_code, result.stderr) == (0, "")
    assert cells == {
        "capacity, blocks": "unlimited",
        "block size, tokens": "16",
        "requests": "2",
        "prompt tokens": "1,200",
        "output tokens": "6",
        "hit tokens at first admission": "592 (49.3 %)",
        "hit blocks at first admission": "37 (48.7 %)",
        "hit tokens after preemption": "0",
        "peak active blocks": "38",
        "evicted blocks": "0",
        "hashes stored (events)": "37 (1)",
        "hashes removed (events)": "0 (0)",
        "steps": "6",
        "preemptions": "0",
    }


def test_json_replaces_the_table_or_stands_beside_it(write_trace: WriteTrace, invoke: Invoke, tmp_path: Path) -> None:
    trace = write_trace(GOOD)

    alone, beside = invoke(trace, "--json", "-"), invoke(trace, "--json", tmp_path / "summary")

    first, second = json.loads(alone.stdout), json.loads((tmp_path / "summary").read_text(encoding="utf-8"))
    assert set(first) == {"interrupted", "setup", "requests", "hits", "cache", "scheduler", "timing"}
    assert first | {"timing": None} == second | {"timing": None}
    assert "hit blocks at first admission" in beside.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--capacity", "many"], "neither a number of blocks nor 'unlimited'"),
        (["--capacity", "0"], "is not in the range"),
        (["--capacity", str(2**40 + 1)], "is not in the range"),
        (["--block-size", "1"], "is not in the range"),
        (["--limit", "0"], "is not in the range"),
        (["--seed", "-1"], "is not in the range"),
        (["--sample"], "Give at least one TRACE, or --sample, not both."),
        (["--max-running", "9", "--max-batched-tokens", "8"], "has no room for 9 running requests"),
        (["--check", "--capacity", "unlimited"], "give --check a --capacity of at most"),
    ],
)
def test_a_wrong_option_is_refused(write_trace: WriteTrace, invoke: Invoke, arguments: list[str], message: str) -> None:
    result = invoke(write_trace(GOOD), *arguments)

    assert (result.exit_code, result.stdout) == (2, "")
    assert message in result.stderr


def test_a_trace_is_wanted(invoke: Invoke) -> None:
    result = invoke()

    assert result.exit_code == 2
    assert "Give at least one TRACE" in result.stderr


@pytest.mark.parametrize("option", ["--json", "--events"])
@pytest.mark.parametrize("target", ["missing/file", ".", "/dev/full"])
def test_an_output_that_cannot_be_written_is_named(
    write_trace: WriteTrace, invoke: Invoke, tmp_path: Path, option: str, target: str
) -> None:
    """Before the replay where that can be known, and in any case in one line."""
    if target == "/dev/full" and not Path(target).exists():
        pytest.skip("this system has no /dev/full")
    path = tmp_path / target

    result = invoke(write_trace(GOOD), option, path)

    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith(f"tenure: {path}: cannot be written (")
    assert result.stderr.endswith(f"; give {option} another path\n")


def test_json_overwrites_no_other_file_of_the_replay(write_trace: WriteTrace, invoke: Invoke, tmp_path: Path) -> None:
    trace, both = write_trace(GOOD), tmp_path / "both"
    both.touch()

    for path in (trace, both):
        result = invoke(trace, "--json", path, "--events", both)
        assert result.exit_code == 2
        assert "would overwrite another file of this replay" in result.stderr
    assert trace.read_text(encoding="utf-8") == GOOD + "\n"


def test_a_fault_of_our_own_names_its_rule(
    write_trace: WriteTrace, invoke: Invoke, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*arguments: object) -> None:
        raise InvariantViolation("I11", "7 blocks are not 8")

    monkeypatch.setattr("tenure.replay.command.replay", broken)

    result = invoke(write_trace(GOOD))

    assert result.exit_code == 1
    assert result.stderr == "tenure: internal error, please report it: I11: 7 blocks are not 8\n"


# --- The sample -----------------------------------------------------------------------------------------------------


def test_the_sample_shows_sharing_evictions_and_preemptions(invoke: Invoke) -> None:
    result = invoke("--sample", "--check-every", 40, "--json", "-")

    summary = json.loads(result.stdout)
    assert result.exit_code == 0
    assert summary["requests"]["finished"] > 90
    assert summary["hits"]["blocks_percent"] > 40
    assert min(summary["cache"]["evicted_blocks"], summary["scheduler"]["preemptions"]) > 10
    assert summary["hits"]["tokens_after_preemption"] > 0


def test_options_overrule_what_the_sample_chooses(invoke: Invoke) -> None:
    summary = json.loads(invoke("--sample", "--capacity", 5000, "--json", "-").stdout)

    assert (summary["setup"]["capacity"], summary["cache"]["evicted_blocks"]) == (5000, 0)


def test_the_sample_is_what_its_script_makes() -> None:
    script = runpy.run_path(str(ROOT / "examples" / "make_sample_trace.py"))

    assert (ROOT / "tenure" / SAMPLE).read_text(encoding="ascii") == script["sample"]()


# --- Progress -------------------------------------------------------------------------------------------------------


class Terminal(io.StringIO):
    """Text that takes itself for a terminal."""

    def isatty(self) -> bool:
        return True


def test_progress_is_shown_on_a_terminal_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    counters = Counters(requests=1234, steps=STEPS_PER_UPDATE, hit_tokens=1, prompt_tokens=4)

    with progress_bar(wanted=True) as on_step:
        assert on_step is not None
        on_step(counters, 0.5)
    with progress_bar(wanted=False) as unwanted:
        assert unwanted is None
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    with progress_bar(wanted=True) as unseen:
        assert unseen is None

    assert "1,234 requests, 32 steps, 25.0 % hits" in terminal.getvalue()


# --- Cut short ------------------------------------------------------------------------------------------------------


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_ctrl_c_sums_up_what_was_done_so_far(tmp_path: Path) -> None:
    """The trace is a pipe that never ends, so the replay can only end by the interrupt."""
    requests = [{"input_length": 4500, "output_length": 2, "hash_ids": list(range(9 * n, 9 * n + 9))} for n in (0, 1)]
    pipes: list[int] = []
    for name in ("trace", "events"):
        os.mkfifo(tmp_path / name)
        # Opened for both, a pipe neither makes its opener wait nor ends.
        pipes.append(os.open(tmp_path / name, os.O_RDWR))
    trace, events = pipes
    os.write(trace, "".join(json.dumps(request) + "\n" for request in requests).encode())
    process = start([tmp_path / "trace", "--max-running", 1, "--events", tmp_path / "events"])

    # An event tells that requests are being replayed.
    select.select([events], [], [], PROCESS_LIMIT_S)
    process.send_signal(signal.SIGINT)
    stdout, stderr = process.communicate(timeout=PROCESS_LIMIT_S)

    for pipe in pipes:
        os.close(pipe)
    assert (process.returncode, stderr) == (130, "")
    assert "Replay, interrupted" in stdout
    assert "requests per second" in stdout


@pytest.mark.parametrize("output", [[], ["--json", "-"]])
def test_a_reader_that_goes_away_is_no_error(write_trace: WriteTrace, output: list[str]) -> None:
    process = start([write_trace(GOOD), *output])
    assert process.stdout is not None
    process.stdout.close()

    process.wait(timeout=PROCESS_LIMIT_S)

    assert process.stderr is not None
    with process.stderr as stderr:
        assert (process.returncode, stderr.read()) == (141, "")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
def test_a_full_disk_behind_standard_output_is_named(write_trace: WriteTrace) -> None:
    with Path("/dev/full").open("w", encoding="utf-8") as full:
        process = start([write_trace(GOOD)], stdout=full.fileno())
        _, stderr = process.communicate(timeout=PROCESS_LIMIT_S)

    assert process.returncode == 2
    assert stderr.startswith("tenure: standard output: cannot be written (")
    assert stderr.count("\n") == 1


def test_a_closed_standard_error_is_no_fault(write_trace: WriteTrace) -> None:
    """Exit status 1 means that a rule is broken, and nothing else."""
    code = "import sys; sys.stderr = None\nfrom tenure.cli import main; main()"
    command = [sys.executable, "-c", code, "replay", str(write_trace(GOOD))]
    run = subprocess.run(command, capture_output=True, text=True, check=False, timeout=PROCESS_LIMIT_S)

    assert run.returncode == 0
    assert "requests" in run.stdout


def test_events_to_a_dash_are_refused(invoke: Invoke, write_trace: WriteTrace) -> None:
    """`--json -` is standard output; a file named `-` is what nobody wants."""
    result = invoke(write_trace(GOOD), "--events", "-")

    assert result.exit_code == 2
    assert "--events - names no file" in result.stderr
