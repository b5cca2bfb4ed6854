"""What is broken: found at the known depth, by the shortest way, the same in every run."""

import pytest

from tenure.model_checks.explorer import (
    Counterexample,
    Limits,
    ModelError,
    RefusedError,
    explore,
    find_shortest,
    labelled,
    replay,
)
from tenure.model_checks.explorer.toys import Counting, Dining, Ring, Slots
from tenure.model_checks.model import Taken
from tests.explorer.machines import Forgetful, Raising, Several


@pytest.mark.parametrize("wrong", [0, 1, 2, 7, 41, 100])
@pytest.mark.parametrize("workers", [1, 2])
def test_planted_violation_is_found_by_the_shortest_way(wrong: int, workers: int) -> None:
    """A long counterexample is read by nobody."""
    search = explore(Counting(100, wrong), workers=workers)
    (example,) = search.broken

    assert ("N01", "state", (wrong + 1) // 2) == (example.rule, example.by, example.depth)
    assert wrong == sum(int(event[2]) for event in example.events)
    assert not search.finished
    assert not search.cut


def test_counterexample_is_the_least_one_with_any_number_of_processes() -> None:
    """Of several as short the one whose events come first: two people must look at the same one."""
    found = [explore(Counting(100, 41), workers=workers).broken for workers in (1, 2, 3)]

    assert found[0] == found[1] == found[2]
    # Of all ways to 41 in 21 events the one that takes the small step first is met first.
    assert (1, *(2 for _ in range(20))) == tuple(event[2] for event in found[0][0].events)


@pytest.mark.parametrize("workers", [1, 2])
def test_all_rules_broken_at_the_least_depth_are_told(workers: int) -> None:
    """Which rule breaks first in print must not hide that another breaks as early."""
    search = explore(Several(30), workers=workers)

    assert [("T01", "transition", 3), ("S01", "state", 3)] == [(one.rule, one.by, one.depth) for one in search.broken]


@pytest.mark.parametrize("philosophers", [2, 3, 5])
@pytest.mark.parametrize("workers", [1, 2])
def test_deadlock_is_found_after_one_fork_each(philosophers: int, workers: int) -> None:
    """A machine that stops where it is no place to rest breaks the rule that the caller names."""
    search = explore(Dining(philosophers, is_ordered=False), workers=workers, deadlock_rule="D11")
    (example,) = search.broken

    assert ("D11", "deadlock", philosophers) == (example.rule, example.by, example.depth)


def test_rest_at_a_quiescent_state_is_no_deadlock() -> None:
    """The limit is where counting may end; one below it is not reached without an event left."""
    assert not explore(Counting(10)).broken
    assert explore(Counting(10)).degree_min == 0


@pytest.mark.parametrize("about", ["state", "marks", "events", "judge"])
@pytest.mark.parametrize("workers", [1, 2])
def test_model_that_says_something_else_when_asked_again_is_noticed(about: str, workers: int) -> None:
    """Whatever such a model is said to prove is an accident."""
    search = explore(Forgetful(2000, about), workers=workers, limits=Limits(states=1500))

    assert search.unsound
    assert not search.finished


@pytest.mark.parametrize("workers", [1, 2])
def test_exception_out_of_the_model_comes_with_the_way_to_it(workers: int) -> None:
    """Nobody can mend what cannot be reached again."""
    with pytest.raises(ModelError, match="LookupError: no such number") as raised:
        explore(Raising(10, at=5), workers=workers)

    assert (("counter", "add", 1), ("counter", "add", 2), ("counter", "add", 2)) == raised.value.events[:3]
    assert 4 == len(raised.value.events)
    assert "take()" in str(raised.value)
    assert "4. ('counter', 'add', 1)" in str(raised.value)


def test_rule_broken_as_early_as_an_exception_is_told_first() -> None:
    """A crash after a wrong step is a consequence; the rule says what was wrong."""
    assert "N01" == explore(Raising(10, at=4, wrong=5)).broken[0].rule


def test_replay_says_what_every_event_leads_to() -> None:
    """A counterexample in a file is gone through again by whoever mends the machine."""
    (example,) = explore(Counting(10, 5)).broken
    model = Counting(10, 5)
    said = replay(model, example.events)

    assert list(example.events) == [event for event, _ in said]
    assert 5 == said[-1][1].state
    assert model.judge(5).broken


@pytest.mark.parametrize(
    ("events", "words"),
    [([("counter", "add", 3)], "cannot happen"), ([("counter", "add", 2)] * 9, "event 6")],
)
def test_replay_of_an_event_that_cannot_happen_is_refused(events: list[tuple[str | int, ...]], words: str) -> None:
    """An old file must not seem to pass."""
    with pytest.raises(RefusedError, match=words):
        replay(Counting(10), events)


def test_replay_tells_what_the_model_raised() -> None:
    """With the events up to it."""
    with pytest.raises(ModelError) as raised:
        replay(Raising(10, at=0), [("counter", "add", 1)])

    assert (("counter", "add", 1),) == raised.value.events


def test_shortest_way_to_a_mark_or_a_rule_is_found() -> None:
    """A witness shows a reader that a goal can be met, and how."""
    found = find_shortest(Counting(10, 7), "event Grown")

    assert found is not None
    assert (("counter", "add", 1),) == found.events
    found = find_shortest(Several(30), "T02", by="rule", workers=2)
    assert isinstance(found, Counterexample)
    assert 6 == found.depth
    assert find_shortest(Counting(10), "goal odd") is None


def test_transitions_of_a_small_graph_are_told_with_their_events() -> None:
    """For drawings: every edge is a transition of the model."""
    model = Ring(2)
    graph = explore(model, keep_graph=True).graph
    assert graph is not None
    states = list(graph.keys)
    edges = labelled(model, graph)

    assert 12 < len(edges) == len(set(edges))
    assert all(source < len(states) and target < len(states) for source, target, _ in edges)


def test_free_slots_have_no_residue() -> None:
    """The toy itself: a drained place is the same as one never used."""
    model = Slots(1, 1, 1)
    way = [("engine", "admit", 0, 1), ("engine", "issue", 0, 0), ("engine", "abort", 0), ("device", "complete", 0, 0)]
    said = replay(model, [*way, ("engine", "drain", 0)])

    assert Taken(bytes(3)) == said[-1][1]
