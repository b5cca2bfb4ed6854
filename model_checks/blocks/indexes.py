"""What the block machine keeps beside its records to be fast, held against what it is made of.

A canonical form leaves these out and makes them anew, so what went wrong in them would be repaired by being forgotten.
"""

from collections.abc import Iterator

from tenure.core.blocks.tables import INACTIVE, Tables
from tenure.core.blocks.values import RequestId, SnapshotId
from tenure.model_checks.model import Broken


def wrong_indexes(tables: Tables) -> Iterator[Broken]:
    """Bounds of the LRU that leave a block outside, and snapshots that their lease does not list."""
    head, tail, places = tables.lru_head, tables.lru_tail, sorted(tables.lru)
    if not INACTIVE <= head <= tail or (places and not (head <= places[0] and places[-1] < tail)):
        yield Broken("I03", f"the LRU reaches from place {head} to {tail}, and holds places {places}")
    listed: dict[RequestId, tuple[SnapshotId, ...]] = {}
    for key in sorted(tables.snapshots):
        request = tables.snapshots[key].request
        if request in tables.leases or request in tables.snapshots_of:
            listed[request] = (*listed.get(request, ()), key)
    if tables.snapshots_of != listed:
        yield Broken("I22", f"leases list the snapshots {tables.snapshots_of}, and there are {listed}")
