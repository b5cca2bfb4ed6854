"""The kit itself: good devices pass, broken ones fail by the check named for them, and verdicts mean what they say."""

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, ClassVar

import pytest
from click.testing import CliRunner

from tenure.backends import cpu, fake
from tenure.backends.capabilities import Capability
from tenure.backends.conformance import (
    CHECKS,
    Report,
    UnknownCheckError,
    Verdict,
    check_device,
    histories,
    lockstep,
)
from tenure.backends.conformance.report import rules_hash
from tenure.backends.conformance.rig import OutOfTimeError
from tenure.backends.conformance.testing import DeviceConformance
from tenure.backends.cpu import CpuDevice
from tenure.backends.cpu.worker import CpuEvent
from tenure.backends.device import Device, Lane
from tenure.cli import main
from tests.conformance.broken import BROKEN
from tests.paths import ROOT

TIMEOUT_S = 20.0
WAITED_OUT = {"the listener is called under a lock"}
"""Faults that show in nothing but calls that do not return."""
BUT_EDGES = ("D", "L", "T2")
"""All but the traces that take every edge, the longest check."""


def passed_all_that_is_claimed(report: Report) -> bool:
    """Or say what did not."""
    bad = [each for each in report.results if each.verdict not in (Verdict.PASS, Verdict.NOT_CLAIMED)]
    assert not bad
    return report.verdict is Verdict.PASS


# --- Devices --------------------------------------------------------------------------------------------------------


def test_cpu_with_a_worker_passes_and_claims_what_it_can() -> None:
    """The device that ships keeps the port that ships."""
    report = check_device(cpu.make_device)

    assert passed_all_that_is_claimed(report)
    assert [each.id for each in report.of(Verdict.NOT_CLAIMED)] == [
        each.id for each in report.results if each.level in ("controlled", "page-locked")
    ]


def test_cpu_inline_passes_the_core_level_and_faults() -> None:
    """A device on which everything is over at the call keeps the same duties; `TestWithPytest` takes its edges."""
    claimed = [Capability.FAULTS, Capability.UNIFIED]
    report = check_device(lambda _: CpuDevice(worker=False, tensors="numpy"), claimed, only=BUT_EDGES)

    assert passed_all_that_is_claimed(report)
    assert len(report.of(Verdict.PASS)) > 30


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_emulated_accelerator_passes_in_orders_of_its_own(seed: int) -> None:
    """Adversarial orders, and races that it would find in the kit or in the executor."""
    report = check_device(fake.make_device, seed=seed)

    assert passed_all_that_is_claimed(report)
    assert [each.level for each in report.of(Verdict.NOT_CLAIMED)] == ["unified"]


@pytest.mark.parametrize("make", [fake.make_device, pytest.param(cpu.make_device, marks=pytest.mark.slow)])
def test_seed_of_which_the_usual_histories_meet_too_little_has_a_verdict(make: Any) -> None:
    """Of seed 4 the first six histories set no row aside; further ones do."""
    (result,) = check_device(make, seed=4, only=["L2"]).results

    assert Verdict.PASS is result.verdict, result.message
    assert int(result.message.split(" histories", 1)[0]) > lockstep.HISTORIES


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("make", [fake.make_device, cpu.make_device])
def test_every_seed_has_a_verdict(make: Any, seed: int) -> None:
    """What a seed happens to draw decides how long a check takes, and not whether anything can be said."""
    assert passed_all_that_is_claimed(check_device(make, seed=seed, only=("D", "L")))


def test_what_histories_never_meet_is_unknown_after_a_bound_that_is_told() -> None:
    """A check that meets nothing of what it is about must neither pass nor go on for ever."""
    seen: Counter[str] = Counter(rows=1)
    told = list(histories.numbers(6, seen, ["rows", "set aside"]))

    assert [*range(histories.AT_MOST)] == told
    with pytest.raises(OutOfTimeError, match=f"none of {histories.AT_MOST} histories met set aside"):
        histories.require_met(seen, ["rows", "set aside"])


def test_histories_end_as_soon_as_they_met_what_they_must_and_not_before_the_usual_ones() -> None:
    """A seed that draws well costs no more than the usual histories."""
    seen: Counter[str] = Counter()
    told: list[int] = []
    for number in histories.numbers(6, seen, ["set aside"]):
        told.append(number)
        seen["set aside"] += number == 8
    soon = list(histories.numbers(6, Counter({"set aside": 1}), ["set aside"]))

    assert ([*range(9)], [*range(6)]) == (told, soon)


@pytest.mark.parametrize("fault", sorted(BROKEN))
def test_broken_device_fails_by_the_check_named_for_it(fault: str) -> None:
    """A check that nothing fails tells nothing."""
    broken = BROKEN[fault]
    timeout_s = 5.0 if fault in WAITED_OUT else TIMEOUT_S
    (result,) = check_device(broken.make, broken.capabilities, only=[broken.check], timeout_s=timeout_s).results

    assert (Verdict.FAIL, broken.check) == (result.verdict, result.id)
    assert broken.words in result.message


def test_every_core_duty_has_a_device_that_breaks_it() -> None:
    """By number: a duty without a broken device is one that the kit may only seem to check."""
    expected = {f"D{number}" for number in range(1, 10)}

    assert expected == {each.check[:2] for each in BROKEN.values() if each.check.startswith("D")}


def test_cpu_with_torch_tensors_passes() -> None:
    """Where an engine has torch, the rows come as its tensors, bfloat16 as itself."""
    pytest.importorskip("torch", reason="torch is not installed")
    from tenure.backends.conformance.torch_bench import torch_bench

    claimed = [Capability.FAULTS, Capability.UNIFIED]
    report = check_device(lambda _: torch_bench(CpuDevice(worker=True, tensors="torch")), claimed, only=BUT_EDGES)

    assert passed_all_that_is_claimed(report)


def test_template_device_passes_the_core_level_and_faults() -> None:
    """Whoever writes a device begins with something that works."""
    run = subprocess.run(
        [
            sys.executable,
            "-c",
            "from tenure.cli import main; main()",
            "conform",
            "device:make_device",
            "--capability",
            "faults",
            *(f"--only={each}" for each in BUT_EDGES),
        ],
        cwd=ROOT / "examples",
        capture_output=True,
        text=True,
        check=False,
    )

    assert 0 == run.returncode, run.stdout + run.stderr
    assert " 0 fail, 0 unknown, " in run.stdout


# --- Verdicts -------------------------------------------------------------------------------------------------------


class NeverDone(CpuDevice):
    """Events of the lane POOL never complete."""

    def __init__(self) -> None:
        super().__init__(worker=False, tensors="numpy")

    def record(self, lane: Lane) -> CpuEvent:
        return CpuEvent(is_done=False) if lane is Lane.POOL else super().record(lane)


def test_time_out_is_unknown_and_no_pass() -> None:
    """A device that is merely slow is not called broken, and never called good."""
    report = check_device(lambda _: NeverDone(), only=["D1.lane-reads"], timeout_s=0.5)

    assert Verdict.UNKNOWN is report.verdict
    assert "did not complete in 0.5 s" in report.results[0].message
    assert report.results[0].repeat.endswith("--seed 0 --timeout 0.5")


class Hangs(CpuDevice):
    """Recording takes for ever, on a thread that nobody can end."""

    def record(self, lane: Lane) -> CpuEvent:
        import threading

        threading.Event().wait(5.0)
        return super().record(lane)


def test_device_that_hangs_ends_the_check_and_not_the_kit() -> None:
    """Whoever runs the kit gets a report."""
    report = check_device(lambda _: Hangs(tensors="numpy"), only=["D1.compute"], timeout_s=0.05)

    assert Verdict.UNKNOWN is report.verdict
    assert "did not end" in report.results[0].message


def test_expected_failures_are_strict() -> None:
    """What fails as expected is no failure; what passes unexpectedly is one, so that lists shrink."""
    broken = BROKEN["a gather of one row too far"]
    known = {broken.check: "the kernel is being mended"}
    excused = check_device(broken.make, only=[broken.check], expected_failures=known)
    mended = check_device(cpu.make_device, only=[broken.check], expected_failures=known)

    assert (Verdict.PASS, Verdict.FAIL) == (excused.verdict, excused.results[0].verdict)
    assert (Verdict.FAIL, Verdict.PASS) == (mended.verdict, mended.results[0].verdict)
    assert "and it did not" in mended.results[0].message


def test_claim_without_what_it_takes_fails() -> None:
    """A capability that is claimed and cannot be used is not passed over."""
    report = check_device(cpu.make_device, [Capability.CONTROLLED], only=["L4"])

    assert Verdict.FAIL is report.verdict


def test_unknown_ids_are_refused() -> None:
    """A misspelt id would check nothing, and excuse nothing."""
    with pytest.raises(UnknownCheckError, match="'D77' is the beginning of no check's id"):
        check_device(cpu.make_device, only=["D77"])
    with pytest.raises(UnknownCheckError, match="no such check"):
        check_device(cpu.make_device, expected_failures={"D77.none": "?"})


# --- The command ----------------------------------------------------------------------------------------------------


def test_command_passes_and_writes_what_repeats_each_check(tmp_path: Path) -> None:
    """The JSON is what a third party keeps and shows."""
    target = tmp_path / "out.json"
    made = "tenure.backends.cpu:make_device"
    run = CliRunner().invoke(main, ["conform", made, "--only", "D5", "--only", "D4", "--json", str(target)])
    report: dict[str, Any] = json.loads(target.read_text())

    assert 0 == run.exit_code, run.output
    assert "PASS: " in run.output
    assert ("pass", 0, rules_hash()) == (report["verdict"], report["seed"], report["kit"]["rules"])
    assert f"tenure conform {made} --only D5.describe --seed 0" in {each["repeat"] for each in report["checks"]}


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["nothing"], 2),
        (["tenure.backends.cpu:nothing"], 2),
        (["tenure.backends.cpu:make_device", "--only", "D77"], 2),
        (["tenure.backends.cpu:make_device", "--only", "L4", "--capability", "controlled"], 1),
        (["tests.conformance.test_kit:never_done", "--only", "D1.lane-reads", "--timeout", "0.05"], 3),
    ],
)
def test_command_says_by_its_exit_status_what_was_found(arguments: list[str], code: int) -> None:
    """Scripts go by it."""
    assert code == CliRunner().invoke(main, ["conform", *arguments]).exit_code


def never_done(options: Mapping[str, Any]) -> Device:
    """A maker that the command line can name."""
    del options
    return NeverDone()


def test_command_takes_expected_failures_from_a_file(tmp_path: Path) -> None:
    """An object of reasons; anything else is wrong usage."""
    good, bad = tmp_path / "good.json", tmp_path / "bad.json"
    good.write_text('{"D5.describe": "because"}')
    bad.write_text('["D5.describe"]')
    run = ["conform", "tenure.backends.cpu:make_device", "--only", "D5.describe", "--expected-failures"]

    assert 1 == CliRunner().invoke(main, [*run, str(good)]).exit_code
    assert 2 == CliRunner().invoke(main, [*run, str(bad)]).exit_code


# --- pytest ---------------------------------------------------------------------------------------------------------


class TestWithPytest(DeviceConformance):
    """The class that third parties subclass, on the device that ships."""

    capabilities: ClassVar[Collection[Capability]] = frozenset({Capability.FAULTS})

    def make_device(self, options: Mapping[str, Any]) -> Device:
        return cpu.make_device({**options, "worker": False})


def test_kit_needs_no_pytest() -> None:
    """Nor torch, nor the model checker: it is in the wheel, and runs where they are not."""
    code = "import sys, tenure.backends.conformance, tenure.backends.conformance.testing; print(*sorted(sys.modules))"
    modules = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT
    ).stdout.split()

    assert "tenure.backends.conformance.runner" in modules
    assert not {"pytest", "_pytest", "torch", "tenure.model_checks"} & set(modules)


def test_ids_are_stable() -> None:
    """Reports and lists of expected failures name them: one that goes or changes makes a new revision of the kit."""
    text = (ROOT / "docs" / "conformance.md").read_text()

    assert not [one for one in CHECKS if f"`{one}`" not in text]
