"""Scripted histories of the row machine: every observation judged by every rule and by a ledger, and kept."""

from collections.abc import Mapping
from typing import Any, TypeVar

from tenure.core.config import RowConfig, RowPolicy
from tenure.core.errors import TenureError
from tenure.core.rows.answers import RowAnswer, StepSaved, Waiting
from tenure.core.rows.commands import RowCommand
from tenure.core.rows.events import (
    Aborted,
    BlockId,
    ContentIdentity,
    CopyBegan,
    CopyCompleted,
    Extended,
    Finished,
    GatherBegan,
    GatherCompleted,
    LifeCycle,
    PolicyRegistered,
    ReadId,
    RequestId,
    RowEvent,
    SavePublished,
    SaveRequested,
    ScatterCompleted,
    Slot,
    Started,
    StepStarted,
    WriteId,
    WriteLayout,
)
from tenure.core.rows.machine import transition
from tenure.core.rows.names import HIDDEN, NameId, Output
from tenure.core.rows.state import RowState
from tenure.core.rows.view import RowView
from tenure.spec.rows.rule import RowObservation
from tenure.spec.rows.rules import check_observation, check_refusal
from tenure.spec.rows.rules_ledger import Ledger

A = TypeVar("A", bound=RowAnswer)
E = TypeVar("E", bound=TenureError)

POLICY = RowPolicy(immediate=frozenset({"m"}), deferred=frozenset({"c"}), leftovers=frozenset({"log"}))
ALL: tuple[NameId, ...] = (HIDDEN, "m", "c")
"""What a step emits if nothing else is said: hidden, one immediate and one deferred name."""


def machine(num_blocks: int = 6, **options: Any) -> RowConfig:
    """Blocks of two slots, four pages."""
    settings: dict[str, Any] = {"block_size": 2, "page_rows_max": 8, "pages": 4, **options}
    return RowConfig(num_blocks=num_blocks, **settings)


def arrives(
    request: RequestId,
    scheduled: int,
    hit: int = 0,
    blocks: tuple[BlockId, ...] = (),
    expects: tuple[ContentIdentity, ...] = (),
    computes: tuple[tuple[BlockId, ContentIdentity], ...] = (),
) -> Started:
    """An arrival with one KV group."""
    return Started(request, scheduled, hit, (blocks,) if blocks else (), expects, computes)


def goes_on(**scheduled: int) -> Extended:
    """Live requests go on, each with so many tokens."""
    return Extended(tuple(scheduled), [*scheduled.values()])  # type: ignore[arg-type]


class RowHistory:
    """One row machine and everything it was told.

    Attributes:
        view: the newest state.
        observations: what every accepted event did.
    """

    def __init__(self, config: RowConfig | None = None, policy: RowPolicy = POLICY) -> None:
        self._state = RowState.initial(config or machine())
        self._ledger = Ledger()
        self.ledgers = [self._ledger.clone()]
        self.observations: list[RowObservation] = []
        self.tell(PolicyRegistered(policy))

    @property
    def view(self) -> RowView:
        return self._state.view()

    @property
    def last(self) -> RowObservation:
        return self.observations[-1]

    @property
    def ledger(self) -> Ledger:
        """The judge as it was before the newest observation."""
        return self.ledgers[-2].clone()

    def tell(self, event: RowEvent, answer: type[A] | None = None) -> A:
        """Tell an event that is taken; its answer must be of the type given."""
        before = self.view
        self._state, found, commands = transition(self._state, event)
        seen = RowObservation(before, event, self.view, found, commands)
        self.observations.append(seen)
        check_observation(seen)
        self._ledger.check(seen)
        self.ledgers.append(self._ledger.clone())
        assert answer is None or isinstance(found, answer)
        return found  # type: ignore[return-value]

    def refused(self, event: RowEvent, error: type[E]) -> E:
        """Tell an event that must be refused."""
        before = self.view
        try:
            transition(self._state, event)
        except error as refusal:
            check_refusal(before, event, self.view)
            return refusal
        msg = f"{event} was taken"
        raise AssertionError(msg)

    def commanded(self) -> tuple[RowCommand, ...]:
        """What the newest event commanded."""
        return self.last.commands

    # --- Calls ------------------------------------------------------------------------------------------------

    def start(self, *changes: LifeCycle) -> None:
        """A scheduler output."""
        self.tell(StepStarted(changes))

    def request_save(self, rows: Mapping[RequestId, tuple[Slot, ...]], names: tuple[NameId, ...] = ALL) -> RowAnswer:
        """Ask to save rows of these names; a list of log lines is always emitted too."""
        slots = [slot for each in rows.values() for slot in each]
        layout = WriteLayout(tuple(rows), [len(each) for each in rows.values()], slots)  # type: ignore[arg-type]
        outputs = tuple(Output(name, (len(slots), 2), "float32") for name in names)
        return self.tell(SaveRequested(layout, (*outputs, Output("log"))))

    def save(self, rows: Mapping[RequestId, tuple[Slot, ...]], names: tuple[NameId, ...] = ALL) -> WriteId:
        """Save the pending step; its immediate write."""
        answer = self.request_save(rows, names)
        assert not isinstance(answer, Waiting), answer
        pending = self.view.pending
        assert pending is not None
        return self.tell(SavePublished(pending), StepSaved).write

    def copy(self, write: WriteId) -> None:
        """The copy of a write runs and ends."""
        self.tell(CopyBegan(write))
        self.tell(CopyCompleted(write))

    def land(self, write: WriteId) -> None:
        """A write moves all the way to the pool."""
        self.copy(write)
        if write in self.view.writes and self.view.writes[write].phase.name == "HOST_READY":
            self.tell(ScatterCompleted(write))

    def gather(self, read: ReadId) -> None:
        """A read runs and ends."""
        self.tell(GatherBegan(read))
        self.tell(GatherCompleted(read))

    # --- Longer stretches -------------------------------------------------------------------------------------

    def step(self, request: RequestId, slots: tuple[Slot, ...], names: tuple[NameId, ...] = ALL) -> WriteId:
        """A request arrives and computes these slots in a step that is saved; its immediate write."""
        self.start(arrives(request, len(slots)))
        return self.save({request: slots}, names)

    def end(self, *requests: RequestId, aborted: bool = False) -> None:
        """Requests end in a start without tokens."""
        self.start(*(Aborted(each) if aborted else Finished(each) for each in requests))

    def reads(self) -> dict[tuple[RequestId, NameId], ReadId]:
        """The newest read of each request and name."""
        return {(read.request, read.name): number for number, read in sorted(self.view.reads.items())}
