"""A memory of symbolic rows, and the commands that are at it: who may move which row when, and who races with whom.

Commands are carried out row by row or whole, in any order that lanes and `after` allow. What happens-before what is
known when a command is issued: it is behind the commands it names, those before it in its lane, everything they are
behind, and everything whose end the machine had been told of. Two commands that use one cell, one of them writing,
and are not ordered race on some legal device, whatever this run did: so races are found at the issue, once, and a run
that has none may carry commands out one at a time.

A command stays in the list until the machine knows of its end: until then a later one may be unordered with it.
"""

from collections.abc import Sequence, Set
from typing import Final, NamedTuple

from tenure.core.errors import InvariantViolation
from tenure.core.rows.commands import (
    CommandAnswer,
    CopyDeferred,
    CopyPage,
    FreezeRows,
    GatherRows,
    ReleaseBuffers,
    RowCommand,
    ScatterRows,
)
from tenure.core.rows.names import NameId
from tenure.model_checks.model import Broken
from tenure.model_checks.rows.cells import BUFFER_SHIFT, POISON, Cells, Names, buffer_code, buffer_of
from tenure.model_checks.rows.work import Reader, Work
from tenure.spec.rows.jobs import POOL, job_of
from tenure.spec.rows.memory import Buffer, Place

FAILED: Final = 1 << 16
"""The progress of a command that ended badly: more than that of any that did not."""


class Op(NamedTuple):
    """A command under way.

    Attributes:
        number: the machine's number of it, as far as the machine may still name it; 0 otherwise.
        behind: bit i is set if it is ordered behind the op at place i.
        progress: pieces carried out; `work.pieces` if it has ended, `FAILED` if it ended badly.
        told: how many of its early answers were told.
        is_known: nothing can be at its rows any more, as far as the machine knows, although an answer is still due.
    """

    work: Work
    number: int
    behind: int
    progress: int = 0
    told: int = 0
    is_known: bool = False

    @property
    def has_ended(self) -> bool:
        """Whether it runs no more."""
        return self.progress >= self.work.pieces


class Ghost(NamedTuple):
    """Memory and commands at one moment. Cells are shared between states and never changed in place."""

    ops: tuple[Op, ...]
    cells: Cells


class Live(NamedTuple):
    """What a forward pass left in its buffers, as symbolic rows.

    Attributes:
        rows: per name one for each row of the batch.
        notes: per leftover what stands for it.
    """

    rows: dict[NameId, list[int]]
    notes: dict[NameId, int]


class _Rooms:
    """What jobs ask of a memory, answered from cells."""

    def __init__(self, names: Names, cells: Cells) -> None:
        self._names, self._cells = names, cells

    @property
    def buffers(self) -> frozenset[Buffer]:
        return frozenset(map(buffer_of, self._cells.buffers))

    def names(self, buffer: Buffer) -> frozenset[str]:
        return self._names.under(buffer_code(buffer), self._cells.rooms)


class Device:
    """The rules by which a ghost moves; it has no state of its own but what it remembers to be fast.

    Attributes:
        in_pieces: whether rows are moved one at a time, so that others see every prefix.
    """

    def __init__(self, names: Names, num_slots: int, *, in_pieces: bool) -> None:
        """For a pool of `num_slots` rows under these names."""
        self._names, self._num_slots, self.in_pieces = names, num_slots, in_pieces
        # What commands are as work, by the objects, which are kept so that no other object gets their place, and by
        # what is there, where memory has a say in it.
        self._works: dict[tuple[int, int, frozenset[int] | None], tuple[Work, RowCommand, Live]] = {}

    # --- Issue ------------------------------------------------------------------------------------------------

    def issue(self, ghost: Ghost, commands: Sequence[RowCommand], live: Live) -> tuple[Ghost, list[Broken]]:
        """Take commands in order; `live` is what a forward pass left in its buffers."""
        broken: list[Broken] = []
        ops, cells = list(ghost.ops), ghost.cells
        for command in commands:
            try:
                work = self._work(command, cells, live)
            except InvariantViolation as error:
                broken.append(Broken("R20", str(error)))
                continue
            behind = self._behind(command, work, ops)
            broken += races(work, behind, ops)
            cells = self._allocated(command, work, cells, broken)
            never_runs = isinstance(command, GatherRows) and _is_lost(command.read, ops)
            ops.append(Op(work, command.command, behind, FAILED if never_runs else 0, 0, never_runs))
        return settled(Ghost(tuple(ops), cells)), broken

    def _work(self, command: RowCommand, cells: Cells, live: Live) -> Work:
        """A command as work, made once."""
        key = id(command), id(live), cells.rooms if isinstance(command, CopyDeferred | ReleaseBuffers) else None
        known = self._works.get(key)
        if known is not None:
            return known[0]
        outputs = live.rows if isinstance(command, FreezeRows) else live.notes if isinstance(command, CopyPage) else {}
        work = Work(command, job_of(command, _Rooms(self._names, cells), outputs), self._names)
        self._works[key] = work, command, live
        return work

    @staticmethod
    def _behind(command: RowCommand, work: Work, ops: Sequence[Op]) -> int:
        behind = 0
        after = command.after
        last_in_lane = True
        for place in range(len(ops) - 1, -1, -1):
            op = ops[place]
            named = op.number in after
            if work.lane is not None and op.work.lane is work.lane and last_in_lane:
                named, last_in_lane = True, False
            if named:
                behind |= op.behind | 1 << place
        return behind

    def _allocated(self, command: RowCommand, work: Work, cells: Cells, broken: list[Broken]) -> Cells:
        """Room for what is filled; pool rows are there since their name was registered, pages always."""
        fills = set[int]() if isinstance(command, ScatterRows) else set(work.writes)
        if isinstance(command, FreezeRows):
            for each in command.registers:
                fills.update(self._names.cell(Place(POOL, each.name, slot)) for slot in range(self._num_slots))
        if fresh := fills.difference(cells):
            cells = Cells(cells)
            cells.update(dict.fromkeys(fresh, POISON))
        if missing := work.uses.difference(cells):
            place = self._names.place(min(missing))
            broken.append(Broken("R20", f"{work.label} uses {place}, which is not allocated"))
        if work.frees:
            broken += [
                Broken("R20", f"{work.label} frees {buffer_of(buffer)}, which is not there")
                for buffer in sorted(work.frees - cells.buffers)
            ]
        return cells

    def read_by(self, ghost: Ghost, reader: Reader) -> tuple[Ghost, list[Broken]]:
        """A builder begins to copy out."""
        broken = races(reader, 0, ghost.ops)
        broken += [
            Broken("R20", f"{reader.label} reads {self._names.place(cell)}, which is not allocated")
            for cell in sorted(reader.reads.difference(ghost.cells))
        ]
        return Ghost((*ghost.ops, Op(reader, 0, 0)), ghost.cells), broken

    # --- What may happen --------------------------------------------------------------------------------------

    @staticmethod
    def runnable(ghost: Ghost) -> list[int]:
        """Places of the commands of which a piece may run now."""
        ended = 0
        for place, op in enumerate(ghost.ops):
            if op.has_ended:
                ended |= 1 << place
        return [
            place
            for place, op in enumerate(ghost.ops)
            if not ended >> place & 1
            and not op.behind & ~ended
            and op.work.kind not in ("ScheduleGather", "Builder", "ReleaseBuffers")
        ]

    @staticmethod
    def due(ghost: Ghost) -> list[int]:
        """Places of the commands whose next answer may be told now."""
        return [place for place, op in enumerate(ghost.ops) if _answer(op) is not None]

    @staticmethod
    def answer(ghost: Ghost, place: int) -> CommandAnswer:
        """The next answer of a command."""
        answer = _answer(ghost.ops[place])
        assert answer is not None
        return answer

    @staticmethod
    def fallible(ghost: Ghost, runnable: Sequence[int]) -> list[int]:
        """Places of the commands that may end badly now.

        A freeze may until somebody counts on it, a copy as soon as a device has it, anything else when it runs.
        """
        return [
            place
            for place, op in enumerate(ghost.ops)
            if op.work.failed is not None and not op.has_ended and _may_fail(op, is_next=place in runnable)
        ]

    # --- What happens -----------------------------------------------------------------------------------------

    def run(self, ghost: Ghost, place: int) -> tuple[Ghost, list[Broken]]:
        """Carry out the next piece of a command, or all of it."""
        op = ghost.ops[place]
        work = op.work
        pieces = range(op.progress, op.progress + 1) if self.in_pieces else range(op.progress, work.pieces)
        cells, fresh, broken = ghost.cells, dict[int, int](), list[Broken]()
        for piece in pieces:
            if piece < len(work.moves):
                source, target = work.moves[piece]
                value = cells.get(source, POISON)
                if value == POISON:
                    found = f"{work.label} reads {self._names.place(source)}, which holds no row"
                    broken.append(Broken("R02", found))
                fresh[target] = value
            elif piece < len(work.moves) + len(work.fills):
                value, target = work.fills[piece - len(work.moves)]
                fresh[target] = value
        ops = _replaced(ghost.ops, place, _at(op, pieces.stop))
        ghost = Ghost(ops, cells.refilled(fresh) if fresh else cells)
        return settled(ghost) if pieces.stop >= work.pieces else ghost, broken

    @staticmethod
    def fail(ghost: Ghost, place: int) -> Ghost:
        """End a command badly: what it should have written holds nothing. A gather behind a lost preserve fails too."""
        op = ghost.ops[place]
        cells = ghost.cells
        if op.work.kind != "ScatterRows":
            cells = cells.refilled(dict.fromkeys(op.work.writes, POISON))
        ops = list(_replaced(ghost.ops, place, _at(op, FAILED)))
        for other, each in enumerate(ops):
            is_lost = each.work.kind == "GatherRows" and each.work.read == op.work.read and not each.progress
            if op.work.kind == "PreserveRows" and is_lost:
                # It never ran: nothing can be at its rows.
                ops[other] = each._replace(progress=FAILED, is_known=True)
        return settled(Ghost(tuple(ops), cells))

    @staticmethod
    def tell(ghost: Ghost, place: int) -> Ghost:
        """The machine is told the next answer of a command, and learns what that implies."""
        op = ghost.ops[place]
        if op.told < len(op.work.early) and op.progress != FAILED:
            if op.work.kind == "ScheduleGather":
                return Ghost(_without(ghost.ops, 1 << place), ghost.cells)
            told = Op(op.work, op.number, op.behind, op.progress, op.told + 1, op.is_known)
            return Ghost(_replaced(ghost.ops, place, told), ghost.cells)
        if op.progress == FAILED:
            # It may have ended before anything that it should have waited for.
            return Ghost(_without(ghost.ops, 1 << place), ghost.cells)
        # Its end is known now, and so are the ends of all that it was behind.
        ops, gone = list(ghost.ops), 1 << place
        for other, each in enumerate(ops):
            if op.behind >> other & 1 and each.has_ended:
                if _answer(each) is None:
                    gone |= 1 << other
                else:
                    ops[other] = each._replace(is_known=True)
        return Ghost(_without(tuple(ops), gone), ghost.cells)

    @staticmethod
    def leave(ghost: Ghost, step: int) -> Ghost:
        """The builder of a step is done reading."""
        places = (place for place, op in enumerate(ghost.ops) if op.work.kind == "Builder" and op.work.read == step)
        return Ghost(_without(ghost.ops, 1 << next(places)), ghost.cells)

    @staticmethod
    def freed(ghost: Ghost, buffers: frozenset[int]) -> Ghost:
        """Buffers go: a builder took them, or nobody holds the page any more."""
        cells = ghost.cells
        return ghost if cells.buffers.isdisjoint(buffers) else Ghost(ghost.ops, remaining(cells, buffers))

    @staticmethod
    def renumbered(ghost: Ghost, numbers: dict[int, int]) -> Ghost:
        """After a transition the machine names commands anew; what it forgot has no number."""
        ops: list[Op] | None = None
        for place, op in enumerate(ghost.ops):
            if op.number and (number := numbers.get(op.number, 0)) != op.number:
                if ops is None:
                    ops = [*ghost.ops]
                ops[place] = Op(op.work, number, op.behind, op.progress, op.told, op.is_known)
        return ghost if ops is None else Ghost(tuple(ops), ghost.cells)


def settled(ghost: Ghost) -> Ghost:
    """Buffers are freed as soon as all that a release is behind has ended.

    Nobody can tell when: what is gone, or about to go, may not be used by whatever is issued later, and what was issued
    before is ordered. With a release go the commands that only filled what is gone now.
    """
    releases = [(place, op) for place, op in enumerate(ghost.ops) if op.work.frees]
    if not releases:
        return ghost
    ended = sum([1 << place for place, op in enumerate(ghost.ops) if op.progress >= op.work.pieces])
    gone, freed = 0, set[int]()
    for place, op in releases:
        if not op.behind & ~ended:
            gone |= 1 << place
            freed |= op.work.frees
    if not gone:
        return ghost
    cells = remaining(ghost.cells, freed)
    for place, op in enumerate(ghost.ops):
        ended_now = op.has_ended and op.work.done is None and _answer(op) is None
        if ended_now and op.work.buffers.isdisjoint(cells.buffers):
            gone |= 1 << place
    return Ghost(_without(ghost.ops, gone), cells)


def remaining(cells: Cells, buffers: Set[int]) -> Cells:
    """The cells that stay when buffers go; the same object if none goes."""
    if cells.buffers.isdisjoint(buffers):
        return cells
    return Cells({cell: value for cell, value in cells.items() if cell >> BUFFER_SHIFT not in buffers})


def races(work: Work, behind: int, ops: Sequence[Op]) -> list[Broken]:
    """R20: every command that is under way, not ordered, and at the same rows."""
    found: list[Broken] = []
    for place, op in enumerate(ops):
        if not behind >> place & 1 and not op.is_known and (cell := work.conflict(op.work)) is not None:
            found.append(Broken("R20", f"{work.label} is not ordered behind {op.work.label}, and both use {cell}"))
    return found


def _may_fail(op: Op, *, is_next: bool) -> bool:
    if op.work.kind == "FreezeRows":
        return not op.told
    return is_next or op.work.kind in ("CopyPage", "CopyDeferred")


def _is_lost(read: int, ops: Sequence[Op]) -> bool:
    """Whether a preserve for a read failed, which the machine was not told yet."""
    return any(op.work.kind == "PreserveRows" and op.work.read == read and op.progress == FAILED for op in ops)


def _answer(op: Op) -> CommandAnswer | None:
    if op.progress == FAILED:
        return op.work.failed
    if op.told < len(op.work.early):
        return op.work.early[op.told]
    return op.work.done if op.has_ended else None


def _at(op: Op, progress: int) -> Op:
    """A command that came this far."""
    return Op(op.work, op.number, op.behind, progress, op.told, op.is_known)


def _replaced(ops: tuple[Op, ...], place: int, op: Op) -> tuple[Op, ...]:
    return (*ops[:place], op, *ops[place + 1 :])


def _without(ops: tuple[Op, ...], gone: int) -> tuple[Op, ...]:
    """The ops that stay, and who is behind whom among them."""
    kept = [*ops]
    while gone:
        place = gone.bit_length() - 1
        gone ^= 1 << place
        del kept[place]
        before = (1 << place) - 1
        for later in range(place, len(kept)):
            op = kept[later]
            if op.behind > before:
                kept[later] = Op(op.work, op.number, op.behind & before | op.behind >> 1 & ~before, *op[3:])
    return tuple(kept)
