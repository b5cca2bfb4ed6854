"""Traces of the row machine as text: one line of JSON for each event, answer and command, checked in full when read.

A line is `{"version": 1, "kind": "event" | "answer" | "command", "value": {...}}`. A value is an object with a field
for each field of its class; what stands for one class out of several carries the name of its class as `kind`. Arrays
and tuples are lists, sets are sorted lists, members of an enumeration their names. Every field is written, and
required; what a class does not have is refused. The models are made from the classes themselves, so that the two
cannot differ.
"""

import json
from collections.abc import Mapping
from dataclasses import is_dataclass
from enum import Enum
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, Final, Literal, TypeAlias, Union, cast, get_args, get_origin, get_type_hints

import numpy as np
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, Strict, TypeAdapter, ValidationError, create_model

from tenure.core.arrays import integers
from tenure.core.errors.traces import TraceFormatError
from tenure.core.rows.answers import RowAnswer
from tenure.core.rows.commands import RowCommand
from tenure.core.rows.events import LifeCycle, RowEvent

SCHEMA_VERSION: Final = 1

TraceValue: TypeAlias = RowEvent | RowAnswer | RowCommand

_KINDS: Final[tuple[tuple[str, Any], ...]] = (("event", RowEvent), ("answer", RowAnswer), ("command", RowCommand))
_KIND_OF: Final = {value: kind for kind, union in _KINDS for value in get_args(union)}
_PLAIN: Final = (str, int, bool, NoneType)
"""What is the same in JSON; most of a long line, so it is asked first."""
_TAGGED: Final = frozenset(_KIND_OF) | frozenset(get_args(LifeCycle))
"""The classes that carry their name: a reader could not tell them apart otherwise."""

_Union: Any = Union
_Literal: Any = Literal
_List: Any = list
_Tuple: Any = tuple
_Annotated: Any = Annotated
"""Makers of types for whoever makes types while running; type checkers look for types in the text."""


# --- What a caller needs --------------------------------------------------------------------------------------


def to_json(value: TraceValue, *, checked: bool = True) -> str:
    """The trace line of an event, answer or command, without a line end; equal values have equal lines.

    With `checked` False the caller knows that every field holds what its class allows, as of whatever a machine took.
    What stands there for a whole number (a bool, a member of an IntEnum) is written as the number it was taken for.

    Raises:
        TraceFormatError: a field holds something that its class does not allow.
    """
    try:
        line = {"version": SCHEMA_VERSION, "kind": _KIND_OF[type(value)], "value": _encode(value, checked=checked)}
        if checked:
            _adapter().validate_python(line)
        return json.dumps(line, separators=(",", ":"))
    except KeyError:
        raise TraceFormatError(_shown(value), "not an event, answer or command of the row machine") from None
    except ValidationError as error:
        raise TraceFormatError(_shown(value), _first(error)) from None
    except (ValueError, TypeError) as error:
        raise TraceFormatError(_shown(value), str(error)) from None


def from_json(text: str) -> TraceValue:
    """The event, answer or command that a trace line stands for; arrays come back read-only.

    Raises:
        TraceFormatError: the text is not a trace line of this version, in every detail.
    """
    try:
        line = json.loads(text, object_pairs_hook=_object, parse_constant=_no_constant)
        _adapter().validate_python(line)
        return cast("TraceValue", _decode(dict(_KINDS)[line["kind"]], line["value"]))
    except ValidationError as error:
        raise TraceFormatError(text, _first(error)) from None
    except RecursionError:
        raise TraceFormatError(text, "the line nests deeper than any trace line does") from None
    except (ValueError, TypeError) as error:
        raise TraceFormatError(text, str(error)) from None


def json_schema() -> dict[str, Any]:
    """The JSON schema of a trace line."""
    return _adapter().json_schema()


# --- The models, made from the classes ------------------------------------------------------------------------


@cache
def _adapter() -> TypeAdapter[Any]:
    lines = [
        create_model(
            f"{kind.capitalize()}Line",
            __config__=ConfigDict(strict=True, extra="forbid"),
            version=(Annotated[int, Field(ge=SCHEMA_VERSION, le=SCHEMA_VERSION)], ...),
            kind=(_Literal[kind], ...),
            value=(_wire(union), ...),
        )
        for kind, union in _KINDS
    ]
    return TypeAdapter(_Annotated[_Union[tuple(lines)], Field(discriminator="kind")])


@cache
def _model(cls: Any) -> type[BaseModel]:
    fields: dict[str, Any] = {name: (_wire(hint), ...) for name, hint in _fields(cls).items()}
    if cls in _TAGGED:
        fields = {"kind": (_Literal[cls.__name__], ...), **fields}
    return create_model(cls.__name__, __config__=ConfigDict(strict=True, extra="forbid"), **fields)


@cache
def _fields(cls: Any) -> Mapping[str, Any]:
    """The fields of a value's class, with their types."""
    if issubclass(cls, BaseModel):
        return {name: field.annotation for name, field in cls.model_fields.items()}
    names = cls.__dataclass_fields__ if is_dataclass(cls) else cls._fields
    hints = get_type_hints(cls)
    return {name: hints[name] for name in names}


def _wire(hint: Any) -> Any:
    """The type that JSON has for a field's type."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        members = _Union[tuple(_wire(each) for each in arguments)]
        return _Annotated[members, Field(discriminator="kind")] if _TAGGED.issuperset(arguments) else members
    if origin is np.ndarray:
        return list[Annotated[int, Field(ge=-(2**63), lt=2**63)]]
    if origin is frozenset:
        return _Annotated[_List[_wire(arguments[0])], AfterValidator(_is_set)]
    if origin is tuple and arguments[1:] == (...,):
        return _List[_wire(arguments[0])]
    if origin is tuple:
        return _Annotated[_Tuple[tuple(_wire(each) for each in arguments)], Strict(strict=False)]
    if hint in _PLAIN:
        return hint
    return _Literal[tuple(member.name for member in hint)] if issubclass(hint, Enum) else _model(hint)


def _is_set(members: list[str]) -> list[str]:
    if sorted(set(members)) != members:
        msg = "a set is written as a sorted list without repetition"
        raise ValueError(msg)
    return members


# --- Values to JSON and back ----------------------------------------------------------------------------------


def _encode(value: Any, *, checked: bool) -> Any:
    if type(value) in _PLAIN:
        return value
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, Enum) and not isinstance(value, int | str):
        return value.name
    if isinstance(value, frozenset):
        return sorted(cast("frozenset[str]", value))
    if isinstance(value, np.integer):
        return int(cast("int", value))
    if is_dataclass(value) or isinstance(value, BaseModel) or hasattr(value, "_fields"):
        return _encoded_fields(value, type(value), checked=checked)
    if isinstance(value, tuple):
        parts: Any = value  # pyright: ignore[reportUnknownVariableType]
        return [_encode(each, checked=checked) for each in parts]
    return int(value) if isinstance(value, int) and not checked else value


def _encoded_fields(value: Any, cls: Any, *, checked: bool) -> dict[str, Any]:
    encoded = {name: _encode(getattr(value, name), checked=checked) for name in _fields(cls)}
    if not checked:
        encoded = {name: each if name in _bools(cls) else _numbers(each) for name, each in encoded.items()}
    return {"kind": cls.__name__, **encoded} if cls in _TAGGED else encoded


@cache
def _bools(cls: Any) -> frozenset[str]:
    """The fields of a value's class that are true or false."""
    return frozenset(name for name, hint in _fields(cls).items() if hint is bool)


def _numbers(encoded: Any) -> Any:
    """Where no field is true or false, bools are the numbers that they equal."""
    if type(encoded) is bool:
        return int(encoded)
    if type(encoded) is not list:
        return encoded
    parts: Any = encoded  # pyright: ignore[reportUnknownVariableType]
    return [_numbers(each) for each in parts] if any(type(each) in (bool, list) for each in parts) else parts


def _decode(hint: Any, data: Any) -> Any:
    """The value of a type that validated JSON stands for."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        choices = [each for each in arguments if each is not NoneType]
        if len(choices) > 1 and _TAGGED.issuperset(choices):
            choices = [each for each in choices if each.__name__ == data["kind"]]
        return data if data is None or len(choices) > 1 else _decode(choices[0], data)
    if origin is frozenset:
        return frozenset(data)
    if origin is tuple:
        if arguments[1:] == (...,) and _is_plain(arguments[0]):
            return tuple(data)
        parts = arguments[:1] * len(data) if arguments[1:] == (...,) else arguments
        return tuple(_decode(part, each) for part, each in zip(parts, data, strict=True))
    if origin is np.ndarray:
        return integers(data)
    if hint in (int, str, bool):
        return data
    if issubclass(hint, Enum):
        return hint[data]
    return hint(**{name: _decode(each, data[name]) for name, each in _fields(hint).items()})


@cache
def _is_plain(hint: Any) -> bool:
    """Whether values of a type are the same in JSON."""
    return hint in _PLAIN or (get_origin(hint) in (Union, UnionType) and all(map(_is_plain, get_args(hint))))


def _shown(value: object) -> str:
    try:
        return repr(value)
    except ValueError:
        # Python writes no number of several thousand digits.
        return type(value).__name__


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            msg = f"the field {name!r} is given twice"
            raise ValueError(msg)
        found[name] = value
    return found


def _no_constant(name: str) -> None:
    msg = f"{name} is not JSON"
    raise ValueError(msg)


def _first(error: ValidationError) -> str:
    """What is wrong first, and where."""
    found = error.errors(include_url=False, include_context=False, include_input=False)[0]
    return f"{'.'.join(map(str, found['loc'])) or 'the line'}: {found['msg']}"
