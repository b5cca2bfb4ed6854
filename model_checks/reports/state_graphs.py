"""State graphs of small scopes: GraphML for tools, a drawing by depth for people."""

from pathlib import Path
from typing import Any, Final

from tenure.model_checks.explorer import Graph, Limits, explore, labelled
from tenure.model_checks.explorer.trail import NO_PARENT
from tenure.model_checks.model import Scope
from tenure.model_checks.reports.errors import needed
from tenure.model_checks.reports.plots import COLOURS, FAINT, INK, pyplot, svg_of

EXPORTED_MAX: Final = 2000
"""Graphs of fewer states are written."""
DRAWN_MAX: Final = 80
"""Graphs of fewer states are drawn."""


def graph_of(scope: Scope) -> Any:
    """The state graph as networkx has it, with an edge for each transition; None where it is not small.

    Nodes have their `depth`, and whether nothing follows (`end`); edges their `actor` and `event`.

    Raises:
        MissingExtraError: networkx is not installed.
    """
    networkx = needed("networkx", "a state graph")
    model = scope.make()
    search = explore(model, limits=Limits(states=EXPORTED_MAX), keep_graph=True)
    if search.graph is None or search.distinct >= EXPORTED_MAX:
        return None
    made = networkx.MultiDiGraph(name=scope.name)
    depths = _depths(search.graph)
    for number, depth in enumerate(depths):
        made.add_node(number, depth=depth)
    sources = set[int]()
    for source, target, event in labelled(model, search.graph):
        made.add_edge(source, target, actor=str(event[0]), event=model.describe(event))
        sources.add(source)
    for number in range(len(depths)):
        made.nodes[number]["end"] = number not in sources
    return made


def _depths(graph: Graph) -> list[int]:
    """How many events lead to each state: parents stand before their children."""
    depths: list[int] = []
    for parent in graph.parents:
        depths.append(0 if parent == NO_PARENT else depths[parent] + 1)
    return depths


def write_graphml(graph: Any, file: Path) -> None:
    """The graph as GraphML.

    Raises:
        MissingExtraError: networkx is not installed.
    """
    needed("networkx", "GraphML").write_graphml(graph, file)


def drawing(graph: Any) -> str:
    """The graph as an SVG element: depth from left to right, edges in the colour of their actor.

    Edges that lead back are dotted; what changes nothing is left out.

    Raises:
        MissingExtraError: networkx or matplotlib is not installed.
    """
    networkx, plt = needed("networkx", "a drawing"), pyplot()
    places = networkx.multipartite_layout(graph, subset_key="depth")
    layers = 1 + max(depth for _, depth in graph.nodes(data="depth"))
    with plt.rc_context({"svg.fonttype": "none", "svg.hashsalt": "tenure", "text.color": INK, "font.size": 8}):
        figure, axes = plt.subplots(figsize=(max(5.0, 0.62 * layers), 4.2))
        actors = _draw_edges(graph, places, axes)
        for is_end, shape in ((False, "o"), (True, "s")):
            found = [places[node] for node, ends in graph.nodes(data="end") if ends == is_end]
            if found:
                columns, rows = zip(*found, strict=True)
                axes.scatter(columns, rows, s=42, marker=shape, color=FAINT, linewidths=0, zorder=2)
        axes.set_axis_off()
        axes.legend(loc="upper left", bbox_to_anchor=(0.0, 1.12), ncols=max(1, actors), frameon=False)
        return svg_of(plt, figure)


def _draw_edges(graph: Any, places: Any, axes: Any) -> int:
    """One line for all transitions of an actor between two states; how many actors there are."""
    lines = needed("matplotlib.collections", "a drawing").LineCollection
    edges = {(source, target, actor) for source, target, actor in graph.edges(data="actor") if source != target}
    actors = sorted({actor for _, _, actor in edges})
    for number, actor in enumerate(actors):
        colour = COLOURS[number % len(COLOURS)]
        for style, leads_back in (("-", False), (":", True)):
            mine = [
                (places[source], places[target])
                for source, target, who in sorted(edges)
                if who == actor and (graph.nodes[target]["depth"] <= graph.nodes[source]["depth"]) == leads_back
            ]
            axes.add_collection(lines(mine, colors=colour, linewidths=1.0, linestyles=style, zorder=1))
        axes.plot([], [], color=colour, label=actor)
    axes.autoscale_view()
    return len(actors)
