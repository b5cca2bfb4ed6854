"""How tests of commands call them."""

from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tenure.cli import main
from tenure.model_checks import scopes

Invoke = Callable[..., Result]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder, and the work goes on there."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def invoke(here: Path) -> Invoke:
    """Calls a command of `tenure`; an exception that is none of click's is a failure."""
    del here

    def call(*arguments: object) -> Result:
        return CliRunner().invoke(main, [str(each) for each in arguments], catch_exceptions=False)

    return call


@pytest.fixture
def toys(monkeypatch: pytest.MonkeyPatch) -> None:
    """The registry has toys, and nothing else."""
    monkeypatch.setattr(scopes, "MODULES", {"toys": "tests.checking.toys"})
