"""The row oracle against histories worked out by hand; rows are small numbers, slots hold one row a token."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from tenure.core.arrays import integers
from tenure.core.config import RowConfig, RowPolicy
from tenure.core.errors import (
    BlockOutOfRangeError,
    HiddenRowsError,
    HitBlocksError,
    HitIdentitiesError,
    HitNotAlignedError,
    HitWithoutTokensError,
    IdentityNotComputedError,
    KvGroupsError,
    LayoutMismatchError,
    NameClassError,
    NamesExhaustedError,
    OutputNameError,
    PaddingError,
    PolicyAfterStepError,
    PoolExhaustedError,
    ReadFailedError,
    ReplacementUnsupportedError,
    RequestNamedTwiceError,
    RequestOutsideSnapshotError,
    RowCountError,
    RowDtypeError,
    RowFormatChangedError,
    SaveNotReservedError,
    SaveReservedError,
    ShutDownError,
    SlotCountError,
    SlotNamedTwiceError,
    SlotOutOfRangeError,
    StepAlreadyConsumedError,
    StepBeingConsumedError,
    StepNotBeingConsumedError,
    StepNotSavedError,
    StepNotStartedError,
    StepTooLargeError,
    TenureError,
    UnknownRequestError,
    UnknownStepError,
    UnreadableHitError,
    WriteFailedError,
)
from tenure.core.rows.answers import StepBegan
from tenure.core.rows.events import (
    Aborted,
    ContentIdentity,
    Extended,
    Finished,
    LifeCycle,
    Replaced,
    RequestId,
    Resumed,
    Started,
    StepId,
    WriteLayout,
)
from tenure.core.rows.names import HIDDEN, Output
from tenure.spec import Emitted, Materialized, ReferenceCache

SIZE = 2
POLICY = RowPolicy(immediate=frozenset({"mm"}), deferred=frozenset({"late"}), leftovers=frozenset({"note"}))


def cache(policy: RowPolicy = POLICY, **options: Any) -> ReferenceCache:
    """Four blocks of two slots."""
    settings: dict[str, Any] = {"num_blocks": 4, "block_size": SIZE, "page_rows_max": 8, **options}
    return ReferenceCache(RowConfig(**settings), policy)


def hidden(*rows: int) -> Emitted:
    """Hidden states, one number a row."""
    return Emitted(Output(HIDDEN, (len(rows), 1), "float32"), rows)


def tensor(name: str, *rows: int, width: int = 1, dtype: str = "int32") -> Emitted:
    """An mm tensor, one number a row."""
    return Emitted(Output(name, (len(rows), width), dtype), rows)


def thing(name: str, content: object) -> Emitted:
    """Something that is no tensor."""
    return Emitted(Output(name), content)


def layout(slots: Mapping[RequestId, Sequence[int]], padded: int | None = None) -> WriteLayout:
    """A batch, by the slots of each request."""
    every = [slot for each in slots.values() for slot in each]
    return WriteLayout(tuple(slots), integers([len(each) for each in slots.values()]), integers(every), padded)


def step(
    rows: ReferenceCache, changes: Sequence[LifeCycle], slots: Mapping[RequestId, Sequence[int]], *outputs: Emitted
) -> StepId:
    """Start a step and save it."""
    rows.new_step_starts(changes)
    return rows.save_outputs(outputs, layout(slots))


def hit(request: RequestId, blocks: Sequence[int], scheduled: int = SIZE, **fields: Any) -> Started:
    """A request that arrives with a hit of whole blocks."""
    return Started(request, scheduled, SIZE * len(blocks), (tuple(blocks),), **fields)


def refused(error: type[TenureError], call: Any, *arguments: Any) -> None:
    """A call must be refused with this very error."""
    with pytest.raises(error) as caught:
        call(*arguments)

    assert error is caught.type


# --- What a hit returns -------------------------------------------------------------------------------------------


def test_r02_request_without_a_hit_gets_its_steps_rows() -> None:
    """The plain case: what the step computed, cut by request."""
    rows = cache()
    number = step(rows, [Started("a", 2), Started("b", 1)], {"a": [0, 1], "b": [2]}, hidden(1, 2, 3))

    assert Materialized({"b": [3], "a": [1, 2]}, {}) == rows.materialize(number, ["b", "a"])


def test_r02_same_step_hit_gets_the_rows_of_its_own_step() -> None:
    """A block whose hash is published when it is scheduled still holds another tenant's rows at the start (D01)."""
    rows = cache()
    step(rows, [Started("old", 2)], {"old": [0, 1]}, hidden(10, 11), tensor("mm", 100, 101))
    number = step(
        rows,
        [Finished("old"), Started("a", 2), hit("b", [0])],
        {"a": [0, 1], "b": [2, 3]},
        hidden(20, 21, 30, 31),
        tensor("mm", 200, 201, 300, 301),
    )

    assert Materialized({"b": [20, 21, 30, 31]}, {"mm": {"b": [200, 201, 300, 301]}}) == rows.materialize(number, ["b"])


def test_r13_later_step_on_the_hits_slots_changes_nothing() -> None:
    """What a hit returns was settled at its save, however late its builder comes."""
    rows = cache()
    step(rows, [Started("a", 2)], {"a": [0, 1]}, hidden(10, 11))
    late = step(rows, [hit("b", [0])], {"b": [2, 3]}, hidden(20, 21))
    step(rows, [Aborted("a"), Started("c", 2)], {"c": [0, 1]}, hidden(90, 91))

    assert Materialized({"b": [10, 11, 20, 21]}, {}) == rows.materialize(late, ["b"])


def test_r21_name_that_is_not_emitted_is_gone_from_the_slots() -> None:
    """Rows of an earlier tenant would pass for those of the newest (D02)."""
    rows = cache()
    step(rows, [Started("x", 2)], {"x": [0, 1]}, hidden(10, 11), tensor("mm", 110, 111))
    step(rows, [Finished("x"), Started("a", 2)], {"a": [0, 1]}, hidden(20, 21))
    number = step(rows, [hit("b", [0])], {"b": [2, 3]}, hidden(30, 31), tensor("mm", 310, 311, width=1))

    assert Materialized({"b": [20, 21, 30, 31]}, {"mm": {"b": [(0,), (0,), 310, 311]}}) == rows.materialize(
        number, ["b"]
    )


def test_r14_hidden_with_a_hole_is_unreadable_and_the_step_serves_others() -> None:
    """One broken hit must not cost the others their rows, nor the engine its step (D09)."""
    rows = cache()
    step(rows, [Started("x", 2)], {"x": [0, 1]}, tensor("mm", 1, 2))
    number = step(rows, [hit("b", [0]), Started("c", 1)], {"b": [2, 3], "c": [4]}, hidden(1, 2, 3))
    step(rows, [Finished("x"), Started("d", 2)], {"d": [0, 1]}, hidden(77, 77))

    refused(UnreadableHitError, rows.materialize, number, ["b"])
    refused(UnreadableHitError, rows.materialize, number, ["c", "b"])
    assert Materialized({"c": [3]}, {}) == rows.materialize(number, ["c"])


def test_r14_absent_mm_rows_read_as_zeros_of_the_rows_shape() -> None:
    """A name that a prefix never emitted has no hole: it has zeros."""
    rows = cache()
    step(rows, [Started("x", 2)], {"x": [0, 1]}, hidden(1, 2))
    number = step(rows, [hit("b", [0])], {"b": [2, 3]}, tensor("mm", 5, 6, width=3))

    assert Materialized(None, {"mm": {"b": [(0, 0, 0), (0, 0, 0), 5, 6]}}) == rows.materialize(number, ["b"])


def test_r14_block_of_another_identity_is_a_hole() -> None:
    """Two chains may collide in their hash; the isolation group tells them apart."""
    mine, other = ContentIdentity(7, "mine"), ContentIdentity(7, "other")
    rows = cache()
    step(rows, [Started("x", 2, computes=((0, other),))], {"x": [0, 1]}, hidden(1, 2), tensor("mm", 3, 4))
    right = step(rows, [hit("a", [0], expects=(other,))], {"a": [2, 3]}, hidden(5, 6))
    wrong = step(rows, [hit("b", [0], expects=(mine,))], {"b": [4, 5]}, hidden(5, 6), tensor("mm", 7, 8))
    unnamed = step(rows, [hit("c", [1], expects=(mine,))], {"c": [6, 7]}, tensor("mm", 7, 8))

    assert Materialized({"a": [1, 2, 5, 6]}, {}) == rows.materialize(right, ["a"])
    refused(UnreadableHitError, rows.materialize, wrong, ["b"])
    assert Materialized(None, {"mm": {"c": [(0,), (0,), 7, 8]}}) == rows.materialize(unnamed, ["c"])


def test_r14_identity_follows_the_newest_computation_of_its_block() -> None:
    """A block that is computed without a word holds something unknown."""
    name = ContentIdentity(7)
    rows = cache()
    rows.new_step_starts([Started("x", 2)])
    rows.save_outputs([hidden(1, 2)], layout({"x": [0, 1]}), computes=((0, name),))
    assert {0: name} == rows.identities
    step(rows, [Extended(("x",), integers([1]))], {"x": [1]}, hidden(3))

    assert {} == rows.identities


def test_r16_finished_and_aborted_requests_deferred_rows_stay() -> None:
    """Their hashes may be published, so their rows must be served (A05)."""
    rows = cache()
    step(rows, [Started("a", 2), Started("b", 2)], {"a": [0, 1], "b": [2, 3]}, tensor("late", 1, 2, 3, 4))
    number = step(
        rows, [Finished("a"), Aborted("b"), hit("c", [0, 1])], {"c": [4, 5]}, tensor("late", 5, 6), tensor("mm", 7, 8)
    )

    assert {"c": [1, 2, 3, 4, 5, 6]} == rows.materialize(number, ["c"]).mm_outputs["late"]


def test_r22_dropped_steps_slots_are_holes() -> None:
    """What was computed and not saved must never be served as what was there before (D05, W9)."""
    rows = cache()
    step(rows, [Started("x", 2)], {"x": [0, 1]}, hidden(1, 2))
    rows.new_step_starts([Finished("x"), Started("a", 1)])
    rows.drop_step([1, 99, -1])
    assert [True, False] == [rows.has_row(HIDDEN, slot) for slot in (0, 1)]
    number = step(rows, [hit("b", [0])], {"b": [2, 3]}, hidden(5, 6))

    refused(UnreadableHitError, rows.materialize, number, ["b"])


def test_continuation_marks_no_hit_and_a_finished_id_does() -> None:
    """An id that is announced again while it is live goes on; its hit fields are not even looked at."""
    rows = cache()
    step(rows, [Started("a", 2)], {"a": [0, 1]}, hidden(1, 2))
    assert StepBegan(2, ()) == rows.new_step_starts([Started("a", 1, -7, ((99,),))])
    goes_on = rows.save_outputs([hidden(3)], layout({"a": [2]}))
    assert StepBegan(3, (("a", 2),)) == rows.new_step_starts([hit("a", [0], 1), Finished("a")])
    anew = rows.save_outputs([hidden(4)], layout({"a": [3]}))

    assert Materialized({"a": [3]}, {}) == rows.materialize(goes_on, ["a"])
    assert Materialized({"a": [1, 2, 4]}, {}) == rows.materialize(anew, ["a"])


def test_resumed_request_delivers_what_its_step_computes() -> None:
    """Its hit was delivered in its first life, or will be computed again."""
    rows = cache()
    step(rows, [Started("a", 2)], {"a": [0, 1]}, hidden(1, 2))
    number = step(rows, [Resumed("a", 1, 1, ((0,),))], {"a": [4]}, hidden(9))

    assert Materialized({"a": [9]}, {}) == rows.materialize(number, ["a"])


# --- What outputs are ---------------------------------------------------------------------------------------------


def test_padded_tensors_and_long_hidden_states_count_up_to_the_tokens() -> None:
    """Graphs of fixed size emit more rows than there are tokens."""
    rows = cache()
    rows.new_step_starts([Started("a", 2)])
    number = rows.save_outputs(
        [hidden(1, 2, 0, 0, 0), tensor("mm", 3, 4, 0), tensor("late", 5, 6)], layout({"a": [0, 1]}, padded=3)
    )

    assert Materialized({"a": [1, 2]}, {"mm": {"a": [3, 4]}, "late": {"a": [5, 6]}}) == rows.materialize(number, ["a"])


def test_leftovers_are_split_by_request() -> None:
    """A list by element, a tensor of one row a token by rows, anything else whole; none is ever cached."""
    rows = cache()
    number = step(
        rows,
        [Started("a", 1), Started("b", 2)],
        {"a": [0], "b": [2, 3]},
        thing("note", ["for a", "for b"]),
        tensor("ref", 1, 2, 3, 4),
        thing("mm", {"size": 3}),
        thing("short", ["one"]),
    )
    found = rows.materialize(number, ["b"])

    assert (
        Materialized(
            None,
            {"note": {"b": "for b"}, "ref": {"b": (1, 2, 3, 4)}, "mm": {"b": {"size": 3}}, "short": {"b": ["one"]}},
        )
        == found
    )
    assert {} == rows.formats


def test_d03_class_of_an_undeclared_name_is_held_once_it_shows() -> None:
    """A pass-through tensor that once has as many rows as tokens must not be cut from then on."""
    rows = cache()
    single = step(rows, [Started("a", 1)], {"a": [0]}, tensor("ref", 1))
    step(rows, [Extended(("a",), integers([2]))], {"a": [1, 2]}, tensor("ref", 1, 2, 3))
    same = step(rows, [Extended(("a",), integers([3]))], {"a": [3, 4, 5]}, tensor("ref", 1, 2, 3))

    assert {"ref": {"a": (1,)}} == rows.materialize(single, ["a"]).mm_outputs
    assert {"ref": {"a": (1, 2, 3)}} == rows.materialize(same, ["a"]).mm_outputs
    assert {} == rows.formats


def test_d03_rows_that_become_something_else_are_refused() -> None:
    """A name that is cached as rows cannot change its mind; what is no tensor passes through."""
    rows = cache()
    step(rows, [Started("a", 2)], {"a": [0, 1]}, tensor("x", 1, 2))
    rows.new_step_starts([Extended(("a",), integers([1]))])

    refused(NameClassError, rows.save_outputs, [tensor("x", 1, 2, 3)], layout({"a": [2]}))
    number = rows.save_outputs([thing("x", "text")], layout({"a": [2]}))
    assert {"x": {"a": "text"}} == rows.materialize(number, ["a"]).mm_outputs


def test_hidden_states_are_ignored_where_the_policy_has_none() -> None:
    """They are never looked at, so nothing about them can be wrong."""
    rows = cache(RowPolicy(hidden=False))
    number = step(rows, [Started("a", 2)], {"a": [0, 1]}, thing(HIDDEN, "nothing"), tensor("mm", 3, 4))

    assert Materialized(None, {"mm": {"a": [3, 4]}}) == rows.materialize(number, ["a"])


def test_names_of_a_refused_or_cancelled_save_are_not_known() -> None:
    """What a save settles counts from its publication on."""
    rows = cache()
    rows.new_step_starts([Started("a", 2)])
    rows.begin_save([tensor("x", 1, 2)], layout({"a": [0, 1]}))
    refused(SaveReservedError, rows.begin_save, [], layout({"a": [0, 1]}))
    refused(SaveReservedError, rows.new_step_starts, [])
    refused(SaveReservedError, rows.drop_step, [])
    rows.cancel_save(1)
    refused(SaveNotReservedError, rows.end_save, 1)
    refused(SaveNotReservedError, rows.cancel_save, 1)
    rows.save_outputs([tensor("x", 1, 2, 3)], layout({"a": [0, 1]}))

    assert {} == rows.formats


# --- What is refused ----------------------------------------------------------------------------------------------

GOOD: Mapping[RequestId, Sequence[int]] = {"a": [0, 1]}


@pytest.mark.parametrize(
    ("error", "change"),
    [
        (RowCountError, Started("b", -1)),
        (RowCountError, Started("b", 1, -2, ((0,),))),
        (RowCountError, Extended(("a",), integers([-1]))),
        (RowCountError, Resumed("a", 1, -2)),
        (HitNotAlignedError, Started("b", 1, 3, ((0, 1),))),
        (HitWithoutTokensError, Started("b", 0, 2, ((0,),))),
        (HitBlocksError, Started("b", 1, 2)),
        (HitBlocksError, Started("b", 1, 4, ((0,),))),
        (KvGroupsError, Started("b", 1, 2, ((0,), (0,)))),
        (BlockOutOfRangeError, Started("b", 1, 2, ((4,),))),
        (BlockOutOfRangeError, Started("b", 1, computes=((-1, ContentIdentity(0)),))),
        (HitIdentitiesError, Started("b", 1, 2, ((0,),), (ContentIdentity(0), ContentIdentity(1)))),
        (RequestNamedTwiceError, Extended(("a", "a"), integers([1, 1]))),
        (UnknownRequestError, Extended(("b",), integers([1]))),
        (UnknownRequestError, Resumed("b", 1)),
        (ReplacementUnsupportedError, Replaced("a", 1)),
    ],
)
def test_r15_bad_change_refuses_the_whole_start(error: type[TenureError], change: LifeCycle) -> None:
    """A rejected arrival must cost nobody else anything, its own retry included (D06)."""
    rows = cache()
    step(rows, [Started("a", 2), Started("gone", 1)], {"a": [0, 1], "gone": [2]}, hidden(1, 2, 3))

    refused(error, rows.new_step_starts, [Finished("gone"), change, Started("c", 1)])
    assert {"a", "gone"} == rows.live
    assert StepBegan(2, (("b", 2),)) == rows.new_step_starts([Finished("gone"), hit("b", [0])])


@pytest.mark.parametrize(
    ("error", "batch"),
    [
        (SlotCountError, WriteLayout(("a",), integers([2]), integers([0]))),
        (PaddingError, WriteLayout(("a",), integers([2]), integers([0, 1]), 1)),
        (RequestNamedTwiceError, WriteLayout(("a", "a"), integers([2, 0]), integers([0, 1]))),
        (RowCountError, WriteLayout(("a", "b"), integers([2, -1]), integers([0, 1]))),
        (LayoutMismatchError, WriteLayout(("a",), integers([1]), integers([0, 1]))),
        (LayoutMismatchError, WriteLayout(("b",), integers([2]), integers([0, 1]))),
        (LayoutMismatchError, WriteLayout(("a", "b"), integers([2, 0]), integers([0, 1]))),
        (SlotOutOfRangeError, WriteLayout(("a",), integers([2]), integers([0, 8]))),
        (SlotOutOfRangeError, WriteLayout(("a",), integers([2]), integers([-1, 0]))),
        (SlotNamedTwiceError, WriteLayout(("a",), integers([2]), integers([1, 1]))),
    ],
)
def test_r15_bad_layout_is_refused_and_the_save_can_be_made_again(error: type[TenureError], batch: WriteLayout) -> None:
    """A save that raises changes nothing, so the engine mends it (D05)."""
    rows = cache()
    rows.new_step_starts([Started("a", 2)])

    refused(error, rows.save_outputs, [hidden(1, 2)], batch)
    assert 1 == rows.save_outputs([hidden(1, 2)], layout(GOOD))


@pytest.mark.parametrize(
    ("error", "output"),
    [
        (HiddenRowsError, hidden(1)),
        (HiddenRowsError, thing(HIDDEN, None)),
        (HiddenRowsError, Emitted(Output(HIDDEN, (2,), "float32"), (1, 2))),
        (NameClassError, tensor("mm", 1, 2, 3)),
        (NameClassError, Emitted(Output("late", (), "int32"), ())),
        (RowFormatChangedError, tensor("known", 1, 2, width=2)),
        (RowFormatChangedError, tensor("known", 1, 2, dtype="int64")),
        (RowDtypeError, tensor("mm", 1, 2, dtype="complex64")),
        (OutputNameError, thing("", 1)),
        (OutputNameError, tensor("first", 1, 2)),
        (NamesExhaustedError, tensor("fourth", 1, 2)),
        (PoolExhaustedError, tensor("mm", 1, 2, width=10)),
    ],
)
def test_r15_bad_output_is_refused_and_the_save_can_be_made_again(error: type[TenureError], output: Emitted) -> None:
    """Names keep their class, shape and dtype, and stay within their limits."""
    rows = cache(names_max=3, pool_bytes_max=8 * 8 + 100)
    step(rows, [Started("a", 2)], GOOD, tensor("known", 1, 2), tensor("first", 1, 2))
    rows.new_step_starts([Extended(("a",), integers([2]))])
    before = rows.formats
    extra = [tensor("third", 1, 2)] if error is NamesExhaustedError else []

    refused(error, rows.save_outputs, [*extra, tensor("first", 1, 2), output], layout(GOOD))
    assert before == rows.formats
    assert 2 == rows.save_outputs([tensor("first", 1, 2)], layout(GOOD))


def test_r15_step_larger_than_a_page_is_refused() -> None:
    """It can only be given up."""
    rows = cache(page_rows_max=1)
    rows.new_step_starts([Started("a", 2)])

    refused(StepTooLargeError, rows.save_outputs, [], layout(GOOD))
    rows.drop_step([0, 1])


def test_r15_identity_of_a_block_that_is_not_computed_is_refused() -> None:
    """It would outlive the content that it names."""
    name = (1, ContentIdentity(0))
    rows = cache()
    rows.new_step_starts([Started("a", 2, computes=(name,))])
    refused(IdentityNotComputedError, rows.save_outputs, [], layout(GOOD))
    rows.drop_step([])
    rows.new_step_starts([Started("a", 2)])

    refused(IdentityNotComputedError, rows.save_outputs, [], layout(GOOD), (name,))
    assert 2 == rows.save_outputs([], layout(GOOD))


def test_r15_calls_out_of_turn_are_refused() -> None:
    """Each step is started, then saved or dropped, once."""
    rows = cache()
    refused(StepNotStartedError, rows.save_outputs, [], layout({}))
    refused(StepNotStartedError, rows.drop_step, [])
    assert StepBegan(None, ()) == rows.new_step_starts([Finished("never seen")])
    refused(PolicyAfterStepError, rows.register_policy, POLICY)
    rows.new_step_starts([Started("a", 2)])
    refused(StepNotSavedError, rows.new_step_starts, [])
    rows.save_outputs([], layout(GOOD))

    refused(StepNotStartedError, rows.save_outputs, [], layout(GOOD))


# --- Consuming, failing, ending -----------------------------------------------------------------------------------


def test_r01_step_is_consumed_once_and_a_refused_materialize_consumes_nothing() -> None:
    """Whoever asks badly may ask again; whoever asks twice has lost count (A19)."""
    rows = cache()
    number = step(rows, [Started("a", 2)], GOOD, hidden(1, 2))
    other = step(rows, [Extended(("a",), integers([1]))], {"a": [2]}, hidden(3))
    refused(RequestOutsideSnapshotError, rows.materialize, number, ["x"])
    refused(RequestNamedTwiceError, rows.materialize, number, ["a", "a"])
    refused(UnknownStepError, rows.materialize, 42, ["a"])
    refused(UnknownStepError, rows.discard_step, 0)
    assert Materialized({"a": [3]}, {}) == rows.materialize(other, ["a"])
    assert (number,) == rows.unconsumed
    rows.discard_step(number)

    for gone in (number, other):
        refused(StepAlreadyConsumedError, rows.materialize, gone, ["a"])
        refused(StepAlreadyConsumedError, rows.discard_step, gone)


def test_r01_step_belongs_to_the_materialize_that_is_at_it() -> None:
    """Two builders never share a step; one that raises leaves it as it was."""
    rows = cache()
    number = step(rows, [Started("a", 2)], GOOD, hidden(1, 2))
    rows.begin_materialize(number, ["a"])
    refused(StepBeingConsumedError, rows.materialize, number, ["a"])
    refused(StepBeingConsumedError, rows.discard_step, number)
    rows.end_materialize(number, returns=False)
    refused(StepNotBeingConsumedError, rows.end_materialize, number)

    assert Materialized({"a": [1, 2]}, {}) == rows.materialize(number, ["a"])


def test_r12_failed_write_is_told_by_every_call_until_a_reset() -> None:
    """Rows behind published hashes are lost; serving on would serve holes."""
    rows = cache()
    number = step(rows, [Started("a", 2)], GOOD, hidden(1, 2))
    rows.fail_write(3, 1, "no memory")
    refused(WriteFailedError, rows.new_step_starts, [])
    refused(WriteFailedError, rows.save_outputs, [], layout(GOOD))
    refused(WriteFailedError, rows.materialize, number, ["a"])
    rows.discard_step(number)
    assert [True, True, False] == [rows.has_failed, rows.reset(), rows.has_failed]

    assert StepBegan(2, ()) == rows.new_step_starts([Started("a", 1)])


def test_failed_read_spoils_its_request_alone() -> None:
    """The step can be materialized for the others."""
    rows = cache()
    step(rows, [Started("x", 2)], {"x": [0, 1]}, hidden(1, 2))
    number = step(rows, [hit("a", [0]), Started("b", 1)], {"a": [2, 3], "b": [4]}, hidden(1, 2, 3))
    rows.fail_read(number, "a", HIDDEN)
    refused(ReadFailedError, rows.materialize, number, ["a", "b"])
    assert [False, True] == [rows.is_readable(number, request) for request in ("a", "b")]

    assert Materialized({"b": [3]}, {}) == rows.materialize(number, ["b"])


def test_r24_reset_is_refused_while_anything_is_in_use() -> None:
    """A reset under a live request would take rows that it was promised (A16)."""
    rows = cache()
    number = step(rows, [Started("a", 2)], GOOD, hidden(1, 2))
    assert not rows.reset()
    rows.new_step_starts([Finished("a")])
    assert not rows.reset()
    rows.discard_step(number)
    assert rows.reset()

    assert not rows.has_row(HIDDEN, 0)
    refused(UnknownStepError, rows.materialize, number, ["a"])
    assert 2 == step(rows, [Started("a", 2)], GOOD, hidden(1, 2))


def test_shut_down_cache_serves_nothing_and_lets_steps_go() -> None:
    """Every waiter wakes with an error; what is held can be given back."""
    rows = cache()
    number = step(rows, [Started("a", 2)], GOOD, hidden(1, 2))
    rows.shutdown()
    rows.shutdown()
    refused(ShutDownError, rows.new_step_starts, [])
    refused(ShutDownError, rows.save_outputs, [], layout(GOOD))
    refused(ShutDownError, rows.drop_step, [])
    refused(ShutDownError, rows.materialize, number, ["a"])
    refused(ShutDownError, rows.register_policy, POLICY)

    rows.discard_step(number)


def test_clone_goes_its_own_way() -> None:
    """Walks come back to old moments."""
    rows = cache()
    number = step(rows, [Started("a", 2)], GOOD, hidden(1, 2))
    twin = rows.clone()
    twin.fail_write()
    assert twin.reset()
    step(twin, [Started("a", 2)], GOOD, hidden(8, 9))

    assert {"a"} == rows.live
    assert Materialized({"a": [1, 2]}, {}) == rows.materialize(number, ["a"])
