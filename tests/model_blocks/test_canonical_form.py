"""The canonical form throws away only what nothing can tell apart."""

import random
from hashlib import shake_256
from itertools import islice

import pytest

from tenure.core.blocks.tables import Lease, Tables
from tenure.core.config import BlockConfig
from tenure.model_checks.blocks import forms
from tenure.model_checks.blocks.block_model import BlockModel, BlockSituation
from tenure.model_checks.blocks.forms import Form
from tenure.model_checks.blocks.lawless import Lawless, Licence
from tenure.model_checks.blocks.scopes import FREE
from tenure.model_checks.blocks.worlds import World
from tenure.model_checks.walks import steps as steps_of
from tenure.model_checks.walks.models import blocks_lawless
from tests.model_blocks.walks import form_of, told, translated, walk

NAMES = sorted(f"blocks/{each.name}" for each in FREE if "ci" in each.sets)
ENDLESS = [name for name in NAMES if "lawless" in name]


def model_of(name: str) -> BlockModel:
    """The model of a scope, built anew."""
    return next(each for each in FREE if f"blocks/{each.name}" == name).make()


@pytest.mark.parametrize("name", NAMES)
def test_canonical_form_along_a_walk_is_that_of_a_machine_that_counts_for_good(name: str) -> None:
    """Otherwise the checker explores states that the machine never has, and proves things of these."""
    model = model_of(name)
    world, steps = model.nodes.world, 0
    for seed in range(5):
        for step in walk(model, seed, 40):
            steps += 1

            assert form_of(world, step.raw.tables) == step.form

    assert steps > 20


def test_canonical_form_is_reached_from_other_numbers() -> None:
    """The walks must come to ids, events and blocks that the form renames, or they show nothing."""
    other_ids = other_blocks = counted = refused = 0
    for name in ENDLESS:
        model = model_of(name)
        for step in walk(model, 1, 300):
            tables = step.raw.tables
            names = forms.block_names(tables)
            other_ids += step.raw_event != step.event
            other_blocks += any(block != renamed for block, renamed in names.items())
            counted += tables.next_event_id > forms.SPOKEN
            refused += step.refused

    assert min(other_ids, other_blocks, counted, refused) > 20


def renamed(world: World, form: Form, choose: random.Random) -> Form:
    """The same state with its blocks named anew, at random."""
    state = forms.thaw(world, form, copying=True)
    used = list(range(len(state.tables.copies)))
    shuffled = used.copy()
    choose.shuffle(shuffled)
    return forms.freeze(world, state.tables, dict(zip(used, shuffled, strict=True)))


@pytest.mark.parametrize("name", NAMES)
def test_canonical_form_of_renamed_blocks_commutes_with_every_event(name: str) -> None:
    """Blocks are interchangeable only if no event can tell their numbers."""
    model = model_of(name)
    world, choose, moved = model.nodes.world, random.Random(7), 0  # noqa: S311
    for step in walk(model, 3, 40):
        other = renamed(world, step.form, choose)
        moved += other != step.form
        state, twin = (forms.thaw(world, each, copying=True) for each in (step.form, other))
        assert form_of(world, twin.tables) == step.form
        for event in step.next_events[:12]:
            after, answer, commands = told(world, state, translated(state.tables, event))
            same, same_answer, same_commands = told(world, twin, translated(twin.tables, event))

            assert form_of(world, same.tables) == form_of(world, after.tables)
            assert type(same_answer) is type(answer)
            assert same_commands == commands

    assert moved or world.config.capacity == 1


@pytest.mark.parametrize("name", NAMES)
def test_canonical_form_thaws_to_what_it_was_made_of(name: str) -> None:
    """A form that loses something on the way back would merge states."""
    model = model_of(name)
    for step in walk(model, 5, 60):
        world = model.nodes.world
        for copying in (True, False):
            state = forms.thaw(world, step.form, copying=copying)

            assert form_of(world, state.tables) == step.form
            assert forms.unpack_form(forms.pack_form(step.form)) == step.form


@pytest.mark.parametrize("count", range(3, 9))
def test_canonical_names_are_dealt_out_in_no_order(count: int) -> None:
    """In order, a machine that evicts the lowest number would look like one that evicts the oldest."""
    names = forms.shuffled(count)

    assert list(range(count)) == sorted(names)
    assert list(names) not in (sorted(names), sorted(names, reverse=True))


def test_same_tables_are_told_from_ones_that_differ_anywhere() -> None:
    """I14 of the lawless scopes rests on it."""
    model = model_of("blocks/lawless-leases")
    leases = 0
    for step in walk(model, 2, 60):
        one = forms.thaw(model.nodes.world, step.form, copying=True).tables
        other = one.clone()

        assert forms.is_same(one, other)
        other.reservations_ever += 1
        assert not forms.is_same(one, other)
        for request in one.leases:
            leases += 1
            other = one.clone()
            other.leases[request].allocated += 1
            assert not forms.is_same(one, other)

    assert leases


@pytest.mark.parametrize("part", sorted({*Tables.__slots__} - {"config", "leases", "pack_block"}))
def test_tables_that_differ_in_any_part_are_told_apart(part: str) -> None:
    """A part that is not compared is one in which a refusal may leave what it likes."""
    one = Tables(BlockConfig(capacity=2, block_size=2))
    other = one.clone()
    setattr(other, part, "another")

    assert not forms.is_same(one, other)


@pytest.mark.parametrize("part", Lease.__slots__)
def test_leases_that_differ_in_any_part_are_told_apart(part: str) -> None:
    """The same of leases, which are changed most."""
    one = Tables(BlockConfig(capacity=2, block_size=2))
    one.leases["A"] = Lease()
    for each in Lease.__slots__:
        setattr(one.leases["A"], each, [])
    other = one.clone()

    assert forms.is_same(one, other)
    setattr(other.leases["A"], part, "another")
    assert not forms.is_same(one, other)


def test_lawless_engine_that_saw_much_offers_what_a_new_one_does() -> None:
    """What it remembers of one state must not be offered in another."""
    model = blocks_lawless()
    nodes = model.nodes
    licence = Licence(
        reservations=2, dependencies=(41, 42), batches=True, destinations=True, decode=(1, 2), fences=True
    )
    for step in islice(steps_of(model, shake_256(b"lawless").digest(4000)), 1500):
        state = step.taken.state
        assert isinstance(state, BlockSituation)
        thawed = nodes.thawed(state.node)

        assert Lawless(nodes.world, licence).offers(thawed.view, thawed.ghost) == tuple(model.events(state))

    assert len(nodes) > 100
