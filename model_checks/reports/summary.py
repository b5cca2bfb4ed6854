"""What a run comes to: totals by model, what is assumed, what falls short, and what no run of this kind proves."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from tenure.model_checks.explorer import ScopeResult, SetResult, Verdict, check_set
from tenure.model_checks.model import Marks, Scope

NAMES_MAX: Final = 6
"""So many scopes are named in one line."""

NOT_PROVED: Final = (
    "Anything beyond the bounds of a scope: more blocks, requests, names, pages, steps or failures than it covers.",
    "That an engine keeps to what a scope assumes of it; what the machines say to one that does not is what the "
    "lawless and protocol-breaking scopes look at.",
    "Devices, threads and tensors: the device here moves symbolic rows, one at a time or a command at a time. Rules "
    "that take a real executor or a facade called from threads are put to their own tests.",
    "Progress where no scope looks at it; and where one does, only if whoever is bound to act does so some time.",
    "Time: that something comes true says nothing of when.",
    "That the rules themselves say what is wanted. Planted faults show that they bite.",
)
"""In words, for every report."""


@dataclass(frozen=True, slots=True)
class ModelTotals:
    """All searches of one model together.

    Units: `cpu_seconds` is processor time of all processes.
    """

    name: str
    scopes: int
    proved: int
    distinct: int
    transitions: int
    depth: int
    cpu_seconds: float

    @property
    def states_per_core_second(self) -> float:
        """Distinct states per second of processor time."""
        return self.distinct / self.cpu_seconds if self.cpu_seconds > 0 else 0.0

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "name": self.name,
            "scopes": self.scopes,
            "proved": self.proved,
            "distinct": self.distinct,
            "transitions": self.transitions,
            "depth": self.depth,
            "cpu_seconds": self.cpu_seconds,
            "states_per_core_second": self.states_per_core_second,
        }


@dataclass(frozen=True, slots=True)
class Run:
    """A run that is over.

    Attributes:
        scopes: what was asked for.
        results: the verdict on each, in the same order.
        claims: what all of them together had to see; None if they were but a part.
        seconds: on the wall.
        workers: processes.
        interrupted: whether it was broken off.
    """

    scopes: tuple[Scope, ...]
    results: tuple[ScopeResult, ...]
    claims: Marks | None
    seconds: float
    workers: int
    interrupted: bool = False

    @property
    def together(self) -> SetResult:
        """The verdict on all; where a search ended early, nothing can be said of what it would have seen."""
        return check_set(self.results, self.claims if self.claims is not None and self._has_ended else frozenset())

    @property
    def _has_ended(self) -> bool:
        return not any(result.verdict is Verdict.UNDETERMINED for result in self.results)

    @property
    def verdict(self) -> Verdict:
        """The verdict on all."""
        return self.together.verdict

    def totals(self) -> list[ModelTotals]:
        """By model."""
        names = dict.fromkeys(scope.model for scope in self.scopes)
        return [totals_of(name, [each for each in self.results if each.name.split("/")[0] == name]) for name in names]

    def falls_short(self) -> list[str]:
        """Whatever keeps it from being PROVED; what several scopes have in common is said once."""
        by_reason: dict[str, list[str]] = {}
        for result in self.results:
            for reason in result.reasons:
                by_reason.setdefault(f"{result.verdict.value}: {reason}", []).append(result.name)
        said = [f"{_some(names)}: {reason}" for reason, names in by_reason.items()]
        if self.together.missing:
            said.append(f"seen in no scope, though claimed: {', '.join(self.together.missing)}")
        return said

    def remarks(self) -> list[str]:
        """What is well, and should be known nevertheless."""
        said = [f"{result.name}: {note}" for result in self.results for note in result.notes]
        if self.claims is None:
            said.append("this is not all of the set `ci`: whether everything is exercised together was not asked")
        elif not self._has_ended:
            said.append("searches ended early, so that whether everything is exercised together was not asked")
        return said

    def assumed(self) -> dict[str, int]:
        """What is taken for granted, and by how many scopes."""
        found: dict[str, int] = {}
        for result in self.results:
            if result.assumes:
                found[result.assumes] = found.get(result.assumes, 0) + 1
        return found


def totals_of(name: str, results: Sequence[ScopeResult]) -> ModelTotals:
    """The totals of one model."""
    searches = [result.search for result in results if result.search is not None]
    return ModelTotals(
        name,
        len(results),
        sum(result.verdict is Verdict.PROVED for result in results),
        sum(search.distinct for search in searches),
        sum(search.transitions for search in searches),
        max((search.depth for search in searches), default=0),
        sum(search.cpu_seconds for search in searches),
    )


def scope_line(result: ScopeResult) -> str:
    """A scope and its verdict, in one line."""
    search = result.search
    if search is None:
        return f"{result.verdict.value:<12} {result.name}"
    return (
        f"{result.verdict.value:<12} {result.name}: {search.distinct:,} distinct, {search.transitions:,} transitions, "
        f"depth {search.depth}, {search.seconds:.1f} s, {search.states_per_core_second:,.0f} states/s and core"
    )


def summary_lines(run: Run) -> list[str]:
    """The end of a run."""
    lines = [
        "",
        *(
            f"{each.name:<8} {each.proved} of {each.scopes} scopes PROVED, {each.distinct:,} distinct, "
            f"{each.transitions:,} transitions, depth {each.depth}, "
            f"{each.states_per_core_second:,.0f} states/s and core"
            for each in run.totals()
        ),
    ]
    distinct = sum(each.distinct for each in run.totals())
    lines += [
        f"in all   {len(run.results)} scopes, {distinct:,} distinct states, {run.seconds:.1f} s, "
        f"{run.workers} processes",
        *_listed("assumed", (f"{what} ({count} scopes)" for what, count in run.assumed().items())),
        *_listed("to know", run.remarks()),
        *_listed("falls short", run.falls_short()),
    ]
    if run.interrupted:
        lines.append("interrupted: this is what was known by then")
    lines.append(f"{run.verdict.value}")
    return lines


def _listed(title: str, items: Iterable[str]) -> list[str]:
    return [f"{title}: {item}" for item in items]


def _some(names: Sequence[str]) -> str:
    """Names, not too many."""
    more = len(names) - NAMES_MAX
    return ", ".join(names[:NAMES_MAX]) + (f" and {more} more" if more > 0 else "")
