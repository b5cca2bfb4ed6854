"""The story of a counterexample on one screen: who did what, what changed, and the contradiction at the end."""

from collections.abc import Iterator, Sequence
from itertools import groupby
from textwrap import wrap
from typing import Final, NamedTuple

from rich.console import Console
from rich.text import Text

from tenure.model_checks.stories import Story, Told

SCREEN_LINES: Final = 38
"""A longer story is shortened, unless all of it is asked for; a command line adds two."""
ALSO_MAX: Final = 3
"""Of what else is broken so much is told in a story that is not told in full."""
LABEL: Final = 12
"""Columns of the labels at the end."""
STYLES: Final = {"engine": "cyan", "device": "magenta"}
OTHER_STYLE: Final = "green"


class Line(NamedTuple):
    """A line, and how it looks where there are colours."""

    text: str
    style: str = ""


class _Detail(NamedTuple):
    """How much is told of each event.

    Attributes:
        lines: for what it changed; None: as many as it takes.
        folds: several events of the device in a row are one line, with what the last one changed.
        hides: without that, too.
    """

    lines: int | None
    folds: bool = False
    hides: bool = False


FULL: Final = _Detail(None)
SHORTER: Final = (_Detail(2), _Detail(2, folds=True), _Detail(1, folds=True), _Detail(1, folds=True, hides=True))
"""Tried in this order, until the story fits."""


def story_lines(story: Story, width: int = 120, *, everything: bool = False) -> list[Line]:
    """The whole story.

    Args:
        story: the counterexample.
        width: columns.
        everything: shorten nothing.
    """
    head = [Line(_title(story), "bold"), Line("")]
    if everything:
        return [*head, *_events(story, width, FULL), Line(""), *_contradiction(story, width, len(story.also))]
    end = [Line(""), *_contradiction(story, width, ALSO_MAX)]
    told = list(_events(story, width, FULL))
    if len(head) + len(told) + len(end) <= SCREEN_LINES:
        return [*head, *told, *end]
    room = SCREEN_LINES - len(head) - len(end) - 1
    for detail in SHORTER:
        told = list(_events(story, width, detail))
        if len(told) <= room:
            break
    else:
        # The end is what matters; the beginning is where it begins.
        told = [*told[:2], Line("  ..", "dim"), *told[3 - room :]] if room > 3 else told
    return [*head, *told, Line("  (shortened; --all shows everything)", "dim"), *end]


def print_story(story: Story, console: Console, *, everything: bool = False) -> None:
    """Show it."""
    for line in story_lines(story, max(60, console.width), everything=everything):
        console.print(Text(line.text, line.style), soft_wrap=True)


def _title(story: Story) -> str:
    fault = f", with {story.mutant} planted" if story.mutant else ""
    loop = f" and {len(story.loop)} for ever" if story.by == "progress" else ""
    return f"{story.rule} is broken in {story.scope} after {len(story.events)} events{loop}{fault}"


def _events(story: Story, width: int, detail: _Detail) -> Iterator[Line]:
    actors = {told.actor for told in (*story.events, *story.loop)}
    column = max((len(actor) for actor in actors), default=0)
    yield from _stretch(story.events, 1, column, width, detail)
    if story.by == "progress":
        yield Line("for ever after:" if story.loop else "and then nothing, for ever", "bold")
        yield from _stretch(story.loop, 1 + len(story.events), column, width, detail)


def _stretch(events: Sequence[Told], first: int, column: int, width: int, detail: _Detail) -> Iterator[Line]:
    last = first + len(events) - 1
    numbered = enumerate(events, first)
    # The last event is where the rule breaks: always told by itself.
    for is_routine, group in groupby(
        numbered, lambda each: detail.folds and each[1].actor == "device" and each[0] != last
    ):
        members = list(group)
        if is_routine and len(members) > (1 if detail.hides else 2):
            yield from _folded(members, column, width, hides=detail.hides)
            continue
        for number, told in members:
            yield from _event(number, told, column, width, detail.lines)


def _event(number: int, told: Told, column: int, width: int, lines_max: int | None) -> Iterator[Line]:
    said = told.text.removeprefix(told.actor).removeprefix(":").strip()
    indent = 6 + column
    style = STYLES.get(told.actor, OTHER_STYLE)
    for place, part in enumerate(wrap(said, width - indent) or [""]):
        yield Line(f"{number:>3}  {told.actor:<{column}} {part}" if not place else " " * indent + part, style)
    if not told.changes:
        return
    if lines_max is None:
        lines = [each for change in told.changes for each in wrap(change, width - indent - 4)]
    else:
        lines = wrap("; ".join(told.changes), width - indent - 4, max_lines=lines_max, placeholder=" ...")
    yield from (Line(" " * (indent + 2) + each, "dim") for each in lines)


def _folded(members: Sequence[tuple[int, Told]], column: int, width: int, *, hides: bool) -> Iterator[Line]:
    """Several events of the device as one; with the last one and its changes told by itself, if that is not hidden."""
    first, (last, ending) = members[0][0], members[-1]
    shown = members if hides else members[:-1]
    said = "; ".join(told.text.removeprefix(told.actor).strip() for _, told in shown)
    indent = 6 + column
    (line,) = wrap(said, width - indent, max_lines=1, placeholder=" ...") or [""]
    yield Line(f"{first:>3}  {'device ..':<{column}} {line}"[:width], STYLES["device"])
    if not hides:
        yield from _event(last, ending, column, width, 1)


def _contradiction(story: Story, width: int, also_max: int) -> Iterator[Line]:
    """What was found beside what the rule says."""
    how = {
        "transition": "the last event",
        "state": "where that leads",
        "deadlock": "nothing can happen there",
        "progress": "what is owed is never paid",
    }[story.by]
    yield Line(f"However: {how} contradicts {story.rule}.", "bold red")
    for place, part in enumerate(story.found.split("; ")):
        yield from _labelled("" if place else "found", part, width)
    yield from _labelled(story.rule, story.sentence, width)
    yield from _labelled("reason", story.reason, width)
    yield from _labelled("source", story.source, width)
    for each in sorted(story.also, key=lambda each: each.rule == story.rule)[:also_max]:
        yield from _labelled("also broken", f"{each.rule}: {each.found}", width)
    if len(story.also) > also_max:
        yield from _labelled("", f"and {len(story.also) - also_max} more", width)
    bounds = ", ".join(f"{what} {value}" for what, value in story.covers.items() if value)
    yield from _labelled("scope", f"{story.scope}; {bounds}", width)
    yield from _labelled("comes from", story.scope_source, width)
    yield from _labelled("assumes", story.assumes, width)


def _labelled(label: str, text: str, width: int) -> Iterator[Line]:
    if not text:
        return
    for place, part in enumerate(wrap(text, width - LABEL - 3)):
        yield Line(f"  {label if not place else '':<{LABEL}} {part}")
