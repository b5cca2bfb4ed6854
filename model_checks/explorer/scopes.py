"""From a search to a verdict: what was cut, what was never seen, what is broken.

PROVED is what is left when nothing speaks against it: the search finished, every mark that the scope expects was seen,
the model said the same whenever it was asked again, no rule is broken, and what is owed is paid.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from tenure.model_checks.explorer.errors import CheckpointError, ModelError, WorkerDiedError
from tenure.model_checks.explorer.limits import UNLIMITED, Checkpoint, Limits
from tenure.model_checks.explorer.liveness import check_progress
from tenure.model_checks.explorer.results import Counterexample, ProgressFound, ScopeResult, Search, SetResult
from tenure.model_checks.explorer.search import Progress, explore
from tenure.model_checks.explorer.verdicts import Verdict, worst
from tenure.model_checks.explorer.visited import VisitedKind
from tenure.model_checks.model import Marks, Scope

NO_MARKS: Marks = frozenset()


@dataclass(frozen=True, slots=True)
class Options:
    """How scopes are searched.

    Attributes:
        limits: the budget of each.
        visited: how states are told apart; scopes with progress always use whole keys.
        checkpoints: a folder under which every scope without progress saves its search; None: nothing is saved.
        resume: go on from what was saved.
        every_s: seconds between two savings.
        deadlock_rule: the rule that says that nothing stops where it is no place to rest.
    """

    limits: Limits = UNLIMITED
    visited: VisitedKind = "exact"
    checkpoints: Path | None = None
    resume: bool = False
    every_s: float = 60.0
    deadlock_rule: str = "R11"


DEFAULT = Options()


@dataclass(slots=True)
class _Case:
    """What speaks for and against a scope."""

    verdict: Verdict = Verdict.PROVED
    reasons: list[str] = field(default_factory=list[str])
    notes: list[str] = field(default_factory=list[str])
    missing: tuple[str, ...] = ()
    counterexamples: list[Counterexample] = field(default_factory=list[Counterexample])
    search: Search | None = None
    progress: ProgressFound | None = None

    def against(self, verdict: Verdict, reason: str) -> None:
        """Something that speaks against."""
        self.verdict = worst((self.verdict, verdict))
        self.reasons.append(reason)


def check_scope(
    scope: Scope, options: Options = DEFAULT, *, workers: int = 1, progress: Progress | None = None
) -> ScopeResult:
    """The verdict on one scope.

    Progress is never taken up from a checkpoint: such scopes are searched from the beginning, and not saved.
    """
    case = _Case()
    try:
        model = scope.make()
        checkpoint = _checkpoint(scope, options)
        if scope.progress and options.checkpoints is not None:
            case.notes.append("progress needs the whole graph: searched from the beginning, nothing saved")
        search = explore(
            model,
            limits=options.limits,
            workers=workers,
            visited="exact" if scope.progress else options.visited,
            keep_graph=scope.progress,
            checkpoint=checkpoint,
            resume=options.resume and checkpoint is not None,
            progress=progress,
            name=scope.name,
            deadlock_rule=options.deadlock_rule,
        )
        _weigh(case, scope, search)
        if scope.progress and search.graph is not None and case.verdict is not Verdict.REFUTED:
            case.progress = check_progress(model, search)
            if not case.progress.owed:
                case.against(Verdict.BAD_MODEL, "nothing is ever owed, though the scope claims progress")
            for example in case.progress.broken:
                _refute(case, example)
    except ModelError as error:
        case.against(Verdict.BAD_MODEL, str(error))
    except (WorkerDiedError, CheckpointError) as error:
        case.against(Verdict.UNDETERMINED, str(error))
    except Exception as error:
        case.against(Verdict.BAD_MODEL, f"the scope could not be searched: {type(error).__name__}: {error}")
    return _close(scope, case)


def unsearched(scope: Scope, verdict: Verdict, reason: str) -> ScopeResult:
    """The result of a scope whose search did not come to an end."""
    case = _Case()
    case.against(verdict, reason)
    return _close(scope, case)


def check_set(results: Iterable[ScopeResult], claims: Marks = NO_MARKS) -> SetResult:
    """The verdict on several scopes together: over all of them every claim must have been seen."""
    found = list(results)
    searches = [result.search for result in found if result.search is not None]
    seen = frozenset[str]().union(*(search.mark_names() for search in searches))
    missing = tuple(sorted(claims - seen))
    verdict = worst((*(result.verdict for result in found), *((Verdict.BAD_MODEL,) if missing else ())))
    return SetResult(
        verdict,
        missing,
        sum(search.distinct for search in searches),
        sum(search.seconds for search in searches),
    )


def _checkpoint(scope: Scope, options: Options) -> Checkpoint | None:
    if options.checkpoints is None or scope.progress:
        return None
    return Checkpoint(
        options.checkpoints / scope.name.replace("/", "--"),
        {"scope": scope.name, "covers": dict(scope.covers)},
        options.every_s,
    )


def _weigh(case: _Case, scope: Scope, search: Search) -> None:
    """What the search says."""
    case.search = search
    for example in search.broken:
        _refute(case, example)
    for doubt in search.unsound:
        case.against(Verdict.BAD_MODEL, f"the model does not always say the same: {doubt}")
    if search.cut and scope.progress:
        case.notes.append("progress was not looked at: the graph is not all there")
    if search.cut:
        case.against(Verdict.UNDETERMINED, search.cut)
    if search.collision:
        case.notes.append(f"the chance that two states were taken for one is {search.collision:.1e}")
    if not search.transitions and search.finished:
        case.against(Verdict.BAD_MODEL, f"nothing can happen: {search.distinct} states and no transition")
    case.missing = tuple(sorted(scope.expects - search.mark_names()))
    # Where the search ended early, nothing can be said of what it would have seen.
    if case.missing and search.finished:
        case.against(Verdict.BAD_MODEL, f"never seen, though the scope claims it: {', '.join(case.missing)}")


def _refute(case: _Case, example: Counterexample) -> None:
    case.counterexamples.append(example)
    case.against(Verdict.REFUTED, f"{example.rule} is broken after {example.depth} events: {example.found}")


def _close(scope: Scope, case: _Case) -> ScopeResult:
    return ScopeResult(
        name=scope.name,
        kind=scope.kind,
        sets=tuple(sorted(scope.sets)),
        covers=dict(scope.covers),
        source=scope.source,
        assumes=scope.assumes,
        expects=tuple(sorted(scope.expects)),
        verdict=case.verdict,
        reasons=tuple(case.reasons),
        missing=case.missing,
        counterexamples=tuple(case.counterexamples),
        search=case.search,
        progress=case.progress,
        notes=tuple(case.notes),
    )
