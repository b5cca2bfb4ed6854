"""One life of a cache in a simulation: from an empty cache to a shutdown, one choice at a time."""

from collections.abc import Iterator
from typing import Final, NamedTuple

from tenure.backends.device import Lane
from tenure.backends.fake import Chooser, FakeDevice, Faults
from tenure.backends.fake.faults import FaultKind
from tenure.core.config import BlockConfig, CacheConfig, RowConfig, RowPolicy
from tenure.core.errors import InvariantViolation, OperationFailedError, PageLockedMemoryError, WriteFailedError
from tenure.joined_cache import JoinedCache
from tenure.simulation.builders import Builder
from tenure.simulation.engine import ROWS_MAX, Engine
from tenure.simulation.handed import HandedOut
from tenure.simulation.requests import BLOCK_SIZE, NOTE

POLICY: Final = RowPolicy(
    immediate=frozenset({"m"}), deferred=frozenset({"c"}), leftovers=frozenset({NOTE}), infer=False
)
BLOCKS_MIN: Final = 7
SHORT_BLOCKS_MIN: Final = 4
BLOCKS_MORE: Final = (10, 4)
"""Up to so many more blocks. A request takes up to six, or two, and blocks change hands while hits are still read."""
STEPS_MAX: Final = 60
BUILDERS: Final = 2
SLOW_MOVES: Final = 25
"""A lane that lags goes on once in so many times."""
AT_ONCE_S: Final = 1e-9
"""No call waits: who would wait is told so, and comes again when something has changed."""


class Figures(NamedTuple):
    """What one life came to."""

    steps: int
    rows: int
    hit_rows: int
    resets: int
    dropped: int
    preempted: int
    discarded: int
    failed_reads: int
    is_stuck: bool


class Stopped(Exception):  # noqa: N818 - no error: what a fault of the device may come to
    """The device does nothing any more, as a fault told it; the cache can only be shut down."""


class Life:
    """A cache on an emulated device of its own, an engine and builders, all in one thread.

    Attributes:
        leaks: pieces of memory that the device still held at the end, where the end was looked at.
    """

    def __init__(self, chooser: Chooser, kinds: tuple[FaultKind, ...]) -> None:
        """Nothing happened."""
        self._chooser = chooser
        is_scheduled, in_pieces = chooser.choose(2) == 1, chooser.choose(3) == 2
        self.faults = Faults(chooser, kinds)
        self.device = FakeDevice(chooser, faults=self.faults, in_pieces=in_pieces)
        is_short = chooser.choose(2) == 1
        blocks = (SHORT_BLOCKS_MIN if is_short else BLOCKS_MIN) + chooser.choose(BLOCKS_MORE[is_short])
        config = CacheConfig(
            blocks=BlockConfig(capacity=blocks, block_size=BLOCK_SIZE, kv_events=True),
            rows=RowConfig(
                num_blocks=blocks,
                block_size=BLOCK_SIZE,
                page_rows_max=ROWS_MAX,
                pages=4,
                builder_lag_max=3,
                budget_bytes=400,
                gathers_max=1 + chooser.choose(3),
                wait_timeout_s=AT_ONCE_S,
            ),
            visibility="scheduled" if is_scheduled else "computed",
        )
        self.cache = JoinedCache(config, POLICY, device=self.device)
        self.engine = Engine(self.cache, self.device, chooser, STEPS_MAX, is_short=is_short)
        self.handed = HandedOut()
        self.builders = [Builder(self.cache, self.engine, chooser, self.handed) for _ in range(BUILDERS)]
        # Each life has lanes that lag, two at most, so that what others may do meanwhile is done.
        self._slow = {(None, *Lane)[chooser.choose(1 + len(Lane))] for _ in range(2)}
        self._actors: list[Iterator[bool]] = []
        self._is_over = False
        self.resets = self.leaks = 0
        self.is_stuck = False
        # Of every step which lanes went on in it, as one number each.
        self.orders: set[int] = set()
        self._order: list[int] = []
        self._begin()

    def _begin(self) -> None:
        self._actors = [self.engine.run(), *(each.run() for each in self.builders)]

    # --- Going on -----------------------------------------------------------------------------------------------

    def run(self) -> Figures:
        """To the end.

        Raises:
            InvariantViolation: something is wrong: a row, an access, what is left at the end.
        """
        try:
            self._go_on()
        except Stopped:
            self.is_stuck = True
        self.handed.let_go()
        self.cache.shutdown()
        self._check_findings()
        if not self.is_stuck:
            self._check_nothing_is_left()
        counters = self.cache.stats().counters
        return Figures(
            self.engine.steps,
            sum(each.rows for each in self.builders),
            counters.hit_rows,
            self.resets,
            self.engine.dropped,
            self.engine.preempted,
            sum(each.discarded for each in self.builders),
            sum(each.failed_reads for each in self.builders),
            self.is_stuck,
        )

    def _go_on(self) -> None:
        blocked: set[int] = set()
        while not (self._is_over and self._is_at_rest()):
            # The engine is the first of them, and may be done.
            actors = [place for place in range(self._is_over, len(self._actors)) if place not in blocked]
            lanes = self._lanes()
            has_news = self.device.has_news
            count = len(actors) + len(lanes) + has_news
            if not count:
                self._nothing_goes_on()
            choice = self._chooser.choose(count)
            if choice < len(actors):
                if self._act(actors[choice]):
                    # Whoever waits may go on by what was done.
                    blocked.clear()
                else:
                    blocked.add(actors[choice])
            elif choice < len(actors) + len(lanes):
                lane = lanes[choice - len(actors)]
                self._order.append(choice - len(actors))
                self.device.advance(lane)
            else:
                self.device.tell_news()
                blocked.clear()
            self._check_findings()

    def _lanes(self) -> list[Lane]:
        """The lanes that may go on; slow ones seldom, while others may."""
        lanes = self.device.ready()
        quick = [lane for lane in lanes if lane not in self._slow]
        if quick and len(quick) < len(lanes) and self._chooser.choose(SLOW_MOVES):
            return quick
        return lanes

    def _act(self, place: int) -> bool:
        """Let an actor go on; whether it did something."""
        steps = self.engine.steps
        try:
            has_moved = next(self._actors[place])
        except StopIteration:
            self._is_over = True
            return True
        except WriteFailedError:
            self._reset()
            return True
        except (OperationFailedError, PageLockedMemoryError):
            if self.device.is_lost:
                raise Stopped from None
            raise
        if self.engine.steps != steps:
            self.orders.add(hash(tuple(self._order)))
            self._order.clear()
        return has_moved

    def _reset(self) -> None:
        """A write failed: rows behind published hashes are lost, and everybody begins anew."""
        if self.device.is_lost:
            raise Stopped
        self.resets += 1
        assert self.cache.reset()
        self.engine.forget()
        for each in self.builders:
            # Whatever step it was at is gone.
            each.is_at_it = False
        self._begin()

    def _nothing_goes_on(self) -> None:
        """Everybody waits.

        Raises:
            Stopped: for a device that was told to stand still, or is lost.
            InvariantViolation: for nothing: a deadlock.
        """
        if self.device.is_lost or self.device.stands_still:
            raise Stopped
        waits = "; ".join(f"{lane.name}: {what}" for lane, what in self.device.waits().items())
        raise InvariantViolation("R11", f"everybody waits, and no lane can go on: {waits or 'all lanes are empty'}")

    def _is_at_rest(self) -> bool:
        if self.engine.saved or any(each.is_at_it for each in self.builders):
            return False
        return not self.device.ready() and not self.device.has_news and not self.device.waits()

    @property
    def races(self) -> int:
        """Accesses that the device found in no order with another, so far."""
        return sum(each.kind == "race" for each in self.device.findings)

    @property
    def misuses(self) -> int:
        """Other wrong uses of memory that the device found, so far."""
        return len(self.device.findings) - self.races

    # --- Looking ------------------------------------------------------------------------------------------------

    def _check_findings(self) -> None:
        if self.device.findings:
            raise InvariantViolation("R20", str(self.device.findings[0]))

    def _check_nothing_is_left(self) -> None:
        """R18: no row, page, ticket, buffer or byte of memory."""
        self.leaks = len(self.device.held)
        if self.leaks:
            raise InvariantViolation("R18", f"never freed: {', '.join(sorted(map(str, self.device.held)))}")
