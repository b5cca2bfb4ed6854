"""Holds what a materialize returned against what the tokens should have made: shapes, dtypes, every bit of a row."""

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Any, Final, NamedTuple, Protocol

import numpy as np

from tenure.core.blocks.values import RequestId
from tenure.core.errors import InvariantViolation
from tenure.replay.row_counters import SavedStep, Span
from tenure.replay.row_specs import RowSpec
from tenure.replay.row_values import RowMaker, Rows

TOGETHER_MAX: Final = 512
"""Rows of requests that have fewer are compared together: a step may have many requests with one row each."""


class Outputs(Protocol):
    """What a materialize returns."""

    @property
    def hidden_states(self) -> Mapping[RequestId, Any] | None:
        """Rows by request; None if the step has no hidden states."""
        ...

    @property
    def mm_outputs(self) -> Mapping[str, Mapping[RequestId, Any]]:
        """Rows by name and request."""
        ...


class Part(NamedTuple):
    """The rows of one request under one name."""

    span: Span
    rows: Rows


def parts_of(spec: RowSpec, saved: SavedStep, outputs: Outputs) -> list[Part]:
    """What came back under one name.

    Raises:
        InvariantViolation: R02, nothing came back for a request.
    """
    by_request = outputs.hidden_states if spec.is_hidden else outputs.mm_outputs.get(spec.name)
    parts: list[Part] = []
    for span in saved.spans:
        rows = None if by_request is None else by_request.get(span.request)
        if rows is None:
            raise InvariantViolation(
                "R02", f"request {span.request!r} got nothing of {spec.name} when step {saved.step} was materialized"
            )
        parts.append(Part(span, rows))
    return parts


class Verifier:
    """Verifies the rows of steps; for one thread."""

    def __init__(self, specs: Sequence[RowSpec]) -> None:
        self._makers = {spec: RowMaker(spec) for spec in specs}

    def verify(self, spec: RowSpec, step: int, parts: Sequence[Part]) -> int:
        """Compare every row of one name; how many they were.

        Raises:
            InvariantViolation: R02, which request, name, position and step.
        """
        maker = self._makers[spec]
        for span, rows in parts:
            expected = (len(span.words), *spec.row_shape)
            if expected != rows.shape or maker.dtype != rows.dtype:
                raise InvariantViolation(
                    "R02",
                    f"request {span.request!r} got {spec.name} with the shape {rows.shape} of {rows.dtype} when step "
                    f"{step} was materialized, expected {expected} of {maker.dtype}",
                )
        for group in _groups(parts):
            words = np.concatenate([span.words for span, _ in group]) if len(group) > 1 else group[0].span.words
            rows = np.concatenate([rows for _, rows in group]) if len(group) > 1 else group[0].rows
            wrong = maker.first_wrong(words, rows)
            if wrong is not None:
                raise _mismatch(spec, step, group, wrong)
        return sum(len(span.words) for span, _ in parts)


def _groups(parts: Sequence[Part]) -> Iterator[list[Part]]:
    """Parts to compare together: small ones in groups, large ones alone."""
    group: list[Part] = []
    count = 0
    for part in parts:
        if len(part.span.words) > TOGETHER_MAX:
            yield [part]
            continue
        group.append(part)
        count += len(part.span.words)
        if count > TOGETHER_MAX:
            yield group
            group, count = [], 0
    if group:
        yield group


def _mismatch(spec: RowSpec, step: int, group: Sequence[Part], wrong: int) -> InvariantViolation:
    stops = list(accumulate(len(span.words) for span, _ in group))
    place = bisect_right(stops, wrong)
    span = group[place].span
    position = span.first + wrong - (stops[place] - len(span.words))
    source = "the step's own row" if position >= span.before else "a row of its hit"
    return InvariantViolation(
        "R02",
        f"request {span.request!r} got a wrong row of {spec.name} at position {position} ({source}) when step {step} "
        "was materialized: it is not what the tokens up to there made",
    )
