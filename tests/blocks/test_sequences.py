"""What a sequence is made of, what it refuses, and the golden names of its blocks."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from tenure.core.blocks.hashing import IdentityKeys, MediaKey
from tenure.core.blocks.sequence import BlockIdentity, RequestSequence, new_sequence
from tenure.core.blocks.values import LeaseOpened, StepComputed
from tenure.core.errors import (
    HashRangeError,
    IdentityCountError,
    IdentityLayoutError,
    LeaseAlreadyOpenError,
    NegativeCountError,
    RequestIdError,
    SequenceBlockSizeError,
    TenureError,
    TokenRangeError,
)
from tests.blocks.harness import Machine


@pytest.mark.parametrize(
    ("tokens", "block_size", "local_hashes", "hashes"),
    [
        (
            range(16),
            4,
            (9143094415614847814, 12124091508212882195, 1088361764653601668, 16024980976528976948),
            (9143094415614847814, 9510318385840434533, 16998148715716822651, 16790386768269814709),
        ),
        ([*range(8), 8, 9, 100, 101], 4, (None, None, 18019320912410032334), (None, None, 4105028800499116126)),
        (range(32), 16, (15310707395893867146, 15292316782987903195), (None, 13769157705258532664)),
        (range(4), 2, (10918435022357402928, 10731123482949079648), (None, 7454852371412049951)),
        ([0xFFFFFFFF] * 4, 4, (12410542959481710713,), (None,)),
        ([0] * 4, 4, (13277122834585657784,), (None,)),
    ],
)
def test_golden_identities(
    tokens: Sequence[int], block_size: int, local_hashes: Sequence[int | None], hashes: Sequence[int | None]
) -> None:
    """Routers and other engines compute the same numbers."""
    sequence = new_sequence(1, tokens, 0, block_size)
    for expected, found in ((local_hashes, sequence.local_hashes), (hashes, sequence.hashes)):
        for each, number in zip(expected, found, strict=True):
            assert each in (None, number)


def test_a_prompt_may_be_a_list_or_an_array() -> None:
    """The same tokens give the same sequence; the array is copied."""
    tokens = np.arange(9, dtype=np.uint32)
    given = new_sequence(1, tokens, 0, 4)
    tokens[:] = 0

    assert given == new_sequence(1, range(9), 0, 4)
    assert given == new_sequence(1, np.arange(9, dtype=np.dtype(">u4").newbyteorder("=")), 0, 4)


def test_without_caching_hashes_are_unique_to_the_request_and_never_local() -> None:
    """They are never looked up; retained and emitted data mean nothing then."""
    one = new_sequence(1, range(8), 0, 4, caching=False, emit_token_ids=True)
    two = new_sequence(2, range(8), 0, 4, caching=False)
    named = new_sequence("one", range(8), 0, 4, caching=False)

    assert len({*one.hashes, *two.hashes, *named.hashes}) == 6
    assert one.local_hashes == (None, None)
    assert not one.emit_token_ids
    assert not one.retain_local_hashes


def test_local_hashes_are_kept_on_request_only() -> None:
    """Memory for who needs it."""
    kept, not_kept = new_sequence(1, range(9), 0, 4), new_sequence(1, range(9), 0, 4, retain_local_hashes=False)

    assert kept.hashes == not_kept.hashes
    assert not_kept.local_hashes == (None, None, None)
    assert kept.local_hashes[0] == kept.hashes[0]
    assert kept.identities[2] == BlockIdentity(None, None)


FULL = BlockIdentity(1, 2)
UNNAMED = BlockIdentity(None, None)
LOCAL = BlockIdentity(None, 5)
FRACTIONS: Any = [0.5]
ID: Any = np.int64(7)
SIGNED: Any = np.arange(3, dtype=np.int32)
REFUSALS: list[tuple[str, Callable[[], RequestSequence], type[TenureError]]] = [
    ("block size 1", lambda: new_sequence(1, [1], 0, 1), SequenceBlockSizeError),
    ("negative output", lambda: new_sequence(1, [1], -1, 4), NegativeCountError),
    ("negative token", lambda: new_sequence(1, [1, -1], 0, 4), TokenRangeError),
    ("huge token", lambda: new_sequence(1, [2**32], 0, 4), TokenRangeError),
    ("huge planned token", lambda: new_sequence(1, [1], 1, 4, planned=[2**32]), TokenRangeError),
    ("signed array", lambda: new_sequence(1, SIGNED, 0, 4), TokenRangeError),
    ("two-dimensional array", lambda: new_sequence(1, np.zeros((2, 2), np.uint32), 0, 4), TokenRangeError),
    ("fractional token", lambda: new_sequence(1, FRACTIONS, 0, 4), TokenRangeError),
    ("fractional planned token", lambda: new_sequence(1, [1], 1, 4, planned=FRACTIONS), TokenRangeError),
    ("an id that is no int", lambda: new_sequence(ID, [1], 0, 4), RequestIdError),
    ("negative id", lambda: new_sequence(-1, [1], 0, 4), RequestIdError),
    ("huge id", lambda: new_sequence(2**128, [1], 0, 4), RequestIdError),
    ("too few identities", lambda: new_sequence(1, range(8), 0, 4, identities=[FULL]), IdentityCountError),
    (
        "unnamed full block",
        lambda: new_sequence(1, range(4), 0, 4, identities=[BlockIdentity(None, None)]),
        IdentityLayoutError,
    ),
    ("named partial tail", lambda: new_sequence(1, range(3), 0, 4, identities=[FULL]), IdentityLayoutError),
    ("partial tail with a local hash", lambda: new_sequence(1, [1], 0, 4, identities=[LOCAL]), IdentityLayoutError),
    ("huge hash", lambda: new_sequence(1, range(4), 0, 4, identities=[BlockIdentity(2**64, 0)]), HashRangeError),
    ("negative local hash", lambda: new_sequence(1, range(4), 0, 4, identities=[BlockIdentity(1, -1)]), HashRangeError),
]


@pytest.mark.parametrize(("make", "error"), [row[1:] for row in REFUSALS], ids=[row[0] for row in REFUSALS])
def test_bad_sequences_are_refused_with_a_sentence(
    make: Callable[[], RequestSequence], error: type[TenureError]
) -> None:
    """Before anything is told to the machine."""
    with pytest.raises(error) as refusal:
        make()

    assert str(refusal.value)


def test_opening_a_lease_twice_or_for_another_block_size_is_refused() -> None:
    """An id names one request at a time."""
    machine = Machine(4)
    machine.open("r", [1])
    machine.refuses(LeaseOpened(new_sequence("r", [1], 0, 4)), LeaseAlreadyOpenError)
    machine.refuses(LeaseOpened(new_sequence("s", [1], 0, 8)), SequenceBlockSizeError, "the machine's 4")
    machine.finish("r")
    machine.open("r", [1])


MEDIA = IdentityKeys("group", "adapter", (MediaKey(b"image", 2, 2), MediaKey(b"other", 9, 2)))
PINNED = (9665278004389144847, 8517381239468915469, 16959018527907812556)
SUBSTITUTE = 4991485349101569959


def test_keys_name_exactly_the_blocks_they_reach_into() -> None:
    """An item that ends at a block's end is no part of the next; its place counts from the block's first token."""
    group_and_adapter = MEDIA.encode(4, 8)

    assert group_and_adapter == b"g\x05\x00\x00\x00groupa\x07\x00\x00\x00adapter"
    assert MEDIA.encode(0, 4) == group_and_adapter + (
        b"m\x15\x00\x00\x00" + (2).to_bytes(8, "little") + (2).to_bytes(8, "little") + b"image"
    )
    assert MEDIA.encode(8, 12) == group_and_adapter + (
        b"m\x15\x00\x00\x00" + (1).to_bytes(8, "little") + (2).to_bytes(8, "little") + b"other"
    )
    assert IdentityKeys(media=(MediaKey(b"x", 2, 4),)).encode(4, 8)[5:13] == (-2).to_bytes(8, "little", signed=True)


def test_keyed_chains_are_pinned() -> None:
    """Other processes must compute the same names."""
    assert new_sequence(1, range(12), 0, 4, keys=MEDIA).hashes == PINNED
    assert new_sequence("one", range(4), 0, 4, caching=False).hashes == (SUBSTITUTE,)


def test_any_kind_of_integer_is_a_token_and_is_kept_as_a_plain_one() -> None:
    """Samplers hand out numpy numbers."""
    tokens: Any = [np.int64(1), 2, True, np.uint32(4)]
    sequence = new_sequence(1, tokens, 4, 4, planned=tokens)

    assert sequence.hashes == new_sequence(1, [1, 2, 1, 4], 0, 4).hashes
    assert [type(each) for each in sequence.planned] == [int] * 4
    machine = Machine(4)
    machine.open("r", [0], 4)
    given: Any = np.int64(5)
    machine.generate("r", given)
    machine.tell(StepComputed(("r",), (given,)))
    assert [type(each) for each in machine.view().leases["r"].window] == [int] * 3


def test_names_that_are_no_valid_text_are_names_all_the_same() -> None:
    """A lone surrogate is a str, and nobody is refused for it in the middle of a run."""
    names = ["\ud800", "\ud801"]
    hashes = {new_sequence(1, range(4), 0, 4, keys=IdentityKeys(name, name)).hashes for name in names}
    substitutes = {new_sequence(name, range(4), 0, 4, caching=False).hashes for name in names}

    assert len(hashes) == 2
    assert len(substitutes) == 2
