"""The scopes of the block machine: what is searched, how far, and what a search must have seen to prove anything."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias, cast

from tenure.core.blocks.sequence import RequestSequence
from tenure.core.config import BlockConfig
from tenure.model_checks.blocks.block_model import BlockModel
from tenure.model_checks.blocks.claims import CLAIMS
from tenure.model_checks.blocks.engine import Engine, Habits
from tenure.model_checks.blocks.expected_free import FREE_MARKS
from tenure.model_checks.blocks.expected_lawless import LAWLESS_MARKS
from tenure.model_checks.blocks.expected_stories import STORY_MARKS
from tenure.model_checks.blocks.lawless import Lawless, Licence
from tenure.model_checks.blocks.stories import STORIES, Story, given
from tenure.model_checks.blocks.worlds import World, request
from tenure.model_checks.model import NOTHING, Model, Scope, ScopeSet

__all__ = ["CLAIMS", "SCOPES"]

Make: TypeAlias = Callable[[], Model[object]]

PROTOCOL: Final = (
    "the engine keeps to the protocol: it computes what it has capacity for, authorizes what waits, shares what a "
    "lookup just found, and calls nothing that a lease's state forbids"
)
ANYTHING: Final = "nothing: every call may come at any time"


@dataclass(frozen=True, slots=True)
class Free:
    """A free scope in the making.

    Attributes:
        name: behind `blocks/`.
        capacity: blocks.
        sequences: what leases are opened over.
        plays: what the engine does, lawful or not.
        sets: the named sets.
        heavy: a guess of its states.
        config: what else the machine is built with.
    """

    name: str
    capacity: int
    sequences: Sequence[RequestSequence]
    plays: Habits | Licence
    sets: tuple[ScopeSet, ...]
    heavy: int = 1000
    config: Mapping[str, Any] = field(default_factory=dict[str, Any])

    def make(self) -> BlockModel:
        """The model, built anew."""
        config = BlockConfig(capacity=self.capacity, block_size=2, **{"kv_events": True, **self.config})
        world = World(config, self.sequences)
        if isinstance(self.plays, Licence):
            return BlockModel(world, Lawless(world, self.plays), lawless=True)
        return BlockModel(world, Engine(world, self.plays))

    def scope(self) -> Scope:
        """The scope."""
        return Scope(
            name=f"blocks/{self.name}",
            kind="free",
            sets=frozenset(self.sets),
            covers={**_shape(self.capacity, self.sequences), **_bounds(self.plays)},
            expects={**FREE_MARKS, **LAWLESS_MARKS}.get(self.name, NOTHING),
            make=cast("Make", self.make),
            assumes=ANYTHING if isinstance(self.plays, Licence) else PROTOCOL,
            heavy=self.heavy,
        )


def _shape(capacity: int, sequences: Sequence[RequestSequence]) -> dict[str, int | str]:
    return {
        "blocks": capacity,
        "slots per block": 2,
        "requests": len({each.request for each in sequences}),
        "prompt tokens": ", ".join(str(each.prompt_tokens) for each in sequences),
        "output tokens": ", ".join(str(each.max_output) for each in sequences),
    }


def _bounds(plays: Habits | Licence) -> dict[str, int | str]:
    bounds: dict[str, int | str] = {"transfer ids": len(plays.dependencies)}
    if isinstance(plays, Licence):
        return {**bounds, "arrivals of each request": "any number", "live reservations": plays.reservations}
    arrivals = "any number" if plays.arrivals is None else plays.arrivals
    return {
        **bounds,
        "arrivals of each request": arrivals,
        "live decode reservations": plays.decode_max if plays.decode else 0,
        "live snapshots": plays.stores,
    }


def _story(story: Story) -> Scope:
    calls = sum(map(len, story.actors.values()))
    return Scope(
        name=f"blocks/{story.name}",
        kind="scenario",
        sets=frozenset({"ci", "smoke"} if story.is_quick else {"ci"}),
        covers={**_shape(story.capacity, story.sequences), "actors": len(story.actors), "calls": calls},
        expects=STORY_MARKS.get(story.name, NOTHING),
        make=cast("Make", story.make),
        progress=True,
        source=story.source,
        assumes="every actor goes on as long as it can",
        heavy=500,
    )


_A, _B = request("A", [0, 0, 1], 1), request("B", [0, 0, 2], 1)
_SHORT: Final = request("B", [2, 2])
_QUICK: Final[tuple[ScopeSet, ...]] = ("smoke", "ci")
_CI: Final[tuple[ScopeSet, ...]] = ("ci",)
_DEEP: Final[tuple[ScopeSet, ...]] = ("deep",)

FREE: Final[tuple[Free, ...]] = (
    # --- One mechanism each, small enough for every push and for planted faults --------------------
    Free("two-requests", 2, [_A, _B], Habits(1, misses=True, singles=True, preempts=True), _QUICK),
    Free("one-hash", 2, [request("A", [7, 7]), request("B", [7, 7])], Habits(2, misses=True), _QUICK),
    Free(
        "three-copies",
        3,
        [request(each, [7, 7]) for each in "ABC"],
        Habits(1, misses=True, decode=(1,)),
        _QUICK,
    ),
    Free("one-chunk", 2, [request("A", [0, 0, 1, 1])], Habits(1, crumbs=True), _QUICK),
    Free("one-fence", 1, [request("A", [0, 0]), _SHORT], Habits(1, aborts=True, stores=1), _QUICK),
    Free(
        "one-destination",
        2,
        [_A, request("B", [0, 0])],
        Habits(1, singles=True, destinations=True, externals=True),
        _QUICK,
    ),
    Free(
        "output-transferred-again",
        3,
        [request("E", [0, 0, 1], 1)],
        Habits(singles=True, batches=True, preempts=True, aborts=True, destinations=True, externals=True),
        _QUICK,
    ),
    Free("one-batch", 3, [request("A", [0, 0, 1], 2), _B], Habits(1, batches=True), _QUICK),
    Free("one-reservation", 2, [request("A", [0, 0], 1)], Habits(2, singles=True, decode=(1, 2)), _QUICK),
    Free(
        "lawless-one-block", 1, [request("A", [0, 0], 1)], Licence(batches=True, destinations=True, decode=(1,)), _QUICK
    ),
    Free(
        "lawless-one-fence",
        1,
        [request("A", [0, 0])],
        Licence(fences=True, dependencies=(41, 42)),
        _QUICK,
        config={"snapshots_max": 2},
    ),
    Free(
        "lawless-mixed-caching",
        2,
        [given("A", 7), request("B", [0, 0], caching=False, given=[(7, None)])],
        Licence(),
        _QUICK,
    ),
    # --- Free engines ------------------------------------------------------------------------------
    Free(
        "prefixes",
        3,
        [_A, _B, request("C", [0, 0])],
        Habits(2, misses=True, singles=True, preempts=True),
        _CI,
        21000,
    ),
    Free(
        "chunks",
        4,
        [request("A", [0, 0, 1, 1], 1), _B],
        Habits(2, misses=True, singles=True, chunks=True, preempts=True),
        _CI,
        30000,
    ),
    Free(
        "duplicates",
        4,
        [request("A", [7, 7]), request("B", [7, 7]), request("C", [7, 7, 7, 7])],
        Habits(3, misses=True, preempts=True),
        _CI,
        50000,
    ),
    Free(
        "batches",
        4,
        [request("A", [0, 0, 1], 2), request("B", [0, 0, 1], 2)],
        Habits(3, misses=True, batches=True, preempts=True),
        _CI,
        17000,
    ),
    Free(
        "decode-reservations",
        4,
        [request("A", [0, 0], 2), request("B", [1, 1], 1)],
        Habits(2, singles=True, aborts=True, decode=(1, 2), decode_max=2),
        _CI,
        13000,
    ),
    Free(
        "destinations",
        4,
        [_A, request("B", [0, 0, 2, 2])],
        Habits(3, aborts=True, destinations=True, externals=True),
        _CI,
        9000,
    ),
    Free(
        "fences",
        4,
        [request("A", [0, 0, 1, 1]), _SHORT],
        Habits(3, aborts=True, stores=2, dependencies=(41, 42)),
        _CI,
        11000,
    ),
    Free(
        "fenced-reservations",
        3,
        [request("A", [0, 0, 1]), _SHORT],
        Habits(3, aborts=True, stores=1, destinations=True, decode=(1,)),
        _CI,
        17000,
    ),
    Free(
        "caching-off",
        3,
        [request("A", [0, 0, 1], 1, caching=False), request("B", [0, 0], 1, caching=False)],
        Habits(3, singles=True, aborts=True, stores=1),
        _CI,
        6000,
        {"prefix_caching": False},
    ),
    Free(
        "without-a-listener",
        3,
        [request("A", [0, 0, 1], 1, caching=False), request("B", [0, 0], 1, token_ids=True)],
        Habits(3, singles=True, batches=True, aborts=True, stores=1),
        _CI,
        7000,
        {"kv_events": False, "trace": True},
    ),
    # --- Engines that keep to nothing --------------------------------------------------------------
    Free("lawless-leases", 2, [_A, request("B", [0, 0], 1)], Licence(batches=True), _CI, 600),
    Free(
        "lawless-sequences",
        1,
        [request("A", [0], 3), request("B", [], 1), request("C", [0, 0, 0], block_size=3)],
        Licence(batches=True),
        _CI,
        1500,
    ),
    Free("lawless-destinations", 2, [_A, request("B", [0])], Licence(destinations=True), _CI, 200),
    Free("lawless-output-as-prompt", 2, [request("A", [0, 0], 2)], Licence(destinations=True), _CI, 300),
    Free("lawless-reservations", 2, [request("A", [0, 0], 1)], Licence(2, decode=(1, 2), destinations=True), _CI, 600),
    Free(
        "lawless-changed-prompt",
        2,
        [request("A", [0, 0, 1]), request("A", [5, 5, 5, 5])],
        Licence(destinations=True),
        _CI,
        500,
    ),
    Free(
        "lawless-fenced-destination",
        1,
        [request("A", [0, 0]), _SHORT],
        Licence(fences=True, destinations=True),
        _CI,
        500,
        {"snapshots_max": 1},
    ),
    Free(
        "lawless-growth-under-a-fence",
        2,
        [request("A", [0, 0]), request("B", [2, 2, 3])],
        Licence(fences=True),
        _CI,
        700,
        {"snapshots_max": 1},
    ),
    Free("lawless-fences", 1, [request("A", [0, 0]), _SHORT], Licence(fences=True), _CI, 200, {"snapshots_max": 1}),
    Free(
        "lawless-caching-off",
        1,
        [request("A", [0, 0], 1), request("B", [0, 0])],
        Licence(fences=True, destinations=True),
        _CI,
        200,
        {"prefix_caching": False, "snapshots_max": 1},
    ),
    Free(
        "lawless-stores-of-fenced-blocks",
        2,
        [request("A", [0, 0]), request("B", [2, 2, 3, 3])],
        Licence(fences=True),
        _CI,
        300,
        {"prefix_caching": False, "snapshots_max": 1},
    ),
    # --- For nights --------------------------------------------------------------------------------
    Free(
        "deep-prefixes",
        5,
        [_A, _B, request("C", [0, 0])],
        Habits(3, misses=True, chunks=True, singles=True, preempts=True),
        _DEEP,
        2 * 10**6,
    ),
    Free(
        "deep-everything",
        4,
        [request("A", [0, 0, 1], 2), _B],
        Habits(
            2,
            misses=True,
            singles=True,
            batches=True,
            preempts=True,
            aborts=True,
            decode=(1, 2),
            destinations=True,
            externals=True,
            stores=1,
            dependencies=(41, 42),
        ),
        _DEEP,
        5 * 10**6,
    ),
    Free(
        "deep-fences",
        5,
        [request("A", [0, 0, 1, 1]), _SHORT, request("C", [3, 3, 3, 3])],
        Habits(2, aborts=True, preempts=True, stores=2, dependencies=(41, 42, 43)),
        _DEEP,
        10**6,
    ),
    Free(
        "deep-lawless-fences",
        2,
        [request("A", [0, 0]), request("B", [0, 1])],
        Licence(fences=True, dependencies=(41, 42)),
        _DEEP,
        2000,
        {"snapshots_max": 1},
    ),
)

SCOPES: Final[tuple[Scope, ...]] = (*(each.scope() for each in FREE), *(_story(each) for each in STORIES))
"""Every scope of the block machine."""
