"""What a request brings with it: its prompt, its identities, and how its output tokens come about.

A `RequestSequence` is an immutable description. The tokens generated later, the window of tokens still kept and
the identities resolved since live in the state, in the request's lease.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np
import numpy.typing as npt

from tenure.core.blocks.hashing import (
    TOKEN_BYTES,
    IdentityKeys,
    chain_blocks,
    request_bytes,
    substitute_hash,
)
from tenure.core.config import U32_MAX, U64_MAX, as_int
from tenure.core.errors import (
    HashRangeError,
    IdentityCountError,
    IdentityLayoutError,
    NegativeCountError,
    SequenceBlockSizeError,
    TokenRangeError,
)


@dataclass(frozen=True, slots=True)
class BlockIdentity:
    """The names of one block: its sequence hash, and its local hash where that is retained."""

    sequence_hash: int | None
    local_hash: int | None


PARTIAL = BlockIdentity(None, None)
"""The identity of a block that is not full yet."""


@dataclass(frozen=True, slots=True)
class RequestSequence:
    """A request as the block machine receives it; made by `new_sequence`.

    Attributes:
        request: the request's id.
        prompt: the prompt's tokens, u32 little-endian.
        prompt_tokens: how many they are.
        max_output: output tokens the request may generate.
        planned: its first output tokens, where they are known beforehand.
        block_size: tokens per block.
        caching: whether the request takes part in prefix caching.
        retain_local_hashes: whether local hashes are kept for KV events.
        emit_token_ids: whether KV events carry tokens.
        keys: what names its blocks besides their tokens.
        hashes: the sequence hash of each block of the prompt; None for a partial tail.
        local_hashes: the local hash of each block; None for a partial tail, or where none is retained.
        identities_given: whether the caller supplied them; nothing compares them with the tokens then.
    """

    request: int | str
    prompt: bytes
    prompt_tokens: int
    max_output: int
    planned: tuple[int, ...]
    block_size: int
    caching: bool
    retain_local_hashes: bool
    emit_token_ids: bool
    keys: IdentityKeys | None
    hashes: tuple[int | None, ...]
    local_hashes: tuple[int | None, ...]
    identities_given: bool

    @property
    def identities(self) -> tuple[BlockIdentity, ...]:
        """One identity per block of the prompt, a partial tail's unresolved."""
        return tuple(map(BlockIdentity, self.hashes, self.local_hashes))

    @property
    def known_blocks(self) -> int:
        """Blocks of the prompt, a partial tail included."""
        return -(-self.prompt_tokens // self.block_size)

    @property
    def blocks_to_completion(self) -> int:
        """Blocks of the prompt and all the output the request may generate."""
        return -(-(self.prompt_tokens + self.max_output) // self.block_size)


def new_sequence(
    request: int | str,
    prompt: Sequence[int] | npt.NDArray[np.uint32],
    max_output: int,
    block_size: int,
    *,
    caching: bool = True,
    retain_local_hashes: bool = True,
    emit_token_ids: bool = False,
    planned: Sequence[int] = (),
    keys: IdentityKeys | None = None,
    identities: Sequence[BlockIdentity] | None = None,
) -> RequestSequence:
    """Describe a request and name the blocks of its prompt.

    `retain_local_hashes` and `emit_token_ids` mean nothing where `caching` is off. Planned tokens past `max_output`
    are dropped. `identities` replaces the hashing of the prompt. The seed's storage hint has no counterpart:
    nothing here is sized beforehand.

    Shapes: `prompt: [num_tokens]`, unsigned 32-bit values; copied.

    Raises:
        SequenceBlockSizeError: `block_size` is below 2.
        NegativeCountError: `max_output` is negative.
        TokenRangeError: a token is no unsigned 32-bit number.
        RequestIdError: an int id outside 128 unsigned bits.
        IdentityCountError: not one identity per block of the prompt.
        IdentityLayoutError: a full block without a sequence hash, or a partial tail with one.
        HashRangeError: a given hash is no unsigned 64-bit number.
    """
    if block_size < 2:
        raise SequenceBlockSizeError(request, block_size)
    if max_output < 0:
        raise NegativeCountError(request, "max_output", max_output)
    uuid = request_bytes(request)
    data = _token_bytes(request, prompt)
    plan = tuple(_check_tokens(request, planned)[:max_output])
    count = len(data) // TOKEN_BYTES
    full = count // block_size
    hashes: list[int | None]
    local_hashes: list[int | None]
    if identities is not None:
        _check_identities(request, identities, full, partial=count % block_size != 0)
        hashes = [identity.sequence_hash for identity in identities]
        local_hashes = [identity.local_hash for identity in identities]
    else:
        retained = full if caching and retain_local_hashes else 0
        hashes, local_hashes = [None] * -(-count // block_size), [None] * -(-count // block_size)
        if caching:
            hashes[:full], local_hashes[:retained] = chain_blocks(data, block_size, keys, locals_wanted=retained)
        else:
            hashes[:full] = [substitute_hash(uuid, position) for position in range(full)]
    return RequestSequence(
        request=request,
        prompt=data,
        prompt_tokens=count,
        max_output=max_output,
        planned=plan,
        block_size=block_size,
        caching=caching,
        retain_local_hashes=retain_local_hashes and caching,
        emit_token_ids=emit_token_ids and caching,
        keys=keys,
        hashes=tuple(hashes),
        local_hashes=tuple(local_hashes),
        identities_given=identities is not None,
    )


def _token_bytes(request: int | str, tokens: Sequence[int] | npt.NDArray[np.uint32]) -> bytes:
    if isinstance(tokens, np.ndarray):
        if tokens.dtype != np.uint32 or tokens.ndim != 1:
            raise TokenRangeError(request, f"an array of {tokens.dtype} with shape {tokens.shape}")
        return tokens.astype("<u4", copy=False).tobytes()
    return np.array(_check_tokens(request, tokens), dtype="<u4").tobytes()


def _check_tokens(request: int | str, tokens: Sequence[int]) -> Sequence[int]:
    """The tokens as plain ints: a float that is let in would be cut, and a cut token is another one's prefix hit."""
    if not {int}.issuperset(map(type, tokens)):
        checked = [as_int(token) for token in tokens]
        if None in checked:
            raise TokenRangeError(request, tokens[checked.index(None)])
        tokens = cast("list[int]", checked)
    if len(tokens) and not 0 <= min(tokens) <= max(tokens) <= U32_MAX:
        raise TokenRangeError(request, next(token for token in tokens if not 0 <= token <= U32_MAX))
    return tokens


def _check_identities(request: int | str, identities: Sequence[BlockIdentity], full: int, *, partial: bool) -> None:
    if len(identities) != full + partial:
        raise IdentityCountError(request, full + partial, len(identities))
    # I32: only the tail of a table may be unresolved.
    for position, identity in enumerate(identities):
        if identity.sequence_hash is None if position < full else identity != PARTIAL:
            raise IdentityLayoutError(request, position, is_full=position < full)
        for value in (identity.sequence_hash, identity.local_hash):
            if value is not None and not 0 <= value <= U64_MAX:
                raise HashRangeError(request, position, value)


def tail_may_be_unresolved(length: int, block_size: int, generated: int, computed: int) -> bool:
    """Whether the last block of a table may have no name: it is partial, or holds output not computed yet.

    Source: section 8 of the requirement, edge 7; the last clause is that of the seed's later release.
    """
    return length % block_size != 0 or (generated > 0 and computed < length)
