"""Whatever bytes Hypothesis makes are walks: no rule is broken, and no machine differs from its oracle."""

from typing import Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tenure.model_checks.walks import MACHINES

SLOWNESS: Final = {"rows": 15, "rows-faults": 15, "joined-computed": 15, "joined-scheduled": 15}
"""Machines of which an example costs so many times what it costs of others."""


@pytest.mark.parametrize("name", MACHINES)
def test_walk_of_any_bytes_breaks_no_rule(name: str) -> None:
    """A failure here is a short byte string to begin with, and stays one."""
    machine = MACHINES[name]
    met: set[str] = set()
    events = 0

    @settings(max_examples=max(settings().max_examples // 15 // SLOWNESS.get(name, 1), 2))
    @given(st.binary(min_size=40, max_size=120))
    def walked(data: bytes) -> None:
        nonlocal events
        walker = machine.walker()
        walker.walk(data)
        events += walker.events
        met.update(walker.seen)

    walked()

    assert events > 10
    assert len(met) >= 10
