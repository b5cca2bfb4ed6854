"""The newest state of a machine behind one lock, and the loop that carries its commands out and tells their answers.

**One lock, never held across a wait, a copy or an allocation (R19).** Whoever tells the machine something holds it for
the transition, and then pumps: asks the device for what the machine commanded, tells it what the device answered, and
again, until nothing is left that could go on. One thread pumps at a time; another that comes meanwhile leaves its work
to that one. So commands are carried out in the order in which the machine issued them, whoever caused them.
"""

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from threading import Condition, Lock
from time import monotonic, perf_counter
from typing import Any, Final, Protocol, TypeAlias, TypeVar

from tenure.backends.executor import Executor
from tenure.core.errors import ExecutorBrokenError
from tenure.core.rows.answers import Waiting
from tenure.core.rows.commands import RowCommand
from tenure.core.rows.events import WaitedFor

Found = TypeVar("Found")
Told: TypeAlias = Any
"""An event of the machine."""
Answered: TypeAlias = Any
"""An answer of the machine."""

LOOK_AGAIN_S: Final = 0.05
"""A wait looks after the device so often, whether or not somebody says that there is news."""


OVERDUE: Final = -1
"""Stands for what was seen by a wait that has no time left."""


class Machine(Protocol):
    """A pure machine and its newest state."""

    def tell(self, event: Told, /) -> tuple[Answered, tuple[RowCommand, ...]]:
        """Let an event happen; the answer, and the commands for an executor.

        Raises:
            TenureError: it is not legal; nothing changed.
        """
        ...


@dataclass(frozen=True, slots=True)
class WaitFigures:
    """How often somebody waited, and how long in all."""

    count: int = 0
    seconds: float = 0.0


class Runtime:
    """One machine, one executor, any number of threads."""

    def __init__(self, machine: Machine, executor: Executor, wait_timeout_s: float) -> None:
        """Nothing is told yet."""
        self.executor = executor
        self._machine = machine
        self._timeout_s = wait_timeout_s
        self._lock = Lock()
        self._changed = Condition(self._lock)
        # Counts everything that may end a wait.
        self._progress = 0
        self._is_pumping = False
        self._is_wanted = False
        self._is_stopped = False
        self._broken: BaseException | None = None
        self._waits: dict[str, WaitFigures] = {}
        executor.device.listen(self._on_news)

    # --- Telling ----------------------------------------------------------------------------------------------------

    def tell(self, event: Told) -> Answered:
        """Let an event happen, and everything that follows from it and can be done now.

        Raises:
            TenureError: it is not legal; nothing changed.
            ExecutorBrokenError: commands are not carried out any more.
        """
        with self._lock:
            answer = self._take(event)
        self.pump()
        return answer

    def tell_and(self, event: Told, also: Callable[[Answered], Found]) -> Found:
        """As `tell`; `also` is done with its answer before anybody else can tell anything."""
        with self._lock:
            found = also(self._take(event))
        self.pump()
        return found

    def ask(self, event: Told, wait_timed_out: Callable[[WaitedFor], Told], also: Callable[[Answered], object]) -> None:
        """As `tell_and`, again whenever something changed, until the answer is not to wait.

        Raises:
            WaitTimeoutError: it took longer than a wait may (R07); the same call may be made again.
        """
        until = monotonic() + self._timeout_s
        waited: defaultdict[str, float] = defaultdict(float)
        try:
            while True:
                # Whatever goes on meanwhile, a wait has an end: what is told after its time is told for the last time.
                is_last = monotonic() >= until
                with self._lock:
                    answer = self._take(event)
                    seen = OVERDUE if is_last else self._progress
                    if not isinstance(answer, Waiting):
                        also(answer)
                self.pump()
                if not isinstance(answer, Waiting):
                    return
                began = perf_counter()
                try:
                    self._wait(seen, until, partial(wait_timed_out, answer.waited_for))
                finally:
                    waited[_kind_of(answer.waited_for)] += perf_counter() - began
        finally:
            if waited:
                with self._lock:
                    for kind, seconds in waited.items():
                        figures = self._waits.get(kind, WaitFigures())
                        self._waits[kind] = WaitFigures(figures.count + 1, figures.seconds + seconds)

    def asked(self, question: Callable[[], Found]) -> Found:
        """What a question finds while nobody tells anything."""
        with self._lock:
            return question()

    def _take(self, event: Told) -> Answered:
        """One transition. The lock is held."""
        if self._broken is not None:
            raise ExecutorBrokenError(f"{type(self._broken).__name__}: {self._broken}")
        answer, commands = self._machine.tell(event)
        self.executor.accept(commands)
        # Who waits and is told to wait on has changed nothing: several of them must not wake each other for ever.
        if commands or not isinstance(answer, Waiting):
            self._progress += 1
            self._changed.notify_all()
        return answer

    def _wait(self, seen: int, until: float, timed_out: Callable[[], Told]) -> None:
        """Wait until something changed that was not seen yet."""
        while True:
            with self._lock:
                left = until - monotonic()
                if left <= 0 and seen in (self._progress, OVERDUE):
                    self._take(timed_out())
                    raise AssertionError(timed_out)
                if self._progress == seen and self._broken is None:
                    self._changed.wait(min(left, LOOK_AGAIN_S))
                if self._progress != seen or self._broken is not None:
                    return
            self.pump()

    # --- Carrying out -----------------------------------------------------------------------------------------------

    def pump(self) -> None:
        """Carry out what is commanded and tell what is answered, as far as it goes; or leave it to who is at it."""
        is_mine = False
        try:
            with self._lock:
                self._is_wanted = True
                if self._is_pumping or self._broken is not None:
                    return
                is_mine = self._is_pumping = True
            while self._is_more_wanted():
                self.executor.run()
                answers = self.executor.poll()
                if answers:
                    with self._lock:
                        self._is_wanted = True
                        for answer in answers:
                            self._take(answer)
        except BaseException as error:
            if is_mine:
                with self._lock:
                    self._is_pumping = False
                    self._broken = error
                    self._changed.notify_all()
            raise

    def _is_more_wanted(self) -> bool:
        with self._lock:
            self._is_pumping = self._is_wanted or self._is_stopped
            goes_on = self._is_wanted and not self._is_stopped
            self._is_wanted = False
            return goes_on

    def stop(self) -> bool:
        """Carry nothing out any more; whether nothing is being carried out now. Events may still be told."""
        until = monotonic() + self._timeout_s
        with self._lock:
            while self._is_pumping and not self._is_stopped and (left := until - monotonic()) > 0:
                self._changed.wait(min(left, LOOK_AGAIN_S))
            was_free = not self._is_pumping
            self._is_pumping = self._is_stopped = True
            return was_free

    def _on_news(self) -> None:
        """A device's own thread says that something may have completed."""
        try:
            self.pump()
        except Exception:
            # Kept for the next call, which has somebody to tell it to.
            assert self._broken is not None

    @property
    def waits(self) -> dict[str, WaitFigures]:
        """By what was waited for: how often and how long."""
        with self._lock:
            return dict(self._waits)


def _kind_of(waited_for: WaitedFor) -> str:
    kinds = (
        ("page", waited_for.page),
        ("budget", waited_for.clone is not None),
        ("write", waited_for.written or waited_for.host_ready),
    )
    return next((kind for kind, is_meant in kinds if is_meant), "read")
