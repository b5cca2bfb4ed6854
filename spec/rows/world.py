"""What runs beside a row machine: the oracle, a device, an engine, and the calls that are under way."""

from dataclasses import dataclass, field

from tenure.core.config import RowConfig, RowPolicy
from tenure.core.rows.answers import ConsumePlan
from tenure.core.rows.events import RequestId, Slot, StepId, WaitedFor
from tenure.core.rows.names import NameId
from tenure.spec.rows.emissions import Save
from tenure.spec.rows.engine import Engine, Plan, PlannedHit
from tenure.spec.rows.interpreter import Interpreter, ReadingId
from tenure.spec.rows.memory import Row
from tenure.spec.rows.reference import Emitted, Materialized, ReferenceCache
from tenure.spec.rows.rules_ledger import Ledger


@dataclass(frozen=True, slots=True)
class Saving:
    """A save call under way.

    Attributes:
        waited_for: what it waits for; None from the reservation on.
        must_cancel: the publication was refused, and the reservation is to be given back.
    """

    save: Save
    waited_for: WaitedFor | None
    must_cancel: bool = False


@dataclass(frozen=True, slots=True)
class Builder:
    """A materialize call under way.

    Attributes:
        requests: what it was asked for.
        waited_for: what it waits for; None once it has a plan.
        plan: what the machine said.
        expected: what it must return.
        page_reading, hit_reading: its unfinished reads of the page and of hit buffers.
        own_rows: what the page held, per name, once it was copied.
        is_fenced: a reset forgot the step.
    """

    requests: tuple[RequestId, ...]
    waited_for: WaitedFor | None = None
    plan: ConsumePlan | None = None
    expected: Materialized | None = None
    page_reading: ReadingId | None = None
    hit_reading: ReadingId | None = None
    own_rows: dict[NameId, list[Row]] | None = None
    is_fenced: bool = False

    @property
    def is_copying(self) -> bool:
        """Whether rows are on their way to it."""
        return self.plan is not None


@dataclass(slots=True)
class World:
    """Everything but the machine.

    Attributes:
        plan: what the pending step computes.
        saving: the save call under way.
        builders: the materialize calls under way, by step.
        outputs: what each saved step emitted.
        own_rows: rows that an earlier materialize of the step copied out.
        hits: which hits of saved steps there are, and whether they are honest.
        newest: per name and slot the row that was published last.
    """

    oracle: ReferenceCache
    device: Interpreter
    engine: Engine
    ledger: Ledger
    plan: Plan | None = None
    saving: Saving | None = None
    builders: dict[StepId, Builder] = field(default_factory=dict[StepId, Builder])
    outputs: dict[StepId, tuple[Emitted, ...]] = field(default_factory=dict[StepId, tuple[Emitted, ...]])
    own_rows: dict[StepId, dict[NameId, list[Row]]] = field(default_factory=dict[StepId, dict[NameId, list[Row]]])
    hits: dict[tuple[StepId, RequestId], PlannedHit] = field(default_factory=dict[tuple[StepId, RequestId], PlannedHit])
    newest: dict[tuple[NameId, Slot], Row] = field(default_factory=dict[tuple[NameId, Slot], Row])

    @classmethod
    def new(cls, config: RowConfig, policy: RowPolicy, identities: str) -> "World":
        """Nothing has happened."""
        return cls(ReferenceCache(config, policy), Interpreter(config.num_slots), Engine(config, identities), Ledger())

    def clone(self) -> "World":
        """A twin that goes its own way from here."""
        return World(
            self.oracle.clone(),
            self.device.clone(),
            self.engine.clone(),
            self.ledger.clone(),
            self.plan,
            self.saving,
            self.builders.copy(),
            self.outputs.copy(),
            self.own_rows.copy(),
            self.hits.copy(),
            self.newest.copy(),
        )
