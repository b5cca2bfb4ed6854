"""Runs the checks on a device and says what it found."""

import threading
import traceback
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from itertools import count
from typing import Any, Final, Protocol, TypeAlias, TypeVar

from tenure.backends.capabilities import ATTRIBUTE, Capability
from tenure.backends.conformance import (
    controlled,
    host_checks,
    lagging,
    lockstep,
    memory_checks,
    orders,
    tensor_checks,
    trace_checks,
)
from tenure.backends.conformance.bench import Bench, Options
from tenure.backends.conformance.registry import CHECKS, Check
from tenure.backends.conformance.report import Coverage, Report, Result, Verdict
from tenure.backends.conformance.rig import CheckFailedError, OutOfTimeError, Rig
from tenure.backends.device import Device

Maker: TypeAlias = Callable[[Options], Device | Bench]
Found: TypeAlias = tuple[Verdict, str]
MODULES: Final = (orders, controlled, memory_checks, tensor_checks, host_checks, lockstep, lagging, trace_checks)
"""Whose import registers the checks, in the order of their duties."""
TIMEOUT_S: Final = 20.0
SEEDS: Final = 1000
"""So many devices of one check have seeds of their own."""
PATIENCE: Final = 4
"""So many times what one wait may take, a whole check may take."""
OF_TRACES: Final = 5
"""And so many times that a check that goes through thousands of traces."""


class UnknownCheckError(ValueError):
    """A check is named that there is not."""


def check_device(
    make_device: Maker,
    capabilities: Collection[Capability] | None = None,
    *,
    seed: int = 0,
    expected_failures: Mapping[str, str] | None = None,
    only: Iterable[str] = (),
    timeout_s: float = TIMEOUT_S,
    maker_name: str | None = None,
    on_result: Callable[[Result], None] = lambda _: None,
) -> Report:
    """Run the kit on a device.

    Args:
        make_device: makes a fresh device of options, or the bench of one.
        capabilities: what the device claims; if not said, the attribute `capabilities` of the maker does.
        seed: of all values and orders.
        expected_failures: by check, why it fails. One that passes after all counts as a failure.
        only: ids of checks, or beginnings of them; all if none is given.
        timeout_s: what one wait may take; what takes longer is unknown, which is no pass.
        maker_name: `MODULE:NAME`, by which the command line finds the maker.
        on_result: told of each check when it is over.

    Raises:
        UnknownCheckError: `only` or `expected_failures` names no check.
    """
    claimed = frozenset(getattr(make_device, ATTRIBUTE, ()) if capabilities is None else capabilities)
    name = maker_name or f"{make_device.__module__}:{getattr(make_device, '__qualname__', type(make_device).__name__)}"
    expected = dict(expected_failures or {})
    chosen = selected(only)
    check_expected(CHECKS, expected)
    results: list[Result] = []
    for each in chosen:
        coverage: list[Coverage] = []
        found: Found = (Verdict.NOT_CLAIMED, "")
        if each.capability is None or each.capability in claimed:
            run = partial(_run, each, make_device, seed, timeout_s, claimed, coverage)
            patience = PATIENCE * (OF_TRACES if each.takes_control else 1)
            found = in_time(run, patience * timeout_s)
        repeat = command_again(f"tenure conform {name}", each.id, seed, timeout_s)
        repeat += "".join(f" --capability {one}" for one in _needed(each, claimed))
        result = result_of(each, found, expected.get(each.id), repeat, coverage)
        on_result(result)
        results.append(result)
    return Report(name, tuple(sorted(one.title for one in claimed)), seed, tuple(results))


One = TypeVar("One")


class Named(Protocol):
    """A check, whatever of."""

    @property
    def id(self) -> str:
        """Stable."""
        ...

    @property
    def clause(self) -> str:
        """In words."""
        ...

    @property
    def level(self) -> str:
        """What it belongs to."""
        ...


def command_again(command: str, check_id: str, seed: int, timeout_s: float) -> str:
    """The command line that runs one check as it was run."""
    patience = "" if timeout_s == TIMEOUT_S else f" --timeout {timeout_s:g}"
    return f"{command} --only {check_id} --seed {seed}{patience}"


def result_of(one: Named, found: Found, expected: str | None, repeat: str, coverage: Sequence[Coverage]) -> Result:
    """What came of a check, beside what was expected of it."""
    verdict, message = found
    if expected is not None and verdict is not Verdict.FAIL:
        message = f"expected to fail ({expected}), and it did not{': ' if message else ''}{message}"
    reached = coverage[0] if coverage else None
    return Result(one.id, one.clause, one.level, verdict, message, repeat, expected, reached)


def chosen_of(known: Mapping[str, One], only: Iterable[str]) -> list[One]:
    """The checks whose ids begin so; all if nothing is said.

    Raises:
        UnknownCheckError: no check's id does.
    """
    wanted = tuple(only)
    for each in wanted:
        if not any(one.startswith(each) for one in known):
            raise UnknownCheckError(f"{each!r} is the beginning of no check's id; there are {', '.join(known)}")
    return [one for name, one in known.items() if not wanted or name.startswith(wanted)]


def check_expected(known: Collection[str], expected: Iterable[str]) -> None:
    """Refuse to expect the failure of what is no check.

    Raises:
        UnknownCheckError: there is one.
    """
    if unknown := [each for each in expected if each not in known]:
        raise UnknownCheckError(f"{unknown[0]!r} is expected to fail, and there is no such check")


def selected(only: Iterable[str]) -> list[Check]:
    """The checks of devices whose ids begin so, by duty; all if nothing is said.

    Raises:
        UnknownCheckError: no check's id does.
    """
    return sorted(chosen_of(CHECKS, only), key=lambda one: one.id.partition(".")[0])


def _needed(one: Check, claimed: frozenset[Capability]) -> list[str]:
    """What has to be claimed so that a check does the same again."""
    if one.takes_control:
        return sorted(each.title for each in claimed)
    return [] if one.capability is None else [one.capability.title]


def _run(
    one: Check,
    make_device: Maker,
    seed: int,
    timeout_s: float,
    claimed: frozenset[Capability],
    coverage: list[Coverage],
) -> Found:
    """Run one check on a fresh device, and judge what the device itself noticed; `coverage` gets what it counted."""
    made = count()
    is_controlled = one.is_controlled or (one.takes_control and Capability.CONTROLLED in claimed)

    def make() -> Bench:
        found: Any = make_device({"seed": seed * SEEDS + next(made), "is_controlled": is_controlled})
        if found is None:
            raise CheckFailedError("the maker gave no device")
        return Bench.of(found)

    rig = Rig(make(), seed, timeout_s, make, is_controlled=is_controlled, claimed=claimed)
    if one.capability is not None and not rig.has(one.capability):
        return Verdict.FAIL, f"{one.capability.name} is claimed, and the bench has not what it takes"
    try:
        said = one.body(rig)
    finally:
        coverage += [] if rig.coverage is None else [rig.coverage]
        rig.device.close(timeout_s)
    rig.close()
    if found := rig.bench.findings():
        return Verdict.FAIL, f"the device itself found: {found[0]}"
    return Verdict.PASS, said or ""


def in_time(run: Callable[[], Found], timeout_s: float) -> Found:
    """Run on a thread of its own, which a device that hangs may keep."""
    found: list[Found] = []

    def judged() -> None:
        try:
            found.append(run())
        except CheckFailedError as error:
            found.append((Verdict.FAIL, str(error)))
        except OutOfTimeError as error:
            found.append((Verdict.UNKNOWN, str(error)))
        except BaseException as error:
            where = traceback.extract_tb(error.__traceback__)[-1]
            place = f"{where.name}, line {where.lineno}"
            found.append((Verdict.FAIL, f"{type(error).__name__}: {error} (in {place})"))

    thread = threading.Thread(target=judged, name="tenure-conformance", daemon=True)
    thread.start()
    thread.join(timeout_s)
    return found[0] if found else (Verdict.UNKNOWN, f"it did not end in {timeout_s} s")
