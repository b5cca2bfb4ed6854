"""What a replay found, as a value: the same for people and for machines."""

from typing import Any

from pydantic import SerializerFunctionWrapHandler, model_serializer

from tenure.replay.counters import Counters
from tenure.replay.options import UNLIMITED, ReplayOptions
from tenure.replay.row_summary import RowFigures
from tenure.replay.summary_part import SummaryPart


class Setup(SummaryPart):
    """The options that decide the figures. `capacity` is None if it is unlimited."""

    capacity: int | None
    block_size: int
    max_running: int
    max_batched_tokens: int
    limit: int | None
    seed: int


class RequestFigures(SummaryPart):
    """Requests; the tokens and blocks are those of the prompts of admitted requests."""

    finished: int
    admitted: int
    bad: int
    prompt_tokens: int
    prompt_blocks: int
    output_tokens: int


class HitFigures(SummaryPart):
    """Prefix hits. Those at first admission are the share of the cache; those after a preemption are no gain."""

    tokens_at_first_admission: int
    tokens_percent: float
    blocks_at_first_admission: int
    blocks_percent: float
    tokens_after_preemption: int


class CacheFigures(SummaryPart):
    """What went on in the cache."""

    peak_active_blocks: int
    evicted_blocks: int
    stored_events: int
    stored_hashes: int
    removed_events: int
    removed_hashes: int


class SchedulerFigures(SummaryPart):
    """What went on in the scheduler and, as `transitions`, in the machine below it."""

    steps: int
    preemptions: int
    transitions: int
    checked_transitions: int


class Timing(SummaryPart):
    """What differs between two runs with the same input and the same options; so does `timing` in the rows' part."""

    seconds: float
    requests_per_second: float


class Summary(SummaryPart):
    """Everything a replay found; `interrupted` if it was stopped before its end, `rows` if it carried any."""

    interrupted: bool
    setup: Setup
    requests: RequestFigures
    hits: HitFigures
    cache: CacheFigures
    scheduler: SchedulerFigures
    rows: RowFigures | None = None
    timing: Timing

    @model_serializer(mode="wrap")
    def _without_absent_rows(self, serialize: SerializerFunctionWrapHandler) -> dict[str, Any]:
        found: dict[str, Any] = serialize(self)
        if found.get("rows") is None:
            found.pop("rows", None)
        return found


def summarize(
    counters: Counters, options: ReplayOptions, seconds: float, rows: RowFigures | None, *, interrupted: bool
) -> Summary:
    """The summary of what was counted."""
    return Summary(
        interrupted=interrupted,
        setup=Setup(
            capacity=None if options.capacity == UNLIMITED else options.capacity,
            block_size=options.block_size,
            max_running=options.max_running,
            max_batched_tokens=options.max_batched_tokens,
            limit=options.limit,
            seed=options.seed,
        ),
        requests=RequestFigures(
            finished=counters.requests,
            admitted=counters.admitted,
            bad=counters.bad_requests,
            prompt_tokens=counters.prompt_tokens,
            prompt_blocks=counters.prompt_blocks,
            output_tokens=counters.output_tokens,
        ),
        hits=HitFigures(
            tokens_at_first_admission=counters.hit_tokens,
            tokens_percent=_percent(counters.hit_tokens, counters.prompt_tokens),
            blocks_at_first_admission=counters.hit_blocks,
            blocks_percent=_percent(counters.hit_blocks, counters.prompt_blocks),
            tokens_after_preemption=counters.hit_tokens_after_preemption,
        ),
        cache=CacheFigures(
            peak_active_blocks=counters.peak_active_blocks,
            evicted_blocks=counters.evicted_blocks,
            stored_events=counters.stored_events,
            stored_hashes=counters.stored_hashes,
            removed_events=counters.removed_events,
            removed_hashes=counters.removed_hashes,
        ),
        scheduler=SchedulerFigures(
            steps=counters.steps,
            preemptions=counters.preemptions,
            transitions=counters.transitions,
            checked_transitions=counters.checked_transitions,
        ),
        rows=rows,
        timing=Timing(
            seconds=round(seconds, 3),
            requests_per_second=round(counters.requests / seconds, 1) if seconds > 0 else 0.0,
        ),
    )


def _percent(part: int, whole: int) -> float:
    return round(100 * part / whole, 2) if whole else 0.0
