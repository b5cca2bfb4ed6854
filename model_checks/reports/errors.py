"""What is missing where a report needs more than Tenure itself does."""

from dataclasses import dataclass
from importlib import import_module
from typing import Any, ClassVar

from tenure.core.errors.base import ContractError, Scope


@dataclass(eq=False)
class MissingExtraError(ContractError):
    """A library of the extra `check` is not installed."""

    scope: ClassVar[Scope] = Scope.REQUEST
    library: str
    purpose: str

    def sentence(self) -> str:
        """The message."""
        return f"{self.purpose} needs {self.library}, which is not installed: pip install 'tenure[check]'"


def needed(module: str, purpose: str) -> Any:
    """A module of the extra `check`.

    Raises:
        MissingExtraError: it is not installed.
    """
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        raise MissingExtraError(module.partition(".")[0], purpose) from error
