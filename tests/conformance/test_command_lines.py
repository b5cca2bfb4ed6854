"""What a command line of the kit cannot use is said in a line; what was found is shown in any case."""

from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from tenure.backends.conformance import Verdict, check_device
from tenure.backends.conformance.caches import CacheCapability, check_cache
from tenure.cli import main
from tests.conformance import faulty_makers

CPU = "tenure.backends.cpu:make_device"


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, list(arguments))


def is_wrong_usage(found: Result) -> bool:
    """Exit status 2 and one line of error, no traceback."""
    errors = [line for line in found.output.splitlines() if line.startswith("Error: ")]
    assert isinstance(found.exception, SystemExit), found.exception
    return (found.exit_code, len(errors)) == (2, 1)


@pytest.mark.parametrize(
    "made",
    [".mk:f", "tests.conformance.faulty_makers:Fails", "syntax_is_wrong:f", "raises_at_import:f", "exits_at_import:f"],
)
def test_maker_that_cannot_be_had_is_wrong_usage(made: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever its module does."""
    (tmp_path / "syntax_is_wrong.py").write_text("def f(:\n")
    (tmp_path / "raises_at_import.py").write_text("raise RuntimeError('no driver')\n")
    (tmp_path / "exits_at_import.py").write_text("raise SystemExit(0)\n")
    monkeypatch.syspath_prepend(tmp_path)  # pyright: ignore[reportUnknownMemberType]

    assert is_wrong_usage(run("conform", made, "--only", "D5.describe"))
    assert is_wrong_usage(run("conform-cache", made, "--only", "M1"))


@pytest.mark.parametrize(
    "arguments", [("--exec", ""), ("--exec", "a 'b"), ("--exec", "true", "--capability", "facade")]
)
def test_command_of_a_child_that_cannot_be_started_is_wrong_usage(arguments: tuple[str, ...]) -> None:
    """No command, a quote that stays open, and calls that no child has."""
    assert is_wrong_usage(run("conform-cache", *arguments))


def test_report_that_cannot_be_written_is_shown() -> None:
    """Minutes of work are not lost for a name."""
    found = run("conform", CPU, "--only", "D5.describe", "--json", "/nonexistent/x.json")

    assert is_wrong_usage(found)
    assert "PASS: " in found.output


def test_maker_that_gives_nothing_or_exits_fails_by_that() -> None:
    """At once."""
    gives_none: Any = faulty_makers.gives_none
    exits_itself: Any = faulty_makers.exits
    none = check_device(gives_none, only=["D5.describe"])
    exits = check_device(exits_itself, only=["D5.describe"], timeout_s=1.0)
    cache = check_cache(faulty_makers.gives_none, [CacheCapability.FACADE], only=["F1"])

    assert [Verdict.FAIL] * 3 == [each.verdict for each in (none, exits, cache)]
    assert "the maker gave no device" in none.results[0].message
    assert "SystemExit: enough" in exits.results[0].message
    assert "the maker gave no cache" in cache.results[0].message
