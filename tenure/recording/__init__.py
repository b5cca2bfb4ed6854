"""Recorded runs: what a row machine was told and what it answered, as a file of one JSON line each."""

from tenure.recording.errors import RecordError
from tenure.recording.lines import (
    KINDS,
    Closed,
    Gap,
    Header,
    Line,
    Refused,
    Unlogged,
    closed_line,
    gap_line,
    header_line,
    read_line,
    refused_line,
)
from tenure.recording.recorder import Recorder, RecordStatus, Target

__all__ = [
    "KINDS",
    "Closed",
    "Gap",
    "Header",
    "Line",
    "RecordError",
    "RecordStatus",
    "Recorder",
    "Refused",
    "Target",
    "Unlogged",
    "closed_line",
    "gap_line",
    "header_line",
    "read_line",
    "refused_line",
]
