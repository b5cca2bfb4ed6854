"""What a rule is, whichever machine it is about."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

RuleKind: TypeAlias = Literal["predicate", "transition", "interpreter", "executor", "facade"]
"""Where a rule is checked.

* predicate: on a state alone;
* transition: on what one event did, or on the run of them;
* interpreter: while commands are carried out on a memory of made-up rows;
* executor: on a device, emulated or real;
* facade: by calls from threads.
"""


@dataclass(frozen=True, slots=True)
class Rule:
    """One invariant.

    Attributes:
        id: its name in code, tests and reports; never used again for another.
        sentence: what holds.
        reason: what would go wrong without it.
        source: where it comes from.
        kind: where it is checked before all.
        also: where else it is checked.
    """

    id: str
    sentence: str
    reason: str
    source: str
    kind: RuleKind
    also: tuple[RuleKind, ...] = ()

    @property
    def kinds(self) -> tuple[RuleKind, ...]:
        """Everywhere it is checked."""
        return (self.kind, *self.also)


Finding: TypeAlias = str | None
"""What was found and where, value first; None where the rule holds."""
