"""States of the production row machine, each kept once, and what each event led to, worked out once.

Many moments of a run differ in where a device is and not in what the machine knows. So the machine's states are kept
by content, and a transition is made once for each state and event; the rules look at it once as well.

Numbers of commands say in which order devices were given work. They are renumbered after every transition, by a fixed
walk over what the machine may still name; a test shows that the machine commutes with it.
"""

from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import replace
from functools import cached_property
from hashlib import blake2b
from typing import Any, Final, NamedTuple

from pydantic import BaseModel

from tenure.core.config import RowConfig, RowPolicy
from tenure.core.errors import InvariantViolation, TenureError
from tenure.core.rows.answers import RowAnswer
from tenure.core.rows.commands import RowCommand
from tenure.core.rows.events import PolicyRegistered, RowEvent, WaitTimedOut
from tenure.core.rows.machine import transition
from tenure.core.rows.state import RowState
from tenure.core.rows.tables import CLONE_FREEZE, Tables, record_key
from tenure.core.rows.view import RowCounters, RowView
from tenure.model_checks.model import NOTHING, Broken, Marks
from tenure.model_checks.rows.antecedents import exercised, exercised_by_refusal
from tenure.model_checks.rows.cells import buffer_code
from tenure.model_checks.rows.indexes import wrong_indexes
from tenure.spec.rows.goals import GOALS
from tenure.spec.rows.memory import Buffer
from tenure.spec.rows.rule import RowObservation
from tenure.spec.rows.rules import (
    broken_refusal,
    broken_rules,
    broken_transition_rules,
    check_determinism,
)
from tenure.spec.rows.rules_waits import broken_timeout

TOLD_TWICE: Final = 16
"""From one state in this many every transition is made a second time (R17)."""


class Core:
    """One state of the machine.

    Attributes:
        broken: the rules that the state alone breaks.
        code: sixteen bytes that stand for it in encoded states.
    """

    def __init__(self, state: RowState, view: RowView, code: bytes) -> None:
        """Judge a state."""
        self.state: RowState = state
        self.view: RowView = view
        self.code: bytes = code
        self.broken = (*(Broken(*each) for each in broken_rules(view)), *wrong_indexes(state.tables))

    @cached_property
    def left_over(self) -> tuple[str, ...]:
        """What a machine at rest must not hold (R18)."""
        view = self.view
        held = {
            "live requests": view.live,
            "writes": view.writes,
            "writes behind a reset": view.fenced,
            "clones": view.clones,
            "charged bytes": view.charged,
            "pages": [holders for holders in view.pages if holders],
            "steps": view.steps,
            "steps behind a reset": view.fenced_steps,
            "reads": view.reads,
        }
        return tuple(f"{what}: {found}" for what, found in held.items() if found)

    @cached_property
    def free_pages(self) -> frozenset[int]:
        """The buffers of the pages that nobody holds."""
        free = (number for number, holders in enumerate(self.view.pages) if not holders)
        return frozenset(buffer_code(Buffer("page", number)) for number in free)


class CoreStep(NamedTuple):
    """What an event led to.

    Attributes:
        core: the next state; the same one where nothing changed or the event was refused.
        error: why it was refused.
        numbers: what the commands that the machine may still name are called from now on.
    """

    core: int
    answer: RowAnswer | None
    error: TenureError | None
    commands: tuple[RowCommand, ...]
    marks: Marks
    broken: tuple[Broken, ...]
    numbers: dict[int, int] | None


class Shorthand:
    """Sixteen bytes for each record, the same for equal ones; one that was seen is known by what it is."""

    def __init__(self) -> None:
        """None yet."""
        self._known: dict[int, tuple[object, bytes]] = {}
        self._codes: dict[Hashable, bytes] = {}
        self._contents: dict[bytes, Hashable] = {}

    def __call__(self, record: object) -> bytes:
        """What stands for a record, in any process."""
        known = self._known.get(id(record))
        if known is not None and known[0] is record:
            return known[1]
        code = self.digest(_settings(record) if isinstance(record, BaseModel) else record_key(record))
        self._known[id(record)] = record, code
        return code

    def digest(self, content: Hashable) -> bytes:
        """What stands for a content.

        Raises:
            AssertionError: two contents have one digest, so that the search would take one for the other.
        """
        known = self._codes.get(content)
        if known is not None:
            return known
        code = self._codes[content] = blake2b(repr(content).encode(), digest_size=16).digest()
        if self._contents.setdefault(code, content) != content:
            msg = "two states of the machine have one digest: the search would take them for one"
            raise AssertionError(msg)
        return code


def _settings(model: BaseModel) -> Hashable:
    """A configuration in a form whose text is the same in every process: sets are sorted."""
    return tuple((name, _sorted(value)) for name, value in sorted(vars(model).items()))


def _sorted(value: Any) -> Any:
    if not isinstance(value, frozenset):
        return value
    names: list[str] = sorted(map(str, value))  # pyright: ignore[reportUnknownArgumentType]
    return tuple(names)


class Cores:
    """All states of one search."""

    def __init__(
        self, config: RowConfig, policy: RowPolicy, *, copying: bool = True, goals: frozenset[str] | None = None
    ) -> None:
        """The first state is number 0: the policy is registered, nothing else happened.

        Args:
            config: the machine's.
            policy: which names are what.
            copying: whether a state copies itself before a transition, as is quick where thousands are kept, or keeps
                the difference, as in production; only then can a refused event change it.
            goals: the goals to look out for; None for all of them.
        """
        self.all: list[Core] = []
        self._by_content: dict[Hashable, int] = {}
        self._steps: dict[tuple[int, Hashable], CoreStep] = {}
        self._shorthand = Shorthand()
        self._copying = copying
        self._goals = [goal for goal in GOALS if goals is None or goal.name in goals]
        self.misses = 0
        # Where to note what the machine is told, while somebody wants to know.
        self.told: list[object] | None = None
        self._row_config = config
        self._begin(policy)

    def _begin(self, policy: RowPolicy) -> None:
        first = transition(RowState.initial(self._row_config, copying=self._copying), PolicyRegistered(policy)).state
        self.intern(renumbered(first, copying=self._copying)[0])

    def packed(self, number: int) -> object:
        """A state as another process can be sent it."""
        return self.all[number].state

    def unpacked(self, packed: Any) -> int:
        """The number of a state that another process packed."""
        return self.intern(packed)

    def intern(self, state: RowState) -> int:
        """The number of a state whose commands are renumbered."""
        return self._interned(self._key(state), lambda code: Core(state, state.view(), code))

    def _key(self, state: RowState) -> Hashable:
        return state.tables.key(self._shorthand)

    def _interned(self, key: Hashable, make: Callable[[bytes], Core]) -> int:
        number = self._by_content.get(key)
        if number is None:
            number = self._by_content[key] = len(self.all)
            self.all.append(make(self._shorthand.digest(key)))
        return number

    def step(self, core: int, event: RowEvent, token: Hashable = None) -> CoreStep:
        """What an event leads to; `token`, if given, stands for the event and is quick to look up."""
        if self.told is not None:
            self.told.append(event)
        key = core, event if token is None else token
        found = self._steps.get(key)
        if found is None:
            found = self._steps[key] = self._made(core, event)
        return found

    def _made(self, core: int, event: RowEvent) -> CoreStep:
        self.misses += 1
        record = self.all[core]
        try:
            after = transition(record.state, event)
        except TenureError as error:
            return self._refused(core, record, event, error)
        except Exception as error:
            return crashed(core, event, error)
        state, numbers = after.state, None
        if state is not record.state:
            # A state that copied itself and was just made shares its tables with nobody.
            state, numbers = renumbered(state, copying=self._copying, in_place=self._copying)
        key = None if numbers is None else self._key(state)
        view = record.view if key is None else self._view(state, key)
        seen = RowObservation(record.view, event, view, after.answer, after.commands)
        broken = [Broken(*each) for each in broken_transition_rules(seen)]
        marks = {f"event {type(event).__name__}", *(f"command {type(each).__name__}" for each in after.commands)}
        marks.update(exercised(seen))
        if record.code[0] % TOLD_TWICE == 0:
            marks.add("rule R17")
            broken += self._twice(record, event, seen)
        marks.update(f"goal {goal.name}" for goal in self._goals if goal.reached(seen))
        if numbers is None:
            return CoreStep(core, after.answer, None, after.commands, frozenset(marks), tuple(broken), None)
        number = self._interned(key, lambda code: Core(state, view, code))
        broken += self.all[number].broken
        return CoreStep(number, after.answer, None, after.commands, frozenset(marks), tuple(broken), numbers)

    def _view(self, state: RowState, key: Hashable) -> RowView:
        """What a state looks like: taken from a known state of the same content, but for what is only counted."""
        number = self._by_content.get(key)
        if number is None:
            return state.view()
        known, counters = self.all[number].view, RowCounters(**state.tables.counters)
        return known if known.counters == counters else replace(known, counters=counters)

    def _refused(self, core: int, record: Core, event: RowEvent, error: TenureError) -> CoreStep:
        """A raise changes nothing: a state that does not copy itself is looked at again."""
        broken: list[Broken] = []
        if not self._copying:
            broken += [Broken(*each) for each in broken_refusal(record.view, event, record.state.view())]
        if isinstance(event, WaitTimedOut) and (found := broken_timeout(record.view, event, error)) is not None:
            broken.append(Broken("R07", found))
        marks = {f"error {type(error).__name__}", *exercised_by_refusal(record.view, event, error)}
        return CoreStep(core, None, error, (), frozenset(marks), tuple(broken), None)

    @staticmethod
    def _twice(record: Core, event: RowEvent, first: RowObservation) -> list[Broken]:
        again = transition(record.state, event)
        second = RowObservation(record.view, event, again.state.view(), again.answer, again.commands)
        try:
            check_determinism(first, second)
        except TenureError as error:
            return [Broken("R17", str(error))]
        return []


def crashed(core: int, event: object, error: Exception) -> CoreStep:
    """The machine fell over: what it raised is no typed error (R15), or its own word that it is wrong."""
    if isinstance(error, InvariantViolation):
        broken = Broken(error.rule, str(error))
    else:
        broken = Broken(
            "R15", f"{type(event).__name__} raised {type(error).__name__}, which is no error of the cache: {error}"
        )
    return CoreStep(core, None, None, (), NOTHING, (broken,), None)


def renumbered(state: RowState, *, copying: bool = True, in_place: bool = False) -> tuple[RowState, dict[int, int]]:
    """The state with its commands numbered 1, 2, ... by a fixed walk, and the new number of each that may be named.

    The machine compares these numbers only to list what a command is behind in order, so that the order in which a
    device was given work tells states apart no more than the edges that follow from it.
    """
    tables = state.tables
    named = list(dict.fromkeys(_named(tables)))
    numbers = {old: new for new, old in enumerate(named, 1)}
    if named == [*range(1, tables.next_command)]:
        return state, numbers
    return renamed(state, numbers, copying=copying, in_place=in_place), numbers


def renamed(state: RowState, numbers: Mapping[int, int], *, copying: bool = True, in_place: bool = False) -> RowState:
    """The state with other numbers for its commands; the next one follows the largest.

    `in_place` makes it of the tables of `state`, which holds nothing from then on.
    """
    twin = state.tables if in_place else state.tables.clone()
    twin.next_command = max(numbers.values(), default=0) + 1
    for number, write in twin.writes.items():
        if write.freeze and (freeze := numbers[write.freeze]) != write.freeze:
            twin.writes[number] = write._replace(freeze=freeze)
    for number, read in twin.reads.items():
        if read.command or read.preserves:
            preserves, command = tuple(numbers[each] for each in read.preserves), numbers.get(read.command, 0)
            # What keeps its numbers stays the record that it was, which is known already.
            if (preserves, command) != (read.preserves, read.command):
                twin.reads[number] = read._replace(preserves=preserves, command=command)
    for number, step in twin.steps.items():
        if step.saved is not None and (freeze := numbers[step.saved.freeze]) != step.saved.freeze:
            twin.steps[number] = step._replace(saved=step.saved._replace(freeze=freeze))
    column = twin.clones.column(CLONE_FREEZE)
    column[:] = [numbers.get(int(each), 0) for each in column]
    return RowState.over(twin, copying=copying)


def _named(tables: Tables) -> Iterator[int]:
    """Every command that the machine may still name, by a fixed walk: writes, clones, steps, reads."""
    for number in sorted(tables.writes):
        if freeze := tables.writes[number].freeze:
            yield freeze
    yield from (each for each in tables.clones.column(CLONE_FREEZE).tolist() if each)
    for number in sorted(tables.steps):
        if (saved := tables.steps[number].saved) is not None:
            yield saved.freeze
    for number in sorted(tables.reads):
        read = tables.reads[number]
        yield from read.preserves
        if read.command:
            yield read.command
