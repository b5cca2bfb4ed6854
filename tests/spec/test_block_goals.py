"""Every goal is reached, by walks or by a script; the mirror and the lock-step runner notice what is wrong."""

import gc
import hashlib
from dataclasses import replace
from weakref import ref

import pytest

from tenure.core.blocks.values import (
    AllocationRequested,
    Answer,
    Command,
    DecodeReservationReleased,
    DecodeReservationRequested,
    DependencySatisfied,
    DestinationRequested,
    Done,
    Event,
    LeaseFinished,
    LeaseOpened,
    LeasePreempted,
    PublishRemoved,
    PublishStored,
    RequestId,
    ReservedAllocationRequested,
    TokensComputed,
)
from tenure.core.blocks.view import BlockView, PrefillCost
from tenure.core.config import BlockConfig
from tenure.core.errors import InvariantViolation, NegativeCountError, UnknownLeaseError
from tenure.spec.blocks.goals import GOALS, RUN_GOALS, GoalBook
from tenure.spec.blocks.lockstep import AGREEMENT, Lockstep, walk
from tenure.spec.blocks.mirror import KvMirror
from tenure.spec.blocks.oracle import BlockOracle
from tests.spec.history import History, config, fenced_pair, named


class OracleSubject:
    """The oracle as a machine with states that stay readable."""

    def initial(self, machine: BlockConfig) -> BlockOracle:
        return BlockOracle(machine)

    def transition(self, state: BlockOracle, event: Event) -> tuple[BlockOracle, Answer, tuple[Command, ...]]:
        after = state.clone()
        answer, commands = after.apply(event)
        return after, answer, commands

    def view(self, state: BlockOracle) -> BlockView:
        return state.view()

    def prefill_cost(self, state: BlockOracle, request: RequestId) -> PrefillCost:
        return state.prefill_cost(request)


# --- Goals ----------------------------------------------------------------------------------------------------------


def partly_pruned() -> History:
    history = fenced_pair()
    history.tell(DependencySatisfied(2))
    history.tell(AllocationRequested(9, 8))
    return history


def pinned_twice() -> History:
    history = History(config(2))
    history.leave_behind(named(1, [7]))
    history.tell(LeaseOpened(named(2, [7, 7, 8])))
    history.tell(DestinationRequested(2))
    return history


def fenced_reservation() -> History:
    history = History(config(1))
    history.compute(named(1, [7]))
    history.fence(1, [0], 5)
    history.tell(LeaseFinished(1))
    history.tell(LeaseOpened(named(2, [8])))
    history.tell(DecodeReservationRequested(1))
    history.tell(ReservedAllocationRequested(2, 4, 1))
    return history


def long_fence() -> History:
    history = History(config(1))
    history.compute(named(1, [7]))
    history.fence(1, [0], 5)
    history.tell(LeaseFinished(1))
    history.tell(DecodeReservationRequested(1))
    history.tell(DecodeReservationReleased(1))
    history.tell(LeaseOpened(named(2, [8])))
    history.tell(AllocationRequested(2, 4))
    history.tell(LeasePreempted(2))
    history.tell(AllocationRequested(2, 4))
    return history


def middle_hit() -> History:
    history = History(config(3))
    for request, block_hash in ((1, 7), (2, 8), (3, 9)):
        history.leave_behind(named(request, [block_hash]))
    history.tell(LeaseOpened(named(4, [8])))
    history.tell(AllocationRequested(4, 4, 1))
    return history


@pytest.mark.parametrize(
    ("script", "goal"),
    [
        (partly_pruned, "pruned_in_part"),
        (pinned_twice, "pinned_twice"),
        (fenced_reservation, "fenced_through_reservation"),
        (long_fence, "fence_outlives_tenancies"),
        (middle_hit, "hit_from_the_middle"),
    ],
)
def test_goal_of_a_script_is_reached_at_its_last_event(script: object, goal: str) -> None:
    """These are too rare for a short walk."""
    assert callable(script)
    history = script()
    assert isinstance(history, History)
    book = GoalBook()
    for seen in history.observations[:-1]:
        book.observe(seen)
    assert goal in book.missing

    book.observe(history.last)

    assert goal in book.reached


def test_goals_are_all_reached_by_walks_and_scripts() -> None:
    """A mechanism that no history ever comes to is not checked by any of them."""
    book = GoalBook()
    # The last one is there for the goal that none of the others comes to.
    for seed in (*range(17), 46):
        stream = hashlib.shake_256(seed.to_bytes(4, "little")).digest(1200)
        machine = BlockConfig(
            capacity=2 + seed % 7,
            block_size=2 + seed % 3,
            prefix_caching=seed % 8 != 0,
            kv_events=seed % 5 != 0,
            trace=seed % 2 == 0,
        )
        walk(stream, machine, OracleSubject(), book.observe)
    for script in (partly_pruned, pinned_twice, fenced_reservation, long_fence, middle_hit):
        for seen in script().observations:
            book.observe(seen)

    assert not book.missing
    assert len(book.reached) == len(GOALS) + len(RUN_GOALS)


# --- The mirror -----------------------------------------------------------------------------------------------------


def test_i25_mirror_that_hears_every_event_knows_what_is_visible() -> None:
    """This is all that a router has."""
    history = History(config(2))
    history.leave_behind(named(1, [7, 8]))
    history.tell(DecodeReservationRequested(1))
    mirror = KvMirror()
    mirror.hear(history.kv_events())
    mirror.compare(history.view)

    assert mirror.visible == {7}


def test_i25_mirror_that_missed_an_event_says_so() -> None:
    """A removal of something unknown, and a hash too many or too few, are all the same fault."""
    history = History(config(2))
    history.leave_behind(named(1, [7, 8]))
    with pytest.raises(InvariantViolation, match="I25: hashes"):
        KvMirror().compare(history.view)
    with pytest.raises(InvariantViolation, match="I25: hash 9"):
        KvMirror([7]).hear([PublishRemoved(0, 0, (7, 9))])


def test_i26_mirror_that_hears_a_hash_twice_says_so() -> None:
    """One removal would leave a listener that counts with a hash that is gone."""
    with pytest.raises(InvariantViolation, match="I26: hash 7"):
        KvMirror([7]).hear([PublishStored(0, 0, None, (7,), (0,), None)])


# --- The lock-step runner -------------------------------------------------------------------------------------------


class ForgetfulSubject(OracleSubject):
    """Loses the KV events of every event."""

    def transition(self, state: BlockOracle, event: Event) -> tuple[BlockOracle, Answer, tuple[Command, ...]]:
        after, answer, _ = super().transition(state, event)
        return after, answer, ()


class MuteSubject(OracleSubject):
    """Answers everything with Done."""

    def transition(self, state: BlockOracle, event: Event) -> tuple[BlockOracle, Answer, tuple[Command, ...]]:
        after, _, commands = super().transition(state, event)
        return after, Done(), commands


class BlurredSubject(OracleSubject):
    """Shows a free block too few."""

    def view(self, state: BlockOracle) -> BlockView:
        view = state.view()
        return replace(view, free=view.free[1:]) if view.leases else view


class OptimisticSubject(OracleSubject):
    """Takes every request for cached."""

    def prefill_cost(self, state: BlockOracle, request: RequestId) -> PrefillCost:
        return replace(state.prefill_cost(request), new_tokens=0)


class ConfusedSubject(OracleSubject):
    """Refuses with the wrong error."""

    def transition(self, state: BlockOracle, event: Event) -> tuple[BlockOracle, Answer, tuple[Command, ...]]:
        try:
            return super().transition(state, event)
        except UnknownLeaseError:
            raise NegativeCountError(None, "nothing", -1) from None


class RestlessSubject(OracleSubject):
    """Changes old states: all of them are one."""

    def transition(self, state: BlockOracle, event: Event) -> tuple[BlockOracle, Answer, tuple[Command, ...]]:
        answer, commands = state.apply(event)
        return state, answer, commands


@pytest.mark.parametrize(
    ("subject", "event"),
    [
        (ForgetfulSubject(), TokensComputed(1, 0, 4)),
        (MuteSubject(), AllocationRequested(1, 4)),
        (BlurredSubject(), LeaseOpened(named(1, [7]))),
        (OptimisticSubject(), LeaseOpened(named(1, [7]))),
        (ConfusedSubject(), LeaseFinished(9)),
    ],
)
def test_lockstep_with_a_wrong_machine_finds_it_at_once(subject: OracleSubject, event: Event) -> None:
    """The comparison itself must be able to fail, in every thing that it compares."""
    lockstep = Lockstep(subject, config(2))
    script: list[Event] = [LeaseOpened(named(1, [7])), AllocationRequested(1, 4), TokensComputed(1, 0, 4)]
    before = script[: script.index(event)] if event in script else []
    for each in before:
        lockstep.tell(each)

    with pytest.raises(InvariantViolation, match=AGREEMENT):
        lockstep.tell(event)


def test_lockstep_whose_old_states_change_says_so_when_it_goes_back() -> None:
    """Exploring needs states that stay as they were."""
    lockstep = Lockstep(RestlessSubject(), config(2))
    lockstep.keep()
    lockstep.tell(LeaseOpened(named(1, [7])))

    with pytest.raises(InvariantViolation, match="leases of an old state changed afterwards"):
        lockstep.go_back(0)


def test_history_that_is_over_leaves_nothing_behind() -> None:
    """Walks of a million events collect no garbage: a refusal that knows where it was raised would keep every state."""
    lockstep = Lockstep(OracleSubject(), config(2))
    refusal = lockstep.tell(LeaseFinished(9))
    gone = ref(lockstep)
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        del lockstep

        assert isinstance(refusal, UnknownLeaseError)
        assert gone() is None
    finally:
        if was_enabled:
            gc.enable()
