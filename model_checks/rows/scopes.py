"""The scopes of the row machine: what each covers, and what it must have seen."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from tenure.core.config import RowConfig
from tenure.core.rows.names import HIDDEN
from tenure.model_checks.marks import goals_among
from tenure.model_checks.model import NOTHING, Marks, Model, Scope, ScopeSet
from tenure.model_checks.rows.breaking import BreakingModel
from tenure.model_checks.rows.environment import Bounds
from tenure.model_checks.rows.expected_ends import END_MARKS
from tenure.model_checks.rows.expected_free import FREE_MARKS
from tenure.model_checks.rows.expected_overtaken import AFTER_SHUTDOWN, OVERTAKEN_MARKS
from tenure.model_checks.rows.expected_rows import ROW_MARKS
from tenure.model_checks.rows.histories_ends import PAGES_AND_ENDS
from tenure.model_checks.rows.histories_overtaken import OVERTAKEN
from tenure.model_checks.rows.histories_rows import HITS_AND_WRITES
from tenure.model_checks.rows.model import RowsModel
from tenure.model_checks.rows.plans import Script
from tenure.model_checks.rows.programs import Free
from tenure.model_checks.rows.scripts import ALL, AT_ONCE_BEGUN, arrive, ends, last, step

HONEST: Final = (
    "a hit of step N names only slots that saves up to and including N's own computed, for the hit's own token chain"
)
LYING: Final = "nothing of hits: some name slots that hold something else, or nothing"

H, C, M = HIDDEN, "c", "m"

HISTORIES: Final = MappingProxyType({**HITS_AND_WRITES, **PAGES_AND_ENDS, **OVERTAKEN})
"""Every scenario by name."""

EXPECTED: Final = MappingProxyType({**ROW_MARKS, **END_MARKS, **OVERTAKEN_MARKS, **FREE_MARKS})

SMOKE: Final[frozenset[ScopeSet]] = frozenset({"smoke", "ci", "deep"})
CI: Final[frozenset[ScopeSet]] = frozenset({"ci", "deep"})
DEEP: Final[frozenset[ScopeSet]] = frozenset({"deep"})


SMOKE_HISTORIES: Final = (
    "same-step-hit",
    "delayed-read",
    "running-read-is-dropped",
    "scatters-in-order",
    "builder-lag",
    "step-given-up",
    "hidden-not-emitted",
    "reset-with-a-step",
)
"""Small histories that are explored on every occasion."""
WITH_PROGRESS: Final = (
    "asked-for-ever",
    "running-read-is-dropped",
    "waits-again",
    "builder-lag",
    "reset-with-a-step",
    "failed-read",
)
"""Histories whose searches are also held against R11: what a device was given ends, and who waits goes on."""


class Bound(NamedTuple):
    """A free scope.

    Attributes:
        chains: per request the nodes of its tokens.
        machine: arguments of the machine's configuration.
        program: arguments of the program.
        model: arguments of the model; a device tells at any time that it took a copy, unless they say otherwise.
    """

    chains: Mapping[str, tuple[int, ...]]
    machine: Mapping[str, Any]
    program: Mapping[str, Any]
    model: Mapping[str, Any] = MappingProxyType({})
    sets: frozenset[ScopeSet] = CI
    heavy: int = 50_000

    def make(self, expects: Marks = NOTHING) -> RowsModel:
        """The model, built anew; it looks out for the goals that are expected, or for all."""
        config = RowConfig(page_rows_max=8, **self.machine)
        program = Free(self.chains, config.num_blocks, block_size=config.block_size, **self.program)
        more: dict[str, Any] = {"begins_apart": True, **self.model}
        return RowsModel(config, program, goals=goals_among(expects), **more)


def _machine(blocks: int, pages: int = 2, budget: int = 1000, block_size: int = 1) -> dict[str, Any]:
    return {"num_blocks": blocks, "block_size": block_size, "pages": pages, "budget_bytes": budget}


PAIR: Final[dict[str, tuple[int, ...]]] = {"a": (1, 2), "b": (1, 3)}
"""Two requests that share their first token."""

FREE: Final[Mapping[str, Bound]] = MappingProxyType(
    {
        "two-steps-hidden": Bound(PAIR, _machine(2), {"steps": 2}, heavy=9_000),
        "three-steps-hidden": Bound(PAIR, _machine(2), {"steps": 3}, heavy=34_000),
        "two-steps-deferred": Bound(
            PAIR, _machine(2), {"steps": 2, "emits": ((C,),), "discards": False}, AT_ONCE_BEGUN, heavy=30_000
        ),
        "two-steps-mixed": Bound(
            PAIR, _machine(2), {"steps": 2, "emits": ((H,), (C,)), "consumers": ("at once",)}, heavy=20_000
        ),
        "aborted-and-preempted": Bound(
            PAIR,
            _machine(2),
            {"steps": 2, "emits": ((C,),), "kinds": ("abort", "preempt", "pause"), "consumers": ("at once",)},
            heavy=20_000,
        ),
        "two-steps-given-up": Bound(
            PAIR, _machine(2), {"steps": 2, "emits": ((H,),), "may_drop": True, "is_named": True}, heavy=10_000
        ),
        "whole-blocks": Bound(
            {"a": (1, 2, 3), "b": (1, 2, 4)}, _machine(2, block_size=2), {"steps": 2, "emits": ((H,),)}, heavy=5_000
        ),
        "row-by-row": Bound(
            {"a": (1, 2, 3), "b": (1, 2, 4)},
            _machine(3, block_size=2),
            {"steps": 2, "kinds": ()},
            {"in_pieces": True},
            heavy=20_000,
        ),
        "three-requests": Bound(
            PAIR | {"x": (4,)},
            _machine(3, pages=3),
            {"steps": 3, "emits": ((H, C), (H,), (C,)), "kinds": ("finish", "abort", "preempt", "pause")},
            {"tells_copied": True, "bounds": Bounds(abandons=1)},
            DEEP,
            10_000_000,
        ),
        "four-steps": Bound(
            PAIR,
            _machine(3, pages=3, budget=3),
            {"steps": 4, "emits": ((H, C), (C,)), "kinds": ("finish", "abort")},
            {"bounds": Bounds(failures=1, resets=1)},
            DEEP,
            10_000_000,
        ),
    }
)
"""Every free scope by name."""


BREAKING: Final[Mapping[str, Bounds]] = MappingProxyType(
    {"protocol-breaking": Bounds(resets=1), "protocol-breaking-and-shutdown": Bounds(shutdowns=1)}
)
"""Scopes of an engine that keeps to no protocol, by name."""


BREAKING_STEPS: Final = (
    step(arrive("a"), rows="a:0:1", emits=(C,), to=[ALL, "discard"], dropped=None),
    step(*ends("a"), arrive("b", 1, 0), rows="b:1:2", to=[ALL, "discard"]),
    last(*ends("b")),
)
"""What it does beside its mistakes."""


def _breaking(bounds: Bounds) -> BreakingModel:
    return BreakingModel(_breaking_config(), Script(BREAKING_STEPS), bounds=bounds, is_honest=False, copying=False)


def _breaking_config() -> RowConfig:
    return RowConfig(page_rows_max=8, **_machine(2))


def _covers(config: RowConfig, requests: int, names: int, steps: int, more: Mapping[str, Any]) -> dict[str, int | str]:
    bounds: Bounds = more.get("bounds", Bounds())
    return {
        "blocks": config.num_blocks,
        "slots per block": config.block_size,
        "requests": requests,
        "names": names,
        "pages": config.pages,
        "steps": steps,
        "failures": bounds.failures,
        "resets": bounds.resets,
        "abandoned materialize calls": bounds.abandons,
        "shutdowns": bounds.shutdowns,
        "rows moved": "one at a time" if more.get("in_pieces") else "a command at a time",
        "copies begin": "when a device tells" if more.get("begins_apart", True) else "when they run",
    }


def _history_scope(name: str) -> Scope:
    history = HISTORIES[name]
    steps = [each for each in history.steps if each.rows]
    requests = {row.request for each in steps for row in each.rows}
    names = {emitted for each in steps for emitted in each.emits}
    config = history.config
    return Scope(
        name=f"rows/{name}",
        kind="scenario",
        sets=SMOKE if name in SMOKE_HISTORIES else CI,
        covers=_covers(config, len(requests), len(names), len(steps), history.more),
        expects=_expects(name),
        make=_maker(lambda: history.model(_expects(name))),
        progress=name in WITH_PROGRESS,
        source=history.source,
        assumes=HONEST if history.more.get("is_honest", True) else LYING,
        heavy=history.heavy,
    )


def _free_scope(name: str) -> Scope:
    bound = FREE[name]
    config = RowConfig(page_rows_max=8, **bound.machine)
    names = {emitted for emits in bound.program.get("emits", ((H,),)) for emitted in emits}
    return Scope(
        name=f"rows/{name}",
        kind="free",
        sets=bound.sets,
        covers=_covers(config, len(bound.chains), len(names), bound.program["steps"], bound.model),
        expects=_expects(name),
        make=_maker(lambda: bound.make(_expects(name))),
        assumes=HONEST,
        heavy=bound.heavy,
    )


def _maker(make: Callable[[], RowsModel]) -> Callable[[], Model[Any]]:
    return make


def _expects(name: str) -> Marks:
    return EXPECTED.get(name, NOTHING)


def _breaking_scope(name: str) -> Scope:
    bounds = BREAKING[name]
    return Scope(
        name=f"rows/{name}",
        kind="free",
        sets=CI,
        covers=_covers(_breaking_config(), 2, 2, 2, {"bounds": bounds}) | {"calls": "every call in every state"},
        expects=_expects(name) | (AFTER_SHUTDOWN if bounds.shutdowns else NOTHING),
        make=_maker(lambda: _breaking(bounds)),
        assumes=LYING,
        heavy=20_000,
    )


SCOPES: Final[tuple[Scope, ...]] = (
    *map(_history_scope, HISTORIES),
    *map(_free_scope, FREE),
    *map(_breaking_scope, BREAKING),
)
"""Every scope of the row machine."""

CLAIMS: Final[Marks] = frozenset(mark for scope in SCOPES if "ci" in scope.sets for mark in scope.expects)
"""What all scopes of `ci` together must see."""
