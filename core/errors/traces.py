"""Errors about traces: lines of text that stand for events, answers and commands."""

from dataclasses import dataclass
from typing import ClassVar

from tenure.core.errors.base import ContractError, Scope


@dataclass(eq=False)
class TraceFormatError(ContractError):
    """A line that is no trace line, or a value that none can stand for."""

    scope: ClassVar[Scope] = Scope.CACHE
    line: str
    expected: str

    def sentence(self) -> str:
        shown = repr(self.line if len(self.line) <= 200 else self.line[:200] + "...")
        return f"trace line {shown}: {self.expected}"
