"""Writes what the docs take from the code: the rules, where each is upheld and tested, and the lifecycle diagrams.

Run `python docs/generate.py` after a rule, a goal or a lifecycle changed; a test fails while the docs are stale.
"""

import re
from pathlib import Path

from tenure.core.blocks.lifecycles import block_diagram, lease_diagram
from tenure.core.rows.lifecycles import read_diagram, row_diagram, step_diagram, write_diagram
from tenure.spec.blocks.goals import GOALS, RUN_GOALS
from tenure.spec.blocks.rules import RULES
from tenure.spec.joined.rules import RULES as JOIN_RULES
from tenure.spec.joined.rules import STATE_CHECKS as JOIN_STATE_CHECKS
from tenure.spec.joined.rules import TRANSITION_CHECKS as JOIN_TRANSITION_CHECKS
from tenure.spec.rows.goals import GOALS as ROW_GOALS
from tenure.spec.rows.goals import RUN_GOALS as ROW_RUN_GOALS
from tenure.spec.rows.rules import OTHER_CHECKS, PLACES, STATE_CHECKS, TRANSITION_CHECKS
from tenure.spec.rows.rules import RULES as ROW_RULES
from tenure.spec.rows.rules_ledger import LEDGER_RULES
from tenure.spec.rule import Rule

ROOT = Path(__file__).resolve().parents[1]


def mentions(folder: str, rule: str) -> list[str]:
    """Files below a folder that name a rule, in code, comment or test name."""
    pattern = re.compile(rf"\b{rule}\b|_{rule.lower()}_", re.ASCII)
    files = [file for file in sorted((ROOT / folder).rglob("*.py")) if "house" not in file.parts]
    return [file.relative_to(ROOT).as_posix() for file in files if pattern.search(file.read_text())]


def invariants_page() -> str:
    """The page of all rules and goals of the block machine."""
    lines = [
        "# Rules of the block machine",
        "",
        "Generated from `spec/blocks` by `docs/generate.py`; do not edit. Ids are never used again for another rule. A",
        "*predicate* holds in every state; a *transition rule* holds of what one event did. Both are checked after",
        "every event of the stateful tests, of the tests' own histories, and of `tenure replay --check`.",
        "",
    ]
    for rule in RULES:
        lines += rule_section(rule)
    goals = [(goal.name, goal.sentence) for goal in GOALS]
    lines += goals_section(goals + [(goal.name, goal.sentence) for goal in RUN_GOALS])
    return "\n".join(lines) + "\n"


def row_invariants_page() -> str:
    """The page of all rules and goals of the row machine, and of where each rule is checked."""
    lines = [
        "# Rules of the row machine and of the join",
        "",
        "Generated from `spec/rows` and `spec/joined` by `docs/generate.py`; do not edit. Ids are never used again for",
        "another rule. A *predicate* holds in every state; a *transition rule* holds of what one event did, or of the",
        "run so far. Both are checked after every event of the stateful tests and of the tests' histories; what takes",
        "rows, threads, devices or time is checked where the table says.",
        "",
        "## Where each rule is checked",
        "",
        *(f"* {kind}: {place}" for kind, place in PLACES.items()),
        "",
        "| rule | predicate | transition rule | interpreter | executor | facade |",
        "|---|---|---|---|---|---|",
    ]
    for rule in ROW_RULES:
        states = [check.__name__ for name, check in STATE_CHECKS if name == rule.id]
        events = [check.__name__ for name, check in (*TRANSITION_CHECKS, *OTHER_CHECKS) if name == rule.id]
        events += ["Ledger"] if rule.id in LEDGER_RULES else []
        cells = [", ".join(f"`{name}`" for name in names) for names in (states, events)]
        cells += ["yes" if kind in rule.kinds else "" for kind in ("interpreter", "executor", "facade")]
        lines.append(f"| {rule.id} | {' | '.join(cells)} |")
    for rule in JOIN_RULES:
        states = [check.__name__ for name, check in JOIN_STATE_CHECKS if name == rule.id]
        events = [check.__name__ for name, check in JOIN_TRANSITION_CHECKS if name == rule.id]
        cells = [", ".join(f"`{name}`" for name in names) for names in (states, events)]
        lines.append(f"| {rule.id} | {' | '.join(cells)} | yes | | |")
    lines.append("")
    for rule in (*ROW_RULES, *JOIN_RULES):
        lines += rule_section(rule)
    goals = [(goal.name, goal.sentence) for goal in ROW_GOALS]
    lines += goals_section(goals + [(goal.name, goal.sentence) for goal in ROW_RUN_GOALS])
    return "\n".join(lines) + "\n"


def rule_section(rule: Rule) -> list[str]:
    """What a page says of one rule."""
    upheld = ", ".join(f"`{file}`" for file in mentions("core", rule.id))
    tested = ", ".join(f"`{file}`" for file in mentions("tests", rule.id))
    return [
        f"## {rule.id}",
        "",
        f"**{rule.sentence}** {rule.reason}",
        "",
        "| kind | source | upheld in | tests |",
        "|---|---|---|---|",
        f"| {', '.join(rule.kinds)} | {rule.source} | {upheld} | {tested} |",
        "",
    ]


def goals_section(goals: list[tuple[str, str]]) -> list[str]:
    """What a page says of the goals."""
    return [
        "## Goals",
        "",
        "What must be reachable, so that no rule holds by never being put to the test.",
        "",
        "| goal | reached when |",
        "|---|---|",
        *(f"| {name} | {sentence} |" for name, sentence in goals),
    ]


def with_diagrams(page: str) -> str:
    """A page with the text between each pair of diagram markers drawn anew."""
    diagrams = {
        "block": block_diagram(),
        "lease": lease_diagram(),
        "row": row_diagram(),
        "write": write_diagram(),
        "read": read_diagram(),
        "step": step_diagram(),
    }
    for name, diagram in diagrams.items():
        begin, end = f"<!-- begin {name} diagram -->", f"<!-- end {name} diagram -->"
        drawn = f"{begin}\n```mermaid\n{diagram}\n```\n{end}"
        before, _, rest = page.partition(begin)
        page = before + drawn + rest.partition(end)[2]
    return page


def pages() -> dict[Path, str]:
    """Every generated page, as it should be."""
    architecture = ROOT / "docs" / "architecture.md"
    return {
        ROOT / "docs" / "invariants.md": invariants_page(),
        ROOT / "docs" / "invariants-rows.md": row_invariants_page(),
        architecture: with_diagrams(architecture.read_text()),
    }


if __name__ == "__main__":
    for path, text in pages().items():
        path.write_text(text)
