"""One scope searched over a core with a planted fault; run as a script in a process of its own, by the runner.

    python model_checks/mutants/mutant.py MODULE OLD NEW tenure.model_checks.mutants.trial SCOPE SECONDS MUTANT

It prints, as JSON, the verdict, the rules that are broken and the counterexamples.
"""

import json
import sys
from collections.abc import Sequence
from typing import Any

from tenure.model_checks.explorer import Limits, Options, ScopeResult, check_scope
from tenure.model_checks.model import Scope
from tenure.model_checks.scopes import scope_named
from tenure.model_checks.stories import story_of


def try_scope(name: str, seconds: float, mutant: str) -> dict[str, Any]:
    """Search a scope over the core that is there: what came of it, as plain values."""
    scope = scope_named(name)
    result = check_scope(scope, Options(limits=Limits(seconds=seconds)))
    search = result.search
    return {
        "verdict": result.verdict.value,
        "reasons": list(result.reasons),
        "rules": sorted({example.rule for example in result.counterexamples}),
        "states": 0 if search is None else search.distinct,
        "seconds": 0.0 if search is None else search.seconds,
        "depths": {example.rule: example.depth for example in result.counterexamples},
        "stories": _stories(scope, result, mutant),
    }


def _stories(scope: Scope, result: ScopeResult, mutant: str) -> list[Any]:
    return [story_of(scope, example, mutant).model_dump(mode="json") for example in result.counterexamples]


def main(arguments: Sequence[str]) -> None:
    """Search, and print what came of it."""
    name, seconds, mutant = arguments
    json.dump(try_scope(name, float(seconds), mutant), sys.stdout)


if __name__ == "__main__":
    main(sys.argv[1:])
