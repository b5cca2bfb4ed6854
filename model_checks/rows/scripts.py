"""How histories with fixed calls are written. Blocks of one slot; nodes of the token tree are small numbers."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from tenure.core.config import RowConfig
from tenure.core.rows.names import HIDDEN
from tenure.model_checks.marks import goals_among
from tenure.model_checks.model import NOTHING, Event, Marks
from tenure.model_checks.rows.environment import Bounds
from tenure.model_checks.rows.model import RowsModel
from tenure.model_checks.rows.plans import AT_ONCE, Change, Script, StepPlan, Token
from tenure.model_checks.rows.stage import State

H, M, C, D = HIDDEN, "m", "c", "d"
AT_ONCE_BEGUN: Final[Mapping[str, Any]] = MappingProxyType({"begins_apart": False})
"""A device tells that it took a copy when it runs it: for histories that have too many states otherwise."""
ALL: Final = object()
"""A step is materialized for all of its requests."""


class FailsAt(RowsModel):
    """A device of which only commands with one kind of label fail.

    Attributes:
        fails_at: what the labels begin with.
    """

    fails_at = ""

    def events(self, state: State) -> list[Event]:
        """As any device's, without other failures."""
        found = super().events(state)
        return [each for each in found if each[1] != "fail" or str(each[3]).startswith(self.fails_at)]


class History(NamedTuple):
    """A scenario.

    Attributes:
        source: the case, defect or wrong reading it is.
        steps: what the engine does.
        blocks, pages, budget: of the machine; a row has one byte.
        more: further arguments of the model; a device tells at any time that it took a copy, unless they say otherwise.
        resume: the step from which the engine goes on after a reset.
        heavy: about how many states it has.
        fails_at: how the commands are labelled that may fail; all of them, if it is empty.
    """

    source: str
    steps: tuple[StepPlan, ...]
    blocks: int = 4
    pages: int = 3
    budget: int = 1000
    more: Mapping[str, Any] = MappingProxyType({})
    resume: int | None = None
    heavy: int = 5000
    fails_at: str = ""

    @property
    def config(self) -> RowConfig:
        """The machine's; where builders lag, as few pages as it takes for that."""
        lag = self.more.get("lag", 1)
        for pages in [self.pages] if lag == 1 else range(2, 9):
            try:
                return RowConfig(
                    num_blocks=self.blocks,
                    block_size=1,
                    page_rows_max=8,
                    pages=pages,
                    budget_bytes=self.budget,
                    builder_lag_max=lag,
                )
            except ValueError:
                continue
        msg = f"no depth of the staging pool is enough for builders that lag by {lag}"
        raise ValueError(msg)

    def model(self, expects: Marks = NOTHING) -> RowsModel:
        """The model, built anew; it looks out for the goals that are expected, or for all."""
        more: dict[str, Any] = {"begins_apart": True, **self.more}
        model = FailsAt if self.fails_at else RowsModel
        made = model(self.config, Script(self.steps, self.resume), goals=goals_among(expects), **more)
        if isinstance(made, FailsAt):
            made.fails_at = self.fails_at
        return made


def arrive(request: str, tokens: int = 1, *hit: int, nodes: tuple[int, ...] = (), named: bool = False) -> Change:
    """A request arrives, with a hit on these blocks."""
    return Change("start", request, tokens, hit, nodes, named)


def goes_on(request: str, tokens: int = 1) -> Change:
    """A live request computes more."""
    return Change("go on", request, tokens)


def comes_back(request: str, tokens: int = 1, *hit: int) -> Change:
    """A preempted request computes anew, or goes on behind blocks that it hits."""
    return Change("resume", request, tokens, hit)


def ends(*requests: str) -> tuple[Change, ...]:
    """Requests finish."""
    return tuple(Change("finish", request) for request in requests)


def aborts(request: str) -> Change:
    """A request is aborted."""
    return Change("abort", request)


def step(
    *changes: Change,
    rows: str,
    emits: tuple[str, ...] = (H,),
    to: Sequence[Any] = (AT_ONCE,),
    computes: tuple[tuple[int, int], ...] = (),
    dropped: bool | None = False,
) -> StepPlan:
    """A step; `rows` are `request:slot:node`, and `to` says what may be done with it: `ALL` or ids, "discard"."""
    tokens = tuple(_token(each) for each in rows.split())
    batch = tuple(dict.fromkeys(token.request for token in tokens))
    consumers: tuple[str | tuple[str, ...], ...] = tuple(batch if choice is ALL else choice for choice in to)
    return StepPlan(changes, tokens, emits, computes, consumers, dropped)


def _token(text: str) -> Token:
    request, slot, node = text.split(":")
    return Token(request, int(slot), int(node))


def last(*changes: Change) -> StepPlan:
    """A start without tokens."""
    return StepPlan(changes)


def faults(failures: int = 0, resets: int = 0, abandons: int = 0, shutdowns: int = 0, **more: Any) -> Mapping[str, Any]:
    """How often something may go wrong."""
    return MappingProxyType({"bounds": Bounds(failures, resets, abandons, shutdowns), **more})
