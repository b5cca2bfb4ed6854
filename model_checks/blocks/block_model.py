"""The block machine and whoever moves it, as a model that an explorer takes apart.

A state is the number of a node, what the players may still do, and the memory of goals that need the past. Numbers of
nodes are this process's own; what is encoded or sent is the node's form.
"""

import marshal  # noqa: TID251 - in memory only, as in `forms`
from collections.abc import Iterable, Sequence
from typing import NamedTuple, cast

from tenure.model_checks.blocks import calls, forms, wanted
from tenure.model_checks.blocks.nodes import Nodes
from tenure.model_checks.blocks.players import Left, Players
from tenure.model_checks.blocks.wanted import NO_MEMORY, Remembered
from tenure.model_checks.blocks.worlds import World
from tenure.model_checks.model import Event, Judged, Owed, Taken


class BlockSituation(NamedTuple):
    """A state of the model."""

    node: int
    left: Left
    memory: Remembered


class BlockModel:
    """The production block machine under some players; implements `Model`."""

    def __init__(
        self,
        world: World,
        players: Players,
        *,
        lawless: bool = False,
        remembers: bool = False,
        remembering: bool = True,
    ) -> None:
        """`remembers`: goals that need the past are looked for, which tells more states apart.

        `remembering`: what was worked out once is kept.
        """
        self.nodes = Nodes(world, lawless=lawless, remembering=remembering)
        self._players, self._remembers = players, remembers
        self._offers: dict[int, tuple[Event, ...]] = {}

    def initial(self) -> Iterable[BlockSituation]:
        """All blocks free, nobody there."""
        return [BlockSituation(self.nodes.first(), self._players.first(), NO_MEMORY)]

    def events(self, state: BlockSituation) -> Sequence[Event]:
        """What the players may do."""
        return self._players.allowed(state.left, self._offers_of(state.node))

    def _offers_of(self, node: int) -> tuple[Event, ...]:
        offers = self._offers.get(node)
        if offers is None:
            thawed = self.nodes.thawed(node)
            offers = self._offers[node] = self._players.offers(thawed.view, thawed.ghost)
        return offers

    def take(self, state: BlockSituation, event: Event) -> Taken:
        """What one of these leads to."""
        outcome = self.nodes.take(state.node, event)
        if outcome.node is None:
            return Taken(None, outcome.marks, outcome.broken)
        memory, marks = state.memory, outcome.marks
        if self._remembers:
            memory, reached = wanted.remember(memory, outcome.noted)
            if reached:
                marks = marks.union(f"goal {name}" for name in reached)
        left = self._players.after(state.left, self._offers_of(state.node), event, outcome)
        return Taken(BlockSituation(outcome.node, left, memory), marks, outcome.broken)

    def encode(self, state: BlockSituation) -> bytes:
        """The node's form, what is left to do, what is remembered."""
        return self.nodes.packed(state.node) + marshal.dumps((state.left, state.memory), forms.MARSHAL)

    def judge(self, state: BlockSituation) -> Judged:
        """What the rules say of the node."""
        return self.nodes.judge(state.node)

    def is_quiescent(self, state: BlockSituation) -> bool:
        """Whether everybody is done and nothing is held."""
        return self._players.is_done(state.left, self.nodes.thawed(state.node).view)

    def owed(self, state: BlockSituation) -> frozenset[Owed]:
        """Who has still to come to an end."""
        return self._players.owed(state.left)

    def fairness(self, state: BlockSituation, event: Event) -> str | None:
        """The actor of the event, if it is bound to act."""
        actor = str(event[0])
        return actor if self._players.is_bound(actor) else None

    def describe(self, event: Event) -> str:
        """One event as a line of a story."""
        return calls.describe(self.nodes.world, event)

    def pack(self, state: BlockSituation) -> object:
        """The node's form, what is left to do, what is remembered."""
        return self.nodes.packed(state.node), state.left, state.memory

    def unpack(self, packed: object) -> BlockSituation:
        """A state that another process packed."""
        form, left, memory = cast("tuple[bytes, Left, Remembered]", packed)
        return BlockSituation(self.nodes.intern(form), left, memory)
