"""The oracle's names of blocks and synthetic tokens against golden values."""

import pytest

from tenure.core.blocks.hashing import IdentityKeys
from tenure.core.blocks.values import AllocationRequested, LeaseOpened, TokenGenerated, TokensComputed
from tenure.spec.blocks.naming import local_name, sequence_name, substitute_name, synthetic_token
from tests.spec.history import CHAIN_OF_16, LOCALS_OF_16, History, config, tokens


def test_names_of_sixteen_tokens_are_the_golden_ones() -> None:
    """Routers and other engines compute the same numbers; one wrong byte and no prefix is ever found."""
    history = History(config(4))
    history.tell(LeaseOpened(tokens(1, range(16))))

    assert history.lease(1).hashes == CHAIN_OF_16
    assert history.lease(1).local_hashes == LOCALS_OF_16


@pytest.mark.parametrize(
    ("block", "name"),
    [
        (range(16), 15310707395893867146),
        (range(16, 32), 15292316782987903195),
        ([0, 1], 10918435022357402928),
        ([2, 3], 10731123482949079648),
        ([0xFFFFFFFF] * 4, 12410542959481710713),
        ([0] * 4, 13277122834585657784),
        ([8, 9, 100, 101], 18019320912410032334),
    ],
)
def test_local_name_golden_blocks_match(block: list[int], name: int) -> None:
    """Other block sizes and extreme tokens are hashed the same way."""
    assert local_name(block) == name


@pytest.mark.parametrize(
    ("parent", "block", "name"),
    [
        (15310707395893867146, range(16, 32), 13769157705258532664),
        (10918435022357402928, [2, 3], 7454852371412049951),
        (CHAIN_OF_16[1], [8, 9, 100, 101], 4105028800499116126),
    ],
)
def test_sequence_name_golden_chains_match(parent: int, block: list[int], name: int) -> None:
    """A chained block mixes its parent in."""
    assert sequence_name(parent, local_name(block), None, 0, 0) == name


@pytest.mark.parametrize(
    ("uuid", "ordinal", "token"),
    [
        (1, 0, 2515880452),
        (1, 1, 3600266899),
        (1, 2, 2716793611),
        (1, 3, 2249174135),
        (2, 0, 1927195132),
        (0, 0, 3838282282),
        (0, 1, 3615623958),
        (0, 2, 1794767847),
        (int.from_bytes(bytes(range(16)), "big"), 7, 3397398804),
    ],
)
def test_synthetic_token_golden_requests_match(uuid: int, ordinal: int, token: int) -> None:
    """Simulated output is the same on every machine."""
    assert synthetic_token(uuid, ordinal) == token


def test_names_with_an_isolation_group_differ_from_the_first_block_on() -> None:
    """Two tenants with one prompt must never share a block."""
    history = History(config(4))
    history.tell(LeaseOpened(tokens(1, range(8))))
    history.tell(LeaseOpened(tokens(2, range(8), keys=IdentityKeys(isolation_group="a"))))
    history.tell(LeaseOpened(tokens(3, range(8), keys=IdentityKeys())))

    assert set(history.lease(1).hashes).isdisjoint(history.lease(2).hashes)
    assert history.lease(1).hashes == history.lease(3).hashes


def test_names_of_generated_blocks_continue_the_chain() -> None:
    """A prompt and the same tokens generated are the same prefix."""
    history = History(config(4))
    history.tell(LeaseOpened(tokens(1, range(3), planned=[3])))
    history.tell(AllocationRequested(1, 3))
    history.tell(TokenGenerated(1))
    history.tell(TokensComputed(1, 0, 4))

    assert history.lease(1).hashes == CHAIN_OF_16[:1]


def test_names_with_caching_off_are_the_request_s_own() -> None:
    """A request that takes no part is never found under its tokens."""
    history = History(config(4))
    history.tell(LeaseOpened(tokens(5, range(8), caching=False)))

    assert history.lease(5).hashes == (substitute_name(5, 0), substitute_name(5, 1))
    assert history.lease(5).local_hashes == (None, None)
