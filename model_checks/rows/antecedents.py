"""Where each rule of the row machine had something to say: a rule that never had proves nothing.

One condition a rule, on an accepted event (with the states around it) or on a refused one; what takes rows to be seen
is marked by the model itself.
"""

from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Final, TypeAlias

from tenure.core.errors import (
    ContractError,
    StepAlreadyConsumedError,
    StepNotSavedError,
    TenureError,
    WaitTimeoutError,
    WriteFailedError,
)
from tenure.core.rows.answers import Ignored, ResetAnswered, Waiting
from tenure.core.rows.commands import GatherRows, PreserveRows, ScatterRows
from tenure.core.rows.events import (
    ConsumeRequested,
    CopyCompleted,
    GatherBegan,
    ResetRequested,
    RowEvent,
    SavePublished,
    ScatterCompleted,
    StepConsumed,
    StepDiscarded,
    StepDropped,
    StepStarted,
    WriteFailed,
)
from tenure.core.rows.names import Schedule
from tenure.core.rows.view import ReadPhase, RowView
from tenure.spec.rows.rule import RowObservation, ended_requests

Antecedent: TypeAlias = Callable[[RowObservation], bool]


def _leaves_read(seen: RowObservation) -> bool:
    """A read that runs lost whoever wanted it."""
    left = [number for number, read in seen.after.reads.items() if read.phase is ReadPhase.LEFT]
    return any(number in seen.before.reads and seen.before.reads[number].phase is not ReadPhase.LEFT for number in left)


def _moves_a_write(seen: RowObservation) -> bool:
    return isinstance(seen.event, CopyCompleted | ScatterCompleted | WriteFailed)


def _claims_a_wanted_row(seen: RowObservation) -> bool:
    """A step computed slots that an older planned read will read, or a scatter is behind a running one."""
    scatters = [each for each in seen.commands if isinstance(each, ScatterRows)]
    preserves = any(isinstance(each, PreserveRows) for each in seen.commands)
    return preserves or any(scatter.after for scatter in scatters)


def _hides_an_older_row(seen: RowObservation) -> bool:
    """A step computed a slot and did not emit a name that had a claim there."""
    if not isinstance(seen.event, SavePublished | StepDropped):
        return False
    now = seen.after
    return any(
        claim and claim < now.tenancy[slot] and seen.before.tenancy[slot] != now.tenancy[slot]
        for claims in now.newest.values()
        for slot, claim in enumerate(claims)
    )


def _has_open_deferred(view: RowView) -> bool:
    return any(write.schedule is Schedule.JOIN_ON_FINISH for write in view.writes.values())


def _chunks(seen: RowObservation) -> bool:
    return isinstance(seen.event, SavePublished) and _has_open_deferred(seen.after)


def _ends_a_pending_write(seen: RowObservation) -> bool:
    return any(seen.before.live.get(request) is not None for request in ended_requests(seen.before, seen.event))


def _is_settled(seen: RowObservation) -> bool:
    """A save settled a hit."""
    if not isinstance(seen.event, SavePublished):
        return False
    step = seen.after.steps.get(seen.event.step)
    return step is not None and bool(step.hits)


ANTECEDENTS: Final[Mapping[str, Antecedent]] = MappingProxyType(
    {
        "R01": lambda seen: isinstance(seen.event, StepConsumed | StepDiscarded),
        "R02": lambda seen: (
            isinstance(seen.event, GatherBegan)
            and any(isinstance(each, GatherRows) and each.parts for each in seen.commands)
        ),
        "R03": lambda seen: any(any(claims) for claims in seen.after.newest.values()),
        "R04": lambda seen: seen.after.next_claim > seen.before.next_claim,
        "R06": lambda seen: seen.before.pages != seen.after.pages,
        "R08": lambda seen: seen.before.charged > seen.after.charged,
        "R09": _moves_a_write,
        "R10": _ends_a_pending_write,
        "R11": lambda seen: isinstance(seen.answer, Waiting),
        "R12": lambda seen: isinstance(seen.event, WriteFailed) and not isinstance(seen.answer, Ignored),
        "R13": _claims_a_wanted_row,
        "R14": _is_settled,
        "R16": _chunks,
        "R20": lambda seen: any(command.after for command in seen.commands),
        "R21": _hides_an_older_row,
        "R22": lambda seen: isinstance(seen.event, StepStarted) and seen.before.next_step > 1,
        "R23": _leaves_read,
        "R24": lambda seen: (
            isinstance(seen.event, ResetRequested)
            and isinstance(seen.answer, ResetAnswered)
            and (bool(seen.after.fenced) or not seen.answer.done)
        ),
    }
)
"""R05 and R18 are marked where rows are compared, R07 and R15 where events are refused, R17 where one is told twice;
R19 is about locks, which only the facade has."""


def exercised(seen: RowObservation) -> Iterator[str]:
    """The marks of the rules to which an accepted event gave something to judge."""
    for rule, holds in ANTECEDENTS.items():
        if holds(seen):
            yield f"rule {rule}"


def exercised_by_refusal(before: RowView, event: RowEvent, error: TenureError) -> Iterator[str]:
    """The marks of the rules to which a refused event gave something to judge."""
    del before
    if isinstance(error, WaitTimeoutError):
        yield "rule R07"
    if isinstance(error, ContractError):
        yield "rule R15"
    if isinstance(error, StepAlreadyConsumedError):
        yield "rule R01"
    if isinstance(error, StepNotSavedError):
        yield "rule R22"
    if isinstance(error, WriteFailedError) and isinstance(event, StepStarted | ConsumeRequested):
        yield "rule R12"
