"""Runs the checks on a cache and says what it found."""

import shlex
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import partial
from typing import Final

from tenure.backends.capabilities import ATTRIBUTE
from tenure.backends.conformance import facade_checks, machine_checks, machine_histories
from tenure.backends.conformance.cache_registry import CACHE_CHECKS, CacheCapability, CacheCheck, CacheRig
from tenure.backends.conformance.cache_subjects import MachineMaker
from tenure.backends.conformance.report import Coverage, Report, Result, Verdict
from tenure.backends.conformance.runner import (
    TIMEOUT_S,
    Found,
    check_expected,
    chosen_of,
    command_again,
    in_time,
    result_of,
)

MODULES: Final = (machine_checks, machine_histories, facade_checks)
"""Whose import registers the checks."""
PATIENCE: Final = 10
"""So many times what one reply may take, a whole check may take."""


def check_cache(
    make_cache: MachineMaker | str,
    capabilities: Collection[CacheCapability] | None = None,
    *,
    seed: int = 0,
    expected_failures: Mapping[str, str] | None = None,
    only: Iterable[str] = (),
    timeout_s: float = TIMEOUT_S,
    maker_name: str | None = None,
    on_result: Callable[[Result], None] = lambda _: None,
) -> Report:
    """Run the kit on a cache.

    Args:
        make_cache: makes a fresh cache of options (`config`, `policy`, `seed`); or the command of a child process,
            which claims to be a machine.
        capabilities: what the cache claims; if not said, the attribute `capabilities` of the maker does.
        seed: of all values and walks.
        expected_failures: by check, why it fails. One that passes after all counts as a failure.
        only: ids of checks, or beginnings of them; all if none is given.
        timeout_s: what one reply may take; what takes longer is unknown, which is no pass.
        maker_name: `MODULE:NAME`, by which the command line finds the maker.
        on_result: told of each check when it is over.

    Raises:
        UnknownCheckError: `only` or `expected_failures` names no check.
    """
    is_child = isinstance(make_cache, str)
    default = (CacheCapability.MACHINE,) if is_child else getattr(make_cache, ATTRIBUTE, ())
    claimed = frozenset(default if capabilities is None else capabilities)
    expected = dict(expected_failures or {})
    check_expected(CACHE_CHECKS, expected)
    if isinstance(make_cache, str):
        name, by = make_cache, f"--exec {shlex.quote(make_cache)}"
    else:
        made = getattr(make_cache, "__qualname__", type(make_cache).__name__)
        name = by = maker_name or f"{make_cache.__module__}:{made}"
    results: list[Result] = []
    for each in chosen_of(CACHE_CHECKS, only):
        coverage: list[Coverage] = []
        found: Found = (Verdict.NOT_CLAIMED, "")
        if each.capability in claimed:
            run = partial(_run, each, make_cache, seed, timeout_s, coverage)
            found = in_time(run, PATIENCE * timeout_s)
        repeat = command_again(f"tenure conform-cache {by}", each.id, seed, timeout_s)
        repeat += "" if is_child else f" --capability {each.capability.title}"
        results.append(result_of(each, found, expected.get(each.id), repeat, coverage))
        on_result(results[-1])
    return Report(name, tuple(sorted(one.title for one in claimed)), seed, tuple(results))


def _run(
    one: CacheCheck, make_cache: MachineMaker | str, seed: int, timeout_s: float, coverage: list[Coverage]
) -> Found:
    """Run one check on a cache; `coverage` gets what it counted."""
    make, command = (None, make_cache) if isinstance(make_cache, str) else (make_cache, "")
    rig = CacheRig(make, command, seed, timeout_s)
    try:
        return Verdict.PASS, one.body(rig) or ""
    finally:
        coverage += [] if rig.coverage is None else [rig.coverage]
