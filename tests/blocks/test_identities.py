"""What names a block: the bounds of media items, and names that come in parts."""

import pytest

from tenure.core.blocks.hashing import (
    IdentityKeys,
    MediaKey,
    chain_hash,
    local_hash,
)
from tenure.core.errors import InvalidKeysError
from tests.blocks.harness import Machine

GREATEST = 2**63 - 1


@pytest.mark.parametrize(("offset", "length"), [(0, 1), (0, GREATEST), (GREATEST, 1), (GREATEST, GREATEST)])
def test_i27_media_item_may_stand_anywhere_and_have_any_length(offset: int, length: int) -> None:
    """Up to 63 bits, so that its place relative to a block fits 64 with a sign."""
    keys = IdentityKeys(media=(MediaKey(b"x", offset, length),))

    assert keys.encode(offset, offset + 4)
    for wrong in ((-1, length), (offset, 0), (2**63, length), (offset, 2**63)):
        with pytest.raises(InvalidKeysError):
            IdentityKeys(media=(MediaKey(b"x", *wrong),))


def test_i27_media_item_counts_for_the_blocks_that_it_reaches_into_alone() -> None:
    """Not for the block that ends where it begins, nor for the one that begins where it ends."""
    keys = IdentityKeys(media=(MediaKey(b"x", 4, 4),))

    assert [False, True, False] == [bool(keys.encode(start, start + 4)) for start in (0, 4, 8)]
    assert keys.encode(2, 5)
    assert keys.encode(7, 8)


def test_i32_names_that_come_in_parts_are_those_that_come_at_once() -> None:
    """Tokens are generated far ahead of what is computed: each part names its own blocks, and leaves the others."""
    machine = Machine(8, 2)
    machine.open("a", (1,), 8)
    machine.allocate("a", 1)
    tokens = [1]
    for token in (2, 3, 4, 5, 6, 7):
        machine.generate("a", token)
        tokens.append(token)
    machine.allocate("a", 7)
    expected: list[int] = []
    parent: int | None = None
    for position in range(3):
        assert (*expected, *[None] * (4 - position)) == machine.hashes("a")
        machine.finalize("a", 2 * position, 2 * position + 2)
        local = local_hash(b"".join(each.to_bytes(4, "little") for each in tokens[2 * position : 2 * position + 2]))
        parent = chain_hash(parent, local)
        expected.append(parent)

    assert (*expected, None) == machine.hashes("a")


def test_free_blocks_are_equal_to_the_same_blocks_in_the_same_order_alone() -> None:
    """As a tuple or a list; neither more of them, nor fewer, nor others."""
    free: object = Machine(3, 2).view().free

    assert all(each == free for each in ((2, 1, 0), [2, 1, 0]))
    assert not [each for each in ((2, 1), (2, 1, 0, 0), (0, 1, 2), (2, 1, 1), ()) if free == each]
