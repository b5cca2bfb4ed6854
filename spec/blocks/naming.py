"""How the oracle names blocks and draws synthetic tokens: the digests spelled out once more, apart from the core's.

Every hash is XXH3-64 of bytes written out here; nothing is shared with `tenure.core.blocks.hashing` but the
encoding of identity keys, which is the keys' own.
"""

from collections.abc import Sequence

import xxhash

from tenure.core.blocks.hashing import IdentityKeys


def little(number: int, width: int) -> bytes:
    """A number as `width` bytes, the lowest first."""
    return number.to_bytes(width, "little")


def local_name(tokens: Sequence[int]) -> int:
    """The local hash of a block: its own tokens as four bytes each."""
    return xxhash.xxh3_64_intdigest(b"".join(little(token, 4) for token in tokens), seed=1337)


def sequence_name(parent: int | None, local: int, keys: IdentityKeys | None, start: int, stop: int) -> int:
    """The sequence hash of the block of tokens `[start, stop)` behind a block named `parent`."""
    extra = b"" if keys is None else keys.encode(start, stop)
    if parent is None and not extra:
        return local
    return xxhash.xxh3_64_intdigest(little(parent or 0, 8) + little(local, 8) + extra, seed=1337)


def uuid_bytes(request: int | str) -> bytes:
    """The 16 bytes of a request: its UUID's, highest first, or a digest of its name."""
    if isinstance(request, int):
        return request.to_bytes(16, "big")
    return xxhash.xxh3_128_digest(request.encode())


def substitute_name(request: int | str, position: int) -> int:
    """The name of a block whose request takes no part in prefix caching."""
    return xxhash.xxh3_64_intdigest(uuid_bytes(request) + little(position, 8), seed=1)


def synthetic_token(request: int | str, ordinal: int) -> int:
    """Output token number `ordinal` of a request without a plan."""
    return xxhash.xxh3_64_intdigest(uuid_bytes(request) + little(ordinal, 8), seed=0) % 2**32
