"""The lines of a record that are no trace lines: where a run begins, what was refused, what is missing, where it ends.

Every line is `{"version": 1, "kind": ..., "value": {...}}`. The first is the `header`; then come, in the order in which
the machine took them, `event` lines, each followed by the `answer` or the `refused` line that it led to. Events and
answers are trace lines (`tenure.core.schemas`). A `gap` line stands where events were left out, and a `closed` line
ends a run that was shut down. Commands are not written: they follow from the events.
"""

import json
from dataclasses import fields, is_dataclass
from typing import Annotated, Any, Final, Literal, TypeAlias, cast

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from tenure.core.config import RowConfig
from tenure.core.errors import TraceFormatError
from tenure.core.rows.answers import RowAnswer
from tenure.core.rows.events import RowEvent
from tenure.core.schemas import SCHEMA_VERSION, from_json, to_json

Unlogged: TypeAlias = Literal[
    "CopyBegan",
    "CopyCompleted",
    "ScatterCompleted",
    "WriteFailed",
    "GatherBegan",
    "GatherCompleted",
    "GatherFailed",
]
"""Events that a record may leave out: those that commands carry, and whoever carries them out tells."""

_TRACE_KINDS: Final = ("event", "answer")
_TRACE_BEGINNINGS: Final = tuple(f'{{"version":{SCHEMA_VERSION},"kind":"{kind}"' for kind in _TRACE_KINDS)
"""How trace lines begin that Tenure wrote: to look into them once is enough."""


class _Value(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class Header(_Value):
    """How a run began.

    Attributes:
        writer: who wrote the record, and in which version.
        config: what the machine was built with.
        unlogged: events that happened or not, and are in no line.
        answers: whether every event is followed by its answer; else an answer may be missing. What was refused is
            always said.
    """

    writer: str
    config: RowConfig
    unlogged: tuple[Unlogged, ...] = ()
    answers: bool = True


class Refused(_Value):
    """The event before was refused, and changed nothing.

    Attributes:
        error: the class of the error, which is its code for good.
        scope: how far the damage reaches, as the error says.
    """

    error: str
    scope: Literal["REQUEST", "CACHE"]


class Gap(_Value):
    """Events were left out here, with what they led to; the run went on without the record."""

    events: Annotated[int, Field(gt=0)]


class Closed(_Value):
    """The run was shut down.

    Attributes:
        events: events of the record.
        left_out: events of all its gaps.
    """

    events: Annotated[int, Field(ge=0)]
    left_out: Annotated[int, Field(ge=0)]


Other: TypeAlias = Header | Refused | Gap | Closed
Line: TypeAlias = RowEvent | RowAnswer | Other

_OTHERS: Final[dict[str, type[Other]]] = {"header": Header, "refused": Refused, "gap": Gap, "closed": Closed}

KINDS: Final = (*_TRACE_KINDS, *_OTHERS)
"""The kinds that a line may have."""


class _HeaderLine(_Value):
    version: Annotated[int, Field(ge=SCHEMA_VERSION, le=SCHEMA_VERSION)]
    kind: Literal["header"]
    value: Header


class _RefusedLine(_Value):
    version: Annotated[int, Field(ge=SCHEMA_VERSION, le=SCHEMA_VERSION)]
    kind: Literal["refused"]
    value: Refused


class _GapLine(_Value):
    version: Annotated[int, Field(ge=SCHEMA_VERSION, le=SCHEMA_VERSION)]
    kind: Literal["gap"]
    value: Gap


class _ClosedLine(_Value):
    version: Annotated[int, Field(ge=SCHEMA_VERSION, le=SCHEMA_VERSION)]
    kind: Literal["closed"]
    value: Closed


_ADAPTER: Final[TypeAdapter[_HeaderLine | _RefusedLine | _GapLine | _ClosedLine]] = TypeAdapter(
    Annotated[_HeaderLine | _RefusedLine | _GapLine | _ClosedLine, Field(discriminator="kind")]
)


def header_line(header: Header) -> str:
    """The first line of a record, without a line end."""
    return _line("header", header)


def refused_line(error: str, scope: str) -> str:
    """The line of an event that was refused, without a line end."""
    return _plain_line("refused", {"error": error, "scope": scope})


def refused_event_line(event: RowEvent) -> str:
    """The line of an event that was refused, without a line end.

    Raises:
        TraceFormatError: none says all that the machine may have refused it for: read back it would be another event,
            or hold values of other types.
    """
    line = to_json(event)
    if not _is_same(event, from_json(line)):
        raise TraceFormatError(line, "an event whose values have the types that their fields name")
    return line


def _is_same(one: Any, other: Any) -> bool:
    """Whether two values are equal and of the same types, in every part."""
    if type(one) is not type(other):
        return False
    if isinstance(one, np.ndarray):
        array: Any = one  # pyright: ignore[reportUnknownVariableType]
        return bool(array.dtype == other.dtype) and np.array_equal(array, other)
    if isinstance(one, tuple):
        parts: Any = one  # pyright: ignore[reportUnknownVariableType]
        return len(parts) == len(other) and all(map(_is_same, parts, other))
    if is_dataclass(one):
        return all(_is_same(getattr(one, each.name), getattr(other, each.name)) for each in fields(one))
    return bool(one == other)


def gap_line(events: int) -> str:
    """The line that stands for events that were left out, without a line end."""
    return _plain_line("gap", {"events": events})


def closed_line(events: int, left_out: int) -> str:
    """The last line of a run that was shut down, without a line end."""
    return _plain_line("closed", {"events": events, "left_out": left_out})


def read_line(text: str) -> Line:
    """What a line of a record says.

    Raises:
        TraceFormatError: it is no line of a record of this version, in every detail.
    """
    if text.startswith(_TRACE_BEGINNINGS):
        return cast("RowEvent | RowAnswer", from_json(text))
    try:
        found: Any = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise TraceFormatError(text, f"not JSON: {error}") from None
    kind: Any = cast("dict[str, Any]", found).get("kind") if isinstance(found, dict) else None
    if kind in _TRACE_KINDS:
        return cast("RowEvent | RowAnswer", from_json(text))
    if kind not in _OTHERS:
        raise TraceFormatError(text, f"its kind is {kind!r}, and lines of a record are {', '.join(KINDS)}")
    try:
        return _ADAPTER.validate_json(text).value
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        place = ".".join(map(str, first["loc"])) or "the line"
        raise TraceFormatError(text, f"{place}: {first['msg']}") from None


def _line(kind: str, value: BaseModel) -> str:
    return _plain_line(kind, value.model_dump(mode="json"))


def _plain_line(kind: str, value: dict[str, Any]) -> str:
    return json.dumps({"version": SCHEMA_VERSION, "kind": kind, "value": value}, separators=(",", ":"))
