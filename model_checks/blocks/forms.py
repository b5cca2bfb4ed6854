"""The canonical form of a block-machine state: equal for two exactly if nothing that may happen tells them apart.

What only grows is counted anew. Reservations, snapshots, leases and attachments are numbered by the order in which they
came, places in the LRU by theirs; of KV event ids it only counts whether one was ever used, since all the others follow
from the first. Blocks are named by where they appear first in a fixed walk (leases by request and position,
reservations, LRU, free stack), which reaches every block that was ever used, so no ties are left to try out. The names
are dealt out in a shuffled order, so that a machine that goes by a block's number where it should go by a block's turn
is seen to do so. How many blocks were ever used is kept: taking a fresh block and taking a returned one are different
code.

**Architecture invariant:** a form is made of ints, strings, None and tuples alone, so that its bytes are its identity.
"""

import marshal  # noqa: TID251 - in memory only: bytes that are equal exactly if the forms are
from collections.abc import Iterable, Mapping
from operator import attrgetter
from typing import Any, Final, TypeAlias

from tenure.core.blocks.hashing import request_bytes
from tenure.core.blocks.state import BlockState
from tenure.core.blocks.tables import (
    EMPTY,
    INACTIVE,
    Attachment,
    Lease,
    PendingCapacity,
    Reservation,
    Snapshot,
    Tables,
)
from tenure.core.blocks.values import BlockId
from tenure.core.requests import sorted_requests
from tenure.model_checks.blocks.worlds import World

Form: TypeAlias = tuple[Any, ...]
Names: TypeAlias = Mapping[BlockId, BlockId]

WAITING: Final = -3
"""In a form, in place of a block's count: it is in the LRU, at the place that the LRU's order says."""
SPOKEN: Final = 7
"""The next KV event id of a machine that has told any."""
MARSHAL: Final = 2
"""The last format of `marshal` whose bytes depend on nothing but the value."""


def shuffled(count: int) -> tuple[int, ...]:
    """The names of `count` blocks in the order they are dealt out: neither ascending nor descending."""
    return (*range(count - 1 - count % 2, -1, -2), *range(0, count, 2)) if count > 1 else tuple(range(count))


def pack_form(form: Form) -> bytes:
    """A form as bytes: equal exactly if the forms are."""
    return marshal.dumps(form, MARSHAL)


def unpack_form(packed: bytes) -> Form:
    """The form that was packed in this process or in another one of the same search."""
    form: Form = marshal.loads(packed)  # noqa: S302 - made by `pack_form`, never read from a file
    return form


def block_names(tables: Tables) -> dict[BlockId, BlockId]:
    """The canonical name of every block that was ever used."""
    walk: dict[BlockId, None] = {}
    for request in sorted_requests(tables.leases):
        walk.update(dict.fromkeys(tables.leases[request].copies))
    for key in sorted(tables.reservations):
        reservation = tables.reservations[key]
        walk.update(dict.fromkeys(block for _, block in reservation.prefix))
        walk.update(dict.fromkeys(reservation.fresh))
    walk.update(dict.fromkeys(tables.lru_order()))
    walk.update(dict.fromkeys(reversed(tables.free)))
    # Only a faulty machine has blocks that the walk does not reach.
    used = len(tables.copies)
    walk.update(dict.fromkeys(range(used)))
    return dict(zip(walk, shuffled(max(used, len(walk))), strict=False))


def freeze(world: World, tables: Tables, names: Names) -> Form:
    """The canonical form of some tables, under the names that `block_names` gave."""
    numbers = {tables.leases[each].number: rank for rank, each in enumerate(sorted_requests(tables.leases), 2)}
    attachments = _attachment_ranks(tables)
    cells = [(WAITING, 0)] * len(tables.copies)
    for block, count in enumerate(tables.copies):
        state = WAITING if count >= INACTIVE else count
        cells[names[block]] = (state, 0 if count < 0 else tables.hash_of[block])
    return (
        tuple(cells),
        _sorted_blocks(tables.pins.items(), names),
        tuple(sorted((name, names[block]) for name, block in tables.primary.items())),
        tuple(sorted((name, _renamed(blocks, names)) for name, blocks in tables.duplicates.items())),
        _renamed(tables.lru_order(), names),
        _renamed(tables.free, names),
        tuple(_freeze_reservation(each, numbers, names) for _, each in sorted(tables.reservations.items(), key=_key)),
        tuple(_freeze_lease(world, tables.leases[each], attachments, names) for each in sorted_requests(tables.leases)),
        tuple(
            (each.request, each.positions, _renamed(each.blocks, names))
            for _, each in sorted(tables.snapshots.items(), key=_key)
        ),
        _sorted_blocks(tables.tags.items(), names),
        tuple(sorted(names[block] for block in tables.authorized)),
        tuple(
            (dependency, attachments[each.number], _renamed(each.blocks, names))
            for dependency, each in sorted(tables.dependencies.items())
        ),
        SPOKEN if tables.next_event_id else 0,
    )


def _key(item: tuple[int, Any]) -> int:
    return item[0]


def _renamed(blocks: Iterable[BlockId], names: Names) -> tuple[BlockId, ...]:
    return tuple([names[block] for block in blocks])


def _sorted_blocks(items: Iterable[tuple[BlockId, int]], names: Names) -> tuple[tuple[BlockId, int], ...]:
    return tuple(sorted((names[block], value) for block, value in items))


def _attachment_ranks(tables: Tables) -> dict[int, int]:
    """Attachments that anybody still speaks of, by the order in which they were made."""
    numbers = {each.number for each in tables.dependencies.values()}
    for lease in tables.leases.values():
        if lease.pending is not None:
            numbers.update(number for _, number in lease.pending.attachments)
    return {number: rank for rank, number in enumerate(sorted(numbers), 1)}


def _freeze_reservation(reservation: Reservation, numbers: Mapping[int, int], names: Names) -> Form:
    # A destination of a lease that is gone belongs to none that will ever come: 1 stands for all of these.
    number = 0 if reservation.kind == "decode" else numbers.get(reservation.lease_number, 1)
    prefix = tuple((name, names[block]) for name, block in reservation.prefix)
    return (reservation.kind, reservation.request, number, prefix, _renamed(reservation.fresh, names))


def _freeze_lease(world: World, lease: Lease, attachments: Mapping[int, int], names: Names) -> Form:
    pending = lease.pending
    waits = None
    if pending is not None:
        pairs = tuple((dependency, attachments[number]) for dependency, number in pending.attachments)
        waits = (pending.start, pending.stop, pairs)
    return (
        world.sequence_of(lease),
        tuple(lease.hashes),
        tuple(lease.local_hashes),
        _renamed(lease.copies, names),
        lease.allocated,
        waits,
        lease.start,
        tuple(lease.window),
    )


def is_same(one: Tables, other: Tables) -> bool:
    """Whether two tables hold the same to the last number, by which a trace of a refused event would show."""
    if one.leases.keys() != other.leases.keys() or _PARTS(one) != _PARTS(other):
        return False
    return all(_LEASE_PARTS(lease) == _LEASE_PARTS(other.leases[request]) for request, lease in one.leases.items())


_PARTS: Final = attrgetter(*(each for each in Tables.__slots__ if each not in ("config", "leases", "pack_block")))
_LEASE_PARTS: Final = attrgetter(*Lease.__slots__)


# --- And back ---------------------------------------------------------------------------------------------------


def thaw(world: World, form: Form, *, copying: bool) -> BlockState:
    """A state of the production machine that has a canonical form; numbers that grow begin where the form's end."""
    cells, pins, primary, duplicates, lru, free, reservations, leases, snapshots, tags, authorized, pending, spoken = (
        form
    )
    tables = Tables(world.config)
    tables.copies = [count for count, _ in cells]
    tables.hash_of = [name for _, name in cells]
    tables.pins, tables.primary, tables.duplicates = dict(pins), dict(primary), dict(duplicates)
    for place, block in enumerate(lru, INACTIVE):
        tables.lru[place] = block
        tables.copies[block] = place
    tables.lru_tail = INACTIVE + len(lru)
    tables.free = list(free)
    tables.reservations = {key: Reservation(*each) for key, each in enumerate(reservations, 1)}
    for number, each in enumerate(leases, 2):
        lease = _thaw_lease(world, number, each)
        tables.leases[lease.request] = lease
    for key, (request, positions, blocks) in enumerate(snapshots, 1):
        tables.snapshots[key] = Snapshot(request, positions, blocks)
        tables.snapshots_of[request] = (*tables.snapshots_of.get(request, ()), key)
    tables.tags, tables.authorized = dict(tags), dict.fromkeys(authorized)
    tables.dependencies = {dependency: Attachment(number, blocks) for dependency, number, blocks in pending}
    ranks = [number for _, number, _ in pending]
    ranks += [number for each in leases if each[5] is not None for _, number in each[5][2]]
    tables.attached_ever = max(ranks, default=0)
    tables.leases_ever = 1 + len(leases)
    tables.reservations_ever, tables.snapshots_ever = len(reservations), len(snapshots)
    tables.next_event_id = spoken
    assert EMPTY not in (tables.copies[block] for block in lru)
    return BlockState.over(tables, copying=copying)


def _thaw_lease(world: World, number: int, form: Form) -> Lease:
    index, hashes, local_hashes, copies, allocated, pending, start, window = form
    sequence = world.sequences[int(index)]
    lease = Lease()
    lease.request, lease.uuid, lease.number = sequence.request, request_bytes(sequence.request), number
    lease.hashes, lease.local_hashes, lease.copies = list(hashes), list(local_hashes), list(copies)
    lease.allocated = allocated
    lease.pending = None if pending is None else PendingCapacity(*pending)
    lease.prompt_tokens, lease.max_output = sequence.prompt_tokens, sequence.max_output
    lease.planned, lease.caching, lease.keys = sequence.planned, sequence.caching, sequence.keys
    lease.retain_local_hashes, lease.emit_token_ids = sequence.retain_local_hashes, sequence.emit_token_ids
    lease.start, lease.window = start, list(window)
    return lease
