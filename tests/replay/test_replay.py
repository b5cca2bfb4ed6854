"""A whole replay: its figures, its events, its checks, and that it is the same every time."""

import json
from pathlib import Path
from typing import Any

import pytest

from tenure.core.blocks.hashing import chain_hash, local_hash
from tenure.core.blocks.machine import Transition, transition
from tenure.core.blocks.state import BlockState
from tenure.core.blocks.values import Event, LeaseFinished
from tenure.core.errors import InvariantViolation
from tenure.replay import OptionError, ReplayOptions, TraceError, replay
from tenure.replay.event_log import StoredLine, read_events
from tenure.replay.options import UNLIMITED
from tenure.replay.summary import Summary
from tests.paths import SHARED
from tests.replay.traces import Invoke, WriteTrace

SHARING = [(1100, 3, [0, 1, 2]), (1200, 2, [0, 1, 3]), (513, 4, [0, 4]), (512, 1, [0]), (1300, 5, [5, 6, 7])]


def apart_from_times(summary: Summary) -> dict[str, Any]:
    return summary.model_dump(exclude={"timing"})


def test_hits_are_counted_in_tokens_and_in_blocks(write_trace: WriteTrace) -> None:
    path = write_trace((1024, 1, [0, 1]), (1030, 1, [0, 1, 2]), (1024, 1, [0, 1]))

    summary = replay([path], ReplayOptions(max_running=1))

    # The second prompt finds both trace blocks, the third all but the block of its last token.
    hits = summary.hits
    assert (hits.blocks_at_first_admission, hits.tokens_at_first_admission) == (64 + 63, 16 * 127)
    assert (summary.requests.prompt_tokens, summary.requests.prompt_blocks) == (3078, 64 + 65 + 64)
    assert (hits.blocks_percent, hits.tokens_percent) == (65.8, 66.02)
    assert (summary.cache.stored_hashes, summary.cache.removed_hashes) == (64, 0)


def test_equal_partial_blocks_share_their_whole_sub_blocks(write_trace: WriteTrace) -> None:
    summary = replay([write_trace((100, 1, [3]), (100, 1, [3]))], ReplayOptions(max_running=1))

    assert summary.hits.blocks_at_first_admission == 6


def test_files_share_nothing_but_with_themselves(write_trace: WriteTrace) -> None:
    """The same ids mean something else in another trace."""
    one, other = (write_trace((600, 1, [0, 1]), name=name) for name in ("one", "other"))
    options = ReplayOptions(max_running=1)

    assert replay([one, other], options).hits.blocks_at_first_admission == 0
    assert replay([one, one], options).hits.blocks_at_first_admission == 37


def test_unlimited_capacity_evicts_nothing_and_costs_nothing(write_trace: WriteTrace) -> None:
    summary = replay([write_trace(*SHARING)], ReplayOptions(capacity=UNLIMITED))

    assert summary.setup.capacity is None
    assert (summary.cache.evicted_blocks, summary.scheduler.preemptions) == (0, 0)


def test_a_limit_stops_reading(write_trace: WriteTrace) -> None:
    summary = replay([write_trace(*SHARING, "broken")], ReplayOptions(limit=3))

    assert (summary.requests.finished, summary.requests.output_tokens) == (3, 9)


def test_progress_is_told_after_every_step(write_trace: WriteTrace) -> None:
    seen: list[tuple[int, float]] = []

    summary = replay(
        [write_trace(*SHARING)], ReplayOptions(max_running=1), lambda counted, read: seen.append((counted.steps, read))
    )

    assert [step for step, _ in seen] == list(range(1, summary.scheduler.steps + 1))
    assert seen[-1][1] == 1.0
    assert seen == sorted(seen)


def test_the_library_tells_of_an_interrupt_in_its_summary(write_trace: WriteTrace) -> None:
    def interrupt(counted: object, read: float) -> None:
        raise KeyboardInterrupt

    summary = replay([write_trace(*SHARING)], ReplayOptions(check=True), interrupt)

    assert (summary.interrupted, summary.scheduler.steps) == (True, 1)


@pytest.mark.parametrize("options", [ReplayOptions(check=True, capacity=2**30), ReplayOptions(max_batched_tokens=7)])
def test_options_that_do_not_go_together_are_refused(write_trace: WriteTrace, options: ReplayOptions) -> None:
    with pytest.raises(OptionError):
        replay([write_trace(*SHARING)], options)


def test_a_replay_needs_a_source() -> None:
    with pytest.raises(OptionError, match="no trace"):
        replay([], ReplayOptions())


def test_events_never_overwrite_a_trace(write_trace: WriteTrace) -> None:
    path = write_trace(*SHARING)

    with pytest.raises(TraceError, match="overwrite"):
        replay([path], ReplayOptions(events=path))


# --- The same every time --------------------------------------------------------------------------------------------


def test_equal_runs_are_equal_byte_for_byte_apart_from_times(
    write_trace: WriteTrace, invoke: Invoke, tmp_path: Path
) -> None:
    trace = write_trace(*SHARING)
    outputs: list[tuple[str, bytes]] = []
    for name in ("first", "second"):
        result = invoke(trace, "--capacity", 90, "--json", tmp_path / name, "--events", tmp_path / f"{name}.events")
        assert result.exit_code == 0
        summary = json.loads((tmp_path / name).read_bytes())
        del summary["timing"]
        outputs.append((json.dumps(summary), (tmp_path / f"{name}.events").read_bytes()))

    assert outputs[0] == outputs[1]


def test_another_seed_changes_the_hashes_and_nothing_else(write_trace: WriteTrace, tmp_path: Path) -> None:
    trace = write_trace(*SHARING)
    summaries = [
        replay([trace], ReplayOptions(capacity=90, seed=seed, events=tmp_path / str(seed))) for seed in (0, 2**64 - 1)
    ]

    first, second = (apart_from_times(summary) | {"setup": None} for summary in summaries)
    assert first == second
    assert (tmp_path / "0").read_bytes() != (tmp_path / str(2**64 - 1)).read_bytes()


# --- KV events ------------------------------------------------------------------------------------------------------


def test_the_event_log_tells_what_is_visible(write_trace: WriteTrace, tmp_path: Path) -> None:
    """Whoever reads the log alone can follow the cache, and rebuild every hash from the tokens in it."""
    log = tmp_path / "events"
    options = ReplayOptions(capacity=100, events=log, event_token_ids=True, check=True, check_every=10)

    summary = replay([write_trace(*SHARING)], options)

    visible: set[int] = set()
    stored = 0
    for number, line in enumerate(read_events(log)):
        assert (line.event_id, line.dp_rank) == (number, 0)
        if isinstance(line, StoredLine):
            parent = line.stored.parent_hash
            for block in line.stored.blocks:
                assert block.token_ids is not None
                tokens = b"".join(token.to_bytes(4, "little") for token in block.token_ids)
                assert (len(block.token_ids), block.tokens_hash) == (16, local_hash(tokens))
                assert block.block_hash == chain_hash(parent, block.tokens_hash)
                assert block.block_hash not in visible
                visible.add(block.block_hash)
                parent = block.block_hash
            stored += len(line.stored.blocks)
        else:
            assert visible.issuperset(line.removed.block_hashes)
            visible.difference_update(line.removed.block_hashes)
    cache = summary.cache
    assert (stored, stored - len(visible)) == (cache.stored_hashes, cache.removed_hashes)
    assert cache.removed_hashes > 0


def test_a_stored_line_has_no_tokens_where_none_were_asked_for(write_trace: WriteTrace, tmp_path: Path) -> None:
    replay([write_trace((40, 1, [0]))], ReplayOptions(events=tmp_path / "events"))

    (line,) = (tmp_path / "events").read_text(encoding="utf-8").splitlines()
    event = json.loads(line)
    assert set(event) == {"event_id", "dp_rank", "stored"}
    assert event["stored"]["parent_hash"] is None
    assert [set(block) for block in event["stored"]["blocks"]] == [{"block_hash", "tokens_hash"}] * 2


# --- Checks ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("every", "checked"), [(1, 1.0), (7, 1 / 7)])
def test_checks_look_at_every_nth_transition(write_trace: WriteTrace, every: int, checked: float) -> None:
    summary = replay([write_trace(*SHARING)], ReplayOptions(capacity=100, check=True, check_every=every))

    scheduler = summary.scheduler
    assert scheduler.checked_transitions == int(scheduler.transitions * checked)
    assert summary.cache.evicted_blocks > 0


def plant(monkeypatch: pytest.MonkeyPatch, kind: type[Event] | None, **changes: Any) -> None:
    """Let the machine answer events of a kind wrongly."""

    def faulty(state: BlockState, event: Event) -> Transition:
        right = transition(state, event)
        wanted = kind is None or isinstance(event, kind)
        return right._replace(**{k: change(state) for k, change in changes.items()}) if wanted else right

    monkeypatch.setattr("tenure.replay.driver.transition", faulty)


@pytest.mark.parametrize(("every", "rule"), [(1, "I24"), (10**6, "I25")])
def test_lost_kv_events_are_found(
    write_trace: WriteTrace, invoke: Invoke, monkeypatch: pytest.MonkeyPatch, every: int, rule: str
) -> None:
    """At once where every transition is checked, else by the mirror at the end."""

    def no_commands(state: BlockState) -> tuple[()]:
        return ()

    plant(monkeypatch, None, commands=no_commands)

    result = invoke(write_trace((40, 1, [0])), "--check-every", every)

    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith(f"tenure: internal error, please report it: {rule}: ")


def test_a_block_that_is_never_given_back_is_found(write_trace: WriteTrace, monkeypatch: pytest.MonkeyPatch) -> None:
    def same_state(state: BlockState) -> BlockState:
        return state

    plant(monkeypatch, LeaseFinished, state=same_state)
    options = ReplayOptions(check=True, check_every=10**6)

    with pytest.raises(InvariantViolation, match="I31: 3 blocks are active"):
        replay([write_trace((40, 1, [0]))], options)


def test_without_checks_nothing_is_checked(write_trace: WriteTrace, monkeypatch: pytest.MonkeyPatch) -> None:
    """So the figures of a plain replay are those of the machine alone."""

    def no_commands(state: BlockState) -> tuple[()]:
        return ()

    plant(monkeypatch, None, commands=no_commands)

    assert replay([write_trace((40, 1, [0]))], ReplayOptions()).scheduler.checked_transitions == 0


# --- Real traces ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "percent"), [pytest.param("conversation", 36.6, marks=pytest.mark.slow), ("synthetic", 63.8)]
)
def test_the_best_possible_hit_rate_of_real_traces_is_reached(tmp_path: Path, name: str, percent: float) -> None:
    """Nothing is lost that could be shared: partial last blocks, which have no hash, are all that never hits."""
    source = SHARED / "traces" / f"mooncake_{name}_trace.jsonl"
    if not source.is_file():
        pytest.skip("the real traces are not here")
    # How much is generated decides nothing here but the time it takes.
    short = tmp_path / "trace"
    with source.open(encoding="utf-8") as lines, short.open("w", encoding="utf-8") as file:
        file.writelines(json.dumps(json.loads(line) | {"output_length": 1}) + "\n" for line in lines)

    summary = replay([short], ReplayOptions(capacity=UNLIMITED, max_running=1, block_size=512))

    assert round(summary.hits.blocks_percent, 1) == percent


def test_real_sessions_share_most_of_their_prompts() -> None:
    folder = SHARED / "traces" / "agentic"
    if not folder.is_dir():
        pytest.skip("the real traces are not here")

    summary = replay(sorted(folder.glob("*.json")), ReplayOptions(max_running=1, block_size=64))

    assert summary.requests.finished == 114
    assert summary.hits.tokens_percent > 85
