"""A plugin of pytest for mutation testing: most mutants die of a small test, so the walks come last.

Hypothesis repeats itself under it: whether a mutant dies is no matter of luck.
"""

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile(
    "mutation",
    max_examples=15,
    stateful_step_count=30,
    deadline=None,
    database=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Order the tests: those of one transition, then those of both machines, then the walks."""
    items.sort(
        key=lambda item: (
            item.path.parent.name == "stateful",
            item.path.name == "test_walk.py",
            item.path.parent.name == "joined",
            item.nodeid,
        )
    )
