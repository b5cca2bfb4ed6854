"""Bad input is refused before anything changes, with an error that says who, what was found, and what to do (R15)."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from tenure.core.arrays import integers
from tenure.core.config import RowConfig, RowPolicy
from tenure.core.errors import (
    BlockOutOfRangeError,
    BudgetExhaustedError,
    HitIdentitiesError,
    HitWithoutTokensError,
    IdentityNotComputedError,
    LayoutMismatchError,
    NameClassError,
    NamesExhaustedError,
    OutputNameError,
    PaddingError,
    ReadFailedError,
    ReplacementUnsupportedError,
    RequestIdError,
    RequestNamedTwiceError,
    RowCountError,
    RowDtypeError,
    RowFormatChangedError,
    SaveNotReservedError,
    ShutDownError,
    SlotNamedTwiceError,
    SlotOutOfRangeError,
    StepAlreadyConsumedError,
    TenureError,
    UnknownRequestError,
    UnknownStepError,
    UnreadableHitError,
    WaitTimeoutError,
    WriteFailedError,
)
from tenure.core.rows.answers import ConsumePlan, Done, Ignored
from tenure.core.rows.commands import CopyDeferred, CopyPage, GatherRows, ReleaseBuffers, ScatterRows
from tenure.core.rows.events import (
    ConsumeAbandoned,
    ConsumeRequested,
    ContentIdentity,
    Extended,
    Finished,
    LifeCycle,
    PolicyRegistered,
    Replaced,
    ResetRequested,
    Resumed,
    RowsCopiedOut,
    SaveCancelled,
    SavePublished,
    SaveRequested,
    ShutdownRequested,
    Started,
    StepConsumed,
    StepDiscarded,
    StepDropped,
    StepStarted,
    WaitedFor,
    WaitTimedOut,
    WriteFailed,
    WriteLayout,
)
from tenure.core.rows.names import HIDDEN, Output
from tenure.core.rows.state import RowState
from tenure.core.rows.view import ReadPhase, WritePhase
from tenure.spec.rows.reference import Emitted
from tests.rows.scene import POLICY, Scene, extended, started
from tests.rows.test_cases_a import FIRST, SECOND, written

IDENTITY = ContentIdentity(7, "red")


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ((Replaced("live", 1),), ReplacementUnsupportedError, "another prompt"),
        ((extended(nobody=1),), UnknownRequestError, "'nobody' is not live; announce it with Started"),
        ((Resumed("nobody", 1),), UnknownRequestError, "'nobody'"),
        ((Finished("live"), extended(live=1)), UnknownRequestError, "'live'"),
        ((Finished("live"), Resumed("live", 1)), UnknownRequestError, "'live'"),
        ((Started("a", 1), Started("a", 1)), RequestNamedTwiceError, "'a' is named twice in one start"),
        ((extended(live=1), Resumed("live", 1)), RequestNamedTwiceError, "'live'"),
        ((Resumed("live", 1), extended(live=1)), RequestNamedTwiceError, "'live'"),
        ((Extended(("live", "live"), integers([1, 1])),), RequestNamedTwiceError, "'live'"),
        ((Started("a", -1),), RowCountError, "scheduled is -1"),
        ((Started("a", 1.5),), RowCountError, "scheduled is 1.5"),  # type: ignore[arg-type]
        ((Started("a", 1, -4),), RowCountError, "hit is -4"),
        ((Resumed("live", -2),), RowCountError, "scheduled is -2"),
        ((Resumed("live", 1, -2),), RowCountError, "hit is -2"),
        ((extended(live=-3),), RowCountError, "scheduled is -3"),
        ((Started("a", 0, 4, ((0,),)),), HitWithoutTokensError, "4 tokens with no token scheduled"),
        ((Started("a", 1, 4, ((0,),), (IDENTITY, IDENTITY)),), HitIdentitiesError, "2 identities are expected of 1"),
        ((Started("a", 1, 4, ((-1,),)),), BlockOutOfRangeError, "block -1"),
        ((Started("a", 1, 4, ((0.5,),)),), BlockOutOfRangeError, "block 0.5"),  # type: ignore[arg-type]
        ((Started("a", 1, computes=((8, IDENTITY),)),), BlockOutOfRangeError, "block 8"),
        ((Extended(("live",), integers([1]), ((9, IDENTITY),)),), BlockOutOfRangeError, "block 9"),
        ((Started(1.5, 1),), RequestIdError, "1.5"),  # type: ignore[arg-type]
    ],
)
def test_r15_malformed_start_is_refused(changes: tuple[LifeCycle, ...], error: type[TenureError], message: str) -> None:
    """All of a scheduler output, or nothing."""
    scene = Scene()
    scene.start(Started("live", 0))
    with pytest.raises(error, match=message):
        scene.start(*changes)

    assert {"live": None} == scene.view.live


def test_r15_ends_of_what_never_ran_are_passed_over() -> None:
    """Schedulers report those too, and may report an end twice."""
    scene = Scene()
    scene.start(Started("a", 0))
    scene.start(Finished("nobody"), Finished("a"), Finished("a"))

    assert not scene.view.live


UNNAMED: dict[str, Any] = {"": Emitted(Output(""), 0)}
LAYOUT_CASES: list[tuple[Callable[[Scene], object], type[TenureError], str]] = [
    (lambda s: s.request_save({"a": (0, 1)}, padded=1, h=[0] * 2), PaddingError, "2 tokens cannot be padded to 1"),
    (lambda s: s.request_save({"b": (0, 1)}, h=[0] * 2), LayoutMismatchError, "2 rows of request 'b'.*scheduled 0"),
    (lambda s: s.request_save({"a": (0,), "idle": (1,)}, h=[0] * 2), LayoutMismatchError, "1 rows of request 'a'"),
    (lambda s: s.request_save({"a": (0, 1), "x": ()}, h=[0] * 2), LayoutMismatchError, "0 rows of request 'x'"),
    (lambda s: s.tell(layout(("a", "a"), [1, 1], [0, 1])), RequestNamedTwiceError, "'a' is named twice in one layout"),
    (lambda s: s.tell(layout(("idle", "a"), [-1, 3], [0, 1])), RowCountError, "rows is -1"),
    (lambda s: s.tell(layout(("idle",), [0], [0, 1])), LayoutMismatchError, "0 rows of request 'a'"),
    (lambda s: s.request_save({"a": (0, 0)}, h=[0] * 2), SlotNamedTwiceError, "slot 0 is named twice in one step"),
    (lambda s: s.request_save({"a": (0, -1)}, h=[0] * 2), SlotOutOfRangeError, "slot -1"),
    (lambda s: s.request_save({"a": (0, 32)}, h=[0] * 2), SlotOutOfRangeError, r"slot 32 \(block 8\)"),
    (lambda s: s.request_save({"a": (0, 1)}, padded=None, **UNNAMED), OutputNameError, "at least one char"),
    (lambda s: s.tell(layout(("a",), [2], [0, 1], Output("q"), Output("q"))), OutputNameError, "twice in one step"),
    (
        lambda s: s.tell(layout(("a",), [2], [0, 1], Output("m", (2, 1), "float64"))),
        RowDtypeError,
        "rows of m cannot be float64; known are float32",
    ),
    (
        lambda s: s.tell(layout(("a",), [2], [0, 1], Output("m", (3, 1), "float32"))),
        NameClassError,
        r"m is immediate rows \(declared\), and a step of 2 tokens emits a tensor of shape \[3, 1\]",
    ),
    (
        lambda s: s.tell(layout(("a",), [2], [0, 1], Output(HIDDEN, (2, 4), "float32"))),
        RowFormatChangedError,
        r"float32\[1\], and the step emits float32\[4\]",
    ),
]


def layout(batch: tuple[str, ...], counts: list[int], slots: list[int], *outputs: Output) -> SaveRequested:
    """A save as it is told."""
    return SaveRequested(WriteLayout(batch, integers(counts), integers(slots)), outputs)


@pytest.mark.parametrize(("call", "error", "message"), LAYOUT_CASES)
def test_r15_malformed_save_is_refused(call: Callable[[Scene], object], error: type[TenureError], message: str) -> None:
    """And the mended one is taken."""
    scene = Scene()
    scene.step(Started("first", 1), Started("idle", 0), batch={"first": (31,)}, h=[9])
    scene.drain()
    scene.start(Started("a", 2))
    with pytest.raises(error, match=message):
        call(scene)

    step = scene.save({"a": (0, 1), "idle": ()}, h=[1, 2])
    found = scene.materialize(step, "a", "idle")
    assert {"a": [1, 2], "idle": []} == found["h"]


def test_r15_names_are_limited() -> None:
    """Everything has a limit."""
    scene = Scene(names_max=2)
    scene.start(Started("a", 1))
    with pytest.raises(NamesExhaustedError, match="k would be name 3 of at most 2"):
        scene.request_save({"a": (0,)}, h=[1], m=[1], k=[1])


def test_r15_undeclared_names_are_leftovers_where_nothing_is_inferred() -> None:
    """And a declared leftover is one whatever it looks like."""
    scene = Scene(policy=RowPolicy(leftovers=frozenset({"n"}), infer=False))
    x, n = (Emitted(Output(name, (2, 1), "float32"), [name, name]) for name in ("x", "n"))
    step = scene.step(Started("a", 2), batch={"a": (0, 1)}, h=[1, 2], x=x, n=n)

    assert ("x", "n") == scene.view.steps[step].leftovers
    assert not scene.view.classes


def test_r15_hidden_is_not_looked_at_where_the_policy_has_none() -> None:
    """Not even its shape."""
    scene = Scene(policy=RowPolicy(hidden=False, immediate=frozenset({"m"}), infer=False))
    scene.start(Started("a", 2))
    step = scene.save({"a": (0, 1)}, h=[1], m=[1, 2])

    assert ("m",) == scene.view.steps[step].names
    assert () == scene.view.steps[step].leftovers


def test_r15_consume_names_each_request_once() -> None:
    """And only those of the step."""
    scene = Scene()
    step = scene.step(Started("a", 1), Started("b", 1), batch={"a": (0,), "b": (4,)}, h=[1, 2])
    with pytest.raises(RequestNamedTwiceError, match="'a' is named twice in one materialize"):
        scene.tell(ConsumeRequested(step, ("a", "a")))


@pytest.mark.parametrize(
    "make", [lambda: integers([1.5]), lambda: integers(np.array([2**63], dtype=np.uint64)), lambda: integers(["a"])]
)
def test_r15_numbers_are_whole_and_fit(make: Callable[[], object]) -> None:
    """A float cut to an int would be another slot."""
    with pytest.raises(TypeError):
        make()


def test_r15_arrays_have_one_dimension_and_match_their_names() -> None:
    """Shapes that do not fit are a programming error, refused where the value is made."""
    with pytest.raises(ValueError, match="one-dimensional"):
        integers([[1]])
    with pytest.raises(ValueError, match="2 counts for 1 requests"):
        Extended(("a",), integers([1, 2]))
    with pytest.raises(ValueError, match="1 counts for 2 requests"):
        WriteLayout(("a", "b"), integers([1]), integers([0]))


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"pages": 2, "builder_lag_max": 2}, "needs 3 pages"),
        ({"num_blocks": 2**31, "block_size": 2}, "more than"),
        ({"kv_role": "both"}, "switch the row cache off"),
        ({"budget_bytes": 0}, "greater than 0"),
    ],
)
def test_r15_configurations_that_cannot_work_are_refused(config: dict[str, object], message: str) -> None:
    """When it is made, not in some step."""
    with pytest.raises(ValidationError, match=message):
        RowConfig(**{"num_blocks": 4, "block_size": 4, "page_rows_max": 8, **config})  # type: ignore[arg-type]


def test_r15_name_is_declared_with_one_class() -> None:
    """Rows and leftover, immediate and deferred: it can only be one."""
    with pytest.raises(ValidationError, match="declared with two: m"):
        RowPolicy(immediate=frozenset({"m"}), deferred=frozenset({"m"}))


# --- Identities ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("expected", "is_served"),
    [(IDENTITY, True), (IDENTITY._replace(group="blue"), False), (IDENTITY._replace(hash=8), False)],
)
def test_r14_hit_on_a_block_of_another_identity_is_a_hole(expected: ContentIdentity, is_served: bool) -> None:
    """Better than to trust that the hash says all."""
    scene = Scene()
    step = scene.step(Started("a", 4, computes=((0, IDENTITY),)), batch={"a": FIRST}, h=[1] * 4)
    scene.drain()
    scene.tell(StepDiscarded(step))
    step = scene.step(started("b", 1, 0, expects=(expected,)), batch={"b": (4,)}, h=[2])

    if is_served:
        assert [1] * 4 + [2] == scene.materialize(step, "b")["h"]["b"]
    else:
        with pytest.raises(UnreadableHitError):
            scene.plan(step, "b")


def test_r14_block_that_is_computed_again_loses_its_identity() -> None:
    """Also by a step that is given up, and by a reset."""
    scene = Scene()
    both = ((0, IDENTITY), (1, IDENTITY), (2, IDENTITY))
    scene.step(Started("a", 12, computes=both), batch={"a": range(12)}, h=[1] * 12)
    assert {0, 1, 2} == set(scene.view.identities)
    scene.step(extended(a=1), batch={"a": (0,)}, h=[2])
    assert {1, 2} == set(scene.view.identities)
    scene.start(extended(a=1))
    scene.tell(StepDropped(integers([4])))
    assert {2} == set(scene.view.identities)
    for step in (1, 2):
        scene.tell(StepDiscarded(step))
    scene.start(Finished("a"))
    scene.tell(ResetRequested())
    assert not scene.view.identities


def test_r14_identity_is_given_for_what_is_computed() -> None:
    """At the start, or at the publication."""
    scene = Scene()
    scene.start(Started("a", 1, computes=((1, IDENTITY),)))
    with pytest.raises(IdentityNotComputedError, match="block 1"):
        scene.request_save({"a": (0,)}, h=[1])
    scene.tell(StepDropped(integers([])))
    scene.start(extended(a=1))
    scene.request_save({"a": (0,)}, h=[1])
    with pytest.raises(IdentityNotComputedError, match="block 2"):
        scene.tell(SavePublished(2, ((2, IDENTITY),)))
    scene.tell(SavePublished(2, ((0, IDENTITY),)))

    assert {0: IDENTITY} == scene.view.identities


# --- After a failure, a shutdown, a reset -------------------------------------------------------------------------


def test_r12_publication_after_a_failure_is_refused_and_cancelled() -> None:
    """Another write failed between reservation and publication."""
    scene = Scene()
    scene.step(Started("a", 1), Started("b", 0), batch={"a": (0,)}, h=[1], c=[1])
    scene.drain()
    deferred = max(scene.view.writes)
    scene.start(extended(b=1))
    scene.request_save({"b": (4,)}, h=[2])
    scene.tell(WriteFailed(deferred, "disk on fire"))
    with pytest.raises(WriteFailedError, match="write 2 of step 1 failed \\(disk on fire\\)"):
        scene.tell(SavePublished(2))
    assert Done() == scene.tell(SaveCancelled(2))
    scene.tell(StepDropped(integers([4])))

    assert WritePhase.FAILED is scene.view.writes[deferred].phase
    assert [2] == sorted(scene.view.writes)


def test_r12_shut_down_cache_serves_nothing_and_still_lets_go() -> None:
    """Every waiter that asks again is told; what is under way ends."""
    scene = Scene()
    step = scene.step(Started("a", 1), batch={"a": (0,)}, h=[1])
    other = scene.step(extended(a=1), batch={"a": (1,)}, h=[1])
    scene.start(extended(a=1))
    for _ in range(2):
        scene.tell(ShutdownRequested())
    for event in (
        StepStarted(),
        layout(("a",), [1], [2]),
        SavePublished(3),
        StepDropped(integers([2])),
        ConsumeRequested(step, ("a",)),
        PolicyRegistered(POLICY),
    ):
        with pytest.raises(ShutDownError):
            scene.tell(event)
    scene.drain()
    scene.tell(StepDiscarded(step))
    scene.tell(StepDiscarded(other))
    assert not any(scene.view.pages)


def test_r24_failed_gather_costs_its_request_and_a_reset_clears_it() -> None:
    """The step is served to others; a second try of the same step is refused the same."""
    scene = Scene()
    written(scene, "a", FIRST, h=[1] * 4)
    step = scene.step(started("b", 1, 0), Started("c", 1), batch={"b": (4,), "c": (8,)}, h=[2, 3])
    read = scene.read_of(step, "b", "h")
    scene.begin_gather(read)
    scene.fail(GatherRows, read)
    for _ in range(2):
        with pytest.raises(ReadFailedError, match="could not be gathered"):
            scene.plan(step, "b", "c")
    assert {"c": [3]} == scene.materialize(step, "c")["h"]

    assert not scene.view.reads


@pytest.mark.parametrize("end", ["returns", "raises"])
def test_r24_builder_that_a_reset_overtakes_keeps_page_and_rows_until_it_ends(end: str) -> None:
    """It copies without a lock."""
    scene = Scene()
    written(scene, "a", FIRST, h=[1] * 4)
    step = scene.step(started("b", 1, 0), Started("c", 1, 4, ((0,),)), batch={"b": (4,), "c": (8,)}, h=[2, 3])
    plan = scene.plan(step, "b")
    assert isinstance(plan, ConsumePlan)
    scene.start(extended(b=1))
    scene.save({"b": (5,)}, h=[4])
    scene.fail(CopyPage)
    scene.tell(ResetRequested())
    assert {step} == set(scene.view.fenced_steps)
    assert {ReadPhase.DONE} == {read.phase for read in scene.view.reads.values()}
    with pytest.raises(UnknownStepError):
        scene.tell(StepDiscarded(step))

    if end == "returns":
        assert isinstance(scene.tell(RowsCopiedOut(step)), Ignored)
        assert isinstance(scene.tell(StepConsumed(step)), Ignored)
        for hit in plan.hits:
            scene.device.take(hit.read)
    else:
        assert isinstance(scene.tell(ConsumeAbandoned(step)), Ignored)
    scene.run()
    assert scene.is_quiet()


def test_r24_reset_after_a_failure_forgets_open_writes_and_leaves_readers_their_rows() -> None:
    """A pending write vanishes; a read that runs on its clone, or on host rows, keeps them until it ends."""
    scene = Scene(8, 1)
    scene.step(Started("a", 1), Started("b", 1), batch={"a": (0,), "b": (1,)}, h=[0] * 2, c=[1, 2])
    scene.run(CopyPage, ScatterRows)
    scene.start(Finished("b"), started("r", 1, 0, block_size=1), started("s", 1, 1, block_size=1))
    scene.run(CopyDeferred)
    scene.save({"r": (2,), "s": (3,)}, h=[0] * 2, c=[5, 6])
    for request in ("r", "s"):
        scene.begin_gather(scene.read_of(2, request, "c"))
    scene.fail(CopyPage)
    scene.tell(ResetRequested())

    assert {ReadPhase.LEFT} == {read.phase for read in scene.view.reads.values()}
    assert scene.view.charged > 0
    scene.drain()
    assert scene.is_quiet()


# --- States -------------------------------------------------------------------------------------------------------


def test_r17_states_are_equal_by_what_they_hold() -> None:
    """And say in one line what that is."""
    config = RowConfig(num_blocks=4, block_size=4, page_rows_max=8)
    one, other = RowState.initial(config), RowState.initial(config, copying=True)

    assert one == other
    assert hash(one) == hash(other)
    assert one != "a state"
    assert config == one.config
    assert "0 live requests" in repr(one)


def test_r07_time_out_says_what_was_waited_for() -> None:
    """All of it, and what may be stuck."""
    scene = Scene()
    scene.step(Started("a", 1), batch={"a": (0,)}, h=[1], c=[1])
    waited_for = WaitedFor(written=(1,), host_ready=(2,), reads=(3,))
    with pytest.raises(
        WaitTimeoutError,
        match=r"writes \[1\] to reach the pool, writes \[2\] to reach the host, reads \[3\] to be done",
    ):
        scene.tell(WaitTimedOut(waited_for))
    with pytest.raises(WaitTimeoutError, match=r"vain for nothing; steps not consumed: \[1\], open writes: \[1, 2\]"):
        scene.tell(WaitTimedOut(WaitedFor()))


def test_r16_second_use_of_a_name_in_a_later_step_is_the_same_name() -> None:
    """Formats are registered once, in order."""
    scene = Scene()
    scene.step(Started("a", 1), batch={"a": (0,)}, m=[1], h=[1])
    scene.step(extended(a=1), batch={"a": (4,)}, h=[1], m=[1], k=[2])

    assert ["m", HIDDEN, "k"] == [each.name for each in scene.view.formats]
    assert [0] * 3 == [scene.view.newest[name][SECOND[1]] for name in ("m", HIDDEN, "k")]


def test_r12_read_that_runs_while_its_write_fails_is_dropped_and_left_to_end() -> None:
    """Its rows are never served; a reset does not take its memory away under it."""
    scene = Scene(8, 1)
    scene.step(Started("a", 1), Started("b", 1), batch={"a": (0,), "b": (1,)}, h=[0] * 2, c=[1, 2])
    scene.run(CopyPage, ScatterRows)
    step = scene.step(started("r", 1, 0, block_size=1), batch={"r": (2,)}, h=[0], c=[5])
    scene.run(CopyPage, ScatterRows)
    read = scene.read_of(step, "r", "c")
    scene.begin_gather(read)
    for write, reason in ((2, "first"), (3, "second")):
        scene.tell(WriteFailed(write, reason))
    with pytest.raises(WriteFailedError, match="write 2 of step 1 failed \\(first\\)"):
        scene.start()

    assert ReadPhase.LEFT is scene.view.reads[read].phase
    assert read not in [number for _, _, number in scene.view.steps[step].reads]
    scene.tell(ResetRequested())
    assert ReadPhase.LEFT is scene.view.reads[read].phase
    scene.drain()
    assert scene.is_quiet()


def test_r24_reset_after_a_failure_cancels_a_reserved_save() -> None:
    """Its page and its clones come back; publishing it later is refused."""
    scene = Scene()
    scene.step(Started("a", 1), Started("b", 0), batch={"a": (0,)}, h=[1], c=[1])
    scene.drain()
    scene.start(extended(b=1))
    scene.request_save({"b": (4,)}, h=[2])
    scene.tell(WriteFailed(2))
    scene.tell(ResetRequested())
    with pytest.raises(SaveNotReservedError, match="forgotten by a reset"):
        scene.tell(SavePublished(2))
    with pytest.raises(UnknownStepError):
        scene.tell(StepDiscarded(1))
    scene.drain()

    assert (0, frozenset()) == (scene.view.charged, frozenset[tuple[str, int]]().union(*scene.view.pages))


def test_r07_r08_wait_for_the_byte_budget_times_out_as_such() -> None:
    """Three kinds of waits, three classes."""
    scene = Scene()
    with pytest.raises(BudgetExhaustedError, match="device clone 7 to be let go"):
        scene.tell(WaitTimedOut(WaitedFor(clone=7)))


def test_r17_values_with_arrays_compare_by_content() -> None:
    """And are not equal to something else."""
    one, other = StepDropped(integers([1])), StepDropped(integers([1]))

    assert one == other
    assert hash(one) == hash(other)
    assert one != StepDropped(integers([2]))
    assert one != (1,)


def test_r01_steps_are_numbered_from_one() -> None:
    """Step 0 was never saved; step 1 was, and is consumed."""
    scene = Scene()
    step = scene.step(Started("a", 1), batch={"a": (0,)}, h=[1])
    scene.materialize(step, "a")

    for number in (0, -1, 2):
        with pytest.raises(UnknownStepError):
            scene.tell(StepDiscarded(number))
    with pytest.raises(StepAlreadyConsumedError):
        scene.tell(StepDiscarded(1))


def test_r12_host_rows_of_a_failed_write_are_given_back_once() -> None:
    """A read that waited for them failed with it, and let go of them too."""
    scene = Scene(8, 1)
    scene.step(Started("a", 1), batch={"a": (0,)}, h=[0], c=[1])
    scene.run(CopyPage, ScatterRows)
    scene.start(Finished("a"), started("b", 1, 0, block_size=1))
    scene.run(CopyDeferred)
    assert 1 == len([read for read in scene.view.reads.values() if read.writes])
    scene.fail(ScatterRows)

    released = [each.writes for each in scene.commands.values() if isinstance(each, ReleaseBuffers) and each.writes]
    assert [(2,)] == released
    scene.run()
