"""A counterexample as a test: one that stands by itself, and one line for Hypothesis."""

import re
from dataclasses import dataclass
from importlib import import_module
from typing import Any, ClassVar, Final

from tenure.core.errors.base import ContractError
from tenure.core.errors.base import Scope as Damage
from tenure.model_checks.scopes import scope_named
from tenure.model_checks.stories import Story

WALKS: Final = "tenure.model_checks.walks"

_TEST: Final = '''"""A counterexample of {scope} that must not come back; written by `tenure explain --write-test`."""

from tenure.model_checks.counterexamples import Outcome, parse, replay

STORY = r\'\'\'
{json}\'\'\'


def test_{name}_holds() -> None:
    """{rule} was broken once: {found}."""
    replayed = replay(parse(STORY))

    assert Outcome.MENDED is replayed.outcome, replayed.how
'''


@dataclass(eq=False)
class NoWalkError(ContractError):
    """There is no walk driven by bytes that could go along a counterexample."""

    scope: ClassVar[Damage] = Damage.REQUEST
    model: str

    def sentence(self) -> str:
        """The message."""
        return f"{WALKS} has no byte-driven walk of {self.model}, so that no example can be pinned; use --write-test"


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
        NoWalkError: there is no such walk.
        UnknownScopeError: there is no such scope any more.
    """
    try:
        encode: Any = import_module(WALKS).encode_events
        model = scope_named(story.scope).make()
        return f"@example({encode(model, [tuple(told.event) for told in story.events], story.initial)!r})"
    except (ModuleNotFoundError, AttributeError, NotImplementedError):
        raise NoWalkError(story.model) from None
