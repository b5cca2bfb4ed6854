"""An emulated accelerator: any order that lanes and events allow, races found by vector clocks, faults from a seed."""

from collections.abc import Mapping
from typing import Final

import numpy as np

from tenure.backends.capabilities import Capability, claims
from tenure.backends.device import Lane, Memory
from tenure.backends.fake.choices import Chooser, Scripted, Seeded
from tenure.backends.fake.device import FakeDevice
from tenure.backends.fake.faults import FAULT_KINDS, FaultKind, Faults
from tenure.backends.fake.findings import Finding
from tenure.backends.fake.memory import FakeBuffer
from tenure.backends.fake.operations import Operation
from tenure.backends.fake.timeline import timeline
from tenure.backends.fake.trail import Move

__all__ = [
    "FAULT_KINDS",
    "Chooser",
    "FakeDevice",
    "FaultKind",
    "Faults",
    "Finding",
    "Move",
    "Scripted",
    "Seeded",
    "make_device",
    "timeline",
]


FAILS: Final = "fail"
"""What an operation is called that was asked for so that it fails."""


class FailingDevice(FakeDevice):
    """An emulated accelerator that can be asked for an operation that fails."""

    def fail(self, lane: Lane) -> None:
        """Ask a lane for an operation that fails."""
        with self._lock:
            self._buffers += 1
            nothing = np.zeros(0, dtype=np.int64)
            target = FakeBuffer(self._buffers, Memory.PAGEABLE, np.zeros(0, dtype=np.uint8), "uint8")
            self._ask(lane, FAILS, target, nothing, None, nothing, target.array)

    def _carry_out(self, lane: Lane, operation: Operation, *, fails: bool) -> bool:
        return super()._carry_out(lane, operation, fails=fails or operation.what == FAILS)


@claims(Capability.ASYNC, Capability.CONTROLLED, Capability.FAULTS, Capability.PAGE_LOCKED)
def make_device(options: Mapping[str, object] | None = None) -> FailingDevice:
    """A device that moves by itself, on a thread of its own; `seed` in `options` decides in which order.

    With `is_controlled` it moves when somebody calls `advance`.
    """
    seed = (options or {}).get("seed", 0)
    assert isinstance(seed, int)
    return FailingDevice(Seeded(seed), is_driven=bool((options or {}).get("is_controlled")))
