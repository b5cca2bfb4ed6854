"""What can be wrong with a record that its caller can put right."""

from dataclasses import dataclass
from typing import ClassVar

from tenure.core.errors import ContractError, Scope


@dataclass(eq=False)
class RecordError(ContractError):
    """A file that cannot be written as a record, or read as one."""

    scope: ClassVar[Scope] = Scope.CACHE
    path: str
    problem: str
    advice: str

    def sentence(self) -> str:
        """Which file, what is wrong, what to do."""
        return f"{self.path}: {self.problem}; {self.advice}"
