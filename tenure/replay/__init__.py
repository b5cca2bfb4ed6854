"""Replays recorded traces over the block machine, or over the joined cache: `tenure replay`, also as a function."""

from tenure.replay.errors import OptionError, OutputError, ReplayError, TraceError
from tenure.replay.options import ReplayOptions
from tenure.replay.row_options import RowOptions
from tenure.replay.row_specs import RowSpec, parse_rows
from tenure.replay.run import replay
from tenure.replay.summary import Summary

__all__ = [
    "OptionError",
    "OutputError",
    "ReplayError",
    "ReplayOptions",
    "RowOptions",
    "RowSpec",
    "Summary",
    "TraceError",
    "parse_rows",
    "replay",
]
