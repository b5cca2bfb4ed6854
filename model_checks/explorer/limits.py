"""Bounds of a search, and where it saves what it has."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Limits:
    """The budget of a search; reaching any of it leaves the verdict UNDETERMINED.

    States, seconds and memory are looked at after every chunk of states, so that a search goes a little beyond.

    Attributes:
        states: distinct states.
        seconds: seconds on the wall, of this run.
        mib: MiB of resident memory, summed over the processes; pages they share count in each.
        depth: events from an initial state; what lies beyond is not looked at.
    """

    states: int | None = None
    seconds: float | None = None
    mib: int | None = None
    depth: int | None = None


UNLIMITED = Limits()


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """Where a search is saved and how often.

    Attributes:
        folder: a folder of its own.
        fingerprint: what a resumed search must have in common with the saved one, beside the code and the model's
            initial states, which are always compared.
        every_s: seconds between two savings; one more is made when a budget ends.
    """

    folder: Path
    fingerprint: Mapping[str, object] = field(default_factory=dict[str, object])
    every_s: float = 60.0
