"""Executors and devices with one fault each, as `tests/fake` plants them, fail the kit by the check named for each."""

from typing import Final

import pytest

from tenure.backends.conformance import Verdict, check_device
from tenure.backends.fake import make_device
from tests.conformance.broken import CONTROLLED, Emulated
from tests.fake.race_mutants import MUTANTS

PINNED: Final = "T2.pinned"
ROWS: Final = "L1.rows-agree-with-the-oracle"
ANY_ORDER: Final = "L4.any-order"
ASIDE: Final = "L2.rows-are-set-aside"
LAGGING: Final = "L5.lagging-lanes"
EDGES: Final = "T1.all-edges"
NAMED: Final = {
    "page-copy-told-twice": ROWS,
    "preserved-too-late": ASIDE,
    "gather-out-of-order": ROWS,
    "no-zeros": ROWS,
    "leftover-not-copied": ROWS,
    "asides-forgotten": ASIDE,
    "chunk-copied-twice": ANY_ORDER,
    "scratch-let-go": LAGGING,
    "asides-let-go": LAGGING,
    "gather-never-told": EDGES,
    "view-that-keeps-nothing": "D6.tensor-keeps-alive",
}
"""The checks of those that no pinned trace shows: what failing takes long, or rows that only longer histories have."""
DRAWN: Final = frozenset({ROWS, ASIDE, ANY_ORDER})
"""The checks whose histories are drawn."""
LENT_EARLY: Final = ("scratch-let-go", "asides-let-go", "lent-twice")
"""Memory is somebody else's before its user has come to an end."""
SLOW: Final = frozenset({"gather-never-told"})
TIMEOUT_S: Final = 30.0
"""Long enough for the slowest machine; all but the slow ones fail long before."""


@pytest.mark.parametrize("name", [pytest.param(name, marks=[pytest.mark.slow] * (name in SLOW)) for name in MUTANTS])
def test_planted_race_fails_by_the_check_named_for_it(name: str) -> None:
    """On the emulated device, which has no other fault."""
    check = NAMED.get(name, PINNED)
    with MUTANTS[name].plant():
        report = check_device(make_device, only=[check], timeout_s=3 if name in SLOW else TIMEOUT_S)

    assert [(check, Verdict.FAIL)] == [(each.id, each.verdict) for each in report.results], report.results


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 5))
@pytest.mark.parametrize("name", sorted(name for name, check in NAMED.items() if check in DRAWN))
def test_planted_race_fails_whatever_the_seed_draws(name: str, seed: int) -> None:
    """A check goes on until it met what the fault is about."""
    with MUTANTS[name].plant():
        (result,) = check_device(make_device, only=[NAMED[name]], timeout_s=TIMEOUT_S, seed=seed).results

    assert Verdict.FAIL is result.verdict, result.message


def test_race_mutants_that_are_named_are_there() -> None:
    """None is left out by a slip of the pen."""
    assert {*MUTANTS} > {*NAMED, *LENT_EARLY} | SLOW


@pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (0, 2, 3, 4))])
@pytest.mark.parametrize("name", LENT_EARLY)
def test_memory_lent_early_shows_in_rows_at_every_seed(name: str, seed: int) -> None:
    """Devices of others do not watch their memory: nothing but wrong rows tells."""
    with MUTANTS[name].plant():
        (result,) = check_device(Emulated, CONTROLLED, only=[LAGGING], seed=seed).results

    assert Verdict.FAIL is result.verdict
    assert " rows of request " in result.message
