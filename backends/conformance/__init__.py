"""The kit that anybody runs on a device of their own: whether it keeps the duties of the port.

`check_device` is a function and needs no test runner; `tenure conform` is the command around it, and
`tenure.backends.conformance.testing` a class for pytest.
"""

from tenure.backends.capabilities import Capability, claims
from tenure.backends.conformance.bench import Bench, Options
from tenure.backends.conformance.registry import CHECKS, Check
from tenure.backends.conformance.report import REVISION, Report, Result, Verdict
from tenure.backends.conformance.runner import Maker, UnknownCheckError, check_device, selected

__all__ = [
    "Bench",
    "CHECKS",
    "Capability",
    "Check",
    "Maker",
    "Options",
    "REVISION",
    "Report",
    "Result",
    "UnknownCheckError",
    "Verdict",
    "check_device",
    "claims",
    "selected",
]
