"""Checks of caches by id, and what each works with."""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from enum import Enum
from typing import Any, Final, NamedTuple, TypeAlias, TypeVar

import numpy as np

from tenure.backends.capabilities import ATTRIBUTE
from tenure.backends.conformance.cache_subjects import MachineMaker, MachineSubject, ObjectMachine
from tenure.backends.conformance.child_machine import ChildMachine
from tenure.backends.conformance.report import Coverage

M = TypeVar("M", bound=Callable[..., Any])


class CacheCapability(Enum):
    """How a cache can be called; it claims one at least."""

    MACHINE = "it is told events of the row machine, one at a time, and answers with commands"
    FACADE = "it has the calls of `tenure.OutputCache`, and keeps rows itself"

    @property
    def title(self) -> str:
        """As the command line and reports say it."""
        return self.name.lower()


def cache_claims(*capabilities: CacheCapability) -> Callable[[M], M]:
    """Say of a maker how its caches can be called."""

    def mark(make: M) -> M:
        setattr(make, ATTRIBUTE, frozenset(capabilities))
        return make

    return mark


class CacheRig:
    """One check's cache.

    Attributes:
        make: makes a fresh one of options, `config`, `policy` and `seed`; None where `command` starts a child.
        coverage: of a check that counts edges, as far as it got.
    """

    def __init__(self, make: MachineMaker | None, command: str, seed: int, timeout_s: float) -> None:
        """Nothing is made yet."""
        self.make, self._command = make, command
        self.seed, self.timeout_s = seed, timeout_s
        self.random = np.random.default_rng(seed)
        self.coverage: Coverage | None = None

    @contextmanager
    def machine(self) -> Generator[MachineSubject]:
        """A subject that is told events."""
        subject: Any = (
            ChildMachine(self._command, self.timeout_s) if self.make is None else ObjectMachine(self.make, self.seed)
        )
        try:
            yield subject
        finally:
            subject.close()


CacheBody: TypeAlias = Callable[[CacheRig], str | None]


class CacheCheck(NamedTuple):
    """One check.

    Attributes:
        id: stable.
        clause: the rule, and in words.
        capability: to which it belongs.
        body: as that of a check of devices.
    """

    id: str
    clause: str
    capability: CacheCapability
    body: CacheBody

    @property
    def level(self) -> str:
        """In words."""
        return self.capability.title


CACHE_CHECKS: Final[dict[str, CacheCheck]] = {}


def cache_check(
    id: str,  # noqa: A002 - what it is
    clause: str,
    capability: CacheCapability,
) -> Callable[[CacheBody], CacheBody]:
    """Register a check."""

    def register(body: CacheBody) -> CacheBody:
        assert id not in CACHE_CHECKS, id
        CACHE_CHECKS[id] = CacheCheck(id, clause, capability, body)
        return body

    return register
