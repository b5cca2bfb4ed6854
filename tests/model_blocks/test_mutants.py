"""Planted faults of the block machine: they can be planted, and they are found."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tenure.model_checks.blocks.scopes import SCOPES
from tenure.model_checks.mutants.blocks import BLOCK_MUTANTS
from tenure.model_checks.mutants.mutant import Mutant, PlantingError, command_with, main, plant
from tenure.spec.blocks.rules import RULES_BY_ID
from tests.paths import ROOT

BY_ID = {each.id: each for each in BLOCK_MUTANTS}
SAMPLE = ("B-parent-before-leaf", "B-authorization-outlives-its-tenancy", "B-refusal-leaves-a-trace")


def run(mutant: Mutant, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the search of one scope over a faulty core."""
    return subprocess.run(
        command_with(mutant, "tests.model_blocks.refute", *arguments),
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )


@pytest.mark.parametrize("name", SAMPLE)
def test_planted_fault_is_refuted_by_the_rule_named_beforehand(name: str) -> None:
    """A checker that finds no planted fault finds no other one either; all of them are tried by `tenure mutants`."""
    mutant = BY_ID[name]

    found = run(mutant, mutant.scope)

    assert found.returncode == 0, found.stderr
    assert mutant.rule in found.stdout.split()


@pytest.mark.parametrize("mutant", BLOCK_MUTANTS, ids=lambda mutant: mutant.id)
def test_fault_stands_in_its_module_exactly_once(mutant: Mutant) -> None:
    """A module that changed under its fault would be checked unharmed, and the fault count as killed by nobody."""
    spec = importlib.util.find_spec(mutant.module)
    assert spec is not None
    assert spec.origin is not None

    assert Path(spec.origin).read_text(encoding="utf-8").count(mutant.old) == 1
    assert mutant.old != mutant.new


def test_faults_are_named_once_and_expect_what_there_is() -> None:
    """The table of faults is read by scope and rule."""
    scopes = {each.name for each in SCOPES if "ci" in each.sets}

    assert len(BY_ID) == len(BLOCK_MUTANTS) >= 18
    assert not [each.id for each in BLOCK_MUTANTS if each.scope not in scopes or each.rule not in RULES_BY_ID]


def test_planting_refuses_a_module_that_is_imported() -> None:
    """It would change nothing, and a fault that is not there is not found."""
    assert "tenure.core.blocks.pool" in sys.modules

    with pytest.raises(PlantingError, match="imported already"):
        plant("tenure.core.blocks.pool", "a", "b")


def test_planting_refuses_text_that_is_not_there_once() -> None:
    """Of two places one might be the wrong one."""
    mutant = BY_ID[SAMPLE[0]]
    absent = Mutant("absent", mutant.module, "no such text", "", mutant.scope, mutant.rule, "")
    often = Mutant("often", mutant.module, "lease", "", mutant.scope, mutant.rule, "")

    for each in (absent, often):
        found = run(each, each.scope)

        assert found.returncode
        assert "PlantingError" in found.stderr
        assert "exactly once" in found.stderr


def test_planting_script_says_what_it_needs() -> None:
    """It is started by other programs, which want to know."""
    with pytest.raises(PlantingError, match="MODULE OLD NEW TARGET"):
        main(["tenure.core.blocks.pool"])
