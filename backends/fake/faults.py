"""What may go wrong on an emulated device, and how often."""

from collections import Counter
from collections.abc import Collection, Mapping
from types import MappingProxyType
from typing import Final, Literal, TypeAlias, get_args

from tenure.backends.fake.choices import Chooser

FaultKind: TypeAlias = Literal["copy", "call", "allocation", "late", "stuck", "worker", "lost"]
"""An operation fails in its lane; a call raises; no memory is given; a lane stands still for a while; an event never
completes; the host lanes stop for ever; the device is lost."""

FAULT_KINDS: Final[tuple[FaultKind, ...]] = get_args(FaultKind)
EVERY: Final[Mapping[FaultKind, int]] = MappingProxyType(
    {"copy": 1500, "call": 1500, "allocation": 100, "late": 300, "stuck": 4000, "worker": 4000, "lost": 4000}
)
"""How many times it could happen for each time that it does, about."""
LATE_CHOICES: Final = 40
"""For how many choices a late lane stands still."""


class Faults:
    """Lets faults strike.

    Attributes:
        injected: how often which happened.
    """

    def __init__(self, chooser: Chooser, kinds: Collection[FaultKind] = FAULT_KINDS) -> None:
        """The chooser decides when each strikes first, and when again; the first of its choices is never."""
        self._chooser = chooser
        self._left = {kind: chooser.choose(2 * EVERY[kind]) for kind in FAULT_KINDS if kind in kinds}
        self.injected: Counter[FaultKind] = Counter()

    def strikes(self, kind: FaultKind) -> bool:
        """Whether it happens now."""
        left = self._left.get(kind, 0)
        if not left:
            return False
        self._left[kind] = left - 1
        if left > 1:
            return False
        self._left[kind] = self._chooser.choose(2 * EVERY[kind])
        self.injected[kind] += 1
        return True
