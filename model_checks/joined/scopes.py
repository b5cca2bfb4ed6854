"""The scopes of the joined cache: what each covers, and what it must have seen."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final, Literal, NamedTuple

from tenure.core.config import BlockConfig, CacheConfig, RowConfig
from tenure.core.rows.names import HIDDEN
from tenure.model_checks.joined.block_calls import BlockCallsJoin
from tenure.model_checks.joined.breaking import BreakingJoin
from tenure.model_checks.joined.claims import CLAIMS
from tenure.model_checks.joined.expects import EXPECTS
from tenure.model_checks.joined.model import JoinedModel, Kept, Left, Request
from tenure.model_checks.model import NOTHING, Model, Scope, ScopeSet
from tenure.model_checks.rows.environment import Bounds

__all__ = ["BOUNDS", "CLAIMS", "SCOPES"]

SMOKE: Final[frozenset[ScopeSet]] = frozenset({"smoke", "ci", "deep"})
CI: Final[frozenset[ScopeSet]] = frozenset({"ci", "deep"})
DEEP: Final[frozenset[ScopeSet]] = frozenset({"deep"})

SIZE: Final = 2
"""Tokens a block: the least that the block machine takes."""
ASSUMES: Final = "the scheduler shares no more than `servable_prefix_blocks` says; hits are then honest by the rules"

Visibility = Literal["computed", "scheduled"]

PAIR: Final = {"a": Request((1, 1, 1), (1, 2, 3)), "b": Request((1, 1, 2), (1, 2, 4))}
"""Two requests that share their first block."""
STRANGERS: Final = {
    "a": Request((1, 1, 1), (1, 2, 3), hashes=(77,)),
    "b": Request((5, 5, 2), (7, 8, 9), "red", hashes=(77,)),
}
"""Two requests of different isolation groups whose first blocks have one hash by chance."""
ADAPTED: Final = {
    "a": Request((1, 1, 1), (1, 2, 3), hashes=(77,)),
    "b": Request((1, 1, 1), (4, 5, 6), hashes=(77,), adapter="french"),
}
"""Two requests of equal tokens with different adapters, whose first blocks have one hash by chance."""
SHORT_STRANGERS: Final = {
    "a": Request((1, 1), (1, 2), hashes=(77,)),
    "b": Request((5, 5), (7, 8), "red", hashes=(77,)),
}


class Bound(NamedTuple):
    """A scope of the joined cache."""

    visibility: Visibility
    requests: Mapping[str, Request]
    left: Left
    blocks: int = 4
    pages: int = 2
    budget: int = 1000
    emits: tuple[str, ...] = (HIDDEN,)
    bounds: Bounds = Bounds()
    kv_events: bool = True
    trace: bool = False
    discards: bool = True
    in_chunks: bool = False
    in_turn: bool = False
    keeps: Kept = "all"
    breaks: bool = False
    acts: frozenset[str] = frozenset()
    tells_copied: bool = False
    sets: frozenset[ScopeSet] = CI
    heavy: int = 20_000

    def make(self) -> JoinedModel:
        """The model, built anew."""
        config = CacheConfig(
            blocks=BlockConfig(capacity=self.blocks, block_size=SIZE, kv_events=self.kv_events, trace=self.trace),
            rows=RowConfig(
                num_blocks=self.blocks,
                block_size=SIZE,
                page_rows_max=8,
                pages=self.pages,
                budget_bytes=self.budget,
            ),
            visibility=self.visibility,
        )
        make = BreakingJoin if self.breaks else BlockCallsJoin if self.acts else JoinedModel
        return make(
            config,
            dict(self.requests),
            self.left,
            emits=self.emits,
            bounds=self.bounds,
            discards=self.discards,
            in_chunks=self.in_chunks,
            in_turn=self.in_turn,
            keeps=self.keeps,
            acts=self.acts,
            tells_copied=self.tells_copied,
            # A state that keeps the difference to the one before it could be changed by a call that is refused.
            copying=not self.breaks,
        )


BOUNDS: Final[Mapping[str, Bound]] = MappingProxyType(
    {
        "one-request-twice": Bound("computed", {"a": PAIR["a"]}, Left(2, (2,)), 2, heavy=2_000),
        "two-requests-computed": Bound("computed", PAIR, Left(2, (1, 1)), 3),
        "two-requests-scheduled": Bound("scheduled", PAIR, Left(2, (1, 1)), 3),
        "deferred-rows-scheduled": Bound(
            "scheduled", PAIR, Left(1, (1, 1)), 3, emits=(HIDDEN, "c"), discards=False, heavy=30_000
        ),
        "three-blocks-under-pressure": Bound(
            "computed", {"a": PAIR["a"], "x": Request((9, 9), (11, 12))}, Left(2, (1, 1)), 2, sets=SMOKE
        ),
        "steps-given-up": Bound("scheduled", PAIR, Left(1, (1, 1), 0, 1), 3, discards=False),
        "hits-given-up": Bound(
            "scheduled",
            PAIR | {"c": Request((1, 1, 3), (1, 2, 5))},
            Left(1, (1, 1, 1), 0, 1),
            4,
            keeps="hits",
            discards=False,
            in_turn=True,
            heavy=1_300,
        ),
        "preempted": Bound("computed", {"a": PAIR["a"]}, Left(2, (2,), 1), 2, discards=False),
        "colliding-hashes": Bound("computed", STRANGERS, Left(2, (1, 1)), 4),
        "colliding-hashes-scheduled": Bound("scheduled", STRANGERS, Left(1, (1, 1)), 4, heavy=5_000),
        "adapters": Bound("scheduled", ADAPTED, Left(1, (1, 1)), 4, keeps="hits", discards=False, heavy=2_000),
        "in-chunks": Bound(
            "computed", {"a": PAIR["a"]}, Left(3, (1,), 0, 1), 2, discards=False, in_chunks=True, heavy=5_000
        ),
        "whole-prompt": Bound(
            "computed", {"a": Request((1, 1), (1, 2)), "b": Request((1, 1), (1, 2))}, Left(2, (1, 1)), 2, heavy=5_000
        ),
        "reset": Bound("computed", {"a": PAIR["a"]}, Left(2, (2,)), 2, bounds=Bounds(1, 1), heavy=5000),
        "protocol-breaking": Bound(
            "computed", {"a": PAIR["a"]}, Left(2, (2,), 1), 2, keeps="none", breaks=True, in_chunks=True
        ),
        "protocol-breaking-scheduled": Bound(
            "scheduled", SHORT_STRANGERS, Left(1, (1, 1)), 2, keeps="none", breaks=True
        ),
        "rows-set-aside": Bound(
            "computed",
            {"a": PAIR["a"], "x": Request((9, 9, 9), (11, 12, 13))},
            Left(3, (2, 1)),
            2,
            3,
            keeps="hits",
            discards=False,
            heavy=5_000,
        ),
        "generated-and-shared": Bound(
            "computed",
            {"a": Request((1,), (1, 2), generates=1), "b": PAIR["a"]},
            Left(3, (1, 1), 0, 0, 1),
            2,
            keeps="hits",
            discards=False,
            acts=frozenset({"generate", "grow"}),
        ),
        "reserved": Bound(
            "computed",
            {"a": Request((1, 1), (1, 2, 3), generates=1)},
            Left(2, (1,), 0, 0, 2),
            2,
            keeps="none",
            acts=frozenset({"generate", "grow", "grow from reserve", "reserve", "release"}),
            trace=True,
        ),
        "stored-elsewhere": Bound(
            "computed",
            {"a": Request((1, 1), (1, 2)), "x": Request((9, 9), (11, 12))},
            Left(2, (1, 1), 0, 0, 1),
            1,
            keeps="none",
            acts=frozenset({"snapshot", "discard the snapshot", "attach", "satisfy", "authorize", "ask again"}),
        ),
        "abandoned": Bound(
            "computed", {"a": PAIR["a"]}, Left(2, (2,)), 2, bounds=Bounds(abandons=1), keeps="hits", tells_copied=True
        ),
        "shut-down": Bound(
            "computed", {"a": PAIR["a"]}, Left(2, (2,)), 2, bounds=Bounds(shutdowns=1), keeps="hits", discards=False
        ),
        "three-requests-computed": Bound(
            "computed",
            PAIR | {"x": Request((9, 9, 9), (11, 12, 13))},
            Left(3, (2, 1, 1), 1, 1),
            4,
            emits=(HIDDEN, "c"),
            sets=DEEP,
            heavy=10_000_000,
        ),
        "three-requests-scheduled": Bound(
            "scheduled",
            PAIR | {"x": Request((1, 1, 2, 2, 5), (1, 2, 4, 5, 6))},
            Left(3, (2, 1, 1), 1, 1),
            4,
            emits=(HIDDEN, "c"),
            bounds=Bounds(failures=1),
            sets=DEEP,
            heavy=10_000_000,
        ),
    }
)
"""Every scope by name."""


def _scope(name: str) -> Scope:
    bound = BOUNDS[name]
    return Scope(
        name=f"joined/{name}",
        kind="free",
        sets=bound.sets,
        covers={
            "visibility": bound.visibility,
            "blocks": bound.blocks,
            "slots per block": SIZE,
            "requests": len(bound.requests),
            "arrivals": sum(bound.left.arrivals),
            "names": len(bound.emits),
            "pages": bound.pages,
            "steps": bound.left.steps,
            "preemptions": bound.left.preemptions,
            "tokens generated, reservations and snapshots": bound.left.others,
            "steps given up": bound.left.drops,
            "failures": bound.bounds.failures,
            "resets": bound.bounds.resets,
            "abandoned materialize calls": bound.bounds.abandons,
            "shutdowns": bound.bounds.shutdowns,
            "calls": _calls(bound),
        },
        expects=EXPECTS.get(name, NOTHING),
        make=_maker(bound.make),
        assumes=ASSUMES,
        heavy=bound.heavy,
    )


def _calls(bound: Bound) -> str:
    if bound.breaks:
        return "every call in every state"
    return "a scheduler's that serves requests in turn" if bound.in_turn else "a scheduler's"


def _maker(make: Callable[[], JoinedModel]) -> Callable[[], Model[Any]]:
    return make


SCOPES: Final[tuple[Scope, ...]] = tuple(map(_scope, BOUNDS))
"""Every scope of the joined cache."""
