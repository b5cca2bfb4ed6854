"""Makes up the rows that a replay carries: each is a function of all tokens of its request up to its own position.

Per token there is one 64-bit word, the *prefix word*: the sum of the mixed (position, token) pairs so far. Equal
prefixes have equal words, and a word differs as soon as any token before it does. Each 8 bytes of a row are the word,
mixed with a number that name and column decide. So a row that belongs to another token, prefix, name or column is
seen, whatever reason it is there for. Rows are compared by their bits: not every float is equal to itself.
"""

from collections.abc import Iterator, Sequence
from math import prod
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt
import xxhash

from tenure.replay.row_specs import RowSpec
from tenure.replay.tokens import GOLDEN, MIX_1, MIX_2

Words: TypeAlias = npt.NDArray[np.uint64]
"""One prefix word per token. Shapes: `[tokens]`."""
Rows: TypeAlias = npt.NDArray[Any]
"""Shapes: `[tokens, *row_shape]`."""

CHUNK_WORDS: Final = 2**15
"""Words that are mixed at a time: they stay in a processor's cache, and no step needs large temporaries."""
NUMPY_DTYPES: Final = {"bfloat16": np.dtype(np.uint16), "bool": np.dtype(np.bool_)}
"""Dtypes that numpy names otherwise, or has not: the bits of a bfloat16 travel as a 16-bit number."""
_HALF: Final = np.uint64(32)
_SHIFTS: Final = (np.uint64(30), np.uint64(27), np.uint64(31))
_U64: Final = 2**64 - 1


def numpy_dtype(spec: RowSpec) -> np.dtype[Any]:
    """The dtype of the arrays that carry a name's rows."""
    return NUMPY_DTYPES.get(spec.dtype) or np.dtype(spec.dtype)


class PrefixWords:
    """The prefix words of one request, for all tokens it knows.

    Words that were given out stay as they are, also when more tokens come.
    """

    def __init__(self, prompt: bytes, max_tokens: int) -> None:
        """The words of a prompt (u32 little-endian), with room for `max_tokens` tokens in all."""
        tokens = np.frombuffer(prompt, dtype="<u4")
        self._words = np.empty(max_tokens, dtype=np.uint64)
        self._count = len(tokens)
        pairs = _pairs(np.arange(len(tokens), dtype=np.uint64), tokens.astype(np.uint64))
        np.cumsum(pairs, out=self._words[: len(tokens)])

    def __len__(self) -> int:
        return self._count

    def span(self, start: int, stop: int) -> Words:
        """The words of tokens `[start, stop)`, read-only."""
        words = self._words[start:stop]
        words.flags.writeable = False
        return words

    @staticmethod
    def extend(those: Sequence["PrefixWords"], tokens: Sequence[int]) -> None:
        """Append one token to each of several requests."""
        positions = np.array([len(each) for each in those], dtype=np.uint64)
        pairs = _pairs(positions, np.array(tokens, dtype=np.uint64))
        for each, pair in zip(those, pairs.tolist(), strict=True):
            each._append(pair)

    def _append(self, pair: int) -> None:
        before = int(self._words[self._count - 1]) if self._count else 0
        self._words[self._count] = (before + pair) & _U64
        self._count += 1


class RowMaker:
    """Makes the rows of one name; for one thread at a time, since it mixes in memory that it keeps.

    Attributes:
        spec: what the rows are.
        dtype: the dtype of the arrays that carry them.
    """

    def __init__(self, spec: RowSpec) -> None:
        self.spec = spec
        self.dtype = numpy_dtype(spec)
        columns = -(-spec.row_bytes // 8)
        key = np.uint64(xxhash.xxh3_64_intdigest(spec.name.encode()))
        self._keys = _mixed(np.arange(columns, dtype=np.uint64) * GOLDEN ^ key)
        self._rows_at_once = max(1, CHUNK_WORDS // columns)
        self._mix = np.empty((self._rows_at_once, columns), dtype=np.uint64)
        self._shifted = np.empty_like(self._mix)

    def fill(self, words: Words, rows: Rows) -> None:
        """Write the rows of some tokens.

        Shapes: `words: [tokens]`; `rows: [tokens, *row_shape]`, contiguous.
        """
        target = self._as_bytes(rows)
        for start, stop, made in self._chunks(words):
            target[start:stop] = made

    def first_wrong(self, words: Words, rows: Rows) -> int | None:
        """The first of some rows that is not, bit for bit, what its token's prefix made; None if all are.

        Shapes: `words: [tokens]`; `rows: [tokens, *row_shape]`.
        """
        found = self._as_bytes(np.ascontiguousarray(rows))
        for start, stop, made in self._chunks(words):
            if not np.array_equal(made, found[start:stop]):
                return start + int(np.argmax((made != found[start:stop]).any(axis=1)))
        return None

    def _chunks(self, words: Words) -> Iterator[tuple[int, int, npt.NDArray[np.uint8]]]:
        """The bytes of rows `[start, stop)`, a few rows at a time; good until the next are asked for."""
        for start in range(0, len(words), self._rows_at_once):
            stop = min(start + self._rows_at_once, len(words))
            mixed = self._mix[: stop - start]
            np.add(words[start:stop, np.newaxis], self._keys, out=mixed)
            _mix_in_place(mixed, self._shifted[: stop - start])
            made = mixed.view(np.uint8)[:, : self.spec.row_bytes]
            if self.spec.dtype == "bool":
                # Any other byte is no truth value.
                made &= 1
            yield start, stop, made

    def _as_bytes(self, rows: Rows) -> npt.NDArray[np.uint8]:
        return rows.reshape(len(rows), prod(self.spec.row_shape)).view(np.uint8)


def _pairs(positions: Words, tokens: Words) -> Words:
    # Neither has more than 32 bits, so different pairs stay different.
    return _mixed(positions << _HALF | tokens)


def _mixed(words: Words) -> Words:
    _mix_in_place(words, np.empty_like(words))
    return words


def _mix_in_place(words: Words, shifted: Words) -> None:
    """The finalizer of SplitMix64 (Steele, Lea and Flood 2014), as in `tokens`, without an array a step."""
    words += GOLDEN
    for shift, factor in zip(_SHIFTS, (MIX_1, MIX_2, None), strict=True):
        np.right_shift(words, shift, out=shifted)
        words ^= shifted
        if factor is not None:
            words *= factor
