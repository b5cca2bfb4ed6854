"""The race detector's clocks and the graph of what lay before what say the same, and the graph is one that can be."""

from pathlib import Path
from typing import Any

import networkx
import pytest

from tenure.backends.fake import FAULT_KINDS, FaultKind, Move, Seeded
from tenure.backends.fake.clocks import ACTORS
from tenure.backends.fake.memory import touch
from tenure.core.errors import InvariantViolation
from tenure.simulation import Simulation
from tenure.simulation.graphs import happens_before, write_happens_before
from tenure.simulation.life import Life
from tests.fake.race_mutants import MUTANTS

Clocked = dict[str, tuple[int, Any]]


def watched_clocks(monkeypatch: pytest.MonkeyPatch) -> Clocked:
    """Of each access that is made from now on, by its name in the graph: the actor, and its clock then."""
    found: Clocked = {}
    touched = touch

    def watched(buffer: Any, rows: Any, actor: int, clock: Any, access: Any, earlier_of: Any) -> Any:
        found[f"{access.what} #{access.number}"] = (actor, clock.copy())
        return touched(buffer, rows, actor, clock, access, earlier_of)

    monkeypatch.setattr("tenure.backends.fake.lanes.touch", watched)
    monkeypatch.setattr("tenure.backends.fake.device.touch", watched)
    return found


def test_r20_graph_of_a_life_has_no_cycle_whatever_fails() -> None:
    """Nothing waits for itself."""
    for number in range(4):
        life = Life(Simulation(3, FAULT_KINDS).chooser(number), FAULT_KINDS)
        life.run()
        graph = happens_before(life.device.trail)

        assert {*ACTORS} >= {actor for _, actor in graph.nodes(data="actor")}
        assert graph.number_of_edges() > graph.number_of_nodes() / 2


@pytest.mark.parametrize("kinds", [(), ("late",)])
def test_r20_clocks_order_two_accesses_where_a_path_leads_from_one_to_the_other(
    kinds: tuple[FaultKind, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both ways, for every pair of accesses of a few lives: the detector misses no edge and makes none up."""
    ordered = unordered = 0
    for number in range(2):
        clocked = watched_clocks(monkeypatch)
        life = Life(Simulation(11, kinds).chooser(number), kinds)
        life.run()
        graph = happens_before(life.device.trail)
        named = {what: node for node, what in graph.nodes(data="what")}
        known = [what for what in clocked if what in named]
        for what in known[:: max(len(known) // 40, 1)]:
            actor, clock = clocked[what]
            later = {node for _, node in networkx.bfs_edges(graph, named[what])}
            for other in known:
                if other == what:
                    continue
                by_clock = bool(clocked[other][1][actor] >= clock[actor])
                assert by_clock == (named[other] in later), (number, what, other)
                ordered, unordered = ordered + by_clock, unordered + (not by_clock)

    assert ordered
    assert unordered


def test_r20_race_has_no_path_between_its_two_operations() -> None:
    """In the graph that is written beside the failure."""
    with MUTANTS["no-wait-for-the-freeze"].plant():
        failure = Simulation(1, ()).run(5000).failure
        assert failure is not None
        found = Simulation(1, ()).repeat(failure.choices)
        assert found is not None
    _, life = found
    finding = life.device.findings[0]
    assert finding.earlier is not None
    graph = happens_before(failure.moves)
    named = {what: node for node, what in graph.nodes(data="what")}
    ends = [named[f"{each.what} #{each.number}"] for each in (finding.earlier, finding.later)]

    assert not networkx.has_path(graph, *ends)
    assert not networkx.has_path(graph, *reversed(ends))


def test_r11_cycle_is_told_by_its_moves() -> None:
    """As a broken rule, not as a graph that looks odd."""
    moves = [Move(1, "POOL", "event", (2,)), Move(2, "COPY", "wait", (1,))]

    with pytest.raises(InvariantViolation, match=r"moves (1, 2|2, 1) of the device"):
        happens_before(iter(moves))


def test_r20_edges_lead_to_moves_that_are_told_later_and_to_no_others() -> None:
    """Whatever order the moves come in; what lay before the first of them is not among them."""
    moves = [Move(2, "COPY", "wait", (1, 0)), Move(1, "POOL", "event", ())]
    graph = happens_before(moves)

    assert [1, 2] == sorted(graph.nodes)
    assert [(1, 2)] == list(graph.edges)


def test_graph_is_written_as_graphml(tmp_path: Path) -> None:
    """What tools read back is what was there."""
    life = Life(Seeded(5), ())
    life.run()
    file = tmp_path / "graph.graphml"
    write_happens_before(life.device.trail, file)
    read = networkx.read_graphml(file, node_type=int)

    graph = happens_before(life.device.trail)
    assert dict(graph.nodes(data=True)) == dict(read.nodes(data=True))
    assert {*graph.edges} == {*read.edges}
