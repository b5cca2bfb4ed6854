"""The report of a run: a folder with `report.json`, which has everything, and `report.html`, which shows it."""

import json
import platform
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

from tenure.model_checks.explorer.checkpoints import code_digest
from tenure.model_checks.model import Scope
from tenure.model_checks.reports.errors import needed
from tenure.model_checks.reports.page import PAGE
from tenure.model_checks.reports.plots import frontier_plot, spark
from tenure.model_checks.reports.state_graphs import DRAWN_MAX, EXPORTED_MAX, drawing, graph_of, write_graphml
from tenure.model_checks.reports.summary import NOT_PROVED, Run
from tenure.model_checks.scopes import RULES, SETS
from tenure.spec.rule import Rule

SCHEMA_VERSION: Final = 1
REPORT: Final = "report.json"
PAGE_NAME: Final = "report.html"
MUTANTS: Final = "mutants.json"
GRAPHS: Final = "graphs"
MARK_KINDS: Final = ("goal", "event", "command", "error")


def report_of(run: Run, counterexamples: Mapping[str, Iterable[str]] | None = None) -> dict[str, Any]:
    """Everything of a run, as plain values.

    Args:
        run: the run.
        counterexamples: by scope the files of its counterexamples.
    """
    files: Mapping[str, Iterable[str]] = {} if counterexamples is None else counterexamples
    together = run.together
    scopes = [{**result.to_json(), "files": list(files.get(result.name, ()))} for result in run.results]
    return {
        "schema_version": SCHEMA_VERSION,
        "package": version("tenure"),
        "code": code_digest(),
        "python": platform.python_version(),
        "written": _now(),
        "verdict": together.verdict.value,
        "exit_code": together.verdict.exit_code,
        "interrupted": run.interrupted,
        "all_of_ci": run.claims is not None,
        "missing": list(together.missing),
        "falls_short": run.falls_short(),
        "remarks": run.remarks(),
        "assumed": run.assumed(),
        "not_proved": list(NOT_PROVED),
        "totals": {
            "scopes": len(run.results),
            "distinct": together.distinct,
            "transitions": sum(each.transitions for each in run.totals()),
            "seconds": run.seconds,
            "workers": run.workers,
        },
        "models": [each.to_json() for each in run.totals()],
        "scopes": scopes,
        "rules": [_rule(rule, scopes) for rule in RULES],
        "marks": {kind: _marks(kind, scopes) for kind in MARK_KINDS},
    }


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")


def _rule(rule: Rule, scopes: list[dict[str, Any]]) -> dict[str, Any]:
    """A rule with its words, and where it was exercised."""
    return {
        "id": rule.id,
        "sentence": rule.sentence,
        "reason": rule.reason,
        "source": rule.source,
        "kinds": list(rule.kinds),
        "exercised": _seen(f"rule {rule.id}", scopes),
        "broken_in": [
            scope["name"] for scope in scopes if any(each["rule"] == rule.id for each in scope["counterexamples"])
        ],
    }


def _seen(mark: str, scopes: list[dict[str, Any]]) -> dict[str, int]:
    """How often a mark was seen, by scope."""
    return {name: count for name, each, count, _ in _all_marks(scopes) if each == mark}


def _all_marks(scopes: list[dict[str, Any]]) -> Iterator[tuple[str, str, int, int]]:
    """Every mark that was seen: scope, mark, how often, after how many events first."""
    for scope in scopes:
        if scope["search"] is not None:
            for seen in scope["search"]["marks"]:
                yield scope["name"], seen["mark"], seen["count"], seen["depth"]


def _marks(kind: str, scopes: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """All marks of a kind: what, how often, in how many scopes, after how few events."""
    found: dict[str, list[tuple[int, int]]] = {}
    for _, mark, count, depth in _all_marks(scopes):
        word, _, name = mark.partition(" ")
        if word == kind:
            found.setdefault(name, []).append((count, depth))
    return [
        {
            "name": name,
            "count": sum(count for count, _ in seen),
            "scopes": len(seen),
            "depth": min(depth for _, depth in seen),
        }
        for name, seen in sorted(found.items())
    ]


# --- The folder -----------------------------------------------------------------------------------------------


def require_libraries(*, graphs: bool) -> None:
    """Nothing, if a report can be written: asked before a search, not after it.

    Raises:
        MissingExtraError: a library of the extra `check` is not installed.
    """
    for library in ("jinja2", "matplotlib", *(["networkx"] if graphs else [])):
        needed(library, "a report" if library != "networkx" else "a state graph")


def write_report(
    folder: Path, run: Run, counterexamples: Mapping[str, Iterable[str]] | None = None, *, graphs: bool = False
) -> None:
    """Write the folder; what `tenure mutants` wrote there before is shown as well.

    Args:
        folder: where.
        run: the run.
        counterexamples: by scope the files of its counterexamples.
        graphs: also the state graphs of small scopes.

    Raises:
        MissingExtraError: a library of the extra `check` is not installed.
    """
    folder.mkdir(parents=True, exist_ok=True)
    report = report_of(run, counterexamples)
    _write_json(folder / REPORT, report)
    drawings = _write_graphs(folder / GRAPHS, run) if graphs else {}
    _write_page(folder, report, drawings)


def write_mutants(folder: Path, hunts: list[dict[str, Any]], seconds: float) -> None:
    """Write what became of planted faults, and show it on the page of the report, if there is one.

    Raises:
        MissingExtraError: a library of the extra `check` is not installed.
    """
    folder.mkdir(parents=True, exist_ok=True)
    said = {
        "schema_version": SCHEMA_VERSION,
        "package": version("tenure"),
        "code": code_digest(),
        "written": _now(),
        "killed": sum(hunt["fate"] == "KILLED" for hunt in hunts),
        "seconds": seconds,
        "mutants": hunts,
    }
    _write_json(folder / MUTANTS, said)
    if (folder / REPORT).is_file():
        _write_page(folder, json.loads((folder / REPORT).read_text(encoding="utf-8")), {})


def _write_json(file: Path, said: Mapping[str, Any]) -> None:
    file.write_text(json.dumps(said, indent=1) + "\n", encoding="utf-8")


def _write_graphs(folder: Path, run: Run) -> dict[str, str]:
    """GraphML of every small scope that was searched to its end; drawings of the smallest."""
    folder.mkdir(parents=True, exist_ok=True)
    drawings: dict[str, str] = {}
    by_name: dict[str, Scope] = {scope.name: scope for scope in run.scopes}
    for result in run.results:
        search = result.search
        if search is None or not search.finished or search.distinct >= EXPORTED_MAX:
            continue
        graph = graph_of(by_name[result.name])
        if graph is None:
            continue
        write_graphml(graph, folder / f"{result.name.replace('/', '--')}.graphml")
        if search.distinct < DRAWN_MAX:
            drawings[result.name] = drawing(graph)
            (folder / f"{result.name.replace('/', '--')}.svg").write_text(drawings[result.name], encoding="utf-8")
    return drawings


def _write_page(folder: Path, report: dict[str, Any], drawings: Mapping[str, str]) -> None:
    mutants: Any = None
    if (folder / MUTANTS).is_file():
        mutants = json.loads((folder / MUTANTS).read_text(encoding="utf-8"))
    if not drawings and (folder / GRAPHS).is_dir():
        drawings = {
            file.stem.replace("--", "/"): file.read_text(encoding="utf-8")
            for file in sorted((folder / GRAPHS).glob("*.svg"))
        }
    (folder / PAGE_NAME).write_text(page_of(report, mutants, drawings), encoding="utf-8")


def page_of(report: Mapping[str, Any], mutants: Mapping[str, Any] | None, drawings: Mapping[str, str]) -> str:
    """The page; it needs nothing beside it.

    Raises:
        MissingExtraError: jinja2 or matplotlib is not installed.
    """
    jinja2 = needed("jinja2", "a report")
    made = jinja2.Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=jinja2.StrictUndefined)
    made.filters["number"] = "{:,.0f}".format
    made.filters["safe_svg"] = jinja2.utils.markupsafe.Markup
    plots: dict[str, str] = {}
    for model in report["models"]:
        curves = {
            scope["name"]: scope["search"]["per_depth"]
            for scope in report["scopes"]
            if scope["name"].split("/")[0] == model["name"] and scope["search"] is not None
        }
        if curves:
            plots[model["name"]] = frontier_plot(curves)
    text: str = made.from_string(PAGE).render(
        report=report,
        mutants=mutants,
        drawings=drawings,
        plots=plots,
        sparks={scope["name"]: _spark(scope["search"]) for scope in report["scopes"] if scope["search"]},
        sets=SETS,
        elsewhere=[rule for rule in report["rules"] if not rule["exercised"]],
    )
    return text


def _spark(search: Mapping[str, Any]) -> str:
    """The frontier's growth; one that ended by itself comes down to nothing."""
    return spark([*search["per_depth"], *([0] if search["finished"] else [])])
