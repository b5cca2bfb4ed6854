"""What is counted, against closed forms and against ourselves with other means."""

import gc
import multiprocessing
import subprocess
import sys

import pytest

from tenure.model_checks.explorer import Limits, RefusedError, explore
from tenure.model_checks.explorer.toys import Counting, Dining, Ring, Slots
from tenure.model_checks.model import Judged
from tests.explorer.machines import Packed, Raising, plain_search
from tests.paths import ROOT


@pytest.mark.parametrize(
    ("requests", "slots", "pages"), [(1, 1, 1), (2, 1, 2), (1, 2, 2), (3, 2, 1), (2, 3, 1), (3, 2, 2)]
)
def test_states_of_the_slots_are_those_of_the_closed_form(requests: int, slots: int, pages: int) -> None:
    """A search that loses one state can lose the one that matters."""
    model = Slots(requests, slots, pages)
    search = explore(model)

    assert model.distinct() == search.distinct
    assert model.depth() == search.depth
    assert search.finished
    assert search.distinct == sum(search.per_depth)
    assert search.transitions == sum(count.count for count in search.events)


@pytest.mark.slow
def test_counts_of_a_large_scope_are_those_of_other_checkers() -> None:
    """TLC and Spin were given the same machine; three numbers must agree."""
    search = explore(Slots(4, 3, 2))

    assert (206_641, 1_058_820, 21) == (search.distinct, search.transitions, search.depth)
    assert search.finished


@pytest.mark.slow
def test_counts_of_a_million_states_are_those_of_other_checkers() -> None:
    """The same with more states than fit in anything small; compact, whose runs are merged on the way."""
    search = explore(Slots(3, 3, 3), visited="compact")

    assert (1_110_649, 7_016_760, 27) == (search.distinct, search.transitions, search.depth)


@pytest.mark.parametrize("visited", ["exact", "compact"])
@pytest.mark.parametrize("workers", [1, 2, 3])
def test_counts_with_other_means_are_the_same(visited: str, workers: int) -> None:
    """However many processes, and however states are told apart: the numbers prove something only if they agree."""
    found = explore(Slots(3, 2, 3), workers=workers, visited="compact" if visited == "compact" else "exact")

    assert plain_search().counts() == found.counts()
    assert (visited == "compact") == (found.collision > 0)


def test_two_runs_say_the_same() -> None:
    """Nothing of it may depend on hashing or on time."""
    assert explore(Slots(3, 2, 2)).counts() == explore(Slots(3, 2, 2)).counts()


def test_out_degree_of_a_number_that_grows_is_known() -> None:
    """The table at the end is read by people who look for a state in which nothing can happen."""
    search = explore(Counting(10))

    assert (11, 19, 0, 2) == (search.distinct, search.transitions, search.degree_min, search.degree_max)
    assert 19 / 11 == search.degree_mean
    assert (1, 2, 2, 2, 2, 2) == search.per_depth


def test_marks_are_counted_with_the_depth_of_the_first() -> None:
    """What was never seen proves nothing, and how early it was seen says how much of it there was."""
    marks = {seen.mark: (seen.count, seen.depth) for seen in explore(Counting(10)).marks}

    assert {"goal even": (6, 0), "event Grown": (19, 1)} == marks


def test_events_are_counted_by_actor_and_kind() -> None:
    """An event that never happened shows by its absence from this table."""
    events = {(count.actor, count.kind): count.count for count in explore(Dining(3, is_ordered=True)).events}

    assert {(f"philosopher {who}", kind) for who in range(3) for kind in ("take", "eat")} == set(events)


def test_states_travel_between_unequal_parts_and_nothing_changes() -> None:
    """A search begins in one process; the others would be idle if states did not travel."""
    packed = multiprocessing.get_context("fork").Value("i", 0)
    found = explore(Packed(3, 2, 3, packed), workers=2)

    assert plain_search().counts() == found.counts()
    assert packed.value > 0


def test_graph_holds_every_transition() -> None:
    """Progress is decided on it: a transition that is missing looks like an actor that cannot act."""
    alone, together = explore(Ring(3), keep_graph=True), explore(Ring(3), keep_graph=True, workers=2)

    assert alone.graph is not None
    assert alone.distinct == len(alone.graph.keys) == len(alone.graph.owed)
    assert alone.transitions == len(alone.graph.sources) == len(alone.graph.labels)
    assert alone.graph == together.graph


def test_collector_is_off_while_it_runs_and_back_on_after(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is a third of the speed; and whoever called wants it back, also after an error."""
    seen: list[bool] = []
    judge = Counting.judge

    def watching(self: Counting, state: int) -> Judged:
        seen.append(gc.isenabled())
        return judge(self, state)

    monkeypatch.setattr(Counting, "judge", watching)
    assert gc.isenabled()
    explore(Counting(10))
    with pytest.raises(Exception, match="no such number"):
        explore(Raising(10, at=4))

    assert {False} == set(seen)
    assert gc.isenabled()
    gc.disable()
    try:
        explore(Counting(10))

        assert not gc.isenabled()
    finally:
        gc.enable()


def test_memory_is_measured() -> None:
    """The number decides which machine the deep scopes need."""
    code = (
        "from tenure.model_checks.explorer import explore\n"
        "from tests.explorer.machines import Hungry\n"
        "search = explore(Hungry(100))\n"
        "print(search.memory_grown_bytes, search.memory_peak_bytes, search.bytes_per_state)"
    )
    # In a process of its own: one that was larger before grows by nothing.
    said = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    grown, peak, a_state = map(float, said.split())

    assert 80 * 320_000 < grown < peak
    assert grown / 101 == a_state


@pytest.mark.parametrize(
    ("limits", "reason"),
    [
        (Limits(states=1000), "1000 states"),
        (Limits(seconds=0.0), "0 seconds"),
        (Limits(mib=1), "1 MiB"),
        (Limits(depth=5), "5 events"),
    ],
)
@pytest.mark.parametrize("workers", [1, 2])
def test_budgets_that_end_say_so_and_prove_nothing(limits: Limits, reason: str, workers: int) -> None:
    """The worst a checker can do is to stop early and call that a proof."""
    search = explore(Slots(3, 2, 2), limits=limits, workers=workers)

    assert not search.finished
    assert reason in search.cut
    assert 0 < search.distinct < Slots(3, 2, 2).distinct()


def test_budget_of_states_ends_at_the_same_state_with_any_number_of_processes() -> None:
    """A count that moves with the machine cannot be compared."""
    one, two = (explore(Slots(3, 2, 2), limits=Limits(states=1000), workers=workers) for workers in (1, 2))

    assert one.counts() == two.counts()


def test_budget_that_is_just_enough_does_not_cut() -> None:
    """Where nothing is left to expand, nothing was cut."""
    exact, more = (explore(Counting(10), limits=Limits(states=states)) for states in (11, 12))

    # With the eleventh state the budget is used up, and that one is not expanded yet.
    assert (False, True) == (exact.finished, more.finished)


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"workers": 0}, "at least one"),
        ({"keep_graph": True, "visited": "compact"}, "digests"),
        ({"keep_graph": True, "resume": True}, "search anew"),
        ({"resume": True}, "no checkpoint"),
    ],
)
def test_combinations_that_would_mislead_are_refused(more: dict[str, object], words: str) -> None:
    """A warning would be overlooked."""
    with pytest.raises(RefusedError, match=words):
        explore(Counting(3), **more)  # type: ignore[arg-type]
