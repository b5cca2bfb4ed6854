"""Trace lines: every event, answer and command as text and back, and nothing but that."""

import json
from enum import Enum, IntEnum
from types import NoneType, UnionType
from typing import Any, Union, cast, get_args, get_origin, get_type_hints

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tenure.core.arrays import integers
from tenure.core.config import RowPolicy
from tenure.core.errors import ContractError, TraceFormatError
from tenure.core.rows.answers import RowAnswer, Waiting
from tenure.core.rows.commands import RowCommand, ScatterRows
from tenure.core.rows.events import (
    Aborted,
    CopyBegan,
    Extended,
    Finished,
    LifeCycle,
    PolicyRegistered,
    Replaced,
    Resumed,
    RowEvent,
    SaveRequested,
    Started,
    StepDropped,
    StepStarted,
    WaitedFor,
    WaitTimedOut,
    WriteFailed,
    WriteLayout,
)
from tenure.core.rows.names import HIDDEN, Output
from tenure.core.schemas import SCHEMA_VERSION, TraceValue, from_json, json_schema, to_json

CLASSES: list[type[Any]] = [*get_args(RowEvent), *get_args(RowAnswer), *get_args(RowCommand)]


# --- Any value ------------------------------------------------------------------------------------------------------


def some(hint: Any) -> st.SearchStrategy[Any]:
    """Values of a type, arrays and nested classes included."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        return st.one_of([some(each) for each in arguments])
    if origin is np.ndarray:
        return st.lists(st.integers(-(2**63), 2**63 - 1), max_size=4).map(integers)
    if origin is tuple and arguments[1:] == (...,):
        return st.lists(some(arguments[0]), max_size=3).map(tuple)
    if origin is tuple:
        return st.tuples(*(some(each) for each in arguments))
    plain: dict[Any, st.SearchStrategy[Any]] = {
        int: st.integers(),
        str: st.text(),
        bool: st.booleans(),
        NoneType: st.none(),
        RowPolicy: policies(),
        WriteLayout: layouts(),
        Extended: extensions(),
        Output: outputs(),
    }
    if hint in plain:
        return plain[hint]
    if issubclass(hint, Enum):
        return st.sampled_from(list(hint))
    hints = get_type_hints(hint)
    names: list[str] = [*getattr(hint, "__dataclass_fields__", ()), *getattr(hint, "_fields", ())]
    return st.builds(hint, **{name: some(hints[name]) for name in names})


def outputs() -> st.SearchStrategy[Output]:
    """Outputs of any shape that there can be."""
    sizes = st.lists(st.integers(0, 100), max_size=3).map(tuple)
    return st.builds(Output, st.text(), st.none() | sizes, st.none() | st.text())


@st.composite
def policies(draw: st.DrawFn) -> RowPolicy:
    """Policies that declare each name once."""
    names = draw(st.lists(st.text(max_size=3), unique=True, max_size=6))
    return RowPolicy(
        hidden=draw(st.booleans()),
        immediate=frozenset(names[0::3]),
        deferred=frozenset(names[1::3]),
        leftovers=frozenset(names[2::3]),
        infer=draw(st.booleans()),
    )


@st.composite
def layouts(draw: st.DrawFn) -> WriteLayout:
    """Layouts with a count for each request."""
    counts = draw(st.lists(st.integers(0, 9), max_size=3))
    requests = draw(st.tuples(*(st.integers() | st.text() for _ in counts)))
    return WriteLayout(requests, integers(counts), draw(some_array()), draw(st.none() | st.integers()))


@st.composite
def extensions(draw: st.DrawFn) -> Extended:
    """Extensions with a count for each request."""
    counts = draw(st.lists(st.integers(0, 9), max_size=3))
    return Extended(draw(st.tuples(*(st.integers() | st.text() for _ in counts))), integers(counts))


def some_array() -> st.SearchStrategy[Any]:
    return st.lists(st.integers(0, 99), max_size=4).map(integers)


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
@settings(max_examples=12)
@given(data=st.data())
def test_value_that_is_written_reads_as_the_same_value(cls: type[Any], data: st.DataObject) -> None:
    """A trace that loses anything is a trace of another run."""
    value: TraceValue = data.draw(some(cls))
    line = to_json(value)
    found = from_json(line)

    assert value == found
    assert type(value) is type(found)
    assert line == to_json(found)
    assert "\n" not in line
    assert SCHEMA_VERSION == json.loads(line)["version"]


def test_arrays_come_back_closed() -> None:
    """Values do not change, wherever they come from."""
    found = from_json(to_json(StepDropped(integers([1, 2]))))
    assert isinstance(found, StepDropped)

    assert not found.slots.flags.writeable
    assert np.dtype(np.int64) == found.slots.dtype


def test_reason_of_a_failure_is_written() -> None:
    """It is what somebody looks for in a trace."""
    found = from_json(to_json(WriteFailed(3, "the device is gone")))
    assert isinstance(found, WriteFailed)

    assert found.reason == "the device is gone"


def test_numbers_of_numpy_are_written_as_numbers() -> None:
    """An engine's ids come from its arrays."""
    write = cast("int", np.int64(7))

    assert to_json(CopyBegan(write)) == to_json(CopyBegan(7))


def test_what_stands_for_a_number_is_written_as_that_number_where_nobody_checks() -> None:
    """A machine takes True for 1; members of an IntEnum, and lists of both; what is true or false stays so."""

    class Slot(IntEnum):
        LAST = 7

    started: Any = StepStarted((Started("a", cast("int", True), blocks=((Slot.LAST, cast("int", True)),)),))
    read: Any = from_json(to_json(started, checked=False))
    (change,) = read.changes
    asked: Any = from_json(to_json(WaitTimedOut(WaitedFor((Slot.LAST,), page=True)), checked=False))

    assert (1, ((7, 1),)) == (change.scheduled, change.blocks)
    assert [int] * 2 == [type(each) for each in change.blocks[0]]
    assert ((7,), True) == (asked.waited_for.written, asked.waited_for.page)
    assert to_json(StepStarted((Started("a", 1),))) == to_json(StepStarted((Started("a", 1),)), checked=False)


def test_sets_are_written_in_order() -> None:
    """The order of a set differs from run to run, and lines are compared."""
    policy = RowPolicy(deferred=frozenset("zyxabc"))

    assert '"deferred":["a","b","c","x","y","z"]' in to_json(PolicyRegistered(policy))


# --- Lines that are pinned ------------------------------------------------------------------------------------------

NOTHING = '"immediate":[],"deferred":[],"leftovers":[],"infer":true'
FORMAT = '{"name":"m","row_shape":[2],"dtype":"float32","schedule":"JOIN_NEXT_STEP"}'
WAITED = '{"written":[1],"host_ready":[2],"reads":[3],"clone":4,"page":false}'
HIT = '"hit":2,"blocks":[[4]]'
IDENTITIES = '"expects":[{"hash":7,"group":"g"}],"computes":[[5,{"hash":8,"group":""}]]'

EVENTS = {
    StepStarted: '"changes":['
    f'{{"kind":"Started","request":"a","scheduled":1,{HIT},{IDENTITIES}}},'
    '{"kind":"Extended","requests":["b",3],"scheduled":[1,2],"computes":[]},'
    f'{{"kind":"Resumed","request":"c","scheduled":1,{HIT},"expects":[],"computes":[]}},'
    f'{{"kind":"Replaced","request":"d","scheduled":1,{HIT}}},'
    '{"kind":"Finished","request":340282366920938463463374607431768211455},'
    '{"kind":"Aborted","request":"\\u00e9"}]',
    SaveRequested: '"layout":{"requests":["a"],"counts":[2],"slots":[4,5],"padded":4},'
    '"outputs":[{"name":"m","shape":[2,2],"dtype":"float32"},{"name":"log","shape":null,"dtype":null}]',
    "SavePublished": '"step":1,"computes":[[5,{"hash":8,"group":""}]]',
    "SaveCancelled": '"step":1',
    "StepDropped": '"slots":[4,5]',
    "ConsumeRequested": '"step":1,"requests":["a",2]',
    "RowsCopiedOut": '"step":1',
    "StepConsumed": '"step":1',
    "ConsumeAbandoned": '"step":1',
    "StepDiscarded": '"step":1',
    "CopyBegan": '"write":1',
    "CopyCompleted": '"write":1',
    "ScatterCompleted": '"write":1',
    "WriteFailed": '"write":1,"reason":"gone"',
    "GatherBegan": '"read":1',
    "GatherCompleted": '"read":1',
    "GatherFailed": '"read":1,"reason":""',
    "WaitTimedOut": f'"waited_for":{WAITED}',
    "PolicyRegistered": f'"policy":{{"hidden":true,{NOTHING}}}',
    "ResetRequested": "",
    "ShutdownRequested": "",
}
ANSWERS = {
    "Done": "",
    "Ignored": '"reason":"late"',
    "StepBegan": '"step":1,"hits":[["a",2]]',
    "Waiting": f'"waited_for":{WAITED}',
    "SaveReserved": '"step":1,"page":0',
    "StepSaved": '"step":1,"write":2',
    "ConsumePlan": '"step":1,"page":null,"requests":["a"],"batch":["a","b"],"starts":[0,1,3],'
    f'"formats":[{FORMAT}],"leftovers":["log"],"hits":[{{"request":"a","name":"m","read":1,"num_rows":2}}]',
    "ResetAnswered": '"done":true',
}
CLONE = f'{{"clone":1,"formats":[{FORMAT}],"bytes":16}}'
ENDS = (
    '"began":{"kind":"CopyBegan","write":2},"done":{"kind":"CopyCompleted","write":2},'
    '"failed":{"kind":"WriteFailed","write":2,"reason":""}'
)
COMMANDS = {
    "FreezeRows": '"command":1,"lane":"COMPUTE","after":[],"step":1,"num_rows":2,'
    f'"clones":[{CLONE}],"leftovers":["log"],"registers":[{FORMAT}],'
    '"done":{"kind":"SavePublished","step":1,"computes":[]},"failed":{"kind":"SaveCancelled","step":1}',
    "CopyPage": '"command":2,"lane":"COPY","after":[1],"write":2,"step":1,"page":0,"num_rows":2,'
    f'"clones":[{CLONE}],{ENDS}',
    "CopyDeferred": '"command":3,"lane":"COPY","after":[1],"write":2,'
    f'"formats":[{FORMAT}],"num_rows":2,"clones":[1],"starts":[0],"stops":[2],{ENDS}',
    "ScatterRows": '"command":4,"lane":"POOL","after":[],"write":2,"page":0,'
    '"parts":[{"name":"m","rows":[0,1],"slots":[4,5]}],'
    '"done":{"kind":"ScatterCompleted","write":2},"failed":{"kind":"WriteFailed","write":2,"reason":""}',
    "PreserveRows": '"command":5,"lane":"POOL","after":[],"read":1,'
    f'"format":{FORMAT},"rows":[0],"slots":[4],"failed":{{"kind":"GatherFailed","read":1,"reason":""}}',
    "ScheduleGather": '"command":6,"lane":"GATHER","after":[],"read":1,"began":{"kind":"GatherBegan","read":1}',
    "GatherRows": '"command":7,"lane":"GATHER","after":[5],"read":1,'
    f'"format":{FORMAT},"num_rows":2,"parts":[{{"kind":"PRESERVED","sources":[0],"source_rows":[0],"rows":[0]}}],'
    '"done":{"kind":"GatherCompleted","read":1},"failed":{"kind":"GatherFailed","read":1,"reason":""}',
    "ReleaseBuffers": '"command":8,"lane":"GATHER","after":[7],"clones":[1],"writes":[2],"reads":[1]',
}


def lines() -> list[tuple[str, str]]:
    """A pinned line of every class."""
    found: list[tuple[str, str]] = []
    for kind, table in (("event", EVENTS), ("answer", ANSWERS), ("command", COMMANDS)):
        for key, fields in cast("dict[str | type[Any], str]", table).items():
            name = key if isinstance(key, str) else key.__name__
            value = f'{{"kind":"{name}"{"," if fields else ""}{fields}}}'
            found.append((name, f'{{"version":1,"kind":"{kind}","value":{value}}}'))
    return found


@pytest.mark.parametrize(("name", "line"), lines(), ids=[name for name, _ in lines()])
def test_pinned_line_reads_and_is_written_as_it_stands(name: str, line: str) -> None:
    """Traces of last year must be read; another form is another version."""
    found = from_json(line)

    assert name == type(found).__name__
    assert line == to_json(found)


def test_pinned_lines_are_of_every_class() -> None:
    """A new event needs a line, and thought."""
    assert sorted(cls.__name__ for cls in CLASSES) == sorted(name for name, _ in lines())


def test_pinned_lines_stand_for_these_values() -> None:
    """A few of them spelled out, so that reading and writing cannot be wrong together."""
    found = dict(lines())
    started = from_json(found["StepStarted"])
    assert isinstance(started, StepStarted)

    assert {Started, Extended, Resumed, Replaced, Finished, Aborted} == {type(each) for each in started.changes}
    assert set(get_args(LifeCycle)) == {type(each) for each in started.changes}
    assert Finished(2**128 - 1) in started.changes
    assert Aborted("é") in started.changes
    assert Waiting(WaitedFor((1,), (2,), (3,), 4)) == from_json(found["Waiting"])
    assert WaitTimedOut(WaitedFor((1,), (2,), (3,), 4)) == from_json(found["WaitTimedOut"])
    layout = WriteLayout(("a",), integers([2]), integers([4, 5]), 4)
    assert SaveRequested(layout, (Output("m", (2, 2), "float32"), Output("log"))) == from_json(found["SaveRequested"])
    scatter = from_json(found["ScatterRows"])
    assert isinstance(scatter, ScatterRows)
    assert scatter.parts[0].slots.tolist() == [4, 5]


# --- Lines that are none --------------------------------------------------------------------------------------------


def event(value: str) -> str:
    """A line with this value."""
    return f'{{"version":1,"kind":"event","value":{value}}}'


BAD_LINES: list[tuple[str, str]] = [
    ("", "Expecting value"),
    (" ", "Expecting value"),
    ("null", "valid dictionary"),
    ("[]", "valid dictionary"),
    ("7", "valid dictionary"),
    ("{}", "kind"),
    ("{'version':1}", "property name"),
    ('{"version":1', "delimiter"),
    ('{"version":1,"kind":"answer","value":{"kind":"Done"}}{}', "Extra data"),
    ('{"version":1,"kind":"answer"}', "Field required"),
    ('{"kind":"answer","value":{"kind":"Done"}}', "Field required"),
    ('{"version":0,"kind":"answer","value":{"kind":"Done"}}', "greater than or equal to 1"),
    ('{"version":2,"kind":"answer","value":{"kind":"Done"}}', "less than or equal to 1"),
    ('{"version":"1","kind":"answer","value":{"kind":"Done"}}', "valid integer"),
    ('{"version":true,"kind":"answer","value":{"kind":"Done"}}', "valid integer"),
    ('{"version":1.0,"kind":"answer","value":{"kind":"Done"}}', "valid integer"),
    ('{"version":1,"kind":"answers","value":{"kind":"Done"}}', "'answers'"),
    ('{"version":1,"kind":"event","value":{"kind":"Done"}}', "'Done'"),
    ('{"version":1,"kind":"answer","value":{"kind":"__import__"}}', "'__import__'"),
    ('{"version":1,"kind":"answer","value":{"kind":["Done"]}}', "tag"),
    ('{"version":1,"kind":"answer","value":{"kind":"Done"},"more":1}', "Extra inputs"),
    ('{"version":1,"kind":"answer","value":{"kind":"Done","more":1}}', "Extra inputs"),
    ('{"version":1,"kind":"answer","kind":"answer","value":{"kind":"Done"}}', "'kind' is given twice"),
    (event('{"kind":"CopyBegan"}'), "Field required"),
    (event('{"kind":"CopyBegan","write":1,"write":2}'), "'write' is given twice"),
    (event('{"kind":"CopyBegan","write":"1"}'), "valid integer"),
    (event('{"kind":"CopyBegan","write":1.0}'), "valid integer"),
    (event('{"kind":"CopyBegan","write":true}'), "valid integer"),
    (event('{"kind":"CopyBegan","write":null}'), "valid integer"),
    (event('{"kind":"CopyBegan","write":NaN}'), "NaN is not JSON"),
    (event('{"kind":"CopyBegan","write":-Infinity}'), "-Infinity is not JSON"),
    (event('{"kind":"CopyBegan","write":1e3}'), "valid integer"),
    (event('{"kind":"CopyBegan","write":' + "9" * 5000 + "}"), "4300"),
    (event('{"kind":"StepDropped","slots":[9223372036854775808]}'), "less than"),
    (event('{"kind":"StepDropped","slots":[-9223372036854775809]}'), "greater than"),
    (event('{"kind":"StepDropped","slots":[1.5]}'), "valid integer"),
    (event('{"kind":"StepDropped","slots":"12"}'), "valid list"),
    (event('{"kind":"StepDropped","slots":{"0":1}}'), "valid list"),
    (event('{"kind":"ConsumeRequested","step":1,"requests":[true]}'), "valid"),
    (event('{"kind":"StepStarted","changes":[{"kind":"Arrived","request":1}]}'), "'Arrived'"),
    (event('{"kind":"StepStarted","changes":[{"request":1}]}'), "tag"),
    (
        event('{"kind":"StepStarted","changes":[{"kind":"Extended","requests":[1],"scheduled":[],"computes":[]}]}'),
        "0 counts",
    ),
    (
        event('{"kind":"StepStarted","changes":[{"kind":"Extended","requests":[],"scheduled":[],"computes":[[1]]}]}'),
        "Field required",
    ),
    (
        event('{"kind":"SaveRequested","layout":{"requests":[],"counts":[1],"slots":[],"padded":null},"outputs":[]}'),
        "1 counts",
    ),
    (
        event(
            '{"kind":"SaveRequested","layout":{"requests":[],"counts":[],"slots":[],"padded":null},'
            '"outputs":[{"name":"m","shape":[2,-1],"dtype":null}]}'
        ),
        "cannot have the shape",
    ),
    (
        event('{"kind":"PolicyRegistered","policy":{"hidden":1,' + NOTHING + "}}"),
        "valid boolean",
    ),
    (
        event('{"kind":"PolicyRegistered","policy":{"hidden":true,' + NOTHING.replace("[]", '["b","a"]', 1) + "}}"),
        "sorted list",
    ),
    (
        event('{"kind":"PolicyRegistered","policy":{"hidden":true,' + NOTHING.replace("[]", '["a","a"]', 1) + "}}"),
        "sorted list",
    ),
    (
        event('{"kind":"PolicyRegistered","policy":{"hidden":true,' + NOTHING.replace("[]", '["a"]', 2) + "}}"),
        "one class",
    ),
    (dict(lines())["FreezeRows"].replace("COMPUTE", "compute"), "COMPUTE"),
    (dict(lines())["FreezeRows"].replace('"step":1,"num', '"step":1,"write":1,"num'), "Extra inputs"),
    ("[" * 100_000, "nests deeper"),
    ('{"version":' * 50_000, "nests deeper"),
    ("\ufeff" + event('{"kind":"ResetRequested"}'), "BOM"),
]


@pytest.mark.parametrize(("line", "why"), BAD_LINES, ids=[f"{n}" for n in range(len(BAD_LINES))])
def test_line_that_is_none_is_refused_with_what_was_expected(line: str, why: str) -> None:
    """A trace comes from anywhere; what is not understood in full is not guessed at."""
    with pytest.raises(TraceFormatError) as raised:
        from_json(line)

    assert why in str(raised.value)
    assert repr(line[:60])[:-1] in str(raised.value)
    assert len(str(raised.value)) < 1200
    assert isinstance(raised.value, ContractError)


@settings(max_examples=200)
@given(st.text())
def test_any_text_is_refused(text: str) -> None:
    """Never with another exception, whatever the text."""
    with pytest.raises(TraceFormatError):
        from_json(text)


@settings(max_examples=200)
@given(st.sampled_from(lines()), st.integers(0, 1000))
def test_line_cut_short_is_refused(line: tuple[str, str], length: int) -> None:
    """A process that was killed wrote half of its last line."""
    with pytest.raises(TraceFormatError):
        from_json(line[1][: min(length, len(line[1]) - 1)])


@settings(max_examples=200)
@given(st.data())
def test_line_with_one_character_changed_is_a_line_or_refused(data: st.DataObject) -> None:
    """Files rot."""
    _, line = data.draw(st.sampled_from(lines()))
    place = data.draw(st.integers(0, len(line) - 1))
    text = line[:place] + data.draw(st.characters() | st.sampled_from('0[]{}",:')) + line[place + 1 :]
    try:
        found = from_json(text)
    except TraceFormatError:
        return

    assert found == from_json(to_json(found))


@pytest.mark.parametrize(
    ("value", "why"),
    [
        (WaitedFor(page=True), "not an event"),
        ("CopyBegan", "not an event"),
        (None, "not an event"),
        (CopyBegan(cast("int", "1")), "valid integer"),
        (CopyBegan(cast("int", 1.0)), "valid integer"),
        (CopyBegan(cast("int", True)), "valid integer"),
        (CopyBegan(10**5000), "4300"),
        (WriteFailed(1, cast("str", b"gone")), "valid string"),
        (StepStarted(cast("Any", (CopyBegan(1),))), "CopyBegan"),
        (SaveRequested(cast("Any", None), ()), "layout"),
        (Waiting(cast("Any", {1})), "waited_for"),
        (Waiting(cast("Any", object())), "waited_for"),
    ],
)
def test_value_that_no_line_stands_for_is_refused(value: Any, why: str) -> None:
    """What is written can be read again, or is not written."""
    with pytest.raises(TraceFormatError) as raised:
        to_json(value)

    assert why in str(raised.value)


# --- The schema -----------------------------------------------------------------------------------------------------


def test_json_schema_names_every_class_and_lets_nothing_else_in() -> None:
    """Whoever writes traces in another language checks them with it."""
    schema = json_schema()
    models: dict[str, Any] = schema["$defs"]
    objects = [each for each in models.values() if each.get("type") == "object"]

    assert {cls.__name__ for cls in CLASSES} <= models.keys()
    assert {"EventLine", "AnswerLine", "CommandLine"} <= models.keys()
    assert all(each["additionalProperties"] is False for each in objects)
    assert all(sorted(each.get("required", [])) == sorted(each.get("properties", {})) for each in objects)
    assert "event" in json.dumps(schema["discriminator"])
    assert json.loads(json.dumps(schema)) == schema
    assert HIDDEN not in json.dumps(schema)
