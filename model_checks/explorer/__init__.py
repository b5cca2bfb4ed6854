"""The search: breadth first over any model, with verdicts that can be trusted.

Write a `tenure.model_checks.model.Model` of a machine of your own, then `explore(model)`: every state that can be
reached, and the shortest way to whatever is broken. `check_scope` makes a verdict of it; `run_scopes` does so for many.
"""

from tenure.model_checks.explorer.errors import CheckpointError, ModelError, RefusedError, WorkerDiedError
from tenure.model_checks.explorer.fleet import run_scopes
from tenure.model_checks.explorer.graph import Graph
from tenure.model_checks.explorer.junit import junit_text
from tenure.model_checks.explorer.limits import Checkpoint, Limits
from tenure.model_checks.explorer.liveness import check_progress
from tenure.model_checks.explorer.replays import find_shortest, labelled, replay
from tenure.model_checks.explorer.results import (
    Counterexample,
    EventCount,
    MarkSeen,
    ProgressFound,
    ScopeResult,
    Search,
    SetResult,
    Snapshot,
)
from tenure.model_checks.explorer.scopes import Options, check_scope, check_set
from tenure.model_checks.explorer.screen import ProgressLine, closing_block, verdict_line
from tenure.model_checks.explorer.search import explore
from tenure.model_checks.explorer.verdicts import Verdict, worst

__all__ = [
    "CheckpointError",
    "Checkpoint",
    "Counterexample",
    "EventCount",
    "Graph",
    "Limits",
    "MarkSeen",
    "ModelError",
    "Options",
    "ProgressFound",
    "ProgressLine",
    "RefusedError",
    "ScopeResult",
    "Search",
    "SetResult",
    "Snapshot",
    "Verdict",
    "WorkerDiedError",
    "check_progress",
    "check_scope",
    "check_set",
    "closing_block",
    "explore",
    "find_shortest",
    "junit_text",
    "labelled",
    "replay",
    "run_scopes",
    "verdict_line",
    "worst",
]
