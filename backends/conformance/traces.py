"""Traces of the row machine as files in the wheel: those that take every edge of small scopes, and pinned ones.

A file is gzipped text, one JSON value a line: a header, and then for each scope a line of its own, every event that its
traces tell (as `tenure.core.schemas` writes it) and one line a trace. `docs/conformance.md` has it field by field.
"""

import gzip
import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, Final, NamedTuple, cast

from tenure.core.config import RowConfig, RowPolicy
from tenure.core.rows.events import RowEvent
from tenure.core.schemas import SCHEMA_VERSION, from_json, json_schema, to_json
from tenure.spec.rows.rule_texts import RULES

FORMAT: Final = 2
DATA: Final = files("tenure.backends.conformance") / "data"
EDGES: Final = "edges.ndjson.gz"
PINNED: Final = "pinned.ndjson.gz"
NAME_SETS: Final = ("immediate", "deferred", "leftovers")
"""The fields of a policy that are sets."""


class Told(NamedTuple):
    """One event of a trace, and the edge that it takes; an edge may take several events.

    Attributes:
        refused: the name of the error with which the core refuses it; empty if the core takes it.
    """

    edge: int
    event: RowEvent
    refused: str = ""


class Trace(NamedTuple):
    """What a machine is told from its beginning on, behind its policy.

    Attributes:
        name: of the fault that it was pinned for, or its number.
        why: what the fault is; empty where there is none.
    """

    name: str
    told: tuple[Told, ...]
    why: str = ""

    def met_at(self, place: int) -> int | None:
        """The edge that has been taken whole when the event at a place was told; None while it takes more."""
        edge = self.told[place].edge
        is_last = place + 1 == len(self.told) or self.told[place + 1].edge != edge
        return edge if is_last else None


class TraceScope(NamedTuple):
    """Traces of one configuration.

    Attributes:
        name: of the scope.
        num_edges: so many edges there are, numbered from 0.
        has_failures: whether commands end badly in them.
    """

    name: str
    config: RowConfig
    policy: RowPolicy
    num_edges: int
    has_failures: bool
    traces: tuple[Trace, ...]


class StaleTracesError(Exception):
    """The files were not written for the rules and the schema that are there."""


# --- Reading --------------------------------------------------------------------------------------------------------


@cache
def edge_traces() -> tuple[TraceScope, ...]:
    """Those that take every edge.

    Raises:
        StaleTracesError: they belong to other rules.
    """
    return tuple(read((DATA / EDGES).read_bytes()))


@cache
def pinned_traces() -> tuple[TraceScope, ...]:
    """Those that tell a core with a planted fault from one without; they have no edges.

    Raises:
        StaleTracesError: they belong to other rules.
    """
    return tuple(read((DATA / PINNED).read_bytes()))


def read(data: bytes) -> Iterator[TraceScope]:
    """The scopes of a file.

    Raises:
        StaleTracesError: it was written for other rules, or in another format.
    """
    lines = iter(gzip.decompress(data).decode("utf-8").splitlines())
    header = json.loads(next(lines))
    if header != _header():
        msg = f"the traces were written for {header}, and this is {_header()}; `make traces` writes them anew"
        raise StaleTracesError(msg)
    for line in lines:
        head: dict[str, Any] = json.loads(line)
        events = [cast("RowEvent", from_json(next(lines))) for _ in range(head["events"])]
        traces = [_trace(json.loads(next(lines)), events, head["errors"]) for _ in range(head["traces"])]
        yield TraceScope(
            head["scope"],
            RowConfig.model_validate_json(json.dumps(head["config"])),
            RowPolicy.model_validate_json(json.dumps(head["policy"])),
            head["edges"],
            head["has_failures"],
            tuple(traces),
        )


def _trace(found: dict[str, Any], events: Sequence[RowEvent], errors: Sequence[str]) -> Trace:
    places: Iterable[tuple[int, int, int]] = zip(found["edges"], found["events"], found["refused"], strict=True)
    told = tuple(Told(edge, events[event], errors[error]) for edge, event, error in places)
    return Trace(found["trace"], told, found["why"])


# --- Writing --------------------------------------------------------------------------------------------------------


def written(scopes: Iterable[TraceScope]) -> bytes:
    """A file; the same scopes make the same bytes."""
    lines = [json.dumps(_header())]
    for scope in scopes:
        lines += _scope_lines(scope)
    return gzip.compress("".join(f"{line}\n" for line in lines).encode(), mtime=0)


def _scope_lines(scope: TraceScope) -> list[str]:
    numbers: dict[str, int] = {}
    text_of: dict[int, str] = {}

    def number(event: RowEvent) -> int:
        # One object is told many times; all of them are held by the scope meanwhile.
        text = text_of.get(id(event)) or text_of.setdefault(id(event), to_json(event))
        return numbers.setdefault(text, len(numbers))

    # What is taken comes first, with no error.
    errors = sorted({"", *(told.refused for trace in scope.traces for told in trace.told)})
    traces = [
        {
            "trace": trace.name,
            "why": trace.why,
            "edges": [told.edge for told in trace.told],
            "events": [number(told.event) for told in trace.told],
            "refused": [errors.index(told.refused) for told in trace.told],
        }
        for trace in scope.traces
    ]
    head = {
        "scope": scope.name,
        "config": scope.config.model_dump(mode="json"),
        "policy": policy_as_json(scope.policy),
        "edges": scope.num_edges,
        "has_failures": scope.has_failures,
        "errors": errors,
        "events": len(numbers),
        "traces": len(traces),
    }
    return [json.dumps(head), *numbers, *(json.dumps(each, separators=(",", ":")) for each in traces)]


def policy_as_json(policy: RowPolicy) -> dict[str, Any]:
    """A policy as plain values, sets in one order."""
    found: dict[str, Any] = policy.model_dump(mode="json")
    return {name: sorted(value) if name in NAME_SETS else value for name, value in found.items()}


def save(scopes: Iterable[TraceScope], target: Path) -> int:
    """Write a file; its bytes."""
    return target.write_bytes(written(scopes))


@cache
def _header() -> dict[str, Any]:
    """Which rules and which schema a file belongs to."""
    texts = [{"id": rule.id, "sentence": rule.sentence} for rule in RULES]
    text = json.dumps([json_schema(), *texts], sort_keys=True)
    rules = hashlib.sha256(text.encode()).hexdigest()[:16]
    return {"traces": FORMAT, "schema": SCHEMA_VERSION, "rules": rules}
