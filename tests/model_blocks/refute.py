"""Searches one scope and says by which rule it is refuted; run in a fresh process over a faulty core."""

import sys

from tenure.model_checks.blocks.scopes import SCOPES
from tenure.model_checks.explorer.search import explore


def main(name: str) -> None:
    """Print the rules broken at the least depth, or nothing."""
    scope = next(each for each in SCOPES if each.name == name)
    search = explore(scope.make())
    sys.stdout.write(" ".join(example.rule for example in search.broken))


if __name__ == "__main__":
    main(sys.argv[1])
