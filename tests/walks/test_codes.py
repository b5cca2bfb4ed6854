"""Walks are bytes, and bytes are walks: a trace of a counterexample is pinned as the bytes of the same walk."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tenure.core.errors import InvariantViolation
from tenure.model_checks.explorer import explore
from tenure.model_checks.explorer.toys import Counting, Dining, Slots
from tenure.model_checks.model import Event, Model, Taken
from tenure.model_checks.walks import NotOfferedError, decode, encode_events, follow, steps
from tenure.model_checks.walks.codes import STUCK_RULE

WRONG = 5
"""What the counting toy must not reach; the shortest way there has three events."""


class Wide(Slots):
    """Many events at once: an index does not fit a byte."""

    def events(self, state: bytes) -> list[Event]:
        return [*super().events(state), *(("engine", "look", number) for number in range(300))]

    def take(self, state: bytes, event: Event) -> Taken:
        return Taken(state) if event[1] == "look" else super().take(state, event)


def the_counterexample() -> tuple[Event, ...]:
    (found,) = explore(Counting(limit=10, wrong=WRONG)).broken
    return found.events


def test_counterexample_as_bytes_is_the_same_walk() -> None:
    """What a search found must be a test for good, and a byte string is what an example can hold."""
    events = the_counterexample()
    data = encode_events(Counting(10, WRONG), events)
    walked = list(steps(Counting(10, WRONG), data))

    assert list(events) == decode(Counting(10, WRONG), data)
    assert ["N01"] == [broken.rule for step in walked for broken in step.broken]
    assert walked[-1].broken


PINNED = encode_events(Counting(10, WRONG), the_counterexample())


@given(st.binary(max_size=2))
@example(PINNED)
def walk_of_the_toy(data: bytes) -> None:
    """What a regression test looks like: the pinned bytes are tried before all others."""
    for step in steps(Counting(10, WRONG), data):
        if step.broken:
            raise InvariantViolation(*step.broken[0])


def test_pinned_bytes_fail_again() -> None:
    """Two bytes are too few to reach the wrong number, so only the pinned walk can have."""
    with pytest.raises(InvariantViolation, match="N01"):
        walk_of_the_toy()


@given(st.binary(min_size=1, max_size=60))
def test_any_bytes_decode_to_events_that_encode_to_the_same_walk(data: bytes) -> None:
    """Shrinking and pinning rest on it, also where an index takes two bytes and where an event leads nowhere."""
    for model in (Slots(2, 2, 1), Wide(2, 2, 1)):
        events = decode(model, data)
        again = encode_events(model, events)

        assert events == decode(model, again)


def test_indexes_beyond_a_byte_take_two() -> None:
    """The last of three hundred events must be as reachable as the first."""
    model = Wide(1, 1, 1)
    (state,) = model.initial()
    last = model.events(state)[-1]

    assert 2 == len(encode_events(model, [last]))
    assert [last] == decode(model, encode_events(model, [last]))


def test_event_that_led_nowhere_is_not_offered_again() -> None:
    """A walk that looks at the same thing for ever sees nothing."""
    model = Wide(1, 1, 1)
    walked = decode(model, bytes(200))
    looks = [event for event in walked if event[1] == "look"]

    assert len(looks) == len(set(looks))


def test_step_tells_whether_it_led_anywhere() -> None:
    """Only states that something led to are counted."""
    for step in steps(Wide(1, 1, 1), bytes(range(200))):
        assert (step.event[1] == "look") == step.is_still


def test_event_that_cannot_happen_is_refused_when_encoded() -> None:
    """Bytes that stand for another walk would be a regression test of nothing."""
    with pytest.raises(NotOfferedError, match="event 1,") as refused:
        encode_events(Counting(2), [("counter", "add", 7)])

    assert 2 == refused.value.offered


def test_place_where_nothing_can_happen_is_a_fault_unless_it_may_rest() -> None:
    """Philosophers who all hold one fork wait for ever, and a walk must notice."""
    dining: Model[bytes] = Dining(2, is_ordered=False)
    takes = [("philosopher 0", "take", 0), ("philosopher 1", "take", 1)]

    assert [STUCK_RULE] == [broken.rule for broken in list(follow(dining, takes))[-1].broken]
    assert not list(follow(Counting(2), [("counter", "add", 2)]))[-1].broken
