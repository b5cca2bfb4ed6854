"""Finds out which format a trace has, by its content, and reads it."""

import io
import os
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, Literal

from tenure.replay.agentic import read_agentic
from tenure.replay.errors import OptionError, Place, TraceError, reason_of
from tenure.replay.mooncake import LINE_BYTES_MAX, read_mooncake
from tenure.replay.requests import TraceRequest

SNIFF_BYTES: Final = 2**16
"""How much of a file's beginning is looked at to tell its format."""


def check_sources(sources: Sequence[Path]) -> None:
    """Find out what can be known to be wrong before the first request is replayed.

    Raises:
        OptionError: there is no source.
        TraceError: a source is missing, a folder, or not readable.
    """
    if not sources:
        raise OptionError("there is no trace to replay", "give at least one file")
    for path in sources:
        advice = "give the path of a trace file"
        try:
            mode = path.stat().st_mode
        except (OSError, ValueError) as error:
            raise TraceError(Place(path), reason_of(error), advice) from None
        if stat.S_ISDIR(mode):
            raise TraceError(Place(path), "is a folder", advice)
        if not os.access(path, os.R_OK):
            raise TraceError(Place(path), "Permission denied", advice)


def read_traces(sources: Sequence[Path], trace_block_size: int) -> Iterator[tuple[int, TraceRequest | TraceError]]:
    """Every request of the sources, one source after the other, with the number of its source.

    Holds no more than one line of a Mooncake file, or one agentic file. What is wrong with a request, or with a whole
    file, comes in its place and is the caller's to raise or to count. Hash ids are local to their file; a file that is
    named twice is one file.

    `trace_block_size` is that of Mooncake files; the others name their own.
    """
    first: dict[Path, int] = {}
    for number, path in enumerate(sources):
        namespace = f"file {first.setdefault(path.resolve(), number)}"
        for item in _read(path, namespace, trace_block_size):
            yield number, item


def _read(path: Path, namespace: str, trace_block_size: int) -> Iterator[TraceRequest | TraceError]:
    try:
        with io.BufferedReader(io.FileIO(path), SNIFF_BYTES) as file:
            start = _start(file)
            match _format(start):
                case "mooncake":
                    size = os.fstat(file.fileno()).st_size
                    yield from read_mooncake(file, path, namespace, trace_block_size, size)
                case "agentic":
                    yield from read_agentic(file, path, namespace)
                case "empty":
                    yield TraceError(Place(path), "the file is empty", "give a trace with at least one request")
                case "unknown":
                    problem = 'neither a Mooncake trace ("input_length") nor an agentic one ("requests")'
                    yield TraceError(Place(path, 1), problem, "give a trace of one of these formats")
    except OSError as error:
        yield TraceError(Place(path), reason_of(error), "give the path of a trace file")


def _start(file: "io.BufferedReader[io.FileIO]") -> bytes:
    """Enough of a file to tell its format; the file is read from its first byte again afterwards.

    That is its beginning or, where that tells nothing, all of its first line that is not blank.
    """
    start = file.peek(SNIFF_BYTES)
    if _format(start) in ("empty", "unknown") and file.seekable():
        while (line := file.readline(LINE_BYTES_MAX)) and not line.strip():
            pass
        start = start + line
        file.seek(0)
    return start


def _format(start: bytes) -> Literal["mooncake", "agentic", "empty", "unknown"]:
    # The keys tell the formats apart also where the first line is damaged or an object spreads over many lines.
    if b'"input_length"' in start:
        return "mooncake"
    if b'"requests"' in start:
        return "agentic"
    return "unknown" if start.strip() else "empty"
