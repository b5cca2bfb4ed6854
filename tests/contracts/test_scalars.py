"""What contracts state for single numbers is what production computes over arrays."""

from itertools import product
from typing import Any

import numpy as np
import pytest

from tenure.core.columns import spans
from tenure.core.config import RowConfig
from tenure.core.rows.tables import Tables
from tenure.model_checks.contracts import gate
from tenure.model_checks.contracts.rows import effective_claim, span_ends


def test_r21_effective_claim_of_a_slot_is_what_the_contract_states() -> None:
    """Four contracts are about `effective_claim`; the machine computes it for many slots at once."""
    cases = list(product(range(5), repeat=2))
    tables = Tables(RowConfig(num_blocks=len(cases), block_size=1, page_rows_max=1, pages=2))
    tables.newest["m"] = np.array([claim for claim, _ in cases], dtype=np.int64)
    tables.tenancy = np.array([tenancy for _, tenancy in cases], dtype=np.int64)
    for floor in range(5):
        tables.floor = floor
        found = tables.effective("m", np.arange(len(cases), dtype=np.int64)).tolist()

        assert [effective_claim(claim, tenancy, floor) for claim, tenancy in cases] == found


def test_spans_reach_into_the_blocks_that_the_contract_states() -> None:
    """Slots of a span, made by the machine, lie in the blocks between the two that `span_ends` names."""
    for first, count, size in product(range(6), range(1, 7), range(1, 5)):
        slots = spans(np.array([first]), np.array([first + count]))
        low, high = span_ends(first, count, size)

        assert list(range(low, high + 1)) == sorted({int(slot) // size for slot in slots})


def test_spans_are_the_numbers_between_their_ends() -> None:
    """The arithmetic with running sums equals the plain loop, empty spans included."""
    ends = list(product(range(3), repeat=2))
    for some in product([(start, start + length) for start, length in ends], repeat=2):
        starts, stops = (np.array(each, dtype=np.int64) for each in zip(*some, strict=True))

        assert [number for start, stop in some for number in range(start, stop)] == spans(starts, stops).tolist()


VALUES: dict[Any, list[Any]] = {
    int: [-2, -1, 0, 1, 2, 3, 9, 2**48, 2**48 + 1],
    bool: [False, True],
    tuple[int, int]: [(0, 0), (1, 0), (0, 2)],
}


@pytest.mark.parametrize("condition", gate.CONDITIONS, ids=lambda each: each.__name__)
def test_contract_runs_on_plain_values(condition: Any) -> None:
    """Where CrossHair is not installed the functions are still what they say: they run, and meet their contract.

    A function that raised on plain values would be confirmed of nothing.
    """
    doc = condition.__doc__.split("\n")
    pre = next((line.partition("pre:")[2] for line in doc if "pre:" in line), "True")
    post = next(line.partition("post:")[2] for line in doc if "post:" in line)
    kinds = {name: kind for name, kind in condition.__annotations__.items() if name != "return"}
    options = [VALUES[kind] if kind in VALUES else list(kind) for kind in kinds.values()]
    checked = 0
    for chosen in product(*options):
        scope = {**condition.__globals__, **dict(zip(kinds, chosen, strict=True))}
        # The contract itself, from this repository's own docstring.
        if eval(pre, scope):  # noqa: S307
            checked += 1

            assert eval(post, {**scope, "_": condition(*chosen)}), chosen  # noqa: S307

    assert checked
