"""Happens-before of a run on an emulated device as a graph, for people and for tools that draw graphs."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tenure.backends.fake import Move
from tenure.core.errors import InvariantViolation
from tenure.model_checks.reports.errors import needed


def happens_before(moves: Iterable[Move]) -> Any:
    """The graph as networkx has it: a node for each move, an edge from each that lies right before another.

    Nodes have their `actor` and `what`. Edges from moves that are not among these are left out.

    Raises:
        MissingExtraError: networkx is not installed.
        InvariantViolation: it has a cycle, so that some moves wait for themselves.
    """
    networkx = needed("networkx", "a happens-before graph")
    graph = networkx.DiGraph()
    known = tuple(moves)
    for move in known:
        graph.add_node(move.number, actor=move.actor, what=move.what)
    for move in known:
        graph.add_edges_from((before, move.number) for before in move.behind if before in graph)
    if not networkx.is_directed_acyclic_graph(graph):
        around = ", ".join(str(source) for source, _ in networkx.find_cycle(graph))
        raise InvariantViolation("R11", f"moves {around} of the device wait for each other")
    return graph


def write_happens_before(moves: Iterable[Move], file: Path) -> None:
    """The graph as GraphML.

    Raises:
        MissingExtraError: networkx is not installed.
    """
    needed("networkx", "GraphML").write_graphml(happens_before(moves), file)
