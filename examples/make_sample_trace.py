"""Makes the sample trace that `tenure replay --sample` replays.

    python examples/make_sample_trace.py tenure/samples/conversations.jsonl

Some people talk to two assistants at the same time. Every assistant has a system prompt of its own, every turn brings
all that was said before, and some people ask an earlier question again. Lengths are drawn from a hash, so the file is
always the same.
"""

import hashlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

BLOCK = 512
CONVERSATIONS = 22
SYSTEM_TOKENS = (1100, 560)
TURNS = (2, 6)
ASKED_TOKENS = (40, 420)
ANSWER_TOKENS = (4, 32)
START_MS = (0, 60_000)
PAUSE_MS = (2_000, 20_000)


class Request(NamedTuple):
    """One turn; `blocks` say what each block of its prompt holds."""

    timestamp: int
    input_length: int
    output_length: int
    blocks: tuple[str, ...]


def draw(bounds: tuple[int, int], *key: object) -> int:
    """A number within the bounds, both included, that depends on the key alone."""
    digest = hashlib.sha256(repr(key).encode()).digest()
    low, high = bounds
    return low + int.from_bytes(digest[:8], "big") % (high - low + 1)


def conversation(number: int) -> Iterator[Request]:
    """The turns of one conversation; now and then a turn is asked twice."""
    system = number % len(SYSTEM_TOKENS)
    length, time = SYSTEM_TOKENS[system], draw(START_MS, number, "start")
    for turn in range(draw(TURNS, number, "turns")):
        length += draw(ASKED_TOKENS, number, turn, "asked")
        answer = draw(ANSWER_TOKENS, number, turn, "answer")
        request = Request(time, length, answer, tuple(contents(number, system, turn, length)))
        yield request
        if draw((0, 5), number, turn, "again") == 0:
            yield request._replace(timestamp=time + 1_000)
        length += answer
        time += draw(PAUSE_MS, number, turn, "pause")


def contents(number: int, system: int, turn: int, length: int) -> Iterator[str]:
    """What each block of a prompt holds: equal texts are equal blocks behind equal blocks."""
    for block in range(-(-length // BLOCK)):
        if (block + 1) * BLOCK > length:
            yield f"turn {number}.{turn}"
        elif (block + 1) * BLOCK <= SYSTEM_TOKENS[system]:
            yield f"system {system}.{block}"
        else:
            yield f"conversation {number}.{block}"


def sample() -> str:
    """The whole trace, in the Mooncake format."""
    requests = [request for number in range(CONVERSATIONS) for request in conversation(number)]
    ids: dict[str, int] = {}
    lines: list[str] = []
    for request in sorted(requests):
        fields = request._asdict()
        fields["hash_ids"] = [ids.setdefault(block, len(ids)) for block in fields.pop("blocks")]
        lines.append(json.dumps(fields) + "\n")
    return "".join(lines)


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(sample(), encoding="ascii")
