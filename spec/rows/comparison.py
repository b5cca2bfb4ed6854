"""What of a row machine must agree with the oracle, the engine and the device, and how that is found out."""

from collections.abc import Mapping, Sequence
from typing import Final

from tenure.core.errors import InvariantViolation
from tenure.core.rows.answers import ConsumePlan
from tenure.core.rows.events import ConsumeRequested, RequestId, Slot, StepId, WaitedFor
from tenure.core.rows.names import HIDDEN, NameId
from tenure.core.rows.view import ReadPhase, RowView, WritePhase
from tenure.spec.rows.emissions import Mark
from tenure.spec.rows.engine import PlannedHit
from tenure.spec.rows.interpreter import Interpreter
from tenure.spec.rows.jobs import LEFTOVER
from tenure.spec.rows.memory import Buffer, Place, Row
from tenure.spec.rows.reference import Emitted, Materialized, ReferenceCache
from tenure.spec.rows.reference_values import share_of

AGREEMENT: Final = "AGREEMENT"
"""Stands where a rule's id stands if the machine and the oracle differ."""

UNWRITTEN: Final = (WritePhase.PENDING, WritePhase.QUEUED, WritePhase.COPYING, WritePhase.HOST_READY)
OFF_HOST: Final = (WritePhase.PENDING, WritePhase.QUEUED, WritePhase.COPYING)


def compare_states(view: RowView, oracle: ReferenceCache, *, with_rows: bool) -> None:
    """What both sides know; `with_rows`: also which rows are there.

    Raises:
        InvariantViolation: they differ.
    """
    steps = {*oracle.unconsumed} | ({oracle.pending} if oracle.pending is not None else set[StepId]())
    pairs: tuple[tuple[str, object, object], ...] = (
        ("live", oracle.live, frozenset(view.live)),
        ("pending", oracle.pending, view.pending),
        ("steps", steps, {*view.steps}),
        ("formats", oracle.formats, {each.name: each for each in view.formats}),
        ("identities", oracle.identities, view.identities),
        ("failure", oracle.has_failed, view.failure is not None),
    )
    for what, expected, found in pairs:
        if expected != found:
            raise InvariantViolation(AGREEMENT, f"{what} is {found}; expected {expected}")
    if not with_rows:
        return
    for name in oracle.formats:
        for slot in range(view.config.num_slots):
            if oracle.has_row(name, slot) != bool(view.effective(name, slot)):
                raise InvariantViolation("R21", f"{name} at slot {slot}: {view.occupancy(name, slot)}")


def check_wait(view: RowView, waited_for: WaitedFor) -> None:
    """A wait must be for something that has not come true yet.

    Raises:
        InvariantViolation: everything named has come true.
    """
    writes, reads = view.writes, view.reads
    is_open = (
        any(number in writes and writes[number].phase in UNWRITTEN for number in waited_for.written),
        any(number in writes and writes[number].phase in OFF_HOST for number in waited_for.host_ready),
        any(number in reads and reads[number].phase is not ReadPhase.DONE for number in waited_for.reads),
        waited_for.clone in view.clones,
        waited_for.page and all(view.pages),
    )
    if not any(is_open):
        raise InvariantViolation("R07", f"{waited_for} waits for nothing")


def compare_plan(plan: ConsumePlan, event: ConsumeRequested, expected: Materialized, *, is_copied_out: bool) -> None:
    """Whether a plan is for what was asked, and has every name.

    Raises:
        InvariantViolation: it is not.
    """
    names = [*expected.mm_outputs, *([] if expected.hidden_states is None else [HIDDEN])]
    pairs: tuple[tuple[str, object, object], ...] = (
        ("step", event.step, plan.step),
        ("requests", event.requests, plan.requests),
        ("names", sorted(names), sorted([*(each.name for each in plan.formats), *plan.leftovers])),
        ("copied out", is_copied_out, plan.page is None),
    )
    for what, wanted, found in pairs:
        if wanted != found:
            raise InvariantViolation(AGREEMENT, f"{event}: {what} is {found}; expected {wanted}")


def places_of(plan: ConsumePlan) -> tuple[list[Place], list[Place]]:
    """What a builder reads from the page, and from the buffers of hits."""
    page: list[Place] = []
    if plan.page is not None:
        buffer = Buffer("page", plan.page)
        tokens = int(plan.starts[-1])
        page = [Place(buffer, each.name, row) for each in plan.formats for row in range(tokens)]
        page += [Place(buffer, LEFTOVER + name, 0) for name in plan.leftovers]
    hits = [Place(Buffer("buffer", hit.read), hit.name, row) for hit in plan.hits for row in range(hit.num_rows)]
    return page, hits


def by_name(plan: ConsumePlan, rows: Sequence[Row]) -> dict[NameId, list[Row]]:
    """What was read from the page, per name; a leftover is a list of one."""
    found: dict[NameId, list[Row]] = {}
    left = list(rows)
    tokens = int(plan.starts[-1])
    for name, count in [*((each.name, tokens) for each in plan.formats), *((name, 1) for name in plan.leftovers)]:
        found[name], left = left[:count], left[count:]
    return found


def assemble(
    plan: ConsumePlan, outputs: Sequence[Emitted], own_rows: Mapping[NameId, list[Row]], hit_rows: Sequence[Row]
) -> Materialized:
    """What a materialize returns, made of what was copied."""
    hits: dict[tuple[RequestId, NameId], list[Row]] = {}
    left = list(hit_rows)
    for hit in plan.hits:
        hits[hit.request, hit.name], left = left[: hit.num_rows], left[hit.num_rows :]
    starts: list[int] = plan.starts.tolist()
    places = {request: place for place, request in enumerate(plan.batch)}
    rows: dict[NameId, dict[RequestId, list[Row]]] = {}
    for name in (each.name for each in plan.formats):
        rows[name] = {
            request: hits.get((request, name), []) + own_rows[name][starts[place] : starts[place + 1]]
            for request in plan.requests
            for place in (places[request],)
        }
    emitted = {each.output.name: each for each in outputs}
    shares: dict[NameId, dict[RequestId, Row]] = {}
    for name in plan.leftovers:
        copied = emitted[name]._replace(content=own_rows[name][0])
        shares[name] = {
            request: share_of(copied, place, starts[place], starts[place + 1], starts[-1])
            for request in plan.requests
            for place in (places[request],)
        }
    hidden = rows.pop(HIDDEN, None)
    return Materialized(hidden, {**rows, **shares})


def check_chains(plan: ConsumePlan, found: Materialized, hits: Mapping[tuple[StepId, RequestId], PlannedHit]) -> None:
    """An honest hit returns the rows of its own chain, each at its position; absent mm rows as zeros (R02, R14).

    Raises:
        InvariantViolation: a row is of another chain.
    """
    for name in (each.name for each in plan.formats):
        rows = found.hidden_states if name == HIDDEN else found.mm_outputs[name]
        for request in plan.requests:
            hit = hits.get((plan.step, request))
            if rows is None or hit is None or not hit.is_honest:
                continue
            for position, row in enumerate(rows[request][: hit.tokens]):
                is_mine = isinstance(row, Mark) and (row.name, row.chain) == (name, hit.chain[: position + 1])
                is_absent = name != HIDDEN and not isinstance(row, Mark)
                if not is_mine and not is_absent:
                    raise InvariantViolation(
                        "R02", f"step {plan.step}: {name} of request {request!r} at position {position} is {row}"
                    )


def check_landed(view: RowView, device: Interpreter, newest: Mapping[tuple[NameId, Slot], Row]) -> None:
    """With no write open, the pool holds the newest row of every name and slot (R05).

    Raises:
        InvariantViolation: it holds another.
    """
    if any(write.phase in UNWRITTEN for write in view.writes.values()):
        return
    for (name, slot), row in newest.items():
        if device.pool_row(name, slot) != row:
            raise InvariantViolation(
                "R05", f"the pool row of {name} at slot {slot} is {device.pool_row(name, slot)}; expected {row}"
            )
