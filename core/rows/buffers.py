"""Who holds device clones and pages: charges against the byte budget, and what becomes free (R06, R08)."""

import numpy as np

from tenure.core.arrays import Integers
from tenure.core.rows.commands import Clone
from tenure.core.rows.tables import (
    CLONE_BYTES,
    CLONE_FREEZE,
    CLONE_HOLDERS,
    CLONE_ID,
    NOBODY,
    Edit,
    Tables,
)


def charge(edit: Edit, clones: tuple[Clone, ...], freeze: int) -> None:
    """Charge the clones of a save, each held once, by the save itself."""
    tables = edit.tables
    rows = [[each.clone for each in clones], [each.bytes for each in clones], [1] * len(clones), [freeze] * len(clones)]
    edit.extend(tables.clones, np.array(rows, dtype=np.int64))
    tables.charged += sum(each.bytes for each in clones)
    tables.counters = tables.counters._replace(charged_peak=max(tables.counters.charged_peak, tables.charged))


def hold_clones(edit: Edit, clones: Integers, more: int = 1) -> None:
    """Add holders to each clone; no clone twice."""
    table = edit.tables.clones
    _set_holders(edit, table.find(clones), more)


def let_go_clones(edit: Edit, clones: Integers) -> None:
    """Take one holder from each clone; no clone twice. R08: what nobody holds is uncharged, once, and released."""
    tables = edit.tables
    table = tables.clones
    places = table.find(clones)
    _set_holders(edit, places, -1)
    free = places[table.column(CLONE_HOLDERS)[places] == 0]
    if not len(free):
        return
    tables.charged -= int(table.column(CLONE_BYTES)[free].sum())
    tables.dead_clones += len(free)
    edit.release_clones(table.column(CLONE_ID)[free], _freezes(tables, free))
    if 2 * tables.dead_clones > len(table):
        edit.replace("clones", table.chosen(table.column(CLONE_HOLDERS) > 0))
        tables.dead_clones = 0


def _set_holders(edit: Edit, places: Integers, more: int) -> None:
    table = edit.tables.clones
    edit.assign(table, (CLONE_HOLDERS, places), table[CLONE_HOLDERS, places] + more)


def mark_frozen(edit: Edit, clones: tuple[int, ...]) -> None:
    """The freeze of these clones is known to have ended, since a copy that runs behind it has."""
    table = edit.tables.clones
    edit.assign(table, (CLONE_FREEZE, table.find(np.array(clones, dtype=np.int64))), 0)


def freezes(tables: Tables, clones: Integers) -> tuple[int, ...]:
    """R20: the freezes of these clones that may still run, as commands to be ordered behind."""
    return _freezes(tables, tables.clones.find(clones))


def _freezes(tables: Tables, places: Integers) -> tuple[int, ...]:
    commands = np.unique(tables.clones.column(CLONE_FREEZE)[places])
    return tuple(int(each) for each in commands if each)


def oldest_clone(tables: Tables) -> int:
    """The oldest clone that is charged; there is one."""
    place = int(np.argmax(tables.clones.column(CLONE_HOLDERS) > 0))
    return int(tables.clones.column(CLONE_ID)[place])


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
