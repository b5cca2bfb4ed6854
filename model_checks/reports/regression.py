"""A counterexample as a test: one that stands by itself, and one line for Hypothesis."""

import re
from typing import Final, cast

from tenure.model_checks.model import Event
from tenure.model_checks.scopes import scope_named
from tenure.model_checks.stories import Story
from tenure.model_checks.walks.codes import encode_events

_TEST: Final = '''"""A counterexample of {scope} that must not come back; written by `tenure explain --write-test`."""

from tenure.model_checks.counterexamples import Outcome, parse, replay

STORY = r\'\'\'
{json}\'\'\'


def test_{name}_holds() -> None:
    """{rule} was broken once: {found}."""
    replayed = replay(parse(STORY))

    assert Outcome.MENDED is replayed.outcome, replayed.how
'''


def regression_test(story: Story) -> str:
    """A pytest module that fails as long as the rule breaks."""
    name = re.sub(r"\W+", "_", f"{story.rule}_{story.scope}".lower()).strip("_")
    if story.mutant:
        name += "_" + re.sub(r"\W+", "_", story.mutant.lower())
    # In JSON an apostrophe may as well be written by its number.
    text = story.text().replace("'", "\\u0027")
    found = story.found.replace("\\", "/").replace('"', "'").rstrip(".")
    short = found if len(found) <= 80 else found[:77] + "..."
    return _TEST.format(scope=story.scope, json=text, name=name, rule=story.rule, found=short)


def example_line(story: Story) -> str:
    """The decorator that pins the counterexample in a test of byte-driven walks.

    Raises:
        NotOfferedError: the model does not go along it any more.
        UnknownScopeError: there is no such scope any more.
    """
    model = scope_named(story.scope).make()
    events = [cast("Event", tuple(told.event)) for told in story.events]
    return f"@example({encode_events(model, events, story.initial)!r})"
