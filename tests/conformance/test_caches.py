"""The kit for caches: ours pass, broken ones fail by the check named for them, and a child is told line by line."""

import json
import shlex
import subprocess
import sys
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, ClassVar

import pytest
from click.testing import CliRunner

from tenure import OutputCache
from tenure.backends import fake
from tenure.backends.conformance import UnknownCheckError, Verdict
from tenure.backends.conformance.caches import CACHE_CHECKS, CacheBench, CacheCapability, cache_claims, check_cache
from tenure.backends.conformance.testing import CacheConformance
from tenure.cli import main
from tests.conformance.broken_caches import CHILDREN, FACADES, MACHINES, Facade, Machine
from tests.paths import ROOT

EXAMPLE = f"{shlex.quote(sys.executable)} {shlex.quote(str(ROOT / 'examples' / 'cache_child.py'))}"
TIMEOUT_S = 60.0
"""Long enough for the slowest machine; only what hangs is ever waited for."""
SCRIPT = shlex.quote(str(ROOT / "tests" / "conformance" / "broken_caches.py"))


def child(fault: str) -> str:
    return f"{shlex.quote(sys.executable)} {SCRIPT} {shlex.quote(fault)}"


@cache_claims(CacheCapability.MACHINE)
def make_machine(options: Mapping[str, Any]) -> Machine:
    return Machine(options["config"], options["policy"])


@cache_claims(CacheCapability.FACADE)
def make_on_cpu(options: Mapping[str, Any]) -> Facade:
    return Facade(options["config"], options["policy"])


@cache_claims(CacheCapability.FACADE)
def make_on_fake(options: Mapping[str, Any]) -> CacheBench:
    device = fake.make_device({"seed": options["seed"]})
    return CacheBench(OutputCache(options["config"], options["policy"], device=device), device.forward)


# --- Caches ---------------------------------------------------------------------------------------------------------


def test_row_machine_passes_and_meets_every_edge() -> None:
    """The oracle agrees with itself, in another object."""
    report = check_cache(make_machine)
    covered = [each.coverage for each in report.results if each.coverage is not None]

    assert Verdict.PASS is report.verdict, report.as_json()
    assert [2, True] == [len(covered), all(each.met == each.open > 0 for each in covered)]
    assert {"facade"} == {each.level for each in report.of(Verdict.NOT_CLAIMED)}


@pytest.mark.parametrize("make", [make_on_cpu, make_on_fake])
def test_facade_that_ships_passes_on_every_device_that_ships(make: Any) -> None:
    """Beside the naive oracle."""
    report = check_cache(make)

    assert Verdict.PASS is report.verdict, report.as_json()
    assert 6 == len(report.of(Verdict.PASS))


@pytest.mark.parametrize("fault", sorted(MACHINES))
def test_broken_machine_fails_by_the_check_named_for_it(fault: str) -> None:
    """A check that nothing fails tells nothing."""
    broken = MACHINES[fault]
    (result,) = check_cache(broken.make, [CacheCapability.MACHINE], only=[broken.check], timeout_s=TIMEOUT_S).results

    assert Verdict.FAIL is result.verdict, result.message
    assert broken.words in result.message


@pytest.mark.parametrize("fault", sorted(FACADES))
def test_broken_facade_fails_by_the_check_named_for_it(fault: str) -> None:
    """Likewise."""
    broken = FACADES[fault]
    (result,) = check_cache(broken.make, [CacheCapability.FACADE], only=[broken.check], timeout_s=TIMEOUT_S).results

    assert Verdict.FAIL is result.verdict, result.message
    assert broken.words in result.message


@pytest.mark.parametrize("seed", [4, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (1, 2, 3, 8, 13))])
def test_cache_that_gives_nothing_up_fails_whatever_the_seed_draws(seed: int) -> None:
    """Of seeds 4, 8 and 13 only further histories have a hit that lacks nothing but what a dropped step took away."""
    broken = FACADES["a dropped step leaves its slots"]
    (result,) = check_cache(broken.make, [CacheCapability.FACADE], only=[broken.check], seed=seed).results

    assert Verdict.FAIL is result.verdict, result.message


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("make", [make_on_cpu, make_on_fake])
def test_every_seed_has_a_verdict(make: Any, seed: int) -> None:
    """What a seed happens to draw decides how long a check takes, and not whether anything can be said."""
    report = check_cache(make, seed=seed)

    assert Verdict.PASS is report.verdict, report.as_json()


# --- Children -------------------------------------------------------------------------------------------------------


def test_example_child_passes_what_is_asked_of_it() -> None:
    """Whoever writes a cache in another language begins with something that works."""
    report = check_cache(EXAMPLE, only=["M2"], timeout_s=TIMEOUT_S)

    assert Verdict.PASS is report.verdict, report.as_json()


@pytest.mark.slow
def test_example_child_passes_whole() -> None:
    """All traces, line by line."""
    report = check_cache(EXAMPLE)

    assert Verdict.PASS is report.verdict, report.as_json()


@pytest.mark.parametrize("fault", sorted(CHILDREN))
def test_broken_child_fails_by_the_check_named_for_it(fault: str) -> None:
    """A child that dies or says what is no reply fails, at the event that it was told."""
    broken = CHILDREN[fault]
    (result,) = check_cache(child(fault), only=[broken.check], timeout_s=TIMEOUT_S).results

    assert Verdict.FAIL is result.verdict, result.message
    assert broken.words in result.message
    assert " event " in result.message


def test_child_that_hangs_is_unknown() -> None:
    """It may only be slow."""
    (result,) = check_cache(child("hangs"), only=["M1"], timeout_s=2.0).results

    assert Verdict.UNKNOWN is result.verdict
    assert "says nothing for 2.0 s" in result.message


def test_command_that_cannot_be_started_fails() -> None:
    """With the reason, not a traceback."""
    (result,) = check_cache("/nowhere/at-all", only=["M1"]).results

    assert Verdict.FAIL is result.verdict
    assert "cannot be started" in result.message


# --- Verdicts, command, pytest --------------------------------------------------------------------------------------


def test_expected_failures_are_strict_and_unknown_ids_refused() -> None:
    """As of devices."""
    broken = FACADES["a reset is always done"]
    known = {broken.check: "it never says no"}
    excused = check_cache(broken.make, [CacheCapability.FACADE], only=[broken.check], expected_failures=known)
    mended = check_cache(make_on_cpu, only=[broken.check], expected_failures=known)

    assert (Verdict.PASS, Verdict.FAIL) == (excused.verdict, mended.verdict)
    with pytest.raises(UnknownCheckError):
        check_cache(make_on_cpu, only=["F77"])
    with pytest.raises(UnknownCheckError):
        check_cache(make_on_cpu, expected_failures={"F77": "?"})


def test_command_writes_what_repeats_each_check(tmp_path: Path) -> None:
    """For makers and for children."""
    target = tmp_path / "out.json"
    made = "tests.conformance.test_caches:make_on_cpu"
    run = CliRunner().invoke(main, ["conform-cache", made, "--only", "F1", "--json", str(target)])
    report: dict[str, Any] = json.loads(target.read_text())
    of_child = CliRunner().invoke(
        main, ["conform-cache", "--exec", child("loses"), "--only", "M1", "--json", str(target)]
    )
    other: dict[str, Any] = json.loads(target.read_text())

    assert 0 == run.exit_code, run.output
    assert [f"tenure conform-cache {made} --only F1.rows --seed 0 --capability facade"] == [
        each["repeat"] for each in report["checks"]
    ]
    assert 1 == of_child.exit_code, of_child.output
    assert other["checks"][0]["repeat"].startswith("tenure conform-cache --exec ")
    assert other["checks"][0]["edges"]["met"] < other["checks"][0]["edges"]["open"]


@pytest.mark.parametrize(
    "arguments", [[], ["tests.conformance.test_caches:child"], ["a:b", "--exec", "c"], ["--exec", "c", "--only", "X"]]
)
def test_command_refuses_what_it_cannot_use(arguments: list[str]) -> None:
    """Nothing to test, both, an id that there is not, a maker that claims nothing."""
    assert 2 == CliRunner().invoke(main, ["conform-cache", *arguments]).exit_code


class TestWithPytest(CacheConformance):
    """The class that third parties subclass."""

    capabilities: ClassVar[Collection[CacheCapability]] = (CacheCapability.FACADE,)

    def make_cache(self, options: Mapping[str, Any]) -> Any:
        return make_on_cpu(options)


def test_kit_for_caches_needs_neither_pytest_nor_the_model_checker() -> None:
    """It is in the wheel, with its traces."""
    code = (
        "import sys, tenure.backends.conformance.caches, tenure.backends.conformance.testing\n"
        "from tenure.backends.conformance.traces import edge_traces; edge_traces()\n"
        "print(*sorted(sys.modules))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)

    assert not {"pytest", "torch", "tenure.model_checks"} & set(run.stdout.split())


def test_ids_of_cache_checks_are_documented() -> None:
    """Reports and lists of expected failures name them."""
    text = (ROOT / "docs" / "conformance.md").read_text()

    assert not [one for one in CACHE_CHECKS if f"`{one}`" not in text]
