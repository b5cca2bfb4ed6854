"""A part of the frontier, and what a process does with it: expand states, judge new ones.

A search has one part, or one in every process. Parts decide nothing: which states are new is told to them.
"""

from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from resource import RUSAGE_SELF, getpagesize, getrusage
from typing import Any, TypeAlias

from tenure.model_checks.model import Event, Marks, Model, Owed, Taken

CHUNK = 128
"""How many states of a level are expanded before the search looks up; the same however many processes there are."""
SAMPLED = 64
"""One transition in so many is taken twice, to see whether the model says the same again."""

Numbered: TypeAlias = tuple[int, Any]
"""A state and its number."""
Found: TypeAlias = tuple[int, int, str, str]
"""State, index of the event (-1: the state itself), rule, what was found."""
Crash: TypeAlias = tuple[int, int, str, str]
"""State, index of the event (-1: none), what was asked, what was raised."""


def resident_bytes() -> int:
    """Resident memory of this process; where Linux' own file is missing, the most it ever was."""
    try:
        return int(Path("/proc/self/statm").read_bytes().split()[1]) * getpagesize()
    except FileNotFoundError:
        return getrusage(RUSAGE_SELF).ru_maxrss << 10


@dataclass(slots=True)
class Chunk:
    """What came of a stretch of states.

    Candidates are next states that may be new: `parents`, `indices` and `keys` go together.

    Attributes:
        states: how many were expanded.
        transitions: how many events were taken.
        low: the fewest events possible in one of the states.
        high: the most.
        parents: of every candidate the state it comes from.
        indices: the place of its event.
        keys: its canonical form, or the digest of that.
        labels: with the graph: the actor bound to act, if its event is one's.
        broken: what transitions broke.
        stuck: states without events that are not quiescent.
        crashes: what the model raised.
        unsound: where the model did not say the same again.
        marks: marks seen, by the sets in which they came.
        kinds: events taken, by actor and kind.
        memory: resident memory of the process.
    """

    states: int = 0
    transitions: int = 0
    low: int = 1 << 30
    high: int = 0
    parents: list[int] = field(default_factory=list[int])
    indices: list[int] = field(default_factory=list[int])
    keys: list[bytes] = field(default_factory=list[bytes])
    labels: list[str | None] = field(default_factory=list["str | None"])
    broken: list[Found] = field(default_factory=list[Found])
    stuck: list[int] = field(default_factory=list[int])
    crashes: list[Crash] = field(default_factory=list[Crash])
    unsound: list[str] = field(default_factory=list[str])
    marks: dict[Marks, int] = field(default_factory=dict[Marks, int])
    kinds: dict[Event, int] = field(default_factory=dict[Event, int])
    memory: int = 0


@dataclass(slots=True)
class Judgement:
    """What the rules say of new states, and with the graph what each owes."""

    ids: list[int] = field(default_factory=list[int])
    broken: list[Found] = field(default_factory=list[Found])
    crashes: list[Crash] = field(default_factory=list[Crash])
    unsound: list[str] = field(default_factory=list[str])
    marks: dict[Marks, int] = field(default_factory=dict[Marks, int])
    owed: list[frozenset[Owed]] = field(default_factory=list[frozenset[Owed]])


def in_words(error: Exception) -> str:
    """An exception as messages tell it."""
    return f"{type(error).__name__}: {error}"


class Part:
    """States to expand, in order of their numbers, and the next ones that were found new."""

    def __init__(
        self,
        model: Model[Any],
        frontier: Sequence[Numbered],
        ahead: Sequence[Numbered],
        *,
        known: set[bytes],
        graph: bool,
        key_of: Callable[[bytes], bytes] | None,
    ) -> None:
        """Begin.

        Args:
            model: whose states they are.
            frontier: states of the level that is expanded, those that are not yet.
            ahead: states of the next level that are known and judged already.
            known: canonical forms that are no candidates any more; grows by those that are.
            graph: whether every transition is a candidate, and actors and debts are told.
            key_of: what makes a key of a canonical form; None if it is one.
        """
        self._model = model
        self._graph = graph
        self._known: set[bytes] = known
        encode = model.encode
        self._encode: Callable[[Any], bytes] = (lambda state: key_of(encode(state))) if key_of else encode
        self._ids = [number for number, _ in frontier]
        self._states = [state for _, state in frontier]
        self._at = 0
        self._next_ids = [number for number, _ in ahead]
        self._next_states = [state for _, state in ahead]
        self._waiting: deque[list[Any]] = deque()
        self._unsampled = SAMPLED
        self._unjudged = 0

    def expand(self, upto: int) -> Chunk:
        """Take every event of every state here whose number is below `upto`."""
        chunk = Chunk()
        successors: list[Any] = []
        self._waiting.append(successors)
        begin, self._at = self._at, bisect_left(self._ids, upto, self._at)
        for place in range(begin, self._at):
            state = self._states[place]
            # What was expanded is needed no more; the level may be wide.
            self._states[place] = None
            self._expand_one(self._ids[place], state, chunk, successors)
        chunk.states = self._at - begin
        chunk.memory = resident_bytes()
        return chunk

    def _expand_one(self, number: int, state: Any, chunk: Chunk, successors: list[Any]) -> None:
        take, encode, known, graph = self._model.take, self._encode, self._known, self._graph
        marks, kinds = chunk.marks, chunk.kinds
        index, asked, event = -1, "events", None
        try:
            menu = self._model.events(state)
            count = len(menu)
            probe = self._probe(count)
            for index, event in enumerate(menu):
                asked = "take"
                taken = take(state, event)
                after, seen, broken = taken
                marks[seen] = marks.get(seen, 0) + 1
                kind = event[:2]
                kinds[kind] = kinds.get(kind, 0) + 1
                if broken:
                    chunk.broken.extend((number, index, rule, found) for rule, found in broken)
                if after is None:
                    continue
                asked = "encode"
                key = encode(after)
                if index == probe:
                    self._take_again(number, state, event, taken, key, chunk)
                if key not in known:
                    if not graph:
                        known.add(key)
                elif not graph:
                    continue
                chunk.parents.append(number)
                chunk.indices.append(index)
                chunk.keys.append(key)
                successors.append(after)
                if graph:
                    asked = "fairness"
                    chunk.labels.append(self._model.fairness(state, event))
            if not count and not self._model.is_quiescent(state):
                chunk.stuck.append(number)
            if probe >= 0 and list(self._model.events(state)) != list(menu):
                chunk.unsound.append(f"events of state {number} were told twice and differ")
        except Exception as error:
            chunk.crashes.append((number, index, asked, in_words(error)))
            count = index + 1
        chunk.transitions += count
        chunk.low = min(chunk.low, count)
        chunk.high = max(chunk.high, count)

    def _probe(self, count: int) -> int:
        """The place of the event to take twice in a state with so many; -1: none."""
        self._unsampled += count
        if self._unsampled < SAMPLED or not count:
            return -1
        # Not always the first event: every kind is to have its turn.
        probe = self._unsampled % count
        self._unsampled = 0
        return probe

    def _take_again(self, number: int, state: Any, event: Event, first: Taken, key: bytes, chunk: Chunk) -> None:
        again = self._model.take(state, event)
        if again.state is None or self._encode(again.state) != key:
            chunk.unsound.append(f"{event!r} in state {number} was taken twice and led to two different states")
        elif tuple(again)[1:] != tuple(first)[1:]:
            chunk.unsound.append(
                f"{event!r} in state {number} was taken twice and told {first.marks, first.broken}, "
                f"then {again.marks, again.broken}"
            )

    def keep(self, places: Sequence[int], ids: Sequence[int]) -> Judgement:
        """Keep these candidates of the chunk that has waited longest, under these numbers, and judge them."""
        successors = self._waiting.popleft()
        states = [successors[place] for place in places]
        self._next_ids.extend(ids)
        self._next_states.extend(states)
        return self.judge(zip(ids, states, strict=True))

    def judge(self, numbered: "zip[tuple[int, Any]] | Sequence[Numbered]") -> Judgement:
        """What the rules say of new states."""
        said = Judgement()
        judge, marks = self._model.judge, said.marks
        for number, state in numbered:
            said.ids.append(number)
            asked = "judge"
            try:
                seen, broken = first = judge(state)
                marks[seen] = marks.get(seen, 0) + 1
                if broken:
                    said.broken.extend((number, -1, rule, found) for rule, found in broken)
                self._unjudged += 1
                if self._unjudged % SAMPLED == 1 and judge(state) != first:
                    said.unsound.append(f"state {number} was judged twice and differently")
                if self._graph:
                    asked = "owed"
                    said.owed.append(self._model.owed(state))
            except Exception as error:
                said.crashes.append((number, -1, asked, in_words(error)))
        return said

    def turn(self) -> int:
        """Let the next level be the one that is expanded; how many states of it are here."""
        self._ids, self._next_ids = self._next_ids, []
        self._states, self._next_states = self._next_states, []
        self._at = 0
        return len(self._ids)

    def forget(self) -> None:
        """Let everything be a candidate once more."""
        self._known.clear()

    def stuck(self) -> list[int]:
        """States of the next level in which nothing can happen though it should."""
        model = self._model
        found: list[int] = []
        for number, state in zip(self._next_ids, self._next_states, strict=True):
            try:
                if not model.events(state) and not model.is_quiescent(state):
                    found.append(number)
            except Exception:  # noqa: S112 - a state that cannot be asked is no deadlock
                continue
        return found

    def give(self, count: int) -> list[Numbered]:
        """Part with so many states of the level that is about to be expanded, spread evenly, packed."""
        total = len(self._ids)
        given = {place * total // count for place in range(count)}
        packed = [(self._ids[place], self._model.pack(self._states[place])) for place in sorted(given)]
        self._ids = [number for place, number in enumerate(self._ids) if place not in given]
        self._states = [state for place, state in enumerate(self._states) if place not in given]
        return packed

    def get(self, packed: Sequence[Numbered]) -> None:
        """Take over states of the level that is about to be expanded."""
        states = dict(zip(self._ids, self._states, strict=True))
        states.update((number, self._model.unpack(value)) for number, value in packed)
        self._ids = sorted(states)
        self._states = [states[number] for number in self._ids]
