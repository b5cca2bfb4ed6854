"""Progress: what is owed is paid, if everybody who is bound to act does."""

from typing import Any

import pytest

from tenure.model_checks.explorer import Counterexample, Limits, RefusedError, check_progress, explore
from tenure.model_checks.explorer.toys import Dining, Ring
from tenure.model_checks.model import Event


def walk(model: Any, example: Counterexample) -> tuple[list[Any], list[Event], Any]:
    """The states of the loop, its events, and where the loop ends."""
    state = list(model.initial())[example.initial]
    for event in example.events:
        assert event in model.events(state)
        state = model.take(state, event).state
    states = [state]
    for event in example.loop:
        assert event in model.events(state)
        state = model.take(state, event).state
        states.append(state)
    return states, list(example.loop), state


def is_fair(model: Any, example: Counterexample) -> bool:
    """Whether everybody bound to act cannot somewhere on the loop, or does; by the definition, without the graph."""
    states, loop, end = walk(model, example)
    assert model.encode(states[0]) == model.encode(end)
    possible = [{model.fairness(state, event) for event in model.events(state)} for state in states]
    acting = {model.fairness(state, event) for state, event in zip(states, loop, strict=False)}
    bound = set[str | None]().union(*possible) - {None}
    return all(actor in acting or any(actor not in here for here in possible) for actor in bound)


@pytest.mark.parametrize("stations", [1, 2, 4])
@pytest.mark.parametrize("workers", [1, 2])
def test_ring_of_stations_that_act_serves_everybody(stations: int, workers: int) -> None:
    """The positive case: a check that always finds a loop would be useless."""
    model = Ring(stations)
    found = check_progress(model, explore(model, keep_graph=True, workers=workers))

    assert () == found.broken
    assert stations == found.owed == len(found.classes)


def test_ring_that_loses_its_token_owes_for_ever() -> None:
    """A lost completion: nobody who is bound to act can, and doing nothing for ever is allowed."""
    model = Ring(3, may_lose=True)
    (example,) = check_progress(model, explore(model, keep_graph=True)).broken

    assert "lose" in {event[1] for event in example.events}
    assert () == example.loop
    # The token is lost once it is where nobody wants it, and somebody else does.
    assert 2 == example.depth
    assert is_fair(model, example)


def test_ring_in_which_nobody_is_bound_to_act_stops() -> None:
    """Without fairness nothing is ever paid; after one event already."""
    model = Ring(2, is_bound=False)
    (example,) = check_progress(model, explore(model, keep_graph=True)).broken

    assert (1, ()) == (example.depth, example.loop)


def test_station_that_may_use_again_starves_the_others() -> None:
    """The actor acts all the time, so it is fair; the others cannot."""
    model = Ring(3, may_hog=True)
    (example,) = check_progress(model, explore(model, keep_graph=True)).broken

    assert {"want", "use", "done"} == {event[1] for event in example.loop}
    assert is_fair(model, example)


@pytest.mark.parametrize("philosophers", [3, 4])
def test_philosopher_starves_though_nobody_stops(philosophers: int) -> None:
    """A fork that is free now and then is owed to nobody: weak fairness says so, and the loop must be fair by it."""
    model = Dining(philosophers, is_ordered=True)
    search = explore(model, keep_graph=True)
    (example,) = check_progress(model, search).broken
    states, _, _ = walk(model, example)

    assert search.finished
    assert example.loop
    assert is_fair(model, example)
    assert [owed for owed in model.owed(states[0]) if all(owed in model.owed(state) for state in states)]


def test_same_lasso_with_any_number_of_processes() -> None:
    """Two people must look at the same one."""
    model = Dining(4, is_ordered=True)
    found = [check_progress(model, explore(model, keep_graph=True, workers=workers)) for workers in (1, 2)]

    assert found[0] == found[1]


def test_progress_without_the_whole_graph_is_refused() -> None:
    """Whatever is missing looks like an actor that cannot act."""
    model = Ring(4)
    with pytest.raises(RefusedError, match="not kept"):
        check_progress(model, explore(model))
    with pytest.raises(RefusedError, match="30 states"):
        check_progress(model, explore(model, keep_graph=True, limits=Limits(states=30)))


class Renamed(Ring):
    """Says that it takes states for one that differ in the names of stations."""

    symmetric = True


def test_progress_together_with_symmetry_is_refused() -> None:
    """One starves while another with its part is served, and in the quotient that looks like progress."""
    model = Renamed(2)
    with pytest.raises(RefusedError, match="symmetry"):
        check_progress(model, explore(model, keep_graph=True))
