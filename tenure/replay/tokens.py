"""Makes up the tokens of a prompt from the hash ids of a trace: equal ids give equal tokens, others different ones.

Traces tell which prompts share a prefix, not what it says. A pair of tokens is 64 bits; for a given place in the block
the pair is a one-to-one function of the 64-bit id, so two ids of a namespace never agree in any pair, and no sub-block
of two tokens or more is shared by accident. Namespaces and seeds differ by a 64-bit hash.
"""

from typing import Final

import numpy as np
import numpy.typing as npt
import xxhash

from tenure.replay.requests import TraceRequest

GOLDEN: Final = np.uint64(0x9E3779B97F4A7C15)
MIX_1: Final = np.uint64(0xBF58476D1CE4E5B9)
MIX_2: Final = np.uint64(0x94D049BB133111EB)


def prompt_tokens(request: TraceRequest, seed: int) -> npt.NDArray[np.uint32]:
    """The tokens of a request's prompt.

    A hash id of a partial last block covers the tokens that are there, so that requests that share it share them. What
    no id covers is unique to the request.

    Shapes: `[input_tokens]`, owned by the caller.
    """
    covered = block_tokens(request.hash_ids, _key("id", request.namespace, seed), request.block_size).reshape(-1)
    missing = request.input_tokens - len(covered)
    if missing > 0:
        tail = np.array([request.entry], dtype=np.uint64)
        own = block_tokens(tail, _key("tail", request.namespace, seed), request.block_size).reshape(-1)
        covered = np.concatenate((covered, own))
    return covered[: request.input_tokens]


def block_tokens(ids: npt.NDArray[np.uint64], key: int, block_size: int) -> npt.NDArray[np.uint32]:
    """The tokens of the trace blocks that `ids` name.

    Shapes: `ids: [num_ids]`; the result `[num_ids, block_size]`.
    """
    pairs = np.arange(-(-block_size // 2), dtype=np.uint64) * GOLDEN
    # Every step below is one-to-one on 64 bits: adding, xor with a shifted self, multiplying by an odd number.
    words = _mix(_mix(ids ^ np.uint64(key))[:, np.newaxis] + pairs)
    return words.astype("<u8", copy=False).view("<u4").astype(np.uint32, copy=False)[:, :block_size]


def _mix(words: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """The finalizer of SplitMix64 (Steele, Lea and Flood 2014)."""
    words = words + GOLDEN
    words = (words ^ (words >> np.uint64(30))) * MIX_1
    words = (words ^ (words >> np.uint64(27))) * MIX_2
    return words ^ (words >> np.uint64(31))


def _key(kind: str, namespace: str, seed: int) -> int:
    return xxhash.xxh3_64_intdigest(f"{kind}\0{namespace}".encode(), seed)
