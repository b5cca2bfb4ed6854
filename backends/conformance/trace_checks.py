"""Traces of the model checker on a device: every edge of small scopes, and what found faults once."""

from collections.abc import Iterable, Iterator
from typing import Final

from tenure.backends.capabilities import Capability
from tenure.backends.conformance.registry import check
from tenure.backends.conformance.replaying import Replaying
from tenure.backends.conformance.report import Coverage
from tenure.backends.conformance.rig import CheckFailedError, Rig
from tenure.backends.conformance.traces import TraceScope, edge_traces, pinned_traces

NEEDED_TO_FAIL: Final = frozenset({Capability.CONTROLLED, Capability.FAULTS})
"""Where commands end badly, the kit must say which, and when."""
TRACES_A_DEVICE: Final = 25


def open_scopes(scopes: Iterable[TraceScope], rig: Rig) -> list[TraceScope]:
    """The scopes of which a device can take every trace."""
    may_fail = rig.claimed >= NEEDED_TO_FAIL
    return [each for each in scopes if may_fail or not each.has_failures]


def replay_all(rig: Rig, scopes: Iterable[TraceScope]) -> Iterator[set[tuple[str, int]]]:
    """Go through traces, and say of each when it is over which edges of which scope it met."""
    number = 0
    at = rig
    for scope in scopes:
        for trace in scope.traces:
            if number % TRACES_A_DEVICE == 0:
                if number:
                    at.device.close(rig.timeout_s)
                at = Rig(rig.make(), rig.seed, rig.timeout_s, rig.make, is_controlled=rig.is_controlled)
            number += 1
            replaying = Replaying(at, scope, trace)
            try:
                replaying.run()
            except CheckFailedError as error:
                raise CheckFailedError(f"{scope.name}, {error}") from None
            yield {(scope.name, edge) for edge in replaying.met}
    at.device.close(rig.timeout_s)


@check(
    "T1.all-edges", "R02: whatever comes in whatever order, rows are those that the oracle gives", takes_control=True
)
def all_edges(rig: Rig) -> str:
    """Everything that a machine can be told, in every state of small scopes."""
    scopes = open_scopes(edge_traces(), rig)
    num_open = sum(scope.num_edges for scope in scopes)
    met: set[tuple[str, int]] = set()
    rig.coverage = Coverage(0, num_open)
    traces = 0
    for found in replay_all(rig, scopes):
        met |= found
        rig.coverage = Coverage(len(met), num_open)
        traces += 1
    if len(met) < num_open:
        raise CheckFailedError(f"{len(met)} of {num_open} open edges were met")
    return f"{traces} traces"


@check("T2.pinned", "R02: what tells a faulty core from a right one leaves a device no choice", takes_control=True)
def pinned(rig: Rig) -> str:
    """The shortest traces that found planted faults."""
    traces = sum(1 for _ in replay_all(rig, open_scopes(pinned_traces(), rig)))
    return f"{traces} traces"
