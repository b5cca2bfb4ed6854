"""What the scheduler promises: budgets, chunks, capped hits, and whom it preempts."""

from collections.abc import Sequence
from typing import TypeVar

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tenure.core.blocks import queries
from tenure.core.blocks.sequence import RequestSequence, new_sequence
from tenure.core.blocks.values import (
    AllocationRequested,
    Answer,
    Event,
    Exhausted,
    GrowthScheduled,
    LeaseFinished,
    LeasePreempted,
    Ready,
    StepComputed,
    TokenGenerated,
    TokensComputed,
)
from tenure.core.config import BlockConfig
from tenure.core.errors import InvariantViolation
from tenure.replay.checking import Checker
from tenure.replay.counters import Counters
from tenure.replay.disturbances import Disturbances
from tenure.replay.driver import Driver
from tenure.replay.scheduler import Scheduler

BLOCK = 4
Kind = TypeVar("Kind", bound=Event)


class Recorder(Driver):
    """A driver that remembers what happened, step by step."""

    steps: list[list[tuple[Event, Answer]]]

    def apply(self, event: Event) -> Answer:
        answer = super().apply(event)
        self.steps[-1].append((event, answer))
        return answer

    def told(self, kind: type[Kind]) -> list[Kind]:
        return [event for step in self.steps for event, _ in step if isinstance(event, kind)]


def request(number: int, tokens: Sequence[int], output: int) -> RequestSequence:
    return new_sequence(number, np.array(tokens, dtype=np.uint32), output, BLOCK)


def unique(number: int, length: int, output: int) -> RequestSequence:
    return request(number, range(1000 * number, 1000 * number + length), output)


def run(
    requests: Sequence[RequestSequence],
    *,
    capacity: int = 64,
    running: int = 8,
    budget: int = 64,
    check: bool = True,
    disturbances: Disturbances | None = None,
) -> Recorder:
    counters = Counters()
    config = BlockConfig(capacity=capacity, block_size=BLOCK, kv_events=True)
    driver = Recorder(config, counters, checker=Checker(counters, 1) if check else None)
    driver.steps = [[]]
    scheduler = Scheduler(driver, iter(requests), running, budget, disturbances)
    while scheduler.step():
        driver.steps.append([])
    driver.finish()
    return driver


@pytest.mark.parametrize(("length", "hits"), [(7, 1), (8, 1), (9, 2), (3, 0), (4, 0)])
def test_a_full_hit_still_computes_the_last_token(length: int, hits: int) -> None:
    """Somebody has to compute the row that the first output token is sampled from."""
    driver = run([request(0, range(length), 1), request(1, range(length), 1)], running=1)

    second = driver.told(AllocationRequested)[-1]
    assert second == AllocationRequested(1, length, hits)
    assert driver.told(TokensComputed)[-1] == TokensComputed(1, hits * BLOCK, length)
    assert driver.counters.hit_tokens == hits * BLOCK


def test_a_long_prompt_is_computed_in_chunks_of_the_budget() -> None:
    driver = run([unique(0, 12, 2)], running=1, budget=5)

    assert driver.told(TokensComputed) == [TokensComputed(0, 0, 5), TokensComputed(0, 5, 10), TokensComputed(0, 10, 12)]
    assert len(driver.told(TokenGenerated)) == len(driver.told(StepComputed)) == 1


def test_decoding_requests_go_first_and_share_one_event() -> None:
    """A step costs two events for all decoding requests, however many there are."""
    driver = run([unique(n, 5, 3) for n in range(3)], budget=15)

    assert driver.told(GrowthScheduled) == [GrowthScheduled((0, 1, 2))] * 2
    assert driver.told(StepComputed) == [StepComputed((0, 1, 2))] * 2
    assert driver.counters.steps == 3


def test_decoding_requests_leave_what_is_left_of_the_budget_to_prompts() -> None:
    driver = run([unique(0, 4, 9), unique(1, 8, 1)], running=2, budget=4)

    assert [event for event in driver.told(TokensComputed) if event.request == 1] == [
        TokensComputed(1, 0, 3),
        TokensComputed(1, 3, 6),
        TokensComputed(1, 6, 8),
    ]


def test_requests_are_admitted_in_order_and_never_more_than_may_run() -> None:
    driver = run([unique(n, 3, 4) for n in range(5)], running=2)

    admitted = [event.request for event in driver.told(AllocationRequested)]
    assert admitted == [0, 1, 2, 3, 4]
    assert max(len(event.requests) for event in driver.told(GrowthScheduled)) == 2


def test_a_request_without_output_ends_after_its_prompt() -> None:
    driver = run([unique(0, 6, 0)], budget=4, running=1)

    assert not driver.told(TokenGenerated)
    assert not driver.told(GrowthScheduled)
    assert (driver.counters.requests, driver.counters.output_tokens, driver.counters.steps) == (1, 0, 2)


def test_nobody_is_preempted_for_an_admission() -> None:
    """An admission that found no capacity is not tried again before a request finishes: it would cost each step."""
    driver = run([unique(0, 12, 4), unique(1, 8, 1)], capacity=4)

    refused = [answer for step in driver.steps for _, answer in step if isinstance(answer, Exhausted)]
    assert refused == [Exhausted(needed=2, available=1)]
    assert driver.told(LeasePreempted) == []


def test_the_last_admitted_request_is_preempted_and_comes_back_first() -> None:
    """Those that came first keep what they have, and nobody overtakes the one that had to give up its blocks."""
    driver = run([unique(0, 7, 6), unique(1, 7, 6), unique(2, 3, 1)], capacity=5, running=2)

    assert driver.told(LeasePreempted)[0] == LeasePreempted(1)
    assert [event.request for event in driver.told(AllocationRequested)] == [0, 1, 1, 2]


def test_a_preempted_request_keeps_its_output_and_computes_it_anew() -> None:
    driver = run([unique(0, 7, 6), unique(1, 7, 6)], capacity=5)

    again = driver.told(TokensComputed)[-1]
    assert driver.told(LeasePreempted) == [LeasePreempted(1)]
    assert (again.request, again.after > 7) == (1, True)
    assert driver.counters.output_tokens == 12


def test_a_prompt_cut_short_that_finds_no_capacity_gives_up_its_own_blocks() -> None:
    """It was admitted last, so it gives way to those that decode."""
    driver = run([unique(0, 7, 6), unique(1, 12, 2)], capacity=4, budget=9)

    assert driver.told(TokensComputed)[:2] == [TokensComputed(0, 0, 7), TokensComputed(1, 0, 2)]
    assert driver.told(LeasePreempted) == [LeasePreempted(1)]
    assert driver.told(TokensComputed)[2:] == [TokensComputed(1, 0, 9), TokensComputed(1, 9, 12)]


def test_b42_hits_after_a_preemption_do_not_count_as_sharing() -> None:
    """B42: a request that finds its own blocks again saved nothing that anybody else computed."""
    # Request 0 takes the preempted request's second block, the leaf, and leaves it the first one.
    driver = run([unique(0, 7, 3), unique(1, 8, 1 + 1)], capacity=4)

    assert driver.told(LeasePreempted) == [LeasePreempted(1)]
    assert driver.told(AllocationRequested)[-1] == AllocationRequested(1, 9, 1)
    counters = driver.counters
    assert (counters.hit_tokens, counters.hit_blocks, counters.hit_tokens_after_preemption) == (0, 0, 4)
    assert (counters.admitted, counters.prompt_tokens, counters.prompt_blocks) == (2, 15, 4)


def test_a_request_that_just_fits_runs_alone_without_preemption() -> None:
    driver = run([unique(0, 9, 7), unique(1, 9, 7)], capacity=4, running=1)

    assert driver.counters.preemptions == 0
    assert driver.counters.requests == 2


def test_evictions_are_counted_duplicates_included() -> None:
    """A Removed event names a hash when its last copy goes; the counter counts blocks."""
    twins = [request(n, range(8), 1) for n in (0, 1)]  # computed at the same time, so each keeps its own copy
    driver = run([*twins, unique(2, 16, 1)], capacity=5, running=2)

    assert (driver.counters.evicted_blocks, driver.counters.removed_hashes) == (3, 1)


@pytest.mark.parametrize("length", [8, 4])
def test_a_request_that_can_never_fit_is_our_own_fault(length: int) -> None:
    """Bad input is found before; what comes to the scheduler fits, or the machine lost capacity."""
    with pytest.raises(InvariantViolation, match="I11"):
        run([unique(0, length, 2)], capacity=1, check=False)


REQUESTS = st.lists(st.tuples(st.integers(0, 2), st.integers(1, 20), st.integers(0, 8)), min_size=1, max_size=8)


@settings(max_examples=60)
@given(REQUESTS, st.integers(7, 16), st.integers(1, 4), st.integers(4, 24))
def test_every_request_gets_exactly_its_output_within_every_bound(
    drawn: list[tuple[int, int, int]], capacity: int, running: int, budget: int
) -> None:
    """Whatever the cache and the mix: all rules hold, all requests end, and no step exceeds its budget."""
    requests = [request(n, range(100 * p, 100 * p + length), output) for n, (p, length, output) in enumerate(drawn)]

    driver = run(requests, capacity=capacity, running=running, budget=budget)

    assert sorted(str(event) for event in driver.told(LeaseFinished)) == [
        str(LeaseFinished(n)) for n in range(len(drawn))
    ]
    assert driver.counters.output_tokens == sum(output for _, _, output in drawn)
    assert queries.num_active(driver.state) == 0
    assert driver.counters.peak_active_blocks <= capacity
    for step in driver.steps:
        tokens = 0
        for event, answer in step:
            match event:
                case TokensComputed(_, before, after):
                    tokens += after - before
                case StepComputed(ids):
                    tokens += len(ids)
                    assert len(ids) <= running
                case AllocationRequested(_, known, hits) if isinstance(answer, Ready):
                    assert hits * BLOCK < known
                case _:
                    pass
        assert tokens <= budget


# --- Disturbances -----------------------------------------------------------------------------------------------


@settings(max_examples=60)
@given(REQUESTS, st.integers(7, 16), st.integers(1, 4), st.floats(0, 1), st.floats(0, 0.5), st.integers(0, 2**64 - 1))
def test_every_disturbed_request_ends_once(
    drawn: list[tuple[int, int, int]], capacity: int, running: int, abort: float, preempt: float, seed: int
) -> None:
    """Whoever is aborted is gone, whoever is preempted comes back, and admission goes on: all rules hold meanwhile."""
    requests = [request(n, range(100 * p, 100 * p + length), output) for n, (p, length, output) in enumerate(drawn)]

    driver = run(requests, capacity=capacity, running=running, disturbances=Disturbances(seed, abort, preempt))

    assert list(range(len(drawn))) == sorted(int(event.request) for event in driver.told(LeaseFinished))
    counters = driver.counters
    assert len(drawn) == counters.requests + counters.aborts == counters.admitted
    assert len(driver.told(LeasePreempted)) == counters.preemptions + counters.chosen_preemptions
    assert queries.num_active(driver.state) == 0
    if counters.aborts == 0:
        assert counters.output_tokens == sum(output for _, _, output in drawn)


def test_aborts_reach_running_and_waiting_requests() -> None:
    """A request that waits after a preemption can be given up like any other, and holds nothing then."""
    requests = [unique(n, 7, 12) for n in range(20)]

    driver = run(requests, capacity=6, running=3, disturbances=Disturbances(0, 1.0, 0.0))

    aborted_while_waiting = 0
    held: dict[object, bool] = {}
    for step in driver.steps:
        for event, answer in step:
            match event:
                case AllocationRequested(number, _, _):
                    held[number] = isinstance(answer, Ready)
                case LeasePreempted(number):
                    held[number] = False
                case LeaseFinished(number):
                    aborted_while_waiting += not held[number]
                case _:
                    pass
    assert aborted_while_waiting > 0
    assert driver.counters.aborts > aborted_while_waiting


def test_half_of_the_steps_may_begin_with_a_preemption() -> None:
    driver = run([unique(n, 9, 30) for n in range(4)], disturbances=Disturbances(0, 0.0, 0.5))

    counters = driver.counters
    assert 0.3 < counters.chosen_preemptions / counters.steps < 0.7
    assert (counters.requests, counters.output_tokens, counters.preemptions) == (4, 120, 0)
    assert counters.hit_tokens_after_preemption > 0


@pytest.mark.parametrize("rate", [0.0, 0.25, 1.0])
def test_so_many_requests_are_to_be_aborted_as_was_asked_for(rate: float) -> None:
    disturbances = Disturbances(3, rate, 0.0)

    drawn = [disturbances.steps_to_abort(10) for _ in range(2000)]

    chosen = [steps for steps in drawn if steps is not None]
    assert abs(len(chosen) / len(drawn) - rate) < 0.04
    assert set(chosen) == (set(range(1, 11)) if rate else set())


def test_a_request_without_output_is_aborted_after_its_first_step() -> None:
    assert 1 == Disturbances(0, 1.0, 0.0).steps_to_abort(0)


def test_nobody_is_preempted_where_nobody_runs() -> None:
    disturbances = Disturbances(0, 0.0, 0.5)

    assert {None} == {disturbances.preempted(0) for _ in range(20)}


def test_one_rate_changes_no_draw_of_the_other() -> None:
    """So that what a rate costs can be seen by changing it alone."""
    few, many = Disturbances(7, 0.1, 0.3), Disturbances(7, 0.9, 0.3)
    for each in (few, many):
        each.steps_to_abort(10)

    assert [few.preempted(5) for _ in range(50)] == [many.preempted(5) for _ in range(50)]
