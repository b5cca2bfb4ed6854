"""`tenure check`: what it searches, what it says, what a shell hears."""

import json
import os
import signal
import subprocess
import sys
import weakref
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from tenure import checking
from tenure.check_cli import budget
from tenure.model_checks import scopes
from tenure.model_checks.blocks.scopes import SCOPES as BLOCK_SCOPES
from tenure.model_checks.explorer import run_scopes
from tenure.model_checks.explorer.toys import Slots
from tenure.model_checks.joined.scopes import SCOPES as JOINED_SCOPES
from tenure.model_checks.model import Scope
from tenure.model_checks.rows.scopes import SCOPES as ROW_SCOPES
from tenure.model_checks.scopes import MODULES, all_scopes, chosen, claims_of
from tests.checking import toys as toy_family
from tests.checking.conftest import Invoke

pytestmark = pytest.mark.usefixtures("toys")


def root_of(file: Path) -> ET.Element:
    """The XML that a test has just had written."""
    return ET.parse(file).getroot()  # noqa: S314


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("toys/proved",), 0, "PROVED       toys/proved: 7 distinct"),
        (("--scope", "refuted"), 1, "REFUTED      toys/refuted"),
        (("--scope", "large", "--budget", "states=50"), 3, "UNDETERMINED toys/large"),
        (("--scope", "vain"), 4, "never seen, though the scope claims it: goal odd"),
        (("--scope", "falling"), 4, "raised ZeroDivisionError"),
        (("--scope", "hogged"), 1, "REFUTED      toys/hogged"),
        (("--scope", "deep", "--workers", "2"), 1, "PROVED       toys/large"),
    ],
)
def test_check_of_each_verdict_has_its_exit_code(
    invoke: Invoke, arguments: tuple[str, ...], code: int, said: str
) -> None:
    """A shell sees nothing but the code: UNDETERMINED or BAD MODEL must never look like success."""
    result = invoke("check", *arguments, "--no-progress")

    assert code == result.exit_code, result.output
    assert said in result.output


@pytest.mark.parametrize(
    "arguments",
    [
        ("--scope", "nothing-like-it"),
        ("nomodel",),
        ("toys/nothing-like-it",),
        ("--budget", "states=0"),
        ("--budget", "states=1,states=2"),
        ("--budget", "hours=3"),
        ("--budget", "states=many"),
        ("--resume",),
        ("--graph",),
        ("--workers", "0"),
        ("--junit", "no/such/folder/check.xml"),
    ],
)
def test_check_of_a_wrong_command_line_ends_with_two(invoke: Invoke, arguments: tuple[str, ...]) -> None:
    """Two is no verdict; and nothing was searched."""
    result = invoke("check", *arguments)

    assert 2 == result.exit_code
    assert "PROVED" not in result.output


def test_check_of_a_name_that_is_nearly_right_offers_the_right_one(invoke: Invoke) -> None:
    """Names of scopes are long."""
    assert "near it: proved" in invoke("check", "--scope", "prooved").output


def test_check_of_all_of_ci_holds_all_claims_against_it_together(
    invoke: Invoke, monkeypatch: pytest.MonkeyPatch, here: Path
) -> None:
    """Each scope may be exercised as it says while a rule that none of them names is never looked at."""
    plain = invoke("check", "--no-progress")
    monkeypatch.setattr(toy_family, "CLAIMS", toy_family.GROWS | {"rule R99"})
    part = invoke("check", "--no-progress", "--scope", "smoke")
    whole = invoke("check", "--no-progress", "--junit", "all.xml", "--scope", "ci")
    cases = {case.get("name"): case.find("error") for case in root_of(here / "all.xml")}

    assert (0, 0, 4) == (plain.exit_code, part.exit_code, whole.exit_code)
    assert "seen in no scope, though claimed: rule R99" in whole.output
    assert cases["proved"] is None
    assert cases["together"] is not None


def test_check_of_a_family_that_cannot_be_imported_is_a_bad_model_and_hides_no_other(
    invoke: Invoke, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Passed over in silence, half of the proof would be missing and nobody would know."""
    monkeypatch.setattr(scopes, "MODULES", {"gone": "tests.checking.gone", "toys": "tests.checking.toys"})
    both = invoke("check", "--no-progress")
    one = invoke("check", "--no-progress", "toys")

    assert (4, 0) == (both.exit_code, one.exit_code)
    assert "BAD MODEL    gone/import" in both.output
    assert "PROVED       toys/proved" in both.output


def test_check_tells_speed_by_model_assumptions_and_what_falls_short(invoke: Invoke) -> None:
    """A verdict without its assumptions says more than was proved."""
    output = invoke("check", "--no-progress", "--scope", "proved", "--scope", "vain").output

    assert "toys     1 of 2 scopes PROVED, 14 distinct, 22 transitions" in output
    assert "states/s and core\n" in output
    assert "assumed: numbers only grow (1 scopes)" in output
    assert "falls short: toys/vain: BAD MODEL" in output
    assert output.rstrip().endswith("BAD MODEL")


def test_check_with_verbose_shows_the_tables_of_each_scope(invoke: Invoke) -> None:
    """Counts per event and mark are where a search that saw too little shows."""
    output = invoke("check", "--no-progress", "--verbose", "toys/proved").output

    assert "every state was expanded" in output
    assert "out-degree 0 to 2" in output
    assert output.count("goal even") == 1


def test_check_that_is_interrupted_keeps_what_is_known_and_is_undetermined(
    invoke: Invoke, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was proved stays proved, and what was not is not."""

    def interrupted(found: list[object], *arguments: object, **more: object) -> None:
        run_scopes(found[:1], *arguments, **more)  # type: ignore[arg-type]
        raise KeyboardInterrupt

    monkeypatch.setattr(checking, "run_scopes", interrupted)
    result = invoke("check", "--no-progress", "--workers", "1")

    assert 3 == result.exit_code
    assert "PROVED       toys/proved" in result.output
    assert "falls short: toys/paid: UNDETERMINED: interrupted before it was known" in result.output


def test_interrupt_that_python_drops_ends_the_check_at_the_next_news(
    invoke: Invoke, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is raised in a weak reference's callback is printed and forgotten."""

    class Thing:
        pass

    def printed(_: object) -> None:
        pass

    def interrupt(_: "weakref.ref[Thing]") -> None:
        signal.raise_signal(signal.SIGINT)

    def dropped(found: list[Scope], *arguments: Any, **more: Any) -> None:
        monkeypatch.setattr("sys.unraisablehook", printed)
        thing = Thing()
        kept = weakref.ref(thing, interrupt)
        del thing
        assert kept() is None
        for scope in found:
            run_scopes([scope], *arguments, **more)

    monkeypatch.setattr(checking, "run_scopes", dropped)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        result = invoke("check", "--no-progress", "--workers", "1")
    finally:
        signal.signal(signal.SIGINT, before)

    assert 3 == result.exit_code
    assert "PROVED       toys/proved" in result.output
    assert "UNDETERMINED: interrupted before it was known" in result.output


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_check_that_is_ended_tells_what_is_known_without_a_traceback(tmp_path: Path, how: signal.Signals) -> None:
    """By Ctrl-C or by a job's time limit, with worker processes at their search, and through the real command."""
    arguments = ["check", "blocks/one-chunk", "rows/two-steps-mixed", "--workers", "2", "--no-progress"]
    # Whoever runs the tests in the background ignores Ctrl-C, and so would this.
    code = (
        "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "from tenure.cli import main; main(sys.argv[1:])"
    )
    command = [sys.executable, "-u", "-c", code, *arguments]
    with subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        assert process.stdout is not None
        first = process.stdout.readline()
        os.kill(process.pid, how)
        out, err = process.communicate(timeout=300)

    assert 3 == process.returncode, err
    assert "PROVED       blocks/one-chunk" in first
    assert "rows/two-steps-mixed: UNDETERMINED" in out
    assert "Traceback" not in err


def test_check_that_resumes_has_the_counts_of_one_that_ran_through(invoke: Invoke, here: Path) -> None:
    """A night's budget ends; the next night must not begin anew, nor count otherwise."""
    whole = invoke("check", "--no-progress", "--scope", "large").output
    cut = invoke("check", "--no-progress", "--scope", "large", "--budget", "states=300", "--checkpoints", "saved")
    again = invoke("check", "--no-progress", "--scope", "large", "--checkpoints", "saved", "--resume")

    def line(output: str) -> str:
        return next(each for each in output.splitlines() if "toys/large" in each).split(", depth")[0]

    assert (3, 0) == (cut.exit_code, again.exit_code)
    assert (here / "saved").is_dir()
    assert f"{Slots(2, 2, 2).distinct()} distinct" in line(whole)
    assert line(whole) == line(again.output)


def test_check_lists_scopes_without_a_search(invoke: Invoke) -> None:
    """What there is to choose from."""
    result = invoke("check", "--list")

    assert 0 == result.exit_code
    assert all(scope.name in result.output for scope in toy_family.SCOPES)
    assert "PROVED" not in result.output


def test_check_of_a_smoke_scope_that_ships_is_proved(
    invoke: Invoke, monkeypatch: pytest.MonkeyPatch, here: Path
) -> None:
    """The command as people call it, over the machine that ships."""
    monkeypatch.setattr(scopes, "MODULES", MODULES)
    result = invoke("check", "blocks/one-fence", "--no-progress", "--junit", "one.xml")

    assert 0 == result.exit_code, result.output
    assert "0" == root_of(here / "one.xml").get("failures")


def test_budget_of_three_parts_is_read_whole() -> None:
    """Seconds may be broken, states and memory not."""
    assert {"states": 5, "seconds": 2.5, "mib": 7} == budget("states=5,seconds=2.5,mib=7")


def test_chosen_scopes_come_once_in_the_order_of_the_registry() -> None:
    """Two options that mean the same scope search it once."""
    names = [scope.name for scope in chosen(["toys"], ["ci", "smoke", "proved", "toys/vain"])]

    assert ["toys/proved", "toys/paid", "toys/vain"] == names
    assert ["toys/vain"] == [scope.name for scope in chosen(["toys/vain"])]


def test_scope_of_another_model_than_asked_for_is_refused(invoke: Invoke, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else PROVED would be said where nothing of the model was searched."""
    monkeypatch.setattr(scopes, "MODULES", MODULES)
    result = invoke("check", "blocks", "--scope", "rows/step-given-up", "--no-progress")

    assert 2 == result.exit_code
    assert "'rows/step-given-up' has no scope of what is asked for, which is blocks" in " ".join(result.output.split())


def test_junit_of_a_refuted_scope_is_a_failure_with_its_story(invoke: Invoke, here: Path) -> None:
    """CI shows the text of a failure and nothing else."""
    invoke("check", "--no-progress", "--scope", "refuted", "--junit", "out.xml")
    root = root_of(here / "out.xml")
    failure = root.find("testcase/failure")

    assert ("1", "0") == (root.get("failures"), root.get("errors"))
    assert failure is not None
    assert "N01 is broken after 3 events" in str(failure.text)


def test_check_with_a_report_writes_json_of_every_scope(invoke: Invoke, here: Path) -> None:
    """What a later program compares."""
    result = invoke("check", "--no-progress", "--scope", "deep", "--report", "out")
    report = json.loads((here / "out" / "report.json").read_text(encoding="utf-8"))
    verdicts = {scope["name"]: scope["verdict"] for scope in report["scopes"]}
    (refuted,) = [scope for scope in report["scopes"] if scope["name"] == "toys/refuted"]

    assert 1 == result.exit_code
    assert ("REFUTED", 1) == (report["verdict"], report["exit_code"])
    assert "BAD MODEL" == verdicts["toys/vain"]
    assert [str(Path("out/counterexamples/toys--refuted--N01.json"))] == refuted["files"]
    assert (here / refuted["files"][0]).is_file()


def test_registry_has_the_scopes_of_every_machine_by_names_that_differ(monkeypatch: pytest.MonkeyPatch) -> None:
    """A scope that the command does not know of proves nothing to anybody."""
    monkeypatch.setattr(scopes, "MODULES", MODULES)
    names = [scope.name for scope in all_scopes()]

    assert len(set(names)) == len(names)
    assert {scope.name for scope in (*BLOCK_SCOPES, *ROW_SCOPES, *JOINED_SCOPES)} == set(names)
    assert {"smoke", "ci", "deep"} == frozenset[str]().union(*(scope.sets for scope in all_scopes()))
    assert claims_of(chosen())
    assert claims_of(chosen(["rows"])) is None


def test_check_whose_story_cannot_be_written_keeps_its_verdict(invoke: Invoke, here: Path) -> None:
    """A full disk must not turn REFUTED into something else."""
    (here / "counterexamples").write_text("in the way", encoding="utf-8")
    result = invoke("check", "--no-progress", "toys/refuted")

    assert 1 == result.exit_code
    assert "the story of N01 in toys/refuted cannot be written" in result.output
    assert result.output.rstrip().endswith("REFUTED")


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="no folder is known here that takes no files from anybody")
@pytest.mark.parametrize("option", ["--report", "--checkpoints"])
def test_folder_that_takes_no_files_is_known_before_the_search(invoke: Invoke, option: str) -> None:
    """A night of searching must not end with a report that nobody can write."""
    result = invoke("check", "--no-progress", "toys/proved", option, "/proc")

    assert 2 == result.exit_code
    assert "'/proc' cannot be written to" in result.output
    assert "PROVED" not in result.output


def test_check_of_all_of_ci_that_is_cut_is_undetermined_not_a_bad_model(
    invoke: Invoke, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a search would have seen is not known; and one line says so for all scopes that it is said of."""
    monkeypatch.setattr(toy_family, "CLAIMS", toy_family.GROWS | {"rule R99"})
    result = invoke("check", "--no-progress", "--budget", "depth=1")

    assert 3 == result.exit_code
    assert "falls short: toys/proved, toys/paid: UNDETERMINED" in result.output
    assert "whether everything is exercised together was not asked" in result.output
