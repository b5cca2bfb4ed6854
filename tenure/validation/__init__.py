"""Whether a recorded run is a run of the core."""

from tenure.validation.report import Fault, Report, Verdict
from tenure.validation.runs import STATES_MAX, validate

__all__ = ["STATES_MAX", "Fault", "Report", "Verdict", "validate"]
