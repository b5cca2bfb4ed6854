"""A package that is forgotten is missing from the wheel alone: nothing else would tell."""

import importlib
import importlib.metadata
import tomllib
from pathlib import Path
from typing import Any

import tenure
from tests.paths import ROOT

SETUP: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())
TOP = {"core", "spec", "backends", "model_checks"}


def packages_on_disk() -> dict[str, str]:
    """Package name to folder, for every folder with an `__init__.py`."""
    found: dict[str, str] = {}
    for top in (*TOP, "tenure"):
        for init in (ROOT / top).rglob("__init__.py"):
            folder = init.parent.relative_to(ROOT)
            parts = folder.as_posix().split("/")
            if parts[0] == "tenure" and len(parts) > 1 and parts[1] in TOP:
                continue
            name = ".".join(parts if parts[0] == "tenure" else ["tenure", *parts])
            found[name] = folder.as_posix()
    return found


def test_the_package_list_is_that_of_the_folders() -> None:
    """And each is mapped to its folder."""
    expected = packages_on_disk()
    setuptools = SETUP["tool"]["setuptools"]

    assert sorted(expected) == sorted(setuptools["packages"])
    assert expected == setuptools["package-dir"]


def test_importing_the_core_imports_no_heavy_or_impure_package() -> None:
    """Torch is an extra; the core alone needs numpy, xxhash and pydantic."""
    import subprocess
    import sys

    code = "import sys, tenure.core.blocks.machine, tenure.spec.blocks.rules; print(*sorted(sys.modules))"
    modules = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()

    assert "torch" not in modules
    assert "tenure.core.blocks.machine" in modules


def test_versions_agree() -> None:
    """The module, the distribution and the project file say the same."""
    assert SETUP["project"]["version"] == tenure.__version__ == importlib.metadata.version("tenure")


def test_ci_pins_every_direct_dependency() -> None:
    """Torch with them, although CI does not install it yet."""
    pinned = {
        line.split("==")[0].lower()
        for line in (ROOT / "constraints" / "ci.txt").read_text().splitlines()
        if "==" in line
    }
    wanted = [*SETUP["project"]["dependencies"]]
    for extra in SETUP["project"]["optional-dependencies"].values():
        wanted += extra
    names = {Path(each.split(">")[0].split("[")[0]).name.lower() for each in wanted}

    assert names - {"tenure"} <= pinned
    assert "torch==2.13.0" in (ROOT / "constraints" / "ci.txt").read_text()
