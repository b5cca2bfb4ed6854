"""Every distinct machine state of a search, once: what each call leads to and what the rules say of it, kept.

Many states of a search differ only in what the engine may still do. The machine's part of them is a *node*: its
canonical form and the ghost memory beside it. What an event does to a node, and whether a node breaks a rule, is worked
out once.
"""

from collections.abc import Iterable
from typing import Final, NamedTuple

from tenure.core.blocks import queries, values
from tenure.core.blocks.machine import transition
from tenure.core.blocks.state import BlockState
from tenure.core.blocks.tables import Tables
from tenure.core.blocks.values import Exhausted, GrowthReady, LeaseOpened, Ready
from tenure.core.blocks.view import BlockView
from tenure.core.errors import TenureError
from tenure.model_checks.blocks import antecedents, contents, forms, wanted
from tenure.model_checks.blocks.calls import core_event
from tenure.model_checks.blocks.contents import Ghost
from tenure.model_checks.blocks.indexes import wrong_indexes
from tenure.model_checks.blocks.worlds import World
from tenure.model_checks.model import NOTHING, Broken, Event, Judged, Marks
from tenure.spec.blocks.rule import Observation
from tenure.spec.blocks.rules import broken_refusal, broken_rules, broken_transition_rules
from tenure.spec.blocks.rules_leases import broken_cost

THAWED_MAX: Final = 512
"""Nodes kept as states that can be asked; the others are thawed again when they are needed."""


NOTHING_NOTED: Final = wanted.Noted()


class Outcome(NamedTuple):
    """What an event does to a node.

    Attributes:
        node: the node that follows; None if there is none to speak of.
        marks: what was seen.
        broken: the rules that it broke.
        accepted: whether it was neither refused nor short of capacity.
        fenced: whether the answer names transfers to wait for.
        noted: what a memory of the run keeps.
    """

    node: int | None
    marks: Marks
    broken: tuple[Broken, ...]
    accepted: bool
    noted: wanted.Noted
    fenced: bool = False


class Thawed(NamedTuple):
    """A node that can be asked; `tables` are those of a state with journals, kept aside to compare them with."""

    state: BlockState
    view: BlockView
    ghost: Ghost
    tables: Tables | None


class Nodes:
    """The nodes of one search.

    Attributes:
        world: what the search is about.
        lawless: whether anything may be told: refusals are then right, nothing is known of contents, and the machine
            keeps journals, so that a refusal that changes something is seen.
    """

    def __init__(self, world: World, *, lawless: bool = False, remembering: bool = True) -> None:
        """None yet; without `remembering`, nothing is kept that could be worked out again."""
        self.world, self.lawless = world, lawless
        self._remembering = remembering
        self._ids: dict[bytes, int] = {}
        self._packed: list[bytes] = []
        self._taken: list[dict[Event, Outcome]] = []
        self._judged: list[Judged | None] = []
        self._thawed: dict[int, Thawed] = {}
        self._marks: dict[Marks, Marks] = {}
        self._calls: dict[Event, values.Event] = {}

    def __len__(self) -> int:
        return len(self._packed)

    def first(self) -> int:
        """The node of a machine in which every block is free."""
        return self._intern(BlockState.initial(self.world.config, copying=True), contents.EMPTY)

    def intern(self, packed: bytes) -> int:
        """The number of a node of that form."""
        found = self._ids.get(packed)
        if found is None:
            found = self._ids[packed] = len(self._packed)
            self._packed.append(packed)
            self._taken.append({})
            self._judged.append(None)
        return found

    def packed(self, node: int) -> bytes:
        """The form of a node, which does not depend on how the search came to it."""
        return self._packed[node]

    def _intern(self, state: BlockState, ghost: Ghost) -> int:
        names = forms.block_names(state.tables)
        form = (forms.freeze(self.world, state.tables, names), contents.freeze_ghost(ghost, names))
        return self.intern(forms.pack_form(form))

    def thawed(self, node: int) -> Thawed:
        """A node as a state, its view and its ghost."""
        found = self._thawed.get(node)
        if found is None:
            form, ghost = forms.unpack_form(self._packed[node])
            state = forms.thaw(self.world, form, copying=not self.lawless)
            kept = state.tables.clone() if self.lawless else None
            found = Thawed(state, state.view(), contents.thaw_ghost(ghost), kept)
            if len(self._thawed) >= THAWED_MAX:
                del self._thawed[next(iter(self._thawed))]
            self._thawed[node] = found
        return found

    # --- Events -----------------------------------------------------------------------------------------------------

    def take(self, node: int, event: Event) -> Outcome:
        """What an event does to a node."""
        found = self._taken[node].get(event)
        if found is None:
            found = self._take(node, event)
            if self._remembering:
                self._taken[node][event] = found
        return found

    def _take(self, node: int, event: Event) -> Outcome:
        thawed = self.thawed(node)
        told = self._told(event)
        try:
            after, answer, commands = transition(thawed.state, told)
        except TenureError as refusal:
            return self._refused(node, event, told, refusal)
        except Exception as failure:
            found = f"{event} raised {type(failure).__name__}: {failure}"
            return Outcome(None, NOTHING, (Broken("I14", found),), accepted=False, noted=NOTHING_NOTED)
        try:
            view = thawed.view if after is thawed.state else after.view()
        except (KeyError, IndexError) as failure:
            found = f"{event} led to a state that cannot be read: {failure}"
            return Outcome(None, NOTHING, (Broken(_unreadable(after.tables), found),), False, NOTHING_NOTED)
        seen = Observation(thawed.view, told, view, answer, commands)
        broken = [Broken(*each) for each in broken_transition_rules(seen)]
        broken += wrong_indexes(after.tables)
        ghost = thawed.ghost
        if self.lawless:
            # The older state is read again: the journal must lead back to exactly what it was.
            broken += self._traces(thawed, told)
        else:
            sequence = int(event[2]) if isinstance(told, LeaseOpened) else -1
            ghost, wrong = contents.follow(self.world, ghost, sequence, seen)
            broken += wrong
        marks = self._marks_of(event, seen)
        short = isinstance(answer, Exhausted) or (isinstance(answer, GrowthReady) and answer.served == 0)
        follower = self._follower(node, thawed, after, ghost, broken)
        fenced = isinstance(answer, Ready) and bool(answer.dependencies)
        return Outcome(follower, marks, tuple(broken), not short, wanted.note(seen), fenced)

    def _follower(self, node: int, thawed: Thawed, after: BlockState, ghost: Ghost, broken: list[Broken]) -> int | None:
        if after is thawed.state and ghost == thawed.ghost:
            return node
        try:
            return self._intern(after, ghost)
        except (KeyError, IndexError):
            # A state too broken to have a form; that it is broken must have been seen.
            if broken:
                return None
            raise

    def _told(self, event: Event) -> values.Event:
        found = self._calls.get(event)
        if found is None:
            found = core_event(self.world, event)
            if self._remembering:
                self._calls[event] = found
        return found

    def _refused(self, node: int, event: Event, told: values.Event, refusal: TenureError) -> Outcome:
        name = type(refusal).__name__
        if not self.lawless:
            broken = (Broken("L02", f"{event}, which is legal, was refused: {name}: {refusal}"),)
            return Outcome(node, self._kept((f"error {name}",)), broken, accepted=False, noted=NOTHING_NOTED)
        marks, traces = self._kept((f"error {name}", "rule I14")), self._traces(self.thawed(node), told)
        return Outcome(node, marks, tuple(traces), accepted=False, noted=NOTHING_NOTED)

    @staticmethod
    def _traces(thawed: Thawed, told: values.Event) -> list[Broken]:
        """What an event left behind in a state that it should not have touched."""
        if thawed.tables is None or forms.is_same(thawed.state.tables, thawed.tables):
            return []
        found = broken_refusal(thawed.view, told, thawed.state.view())
        return [Broken(*each) for each in found] or [Broken("I14", f"{told} changed what no view shows")]

    def _marks_of(self, event: Event, seen: Observation) -> Marks:
        marks = [f"event {event[1]}"]
        marks += [f"command {type(each).__name__}" for each in seen.commands]
        marks += [f"rule {each}" for each in antecedents.exercised_by_event(seen)]
        marks += [f"goal {each}" for each in wanted.reached_goals(seen)]
        return self._kept(marks)

    def _kept(self, marks: Iterable[str]) -> Marks:
        """Equal sets of marks as one object."""
        found = frozenset(marks)
        return self._marks.setdefault(found, found)

    # --- States -----------------------------------------------------------------------------------------------------

    def judge(self, node: int) -> Judged:
        """What the rules say of a node."""
        found = self._judged[node]
        if found is None:
            found = self._judge(node)
            if self._remembering:
                self._judged[node] = found
        return found

    def _judge(self, node: int) -> Judged:
        state, view = self.thawed(node)[:2]
        broken = [Broken(*each) for each in broken_rules(view)]
        for request in view.leases:
            finding = broken_cost(view, request, queries.prefill_cost(state, request))
            if finding is not None:
                broken.append(Broken("I35", finding))
        marks = self._kept(f"rule {each}" for each in antecedents.exercised_by_state(view))
        return Judged(marks, tuple(broken))


def _unreadable(tables: Tables) -> str:
    """The rule that a state breaks of which no view can be made."""
    beyond = any(len(lease.copies) > len(lease.hashes) for lease in tables.leases.values())
    return "I18" if beyond else "I33"
