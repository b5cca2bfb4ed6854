"""Commands whose rows are picked by an index: deferred copies, scatters, preserves, gathers.

Each becomes a few operations, however many rows, chunks or clones it has.
"""

from collections.abc import Iterator
from typing import Final

import numpy as np

from tenure.backends.device import Buffer, Device, Lane, Rows
from tenure.backends.memory import Lease, Region
from tenure.backends.storage import Storage
from tenure.core.arrays import Integers
from tenure.core.columns import spans
from tenure.core.rows.commands import CopyDeferred, GatherPart, GatherRows, PreserveRows, ScatterRows, SourceKind
from tenure.core.rows.names import RowFormat

NONE: Final = -1


def pieces(rows: int, chunk_bytes: int, row_format: RowFormat) -> Iterator[tuple[int, int]]:
    """Cut so many rows into `[first, last)` of at most `chunk_bytes` each, or of one row."""
    most = max(chunk_bytes // max(row_format.row_bytes, 1), 1)
    for first in range(0, rows, most):
        yield first, min(first + most, rows)


class Gathers:
    """Turns index commands into operations. What each method returns is the bytes that it asked to copy."""

    def __init__(self, device: Device, storage: Storage, chunk_bytes: int) -> None:
        """Copies from device to host are cut into operations of at most `chunk_bytes`."""
        self._device = device
        self._storage = storage
        self._chunk_bytes = chunk_bytes

    def copy_deferred(self, command: CopyDeferred) -> int:
        """Copy the chunks of a deferred write to its host rows."""
        counts = command.stops - command.starts
        ends = np.cumsum(counts)
        clones = command.clones.tolist()
        copied = 0
        for each in command.formats:
            host = self._storage.make_host(command.write, each, command.num_rows)
            regions = self._storage.regions(clones, each.name)
            places = np.array([NONE if region is None else region.start for region in regions], dtype=np.int64)
            # Chunks in a row that lie in one slab are copied together.
            first = 0
            for last in _runs(regions):
                region = regions[first]
                if region is not None:
                    start, stop = int(ends[first] - counts[first]), int(ends[last - 1])
                    starts = places[first:last] + command.starts[first:last]
                    index = spans(starts, starts + counts[first:last])
                    for head, tail in pieces(stop - start, self._chunk_bytes, each):
                        target = host.rows(start + head, start + tail)
                        self._gather(command.lane, target, region.slab.buffer, index[head:tail])
                    copied += (stop - start) * each.row_bytes
                first = last
        return copied

    def scatter(self, command: ScatterRows) -> int:
        """Copy rows of a write from its page, or its host rows, to the pool."""
        copied = 0
        for part in command.parts:
            pool = self._storage.pool(part.name)
            row_format = self._storage.format(part.name)
            if command.page is None:
                source = self._storage.host(command.write, part.name)
            else:
                source = self._storage.page(command.page, part.name)
            rows = self._contiguous(command.lane, source, part.rows, row_format)
            self._scatter(command.lane, pool, part.slots, rows)
            copied += len(part.rows) * row_format.row_bytes
        return copied

    def preserve(self, command: PreserveRows) -> int:
        """Copy pool rows aside for a read."""
        lease = self._storage.make_aside(command)
        count = len(command.slots)
        self._gather(command.lane, lease.rows(0, count), self._storage.pool(command.format.name), command.slots)
        return count * command.format.row_bytes

    def gather(self, command: GatherRows) -> int:
        """Fill the buffer of a read; rows that no part names are zeros."""
        lease = self._storage.make_read(command)
        named = sum(len(part.rows) for part in command.parts)
        if named < command.num_rows:
            self._device.zero_rows(command.lane, lease.rows(0, command.num_rows))
        for part in command.parts:
            self._gather_part(command, lease, part)
        return named * command.format.row_bytes

    def _gather_part(self, command: GatherRows, lease: Lease, part: GatherPart) -> None:
        name, lane = command.format.name, command.lane
        match part.kind:
            case SourceKind.POOL:
                self._move(lane, lease, part.rows, self._storage.pool(name), part.source_rows, command.format)
            case SourceKind.PRESERVED:
                for aside in self._storage.asides(command.read):
                    self._scatter(lane, lease.buffer, aside.rows, aside.lease.rows(0, len(aside.rows)))
            case SourceKind.HOST:
                for write in np.unique(part.sources).tolist():
                    mine = part.sources == write
                    source = self._storage.host(write, name)
                    self._move(lane, lease, part.rows[mine], source, part.source_rows[mine], command.format)
            case SourceKind.CLONE:
                self._gather_clones(command, lease, part)

    def _gather_clones(self, command: GatherRows, lease: Lease, part: GatherPart) -> None:
        clones, which = np.unique(part.sources, return_inverse=True)
        regions = self._storage.regions(clones.tolist(), command.format.name)
        slabs: dict[int, tuple[Buffer, list[int]]] = {}
        for place, region in enumerate(regions):
            assert region is not None
            slabs.setdefault(id(region.slab), (region.slab.buffer, []))[1].append(place)
        starts = np.array([region.start for region in regions if region is not None], dtype=np.int64)
        source_rows = starts[which] + part.source_rows
        for slab, places in slabs.values():
            mine = np.isin(which, places)
            self._move(command.lane, lease, part.rows[mine], slab, source_rows[mine], command.format)

    # --- Operations ---------------------------------------------------------------------------------------------

    def _move(
        self, lane: Lane, lease: Lease, rows: Integers, source: Buffer, source_rows: Integers, row_format: RowFormat
    ) -> None:
        """Row `source_rows[i]` of a buffer becomes row `rows[i]` of a lease."""
        if _is_run(rows):
            first = int(rows[0])
            self._gather(lane, lease.rows(first, first + len(rows)), source, source_rows)
            return
        self._scatter(lane, lease.buffer, rows, self._contiguous(lane, source, source_rows, row_format))

    def _contiguous(self, lane: Lane, source: Buffer, rows: Integers, row_format: RowFormat) -> Rows:
        """Rows of a buffer, one behind the other: as they are, or gathered first."""
        count = len(rows)
        if _is_run(rows):
            first = int(rows[0])
            return Rows(source, first, first + count)
        scratch = self._storage.make_scratch(row_format, count)
        self._gather(lane, scratch.rows(0, count), source, rows)
        return scratch.rows(0, count)

    def _gather(self, lane: Lane, target: Rows, source: Buffer, index: Integers) -> None:
        if _is_run(index):
            first = int(index[0])
            self._device.copy(lane, target, Rows(source, first, first + len(index)))
        else:
            self._device.gather_rows(lane, target, source, index)

    def _scatter(self, lane: Lane, target: Buffer, index: Integers, source: Rows) -> None:
        if _is_run(index):
            first = int(index[0])
            self._device.copy(lane, Rows(target, first, first + len(index)), source)
        else:
            self._device.scatter_rows(lane, target, index, source)


def _is_run(index: Integers) -> bool:
    """Whether an index counts up one by one."""
    first = int(index[0])
    return int(index[-1]) - first + 1 == len(index) and bool((np.diff(index) == 1).all())


def _runs(regions: list[Region | None]) -> list[int]:
    """Where runs of regions in one slab end."""
    slabs = [None if region is None else region.slab for region in regions]
    ends = [place for place in range(1, len(slabs)) if slabs[place] is not slabs[place - 1]]
    return [*ends, len(slabs)]
