"""Quick tests go through some of the generated traces; slow ones through all of them."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

import pytest

from tenure.backends.conformance import machine_checks, trace_checks
from tenure.backends.conformance.traces import TraceScope, edge_traces

QUICK: Final[Mapping[str, int]] = MappingProxyType(
    {"two-steps": 30, "step-given-up": 10, "delayed-read": 10, "one-step-failing": 100, "one-step-strays": 10}
)
"""Traces of each scope."""


def few_edge_traces() -> tuple[TraceScope, ...]:
    """Some traces, whose scopes have those edges that they take."""
    found: list[TraceScope] = []
    for each in edge_traces():
        traces = each.traces[: QUICK.get(each.name, 0)]
        edges = {told.edge for trace in traces for told in trace.told}
        found += [each._replace(traces=traces, num_edges=len(edges))] if traces else []
    return tuple(found)


@pytest.fixture(autouse=True)
def few_edges(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Or the kit would be run whole in every test that runs it."""
    if request.node.get_closest_marker("slow") is None:
        few = few_edge_traces()
        monkeypatch.setattr(trace_checks, "edge_traces", lambda: few)
        monkeypatch.setattr(machine_checks, "edge_traces", lambda: few)
