"""Replays traces: reads them, schedules their requests over the block machine, and sums up what happened."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TypeAlias

from tenure.core.blocks.sequence import RequestSequence, new_sequence
from tenure.core.config import BlockConfig
from tenure.replay.checking import CHECKED_CAPACITY_MAX, Checker
from tenure.replay.counters import Counters
from tenure.replay.disturbances import Disturbances
from tenure.replay.driver import Driver
from tenure.replay.errors import OptionError, Place, TraceError
from tenure.replay.event_log import EventLog
from tenure.replay.formats import check_sources, read_traces
from tenure.replay.machine import Machine
from tenure.replay.options import ReplayOptions
from tenure.replay.requests import TraceRequest
from tenure.replay.row_checking import CHECKED_SLOTS_MAX
from tenure.replay.row_driver import RowDriver
from tenure.replay.scheduler import Scheduler
from tenure.replay.summary import Summary, summarize
from tenure.replay.tokens import prompt_tokens

OnStep: TypeAlias = Callable[[Counters, float], None]
"""Told after every step what was counted so far, and how much of the traces was read, from 0 to 1."""


def replay(sources: Sequence[Path], options: ReplayOptions, on_step: OnStep | None = None) -> Summary:
    """Replay traces one after the other, as one stream of requests; what happened.

    Requests arrive in the order of the traces and as fast as they can be served. The same sources and options give
    the same summary, apart from what is named `timing` in it, and the same KV events. A KeyboardInterrupt ends the
    replay early, and its summary says so.

    Raises:
        TraceError: a trace, or a request in it, cannot be replayed.
        OptionError: the options do not go together, or do not go with a trace.
        OutputError: the KV events cannot be written.
        InvariantViolation: with `check`, a rule is broken or a row is wrong; our own fault.
    """
    _check_options(sources, options)
    counters = Counters()
    with ExitStack() as stack:
        log = None if options.events is None else stack.enter_context(EventLog(options.events))
        arrivals = Arrivals(sources, options, counters)
        rows, disturbances = None, None
        if options.rows is not None:
            rows = stack.enter_context(RowDriver(options, options.rows, counters, log))
            disturbances = Disturbances(options.seed, options.rows.abort_rate, options.rows.preempt_rate)
        machine: Machine = _block_driver(options, counters, log) if rows is None else rows
        limits = options.max_running, options.max_batched_tokens
        scheduler = Scheduler(machine, iter(arrivals), *limits, disturbances)
        start = time.perf_counter()
        interrupted = False
        try:
            while scheduler.step():
                if on_step is not None:
                    on_step(counters, arrivals.progress)
            machine.finish()
        except KeyboardInterrupt:
            interrupted = True
        seconds = time.perf_counter() - start
        figures = None if rows is None else rows.figures()
    return summarize(counters, options, seconds, figures, interrupted=interrupted)


def _block_driver(options: ReplayOptions, counters: Counters, log: EventLog | None) -> Driver:
    checker = Checker(counters, options.check_every or 1) if options.check else None
    config = BlockConfig(capacity=options.capacity, block_size=options.block_size, kv_events=True)
    return Driver(config, counters, log, checker)


class Arrivals:
    """The requests of the sources as the machine receives them.

    Attributes:
        progress: how much of the sources was read, from 0 to 1.
    """

    def __init__(self, sources: Sequence[Path], options: ReplayOptions, counters: Counters) -> None:
        self._sources = sources
        self._options = options
        self._counters = counters
        self.progress = 0.0

    def __iter__(self) -> Iterator[RequestSequence]:
        """Every request that can be replayed, up to the limit; reads no further than it is asked.

        Raises:
            TraceError: a request cannot be replayed, and bad ones are not to be left out.
            OptionError: the block size does not divide that of a trace.
        """
        options = self._options
        count = 0
        for source, item in read_traces(self._sources, options.trace_block_size):
            bad = item if isinstance(item, TraceError) else self._misfit(item)
            if bad is not None:
                if not options.skip_bad:
                    raise bad
                self._counters.bad_requests += 1
                continue
            assert isinstance(item, TraceRequest)
            self.progress = (source + item.progress) / len(self._sources)
            if options.limit is not None:
                self.progress = max(self.progress, (count + 1) / options.limit)
            # The number is the request's id, under the seed: it decides the tokens that the machine makes up.
            yield new_sequence(
                (options.seed << 64) + count,
                prompt_tokens(item, options.seed),
                item.output_tokens,
                options.block_size,
                emit_token_ids=options.event_token_ids,
            )
            count += 1
            if count == options.limit:
                return

    def _misfit(self, request: TraceRequest) -> TraceError | None:
        """What keeps a request that was read well from being replayed with these options.

        Raises:
            OptionError: the block size does not divide that of the trace, so no request of it can be replayed.
        """
        options = self._options
        if request.block_size % options.block_size:
            raise OptionError(
                f"{request.place.path}: --block-size {options.block_size} does not divide the trace's blocks of "
                f"{request.block_size} tokens",
                "give a divisor of them that is at least 2",
            )
        needed = -(-(request.input_tokens + request.output_tokens) // options.block_size)
        if needed <= options.capacity:
            return None
        return TraceError(
            request.place,
            f"the request needs {needed} blocks to completion, the cache has {options.capacity}",
            "raise --capacity, or go on without the request (--skip-bad)",
        )


def _check_options(sources: Sequence[Path], options: ReplayOptions) -> None:
    options.check_together()
    if options.events is not None and str(options.events) == "-":
        raise OptionError("--events - names no file", "give it a path; /dev/stdout is standard output")
    if options.check and options.capacity > CHECKED_CAPACITY_MAX:
        raise OptionError(
            f"--check lists every block of the cache, and a capacity of {options.capacity} is too much for that",
            f"give --check a --capacity of at most {CHECKED_CAPACITY_MAX}",
        )
    slots = options.capacity * options.block_size
    if options.check and options.rows is not None and slots > CHECKED_SLOTS_MAX:
        raise OptionError(
            f"--check with --rows lists every slot of the cache, and {slots} are too many for that",
            f"give it a --capacity of at most {CHECKED_SLOTS_MAX // options.block_size}",
        )
    check_sources(sources)
    if options.events is not None:
        for path in sources:
            if options.events.exists() and options.events.samefile(path):
                raise TraceError(Place(path), "--events would overwrite this trace", "give --events another path")
