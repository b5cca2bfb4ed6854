"""A device made of dicts: keeps the commands of the row machine, and carries out the one that it is told to.

It decides nothing. At any moment it says which commands may begin, which may end, and which answers are due; a walk
picks. A command that began and has not ended is under way, so that others can overlap it. What a legal device must
never be asked for raises: memory that is not there or holds no row, and two unordered uses of one place. Order is
known from three things alone: `after`, the lanes, and ends that the machine had been told of when it issued the
command.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from tenure.core.errors import InvariantViolation
from tenure.core.rows.commands import (
    CommandAnswer,
    CommandId,
    CopyDeferred,
    CopyPage,
    FreezeRows,
    GatherRows,
    Lane,
    PreserveRows,
    ReleaseBuffers,
    RowCommand,
    ScatterRows,
    ScheduleGather,
)
from tenure.core.rows.events import SavePublished, StepId
from tenure.spec.rows.jobs import POOL, Job, LiveOutputs, job_of
from tenure.spec.rows.memory import Buffer, Memory, Place, Row, User

IN_ORDER: Final = (Lane.COMPUTE, Lane.COPY, Lane.POOL)
"""Lanes that run one command after the other."""

ReadingId: TypeAlias = int


@dataclass(frozen=True, slots=True)
class Issued:
    """A command that has not ended."""

    command: RowCommand
    job: Job
    user: User
    has_begun: bool = False


@dataclass(frozen=True, slots=True)
class Reading:
    """Somebody outside, a builder, reads places."""

    places: tuple[Place, ...]
    user: User


class Interpreter:
    """Commands, memory, and the answers that are due.

    Attributes:
        memory: what a test may look at.
    """

    def __init__(self, num_slots: int) -> None:
        """Nothing issued, nothing allocated."""
        self.memory = Memory()
        self._num_slots = num_slots
        self._open: dict[CommandId, Issued] = {}
        self._ended: dict[CommandId, User] = {}
        self._failed_reads: set[int] = set()
        self._due: dict[CommandId, tuple[CommandAnswer, ...]] = {}
        self._last_in_lane: dict[Lane, CommandId] = {}
        self._readings: dict[ReadingId, Reading] = {}
        self._leftovers: tuple[StepId, LiveOutputs] = (0, {})
        self._next_user = 0
        # Everything that has ended and of which the machine knows, one bit a user.
        self._known = 0

    def clone(self) -> "Interpreter":
        """A twin that goes its own way from here."""
        twin = Interpreter.__new__(Interpreter)
        twin.__dict__.update(self.__dict__)
        twin.memory = self.memory.clone()
        for name in ("_open", "_ended", "_failed_reads", "_due", "_last_in_lane", "_readings"):
            setattr(twin, name, getattr(self, name).copy())
        return twin

    # --- What is issued ---------------------------------------------------------------------------------------

    def issue(self, commands: Iterable[RowCommand], live: LiveOutputs | None = None) -> None:
        """Take commands; `live` is what the forward pass before a freeze left in its buffers.

        Raises:
            InvariantViolation: a command makes no sense.
        """
        for command in commands:
            if command.command in self._open or command.command in self._ended:
                raise InvariantViolation("R17", f"{command} has the number of an older command")
            for number in command.after:
                if number not in self._open and number not in self._ended:
                    raise InvariantViolation("R20", f"{command} waits for command {number}, which was never issued")
            job = job_of(command, self.memory, self._outputs_for(command, live or {}))
            self._open[command.command] = Issued(command, job, self._new_user(command))
            if command.lane in IN_ORDER:
                self._last_in_lane[command.lane] = command.command
            self._allocate(command, job)
            if answers := self._answers_at_once(command):
                self._due[command.command] = answers
        self._give_up_gathers()

    def _outputs_for(self, command: RowCommand, live: LiveOutputs) -> LiveOutputs:
        """A freeze keeps the leftovers of its step for the page copy."""
        if isinstance(command, FreezeRows):
            self._leftovers = command.step, {name: live[name] for name in command.leftovers}
            return live
        if isinstance(command, CopyPage) and command.step == self._leftovers[0]:
            return self._leftovers[1]
        return {}

    def _new_user(self, command: RowCommand) -> User:
        behind = self._known
        before = list(command.after)
        if command.lane in IN_ORDER and command.lane in self._last_in_lane:
            before.append(self._last_in_lane[command.lane])
        for number in before:
            other = self._ended[number] if number in self._ended else self._open[number].user
            behind |= other.behind | 1 << other.number
        return self._user(behind, f"command {command.command} ({type(command).__name__})")

    def _user(self, behind: int, label: str) -> User:
        self._next_user += 1
        return User(self._next_user - 1, behind, label)

    def _allocate(self, command: RowCommand, job: Job) -> None:
        """Room for what the command fills; pool rows are there since their name was registered, pages always."""
        if isinstance(command, FreezeRows):
            names = [each.name for each in command.registers]
            self.memory.allocate(Place(POOL, name, slot) for name in names for slot in range(self._num_slots))
        if not isinstance(command, ScatterRows):
            self.memory.allocate(job.targets)

    @staticmethod
    def _answers_at_once(command: RowCommand) -> tuple[CommandAnswer, ...]:
        """A freeze is answered when it is launched, and a copy is taken before it runs."""
        match command:
            case FreezeRows():
                return (command.done,)
            case CopyPage() | CopyDeferred() | ScheduleGather():
                return (command.began,)
            case _:
                return ()

    # --- What may happen --------------------------------------------------------------------------------------

    @property
    def open(self) -> tuple[RowCommand, ...]:
        """The commands that have not ended, in order of issue."""
        return tuple(issued.command for issued in self._open.values())

    @property
    def can_begin(self) -> list[CommandId]:
        """Commands that may begin now."""
        lanes: set[Lane] = set()
        found: list[CommandId] = []
        for number, issued in self._open.items():
            lane = issued.command.lane
            is_next = lane not in lanes
            if lane in IN_ORDER:
                lanes.add(lane)
            is_work = not issued.has_begun and not isinstance(issued.command, ScheduleGather)
            if is_next and is_work and self._is_free(issued.command):
                found.append(number)
        return found

    @property
    def can_end(self) -> list[CommandId]:
        """Commands that are under way and may end now."""
        return [number for number, issued in self._open.items() if issued.has_begun]

    @property
    def can_fail(self) -> list[CommandId]:
        """Commands that may end badly now: those that began, or may; a freeze as long as nobody counts on it."""
        soon = {*self.can_begin, *self.can_end}
        return [
            number
            for number, issued in self._open.items()
            if (isinstance(issued.command, FreezeRows) and not issued.has_begun and self._due.get(number))
            or (number in soon and not isinstance(issued.command, FreezeRows | ReleaseBuffers))
        ]

    @property
    def due(self) -> list[CommandId]:
        """Commands whose next answer may be told now."""
        return [
            number
            for number in self._due
            if not (
                number in self._open
                and isinstance(self._open[number].command, ScheduleGather)
                and not self._is_free(self._open[number].command)
            )
        ]

    @property
    def is_idle(self) -> bool:
        """Whether nothing is left to run or to tell."""
        return not self._open and not self._due and not self._readings

    def _is_free(self, command: RowCommand) -> bool:
        return all(number in self._ended for number in command.after)

    # --- What happens -----------------------------------------------------------------------------------------

    def begin(self, number: CommandId) -> None:
        """Begin a command. Freeing is over at once.

        Raises:
            InvariantViolation: it uses memory that it must not use.
        """
        issued = self._open[number]
        for source, _ in issued.job.moves:
            self.memory.begin_read(source, issued.user)
        for target in issued.job.targets:
            self.memory.begin_write(target, issued.user)
        if isinstance(issued.command, ReleaseBuffers):
            for buffer in issued.job.frees:
                self.memory.free(buffer, issued.user)
            self._close(number)
            return
        self._open[number] = Issued(issued.command, issued.job, issued.user, has_begun=True)

    def end(self, number: CommandId) -> None:
        """End a command that began.

        Raises:
            InvariantViolation: it reads what holds no row.
        """
        issued = self._open[number]
        for source, target in issued.job.moves:
            self.memory.write(target, self.memory.read(source, issued.user))
        for row, target in issued.job.fills:
            self.memory.write(target, row)
        self._close(number)
        command = issued.command
        if isinstance(command, CopyPage | CopyDeferred | ScatterRows | GatherRows):
            self._due[number] = (*self._due.get(number, ()), command.done)

    def fail(self, number: CommandId) -> None:
        """End a command badly: what it should have written holds nothing.

        A gather behind a preserve that failed fails too.
        """
        issued = self._open[number]
        command = issued.command
        if not issued.has_begun and not isinstance(command, FreezeRows):
            for target in issued.job.targets:
                self.memory.begin_write(target, issued.user)
        self._close(number)
        earlier = self._due.pop(number, ()) if issued.has_begun else ()
        match command:
            case FreezeRows() | CopyPage() | CopyDeferred() | ScatterRows():
                self._due[number] = (*earlier, command.failed)
            case PreserveRows(read=read) | GatherRows(read=read):
                self._due[number] = (command.failed,)
                self._failed_reads.add(read)
                self._give_up_gathers()
            case _:
                pass

    def _give_up_gathers(self) -> None:
        for number, issued in [*self._open.items()]:
            command = issued.command
            if isinstance(command, GatherRows) and not issued.has_begun and command.read in self._failed_reads:
                self._close(number)
                self._due[number] = (command.failed,)

    def _close(self, number: CommandId) -> None:
        self._ended[number] = self._open.pop(number).user

    def tell(self, number: CommandId) -> CommandAnswer:
        """The next answer of a command, which the machine is told now."""
        answer, *later = self._due.pop(number)
        if later:
            self._due[number] = tuple(later)
        if number in self._open and isinstance(self._open[number].command, ScheduleGather):
            self._close(number)
        # A launched freeze is answered before it ends, so its answer is no news of its end.
        if number in self._ended and not later and not isinstance(answer, SavePublished):
            self._know(self._ended[number])
        return answer

    def _know(self, user: User) -> None:
        self._known |= user.behind | 1 << user.number

    # --- What others read and take ----------------------------------------------------------------------------

    def begin_reading(self, places: Sequence[Place], label: str) -> ReadingId:
        """Somebody outside begins to read.

        Raises:
            InvariantViolation: a place is not there, or may still be written.
        """
        user = self._user(self._known, label)
        for place in places:
            self.memory.begin_read(place, user)
        self._readings[user.number] = Reading(tuple(places), user)
        return user.number

    def end_reading(self, reading: ReadingId) -> list[Row]:
        """What was read; the machine is told next.

        Raises:
            InvariantViolation: a place holds no row.
        """
        places, user = self._readings[reading].places, self._readings[reading].user
        del self._readings[reading]
        rows = [self.memory.read(place, user) for place in places]
        self._know(user)
        return rows

    def take(self, read: int) -> None:
        """A builder takes a read's buffer over, and is done with it.

        Raises:
            InvariantViolation: somebody else still uses it.
        """
        user = self._user(self._known, f"the taker of read {read}")
        for kind in ("buffer", "aside"):
            buffer = Buffer(kind, read)
            if buffer in self.memory.buffers:
                self.memory.free(buffer, user)

    def pool_row(self, name: str, slot: int) -> Row:
        """What the pool holds; `POISON` if nothing."""
        return self.memory.row(Place(POOL, name, slot))

    @property
    def buffers(self) -> frozenset[Buffer]:
        """Buffers that somebody must still give back."""
        return frozenset(buffer for buffer in self.memory.buffers if buffer.kind not in ("page", "pool"))
