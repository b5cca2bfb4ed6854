"""What docs/conformance.md says of the checks is what the checks say of themselves."""

import re

from tenure.backends.conformance import CHECKS, Check
from tenure.backends.conformance.cache_registry import CacheCheck
from tenure.backends.conformance.caches import CACHE_CHECKS
from tests.paths import ROOT


def test_ids_levels_and_clauses_of_the_page_are_those_of_the_code() -> None:
    """Third parties read the page; reports have the code's words."""
    text = (ROOT / "docs" / "conformance.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `([A-Z]\d\.[a-z-]+)` \| ([a-z-]+) \| (.*) \|$", text, re.MULTILINE)
    checks: list[Check | CacheCheck] = [*CHECKS.values(), *CACHE_CHECKS.values()]

    assert {each.id: (each.level, each.clause) for each in checks} == {name: (*rest,) for name, *rest in rows}
    assert len(checks) == len(rows)
