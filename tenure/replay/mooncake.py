"""Traces in the Mooncake format: one JSON object a line, one hash id per trace block, the partial last one included.

Arrival order is the order of the lines; timestamps are validated and not used.
"""

from codecs import BOM_UTF8
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Final

import numpy as np
from pydantic import ValidationError

from tenure.replay.errors import Place, TraceError
from tenure.replay.requests import HashId, OutputTokens, PromptTokens, Seconds, StrictModel, TraceRequest, describe

LINE_BYTES_MAX: Final = 2**24


class MooncakeLine(StrictModel):
    """One line. `timestamp` is in milliseconds."""

    timestamp: Seconds = 0
    input_length: PromptTokens
    output_length: OutputTokens
    hash_ids: list[HashId]


def read_mooncake(
    file: BinaryIO, path: Path, namespace: str, block_size: int, size: int
) -> Iterator[TraceRequest | TraceError]:
    """Every request of the file in the order of its lines, or what is wrong with the line.

    Holds one line at a time. `size` is the file's bytes, 0 if nobody knows.
    """
    number = entry = offset = 0
    while line := file.readline(LINE_BYTES_MAX + 1):
        number += 1
        offset += len(line)
        place = Place(path, number)
        if len(line) > LINE_BYTES_MAX:
            offset += _pass_over_line(file, line)
            yield TraceError(place, f"the line is longer than {LINE_BYTES_MAX} bytes")
            continue
        if not line.strip():
            continue
        progress = min(1.0, offset / size) if size else 0.0
        yield _read_line(line, place, namespace, entry, block_size, progress)
        entry += 1
    if not entry:
        yield TraceError(Place(path), "the file holds no request", "give a trace with at least one")


def _read_line(
    line: bytes, place: Place, namespace: str, entry: int, block_size: int, progress: float
) -> TraceRequest | TraceError:
    try:
        text = line.rstrip().removeprefix(BOM_UTF8).decode()
    except UnicodeDecodeError as error:
        return TraceError(place, f"not valid UTF-8 at byte {error.start + 1} of the line")
    try:
        read = MooncakeLine.model_validate_json(text)
    except ValidationError as error:
        return TraceError(place, describe(error))
    expected = -(-read.input_length // block_size)
    if len(read.hash_ids) != expected:
        problem = (
            f"hash_ids has {len(read.hash_ids)} ids, but {read.input_length} tokens are {expected} blocks "
            f"of {block_size}"
        )
        return TraceError(place, problem)
    return TraceRequest(
        place=place,
        namespace=namespace,
        entry=entry,
        block_size=block_size,
        input_tokens=read.input_length,
        output_tokens=read.output_length,
        hash_ids=np.array(read.hash_ids, dtype=np.uint64),
        progress=progress,
    )


def _pass_over_line(file: BinaryIO, line: bytes) -> int:
    """Read to the end of a line that is too long, a piece at a time; how many bytes that were."""
    count = 0
    while line and not line.endswith(b"\n"):
        line = file.readline(LINE_BYTES_MAX)
        count += len(line)
    return count
