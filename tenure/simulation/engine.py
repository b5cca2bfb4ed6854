"""The engine of a simulation: schedules requests over a small joined cache, one call at a time.

It is a generator that yields wherever others may come in between: `True` if it could go on at once, `False` if it waits
for something to change.
"""

from collections.abc import Generator, Iterator
from typing import Final

import numpy as np

from tenure.backends.fake import Chooser, FakeDevice
from tenure.core.blocks.values import Exhausted
from tenure.core.errors import FreezeFailedError, WaitTimeoutError
from tenure.joined_cache import JoinedCache
from tenure.simulation.requests import (
    BLOCK_SIZE,
    NAMES,
    NOTE,
    OUTPUT_MAX,
    PROMPTS_MAX,
    Batch,
    Request,
    Saved,
    Share,
    rows_of,
)

ROWS_MAX: Final = 64
RUNNING_MAX: Final = 4


class Engine:
    """One engine.

    Attributes:
        saved: steps that wait for a builder.
        steps: how many were saved.
        dropped: how many were given up.
        preempted: how often a request lost its blocks.
    """

    def __init__(
        self, cache: JoinedCache, device: FakeDevice, chooser: Chooser, steps_max: int, *, is_short: bool
    ) -> None:
        """Nothing runs; it ends after so many steps. `is_short`: requests have one block to share, and end at once."""
        self._cache, self._device, self._chooser, self._steps_max = cache, device, chooser, steps_max
        self._is_short = is_short
        self._live = {name: np.zeros((ROWS_MAX, 2) if name == "h" else ROWS_MAX, np.int64) for name in NAMES}
        self._live[NOTE] = np.zeros(3, np.int64)
        self._arrived = 0
        self._notes = 0
        self.running: list[Request] = []
        self.saved: list[Saved] = []
        self.steps = self.dropped = self.preempted = 0

    def _one_in(self, count: int) -> bool:
        """Whether something that happens once in so many times happens; never where choices are used up."""
        return self._chooser.choose(count) == count - 1

    def run(self) -> Iterator[bool]:
        """So many steps, then everything ends."""
        while self.steps < self._steps_max:
            yield True
            batch = self._schedule()
            if (yield from self._start(batch)):
                yield from self._step(batch)
        for each in self.running:
            self._cache.blocks.finish(each.name)
        self.running.clear()
        self._cache.new_step_starts()

    def forget(self) -> None:
        """After a failure and a reset: requests are preempted, steps are gone."""
        self.saved.clear()
        for each in self.running:
            each.is_held, each.computed = False, 0

    # --- Scheduling ---------------------------------------------------------------------------------------------

    def _schedule(self) -> Batch:
        batch = Batch([])
        while len(self.running) < RUNNING_MAX and not self._one_in(2):
            self._arrive()
        for each in list(self.running):
            if self._one_in(8):
                continue
            if not self._hold(each):
                held = [other for other, _ in batch.members]
                victims = [other for other in self.running if other.is_held and other not in held]
                if victims:
                    self._preempt(victims[self._chooser.choose(len(victims))])
                continue
            left = len(each.tokens) - each.computed
            tokens = left // 2 if left > 2 and self._one_in(4) else left
            self._cache.schedule(each.name, tokens)
            batch.members.append((each, tokens))
        return batch

    def _arrive(self) -> None:
        """A request with one of a few prompts, some of which share a beginning."""
        number = self._chooser.choose(PROMPTS_MAX)
        if self._is_short:
            tokens, output_max = [number, 1, 2, 3, 4], 0
        else:
            tail = 1 + self._chooser.choose(8)
            tokens, output_max = [number % 2, *range(1, 9), *range(10 * number, 10 * number + tail)], OUTPUT_MAX
        self._arrived += 1
        request = Request(f"request-{self._arrived}", tokens, self._chooser.choose(output_max + 1))
        self._cache.blocks.open_lease(request.name, tokens, OUTPUT_MAX)
        self.running.append(request)

    def _hold(self, request: Request) -> bool:
        """Capacity for all known tokens; whether there was any."""
        blocks, reusable = self._cache.blocks, 0
        if not request.is_held:
            reusable = self._cache.servable_prefix_blocks(request.name)
        if isinstance(blocks.allocate_lease(request.name, len(request.tokens), reusable), Exhausted):
            return False
        if not request.is_held:
            request.is_held, request.computed = True, reusable * BLOCK_SIZE
        return True

    def _preempt(self, request: Request) -> None:
        self._cache.blocks.preempt(request.name)
        request.is_held, request.computed = False, 0
        self.preempted += 1

    # --- A step -------------------------------------------------------------------------------------------------

    def _start(self, batch: Batch) -> Generator[bool, None, bool]:
        """Start it; whether there is a step."""
        began = self._cache.new_step_starts()
        batch.hits = {str(request): count for request, count in began.hits}
        yield True
        return began.step is not None

    def _step(self, batch: Batch) -> Iterator[bool]:
        """The forward pass, and a save that may take several tries."""
        shares = self._forward(batch)
        live = {name: self._live[name][: batch.tokens] for name in NAMES}
        hidden = live.pop("h")
        step: int | None = None
        yield True
        while step is None:
            try:
                step = self._cache.save_outputs(
                    hidden, {**live, NOTE: self._live[NOTE]}, num_tokens_unpadded=batch.tokens
                )
            except WaitTimeoutError:
                yield False
            except FreezeFailedError:
                if self._one_in(2):
                    self._cache.drop_step()
                    self.dropped += 1
                    return
                yield True
        self.steps += 1
        self.saved.append(Saved(step, shares, self._notes))
        for each, tokens in batch.members:
            each.computed += tokens
        self._sample(batch)

    def _forward(self, batch: Batch) -> dict[str, Share]:
        """Rows into buffers that every step overwrites; what a builder must get."""
        shares: dict[str, Share] = {}
        parts: dict[str, list[np.ndarray]] = {name: [] for name in NAMES}
        for each, tokens in batch.members:
            stop = each.computed + tokens
            for name in NAMES:
                parts[name].append(rows_of(name, each.tokens)[each.computed : stop])
            shares[each.name] = Share(tuple(each.tokens), each.computed - batch.hits.get(each.name, 0), stop)
        for name in NAMES:
            rows = np.concatenate(parts[name])
            values = np.stack([rows, rows], axis=1) if name == "h" else rows
            self._device.forward(self._live[name][: len(rows)], values)
        self._notes += 1
        self._device.forward(self._live[NOTE], np.full(3, self._notes, np.int64))
        return shares

    def _sample(self, batch: Batch) -> None:
        """Tokens are sampled; requests end, are aborted, are preempted."""
        for each, _ in batch.members:
            ends = self._one_in(50)
            if each.computed == len(each.tokens) and not ends:
                ends = each.output == 0
                if not ends:
                    token = self._chooser.choose(3)
                    self._cache.blocks.generate_token(each.name, token)
                    each.tokens.append(token)
                    each.output -= 1
            if ends:
                self._cache.blocks.finish(each.name)
                self.running.remove(each)
            elif self._one_in(30):
                self._preempt(each)
