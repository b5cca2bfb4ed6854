"""Walks by the million: what is walked is fixed by the seed alone, whoever walks it and in whatever order.

Each machine's events come in batches; the bytes of each walk are made of the seed, the machine's name and the numbers
of the batch and of the walk.
"""

import gc
import multiprocessing
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass, field
from hashlib import shake_256
from itertools import islice
from typing import Final, NamedTuple

from tenure.core.errors import InvariantViolation
from tenure.model_checks.explorer import Verdict
from tenure.model_checks.model import NOTHING, Marks
from tenure.model_checks.walks.codes import CRASH
from tenure.model_checks.walks.machines import MACHINES, Machine
from tenure.model_checks.walks.shortening import Fault, shorten

PROFILES: Final = {"ci": 10**6, "deep": 10**8}
"""Events of all machines together, by profile."""
ENOUGH: Final = 10**6
"""With so many events, every mechanism that a machine must see has to be seen."""


class Batch(NamedTuple):
    """Some walks of one machine."""

    machine: Machine
    number: int
    events: int
    seed: int


class BatchResult(NamedTuple):
    """What came of a batch; `states` are distinct within it."""

    name: str
    events: int
    states: int
    seen: Marks
    cpu_s: float
    fault: Fault | None


@dataclass(slots=True)
class MachineResult:
    """What came of all batches of one machine.

    Attributes:
        wanted: events that it should be told.
        events: events that it was told.
        states: distinct states, counted anew in each batch; 0 where they are not told apart.
        seen: mechanisms met.
        cpu_s: CPU seconds, over all processes.
        faults: walks that broke something.
    """

    machine: Machine
    wanted: int
    events: int = 0
    states: int = 0
    seen: Marks = NOTHING
    cpu_s: float = 0.0
    faults: list[Fault] = field(default_factory=list[Fault])

    def add(self, result: BatchResult) -> None:
        """Count a batch in."""
        self.events += result.events
        self.states += result.states
        self.seen |= result.seen
        self.cpu_s += result.cpu_s
        if result.fault is not None:
            self.faults.append(result.fault)


@dataclass(frozen=True, slots=True)
class WalksResult:
    """What came of all.

    Attributes:
        missed: per machine the mechanisms that so many events should have met.
        is_cut: the time was over before all was walked.
    """

    machines: tuple[MachineResult, ...]
    seconds: float
    missed: dict[str, Marks]
    is_cut: bool

    @property
    def events(self) -> int:
        """Events of all machines."""
        return sum(each.events for each in self.machines)

    @property
    def verdict(self) -> Verdict:
        """REFUTED if something was broken; nothing that is walked is ever more than not refuted."""
        if any(each.faults for each in self.machines):
            return Verdict.REFUTED
        if self.missed:
            return Verdict.BAD_MODEL
        return Verdict.UNDETERMINED

    @property
    def exit_code(self) -> int:
        """0 if all was walked and nothing found; 1, 3 (cut), 4 (a mechanism missed) otherwise."""
        if self.verdict is Verdict.UNDETERMINED:
            return Verdict.UNDETERMINED.exit_code if self.is_cut else 0
        return self.verdict.exit_code


def run_walks(
    events: int = PROFILES["ci"],
    *,
    seconds: float | None = None,
    workers: int = 1,
    seed: int = 0,
    machines: Iterable[Machine] = MACHINES.values(),
) -> WalksResult:
    """Walk machines, each for its share of the events; stop at the first fault, and shorten it.

    Args:
        events: of all machines together.
        seconds: when to begin no further batch.
        workers: processes.
        seed: what fixes the walks.
        machines: what is walked.
    """
    began = time.monotonic()
    chosen = tuple(machines)
    shares = sum(each.how.share for each in chosen)
    results = {each.name: MachineResult(each, -(-events * each.how.share // shares)) for each in chosen}
    batches = [batch for each in results.values() for batch in _batches(each, seed)]
    ran = list(_all_results(batches, workers, None if seconds is None else began + seconds))
    for result in ran:
        results[result.name].add(result)
    is_broken = any(result.fault is not None for result in ran)
    is_cut = not is_broken and len(ran) < len(batches)
    for each in results.values():
        each.faults[:] = [shorten(each.machine, fault) for fault in each.faults]
    missed: dict[str, Marks] = {}
    if events >= ENOUGH and not is_cut and not is_broken:
        missed = {
            each.machine.name: found for each in results.values() if (found := each.machine.how.must_see - each.seen)
        }
    return WalksResult(tuple(results.values()), time.monotonic() - began, missed, is_cut)


def _batches(result: MachineResult, seed: int) -> Iterator[Batch]:
    size = result.machine.how.batch
    for number, start in enumerate(range(0, result.wanted, size)):
        yield Batch(result.machine, number, min(size, result.wanted - start), seed)


def walk_batch(batch: Batch) -> BatchResult:
    """Go the walks of a batch, up to the first fault."""
    began, was_enabled = time.process_time(), gc.isenabled()
    # Nothing of a batch dies before its end but what reference counting frees, and then all of it does.
    gc.disable()
    try:
        result = _walked(batch)
    finally:
        if was_enabled:
            gc.enable()
    return result._replace(cpu_s=time.process_time() - began)


def _walked(batch: Batch) -> BatchResult:
    walker, fault, number = batch.machine.walker(), None, 0
    while walker.events < batch.events and fault is None:
        data = walk_bytes(batch, number)
        number += 1
        try:
            walker.walk(data)
        except InvariantViolation as violation:
            fault = Fault(violation.rule, str(violation), data)
        except Exception as error:
            fault = Fault(CRASH, f"{type(error).__name__}: {error}", data)
    return BatchResult(batch.machine.name, walker.events, walker.states, walker.seen, 0.0, fault)


def walk_bytes(batch: Batch, number: int) -> bytes:
    """The bytes of one walk of a batch."""
    key = f"{batch.seed} {batch.machine.name} {batch.number} {number}"
    return shake_256(key.encode()).digest(batch.machine.how.length)


def _all_results(batches: Sequence[Batch], workers: int, until: float | None) -> Iterator[BatchResult]:
    """Results in whatever order they come, up to the first fault; no batch is begun when the time is over."""

    def in_time() -> bool:
        return until is None or time.monotonic() < until

    if workers == 1:
        for batch in batches:
            if not in_time():
                return
            result = walk_batch(batch)
            yield result
            if result.fault is not None:
                return
        return
    left = iter(batches)
    running: set[Future[BatchResult]] = set()
    with ProcessPoolExecutor(workers, mp_context=multiprocessing.get_context("spawn")) as pool:
        while True:
            free = 2 * workers - len(running) if in_time() else 0
            running.update(pool.submit(walk_batch, batch) for batch in islice(left, free))
            if not running:
                return
            done, running = wait(running, return_when=FIRST_COMPLETED)
            for each in done:
                result = each.result()
                yield result
                if result.fault is not None:
                    return
