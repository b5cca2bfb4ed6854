"""The join: hits have their rows, rows go to blocks of one's own, events tell the truth, groups stay apart."""

from dataclasses import replace

import pytest

from tenure.core.blocks.sequence import new_sequence
from tenure.core.blocks.values import (
    AllocationRequested,
    DecodeReservationRequested,
    DependencyAttached,
    DestinationRequested,
    LeaseFinished,
    LeaseOpened,
    LeasePreempted,
    Sources,
    StoreSourcesSnapshotted,
    TokensComputed,
    WritesAuthorized,
)
from tenure.core.cache import transition
from tenure.core.config import BlockConfig, CacheConfig, RowConfig
from tenure.core.errors import (
    HiddenMissingError,
    InvariantViolation,
    IsolationError,
    NotForJoinError,
    RequestInStepError,
    RowsOwedError,
    ScheduledBeyondError,
    ScheduledTwiceError,
    StepNotSavedError,
    StepNotStartedError,
    UnauthorizedWriteError,
)
from tenure.core.joined.values import BatchDropped, BatchSaveRequested, BatchStarted, TokensScheduled
from tenure.core.rows.answers import ResetAnswered
from tenure.core.rows.commands import CopyPage, GatherRows, ScheduleGather
from tenure.core.rows.events import (
    ResetRequested,
    SaveCancelled,
    SaveRequested,
    ShutdownRequested,
    StepDiscarded,
    StepStarted,
    WriteLayout,
)
from tests.joined.site import Site


def finished(site: Site, request: str, prompt: list[int], group: str | None = None) -> None:
    """A request that came, was computed and ended; its step is consumed."""
    site.open(request, prompt, group)
    assert site.allocate(request)
    step = site.step(request)
    assert site.materialize(step, request)
    site.tell(LeaseFinished(request))


def test_x01_hit_comes_with_its_rows() -> None:
    """The blocks that the block machine grants are those whose rows the row machine serves."""
    site = Site()
    finished(site, "a", [1, 2, 3, 4, 5])
    assert site.arrive("b", [1, 2, 3, 4, 9])
    assert 4 == site.view.tracks["b"].hit
    step = site.step("b")

    assert (("b", 4),) == tuple((request, len(slots)) for request, slots in site.view.rows.steps[step].hits)
    assert site.materialize(step, "b")


def test_x01_hash_is_not_visible_before_its_rows_are_published() -> None:
    """With visibility "computed": while a step runs, and if it is given up, nobody can hit what it computes."""
    site = Site()
    assert site.arrive("a", [1, 2, 3])
    site.schedule("a")
    site.start()
    assert not site.view.blocks.index
    site.drop()
    assert not site.view.blocks.index

    step = site.step("a")
    assert 1 == len(site.view.blocks.index)
    assert site.materialize(step, "a")


def test_x01_same_step_hit_where_hashes_are_visible_when_scheduled() -> None:
    """Request b shares the block that a computes in the same step, and gets a's fresh rows."""
    site = Site("scheduled", num_blocks=3)
    finished(site, "old", [7, 7, 7])
    assert site.arrive("a", [1, 2, 3])
    site.schedule("a")
    assert site.arrive("b", [1, 2, 9])
    assert 2 == site.view.tracks["b"].hit
    step = site.step("b")

    assert site.materialize(step, "a", "b")


def test_x01_hit_on_a_block_that_is_owed_waits_for_its_owner() -> None:
    """After its step was given up, the rows come with the step that computes them again."""
    site = Site("scheduled")
    assert site.arrive("a", [1, 2, 3])
    site.schedule("a")
    site.start()
    site.drop()
    assert site.arrive("b", [1, 2, 9])
    site.schedule("b")
    with pytest.raises(RowsOwedError, match="to be computed by request 'a'"):
        site.start()

    site.schedule("a")
    site.start()
    assert site.materialize(site.save(), "a", "b")
    assert not site.view.unsaved


def test_x01_step_without_hidden_states_is_refused() -> None:
    """Its blocks would be visible and could never be served."""
    site = Site()
    assert site.arrive("a", [1, 2, 3])
    site.schedule("a")
    site.start()

    with pytest.raises(HiddenMissingError, match="step 1"):
        site.tell(BatchSaveRequested(()))


def test_x01_hit_of_a_dropped_step_is_marked_again() -> None:
    """The row machine forgets hits of a step that is given up; the request still gets all its rows once."""
    site = Site()
    finished(site, "a", [1, 2, 3])
    assert site.arrive("b", [1, 2, 9])
    site.schedule("b")
    site.start()
    site.drop()
    step = site.step("b")

    assert [("b", 2)] == [(request, len(slots)) for request, slots in site.view.rows.steps[step].hits]
    assert site.materialize(step, "b")


def test_x01_every_hit_of_a_dropped_step_is_marked_again() -> None:
    """Also that of the second request, whose start the row machine knows already."""
    site = Site()
    finished(site, "a", [1, 2, 3])
    for name, token in (("b", 8), ("c", 9)):
        assert site.arrive(name, [1, 2, token])
        site.schedule(name)
    site.start()
    site.drop()
    step = site.step("b", "c")

    assert [("b", 2), ("c", 2)] == [(request, len(slots)) for request, slots in site.view.rows.steps[step].hits]
    assert site.materialize(step, "b", "c")


def test_x02_tokens_are_computed_in_blocks_of_one_s_own() -> None:
    """A full hit leaves nothing to compute but a shared block."""
    site = Site()
    finished(site, "a", [1, 2, 3, 4])
    site.open("b", [1, 2, 3, 4])
    site.tell(AllocationRequested("b", 4, 2))
    with pytest.raises(ScheduledBeyondError, match="1 tokens from 4 on are scheduled"):
        site.schedule("b", 1)
    site.tell(LeasePreempted("b"))
    site.allocate("b")
    assert 2 == site.view.tracks["b"].hit
    assert site.materialize(site.step("b"), "b")


def test_x02_shared_block_is_not_written_after_a_reuse_inside_it() -> None:
    """No order of events leads there; if ours did, it would say so instead of writing."""
    site = Site()
    finished(site, "a", [1, 2, 3, 4])
    site.open("b", [1, 2, 3, 4])
    site.tell(AllocationRequested("b", 4, 2))
    track = site.state.tracks["b"]._replace(computed=3)
    spoiled = replace(site.state, tracks=site.state.tracks.set("b", track))

    with pytest.raises(InvariantViolation, match="X02: request 'b' computes tokens of block 1, which is shared"):
        transition(spoiled, TokensScheduled("b", 1))


def test_x02_lease_is_kept_until_its_step_is_saved() -> None:
    """Its slots would belong to somebody else when the rows are written."""
    site = Site()
    assert site.arrive("a", [1, 2, 3])
    site.schedule("a")
    site.start()
    for event in (LeaseFinished("a"), LeasePreempted("a")):
        with pytest.raises(RequestInStepError):
            site.tell(event)
    site.save()
    site.tell(LeaseFinished("a"))

    assert site.view.ended == ("a",)
    site.start()
    assert not site.view.rows.live


def test_x02_preemption_withdraws_what_was_scheduled() -> None:
    """A scheduler that preempts within the step it is making."""
    site = Site()
    assert site.arrive("a", [1, 2, 3])
    site.schedule("a")
    site.tell(LeasePreempted("a"))
    assert () == site.view.batch
    site.allocate("a")

    assert site.materialize(site.step("a"), "a")


def test_x03_read_of_a_block_outlives_its_next_tenant() -> None:
    """The block of b's hit is evicted and computed by c before b's builder comes."""
    site = Site(num_blocks=2, pages=4)
    finished(site, "a", [1, 2])
    site.start()
    site.drain()
    assert site.arrive("b", [1, 2, 9])
    late = site.step("b")
    site.tell(LeaseFinished("b"))
    site.start()
    while site.run_one(passing_over=(GatherRows, ScheduleGather)):
        pass
    assert site.arrive("c", [5, 6, 7])
    site.step("c")
    assert site.view.rows.counters.rows_preserved == 6
    site.drain()

    assert site.materialize(late, "b")


def test_x04_finished_request_owes_no_rows() -> None:
    """A visible hash whose rows would never come; the request is scheduled again first."""
    site = Site("scheduled")
    assert site.arrive("a", [1, 2, 3])
    site.schedule("a")
    for event in (LeaseFinished("a"), LeasePreempted("a")):
        with pytest.raises(RowsOwedError):
            site.tell(event)
    site.start()
    site.drop()
    with pytest.raises(RowsOwedError):
        site.tell(LeaseFinished("a"))

    assert site.materialize(site.step("a"), "a")
    site.tell(LeaseFinished("a"))


def test_x04_hash_and_rows_are_published_in_one() -> None:
    """The KV event leaves with the transition that claims the rows, or not at all."""
    site = Site()
    assert site.arrive("a", [1, 2, 3])
    site.schedule("a")
    site.start()
    site.request_save()
    (freeze,) = site.device.due
    before = site.view.blocks.next_event_id
    site.device.fail(freeze)
    assert isinstance(site.commands[freeze].failed, SaveCancelled)
    site.tell(site.device.tell(freeze))
    assert before == site.view.blocks.next_event_id
    site.save()

    assert before + 1 == site.view.blocks.next_event_id


@pytest.mark.parametrize("visibility", ["computed", "scheduled"])
def test_x05_colliding_hash_of_another_group_is_not_shared(visibility: str) -> None:
    """Two groups' chains meet in the 64 bits of a hash."""
    site = Site(visibility)
    assert site.arrive("a", [1, 2, 3], "red", hashes=[77])
    site.schedule("a")
    if visibility == "computed":
        site.start()
        site.materialize(site.save(), "a")
    site.open("b", [8, 9, 3], "blue", hashes=[77])
    with pytest.raises(IsolationError, match="may not share block"):
        site.allocate("b", 1)

    assert site.allocate("b")
    assert site.view.tracks["b"].hit == 0


@pytest.mark.parametrize("visibility", ["computed", "scheduled"])
def test_x05_every_block_of_a_hit_is_of_its_group(visibility: str) -> None:
    """The first block is the request's to share, and the hash of the second meets another group's."""
    site = Site(visibility)
    for name, group, block_hash in (("a", "blue", 77), ("r", "red", 88)):
        assert site.arrive(name, [1, 2, 3], group, hashes=[block_hash])
        site.schedule(name)
    if visibility == "computed":
        site.start()
        site.materialize(site.save(), "a", "r")
    site.open("b", [1, 2, 8, 9, 3], "blue", hashes=[77, 88])
    with pytest.raises(IsolationError, match="may not share block"):
        site.allocate("b", 2)

    assert site.allocate("b")
    assert 2 == site.view.tracks["b"].hit
    site.schedule("b")
    site.start()
    step = site.save()
    assert site.materialize(step, "b")


def test_r24_x01_reset_forgets_hashes_and_rows_together() -> None:
    """After it the next identical prompt misses (A16)."""
    site = Site()
    finished(site, "a", [1, 2, 3, 4, 5])
    assert site.view.blocks.index
    assert site.tell(ResetRequested()) == ResetAnswered(done=True)
    site.drain()
    assert not site.view.blocks.index
    assert site.arrive("b", [1, 2, 3, 4, 5])

    assert 0 == site.view.tracks["b"].hit
    assert site.materialize(site.step("b"), "b")


def test_r24_reset_is_refused_while_anything_lives() -> None:
    """And changes nothing."""
    site = Site()
    assert site.arrive("a", [1, 2, 3])
    step = site.step("a")
    before = site.state
    assert site.tell(ResetRequested()) == ResetAnswered(done=False)
    assert before == site.state
    site.tell(StepDiscarded(step))
    site.tell(LeaseFinished("a"))
    assert site.tell(ResetRequested()) == ResetAnswered(done=True)


def test_r12_r24_reset_after_a_failure_preempts_what_runs() -> None:
    """Their requests start anew, and miss."""
    site = Site()
    assert site.arrive("a", [1, 2, 3])
    site.step("a")
    (copy,) = (number for number, command in site.commands.items() if isinstance(command, CopyPage))
    while copy not in site.device.can_fail:
        assert site.run_one()
    site.device.fail(copy)
    site.drain()
    assert site.view.rows.failure is not None
    site.tell(ResetRequested())
    site.drain()

    assert {"a": ()} == {request: lease.copies for request, lease in site.view.blocks.leases.items()}
    site.allocate("a")
    assert site.materialize(site.step("a"), "a")


def test_joined_cache_is_told_no_event_that_it_tells_itself() -> None:
    """And none that brings blocks without rows."""
    site = Site()
    site.open("a", [1, 2, 3])
    for event in (
        TokensComputed("a", 0, 2),
        DestinationRequested("a"),
        StepStarted(),
        SaveRequested(WriteLayout((), [], []), ()),  # type: ignore[arg-type]
    ):
        with pytest.raises(NotForJoinError, match=type(event).__name__):
            site.tell(event)  # type: ignore[arg-type]
    site.allocate("a")
    with pytest.raises(NotForJoinError, match="held lease"):
        site.tell(AllocationRequested("a", 3, 1))


def test_step_is_scheduled_started_and_saved_in_this_order() -> None:
    """Every other order is refused and changes nothing."""
    site = Site()
    assert site.arrive("a", [1, 2, 3])
    for event in (BatchDropped(), BatchSaveRequested(())):
        with pytest.raises(StepNotStartedError):
            site.tell(event)
    with pytest.raises(ScheduledBeyondError):
        site.schedule("a", 4)
    with pytest.raises(ScheduledBeyondError):
        site.schedule("a", 0)
    site.schedule("a", 2)
    with pytest.raises(ScheduledTwiceError):
        site.tell(TokensScheduled("a", 1))
    site.start()
    with pytest.raises(StepNotSavedError):
        site.tell(BatchStarted())
    assert site.materialize(site.save(), "a")


def test_decoded_blocks_are_hit_like_prompts() -> None:
    """A block that generation filled is named, saved and shared like one of a prompt."""
    site = Site()
    assert site.arrive("a", [1, 2, 3])
    site.materialize(site.step("a"), "a")
    for token in (4, 5):
        site.generate("a", token)
        site.allocate("a")
        site.materialize(site.step("a"), "a")
    assert site.arrive("b", [1, 2, 3, 4, 9])
    assert 4 == site.view.tracks["b"].hit

    assert site.materialize(site.step("b"), "b")


@pytest.mark.parametrize(("blocks", "size", "what"), [(5, 2, "number of blocks"), (4, 3, "block_size")])
def test_machines_that_do_not_fit_are_refused(blocks: int, size: int, what: str) -> None:
    """A block must be the same thing to both."""
    with pytest.raises(ValueError, match=f"{what} is .* must agree"):
        CacheConfig(
            blocks=BlockConfig(capacity=blocks, block_size=size),
            rows=RowConfig(num_blocks=4, block_size=2, page_rows_max=8),
        )


def test_next_step_is_scheduled_behind_the_one_that_runs() -> None:
    """Schedulers work ahead; what they scheduled behind a step that is given up is withdrawn with it."""
    site = Site()
    assert site.arrive("a", [1, 2, 3, 4, 5])
    site.schedule("a", 2)
    site.start()
    site.schedule("a", 2)
    assert [(2, 4)] == [(each.before, each.after) for each in site.view.batch]
    site.materialize(site.save(), "a")
    site.start()
    site.schedule("a", 1)
    site.drop()

    assert () == site.view.batch
    step = site.step("a")
    assert {"a": 3} == dict(site.view.rows.steps[step].batch)
    assert site.materialize(step, "a")


def test_x02_lease_that_waits_for_a_transfer_is_not_scheduled() -> None:
    """Its blocks are still read by somebody."""
    site = Site(num_blocks=2)
    finished(site, "a", [1, 2, 3, 4])
    assert site.arrive("b", [1, 2, 9])
    sources = site.tell(StoreSourcesSnapshotted("b", (0,)))
    assert isinstance(sources, Sources)
    site.tell(DependencyAttached("b", sources.snapshot, 5))
    site.tell(LeaseFinished("b"))
    assert site.arrive("c", [7, 7, 7])
    with pytest.raises(UnauthorizedWriteError, match=r"before dependencies \[5\]"):
        site.schedule("c")

    site.tell(WritesAuthorized("c", (5,)))
    assert site.materialize(site.step("c"), "c")


def test_x05_request_without_caching_shares_nothing() -> None:
    """Its blocks have no content that anybody may know."""
    site = Site()
    sequence = new_sequence("a", [1, 2, 3], 4, 2, caching=False)
    site.tell(LeaseOpened(sequence))
    site.tokens["a"], site.groups["a"] = [1, 2, 3], None
    site.allocate("a")
    site.materialize(site.step("a"), "a")

    assert not site.view.rows.identities
    assert not site.view.blocks.index


def test_r24_reset_with_all_capacity_promised_away() -> None:
    """Nothing is left to evict."""
    site = Site(num_blocks=2)
    site.tell(DecodeReservationRequested(2))

    assert site.tell(ResetRequested()) == ResetAnswered(done=True)


def test_x01_resumed_hit_on_owed_blocks_is_still_owed_after_a_drop() -> None:
    """The row machine marks no hit of a resumption, and the join must not forget it with the step."""
    site = Site("scheduled", num_blocks=10)
    assert site.arrive("b", [1, 1, 1, 1, 2])
    site.materialize(site.step("b"), "b")
    site.tell(LeasePreempted("b"))
    finished(site, "c", list(range(20, 39)))
    assert site.arrive("a", [1, 1, 1, 1, 1])
    site.schedule("a")
    site.allocate("b")
    assert 4 == site.view.tracks["b"].hit
    site.schedule("b")
    site.start()
    site.drop()
    assert (4, True) == (site.view.tracks["b"].hit, site.view.tracks["b"].is_live)
    site.schedule("b")
    with pytest.raises(RowsOwedError):
        site.start()

    site.schedule("a")
    site.start()
    assert site.materialize(site.save(), "a", "b")


def test_x05_groups_outlive_a_reset_after_a_failure() -> None:
    """A request that starts anew is of the group it was of."""
    site = Site()
    assert site.arrive("a", [1, 2, 3], "red")
    site.step("a")
    (copy,) = (number for number, command in site.commands.items() if isinstance(command, CopyPage))
    while copy not in site.device.can_fail:
        assert site.run_one()
    site.device.fail(copy)
    site.drain()
    before = site.view.tracks["a"].group
    site.tell(ResetRequested())
    site.drain()

    assert before == site.view.tracks["a"].group != ""


def test_r18_preempted_request_that_finishes_is_ended_for_the_row_machine_too() -> None:
    """It is live there until then."""
    site = Site()
    assert site.arrive("a", [1, 2, 3])
    site.materialize(site.step("a"), "a")
    site.tell(LeasePreempted("a"))
    assert {"a"} == set(site.view.rows.live)
    site.tell(LeaseFinished("a"))
    site.start()

    assert not site.view.rows.live


def test_r24_reset_of_a_cache_that_is_shut_down_answers() -> None:
    """As the row machine's: refused while a request is live there, and no error."""
    site = Site()
    finished(site, "a", [1, 2, 3])
    site.tell(ShutdownRequested())

    assert site.tell(ResetRequested()) == ResetAnswered(done=False)
