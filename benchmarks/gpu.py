"""A row cache on a GPU: what a step costs the engine's thread, how fast rows get to the host, what runs beside what.

The peer of every copy is a plain one of the same bytes into page-locked memory, in the same run. The forward pass is a
kernel that does nothing for a while; a builder on its own thread takes every step. Without a GPU this says so and ends.
"""

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from queue import SimpleQueue
from statistics import median
from threading import Thread
from typing import Any, NamedTuple

import numpy as np
from rich.console import Console
from rich.table import Table

from tenure import Extended, NumpyBlockTable, OutputCache, RowConfig, RowPolicy, Started
from tenure.backends.device import Lane, Memory, Rows

BLOCK_SIZE = 16
NUM_SLOTS = 240_000
PAGE_ROWS = 16_384
WIDTH = 2048
STEPS = 60
WARM = 10
KERNEL_CYCLES = 5_000_000
"""A forward pass of some milliseconds."""
NAMES = {"h": ("h",), "h2i": ("h", "i0", "i1"), "h1i1d": ("h", "i0", "d0")}
PATIENCE_S = 60.0


class Stepped(NamedTuple):
    """Microseconds of the engine's thread in the cache, of a whole step of engine and builder, and of its kernel."""

    engine_us: float
    step_us: float
    kernel_us: float


class Copied(NamedTuple):
    """Gigabytes a second."""

    tenure: float
    plain: float


def steps(
    device: Any, output: Any, forward: Callable[[], Any], requests: int, tokens: int, names: tuple[str, ...]
) -> tuple[float, float]:
    """Microseconds a step: of the engine's thread in the cache, and from step to step."""
    blocks = -(-tokens * (STEPS + WARM) // BLOCK_SIZE) if tokens < BLOCK_SIZE else tokens // BLOCK_SIZE
    config = RowConfig(
        num_blocks=NUM_SLOTS // BLOCK_SIZE, block_size=BLOCK_SIZE, page_rows_max=PAGE_ROWS, budget_bytes=2**32
    )
    table = NumpyBlockTable(config, requests, blocks)
    policy = RowPolicy(deferred=frozenset({"d0"}), immediate=frozenset({"i0", "i1"}), infer=False)
    cache = OutputCache(config, policy, device=device, block_table=table)
    everybody = tuple(f"request-{number}" for number in range(requests))
    saved: SimpleQueue[int | None] = SimpleQueue()

    def build() -> None:
        while (step := saved.get()) is not None:
            cache.materialize(step, everybody)

    builder = Thread(target=build, name="builder")
    builder.start()
    counts = np.full(requests, tokens, dtype=np.int64)
    mine: list[float] = []
    whole: list[float] = []
    try:
        cache.new_step_starts([Started(request, 0) for request in everybody])
        for number, request in enumerate(everybody):
            table.add(request, range(number * blocks, (number + 1) * blocks))
        mm = {name: output for name in names if name != "h"}
        for _ in range(STEPS + WARM):
            began = time.perf_counter()
            cache.new_step_starts([Extended(everybody, counts)])
            started = time.perf_counter()
            forward()
            asked = time.perf_counter()
            saved.put(cache.save_outputs(output, mm, num_tokens_unpadded=requests * tokens))
            ended = time.perf_counter()
            mine.append(started - began + ended - asked)
            whole.append(ended - began)
    finally:
        saved.put(None)
        builder.join()
        cache.shutdown()
    return median(mine[WARM:]) * 1e6, median(whole[WARM:]) * 1e6


def measure_steps(requests: int, tokens: int, names: str) -> Stepped:
    """Steps on the current GPU."""
    import torch

    from tenure.backends.cuda import CudaDevice, engine

    output = torch.zeros(requests * tokens, WIDTH, dtype=torch.bfloat16, device="cuda")

    def forward() -> None:
        engine.long_kernel(KERNEL_CYCLES)

    began = engine.timed_mark()
    forward()
    over = engine.timed_mark()
    over.synchronize()
    mine, whole = steps(CudaDevice(), output, forward, requests, tokens, NAMES[names])
    return Stepped(mine, whole, began.elapsed_time(over) * 1e3)


def bandwidth(mib: int, *, by_index: bool) -> Copied:
    """A copy of so many MiB on the lane COPY from asking to its event, and a plain one on a stream of its own."""
    from tenure.backends.cuda import CudaDevice, engine

    rows = mib * 2**20 // (2 * WIDTH)
    device = CudaDevice()
    source, page = (
        device.allocate(memory, rows, (WIDTH,), "bfloat16") for memory in (Memory.DEVICE, Memory.PAGE_LOCKED)
    )
    index = np.random.default_rng(0).permutation(rows).astype(np.int64)
    stream = engine.make_stream()

    def ours() -> None:
        if by_index:
            device.gather_rows(Lane.COPY, Rows(page, 0, rows), source, index)
        else:
            device.copy(Lane.COPY, Rows(page, 0, rows), Rows(source, 0, rows))
        assert device.synchronize(device.record(Lane.COPY), PATIENCE_S)

    def plain() -> None:
        with engine.on_stream(stream):
            page.tensor.copy_(source.tensor, non_blocking=True)
        stream.synchronize()

    gigabytes = mib * 2**20 / 1e9
    found = Copied(gigabytes / timed(ours), gigabytes / timed(plain))
    device.close(PATIENCE_S)
    return found


def timed(once: Callable[[], None]) -> float:
    """Seconds, the median."""
    times: list[float] = []
    for _ in range(15):
        began = time.perf_counter()
        once()
        times.append(time.perf_counter() - began)
    return median(times[3:])


def overlap(mib: int) -> tuple[float, float, float]:
    """Milliseconds on the GPU's timeline since a long kernel began: the copy's beginning, its end, the kernel's end."""
    from tenure.backends.cuda import CudaDevice, engine

    rows = mib * 2**20 // (2 * WIDTH)
    device = CudaDevice()
    source, page = (
        device.allocate(memory, rows, (WIDTH,), "bfloat16") for memory in (Memory.DEVICE, Memory.PAGE_LOCKED)
    )
    copying: Any = device._copying  # pyright: ignore[reportPrivateUsage]
    for lane in (Lane.COMPUTE, Lane.COPY):
        assert device.synchronize(device.record(lane), PATIENCE_S)
    frozen = device.record(Lane.COMPUTE)
    began = engine.timed_mark()
    engine.long_kernel(20 * KERNEL_CYCLES)
    over = engine.timed_mark()
    device.wait(Lane.COPY, frozen, is_needed=True)
    first = engine.timed_mark(copying)
    device.copy(Lane.COPY, Rows(page, 0, rows), Rows(source, 0, rows))
    assert device.synchronize(device.record(Lane.COPY), PATIENCE_S)
    last = engine.timed_mark(copying)
    for mark in (over, last):
        mark.synchronize()
    device.close(PATIENCE_S)
    return began.elapsed_time(first), began.elapsed_time(last), began.elapsed_time(over)


def environment() -> str:
    """The GPU, its driver, torch."""
    import torch

    from tenure.backends.cuda import engine

    build: Any = torch.version
    driver = subprocess.run(
        ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"],  # noqa: S607
        capture_output=True,
        text=True,
        check=False,
    ).stdout.split("\n")[0]
    runtime = f"CUDA {build.cuda}" if build.cuda else f"ROCm {build.hip}"
    return f"{engine.gpu_name()}, driver {driver or 'unknown'}, torch {torch.__version__}, {runtime}"


def measure(only: str) -> tuple[Table, dict[str, Any]]:
    """All of it, as a table and as figures."""
    table = Table(title=environment(), title_justify="left")
    for column in ("what", "found", "beside"):
        table.add_column(column, justify="left" if column == "what" else "right")
    figures: dict[str, Any] = {"environment": environment()}
    for kind, loads in {"decode": ((64, 1), (256, 1)), "prefill": ((8, 128), (8, 512))}.items():
        for requests, tokens in loads:
            for names in NAMES:
                what = f"{kind}_{requests * tokens}_{names}"
                if only in what:
                    step = measure_steps(requests, tokens, names)
                    figures[what] = step._asdict()
                    beside = f"step {step.step_us:,.0f} µs, its kernel {step.kernel_us:,.0f} µs"
                    table.add_row(what, f"engine {step.engine_us:,.0f} µs", beside)
    for mib in (1, 16, 256):
        for by_index in (False, True):
            what = f"{'rows by index' if by_index else 'rows'}_{mib}_MiB"
            if only in what:
                copied = bandwidth(mib, by_index=by_index)
                figures[what] = copied._asdict()
                table.add_row(what, f"{copied.tenure:,.1f} GB/s", f"plain copy {copied.plain:,.1f} GB/s")
    if only in "overlap":
        first, last, over = overlap(256)
        figures["overlap"] = {"copy_began_ms": first, "copy_ended_ms": last, "kernel_ended_ms": over}
        verdict = "beside" if last < over else "BEHIND"
        table.add_row("overlap", f"copy {first:,.2f} to {last:,.2f} ms", f"kernel to {over:,.2f} ms: {verdict}")
    return table, figures


def main() -> None:
    """Measure, show a table, write JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures as JSON")
    parser.add_argument("--only", default="", metavar="TEXT", help="only what has it in its name")
    arguments = parser.parse_args()
    try:
        from tenure.backends.cuda import api, engine
    except ImportError:
        print("no torch here: nothing was measured")
        sys.exit(0)
    if not engine.num_gpus():
        print(f"{api.NO_GPU}: nothing was measured")
        sys.exit(0)
    table, figures = measure(arguments.only)
    Console().print(table)
    if arguments.json is not None:
        arguments.json.write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
