"""The command line: `tenure` and its commands. What a command does stands in the package of its subject."""

from math import isnan
from pathlib import Path
from typing import Any, Final

import click
from click.core import ParameterSource

from tenure.check_cli import check_command, explain_command, mutants_command
from tenure.conform_cache_cli import conform_cache_command
from tenure.conform_cli import conform_command
from tenure.core.config import BLOCKS_MAX, U64_MAX
from tenure.replay.command import SAMPLE_DEFAULTS, run_command
from tenure.replay.errors import OptionError
from tenure.replay.options import BLOCK_SIZE_MAX, RUNNING_MAX, STEP_TOKENS_MAX, UNLIMITED, ReplayOptions
from tenure.replay.requests import TRACE_BLOCK_MAX
from tenure.replay.row_options import BUDGET_MAX, DEPTH_MAX, NAMES_MAX, PREEMPT_RATE_MAX, RowOptions
from tenure.replay.row_specs import FORM, RowSpec, parse_rows
from tenure.simulate_cli import simulate_command
from tenure.validate_cli import validate_command

ROW_OPTIONS: Final = (
    "staging_depth",
    "builder_lag",
    "abort_rate",
    "preempt_rate",
    "discard_rate",
    "visibility",
    "budget_bytes",
)
"""Options that mean nothing without rows."""


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


def row_spec(text: str | RowSpec) -> RowSpec:
    """One name with its rows."""
    if isinstance(text, RowSpec):
        return text
    try:
        return parse_rows(text)
    except OptionError as error:
        raise click.BadParameter(f"{error}.") from None


def row_options(ctx: click.Context, specs: tuple[RowSpec, ...], choices: dict[str, Any]) -> RowOptions | None:
    """What is said about rows, taken out of all choices; None if none are to be carried."""
    given = [name for name in ROW_OPTIONS if ctx.get_parameter_source(name) is not ParameterSource.DEFAULT]
    chosen = {name: choices.pop(name) for name in ROW_OPTIONS}
    if specs:
        if len(specs) > NAMES_MAX:
            raise click.UsageError(f"--rows is given {len(specs)} times; {NAMES_MAX} names are the most.")
        return RowOptions(specs=specs, **chosen)
    if given:
        raise click.UsageError(f"--{given[0].replace('_', '-')} needs rows: give --rows {FORM} at least once.")
    return None


class Rate(click.FloatRange):
    """A number in a range; what is no number is in none."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The number that a text says."""
        number = super().convert(value, param, ctx)
        if isnan(number):
            self.fail(f"{value} is no number.", param, ctx)
        return number


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
    "--rows",
    "row_specs",
    type=row_spec,
    multiple=True,
    metavar=FORM,
    help="Carry rows of this name, too, and hand them to a builder thread; may be given repeatedly. 'hidden' names the "
    "hidden states. SHAPE is 2048, or 3x2; DTYPE float32 (if not said), float16, bfloat16, int32, int64, uint8 or "
    "bool; CLASS immediate (if not said) or deferred.",
)
@click.option(
    "--staging-depth",
    type=click.IntRange(2, DEPTH_MAX),
    metavar="N",
    default=4,
    show_default=True,
    help="With --rows: staging pages, each for one step.",
)
@click.option(
    "--builder-lag",
    type=click.IntRange(0, DEPTH_MAX),
    metavar="N",
    default=1,
    show_default=True,
    help="With --rows: steps that the builder is late at most; fewer than pages. A draw decides for each step.",
)
@click.option(
    "--visibility",
    type=click.Choice(["computed", "scheduled"]),
    default="computed",
    show_default=True,
    help="With --rows: when a block can be hit: once its rows are saved, or, by others in the same step, once they are "
    "scheduled.",
)
@click.option(
    "--abort-rate",
    type=Rate(0, 1),
    metavar="P",
    default=0.0,
    show_default=True,
    help="With --rows: abort this share of the requests, each after a drawn number of steps.",
)
@click.option(
    "--preempt-rate",
    type=Rate(0, PREEMPT_RATE_MAX),
    metavar="P",
    default=0.0,
    show_default=True,
    help="With --rows: begin a step, with this probability, by preempting a drawn request; half of the steps at most.",
)
@click.option(
    "--discard-rate",
    type=Rate(0, 1),
    metavar="P",
    default=0.0,
    show_default=True,
    help="With --rows: let the builder discard a step, with this probability, instead of materializing it.",
)
@click.option(
    "--budget-bytes",
    type=click.IntRange(1, BUDGET_MAX),
    metavar="N",
    default=2**30,
    show_default=True,
    help="With --rows: device bytes that copies of rows may take; deferred rows hold theirs until their request ends.",
)
@click.option(
    "--check",
    is_flag=True,
    help="Check every rule after every transition, and the KV events against what is visible. Compares whole states: "
    "for small caches and short traces. With --rows: compare every row that comes back, bit for bit, follow every KV "
    "event, and hold the whole state against every rule after as many steps as a cache of that size can afford, and "
    "at the end.",
)
@click.option(
    "--check-every",
    type=click.IntRange(1),
    metavar="N",
    help="As --check, with a look at the whole state after every Nth transition, or with --rows after every Nth step.",
)
@click.option("--skip-bad", is_flag=True, help="Count requests that cannot be replayed, and go on without them.")
@click.option("--no-progress", is_flag=True, help="Show no progress bar.")
@click.pass_context
def replay_command(
    ctx: click.Context,
    /,
    traces: tuple[Path, ...],
    json_path: Path | None,
    row_specs: tuple[RowSpec, ...],
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

    With --rows the requests run over the joined cache, which also keeps a row per token and name. A row is made up
    from all tokens up to its own, so that --check knows every row that must come back: those of a step, and those that
    a prefix hit brings, whoever was aborted or preempted meanwhile.

    \b
    Examples:
      tenure replay --sample --check
      tenure replay --capacity unlimited --max-running 1 --block-size 512 trace.jsonl
      tenure replay --rows hidden:64 --rows codes:8:int32:deferred --check --builder-lag 3 --limit 50 trace.jsonl
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
    rows = row_options(ctx, row_specs, choices)
    options = ReplayOptions(check=check or check_every is not None, check_every=check_every, rows=rows, **choices)
    ctx.exit(run_command(traces, options, json_path, sample=sample, show_progress=not no_progress))


for _command in (
    check_command,
    explain_command,
    mutants_command,
    simulate_command,
    conform_command,
    conform_cache_command,
    validate_command,
):
    main.add_command(_command)
