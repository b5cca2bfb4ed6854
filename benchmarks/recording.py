"""What recording costs the engine: a decode step with a record beside one without, turn by turn in the same run.

The writer is a thread of the same process, so on one core it also takes its time from the steps: `all` is the whole
time of the steps until every line is written, `calls` what the engine's calls take.
"""

import argparse
import time
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

import numpy as np

from tenure import Extended, NumpyBlockTable, OutputCache, RowConfig, RowPolicy, Started

BLOCK_SIZE = 16
BLOCKS_EACH = 8
WIDTH = 2048


def steps(requests: int, count: int, record: Path | None) -> tuple[float, float, int]:
    """Microseconds of one step's calls (median), and of one step in all (mean); bytes of the record."""
    config = RowConfig(num_blocks=requests * BLOCKS_EACH, block_size=BLOCK_SIZE, page_rows_max=requests)
    table = NumpyBlockTable(config, requests, BLOCKS_EACH)
    names = tuple(f"request-{number}" for number in range(requests))
    rows = np.zeros((requests, WIDTH), dtype=np.float16)
    ones = np.ones(requests, dtype=np.int64)
    times: list[float] = []
    policy = RowPolicy(immediate=frozenset({"i"}))
    began = time.perf_counter()
    with OutputCache(config, policy, block_table=table, record=record) as cache:
        cache.new_step_starts([Started(name, 0) for name in names])
        for number, name in enumerate(names):
            table.add(name, range(number * BLOCKS_EACH, (number + 1) * BLOCKS_EACH))
        for _ in range(count):
            start = time.perf_counter()
            cache.new_step_starts([Extended(names, ones)])
            cache.materialize(cache.save_outputs(rows, {"i": rows}), names)
            times.append(time.perf_counter() - start)
    whole = (time.perf_counter() - began) / count
    return median(times) * 1e6, whole * 1e6, record.stat().st_size if record else 0


def main() -> None:
    """One table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    print(f"{'requests':>8} {'us a step':>10} {'recorded':>10} {'calls':>7} {'all':>7} {'bytes a step':>13}")
    for requests in (1, 64, 256):
        with TemporaryDirectory() as folder:
            plain: list[tuple[float, float, int]] = []
            with_record: list[tuple[float, float, int]] = []
            for _ in range(options.rounds):
                plain.append(steps(requests, options.steps, None))
                with_record.append(steps(requests, options.steps, Path(folder) / "run.ndjson"))
        calls, whole = (min(each[place] for each in plain) for place in (0, 1))
        calls_recorded, whole_recorded = (min(each[place] for each in with_record) for place in (0, 1))
        size = with_record[0][2] // options.steps
        ratios = f"{calls_recorded / calls:>7.2f} {whole_recorded / whole:>7.2f}"
        print(f"{requests:>8} {calls:>10.0f} {calls_recorded:>10.0f} {ratios} {size:>13,}")


if __name__ == "__main__":
    main()
