"""The KV events of a replay as a file: one JSON object a line, in the order in which they were published.

A line is either

    {"event_id": 0, "dp_rank": 0, "stored": {"parent_hash": null, "blocks": [{"block_hash": 1, "tokens_hash": 2}]}}
    {"event_id": 1, "dp_rank": 0, "removed": {"block_hashes": [1]}}

Hashes are unsigned 64-bit numbers. Event ids begin at 0 and have no gaps. A block of a Stored event carries
`"token_ids": [...]` where they were asked for. Adding what is stored and taking away what is removed gives the hashes
that are visible after each line.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Self, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from tenure.core.blocks.values import KvEvent, PublishStored
from tenure.core.config import U32_MAX, U64_MAX
from tenure.replay.errors import OutputError, reason_of

Unsigned32: TypeAlias = Annotated[int, Field(ge=0, le=U32_MAX)]
Unsigned64: TypeAlias = Annotated[int, Field(ge=0, le=U64_MAX)]


class _Schema(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class StoredBlock(_Schema):
    """One block that became visible."""

    block_hash: Unsigned64
    tokens_hash: Unsigned64
    token_ids: tuple[Unsigned32, ...] | None = None


class Stored(_Schema):
    """Consecutive blocks of one request; `parent_hash` names the block before them, null at position 0."""

    parent_hash: Unsigned64 | None
    blocks: Annotated[tuple[StoredBlock, ...], Field(min_length=1)]


class Removed(_Schema):
    """Hashes whose last copy was evicted, in the order of eviction."""

    block_hashes: Annotated[tuple[Unsigned64, ...], Field(min_length=1)]


class StoredLine(_Schema):
    """A line that tells of hashes becoming visible."""

    event_id: Unsigned64
    dp_rank: Unsigned32
    stored: Stored


class RemovedLine(_Schema):
    """A line that tells of hashes ceasing to be visible."""

    event_id: Unsigned64
    dp_rank: Unsigned32
    removed: Removed


EventLine: TypeAlias = StoredLine | RemovedLine
_LINE: TypeAdapter[EventLine] = TypeAdapter(EventLine)


def event_line(event: KvEvent) -> EventLine:
    """The line that tells of `event`."""
    if not isinstance(event, PublishStored):
        removed = Removed(block_hashes=event.block_hashes)
        return RemovedLine(event_id=event.event_id, dp_rank=event.dp_rank, removed=removed)
    pairs = zip(event.block_hashes, event.tokens_hashes, strict=True)
    if event.token_ids is None:
        blocks = tuple(StoredBlock(block_hash=name, tokens_hash=local) for name, local in pairs)
    else:
        blocks = tuple(
            StoredBlock(block_hash=name, tokens_hash=local, token_ids=tokens)
            for (name, local), tokens in zip(pairs, event.token_ids, strict=True)
        )
    stored = Stored(parent_hash=event.parent_hash, blocks=blocks)
    return StoredLine(event_id=event.event_id, dp_rank=event.dp_rank, stored=stored)


class EventLog:
    """A file that KV events are appended to; it is begun anew, and closed with the `with` block."""

    def __init__(self, path: Path) -> None:
        """Begin the file.

        Raises:
            OutputError: it cannot be written.
        """
        self._path = path
        try:
            self._file = path.open("w", encoding="utf-8")
        except (OSError, ValueError) as error:
            raise self._failed(error) from None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: object, traceback: object) -> None:
        try:
            self._file.close()
        except OSError as failure:
            # What ended the block tells more than that its log could not be completed.
            if error is None:
                raise self._failed(failure) from None

    def write(self, event: KvEvent) -> None:
        """Append the line of `event`; a key that was not set is left out, a root's null parent is not.

        Raises:
            OutputError: it cannot be written.
        """
        line = event_line(event).model_dump_json(exclude_unset=True)
        try:
            self._file.write(line + "\n")
        except OSError as error:
            raise self._failed(error) from None

    def _failed(self, error: Exception) -> OutputError:
        return OutputError(str(self._path), reason_of(error), "give --events another path")


def read_events(path: Path) -> Iterator[EventLine]:
    """Every line of an event log.

    Raises:
        pydantic.ValidationError: a line is not of the schema.
    """
    with path.open(encoding="utf-8") as file:
        for line in file:
            yield _LINE.validate_json(line)
