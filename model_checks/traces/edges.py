"""All edges of the smoke scopes as traces."""

from collections.abc import Iterable, Iterator

from tenure.backends.conformance.traces import Trace, TraceScope
from tenure.model_checks.rows.plans import POLICY
from tenure.model_checks.traces.cover import cover
from tenure.model_checks.traces.graph import graph_of
from tenure.model_checks.traces.scopes import SMOKE, Traced
from tenure.model_checks.traces.trees import as_told


def edge_scopes(names: Iterable[str] = SMOKE) -> Iterator[TraceScope]:
    """The traces of these scopes."""
    for name in names:
        yield edges_of(name, SMOKE[name]())


def edges_of(name: str, traced: Traced) -> TraceScope:
    """Traces that take every edge of a scope; edges are numbered node by node, as they are met."""
    graph = graph_of(traced.model())
    first: list[int] = [0]
    for each in graph.edges:
        first.append(first[-1] + len(each))
    traces: list[Trace] = []
    for number, steps in enumerate(cover(graph.edges)):
        events = [(first[node] + place, event) for node, place in steps for event in graph.edges[node][place][0]]
        traces.append(Trace(str(number), as_told(traced.config, events)))
    return TraceScope(name, traced.config, POLICY, first[-1], traced.has_failures, tuple(traces))
