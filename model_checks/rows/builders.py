"""Builders of the row machine's model: what they read, and whether it is what it should be (R02, R06)."""

from collections.abc import Iterator
from typing import cast

from tenure.core.rows.events import (
    ConsumeAbandoned,
    RowsCopiedOut,
    StepConsumed,
)
from tenure.model_checks.model import Broken, Event, Taken
from tenure.model_checks.rows.cells import POISON, buffer_code, row_code
from tenure.model_checks.rows.environment import (
    COPIED,
    COPYING,
    RESTING,
    WAITING,
    HitRead,
    Saved,
)
from tenure.model_checks.rows.ghost import Ghost
from tenure.model_checks.rows.plans import NOTE
from tenure.model_checks.rows.stage import PageCells, RowsStage, State, saved_of, with_saved, without_saved
from tenure.model_checks.rows.work import Reader
from tenure.spec.rows.memory import Buffer, Place


class RowsBuilders(RowsStage):
    """Builders that copy rows out."""

    def _begin_copying(self, taken: Taken, event: Event) -> Taken:
        state = cast("State", taken.state)
        saved = saved_of(state.env, event)
        ghost, found = self._device.read_by(state.ghost, self._reader(saved))
        hidden = [f"{request} at step {saved.step}" for (request, _), rows in saved.expected if rows is None]
        wrong = [Broken("R14", f"a hit with a hole is handed out: {each}") for each in hidden if each[0] in saved.asked]
        return taken._replace(state=state._replace(ghost=ghost), broken=(*taken.broken, *found, *wrong))

    def _read_cells(self, saved: Saved) -> Iterator[int]:
        if saved.page >= 0 and saved.builder == COPYING:
            for cell, _ in self._page_cells(saved):
                yield cell
        for hit in saved.hits:
            yield from self._hit_cells(hit)

    def _reader(self, saved: Saved) -> Reader:
        """A builder as who reads what it was given, made once."""
        cells = tuple(self._read_cells(saved))
        reader = self._readers.get((saved.step, cells))
        if reader is None:
            reader = self._readers[saved.step, cells] = Reader(saved.step, cells)
        return reader

    def _page_cells(self, saved: Saved) -> PageCells:
        """Per cell of the page that a builder reads what it must hold."""
        key = id(saved.plan), saved.step, saved.page, saved.asked
        known = self._pages.get(key)
        if known is None:
            known = self._pages[key] = tuple(self._cells_of_page(saved)), saved.plan
        return known[0]

    def _cells_of_page(self, saved: Saved) -> Iterator[tuple[int, int]]:
        page, number = Buffer("page", saved.page), self.names.number
        for place, row in enumerate(saved.plan.rows):
            for name in saved.plan.emits:
                if row.request in saved.asked and name != NOTE:
                    cell = self.names.cell(Place(page, name, place))
                    yield cell, row_code(saved.step, row.node, number[name])
        if NOTE in saved.plan.emits:
            yield self.names.cell(Place(page, NOTE, 0)), row_code(saved.step, 0, number[NOTE])

    def _hit_cells(self, hit: HitRead) -> list[int]:
        buffer = Buffer("buffer", hit.read)
        return [self.names.cell(Place(buffer, self.names.names[hit.name], row)) for row in range(hit.rows)]

    def _builder_did(self, state: State, saved: Saved, kind: str) -> Taken:
        core, ghost, env = state
        broken = self._wrong_page(saved, ghost) if kind != "abandon" and saved.builder == COPYING else []
        ghost = self._device.leave(ghost, saved.step)
        if kind == "copied its page":
            rest = saved._replace(builder=COPIED, page=-1)
            ghost, found = self._device.read_by(ghost, self._reader(rest))
            step = self.cores.step(core, RowsCopiedOut(saved.step))
            return self._told(state, step, with_saved(env, rest), ghost, (*broken, *found))
        if kind == "return":
            broken += self._wrong_hits(saved, state.ghost)
            taken = [buffer_code(Buffer(each, hit.read)) for hit in saved.hits for each in ("buffer", "aside")]
            ghost = self._device.freed(ghost, frozenset(taken))
            return self._told(
                state, self.cores.step(core, StepConsumed(saved.step)), without_saved(env, saved), ghost, (*broken,)
            )
        abandons = env.bounds.abandons
        env = env._replace(bounds=env.bounds._replace(abandons=abandons - (abandons > 0)))
        resting = RESTING if saved.builder == COPIED or saved.page < 0 else WAITING
        rest = saved._replace(builder=resting, asked=(), page=-1, hits=())
        env = without_saved(env, saved) if saved.is_fenced else with_saved(env, rest)
        return self._told(state, self.cores.step(core, ConsumeAbandoned(saved.step)), env, ghost)

    def _wrong_page(self, saved: Saved, ghost: Ghost) -> list[Broken]:
        """R06: the rows that the page of a step holds, beside those that the step made."""
        if saved.page < 0:
            return []
        cells = ghost.cells
        pairs = [(cells.get(cell, POISON), row) for cell, row in self._page_cells(saved)]
        if all(found == expected for found, expected in pairs):
            return []
        found, expected = (", ".join(map(self.show, rows)) for rows in zip(*pairs, strict=True))
        return [Broken("R06", f"page {saved.page} of step {saved.step} holds {found}; the step made {expected}")]

    def _wrong_hits(self, saved: Saved, ghost: Ghost) -> list[Broken]:
        """R02: the rows that a hit is handed, beside those that stood in its slots after the save of its step."""
        broken: list[Broken] = []
        expected = dict(saved.expected)
        for hit in saved.hits:
            found = tuple(ghost.cells.get(cell, POISON) for cell in self._hit_cells(hit))
            right = expected.get((hit.request, hit.name))
            if found != right:
                handed, should = ", ".join(map(self.show, found)), ", ".join(map(self.show, right or ()))
                broken.append(Broken("R02", f"{hit.request} is handed {handed}; its slots held {should or 'a hole'}"))
        given = {(hit.request, hit.name) for hit in saved.hits}
        for (request, name), rows in saved.expected:
            if request in saved.asked and rows is not None and (request, name) not in given:
                broken.append(Broken("R02", f"{request} gets no hit rows under {self.names.names[name]}"))
        return broken
