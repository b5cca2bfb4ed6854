"""What is walked: each machine by name, its share of the events, and how bytes become a walk of it.

Two kinds: models of the checker, in which every rule is asked after every event, and the machines themselves beside the
naive oracles of the spec, which are told everything, legal or not.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final, NamedTuple, Protocol, TypeAlias

from tenure.core.errors import InvariantViolation
from tenure.model_checks.model import NOTHING, Marks, Model
from tenure.model_checks.walks import models, oracles
from tenure.model_checks.walks.codes import steps
from tenure.spec.blocks.goals import GoalBook
from tenure.spec.goals import Goals
from tenure.spec.rows.goals import RowGoalBook

OracleWalk: TypeAlias = Callable[[Iterable[int], Callable[[Any], None]], Counter[str]]


class Walker(Protocol):
    """Goes walks of one machine, and remembers what it saw."""

    @property
    def events(self) -> int:
        """Events told so far."""
        ...

    @property
    def states(self) -> int:
        """Distinct states among those that were come to; 0 where they are not told apart."""
        ...

    @property
    def seen(self) -> Marks:
        """Mechanisms met."""
        ...

    def walk(self, data: bytes) -> None:
        """Go the walk that these bytes stand for.

        Raises:
            InvariantViolation: a rule is broken, or the machine and its oracle differ.
        """
        ...


class ModelWalker:
    """Walks of one of the checker's models; implements `Walker`."""

    def __init__(self, model: Model[Any]) -> None:
        self._model = model
        self._known: set[bytes] = set()
        # Most steps see what others saw: equal sets are put together once, at the end.
        self._seen: set[Marks] = set()
        self._events = 0

    @property
    def events(self) -> int:
        """Events told so far."""
        return self._events

    @property
    def states(self) -> int:
        """Distinct states among those that events led to."""
        return len(self._known)

    @property
    def seen(self) -> Marks:
        """Rules put to the test, kinds of events, commands and errors, goals."""
        return NOTHING.union(*self._seen)

    def walk(self, data: bytes) -> None:
        """Walk, and begin anew for as long as there are bytes."""
        numbers = iter(data)
        went = -1
        while self._events > went:
            went = self._events
            for step in steps(self._model, numbers):
                self._events += 1
                self._seen.add(step.taken.marks)
                self._seen.add(step.judged.marks)
                if step.broken:
                    raise InvariantViolation(*step.broken[0])
                if not step.is_still:
                    self._known.add(self._model.encode(step.taken.state))


class OracleWalker:
    """Walks of a machine beside its oracle; implements `Walker`."""

    states = 0

    def __init__(self, walk: OracleWalk, goals: Goals[Any]) -> None:
        self._walk, self._goals = walk, goals
        self._told: set[str] = set()
        self._events = 0

    @property
    def events(self) -> int:
        """Events told so far, those refused with them."""
        return self._events

    @property
    def seen(self) -> Marks:
        """Kinds of events and errors, and goals."""
        return frozenset(self._told | {f"goal {name}" for name in self._goals.reached})

    def walk(self, data: bytes) -> None:
        """One history."""
        told = self._walk(data, self._goals.observe)
        self._events += sum(told.values())
        self._told |= {f"{'error' if name.endswith('Error') else 'event'} {name}" for name in told}


class Walked(NamedTuple):
    """How a machine is walked.

    Attributes:
        share: events of it among a thousand of all.
        length: bytes of one walk.
        batch: events after which it begins with nothing remembered.
        must_see: goals that a million events of all machines cannot miss.
    """

    share: int
    length: int
    batch: int
    must_see: Marks = NOTHING


class Machine(Protocol):
    """Something to be walked; can be sent to another process."""

    @property
    def name(self) -> str:
        """What it is called."""
        ...

    @property
    def how(self) -> Walked:
        """How much of it, in what portions."""
        ...

    def walker(self) -> Walker:
        """Somebody who goes walks of it, and saw nothing yet."""
        ...


@dataclass(frozen=True)
class ModelMachine:
    """A model of the checker; `make` builds it anew."""

    name: str
    how: Walked
    make: Callable[[], Model[Any]]

    def walker(self) -> Walker:
        """Somebody who goes walks of it, and saw nothing yet."""
        return ModelWalker(self.make())


@dataclass(frozen=True)
class OracleMachine:
    """A machine beside its oracle."""

    name: str
    how: Walked
    walk: OracleWalk
    goals: Callable[[], Goals[Any]]

    def walker(self) -> Walker:
        """Somebody who goes walks of it, and saw nothing yet."""
        return OracleWalker(self.walk, self.goals())


def _goals(text: str) -> Marks:
    return frozenset(f"goal {name}" for name in text.split())


_ORACLE_GOALS: Final = _goals(
    "same_step_replanned preserved flushed read_confirmed masked wholly_superseded write_fenced"
)
_ROW_GOALS: Final = _goals("same_step_replanned read_confirmed masked wholly_superseded flushed")
_FAULT_GOALS: Final = _goals("write_fenced rows_lost dropped identity_fits reset_after_failure")
_JOINED_GOALS: Final = _goals("prefix_shared removed_under_pressure fault no_capacity")
_BLOCK_GOALS: Final = _goals("duplicate_promoted evicted_silently full_hit inactive_revived exhausted")

MACHINES: Final[Mapping[str, Machine]] = MappingProxyType(
    {
        each.name: each
        for each in (
            ModelMachine("joined-scheduled", Walked(2, 1000, 1000, _JOINED_GOALS), models.joined_scheduled),
            ModelMachine("joined-computed", Walked(2, 1000, 1000, _JOINED_GOALS), models.joined_computed),
            ModelMachine("rows-faults", Walked(3, 1000, 1000, _FAULT_GOALS), models.rows_faults),
            ModelMachine("rows", Walked(4, 1000, 2000, _ROW_GOALS), models.rows),
            ModelMachine("rows-in-pieces", Walked(5, 1000, 2000), models.rows_in_pieces),
            OracleMachine("rows-oracle", Walked(40, 1500, 4000, _ORACLE_GOALS), oracles.walk_rows, RowGoalBook),
            OracleMachine("blocks-oracle", Walked(180, 1500, 7500, _BLOCK_GOALS), oracles.walk_blocks, GoalBook),
            ModelMachine("blocks", Walked(20, 4000, 8000, _BLOCK_GOALS), models.blocks),
            ModelMachine("blocks-crowded", Walked(40, 4000, 20000, _BLOCK_GOALS), models.blocks_crowded),
            ModelMachine("blocks-lawless", Walked(704, 4000, 28000), models.blocks_lawless),
        )
    }
)
"""Every machine by name, the slowest first. A thousandth of the events is what a share of 1 means."""
