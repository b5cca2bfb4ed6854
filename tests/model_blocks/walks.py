"""Random walks of the production machine beside the canonical nodes of the checker."""

import random
from collections.abc import Iterator
from typing import NamedTuple

from tenure.core.blocks.machine import transition
from tenure.core.blocks.state import BlockState
from tenure.core.blocks.tables import Tables
from tenure.core.blocks.values import Answer, Command
from tenure.core.errors import TenureError
from tenure.model_checks.blocks.block_model import BlockModel, BlockSituation
from tenure.model_checks.blocks.calls import core_event
from tenure.model_checks.blocks.forms import Form, block_names, freeze, unpack_form
from tenure.model_checks.blocks.worlds import World
from tenure.model_checks.model import Event

RESERVATION_AT = {
    "ReservedAllocationRequested": 4,
    "DecodeReservationReleased": 2,
    "DestinationActivated": 3,
    "DestinationCancelled": 2,
}
SNAPSHOT_AT = {"SnapshotDiscarded": 2, "DependencyAttached": 3}


ADVANCES = 0.8
"""How often a walk takes an event that leads elsewhere: of a lawless engine's calls most are refused."""


class Step(NamedTuple):
    """One event of a walk, told to both."""

    event: Event
    raw_event: Event
    raw: BlockState
    form: Form
    refused: bool
    next_events: tuple[Event, ...]


def form_of(world: World, tables: Tables) -> Form:
    """The canonical form of a state that was never in one."""
    return freeze(world, tables, block_names(tables))


def translated(tables: Tables, event: Event) -> Event:
    """The same call with the ids that a machine uses which counts for good."""
    for places, live in ((RESERVATION_AT, tables.reservations), (SNAPSHOT_AT, tables.snapshots)):
        place = places.get(str(event[1]))
        if place is not None and 1 <= int(event[place]) <= len(live):
            return (*event[:place], sorted(live)[int(event[place]) - 1], *event[place + 1 :])
    return event


def told(world: World, state: BlockState, event: Event) -> tuple[BlockState, Answer | TenureError, tuple[Command, ...]]:
    """What an event leads to, a refusal included."""
    try:
        return transition(state, core_event(world, event))
    except TenureError as refusal:
        return state, refusal, ()


def walk(model: BlockModel, seed: int, length: int) -> Iterator[Step]:
    """A walk of the checker's model, and of a machine that nobody ever brought into canonical form."""
    world, choose = model.nodes.world, random.Random(seed)  # noqa: S311
    situation: BlockSituation = next(iter(model.initial()))
    raw = BlockState.initial(world.config, copying=True)
    for _ in range(length):
        events = model.events(situation)
        if not events:
            return
        event = choose.choice(events)
        if choose.random() < ADVANCES:
            moving = [each for each in events if model.take(situation, each).state != situation]
            event = choose.choice(moving or events)
        raw_event = translated(raw.tables, event)
        raw, answer, _ = told(world, raw, raw_event)
        taken = model.take(situation, event)
        assert isinstance(taken.state, BlockSituation)
        situation = taken.state
        form, _ = unpack_form(model.nodes.packed(situation.node))
        yield Step(event, raw_event, raw, form, isinstance(answer, TenureError), tuple(model.events(situation)))
