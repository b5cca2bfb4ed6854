"""The versioned containers against plain lists and dicts, branching at random."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure.core.persistent import (
    ATTRIBUTE,
    ATTRIBUTES,
    CELL,
    CELLS,
    COPY_BELOW,
    ITEM,
    ITEMS,
    MISSING,
    TAIL,
    TAILS,
    Journal,
    Map,
    Vector,
    revert,
)
from tests.interrupts import interrupted_at

# Both representations: containers that copy themselves, and containers that keep differences.
LENGTHS = st.sampled_from([1, 5, COPY_BELOW - 1, COPY_BELOW, 3 * COPY_BELOW])


@st.composite
def vector_histories(draw: st.DrawFn) -> tuple[list[int], list[tuple[int, list[tuple[int, int]]]]]:
    """A first value, and updates that each branch from any version made so far."""
    length = draw(LENGTHS)
    first = draw(st.lists(st.integers(-9, 9), min_size=length, max_size=length))
    pairs = st.lists(st.tuples(st.integers(0, length - 1), st.integers(-9, 9)), max_size=6)
    steps = draw(st.lists(st.tuples(st.integers(0, 2**16), pairs), max_size=12))
    return first, steps


@given(vector_histories(), st.randoms(use_true_random=False))
def test_vector_every_version_stays_what_it_was(
    history: tuple[list[int], list[tuple[int, list[tuple[int, int]]]]], rng: Any
) -> None:
    """Old versions are read in any order, after any number of branches."""
    first, steps = history
    versions, models = [Vector(first, dtype=np.int64)], [first]
    for parent, pairs in steps:
        index = parent % len(versions)
        versions.append(versions[index].set([at for at, _ in pairs], [value for _, value in pairs]))
        model = models[index].copy()
        for at, value in pairs:
            model[at] = value
        models.append(model)
    order = list(range(len(versions)))
    rng.shuffle(order)
    for index in order:
        version, model = versions[index], models[index]

        assert model == version.to_numpy().tolist()
        assert model[-1] == version[len(model) - 1]
        assert len(model) == len(version)
        assert model[:1] == version.take([0]).tolist()
    for left in order:
        for right in order:
            same = models[left] == models[right]

            assert same == (versions[left] == versions[right])
            if same:
                assert hash(versions[left]) == hash(versions[right])


@st.composite
def map_histories(draw: st.DrawFn) -> tuple[int, list[tuple[int, dict[int, int], list[int]]]]:
    """The size of the first map, and updates and removals that each branch from any version."""
    size = draw(LENGTHS)
    keys = st.integers(0, size + 3)
    updates = st.dictionaries(keys, st.integers(-9, 9), max_size=5)
    steps = draw(st.lists(st.tuples(st.integers(0, 2**16), updates, st.lists(keys, max_size=4)), max_size=12))
    return size, steps


@given(map_histories(), st.randoms(use_true_random=False))
def test_map_every_version_stays_what_it_was(
    history: tuple[int, list[tuple[int, dict[int, int], list[int]]]], rng: Any
) -> None:
    """Sets, updates and removals, from any version, read in any order."""
    size, steps = history
    first = {key: key * 10 for key in range(size)}
    versions: list[Map[int, int]] = [Map(first)]
    models = [first]
    for parent, updates, removals in steps:
        index = parent % len(versions)
        model = {**models[index], **updates}
        gone = [key for key in removals if key in model]
        version = versions[index].update(updates).remove(gone)
        for key in gone:
            model.pop(key, None)
        versions.append(version.set(-1, parent))
        models.append({**model, -1: parent})
    order = list(range(len(versions)))
    rng.shuffle(order)
    for index in order:
        version, model = versions[index], models[index]

        assert tuple(sorted(model.items())) == version.items()
        assert len(model) == len(version)
        assert all(version[key] == value and key in version for key, value in model.items())
        assert version.get(10**6) is None
    for left in order:
        for right in order:
            same = models[left] == models[right]

            assert same == (versions[left] == versions[right])
            if same:
                assert hash(versions[left]) == hash(versions[right])


def test_vector_equality_is_of_content_and_dtype() -> None:
    """Two ways to the same content are equal; another dtype or kind is not."""
    vector = Vector.full(COPY_BELOW, 0, np.int32)
    back = vector.set([3], [1]).set([3], [0])

    assert vector == back
    assert vector == vector
    assert hash(vector) == hash(back)
    assert vector != Vector.full(COPY_BELOW, 0, np.int64)
    assert vector != "vector"
    assert Map() != "map"
    assert "Vector" in repr(vector)
    assert "Map" in repr(Map({1: 2}))
    m = Map({1: 2})
    assert m == m


@pytest.mark.parametrize("length", [4, COPY_BELOW])
def test_vector_refused_update_changes_nothing(length: int) -> None:
    """Bad indices and values raise before anything moves."""
    vector = Vector(range(length))
    with pytest.raises(IndexError):
        vector.set([0, length], [7, 7])
    with pytest.raises(ValueError, match="broadcast"):
        vector.set([0, 1], [7, 7, 7])
    with pytest.raises(ValueError, match="one-dimensional"):
        Vector([[1, 2]])

    assert list(range(length)) == vector.to_numpy().tolist()


@pytest.mark.parametrize("length", [4, COPY_BELOW])
def test_vector_does_not_share_memory_with_its_callers(length: int) -> None:
    """What comes in and what goes out is nobody's way into a version."""
    values, indices, given_values = np.arange(length), np.array([0]), np.array([9])
    vector = Vector(values)
    newer = vector.set(indices, given_values)
    values[:] = -1
    indices[0] = 2
    given_values[0] = -1
    out = newer.to_numpy()
    with pytest.raises(ValueError, match="read-only"):
        out[0] = 5
    newer.take([1])[0] = -1

    assert list(range(length)) == vector.to_numpy().tolist()
    assert [9, *range(1, length)] == newer.to_numpy().tolist()


def test_map_removing_a_missing_key_raises_and_changes_nothing() -> None:
    """A removal that cannot be is a caller's mistake."""
    mapping = Map({key: key for key in range(COPY_BELOW)})
    with pytest.raises(KeyError):
        mapping.remove([1, 999])

    assert mapping[1] == 1
    assert len(mapping.remove([1, 1])) == COPY_BELOW - 1


def test_vector_many_old_versions_cost_their_differences_only() -> None:
    """A thousand versions of a large vector hold a thousand differences, not a thousand copies."""
    version = Vector.full(100_000, 0, np.int64)
    kept = [version]
    for step in range(1000):
        version = version.set([step], [1])
        kept.append(version)

    owners = [each for each in kept if getattr(each, "_store") is not None]  # noqa: B009 - looks inside on purpose
    assert owners == [kept[-1]]
    assert kept[500].to_numpy().sum() == 500
    assert kept[-1].to_numpy().sum() == 1000


@pytest.mark.parametrize("length", [4, COPY_BELOW])
def test_vector_refuses_values_that_its_dtype_cannot_hold(length: int) -> None:
    """They would be another number."""
    vector = Vector(range(length), dtype=np.int32)
    with pytest.raises(OverflowError):
        vector.set([0], [2**40])

    assert np.int32 == vector.to_numpy().dtype
    assert list(range(length)) == vector.to_numpy().tolist()


def test_vector_takes_nothing_where_no_index_is_given() -> None:
    """An empty list of whole numbers, in an empty array of the vector's dtype."""
    taken = Vector([1, 2], dtype=np.int32).take([])

    assert (0,) == taken.shape
    assert np.int32 == taken.dtype


def test_different_contents_hash_differently() -> None:
    """Nearly always: tables of states would be lists."""
    assert 50 == len({hash(Vector([number])) for number in range(50)})
    assert 50 == len({hash(Map({number: number})) for number in range(50)})


@pytest.mark.parametrize("length", [COPY_BELOW - 1, COPY_BELOW])
def test_small_containers_copy_themselves_and_others_keep_differences(length: int) -> None:
    """From the bound on, an older version owns no data."""
    vector, mapping = Vector(range(length)), Map({key: key for key in range(length)})
    newer = vector.set([0], [7]), mapping.set(0, 7)
    owners = [getattr(each, "_store") is not None for each in (vector, mapping)]  # noqa: B009 - looks inside

    assert [length < COPY_BELOW] * 2 == owners
    assert [7, 7] == [newer[0][0], newer[1][0]]


def test_journal_entry_of_attributes_may_be_one_old_value_short() -> None:
    """Of a transition that was interrupted between the two lists: the last object was not changed yet."""
    first, second = Box(1), Box(2)
    journal: Journal = [(ATTRIBUTES, [first, second], "value", [0])]
    revert(journal)

    assert [0, 2] == [first.value, second.value]


class Box:
    """Something with attributes."""

    def __init__(self, value: int) -> None:
        self.value = value


@given(st.lists(st.tuples(st.integers(0, 7), st.integers(0, 4), st.integers(0, 9)), max_size=30))
def test_journal_reverts_and_redoes_every_kind_of_change(script: list[tuple[int, int, int]]) -> None:
    """Any sequence of changes is undone, and redone, to the letter."""
    mapping: dict[int, int] = {0: 0, 1: 1}
    cells = [0, 1, 2, 3, 4]
    tail = [0, 1, 2]
    lists: list[list[int]] = [[], [1], [2, 2]]
    boxes = [Box(0), Box(1), Box(2)]
    journal: Journal = []

    def snapshot() -> Any:
        return (dict(mapping), cells.copy(), tail.copy(), [each.copy() for each in lists], [b.value for b in boxes])

    before = snapshot()
    for kind, at, value in script:
        if kind == 0:
            journal.append((ITEM, mapping, at, mapping.get(at, MISSING)))
            mapping[at] = value
        elif kind == 1:
            keys = [at, at + 1, at]
            journal.append((ITEMS, mapping, keys, [mapping.get(key, MISSING) for key in keys]))
            for key in keys:
                mapping.pop(key, None)
        elif kind == 2:
            journal.append((CELL, cells, at, cells[at]))
            cells[at] = value
        elif kind == 3:
            places = [at, 0, at]
            journal.append((CELLS, cells, places, [cells[place] for place in places]))
            for place in places:
                cells[place] = value
        elif kind == 4:
            start = min(at, len(tail))
            journal.append((TAIL, tail, start, tail[start:]))
            tail[start:] = [value] * (value % 3)
        elif kind == 5:
            chosen = [lists[at % 3], lists[value % 3]]
            starts: list[int] = []
            journal.append((TAILS, chosen, starts, None))
            for each in chosen:
                starts.append(len(each))
                each.append(value)
        elif kind == 6:
            box = boxes[at % 3]
            journal.append((ATTRIBUTE, box, "value", box.value))
            box.value = value
        else:
            journal.append((ATTRIBUTES, boxes[:2], "value", [box.value for box in boxes[:2]]))
            boxes[0].value, boxes[1].value = value, at
    after = snapshot()

    redo = revert(journal)
    assert before == snapshot()
    undo = revert(redo)
    assert after == snapshot()
    revert(undo)
    assert before == snapshot()


@pytest.mark.parametrize("length", [4, COPY_BELOW])
def test_an_interrupted_update_leaves_the_old_version_as_it_was(length: int) -> None:
    """Ctrl-C between any two lines of it."""
    line = 0
    more = True
    while more:
        line += 1
        vector, mapping = Vector(range(length)), Map({key: key for key in range(length)})

        def update(vector: Vector = vector, mapping: Map[int, int] = mapping) -> None:
            vector.set([1, 2], [7, 8])
            mapping.update({1: 7, 99: 8}).remove([2])

        more = interrupted_at(line, update)
        assert list(range(length)) == vector.to_numpy().tolist(), f"line {line}"
        assert tuple((key, key) for key in range(length)) == mapping.items(), f"line {line}"

    assert line > 10
