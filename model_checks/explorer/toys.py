"""Small machines with answers that are known beforehand: examples of models, and how the explorer itself is checked.

`Slots` has a closed form for its states; `Counting` breaks its rule at a known depth; `Ring` and `Dining` are about
progress.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import comb, factorial
from typing import Generic, TypeVar

from tenure.model_checks.model import NOTHING, Broken, Event, Judged, Marks, Model, Owed, Taken

S = TypeVar("S")


class Quiet(Generic[S]):
    """What a model says that has no rules, rests anywhere, owes nothing, and whose states are plain values."""

    def judge(self, state: S) -> Judged:
        """Nothing to judge."""
        return Judged()

    def is_quiescent(self, state: S) -> bool:
        """It may rest anywhere."""
        return True

    def owed(self, state: S) -> frozenset[Owed]:
        """Nothing is owed."""
        return frozenset()

    def fairness(self, state: S, event: Event) -> str | None:
        """Nobody is bound to act."""
        return None

    def describe(self, event: Event) -> str:
        """The parts of the event, with spaces."""
        return " ".join(map(str, event))

    def pack(self, state: S) -> object:
        """The state is a plain value."""
        return state

    def unpack(self, packed: object) -> S:
        """The state is a plain value."""
        return packed  # type: ignore[return-value]


class Slots(Quiet[bytes], Model[bytes]):
    """Requests that are admitted to places, fill the pages there, and are consumed or aborted.

    A place is free, or has a request, a phase, and pages of which each is idle, in flight or full. While it runs, idle
    pages are issued and those in flight complete; when all are full it is ready, then consumed, then released. As long
    as it runs it may be aborted: then what is in flight completes, nothing more is issued, and when nothing is in
    flight the place is drained. So an occupied place has 2 * 3**pages + 2 states of its own, all of them reachable
    whatever the others do.

    A state is one byte for a place's request (0: free), one for its phase, one for each of its pages.
    """

    RUNNING, DRAINING, READY, CONSUMED = range(4)
    IDLE, FLYING, FULL = range(3)

    def __init__(self, requests: int, slots: int, pages: int) -> None:
        self.requests = requests
        self.slots = slots
        self.pages = pages
        self._width = 2 + pages
        self._free = bytes(self._width)

    def distinct(self) -> int:
        """How many states there are, in closed form."""
        local = 2 * 3**self.pages + 2
        return sum(
            comb(self.slots, taken) * factorial(self.requests) // factorial(self.requests - taken) * local**taken
            for taken in range(min(self.slots, self.requests) + 1)
        )

    def depth(self) -> int:
        """How many events lead to the state farthest away."""
        return min(self.slots, self.requests) * (2 * self.pages + 3)

    def initial(self) -> Iterable[bytes]:
        """All places are free."""
        return (self._free * self.slots,)

    def events(self, state: bytes) -> Sequence[Event]:
        """Place by place."""
        width, pages = self._width, self.pages
        found: list[Event] = []
        present = {state[at] for at in range(0, len(state), width)}
        absent = [request for request in range(1, self.requests + 1) if request not in present]
        for slot in range(self.slots):
            at = slot * width
            if not state[at]:
                found += [("engine", "admit", slot, request) for request in absent]
                continue
            phase, filled = state[at + 1], state[at + 2 : at + 2 + pages]
            if phase == self.RUNNING:
                found += [("engine", "issue", slot, page) for page in range(pages) if filled[page] == self.IDLE]
                found.append(("engine", "abort", slot))
                if filled.count(self.FULL) == pages:
                    found.append(("engine", "ready", slot))
            if phase <= self.DRAINING:
                found += [("device", "complete", slot, page) for page in range(pages) if filled[page] == self.FLYING]
            if phase == self.DRAINING and self.FLYING not in filled:
                found.append(("engine", "drain", slot))
            if phase == self.READY:
                found.append(("builder", "consume", slot))
            if phase == self.CONSUMED:
                found.append(("engine", "release", slot))
        return found

    def take(self, state: bytes, event: Event) -> Taken:
        """What the event leads to."""
        kind, slot = event[1], event[2]
        assert isinstance(slot, int)
        at = slot * self._width
        if kind in ("drain", "release"):
            return Taken(state[:at] + self._free + state[at + self._width :])
        after = bytearray(state)
        detail = event[3] if len(event) > 3 else 0
        assert isinstance(detail, int)
        match kind:
            case "admit":
                after[at] = detail
            case "issue":
                after[at + 2 + detail] = self.FLYING
            case "complete":
                after[at + 2 + detail] = self.FULL
            case "abort":
                after[at + 1] = self.DRAINING
            case "ready":
                # Free of residue: what the pages were tells nothing any more.
                after[at + 1 : at + self._width] = bytes((self.READY, *bytes(self.pages)))
            case _:
                after[at + 1] = self.CONSUMED
        return Taken(bytes(after))

    def encode(self, state: bytes) -> bytes:
        """The state is its own form."""
        return state


class Counting(Quiet[int], Model[int]):
    """A number that grows by one or by two up to a limit, and must not be `wrong`.

    The shortest way there takes `ceil(wrong / 2)` events. Marks: `goal even` in even states, `event Grown` on the way.
    """

    EVEN: Marks = frozenset({"goal even"})
    GROWN: Marks = frozenset({"event Grown"})

    def __init__(self, limit: int, wrong: int | None = None) -> None:
        self.limit = limit
        self.wrong = wrong

    def initial(self) -> Iterable[int]:
        """Zero."""
        return (0,)

    def events(self, state: int) -> Sequence[Event]:
        """One or two more."""
        return [("counter", "add", more) for more in (1, 2) if state + more <= self.limit]

    def take(self, state: int, event: Event) -> Taken:
        """So much more."""
        more = event[2]
        assert isinstance(more, int)
        return Taken(state + more, self.GROWN)

    def encode(self, state: int) -> bytes:
        """Eight bytes."""
        return state.to_bytes(8, "little")

    def judge(self, state: int) -> Judged:
        """It must not be the wrong number."""
        marks = self.EVEN if state % 2 == 0 else NOTHING
        if state == self.wrong:
            return Judged(marks, (Broken("N01", f"{state} was reached, and must not be"),))
        return Judged(marks)

    def is_quiescent(self, state: int) -> bool:
        """Only the limit is a place to rest."""
        return state == self.limit


@dataclass(frozen=True, slots=True)
class RingState:
    """Who has the token (-1: it is lost), what it is used for, and who wants it."""

    token: int
    is_used: bool
    wanting: tuple[bool, ...]


class Ring(Quiet[RingState], Model[RingState]):
    """Stations that pass a token around; who wants and has it uses it, then passes it on.

    Whoever wants gets it sooner or later, as long as every station is bound to act, passes the token on after every
    use, and the token is never lost.
    """

    def __init__(self, stations: int, *, is_bound: bool = True, may_lose: bool = False, may_hog: bool = False) -> None:
        """A ring.

        Args:
            stations: how many.
            is_bound: whether stations are bound to pass the token; if not, one may sit on it.
            may_lose: whether the token may be lost, after which no station can act.
            may_hog: whether a station that has used it may use it again before it is passed on.
        """
        self.stations = stations
        self.is_bound = is_bound
        self.may_lose = may_lose
        self.may_hog = may_hog

    def initial(self) -> Iterable[RingState]:
        """The first has it, nobody wants it."""
        return (RingState(0, False, (False,) * self.stations),)

    def events(self, state: RingState) -> Sequence[Event]:
        """Station by station."""
        found: list[Event] = [("user", "want", i) for i, wants in enumerate(state.wanting) if not wants]
        if state.token < 0:
            return found
        if state.is_used:
            found.append((f"station {state.token}", "done", state.token))
        elif state.wanting[state.token]:
            found.append((f"station {state.token}", "use", state.token))
        else:
            found.append((f"station {state.token}", "pass", state.token))
            if self.may_lose:
                found.append(("wire", "lose", state.token))
        return found

    def take(self, state: RingState, event: Event) -> Taken:
        """What the event leads to."""
        place = event[2]
        assert isinstance(place, int)
        wanting = list(state.wanting)
        token, is_used = state.token, state.is_used
        match event[1]:
            case "want":
                wanting[place] = True
            case "use":
                is_used = True
            case "done":
                is_used = False
                wanting[place] = False
                if not self.may_hog:
                    token = (token + 1) % self.stations
            case "pass":
                token = (token + 1) % self.stations
            case _:
                token = -1
        return Taken(RingState(token, is_used, tuple(wanting)))

    def encode(self, state: RingState) -> bytes:
        """A byte for everything."""
        return bytes((state.token + 1, state.is_used, *state.wanting))

    def owed(self, state: RingState) -> frozenset[Owed]:
        """Whoever wants is to have it."""
        return frozenset(Owed("R11", f"station {i} gets the token") for i, wants in enumerate(state.wanting) if wants)

    def fairness(self, state: RingState, event: Event) -> str | None:
        """Stations are bound to act; users and wires are not."""
        return str(event[0]) if self.is_bound and event[0] not in ("user", "wire") else None


class Dining(Quiet[bytes], Model[bytes]):
    """Philosophers around a table, each with a fork to the left that the neighbour shares.

    Each takes the left fork, then the right one, eats, and puts both down: all can hold one and wait for ever, after
    as many events as there are philosophers. If the last one takes the right fork first, nobody waits for ever in that
    way; but one may still starve, because a fork that is free now and then is owed to nobody.

    A state has one byte for each: how many forks are held.
    """

    def __init__(self, philosophers: int, *, is_ordered: bool) -> None:
        self.philosophers = philosophers
        self.is_ordered = is_ordered

    def initial(self) -> Iterable[bytes]:
        """Nobody holds a fork."""
        return (bytes(self.philosophers),)

    def _forks(self, who: int) -> tuple[int, int]:
        left, right = who, (who + 1) % self.philosophers
        return (right, left) if self.is_ordered and who == self.philosophers - 1 else (left, right)

    def events(self, state: bytes) -> Sequence[Event]:
        """Philosopher by philosopher."""
        held = {fork for who, count in enumerate(state) for fork in self._forks(who)[:count]}
        found: list[Event] = []
        for who, count in enumerate(state):
            if count == 2:
                found.append((f"philosopher {who}", "eat", who))
            elif self._forks(who)[count] not in held:
                found.append((f"philosopher {who}", "take", who))
        return found

    def take(self, state: bytes, event: Event) -> Taken:
        """What the event leads to."""
        who = event[2]
        assert isinstance(who, int)
        after = bytearray(state)
        after[who] = 0 if event[1] == "eat" else after[who] + 1
        return Taken(bytes(after))

    def encode(self, state: bytes) -> bytes:
        """The state is its own form."""
        return state

    def is_quiescent(self, state: bytes) -> bool:
        """They dine for ever."""
        return False

    def owed(self, state: bytes) -> frozenset[Owed]:
        """Whoever holds one fork is to eat some time."""
        return frozenset(Owed("R11", f"philosopher {who} eats") for who, count in enumerate(state) if count == 1)

    def fairness(self, state: bytes, event: Event) -> str | None:
        """Everybody goes on."""
        return str(event[0])
