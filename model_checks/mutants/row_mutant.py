"""What faults of the row machine have in common."""

from typing import Final

from tenure.model_checks.mutants.mutant import Mutant

CORE: Final = "tenure.core.rows."


def row_mutant(
    name: str, module: str, old: str, new: str, scope: str, rule: str, what: str, source: str = ""
) -> Mutant:
    """A fault of one module of the row machine, in one of its scopes."""
    return Mutant(name, CORE + module, old, new, f"rows/{scope}", rule, what, source)
