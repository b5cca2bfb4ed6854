"""What the row machine answers."""

from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from tenure.core.arrays import ByContent, Integers
from tenure.core.rows.events import ReadId, RequestId, StepId, WaitedFor, WriteId
from tenure.core.rows.names import NameId, RowFormat


@dataclass(frozen=True, slots=True)
class Done:
    """The event took effect; there is nothing more to say."""


@dataclass(frozen=True, slots=True)
class Ignored:
    """The event came too late to mean anything; only what it held was given back."""

    reason: str


@dataclass(frozen=True, slots=True)
class StepBegan:
    """The scheduler output was taken.

    Attributes:
        step: the step to save or to drop; None without scheduled tokens.
        hits: the requests whose hit span was marked, with its length in tokens.
    """

    step: StepId | None
    hits: tuple[tuple[RequestId, int], ...]


@dataclass(frozen=True, slots=True)
class Waiting:
    """The call cannot go on until everything named has come true; then it may be told again, as it was."""

    waited_for: WaitedFor


@dataclass(frozen=True, slots=True)
class SaveReserved:
    """What saving the step needs is set aside; carry out the `FreezeRows`, then publish or cancel."""

    step: StepId
    page: int


@dataclass(frozen=True, slots=True)
class StepSaved:
    """The step is saved, and must be consumed once. `write` is its immediate write."""

    step: StepId
    write: WriteId


class HitRows(NamedTuple):
    """The hit rows of one request under one name: the buffer of read `read`, `num_rows` rows."""

    request: RequestId
    name: NameId
    read: ReadId
    num_rows: int


@dataclass(frozen=True, slots=True, eq=False)
class ConsumePlan(ByContent):
    """How to make what a materialize returns.

    Per request and name: the rows of its hit, if any, then the step's rows `[starts[i], starts[i + 1])` of the page,
    where i is the place of the request in `batch`.

    Attributes:
        page: where the step's rows are; None if an earlier try copied them out.
        requests: the requests asked for.
        batch: all requests of the step, in batch order.
        starts: where each one's rows start, and their end. Shapes: `[len(batch) + 1]`.
        formats: the names of the step that are rows.
        leftovers: the other names of the step.
        hits: hit rows, by request asked for and name, in order.
    """

    step: StepId
    page: int | None
    requests: tuple[RequestId, ...]
    batch: tuple[RequestId, ...]
    starts: Integers
    formats: tuple[RowFormat, ...]
    leftovers: tuple[NameId, ...]
    hits: tuple[HitRows, ...]


@dataclass(frozen=True, slots=True)
class ResetAnswered:
    """Whether the reset was done; if not, nothing changed: a request is live, or a step not consumed."""

    done: bool


RowAnswer: TypeAlias = Done | Ignored | StepBegan | Waiting | SaveReserved | StepSaved | ConsumePlan | ResetAnswered
