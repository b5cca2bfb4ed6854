"""Executors and devices with one fault each, as `tests/fake` plants them, fail the kit by the check named for each."""

from typing import Final

import pytest

from tenure.backends.conformance import Verdict, check_device
from tenure.backends.fake import make_device
from tests.fake.race_mutants import MUTANTS

PINNED: Final = "T2.pinned"
ROWS: Final = "L1.rows-agree-with-the-oracle"
ANY_ORDER: Final = "L4.any-order"
EDGES: Final = "T1.all-edges"
NAMED: Final = {
    "page-copy-told-twice": ROWS,
    "preserved-too-late": ROWS,
    "gather-out-of-order": ROWS,
    "no-zeros": ROWS,
    "leftover-not-copied": ROWS,
    "asides-forgotten": ROWS,
    "chunk-copied-twice": ANY_ORDER,
    "gather-never-told": EDGES,
    "view-that-keeps-nothing": "D6.tensor-keeps-alive",
}
"""The checks of those that no pinned trace shows: what failing takes long, or rows that only longer histories have."""
BEYOND: Final = frozenset({"scratch-let-go", "asides-let-go"})
"""Faults of the executor, which no device can have; they show where memory is used again, which simulations do."""
SLOW: Final = frozenset({"gather-never-told"})


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] * (name in SLOW)) for name in MUTANTS if name not in BEYOND]
)
def test_planted_race_fails_by_the_check_named_for_it(name: str) -> None:
    """On the emulated device, which has no other fault."""
    check = NAMED.get(name, PINNED)
    with MUTANTS[name].plant():
        report = check_device(make_device, only=[check], timeout_s=3)

    assert [(check, Verdict.FAIL)] == [(each.id, each.verdict) for each in report.results], report.results


def test_race_mutants_that_are_named_are_there() -> None:
    """None is left out by a slip of the pen."""
    assert {*MUTANTS} > BEYOND | {*NAMED} | SLOW
