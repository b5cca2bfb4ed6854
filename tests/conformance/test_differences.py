"""A cache that says something else is told where, and not two whole records."""

import numpy as np
import pytest

from tenure.backends.conformance.differences import difference
from tenure.core.arrays import integers
from tenure.core.rows.answers import Done, StepBegan, Waiting
from tenure.core.rows.commands import Lane, ReleaseBuffers, ScatterPart
from tenure.core.rows.events import WaitedFor

RELEASE = ReleaseBuffers(4, Lane.GATHER, (1, 2), integers([7, 8]), (3,), ())


@pytest.mark.parametrize(
    ("found", "expected", "words"),
    [
        (StepBegan(2, ()), StepBegan(1, ()), "StepBegan.step is 2, and should be 1"),
        (
            Waiting(WaitedFor(reads=(1,))),
            Waiting(WaitedFor(reads=(2,))),
            "Waiting.waited_for.reads[0] is 1, and should be 2",
        ),
        (Done(), Waiting(WaitedFor()), f"it is Done(), and should be {Waiting(WaitedFor())}"),
        (
            ReleaseBuffers(4, Lane.GATHER, (1, 2), integers([7]), (3,), ()),
            RELEASE,
            "ReleaseBuffers.clones is [7], and should be [7, 8]",
        ),
        (
            ReleaseBuffers(4, Lane.GATHER, (1,), integers([7, 8]), (3,), ()),
            RELEASE,
            "ReleaseBuffers.after is (1,), and should be (1, 2)",
        ),
        (
            (ScatterPart("a", integers([0]), integers([1])),),
            (ScatterPart("a", integers([0]), integers([2])),),
            "tuple[0].slots is [1], and should be [2]",
        ),
        (np.zeros(1, np.int32), np.zeros(1, np.int64), "it is array([0], dtype=int32), and should be array([0])"),
    ],
)
def test_difference_names_the_way_to_what_stands_where_it_should_not(
    found: object, expected: object, words: str
) -> None:
    """Fields and places, the first one that differs; whole values only where they are of two kinds."""
    assert difference(found, expected) == words
