"""Counterexamples as files: all that a reader needs to know of one, and what a machine needs to go through it again.

The file says the story in full, with what changed after every event, so that it can be read where the fault is mended
or was planted. Reading one evaluates nothing: it is JSON, held against a schema.
"""

import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, ClassVar, Final, Literal

from pydantic import BaseModel, ConfigDict, StrictBool, StrictInt, StrictStr, ValidationError

from tenure.core.errors import TraceFormatError
from tenure.core.errors.base import ContractError
from tenure.core.errors.base import Scope as Damage
from tenure.core.schemas import to_json
from tenure.model_checks.explorer import Counterexample
from tenure.model_checks.model import Broken, Event, Model, Scope
from tenure.model_checks.scopes import rule_named

SCHEMA_VERSION: Final = 1
BYTES_MAX: Final = 1 << 24
"""A file larger than this is no counterexample."""

Scalar = StrictStr | StrictInt | StrictBool | None


class _Plain(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class CoreCall(_Plain):
    """An event of the core that belongs to an event of the model.

    Attributes:
        name: its class.
        trace: the line of `tenure.core.schemas`, as JSON; None for an event that has none.
        text: the event in Python's words, where it has no such line.
    """

    name: str
    trace: dict[str, Any] | None = None
    text: str = ""


class Told(_Plain):
    """One event of a story.

    Attributes:
        event: as the model has it.
        actor: who did it.
        text: the event as a line.
        changes: what was other afterwards.
        core: what the core was told.
    """

    event: list[Scalar]
    actor: str
    text: str
    changes: list[str] = []
    core: list[CoreCall] = []


class Finding(_Plain):
    """A rule that is broken, and what was found."""

    rule: str
    found: str


class Story(_Plain):
    """A counterexample, as a file has it.

    Attributes:
        mutant: the planted fault that it was found with; empty for the core as it is.
        by: what broke the rule: `transition`, `state`, `deadlock` or `progress`.
        also: other rules that the same event or state breaks.
        sentence: the rule's sentence; likewise its reason and source.
        scope_source: the case or defect that the scope comes from.
        initial: the place of the first state among the initial ones.
        loop: for progress: what may happen for ever after.
    """

    schema_version: Literal[1]
    package: str
    model: str
    scope: str
    scope_source: str
    covers: dict[str, int | str]
    assumes: str
    mutant: str
    rule: str
    found: str
    by: Literal["transition", "state", "deadlock", "progress"]
    also: list[Finding]
    sentence: str
    reason: str
    source: str
    initial: int
    events: list[Told]
    loop: list[Told]

    def text(self) -> str:
        """The file."""
        return json.dumps(self.model_dump(mode="json"), indent=1) + "\n"


@dataclass(eq=False)
class CounterexampleFileError(ContractError):
    """A file that is no counterexample."""

    scope: ClassVar[Damage] = Damage.REQUEST
    file: str
    found: str

    def sentence(self) -> str:
        """The message."""
        return f"{self.file} is no counterexample of schema {SCHEMA_VERSION}: {self.found}"


# --- Writing --------------------------------------------------------------------------------------------------


def story_of(scope: Scope, example: Counterexample, mutant: str = "") -> Story:
    """A counterexample that was just found, with all that its reader needs; the model goes through it once more."""
    model = scope.make()
    state = list(model.initial())[example.initial]
    rule = rule_named(example.rule)
    events, state, broken = _told(model, state, example.events)
    loop, _, _ = _told(model, state, example.loop)
    also = dict.fromkeys(each for each in broken if each != (example.rule, example.found))
    return Story(
        schema_version=SCHEMA_VERSION,
        package=version("tenure"),
        model=scope.model,
        scope=scope.name,
        scope_source=scope.source,
        covers=dict(scope.covers),
        assumes=scope.assumes,
        mutant=mutant,
        rule=example.rule,
        found=example.found,
        by=example.by,
        also=[Finding(rule=each.rule, found=each.found) for each in also],
        sentence=rule.sentence,
        reason=rule.reason,
        source=rule.source,
        initial=example.initial,
        events=events,
        loop=loop,
    )


def _told(model: Model[Any], state: Any, events: Sequence[Event]) -> tuple[list[Told], Any, list[Broken]]:
    """Every event as told, the state after the last one, and what that one broke."""
    told: list[Told] = []
    broken: list[Broken] = []
    for event in events:
        taken = model.take(state, event)
        broken = [*taken.broken, *_judged(model, taken.state)]
        told.append(
            Told(
                event=list(event),
                actor=str(event[0]),
                text=model.describe(event),
                changes=_changes(model, state, taken.state),
                core=_core_calls(model, state, event),
            )
        )
        state = taken.state
    return told, state, broken


def _judged(model: Model[Any], state: Any) -> Sequence[Broken]:
    """What the rules say of a state; one that broke a rule already may be such that nothing more can be asked of it."""
    with suppress(Exception):
        return () if state is None else model.judge(state).broken
    return ()


def _changes(model: Model[Any], before: Any, after: Any) -> list[str]:
    """What the model says of a change, if it says anything and can."""
    tell = getattr(model, "changes", None)
    with suppress(Exception):
        return [] if tell is None or after is None else [str(each) for each in tell(before, after)]
    return ["(what changed cannot be told)"]


def _core_calls(model: Model[Any], state: Any, event: Event) -> list[CoreCall]:
    """What the core was told, if the model says that and can."""
    tell = getattr(model, "core_events", None)
    with suppress(Exception):
        return [] if tell is None else [_core_call(each) for each in tell(state, event)]
    return []


def _core_call(event: Any) -> CoreCall:
    try:
        return CoreCall(name=type(event).__name__, trace=json.loads(to_json(event)))
    except TraceFormatError:
        return CoreCall(name=type(event).__name__, text=repr(event))


def file_name(story: Story) -> str:
    """The name of a counterexample's file, by its scope, rule and planted fault."""
    parts = [story.scope.replace("/", "--"), story.rule, *([story.mutant] if story.mutant else [])]
    return "--".join(parts) + ".json"


def save(story: Story, folder: Path) -> Path:
    """Write the file; where it is."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / file_name(story)
    file.write_text(story.text(), encoding="utf-8")
    return file


# --- Reading --------------------------------------------------------------------------------------------------


def parse(text: str, file: str = "the text") -> Story:
    """The counterexample that a text holds.

    Raises:
        CounterexampleFileError: it holds none.
    """
    try:
        return Story.model_validate_json(text)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(map(str, first["loc"]))
        raise CounterexampleFileError(file, f"{where + ': ' if where else ''}{first['msg']}") from None


def load(file: Path) -> Story:
    """The counterexample in a file.

    Raises:
        CounterexampleFileError: it cannot be read, or holds none.
    """
    try:
        size = file.stat().st_size
        if size > BYTES_MAX:
            raise CounterexampleFileError(str(file), f"{size} bytes are more than the {BYTES_MAX} that one can have")
        return parse(file.read_text(encoding="utf-8"), str(file))
    except (OSError, UnicodeDecodeError) as error:
        raise CounterexampleFileError(str(file), str(error)) from None
