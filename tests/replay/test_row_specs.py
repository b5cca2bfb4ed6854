"""`--rows`: what it means, and how a wrong one is refused."""

import pytest

from tenure.core.rows.names import ITEM_BYTES
from tenure.replay.errors import OptionError
from tenure.replay.row_options import MEMORY_MAX, RowOptions
from tenure.replay.row_specs import RowSpec, parse_rows


@pytest.mark.parametrize(
    ("text", "spec"),
    [
        ("hidden:2048:bf16", RowSpec("hidden", (2048,), "bfloat16")),
        ("mm:16", RowSpec("mm", (16,), "float32")),
        ("codes:8:int32:deferred", RowSpec("codes", (8,), "int32", is_deferred=True)),
        ("audio.codes:3x2:fp16", RowSpec("audio.codes", (3, 2), "float16")),
        ("codes:8:deferred", RowSpec("codes", (8,), "float32", is_deferred=True)),
        ("flag:1:bool:immediate", RowSpec("flag", (1,), "bool")),
        *((f"mm:4:{dtype}", RowSpec("mm", (4,), dtype)) for dtype in ITEM_BYTES),
    ],
)
def test_a_spec_names_rows_with_shape_dtype_and_class(text: str, spec: RowSpec) -> None:
    assert spec == parse_rows(text)
    assert spec == parse_rows(str(spec))


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("hidden", "is not of the form NAME:SHAPE[:DTYPE][:CLASS]"),
        ("", "is not of the form"),
        ("mm:4:int32:deferred:twice", "is not of the form"),
        (":4", "has no name"),
        ("__hidden_states__:4", "the hidden states are named 'hidden'"),
        ("mm:", "has '' where a row shape is expected"),
        ("mm:-3", "has '-3' where a row shape"),
        ("mm:3x", "has '3x' where a row shape"),
        ("mm:²", "where a row shape"),
        ("mm:" + "9" * 5000, "where a row shape"),
        ("mm:0", "has rows of 0 elements"),
        ("mm:65536x65536", "has rows of 4294967296 elements"),
        ("mm:4:float64", "has 'float64' where a dtype or a class is expected"),
        ("mm:4:deferred:int32", "has 'deferred' where"),
        ("mm:4:int32:int32", "has 'int32' where"),
        ("mm:4:int32:later", "has 'later' where"),
        ("mm:4:deferred:deferred", "has 'deferred' where"),
        ("hidden:4:deferred", "defers the hidden states"),
    ],
)
def test_a_wrong_spec_is_refused_and_named(text: str, problem: str) -> None:
    """Whoever gives five of them wants to know which one is wrong."""
    with pytest.raises(OptionError) as caught:
        parse_rows(text)

    message = str(caught.value)
    assert message.startswith(f"--rows {ascii(text)[:57]}"[:40])
    assert problem in message
    assert len(message) < 400


def test_row_bytes_are_those_of_all_elements() -> None:
    assert [12, 24, 5] == [parse_rows(text).row_bytes for text in ("a:6:bf16", "a:3x2:int32", "a:5:bool")]


def test_a_name_is_given_once() -> None:
    options = RowOptions(specs=(parse_rows("mm:4"), parse_rows("hidden:4"), parse_rows("mm:8:int32")))

    with pytest.raises(OptionError, match="--rows names mm more than once"):
        options.check_together(slots=64, step_tokens=8)


def test_r07_a_builder_lags_by_fewer_steps_than_there_are_pages() -> None:
    """Otherwise a save waits for a page that only its own step could set free."""
    specs = (parse_rows("mm:4"),)
    RowOptions(specs=specs, staging_depth=3, builder_lag=2).check_together(slots=64, step_tokens=8)

    with pytest.raises(OptionError, match="lower --builder-lag below --staging-depth"):
        RowOptions(specs=specs, staging_depth=3, builder_lag=3).check_together(slots=64, step_tokens=8)


def test_more_memory_than_a_replay_takes_is_refused_before_it_is_taken() -> None:
    options = RowOptions(specs=(parse_rows("mm:1024"),), staging_depth=4)
    most = MEMORY_MAX // 4096
    options.check_together(slots=most - 5 * 10, step_tokens=10)

    with pytest.raises(OptionError, match="lower --capacity, --max-batched-tokens or the row shapes of --rows"):
        options.check_together(slots=most - 5 * 10 + 1, step_tokens=10)
