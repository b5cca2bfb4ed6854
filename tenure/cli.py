"""The command line: `tenure` and its commands. What a command does stands in the package of its subject."""

from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from tenure.core.config import BLOCKS_MAX, U64_MAX
from tenure.replay.command import SAMPLE_DEFAULTS, run_command
from tenure.replay.options import BLOCK_SIZE_MAX, RUNNING_MAX, STEP_TOKENS_MAX, UNLIMITED, ReplayOptions
from tenure.replay.requests import TRACE_BLOCK_MAX


def capacity(text: str | int) -> int:
    """A number of blocks, or `unlimited`."""
    if text == "unlimited":
        return UNLIMITED
    try:
        blocks = int(text)
    except ValueError:
        raise click.BadParameter(f"{text!r} is neither a number of blocks nor 'unlimited'.") from None
    if not 1 <= blocks <= BLOCKS_MAX:
        raise click.BadParameter(f"{blocks} is not in the range 1<=x<={BLOCKS_MAX}.")
    return blocks


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(package_name="tenure", message="tenure %(version)s")
def main() -> None:
    """Tenure: a formally checked cache core for LLM serving engines."""


@main.command("replay", short_help="Replay recorded request traces over the block machine.")
@click.argument("traces", metavar="TRACE...", nargs=-1, type=click.Path(path_type=Path))
@click.option("--sample", is_flag=True, help="Replay the sample that comes with Tenure, over a small cache.")
@click.option(
    "--capacity", type=capacity, metavar="N|unlimited", default=16384, show_default=True, help="Blocks in the cache."
)
@click.option(
    "--block-size",
    type=click.IntRange(2, BLOCK_SIZE_MAX),
    metavar="N",
    default=16,
    show_default=True,
    help="Tokens per block; divides the block that a trace counts in.",
)
@click.option(
    "--trace-block-size",
    type=click.IntRange(1, TRACE_BLOCK_MAX),
    metavar="N",
    default=512,
    show_default=True,
    help="Tokens per hash id of a Mooncake trace.",
)
@click.option("--limit", type=click.IntRange(1), metavar="N", help="Stop admitting after N requests.")
@click.option(
    "--seed",
    type=click.IntRange(0, U64_MAX),
    metavar="N",
    default=0,
    show_default=True,
    help="Decides the tokens, which traces do not tell.",
)
@click.option(
    "--max-running",
    type=click.IntRange(1, RUNNING_MAX),
    metavar="N",
    default=64,
    show_default=True,
    help="Requests running at the same time.",
)
@click.option(
    "--max-batched-tokens",
    type=click.IntRange(1, STEP_TOKENS_MAX),
    metavar="N",
    default=8192,
    show_default=True,
    help="Tokens computed in one step; longer prompts are computed in chunks.",
)
@click.option(
    "--json",
    "json_path",
    type=click.Path(path_type=Path),
    metavar="FILE|-",
    help="Write the summary as JSON; '-' writes it instead of the table.",
)
@click.option(
    "--events",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Write every KV event, one JSON object a line.",
)
@click.option("--event-token-ids", is_flag=True, help="Let stored events carry the tokens of their blocks.")
@click.option(
    "--check",
    is_flag=True,
    help="Check every rule after every transition, and the KV events against what is visible. Compares whole states: "
    "for small caches and short traces.",
)
@click.option(
    "--check-every",
    type=click.IntRange(1),
    metavar="N",
    help="As --check, after every Nth transition; for larger ones.",
)
@click.option("--skip-bad", is_flag=True, help="Count requests that cannot be replayed, and go on without them.")
@click.option("--no-progress", is_flag=True, help="Show no progress bar.")
@click.pass_context
def replay_command(
    ctx: click.Context,
    /,
    traces: tuple[Path, ...],
    json_path: Path | None,
    check_every: int | None,
    *,
    sample: bool,
    no_progress: bool,
    check: bool,
    **choices: Any,
) -> None:
    """Replay recorded request traces over the block machine, and sum up what the cache did.

    TRACE is a file in the Mooncake format (one JSON object a line: input_length, output_length, hash_ids), or in the
    agentic one (one JSON object: block_size, requests with t, in, out, hash_ids, and those of sub-agents nested in
    them); its content tells which. Several traces are replayed one after the other, as one stream of requests. Hash
    ids count within their file.

    Requests are served as fast as possible, in the order of their lines (Mooncake) or of their times (agentic), by a
    continuous-batching scheduler with chunked prefill and preemption. Nothing is computed: tokens are made up from the
    hash ids. The same input and options give the same output, times apart.

    \b
    Examples:
      tenure replay --sample --check
      tenure replay --capacity unlimited --max-running 1 --block-size 512 trace.jsonl
      tenure replay --json - --events events.ndjson --limit 500 trace.jsonl session.json

    \b
    Exit status:
      0    the replay is complete
      1    a rule is broken: a fault of Tenure
      2    an option, a trace or an output file is unusable; the message says which and where
      130  interrupted (Ctrl-C); the summary tells of what was done so far
      141  nobody reads the output any more
    """  # noqa: D301 - click takes the \b as it is
    if sample == bool(traces):
        raise click.UsageError("Give at least one TRACE, or --sample, not both.")
    if sample:
        defaults = SAMPLE_DEFAULTS.items()
        choices |= {k: v for k, v in defaults if ctx.get_parameter_source(k) is ParameterSource.DEFAULT}
    options = ReplayOptions(check=check or check_every is not None, check_every=check_every or 1, **choices)
    ctx.exit(run_command(traces, options, json_path, sample=sample, show_progress=not no_progress))
