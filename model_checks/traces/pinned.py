"""For every planted fault of the row machine the shortest trace of its scope on which it says something else."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from subprocess import run
from tempfile import TemporaryDirectory
from typing import Final

from tenure.backends.conformance.traces import Trace, TraceScope
from tenure.core.config import RowConfig
from tenure.model_checks.mutants.mutant import Mutant, command_with
from tenure.model_checks.mutants.rows import ROW_MUTANTS
from tenure.model_checks.rows.plans import POLICY
from tenure.model_checks.traces.scopes import PINNED_ELSEWHERE, traced_scope
from tenure.model_checks.traces.trees import Branch, as_told, branches_of, save, walks_of, way_to

HUNT: Final = "tenure.model_checks.traces.hunt"
ROUNDS: Final = ((300, False), (300, True), (0, False), (3000, False))
"""So many nodes of a scope are looked at, and whether what nobody may tell is told there; 0 for walks. Further only for
faults that do not show before."""
WALKS: Final = 300


class NotToldApartError(Exception):
    """A planted fault says the same as the machine itself on all traces that were tried."""


IN_WORDS: Final = frozenset({"second-failure-takes-the-name"})
"""Faults that show in the words of an error alone; traces tell only which error it is."""
MACHINE_MUTANTS: Final = tuple(
    each for each in ROW_MUTANTS if each.module.startswith("tenure.core.rows.") and each.id not in IN_WORDS
)
"""Those of the machine itself: what a configuration refuses is no matter of traces."""


def pinned_scopes(
    mutants: Iterable[Mutant] = MACHINE_MUTANTS, missed: Callable[[Mutant], None] | None = None
) -> Iterator[TraceScope]:
    """The traces of these faults, scope by scope.

    `missed` is told of faults that no trace tells apart; without it they are an error.

    Raises:
        NotToldApartError: as said.
    """
    by_scope: dict[str, list[Mutant]] = {}
    for each in mutants:
        name = PINNED_ELSEWHERE.get(each.id, each.scope.partition("/")[2])
        by_scope.setdefault(name, []).append(each)
    for name in sorted(by_scope):
        traced = traced_scope(name)
        found: dict[str, Trace] = {}
        left = by_scope[name]
        for nodes_max, strays in ROUNDS:
            if nodes_max:
                branches = list(branches_of(traced._replace(strays=strays).model(), traced.config, nodes_max))
            else:
                branches = walks_of(traced.model(), traced.config, WALKS)
            found |= _found_in(branches, traced.config, left)
            left = [each for each in left if each.id not in found]
            if not left:
                break
        for each in left:
            if missed is None:
                raise NotToldApartError(f"{each.id} in {name}")
            missed(each)
        traces = tuple(found[each.id] for each in by_scope[name] if each.id in found)
        yield TraceScope(name, traced.config, POLICY, 0, traced.has_failures, traces)


def _found_in(branches: Sequence[Branch], config: RowConfig, mutants: Iterable[Mutant]) -> dict[str, Trace]:
    """By fault the shortest trace among these."""
    found: dict[str, Trace] = {}
    with TemporaryDirectory() as folder:
        file = Path(folder) / "tree.json"
        save(branches, config, file)
        for mutant in mutants:
            number = _differs_at(mutant, file)
            if number >= 0:
                told = as_told(config, ((0, event) for event in way_to(branches, number)))
                found[mutant.id] = Trace(mutant.id, told, mutant.what)
    return found


def _differs_at(mutant: Mutant, file: Path) -> int:
    # The command is this very interpreter and a file of this package.
    ended = run(command_with(mutant, HUNT, str(file)), capture_output=True, text=True, check=True)  # noqa: S603
    return int(ended.stdout)
