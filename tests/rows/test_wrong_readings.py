"""Designs that look right, each refuted by the short history in which it fails. Blocks of one slot, as there.

Request names are those of the histories; hidden is not cached, `k` is the immediate name and `c` the deferred one.
"""

import pytest
from pydantic import ValidationError

from tenure.core.arrays import integers
from tenure.core.config import RowConfig, RowPolicy
from tenure.core.errors import StepNotSavedError, UnreadableHitError
from tenure.core.rows.answers import ConsumePlan, ResetAnswered, Waiting
from tenure.core.rows.commands import CopyDeferred, CopyPage, GatherRows, ScatterRows
from tenure.core.rows.events import Finished, LifeCycle, ResetRequested, Resumed, Started, StepDiscarded, StepDropped
from tenure.core.rows.view import Occupancy, ReadPhase, WritePhase
from tests.rows.scene import COPIES, GATHERS, Scene, extended
from tests.rows.scene import started as arrives

ZERO = (0,)
POLICY = RowPolicy(hidden=False, immediate=frozenset({"k"}), deferred=frozenset({"c"}), infer=False)
WITH_HIDDEN = RowPolicy(immediate=frozenset({"k"}), deferred=frozenset({"c"}), infer=False)


def started(request: str, tokens: int, *hit_blocks: int) -> Started:
    """An arrival, in blocks of one slot."""
    return arrives(request, tokens, *hit_blocks, block_size=1)


def scene(pages: int = 4, policy: RowPolicy = POLICY, **config: int) -> Scene:
    """Six blocks of one slot."""
    return Scene(6, 1, policy, pages=pages, **config)


def step(scene: Scene, *changes: LifeCycle, batch: dict[str, tuple[int, ...]], **rows: list[int]) -> int:
    """A step whose rows go on to the pool as far as they can; its reads wait."""
    number = scene.step(*changes, batch=batch, **rows)
    scene.run(CopyPage, ScatterRows)
    return number


def test_r02_w1_hit_is_planned_anew_at_the_save() -> None:
    """W1: a read planned at the start and never again serves what the block held before the step."""
    s = scene()
    step(s, started("A", 1), started("C", 1), batch={"A": (1,), "C": (0,)}, k=[10, 20])
    s.start(Finished("C"), started("A2", 1), started("B", 1, 0))
    s.run(*GATHERS)
    number = s.save({"A2": (0,), "B": (2,)}, k=[30, 40])

    assert [30, 40] == s.materialize(number, "B")["k"]["B"]


def test_r16_w2_each_chunk_has_a_claim_of_its_own() -> None:
    """W2: under one number for a growing write, the fresh row looks older than the slot's tenancy."""
    s = scene()
    step(s, started("A", 1), batch={"A": (0,)}, c=[1])
    step(s, extended(A=1), batch={"A": (1,)}, k=[0])
    number = step(s, extended(A=1), started("B", 1, 1), batch={"A": (1,), "B": (2,)}, c=[2, 3])

    assert Occupancy.IN_TRANSIT is s.occupancy("c", 1)[0]
    assert [2, 3] == s.materialize(number, "B")["c"]["B"]


def test_r16_w2_reader_sees_a_rewrite_by_the_same_write() -> None:
    """The other half: the later row of the same open write is the newer one, for readers and for the pool."""
    s = scene()
    step(s, started("A", 1), batch={"A": (0,)}, c=[1])
    first = step(s, extended(A=0), started("B", 1, 0), batch={"B": (2,)}, c=[5])
    second = step(s, extended(A=1), batch={"A": (0,)}, c=[2])
    third = step(s, started("D", 1, 0), batch={"D": (3,)}, c=[6])

    assert [1, 5] == s.materialize(first, "B")["c"]["B"]
    assert [2, 6] == s.materialize(third, "D")["c"]["D"]
    s.start(Finished("A"))
    s.drain()
    assert [2] == s.pool("c", 0)
    s.tell(StepDiscarded(second))


def test_r03_w3_one_request_s_write_does_not_commit_another_s_rows() -> None:
    """W3: one claim for all deferred rows of a step closes when the first of its requests is written."""
    s = scene()
    step(s, started("C", 1), started("A", 1), batch={"C": (0,), "A": (1,)}, c=[10, 20])
    s.start(Finished("C"))
    s.run(*COPIES, ScatterRows)
    number = step(s, started("B", 1, 1), batch={"B": (2,)}, c=[30])

    assert [Occupancy.COMMITTED, Occupancy.IN_TRANSIT] == s.occupancy("c", 0, 1)
    assert [20, 30] == s.materialize(number, "B")["c"]["B"]


def test_r13_w4_rows_that_look_absent_are_preserved_all_the_same() -> None:
    """W4: the row a delayed read needs is ABSENT by now, and still in the pool."""
    s = scene()
    step(s, started("A", 1), batch={"A": (0,)}, c=[1])
    s.start(Finished("A"))
    s.run(*COPIES, ScatterRows)
    number = step(s, started("B", 1, 0), batch={"B": (1,)}, c=[2])
    step(s, started("C", 1), batch={"C": (0,)}, k=[3])
    assert [Occupancy.ABSENT] == s.occupancy("c", 0)
    step(s, started("D", 1), batch={"D": (0,)}, c=[4])
    s.start(Finished("D"))
    s.run(*COPIES, ScatterRows)

    assert (0,) == s.view.reads[s.read_of(number, "B", "c")].preserved
    assert [1, 2] == s.materialize(number, "B")["c"]["B"]
    assert [4] == s.pool("c", 0)


def test_r21_w5_save_compares_effective_claims() -> None:
    """W5: by raw claims the early read looks right, and it is another tenant's row."""
    s = scene()
    step(s, started("C", 1), batch={"C": (0,)}, c=[7])
    s.start(Finished("C"))
    s.run(*COPIES, ScatterRows)
    s.start(started("A", 1), started("B", 1, 0))
    s.run(*GATHERS)
    # A computes block 0 and emits no c there, since nobody does in this step; B's own c comes a step later.
    number = s.save({"A": (0,), "B": (2,)}, k=[1, 2])
    assert [Occupancy.ABSENT] == s.occupancy("c", 0)
    later = step(s, extended(A=0, B=0), started("E", 1, 0), batch={"E": (3,)}, c=[9])

    assert [1, 2] == s.materialize(number, "B")["k"]["B"]
    assert [ZERO, 9] == s.materialize(later, "E")["c"]["E"]


def test_r13_w6_read_holds_the_buffers_of_the_write_it_reads() -> None:
    """W6: flushed, finished, superseded, copied and scattered, the source is gone and the pool has another row."""
    s = scene()
    step(s, started("A", 1), started("B", 1), batch={"A": (0,), "B": (1,)}, c=[10, 20])
    s.start(Finished("B"), started("D", 1, 1))
    read = s.read_of(2, "D", "c")
    s.run(CopyDeferred)
    number = s.save({"D": (2,)}, c=[30])
    (held,) = s.view.reads[read].writes
    s.start(Finished("D"), started("E", 1))
    s.run(*COPIES)
    s.save({"E": (1,)}, c=[40])
    s.start(Finished("E"))
    s.run(*COPIES, ScatterRows)

    assert s.view.writes[held].phase is WritePhase.WRITTEN
    assert [40] == s.pool("c", 1)
    assert [20, 30] == s.materialize(number, "D")["c"]["D"]
    assert held not in s.view.writes


def test_r06_w7_page_is_free_when_its_rows_were_copied_out() -> None:
    """W7: free as soon as the consume begins, it is overwritten under the reader."""
    s = scene(pages=2)
    first = step(s, started("A", 1), batch={"A": (0,)}, k=[1])
    plan = s.plan(first, "A")
    assert isinstance(plan, ConsumePlan)
    second = step(s, extended(A=1), batch={"A": (1,)}, k=[2])
    s.start(extended(A=1))
    waiting = s.request_save({"A": (2,)}, k=[3])

    assert isinstance(waiting, Waiting)
    assert waiting.waited_for.page
    assert {"A": [1]} == s.copy_out(plan).mm_outputs["k"]
    assert 3 == s.save({"A": (2,)}, k=[3])
    s.abandon(first)
    assert {"A": [1]} == s.materialize(first, "A")["k"]
    assert {"A": [2]} == s.materialize(second, "A")["k"]


@pytest.mark.parametrize("how", ["planned anew", "dropped"])
def test_r23_w8_running_read_that_nobody_wants_keeps_its_edge(how: str) -> None:
    """W8: forgotten, its gather and the step's own scatter race on the same row."""
    s = scene()
    step(s, started("C", 1), batch={"C": (0,)}, k=[1])
    s.start(Finished("C"), started("A", 1), started("B", 1, 0))
    read = s.read_of(2, "B", "k")
    s.begin_gather(read)
    if how == "dropped":
        s.tell(StepDropped(integers([3])))
        s.start(extended(A=1))
        s.save({"A": (0,)}, k=[5])
    else:
        s.save({"A": (0,), "B": (2,)}, k=[5, 6])
    assert s.view.reads[read].phase is ReadPhase.LEFT
    s.run(CopyPage)
    (scatter,) = [command for command in s.device.open if isinstance(command, ScatterRows)]
    (gather,) = [command for command in s.device.open if isinstance(command, GatherRows)]

    assert (gather.command,) == scatter.after
    assert [1] == s.pool("k", 0)
    s.drain()
    assert [5] == s.pool("k", 0)
    assert read not in s.view.reads


def test_r22_w9_step_that_was_never_saved_is_given_up_first() -> None:
    """W9: a lost save leaves an earlier tenant's rows servable behind a new hash."""
    s = scene(policy=WITH_HIDDEN)
    step(s, started("C", 1), batch={"C": (1,)}, h=[1])
    s.start(Finished("C"), started("A", 1))
    with pytest.raises(StepNotSavedError, match="step 2"):
        s.start(started("B", 1, 1))
    s.tell(StepDropped(integers([1])))
    number = step(s, started("B", 1, 1), batch={"B": (2,)}, h=[3])

    with pytest.raises(UnreadableHitError):
        s.plan(number, "B")


def test_r24_w10_reset_leaves_pages_with_the_copies_that_use_them() -> None:
    """W10: freed at once, the old scatter takes the bytes of the page's next step."""
    s = scene(pages=2)
    first = s.step(started("A", 1), batch={"A": (0,)}, k=[1])
    s.run(CopyPage)
    s.tell(StepDiscarded(first))
    s.start(Finished("A"))
    assert ResetAnswered(done=True) == s.tell(ResetRequested())
    assert 1 == sum(bool(holders) for holders in s.view.pages)

    second = s.step(started("B", 1), batch={"B": (0,)}, k=[2])
    assert 2 == sum(bool(holders) for holders in s.view.pages)
    s.drain()
    assert [2] == s.pool("k", 0)
    assert {"B": [2]} == s.materialize(second, "B")["k"]


def test_r24_w11_reset_is_refused_while_a_step_is_unconsumed() -> None:
    """W11: its snapshot would point at nothing."""
    s = scene()
    number = step(s, started("A", 1), batch={"A": (0,)}, k=[1])
    s.start(Finished("A"))

    assert ResetAnswered(done=False) == s.tell(ResetRequested())
    assert {"A": [1]} == s.materialize(number, "A")["k"]
    assert ResetAnswered(done=True) == s.tell(ResetRequested())


def test_r05_w12_scatters_of_a_name_run_in_the_order_of_issue() -> None:
    """W12: in no particular order, masked when issued, the pool ends with the older row."""
    s = scene()
    step(s, started("A", 1), batch={"A": (1,)}, c=[1])
    s.start(Finished("A"), started("C", 1))
    s.run(CopyDeferred)
    (older,) = [command for command in s.device.open if isinstance(command, ScatterRows)]
    s.save({"C": (1,)}, c=[2])
    s.start(Finished("C"))
    s.run(*COPIES)
    older, newer = [command for command in s.device.open if isinstance(command, ScatterRows)]

    assert [[1], [1]] == [each.parts[0].slots.tolist() for each in (older, newer)]
    assert older.lane is newer.lane
    assert [older.command] == [number for number in s.device.can_begin if number in (older.command, newer.command)]
    s.drain()
    assert [2] == s.pool("c", 1)


def test_r11_w13_reads_start_without_their_consumer() -> None:
    """W13: scatters behind reads that only a builder starts, and a builder behind the engine: nobody moves."""
    s = scene(pages=3, builder_lag_max=2)
    step(s, started("A", 1), batch={"A": (0,)}, k=[1])
    s.tell(StepDiscarded(1))
    lagging = step(s, Finished("A"), started("B", 1, 0), batch={"B": (1,)}, k=[2])
    step(s, started("C", 1), batch={"C": (0,)}, k=[3])
    s.drain()

    assert s.view.reads[s.read_of(lagging, "B", "k")].phase is ReadPhase.DONE
    third = s.step(extended(C=1), batch={"C": (2,)}, k=[4])
    s.drain()
    assert [3] == s.pool("k", 0)
    assert {"B": [1, 2]} == s.materialize(lagging, "B")["k"]
    assert third == 4


def test_r07_w14_depth_exceeds_the_lag_of_the_builder() -> None:
    """W14: with as many pages as the builder lags, one thread waits for itself."""
    with pytest.raises(ValidationError, match="needs 3 pages"):
        RowConfig(num_blocks=6, block_size=1, page_rows_max=4, pages=2, builder_lag_max=2)


def test_r14_w15_unreadable_hit_does_not_cost_the_step() -> None:
    """W15: if the whole save raises, another request's rows of the same step are lost and an older tenant's served."""
    s = scene(policy=WITH_HIDDEN)
    step(s, started("old", 1), batch={"old": (1,)}, h=[9])
    number = step(s, Finished("old"), started("D", 1, 5), started("B", 1), batch={"D": (2,), "B": (1,)}, h=[1, 2])
    later = step(s, started("F", 1, 1), batch={"F": (3,)}, h=[4])

    with pytest.raises(UnreadableHitError):
        s.plan(number, "D", "B")
    assert {"B": [2]} == s.materialize(number, "B")["h"]
    assert {"F": [2, 4]} == s.materialize(later, "F")["h"]


def test_r23_start_after_a_drop_has_no_read_of_the_dropped_step() -> None:
    """A read of a step that was given up is nobody's."""
    s = scene()
    step(s, started("C", 1), batch={"C": (0,)}, k=[1])
    s.start(started("B", 1, 0))
    assert s.view.reads
    s.tell(StepDropped(integers([1])))
    s.start(Resumed("B", 1))

    assert not s.view.reads
