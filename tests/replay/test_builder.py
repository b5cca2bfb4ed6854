"""The builder: late, in order, in whatever order of requests; and what it does when something fails."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from threading import Event
from threading import enumerate as threads
from typing import Any

import numpy as np
import pytest

from tenure.core.blocks.values import RequestId
from tenure.core.errors import InvariantViolation, UnknownStepError
from tenure.replay.builder import Builder
from tenure.replay.row_counters import RowCounters, SavedStep, Span
from tenure.replay.row_options import RowOptions
from tenure.replay.row_specs import parse_rows
from tenure.replay.row_values import PrefixWords, RowMaker, Rows
from tenure.replay.verifier import TOGETHER_MAX, Verifier, parts_of

SPECS = (parse_rows("hidden:4"), parse_rows("mm:2x3:int32"))
LIMIT_S = 60
"""Long enough for the slowest machine; only what hangs ever waits for it."""


@dataclass
class Outputs:
    """What a materialize returns, for tests to spoil."""

    hidden_states: Mapping[RequestId, Any] | None
    mm_outputs: Mapping[str, Mapping[RequestId, Any]]


@dataclass
class Cache:
    """Returns rows that it was given, and remembers who asked for what when."""

    steps: dict[int, Outputs] = field(default_factory=dict[int, Outputs])
    asked: list[tuple[int, tuple[RequestId, ...]]] = field(default_factory=list[tuple[int, tuple[RequestId, ...]]])
    discarded: list[int] = field(default_factory=list[int])
    handed: int = 0
    lateness: list[int] = field(default_factory=list[int])
    failing: int = 0

    def materialize(self, step: int, requests: Sequence[RequestId]) -> Outputs:
        self.lateness.append(self.handed - step)
        if step == self.failing:
            raise UnknownStepError(step, ())
        self.asked.append((step, tuple(requests)))
        return self.steps[step]

    def discard_step(self, step: int) -> None:
        self.discarded.append(step)


def span(request: int, first: int, before: int, after: int) -> Span:
    tokens = np.arange(after, dtype="<u4") + 1000 * request
    return Span(request, first, before, 0, PrefixWords(tokens.tobytes(), after).span(first, after))


def rows_of(spec_text: str, each: Span) -> Rows:
    maker = RowMaker(parse_rows(spec_text))
    rows = np.empty((len(each.words), *maker.spec.row_shape), maker.dtype)
    maker.fill(each.words, rows)
    return rows


def right_outputs(saved: SavedStep) -> Outputs:
    hidden = {each.request: rows_of("hidden:4", each) for each in saved.spans}
    mm = {each.request: rows_of("mm:2x3:int32", each) for each in saved.spans}
    return Outputs(hidden, {"mm": mm})


def some_step(step: int) -> SavedStep:
    """A hit, a chunk, and tokens that are generated one by one."""
    return SavedStep(step, (span(1, 0, 8, 12), span(2, 4, 4, 9), *(span(r, 20, 20, 21) for r in range(3, 9))))


def builder_threads() -> list[str]:
    return [thread.name for thread in threads() if thread.name == "tenure-builder"]


def run(cache: Cache, steps: int, checks: bool = True, seed: int = 0, **chosen: Any) -> RowCounters:
    """Hand steps over, one by one, and finish."""
    counters = RowCounters()
    options = RowOptions(specs=SPECS, **chosen)
    builder = Builder(cache, options, seed, counters, checks=checks)
    try:
        for step in range(1, steps + 1):
            saved = some_step(step)
            cache.steps.setdefault(step, right_outputs(saved))
            cache.handed = step
            builder.hand(saved)
        builder.finish()
    finally:
        builder.stop()
        builder.join()
        assert not builder_threads()
    return counters


def test_steps_are_consumed_in_order_and_all_rows_are_counted_and_verified() -> None:
    cache = Cache()

    counters = run(cache, 50, builder_lag=3)

    assert list(range(1, 51)) == [step for step, _ in cache.asked]
    # Per step and name: 12 rows with a hit of 8, 5 rows of a chunk, 6 of generated tokens.
    assert 50 * 2 * 23 == counters.handed_out == counters.verified
    assert 50 * 2 * 8 == counters.from_hits


def test_requests_are_sometimes_asked_for_in_another_order() -> None:
    """What comes back must not depend on the order of the batch."""
    cache = Cache()

    run(cache, 50)

    orders = {requests for _, requests in cache.asked}
    assert tuple(range(1, 9)) in orders
    assert len(orders) > 3
    assert {tuple(range(1, 9))} == {tuple(sorted(map(int, order))) for order in orders}


def test_a_late_builder_waits_for_the_steps_after(monkeypatch: pytest.MonkeyPatch) -> None:
    """What it gets must not depend on what was saved meanwhile."""

    class Latest:
        def __init__(self, *_: object) -> None:
            pass

        def integers(self, most: int, **_: Any) -> int:
            return most

        def random(self) -> float:
            return 1.0

    monkeypatch.setattr("tenure.replay.builder.stream", Latest)
    cache = Cache()

    run(cache, 20, builder_lag=3)

    # At the end nothing comes after, and the rest is built.
    assert all(late >= 3 for late in cache.lateness[:17])
    assert 20 == len(cache.lateness)


def test_steps_are_discarded_as_often_as_asked_for() -> None:
    cache = Cache()

    counters = run(cache, 60, discard_rate=0.5)

    assert counters.discarded_steps == len(cache.discarded)
    assert 15 < len(cache.discarded) < 45
    assert sorted([*cache.discarded, *(step for step, _ in cache.asked)]) == list(range(1, 61))


def test_without_checks_rows_are_counted_and_not_compared() -> None:
    wrong = right_outputs(some_step(1))
    assert wrong.hidden_states is not None
    wrong.hidden_states[1][:] = 0

    counters = run(Cache({1: wrong}), 1, checks=False)

    assert (46, 0) == (counters.handed_out, counters.verified)


def test_a_failure_on_its_thread_is_raised_where_steps_are_handed_over() -> None:
    """Nobody reads a thread's traceback; and nobody may wait for the pages of steps that it will never build."""
    cache = Cache(failing=2)

    with pytest.raises(UnknownStepError):
        run(cache, 10_000)

    assert [1] == [step for step, _ in cache.asked]


def test_after_a_failure_steps_are_discarded() -> None:
    cache = Cache(failing=1)
    builder = Builder(cache, RowOptions(specs=SPECS, builder_lag=3), 0, RowCounters(), checks=True)
    for step in range(1, 9):
        cache.handed = step
        # Whether it has failed by then is a matter of time.
        with suppress(UnknownStepError):
            builder.hand(some_step(step))

    with pytest.raises(UnknownStepError):
        builder.finish()

    assert list(range(2, 9)) == cache.discarded
    assert not builder_threads()


def test_a_builder_that_is_stopped_begins_no_further_step() -> None:
    """An interrupt must not wait for all that is left to build."""
    began, goes_on = Event(), Event()

    class Slow(Cache):
        def materialize(self, step: int, requests: Sequence[RequestId]) -> Outputs:
            began.set()
            assert goes_on.wait(LIMIT_S)
            return super().materialize(step, requests)

    cache = Slow({step: right_outputs(some_step(step)) for step in (1, 2, 3)})
    builder = Builder(cache, RowOptions(specs=SPECS, builder_lag=0), 0, RowCounters(), checks=True)
    for step in (1, 2, 3):
        builder.hand(some_step(step))
    assert began.wait(LIMIT_S)

    builder.stop()
    goes_on.set()
    builder.join()

    assert [1] == [step for step, _ in cache.asked]
    assert not builder_threads()


# --- What is wrong is found, and named --------------------------------------------------------------------------


def swapped(outputs: Outputs) -> None:
    rows: Any = outputs.mm_outputs["mm"]
    rows[3], rows[4] = rows[4], rows[3]


def one_bit(outputs: Outputs) -> None:
    assert outputs.hidden_states is not None
    outputs.hidden_states[1].view(np.uint8)[5, 0] ^= 128


def own_row(outputs: Outputs) -> None:
    outputs.mm_outputs["mm"][2][4] += 1


def too_few(outputs: Outputs) -> None:
    rows: Any = outputs.hidden_states
    rows[1] = rows[1][8:]


def another_dtype(outputs: Outputs) -> None:
    rows: Any = outputs.mm_outputs["mm"]
    rows[2] = rows[2].view(np.uint32)


def no_hidden(outputs: Outputs) -> None:
    outputs.hidden_states = None


def one_missing(outputs: Outputs) -> None:
    rows: Any = outputs.mm_outputs["mm"]
    del rows[8]


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (swapped, r"R02: request 3 got a wrong row of mm at position 20 \(the step's own row\) when step 2 was"),
        (one_bit, r"R02: request 1 got a wrong row of hidden at position 5 \(a row of its hit\) when step 2 was"),
        (own_row, r"R02: request 2 got a wrong row of mm at position 8 \(the step's own row\)"),
        (too_few, r"R02: request 1 got hidden with the shape \(4, 4\) of float32 .* expected \(12, 4\) of float32"),
        (another_dtype, r"R02: request 2 got mm with the shape \(5, 2, 3\) of uint32 .* of int32"),
        (no_hidden, "R02: request 1 got nothing of hidden when step 2"),
        (one_missing, "R02: request 8 got nothing of mm when step 2"),
    ],
)
def test_r02_a_wrong_row_is_found_and_named(monkeypatch: pytest.MonkeyPatch, spoil: Any, message: str) -> None:
    """A message that names request, name, position and step is where the search for the fault begins."""
    monkeypatch.setattr("tenure.replay.builder.REORDER_RATE", 0.0)
    wrong = right_outputs(some_step(2))
    spoil(wrong)

    with pytest.raises(InvariantViolation, match=message):
        run(Cache({2: wrong}), 5)


@pytest.mark.parametrize("place", [0, 1, 2])
def test_r02_wrong_rows_of_long_requests_are_named_too(place: int) -> None:
    """Long ones are compared alone, short ones in groups; neither may hide a row, or name another request's."""
    long = TOGETHER_MAX + 1
    saved = SavedStep(1, (span(1, 0, 0, 3), span(2, 7, 8, 7 + long), span(3, 0, 4, TOGETHER_MAX), span(4, 5, 5, 6)))
    outputs = right_outputs(saved)
    assert outputs.hidden_states is not None
    request, position = ((2, 7 + long - 1), (3, TOGETHER_MAX - 1), (4, 5))[place]
    rows = outputs.hidden_states[request]
    rows.view(np.uint8)[-1, -1] ^= 1
    verifier = Verifier(SPECS)

    parts = parts_of(SPECS[1], saved, outputs)
    assert 3 + long + TOGETHER_MAX + 1 == verifier.verify(SPECS[1], 1, parts)
    message = f"request {request} got a wrong row of hidden at position {position} "
    with pytest.raises(InvariantViolation, match=message):
        verifier.verify(SPECS[0], 1, parts_of(SPECS[0], saved, outputs))
