"""What a world is at, in a few bytes: two worlds of one history with equal bytes have the same future.

What only says how a world came there is left out: counts of moves, timelines, where numpy put its arrays. Clocks are
kept as far as they matter: races are found by comparing the times of accesses with clocks, so that of a clock only
counts how many of those times lie behind it.
"""

import pickle  # noqa: TID251 - what is written is hashed, and never read
from collections.abc import Iterable, Iterator
from hashlib import blake2b
from io import BytesIO
from threading import Condition, Lock, RLock
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import Any, Final, cast

import numpy as np

from tenure.backends.fake import FakeDevice
from tenure.backends.fake.clocks import ACTORS, Clock
from tenure.backends.fake.memory import FakeBuffer
from tenure.backends.fake.operations import FakeEvent, Operation, Wait
from tenure.core.rows.state import RowState
from tenure.model_checks.devices.world import World
from tenure.model_checks.rows.cells import Names
from tenure.model_checks.rows.cores import Shorthand
from tenure.model_checks.rows.environment import Truth

SAME: Final = (type(Lock()), type(RLock()), Condition, Truth, Names)
"""What is the same in all worlds of a history, or makes no difference."""
FUNCTIONS: Final = (FunctionType, MethodType, BuiltinFunctionType)
PAST: Final = frozenset({"moves", "trail", "operations", "_accesses", "_chooser", "faults", "_thread"})
"""Of a device: how it came to where it is, and who decides, which is not asked here."""
SAID: Final = frozenset({"asked_at", "began_at", "ended_at"})
"""Of an operation: for timelines."""


def moment_of(world: World, shorthand: Shorthand) -> bytes:
    """Sixteen bytes. `shorthand` is one for all worlds that are compared."""
    out = BytesIO()
    _Writer(out, world.device, shorthand).dump({what: value for what, value in vars(world).items() if what != "handed"})
    return blake2b(out.getvalue(), digest_size=16).digest()


class _Times:
    """The times of all accesses that are remembered, by actor, in order."""

    def __init__(self, buffers: Iterable[FakeBuffer]) -> None:
        found = [{0} for _ in ACTORS]
        for each in buffers:
            for actor, known in enumerate(found):
                known.update(each.write_time[each.write_actor == actor].tolist())
                known.update(each.read_time[:, actor].tolist())
        self._known = [np.array(sorted(known), dtype=np.int64) for known in found]

    def ranks(self, clock: Clock) -> bytes:
        """Of each actor how many of those times lie behind a clock."""
        return bytes(np.count_nonzero(known <= clock[actor]) for actor, known in enumerate(self._known))

    def of_buffer(self, buffer: FakeBuffer) -> tuple[bytes, ...]:
        """The accesses of a buffer, by rank."""
        writers = buffer.write_actor.tolist()
        writes = zip(writers, buffer.write_time.tolist(), strict=True)
        written = bytes(int(np.searchsorted(self._known[actor], time)) for actor, time in writes)
        return bytes(writers), written, *(self._read(buffer, actor) for actor in range(len(ACTORS)))

    def _read(self, buffer: FakeBuffer, actor: int) -> bytes:
        return np.searchsorted(self._known[actor], buffer.read_time[:, actor]).tobytes()


def _buffers(device: FakeDevice) -> Iterator[FakeBuffer]:
    """Those that are held, live, or used by what stands in a lane."""
    yield from device.held
    state = vars(device)
    yield from state["_live"].values()
    for items in state["_lanes"].values():
        for item in items:
            if isinstance(item, Operation):
                yield item.target
                if item.source is not None:
                    yield item.source


class _Writer(pickle.Pickler):
    """Writes what matters of everything that a world consists of; nobody reads it back."""

    def __init__(self, out: BytesIO, device: FakeDevice, shorthand: Shorthand) -> None:
        super().__init__(out, protocol=5)
        self._times, self._shorthand = _Times(_buffers(device)), shorthand

    def persistent_id(self, obj: Any) -> str | None:
        """What needs no more than a name."""
        if isinstance(obj, SAME):
            return type(obj).__name__
        return f"function {obj.__qualname__}" if isinstance(obj, FUNCTIONS) else None

    def reducer_override(self, obj: Any) -> Any:
        """What stands for an object, where that is not all of its attributes."""
        if isinstance(obj, set | frozenset):
            return _Standing, ("set", sorted(cast("Iterable[object]", obj), key=repr))
        match obj:
            case FakeDevice():
                kept = {what: value for what, value in vars(obj).items() if what not in PAST}
                clocks = [self._times.ranks(vars(obj)["_clocks"].now(actor)) for actor in range(len(ACTORS))]
                held = sorted(obj.held, key=lambda buffer: buffer.number)
                found: Any = {**kept, "_clocks": clocks, "held": held, "_live": [*kept["_live"].values()]}
            case FakeBuffer():
                content = obj.number, obj.is_freed, obj.array.tobytes(), obj.is_written.tobytes()
                found = content, self._times.of_buffer(obj)
            case FakeEvent():
                clocks = [self._times.ranks(each) for each in (obj.launched, obj.clock)]
                found = obj.lane, obj.has_ended, str(obj.error), clocks
            case Operation():
                kept = {what: getattr(obj, what) for what in Operation.__slots__ if what not in SAID}
                found = {**kept, "launched": self._times.ranks(obj.launched), "began": obj.began_at >= 0}
            case RowState():
                found = self._shorthand.digest(obj.tables.key(self._shorthand))
            case Wait():
                found = obj.event, obj.is_needed
            case _:
                return NotImplemented
        return _Standing, (type(obj).__name__, found)


class _Standing:
    """Stands for an object."""

    def __init__(self, name: str, found: object) -> None:
        self.name, self.found = name, found
