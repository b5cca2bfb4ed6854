"""Checks of a cache that is told events of the row machine, in lock-step with the machine itself."""

from collections.abc import Iterable
from typing import Final

from tenure.backends.conformance.cache_registry import CacheCapability, CacheRig, cache_check
from tenure.backends.conformance.cache_subjects import MachineSubject, Reply, shown
from tenure.backends.conformance.differences import difference
from tenure.backends.conformance.refusals import require_refusal
from tenure.backends.conformance.report import Coverage
from tenure.backends.conformance.rig import CheckFailedError
from tenure.backends.conformance.traces import Trace, TraceScope, edge_traces, pinned_traces
from tenure.core.config import RowConfig, RowPolicy
from tenure.core.errors import TenureError
from tenure.core.rows.events import PolicyRegistered, RowEvent
from tenure.core.rows.machine import transition
from tenure.core.rows.state import RowState

WALKS: Final = 60
STRAY_ONE_IN: Final = 5
"""Of a walk so many events are any event of its scope, whether it may come or not."""
STRAYS: Final = "strays"
"""How scopes end in which everything is told that nobody may tell."""


class Pair:
    """The machine, and a subject that is told the same."""

    def __init__(self, subject: MachineSubject, config: RowConfig, policy: RowPolicy) -> None:
        """Both begin."""
        self._subject = subject
        self._state = transition(RowState.initial(config), PolicyRegistered(policy)).state
        subject.begin(config, policy)

    def tell(self, event: RowEvent, where: str, refused: str | None = None) -> bool:
        """Tell both; whether the machine took it.

        Args:
            event: to tell.
            where: it stands.
            refused: by which error a trace says the machine refuses it, empty if it takes it; None where no trace says.

        Raises:
            CheckFailedError: they do not say the same, or the machine not what the trace says.
        """
        expected = self._expected(event)
        try:
            if refused is not None:
                require_refusal(refused, expected.refused)
            found = self._subject.tell(event)
            _compare(expected, found)
        except CheckFailedError as error:
            raise CheckFailedError(f"{where} ({event}): {error}") from None
        return not expected.refused

    def _expected(self, event: RowEvent) -> Reply:
        try:
            self._state, answer, commands = transition(self._state, event)
        except TenureError as error:
            return Reply(None, type(error).__name__, ())
        return Reply(answer, "", commands)


def _compare(expected: Reply, found: Reply) -> None:
    if expected.refused != found.refused:
        said, should = found.refused or found.answer, expected.refused or expected.answer
        verb = "refuses with" if found.refused else "answers"
        raise CheckFailedError(f"it {verb} {said}; expected {'the refusal ' if expected.refused else ''}{should}")
    if expected.answer != found.answer:
        if type(expected.answer) is not type(found.answer):
            raise CheckFailedError(f"it answers {found.answer}, and should {expected.answer}")
        raise CheckFailedError(f"it answers {type(found.answer).__name__}; {difference(found.answer, expected.answer)}")
    said, should = shown(found.commands), shown(expected.commands)
    if said != should:
        raise CheckFailedError(f"it commands {said}, and should {should}")
    for command, right in zip(found.commands, expected.commands, strict=True):
        if command != right:
            raise CheckFailedError(f"it commands {said}; {difference(command, right)}")


def _go_through(subject: MachineSubject, scope: TraceScope, trace: Trace) -> set[tuple[str, int]]:
    """Tell all of a trace; the edges that are met."""
    pair = Pair(subject, scope.config, scope.policy)
    met: set[tuple[str, int]] = set()
    for place, (_, event, refused) in enumerate(trace.told):
        pair.tell(event, f"{scope.name}, trace {trace.name}, event {place + 1} of {len(trace.told)}", refused)
        if (edge := trace.met_at(place)) is not None:
            met.add((scope.name, edge))
    return met


def _cover(rig: CacheRig, scopes: Iterable[TraceScope]) -> str:
    """Go through traces that take every edge."""
    scopes = tuple(scopes)
    num_open = sum(scope.num_edges for scope in scopes)
    met: set[tuple[str, int]] = set()
    traces = 0
    with rig.machine() as subject:
        for scope in scopes:
            for trace in scope.traces:
                rig.coverage = Coverage(len(met), num_open)
                met |= _go_through(subject, scope, trace)
                traces += 1
    rig.coverage = Coverage(len(met), num_open)
    if len(met) < num_open:
        raise CheckFailedError(f"{len(met)} of {num_open} open edges were met")
    return f"{traces} traces"


@cache_check(
    "M1.all-edges",
    "R17: in every state of small scopes, the same events have the same answers and commands",
    CacheCapability.MACHINE,
)
def all_edges(rig: CacheRig) -> str:
    """Everything that a machine can be told."""
    return _cover(rig, [each for each in edge_traces() if not each.name.endswith(STRAYS)])


@cache_check(
    "M2.refusals", "R15: what nobody may tell is refused by name, and changes nothing", CacheCapability.MACHINE
)
def refusals(rig: CacheRig) -> str:
    """In every state of a small scope everything that breaks the contract; what comes behind it is as ever."""
    return _cover(rig, [each for each in edge_traces() if each.name.endswith(STRAYS)])


@cache_check("M3.pinned", "R17: traces that tell planted faults from the machine find none", CacheCapability.MACHINE)
def pinned(rig: CacheRig) -> str:
    """The message names the fault whose trace it is."""
    traces = 0
    with rig.machine() as subject:
        for scope in pinned_traces():
            for trace in scope.traces:
                try:
                    _go_through(subject, scope, trace)
                except CheckFailedError as error:
                    raise CheckFailedError(f"{error} (it is the trace of: {trace.why})") from None
                traces += 1
    return f"{traces} traces"


@cache_check("M4.walks", "R17: the same on long walks, wherever they stray", CacheCapability.MACHINE)
def walks(rig: CacheRig) -> str:
    """Traces with events in between that may come from anywhere."""
    scopes = edge_traces()
    taken = told = 0
    with rig.machine() as subject:
        for number in range(WALKS):
            scope = scopes[int(rig.random.integers(len(scopes)))]
            events = list({id(each.event): each.event for trace in scope.traces for each in trace.told}.values())
            trace = scope.traces[int(rig.random.integers(len(scope.traces)))]
            pair = Pair(subject, scope.config, scope.policy)
            for each in trace.told:
                walk = [each.event]
                if not rig.random.integers(STRAY_ONE_IN):
                    walk.insert(0, events[int(rig.random.integers(len(events)))])
                for event in walk:
                    told += 1
                    taken += pair.tell(event, f"walk {number} in {scope.name}, event {told}")
    return f"{told} events, {taken} of them taken"


@cache_check("M5.begins-anew", "R17: a cache begins with nothing of the one before", CacheCapability.MACHINE)
def begins_anew(rig: CacheRig) -> str:
    """Broken off in the midst of everything, and begun again."""
    scope = edge_traces()[0]
    longest = max(scope.traces, key=lambda each: len(each.told))
    with rig.machine() as subject:
        for length in range(1, len(longest.told) + 1):
            _go_through(subject, scope, longest._replace(told=longest.told[:length]))
    return f"{len(longest.told)} times"
