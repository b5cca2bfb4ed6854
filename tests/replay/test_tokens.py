"""Tokens are made up from hash ids: equal where, and only where, the trace says that prompts are equal."""

from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure.core.config import U64_MAX
from tenure.replay.errors import Place
from tenure.replay.requests import TraceRequest
from tenure.replay.tokens import block_tokens, prompt_tokens


def request(tokens: int, ids: list[int], *, block: int = 8, namespace: str = "file 0", entry: int = 0) -> TraceRequest:
    return TraceRequest(
        Place(Path("trace")), namespace, entry, block, tokens, 1, np.array(ids, dtype=np.uint64), progress=0.0
    )


def equal_tokens(left: npt.NDArray[np.uint32], right: npt.NDArray[np.uint32]) -> int:
    return int((left == right).sum())


@pytest.mark.parametrize(("tokens", "ids"), [(1, [5]), (8, [5]), (9, [5, 6]), (20, [1, 2, 3]), (20, [1, 2]), (3, [])])
def test_a_prompt_has_as_many_tokens_as_the_trace_says(tokens: int, ids: list[int]) -> None:
    made = prompt_tokens(request(tokens, ids), 0)

    assert made.dtype == np.uint32
    assert made.shape == (tokens,)


def test_equal_ids_give_equal_tokens_in_whatever_prompt_they_stand() -> None:
    long, short = prompt_tokens(request(24, [1, 2, 3]), 0), prompt_tokens(request(19, [1, 2, 9], entry=4), 0)

    assert np.array_equal(long[:16], short[:16])
    assert not np.array_equal(long[16:19], short[16:19])


def test_a_partial_last_block_shares_its_tokens_with_the_same_id_elsewhere() -> None:
    """Whole sub-blocks inside a partial trace block can then be shared, as they were in the engine."""
    part, more = prompt_tokens(request(13, [1, 7]), 0), prompt_tokens(request(15, [1, 7], entry=3), 0)

    assert np.array_equal(part, more[:13])


def test_a_tail_without_an_id_is_the_requests_own() -> None:
    first, second = (prompt_tokens(request(13, [1], entry=entry), 0) for entry in (0, 1))

    assert np.array_equal(first[:8], second[:8])
    assert equal_tokens(first[8:], second[8:]) == 0


@given(st.lists(st.integers(0, U64_MAX), min_size=2, max_size=6, unique=True), st.integers(0, U64_MAX))
def test_different_ids_never_agree_in_a_pair_of_tokens(ids: list[int], key: int) -> None:
    """No sub-block, which has two tokens at least, is then shared by accident."""
    pairs = block_tokens(np.array(ids, dtype=np.uint64), key, 16).reshape(len(ids), -1, 2)

    for place in range(pairs.shape[1]):
        assert len({tuple(pair) for pair in pairs[:, place].tolist()}) == len(ids)


def test_an_odd_trace_block_is_cut_to_its_length() -> None:
    odd, even = (block_tokens(np.array([3], dtype=np.uint64), 1, size) for size in (7, 8))

    assert np.array_equal(odd[0], even[0, :7])


@pytest.mark.parametrize(("namespace", "seed"), [("file 1", 0), ("file 0", 1)])
def test_another_file_or_another_seed_gives_other_tokens(namespace: str, seed: int) -> None:
    one, other = prompt_tokens(request(16, [1, 2]), 0), prompt_tokens(request(16, [1, 2], namespace=namespace), seed)

    assert equal_tokens(one, other) == 0
