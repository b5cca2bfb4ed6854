"""Drives the joined cache: blocks, rows, and the builder that consumes the steps."""

from collections import deque
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Self

import numpy as np

from tenure.backends.cpu import CpuDevice
from tenure.core.arrays import Integers
from tenure.core.blocks.values import Answer, Command, Event, LeaseFinished, LeaseOpened, RequestId
from tenure.core.config import BlockConfig, CacheConfig, RowConfig, RowPolicy
from tenure.core.rows.names import HIDDEN, RowFormat, Schedule
from tenure.joined_cache import JoinedCache
from tenure.replay.builder import Builder
from tenure.replay.counters import Counters
from tenure.replay.event_log import EventLog
from tenure.replay.forward import Forward
from tenure.replay.kv_feed import KvFeed
from tenure.replay.machine import count_evictions
from tenure.replay.options import ReplayOptions
from tenure.replay.row_checking import RowChecker
from tenure.replay.row_counters import RowCounters, SavedStep, Span
from tenure.replay.row_options import RowOptions
from tenure.replay.row_specs import RowSpec
from tenure.replay.row_summary import RowFigures, row_figures
from tenure.replay.row_values import PrefixWords

WAIT_TIMEOUT_S = 120.0
"""A builder that compares every row on a slow machine may take its time."""


@dataclass(slots=True, eq=False)
class _Known:
    """What the engine knows of a request: its prefix words, and whether no step has computed any of it yet."""

    words: PrefixWords
    is_new: bool = True


class RowDriver:
    """One joined cache, an engine's forward pass and a builder; a `Machine` with rows.

    Attributes:
        counters: what happened to blocks and requests.
        rows: what happened to rows.
    """

    def __init__(
        self, options: ReplayOptions, row_options: RowOptions, counters: Counters, log: EventLog | None
    ) -> None:
        self.counters = counters
        self.rows = RowCounters()
        self.block_size = options.block_size
        self._options = row_options
        self._feed = KvFeed(counters, log)
        self._checker = RowChecker(self.rows, options) if options.check else None
        self._forward = Forward(row_options.specs, options.max_batched_tokens)
        self._known: dict[RequestId, _Known] = {}
        self._scheduled: list[tuple[RequestId, int, int]] = []
        # The cache swallows what its sink raises, so the sink raises nothing.
        self._kv_events: deque[Command] = deque()
        with ExitStack() as stack:
            device = CpuDevice(worker=True, tensors="numpy")
            stack.callback(device.close, WAIT_TIMEOUT_S)
            self._cache = JoinedCache(
                _config(options, row_options),
                policy=_policy(row_options.specs),
                device=device,
                sink=self._kv_events.append,
                formats=[_format(spec) for spec in row_options.specs],
            )
            self._builder = Builder(self._cache, row_options, options.seed, self.rows, checks=options.check)
            # In the other order: the builder begins nothing more, a shutdown wakes it if it waits for rows, it ends.
            stack.callback(self._builder.join)
            stack.callback(self._cache.shutdown)
            stack.callback(self._builder.stop)
            self._at_exit = stack.pop_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: object, traceback: object) -> None:
        self._at_exit.close()

    @property
    def num_active(self) -> int:
        """Blocks in use."""
        return self._cache.blocks.num_active

    def figures(self) -> RowFigures:
        """What was counted so far."""
        return row_figures(self.rows, self.counters, self._cache.stats(), self._options)

    # --- Within a step --------------------------------------------------------------------------------------------

    def apply(self, event: Event) -> Answer:
        """Let an event of the block machine happen."""
        free = self._cache.blocks.num_free
        answer = self._cache.blocks.apply(event)
        self.counters.transitions += 1
        count_evictions(self.counters, event, answer, free)
        if isinstance(event, LeaseOpened):
            sequence = event.sequence
            words = PrefixWords(sequence.prompt, sequence.prompt_tokens + sequence.max_output)
            self._known[sequence.request] = _Known(words)
        elif isinstance(event, LeaseFinished):
            del self._known[event.request]
        return answer

    def shareable_blocks(self, request: RequestId) -> int:
        """Leading blocks of a request whose rows can be served."""
        return self._cache.servable_prefix_blocks(request)

    def schedule(self, request: RequestId, before: int, after: int) -> None:
        """Put tokens into the next step."""
        self._cache.schedule(request, after - before)
        self._scheduled.append((request, before, after))

    def run_step(self) -> None:
        """Make the rows of the step, save them, and hand them to the builder.

        Raises:
            InvariantViolation: the builder got wrong rows, or a rule is broken.
            TenureError: a call of the cache failed.
            OutputError: a KV event could not be written.
        """
        self._cache.new_step_starts()
        spans = self._spans()
        self._scheduled.clear()
        words = np.concatenate([span.computed for span in spans])
        hidden, mm = self._forward.run(words)
        step = self._cache.save_outputs(hidden, mm, num_tokens_unpadded=len(words))
        self.rows.steps += 1
        self.rows.written += len(words) * len(self._options.specs)
        self._builder.hand(SavedStep(step, spans))
        self._take_events()
        if self._checker is not None:
            self._checker.observe(self._cache)

    def report_chunk(self, request: RequestId, before: int, after: int, *, generates: bool) -> None:
        """The save told of the tokens computed; the next token may follow."""
        if generates:
            self.report_decode([request])

    def report_decode(self, requests: Sequence[RequestId]) -> None:
        """Generate the next token of each request."""
        generate = self._cache.blocks.generate_token
        tokens = [generate(request).token for request in requests]
        self.counters.transitions += len(tokens)
        PrefixWords.extend([self._known[request].words for request in requests], tokens)

    def finish(self) -> None:
        """Wait for the builder, and check what must hold when every request has ended.

        Raises:
            InvariantViolation: the builder got wrong rows, or a rule is broken.
        """
        self._builder.finish()
        # Without tokens it only tells of the requests that ended with the last step.
        self._cache.new_step_starts()
        self._take_events()
        if self._checker is not None:
            self._checker.check_end(self._cache)

    # --- Details --------------------------------------------------------------------------------------------------

    def _spans(self) -> tuple[Span, ...]:
        """What each request is to get of this step.

        A hit is handed out with the first step of its request. A request that was preempted before has had its rows,
        and gets what it computes anew, whatever it hits.
        """
        spans: list[Span] = []
        for request, before, after in self._scheduled:
            known = self._known[request]
            first = 0 if known.is_new else before
            known.is_new = False
            same_step = self._same_step(request, before) if first < before else 0
            spans.append(Span(request, first, before, same_step, known.words.span(first, after)))
        return tuple(spans)

    def _same_step(self, request: RequestId, hit: int) -> int:
        """How many tokens of a hit are computed by the step that hits them."""
        if self._options.visibility == "computed":
            return 0
        computed = np.concatenate([self._slots(*each) for each in self._scheduled])
        return int(np.isin(self._slots(request, 0, hit), computed).sum())

    def _slots(self, request: RequestId, before: int, after: int) -> Integers:
        size = self.block_size
        first = before // size
        blocks = np.array(self._cache.blocks.block_table(request)[first : -(-after // size)], dtype=np.int64)
        positions = np.arange(before, after, dtype=np.int64)
        return blocks[positions // size - first] * size + positions % size

    def _take_events(self) -> None:
        self._cache.blocks.flush()
        while self._kv_events:
            event = self._kv_events.popleft()
            self._feed.take(event)
            if self._checker is not None:
                self._checker.hear(event)


def _config(options: ReplayOptions, row_options: RowOptions) -> CacheConfig:
    return CacheConfig(
        blocks=BlockConfig(capacity=options.capacity, block_size=options.block_size, kv_events=True),
        rows=RowConfig(
            num_blocks=options.capacity,
            block_size=options.block_size,
            page_rows_max=options.max_batched_tokens,
            pages=row_options.staging_depth,
            builder_lag_max=row_options.builder_lag,
            budget_bytes=row_options.budget_bytes,
            wait_timeout_s=WAIT_TIMEOUT_S,
        ),
        visibility=row_options.visibility,
    )


def _format(spec: RowSpec) -> RowFormat:
    schedule = Schedule.JOIN_ON_FINISH if spec.is_deferred else Schedule.JOIN_NEXT_STEP
    return RowFormat(HIDDEN if spec.is_hidden else spec.name, spec.row_shape, spec.dtype, schedule)


def _policy(specs: Sequence[RowSpec]) -> RowPolicy:
    mm = [spec for spec in specs if not spec.is_hidden]
    return RowPolicy(
        hidden=any(spec.is_hidden for spec in specs),
        immediate=frozenset(spec.name for spec in mm if not spec.is_deferred),
        deferred=frozenset(spec.name for spec in mm if spec.is_deferred),
        infer=False,
    )
