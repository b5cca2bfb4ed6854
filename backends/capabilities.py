"""What a device claims beyond the core level of the port."""

from collections.abc import Callable
from enum import Enum
from typing import Any, Final, TypeVar

ATTRIBUTE: Final = "capabilities"
"""Of a maker of devices: what they claim."""

M = TypeVar("M", bound=Callable[..., Any])


class Capability(Enum):
    """What the conformance kit holds a device to only if the device claims it."""

    ASYNC = "operations may go on behind the call that asks for them"
    CONTROLLED = "with the option is_controlled nothing runs until somebody calls `advance`"
    FAULTS = "a lane can be asked for an operation that fails"
    PAGE_LOCKED = "kinds of host memory differ, and there is a limit to page-locked bytes"
    UNIFIED = "device memory is host memory, and the lane COMPUTE is over at the call"

    @property
    def title(self) -> str:
        """As the command line and reports say it."""
        return self.name.lower().replace("_", "-")


def claims(*capabilities: Capability) -> Callable[[M], M]:
    """Say of a maker what its devices claim."""

    def mark(maker: M) -> M:
        setattr(maker, ATTRIBUTE, frozenset(capabilities))
        return maker

    return mark
