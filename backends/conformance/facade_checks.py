"""Checks of a cache that keeps rows itself, beside the naive oracle: content, and which calls are refused."""

import hashlib
from collections import Counter
from collections.abc import Sequence
from typing import Final

from tenure.backends.conformance.cache_registry import CacheCapability, CacheRig, cache_check
from tenure.backends.conformance.facade_pair import FacadePair
from tenure.backends.conformance.histories import numbers, require_met
from tenure.backends.conformance.rig import CheckFailedError
from tenure.core.config import RowConfig
from tenure.spec.choices import Choices

HISTORIES: Final = 8
CALLS: Final = 60
NUMBERS: Final = 40
"""Numbers that one call uses up at most, about."""


def _config(choices: Choices, wait_timeout_s: float) -> RowConfig:
    return RowConfig(
        num_blocks=choices.pick([4, 6, 3]),
        block_size=choices.pick([2, 1, 3]),
        page_rows_max=18,
        pages=choices.pick([3, 2]),
        budget_bytes=choices.pick([10**6, 60, 200, 30]),
        copy_chunk_bytes=4096,
        wait_timeout_s=wait_timeout_s,
    )


def histories(
    rig: CacheRig, usual: Sequence[str], rare: Sequence[str], must_see: Sequence[str], last: Sequence[str] = ()
) -> str:
    """Seeded histories of these calls, each on a fresh cache; more of them than usual until they met what they must."""
    assert rig.make is not None
    seen: Counter[str] = Counter()
    for number in numbers(HISTORIES, seen, must_see):
        choices = Choices(hashlib.shake_256(f"{rig.seed} {number}".encode()).digest(NUMBERS * CALLS))
        pair = FacadePair(rig.make, _config(choices, rig.timeout_s), choices, seen, rig.seed)
        try:
            for _ in range(CALLS):
                name = choices.often(usual, *rare) if rare else choices.pick(usual)
                getattr(pair, name)(choices)
            for name in last:
                getattr(pair, name)(choices)
            pair.end()
        except CheckFailedError as error:
            raise CheckFailedError(f"history {number}: {error}") from None
    require_met(seen, must_see)
    return f"{seen['histories']} histories, {seen['rows']} rows compared, {seen['saves']} saves, {seen['hits']} hits"


STEPS: Final = ("start", "save", "materialize", "start", "save", "start", "save")


@cache_check(
    "F1.rows",
    "R02: rows are those of the request's own prefix, hits as after their step's save",
    CacheCapability.FACADE,
)
def rows(rig: CacheRig) -> str:
    """Steps, hits, materialize."""
    return histories(rig, STEPS, ("materialize",), ["rows", "hits", "saves"])


@cache_check("F2.consumed-once", "R01: a step is consumed once, for requests that it has", CacheCapability.FACADE)
def consumed_once(rig: CacheRig) -> str:
    """Steps that are gone, and requests that a step has not."""
    met = ["refused materialize", "refused discard_step"]
    return histories(rig, (*STEPS, "consume_badly"), ("discard",), met)


@cache_check("F3.refusals", "R15: bad input raises before anything changes", CacheCapability.FACADE)
def refusals(rig: CacheRig) -> str:
    """Bad starts, bad saves, policies that come too late."""
    met = ["refused save_outputs", "refused new_step_starts", "refused register_policy"]
    return histories(rig, (*STEPS, "start_badly", "save_badly"), ("register_late",), met)


@cache_check(
    "F4.given-up",
    "R21, R22: a step that is given up leaves no row, and one that is not saved lets none begin",
    CacheCapability.FACADE,
)
def given_up(rig: CacheRig) -> str:
    """Steps that are dropped or discarded, and hits of slots that had rows until a dropped step was to compute them."""
    return histories(rig, (*STEPS, "drop"), ("discard",), ["rows", "drops", "hits of what was given up"])


@cache_check("F5.reset", "R24: a reset forgets everything, or is refused and changes nothing", CacheCapability.FACADE)
def reset(rig: CacheRig) -> str:
    """Early and in time."""
    return histories(rig, STEPS, ("reset",), ["rows", "reset True", "reset False"])


@cache_check(
    "F6.shutdown",
    "R11: a cache that is shut down begins, saves and hands out nothing, however often it is told",
    CacheCapability.FACADE,
)
def shutdown(rig: CacheRig) -> str:
    """At the end of a history."""
    calls = ("new_step_starts", "register_policy", "save_outputs", "drop_step", "materialize", "discard_step")
    met = [f"refused {each}" for each in calls]
    return histories(rig, STEPS, (), met, last=("start", "shut_down"))
