"""The ghost memory: rows move as commands say, and who is not ordered races."""

from typing import Any

import numpy as np
import pytest

from tenure.core.rows.commands import (
    Clone,
    CopyPage,
    FreezeRows,
    GatherPart,
    GatherRows,
    Lane,
    ReleaseBuffers,
    RowCommand,
    ScatterPart,
    ScatterRows,
    SourceKind,
)
from tenure.core.rows.events import (
    CopyBegan,
    CopyCompleted,
    GatherCompleted,
    GatherFailed,
    SaveCancelled,
    SavePublished,
    ScatterCompleted,
    WriteFailed,
)
from tenure.core.rows.names import RowFormat, Schedule
from tenure.model_checks.model import Broken
from tenure.model_checks.rows.cells import Cells, Names, row_code
from tenure.model_checks.rows.ghost import Device, Ghost, Live
from tenure.spec.rows.memory import Buffer, Place

M = RowFormat("m", (1,), "uint8", Schedule.JOIN_NEXT_STEP)
NAMES = Names(("m",))
ROWS = {"m": [row_code(1, 1, 0), row_code(1, 2, 0)]}
CLONES = (Clone(1, (M,), 2),)
FREEZE = FreezeRows(1, Lane.COMPUTE, (), 1, 2, CLONES, (), (M,), SavePublished(1), SaveCancelled(1))


def ints(*numbers: int) -> Any:
    """An array."""
    return np.array(numbers, dtype=np.int64)


def copy(after: tuple[int, ...] = (1,)) -> CopyPage:
    """The copy of the frozen step to page 0."""
    return CopyPage(2, Lane.COPY, after, 1, 1, 0, 2, CLONES, CopyBegan(1), CopyCompleted(1), WriteFailed(1))


def scatter(number: int = 3, after: tuple[int, ...] = (), lane: Lane = Lane.POOL) -> ScatterRows:
    """The page's rows to slots 0 and 1."""
    part = ScatterPart("m", ints(0, 1), ints(0, 1))
    return ScatterRows(number, lane, after, 1, 0, (part,), ScatterCompleted(1), WriteFailed(1))


def gather(after: tuple[int, ...] = ()) -> GatherRows:
    """Slot 1 to the buffer of read 1, and a row of zeros."""
    part = GatherPart(SourceKind.POOL, ints(0), ints(1), ints(0))
    return GatherRows(4, Lane.GATHER, after, 1, M, 2, (part,), GatherCompleted(1), GatherFailed(1))


class Bench:
    """A device, told step by step."""

    def __init__(self, *, in_pieces: bool = False) -> None:
        self.device = Device(NAMES, 2, in_pieces=in_pieces)
        self.ghost = Ghost((), Cells())

    def issue(self, *commands: RowCommand) -> list[Broken]:
        """Commands; what is wrong with them."""
        self.ghost, broken = self.device.issue(self.ghost, commands, Live(ROWS, {}))
        return broken

    def run(self, label: str) -> list[Broken]:
        """A piece of a command."""
        self.ghost, broken = self.device.run(self.ghost, self.place(label))
        return broken

    def tell(self, label: str) -> None:
        """The next answer of a command."""
        self.ghost = self.device.tell(self.ghost, self.place(label))

    def place(self, label: str) -> int:
        """Where a command stands."""
        return next(place for place, op in enumerate(self.ghost.ops) if op.work.label.startswith(label))

    def row(self, buffer: Buffer, number: int) -> int | None:
        """What a row holds."""
        return self.ghost.cells.get(NAMES.cell(Place(buffer, "m", number)))

    def to_the_page(self) -> None:
        """Freeze and copy, told in full."""
        self.issue(FREEZE, copy())
        self.tell("freeze")
        self.run("freeze")
        self.run("copy")
        self.tell("copy")
        self.tell("copy")


def test_r02_rows_move_as_the_commands_say() -> None:
    """From the batch to the page, to the pool, to a read."""
    bench = Bench()
    bench.to_the_page()
    assert [] == bench.issue(scatter(), gather(after=(3,)))
    assert [] == bench.run("scatter") + bench.run("gather")

    assert ROWS["m"][1] == bench.row(Buffer("pool", 0), 1)
    assert [ROWS["m"][1], 0] == [bench.row(Buffer("buffer", 1), row) for row in (0, 1)]


def test_r20_copy_beside_its_freeze_races() -> None:
    """Without the edge the copy may read the clone before it is made."""
    (broken,) = Bench().issue(FREEZE, copy(after=()))

    assert "R20" == broken.rule
    assert "copy of step 1 to page 0 is not ordered behind freeze of step 1" in broken.found


@pytest.mark.parametrize(("after", "races"), [((3,), 0), ((), 1)])
def test_r20_gather_races_with_a_scatter_that_it_is_not_behind(after: tuple[int, ...], races: int) -> None:
    """One of them writes what the other reads."""
    bench = Bench()
    bench.to_the_page()

    assert races == len(bench.issue(scatter(), gather(after=after)))


def test_r20_lane_orders_its_commands() -> None:
    """Two scatters of one slot are ordered in the lane of the pool, and nowhere else."""
    bench = Bench()
    bench.to_the_page()
    assert [] == bench.issue(scatter(3), scatter(5))
    other = Bench()
    other.to_the_page()

    assert 1 == len(other.issue(scatter(3), scatter(5, lane=Lane.GATHER)))


def test_r20_told_end_orders_what_comes_later() -> None:
    """What the machine knows to have ended needs no edge."""
    bench = Bench()
    bench.to_the_page()
    bench.issue(scatter())
    bench.run("scatter")
    untold = Bench()
    untold.ghost = bench.ghost
    bench.tell("scatter")

    assert [] == bench.issue(gather())
    assert 1 == len(untold.issue(gather()))


def test_r02_row_that_was_never_written_is_poison() -> None:
    """A gather that runs before its rows are there is caught, ordered or not."""
    bench = Bench()
    bench.issue(FREEZE)
    bench.issue(gather())
    (broken,) = bench.run("gather")

    assert "R02" == broken.rule
    assert "holds no row" in broken.found


def test_r05_commands_move_row_by_row_where_they_should() -> None:
    """So that others may see every prefix."""
    bench = Bench(in_pieces=True)
    bench.issue(FREEZE)
    bench.run("freeze")

    assert [ROWS["m"][0], -1] == [bench.row(Buffer("clone", 1), row) for row in (0, 1)]
    bench.run("freeze")
    assert ROWS["m"] == [bench.row(Buffer("clone", 1), row) for row in (0, 1)]


def test_r18_release_frees_when_all_it_is_behind_has_ended() -> None:
    """And not before."""
    bench = Bench()
    bench.issue(FREEZE, ReleaseBuffers(9, Lane.GATHER, (1,), ints(1), (), ()))
    assert -1 == bench.row(Buffer("clone", 1), 0)
    bench.tell("freeze")
    bench.run("freeze")

    assert bench.row(Buffer("clone", 1), 0) is None
    assert () == bench.ghost.ops


def test_r20_release_beside_a_reader_races() -> None:
    """Whoever still reads the buffer would read what is gone."""
    bench = Bench()
    (broken,) = bench.issue(FREEZE, ReleaseBuffers(9, Lane.GATHER, (), ints(1), (), ()))

    assert "R20" == broken.rule


def test_r13_failed_copy_leaves_nothing_behind() -> None:
    """What a failed command should have written holds no row, and its failure is what is told."""
    bench = Bench()
    bench.issue(FREEZE, copy())
    bench.tell("freeze")
    bench.run("freeze")
    bench.ghost = bench.device.fail(bench.ghost, bench.place("copy"))

    assert -1 == bench.row(Buffer("page", 0), 0)
    assert WriteFailed(1) == bench.device.answer(bench.ghost, bench.place("copy"))
