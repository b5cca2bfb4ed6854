"""What searches hand back: plain values, frozen, and the same as JSON."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from tenure.model_checks.explorer.graph import Graph
from tenure.model_checks.explorer.verdicts import Verdict
from tenure.model_checks.model import Event, ScopeKind

BrokenBy: TypeAlias = Literal["transition", "state", "deadlock", "progress"]
Json: TypeAlias = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Counterexample:
    """How a rule is broken: replay `events` from the given initial state.

    Attributes:
        rule: the broken rule.
        found: what was found, value first.
        by: whether the last transition broke it, the last state, that nothing can happen there, or that something
            owed is not paid all the way around `loop`.
        initial: the place of the first state among the initial ones.
        events: the stem; as short as can be.
        loop: for progress: what may happen for ever after; empty if that is nothing at all.
    """

    rule: str
    found: str
    by: BrokenBy
    initial: int
    events: tuple[Event, ...]
    loop: tuple[Event, ...] = ()

    @property
    def depth(self) -> int:
        """How many events lead there."""
        return len(self.events)

    def to_json(self) -> Json:
        """Plain values."""
        return {
            "rule": self.rule,
            "found": self.found,
            "by": self.by,
            "initial": self.initial,
            "depth": self.depth,
            "events": [list(event) for event in self.events],
            "loop": [list(event) for event in self.loop],
        }


@dataclass(frozen=True, slots=True)
class MarkSeen:
    """A mark: how often it was seen, and after how many events first."""

    mark: str
    count: int
    depth: int

    def to_json(self) -> Json:
        """Plain values."""
        return {"mark": self.mark, "count": self.count, "depth": self.depth}


@dataclass(frozen=True, slots=True)
class EventCount:
    """How many transitions an actor made by one kind of event."""

    actor: str
    kind: str
    count: int

    def to_json(self) -> Json:
        """Plain values."""
        return {"actor": self.actor, "kind": self.kind, "count": self.count}


@dataclass(frozen=True, slots=True)
class Snapshot:
    """How far a search has come.

    Units: `memory_bytes` is resident memory, summed over the processes of the search.
    """

    name: str
    distinct: int
    transitions: int
    frontier: int
    depth: int
    seconds: float
    memory_bytes: int

    @property
    def states_per_second(self) -> float:
        """Distinct states per second on the wall."""
        return self.distinct / self.seconds if self.seconds > 0 else 0.0


@dataclass(frozen=True, slots=True)
class Search:
    """What a search found, and how much it covered.

    Attributes:
        distinct: states, no two of which are the same.
        transitions: events taken from them.
        depth: how many events lead to the states farthest away.
        per_depth: how many states were first met after 0, 1, 2.. events.
        degree_min: the fewest events possible in a state that was expanded.
        degree_mean: transitions per state that was expanded.
        degree_max: the most events possible in a state.
        finished: whether every state was expanded and nothing was cut.
        cut: why not, in words; empty if it was.
        visited: `exact`, or `compact`: states told apart by 64 bits.
        collision: the chance that `compact` took two states for one.
        workers: processes that expanded states.
        resumed: whether a checkpoint was the beginning.
        seconds: time on the wall, that of the runs before a checkpoint included.
        cpu_seconds: processor time of this run, all processes together.
        memory_peak_bytes: the most resident memory seen, summed over the processes.
        memory_grown_bytes: by how much that is more than at the beginning.
        marks: what was seen, in order of the alphabet.
        events: the table of events, likewise.
        broken: of every rule broken at the least depth the first counterexample, the least of all first.
        unsound: what shows that the model does not always say the same.
        graph: states and transitions, if they were to be kept and the search finished.
    """

    distinct: int
    transitions: int
    depth: int
    per_depth: tuple[int, ...]
    degree_min: int
    degree_mean: float
    degree_max: int
    finished: bool
    cut: str
    visited: str
    collision: float
    workers: int
    resumed: bool
    seconds: float
    cpu_seconds: float
    memory_peak_bytes: int
    memory_grown_bytes: int
    marks: tuple[MarkSeen, ...]
    events: tuple[EventCount, ...]
    broken: tuple[Counterexample, ...]
    unsound: tuple[str, ...]
    graph: Graph | None = field(default=None, repr=False, compare=False)

    @property
    def states_per_second(self) -> float:
        """Distinct states per second on the wall."""
        return self.distinct / self.seconds if self.seconds > 0 else 0.0

    @property
    def states_per_core_second(self) -> float:
        """Distinct states per second of processor time."""
        return self.distinct / self.cpu_seconds if self.cpu_seconds > 0 else 0.0

    @property
    def bytes_per_state(self) -> float:
        """Memory grown per distinct state; includes the frontier at its widest."""
        return self.memory_grown_bytes / self.distinct if self.distinct else 0.0

    def mark_names(self) -> frozenset[str]:
        """The marks that were seen."""
        return frozenset(seen.mark for seen in self.marks)

    def counts(self) -> tuple[object, ...]:
        """What is the same in every run, however many processes, and whether resumed or not."""
        return (
            self.distinct,
            self.transitions,
            self.per_depth,
            self.degree_min,
            self.degree_max,
            self.finished,
            self.marks,
            self.events,
            self.broken,
        )

    def to_json(self) -> Json:
        """Plain values; the graph is left out."""
        return {
            "distinct": self.distinct,
            "transitions": self.transitions,
            "depth": self.depth,
            "per_depth": list(self.per_depth),
            "degree": {"min": self.degree_min, "mean": self.degree_mean, "max": self.degree_max},
            "finished": self.finished,
            "cut": self.cut,
            "visited": self.visited,
            "collision": self.collision,
            "workers": self.workers,
            "resumed": self.resumed,
            "seconds": self.seconds,
            "cpu_seconds": self.cpu_seconds,
            "states_per_second": self.states_per_second,
            "states_per_core_second": self.states_per_core_second,
            "memory_peak_bytes": self.memory_peak_bytes,
            "bytes_per_state": self.bytes_per_state,
            "marks": [seen.to_json() for seen in self.marks],
            "events": [count.to_json() for count in self.events],
            "broken": [example.to_json() for example in self.broken],
            "unsound": list(self.unsound),
        }


@dataclass(frozen=True, slots=True)
class ProgressFound:
    """What was found out about progress.

    Attributes:
        owed: how many different things are owed somewhere.
        classes: the actors that are bound to act.
        broken: of every rule about progress that does not hold the counterexample with the shortest stem.
    """

    owed: int
    classes: tuple[str, ...]
    broken: tuple[Counterexample, ...]

    def to_json(self) -> Json:
        """Plain values."""
        return {
            "owed": self.owed,
            "classes": list(self.classes),
            "broken": [example.to_json() for example in self.broken],
        }


@dataclass(frozen=True, slots=True)
class ScopeResult:
    """The verdict on one scope, why it is that one, and all that was counted.

    Attributes:
        name: the scope's name.
        kind: `free` or `scenario`.
        sets: the named sets it belongs to, in order of the alphabet.
        covers: its bounds in words.
        source: where it comes from.
        assumes: what it takes for granted of the environment.
        expects: the marks that had to be seen, in order of the alphabet.
        verdict: the verdict.
        reasons: why it is not PROVED; empty if it is.
        missing: expected marks that were not seen.
        counterexamples: how rules are broken; the first is the one to look at.
        search: what was covered; None if there was no search that ended.
        progress: what was found about progress; None if that was not looked at.
        notes: what else the reader should know.
    """

    name: str
    kind: ScopeKind
    sets: tuple[str, ...]
    covers: Mapping[str, int | str]
    source: str
    assumes: str
    expects: tuple[str, ...]
    verdict: Verdict
    reasons: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    counterexamples: tuple[Counterexample, ...] = ()
    search: Search | None = None
    progress: ProgressFound | None = None
    notes: tuple[str, ...] = ()

    @property
    def counterexample(self) -> Counterexample | None:
        """The one to look at; None if no rule is broken."""
        return self.counterexamples[0] if self.counterexamples else None

    def to_json(self) -> Json:
        """Plain values."""
        return {
            "name": self.name,
            "kind": self.kind,
            "sets": list(self.sets),
            "covers": dict(self.covers),
            "source": self.source,
            "assumes": self.assumes,
            "expects": list(self.expects),
            "verdict": self.verdict.value,
            "exit_code": self.verdict.exit_code,
            "reasons": list(self.reasons),
            "missing": list(self.missing),
            "counterexamples": [example.to_json() for example in self.counterexamples],
            "search": None if self.search is None else self.search.to_json(),
            "progress": None if self.progress is None else self.progress.to_json(),
            "notes": list(self.notes),
        }


@dataclass(frozen=True, slots=True)
class SetResult:
    """The verdict on several scopes together.

    Attributes:
        verdict: the worst of them, or BAD MODEL if something claimed was seen in none.
        missing: what was claimed and not seen.
        distinct: states of all scopes together.
        seconds: time on the wall, added up.
    """

    verdict: Verdict
    missing: tuple[str, ...]
    distinct: int
    seconds: float

    def to_json(self) -> Json:
        """Plain values."""
        return {
            "verdict": self.verdict.value,
            "exit_code": self.verdict.exit_code,
            "missing": list(self.missing),
            "distinct": self.distinct,
            "seconds": self.seconds,
        }
