"""Rows are made up from all tokens up to their own, so that whoever sees a row knows whose it is."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure.core.rows.names import ITEM_BYTES
from tenure.replay.forward import Forward
from tenure.replay.row_specs import RowSpec, parse_rows
from tenure.replay.row_values import CHUNK_WORDS, PrefixWords, RowMaker, Rows, Words, numpy_dtype

TOKENS = st.lists(st.integers(0, 2**32 - 1), min_size=1, max_size=40)


def words_of(tokens: list[int], prompt: int | None = None) -> Words:
    """The prefix words of some tokens, all but `prompt` of them generated one by one."""
    prompt = len(tokens) if prompt is None else prompt
    words = PrefixWords(np.array(tokens[:prompt], dtype="<u4").tobytes(), len(tokens))
    for token in tokens[prompt:]:
        PrefixWords.extend([words], [token])
    return words.span(0, len(tokens))


def rows_of(text: str, words: Words) -> Rows:
    spec = parse_rows(text)
    rows = np.zeros((len(words), *spec.row_shape), numpy_dtype(spec))
    RowMaker(spec).fill(words, rows)
    return rows


def bits(rows: Rows) -> list[bytes]:
    return [row.tobytes() for row in rows]


@given(TOKENS, st.data())
def test_generated_tokens_count_like_those_of_a_prompt(tokens: list[int], data: st.DataObject) -> None:
    """A request that hits what another one generated must find its own rows."""
    prompt = data.draw(st.integers(0, len(tokens)))

    assert words_of(tokens).tolist() == words_of(tokens, prompt).tolist()


@given(TOKENS, st.data())
def test_another_token_changes_every_row_from_its_position_on(tokens: list[int], data: st.DataObject) -> None:
    """A row of a chain that differs anywhere before must never pass for the right one."""
    place = data.draw(st.integers(0, len(tokens) - 1))
    another = data.draw(st.integers(0, 2**32 - 1).filter(lambda token: token != tokens[place]))
    other = [*tokens[:place], another, *tokens[place + 1 :]]

    left, right = (bits(rows_of("mm:4", words_of(each))) for each in (tokens, other))

    expected = [True] * place + [False] * (len(tokens) - place)
    assert expected == [one == two for one, two in zip(left, right, strict=True)]


def test_order_and_position_count() -> None:
    """The same tokens in another order, or one place further on, are another prefix."""
    assert words_of([1, 2])[1] != words_of([2, 1])[1]
    assert len(set(words_of([7] * 1000).tolist())) == 1000


def test_several_requests_are_extended_at_once() -> None:
    first, second = (PrefixWords(np.array(each, dtype="<u4").tobytes(), 8) for each in ([1, 2, 3], [9]))
    early = first.span(0, 3).tolist()

    PrefixWords.extend([first, second], [4, 8])

    assert words_of([1, 2, 3, 4]).tolist() == first.span(0, 4).tolist()
    assert words_of([9, 8]).tolist() == second.span(0, 2).tolist()
    assert early == first.span(0, 3).tolist()
    assert (4, 2) == (len(first), len(second))


@pytest.mark.parametrize("dtype", ITEM_BYTES)
@pytest.mark.parametrize("shape", ["1", "3", "5x2", "64"])
def test_rows_have_the_bits_of_their_dtype(dtype: str, shape: str) -> None:
    """Every bit of a row is drawn, whatever its width: a copy that cuts or shifts a row is seen."""
    spec = parse_rows(f"mm:{shape}:{dtype}")
    rows = rows_of(str(spec), words_of(list(range(200))))

    assert (200, *spec.row_shape) == rows.shape
    assert spec.row_bytes == rows[0].nbytes
    seen = np.frombuffer(rows.tobytes(), np.uint8)
    assert (1 if dtype == "bool" else 255) == np.bitwise_or.reduce(seen)
    # Half of all bits that may be set are.
    ones = np.unpackbits(seen).mean() * (8 if dtype == "bool" else 1)
    assert 0.4 < ones < 0.6
    # Columns differ, and so do rows.
    if spec.row_bytes >= 8 and dtype != "bool":
        assert 200 == len(set(bits(rows)))
        assert len(set(rows[0].reshape(-1).view(np.uint8).tolist())) > 1


def test_names_have_rows_of_their_own() -> None:
    """Rows of two names of one shape must not be taken for each other."""
    words = words_of([1, 2, 3])

    assert bits(rows_of("a:4", words)) != bits(rows_of("b:4", words))


@pytest.mark.parametrize("text", ["hidden:2048:bf16", "mm:3:uint8", "mm:5:bool", "mm:7"])
@pytest.mark.parametrize("count", [1, 15, 300])
def test_a_row_is_the_same_however_many_are_made_at_once(text: str, count: int) -> None:
    """Rows are made in chunks; a step, a hit and a single row must agree. 300 wide rows are more than one chunk."""
    words = words_of(list(range(1, count + 1)))

    assert 300 * parse_rows("hidden:2048:bf16").row_bytes > 8 * CHUNK_WORDS
    assert bits(rows_of(text, words)) == [each for k in range(count) for each in bits(rows_of(text, words[k : k + 1]))]


@pytest.mark.parametrize("text", ["hidden:1024:bf16", "mm:3:uint8", "flag:2x2:bool", "mm:16"])
def test_the_first_wrong_row_is_found_by_its_bits(text: str) -> None:
    words = words_of(list(range(400)))
    spec = parse_rows(text)
    rows, maker = rows_of(text, words), RowMaker(spec)

    assert maker.first_wrong(words, rows) is None
    for place in (399, 130, 0):
        rows.reshape(400, -1).view(np.uint8)[place, -1] ^= 1
        assert place == maker.first_wrong(words, rows)


def test_a_float_that_is_not_equal_to_itself_is_compared_like_any_other() -> None:
    """Drawn bits are sometimes NaN, and NaN with another payload is another row."""
    words = words_of(list(range(4000)))
    rows, maker = rows_of("mm:8:fp16", words), RowMaker(parse_rows("mm:8:fp16"))
    places = np.argwhere(np.isnan(rows))

    assert len(places) > 0
    assert maker.first_wrong(words, rows) is None
    row, column = places[0]
    rows.view(np.uint16)[row, column] ^= 1
    assert np.isnan(rows[row, column])
    assert row == maker.first_wrong(words, rows)


def test_rows_with_gaps_between_them_are_compared_too() -> None:
    """A mapping may return a view of a larger buffer."""
    words = words_of([1, 2, 3, 4])
    wide: Any = np.zeros((4, 32), np.float32)
    wide[:, :16] = rows_of("mm:16", words)

    assert RowMaker(parse_rows("mm:16")).first_wrong(words, wide[:, :16]) is None


def test_a_forward_pass_overwrites_what_the_last_one_returned() -> None:
    """So a cache that has not copied it by then is found out."""
    forward = Forward([RowSpec("hidden", (4,)), RowSpec("mm", (2,), "int32")], step_tokens=8)

    hidden, mm = forward.run(words_of([1, 2, 3]))
    assert hidden is not None
    kept = hidden.copy()
    again, _ = forward.run(words_of([4, 5]))

    assert {"mm": (3, 2)} == {name: rows.shape for name, rows in mm.items()}
    assert again is not None
    assert bits(again) == bits(hidden[:2])
    assert bits(kept) == bits(rows_of("hidden:4", words_of([1, 2, 3])))
    assert bits(kept[:2]) != bits(hidden[:2])


def test_a_step_without_hidden_states_has_none() -> None:
    hidden, mm = Forward([RowSpec("mm", (2,))], step_tokens=4).run(words_of([1]))

    assert hidden is None
    assert ["mm"] == list(mm)
