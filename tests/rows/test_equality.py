"""R17: two states are equal where no event can tell them apart, and unequal where one could."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

import numpy as np
import pytest

from tenure.core.arrays import integers
from tenure.core.columns import Columns
from tenure.core.config import RowConfig, RowPolicy
from tenure.core.rows.events import (
    Finished,
    PolicyRegistered,
    RowEvent,
    SavePublished,
    SaveRequested,
    Started,
    StepStarted,
    WriteLayout,
)
from tenure.core.rows.machine import transition
from tenure.core.rows.names import HIDDEN, NameClass, Output
from tenure.core.rows.records import Step
from tenure.core.rows.state import RowState
from tenure.core.rows.tables import Tables, record_key
from tenure.core.rows.view import StepPhase

CONFIG: Final = RowConfig(num_blocks=4, block_size=2, page_rows_max=8)
POLICY: Final = RowPolicy(immediate=frozenset({"m"}), deferred=frozenset({"c"}))
Change = Callable[[Tables], None]


def save(*batch: str, slots: tuple[int, ...]) -> SaveRequested:
    """A save of the declared names and of one that is inferred."""
    rows = len(slots)
    layout = WriteLayout(batch, integers([rows // len(batch)] * len(batch)), integers(slots))
    shapes = {HIDDEN: (4,), "m": (2,), "c": (1,), "inferred": (3,)}
    return SaveRequested(layout, tuple(Output(name, (rows, *shape), "int32") for name, shape in shapes.items()))


EVENTS: Final[tuple[RowEvent, ...]] = (
    PolicyRegistered(POLICY),
    StepStarted((Started("a", 2), Started("b", 2))),
    save("a", "b", slots=(2, 3, 4, 5)),
    SavePublished(1),
    StepStarted((Finished("a"), Started("c", 2, 2, ((1,),)))),
)
"""A deferred write of two chunks, an immediate one, and a step with a hit that waits to be saved."""


def tables() -> Tables:
    """Of a state in which every table holds something."""
    state = RowState.initial(CONFIG, copying=True)
    for event in EVENTS:
        state = transition(state, event).state
    return state.tables


def replaced(table: str, number: int, **fields: Any) -> Change:
    """A record of a table is another."""

    def change(found: Tables) -> None:
        records = getattr(found, table)
        records[number] = records[number]._replace(**fields)

    return change


def moved(table: str, column: int, by: int = 1) -> Change:
    """A column of the first chunk or clone is another."""

    def change(found: Tables) -> None:
        columns: Columns = getattr(found, table)
        everything = columns[0:]
        everything[column, 0] += by
        columns[0:] = everything

    return change


def scalar(name: str, value: Any) -> Change:
    """One of the single values is another."""
    return lambda found: setattr(found, name, value)


def slot_of_a_chunk(place: int) -> Change:
    """A slot that a chunk has is another."""

    def change(found: Tables) -> None:
        slots = found.chunk_slots[0:]
        slots[0, place] = 7
        found.chunk_slots[0:] = slots

    return change


def class_of_a_name(found: Tables) -> None:
    """A name has another class."""
    held = found.classes["inferred"]
    kind = next(each for each in NameClass if each is not held.kind)
    found.classes["inferred"] = replace(held, kind=kind)


SEEN: Final[dict[str, Change]] = {
    "configuration": scalar("config", CONFIG.model_copy(update={"pages": 7})),
    "policy": scalar("policy", POLICY.model_copy(update={"hidden": False})),
    "class of a name": class_of_a_name,
    "write": replaced("writes", 1, page=3),
    "step": replaced("steps", 1, page=3),
    "tokens of a step": replaced("steps", 2, scheduled={"c": 1}),
    "reads of a step": replaced("steps", 2, reads={}),
    "read": replaced("reads", 1, batch_rows=integers([9, 9])),
    "first chunk": moved("chunks", 3),
    "slots of the first chunk": slot_of_a_chunk(0),
    "slots of the last chunk": slot_of_a_chunk(3),
    "first clone": moved("clones", 1),
    "floor": scalar("floor", 1),
    "charged bytes": scalar("charged", 9),
    "pending step": scalar("pending", 9),
    "whether a step started": scalar("started", False),
    "whether it is shut down": scalar("shut_down", True),
    "failure": scalar("failure", (1, "lost")),
}
"""What an event may meet."""
UNSEEN: Final[dict[str, Change]] = {
    "chunks that are tidied up later": scalar("dead_chunks", 9),
    "clones that are tidied up later": scalar("dead_clones", 9),
    "counters": lambda found: found.counters.update(rows_lost=9),
}
"""What none does."""


@pytest.mark.parametrize("what", SEEN)
def test_r17_states_that_differ_where_an_event_may_look_are_unequal(what: str) -> None:
    """In whichever table."""
    one, other = tables(), tables()
    SEEN[what](other)

    assert one.key() != other.key()
    assert tables().key() == one.key()


@pytest.mark.parametrize("what", UNSEEN)
def test_r17_states_that_differ_where_no_event_looks_are_equal(what: str) -> None:
    """A search would keep them apart for nothing."""
    one, other = tables(), tables()
    UNSEEN[what](other)

    assert one.key() == other.key()


def test_r17_states_of_one_run_hash_differently() -> None:
    """A search keeps thousands of them in a set."""
    states = [RowState.initial(CONFIG, copying=True)]
    for event in EVENTS:
        states.append(transition(states[-1], event).state)

    assert len(states) == len({hash(state) for state in states})


def test_r17_chunks_of_writes_that_are_gone_make_no_difference() -> None:
    """They stay in their table until it is tidied up."""
    one, other = tables(), tables()
    for found in (one, other):
        del found.writes[int(found.chunks[0:][1, 0])]
    moved("chunks", 3)(other)

    assert one.key() == other.key()


def test_r17_slots_that_no_chunk_has_make_no_difference() -> None:
    """They were those of such a chunk, and stand behind the slots of all others."""
    one, other = tables(), tables()
    for found, slot in ((one, 6), (other, 7)):
        found.chunk_slots[len(found.chunk_slots) :] = np.array([[slot]], dtype=np.int64)

    assert one.key() == other.key()


def test_r17_clones_that_nobody_holds_make_no_difference() -> None:
    """Likewise; of what one holds, they would."""
    one, other = tables(), tables()
    for found in (one, other):
        moved("clones", 2, by=1 - int(found.clones[0:][2, 0]))(found)
    moved("clones", 1)(other)
    assert one.key() != other.key()
    for found in (one, other):
        moved("clones", 2, by=-1)(found)

    assert one.key() == other.key()


def test_r17_keys_may_be_made_of_what_stands_for_records() -> None:
    """Whoever makes many remembers what stands for which."""
    seen: list[Any] = []

    def of(record: Any) -> int:
        seen.append(record)
        return len(seen)

    tables().key(of)

    assert {Step, RowConfig, RowPolicy} <= {type(each) for each in seen}


def test_r17_steps_are_equal_by_content_whatever_the_order_of_their_requests() -> None:
    """The order in a mapping is that of some calls, and says nothing."""
    one = Step(StepPhase.STARTED, {"a": 1, "b": 2}, (), (), {("a", "m"): 1, ("b", "m"): 2})
    same = one._replace(scheduled={"b": 2, "a": 1}, reads={("b", "m"): 2, ("a", "m"): 1})

    assert record_key(one) == record_key(same)
    for fields in ({"scheduled": {"a": 1, "b": 3}}, {"reads": {("a", "m"): 1}}, {"page": 2}, {"asked": ("a",)}):
        assert record_key(one) != record_key(one._replace(**fields))
    read = tables().reads[1]
    assert record_key(read) == record_key(read._replace(slots=read.slots.copy()))
    assert record_key(read) != record_key(read._replace(slots=read.slots + 1))


def test_r04_claims_are_whole_numbers_of_64_bits_under_every_name() -> None:
    """Fractions would be exact no further than 2**53 claims."""
    found = tables()
    arrays = {**found.newest, "tenancy": found.tenancy, "batch row": found.batch_row, "wanted": found.wanted}

    assert {HIDDEN, "m", "c", "inferred"} < {*arrays}
    assert not [name for name, array in arrays.items() if array.dtype != np.int64]


def test_columns_find_what_they_hold_and_nothing_else() -> None:
    """Among none, below the first, between two, above the last."""
    nothing = Columns.empty(2)
    found = nothing.find(np.array([4, 5], dtype=np.int64))
    assert np.int64 == found.dtype
    assert [-1, -1] == found.tolist()
    held = Columns.empty(2)
    held[0:] = np.array([[3, 5, 9], [0, 0, 0]], dtype=np.int64)

    assert [-1, 0, -1, 1, 2, -1] == held.find(np.array([1, 3, 4, 5, 9, 12], dtype=np.int64)).tolist()
