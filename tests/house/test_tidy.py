"""What a machine can check is not a matter for review."""

import ast
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.paths import ROOT

FILES = [
    Path(line)
    for line in subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()
    if (ROOT / line).is_file() and not (ROOT / line).is_symlink()
]
PYTHON = [file for file in FILES if file.suffix == ".py"]
PRODUCT = [file for file in PYTHON if file.parts[0] in ("core", "spec", "backends", "model_checks", "tenure")]
TEXT = [file for file in FILES if file.suffix in (".py", ".md", ".toml") or file.name == "Makefile"]
SCRIPTS = [file for file in FILES if file.suffix == ".sh"]
LINES_MAX = 400
FUNCTION_LINES_MAX = 60
LINK_NAMES = ("core", "spec", "backends", "model_checks")
BANNED_WORDS = ("stolen", "reassigned", "tombstone", "rescue", "rescued")


def read(file: Path) -> str:
    """A tracked file's text."""
    return (ROOT / file).read_text(encoding="utf-8")


def test_product_modules_can_be_read_in_one_sitting() -> None:
    """A ratchet: the limit only falls."""
    long = {str(file): count for file in PRODUCT if (count := read(file).count("\n")) > LINES_MAX}

    assert not long


def test_no_module_is_hidden_from_the_repository() -> None:
    """A pattern of `.gitignore` that means one folder hides every folder of that name: no clone has what works here."""
    folders = ("core", "spec", "backends", "model_checks", "tenure", "tests", "benchmarks", "examples", "docs")
    listed = ["git", "ls-files", "--others", "--ignored", "--exclude-standard", "--", *folders]
    found = subprocess.run(listed, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
    hidden = [line for line in found if line.endswith(".py")]

    assert not hidden


def functions(file: Path) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """Every function of a module."""
    for node in ast.walk(ast.parse(read(file))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def test_product_functions_hold_one_idea() -> None:
    """One `match` over all events may be longer."""
    long = [
        f"{file}:{function.lineno} {function.name}"
        for file in PRODUCT
        for function in functions(file)
        if (function.end_lineno or 0) - function.lineno > FUNCTION_LINES_MAX
        and function.name not in ("_dispatch", "new_sequence", "replay_command")
    ]

    assert not long


@pytest.mark.parametrize("word", BANNED_WORDS)
def test_banned_words_name_nothing(word: str) -> None:
    """The glossary's struck-out words."""
    pattern = re.compile(rf"\b{word}\b", re.IGNORECASE)
    found = [
        str(file)
        for file in TEXT
        if file.as_posix() not in ("docs/glossary.md", "tests/house/test_tidy.py") and pattern.search(read(file))
    ]

    assert not found


def test_nothing_is_left_to_do_later() -> None:
    """What is left open is an issue, not a comment."""
    pattern = re.compile(r"\b(TODO|FIXME|XXX)\b")
    found = [str(file) for file in TEXT if file.name != "test_tidy.py" and pattern.search(read(file))]

    assert not found


def test_core_and_spec_print_nothing() -> None:
    """They have nobody to print to."""
    found = [str(file) for file in PRODUCT if file.parts[0] in ("core", "spec") and "print(" in read(file)]

    assert not found


def test_torch_cuda_is_spoken_to_in_one_folder() -> None:
    """What a GPU does is behind the port; whoever reads device data elsewhere waits for it there; tests too."""
    named = re.compile(r"torch\s*\.\s*cuda|torch[\"' ]+,\s*[\"']cuda|from\s+torch\s+import[^\n]*\bcuda\b")
    files = [file for file in (*TEXT, *SCRIPTS) if file != Path(__file__).relative_to(ROOT)]
    by_name = {file.parent.as_posix() for file in files if named.search(read(file))}
    candidates = [file for file in PYTHON if "cuda" in read(file)]
    by_attribute = {
        file.parent.as_posix() for file in candidates if any(map(is_of_cuda, ast.walk(ast.parse(read(file)))))
    }

    assert {"backends/cuda"} == by_name == by_attribute


def is_of_cuda(node: ast.AST) -> bool:
    """Whether something of a module `cuda` that hangs on a name is asked for: `gpu.cuda.Stream`, whatever `gpu` is."""
    parent = node.value if isinstance(node, ast.Attribute) else None
    return isinstance(parent, ast.Attribute) and parent.attr == "cuda" and isinstance(parent.value, ast.Name)


def test_every_page_has_one_title() -> None:
    """One h1 a page, on its first line."""
    pages = [file for file in FILES if file.suffix == ".md" and file.parts[0] != "changelog.d"]
    for page in pages:
        text = re.sub(r"```.*?```", "", read(page), flags=re.DOTALL)
        titles = [line for line in text.splitlines() if line.startswith("# ")]

        assert len(titles) == 1, page
        assert text.startswith("# "), page


def test_links_serve_the_tools_that_follow_files() -> None:
    """mypy, pyright and import-linter find the layers through them."""
    for name in LINK_NAMES:
        link = ROOT / "tenure" / name

        assert link.is_symlink(), name
        assert link.readlink() == Path("..") / name


def test_no_module_is_dead() -> None:
    """Every module of the product is imported by something else, or is an entry point."""
    entry_points = {"tenure.cli", "tenure", "tenure.backends", "tenure.model_checks", "tenure.spec", "tenure.core"}
    everything = "\n".join(read(file) for file in PYTHON)
    dead: list[str] = []
    for file in PRODUCT:
        parts = file.with_suffix("").parts
        module = ".".join(parts if parts[0] == "tenure" else ("tenure", *parts)).removesuffix(".__init__")
        package, _, name = module.rpartition(".")
        patterns = (
            rf"(from|import) {re.escape(module)}\b",
            rf"from {re.escape(package)} import (\([^)]*|[^\n]*)\b{name}\b",
        )
        if module not in entry_points and not any(re.search(pattern, everything) for pattern in patterns):
            is_package = file.name == "__init__.py"
            if not (is_package and re.search(rf"(from|import) {re.escape(module)}\.", everything)):
                dead.append(module)

    assert not dead
