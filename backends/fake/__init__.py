"""An emulated accelerator: any order that lanes and events allow, races found by vector clocks, faults from a seed."""

from collections.abc import Mapping

from tenure.backends.fake.choices import Chooser, Scripted, Seeded
from tenure.backends.fake.device import FakeDevice
from tenure.backends.fake.faults import FAULT_KINDS, FaultKind, Faults
from tenure.backends.fake.findings import Finding
from tenure.backends.fake.timeline import timeline

__all__ = [
    "FAULT_KINDS",
    "Chooser",
    "FakeDevice",
    "FaultKind",
    "Faults",
    "Finding",
    "Scripted",
    "Seeded",
    "make_device",
    "timeline",
]


def make_device(options: Mapping[str, object] | None = None) -> FakeDevice:
    """A device that moves by itself, on a thread of its own; `seed` in `options` decides in which order."""
    seed = (options or {}).get("seed", 0)
    assert isinstance(seed, int)
    return FakeDevice(Seeded(seed), is_driven=False)
