"""The row machine and the executor on a device under test, as a cache with one caller and no thread of its own."""

import gc
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from tenure.backends.conformance.bench import Array
from tenure.backends.conformance.rig import LOOK_AGAIN_S, CheckFailedError, OutOfTimeError, Rig
from tenure.backends.device import Buffer, Memory, Rows
from tenure.backends.executor import Executor
from tenure.core.config import RowConfig, RowPolicy
from tenure.core.errors import OperationFailedError
from tenure.core.rows.answers import ConsumePlan, RowAnswer, SaveReserved, StepBegan, Waiting
from tenure.core.rows.commands import RowCommand
from tenure.core.rows.events import (
    ConsumeRequested,
    LifeCycle,
    PolicyRegistered,
    RequestId,
    RowEvent,
    SaveCancelled,
    SavePublished,
    SaveRequested,
    StepConsumed,
    StepDiscarded,
    StepDropped,
    StepId,
    StepStarted,
    WriteLayout,
)
from tenure.core.rows.machine import transition
from tenure.core.rows.names import NameId, Output
from tenure.core.rows.state import RowState
from tenure.core.rows.view import WritePhase

MOVES_MAX: Final = 6
"""So many moves of a controlled device come between two calls at most."""


class Counted:
    """A device that knows which buffers are out.

    Attributes:
        out: buffers that were allocated and not given back, by identity.
    """

    def __init__(self, device: Any) -> None:
        self._device = device
        self.out: dict[int, Buffer] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._device, name)

    def allocate(self, memory: Memory, rows: int, row_shape: tuple[int, ...], dtype: str) -> Buffer:
        """As the device does."""
        buffer = self._device.allocate(memory, rows, row_shape, dtype)
        self.out[id(buffer)] = buffer
        return buffer

    def free(self, buffer: Buffer) -> None:
        """As the device does."""
        if self.out.pop(id(buffer), None) is None:
            raise CheckFailedError("a buffer was given back twice")
        self._device.free(buffer)


class Found(NamedTuple):
    """What a materialize returned: arrays by name and request, and leftovers whole."""

    rows: Mapping[NameId, Mapping[RequestId, Array]]
    leftovers: Mapping[NameId, Any]


class RowSubject:
    """One cache on the device of a rig.

    Attributes:
        policy: of the machine.
        state: the newest state of the machine.
        seen: commands by kind, and how often somebody waited.
    """

    def __init__(self, rig: Rig, config: RowConfig, policy: RowPolicy, laziness: int) -> None:
        """Nothing is kept yet; one of `laziness` events is followed at once by what comes of it."""
        self._laziness = laziness
        self.rig = rig
        self.policy = policy
        self.device = Counted(rig.device)
        device: Any = self.device
        self._executor = Executor(device, config)
        self.state = RowState.initial(config)
        self.seen: Counter[str] = Counter()
        self._leftovers: dict[StepId, dict[NameId, Any]] = {}
        self.tell(PolicyRegistered(policy))

    # --- The machine and the executor -----------------------------------------------------------------------------

    def _take(self, event: RowEvent) -> RowAnswer:
        self.state, answer, commands = transition(self.state, event)
        self.seen.update(type(each).__name__ for each in commands)
        self._accept(commands)
        return answer

    def _accept(self, commands: Sequence[RowCommand]) -> None:
        self._executor.accept(commands)

    def tell(self, event: RowEvent) -> RowAnswer:
        """Let an event happen, and, if not later, what follows from it."""
        self.nudge()
        answer = self._take(event)
        if not self.rig.random.integers(self._laziness):
            self.pump()
        return answer

    def pump(self) -> bool:
        """Ask the device for what is commanded, and tell the machine once what is answered; more comes of it later.

        Whether there was an answer.
        """
        self._executor.run()
        answers = self._executor.poll()
        for each in answers:
            self._take(each)
        self._executor.run()
        return bool(answers)

    def nudge(self) -> None:
        """Let a controlled device make some moves."""
        if self.rig.is_controlled:
            for _ in range(int(self.rig.random.integers(MOVES_MAX + 1))):
                self.move()

    def move(self) -> None:
        """Let a device that somebody waits for go on."""
        bench = self.rig.bench
        if not self.rig.is_controlled:
            time.sleep(LOOK_AGAIN_S)
        elif bench.ready is not None and bench.advance is not None and (lanes := bench.ready()):
            bench.advance(lanes[int(self.rig.random.integers(len(lanes)))])

    def ask(self, event: RowEvent) -> RowAnswer:
        """Tell an event until the answer is not to wait."""
        until = time.monotonic() + self.rig.timeout_s
        while isinstance(answer := self.tell(event), Waiting):
            self.seen["waited"] += 1
            self.pump()
            if time.monotonic() > until:
                raise OutOfTimeError(f"{type(event).__name__} waits for {answer.waited_for}, which does not come")
            self.move()
        return answer

    # --- Calls ----------------------------------------------------------------------------------------------------

    def start(self, changes: Sequence[LifeCycle]) -> StepBegan:
        """A scheduler output."""
        answer = self.tell(StepStarted(tuple(changes)))
        assert isinstance(answer, StepBegan)
        return answer

    def save(self, outputs: Sequence[Output], layout: WriteLayout, live: Mapping[NameId, Any]) -> StepId:
        """Reserve, freeze, publish."""
        reserved = self.ask(SaveRequested(layout, tuple(outputs)))
        assert isinstance(reserved, SaveReserved)
        try:
            _, leftovers = self._executor.freeze(reserved.step, reserved.page, live)
        except OperationFailedError as error:
            self._executor.abandon_freeze(reserved.step)
            self.tell(SaveCancelled(reserved.step))
            raise CheckFailedError(f"the freeze of step {reserved.step} failed: {error}") from None
        self.tell(SavePublished(reserved.step))
        self._leftovers[reserved.step] = leftovers
        return reserved.step

    def drop(self, slots: Any) -> None:
        """Give a step up."""
        self.tell(StepDropped(slots))

    def discard(self, step: StepId) -> None:
        """Consume without looking."""
        self.tell(StepDiscarded(step))
        self._leftovers.pop(step)

    def materialize(self, step: StepId, requests: Sequence[RequestId]) -> Found:
        """Copy rows off their page and their reads, at this moment."""
        plan = self.ask(ConsumeRequested(step, tuple(requests)))
        assert isinstance(plan, ConsumePlan)
        rows = {
            each.name: {request: self._rows_of(plan, each.name, request) for request in requests}
            for each in plan.formats
        }
        leftovers = self._leftovers.pop(step)
        found = {name: leftovers[name] for name in plan.leftovers}
        self.tell(StepConsumed(step))
        for each in plan.hits:
            self._executor.storage.take_read(each.read)
        return Found(rows, found)

    def _rows_of(self, plan: ConsumePlan, name: NameId, request: RequestId) -> Array:
        storage, read = self._executor.storage, self.rig.bench.read
        assert plan.page is not None
        place = plan.batch.index(request)
        start, stop = int(plan.starts[place]), int(plan.starts[place + 1])
        parts = [
            np.array(read(self.device.cut(Rows(storage.read(each.read).buffer, 0, each.num_rows))))
            for each in plan.hits
            if (each.request, each.name) == (request, name)
        ]
        parts.append(np.array(read(self.device.cut(Rows(storage.page(plan.page, name), start, stop)))))
        return np.concatenate(parts)

    # --- The end --------------------------------------------------------------------------------------------------

    def come_to_rest(self) -> None:
        """Go on until the machine holds nothing for anybody."""
        until = time.monotonic() + self.rig.timeout_s
        while self._is_busy():
            if time.monotonic() > until:
                raise OutOfTimeError("everything is consumed and ended, and something is still held")
            self.move()
            self.pump()

    def _is_busy(self) -> bool:
        tables = self.state.tables
        is_open = any(each.phase not in (WritePhase.WRITTEN, WritePhase.FAILED) for each in tables.writes.values())
        is_held = any(holders != (0, 0) for holders in tables.pages)
        return bool(is_open or is_held or tables.reads or tables.steps or tables.charged)

    def close(self) -> None:
        """End; nothing may be left."""
        self.device.close(self.rig.timeout_s)
        self._executor.storage.close()
        gc.collect()
        # What was in use until now is given back when the next asks.
        self._executor.storage.close()
        if self.device.out:
            raise CheckFailedError(f"{len(self.device.out)} buffers were never given back")
