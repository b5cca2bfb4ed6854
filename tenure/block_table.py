"""Which slots a step computes: from the block table of the batch, on the CPU, in one operation.

Reading a slot map back from a device would wait for the whole forward pass. What the scheduler put into the block
table is on the CPU anyway.
"""

from collections.abc import Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt

from tenure.core.arrays import Integers
from tenure.core.config import RowConfig
from tenure.core.errors import BatchRowError
from tenure.core.rows.events import BlockId, RequestId


class BlockTable(Protocol):
    """The block table of the batch, as a row cache needs it."""

    def batch(self) -> Sequence[RequestId]:
        """The requests of the batch, in the order of their rows; some may have no token in this step."""
        ...

    def step_slots(self, counts: Integers) -> Integers:
        """The slots of the next `counts[i]` tokens of request i, one request after the other.

        Shapes: `counts: [requests of the batch]`; the result `[sum(counts)]`.

        Raises:
            BatchRowError: a request has no block for a token.
        """
        ...


class NumpyBlockTable:
    """A block table of numpy arrays, one row a request, in batch order.

    Its blocks are those of the attention kernel; where these are smaller than the allocator's, `add` and `append` cut
    the allocator's blocks into the kernel's. A slot has the same number either way.

    Attributes:
        blocks: the kernel's block numbers. Shapes: `[requests_max, kernel blocks of one request]`.
        computed: tokens of each request that are computed. Shapes: `[requests_max]`.
    """

    def __init__(self, config: RowConfig, requests_max: int, blocks_max: int) -> None:
        """No requests; room for `requests_max`, with `blocks_max` of the allocator's blocks each."""
        self._size = config.kernel_block_size or config.block_size
        self._ratio = config.block_size // self._size
        self.blocks: npt.NDArray[np.int64] = np.zeros((requests_max, blocks_max * self._ratio), dtype=np.int64)
        self.computed: npt.NDArray[np.int64] = np.zeros(requests_max, dtype=np.int64)
        self._lengths: npt.NDArray[np.int64] = np.zeros(requests_max, dtype=np.int64)
        self._requests: list[RequestId] = []
        self._rows: dict[RequestId, int] = {}

    def batch(self) -> Sequence[RequestId]:
        """The requests, in the order of their rows."""
        return tuple(self._requests)

    def add(self, request: RequestId, blocks: Sequence[BlockId], computed: int = 0) -> None:
        """A request joins the batch, behind all others, with its blocks of the allocator.

        Raises:
            BatchRowError: it is there already, or there is no room for it.
        """
        if request in self._rows:
            raise BatchRowError(request, "it is in the batch already; remove it first")
        row = len(self._requests)
        if row == len(self.blocks):
            raise BatchRowError(request, f"all {row} rows are taken; make the table with more")
        self._rows[request] = row
        self._requests.append(request)
        self._lengths[row] = 0
        self.computed[row] = computed
        try:
            self.append(request, blocks)
        except BatchRowError:
            self.remove(request)
            raise

    def append(self, request: RequestId, blocks: Sequence[BlockId]) -> None:
        """A request got further blocks of the allocator.

        Raises:
            BatchRowError: it is not in the batch, or its row is too short.
        """
        row = self._row(request)
        start = int(self._lengths[row])
        stop = start + len(blocks) * self._ratio
        if stop > self.blocks.shape[1]:
            raise BatchRowError(
                request, f"{stop} kernel blocks do not fit its row of {self.blocks.shape[1]}; make the table wider"
            )
        cut = np.asarray(blocks, dtype=np.int64)[:, None] * self._ratio + np.arange(self._ratio, dtype=np.int64)
        self.blocks[row, start:stop] = cut.reshape(-1)
        self._lengths[row] = stop

    def advance(self, counts: Integers) -> None:
        """The next `counts[i]` tokens of request i are computed. Shapes: `[requests of the batch]`."""
        self.computed[: len(counts)] += counts

    def remove(self, request: RequestId) -> None:
        """A request leaves the batch; those behind it move up.

        Raises:
            BatchRowError: it is not there.
        """
        row, count = self._row(request), len(self._requests)
        for array in (self.blocks, self.computed, self._lengths):
            array[row : count - 1] = array[row + 1 : count]
        del self._requests[row], self._rows[request]
        self._rows.update((each, place) for place, each in enumerate(self._requests[row:], row))

    def _row(self, request: RequestId) -> int:
        row = self._rows.get(request)
        if row is None:
            raise BatchRowError(request, "it is not in the batch; add it first")
        return row

    def step_slots(self, counts: Integers) -> Integers:
        """The slots of the next `counts[i]` tokens of request i, one request after the other.

        Shapes: `counts: [requests of the batch]`; the result `[sum(counts)]`.

        Raises:
            BatchRowError: a request has no block for a token.
        """
        size, requests = self._size, len(self._requests)
        computed = self.computed[:requests]
        missing = computed + counts > self._lengths[:requests] * size
        if missing.any():
            row = int(np.argmax(missing))
            raise BatchRowError(
                self._requests[row],
                f"{counts[row]} tokens behind {computed[row]} need more than its {self._lengths[row]} blocks of {size} "
                "tokens; append its new blocks before the step is saved",
            )
        ends = np.cumsum(counts)
        rows = np.repeat(np.arange(requests, dtype=np.int64), counts)
        positions = np.arange(int(ends[-1]) if requests else 0, dtype=np.int64)
        positions += np.repeat(computed - (ends - counts), counts)
        slots: Integers = self.blocks[rows, positions // size] * size + positions % size
        return slots
