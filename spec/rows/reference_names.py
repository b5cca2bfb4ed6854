"""What a step's outputs are, for the naive oracle: per-token rows or leftovers, and which may not be.

Decides classes and formats of names. What rows hold, and where they are, is no matter of this file.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from tenure.core.config import RowConfig, RowPolicy
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


@dataclass(frozen=True, slots=True)
class Names:
    """What is known of names at one moment.

    Attributes:
        formats: the names whose rows have been seen; first seen first.
        inferred: the undeclared names whose first telling output was seen.
    """

    formats: dict[NameId, RowFormat] = field(default_factory=dict[NameId, RowFormat])
    inferred: dict[NameId, HeldClass] = field(default_factory=dict[NameId, HeldClass])


@dataclass(frozen=True, slots=True)
class SortedOutputs:
    """A step's outputs, sorted.

    Attributes:
        rows: names of which each token has a row.
        leftovers: every other name that is looked at.
        names: what is known of names once the step is saved.
    """

    rows: tuple[NameId, ...]
    leftovers: tuple[NameId, ...]
    names: Names


def sort_outputs(
    outputs: Sequence[Output], tokens: int, padded: int | None, names: Names, policy: RowPolicy, config: RowConfig
) -> SortedOutputs:
    """Tell rows from leftovers, by what is declared, known, or seen for the first time.

    Raises:
        TenureError: an output cannot be taken; R15 lists why.
    """
    seen = [output.name for output in outputs]
    for name in seen:
        if not name:
            raise OutputNameError(name, "it is empty")
        if seen.count(name) > 1:
            raise OutputNameError(name, "it comes twice in one step")
    known = Names(dict(names.formats), dict(names.inferred))
    rows: list[NameId] = []
    leftovers: list[NameId] = []
    for output in outputs:
        if output.name == HIDDEN:
            if policy.hidden:
                _check_hidden(output, tokens)
                rows.append(HIDDEN)
                _take_format(output, Schedule.JOIN_NEXT_STEP, known)
            continue
        kind = _class_of(output, tokens, padded, known, policy)
        if kind is NameClass.LEFTOVER:
            leftovers.append(output.name)
            continue
        rows.append(output.name)
        deferred = kind is NameClass.DEFERRED
        _take_format(output, Schedule.JOIN_ON_FINISH if deferred else Schedule.JOIN_NEXT_STEP, known)
    _check_limits(known, len(names.formats), config)
    return SortedOutputs(tuple(rows), tuple(leftovers), known)


def _check_hidden(output: Output, tokens: int) -> None:
    if output.shape is None or len(output.shape) < 2 or output.shape[0] < tokens:
        raise HiddenRowsError(output.shape, tokens)


def _class_of(output: Output, tokens: int, padded: int | None, known: Names, policy: RowPolicy) -> NameClass:
    """What an mm output is in this step; an undeclared name may be settled by it for good."""
    name, shape = output.name, output.shape
    declared = _declared(name, policy)
    held = known.inferred.get(name)
    if declared is NameClass.LEFTOVER or (declared is None and not policy.infer):
        return NameClass.LEFTOVER
    if shape is None:
        return NameClass.LEFTOVER
    has_rows = len(shape) >= 1 and shape[0] in (tokens, padded)
    if declared is not None:
        if not has_rows:
            raise NameClassError(name, declared.value, None, shape, tokens)
        return declared
    has_rows = has_rows and len(shape) >= 2
    if held is None:
        if tokens == 1:
            return NameClass.LEFTOVER
        held = HeldClass(NameClass.IMMEDIATE if has_rows else NameClass.LEFTOVER, shape)
        known.inferred[name] = held
    if held.kind is NameClass.IMMEDIATE and not has_rows:
        raise NameClassError(name, held.kind.value, held.first_shape, shape, tokens)
    return held.kind


def _declared(name: NameId, policy: RowPolicy) -> NameClass | None:
    if name in policy.immediate:
        return NameClass.IMMEDIATE
    if name in policy.deferred:
        return NameClass.DEFERRED
    return NameClass.LEFTOVER if name in policy.leftovers else None


def _take_format(output: Output, schedule: Schedule, known: Names) -> None:
    """Register a name with its first rows, or hold its later rows against them."""
    shape = () if output.shape is None else output.shape[1:]
    if output.dtype is None or output.dtype not in ITEM_BYTES:
        raise RowDtypeError(output.name, output.dtype, tuple(ITEM_BYTES))
    found = RowFormat(output.name, shape, output.dtype, schedule)
    first = known.formats.setdefault(output.name, found)
    if first != found:
        raise RowFormatChangedError(output.name, first.row_shape, first.dtype, shape, output.dtype)


def _check_limits(known: Names, before: int, config: RowConfig) -> None:
    """Refuse the first new name that is one too many, or whose pool would not fit beside the others."""
    formats = list(known.formats.values())
    for count in range(before, len(formats)):
        if count == config.names_max:
            raise NamesExhaustedError(formats[count].name, config.names_max)
        used = config.num_slots * sum(each.row_bytes for each in formats[:count])
        needed = config.num_slots * formats[count].row_bytes
        if config.pool_bytes_max is not None and used + needed > config.pool_bytes_max:
            raise PoolExhaustedError(formats[count].name, needed, used, config.pool_bytes_max)
