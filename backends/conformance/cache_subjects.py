"""Caches under test that are told events of the row machine: what every one can, and an object in this process."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, TypeAlias

from tenure.backends.conformance.rig import CheckFailedError
from tenure.core.config import RowConfig, RowPolicy
from tenure.core.errors import TenureError
from tenure.core.rows.answers import RowAnswer
from tenure.core.rows.commands import RowCommand
from tenure.core.rows.events import RowEvent

MachineMaker: TypeAlias = Callable[[Mapping[str, Any]], Any]


class Reply(NamedTuple):
    """What a machine says to an event.

    Attributes:
        answer: None if it refuses.
        refused: the name of the error's class; empty if it does not refuse.
        commands: in order.
    """

    answer: RowAnswer | None
    refused: str
    commands: tuple[RowCommand, ...]


class MachineSubject(Protocol):
    """One cache after the other."""

    def begin(self, config: RowConfig, policy: RowPolicy) -> None:
        """A new cache, whose policy is registered; the one before is over."""
        ...

    def tell(self, event: RowEvent) -> Reply:
        """Let an event happen."""
        ...

    def close(self) -> None:
        """No more."""
        ...


class ObjectMachine:
    """An object with `tell(event)`, which returns answer and commands, or raises a `TenureError`."""

    def __init__(self, make: MachineMaker, seed: int) -> None:
        """`make` makes one of options: `config`, `policy`, `seed`."""
        self._make, self._seed = make, seed
        self._machine: Any = None

    def begin(self, config: RowConfig, policy: RowPolicy) -> None:
        """A new one is made."""
        self._machine = self._make({"config": config, "policy": policy, "seed": self._seed})
        if self._machine is None:
            raise CheckFailedError("the maker gave no cache")

    def tell(self, event: RowEvent) -> Reply:
        """Ask it.

        Raises:
            CheckFailedError: it raises what is no refusal.
        """
        try:
            answer, commands = self._machine.tell(event)
        except TenureError as error:
            return Reply(None, type(error).__name__, ())
        except Exception as error:
            raise CheckFailedError(f"it raised {type(error).__name__}: {error}") from None
        return Reply(answer, "", tuple(commands))

    def close(self) -> None:
        """Nothing is left to do."""
        self._machine = None


def shown(commands: Sequence[RowCommand]) -> str:
    """Commands in a few words."""
    return ", ".join(f"{type(each).__name__} {each.command}" for each in commands) or "nothing"
