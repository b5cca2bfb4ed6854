"""Sets of states: what is new is new once."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure.model_checks.explorer import visited
from tenure.model_checks.explorer.visited import Compact, Exact, NumberedKeys, digest

batches = st.lists(st.lists(st.integers(0, 60), max_size=20), max_size=30)


@given(batches)
def test_all_sets_say_the_same_of_what_is_new(given_batches: list[list[int]]) -> None:
    """A set that forgets makes a search endless; one that makes up makes it blind. Runs are put away all the time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(visited, "RECENT_MAX", 4)
        exact, numbered, compact = Exact(), NumberedKeys(), Compact()
        known: set[int] = set()
        for batch in given_batches:
            expected: list[bool] = []
            for number in batch:
                expected.append(number not in known)
                known.add(number)
            keys = [number.to_bytes(4, "big") for number in batch]

            assert expected == exact.admit(keys)
            assert expected == numbered.admit(keys)
            assert expected == compact.admit([digest(key) for key in keys])
            assert len(known) == len(exact) == len(numbered) == len(compact)
    assert sorted(numbered.numbers.values()) == list(range(len(known)))
    again = Compact()
    again.restore(compact.digests())
    assert not any(again.admit([digest(number.to_bytes(4, "big")) for number in sorted(known)]))


def test_collision_chance_grows_with_the_square() -> None:
    """It is printed; at ten million states it is still about three in a million."""
    compact = Compact()
    compact.admit([digest(bytes([number])) for number in range(100)])

    assert 100**2 / 2**65 == compact.collision()
    assert 0.0 == Exact().collision()


def test_digests_tell_apart_what_hash_does_not() -> None:
    """`hash((-1,)) == hash((-2,))` in CPython: a fingerprint that loses states."""
    assert hash((-1,)) == hash((-2,))
    assert digest(repr((-1,)).encode()) != digest(repr((-2,)).encode())
    assert 8 == len(digest(b""))
