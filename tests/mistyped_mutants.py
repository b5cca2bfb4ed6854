"""The mutants that the type checker refuses: what `make check` says of a change is said before any test is run.

mutmut runs this in its folder of mutants and reads what mypy would print. What mypy says of mutmut's own code, and of a
mutant and its original alike, is nobody's mistake and left out.
"""

import ast
import json
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from typing import TypedDict

import click

# What is wrong with the way in which mutmut writes its mutants down, not with a mutant.
MUTMUTS_OWN = ("ignore-without-code", "no-redef", "has-type", "var-annotated", "valid-type")
# What is no mistake in what the code does.
TASTE = ("redundant-expr", "unreachable", "no-any-return", "comparison-overlap", "truthy-bool")


class Complaint(TypedDict):
    """What mypy says of a line."""

    file: str
    line: int
    message: str
    code: str
    severity: str


def complaints(folder: str) -> list[Complaint]:
    """All errors that mypy finds in a folder."""
    command = [sys.executable, "-m", "mypy", folder, "--output=json", "--no-warn-unused-ignores"]
    said = subprocess.run(command, capture_output=True, text=True, check=False)
    if said.returncode > 1:
        sys.exit(said.stdout + said.stderr)
    found: list[Complaint] = [json.loads(line) for line in said.stdout.splitlines()]
    return [one for one in found if one["severity"] == "error" and one["code"] not in MUTMUTS_OWN + TASTE]


def functions_by_line(file: str) -> dict[int, str]:
    """The function that every line of a file is in, as mutmut names it; methods do not nest in functions."""
    lines: dict[int, str] = {}
    for node in ast.walk(ast.parse(Path(file).read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef) and "__mutmut_" in node.name:
            assert node.end_lineno is not None, "ast.parse sets it"
            lines.update(dict.fromkeys(range(node.lineno, node.end_lineno + 1), node.name))
    return lines


def of_mutants(file: str, said: list[Complaint]) -> list[Complaint]:
    """What is said of mutants alone."""
    functions = functions_by_line(file)
    originals: set[tuple[str, str]] = set()
    named: list[tuple[str, Complaint]] = []
    for one in said:
        function, _, number = functions.get(one["line"], "").partition("__mutmut_")
        if number == "orig":
            originals.add((function, one["message"]))
        elif number:
            named.append((function, one))
    return [one for function, one in named if (function, one["message"]) not in originals]


def main() -> None:
    """Print what mypy says of the mutants in `tenure/core` of the working folder, a line of JSON each."""
    by_file: defaultdict[str, list[Complaint]] = defaultdict(list)
    for one in complaints("tenure/core"):
        by_file[one["file"]].append(one)
    for file, said in by_file.items():
        for one in of_mutants(file, said):
            click.echo(json.dumps(one))


if __name__ == "__main__":
    main()
