"""The scopes whose edges the traces take: small, and together with everything that a machine can be told."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

from tenure.core.config import RowConfig
from tenure.model_checks.rows.environment import Bounds
from tenure.model_checks.rows.plans import Program, Script, StepPlan
from tenure.model_checks.rows.programs import Free
from tenure.model_checks.rows.scopes import BREAKING, BREAKING_STEPS, HISTORIES, PAIR
from tenure.model_checks.rows.scripts import ALL, C, H, M, arrive, ends, goes_on, last, step
from tenure.model_checks.traces.graph import AnswersModel, StrayingModel


class Traced(NamedTuple):
    """A machine and what may happen to it.

    Attributes:
        tells_copied: builders may let the page go before they return.
        strays: it is also told what nobody may tell it.
    """

    config: RowConfig
    program: Program
    bounds: Bounds = Bounds()
    tells_copied: bool = False
    strays: bool = False

    @property
    def has_failures(self) -> bool:
        """Whether commands may end badly."""
        return bool(self.bounds.failures)

    def model(self) -> AnswersModel:
        """Built anew."""
        make = StrayingModel if self.strays else AnswersModel
        return make(self.config, self.program, self.bounds, tells_copied=self.tells_copied)


def traced_history(name: str) -> Traced:
    """A history of the row machine's own scopes."""
    history = HISTORIES[name]
    bounds = history.more.get("bounds", Bounds())
    program = Script(history.steps, history.resume)
    return Traced(history.config, program, bounds, bool(history.more.get("tells_copied")))


def traced_scope(name: str) -> Traced:
    """A history of the row machine's own scopes, one of `PINNED`, or an engine that keeps to no protocol."""
    if name in HISTORIES:
        return traced_history(name)
    if name in PINNED:
        return PINNED[name]()
    return Traced(_config(), Script(BREAKING_STEPS), BREAKING[name], strays=True)


def _config(blocks: int = 2, budget: int = 1000) -> RowConfig:
    return RowConfig(num_blocks=blocks, block_size=1, page_rows_max=8, pages=2, budget_bytes=budget)


ONE_STEP: Final[tuple[StepPlan, ...]] = (
    step(arrive("a"), rows="a:0:1", emits=(H, C), to=[ALL]),
    last(*ends("a")),
)
"""A step with an immediate and a deferred name, materialized."""


HIT_BEHIND_A_RESET: Final[tuple[StepPlan, ...]] = (
    step(arrive("a"), rows="a:0:1"),
    last(*ends("a")),
    step(arrive("b", 1, 0), rows="b:1:2", to=[ALL, "discard"]),
    last(*ends("b")),
)
"""A hit of what a reset may have forgotten: then it cannot be read."""
TIGHT_BUDGET: Final[tuple[StepPlan, ...]] = (
    step(arrive("a"), rows="a:0:1", emits=(H, C)),
    step(goes_on("a"), rows="a:1:2", emits=(H, C)),
    step(goes_on("a"), rows="a:2:3", emits=(H, C)),
    last(*ends("a")),
)
"""Clones of immediate and deferred rows; the third step is over the budget."""
LOOKS_ABSENT: Final[tuple[StepPlan, ...]] = (
    step(arrive("a"), rows="a:0:1", emits=(C,)),
    last(*ends("a")),
    step(arrive("b", 1, 0, nodes=(1,)), rows="b:1:2", emits=(C,), to=[ALL]),
    step(arrive("x"), rows="x:0:3", emits=(M,)),
    step(*ends("x"), arrive("d"), rows="d:0:4", emits=(C,)),
    last(*ends("b", "d")),
)
"""A hit in the pool, whose slot is computed without its name, and then with it."""
NAMED_NO_MORE: Final[tuple[StepPlan, ...]] = (
    step(arrive("a"), rows="a:0:1", computes=((0, 1),)),
    step(*ends("a"), arrive("b"), rows="b:0:2"),
    step(arrive("c", 1, 0, nodes=(1,), named=True), rows="c:1:3", to=[ALL, "discard"]),
    last(*ends("b", "c")),
)
"""A block that said what it holds is computed anew, and says nothing."""
PINNED: Final[Mapping[str, Callable[[], Traced]]] = MappingProxyType(
    {
        "hit-behind-a-reset": lambda: Traced(_config(), Script(HIT_BEHIND_A_RESET, 2), Bounds(resets=1)),
        "tight-budget": lambda: Traced(_config(3, budget=3), Script(TIGHT_BUDGET)),
        "hit-that-looks-absent": lambda: Traced(_config(), Script(LOOKS_ABSENT)),
        "named-no-more": lambda: Traced(_config(), Script(NAMED_NO_MORE)),
    }
)
"""Scopes of faults that show in nothing that a machine says where their rules are broken."""
PINNED_ELSEWHERE: Final[Mapping[str, str]] = MappingProxyType(
    {
        "a16-reset-keeps-claims": "hit-behind-a-reset",
        "ticket-let-go-twice": "tight-budget",
        "page-holder-forgotten": "reset-behind-a-write",
        "w04-preserves-what-looks-committed": "hit-that-looks-absent",
        "identity-outlives-its-block": "named-no-more",
    }
)
"""By fault."""


def _once(*, strays: bool = False, **bounds: int) -> Traced:
    return Traced(_config(), Script(ONE_STEP), Bounds(**bounds), tells_copied=True, strays=strays)


def _two_steps() -> Traced:
    return Traced(_config(), Free(PAIR, 2, steps=2, discards=False))


def _maker(name: str) -> Callable[[], Traced]:
    return lambda: traced_history(name)


SMOKE: Final[Mapping[str, Callable[[], Traced]]] = MappingProxyType(
    {
        "two-steps": _two_steps,
        "one-step-abandoned": lambda: _once(abandons=1),
        "one-step-reset": lambda: _once(resets=1),
        "one-step-shut-down": lambda: _once(shutdowns=1),
        "one-step-strays": lambda: _once(strays=True),
        "one-step-failing": lambda: _once(failures=1),
        **{
            name: _maker(name)
            for name in (
                "same-step-hit",
                "delayed-read",
                "running-read-is-dropped",
                "scatters-in-order",
                "consumed-in-part",
                "hidden-not-emitted",
                "name-not-emitted",
                "rewritten-by-its-own-write",
                "step-given-up",
            )
        },
    }
)
"""By name."""
