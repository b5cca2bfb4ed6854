"""Builders of a simulation: consume steps, late, in odd orders, and hold every row against the tokens."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from tenure.backends.fake import Chooser
from tenure.core.errors import CopyOutFailedError, InvariantViolation, ReadFailedError, WaitTimeoutError
from tenure.joined_cache import JoinedCache
from tenure.outputs import StepOutputs
from tenure.simulation.engine import Engine
from tenure.simulation.handed import HandedOut
from tenure.simulation.requests import NOTE, Saved, Share, rows_of


class Builder:
    """One builder.

    Attributes:
        rows: how many were held against what they should be.
        discarded: steps that it did not want.
        failed_reads: how often a hit could not be served.
        is_at_it: whether it has taken a step and is not done with it.
    """

    def __init__(self, cache: JoinedCache, engine: Engine, chooser: Chooser, handed: HandedOut) -> None:
        """It has taken no step; `handed` holds what it is given for a while."""
        self._cache, self._engine, self._chooser, self._handed = cache, engine, chooser, handed
        self.rows = self.discarded = self.failed_reads = 0
        self.is_at_it = False

    def run(self) -> Iterator[bool]:
        """For ever; yields as the engine does."""
        while True:
            saved = self._engine.saved
            if not saved:
                yield False
                continue
            # Mostly the oldest.
            mine = saved.pop(self._chooser.choose(len(saved)) if self._chooser.choose(4) == 3 else 0)
            self.is_at_it = True
            yield True
            yield from self._consume(mine)
            self.is_at_it = False

    def _consume(self, saved: Saved) -> Iterator[bool]:
        if self._chooser.choose(20) == 19:
            self._cache.discard_step(saved.step)
            self.discarded += 1
            return
        requests = list(saved.shares)
        first = self._chooser.choose(len(requests))
        asked = [*requests[first:], *requests[: first - self._chooser.choose(first + 1)]]
        found: StepOutputs | None = None
        while found is None:
            try:
                found = self._cache.materialize(saved.step, asked)
            except WaitTimeoutError:
                yield False
            except CopyOutFailedError:
                yield True
            except ReadFailedError as error:
                self.failed_reads += 1
                asked.remove(str(error.request))
                if not asked:
                    self._cache.discard_step(saved.step)
                    return
        # What was handed out must stay what it is, whatever happens next.
        yield True
        self._check(saved, asked, found)

    def _check(self, saved: Saved, asked: list[str], found: StepOutputs) -> None:
        assert found.hidden_states is not None
        for request in asked:
            share = saved.shares[request]
            self._compare(saved, request, "h", share, found.hidden_states[request])
            for name in ("m", "c"):
                self._compare(saved, request, name, share, found.mm_outputs[name][request])
            note: Any = found.mm_outputs[NOTE][request]
            if not (np.asarray(note) == saved.note).all():
                raise InvariantViolation("R02", f"the leftover of step {saved.step} is {note}, and was {saved.note}")
            self._handed.hold(f"the leftover of step {saved.step} for {request}", np.asarray(note))

    def _compare(self, saved: Saved, request: str, name: str, share: Share, found: Any) -> None:
        rows = rows_of(name, share.tokens)[share.first : share.stop]
        expected = np.stack([rows, rows], axis=1) if name == "h" else rows
        if not np.array_equal(expected, found):
            wrong = "another number of rows"
            if found.shape == expected.shape:
                places = np.flatnonzero((found != expected).reshape(len(rows), -1).any(axis=1))
                wrong = f"wrong rows at {places.tolist()}: {found[places[:4]].tolist()}"
            message = f"step {saved.step} hands {request} {wrong} under {name}, of tokens {share.first} to {share.stop}"
            raise InvariantViolation("R02", message)
        self.rows += len(rows)
        self._handed.hold(f"what step {saved.step} handed {request} under {name}", found)
