"""What the tests of the core did not notice: `make mutmut-survivors` shows what lives and is not argued.

A survivor is argued in `argued_survivors.toml` by its function and by what was changed in it, so that an argument
outlives changes elsewhere and dies with the line it is about. Exit code 1: a survivor nobody argued, a mutant that no
test reaches, one that was not tried, or an argument that no survivor needs.
"""

import subprocess
import sys
import tomllib
from collections import Counter
from fnmatch import fnmatch, fnmatchcase
from pathlib import Path

import click

ARGUED = Path(__file__).with_name("argued_survivors.toml")
# Only these are a mutant's death; a loop without an end is noticed by the clock.
DEAD = ("killed", "timeout", "caught by type check")


def mutmut(*words: str) -> str:
    """What a command of mutmut says."""
    command = [sys.executable, "-m", "mutmut", *words]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def statuses() -> dict[str, str]:
    """What became of every mutant."""
    found: dict[str, str] = {}
    for line in mutmut("results", "--all", "true").splitlines():
        name, colon, status = line.strip().rpartition(": ")
        if colon:
            found[name] = status
    return found


def described(name: str, diff: str) -> str:
    """A mutant by its function and its changed lines: its number says only how many came before it."""
    module, _, mangled = name.partition("__mutmut_")[0].rpartition(".")
    function = mangled.removeprefix("x_").removeprefix("xǁ").replace("ǁ", ".")
    lines = [line for line in diff.splitlines() if not line.startswith(("---", "+++"))]
    old, new = (" ".join(line[1:].strip() for line in lines if line.startswith(sign)) for sign in "-+")
    return f"{module}.{function}: {old} -> {new}"


def argued() -> list[str]:
    """Every argued survivor; with a `*`, all that it matches."""
    groups = tomllib.loads(ARGUED.read_text(encoding="utf-8"))["group"]
    return [mutant for group in groups for mutant in group["mutants"]]


def argument_for(survivor: str, arguments: list[str]) -> str | None:
    """What argues a survivor, if anything does. Only `*` is a wildcard: brackets and question marks are code."""
    for argument in arguments:
        if fnmatchcase(survivor, argument.replace("[", "[[]").replace("?", "[?]")):
            return argument
    return None


def told_by_module(found: dict[str, str]) -> list[str]:
    """A line of figures for every module, and one for all."""
    modules: dict[str, Counter[str]] = {}
    for name, status in found.items():
        modules.setdefault(name.partition("__mutmut_")[0].rpartition(".")[0], Counter())[status] += 1
    rows = [*sorted(modules.items()), ("all", sum(modules.values(), Counter[str]()))]
    return [
        f"{module}: {counts.total()} mutants, "
        + ", ".join(f"{count} {status}" for status, count in counts.most_common())
        for module, counts in rows
    ]


@click.command()
@click.argument("patterns", nargs=-1)
def main(patterns: tuple[str, ...]) -> None:
    """Show the survivors among the mutants that a pattern names (all, if there is none) and the figures by module."""
    everything = statuses()
    found = {
        name: status
        for name, status in everything.items()
        if any(fnmatch(name, pattern) for pattern in patterns or ("*",))
    }
    arguments = argued()
    used: Counter[str] = Counter()
    open_points: list[str] = []
    for name, status in found.items():
        if status in DEAD:
            continue
        if status == "not checked":
            open_points.append(f"{name}: {status}")
            continue
        diff = mutmut("show", name)
        survivor = described(name, diff)
        argument = argument_for(survivor, arguments)
        if argument is None:
            open_points.append(f"{diff.strip()}\n{survivor}")
        else:
            used[argument] += 1
    # Of a function that was looked at in part, nothing can be said.
    others = {described(name, "").partition(": ")[0] for name in everything if name not in found}
    functions = {described(name, "").partition(": ")[0] for name in found} - others
    unneeded = [
        each
        for each in arguments
        if not used[each] and any(fnmatchcase(function, each.partition(": ")[0]) for function in functions)
    ]
    for point in open_points:
        click.echo(point + "\n")
    for each in unneeded:
        click.echo(f"argued, but no survivor: {each}")
    for line in told_by_module(found):
        click.echo(line)
    click.echo(f"{used.total()} survivors are argued, {len(open_points)} points are open")
    if open_points or unneeded or not found:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
