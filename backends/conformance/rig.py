"""What every check works with: a device, memory with known values, and the ways to look at it again."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from tenure.backends.capabilities import Capability
from tenure.backends.conformance.bench import Array, Bench
from tenure.backends.conformance.report import Coverage
from tenure.backends.cpu.arrays import STORAGE
from tenure.backends.device import Buffer, Event, Lane, Memory, Rows, Tensor
from tenure.core.arrays import Integers, integers
from tenure.core.errors import OperationFailedError

HOST: Final = (Memory.PAGE_LOCKED, Memory.PAGEABLE)
LANES_BEHIND: Final = (Lane.COPY, Lane.POOL, Lane.GATHER)
"""The lanes that the executor waits on."""
LOOK_AGAIN_S: Final = 1e-4
"""A question is asked again after so long: a device's threads need the core that asks."""
ROWS: Final = 12
BIG_ROWS: Final = 2048
BIG_SHAPE: Final = (256,)
"""2 MiB of float32: long enough to be under way when the call returns."""


class CheckFailedError(Exception):
    """The device does not keep a duty."""


class OutOfTimeError(Exception):
    """Nothing can be said: something did not come to its end in time."""


@dataclass(frozen=True, slots=True)
class Held:
    """A buffer of the kit, and what it should hold."""

    buffer: Buffer
    memory: Memory
    values: Array
    dtype: str

    @property
    def rows(self) -> Rows:
        """All of it."""
        return Rows(self.buffer, 0, len(self.values))


class Rig:
    """One fresh device and its bench, for one check.

    Attributes:
        claimed: what the device claims.
        coverage: of a check that counts edges, as far as it got.
    """

    def __init__(
        self,
        bench: Bench,
        seed: int,
        timeout_s: float,
        make: Callable[[], Bench],
        *,
        is_controlled: bool = False,
        claimed: frozenset[Capability] = frozenset(),
    ) -> None:
        """Nothing was asked for yet; `make` makes another bench, and `is_controlled` says who decides what runs."""
        self.claimed = claimed
        self.coverage: Coverage | None = None
        self.is_controlled = is_controlled
        self.bench = bench
        self.device = bench.device
        self.timeout_s = timeout_s
        self.make = make
        self.seed = seed
        self.random = np.random.default_rng(seed)
        self._held: list[Held] = []

    # --- Values and memory --------------------------------------------------------------------------------------

    def values(self, rows: int = ROWS, row_shape: tuple[int, ...] = (3,), dtype: str = "float32") -> Array:
        """Any bits that such rows may have, those of what is no number included."""
        kept = STORAGE[dtype]
        shape = (rows, *row_shape)
        if dtype == "bool":
            return self.random.integers(0, 2, shape).astype(np.bool_)
        count = int(np.prod(shape, dtype=np.int64)) * kept.itemsize
        return np.frombuffer(self.random.bytes(count), dtype=kept).reshape(shape).copy()

    def allocate(self, memory: Memory, rows: int, row_shape: tuple[int, ...], dtype: str) -> Buffer:
        """A buffer that is given back at the end."""
        held = Held(self.device.allocate(memory, rows, row_shape, dtype), memory, np.empty(0), dtype)
        self._held.append(held)
        return held.buffer

    def put(self, memory: Memory, values: Array, dtype: str = "float32") -> Held:
        """A buffer with these values, by way of the lanes COMPUTE and COPY."""
        rows, row_shape = len(values), values.shape[1:]
        live = self.device.live("values", self.bench.make(values, dtype))
        buffer = self.allocate(Memory.DEVICE, rows, row_shape, dtype)
        self.device.copy(Lane.COMPUTE, Rows(buffer, 0, rows), Rows(live, 0, rows))
        frozen = self.device.record(Lane.COMPUTE)
        if memory is not Memory.DEVICE:
            host = self.allocate(memory, rows, row_shape, dtype)
            self.device.wait(Lane.COPY, frozen, is_needed=True)
            self.device.copy(Lane.COPY, Rows(host, 0, rows), Rows(buffer, 0, rows))
            frozen, buffer = self.device.record(Lane.COPY), host
        self.await_event(frozen)
        return Held(buffer, memory, values, dtype)

    def look(self, held: Held) -> Array:
        """What a buffer holds now, by way of the lane COPY where the host cannot look."""
        buffer, count = held.buffer, len(held.values)
        if held.memory is Memory.DEVICE:
            buffer = self.allocate(Memory.PAGEABLE, count, held.values.shape[1:], held.dtype)
            self.device.copy(Lane.COPY, Rows(buffer, 0, count), held.rows)
            self.end(Lane.COPY)
        return np.array(self.bench.read(self.device.cut(Rows(buffer, 0, count))))

    def expect(self, held: Held, values: Array, what: str) -> None:
        """Hold what a buffer holds against what it should."""
        self.same(values, self.look(held), what)

    def expect_now(self, held: Held, values: Array, what: str) -> None:
        """As `expect` of host memory that no lane is at: nothing is asked of a lane."""
        self.same(values, np.array(self.bench.read(self.device.cut(held.rows))), what)

    @staticmethod
    def same(expected: Array, found: Array, what: str) -> None:
        """Equal bit for bit, shape and kept dtype included."""
        if expected.shape != found.shape or expected.dtype != found.dtype:
            raise CheckFailedError(
                f"{what}: expected {expected.dtype}{list(expected.shape)}, found {found.dtype}{list(found.shape)}"
            )
        if expected.tobytes() == found.tobytes():
            return
        count = len(expected) if expected.ndim else 0
        wrong = [row for row in range(count) if expected[row].tobytes() != found[row].tobytes()]
        raise CheckFailedError(f"{what}: rows {wrong[:8]} of {count} are wrong")

    @staticmethod
    def require(holds: bool, what: str) -> None:
        """Fail unless something holds."""
        if not holds:
            raise CheckFailedError(what)

    def refuses(self, call: Callable[[], Any], what: str) -> None:
        """Fail unless a call raises `OperationFailedError`."""
        try:
            call()
        except OperationFailedError:
            return
        raise CheckFailedError(what)

    # --- Order --------------------------------------------------------------------------------------------------

    def await_event(self, event: Event) -> None:
        """Wait for an event on this thread."""
        if not self.device.synchronize(event, self.timeout_s):
            raise OutOfTimeError(f"an event did not complete in {self.timeout_s} s")
        if not self.device.query(event):
            raise CheckFailedError("`synchronize` says that an event has completed, and `query` that it has not")

    def end(self, lane: Lane) -> None:
        """Wait until a lane has done what was asked of it."""
        self.await_event(self.device.record(lane))

    def eventually(self, question: Callable[[], bool], what: str) -> None:
        """Ask until the answer is yes."""
        until = time.monotonic() + self.timeout_s
        while not question():
            if time.monotonic() > until:
                raise OutOfTimeError(f"{what}: not in {self.timeout_s} s")
            time.sleep(LOOK_AGAIN_S)

    def live(self, values: Array, dtype: str = "float32") -> tuple[Tensor, Buffer]:
        """A tensor of the engine, and it as a buffer."""
        tensor = self.bench.make(values, dtype)
        return tensor, self.device.live("values", tensor)

    def has(self, capability: Capability) -> bool:
        """Whether the bench has what a capability takes."""
        bench = self.bench
        parts = {Capability.FAULTS: (bench.fail,), Capability.CONTROLLED: (bench.ready, bench.advance)}
        return all(part is not None for part in parts.get(capability, ()))

    def close(self) -> None:
        """Free everything, and end the device."""
        self.device.close(self.timeout_s)
        for each in self._held:
            self.device.free(each.buffer)
        self._held.clear()


def index_of(values: Sequence[int]) -> Integers:
    """Row numbers as the executor gives them."""
    return integers(values)


def source_of(lane: Lane) -> Memory:
    """A memory that a lane may read."""
    return Memory.DEVICE if lane is Lane.COPY else Memory.PAGE_LOCKED
