"""Docs say what is true now."""

import importlib.util
import re
import subprocess
import sys
from types import ModuleType

import pytest

from tenure.spec.blocks.rules import RULES
from tests.paths import ROOT


def generator() -> ModuleType:
    """`docs/generate.py` as a module."""
    spec = importlib.util.spec_from_file_location("generate", ROOT / "docs" / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_generated_pages_are_fresh() -> None:
    """Run `python docs/generate.py`."""
    for path, text in generator().pages().items():
        assert text == path.read_text(), f"{path.name} is stale: run python docs/generate.py"


@pytest.mark.parametrize("rule", [rule.id for rule in RULES])
def test_every_rule_is_upheld_somewhere_and_tested_somewhere(rule: str) -> None:
    """A failing check can be looked up by its id, in the core and in the tests."""
    mentions = generator().mentions

    assert mentions("core", rule), f"no line of core/ names {rule}"
    assert mentions("tests", rule), f"no test names {rule}"


def test_rules_are_those_of_the_requirement() -> None:
    """I01 to I36, each once."""
    assert [f"I{number:02}" for number in range(1, 37)] == [rule.id for rule in RULES if rule.id.startswith("I")]


def test_the_readmes_python_runs_as_it_stands() -> None:
    """What a stranger copies must work."""
    readme = (ROOT / "README.md").read_text()
    blocks = re.findall(r"```python\n(.*?)```", readme, flags=re.DOTALL)
    assert blocks
    for block in blocks:
        run = subprocess.run([sys.executable, "-W", "error", "-c", block], capture_output=True, text=True, check=False)

        assert run.returncode == 0, run.stderr
        assert re.findall(r"print\(.*\)  # (.*)", block) == run.stdout.splitlines()


def test_cases_name_tests_that_exist() -> None:
    """A case whose test was renamed would be pinned by nothing."""
    page = (ROOT / "docs" / "row-cases.md").read_text()
    files = [file for folder in ("rows", "joined", "facade") for file in (ROOT / "tests" / folder).glob("*.py")]
    tests = "".join(file.read_text() for file in files)
    named = set(re.findall(r"`(test_\w+)`", page))
    missing = [name for name in sorted(named) if f"def {name}(" not in tests]
    cases = [f"A{number:02}" for number in (1, 2, 3, 4, 5, 6, 7, 9, 10, 11, 13, 15, 16, 17, 18, 19)]
    cases += [f"D{number:02}" for number in (1, 2, 3, 4, 5, 6, 9, 11, 13, 14)]
    cases += [f"W{number}" for number in range(1, 16)]

    assert len(named) > 60
    assert not missing
    assert not [case for case in cases if not re.search(rf"^\| {case}\b.*`test_", page, flags=re.MULTILINE)]


def test_relative_links_lead_somewhere() -> None:
    """In every page."""
    for page in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]:
        for target in re.findall(r"\]\(([^)#]+)", page.read_text()):
            if not target.startswith("http"):
                assert (page.parent / target).exists(), f"{page}: {target}"
