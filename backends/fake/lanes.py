"""Lanes of an emulated device: what was asked of them, and how they go on.

Between two calls nothing happens by itself: whoever drives the device lets one lane go one operation on (`advance`),
in any order, or has a thread do so. So a driver reaches every order in which a real device may work.
"""

from collections import deque
from threading import Condition, RLock, Thread
from time import monotonic
from typing import Any, Final

import numpy.typing as npt

from tenure.backends.device import Lane, Listener
from tenure.backends.fake.choices import Chooser
from tenure.backends.fake.clocks import ACTOR_OF, ACTORS, HOST, Clocks
from tenure.backends.fake.faults import LATE_CHOICES, Faults
from tenure.backends.fake.findings import Access, Finding
from tenure.backends.fake.memory import FakeBuffer, RowNumbers, touch
from tenure.backends.fake.operations import FakeEvent, Item, Operation, Wait
from tenure.backends.fake.trail import Trail
from tenure.core.errors import OperationFailedError

HOST_LANES: Final = (Lane.POOL, Lane.GATHER)
"""The lanes that a worker of the host carries out."""
REMEMBERED: Final = 4096
"""So many of the newest operations are kept for timelines and reports."""
FOR_EVER: Final = -1


class FakeLanes:
    """The lanes of one device.

    Attributes:
        findings: what was wrong with the use of memory, in order.
        operations: the newest operations, in the order in which they were asked for.
        moves: how often a lane went on.
        trail: what lay before what, of the newest that was done.
        is_lost: the device does nothing any more, and says so.
        faults: what goes wrong, and how often it did.
    """

    def __init__(self, chooser: Chooser, faults: Faults, *, is_driven: bool, in_pieces: bool) -> None:
        """Nothing was asked for."""
        self._chooser = chooser
        self.faults = faults
        self._in_pieces = in_pieces
        self._lanes: dict[Lane, deque[Item]] = {lane: deque() for lane in Lane}
        self._errors: dict[Lane, OperationFailedError] = {}
        # Lanes that stand still, and for how many more moves.
        self._still: dict[Lane, int] = {}
        self._clocks = Clocks()
        self._count = 0
        self._listener: Listener | None = None
        self._is_closed = False
        self._is_news = False
        self.moves = 0
        self.trail = Trail()
        self.is_lost = False
        self.findings: list[Finding] = []
        self.operations: deque[Operation] = deque(maxlen=REMEMBERED)
        # Of the host.
        self._accesses: deque[Access] = deque(maxlen=REMEMBERED)
        self._lock = RLock()
        self._changed = Condition(self._lock)
        self._thread: Thread | None = None
        if not is_driven:
            self._thread = Thread(target=self._run, name="tenure-fake-device", daemon=True)
            self._thread.start()

    # --- Moving on ----------------------------------------------------------------------------------------------

    def ready(self) -> list[Lane]:
        """The lanes that may go on."""
        with self._lock:
            return [lane for lane, items in self._lanes.items() if items and self._may_go_on(lane, items[0])]

    def _may_go_on(self, lane: Lane, item: Item) -> bool:
        if self._is_closed or self._still.get(lane, 0) == FOR_EVER:
            return False
        return not isinstance(item, Wait) or item.event.has_ended

    def advance(self, lane: Lane, *, fails: bool = False) -> None:
        """Let a lane that is ready go one operation on, or one row of one, and over the events and waits behind it.

        `fails`: that operation ends badly.
        """
        with self._lock:
            self.moves += 1
            if self._stands_still(lane):
                return
            items = self._lanes[lane]
            item = items[0]
            if isinstance(item, Operation):
                if not self._carry_out(lane, item, fails=fails):
                    return
                items.popleft()
            self._pass_marks(lane)
            self._changed.notify_all()

    def _stands_still(self, lane: Lane) -> bool:
        """Whether a lane makes no move this time, or never again."""
        left = self._still.get(lane, 0)
        if left:
            self._still[lane] = left - 1
            return True
        strikes = self.faults.strikes
        if strikes("late"):
            self._still[lane] = LATE_CHOICES
        elif strikes("stuck"):
            self._still[lane] = FOR_EVER
        elif lane in HOST_LANES and strikes("worker"):
            self._still.update(dict.fromkeys(HOST_LANES, FOR_EVER))
        elif strikes("lost"):
            self.lose()
        return bool(self._still.get(lane, 0))

    def lose(self) -> None:
        """The device is lost: nothing that was asked for is done, and whoever asks is told."""
        with self._lock:
            self.is_lost = True

    def _carry_out(self, lane: Lane, operation: Operation, *, fails: bool) -> bool:
        """One move of an operation; whether it is over."""
        if lane in self._errors:
            return True
        if self.is_lost:
            self._errors[lane] = OperationFailedError(operation.what, "the device is lost")
            return True
        if operation.began_at < 0:
            operation.began_at = self.moves
            self._clocks.join(ACTOR_OF[lane], operation.launched)
            self._note(operation, ACTOR_OF[lane])
            fails = fails or self.faults.strikes("copy")
        if fails:
            self._errors[lane] = OperationFailedError(operation.what, "the emulated device was told to fail it")
            operation.spoil()
            return True
        operation.move(1 if self._in_pieces else None)
        if operation.is_over:
            operation.ended_at = self.moves
        return operation.is_over

    def _note(self, operation: Operation, actor: int) -> None:
        clock = self._clocks.tick(actor)
        access = Access(operation.number, operation.what, ACTORS[actor], writes=False)
        if operation.source is not None:
            self._found(touch(operation.source, operation.source_rows, actor, clock, access, self._access))
        self._found(
            touch(
                operation.target,
                operation.target_rows,
                actor,
                clock,
                Access(operation.number, operation.what, ACTORS[actor], writes=True),
                self._access,
            )
        )

    def _access(self, number: int) -> Access:
        """An operation by its number, negative where it reads."""
        known: tuple[Access | Operation, ...] = (*self._accesses, *self.operations)
        for each in known:
            if each.number == abs(number):
                return Access(each.number, each.what, each.actor, writes=number > 0)
        return Access(abs(number), "something long ago", "host", writes=number > 0)

    def _found(self, findings: list[Finding]) -> None:
        self.findings += findings

    def _pass_marks(self, lane: Lane) -> None:
        """Go over events and waits at the head of a lane, and let other lanes go over their waits for those events."""
        items, actor = self._lanes[lane], ACTOR_OF[lane]
        reached = False
        while items and not isinstance(items[0], Operation):
            item = items[0]
            if isinstance(item, Wait):
                if not item.event.has_ended:
                    break
                self._clocks.join(actor, item.event.clock)
                if item.is_needed and item.event.error is not None:
                    self._errors.setdefault(lane, item.event.error)
            else:
                self._clocks.join(actor, item.launched)
                item.reach(self._clocks.now(actor), self._errors.pop(lane, None))
                reached = self._is_news = True
            items.popleft()
        if reached:
            for other in Lane:
                if other is not lane and not self._still.get(other, 0):
                    self._pass_marks(other)

    @property
    def has_news(self) -> bool:
        """Whether an event ended that the listener was not told of."""
        return self._is_news and self._listener is not None and not self._is_closed

    def tell_news(self) -> None:
        """Tell the listener."""
        self._is_news = False
        if self._listener is not None:
            self._listener()

    @property
    def stands_still(self) -> bool:
        """Whether a lane will never go on."""
        return FOR_EVER in self._still.values()

    def waits(self) -> dict[Lane, str]:
        """What each lane that is not empty is to do next, in words."""
        with self._lock:
            return {lane: str(items[0]) for lane, items in self._lanes.items() if items}

    def could_fail(self) -> dict[Lane, str]:
        """Of lanes that may go on, the operation that would fail if it was told to: its method's name."""
        with self._lock:
            heads = {lane: self._lanes[lane][0] for lane in self.ready() if lane not in self._errors}
            return {lane: item.what for lane, item in heads.items() if isinstance(item, Operation)}

    def settle(self) -> None:
        """Go on until no lane is ready, in an order that the chooser decides."""
        while lanes := self.ready():
            self.advance(lanes[self._chooser.choose(len(lanes))])

    def _run(self) -> None:
        while True:
            with self._lock:
                lanes = self.ready()
                if self._is_closed:
                    return
                if not lanes:
                    self._changed.wait()
                    continue
                before = self._ended()
                self.advance(lanes[self._chooser.choose(len(lanes))])
                is_news, listener = self._ended() != before, self._listener
            if is_news and listener is not None:
                listener()

    def _ended(self) -> int:
        return sum(len(items) for items in self._lanes.values())

    # --- Asking --------------------------------------------------------------------------------------------------

    def _strike_call(self, what: str) -> None:
        if self.is_lost:
            raise OperationFailedError(what, "the device is lost")
        if self.faults.strikes("call"):
            raise OperationFailedError(what, "the emulated device was told to refuse it")

    def _ask(
        self,
        lane: Lane,
        what: str,
        target: FakeBuffer,
        rows: RowNumbers,
        source: FakeBuffer | None,
        source_rows: RowNumbers,
        values: npt.NDArray[Any],
    ) -> None:
        self._count += 1
        operation = Operation(
            self._count, what, lane, target, rows, source, source_rows, values, self._clocks.now(HOST), self.moves
        )
        self.trail.move(ACTOR_OF[lane], str(operation))
        self.operations.append(operation)
        self._lanes[lane].append(operation)
        self._changed.notify_all()

    # --- Order --------------------------------------------------------------------------------------------------

    def record(self, lane: Lane) -> FakeEvent:
        """An event that completes when everything asked of the lane so far has ended."""
        with self._lock:
            move = self.trail.move(ACTOR_OF[lane], "event")
            event = FakeEvent(lane, self._clocks.now(HOST), move)
            self._lanes[lane].append(event)
            self._pass_if_idle(lane)
            return event

    def wait(self, lane: Lane, event: FakeEvent, *, is_needed: bool) -> None:
        """Go on behind an event; one that was never recorded is waited for by nobody."""
        with self._lock:
            self.trail.move(ACTOR_OF[lane], "wait", event.move)
            self._lanes[lane].append(Wait(event, is_needed))
            self._pass_if_idle(lane)

    def _pass_if_idle(self, lane: Lane) -> None:
        if not self._is_closed and self._still.get(lane, 0) == 0:
            self._pass_marks(lane)
            self._changed.notify_all()

    def query(self, event: FakeEvent) -> bool:
        """Whether an event has completed; who is told so goes on behind it.

        Raises:
            OperationFailedError: it failed.
        """
        with self._lock:
            if event.has_ended:
                self._clocks.join(HOST, event.clock)
                self.trail.move(HOST, "query", event.move)
            if event.error is not None:
                raise event.error
            return event.has_ended

    def synchronize(self, event: FakeEvent, timeout_s: float) -> bool:
        """Go on, or wait, until an event has completed.

        Raises:
            OperationFailedError: it failed.
        """
        until = monotonic() + timeout_s
        with self._lock:
            while not event.has_ended and monotonic() < until:
                if self._thread is not None:
                    self._changed.wait(until - monotonic())
                elif lanes := self.ready():
                    self.advance(lanes[self._chooser.choose(len(lanes))])
                else:
                    break
            return self.query(event)

    def listen(self, listener: Listener) -> None:
        """Call `listener` on the device's thread, if it has one, behind every move that ended something."""
        with self._lock:
            self._listener = listener

    def close(self, timeout_s: float) -> None:
        """Do nothing more."""
        with self._lock:
            self._is_closed = True
            for actor in ACTOR_OF.values():
                # Nothing runs any more, and the host knows it.
                self._clocks.join(HOST, self._clocks.now(actor))
            self.trail.move_all("close")
            self._changed.notify_all()
        if self._thread is not None:
            self._thread.join(timeout_s)
