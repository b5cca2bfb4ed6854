"""Faults of the row machine."""

from typing import Final

from tenure.model_checks.mutants.rows_cases import CASES
from tenure.model_checks.mutants.rows_designs import DESIGNS
from tenure.model_checks.mutants.rows_slips import SLIPS

ROW_MUTANTS: Final = (*DESIGNS, *CASES, *SLIPS)
"""Every fault of the row machine."""
