"""Walks at volume: bytes decoded to histories, judged by every rule and by the naive oracles.

`run_walks` walks by the million, `encode_events` makes bytes of a trace, `decode` a trace of bytes.
"""

from tenure.model_checks.walks.codes import NotOfferedError, Step, decode, encode_events, follow, steps
from tenure.model_checks.walks.machines import MACHINES, Machine, ModelMachine, OracleMachine
from tenure.model_checks.walks.runner import WalksResult, run_walks
from tenure.model_checks.walks.shortening import Fault, fault_of, shorten

__all__ = [
    "MACHINES",
    "Fault",
    "Machine",
    "ModelMachine",
    "NotOfferedError",
    "OracleMachine",
    "Step",
    "WalksResult",
    "decode",
    "encode_events",
    "fault_of",
    "follow",
    "run_walks",
    "shorten",
    "steps",
]
