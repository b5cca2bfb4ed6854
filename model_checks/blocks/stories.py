"""The cases of public caches, and the tests that the seed carries, as actors whose calls may come in any order.

Each story is the few calls that a case speaks of. Where the case fixes an order, an actor waits for another; everything
else is left open, so that what went wrong elsewhere in one order is looked at in all of them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from tenure.core.blocks.sequence import RequestSequence
from tenure.core.config import BlockConfig
from tenure.model_checks.blocks.block_model import BlockModel
from tenure.model_checks.blocks.scripts import Call, Script, allocated, authorized, call, computed, lives, opened
from tenure.model_checks.blocks.worlds import World, request


@dataclass(frozen=True, slots=True)
class Story:
    """Actors, their requests, and a machine.

    Attributes:
        name: what the scope is called, behind `blocks/`.
        source: the case or test.
        capacity: blocks of the machine.
        sequences: what leases are opened over.
        actors: the calls of each.
        config: what else the machine is built with.
        is_quick: whether it is searched at every push.
    """

    name: str
    source: str
    capacity: int
    sequences: Sequence[RequestSequence]
    actors: Mapping[str, Sequence[Call]]
    config: Mapping[str, Any] = field(default_factory=dict[str, Any])
    is_quick: bool = False

    def make(self) -> BlockModel:
        """The model, built anew."""
        config = BlockConfig(capacity=self.capacity, block_size=2, **{"kv_events": True, **self.config})
        world = World(config, self.sequences)
        return BlockModel(world, Script(world, self.actors), remembers=True)


def given(name: str, *hashes: int, output: int = 0) -> RequestSequence:
    """A request whose blocks have names of their own, local hash = name + 100."""
    return request(name, range(2 * len(hashes)), output, given=[(each, each + 100) for each in hashes])


def _reads(name: str, dependency: int, *positions: int) -> tuple[Call, ...]:
    """A store reads blocks of a request."""
    return (call("snapshotted", name, *positions), call("attached", name, dependency))


def _anew(name: str, dependency: int, transfer: str) -> tuple[Call, ...]:
    """A store reads a request's first block once an earlier transfer is through."""
    return (call("snapshotted", name, 0).after(transfer, 1), call("attached", name, dependency))


_SEED: Final = 3
"""Calls of `lives` after which a request's blocks are held and its writes in order."""

STORIES: Final[tuple[Story, ...]] = (
    Story(
        "one-block-held-twice",
        "B01",
        3,
        [given("S", 7), given("R", 7, 7), given("T", 10, 11, 12)],
        {
            "S": lives("S", 0),
            "R": [opened(1).after("S", 5), allocated("R"), computed("R"), call("finished", "R")],
            "T": [*lives("T", 2)],
        },
        is_quick=True,
    ),
    Story(
        "hits-before-the-capacity-check",
        "B02",
        4,
        [given("S", 1, 2), request("A", [5, 5], 0), given("B", 1, 2, 3, 4)],
        {"S": lives("S", 0), "A": lives("A", 1), "B": lives("B", 2)},
        is_quick=True,
    ),
    Story(
        "a-request-never-evicts-its-own-hits",
        "B03",
        3,
        [given("S", 1), given("T", 0), given("U", 9), given("R", 0, 1, 20)],
        {
            "S": lives("S", 0),
            "T": [opened(1).after("S", 5), *lives("T", 1)[1:]],
            "U": lives("U", 2),
            "R": [opened(3).after("T", 5), *lives("R", 3)[1:]],
        },
    ),
    Story(
        "removed-with-the-last-copy",
        "B04",
        4,
        [given("A", 3), given("B", 3), given("C", 4, 5, 6)],
        {
            "A": [opened(0), allocated("A", shares=False), computed("A"), call("finished", "A")],
            "B": [opened(1), allocated("B", shares=False), computed("B"), call("finished", "B")],
            "C": lives("C", 2),
        },
        is_quick=True,
    ),
    Story(
        "parent-before-child",
        "B06, B20, g1_manager 1",
        4,
        [request("A", [7, 7, 7, 7, 7], 3)],
        {
            "A": [
                *lives("A", 0, ends=False),
                *[each for _ in range(3) for each in (call("generated", "A"), allocated("A"), computed("A"))],
                call("finished", "A"),
            ],
            "engine": [call("reserved", 1), call("given_back")],
        },
    ),
    Story(
        "leaf-before-parent",
        "B07, B25, pool 10, manager 9",
        3,
        [given("A", 1, 2, 3), given("C", 9), given("D", 1, 2, 3)],
        {
            "A": lives("A", 0),
            "C": [opened(1).after("A", 5), *lives("C", 1)[1:]],
            "D": [opened(2).after("A", 5), call("destined", "D"), call("cancelled", "D"), call("finished", "D")],
        },
        is_quick=True,
    ),
    Story(
        "a-store-reads-what-is-reused",
        "B11, manager 12",
        2,
        [given("A", 1), given("C", 2), given("D", 3)],
        {
            "A": [*lives("A", 0, ends=False), *_reads("A", 23, 0), call("preempted", "A"), call("finished", "A")],
            "C": [opened(1).after("A", _SEED + 3), *lives("C", 1)[1:]],
            "D": lives("D", 2),
            "transfer": [call("satisfied", 23)],
        },
        is_quick=True,
    ),
    Story(
        "completed-in-the-last-step",
        "B13",
        2,
        [request("A", [1, 1, 1], 1), request("C", [4, 4], 0), request("D", [1, 1, 1, 8], 0)],
        {
            "A": [
                *lives("A", 0, ends=False),
                call("generated", "A"),
                allocated("A"),
                computed("A"),
                *_reads("A", 31, 0, 1),
                call("finished", "A"),
            ],
            "C": [opened(1).after("A", 9), *lives("C", 1)[1:]],
            "D": [opened(2).after("A", 9), *lives("D", 2)[1:]],
            "transfer": [call("satisfied", 31)],
        },
    ),
    Story(
        "aborted-before-it-was-computed",
        "B14, B39",
        3,
        [request("A", [1, 1, 2, 2], 0), request("B", [1, 1, 2, 2], 1)],
        {
            "A": [opened(0), allocated("A"), computed("A", 2).maybe(), call("finished", "A")],
            "B": lives("B", 1),
        },
    ),
    Story(
        "a-load-ends-inside-a-block",
        "B16, manager 11",
        4,
        [request("S", [1, 1], 0), request("A", [1, 1, 2, 2, 3], 0)],
        {
            "S": lives("S", 0),
            "A": [
                opened(1).after("S", 5),
                call("external", "A", 1, 1),
                call("activated", "A"),
                allocated("A"),
                authorized("A"),
                computed("A"),
                call("finished", "A"),
            ],
            "engine": [call("reserved", 2), call("given_back")],
        },
    ),
    Story(
        "admission-takes-all-or-nothing",
        "B17, B29, B37",
        5,
        [request("A", [1, 1, 2, 2, 3], 1), request("B", [4, 4, 5, 5], 1)],
        {
            name: [
                opened(index),
                call("destined", name),
                call("activated", name),
                computed(name),
                call("generated", name),
                allocated(name),
                computed(name),
                call("finished", name),
            ]
            for index, name in enumerate(("A", "B"))
        },
        is_quick=True,
    ),
    Story(
        "a-failed-load-is-computed-by-one",
        "B18, B34",
        4,
        [given("A", 1, 2), given("B", 1, 2)],
        {
            "A": [
                opened(0),
                call("external", "A", 0, 2),
                call("cancelled", "A"),
                allocated("A"),
                authorized("A"),
                computed("A"),
                call("finished", "A"),
            ],
            "B": lives("B", 1),
        },
        is_quick=True,
    ),
    Story(
        "groups-and-their-parents",
        "B19, B21, B23, manager 10 and 14",
        6,
        [
            request("A", [1, 1, 2, 2, 3, 3], 0, token_ids=True),
            request("B", [1, 1, 2, 2, 4, 4], 0, group="x"),
            request("C", range(8), 0, given=[(61, 161), (62, None), (63, 163), (64, 164)]),
        ],
        {
            "A": lives("A", 0),
            "B": lives("B", 1),
            "C": [opened(2), allocated("C"), computed("C"), call("finished", "C")],
        },
        {"trace": True, "dp_rank": 3},
        is_quick=True,
    ),
    Story(
        "preempted-and-found-again",
        "B27, B40, B42",
        4,
        [request("A", [1, 1, 2, 2], 1), request("D", [5, 5, 6, 6], 0)],
        {
            "A": [
                *lives("A", 0, ends=False),
                call("generated", "A"),
                call("preempted", "A"),
                allocated("A"),
                authorized("A"),
                computed("A", 4),
                computed("A"),
                call("finished", "A"),
            ],
            "D": lives("D", 1),
        },
    ),
    Story(
        "pins-outlive-references",
        "B31, B32, B35, pool 11 and 12",
        4,
        [given("A", 1, 2), given("B", 1, 2), given("C", 1, 2), given("D", 8, 9)],
        {
            "A": lives("A", 0),
            "B": [opened(1).after("A", 4), call("destined", "B"), call("cancelled", "B"), call("finished", "B")],
            "C": [opened(2).after("A", 4), call("destined", "C"), call("activated", "C"), call("finished", "C")],
            "D": lives("D", 3),
        },
    ),
    Story(
        "a-hash-pinned-twice",
        "B01, pool 8",
        4,
        [given("A", 7), given("B", 7), given("C", 7, 7, 3), given("D", 7, 7, 4)],
        {
            "A": [opened(0), allocated("A", shares=False), computed("A"), call("finished", "A")],
            "B": [opened(1), allocated("B", shares=False), computed("B"), call("finished", "B")],
            "C": [opened(2).after("A", 3), call("destined", "C"), call("cancelled", "C"), call("finished", "C")],
            "D": [opened(3).after("A", 3), call("destined", "D"), call("activated", "D"), call("finished", "D")],
        },
    ),
    Story(
        "growth-out-of-a-reservation",
        "semantics of decode reservations",
        4,
        [request("A", [1, 1], 2), request("B", [2, 2], 2)],
        {
            "A": [
                *lives("A", 0, ends=False),
                call("generated", "A"),
                call("drawn", "A"),
                authorized("A"),
                computed("A"),
                call("generated", "A"),
                call("finished", "A"),
            ],
            "B": [*lives("B", 1, ends=False), *_reads("B", 51, 0), call("finished", "B")],
            "engine": [call("reserved", 2), call("given_back").after("A", 6)],
            "transfer": [call("satisfied", 51)],
        },
    ),
    Story(
        "a-fence-through-eviction-and-reservation",
        "pool 13 and 14, manager 13",
        2,
        [given("A", 7, 8), given("B", 9, 10)],
        {
            "A": [*lives("A", 0, ends=False), *_reads("A", 41, 0, 1), call("finished", "A")],
            "B": [opened(1).after("A", 7), *lives("B", 1)[1:]],
            "engine": [
                call("reserved", 1).after("A", 7),
                call("given_back"),
                call("reserved", 2).maybe(),
                call("given_back").maybe(),
            ],
            "transfer": [call("satisfied", 41)],
        },
        is_quick=True,
    ),
    Story(
        "two-readers-end-in-turn",
        "edge 2 of the seed's requirement",
        2,
        [given("A", 7, 8), given("B", 9, 10)],
        {
            "A": [*lives("A", 0, ends=False), *_reads("A", 41, 0), *_reads("A", 42, 1), call("finished", "A")],
            "B": [opened(1).after("A", 9), *lives("B", 1)[1:]],
            "transfer": [call("satisfied", 41).after("A", 9)],
            "other transfer": [call("satisfied", 42).after("A", 9)],
        },
        is_quick=True,
    ),
    Story(
        "a-transfer-id-used-again",
        "edge 3 of the seed's requirement",
        2,
        [given("A", 7), given("B", 8), given("C", 9)],
        {
            "A": [*lives("A", 0, ends=False), *_reads("A", 41, 0), call("finished", "A")],
            "B": [opened(1).after("A", 7), *lives("B", 1)[1:]],
            "C": [
                opened(2).after("A", 7),
                *lives("C", 2, ends=False)[1:],
                *_anew("C", 41, "transfer"),
                call("finished", "C"),
            ],
            "transfer": [call("satisfied", 41), call("satisfied", 41).after("B", 5)],
        },
        is_quick=True,
    ),
    Story(
        "steps-in-batches",
        "decode steps of the replay",
        4,
        [request("A", [1, 1, 2], 2), request("B", [1, 1, 3], 2)],
        {
            "A": [*lives("A", 0, ends=False)[:-1], computed("A", 2), call("finished", "A").after("engine", 6)],
            "B": [*lives("B", 1, ends=False)[:-1], computed("B", 2), call("finished", "B").after("engine", 6)],
            "engine": [
                call("stepped", "A", "B").after("A", 4).after("B", 4),
                call("grown", "B", "A"),
                call("stepped", "B", "A"),
                call("grown", "A", "B").maybe(),
                call("preempted", "B").maybe(),
                call("grown", "A"),
            ],
        },
        is_quick=True,
    ),
)
