"""What the scopes of the join must have shown together, or nothing is proved: all there is, less what is argued away.

The lists are those of the code: every event that the join takes, every command that it gives, every rule, every goal. A
new kind of event is therefore claimed before anybody thinks of it, and the check fails until a scope has it.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, get_args

from tenure.core.joined.values import CacheCommand, CacheEvent
from tenure.model_checks.joined.antecedents import GOALS
from tenure.model_checks.marks import marks
from tenure.model_checks.model import Marks
from tenure.spec.joined.rules import RULES
from tenure.spec.rows.rules import RULES as ROW_RULES

_BY_ITSELF: Final = (
    "starts, saves, publications and resets are the join's own calls of the row machine, whose answers to them are "
    "judged where it is explored alone"
)

NOT_CLAIMED: Final[Mapping[str, str]] = MappingProxyType(
    {
        "rule R04": _BY_ITSELF,
        "rule R10": _BY_ITSELF,
        "rule R14": _BY_ITSELF,
        "rule R16": _BY_ITSELF,
        "rule R21": _BY_ITSELF,
        "rule R24": _BY_ITSELF,
        "rule R17": "what could differ from one time to the next is in the machines, which are told twice alone",
        "rule R19": "it is about locks, which only the facade has",
    }
)
"""Marks that no scope of the join has, and why nothing is lost by it."""

ERRORS: Final = (
    "HiddenMissing Isolation NotForJoin RequestInStep RowsOwed ScheduledBeyond ScheduledTwice StepNotSaved "
    "StepNotStarted UnauthorizedWrite"
)
"""What the join refuses by itself, beside all that its machines refuse; its word that it is wrong itself is none."""

ALL: Final[Marks] = frozenset(
    {
        *(f"event {kind.__name__}" for kind in get_args(CacheEvent)),
        *(f"command {kind.__name__}" for kind in get_args(CacheCommand)),
        *(f"rule {rule.id}" for rule in (*RULES, *ROW_RULES)),
        *(f"goal {goal}" for goal in (*GOALS, "no_capacity", "fault")),
    }
) | marks(errors=ERRORS)
"""Everything that there is to see."""

CLAIMS: Final[Marks] = ALL - NOT_CLAIMED.keys()
"""What all scopes of `ci` together must see."""
