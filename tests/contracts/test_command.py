"""The command over all contracts: a table, and an exit status that means something."""

import pytest
from click.testing import CliRunner

from tenure.model_checks.contracts.__main__ import main
from tenure.model_checks.contracts.gate import CONFIRMED, Answer, GateResult

GOOD = Answer("pool.one", CONFIRMED, "", 0.1)
OPEN = Answer("pool.two", "CANNOT_CONFIRM", "Not confirmed.", 20.0)

pytest.importorskip("crosshair", reason="CrossHair is not installed (pip install crosshair-tool)")


@pytest.mark.parametrize(
    ("answers", "expected", "status"), [((GOOD,), 1, 0), ((GOOD, OPEN), 2, 1), ((GOOD,), 2, 1), ((GOOD, GOOD), 1, 1)]
)
def test_command_succeeds_only_with_all_confirmed(
    monkeypatch: pytest.MonkeyPatch, answers: tuple[Answer, ...], expected: int, status: int
) -> None:
    """CI believes the exit status, so it must be 0 for nothing else."""

    def run_gate(*, seconds: float, workers: int) -> GateResult:
        assert (1.5, 1) == (seconds, workers)
        return GateResult(answers, expected, 2.0)

    monkeypatch.setattr("tenure.model_checks.contracts.__main__.run_gate", run_gate)
    ran = CliRunner().invoke(main, ["--seconds-per-condition", "1.5", "--workers", "1"])

    assert status == ran.exit_code, ran.output
    assert all(each.condition in ran.output for each in answers)
    assert f"expected {expected}" in ran.output
