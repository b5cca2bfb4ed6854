"""Caches under test that are told events of the row machine: an object in this process, or a child that speaks NDJSON.

A child is told one line at a time: `begin`, then events, each as `tenure.core.schemas` writes it. It replies with the
answer, or with `refused` and the name of the error; then a line for each command; then `end`. A `begin` it only ends.
`docs/conformance.md` has it line by line.
"""

import json
import shlex
import subprocess
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Any, Final, NamedTuple, Protocol, TypeAlias

from tenure.backends.conformance.rig import CheckFailedError, OutOfTimeError
from tenure.core.config import RowConfig, RowPolicy
from tenure.core.errors import TenureError
from tenure.core.errors.traces import TraceFormatError
from tenure.core.rows.answers import RowAnswer
from tenure.core.rows.commands import RowCommand
from tenure.core.rows.events import RowEvent
from tenure.core.schemas import SCHEMA_VERSION, from_json, to_json

CLOSE_S: Final = 1.0
"""A child whose input has ended may take so long to end."""
LINES_MAX: Final = 10_000
"""Of one reply."""

MachineMaker: TypeAlias = Callable[[Mapping[str, Any]], Any]


class Reply(NamedTuple):
    """What a machine says to an event.

    Attributes:
        answer: None if it refuses.
        refused: the name of the error's class; empty if it does not refuse.
        commands: in order.
    """

    answer: RowAnswer | None
    refused: str
    commands: tuple[RowCommand, ...]


class MachineSubject(Protocol):
    """One cache after the other."""

    def begin(self, config: RowConfig, policy: RowPolicy) -> None:
        """A new cache, whose policy is registered; the one before is over."""
        ...

    def tell(self, event: RowEvent) -> Reply:
        """Let an event happen."""
        ...

    def close(self) -> None:
        """No more."""
        ...


class ObjectMachine:
    """An object with `tell(event)`, which returns answer and commands, or raises a `TenureError`."""

    def __init__(self, make: MachineMaker, seed: int) -> None:
        """`make` makes one of options: `config`, `policy`, `seed`."""
        self._make, self._seed = make, seed
        self._machine: Any = None

    def begin(self, config: RowConfig, policy: RowPolicy) -> None:
        """A new one is made."""
        self._machine = self._make({"config": config, "policy": policy, "seed": self._seed})

    def tell(self, event: RowEvent) -> Reply:
        """Ask it.

        Raises:
            CheckFailedError: it raises what is no refusal.
        """
        try:
            answer, commands = self._machine.tell(event)
        except TenureError as error:
            return Reply(None, type(error).__name__, ())
        except Exception as error:
            raise CheckFailedError(f"it raised {type(error).__name__}: {error}") from None
        return Reply(answer, "", tuple(commands))

    def close(self) -> None:
        """Nothing is left to do."""
        self._machine = None


class ChildMachine:
    """A child process, told on its input and heard on its output; what it says on its errors goes where ours go."""

    def __init__(self, command: str, timeout_s: float) -> None:
        """Start it.

        Raises:
            CheckFailedError: it cannot be started.
        """
        self._timeout_s = timeout_s
        self._lines: SimpleQueue[str | None] = SimpleQueue()
        try:
            # What is run is what the caller asked for, as any test runner does.
            self._child = subprocess.Popen(  # noqa: S603
                shlex.split(command), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8"
            )
        except OSError as error:
            raise CheckFailedError(f"{command!r} cannot be started: {error}") from None
        self._listener = Thread(target=self._listen, name="tenure-conformance-child", daemon=True)
        self._listener.start()

    def _listen(self) -> None:
        assert self._child.stdout is not None
        for line in self._child.stdout:
            self._lines.put(line.rstrip("\n"))
        self._lines.put(None)

    def begin(self, config: RowConfig, policy: RowPolicy) -> None:
        """Tell it to begin anew."""
        value = {"config": config.model_dump(mode="json"), "policy": _plain(policy)}
        self._say(json.dumps({"version": SCHEMA_VERSION, "kind": "begin", "value": value}))
        if found := self._reply():
            raise CheckFailedError(f"a begin was answered with {found[0]}, and is only ended")

    def tell(self, event: RowEvent) -> Reply:
        """Tell it, and read until its reply ends.

        Raises:
            CheckFailedError: it ended, or says what is no reply.
            OutOfTimeError: it says nothing.
        """
        self._say(to_json(event))
        first, *rest = self._reply() or [""]
        refused = _refused(first)
        try:
            answer: Any = None if refused else from_json(first)
            commands: list[Any] = [from_json(each) for each in rest]
        except TraceFormatError as error:
            raise CheckFailedError(f"it says what is no answer and no command: {error}") from None
        return Reply(answer, refused, tuple(commands))

    def _say(self, line: str) -> None:
        assert self._child.stdin is not None
        try:
            self._child.stdin.write(line + "\n")
            self._child.stdin.flush()
        except OSError:
            raise CheckFailedError(self._ended()) from None

    def _reply(self) -> list[str]:
        found: list[str] = []
        while True:
            try:
                line = self._lines.get(timeout=self._timeout_s)
            except Empty:
                raise OutOfTimeError(f"the child says nothing for {self._timeout_s} s") from None
            if line is None:
                raise CheckFailedError(self._ended())
            if _kind(line) == "end":
                return found
            found.append(line)
            if len(found) > LINES_MAX:
                raise CheckFailedError(f"a reply of {LINES_MAX} lines does not end")

    def _ended(self) -> str:
        try:
            return f"the child ended, with exit status {self._child.wait(self._timeout_s)}"
        except subprocess.TimeoutExpired:
            return "the child closed its output, and goes on"

    def close(self) -> None:
        """End it, if it does not end by itself."""
        assert self._child.stdin is not None
        assert self._child.stdout is not None
        # It may have ended before it read everything.
        with suppress(OSError):
            self._child.stdin.close()
        try:
            self._child.wait(CLOSE_S)
        except subprocess.TimeoutExpired:
            self._child.kill()
            self._child.wait()
        self._listener.join(CLOSE_S)
        if not self._listener.is_alive():
            self._child.stdout.close()


def _plain(policy: RowPolicy) -> dict[str, Any]:
    found: dict[str, Any] = policy.model_dump(mode="json")
    return {
        name: sorted(value) if name in ("immediate", "deferred", "leftovers") else value
        for name, value in found.items()
    }


def _kind(line: str) -> str:
    try:
        found: Any = json.loads(line)
        return str(found["kind"])
    except (ValueError, TypeError, KeyError, IndexError):
        raise CheckFailedError(f"the child says {line[:80]!r}, which is no line of the protocol") from None


def _refused(line: str) -> str:
    """The error's name; empty for an answer."""
    if not line:
        raise CheckFailedError("the child ends a reply that has neither answer nor refusal")
    if _kind(line) != "refused":
        return ""
    found: Any = json.loads(line)
    try:
        return str(found["value"]["error"])
    except (TypeError, KeyError):
        raise CheckFailedError(f"the child refuses with {line[:80]!r}, which names no error") from None


def shown(commands: Sequence[RowCommand]) -> str:
    """Commands in a few words."""
    return ", ".join(f"{type(each).__name__} {each.command}" for each in commands) or "nothing"
