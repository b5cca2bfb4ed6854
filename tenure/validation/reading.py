"""A record as a stream: its header, then whole entries, each with the number of its line. Old ones are let go."""

import json
import re
from codecs import getincrementaldecoder
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, Final, NamedTuple, TypeAlias, cast, get_args

from pydantic_core import from_json as json_beginning

from tenure.core.errors import TraceFormatError
from tenure.core.rows.answers import RowAnswer
from tenure.core.rows.events import RowEvent
from tenure.core.schemas import SCHEMA_VERSION
from tenure.recording import KINDS, Closed, Gap, Header, Line, RecordError, Refused, read_line

LINE_BYTES_MAX: Final = 2**28
"""No line is longer; a file without line ends is no record."""
ADVICE: Final = "give the file that OutputCache(..., record=FILE) wrote, or one of that form (docs/recorded-runs.md)"

_LONE_SURROGATE: Final = re.compile(r"\\u[dD][89a-fA-F][0-9a-fA-F]{2}")
"""Half of a character, as names that engines draw may have it."""

_BEGINNINGS: Final[tuple[type[Any], ...]] = (Gap, Closed, *get_args(RowEvent))
"""What a line that belongs to no event before it says."""


class Told(NamedTuple):
    """An event, and what it led to, if the record says so.

    Attributes:
        line: of the event.
        result_line: of its answer or refusal; None if there is none.
    """

    line: int
    event: RowEvent
    result_line: int | None
    result: RowAnswer | Refused | None


class Mark(NamedTuple):
    """A gap, or the end of a run that was shut down."""

    line: int
    value: Gap | Closed


class Broken(NamedTuple):
    """A line that cannot stand where it stands.

    Attributes:
        text: the line, shortened.
        problem: what is wrong with it.
        is_cut_off: the file ends within it, and it may be the beginning of a line: whoever wrote it was stopped.
    """

    line: int
    text: str
    problem: str
    is_cut_off: bool = False


class CutOff(NamedTuple):
    """The file ends behind an event, before what it led to."""

    line: int
    event: RowEvent


Entry: TypeAlias = Told | Mark | Broken | CutOff


class RecordReader:
    """A record that is open for reading, for one pass.

    Attributes:
        header: its first line.
        lines: lines that were read.
    """

    def __init__(self, path: Path) -> None:
        """Read the header.

        Raises:
            RecordError: the file cannot be read, or is no record of this version.
        """
        self._path = path
        try:
            self._file: BinaryIO = path.open("rb")
        except (OSError, ValueError) as error:
            raise self._unreadable(error) from None
        self.lines = 0
        try:
            self.header = self._read_header()
        except BaseException:
            self._file.close()
            raise

    def close(self) -> None:
        """Give the file back."""
        self._file.close()

    def _unreadable(self, error: Exception) -> RecordError:
        reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
        return RecordError(str(self._path), f"cannot be read ({reason})", ADVICE)

    def _read_header(self) -> Header:
        text = self._next()
        found = None if text is None else _parsed(text, 1)
        if isinstance(found, Header):
            return found
        problem = "it is empty" if found is None else "its first line is no header"
        raise RecordError(str(self._path), found.problem if isinstance(found, Broken) else problem, ADVICE)

    def _next(self) -> bytes | None:
        """The next line with its end, if it has one; None behind the last."""
        try:
            line = self._file.readline(LINE_BYTES_MAX + 1)
        except OSError as error:
            raise self._unreadable(error) from None
        self.lines += bool(line)
        return line or None

    def entries(self) -> Iterator[Entry]:
        """What comes after the header, up to the first line that cannot stand where it stands.

        Raises:
            RecordError: the file cannot be read further.
        """
        event: tuple[int, RowEvent] | None = None
        is_closed = False
        while (text := self._next()) is not None:
            found = _parsed(text, self.lines)
            if isinstance(found, Broken):
                yield found
                return
            problem = self._misplaced(found, is_after_event=event is not None, is_closed=is_closed)
            if problem is not None:
                yield Broken(self.lines, _shown(text), problem)
                return
            if isinstance(found, _BEGINNINGS):
                if event is not None:
                    yield Told(*event, None, None)
                event = None
                if isinstance(found, Gap | Closed):
                    is_closed = isinstance(found, Closed)
                    yield Mark(self.lines, found)
                else:
                    event = (self.lines, cast("RowEvent", found))
            else:
                assert event is not None
                yield Told(*event, self.lines, cast("RowAnswer | Refused", found))
                event = None
        if event is not None:
            yield CutOff(*event)

    def _misplaced(self, found: Line, *, is_after_event: bool, is_closed: bool) -> str | None:
        """Why a line cannot stand here; None if it can."""
        if is_closed:
            return "the run was closed before this line"
        if isinstance(found, Header):
            return "a second header: a record is one run"
        is_result = not isinstance(found, _BEGINNINGS)
        if is_result and not is_after_event:
            return "it belongs to the event on the line before, and there is none"
        if not is_result and is_after_event and self.header.answers:
            return "the header promises an answer to every event, and that of the event before is missing"
        return None


def _parsed(text: bytes, number: int) -> Line | Broken:
    if len(text) > LINE_BYTES_MAX:
        return Broken(number, _shown(text), f"longer than {LINE_BYTES_MAX} bytes")
    try:
        return read_line(text.decode())
    except (TraceFormatError, UnicodeDecodeError) as error:
        problem = error.expected if isinstance(error, TraceFormatError) else "no UTF-8"
        return Broken(number, _shown(text), problem, is_cut_off=not text.endswith(b"\n") and _is_beginning(text))


def _is_beginning(text: bytes) -> bool:
    """Whether a text is the beginning of a line of a record, and no more than that."""
    try:
        line = getincrementaldecoder("utf-8")().decode(text)
    except UnicodeDecodeError:
        return False
    if not line:
        # The first bytes of a character.
        return False
    try:
        json.JSONDecoder().raw_decode(line)
    except (ValueError, RecursionError):
        pass
    else:
        return False
    try:
        found: Any = json_beginning(_LONE_SURROGATE.sub("-", line), allow_partial=True)
    except ValueError:
        return False
    if not isinstance(found, dict):
        return False
    fields = cast("dict[str, Any]", found)
    return (
        fields.keys() <= {"version", "kind", "value"}
        and fields.get("version", SCHEMA_VERSION) == SCHEMA_VERSION
        and fields.get("kind", KINDS[0]) in KINDS
        and isinstance(fields.get("value", {}), dict)
    )


def _shown(text: bytes) -> str:
    line = text.decode(errors="replace").rstrip("\n")
    return line if len(line) <= 200 else line[:200] + "..."
