"""Stands for the forward pass of an engine: makes the rows of a step, in buffers that the next step overwrites."""

from collections.abc import Sequence

import numpy as np

from tenure.replay.row_specs import RowSpec
from tenure.replay.row_values import RowMaker, Rows, Words


class Forward:
    """Makes the rows of steps.

    What it returns are views of buffers that it keeps: a cache that does not copy them in time shows rows of a later
    step.
    """

    def __init__(self, specs: Sequence[RowSpec], step_tokens: int) -> None:
        """Steps have at most `step_tokens` tokens."""
        makers = [RowMaker(spec) for spec in specs]
        self._parts = [(maker, np.empty((step_tokens, *maker.spec.row_shape), maker.dtype)) for maker in makers]

    def run(self, words: Words) -> tuple[Rows | None, dict[str, Rows]]:
        """The hidden states and the mm outputs of a step.

        Shapes: `words: [tokens]`; the results `[tokens, *row_shape]`, until the next call.
        """
        hidden: Rows | None = None
        mm: dict[str, Rows] = {}
        for maker, buffer in self._parts:
            rows = buffer[: len(words)]
            maker.fill(words, rows)
            if maker.spec.is_hidden:
                hidden = rows
            else:
                mm[maker.spec.name] = rows
        return hidden, mm
