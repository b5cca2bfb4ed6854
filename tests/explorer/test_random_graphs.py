"""Random graphs, against definitions that are slow and plain."""

from collections.abc import Iterable
from itertools import combinations

import networkx as nx
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tenure.model_checks.explorer import check_progress, crew, explore, hands, search
from tests.explorer.machines import Drawn
from tests.explorer.test_progress import is_fair

Edges = list[list[tuple[int, str | None]]]


def graphs(states: int) -> st.SearchStrategy[Edges]:
    """Every state with a few edges, each of one of two actors who are bound to act, or of somebody who is not."""
    edge = st.tuples(st.integers(0, states - 1), st.sampled_from(["a", "b", None]))
    return st.lists(st.lists(edge, max_size=4), min_size=states, max_size=states)


def reachable(edges: Edges) -> dict[int, int]:
    """How many events lead to every state that can be reached."""
    graph: nx.MultiDiGraph[int] = nx.MultiDiGraph()
    graph.add_nodes_from(range(len(edges)))
    graph.add_edges_from((state, target) for state, leaving in enumerate(edges) for target, _ in leaving)
    return dict(nx.single_source_shortest_path_length(graph, 0))


def subsets(states: Iterable[int]) -> Iterable[set[int]]:
    """All but the empty one."""
    found = sorted(states)
    return (set(some) for count in range(1, len(found) + 1) for some in combinations(found, count))


def may_owe_for_ever(edges: Edges, owing: list[bool]) -> bool:
    """By the definition: some states that owe, of which each leads to each inside, are fair to stay in."""
    for inside in subsets(state for state in reachable(edges) if owing[state]):
        graph: nx.DiGraph[int] = nx.DiGraph()
        graph.add_nodes_from(inside)
        inner = [(s, target, actor) for s in inside for target, actor in edges[s] if target in inside]
        graph.add_edges_from((source, target) for source, target, _ in inner)
        acting = {actor for _, _, actor in inner}
        idle = {actor for actor in "ab" for s in inside if actor not in {label for _, label in edges[s]}}
        if nx.is_strongly_connected(graph) and {"a", "b"} <= acting | idle:
            return True
    return False


@given(graphs(5), st.lists(st.booleans(), min_size=5, max_size=5))
@example([[(1, "a")], [(0, "a"), (2, "b")], [(0, None)], [], []], [True, True, False, False, False])
def test_progress_is_what_the_definition_says(edges: Edges, owing: list[bool]) -> None:
    """Components are a short cut; over all sets of states the answer must be the same, and the loop a fair one."""
    model = Drawn(edges, owing)
    found = check_progress(model, explore(model, keep_graph=True))

    assert may_owe_for_ever(edges, owing) == bool(found.broken)
    for one in found.broken:
        assert is_fair(model, one)


@given(graphs(40), st.frozensets(st.integers(0, 39), max_size=3))
def test_levels_and_counterexamples_are_those_of_shortest_paths(edges: Edges, wrong: frozenset[int]) -> None:
    """Whatever the graph: every state at its distance, and the nearest wrong one in the counterexample."""
    far = reachable(edges)
    found = explore(Drawn(edges, wrong=wrong))
    nearest = min((far[state] for state in wrong if state in far), default=None)

    assert nearest == (found.broken[0].depth if found.broken else None)
    if nearest is None:
        assert [list(far.values()).count(depth) for depth in range(max(far.values()) + 1)] == list(found.per_depth)
        assert sum(len(edges[state]) for state in far) == found.transitions


@settings(max_examples=15)
@given(graphs(60), st.frozensets(st.integers(30, 59), max_size=1))
def test_any_number_of_processes_says_the_same_of_any_graph(edges: Edges, wrong: frozenset[int]) -> None:
    """With chunks of three states, and states that travel as soon as parts differ at all."""
    with pytest.MonkeyPatch.context() as patch:
        for module in (crew, hands, search):
            patch.setattr(module, "CHUNK", 3)
        patch.setattr(crew, "AHEAD", 2)
        patch.setattr(crew, "WORTH_MOVING", 0)
        model = Drawn(edges, wrong=wrong)
        one, three = (explore(model, workers=workers, keep_graph=True) for workers in (1, 3))

    assert one.counts() == three.counts()
    assert one.graph == three.graph
