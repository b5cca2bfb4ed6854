"""Machines that misbehave on purpose, and scopes of toys."""

import json
import os
import signal
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any, cast

from tenure.model_checks.explorer import Search, explore
from tenure.model_checks.explorer.part import CHUNK
from tenure.model_checks.explorer.toys import Counting, Quiet, Slots
from tenure.model_checks.model import Broken, Event, Judged, Marks, Model, Owed, Scope, Taken


def scope_of(
    make: Callable[[], Any], name: str = "toys/one", expects: Marks = frozenset(), heavy: int = 1000, **more: Any
) -> Scope:
    """A scope of a toy."""
    return Scope(
        name,
        "free",
        frozenset({"ci"}),
        {"size": 1},
        expects,
        cast("Callable[[], Model[object]]", make),
        heavy=heavy,
        **more,
    )


@cache
def plain_search() -> Search:
    """The largest of the small scopes, searched by one process with whole keys."""
    return explore(Slots(3, 2, 3))


class Forgetful(Counting):
    """Says something else when it is asked again, about one thing."""

    def __init__(self, limit: int, about: str) -> None:
        super().__init__(limit)
        self.about = about
        self.asked = 0

    def _odd(self, about: str) -> bool:
        self.asked += self.about == about
        return self.about == about and self.asked % 2 == 1

    def take(self, state: int, event: Event) -> Taken:
        """One further, or another mark, every other time."""
        if self._odd("state"):
            return Taken(state + 1, self.GROWN)
        if self._odd("marks"):
            return Taken(state + 1, self.EVEN)
        return Taken(state + int(event[2]) if self.about != "state" else min(self.limit, state + 2), self.GROWN)

    def events(self, state: int) -> Sequence[Event]:
        """One fewer every other time."""
        found = super().events(state)
        return found[:1] if self._odd("events") else found

    def judge(self, state: int) -> Judged:
        """No mark every other time."""
        return Judged() if self._odd("judge") else super().judge(state)


class Hungry(Counting):
    """Has keys of 320 kB."""

    def encode(self, state: int) -> bytes:
        """Far more than is needed."""
        return super().encode(state) * 40_000


class Raising(Counting):
    """Raises when it is to leave one number."""

    def __init__(self, limit: int, at: int, wrong: int | None = None) -> None:
        super().__init__(limit, wrong)
        self.at = at

    def take(self, state: int, event: Event) -> Taken:
        """One or two more, or nothing at all."""
        if state == self.at:
            raise LookupError("no such number")
        return super().take(state, event)


class Several(Counting):
    """Breaks several rules at one depth, by transitions and by states, and one rule deeper down."""

    def take(self, state: int, event: Event) -> Taken:
        """Breaks T01 by going from 3 to 5, and T02 by going from 9."""
        after = super().take(state, event)
        broken: tuple[Broken, ...] = ()
        if (state, event[2]) == (3, 2):
            broken = (Broken("T01", "3 went to 5"),)
        if state == 9:
            broken = (Broken("T02", "9 was left"),)
        return after._replace(broken=broken)

    def judge(self, state: int) -> Judged:
        """Breaks S01 at 6, which takes as many events as 5."""
        said = super().judge(state)
        return said._replace(broken=(Broken("S01", "6 was reached"),)) if state == 6 else said


class Fragile(Slots):
    """Ends a process by a signal after so many transitions: its own, or its parent as soon as that has saved.

    It writes the number of every process that expands states into a folder, so that a test can look for them.
    """

    def __init__(self, requests: int, slots: int, pages: int, *, after: int, victim: str, folder: Path) -> None:
        super().__init__(requests, slots, pages)
        self.left = after
        self.victim = victim
        self.folder = folder
        self.pid = 0

    def is_saved_in_the_middle(self) -> bool:
        """Whether the last saving beside the folder is in the middle of a level, and not near its end."""
        try:
            saved = self.folder.parent / "saved"
            latest = json.loads((saved / "latest.json").read_text())["saving"]
            said = json.loads((saved / latest / "search.json").read_text())
        except FileNotFoundError:
            return False
        at, starts = int(said["at"]), list[int](said["starts"])
        return at not in starts and at + 3 * CHUNK < starts[-1]

    def take(self, state: bytes, event: Event) -> Taken:
        """What the event leads to, if it leads anywhere at all."""
        if self.pid != os.getpid():
            self.pid = os.getpid()
            (self.folder / str(self.pid)).touch()
        self.left -= 1
        if self.victim == "self" and not self.left:
            os.kill(os.getpid(), signal.SIGKILL)
        if self.victim == "parent" and self.left <= 0 and self.left % 20 == 0 and self.is_saved_in_the_middle():
            os.kill(os.getppid(), signal.SIGKILL)
        return super().take(state, event)


class Packed(Slots):
    """Counts, over all processes, how many states were packed, and refuses to unpack anything else."""

    def __init__(self, requests: int, slots: int, pages: int, packed: Any) -> None:
        super().__init__(requests, slots, pages)
        self.packed = packed

    def pack(self, state: bytes) -> object:
        """The state between two words."""
        with self.packed.get_lock():
            self.packed.value += 1
        return ("packed", state)

    def unpack(self, packed: object) -> bytes:
        """What is between the words."""
        word, state = cast("tuple[str, bytes]", packed)
        assert word == "packed"
        return state


class Drawn(Quiet[int]):
    """A graph that was drawn at random: events with their targets and actors, debts, numbers that break a rule."""

    def __init__(
        self,
        edges: Sequence[Sequence[tuple[int, str | None]]],
        owing: Sequence[bool] = (),
        wrong: frozenset[int] = frozenset(),
    ) -> None:
        self.edges = edges
        self.owing = owing
        self.wrong = wrong

    def initial(self) -> Sequence[int]:
        """The first."""
        return (0,)

    def events(self, state: int) -> Sequence[Event]:
        """One for every edge."""
        return [("graph", "go", place) for place in range(len(self.edges[state]))]

    def take(self, state: int, event: Event) -> Taken:
        """Along the edge."""
        return Taken(self.edges[state][int(event[2])][0], frozenset({f"event Go{state % 3}"}))

    def encode(self, state: int) -> bytes:
        """Two bytes."""
        return state.to_bytes(2, "little")

    def judge(self, state: int) -> Judged:
        """Whether the number is wrong."""
        return Judged(broken=(Broken("N01", f"{state} is wrong"),)) if state in self.wrong else Judged()

    def owed(self, state: int) -> frozenset[Owed]:
        """One thing, or nothing."""
        return frozenset({Owed("R11", "it is paid")}) if self.owing and self.owing[state] else frozenset()

    def fairness(self, state: int, event: Event) -> str | None:
        """As drawn."""
        return self.edges[state][int(event[2])][1]
