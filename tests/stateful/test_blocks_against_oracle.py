"""The core's block machine beside the oracle, over histories that nobody wrote.

Two ways to the same comparison: a rule-based machine, whose failures read like scripts, and a walk decoded from
bytes, which is many times faster. Both tell every kind of event, legal or not, and compare answers, commands, error
classes, whole states, queries and every rule after each.
"""

import hashlib
import os
from collections import Counter
from typing import Any, Final

from hypothesis import example, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from tenure.core.config import BlockConfig
from tenure.spec.blocks import histories
from tenure.spec.blocks.goals import GoalBook
from tenure.spec.blocks.lockstep import Lockstep, walk
from tenure.spec.choices import Choices
from tests.stateful.subject import CoreSubject, Pair

WALKS: Final = {"mutation": 5, "deep": 2000}.get(os.environ.get("HYPOTHESIS_PROFILE", "default"), 25)
"""Seeded walks by profile; each makes some 215 events. `python -m tenure.model_checks.walks` walks by the million."""

configs = st.builds(
    BlockConfig,
    capacity=st.integers(3, 10),
    block_size=st.integers(2, 4),
    prefix_caching=st.sampled_from([True, True, True, False]),
    kv_events=st.booleans(),
    trace=st.booleans(),
    dp_rank=st.sampled_from([0, 3]),
    snapshots_max=st.sampled_from([1024, 2, 1]),
)
numbers = st.lists(st.integers(0, 255), max_size=10)


class BlocksAgainstOracle(RuleBasedStateMachine):
    """One rule a kind of event; the numbers decide which request, how many tokens, and whether it can be."""

    lockstep: Lockstep[Pair]

    @initialize(config=configs)
    def start(self, config: BlockConfig) -> None:
        self.lockstep = Lockstep(CoreSubject(), config)

    def tell(self, maker: histories.Maker, choices: list[int]) -> None:
        self.lockstep.tell(maker(self.lockstep.view, Choices(choices)))

    @rule(choices=numbers)
    def open_lease(self, choices: list[int]) -> None:
        self.tell(histories.open_lease, choices)

    @rule(choices=numbers)
    def allocate(self, choices: list[int]) -> None:
        self.tell(histories.allocate, choices)

    @rule(choices=numbers)
    def allocate_reserved(self, choices: list[int]) -> None:
        self.tell(histories.allocate_reserved, choices)

    @rule(choices=numbers)
    def authorize(self, choices: list[int]) -> None:
        self.tell(histories.authorize, choices)

    @rule(choices=numbers)
    def compute(self, choices: list[int]) -> None:
        self.tell(histories.compute, choices)

    @rule(choices=numbers)
    def generate(self, choices: list[int]) -> None:
        self.tell(histories.generate, choices)

    @rule(choices=numbers)
    def schedule_growth(self, choices: list[int]) -> None:
        self.tell(histories.schedule_growth, choices)

    @rule(choices=numbers)
    def compute_step(self, choices: list[int]) -> None:
        self.tell(histories.compute_step, choices)

    @rule(choices=numbers)
    def preempt(self, choices: list[int]) -> None:
        self.tell(histories.preempt, choices)

    @rule(choices=numbers)
    def finish(self, choices: list[int]) -> None:
        self.tell(histories.finish, choices)

    @rule(choices=numbers)
    def reserve_decode(self, choices: list[int]) -> None:
        self.tell(histories.reserve_decode, choices)

    @rule(choices=numbers)
    def release_decode(self, choices: list[int]) -> None:
        self.tell(histories.release_decode, choices)

    @rule(choices=numbers)
    def reserve_destination(self, choices: list[int]) -> None:
        self.tell(histories.reserve_destination, choices)

    @rule(choices=numbers)
    def reserve_external(self, choices: list[int]) -> None:
        self.tell(histories.reserve_external, choices)

    @rule(choices=numbers)
    def activate(self, choices: list[int]) -> None:
        self.tell(histories.activate, choices)

    @rule(choices=numbers)
    def cancel(self, choices: list[int]) -> None:
        self.tell(histories.cancel, choices)

    @rule(choices=numbers)
    def snapshot(self, choices: list[int]) -> None:
        self.tell(histories.snapshot, choices)

    @rule(choices=numbers)
    def attach(self, choices: list[int]) -> None:
        self.tell(histories.attach, choices)

    @rule(choices=numbers)
    def discard(self, choices: list[int]) -> None:
        self.tell(histories.discard, choices)

    @rule(choices=numbers)
    def satisfy(self, choices: list[int]) -> None:
        self.tell(histories.satisfy, choices)

    @rule()
    def keep(self) -> None:
        self.lockstep.keep()

    @precondition(lambda self: self.lockstep.kept)
    @rule(number=st.integers(0, 7))
    def go_back(self, number: int) -> None:
        self.lockstep.go_back(number)


TestBlocksAgainstOracle: Any = BlocksAgainstOracle.TestCase
TestBlocksAgainstOracle.settings = settings(max_examples=settings().max_examples // 2)


@given(choices=st.binary(max_size=2048), config=configs)
@example(choices=b"", config=BlockConfig(capacity=3, block_size=2))
def test_walk_of_any_bytes_core_and_oracle_agree(choices: bytes, config: BlockConfig) -> None:
    """Whatever is told in whatever order, the fast core and the plain oracle see it alike."""
    walk(choices, config, CoreSubject())


def test_walks_by_seed_agree_and_reach_what_must_be_reached() -> None:
    """A comparison that never meets a fence or a duplicate says nothing of them; scripts reach the rare rest."""
    book = GoalBook()
    told: Counter[str] = Counter()
    for seed in range(WALKS):
        stream = hashlib.shake_256(seed.to_bytes(4, "little")).digest(1500)
        config = BlockConfig(
            capacity=3 + seed % 6,
            block_size=2 + seed % 3,
            prefix_caching=seed % 8 != 0,
            kv_events=seed % 5 != 0,
            trace=seed % 2 == 0,
            snapshots_max=1024 if seed % 4 else 1,
        )
        told += walk(stream, config, CoreSubject(), book.observe).seen

    rare = {"pruned_in_part", "pinned_twice", "fenced_through_reservation", "fence_outlives_tenancies"}
    assert sum(told.values()) > 40 * WALKS
    if WALKS >= 25:
        assert set(book.missing) <= rare
        assert {maker for maker in EVENT_NAMES if not told[maker]} == set()


EVENT_NAMES = (
    "LeaseOpened",
    "AllocationRequested",
    "ReservedAllocationRequested",
    "WritesAuthorized",
    "TokensComputed",
    "TokenGenerated",
    "GrowthScheduled",
    "StepComputed",
    "LeasePreempted",
    "LeaseFinished",
    "DecodeReservationRequested",
    "DecodeReservationReleased",
    "DestinationRequested",
    "ExternalPrefixRequested",
    "DestinationActivated",
    "DestinationCancelled",
    "StoreSourcesSnapshotted",
    "SnapshotDiscarded",
    "DependencyAttached",
    "DependencySatisfied",
)
