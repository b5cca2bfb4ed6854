"""The facade on real memory beside the naive oracle, as Hypothesis' machine and as long seeded walks.

Each call is made of the oracle, of an inline cache and of one with a worker that dawdles. See `twins`.
"""

import hashlib
import os
from collections import Counter
from typing import Final

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule, run_state_machine_as_test

from tenure import RowConfig, RowPolicy, runtime
from tenure.spec.choices import Choices
from tenure.spec.rows.emissions import POLICIES
from tests.stateful.twins import Twins

SEEN: Final[Counter[str]] = Counter()
WALKS: Final = {"deep": 400}.get(os.environ.get("HYPOTHESIS_PROFILE", "default"), 16)
CALLS: Final = 120
BUDGETS: Final = (10**6, 60, 200, 30)

numbers = st.lists(st.integers(0, 255), max_size=24).map(Choices)


def make_config(blocks: int, block_size: int, pages: int, budget: int, gathers: int) -> RowConfig:
    """A small cache."""
    return RowConfig(
        num_blocks=blocks,
        block_size=block_size,
        page_rows_max=18,
        pages=pages,
        budget_bytes=budget,
        gathers_max=gathers,
        copy_chunk_bytes=4096,
        wait_timeout_s=60.0,
    )


class CachesAgree(RuleBasedStateMachine):
    """One rule a kind of call."""

    @initialize(
        config=st.builds(
            make_config,
            st.integers(2, 6),
            st.integers(1, 3),
            st.integers(2, 3),
            st.sampled_from(BUDGETS),
            st.sampled_from([64, 1]),
        ),
        policy=st.sampled_from(POLICIES),
        identities=st.sampled_from(["never", "at starts"]),
    )
    def begin(self, config: RowConfig, policy: RowPolicy, identities: str) -> None:
        self.twins = Twins(config, policy, identities, SEEN)

    @rule(choices=numbers)
    def step(self, choices: Choices) -> None:
        self.twins.start(choices)
        self.twins.save(choices)

    @rule(choices=numbers)
    def start(self, choices: Choices) -> None:
        self.twins.start(choices)

    @rule()
    def end_all(self) -> None:
        self.twins.end_all()

    @rule(choices=numbers)
    def start_badly(self, choices: Choices) -> None:
        self.twins.start_badly(choices)

    @rule(choices=numbers)
    def save(self, choices: Choices) -> None:
        self.twins.save(choices)

    @rule(choices=numbers)
    def save_badly(self, choices: Choices) -> None:
        self.twins.save_badly(choices)

    @precondition(lambda self: self.twins.plan is not None)
    @rule()
    def drop(self) -> None:
        self.twins.drop()

    @rule(choices=numbers)
    def materialize(self, choices: Choices) -> None:
        self.twins.materialize(choices)

    @rule(choices=numbers)
    def discard(self, choices: Choices) -> None:
        self.twins.discard(choices)

    @rule(choices=numbers)
    def call_badly(self, choices: Choices) -> None:
        self.twins.consume_badly(choices)
        self.twins.register_late(choices)
        self.twins.reset()

    def teardown(self) -> None:
        if hasattr(self, "twins"):
            self.twins.end()


@pytest.fixture(autouse=True)
def _waits_look_again_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """The device does not call when what it kept back is there."""
    monkeypatch.setattr(runtime, "LOOK_AGAIN_S", 0.002)


def test_r02_r17_caches_on_real_memory_agree_with_the_oracle() -> None:
    """Whatever a device does to timing, what callers see is what the requirement says."""
    SEEN.clear()
    run_state_machine_as_test(CachesAgree, settings=settings(max_examples=settings().max_examples // 3))

    for what in ("rows compared", "saved", "hits", "UnknownStepError"):
        assert SEEN[what], f"no walk met {what}: {SEEN}"


@pytest.mark.parametrize("gathers_max", [64, 1])
def test_r02_r18_long_walks_of_caches_agree_with_the_oracle(gathers_max: int) -> None:
    """Every mechanism is met: re-planned and preserved reads, flushes, pages that run out, unreadable hits."""
    seen: Counter[str] = Counter()
    for seed in range(WALKS):
        choices = Choices(hashlib.shake_256(f"{gathers_max} {seed}".encode()).digest(40 * CALLS))
        config = make_config(
            choices.pick([4, 6, 3]), choices.pick([2, 1, 3]), choices.pick([3, 2]), choices.pick(BUDGETS), gathers_max
        )
        twins = Twins(config, choices.pick(POLICIES), choices.pick(["never", "at starts"]), seen)
        usual = [twins.start, twins.save, twins.materialize, twins.save, twins.start, twins.save, twins.discard]
        for _ in range(CALLS):
            choices.often(usual, twins.start_badly, twins.save_badly, twins.consume_badly, twins.other)(choices)
        twins.end()

    expected = ["rows compared", "hits", "resumed with a hit", "out of pages", "reset True", "UnreadableHitError"]
    expected += ["flushes", "replanned", "dropped"] + ["preserved"] * (gathers_max == 1)
    missing = [what for what in expected if not seen[what]]
    assert not missing, f"no walk met {missing}: {seen}"
    assert seen["saved"] > 12 * WALKS, seen
