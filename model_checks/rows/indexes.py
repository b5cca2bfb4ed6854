"""What the machine keeps beside its records to be fast, held against what it is made of.

States are told apart by their records alone, so an index that went wrong would be hidden by whichever state came first.
"""

from collections.abc import Iterator

from tenure.core.rows.names import Schedule
from tenure.core.rows.records import Write
from tenure.core.rows.tables import Tables
from tenure.core.rows.view import ReadPhase, WritePhase
from tenure.model_checks.model import Broken

ON_ITS_WAY = (WritePhase.QUEUED, WritePhase.COPYING, WritePhase.HOST_READY)


def wrong_indexes(tables: Tables) -> Iterator[Broken]:
    """Indexes that differ from what they should be: an entry too many is waited for in vain, one too few not at all."""
    writes = {number: write for number, write in tables.writes.items() if not write.fenced}
    deferred = {number: write for number, write in writes.items() if write.schedule is Schedule.JOIN_ON_FINISH}
    indexes = (
        ("immediate", tables.immediate, [n for n in writes if n not in deferred and writes[n].phase in ON_ITS_WAY]),
        (
            "unready",
            tables.unready,
            [n for n, write in deferred.items() if write.ended and write.phase in ON_ITS_WAY[:2]],
        ),
        ("planned", tables.planned, _reads(tables, ReadPhase.PLANNED)),
        ("running", tables.running, _reads(tables, ReadPhase.RUNNING, ReadPhase.LEFT)),
        ("writes_of", _listed(tables), [n for n, write in deferred.items() if _is_open(write)]),
    )
    for name, found, right in indexes:
        if sorted(found) != sorted(right):
            yield Broken("R11", f"the machine lists {sorted(found)} as {name}, and its records say {sorted(right)}")


def _reads(tables: Tables, *phases: ReadPhase) -> list[int]:
    return [number for number, read in tables.reads.items() if read.phase in phases]


def _listed(tables: Tables) -> list[int]:
    return [number for numbers in tables.writes_of.values() for number in numbers]


def _is_open(write: Write) -> bool:
    """A deferred write of a live request that has not reached the pool."""
    return not write.ended and write.phase not in (WritePhase.WRITTEN, WritePhase.FAILED)
