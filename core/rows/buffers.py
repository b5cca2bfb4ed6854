"""Who holds device clones and pages: charges against the byte budget, and what becomes free (R06, R08).

A clone of immediate rows has one holder all its life. One of deferred rows is held by every write with a chunk on it,
by the immediate write (whose page copy reads it) and by running reads.
"""

from collections.abc import Iterable

import numpy as np

from tenure.core.arrays import Integers
from tenure.core.rows.commands import Clone
from tenure.core.rows.edit import Edit
from tenure.core.rows.events import CloneId
from tenure.core.rows.tables import CLONE_BYTES, CLONE_FREEZE, CLONE_HOLDERS, CLONE_ID, NOBODY, Tables


def charge(edit: Edit, immediate: Clone | None, deferred: Clone | None, freeze: int) -> None:
    """Charge the clones of a save, each held once, by the save itself."""
    tables = edit.tables
    if immediate is not None:
        edit.put(tables.immediate_clones, immediate.clone, immediate.bytes)
        tables.charged += immediate.bytes
    if deferred is not None:
        row = (deferred.clone, deferred.bytes, 1, freeze)
        edit.extend(tables.clones, np.array(row, dtype=np.int64)[:, None])
        tables.charged += deferred.bytes
    edit.count("charged_peak", max(tables.charged - tables.counters["charged_peak"], 0))


def let_go_step_clones(edit: Edit, clones: Iterable[CloneId], freeze: int) -> None:
    """A save, or its immediate write, holds its clones no more; `freeze` may still run (R20), 0 if it has ended."""
    tables = edit.tables
    for clone in clones:
        if clone in tables.immediate_clones:
            # R08: uncharged once, since it is gone from the table.
            tables.charged -= tables.immediate_clones[clone]
            edit.remove(tables.immediate_clones, clone)
            edit.release_clones((clone,), (freeze,) if freeze else ())
        else:
            places = np.array([clone], dtype=np.int64)
            if not freeze:
                edit.assign(tables.clones, (CLONE_FREEZE, tables.clones.find(places)), 0)
            let_go_clones(edit, places)


def hold_clones(edit: Edit, clones: Integers, more: int = 1) -> None:
    """Add holders to clones of deferred rows; no clone twice."""
    table = edit.tables.clones
    _set_holders(edit, table.find(clones), more)


def let_go_clones(edit: Edit, clones: Integers) -> None:
    """Take one holder from clones of deferred rows; no clone twice. R08: what nobody holds is uncharged, once."""
    tables = edit.tables
    table = tables.clones
    places = table.find(clones)
    _set_holders(edit, places, -1)
    free = places[table.column(CLONE_HOLDERS)[places] == 0]
    if not len(free):
        return
    # R18: what the last holder lets go of is gone from every table.
    tables.charged -= int(table.column(CLONE_BYTES)[free].sum())
    tables.dead_clones += len(free)
    edit.release_clones(table.column(CLONE_ID)[free].tolist(), _freezes(tables, free))
    if 2 * tables.dead_clones > len(table):
        edit.replace("clones", table.chosen(table.column(CLONE_HOLDERS) > 0))
        tables.dead_clones = 0


def _set_holders(edit: Edit, places: Integers, more: int) -> None:
    table = edit.tables.clones
    edit.assign(table, (CLONE_HOLDERS, places), table[CLONE_HOLDERS, places] + more)


def freezes(tables: Tables, clones: Integers) -> tuple[int, ...]:
    """R20: the freezes of clones of deferred rows that may still run, as commands to be ordered behind."""
    return _freezes(tables, tables.clones.find(clones))


def _freezes(tables: Tables, places: Integers) -> tuple[int, ...]:
    commands = np.unique(tables.clones.column(CLONE_FREEZE)[places])
    return tuple(int(each) for each in commands if each)


def oldest_clone(tables: Tables) -> CloneId:
    """The oldest clone that is charged; there is one."""
    held = tables.clones.column(CLONE_ID)[tables.clones.column(CLONE_HOLDERS) > 0]
    return int(min([*tables.immediate_clones, *held[:1].tolist()]))


def step_lets_go(edit: Edit, page: int) -> None:
    """R06: the step holds its page no more; -1 for none."""
    if page >= 0:
        edit.hold_page(page, (0, edit.tables.pages[page][1]))


def write_lets_go(edit: Edit, page: int) -> None:
    """R06: the write holds its page no more; -1 for none."""
    if page >= 0:
        edit.hold_page(page, (edit.tables.pages[page][0], 0))


def free_page(tables: Tables) -> int | None:
    """The smallest page that nobody holds."""
    return tables.pages.index(NOBODY) if NOBODY in tables.pages else None
