"""A cache under test that is a child process: told NDJSON on its input, heard on its output.

A child is told one line at a time: `begin`, then events, each as `tenure.core.schemas` writes it. It replies with the
answer, or with `refused` and the name of the error; then a line for each command; then `end`. A `begin` it only ends.
`docs/conformance.md` has it line by line.
"""

import json
import shlex
import subprocess
import time
from contextlib import suppress
from queue import Empty, Queue
from threading import Thread
from typing import Any, Final, NamedTuple

from tenure.backends.conformance.cache_subjects import Reply
from tenure.backends.conformance.rig import CheckFailedError, OutOfTimeError
from tenure.backends.conformance.traces import policy_as_json
from tenure.backends.leftovers import is_mapping
from tenure.core.config import RowConfig, RowPolicy
from tenure.core.errors.traces import TraceFormatError
from tenure.core.rows.events import RowEvent
from tenure.core.schemas import SCHEMA_VERSION, from_json, to_json

CLOSE_S: Final = 1.0
"""A child whose input has ended may take so long to end, and what it said last so long to be heard."""
LOOK_S: Final = 0.2
"""Whether a silent child has ended is asked so often."""
LINES_MAX: Final = 10_000
"""Of one reply."""
LINE_BYTES_MAX: Final = 64 << 20
HEARD_MAX: Final = 64
"""Lines that wait to be looked at; a child that says more waits."""
SHOWN: Final = 80
"""Characters of a line that a message has."""
KINDS: Final = ("answer", "refused", "command", "end")


class Heard(NamedTuple):
    """One thing that was heard.

    Attributes:
        line: what was said.
        fault: why it is no line; empty for a line.
    """

    line: str
    fault: str = ""


class Line(NamedTuple):
    """A line of a reply, and its parts."""

    text: str
    kind: str
    value: Any


class ChildMachine:
    """A child process, told on its input and heard on its output; what it says on its errors goes where ours go."""

    def __init__(self, command: str, timeout_s: float) -> None:
        """Start it.

        Raises:
            CheckFailedError: it cannot be started.
        """
        self._timeout_s = timeout_s
        self._heard: Queue[Heard | None] = Queue(HEARD_MAX)
        try:
            # What is run is what the caller asked for, as any test runner does.
            self._child = subprocess.Popen(  # noqa: S603
                shlex.split(command), stdin=subprocess.PIPE, stdout=subprocess.PIPE
            )
        except (OSError, ValueError, IndexError) as error:
            raise CheckFailedError(f"{command!r} cannot be started: {error}") from None
        self._listener = Thread(target=self._listen, name="tenure-conformance-child", daemon=True)
        self._listener.start()

    def _listen(self) -> None:
        assert self._child.stdout is not None
        # Who reads closes: another process may hold the other end for long.
        with self._child.stdout as output:
            while said := output.readline(LINE_BYTES_MAX):
                heard = _heard(said)
                self._heard.put(heard)
                if heard.fault:
                    return
        self._heard.put(None)

    def begin(self, config: RowConfig, policy: RowPolicy) -> None:
        """Tell it to begin anew.

        Raises:
            CheckFailedError: it ended, or does more than to end its reply.
            OutOfTimeError: it says nothing.
        """
        value = {"config": config.model_dump(mode="json"), "policy": policy_as_json(policy)}
        self._say(json.dumps({"version": SCHEMA_VERSION, "kind": "begin", "value": value}))
        if found := self._reply():
            raise CheckFailedError(f"a begin was answered with {found[0].text[:SHOWN]}, and is only ended")

    def tell(self, event: RowEvent) -> Reply:
        """Tell it, and read until its reply ends.

        Raises:
            CheckFailedError: it ended, or says what is no reply.
            OutOfTimeError: it says nothing.
        """
        self._say(to_json(event))
        found = self._reply()
        if not found:
            raise CheckFailedError("the child ends a reply that has neither answer nor refusal")
        first, *rest = found
        if first.kind not in ("answer", "refused"):
            raise CheckFailedError(f"a reply begins with {first.text[:SHOWN]!r}, and should with answer or refusal")
        if first.kind == "refused" and rest:
            raise CheckFailedError(f"a refusal goes on with {rest[0].text[:SHOWN]!r}, and should only be ended")
        for each in rest:
            if each.kind != "command":
                raise CheckFailedError(f"an answer goes on with {each.text[:SHOWN]!r}, and should with commands")
        try:
            answer: Any = None if first.kind == "refused" else from_json(first.text)
            commands: list[Any] = [from_json(each.text) for each in rest]
        except TraceFormatError as error:
            raise CheckFailedError(f"it says what is no answer and no command: {error}") from None
        return Reply(answer, _error_of(first) if first.kind == "refused" else "", tuple(commands))

    def _say(self, line: str) -> None:
        assert self._child.stdin is not None
        try:
            self._child.stdin.write(line.encode() + b"\n")
            self._child.stdin.flush()
        except OSError:
            raise CheckFailedError(self._ended()) from None

    def _reply(self) -> list[Line]:
        found: list[Line] = []
        while True:
            heard = self._next()
            if heard is None:
                raise CheckFailedError(self._ended())
            if heard.fault:
                raise CheckFailedError(f"the child says {heard.fault}")
            line = _line(heard.line)
            if line.kind == "end":
                return found
            found.append(line)
            if len(found) > LINES_MAX:
                raise CheckFailedError(f"a reply of {LINES_MAX} lines does not end")

    def _next(self) -> Heard | None:
        until = time.monotonic() + self._timeout_s
        while (left := until - time.monotonic()) > 0:
            has_ended = self._child.poll() is not None
            try:
                return self._heard.get(timeout=CLOSE_S if has_ended else min(left, LOOK_S))
            except Empty:
                if has_ended:
                    # Another process has its output, and may have it for ever.
                    return None
        raise OutOfTimeError(f"the child says nothing for {self._timeout_s} s")

    def _ended(self) -> str:
        try:
            return f"the child ended, with exit status {self._child.wait(self._timeout_s)}"
        except subprocess.TimeoutExpired:
            return "the child closed its output, and goes on"

    def close(self) -> None:
        """End it, if it does not end by itself."""
        assert self._child.stdin is not None
        # It may have ended before it read everything.
        with suppress(OSError):
            self._child.stdin.close()
        try:
            self._child.wait(CLOSE_S)
        except subprocess.TimeoutExpired:
            self._child.kill()
            self._child.wait()
        until = time.monotonic() + CLOSE_S
        while self._listener.is_alive() and time.monotonic() < until:
            # It may wait for room.
            with suppress(Empty):
                self._heard.get_nowait()
            self._listener.join(LOOK_S / 100)


def _heard(said: bytes) -> Heard:
    """A line, or why it is none."""
    if len(said) == LINE_BYTES_MAX and not said.endswith(b"\n"):
        return Heard("", f"a line of more than {LINE_BYTES_MAX} bytes, which does not end")
    try:
        return Heard(said.decode("utf-8").rstrip("\r\n"))
    except UnicodeDecodeError as error:
        return Heard("", f"{said[:SHOWN]!r}, which is not UTF-8: {error.reason}")


def _line(text: str) -> Line:
    """What a line says, of the version and of the kinds that there are."""
    try:
        found: Any = json.loads(text)
    except (ValueError, RecursionError):
        found = None
    if not is_mapping(found) or "kind" not in found:
        raise CheckFailedError(f"the child says {text[:SHOWN]!r}, which is no line of the protocol")
    version: Any = found.get("version")
    if type(version) is not int or version != SCHEMA_VERSION:
        raise CheckFailedError(f"the child says {text[:SHOWN]!r}, whose version is {version!r}, not {SCHEMA_VERSION}")
    kind: Any = found["kind"]
    if kind not in KINDS:
        raise CheckFailedError(f"the child says {text[:SHOWN]!r}, whose kind is {kind!r}, not of {', '.join(KINDS)}")
    return Line(text, kind, found.get("value"))


def _error_of(line: Line) -> str:
    """The error's name."""
    error: Any = line.value.get("error") if is_mapping(line.value) else None
    if not isinstance(error, str) or not error:
        raise CheckFailedError(f"the child refuses with {line.text[:SHOWN]!r}, which names no error")
    return error
