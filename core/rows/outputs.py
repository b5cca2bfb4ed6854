"""Tells the per-token rows of a step from its leftovers (D03), and what a name must keep to.

The class of a name is declared by the policy, or inferred once and then held. Nothing here changes the state: what a
step newly settles counts from its publication on.
"""

from typing import Final, NamedTuple

from tenure.core.errors import (
    HiddenRowsError,
    NameClassError,
    NamesExhaustedError,
    OutputNameError,
    PoolExhaustedError,
    RowDtypeError,
    RowFormatChangedError,
)
from tenure.core.rows.names import HIDDEN, ITEM_BYTES, HeldClass, NameClass, NameId, Output, RowFormat, Schedule
from tenure.core.rows.tables import Tables

_SCHEDULES: Final = {
    NameClass.IMMEDIATE: Schedule.JOIN_NEXT_STEP,
    NameClass.DEFERRED: Schedule.JOIN_ON_FINISH,
}


class SortedOutputs(NamedTuple):
    """The outputs of a step by kind, each in the order of the step.

    Attributes:
        formats: all names that are rows.
        leftovers: all names that are not.
        registers: names seen as rows for the first time.
        classes: what was inferred.
    """

    formats: tuple[RowFormat, ...]
    leftovers: tuple[NameId, ...]
    registers: tuple[RowFormat, ...]
    classes: tuple[tuple[NameId, HeldClass], ...]


def sort_outputs(tables: Tables, outputs: tuple[Output, ...], tokens: int, padded: int) -> SortedOutputs:
    """Sort the outputs of a step of `tokens` tokens, whose tensors may have `padded` rows instead.

    Rules: R15.

    Raises:
        OutputNameError: a name is no name, or comes twice.
        HiddenRowsError: hidden states are no rows, or too few.
        NameClassError: a name is not what it was.
        RowFormatChangedError: its rows have another shape or dtype than before.
        RowDtypeError: no row may have this dtype.
        NamesExhaustedError, PoolExhaustedError: a new name is one too many, or needs too much memory.
    """
    formats: list[RowFormat] = []
    leftovers: list[NameId] = []
    classes: list[tuple[NameId, HeldClass]] = []
    seen: set[NameId] = set()
    for output in outputs:
        _check_name(output.name, seen)
        if output.name == HIDDEN:
            if tables.policy.hidden:
                formats.append(_hidden_format(tables, output, tokens))
            continue
        kind = _kind_of(tables, output, tokens, padded, classes)
        if kind is NameClass.LEFTOVER:
            leftovers.append(output.name)
        else:
            formats.append(_row_format(tables, output, _SCHEDULES[kind]))
    registers = tuple(each for each in formats if each.name not in tables.formats)
    _check_limits(tables, registers)
    return SortedOutputs(tuple(formats), tuple(leftovers), registers, tuple(classes))


def _check_name(name: object, seen: set[NameId]) -> None:
    if not isinstance(name, str) or not name:
        raise OutputNameError(name, "a name is a string of at least one character")
    if name in seen:
        raise OutputNameError(name, "it comes twice in one step")
    seen.add(name)


def _hidden_format(tables: Tables, output: Output, tokens: int) -> RowFormat:
    shape = output.shape
    if shape is None or len(shape) < 2 or shape[0] < tokens:
        raise HiddenRowsError(shape, tokens)
    return _row_format(tables, output, Schedule.JOIN_NEXT_STEP)


def _kind_of(
    tables: Tables, output: Output, tokens: int, padded: int, classes: list[tuple[NameId, HeldClass]]
) -> NameClass:
    name, shape, policy = output.name, output.shape, tables.policy
    held = tables.classes.get(name)
    if name in policy.immediate or name in policy.deferred:
        kind = NameClass.DEFERRED if name in policy.deferred else NameClass.IMMEDIATE
        held, dimensions = HeldClass(kind, None), 1
    else:
        dimensions = 2
    if shape is None or name in policy.leftovers:
        return NameClass.LEFTOVER
    is_rows = len(shape) >= dimensions and shape[0] in (tokens, padded)
    if held is None:
        if not policy.infer or tokens == 1:
            return NameClass.LEFTOVER
        kind = NameClass.IMMEDIATE if is_rows else NameClass.LEFTOVER
        if kind is NameClass.LEFTOVER and len(tables.classes) >= 2 * tables.config.names_max:
            # Everything has a limit: what is emitted under ever new names is passed through and not held.
            return kind
        classes.append((name, HeldClass(kind, shape)))
        return kind
    if held.kind is not NameClass.LEFTOVER and not is_rows:
        raise NameClassError(name, held.kind.value, held.first_shape, shape, tokens)
    return held.kind


def _row_format(tables: Tables, output: Output, schedule: Schedule) -> RowFormat:
    shape, dtype = output.shape or (), output.dtype
    if dtype is None or dtype not in ITEM_BYTES:
        raise RowDtypeError(output.name, dtype, tuple(ITEM_BYTES))
    found = RowFormat(output.name, shape[1:], dtype, schedule)
    known = tables.formats.get(output.name, found)
    if known != found:
        raise RowFormatChangedError(output.name, known.row_shape, known.dtype, found.row_shape, dtype)
    return known


def _check_limits(tables: Tables, registers: tuple[RowFormat, ...]) -> None:
    config = tables.config
    used = config.num_slots * sum(each.row_bytes for each in tables.formats.values()) if registers else 0
    for place, each in enumerate(registers, len(tables.formats)):
        if place >= config.names_max:
            raise NamesExhaustedError(each.name, config.names_max)
        needed = config.num_slots * each.row_bytes
        if config.pool_bytes_max is not None and used + needed > config.pool_bytes_max:
            raise PoolExhaustedError(each.name, needed, used, config.pool_bytes_max)
        used += needed
