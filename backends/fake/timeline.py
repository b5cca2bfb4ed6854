"""A run of an emulated device as a timeline for chrome://tracing and Perfetto (the Trace Event Format)."""

from collections.abc import Iterable
from typing import Any

from tenure.backends.fake.clocks import ACTORS
from tenure.backends.fake.operations import Operation


def timeline(operations: Iterable[Operation]) -> dict[str, Any]:
    """The operations that have ended, one lane a row; a unit of time is one move of the device."""
    events: list[dict[str, Any]] = [
        {"name": "thread_name", "ph": "M", "pid": 0, "tid": number, "args": {"name": name}}
        for number, name in enumerate(ACTORS)
    ]
    for each in operations:
        if each.ended_at < 0:
            continue
        events.append(
            {
                "name": f"{each.what} #{each.number}",
                "ph": "X",
                "ts": each.began_at,
                "dur": max(each.ended_at - each.began_at, 1),
                "pid": 0,
                "tid": ACTORS.index(each.actor),
                "args": {
                    "target": each.target.place(each.target_rows),
                    "source": None if each.source is None else each.source.place(each.source_rows),
                    "asked for at": each.asked_at,
                },
            }
        )
    return {"traceEvents": events, "displayTimeUnit": "ms"}
