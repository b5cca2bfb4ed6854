"""Replays recorded traces over the block machine: `tenure replay`, and the same as a function."""

from tenure.replay.errors import OptionError, OutputError, ReplayError, TraceError
from tenure.replay.options import ReplayOptions
from tenure.replay.run import replay
from tenure.replay.summary import Summary

__all__ = ["OptionError", "OutputError", "ReplayError", "ReplayOptions", "Summary", "TraceError", "replay"]
