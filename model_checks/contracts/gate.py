"""Asks CrossHair about every condition, and is content only with all of them confirmed.

CrossHair's own exit status is 0 also where it could not confirm, where nothing meets a precondition, and where a
function has no contract; so what counts here is the number of conditions that were confirmed over all paths.
"""

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from multiprocessing import get_context
from typing import Any, Final, NamedTuple

from tenure.model_checks.contracts import leases, lives, pool, rows

EXPECTED: Final = 73
"""Conditions there are: one that is dropped by mistake is missed."""
CONDITIONS: Final[tuple[Callable[..., Any], ...]] = (
    *pool.CONDITIONS,
    *leases.CONDITIONS,
    *rows.CONDITIONS,
    *lives.CONDITIONS,
)
SECONDS: Final = 20.0
"""For one condition; the slowest takes a quarter of that."""
CONFIRMED: Final = "CONFIRMED"
NO_CONDITION: Final = "NO CONDITION"


class Answer(NamedTuple):
    """What CrossHair says of one condition; `message` is empty where it is confirmed."""

    condition: str
    state: str
    message: str
    seconds: float


@dataclass(frozen=True, slots=True)
class GateResult:
    """What it says of all."""

    answers: tuple[Answer, ...]
    expected: int
    seconds: float

    @property
    def confirmed(self) -> int:
        """How many are confirmed."""
        return sum(each.state == CONFIRMED for each in self.answers)

    @property
    def passed(self) -> bool:
        """Whether exactly the expected number is confirmed, and nothing else came out."""
        return self.confirmed == len(self.answers) == self.expected


def ask(function: Callable[..., Any], seconds: float = SECONDS) -> list[Answer]:
    """What CrossHair says of a function's conditions: one answer each, and one that says so where there is none."""
    from crosshair.core_and_libs import analyze_function, run_checkables  # pyright: ignore[reportUnknownVariableType]
    from crosshair.options import AnalysisKind, AnalysisOptionSet

    kinds = [AnalysisKind.PEP316]
    options = AnalysisOptionSet(report_all=True, per_condition_timeout=seconds, analysis_kind=kinds)
    began = time.monotonic()
    messages = list(run_checkables(analyze_function(function, options)))
    took = time.monotonic() - began
    name = f"{function.__module__.rpartition('.')[2]}.{function.__qualname__}"
    if not messages:
        return [Answer(name, NO_CONDITION, "it has no contract that CrossHair reads", took)]
    return [
        Answer(name, each.state.name, "" if each.state.name == CONFIRMED else each.message, took) for each in messages
    ]


def run_gate(
    conditions: Sequence[Callable[..., Any]] = CONDITIONS,
    *,
    expected: int = EXPECTED,
    seconds: float = SECONDS,
    workers: int = 1,
) -> GateResult:
    """Ask about functions with one condition each.

    Args:
        conditions: functions at the top of a module.
        expected: how many conditions there must be.
        seconds: for one condition.
        workers: processes.
    """
    began = time.monotonic()
    if workers == 1:
        found = [ask(each, seconds) for each in conditions]
    else:
        names = [(each.__module__, each.__qualname__) for each in conditions]
        with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as executor:
            found = list(executor.map(partial(_ask_named, seconds=seconds), names))
    return GateResult(tuple(answer for each in found for answer in each), expected, time.monotonic() - began)


def _ask_named(name: tuple[str, str], seconds: float) -> list[Answer]:
    module, function = name
    return ask(getattr(import_module(module), function), seconds)
