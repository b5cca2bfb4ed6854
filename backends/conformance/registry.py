"""The checks by id."""

from collections.abc import Callable
from typing import Final, NamedTuple, TypeAlias

from tenure.backends.capabilities import Capability
from tenure.backends.conformance.rig import Rig

Body: TypeAlias = Callable[[Rig], str | None]


class Check(NamedTuple):
    """One check.

    Attributes:
        id: stable: the duty of the port, or the layer, and what must hold.
        clause: in words.
        capability: to which it belongs; None for the core level.
        body: raises `CheckFailedError`, or `OutOfTimeError` if nothing can be said; returns what it reached, if
            that is worth telling.
        is_controlled: it decides itself when operations run.
        takes_control: likewise, on a device that lets it; and it needs to know what else a device claims.
    """

    id: str
    clause: str
    capability: Capability | None
    body: Body
    is_controlled: bool = False
    takes_control: bool = False

    @property
    def level(self) -> str:
        """In words."""
        return "core" if self.capability is None else self.capability.title


CHECKS: Final[dict[str, Check]] = {}


def check(
    id: str,  # noqa: A002 - what it is
    clause: str,
    capability: Capability | None = None,
    *,
    takes_control: bool = False,
) -> Callable[[Body], Body]:
    """Register a check."""

    def register(body: Body) -> Body:
        assert id not in CHECKS, id
        is_controlled = capability is Capability.CONTROLLED
        CHECKS[id] = Check(id, clause, capability, body, is_controlled, takes_control)
        return body

    return register
