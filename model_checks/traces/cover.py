"""Few traces from the first node that take every edge of a graph: greedily, the nearest edge that none took yet."""

from collections import deque
from collections.abc import Iterator, Sequence
from typing import Final

from tenure.model_checks.traces.graph import Numbered

LENGTH_MAX: Final = 100
"""Edges of a trace from where it only goes on over edges that nobody took."""

Step = tuple[int, int]
"""A node, and the place of one of its edges."""


def cover(edges: Sequence[Sequence[Numbered]], length_max: int = LENGTH_MAX) -> list[list[Step]]:
    """Traces from node 0 that take every edge; of each node the edges that lead back to it come first.

    The same graph gives the same traces.
    """
    left = [deque(_loops_first(node, each)) for node, each in enumerate(edges)]
    counts = sum(map(len, edges))
    traces: list[list[Step]] = []
    while counts:
        trace: list[Step] = []
        node = 0
        while True:
            way = _way(edges, left, node) if left[node] or len(trace) < length_max else None
            if way is None:
                break
            for step in way:
                trace.append(step)
                node = edges[step[0]][step[1]][1]
            while left[node]:
                place = left[node].popleft()
                counts -= 1
                trace.append((node, place))
                node = edges[node][place][1]
        assert trace, "an edge that node 0 does not lead to"
        traces.append(trace)
    return traces


def _loops_first(node: int, edges: Sequence[Numbered]) -> list[int]:
    return sorted(range(len(edges)), key=lambda place: edges[place][1] != node)


def _way(edges: Sequence[Sequence[Numbered]], left: Sequence[deque[int]], node: int) -> list[Step] | None:
    """The shortest way to a node of which an edge is left; None if there is none."""
    came: dict[int, Step] = {}
    waiting, seen = deque([node]), {node}
    while waiting:
        at = waiting.popleft()
        if left[at]:
            return list(_back(came, node, at))[::-1]
        for place, (_, target) in enumerate(edges[at]):
            if target not in seen:
                seen.add(target)
                came[target] = at, place
                waiting.append(target)
    return None


def _back(came: dict[int, Step], start: int, at: int) -> Iterator[Step]:
    while at != start:
        yield came[at]
        at = came[at][0]
