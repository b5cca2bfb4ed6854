"""What the join tells its machines of a request, and what it keeps of it: no more, and no longer, than it says."""

import pytest

from tenure.core.blocks.sequence import new_sequence
from tenure.core.blocks.values import LeaseFinished, LeaseOpened, LeasePreempted
from tenure.core.cache import CacheState, servable_prefix_blocks, transition
from tenure.core.config import RowPolicy
from tenure.core.errors import HiddenMissingError, RowsOwedError
from tenure.core.joined.values import BatchSaveRequested
from tenure.core.rows.commands import FreezeRows
from tenure.core.rows.events import PolicyRegistered
from tenure.core.rows.names import HIDDEN, Output
from tests.joined.site import Site
from tests.joined.test_joined import finished

# --- What is shared -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("visibility", ["computed", "scheduled"])
def test_x01_block_whose_hash_is_zero_is_served_as_any_other(visibility: str) -> None:
    """Zero is a hash."""
    site = Site(visibility)
    assert site.arrive("a", [1, 2, 3], hashes=[0])
    assert site.materialize(site.step("a"), "a")
    assert {0} == {each.hash for each in site.view.rows.identities.values()}
    assert site.arrive("b", [1, 2, 9], hashes=[0])

    assert 2 == site.view.tracks["b"].hit
    step = site.step("b")
    assert [("b", 2)] == [(request, len(slots)) for request, slots in site.view.rows.steps[step].hits]
    assert site.materialize(step, "b")


def test_x01_a_token_is_left_to_compute_of_every_prompt() -> None:
    """Of one that is cached to its end, too: of two blocks the first may be shared, of one block none."""
    site = Site()
    finished(site, "a", [1, 2, 3, 4])
    site.open("two", [1, 2, 3, 4])
    site.open("one", [1, 2])

    assert 1 == servable_prefix_blocks(site.state, "two")
    assert 0 == servable_prefix_blocks(site.state, "one")


def test_x01_no_row_is_read_of_a_block_that_holds_something_else_yet() -> None:
    """A same-step hit on a block of an older tenant: nothing is guessed from its rows, so nothing is planned anew."""
    site = Site("scheduled", num_blocks=3)
    finished(site, "old", [7, 7, 8, 8, 9])
    assert site.arrive("a", [1, 2, 3])
    site.schedule("a")
    assert site.arrive("b", [1, 2, 9])
    site.schedule("b")
    site.start()
    (slots,) = {slots for _, slots in site.view.rows.steps[site.view.rows.pending or 0].hits}
    assert all(site.view.rows.effective(HIDDEN, slot) for slot in slots)
    assert not site.view.rows.reads
    step = site.save()

    assert 0 == site.view.rows.counters.reads_replanned
    assert site.materialize(step, "a", "b")


def owing() -> Site:
    """Request a owes the rows of two visible blocks, whose step was given up; request b shares both."""
    site = Site("scheduled", num_blocks=8)
    assert site.arrive("a", [1, 2, 3, 4, 5])
    site.schedule("a", 4)
    site.start()
    site.drop()
    assert site.arrive("b", [1, 2, 3, 4, 9])
    assert 4 == site.view.tracks["b"].hit
    site.schedule("b")
    return site


def test_x01_hit_waits_until_all_that_is_owed_of_it_is_in_the_step() -> None:
    """The first of two blocks is not enough; both, to their last token, are."""
    site = owing()
    site.schedule("a", 2)
    with pytest.raises(RowsOwedError, match="to be computed by request 'a'"):
        site.start()
    site = owing()
    site.schedule("a", 3)
    with pytest.raises(RowsOwedError, match="to be computed by request 'a'"):
        site.start()
    site = owing()
    site.schedule("a", 4)
    site.start()

    assert site.materialize(site.save(), "a", "b")


def test_x01_hit_waits_for_the_second_block_where_the_first_has_its_rows() -> None:
    """Every block of the hit is looked at."""
    site = Site("scheduled", num_blocks=8)
    finished(site, "old", [1, 2, 9])
    assert site.arrive("a", [1, 2, 3, 4, 5])
    site.schedule("a", 2)
    site.start()
    site.drop()
    assert site.arrive("b", [1, 2, 3, 4, 9])
    assert 4 == site.view.tracks["b"].hit
    site.schedule("b")

    with pytest.raises(RowsOwedError, match="to be computed by request 'a'"):
        site.start()


def test_x04_only_the_request_that_owes_rows_must_stay() -> None:
    """Another may end while they are owed."""
    site = owing()
    site.tell(LeaseFinished("b"))
    with pytest.raises(RowsOwedError):
        site.tell(LeaseFinished("a"))

    assert {"a"} == set(site.view.tracks)


@pytest.mark.parametrize("visibility", ["computed", "scheduled"])
def test_x04_request_that_shares_nothing_owes_nothing(visibility: str) -> None:
    """Its blocks are never visible, so it may end whenever no step computes it."""
    site = Site(visibility)
    site.tell(LeaseOpened(new_sequence("a", [1, 2, 3], 4, 2, caching=False)))
    site.tokens["a"], site.groups["a"] = [1, 2, 3], None
    site.allocate("a")
    site.schedule("a")
    assert not site.view.unsaved
    site.start()
    assert site.materialize(site.save(), "a")
    site.tell(LeaseFinished("a"))

    assert not site.view.tracks


@pytest.mark.parametrize("copying", [None, False, True])
def test_r17_both_machines_keep_versions_as_they_are_asked_to(copying: bool | None) -> None:
    """Differences, if nothing is said: an older version has no tables of its own. Copies, for explorers."""
    config = Site().config
    state = CacheState.initial(config) if copying is None else CacheState.initial(config, copying=copying)
    step = transition(state, LeaseOpened(new_sequence("a", [1, 2, 3], 4, 2)))
    step = transition(step.state, PolicyRegistered(RowPolicy(hidden=False)))
    owned = [getattr(each, "_store") is not None for each in (state.blocks, state.rows)]  # noqa: B009 - looks inside

    assert [bool(copying)] * 2 == owned


# --- What is told and kept ------------------------------------------------------------------------------------


def test_hit_is_announced_once() -> None:
    """With the arrival; the next step of the request is one like any other."""
    site = Site()
    finished(site, "a", [1, 2, 3])
    assert site.arrive("b", [1, 2, 9])
    site.schedule("b")
    site.start()
    assert 0 == site.view.tracks["b"].hit
    assert site.materialize(site.save(), "b")
    site.generate("b", 5)
    site.allocate("b")
    step = site.step("b")

    assert () == site.view.rows.steps[step].hits
    assert 0 == site.view.rows.counters.resumed_with_hit
    assert site.materialize(step, "b")


def test_r15_preempted_request_that_shares_blocks_again_resumes() -> None:
    """It is live: its hit marks none, and is counted."""
    site = Site(num_blocks=8)
    assert site.arrive("a", [1, 2, 3])
    assert site.materialize(site.step("a"), "a")
    site.tell(LeasePreempted("a"))
    site.allocate("a")
    assert 2 == site.view.tracks["a"].hit
    site.step("a")

    assert 1 == site.view.rows.counters.resumed_with_hit


def test_step_goes_on_with_all_requests_that_it_had() -> None:
    """Two that decode, and one that arrives behind them."""
    site = Site(num_blocks=12)
    for request in ("a", "b"):
        assert site.arrive(request, [1, 2, 3])
    site.step("a", "b")
    for request in ("a", "b"):
        site.generate(request, 4)
        site.allocate(request)
    assert site.arrive("c", [5, 6, 7])
    step = site.step("a", "b", "c")

    assert {"a": 1, "b": 1, "c": 3} == dict(site.view.rows.steps[step].batch)
    assert not [track for track in site.view.tracks.values() if track.is_scheduled or track.ahead]
    assert site.materialize(step, "a", "b", "c")


def test_end_of_a_request_is_told_once_and_nothing_is_kept_of_it() -> None:
    """Of one that never ran, nothing is told."""
    site = Site()
    empty = site.state
    site.open("never", [1, 2, 3])
    site.allocate("never")
    site.schedule("never")
    site.tell(LeaseFinished("never"))
    assert not site.view.ended
    assert not site.view.batch
    assert empty.tracks == site.state.tracks
    finished(site, "a", [1, 2, 3])
    assert ("a",) == site.view.ended
    assert "a" not in site.state.tracks
    site.start()

    assert not site.view.ended


def test_block_machine_is_told_of_computed_tokens_when_a_block_is_full() -> None:
    """And of no token twice."""
    site = Site()
    assert site.arrive("a", [1, 2, 3, 4, 5])
    published: list[int] = []
    for tokens in (1, 2, 1, 1):
        site.schedule("a", tokens)
        site.start()
        site.materialize(site.save(), "a")
        published.append(site.view.tracks["a"].published)

    assert [0, 3, 4, 4] == published


@pytest.mark.parametrize(("names", "is_refused"), [(("m", "c"), True), ((HIDDEN,), False), ((HIDDEN, "m"), False)])
def test_x01_step_is_refused_where_hidden_states_are_not_among_its_rows(
    names: tuple[str, ...], is_refused: bool
) -> None:
    """Whatever else there is."""
    site = Site()
    assert site.arrive("a", [1, 2, 3])
    site.schedule("a")
    site.start()
    event = BatchSaveRequested(tuple(Output(name, (3, 1), "float32") for name in names))
    live = {name: [0, 0, 0] for name in names}
    if is_refused:
        with pytest.raises(HiddenMissingError, match="step 1"):
            site.tell(event, live)
    else:
        site.tell(event, live)
        assert site.view.rows.pages[0]


def test_r15_rows_may_be_padded() -> None:
    """A step of three tokens whose tensors have eight rows, as a captured graph makes them."""
    site = Site()
    assert site.arrive("a", [1, 2, 3])
    site.schedule("a")
    site.start()
    outputs = tuple(Output(name, (3 if name == HIDDEN else 8, 1), "float32") for name in (HIDDEN, "m"))
    site.tell(BatchSaveRequested(outputs, 8), {HIDDEN: [0] * 3, "m": [0] * 8})
    (freeze,) = (each for each in site.commands.values() if isinstance(each, FreezeRows))

    assert {HIDDEN, "m"} == {each.name for clone in freeze.clones for each in clone.formats}
    assert 3 == freeze.num_rows
