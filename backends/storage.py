"""Where rows lie: pool, pages, clones, host rows of writes, rows set aside, buffers of reads."""

from collections.abc import Iterable
from threading import Lock
from typing import Final, NamedTuple

from tenure.backends.device import Buffer, Device, Memory, Rows
from tenure.backends.memory import Allocator, Buffers, Lease, Region, Slabs
from tenure.core.arrays import Integers
from tenure.core.config import RowConfig
from tenure.core.errors import OperationFailedError, PageLockedMemoryError
from tenure.core.rows.commands import GatherRows, PreserveRows, ReleaseBuffers
from tenure.core.rows.events import CloneId, ReadId, WriteId
from tenure.core.rows.names import NameId, RowFormat

READ_ROOM: Final = 128
"""Rows that a read's buffer has beyond the hit, so that the few rows of its step fit behind it."""


class Aside(NamedTuple):
    """Pool rows set aside for a read: row i of the lease is the read's row `rows[i]`."""

    rows: Integers
    lease: Lease


class _Clones(NamedTuple):
    """The clones of one name, in its slabs."""

    slabs: Slabs
    regions: dict[CloneId, Region]


class Storage:
    """The memory of one executor.

    Attributes:
        buffers: host memory that is used again.
    """

    def __init__(self, device: Device, config: RowConfig) -> None:
        """Nothing is allocated.

        Raises:
            PageLockedMemoryError: the configuration allows more page-locked memory than the device has.
        """
        self._allocator = Allocator(device)
        self.buffers = Buffers(self._allocator)
        self._device = device
        self._config = config
        self._page_locked_bytes = 0
        self._formats: dict[NameId, RowFormat] = {}
        self._pools: dict[NameId, Buffer] = {}
        self._pages: dict[NameId, list[Buffer]] = {}
        # Replaced, and never changed, when a name comes in: other threads go over it.
        self._clones: dict[NameId, _Clones] = {}
        # Of names that came again with other rows, as long as a device may use clones with the first ones. Whoever
        # saves adds to them while whoever pumps frees them.
        self._retired: tuple[_Clones, ...] = ()
        self._retiring = Lock()
        self._hosts: dict[WriteId, dict[NameId, Lease]] = {}
        self._asides: dict[ReadId, list[Aside]] = {}
        self._reads: dict[ReadId, Lease] = {}
        self._scratch: list[Lease] = []

    # --- Names ------------------------------------------------------------------------------------------------------

    def register(self, row_format: RowFormat) -> None:
        """Allocate pool rows and pages for a name; does nothing if they are there.

        Raises:
            PageLockedMemoryError: the pages need more page-locked memory than device or configuration give.
            OperationFailedError: there is not so much memory.
        """
        name = row_format.name
        if self._formats.get(name) == row_format:
            return
        self._free_name(name)
        config, device = self._config, self._device
        needed = config.pages * config.page_rows_max * row_format.row_bytes
        limits = (("page_locked_bytes_max", config.page_locked_bytes_max), ("device", device.page_locked_bytes_max()))
        for whose, limit in limits:
            if limit is not None and self._page_locked_bytes + needed > limit:
                raise PageLockedMemoryError(name, needed, self._page_locked_bytes, limit, whose)
        fresh: list[Buffer] = []
        try:
            for memory, rows, count in (
                (Memory.PAGEABLE, config.num_slots, 1),
                (Memory.PAGE_LOCKED, config.page_rows_max, config.pages),
            ):
                # One at a time, so that whatever is there when one fails can be freed.
                for _ in range(count):
                    fresh += [self._allocator.allocate(memory, rows, row_format)]
        except BaseException:
            for each in fresh:
                device.free(each)
            raise
        self._page_locked_bytes += needed
        self._formats[name] = row_format
        self._pools[name], *self._pages[name] = fresh
        slabs = Slabs(self._allocator, row_format, config.page_rows_max, config.budget_bytes)
        self._clones = {**self._clones, name: _Clones(slabs, {})}

    def _free_name(self, name: NameId) -> None:
        """A name that was made ready and never published is here with other rows."""
        old = self._formats.pop(name, None)
        if old is None:
            return
        self._page_locked_bytes -= self._config.pages * self._config.page_rows_max * old.row_bytes
        for each in (self._pools.pop(name), *self._pages.pop(name)):
            self._device.free(each)
        with self._retiring:
            self._retired = (*self._retired, self._clones[name])
        self._free_retired()

    def _free_retired(self) -> None:
        """Free the slabs of retired names whose clones are all given back."""
        with self._retiring:
            unused = [each for each in self._retired if not each.regions]
            self._retired = tuple(each for each in self._retired if each not in unused)
        for each in unused:
            each.slabs.free()

    def format(self, name: NameId) -> RowFormat:
        """How the rows of a name are kept."""
        return self._formats[name]

    def pool(self, name: NameId) -> Buffer:
        """The pool rows of a name. Shapes: `[num_slots, *row_shape]`."""
        return self._pools[name]

    def page(self, page: int, name: NameId) -> Buffer:
        """A name's part of a page. Shapes: `[page_rows_max, *row_shape]`."""
        return self._pages[name][page]

    # --- What commands make -----------------------------------------------------------------------------------------

    def clone_rows(self, clone: CloneId, row_format: RowFormat, rows: int) -> Rows:
        """The rows of a clone under a name; made if they are not there.

        Raises:
            OperationFailedError: there is no device memory left.
        """
        slabs, regions = self._clones[row_format.name]
        region = regions.get(clone)
        if region is None:
            region = regions[clone] = slabs.take(rows)
        return Rows(region.slab.buffer, region.start, region.start + rows)

    def regions(self, clones: Iterable[CloneId], name: NameId) -> list[Region | None]:
        """Per clone where its rows of a name are; None where it has none."""
        return [*map(self._clones[name].regions.get, clones)]

    def make_host(self, write: WriteId, row_format: RowFormat, rows: int) -> Lease:
        """Host rows for a deferred write under a name."""
        try:
            lease = self.buffers.lease(Memory.PAGE_LOCKED, row_format, rows)
        except OperationFailedError:
            # Slower, and better than a write that fails.
            lease = self.buffers.lease(Memory.PAGEABLE, row_format, rows)
        self._hosts.setdefault(write, {})[row_format.name] = lease
        return lease

    def host(self, write: WriteId, name: NameId) -> Buffer:
        """The host rows of a deferred write under a name."""
        return self._hosts[write][name].buffer

    def make_aside(self, command: PreserveRows) -> Lease:
        """Room for pool rows set aside for a read."""
        lease = self.buffers.lease(Memory.PAGEABLE, command.format, len(command.rows))
        self._asides.setdefault(command.read, []).append(Aside(command.rows, lease))
        return lease

    def asides(self, read: ReadId) -> list[Aside]:
        """What was set aside for a read."""
        return self._asides.get(read, [])

    def make_read(self, command: GatherRows) -> Lease:
        """The buffer of a read, with some room behind its rows."""
        lease = self.buffers.lease(Memory.PAGEABLE, command.format, command.num_rows + READ_ROOM)
        self._reads[command.read] = lease
        return lease

    def make_scratch(self, row_format: RowFormat, rows: int) -> Lease:
        """Room for rows on their way, for the command that is being asked for."""
        lease = self.buffers.lease(Memory.PAGEABLE, row_format, rows)
        self._scratch.append(lease)
        return lease

    def take_scratch(self) -> list[Lease]:
        """What was made since the last time; whoever has it holds it until its command has ended."""
        scratch, self._scratch = self._scratch, []
        return scratch

    def lease_result(self, row_format: RowFormat, rows: int) -> Lease:
        """Room for rows that a caller gets; in use as long as anybody holds the lease or views it."""
        return self.buffers.lease(Memory.PAGEABLE, row_format, rows)

    # --- What ends --------------------------------------------------------------------------------------------------

    def end_read(self, command: PreserveRows | GatherRows, *, has_failed: bool) -> None:
        """A gather has ended: what was set aside for it is free."""
        if isinstance(command, GatherRows):
            self._asides.pop(command.read, None)
            if has_failed:
                self._reads.pop(command.read, None)

    def take_read(self, read: ReadId) -> Lease:
        """The buffer of a read that is done, for whoever consumes its step."""
        return self._reads.pop(read)

    def read(self, read: ReadId) -> Lease:
        """The buffer of a read."""
        return self._reads[read]

    def release(self, command: ReleaseBuffers) -> None:
        """Free what a command names; what was never made, because a freeze failed, is passed over."""
        clones = command.clones.tolist()
        for slabs, regions in (*self._clones.values(), *self._retired) if clones else ():
            if regions:
                slabs.give([region for clone in clones if (region := regions.pop(clone, None)) is not None])
        if self._retired:
            self._free_retired()
        for write in command.writes:
            self._hosts.pop(write, None)
        for read in command.reads:
            self._reads.pop(read, None)
            self._asides.pop(read, None)

    def close(self) -> None:
        """Give all memory back but for what callers hold; nobody uses the rest any more."""
        clones = (*self._clones.values(), *self._retired)
        buffers = [each for pages in self._pages.values() for each in pages]
        buffers += self._pools.values()
        self._clones, self._retired = {}, ()
        for table in (self._formats, self._pools, self._pages, self._hosts, self._asides, self._reads):
            table.clear()
        self._scratch.clear()
        for each in clones:
            each.slabs.free()
        for each in buffers:
            self._device.free(each)
        self.buffers.free_idle()

    def figures(self) -> tuple[int, int, int, int]:
        """Bytes of host buffers held and in all, bytes of device clones held and in all."""
        clones = [each.slabs.figures() for each in (*self._clones.values(), *self._retired)]
        return (*self.buffers.figures(), sum(held for held, _ in clones), sum(total for _, total in clones))
