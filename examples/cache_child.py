"""A cache as a child process: what the conformance kit tells it, line by line, and what it replies.

    tenure conform-cache --exec "python examples/cache_child.py"

This one has the row machine itself inside. Another, in whatever language, replaces `Cache`.
"""

import json
import sys
from typing import Any

from tenure.core.config import RowConfig, RowPolicy
from tenure.core.errors import TenureError
from tenure.core.rows.events import PolicyRegistered
from tenure.core.rows.machine import transition
from tenure.core.rows.state import RowState
from tenure.core.schemas import SCHEMA_VERSION, from_json, to_json


class Cache:
    """What is tested."""

    def __init__(self, config: RowConfig, policy: RowPolicy) -> None:
        self.state = RowState.initial(config)
        self.tell(PolicyRegistered(policy))

    def tell(self, event: Any) -> tuple[Any, tuple[Any, ...]]:
        self.state, answer, commands = transition(self.state, event)
        return answer, commands


def line(kind: str, **value: Any) -> str:
    return json.dumps({"version": SCHEMA_VERSION, "kind": kind, "value": value})


def begun(value: Any) -> Cache:
    config, policy = json.dumps(value["config"]), json.dumps(value["policy"])
    return Cache(RowConfig.model_validate_json(config), RowPolicy.model_validate_json(policy))


def reply(cache: Cache, text: str) -> list[str]:
    try:
        answer, commands = cache.tell(from_json(text))
    except TenureError as error:
        return [line("refused", error=type(error).__name__)]
    return [to_json(answer), *map(to_json, commands)]


def main() -> None:
    cache: Any = None
    for text in sys.stdin:
        said = json.loads(text)
        lines: list[str] = []
        if said["kind"] == "begin":
            cache = begun(said["value"])
        else:
            lines = reply(cache, text)
        print(*lines, line("end"), sep="\n", flush=True)


if __name__ == "__main__":
    main()
