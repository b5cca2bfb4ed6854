"""Whole replays that carry rows: every row that comes back is right, whatever happened to its request meanwhile."""

import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace as replaced
from pathlib import Path
from threading import enumerate as threads
from typing import Any

import pytest

from tenure.backends.cpu import CpuDevice
from tenure.backends.device import Buffer, Lane, Rows
from tenure.core.arrays import Integers
from tenure.core.errors import InvariantViolation, StepAlreadyConsumedError, TenureError
from tenure.core.rows.names import HIDDEN
from tenure.joined_cache import JoinedCache
from tenure.outputs import StepOutputs
from tenure.replay import OptionError, OutputError, ReplayOptions, Summary, replay
from tenure.replay.event_log import StoredLine, read_events
from tenure.replay.row_checking import SLOT_BY_SLOT_MAX, steps_between_checks, visible_blocks_have_their_rows
from tenure.replay.row_options import RowOptions
from tenure.replay.row_specs import parse_rows
from tenure.stats import CacheStats
from tests.joined.site import Site
from tests.replay.traces import Invoke, WriteTrace

SPECS = tuple(map(parse_rows, ("hidden:6:bf16", "mm:3x2", "codes:5:uint8:deferred")))
PROCESS_LIMIT_S = 120
"""Long enough for the slowest machine; only a process that hangs ever waits for it."""


def sharing(count: int = 60) -> list[tuple[int, int, list[int]]]:
    """Prompts of 32 to 96 tokens that begin with one of two blocks, and go on with one of a few."""
    return [
        (32 + (17 * n) % 65, 1 + (7 * n) % 19, [n % 2, 10 + n % 5, 100 + n][: -(-(32 + (17 * n) % 65) // 32)])
        for n in range(count)
    ]


def options(**chosen: Any) -> ReplayOptions:
    """A cache that is too small for those who run: blocks are evicted, used again, and requests preempted."""
    rows: dict[str, Any] = {
        "specs": SPECS,
        "staging_depth": 4,
        "builder_lag": 3,
        "abort_rate": 0.2,
        "preempt_rate": 0.2,
    }
    rows |= {name: chosen.pop(name) for name in list(chosen) if name in RowOptions.model_fields}
    given: dict[str, Any] = {"check": True, "rows": RowOptions(**rows), "capacity": 28, "block_size": 8}
    given |= {"trace_block_size": 32, "max_running": 6, "max_batched_tokens": 96}
    return ReplayOptions(**(given | chosen))


def apart_from_times(summary: Summary) -> dict[str, Any]:
    return summary.model_dump(exclude={"timing": True, "rows": {"timing"}})


@pytest.fixture(autouse=True)
def _no_thread_is_left() -> Iterator[None]:
    """However a replay ends. Threads that other tests left may end meanwhile."""
    before = set(threads())
    yield
    assert not set(threads()) - before


class Planted:
    """Puts another cache, or a faulty one, under the replay."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._monkeypatch = monkeypatch

    def __call__(self, kind: type[JoinedCache]) -> None:
        self._monkeypatch.setattr("tenure.replay.row_driver.JoinedCache", kind)


@pytest.fixture
def plant(monkeypatch: pytest.MonkeyPatch) -> Planted:
    return Planted(monkeypatch)


# --- What is right ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("visibility", ["computed", "scheduled"])
@pytest.mark.parametrize("seed", [0, 1])
def test_r02_every_row_is_right_whatever_happens_to_its_request(
    write_trace: WriteTrace, visibility: str, seed: int
) -> None:
    """Hits, hits within a step, preemption, resumption, abort, and blocks used again, under a late builder."""
    summary = replay([write_trace(*sharing())], options(visibility=visibility, seed=seed))

    rows = summary.rows
    assert rows is not None
    assert 0 < rows.from_hits < rows.handed_out == rows.verified
    assert (rows.from_hits_of_the_same_step > 0) == (visibility == "scheduled")
    assert rows.from_hits + rows.written == rows.handed_out
    assert (rows.mismatches, rows.steps_discarded) == (0, 0)
    assert rows.aborts > 3
    assert rows.preemptions_by_choice > 10
    assert summary.scheduler.preemptions > 3
    assert summary.hits.tokens_after_preemption > 0
    assert summary.cache.evicted_blocks > 40
    assert summary.requests.finished + rows.aborts == summary.requests.admitted == 60
    assert rows.checked_states == rows.steps_saved + 1
    assert rows.timing.bytes_copied["gather"] > 0


def test_a_request_that_resumes_gets_what_it_computes_anew_and_no_hit(write_trace: WriteTrace) -> None:
    """Its first rows were handed out before it was preempted; whoever counted them again would see them twice."""
    lonely = write_trace((64, 30, [1, 2]), (64, 30, [3, 4]))

    summary = replay([lonely], options(abort_rate=0.0, preempt_rate=0.5, capacity=64))

    assert summary.rows is not None
    assert summary.hits.tokens_after_preemption > 0
    assert summary.hits.tokens_at_first_admission == summary.rows.from_hits == 0
    assert summary.rows.handed_out == summary.rows.written > 3 * 2 * (64 + 29)


def test_discarded_steps_hand_nothing_out(write_trace: WriteTrace) -> None:
    summary = replay([write_trace(*sharing())], options(discard_rate=0.5))

    rows = summary.rows
    assert rows is not None
    assert 0 < rows.steps_discarded < rows.steps_saved
    assert 0 < rows.handed_out == rows.verified < rows.written


def test_a_budget_that_holds_one_step_flushes_deferred_rows(write_trace: WriteTrace) -> None:
    summary = replay([write_trace(*sharing())], options(budget_bytes=96 * (12 + 24 + 5)))

    assert summary.rows is not None
    assert summary.rows.timing.flushes > 0
    assert summary.rows.verified == summary.rows.handed_out > 0


@pytest.mark.parametrize(
    "specs", [("hidden:4",), ("mm:4", "codes:2:int64"), ("a:3:bool:deferred", "b:2x2x2:fp16", "hidden:1:int32")]
)
def test_any_names_can_be_carried(write_trace: WriteTrace, specs: Sequence[str]) -> None:
    """Hidden states alone, or none at all: where there are none, hits are served under the other names."""
    summary = replay([write_trace(*sharing(30))], options(specs=tuple(map(parse_rows, specs))))

    assert summary.rows is not None
    assert summary.rows.verified == summary.rows.handed_out > 0
    assert summary.rows.from_hits > 0


def test_without_disturbances_the_scheduler_decides_as_without_rows(write_trace: WriteTrace) -> None:
    """One scheduler serves both, so that what rows cost can be told from the figures."""
    trace = write_trace(*sharing())
    with_rows = options(abort_rate=0.0, preempt_rate=0.0)

    carried, alone = replay([trace], with_rows), replay([trace], with_rows.model_copy(update={"rows": None}))

    kept = {"requests", "hits", "cache"}
    assert alone.model_dump(include=kept) == carried.model_dump(include=kept)
    assert alone.scheduler.preemptions == carried.scheduler.preemptions > 0


@pytest.mark.parametrize("visibility", ["computed", "scheduled"])
def test_equal_runs_are_equal_apart_from_times(write_trace: WriteTrace, visibility: str, tmp_path: Path) -> None:
    """Threads may be quick or slow; what is scheduled, saved, drawn and handed out is the same."""
    trace = write_trace(*sharing())
    first, second, other = (
        replay(
            [trace], options(visibility=visibility, discard_rate=0.1, events=tmp_path / name, seed=seed, check_every=50)
        )
        for name, seed in (("first", 5), ("second", 5), ("other", 6))
    )

    assert apart_from_times(first) == apart_from_times(second)
    assert (tmp_path / "first").read_bytes() == (tmp_path / "second").read_bytes()
    assert apart_from_times(first)["rows"] != apart_from_times(other)["rows"]


def test_the_event_log_tells_what_is_visible(write_trace: WriteTrace, tmp_path: Path) -> None:
    log = tmp_path / "events"

    summary = replay([write_trace(*sharing())], options(events=log, visibility="scheduled"))

    visible: set[int] = set()
    for number, line in enumerate(read_events(log)):
        assert number == line.event_id
        if isinstance(line, StoredLine):
            hashes = {block.block_hash for block in line.stored.blocks}
            assert not visible & hashes
            visible |= hashes
        else:
            assert visible.issuperset(line.removed.block_hashes)
            visible.difference_update(line.removed.block_hashes)
    assert len(visible) == summary.cache.stored_hashes - summary.cache.removed_hashes > 0
    assert summary.cache.removed_hashes > 0


# --- What is wrong is found ---------------------------------------------------------------------------------------


class Swapping(JoinedCache):
    """Gives two requests of a step each other's rows."""

    def materialize(self, step_id: int, req_ids: Sequence[Any]) -> StepOutputs:
        outputs = super().materialize(step_id, req_ids)
        rows: dict[Any, Any] = dict(outputs.mm_outputs["mm"])
        alike = [request for request in rows if rows[request].shape == (1, 3, 2)]
        if len(alike) > 1:
            rows[alike[0]], rows[alike[1]] = rows[alike[1]], rows[alike[0]]
        return StepOutputs(outputs.hidden_states, {**outputs.mm_outputs, "mm": rows})


class Lazy(JoinedCache):
    """Copies nothing when a step is saved, and looks at the engine's buffers when its rows are wanted."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.live: dict[int, Any] = {}

    def save_outputs(self, hidden_states: Any, mm_outputs: Any = None, **counts: Any) -> int:
        step = super().save_outputs(hidden_states, mm_outputs, **counts)
        self.live[step] = hidden_states
        return step

    def materialize(self, step_id: int, req_ids: Sequence[Any]) -> StepOutputs:
        outputs = super().materialize(step_id, req_ids)
        assert outputs.hidden_states is not None
        rows = dict(outputs.hidden_states)
        live = self.live.pop(step_id)
        if len(rows) == 1 and len(live) == len(rows[req_ids[0]]):
            rows[req_ids[0]] = live
        return StepOutputs(rows, outputs.mm_outputs)


class Late(JoinedCache):
    """Saves rows that are wrong in one bit of one name."""

    def save_outputs(self, hidden_states: Any, mm_outputs: Any = None, **counts: Any) -> int:
        mm_outputs["codes"][-1, -1] ^= 4
        return super().save_outputs(hidden_states, mm_outputs, **counts)


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        (Swapping, "R02: request .* got a wrong row of mm at position"),
        (Lazy, r"R02: request .* got a wrong row of hidden at position .* \(the step's own row\)"),
        (Late, "R02: request .* got a wrong row of codes at position"),
    ],
)
def test_r02_wrong_rows_end_a_checked_replay(
    write_trace: WriteTrace, plant: Planted, kind: type[JoinedCache], message: str
) -> None:
    plant(kind)
    # One request at a time has steps of equal tokens, one after the other, in the same buffer.
    running = 1 if kind is Lazy else 6

    with pytest.raises(InvariantViolation, match=message):
        replay([write_trace(*sharing())], options(max_running=running, preempt_rate=0.0))


def test_r02_rows_that_an_earlier_tenant_left_are_found_in_hits(
    write_trace: WriteTrace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The fault that a cache is judged by: a slot still holds what was computed there before."""

    class Stale(CpuDevice):
        """Writes nothing more to the pool after a while."""

        scatters = 0

        def scatter_rows(self, lane: Lane, target: Buffer, index: Integers, source: Rows) -> None:
            self.scatters += 1
            if self.scatters <= 40:
                super().scatter_rows(lane, target, index, source)

    monkeypatch.setattr("tenure.replay.row_driver.CpuDevice", Stale)

    with pytest.raises(InvariantViolation, match=r"R02: request .* got a wrong row of .* \(a row of its hit\)"):
        replay([write_trace(*sharing())], options())


def test_wrong_rows_pass_where_nothing_is_checked(write_trace: WriteTrace, plant: Planted) -> None:
    """So the figures of a plain replay are those of the cache alone."""
    plant(Swapping)

    summary = replay([write_trace(*sharing())], options(check=False))

    assert summary.rows is not None
    assert (summary.rows.verified, summary.rows.checked_states) == (0, 0)
    assert summary.rows.handed_out > 0


def test_i25_lost_kv_events_are_found(write_trace: WriteTrace, plant: Planted) -> None:
    class Deaf(JoinedCache):
        """Tells its listener nothing."""

        def __init__(self, *arguments: Any, **named: Any) -> None:
            super().__init__(*arguments, **(named | {"sink": None}))

    plant(Deaf)

    with pytest.raises(InvariantViolation, match="I25"):
        replay([write_trace(*sharing())], options(check_every=10**6))


def test_r18_what_is_left_at_the_end_is_found(
    write_trace: WriteTrace, plant: Planted, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Leaking(JoinedCache):
        """Holds a page for ever."""

        def stats(self) -> CacheStats:
            return replaced(super().stats(), pages_held=1, reads=2)

    plant(Leaking)
    monkeypatch.setattr("tenure.replay.row_checking.QUIET_TIMEOUT_S", 0.5)

    with pytest.raises(InvariantViolation, match=r"R18: .* there are still 2 reads, 1 pages held"):
        replay([write_trace(*sharing(5))], options())


def test_x01_a_visible_block_without_its_rows_is_found() -> None:
    """Stated over arrays for caches that are too large for the spec's own words; so held against them here."""
    site = Site()
    site.arrive("a", [1, 2, 3, 4])
    site.step("a")
    site.drain()
    view = site.view
    blocks = [found.primary for found in view.blocks.index.values()]
    slot = blocks[1] * 2 + 1
    newest = list(view.rows.newest[HIDDEN])
    newest[slot] = 0
    tenancy = list(view.rows.tenancy)
    tenancy[slot] += 100

    absent = replaced(view, rows=replaced(view.rows, newest={**view.rows.newest, HIDDEN: tuple(newest)}))
    older = replaced(view, rows=replaced(view.rows, tenancy=tuple(tenancy)))
    forgotten = replaced(view, rows=replaced(view.rows, floor=view.rows.next_claim))
    unknown = replaced(view, rows=replaced(view.rows, identities={}))

    assert visible_blocks_have_their_rows(view) is None
    for spoiled in (absent, older):
        assert f"blocks [{blocks[1]}] are visible" in str(visible_blocks_have_their_rows(spoiled))
    assert f"blocks {blocks} are visible" in str(visible_blocks_have_their_rows(forgotten))
    assert "which holds None" in str(visible_blocks_have_their_rows(unknown))
    assert visible_blocks_have_their_rows(Site().view) is None


@pytest.mark.parametrize(("slots", "every", "steps"), [(320, None, 1), (2**18, None, 256), (2**18, 5, 5)])
def test_large_caches_are_looked_at_less_often(slots: int, every: int | None, steps: int) -> None:
    """A look costs what a cache holds, and a replay must end."""
    assert steps == steps_between_checks(slots, every)


def test_a_cache_above_the_slot_by_slot_limit_is_checked_too(write_trace: WriteTrace) -> None:
    capacity = SLOT_BY_SLOT_MAX // 8 + 1

    summary = replay([write_trace(*sharing())], options(capacity=capacity, check_every=20))

    assert summary.rows is not None
    assert summary.rows.checked_states == summary.rows.steps_saved // 20 + 1 > 2


# --- When something fails, or is cut short ------------------------------------------------------------------------


def test_a_failure_of_the_builder_ends_the_replay(write_trace: WriteTrace, plant: Planted) -> None:
    class Consumed(JoinedCache):
        """Says of some step that it was consumed already."""

        def materialize(self, step_id: int, req_ids: Sequence[Any]) -> StepOutputs:
            if step_id == 20:
                raise StepAlreadyConsumedError(step_id, ())
            return super().materialize(step_id, req_ids)

    plant(Consumed)

    with pytest.raises(StepAlreadyConsumedError):
        replay([write_trace(*sharing())], options())


def test_a_failure_of_a_save_ends_the_replay_and_the_builder(write_trace: WriteTrace, plant: Planted) -> None:
    class Full(JoinedCache):
        """Saves nothing after some steps."""

        def save_outputs(self, hidden_states: Any, mm_outputs: Any = None, **counts: Any) -> int:
            if counts["num_tokens_unpadded"] == 1:
                raise PlantedError
            return super().save_outputs(hidden_states, mm_outputs, **counts)

    plant(Full)

    with pytest.raises(PlantedError):
        replay([write_trace(*sharing())], options(max_running=1))


class PlantedError(TenureError):
    """An error that nothing else raises."""

    def sentence(self) -> str:
        return "for tests"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
def test_kv_events_that_cannot_be_written_end_the_replay(write_trace: WriteTrace) -> None:
    """The cache swallows what its listener raises; a replay must not."""
    with pytest.raises(OutputError, match="--events another path"):
        replay([write_trace(*sharing(2000))], options(events=Path("/dev/full"), check=False))


def test_an_interrupt_sums_up_what_was_done_so_far(write_trace: WriteTrace) -> None:
    def interrupt(counters: Any, _: float) -> None:
        if counters.steps == 30:
            raise KeyboardInterrupt

    summary = replay([write_trace(*sharing())], options(), interrupt)

    assert summary.interrupted
    assert summary.rows is not None
    assert summary.rows.steps_saved == 30


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_ctrl_c_ends_every_thread(tmp_path: Path) -> None:
    """The trace is a pipe that never ends, so the process can only end by the interrupt."""
    pipes: list[int] = []
    for name in ("trace", "events"):
        os.mkfifo(tmp_path / name)
        # Opened for both, a pipe neither makes its opener wait nor ends.
        pipes.append(os.open(tmp_path / name, os.O_RDWR))
    requests = [{"input_length": 4500, "output_length": 2, "hash_ids": list(range(9 * n, 9 * n + 9))} for n in (0, 1)]
    os.write(pipes[0], "".join(json.dumps(request) + "\n" for request in requests).encode())
    code = (
        "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\nfrom tenure.cli import main; main()"
    )
    chosen = ["--max-running", "1", "--rows", "hidden:4", "--check", "--events", str(tmp_path / "events")]
    process = subprocess.Popen(
        [sys.executable, "-c", code, "replay", str(tmp_path / "trace"), *chosen],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )

    # An event tells that requests are being replayed.
    select.select([pipes[1]], [], [], PROCESS_LIMIT_S)
    process.send_signal(signal.SIGINT)
    stdout, stderr = process.communicate(timeout=PROCESS_LIMIT_S)

    for pipe in pipes:
        os.close(pipe)
    assert (process.returncode, stderr) == (130, "")
    assert "Replay, interrupted" in stdout
    assert "rows written" in stdout


# --- The command line ---------------------------------------------------------------------------------------------

COMMAND = ("--capacity", 28, "--block-size", 8, "--trace-block-size", 32, "--max-running", 6)
ROWS = ("--rows", "hidden:4", "--rows", "codes:8:int32:deferred")


def test_the_command_tells_the_figures_in_table_and_json(
    write_trace: WriteTrace, invoke: Invoke, tmp_path: Path
) -> None:
    rates = ("--abort-rate", 0.2, "--preempt-rate", 0.2, "--discard-rate", 0.1)
    more = ("--max-batched-tokens", 96, "--visibility", "scheduled", "--builder-lag", 3, "--budget-bytes", 2**20)

    result = invoke(write_trace(*sharing()), *COMMAND, *ROWS, *rates, *more, "--check", "--json", tmp_path / "summary")

    assert (result.exit_code, result.stderr) == (0, "")
    rows = json.loads((tmp_path / "summary").read_text(encoding="utf-8"))["rows"]
    assert rows["setup"] == {
        "names": ["hidden:4:float32", "codes:8:int32:deferred"],
        "visibility": "scheduled",
        "staging_depth": 4,
        "builder_lag": 3,
        "abort_rate": 0.2,
        "preempt_rate": 0.2,
        "discard_rate": 0.1,
        "budget_bytes": 2**20,
    }
    table = {
        cells[0]: cells[1]
        for cells in (
            [cell.strip() for cell in line.strip("│").split("│")] for line in result.stdout.splitlines() if "│" in line
        )
    }
    for name, value in (
        ("rows written", rows["written"]),
        ("rows handed out", rows["handed_out"]),
        ("rows served from hits", rows["from_hits"]),
        ("rows served from hits of the same step", rows["from_hits_of_the_same_step"]),
        ("aborts", rows["aborts"]),
        ("preemptions by choice", rows["preemptions_by_choice"]),
        ("steps discarded", rows["steps_discarded"]),
        ("rows verified", rows["verified"]),
        *((f"bytes copied, {kind}", rows["timing"]["bytes_copied"][kind]) for kind in ("freeze", "scatter", "gather")),
    ):
        assert value > 0, name
        assert table[name] == f"{value:,}"
    assert (rows["mismatches"], table["wrong rows"]) == (0, "0")
    assert {"freeze", "page", "deferred", "scatter", "gather", "copy_out"} <= set(rows["timing"]["bytes_copied"])
    for what, wait in rows["timing"]["waits"].items():
        assert table[f"waits for a {what}"] == f"{wait['count']:,} ({wait['seconds']:,.1f} s)"


def test_without_rows_a_summary_has_no_part_about_them(write_trace: WriteTrace, invoke: Invoke) -> None:
    """Whoever reads the block machine's figures finds them as they were."""
    result = invoke(write_trace(*sharing(3)), *COMMAND, "--json", "-")

    assert "rows" not in json.loads(result.stdout)
    assert replay([write_trace(*sharing(3))], ReplayOptions(trace_block_size=32)).rows is None


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--rows", "mm"], "--rows 'mm' is not of the form NAME:SHAPE[:DTYPE][:CLASS]"),
        (["--rows", "mm:4:double"], "'double' where a dtype or a class is expected"),
        (["--rows", "hidden:4:deferred"], "defers the hidden states"),
        (["--rows", "mm:4", "--rows", "mm:5"], "--rows names mm more than once"),
        ([each for n in range(65) for each in ("--rows", f"m{n}:1")], "--rows is given 65 times; 64"),
        (["--staging-depth", "5"], "--staging-depth needs rows: give --rows"),
        (["--builder-lag", "1"], "--builder-lag needs rows"),
        (["--abort-rate", "0"], "--abort-rate needs rows"),
        (["--preempt-rate", "0.1"], "--preempt-rate needs rows"),
        (["--discard-rate", "0.1"], "--discard-rate needs rows"),
        (["--visibility", "computed"], "--visibility needs rows"),
        (["--budget-bytes", "9"], "--budget-bytes needs rows"),
        (["--rows", "mm:4", "--staging-depth", "3", "--builder-lag", "3"], "lower --builder-lag below --staging-depth"),
        (["--rows", "mm:4", "--staging-depth", "1"], "is not in the range"),
        (["--rows", "mm:4", "--abort-rate", "1.5"], "is not in the range"),
        (["--rows", "mm:4", "--preempt-rate", "nan"], "nan is no number"),
        (["--rows", "mm:4", "--visibility", "later"], "'later' is not one of"),
        (["--rows", "mm:4", "--capacity", "unlimited"], "lower --capacity"),
        (["--rows", "mm:1", "--capacity", str(2**19), "--check"], "give it a --capacity of at most 262144"),
    ],
)
def test_wrong_options_are_refused(write_trace: WriteTrace, invoke: Invoke, arguments: list[str], message: str) -> None:
    result = invoke(write_trace(*sharing(3)), *arguments)

    assert (result.exit_code, result.stdout) == (2, "")
    assert message in " ".join(result.stderr.split())


def test_the_library_refuses_options_that_do_not_go_together(write_trace: WriteTrace) -> None:
    with pytest.raises(OptionError, match="more than once"):
        replay([write_trace(*sharing(3))], options(specs=(SPECS[0], SPECS[0])))


def test_a_wrong_row_is_reported_as_our_own_fault(write_trace: WriteTrace, invoke: Invoke, plant: Planted) -> None:
    plant(Late)

    result = invoke(write_trace(*sharing()), *COMMAND, "--rows", "codes:8:int32:deferred", "--check")

    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith("tenure: internal error, please report it: R02: request ")
