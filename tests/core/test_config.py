"""What a row machine is built with: engines whose slots cannot be mirrored are refused."""

from typing import Any

import pytest
from pydantic import ValidationError

from tenure import RowConfig


def config(**changes: Any) -> RowConfig:
    """A small one."""
    settings: dict[str, Any] = {"num_blocks": 8, "block_size": 4, "page_rows_max": 8, **changes}
    return RowConfig(**settings)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"kv_groups": 2}, r"kv_groups is 2: a token has a slot in each group.*switch the row cache off"),
        ({"context_parallel": 4}, r"context_parallel is 4.*switch the row cache off"),
        ({"speculative_tokens": 3}, r"speculative_tokens is 3.*switch the row cache off.*or speculative decoding"),
        ({"kv_role": "consumer"}, r"kv_role is 'consumer'.*switch the row cache off"),
        ({"kv_role": "both"}, r"kv_role is 'both'.*switch the row cache off"),
        ({"kernel_block_size": 3}, r"kernel_block_size is 3 and block_size is 4: a block must be a whole number"),
        ({"kernel_block_size": 8}, r"kernel_block_size is 8 and block_size is 4"),
        ({"kv_groups": 0}, "greater than 0"),
        ({"speculative_tokens": -1}, "greater than or equal to 0"),
        ({"copy_chunk_bytes": 1}, "greater than or equal to 4096"),
        ({"wait_timeout_s": float("inf")}, "less than or equal to 1000000"),
        ({"page_locked_bytes_max": 0}, "greater than 0"),
        ({"kv_role": "nobody"}, "'none', 'producer'"),
        ({"gathers_max": 0}, "greater than 0"),
    ],
)
def test_r15_engine_that_cannot_be_mirrored_is_refused_with_the_reason(change: dict[str, Any], why: str) -> None:
    """At construction, not at the first wrong row; and it says what to switch off."""
    with pytest.raises(ValidationError, match=f"(?s){why}"):
        config(**change)


@pytest.mark.parametrize("change", [{"kv_role": "producer"}, {"kernel_block_size": 2}, {"kernel_block_size": 4}])
def test_r15_engine_that_can_be_mirrored_is_taken(change: dict[str, Any]) -> None:
    """A producer of KV computes all its tokens itself."""
    (name, value), *_ = change.items()

    assert value == getattr(config(**change), name)
