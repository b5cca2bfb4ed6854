"""Models with bounds that no search could exhaust: more requests, blocks and steps than any scope.

A model keeps what it worked out once, so a walk of many thousand events has to begin with a new one now and then.
"""

from collections.abc import Mapping
from hashlib import blake2b
from types import MappingProxyType
from typing import Final, Literal

from tenure.core.config import BlockConfig, CacheConfig, RowConfig
from tenure.core.rows.names import HIDDEN
from tenure.model_checks.blocks.block_model import BlockModel
from tenure.model_checks.blocks.engine import Engine, Habits
from tenure.model_checks.blocks.lawless import Lawless, Licence
from tenure.model_checks.blocks.worlds import World, request
from tenure.model_checks.joined.model import JoinedModel, Left, Request
from tenure.model_checks.rows.environment import Bounds
from tenure.model_checks.rows.model import RowsModel
from tenure.model_checks.rows.plans import EngineState, Option, StepPlan
from tenure.model_checks.rows.programs import Free

OPTIONS_MAX: Final = 6
"""Steps that a free engine chooses among; the model tries each in every state."""


class Thinned:
    """A program that offers few of the steps that another one would: which, depends on where the engine stands."""

    def __init__(self, program: Free, most: int = OPTIONS_MAX) -> None:
        self._program, self._most = program, most
        self._known: dict[EngineState, tuple[Option, ...]] = {}

    def first(self) -> EngineState:
        """As the other's."""
        return self._program.first()

    def options(self, state: EngineState) -> tuple[Option, ...]:
        """Some of the other's options, spread over all of them."""
        found = self._known.get(state)
        if found is None:
            found = self._program.options(state)
            if len(found) > self._most:
                offset = int.from_bytes(blake2b(repr(state).encode(), digest_size=4).digest())
                found = tuple(
                    found[(offset + place * len(found)) // self._most % len(found)] for place in range(self._most)
                )
            self._known[state] = found
        return found

    def forget(self, state: EngineState) -> EngineState:
        """As the other's."""
        return self._program.forget(state)

    def lose(self, state: EngineState, plan: StepPlan) -> EngineState:
        """As the other's."""
        return self._program.lose(state, plan)


FAULTS: Final = Bounds(failures=1, resets=1, abandons=2)


_CHAINS: Final = {"a": (1, 2, 3), "b": (1, 2, 4), "x": (1, 5)}
"""Requests that share their first tokens."""
_KINDS: Final = ("finish", "abort", "preempt")


def rows() -> RowsModel:
    """Three requests that come again and again to three blocks, four names, a tight byte budget."""
    config = RowConfig(num_blocks=3, block_size=1, page_rows_max=8, pages=3, budget_bytes=6)
    emits = ((HIDDEN, "c"), ("m", "c", "d"), (HIDDEN,))
    program = Free(_CHAINS, 3, steps=8, arrivals=3, emits=emits, kinds=_KINDS)
    return RowsModel(config, Thinned(program), bounds=Bounds(abandons=1), tells_copied=True)


def rows_faults() -> RowsModel:
    """The same in five blocks that are named, with faults and steps given up."""
    config = RowConfig(num_blocks=5, block_size=1, page_rows_max=8, pages=3, budget_bytes=6)
    emits = ((HIDDEN, "c"), ("m", "c", "d"))
    program = Free(_CHAINS, 5, steps=8, arrivals=3, emits=emits, kinds=_KINDS, may_drop=True, is_named=True)
    return RowsModel(config, Thinned(program), bounds=FAULTS, tells_copied=True)


def rows_in_pieces() -> RowsModel:
    """Whole blocks, rows moved one at a time, a device that tells everything late."""
    config = RowConfig(num_blocks=4, block_size=2, page_rows_max=8, pages=2, budget_bytes=1000)
    program = Free(
        {"a": (1, 2, 3, 4), "b": (1, 2, 3, 5)}, 4, block_size=2, steps=6, arrivals=3, emits=((HIDDEN, "m", "c"),)
    )
    return RowsModel(config, Thinned(program, 4), bounds=Bounds(failures=1), in_pieces=True, begins_apart=True)


_JOINED: Final[Mapping[str, Request]] = MappingProxyType(
    {
        "a": Request((1, 1, 1, 1, 2), (1, 2, 3, 4, 5)),
        "b": Request((1, 1, 1, 1, 3), (1, 2, 3, 4, 6)),
        "c": Request((1, 1, 2), (1, 2, 7)),
        "x": Request((9, 9, 9), (11, 12, 13)),
        "y": Request((5, 5, 2), (21, 22, 23), "red", hashes=(77,)),
    }
)


def _joined(visibility: Literal["computed", "scheduled"]) -> JoinedModel:
    """Five requests that share prefixes in six blocks."""
    rows = RowConfig(num_blocks=6, block_size=2, page_rows_max=16, pages=3, budget_bytes=12)
    blocks = BlockConfig(capacity=6, block_size=2, kv_events=True)
    config = CacheConfig(blocks=blocks, rows=rows, visibility=visibility)
    left = Left(8, (2,) * len(_JOINED), 3, 2)
    return JoinedModel(config, dict(_JOINED), left, emits=(HIDDEN, "c"), bounds=FAULTS, tells_copied=True)


def joined_computed() -> JoinedModel:
    """The joined cache where blocks become visible when they are computed."""
    return _joined("computed")


def joined_scheduled() -> JoinedModel:
    """The joined cache where blocks become visible when a step is scheduled."""
    return _joined("scheduled")


_CROWD: Final = [
    request("A", [0, 0, 1], 3),
    request("B", [0, 0, 2, 2], 2),
    request("C", [0, 0, 2, 2, 3], 2),
    request("D", [7, 7], 4, token_ids=True),
    request("E", [7, 7, 8], 1, group="red"),
]
"""Requests of different lengths that share prefixes."""


def blocks() -> BlockModel:
    """Five requests in ten blocks, all that an engine, its stores and its transfers do."""
    world = World(BlockConfig(capacity=10, block_size=2, kv_events=True, trace=True), _CROWD)
    habits = Habits(
        arrivals=None,
        misses=True,
        chunks=True,
        singles=True,
        batches=True,
        preempts=True,
        aborts=True,
        decode=(1, 2),
        decode_max=2,
        destinations=True,
        externals=True,
        stores=2,
        dependencies=(41, 42, 43),
    )
    return BlockModel(world, Engine(world, habits))


def blocks_crowded() -> BlockModel:
    """Five requests in four blocks: everything is evicted all the time."""
    world = World(BlockConfig(capacity=4, block_size=2, kv_events=True), _CROWD)
    habits = Habits(
        arrivals=None, misses=True, singles=True, preempts=True, aborts=True, stores=1, dependencies=(41, 42)
    )
    return BlockModel(world, Engine(world, habits))


def blocks_lawless() -> BlockModel:
    """Anybody calls anything."""
    world = World(BlockConfig(capacity=3, block_size=2, kv_events=True, snapshots_max=2), _CROWD[:3])
    licence = Licence(
        reservations=2, dependencies=(41, 42), batches=True, destinations=True, decode=(1, 2), fences=True
    )
    return BlockModel(world, Lawless(world, licence), lawless=True)
