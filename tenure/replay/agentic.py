"""Traces of coding agents: one JSON object a file, with the requests of sub-agents nested in the requests.

All times are on the session's clock, so a session is replayed in the order of `t`, sub-agents among the rest. A
partial last block of a prompt may lack its hash id; its tokens are then the request's alone.
"""

from codecs import BOM_UTF8
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, BinaryIO, Final, Literal, cast

import numpy as np
from pydantic import Field, ValidationError
from pydantic_core import from_json

from tenure.replay.errors import Place, TraceError
from tenure.replay.requests import (
    TRACE_BLOCK_MAX,
    HashId,
    OutputTokens,
    PromptTokens,
    Seconds,
    StrictModel,
    TraceRequest,
    describe,
    shown,
)

FILE_BYTES_MAX: Final = 2**28
GLOBAL_NAMESPACE: Final = "global"


class AgenticFile(StrictModel):
    """What the file says of all its requests."""

    block_size: Annotated[int, Field(ge=1, le=TRACE_BLOCK_MAX)]
    hash_id_scope: Literal["local", "global"] = "local"
    requests: list[Any]


class AgenticEntry(StrictModel):
    """One request, which may have those of a sub-agent nested in it. `t` is its time in seconds."""

    requests: list[Any] = Field(default_factory=list[Any])
    t: Seconds
    input_tokens: PromptTokens = Field(alias="in")
    output_tokens: OutputTokens = Field(alias="out")
    hash_ids: list[HashId]


def read_agentic(file: BinaryIO, path: Path, namespace: str) -> Iterator[TraceRequest | TraceError]:
    """What is wrong with the file's entries, then its requests in the order of their times.

    The file is read as a whole, for its times are not in the order of the entries.
    """
    data = file.read(FILE_BYTES_MAX + 1).removeprefix(BOM_UTF8)
    if len(data) > FILE_BYTES_MAX:
        yield TraceError(Place(path), f"the file is larger than {FILE_BYTES_MAX} bytes", "split it")
        return
    try:
        header = AgenticFile.model_validate(from_json(data, allow_inf_nan=False))
    except ValidationError as error:
        yield TraceError(Place(path), describe(error))
        return
    except ValueError as error:
        yield TraceError(Place(path), f"not valid JSON: {error}", "give the whole file as it was recorded")
        return
    if header.hash_id_scope == "global":
        namespace = GLOBAL_NAMESPACE
    if not header.requests:
        yield TraceError(Place(path), "the file holds no request", "give a trace with at least one")
    timed: list[tuple[float, Place, AgenticEntry]] = []
    for place, item in _walk(path, header.requests):
        entry = _read_entry(place, item, header.block_size)
        if isinstance(entry, TraceError):
            yield entry
        else:
            timed.append((entry.t, place, entry))
    # The sort is stable: of requests with one time, the entry that stands first comes first.
    timed.sort(key=lambda item: item[0])
    for number, (_, place, entry) in enumerate(timed):
        yield TraceRequest(
            place=place,
            namespace=namespace,
            entry=number,
            block_size=header.block_size,
            input_tokens=entry.input_tokens,
            output_tokens=entry.output_tokens,
            hash_ids=np.array(entry.hash_ids, dtype=np.uint64),
            progress=(number + 1) / len(timed),
        )


def _walk(path: Path, requests: list[Any]) -> Iterator[tuple[Place, object]]:
    """Every entry that is no mere shell around a sub-agent's requests, in the order of the file, at any depth."""
    stack: list[tuple[str, object]] = [(f"requests[{i}]", item) for i, item in reversed(list(enumerate(requests)))]
    while stack:
        name, item = stack.pop()
        nested: object = None
        if isinstance(item, Mapping):
            fields = cast("Mapping[str, object]", item)
            nested = fields.get("requests")
            if isinstance(nested, list):
                entries = list(enumerate(cast("list[object]", nested)))
                stack.extend((f"{name}.requests[{i}]", entry) for i, entry in reversed(entries))
                if "in" not in fields and "hash_ids" not in fields:
                    continue
        yield Place(path, entry=name), item


def _read_entry(place: Place, item: object, block_size: int) -> AgenticEntry | TraceError:
    if not isinstance(item, Mapping):
        return TraceError(place, f"should be an object, found {shown(item)}")
    try:
        entry = AgenticEntry.model_validate(item)
    except ValidationError as error:
        return TraceError(place, describe(error))
    full, partial = divmod(entry.input_tokens, block_size)
    if full <= len(entry.hash_ids) <= full + (partial > 0):
        return entry
    problem = (
        f"hash_ids has {len(entry.hash_ids)} ids, but {entry.input_tokens} tokens are {full} blocks of {block_size}"
        + (f" and {partial} tokens" if partial else "")
    )
    return TraceError(place, problem)
