"""Reports: everything in JSON, a page that needs nothing beside it, graphs of small scopes."""

import json
import re
from importlib import import_module
from pathlib import Path
from typing import Any

import networkx
import pytest

from tenure.model_checks.explorer.toys import Counting
from tenure.model_checks.reports import errors, state_graphs
from tenure.model_checks.reports.plots import frontier_plot, spark
from tenure.model_checks.scopes import RULES, scope_named
from tests.checking.conftest import Invoke

pytestmark = pytest.mark.usefixtures("toys")


def test_page_says_verdict_scopes_rules_assumptions_and_what_is_not_proved(invoke: Invoke, here: Path) -> None:
    """It is what people are shown; and it is shown without a network."""
    invoke("check", "--no-progress", "--scope", "deep", "--report", "out")
    page = (here / "out" / "report.html").read_text(encoding="utf-8")

    assert '<p class="verdict REFUTED">REFUTED</p>' in page
    assert all(name in page for name in ("toys/refuted", "toys/vain", "toys/large", "N01 is broken after 3 events"))
    assert all(rule.id in page for rule in RULES)
    assert "numbers only grow" in page
    assert "What is not proved" in page
    assert page.count("<svg") >= 5
    assert "currentColor" in page
    assert not re.search(r'(src|href)="(?!#)', re.sub(r'xlink:href="#[^"]*"', "", page))
    assert "<script" not in page


def test_page_escapes_what_others_wrote(invoke: Invoke, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was found is any text at all."""
    monkeypatch.setattr(Counting, "judge", _shouting)
    invoke("check", "--no-progress", "--scope", "refuted", "--report", "out")
    page = (here / "out" / "report.html").read_text(encoding="utf-8")

    assert "&lt;b&gt;loud" in page
    assert "<b>loud" not in page


def _shouting(self: Counting, state: int) -> Any:
    from tenure.model_checks.model import Broken, Judged

    return Judged(broken=(Broken("N01", "<b>loud"),) if state == self.wrong else ())


def test_report_counts_marks_by_kind_and_rules_by_scope(invoke: Invoke, here: Path) -> None:
    """A rule that nothing exercised is listed with nothing, not left out."""
    invoke("check", "--no-progress", "--report", "out")
    report = json.loads((here / "out" / "report.json").read_text(encoding="utf-8"))

    assert ["even"] == [goal["name"] for goal in report["marks"]["goal"]]
    assert 4 == report["marks"]["goal"][0]["count"]
    assert [rule.id for rule in RULES] == [rule["id"] for rule in report["rules"]]
    assert {} == report["rules"][0]["exercised"]
    assert report["all_of_ci"] is True


def test_faults_that_were_hunted_into_the_same_folder_are_on_the_page(invoke: Invoke, here: Path) -> None:
    """One page for one change."""
    (here / "out").mkdir()
    hunted = {"mutant": "m", "fate": "SURVIVED", "rule": "R01", "scope": "s/t", "what": "bad", "why": "it is PROVED"}
    counts = {"depth": 3, "states": 9, "seconds": 0.1, "source": "D99"}
    said = {"killed": 0, "seconds": 1.0, "written": "now", "code": "other", "mutants": [hunted | counts]}
    (here / "out" / "mutants.json").write_text(json.dumps(said), encoding="utf-8")
    invoke("check", "--no-progress", "--report", "out")
    page = (here / "out" / "report.html").read_text(encoding="utf-8")

    assert "0 of\n1</b>planted faults killed" in page
    assert "D99" in page
    assert "of other code than the rest of this page" in page


def test_graphs_of_small_scopes_are_written_and_the_smallest_drawn(invoke: Invoke, here: Path) -> None:
    """GraphML has every transition, for tools that can do more than a page."""
    invoke("check", "--no-progress", "--report", "out", "--graph", "toys/proved", "toys/large")
    graphs = here / "out" / "graphs"
    graph: Any = networkx.read_graphml(graphs / "toys--proved.graphml")
    page = (here / "out" / "report.html").read_text(encoding="utf-8")

    assert (7, 11) == (graph.number_of_nodes(), graph.number_of_edges())
    assert {"counter add 1", "counter add 2"} == {edge[2] for edge in graph.edges(data="event")}
    assert {"toys--proved.graphml", "toys--proved.svg", "toys--large.graphml"} == {
        file.name for file in graphs.iterdir()
    }
    assert "<summary>toys/proved</summary>" in page
    assert "<summary>toys/large</summary>" not in page


def test_graph_of_a_scope_that_is_not_small_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """A drawing of everything shows nothing."""
    monkeypatch.setattr(state_graphs, "EXPORTED_MAX", 50)

    assert state_graphs.graph_of(scope_named("toys/large")) is None


def test_plot_of_many_scopes_names_the_largest_only() -> None:
    """A legend of a hundred lines is none."""
    curves = {f"toys/number-{number}": [1, number + 2, 1] for number in range(12)}
    svg = frontier_plot(curves)

    assert "number-11" in svg
    assert "number-0" not in svg
    assert svg == frontier_plot(curves)


def test_spark_of_a_single_level_is_nothing() -> None:
    """There is no growth to show."""
    assert "" == spark([1])
    assert "polyline" in spark([1, 4, 2])


@pytest.mark.parametrize(
    ("library", "arguments", "code"),
    [
        ("matplotlib", ("--report", "out"), 2),
        ("jinja2", ("--report", "out"), 2),
        ("networkx", ("--report", "out", "--graph"), 2),
        ("networkx", ("--report", "out"), 0),
        ("", (), 0),
    ],
)
def test_report_without_its_libraries_says_what_to_install_before_the_search(
    invoke: Invoke, monkeypatch: pytest.MonkeyPatch, library: str, arguments: tuple[str, ...], code: int
) -> None:
    """They are an extra: most who install Tenure do not have them, and a check without a report needs none."""

    def missing(name: str) -> object:
        if name.startswith(library):
            raise ModuleNotFoundError(name)
        return import_module(name)

    monkeypatch.setattr(errors, "import_module", missing)
    result = invoke("check", "--no-progress", "toys/proved", *arguments)

    assert code == result.exit_code
    assert (code == 0) == ("PROVED       toys/proved" in result.output)
    assert (code == 2) == (f"{library}, which is not installed: pip install 'tenure[check]'" in result.output)
