"""A device under test, and the engine's side of it: how tensors are made, overwritten and read.

What a device can do beyond the port, it says by methods that the port does not have; see `Bench.of`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from tenure.backends.device import Device, Lane, Tensor

Array: TypeAlias = npt.NDArray[Any]
Options: TypeAlias = Mapping[str, Any]
"""What a maker is told: `seed`, a number, and `is_controlled`, whether the kit decides when operations run."""


@dataclass(frozen=True, slots=True)
class Bench:
    """A device and its engine.

    Attributes:
        device: under test.
        make: an engine's tensor where the forward pass computes, with these values; the dtype is one of `ITEM_BYTES`.
        overwrite: what the next forward pass does to a tensor: in order with the lane COMPUTE, as seen by the calling
            thread.
        read: the values of a tensor on the host.
        fail: ask a lane for an operation that fails; None if the device cannot be made to.
        ready: the lanes that may go on; None if nobody but the device decides.
        advance: let one of them go one operation on.
        findings: what a device that watches its memory found wrong so far.
    """

    device: Device
    make: Callable[[Array, str], Tensor]
    overwrite: Callable[[Tensor, Array], None]
    read: Callable[[Tensor], Array]
    fail: Callable[[Lane], None] | None = None
    ready: Callable[[], Sequence[Lane]] | None = None
    advance: Callable[[Lane], None] | None = None
    findings: Callable[[], Sequence[object]] = tuple

    @classmethod
    def of(cls, made: "Device | Bench") -> "Bench":
        """The bench of a device whose tensors are numpy arrays.

        Of a device it takes, where they are there: `forward(tensor, values)` to overwrite, `fail(lane)`, `ready()` and
        `advance(lane)`, and the list `findings`.
        """
        if isinstance(made, Bench):
            return made
        device: Any = made
        return cls(
            device,
            make=lambda values, _: values.copy(),
            overwrite=getattr(device, "forward", np.copyto),
            read=np.asarray,
            fail=getattr(device, "fail", None),
            ready=getattr(device, "ready", None),
            advance=getattr(device, "advance", None),
            findings=lambda: tuple(getattr(device, "findings", ())),
        )
