"""Profiles and folders that all tests share."""

import os

import pytest
from hypothesis import HealthCheck, settings

# `default` keeps the whole suite at a few minutes; `deep` is for nights: about a million steps a stateful test.
settings.register_profile("quick", max_examples=20, stateful_step_count=30, deadline=None)
settings.register_profile("default", max_examples=100, stateful_step_count=50, deadline=None)
settings.register_profile(
    "deep",
    max_examples=20_000,
    stateful_step_count=50,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put what takes minutes first, so that no worker is left alone with it at the end."""
    items.sort(key=lambda item: item.get_closest_marker("slow") is None)
