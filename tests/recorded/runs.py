"""Runs of a whole cache with several threads, recorded; and records as lists of lines, to be spoilt."""

import json
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from queue import SimpleQueue
from random import Random
from tempfile import TemporaryDirectory
from threading import Thread
from typing import Any

from tenure import Aborted, Finished
from tenure.backends.device import Device
from tenure.backends.fake import FakeDevice, FaultKind, Faults, Seeded
from tenure.core.errors import CapacityError, ContractError, FreezeFailedError, TenureError, WriteFailedError
from tenure.core.rows.events import LifeCycle
from tenure.validation import Report, validate
from tests.facade.engine import PATIENCE_S, Engine, extended, started

BLOCK = 4
BLOCKS = 12


class Often:
    """Draws small numbers, so that faults strike often."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)  # noqa: S311 - nothing to keep secret

    def choose(self, count: int) -> int:
        return self._random.randrange(1, min(count, 60))


def emulated(seed: int, kinds: Sequence[FaultKind] = ()) -> FakeDevice:
    """An emulated accelerator that moves on a thread of its own."""
    return FakeDevice(Seeded(seed), faults=Faults(Often(seed), kinds), is_driven=False)


class Traffic:
    """An engine that draws what it does, and builders on threads of their own.

    Attributes:
        refused: errors that calls raised, by class.
    """

    def __init__(self, engine: Engine, seed: int) -> None:
        self._engine = engine
        self._random = Random(seed)  # noqa: S311 - nothing to keep secret
        self._live: dict[str, int] = {}
        self._full: list[int] = []
        self._saved: SimpleQueue[tuple[int, tuple[str, ...]] | None] = SimpleQueue()
        self._count = 0
        self.refused: list[str] = []

    def run(self, steps: int, builders: int = 2) -> None:
        """So many steps; without builders each is consumed at once, and the same happens every time."""
        threads = [Thread(target=self._build, name="test-builder") for _ in range(builders)]
        for each in threads:
            each.start()
        try:
            for _ in range(steps):
                self._tried(self._step)
                if not threads:
                    self._saved.put(None)
                    self._build()
        finally:
            for _ in threads:
                self._saved.put(None)
            for each in threads:
                each.join()

    def _tried(self, call: Callable[[], object]) -> None:
        try:
            call()
        except WriteFailedError as error:
            self.refused.append(type(error).__name__)
            assert self._engine.cache.reset()
            self._live.clear()
            self._full.clear()
        except TenureError as error:
            self.refused.append(type(error).__name__)

    def _step(self) -> None:
        draw = self._random
        changes: list[LifeCycle] = []
        for request in [each for each in self._live if draw.random() < 0.3]:
            self._full.append(self._live.pop(request))
            changes.append((Finished, Aborted)[draw.random() < 0.3](request))
        batch: dict[str, tuple[int, ...]] = {}
        free = [each for each in range(BLOCKS) if each not in self._live.values()]
        going = {each: (block * BLOCK + draw.randrange(BLOCK),) for each, block in self._live.items()}
        if going:
            changes.append(extended(**dict.fromkeys(going, 1)))
            batch |= going
        if len(free) > BLOCKS // 2:
            self._count += 1
            request, block = f"r{self._count}", draw.choice(free)
            hits = [each for each in self._full if each != block and each in free][-1:]
            self._full = [each for each in self._full if each != block]
            changes.append(started(request, BLOCK, *hits))
            batch[request] = tuple(range(block * BLOCK, (block + 1) * BLOCK))
            self._live[request] = block
        self._engine.start(*changes)
        if not batch:
            return
        tokens = sum(map(len, batch.values()))
        numbers = [float(each) for each in range(tokens)]
        names: dict[str, Any] = {name: numbers for name in ("m", "c") if draw.random() < 0.7}
        try:
            step = self._engine.save(batch, h=numbers, **names)
        except (CapacityError, ContractError, FreezeFailedError):
            slots = [slot for each in batch.values() for slot in each]
            self._engine.cache.drop_step(slots)
            raise
        self._saved.put((step, tuple(batch)))

    def _build(self) -> None:
        while (found := self._saved.get()) is not None:
            step, requests = found
            if not self._consumed(step, requests):
                # A hit that cannot be served: the step must not keep its page for ever.
                self._consumed(step, ())

    def _again(self, step: int) -> None:
        try:
            self._engine.cache.discard_step(step)
        except TenureError as error:
            self.refused.append(type(error).__name__)

    def _consumed(self, step: int, requests: tuple[str, ...]) -> bool:
        """Take a step, or discard it; whether that was possible."""
        try:
            if requests and step % 7:
                self._engine.cache.materialize(step, requests)
            else:
                self._engine.cache.discard_step(step)
            if step % 5 == 0:
                # A step is consumed once; what was refused is recorded too.
                self._again(step)
        except TenureError as error:
            self.refused.append(type(error).__name__)
            return False
        return True


def recorded(
    path: Path,
    steps: int = 40,
    seed: int = 1,
    *,
    device: Device | None = None,
    worker: bool = False,
    builders: int = 2,
) -> Traffic:
    """A run of a cache, recorded there."""
    with Engine(
        worker=worker,
        device=device,
        num_blocks=BLOCKS,
        block_size=BLOCK,
        pages=4,
        wait_timeout_s=PATIENCE_S,
        cache={"record": path},
    ) as engine:
        traffic = Traffic(engine, seed)
        traffic.run(steps, builders)
    return traffic


@cache
def lines_of_a_run() -> tuple[str, ...]:
    """The lines of one run on the CPU, the same every time, hits, deferred rows and refusals in it."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "run.ndjson"
        recorded(path, builders=0)
        return tuple(path.read_text().splitlines())


class Record:
    """A record in memory, to be spoilt.

    Attributes:
        lines: its lines, as objects.
    """

    def __init__(self, lines: Sequence[str] | None = None) -> None:
        self.lines: list[Any] = [json.loads(line) for line in (lines_of_a_run() if lines is None else lines)]

    def find(self, kind: str, nth: int = 0) -> int:
        """The place of the n-th event of a class; a negative one from the end."""
        places = [place for place, line in enumerate(self.lines) if line["value"].get("kind") == kind]
        return places[nth]

    def drop_pair(self, place: int) -> None:
        """Take an event out, with what it led to; the last line counts one less."""
        del self.lines[place : place + 2]
        self.lines[-1]["value"]["events"] -= 1

    def pair(self, place: int) -> list[Any]:
        """An event with what it led to."""
        return self.lines[place : place + 2]

    def without(self, *kinds: str) -> None:
        """Leave out all events of these kinds, and say so."""
        for place in reversed(range(len(self.lines))):
            if self.lines[place]["kind"] == "event" and self.lines[place]["value"]["kind"] in kinds:
                self.drop_pair(place)
        self.lines[0]["value"]["unlogged"] = list(kinds)

    def validated(self, folder: Path, states_max: int = 1000) -> Report:
        """The verdict on it."""
        path = folder / "record.ndjson"
        path.write_text("".join(json.dumps(line) + "\n" for line in self.lines))
        return validate(path, states_max)
