"""Identities of blocks: which 64-bit numbers name a block's tokens and everything before them.

All hashes are XXH3-64. The digests are fixed by golden values, so that routers and other engines agree with them.

Source: the seed's sequence hashing, and the deterministic output tokens of its later release.
"""

import struct
from dataclasses import dataclass
from typing import Final

import xxhash

from tenure.core.errors import InvalidKeysError, RequestIdError

BLOCK_SEED: Final = 1337
SYNTHETIC_SEED: Final = 0
SUBSTITUTE_SEED: Final = 1
TOKEN_BYTES: Final = 4

xxh3 = xxhash.xxh3_64_intdigest
_CHAIN: Final = struct.Struct("<QQ")


@dataclass(frozen=True, slots=True)
class MediaKey:
    """One media item of a prompt.

    Attributes:
        content: a digest of the item's content.
        offset: position of its first placeholder token.
        length: its number of placeholder tokens.
    """

    content: bytes
    offset: int
    length: int


@dataclass(frozen=True, slots=True)
class IdentityKeys:
    """What names a block besides its tokens: requests that differ here never share a prefix.

    Attributes:
        isolation_group: requests that may share prefixes (vLLM: `cache_salt`); None for everybody's.
        adapter: name of the adapter (LoRA) that computes the rows.
        media: media items behind placeholder tokens.

    Raises:
        InvalidKeysError: a media item has a negative offset or no length.
    """

    isolation_group: str | None = None
    adapter: str | None = None
    media: tuple[MediaKey, ...] = ()

    def __post_init__(self) -> None:
        for item in self.media:
            if not (0 <= item.offset < 2**63 and 0 < item.length < 2**63):
                raise InvalidKeysError(item.offset, item.length)

    def encode(self, start: int, stop: int) -> bytes:
        """The bytes that a block of tokens `[start, stop)` adds to its chain input.

        Every part is tagged and length-prefixed, so that no two different sets of keys give the same bytes. A
        media item counts for the blocks it reaches into, with its place relative to the block's first token.
        """
        parts: list[bytes] = []
        if self.isolation_group is not None:
            parts.append(_tagged(b"g", _text(self.isolation_group)))
        if self.adapter is not None:
            parts.append(_tagged(b"a", _text(self.adapter)))
        for item in self.media:
            if item.offset < stop and start < item.offset + item.length:
                place = (item.offset - start).to_bytes(8, "little", signed=True)
                parts.append(_tagged(b"m", place + item.length.to_bytes(8, "little") + item.content))
        return b"".join(parts)


def _text(name: str) -> bytes:
    # Any str has its own bytes, also one that is no valid text.
    return name.encode("utf-8", "surrogatepass")


def _tagged(tag: bytes, content: bytes) -> bytes:
    return tag + len(content).to_bytes(4, "little") + content


def local_hash(tokens: bytes) -> int:
    """The hash of a block's own tokens, given as consecutive u32 little-endian."""
    return xxh3(tokens, BLOCK_SEED)


def chain_hash(parent: int | None, local: int, keys: bytes = b"") -> int:
    """The sequence hash of a block: its local hash chained to its parent's sequence hash.

    Without keys a first block is named by its local hash alone; with keys its parent counts as 0.
    """
    if parent is None:
        if not keys:
            return local
        parent = 0
    return xxh3(_CHAIN.pack(parent, local) + keys, BLOCK_SEED)


def chain_blocks(
    tokens: bytes, block_size: int, keys: IdentityKeys | None, *, locals_wanted: int
) -> tuple[list[int], list[int]]:
    """The sequence hashes of all full blocks of a prompt, and the first `locals_wanted` of their local hashes."""
    width = block_size * TOKEN_BYTES
    ends = range(width, len(tokens) + 1, width)
    local_hashes = [xxh3(tokens[end - width : end], BLOCK_SEED) for end in ends]
    hashes: list[int] = []
    parent: int | None = None
    if keys is None:
        pack = _CHAIN.pack
        for local in local_hashes:
            parent = local if parent is None else xxh3(pack(parent, local), BLOCK_SEED)
            hashes.append(parent)
    else:
        for position, local in enumerate(local_hashes):
            parent = chain_hash(parent, local, keys.encode(position * block_size, (position + 1) * block_size))
            hashes.append(parent)
    return hashes, local_hashes[:locals_wanted]


def request_bytes(request: int | str) -> bytes:
    """The 16 bytes that stand for a request: its UUID's, or a 128-bit digest of its name.

    Raises:
        RequestIdError: neither a str nor an int of 128 unsigned bits.
    """
    if isinstance(request, str):
        return xxhash.xxh3_128_digest(_text(request))
    if not (type(request) is int and 0 <= request < 2**128):
        raise RequestIdError(request)
    return request.to_bytes(16, "big")


def synthetic_token(request: bytes, ordinal: int) -> int:
    """Output token number `ordinal` of a request that has no planned one there; `request` is its 16 bytes."""
    return xxh3(request + ordinal.to_bytes(8, "little"), SYNTHETIC_SEED) & 0xFFFFFFFF


def substitute_hash(request: bytes, position: int) -> int:
    """The hash of a block that takes no part in prefix caching: unique to its request and never looked up."""
    return xxh3(request + position.to_bytes(8, "little"), SUBSTITUTE_SEED)
