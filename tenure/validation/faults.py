"""Why a line fits no possible state, and what would have."""

import json
from collections.abc import Iterator, Sequence
from typing import Any, Final

from tenure.core.errors import TenureError, TraceFormatError
from tenure.core.rows.events import (
    ConsumeAbandoned,
    ConsumeRequested,
    ResetRequested,
    RowEvent,
    SaveCancelled,
    SavePublished,
    ShutdownRequested,
    StepConsumed,
    StepDiscarded,
    StepStarted,
)
from tenure.core.rows.view import StepPhase
from tenure.core.schemas import to_json
from tenure.recording import Refused
from tenure.validation.reading import Told
from tenure.validation.report import Fault
from tenure.validation.states import NotDue, Outcome, Possible, Taken, outcome_of

SHOWN_MAX: Final = 12
TEXT_MAX: Final = 300


def fault_of(told: Told, states: Sequence[Possible]) -> Fault:
    """Where an event, or what it led to, leaves every possible state.

    The line is that of the event where the core does not take it and the record says that it did, else that of its
    answer or refusal.
    """
    outcomes = [outcome_of(each, told.event) for each in states]
    is_taken_somewhere = any(isinstance(each, Taken) for each in outcomes)
    is_of_event = not isinstance(told.result, Refused) and not is_taken_somewhere
    line = told.line if is_of_event or told.result_line is None else told.result_line
    expected = tuple(dict.fromkeys(_told_by(each) for each in outcomes))
    if is_of_event:
        problem = f"the core does not take this event: {expected[0]}"
        text = shown(told.event)
    elif isinstance(told.result, Refused):
        problem = f"{type(told.event).__name__} was refused with {told.result.error}, and the core says otherwise"
        text = shown(told.event)
    else:
        problem = f"the core answers {type(told.event).__name__} otherwise"
        text = _result_text(told)
    differences = tuple(dict.fromkeys(text for each in outcomes for text in _differences(told, each)))
    possible = tuple(dict.fromkeys(text for each in states for text in _possible(each)))
    return Fault(line, text, problem, expected[:SHOWN_MAX], differences[:SHOWN_MAX], possible[:SHOWN_MAX])


def shown(value: Any) -> str:
    """An event or an answer as the value of its trace line, shortened."""
    try:
        text = f"{type(value).__name__} {json.dumps(_fields(value))}"
    except TraceFormatError:
        text = repr(value)
    return text if len(text) <= TEXT_MAX else text[:TEXT_MAX] + "..."


def _fields(value: Any) -> dict[str, Any]:
    fields: dict[str, Any] = json.loads(to_json(value))["value"]
    return {name: field for name, field in fields.items() if name != "kind"}


def _result_text(told: Told) -> str:
    return "" if told.result is None else shown(told.result)


def _told_by(outcome: Outcome) -> str:
    match outcome:
        case Taken():
            return f"it answers {shown(outcome.answer)}"
        case NotDue():
            return "no command that was issued and not yet answered carries it"
        case TenureError():
            return f"it refuses with {type(outcome).__name__} ({outcome.scope.name}): {outcome}"


def _differences(told: Told, outcome: Outcome) -> Iterator[str]:
    """How the answer of the record differs from that of the core."""
    if told.result is None or isinstance(told.result, Refused) or not isinstance(outcome, Taken):
        return
    if type(told.result) is not type(outcome.answer):
        yield f"the record has {type(told.result).__name__}, the core {type(outcome.answer).__name__}"
        return
    core = _fields(outcome.answer)
    for name, value in _fields(told.result).items():
        if value != core[name]:
            yield f"{name}: the record has {_short(value)}, the core {_short(core[name])}"


def _short(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= TEXT_MAX else text[:TEXT_MAX] + "..."


def _possible(possible: Possible) -> Iterator[str]:
    """What the core takes in a state: what commands owe, and calls that can be made without saying more of them."""
    for event in (*possible.due.events(), *_calls(possible)):
        outcome = outcome_of(possible, event)
        if isinstance(outcome, Taken):
            yield f"{shown(event)} -> {shown(outcome.answer)}"


def _calls(possible: Possible) -> Iterator[RowEvent]:
    tables = possible.state.tables
    for number, step in sorted(tables.steps.items()):
        match step.phase:
            case StepPhase.STARTED:
                # What it may be saved with is the engine's to say.
                pass
            case StepPhase.RESERVED:
                yield SavePublished(number)
                yield SaveCancelled(number)
            case StepPhase.SAVED:
                batch = () if step.saved is None else step.saved.batch
                yield ConsumeRequested(number, batch)
                yield StepDiscarded(number)
            case StepPhase.CONSUMING:
                yield StepConsumed(number)
                yield ConsumeAbandoned(number)
    for number in sorted(tables.fenced_steps):
        yield StepConsumed(number)
        yield ConsumeAbandoned(number)
    yield StepStarted()
    yield ResetRequested()
    yield ShutdownRequested()
