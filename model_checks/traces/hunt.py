"""Run in a process with a fault planted: the first branch of a tree on which the machine says something else.

    python model_checks/mutants/mutant.py MODULE OLD NEW tenure.model_checks.traces.hunt FILE

It prints the number of the branch, or -1.
"""

import sys
from collections.abc import Sequence
from pathlib import Path

from tenure.core.rows.state import RowState
from tenure.model_checks.traces.trees import ROOT, Branch, first_state, load, tell_all


def first_difference(branches: Sequence[Branch], first: RowState) -> int:
    """The branch, the shortest way to it first; -1 if there is none."""
    inner = {each.parent for each in branches}
    states = {ROOT: first}
    for number, branch in enumerate(branches):
        after, said = tell_all(states[branch.parent], branch.told)
        if said != branch.said:
            return number
        if number in inner:
            states[number] = after
    return -1


def main(arguments: Sequence[str]) -> None:
    """Compare, and print what came of it."""
    (file,) = arguments
    branches, config = load(Path(file))
    sys.stdout.write(f"{first_difference(branches, first_state(config))}\n")


if __name__ == "__main__":
    main(sys.argv[1:])
